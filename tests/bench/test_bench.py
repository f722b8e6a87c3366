"""Every figure stays within a quarter of its budget; run with `make bench`."""

import pytest

from tests.bench.tables import BUDGETS, TABLES

ROOM = 1.25


@pytest.mark.bench
@pytest.mark.parametrize("table", TABLES)
def test_figures_stay_within_budget(table):
    if table[:2] in ("w1", "w2", "w3", "w4", "w5") or table.startswith("inference"):
        pytest.importorskip("torch", reason="the figures are ratios to PyTorch")
    rows = list(TABLES[table](20))
    for what, figure, note in rows:
        shown = "–" if figure is None else f"{figure:.2f}"
        print(f"| {what} | {shown} | {BUDGETS.get(what, '')} | {note} |")
    over = [
        f"{what}: {figure:.2f} instead of {BUDGETS[what]} ({note})"
        for what, figure, note in rows
        if figure is not None and what in BUDGETS and figure > ROOM * BUDGETS[what]
    ]
    assert not over, "\n".join(over)
