"""What tests of compiled kernels share: the kernels, numbers, and a comparison."""

from importlib import import_module
from unittest import mock

import numpy as np

from burnbook.backend import Autodiff, Numpy, compiled
from burnbook.backend.compiled.runtime.thread_pool import ThreadPool

FAMILY_OF = {op: name for name, ops in compiled.FAMILIES.items() for op in ops}


class Kernels(dict):
    """The kernel of every op; a family is loaded when one of its ops is asked for."""

    def __missing__(self, op):
        self.update(compiled.load(FAMILY_OF[op]))
        return self[op]


def family(name):
    """The file of a family of kernels, loaded as the library loads it."""
    compiled.load(name)
    return import_module(f"burnbook.backend.compiled.{name}")


def use_threads(monkeypatch, size, modules):
    """Files of kernels share their work among another number of threads."""
    threads = ThreadPool()
    threads.start(size)
    for module in modules:
        monkeypatch.setattr(module, "threads", threads)


def with_and_without(work, **tolerance):
    """A function of a device gives the same arrays with kernels and without."""
    with mock.patch.object(compiled, "_usable", frozenset(compiled.FAMILIES)):
        found, wanted = (work(Autodiff(Numpy(compiled=c))) for c in (None, False))
    for a, b in zip(found, wanted, strict=True):
        assert np.allclose(a, b, **tolerance)


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
