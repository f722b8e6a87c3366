"""Every call that Burn 0.15.0 answered: burnbook agrees, or a row says why not."""

import math
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest

from burnbook import lr_scheduler, optim, prelude, train
from burnbook.backend import Fusion
from burnbook.record import BinBytesRecorder
from burnbook.reference.differences import (
    DIFFERENCES,
    SECTIONS,
    differences,
    explain_difference,
)
from burnbook.tensor import Tensor, activation, check_closeness, module
from burnbook.tensor.quantization import QuantizationScheme
from tests.oracle.burn.cases import PATH, all_cases
from tests.oracle.burn.report import BACKENDS, difference

#: What an example may use beside the prelude.
NAMES = {
    "Fusion": Fusion,
    "inf": math.inf,
    "nan": math.nan,
    "optim": optim,
    "train": train,
    "lr_scheduler": lr_scheduler,
    "BinBytesRecorder": BinBytesRecorder,
    "activation": activation,
    "module": module,
    "QuantizationScheme": QuantizationScheme,
    "check_closeness": check_closeness,
}
ROOT = Path(__file__).resolve().parents[3]
needs_cases = pytest.mark.skipif(
    not PATH.is_file(), reason="no cases: shared/burn lies not beside the project"
)
GROUPS = sorted({case.group for case in all_cases()})


def try_out(example):
    """What an example of a row prints, or the first line of its error."""
    names = {name: getattr(prelude, name) for name in prelude.__all__} | NAMES
    try:
        found = eval(example, names)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    if isinstance(found, Tensor):
        found = found.inner().to_data() if found.backend.ad_enabled else found.to_data()
        numbers = found.to_numpy()
        if numbers.dtype.kind == "f":
            numbers = numbers.astype(float).round(4)
        found = numbers.tolist()
    return str(found)


@needs_cases
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("group", GROUPS or ["none"])
def test_burnbook_answers_as_burn_or_says_why_not(group, backend):
    told = [
        f"{case.id}: {wrong}"
        for case in all_cases()
        if case.group == group
        and (wrong := difference(case, BACKENDS[backend])) is not None
        and explain_difference(case) is None
    ]
    assert not told, "\n".join(told)


@needs_cases
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", BACKENDS)
def test_burns_same_padding_is_symmetric_same(backend):
    cases = [
        replace(case, config={**case.config, "padding": "SymmetricSame"}, display=None)
        for case in all_cases()
        if case.params is not None or "Pool" in case.op
        if (case.config or {}).get("padding") == "Same"
    ]
    told = {case.id: difference(case, BACKENDS[backend]) for case in cases}
    assert len(told) >= 12
    assert not {name: wrong for name, wrong in told.items() if wrong is not None}


@needs_cases
@pytest.mark.filterwarnings("ignore")
def test_most_calls_agree_without_an_explanation():
    """A table that explains everything away would pass above."""
    count = {"agree": 0, "deliberate": 0}
    for case in all_cases():
        wrong = difference(case, BACKENDS["plain"])
        count["agree" if wrong is None else "deliberate"] += 1
    assert count["agree"] > 9 * count["deliberate"] > 0


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.name)
def test_a_difference_is_as_its_row_says(row):
    assert row.section in SECTIONS
    if row.example:
        assert try_out(row.example) == row.gives
        return
    place, _, name = row.proof.partition("::")
    assert f"\ndef {name}(" in (ROOT / place).read_text()


def test_sections_hold_every_row_and_can_be_looked_at():
    shown = [differences(section) for section in SECTIONS]
    assert sum(len(page.rows) for page in shown) == len(DIFFERENCES)
    for page in shown:
        text = page._repr_html_()
        assert all(escape(row.name) in text for row in page.rows)
    assert len({row.name for row in DIFFERENCES}) == len(DIFFERENCES)
