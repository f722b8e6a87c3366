"""Casts to and from half precision: the bits of NumPy's, for every number."""

import numpy as np
import pytest

from burnbook.backend.compiled import half
from burnbook.core import casting
from burnbook.tensor import TensorData
from burnbook.tensor.convert import convert_array

F16, F32 = np.dtype(np.float16), np.dtype(np.float32)
HALVES = np.arange(1 << 16, dtype=np.uint16).view(F16)
pytestmark = pytest.mark.skipif(not half.SERVED, reason="this processor has no F16C")


def hard_numbers():
    """Every float16, what lies between two of them, and bits that were drawn."""
    with np.errstate(all="ignore"):
        ordered = np.sort(HALVES[np.isfinite(HALVES)].astype(F32))
        middles = (ordered[1:] + ordered[:-1]) / 2
    beside = [np.nextafter(middles, np.float32(side)) for side in (-np.inf, np.inf)]
    drawn = np.random.default_rng(0).integers(0, 1 << 32, 200_000, dtype=np.uint64)
    bits = drawn.astype(np.uint32).view(F32)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, 65504, 65519.99, 65520, 1e-45], F32)
    return np.concatenate([ordered, middles, *beside, bits[~np.isnan(bits)], edges])


def bits_of(array):
    return array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint32)


def test_float16_is_rounded_as_numpy_rounds():
    x = hard_numbers()
    with np.errstate(all="ignore"):
        wanted = x.astype(F16)
    assert np.array_equal(bits_of(half.half_cast(x, F16)), bits_of(wanted))


def test_float16_is_widened_exactly():
    x = HALVES[~np.isnan(HALVES)]
    assert np.array_equal(bits_of(half.half_cast(x, F32)), bits_of(x.astype(F32)))


def test_a_nan_stays_a_nan():
    assert np.isnan(half.half_cast(np.full((3, 1000), np.nan, F32), F16)).all()
    nans = HALVES[np.isnan(HALVES)]
    assert np.isnan(half.half_cast(nans, F32)).all()


def test_bf16_is_rounded_as_the_plain_code_rounds(monkeypatch):
    nans = np.array([0x7FC00000, 0xFFC00001, 0x7F800001], np.uint32).view(F32)
    x = np.concatenate([hard_numbers(), nans])
    fast = half.upper_halves(x)
    monkeypatch.setattr(casting, "_source", None)
    assert np.array_equal(fast, casting.upper_halves(x))


@pytest.mark.parametrize("shape", [(4096,), (3, 5, 4096), (0, 4096), (1, 1)])
def test_shapes_stay_and_what_lies_otherwise_is_left_to_numpy(shape):
    x = np.random.default_rng(1).normal(size=shape).astype(F32)
    there = half.half_cast(x, F16)
    assert (there.shape, there.dtype) == (shape, F16)
    assert half.half_cast(there, F32).shape == shape
    assert half.half_cast(x.astype(np.float64), F16) is None
    if len(shape) == 3:
        assert half.half_cast(x.swapaxes(0, 1), F16) is None
        assert np.array_equal(casting.cast(x.swapaxes(0, 1), F16), there.swapaxes(0, 1))


def test_data_of_records_takes_this_way(monkeypatch):
    asked = []
    offered = casting._source

    def source():
        asked.append(True)
        return half

    monkeypatch.setattr(casting, "_source", source)
    x = np.random.default_rng(2).normal(size=(64, 64)).astype(F32)
    assert np.array_equal(convert_array(x, "f32", "f16"), x.astype(F16))
    assert TensorData(x).convert("bf16").convert("f32").to_numpy().shape == (64, 64)
    assert len(asked) == 2
    assert offered is not None  # by the compiled backend, when it is imported
