"""ONNX's own conformance cases, run at once and by generated source without onnx.

    python -m tests.importers.onnx.conformance

runs all of them and writes what the appendix of ONNX's operators shows.
"""

import json
import pickle
import re
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import onnx

from burnbook.backend import Numpy
from burnbook.importers.onnx import Backend, ModelGen
from burnbook.reference.onnx_operators import FILE
from tests.importers.onnx.cases import all_cases, difference
from tests.support.fresh import ROOT

REASONS = {
    "bernoulli": "random numbers of another generator, compared one by one",
    "image_decoder": "pictures are not decoded",
    "gradient_of": "a gradient as an operator of the graph",
}

RUN = """
import importlib.util, pickle, sys
sys.modules["onnx"] = None
import numpy as np
from burnbook.backend import Numpy
from burnbook.importers.onnx.values import lifted, lowered, settled_input

Numpy().seed(1)  # so that no draw agrees by chance with what another one drew
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


def reason_of(name):
    return next((why for word, why in REASONS.items() if word in name), None)


def executed(cases):
    """Why cases fail that are run at once, by name."""
    wrong = {}
    Numpy().seed(1)  # so that no draw agrees by chance with what another one drew
    for case in cases:
        try:
            ready = Backend.prepare(case.model)
            found = [ready.run(inputs) for inputs, _ in case.sets]
            why = difference(case, found)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        if why is not None:
            wrong[case.name] = why
    return wrong


def written(cases, folder):
    """Why cases fail whose source runs in a process without onnx, by name."""
    ready, wrong = [], {}
    for case in cases:
        path = folder / f"{case.name}.onnx"
        onnx.save(case.model, path)
        try:
            (made,) = ModelGen().input(path).out_dir(folder).run_from_cli()
        except Exception as error:
            wrong[case.name] = f"{type(error).__name__}: {error}"
            continue
        ready.append((case.name, str(made), [inputs for inputs, _ in case.sets]))
    (folder / "given").write_bytes(pickle.dumps(ready))
    script = folder / "run.py"
    script.write_text(RUN)
    command = [sys.executable, str(script), str(folder / "given"), str(folder / "got")]
    subprocess.run(command, check=True, cwd=ROOT)
    found = pickle.loads((folder / "got").read_bytes())
    for case in cases:
        if case.name in wrong:
            continue
        results = found[case.name]
        why = results if isinstance(results, str) else difference(case, results)
        if why is not None:
            wrong[case.name] = why
    return wrong


@cache
def operators_of():
    """The operator that each case is about, "" where it is a model."""
    single = {}
    for case in all_cases():
        nodes = case.model.graph.node
        if case.kind == "node" and len(nodes) == 1:
            single[case.name] = nodes[0].op_type
    names = {_plain(op): op for op in set(single.values())}
    found = dict(single)
    for case in all_cases():
        if any(node.op_type == "Gradient" for node in case.model.graph.node):
            found[case.name] = "Gradient"
        if case.kind != "node" or case.name in found:
            continue
        base = re.sub(r"_expanded.*$", "", case.name)
        word = _plain(base.removeprefix("test_"))
        alike = [n for n in names if word.startswith(n)]
        best = names[max(alike, key=len)] if alike else ""
        found[case.name] = single.get(base) or best or _rarest(case)
    return found


def _rarest(case):
    """The operator of a case that stands in the fewest others."""
    return min((n.op_type for n in case.model.graph.node), key=_occurrences().get)


@cache
def _occurrences():
    return Counter(
        op for c in all_cases() for op in {n.op_type for n in c.model.graph.node}
    )


def _plain(text):
    return text.replace("_", "").lower()


def counted():
    """How many cases there are about each operator, and of each kind."""
    rows = {}
    for case in all_cases():
        op = operators_of().get(case.name, "")
        for key in (f"kind {case.kind}", f"op {op}" if op else ""):
            if key:
                rows[key] = rows.get(key, 0) + 1
    return rows


def table(wrong, unwritten):
    """What the appendix is made of: passed cases, and those that fail."""
    by_case = operators_of()
    kinds = {case.name: case.kind for case in all_cases()}
    rows = {key: [count, count, count] for key, count in counted().items()}
    for place, failed in ((1, wrong), (2, unwritten)):
        for name in failed:
            rows[f"kind {kinds[name]}"][place] -= 1
            if by_case.get(name):
                rows[f"op {by_case[name]}"][place] -= 1
    return {
        "onnx": onnx.__version__,
        "operators": {k[3:]: v for k, v in sorted(rows.items()) if k.startswith("op ")},
        "kinds": {k[5:]: v for k, v in sorted(rows.items()) if k.startswith("kind ")},
        "failed": {
            name: [by_case.get(name, ""), reason_of(name) or "unexplained"]
            for name in sorted({*wrong, *unwritten})
        },
    }


def main():
    cases = all_cases()
    with tempfile.TemporaryDirectory() as folder:
        save(table(executed(cases), written(cases, Path(folder))))


def save(made):
    lines = [
        f'  "{part}": {{\n'
        + ",\n".join(f'    "{k}": {json.dumps(v)}' for k, v in made[part].items())
        + "\n  }"
        for part in ("operators", "kinds", "failed")
    ]
    version = json.dumps(made["onnx"])
    text = f'{{\n  "onnx": {version},\n' + ",\n".join(lines) + "\n}\n"
    Path(FILE).write_text(text)
    for kind, row in made["kinds"].items():
        print(kind, row)
    print(made["failed"])


if __name__ == "__main__":
    main()
