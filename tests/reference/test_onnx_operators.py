"""The table of ONNX's operators: complete, and of the counts that were found."""

import pytest

from burnbook.core.errors import ConfigError
from burnbook.importers.onnx.operators import OPERATORS
from burnbook.importers.onnx.versions import VERSIONS
from burnbook.reference.onnx_operators import (
    FAMILIES,
    onnx_operators,
    onnx_rows,
    onnx_totals,
)


def test_every_known_operator_has_one_row():
    rows = [(row.domain, row.name) for row in onnx_rows()]
    assert len(rows) == len(set(rows))
    assert set(rows) == {(d, name) for d, names in VERSIONS.items() for name in names}
    assert OPERATORS.keys() <= set(rows)


def test_every_family_has_a_table_and_every_case_is_in_one():
    assert {row.family for row in onnx_rows()} == set(FAMILIES)
    node = onnx_totals().kinds["node"][0]
    assert sum(row.cases[0] for row in onnx_rows()) >= node
    for family in FAMILIES:
        page = onnx_operators(family)
        assert page._repr_html_().count("<tr>") == len(page.rows) + 1
        assert FAMILIES[family] in repr(page)


def test_an_operator_that_fails_says_why():
    for row in onnx_rows():
        assert row.remarks or row.cases[0] == row.cases[1] == row.cases[2], row


def test_operators_are_found_by_name_and_families_by_theirs():
    names = [row.name for row in onnx_operators(find="LSTM").rows]
    assert names == ["LSTM", "DynamicQuantizeLSTM"]
    assert "nn.Lstm" in onnx_operators(find="LSTM")._repr_html_()
    with pytest.raises(ConfigError, match="no family"):
        onnx_operators("convolutions")


def test_the_totals_are_the_sum_of_all_kinds():
    totals = onnx_totals()
    for k in range(3):
        rows = [row[k] for kind, row in totals.kinds.items() if kind != "all"]
        assert totals.kinds["all"][k] == sum(rows)
    assert totals.kinds["all"][0] >= 2024
    assert "by execution" in repr(totals)
    assert totals._repr_html_().count("<tr>") == len(totals.kinds) + 1
