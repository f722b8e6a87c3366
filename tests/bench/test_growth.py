"""Every op of the bench of families has inputs at each size, and takes the smallest."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.core.op import OPS, draw
from tests.bench.families import MOST, SLOW, Cell, reasons, rows
from tests.bench.growth import SIZES, grow

OF_ONE_NUMBER = ("clip_scale",)  # what they take never grows


@pytest.mark.parametrize("name", [op.name for op in rows(())])
def test_an_op_grows_to_every_size(name):
    op, rng = OPS[name], np.random.default_rng(0)
    counts = []
    for size in SIZES:
        specs, attrs = grow(op, *size)
        counts.append(sum(int(np.prod(spec[1])) for spec in specs))
    assert counts == sorted(set(counts)) or not specs or name in OF_ONE_NUMBER
    specs, attrs = grow(op, *SIZES[0])
    device = Numpy(float="f64", compiled=False)
    out = device.run(op, tuple(draw(spec, rng) for spec in specs), attrs)
    assert np.size(out[0] if isinstance(out, tuple) else out)


def test_few_rows_may_be_slow_and_each_says_why():
    names = {op.name for op in rows(())}
    assert len(SLOW) <= MOST
    for (name, back), why in SLOW.items():
        assert name in names
        assert OPS[name].rules or not back
        assert len(why) > 20


def test_the_table_ends_with_what_is_slow_and_why():
    ratios = {"pytorch": 2.5}
    known = Cell("det", SIZES[1], True, 1e-3, ratios, {})
    unknown = Cell("exp", SIZES[2], False, 1e-3, ratios, {})
    quick = Cell("exp", SIZES[1], False, 1e-3, {"pytorch": 1.9}, {})
    small = Cell("exp", SIZES[0], False, 1e-6, ratios, {})
    lines = list(reasons([known, unknown, quick, small]))
    assert len(lines) == 4
    assert lines[2] == f"| det, and back, 256 × 256: 2.50 | {SLOW['det', True]} |"
    assert lines[3] == "| exp, 4096 × 1024: 2.50 | no reason is known |"
    assert list(reasons([quick])) == []
