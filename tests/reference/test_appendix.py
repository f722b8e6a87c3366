"""Appendix A1: every claim of the table is tried, and the pages are not stale."""

import re
from pathlib import Path

import nbformat
import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.core.dtypes import Float
from burnbook.core.errors import ConfigError
from burnbook.core.op import OPS
from burnbook.reference import appendix, table
from burnbook.reference.composed import COMPOSED, composed
from burnbook.tensor import Tensor
from tests.ops.test_ops import match_sizes
from tests.support.composed_calls import CALLS, KINDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "notebooks" / "A1_ops.ipynb"
CASES = [
    pytest.param(name, kind, id=f"{name}-{kind}")
    for name, known in COMPOSED.items()
    if name not in OPS  # or it declares all this itself
    for kind in (known.kinds.split(">")[0] or known.kinds).replace(">", "").split()
]
TAKEN = [case for case in CASES if CALLS[case.values[0]][1] is not None]


def draw(shape, kind, device=None):
    rng = np.random.default_rng(5)
    values = {"F": rng.standard_normal(shape), "I": rng.integers(1, 9, shape)}
    values["B"] = values["I"] > 4
    return Tensor.from_data(values[kind], device or Numpy(), KINDS[kind])


def results(out):
    """The tensors among what a function gave."""
    several = out if isinstance(out, (tuple, list)) else [out]
    return [t for t in several if isinstance(t, Tensor)]


def call(name, kind, device=None):
    function, shape = CALLS[name]
    if shape is None:
        return function(KINDS[kind])
    x = draw(shape, kind, device)
    if COMPOSED[name].gradient and kind == "F" and device is not None:
        x = x.require_grad()
    return function(x)


def test_every_function_made_of_others_is_called():
    made = {(row.section, row.name) for row in table.rows() if not row.is_op}
    told = {(section, name) for section, name in made if composed(section, name)}
    assert made - told == set(), "lines for burnbook/reference/composed.py"
    assert set(CALLS) >= set(COMPOSED)
    assert {name.split(".")[-1] for name in COMPOSED} <= {r.name for r in table.rows()}


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_it_takes_and_gives_the_kinds_that_the_table_names(name, kind):
    device = Autodiff(Numpy()) if name in NEEDS_AUTODIFF else None
    out = call(name, kind, device)
    left, mark, right = COMPOSED[name].kinds.partition(">")
    known = right.split() if mark and left.strip() else [kind]
    tensors = results(out)
    if tensors:
        assert tensors[0].kind in [KINDS[letter] for letter in known]


NEEDS_AUTODIFF = {
    *("backward", "grad", "grad_remove", "grad_replace", "inner", "from_inner"),
}


@pytest.mark.parametrize(("name", "kind"), [c for c in TAKEN if c.values[1] == "F"])
def test_gradients_flow_where_the_table_says_so(name, kind):
    known = COMPOSED[name]
    tensors = [
        t for t in results(call(name, kind, Autodiff(Numpy()))) if t.kind is Float
    ]
    flows = any(t._tracked() for t in tensors)
    assert flows == (known.gradient == "yes"), known


@pytest.mark.parametrize(("name", "kind"), TAKEN)
def test_the_shapes_are_true(name, kind):
    (row,) = {
        (r.shapes)
        for r in table.rows()
        if name in (r.name, f"{r.section}.{r.name}") and not r.is_op
    }
    left, _, right = row.partition("->")
    device = Autodiff(Numpy()) if name in NEEDS_AUTODIFF else None
    tensors = results(call(name, kind, device))
    sizes = {}
    first = re.match(r"\w+ \[([^\]]*)\]", left)
    if first and "…" not in first[1]:
        match_sizes(first[1], CALLS[name][1], sizes)
    wanted = re.findall(r"\[([^\]]*)\]", right)
    for pattern, t in zip(wanted, tensors, strict=False):
        plain = ", ".join(p for p in pattern.split(", "))
        if re.fullmatch(r"[\w., ]*", plain):
            match_sizes(plain, t.shape, sizes)
        if pattern == "..." and len(tensors) == 1 and left.startswith("x [...]"):
            assert t.shape == CALLS[name][1]


# The pages


def test_every_row_is_on_exactly_one_page():
    rows = [row for name in appendix.SECTIONS for row in appendix.operations(name).rows]
    assert sorted(map(repr, rows)) == sorted(map(repr, table.rows()))
    for row in rows:
        assert row.kinds, row
        assert row.shapes, row
        assert row.summary, row


def test_a_page_says_what_is_in_it():
    page = appendix.operations("linalg")
    assert repr(page) == f"Matrices and norms: {len(page.rows)} functions"
    html = page._repr_html_()
    assert html.count("<tr") == len(page.rows) + 1
    assert "<b><tt>linalg.det</tt></b>" in html
    assert "x [..., n, n]<br>→ [..., 1, 1]" in html
    assert not re.search(r"<script|color:|background:(?!none)", html)


def test_columns():
    rows = {(r.section, r.burn): r for r in table.rows()}
    matmul = appendix._line(rows["float", "matmul"])
    for text in (
        "<b><tt>matmul</tt></b>",
        "Float Int",
        "its own rule",
        "Multiply matrices",
    ):
        assert text in matmul
    assert matmul.count('monospace">matmul<') == 3  # in 0.15, in the newest, in PyTorch
    elem = appendix._line(rows["numeric", "equal_elem"])
    assert ">equal_<wbr>elem<" in elem
    assert ">equal_<wbr>scalar<" in elem
    assert "<i>cov</i>" in appendix._line(rows["float", "cov"])
    newer = appendix._line(rows["float", "trunc"])
    assert newer.count('monospace">trunc<') == 2
    assert "by its parts" in appendix._line(rows["basic", "flatten"])


def test_finding():
    found = appendix.find("softmax")
    names = [row.name for row in found.rows]
    assert {"softmax", "log_softmax", "quiet_softmax", "softmin"} <= set(names)
    assert repr(appendix.find("no such thing")) == "find('no such thing'): 0 functions"
    assert repr(appendix.find("grid_sample")) == "find('grid_sample'): 1 function"
    assert "logical_<wbr>not" in appendix.find("logical_not")._repr_html_()


def test_an_unknown_section():
    with pytest.raises(ConfigError, match="there is no section 'nothing'"):
        appendix.operations("nothing")


def test_the_committed_appendix_is_what_the_table_says():
    """Every page is shown, and none is stale."""
    shown = {}
    for cell in nbformat.read(PAGE, as_version=4).cells:
        for output in cell.get("outputs", ()):
            html = output.get("data", {}).get("text/html")
            if html and (asked := re.search(r'operations\("(\w+)"\)', cell.source)):
                shown[asked[1]] = html
    assert set(shown) == set(appendix.SECTIONS)
    stale = [
        name
        for name, html in shown.items()
        if html != appendix.operations(name)._repr_html_()
    ]
    assert not stale, f"{stale}: python -m burnbook_widgets.build notebooks A1_ops"
