"""ONNX's own conformance cases: run at once, and by generated source without onnx.

Every case that fails is named here with its reason; one that passes leaves the list.
"""

import pickle
import subprocess
import sys

import pytest

pytest.importorskip("onnx")

from burnbook.importers.onnx import Backend, ModelGen
from burnbook.importers.onnx.model_gen import module_name
from tests.importers.onnx.cases import all_cases, difference
from tests.support.fresh import ROOT

REASONS = {
    "bernoulli": "random numbers of another generator, compared one by one",
    "image_decoder": "pictures are not decoded",
    "gradient_of": "a gradient as an operator of the graph",
    "swiglu_float16": "differs from the reference by one unit of half precision",
}


def reason_of(name):
    return next((why for word, why in REASONS.items() if word in name), None)


@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.slow)])
def test_all_cases_by_execution(every):
    wrong, cases = {}, all_cases()[::every]
    for case in cases:
        try:
            ready = Backend.prepare(case.model)
            found = [ready.run(inputs) for inputs, _ in case.sets]
            why = difference(case, found)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        if why is not None:
            wrong[case.name] = why
    expected = {case.name for case in cases if reason_of(case.name)}
    assert {n: wrong[n] for n in wrong.keys() - expected} == {}
    assert expected - wrong.keys() == set()
    if every == 1:
        assert len(cases) == 2024
        assert len(cases) - len(wrong) == 2005


RUN = """
import importlib.util, pickle, sys
sys.modules["onnx"] = None
import numpy as np
from burnbook.backend import Numpy
from burnbook.importers.onnx.values import lifted, lowered, settled_input

found = {}
for name, path, sets in pickle.load(open(sys.argv[1], "rb")):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        model = module.Model.default()
        run = getattr(model, "compute", model.forward)
        results = []
        for inputs in sets:
            given = [lifted(settled_input(x), Numpy()) for x in inputs]
            made = run(*given)
            made = made if isinstance(made, tuple) else (made,)
            results.append([lowered(value) for value in made])
        found[name] = results
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"
pickle.dump(found, open(sys.argv[2], "wb"))
"""


@pytest.mark.slow
def test_all_cases_by_generated_source_without_onnx(tmp_path):
    import onnx

    written = []
    for case in all_cases():
        if reason_of(case.name) in (REASONS["image_decoder"], REASONS["gradient_of"]):
            continue
        path = tmp_path / f"{case.name}.onnx"
        onnx.save(case.model, path)
        (made,) = ModelGen().input(path).out_dir(tmp_path).run_from_cli()
        assert made.stem == module_name(case.name)
        written.append((case.name, str(made), [inputs for inputs, _ in case.sets]))
    (tmp_path / "given").write_bytes(pickle.dumps(written))
    script = tmp_path / "run.py"
    script.write_text(RUN)
    command = [
        sys.executable,
        str(script),
        str(tmp_path / "given"),
        str(tmp_path / "got"),
    ]
    subprocess.run(command, check=True, cwd=ROOT)
    found = pickle.loads((tmp_path / "got").read_bytes())
    wrong = {}
    for case in all_cases():
        if case.name not in found:
            continue
        results = found[case.name]
        why = results if isinstance(results, str) else difference(case, results)
        if why is not None and reason_of(case.name) is None:
            wrong[case.name] = why
    assert wrong == {}
