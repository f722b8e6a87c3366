"""Compiled steps of optimizers equal the plain ones and leave what they are given."""

from importlib import import_module

import numpy as np
import pytest

from burnbook.core.op import draw, split_sample
from burnbook.ops import lbfgs, optimizer_steps

pytest.importorskip("numba", reason="kernels are compiled by numba")

UPDATES = [op for name, op in vars(optimizer_steps).items() if name.endswith("_step")]
ROWS = [
    pytest.param(op, *split_sample(row), id=f"{op.name}-{i}")
    for op in [*UPDATES, lbfgs.lbfgs_direction]
    for i, row in enumerate(op.samples)
]


def arrays(specs, shape, dtype=np.float32):
    rng = np.random.default_rng(len(specs))
    return [draw((how, shape, *more), rng).astype(dtype) for how, _, *more in specs]


def as_rows(found):
    return found if isinstance(found, tuple) else (found,)


def test_all_nine_updates_have_a_kernel(kernels):
    assert len(UPDATES) == 9
    assert all(kernels[op] for op in UPDATES)


@pytest.mark.parametrize(("op", "specs", "attrs"), ROWS)
@pytest.mark.parametrize("size", [1, 1023, 1025, 70_001])
def test_a_kernel_equals_the_plain_code(kernels, op, specs, attrs, size):
    values = arrays(specs, (size,))
    copies = [value.copy() for value in values]
    found = kernels[op](*values, **attrs)
    assert found is not None, "the kernel's guard does not fit"
    wanted = as_rows(op.forward(np, *values, **attrs))
    for a, b in zip(as_rows(found), wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        scale = max(1.0, float(np.abs(b).max()))
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=5e-6 * scale)
        assert not any(np.shares_memory(a, value) for value in values)
    for value, copy in zip(values, copies, strict=True):
        assert np.array_equal(value, copy)
    if "reuse" not in op.attrs:
        return
    for again in (kernels[op](*values, **attrs, reuse=True), None):
        if again is None:  # the plain code in the same way
            values = [copy.copy() for copy in copies]
            again = op.forward(np, *values, **attrs, reuse=True)
        memories = values[2:]
        assert all(a is value for a, value in zip(again[1:], memories, strict=True))
        for a, b in zip(again, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)
        for value, copy in zip(values[:2], copies, strict=False):
            assert np.array_equal(value, copy)


@pytest.mark.parametrize("op", UPDATES, ids=lambda op: op.name)
def test_other_types_and_layouts_run_plain(kernels, op):
    specs, attrs = split_sample(op.samples[0])
    for place in range(len(specs)):
        values = arrays(specs, (6, 4))
        values[place] = np.asfortranarray(values[place])
        assert kernels[op](*values, **attrs) is None
        values[place] = np.ascontiguousarray(values[place]).astype(np.float64)
        assert kernels[op](*values, **attrs) is None


@pytest.mark.parametrize("op", UPDATES, ids=lambda op: op.name)
def test_a_gradient_that_is_not_finite_is_not_hidden(kernels, op):
    specs, attrs = split_sample(op.samples[0])
    values = arrays(specs, (20_000,))
    values[1][7], values[1][9] = np.nan, np.inf
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = as_rows(op.forward(np, *values, **attrs))
    for a, b in zip(as_rows(kernels[op](*values, **attrs)), wanted, strict=True):
        assert np.array_equal(np.isnan(a), np.isnan(b))
        assert np.array_equal(np.isinf(a), np.isinf(b))


@pytest.mark.parametrize("op", UPDATES, ids=lambda op: op.name)
def test_half_precision_is_computed_in_single(op):
    specs, attrs = split_sample(op.samples[0])
    values = arrays(specs, (40_000,), np.float16)
    found = as_rows(op.forward(np, *values, **attrs))
    exact = as_rows(op.forward(np, *[v.astype(np.float32) for v in values], **attrs))
    for a, b in zip(found, exact, strict=True):
        assert a.dtype == np.float16
        assert np.array_equal(a, b.astype(np.float16))


def test_the_length_of_a_gradient_in_half_precision_does_not_overflow():
    x = np.full(100, 300, np.float16)
    assert lbfgs.length.forward(np, x)[0] == 3000.0


@pytest.mark.parametrize("shape", [(40, 10), (10, 40), (16, 16)])
def test_newton_schulz_makes_a_matrix_nearly_orthogonal(shape):
    x = np.random.default_rng(0).normal(size=shape)
    values = np.linalg.svd(lbfgs.newton_schulz.forward(np, x))[1]
    assert values.min() > 0.3
    assert values.max() < 1.25


def test_the_direction_does_not_depend_on_the_number_of_threads(kernels):
    threads = import_module("burnbook.backend.compiled.runtime.thread_pool").threads
    specs, attrs = split_sample(lbfgs.lbfgs_direction.samples[1])
    values = arrays(specs, (100_001,))
    found = kernels[lbfgs.lbfgs_direction](*values, **attrs)
    size = threads.size
    try:
        threads.size = 1
        alone = kernels[lbfgs.lbfgs_direction](*values, **attrs)
    finally:
        threads.size = size
    assert np.array_equal(found, alone)
