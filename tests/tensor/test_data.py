"""TensorData: what it reads, converts, compares, prints and refuses."""

import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from burnbook.core.errors import DataError, ShapeError
from burnbook.tensor.convert import narrow, widen
from burnbook.tensor.data import TensorData
from burnbook.tensor.distribution import Distribution
from tests.support.refusals import refused

FLOATS = ["f64", "f32", "f16", "bf16"]
INTS = ["i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"]
TYPES = [*FLOATS, *INTS, "bool"]


@pytest.mark.parametrize(
    ("values", "dtype", "shape"),
    [
        ([1.0, 2.0], "f32", (2,)),
        ([[1, 2], [3, 4]], "i64", (2, 2)),
        ([1, 2.5], "f32", (2,)),
        ([True, False], "bool", (2,)),
        (range(3), "i64", (3,)),
        ((x for x in (1, 2)), "i64", (2,)),
        ([], "f32", (0,)),
        (np.zeros((2, 0)), "f64", (2, 0)),
        (np.ones(2, ">i4"), "i32", (2,)),
        (np.ones((3, 2), np.float16).T, "f16", (2, 3)),
        ([np.float16(1)], "f16", (1,)),
        (3.0, "f32", ()),
    ],
)
def test_element_type_and_shape_follow_the_values(values, dtype, shape):
    data = TensorData(values)
    assert (data.dtype, data.shape) == (dtype, shape)
    assert data.array.flags.c_contiguous
    assert data.array.dtype.isnative


def test_values_beyond_the_shape_are_cut_and_missing_ones_refused():
    assert TensorData([1, 2, 3, 4, 5], [2, 2]).to_list() == [[1, 2], [3, 4]]
    with pytest.raises(ShapeError, match=r"3 values do not fill shape \[2, 2\]"):
        TensorData([1, 2, 3], [2, 2])


def test_data_does_not_follow_later_changes_of_its_source():
    source = np.zeros(3, np.float32)
    data = TensorData(source)
    source[0] = 1
    assert data.to_vec() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        data.array[0] = 1


def test_a_double_given_as_f64_keeps_all_its_digits():
    assert TensorData([0.1], dtype="f64").to_vec() == [0.1]
    assert TensorData([0.1]).to_vec() == [float(np.float32(0.1))]


@pytest.mark.parametrize("dtype", TYPES)
def test_bytes_read_back_as_the_same_data(dtype):
    data = TensorData([[0, 1], [1, 0]], dtype=dtype)
    again = TensorData.from_bytes(data.bytes, data.shape, dtype)
    assert again == data
    assert bytes(data.as_bytes()) == data.bytes
    assert len(data.bytes) == data.num_elements() * data.array.itemsize


def test_bytes_are_little_endian():
    assert TensorData([1]).bytes == bytes([1, 0, 0, 0, 0, 0, 0, 0])
    assert TensorData([1.0], dtype="bf16").bytes == bytes([0x80, 0x3F])


def test_empty_bytes_keep_their_shape():
    assert TensorData.from_bytes(b"", [2, 0, 3], "f32").shape == (2, 0, 3)


@pytest.mark.parametrize(
    ("values", "given_type", "wanted", "result"),
    [
        ([1.9, -1.9], "f32", "i64", [1, -1]),
        ([1e300], "f64", "f32", [float("inf")]),
        ([True, False], "bool", "f32", [1.0, 0.0]),
        ([0.5, 1.0, 255.9], "f32", "bool", [False, True, True]),
        ([300], "i64", "i16", [300]),
        ([3.140625], "f32", "bf16", [3.140625]),
        ([1, 2], "i64", "bf16", [1.0, 2.0]),
    ],
)
def test_convert_follows_the_element_rules(values, given_type, wanted, result):
    data = TensorData(values, dtype=given_type).convert(wanted)
    assert (data.dtype, data.to_vec()) == (wanted, result)


def test_largest_and_smallest_integers_convert():
    limits = [-(2**63), 2**63 - 1]
    assert TensorData(limits).convert("i64").to_vec() == limits
    assert TensorData([-(2.0**63)], dtype="f64").convert("i64").to_vec() == [-(2**63)]


def test_convert_to_the_same_type_copies_nothing():
    data = TensorData([1.0])
    assert data.convert("f32") is data


@given(hnp.arrays(np.float32, 5, elements=st.floats(width=32)))
def test_bf16_is_the_nearest_of_its_two_neighbors(values):
    near = widen(narrow(values)).astype(np.float64)
    below = widen((values.view(np.uint32) >> 16).astype(np.uint16)).astype(np.float64)
    above = widen(((values.view(np.uint32) >> 16) + 1).astype(np.uint16))
    exact = values.astype(np.float64)
    known = np.isfinite(exact) & np.isfinite(above)
    gap = np.abs(near[known] - exact[known])
    assert (gap <= np.abs(below[known] - exact[known])).all()
    assert (gap <= np.abs(above[known].astype(np.float64) - exact[known])).all()
    assert (np.isnan(near) == np.isnan(values)).all()


def test_bf16_rounds_a_tie_to_even():
    ties = np.array([0x3F808000, 0x3F818000], np.uint32).view(np.float32)
    assert narrow(ties).tolist() == [0x3F80, 0x3F82]


def test_ways_to_read_the_elements():
    data = TensorData([[1, 2], [3, 4]])
    assert data.to_list() == [[1, 2], [3, 4]]
    assert data.to_vec("i64") == [1, 2, 3, 4]
    assert data.as_slice().shape == (4,)
    assert list(data.iter("f32")) == [1.0, 2.0, 3.0, 4.0]
    assert np.asarray(data).dtype == np.int64
    assert TensorData([1.5], dtype="bf16").to_numpy().dtype == np.float32


@pytest.mark.parametrize("name", ["to_numpy", "to_vec", "as_slice"])
def test_asking_for_another_type_is_refused_with_the_cure(name):
    read = getattr(TensorData([1]), name)
    parts = (f"TensorData.{name}: ", "i64", 'try: .convert("f32") first')
    refused(DataError, lambda: read("f32"), *parts)


def test_prints_flat_as_burn_does():
    assert str(TensorData([[0.0, 1 / 3], [2 / 3, 1.0]])) == (
        "[0.0, 0.33333334, 0.6666667, 1.0]"
    )
    assert str(TensorData([True, False])) == "[true, false]"
    assert str(TensorData([1.0, 0.1], dtype="bf16")) == "[1.0, 0.1]"
    assert repr(TensorData(np.zeros((2, 3)))) == "TensorData f64 [2, 3]"


def test_constructors_fill_every_element():
    assert TensorData.zeros([2]).to_vec() == [0.0, 0.0]
    assert TensorData.ones([2], "bf16").to_vec() == [1.0, 1.0]
    assert TensorData.full([2, 1], 7, "i32").to_list() == [[7], [7]]


def test_random_elements_stay_within_their_distribution():
    rng = np.random.default_rng(0)
    TensorData.random([100], Distribution.Default, rng).assert_within_range(0, 1)
    uniform = TensorData.random([100], Distribution.Uniform(2, 4), rng, "i64")
    assert set(uniform.to_vec()) == {2, 3}
    coins = TensorData.random([100], Distribution.Bernoulli(0.5), rng, "bool")
    assert 20 < sum(coins.to_vec()) < 80
    normal = TensorData.random([1000], Distribution.Normal(5, 0.1), rng, "f64")
    assert abs(np.mean(normal.to_numpy()) - 5) < 0.02


def test_equality_compares_bytes_shape_and_type():
    assert TensorData([1, 2]) == TensorData([1, 2])
    assert TensorData([1, 2]) != TensorData([[1, 2]])
    assert TensorData([1, 2]) != TensorData([1.0, 2.0])
    assert TensorData([float("nan")]) == TensorData([float("nan")])
    assert TensorData([0.0]) != TensorData([-0.0])


def test_pickles_and_stays_read_only():
    data = pickle.loads(pickle.dumps(TensorData([1.5], dtype="bf16")))
    assert data == TensorData([1.5], dtype="bf16")
    assert not data.array.flags.writeable


def failure(call):
    with pytest.raises(AssertionError) as caught:
        call()
    return str(caught.value)


def test_assert_eq_lists_at_most_five_differences():
    zeros = TensorData([0.0] * 7)
    assert failure(lambda: TensorData([1.0, 0.0, 3, 4, 5, 6, 7]).assert_eq(zeros)) == (
        "Tensors are not eq:\n"
        "  => Position 0: 1 != 0\n"
        "  => Position 2: 3 != 0\n"
        "  => Position 3: 4 != 0\n"
        "  => Position 4: 5 != 0\n"
        "  => Position 5: 6 != 0\n"
        "1 more errors..."
    )


def test_assert_eq_knows_nan_signed_zero_type_and_shape():
    nan = TensorData([float("nan")])
    nan.assert_eq(TensorData([-float("nan")]))
    assert "0 != -0" in failure(lambda: TensorData([0.0]).assert_eq(TensorData([-0.0])))
    assert failure(lambda: nan.assert_eq(nan.convert("f64"))) == (
        "assertion `left == right` failed: Data types differ (F32 != F64)\n"
        "  left: F32\n right: F64"
    )
    nan.assert_eq(nan.convert("f64"), strict=False)
    TensorData([1, 2]).assert_eq(TensorData([1.0, 2.0]), strict=False)
    assert "=> Shape is different: [2] != [1, 2]" in failure(
        lambda: TensorData([1, 2]).assert_eq(TensorData([[1, 2]]))
    )
    assert "1.5 != 1" in failure(
        lambda: TensorData([1.5]).assert_eq(TensorData([1]), strict=False)
    )
    TensorData([1]).assert_eq(TensorData([1.5]), strict=False)  # as whole numbers


def test_assert_approx_eq_compares_within_a_power_of_ten():
    one = TensorData([1.0, float("nan"), float("inf")])
    one.assert_approx_eq(TensorData([1.0009, float("nan"), float("inf")]), 3)
    text = failure(lambda: TensorData([1.0]).assert_approx_eq(TensorData([1.5]), 1))
    assert text == (
        "Tensors are not approx eq:\n"
        "  => Position 0: 1 != 1.5 | difference 0.5 > tolerance 0.1"
    )
    infinite = TensorData([float("inf")])
    assert "inf != -inf" in failure(
        lambda: infinite.assert_approx_eq(TensorData([float("-inf")]), 1)
    )
    assert "NaN != 0" in failure(
        lambda: TensorData([float("nan")]).assert_approx_eq(TensorData([0.0]), 1)
    )


def test_assert_within_range_leaves_out_the_upper_end():
    TensorData([0.0, 0.5]).assert_within_range(0.0, 1.0)
    TensorData([0, 1]).assert_within_range(range(2))
    assert failure(lambda: TensorData([0.5, 1.0]).assert_within_range(0.0, 1.0)) == (
        "Element (1.0) is not within range 0.0..1.0"
    )
    nan = TensorData([float("nan")])
    assert "Element (NaN)" in failure(lambda: nan.assert_within_range(0, 1))
