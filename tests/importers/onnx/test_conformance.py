"""ONNX's own conformance cases: run at once, and by generated source without onnx.

Every case that fails is named with its reason; one that passes leaves the list.
"""

import json

import pytest

pytest.importorskip("onnx")

from burnbook.reference.onnx_operators import FILE
from tests.importers.onnx.cases import all_cases
from tests.importers.onnx.conformance import (
    counted,
    executed,
    reason_of,
    table,
    written,
)


@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.slow)])
def test_all_cases_by_execution(every):
    cases = all_cases()[::every]
    wrong = executed(cases)
    expected = {case.name for case in cases if reason_of(case.name)}
    assert {n: wrong[n] for n in wrong.keys() - expected} == {}
    assert expected - wrong.keys() == set()
    if every == 1:
        assert len(cases) == 2024
        assert len(cases) - len(wrong) == 2007
        assert table(wrong, wrong)["failed"] == data()["failed"]


@pytest.mark.slow
def test_all_cases_by_generated_source_without_onnx(tmp_path):
    wrong = written(all_cases(), tmp_path)
    assert {n: why for n, why in wrong.items() if reason_of(n) is None} == {}
    assert len(all_cases()) - len(wrong) == 2007


def data():
    with open(FILE) as file:
        return json.load(file)


def test_the_table_of_the_appendix_has_the_cases_of_this_onnx():
    """`python -m tests.importers.onnx.conformance` makes it anew."""
    import onnx

    held = data()
    if onnx.__version__.split(".")[:2] != held["onnx"].split(".")[:2]:
        pytest.skip(f"the table is of onnx {held['onnx']}, here is {onnx.__version__}")
    rows = {f"op {k}": v[0] for k, v in held["operators"].items()}
    rows |= {f"kind {k}": v[0] for k, v in held["kinds"].items()}
    assert rows == counted()
