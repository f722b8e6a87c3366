"""Quantization: codes and their bytes, scales, calibration, what is refused."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from burnbook.backend import Numpy
from burnbook.core.errors import ConfigError, DataError, DimError, KindError, ShapeError
from burnbook.tensor import Float, Int, Tensor, TensorData
from burnbook.tensor.quantization import (
    Calibration,
    CalibrationRange,
    MinMaxCalibration,
    PerTensorAffineInt8,
    PerTensorSymmetricInt8,
    QFloat,
    QuantizationParameters,
    QuantizationScheme,
    QuantizedTensor,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDtype,
    SchemeStrategy,
    compute_q_params,
    compute_range,
)
from tests.support.quantizing import (
    AFFINE,
    BOOK,
    Q8S,
    SCHEMES,
    SYMMETRIC,
    codes,
    every_scheme,
    numbers,
    tensor,
)

# The numbers of the book's source


def test_affine_vectors():
    x = Tensor.from_data(BOOK).quantize_dynamic(AFFINE)
    assert codes(x) == [-128, -40, 71, 126]
    assert x.dequantize().into_data().to_list() == pytest.approx(
        [-1.794902, -1.0011765, 0.0, 0.49607843], abs=1e-7
    )
    strategy = x.to_data().dtype.strategy
    assert (np.float32(strategy.scale), strategy.offset) == (
        np.float32(0.009019608),
        71,
    )


def test_symmetric_vectors():
    x = Tensor.from_data(BOOK).quantize_dynamic(SYMMETRIC)
    assert codes(x) == [-127, -71, 0, 35]
    back = x.dequantize().into_data().to_list()
    assert back == pytest.approx([-1.8, -1.0062993, 0.0, 0.496063], abs=1e-7)


def test_given_parameters_are_taken():
    scale = Tensor.from_data([0.009019608])
    params = QuantizationParameters(scale, Tensor.from_ints([72]))
    assert codes(Tensor.from_data(BOOK).quantize(AFFINE, params)) == [
        -128,
        -39,
        72,
        127,
    ]
    params = QuantizationParameters(Tensor.from_data([0.014173228]))
    assert codes(Tensor.from_data(BOOK).quantize(SYMMETRIC, params)) == [
        -127, -71, 0, 35,
    ]  # fmt: skip


def test_a_range_that_does_not_hold_zero_is_stretched():
    found = CalibrationRange(Tensor.from_data([1.0]), Tensor.from_data([5.0]))
    params = AFFINE.compute_q_params(found)
    assert np.float32(params.scale.into_scalar()) == np.float32(0.019607844)
    assert params.offset.into_scalar() == -128
    x = Tensor.from_data([2.0, 1.0, 2.0, 3.0, 4.0, 5.0]).quantize(AFFINE, params)
    assert codes(x) == [-26, -77, -26, 25, 76, 127]


def test_dynamic_vectors():
    x = Tensor.from_data([5.0, 0.0, 4.0, -10.0]).quantize_dynamic(AFFINE)
    assert codes(x) == [127, 42, 110, -128]
    assert x.strategy.offset == 42
    x = Tensor.from_data([5.0, 0.0, 4.0, -12.7]).quantize_dynamic(Q8S)
    assert codes(x) == [50, 0, 40, -127]


def test_halves_go_away_from_zero():
    x = Tensor.from_data([0.5, 1.5, 2.5, -0.5, -2.5, 0.49999997])
    assert codes(x.quantize(SYMMETRIC, QuantizationParameters(1.0))) == [
        1, 2, 3, -1, -3, 0,
    ]  # fmt: skip


@every_scheme
def test_zeros_stay_zeros(scheme):
    x = Tensor.zeros([4, 8]).quantize_dynamic(scheme)
    assert x.dequantize().all_close(Tensor.zeros([4, 8]))
    again = Tensor.from_data(x.to_data())
    assert again.all_close(Tensor.zeros([4, 8]))


def test_what_does_not_fit_is_cut_off():
    x = Tensor.from_data([1e9, -1e9, float("inf"), float("-inf")])
    got = codes(x.quantize(AFFINE, QuantizationParameters(0.1, 0)))
    assert got == [127, -128, 127, -128]


# Any numbers: the nearest code, whatever the scheme


def oracle(scheme, array):
    """(codes or numbers back) element by element, blocks found by counting."""
    value = scheme.value
    low, high = value.range()
    size = getattr(scheme, "block_size", None) or ()
    block = (1,) * (array.ndim - len(size)) + tuple(size) if size else array.shape
    groups, back = {}, np.empty_like(array)
    for place in np.ndindex(array.shape):
        group = tuple(i // b for i, b in zip(place, block, strict=True))
        groups.setdefault(group, []).append(place)
    scales = {}
    for group, places in groups.items():
        part = [array[p] for p in places]
        top = max(abs(min(part)), abs(max(part)))
        scales[group] = np.float32(top) * np.float32(2) / np.float32(high - low)
    whole = np.float32(1)
    if scheme.has_global:
        whole = np.float32(
            max(scales.values()) / scheme.scale_dtype.max_representable()
        )
    grid = value_grid(value)
    for group, places in groups.items():
        scale = scheme.scale_dtype.round_up(scales[group] / whole) * whole
        for place in places:
            ratio = np.float32(array[place]) / scale
            back[place] = min(grid, key=lambda number: abs(number - ratio)) * scale
    return back


def value_grid(value):
    """All numbers that a code can be."""
    kind = value.type
    if not kind.exponent:
        return [float(n) for n in range(int(kind.low), int(kind.high) + 1)]
    mantissa = kind.bits - 1 - kind.exponent
    bias = 2 ** (kind.exponent - 1) - 1
    found = []
    for power in range(2**kind.exponent):
        for part in range(2**mantissa):
            lead = 1.0 if power else 0.0
            number = (lead + part / 2**mantissa) * 2.0 ** (max(power, 1) - bias)
            found += [number, -number] if number <= kind.high else []
    return found


NEAREST = {name: s for name, s in SCHEMES.items() if isinstance(s, QuantScheme)}


@pytest.mark.parametrize("scheme", NEAREST.values(), ids=NEAREST)
def test_every_number_becomes_the_nearest_code(scheme):
    array = numbers(4, 8) * np.array([[1], [100], [0.01], [3]], np.float32)
    back = Tensor.from_numpy(array).quantize_dynamic(scheme).dequantize()
    assert np.allclose(np.asarray(back), oracle(scheme, array), rtol=1e-6, atol=1e-9)


NORMAL = st.floats(-1e6, 1e6, width=32).map(lambda x: x if abs(x) > 1e-30 else 0.0)


@settings(max_examples=60)
@given(st.lists(NORMAL, min_size=1, max_size=20))
def test_affine_codes_are_near_whatever_the_numbers(values):
    x = Tensor.from_data(values)
    quantized = x.quantize_dynamic(AFFINE)
    error = np.abs(np.asarray(quantized) - np.asarray(x)).max()
    assert error <= quantized.strategy.scale * 1.01  # the offset is rounded as well


def test_two_levels_do_not_lose_small_weights():
    big = numbers(16, 16)
    two = QuantScheme().per_block([16], ScaleDtype.UE4M3).per_tensor()
    one = QuantScheme().per_block([16], ScaleDtype.UE4M3)

    def error(array, scheme):
        back = np.asarray(Tensor.from_numpy(array).quantize_dynamic(scheme))
        return np.abs(back - array).sum() / np.abs(array).sum()

    assert error(big * 1e-3, two) == pytest.approx(error(big, two), rel=0.05)
    assert error(big * 1e-3, one) > 2 * error(big, one)


@pytest.mark.parametrize("dtype", ScaleDtype)
def test_scales_are_rounded_up_to_what_can_be_stored(dtype):
    powers = np.float32(10.0) ** np.arange(-3, 2).repeat(200)
    scales = np.abs(numbers(1000)) * powers.astype(np.float32)
    up = dtype.round_up(scales)
    assert (up >= scales).all()
    assert np.array_equal(dtype.round_up(up), up)
    strategy = SchemeStrategy(QuantScheme().per_tensor(dtype), up[:1])
    data = TensorData.quantized([1], [1], strategy)
    again = TensorData.from_bytes(data.bytes, [1], data.dtype)
    assert again.dtype.strategy.params().scales[0] == up[0]
    assert dtype.round_up([1e38, 3e38]).max() <= dtype.max_representable()


def test_rounded_scales_are_the_nearest_not_below():
    scales = np.abs(numbers(500)) + np.float32(1e-3)
    halves = ScaleDtype.F16.round_up(scales).astype(np.float16)
    below = np.nextafter(halves, np.float16(0))
    assert (below.astype(np.float32) < scales).all()


# A tensor of codes


@every_scheme
def test_it_is_a_float_tensor_like_others(scheme):
    x = tensor(4, 8).quantize_dynamic(scheme)
    assert isinstance(x, Tensor)
    assert isinstance(x, Tensor[2, Float])
    assert (x.kind, x.rank, x.shape, len(x), x.dims()) == (Float, 2, (4, 8), 4, (4, 8))
    assert x.device() is Numpy()
    assert isinstance(x.dtype, QFloat)
    assert x.scheme == scheme


@every_scheme
def test_quantizing_codes_starts_from_their_numbers(scheme):
    x = tensor(4, 8).quantize_dynamic(SYMMETRIC)
    again, direct = (t.quantize_dynamic(scheme) for t in (x, x.dequantize()))
    assert again.to_data() == direct.to_data()
    assert tensor(2).dequantize().dtype == "f32"


@every_scheme
@pytest.mark.parametrize("shape", [(4, 8), (8,), (2, 4, 8)])
def test_data_and_bytes_come_back(scheme, shape):
    if len(shape) < len(getattr(scheme, "block_size", None) or ()):
        pytest.skip("the block has more dims")
    data = tensor(*shape).quantize_dynamic(scheme).to_data()
    assert TensorData.from_bytes(data.bytes, shape, data.dtype) == data
    x = Tensor.from_data(data)
    assert isinstance(x, QuantizedTensor)
    assert x.to_data() == data
    for other in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert other.to_data() == data
    assert x.clone().kept is x.kept
    assert np.array_equal(np.asarray(x), data.dequantize().to_numpy())


def test_the_bytes_are_those_of_burn():
    """Codes low bits first in words of 32 bits, then scales, then the one over all."""
    scheme = Q8S.with_store(QuantStore.Native).per_block([4], ScaleDtype.UE4M3)
    strategy = SchemeStrategy(scheme.per_tensor(), [0.5, 0.125], 3.0)
    values = [0, 25, 51, 76, 102, 127, -127, -1]
    raw = TensorData.quantized(values, [8], strategy).bytes
    assert raw[:8] == np.array(values, np.int8).tobytes()
    assert raw[8:] == bytes([0x30, 0x20]) + np.float32(3).tobytes()
    four = QuantScheme().with_value(QuantValue.Q4S)
    raw = TensorData.quantized(
        [1, -2, 3, -4, 5, -6, 7, -7, 1], [9], SchemeStrategy(four)
    )
    assert raw.bytes[:8] == bytes([0xE1, 0xC3, 0xA5, 0x97, 0x01, 0, 0, 0])
    plain = TensorData.quantized([-127, -71, 0, 35], [4], PerTensorSymmetricInt8(0.5))
    assert plain.bytes == np.array([-127, -71, 0, 35], np.int8).tobytes()


@pytest.mark.parametrize("value", ["Q4S", "Q2S", "E2M1"])
@pytest.mark.parametrize("dim", [0, 1])
def test_small_codes_share_words(value, dim):
    scheme = QuantScheme().with_value(QuantValue[value])
    x = tensor(64, 48).quantize_dynamic(scheme.with_store(QuantStore.PackedU32(dim)))
    flat = tensor(64, 48).quantize_dynamic(scheme)
    assert codes(x) == codes(flat)
    each = 32 // QuantValue[value].size_bits()
    assert x.kept.nbytes == 4 * 64 * 48 // each if dim == 0 else 4 * 48 * (64 // each)
    odd = tensor(3, 5).quantize_dynamic(scheme.with_store(QuantStore.PackedU32(dim)))
    assert odd.all_close(tensor(3, 5).quantize_dynamic(scheme).dequantize())


def test_codes_take_a_quarter_of_the_memory():
    x = tensor(100, 100).quantize_dynamic(SYMMETRIC)
    assert x.kept.nbytes == 10_000
    assert x.kept.dtype == np.int8


def test_it_prints_its_numbers_and_its_scheme():
    x = Tensor.from_data(BOOK).quantize_dynamic(AFFINE)
    assert str(x) == (
        "Tensor {\n  data:\n[-1.794902, -1.0011765, 0.0, 0.49607843],\n  shape:  [4],\n"
        '  device:  Cpu,\n  backend:  "numpy",\n  kind:  "Float",\n  dtype:  "f32",\n'
        "  scheme:  PerTensorAffine(QInt8),\n}"
    )
    assert f"{x:.2}".splitlines()[2] == "[-1.79, -1.00, 0.00, 0.50],"
    assert repr(x).endswith("max 0.4961  PerTensorAffine(QInt8)")
    assert "Tensor Float as PerTensorAffine(QInt8)" in x._repr_html_()
    assert "-1.795" in x._repr_html_()


def test_data_prints_as_in_burn():
    data = Tensor.from_data(BOOK).quantize_dynamic(AFFINE).to_data()
    assert str(data) == (
        "[-128, -40, 71, 126] PerTensorAffineInt8(AffineQuantization "
        "{ scale: 0.009019608, offset: 71, _a: PhantomData<i32> })"
    )
    assert repr(data) == "TensorData QFloat(PerTensorAffine(QInt8)) [4]"
    data = Tensor.from_data(BOOK).quantize_dynamic(SYMMETRIC).to_data()
    assert str(data) == (
        "[-127, -71, 0, 35] PerTensorSymmetricInt8(SymmetricQuantization "
        "{ scale: 0.014173228, _q: PhantomData<i8> })"
    )
    assert data.dtype == f"QFloat({str(data).partition('] ')[2]})"
    assert repr(SCHEMES["levels"]) == (
        "QuantScheme(Q8F, PackedU32(0), per_block([2], UE4M3), per_tensor(F32))"
    )


# TensorData of codes


def test_data_is_quantized_and_compared():
    data = TensorData(BOOK)
    affine = data.with_quantization(PerTensorAffineInt8(0.009019608, 72))
    assert affine.to_list() == [-128, -39, 72, 127]
    assert affine.kind is Float
    assert list(affine.iter("i64")) == [-128, -39, 72, 127]  # as in Burn: the codes
    assert affine.convert("f32").to_list() == [-128.0, -39.0, 72.0, 127.0]
    affine.dequantize().assert_approx_eq(data, 2)
    assert data.dequantize() is data
    affine.assert_eq(Tensor.from_data(affine).to_data())
    other = TensorData.quantized(affine.array, [4], PerTensorAffineInt8(0.5, 0))
    affine.assert_eq(other, strict=False)
    with pytest.raises(AssertionError, match="Data types differ"):
        affine.assert_eq(other)
    symmetric = TensorData.quantized(affine.array, [4], PerTensorSymmetricInt8(0.5))
    for stranger in (symmetric, data):
        with pytest.raises(AssertionError, match="Quantization differs"):
            affine.assert_eq(stranger, strict=False)
    with pytest.raises(DataError, match="the elements are f64, not f32"):
        data.convert("f64").with_quantization(PerTensorSymmetricInt8(1.0))


def test_element_types_are_equal_by_their_parameters():
    a, b = (QFloat(PerTensorSymmetricInt8(scale)) for scale in (0.5, 0.25))
    assert a == QFloat(PerTensorSymmetricInt8(0.5))
    assert a != b
    assert hash(a) == hash(QFloat(PerTensorSymmetricInt8(0.5)))
    assert a == str(a)
    assert a != "f32"
    one, two = (QFloat(SchemeStrategy(QuantScheme(), s)) for s in (0.5, 0.25))
    assert one != two
    assert str(one) == str(two)


def test_codes_as_whole_numbers():
    data = Tensor.from_data(BOOK).quantize_dynamic(SYMMETRIC).to_data()
    x = Tensor[1, Int].from_data(data)
    assert (x.kind, x.into_data().to_list()) == (Int, [-127, -71, 0, 35])


# Calibration


@pytest.mark.parametrize("make", [MinMaxCalibration, lambda: Calibration.MinMax])
def test_min_max(make):
    found = make().compute_range(Tensor.from_data(BOOK))
    assert found.min.shape == (1,)
    assert np.float32(found.min.into_scalar()) == np.float32(-1.8)
    assert found.max.into_scalar() == 0.5


def test_ranges_of_blocks():
    x = Tensor.from_data(
        [
            [-1.8, -1.0, 0.0, 0.5],
            [1.8, 1.0, 0.0, -0.5],
            [0.01, 0.02, 0.03, 0.04],
            [-0.01, -0.02, -0.03, -0.04],
        ]
    )
    found = compute_range(Q8S.per_block([4]), x, Calibration.MinMax)
    assert np.asarray(found.min).round(6).tolist() == np.float32(
        [[-1.8], [-0.5], [0.01], [-0.04]]
    ).round(6).tolist()  # fmt: skip
    found = compute_range(Q8S.per_block([2, 2]), x, Calibration.MinMax)
    assert np.asarray(found.max).shape == (2, 2)
    assert found.max[0, 1].into_scalar() == 0.5
    params = compute_q_params(Q8S.per_block([2, 2]), found)
    assert params.scale.shape == (2, 2)


def test_mean_sizes():
    x = Tensor.from_data([[-0.9, -0.3, 0.0, 0.6], [0.1, 0.2, 0.3, 0.4]])
    ternary = QuantScheme().with_value(QuantValue.Q2S)
    found = compute_range(ternary, x, Calibration.AbsMean)
    assert found.max.into_scalar() == pytest.approx(0.35)
    found = compute_range(ternary.per_block([4]), x, Calibration.AbsMean)
    assert np.asarray(found.min).ravel().tolist() == pytest.approx([-0.45, -0.25])
    params = compute_q_params(ternary.per_block([4]), found)
    q = x.quantize(ternary.per_block([4]), params)
    assert codes(q) == [[-1, -1, 0, 1], [0, 1, 1, 1]]
    with pytest.raises(ConfigError, match="two levels"):
        compute_range(SCHEMES["levels"], x, Calibration.AbsMean)


def test_whole_blocks_are_rectangles():
    rows = np.repeat([[1.0] * 4 + [10.0] * 4, [100.0] * 4 + [1000.0] * 4], 2, axis=0)
    x = Tensor.from_numpy(rows.astype(np.float32))
    q = x.quantize_dynamic(Q8S.per_block([2, 4]))
    scales = q.strategy.params().scales
    assert scales == pytest.approx(np.array([[1.0, 10.0], [100.0, 1000.0]]) / 127)
    assert q.all_close(x, rtol=1e-6)


# What is refused


def test_refusals():
    x = tensor(4, 8)
    with pytest.raises(KindError, match="takes Float, not Int"):
        Tensor.from_ints([1]).quantize_dynamic(AFFINE)
    with pytest.raises(DataError, match="holds NaN"):
        Tensor.from_data([float("nan")]).quantize(
            AFFINE, QuantizationParameters(1.0, 0)
        )
    with pytest.raises(DataError, match="a scale is nan"):
        Tensor.from_data([float("nan"), 1.0]).quantize_dynamic(SYMMETRIC)
    with pytest.raises(DataError, match="a scale is inf"):
        Tensor.from_data([float("inf"), 1.0]).quantize_dynamic(SYMMETRIC)
    with pytest.raises(DataError, match="needs an offset"):
        x.quantize(AFFINE, QuantizationParameters(1.0))
    with pytest.raises(DataError, match="the offset is 200"):
        x.quantize(AFFINE, QuantizationParameters(1.0, 200))
    with pytest.raises(ShapeError, match="the scheme has 8 scales, not 1"):
        x.quantize(SCHEMES["blocks"], QuantizationParameters(1.0))
    with pytest.raises(ShapeError, match="do not fill the tensor"):
        x.quantize_dynamic(Q8S.per_block([3]))
    with pytest.raises(DimError, match="a block of"):
        tensor(4).quantize_dynamic(Q8S.per_block([2, 2]))
    with pytest.raises(DimError, match="no dim 2 from the last"):
        x.quantize_dynamic(SCHEMES["ternary"].with_store(QuantStore.PackedU32(2)))
    with pytest.raises(DataError, match="without elements"):
        Tensor.zeros([0]).quantize_dynamic(AFFINE)
    for scheme in (
        QuantScheme().with_value(QuantValue.E2M1).with_store(QuantStore.Native),
        SCHEMES["levels"].per_tensor(ScaleDtype.F16),
        QuantScheme().per_block([2], ScaleDtype.F32).per_tensor(),
    ):
        with pytest.raises(ConfigError):
            x.quantize_dynamic(scheme)
    with pytest.raises(ConfigError, match="a block of"):
        QuantScheme().per_block([0])


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-5, 2e-6])
@pytest.mark.parametrize("kind", ["PerTensorSymmetric", "PerTensorAffine"])
def test_small_half_numbers_have_a_scale_that_is_not_zero(kind, size):
    scheme = getattr(QuantizationScheme, kind)()
    small = np.array([1.0, -0.5, 0.25], np.float16) * np.float16(size)
    x = Tensor.from_numpy(small, Numpy(float="f16"))
    back = np.asarray(x.quantize_dynamic(scheme).dequantize())
    assert np.abs(back - small).max() <= np.abs(small).max() / 100 + 6e-8
