"""Every public name, op and docstring example is the first thing its process does.

In one long process of thousands of tests, what one of them imports is there for all the
others: a layer that works only after another one has run works everywhere but at home.
"""

import doctest
import importlib
import importlib.util
from pathlib import Path

import pytest

import burnbook.ops  # noqa: F401 - declares them
from burnbook.backend.compiled import compile_ahead
from burnbook.backend.compiled.runtime import cache
from burnbook.core.op import OPS
from tests.support.fresh import needs_fork, run_fresh, troubles
from tests.support.fresh_calls import TABLES, missing, rows

ROOT = Path(__file__).resolve().parents[2]
RULES = {rule for op in OPS.values() for rule in op.rules.values()}
NAMES = [op.name for op in OPS.values() if op.samples and op not in RULES]
BEFORE = (
    "burnbook.prelude",
    *(["tests.support.numba_ready"] if cache.has_numba() else []),
)
PACKAGES = [module for module, _, _ in TABLES.values()]  # imported, and nothing run
pytestmark = needs_fork

ALL = [("compiled", "large"), ("plain", "small"), ("compiled", "small")]
ALL = [*ALL, ("plain", "large")]
EVERY_WAY = [
    pytest.param(*way, marks=[pytest.mark.slow] if number > 1 else [])
    for number, way in enumerate(ALL)
]


def needs_kernels(device):
    if device == "compiled" and compile_ahead.missing():
        pytest.skip("kernels are not compiled here: burnbook warmup")


@pytest.mark.parametrize(("device", "size"), EVERY_WAY)
@pytest.mark.parametrize("table", TABLES)
def test_every_public_name_runs_first_in_its_process(table, device, size):
    needs_kernels(device)
    mine = [row for row in rows() if row.partition(".")[0] == table]
    run = "tests.support.fresh_tools:run"
    jobs = {row: (run, row, device, size) for row in mine}
    found = run_fresh(jobs, [*BEFORE, TABLES[table][0]])
    assert not (wrong := troubles(found)), "\n".join(wrong)


@pytest.mark.parametrize(("device", "size"), EVERY_WAY)
def test_every_op_runs_first_in_its_process(device, size):
    needs_kernels(device)
    run = "tests.support.fresh_tools:run_op"
    found = run_fresh({name: (run, name, device, size) for name in NAMES}, BEFORE)
    assert len(found) > 150
    assert not (wrong := troubles(found)), "\n".join(wrong)


@pytest.mark.parametrize("table", TABLES)
def test_every_public_name_has_a_row(table):
    assert missing(table) == set()


def examples():
    """Every docstring of burnbook with an example: its module and its name."""
    for path in sorted((ROOT / "burnbook").rglob("*.py")):
        if ">>>" not in path.read_text(encoding="utf-8"):
            continue
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for test in doctest.DocTestFinder().find(importlib.import_module(name)):
            if test.examples:
                yield name, test.name


def test_every_example_of_a_docstring_runs_first_in_its_process():
    if importlib.util.find_spec("PIL") is None:
        pytest.skip("some examples need the [lab] extra")
    run = "tests.support.fresh_tools:run_example"
    jobs = {name: (run, module, name) for module, name in examples()}
    assert len(jobs) > 100
    found = run_fresh(jobs, [*BEFORE, *PACKAGES])
    assert not (wrong := troubles(found)), "\n".join(wrong)
