"""What tests of compiled kernels share: the kernels, numbers, and a comparison."""

from importlib import import_module

import numpy as np
import pytest

from burnbook.backend import compiled


@pytest.fixture(scope="module")
def kernels():
    """Every kernel, compiled or from the cache."""
    for family in compiled.FAMILIES:
        compiled._load(family)
    return import_module("burnbook.backend.compiled.runtime.registry").KERNELS


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def agree(kernels, op, *values, exact=False, **attrs):
    """Run both; the kernel must have served, and nothing it was given may change."""
    copies = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
    found = kernels[op](*values, **attrs)
    assert found is not None, "the kernel's guard does not fit"
    for value, copy in zip(values, copies, strict=True):
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, copy, equal_nan=True)
    expected = op.forward(np, *values, **attrs)
    if not isinstance(found, tuple):
        found, expected = (found,), (expected,)
    for a, b in zip(found, expected, strict=True):
        assert (a is None) == (b is None)
        if b is None:
            continue
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if exact:
            assert np.array_equal(a, b, equal_nan=True)
        else:
            scale = max(1.0, float(np.abs(b).max()))
            assert np.allclose(a, b, rtol=1e-4, atol=2e-6 * scale)
