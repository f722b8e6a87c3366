"""The book's display, digit for digit, and the two renderings for notebooks."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st

from burnbook.core.decimals import farther_decimal
from burnbook.tensor.convert import narrow, widen
from burnbook.tensor.display import (
    PrintOptions,
    array_text,
    get_print_options,
    number_text,
    set_print_options,
    tensor_html,
    tensor_line,
    tensor_text,
)

FACTS = {"device": "Cpu", "backend": "numpy"}


@pytest.fixture(autouse=True)
def _same_options_afterwards():
    before = get_print_options()
    yield
    set_print_options(before)


def show(array, kind="Float", dtype="f32", precision=None):
    return tensor_text(
        array,
        shape=array.shape,
        kind=kind,
        dtype=dtype,
        precision=precision,
        **FACTS,
    )


def html(array, kind="Float", dtype="f32", **facts):
    return tensor_html(
        array, shape=np.shape(array), kind=kind, dtype=dtype, **{**FACTS, **facts}
    )


def test_the_whole_display_has_burns_layout():
    expected = """\
Tensor {
  data:
[[0.12345679, 0.12345679, 0.12345679],
 [0.12345679, 0.12345679, 0.12345679]],
  shape:  [2, 3],
  device:  Cpu,
  backend:  "numpy",
  kind:  "Float",
  dtype:  "f32",
}"""
    assert show(np.full((2, 3), 0.123456789, np.float32)) == expected


def test_rust_names_of_half_precision_types():
    assert '"half::binary16::f16"' in show(np.ones(1, np.float16), dtype="f16")
    assert '"half::bfloat::bf16"' in show(np.ones(1, np.float32), dtype="bf16")


CUBE = """\
[[[1, 2, 3, 4],
  [5, 6, 7, 8],
  [9, 10, 11, 12]],
 [[13, 14, 15, 16],
  [17, 18, 19, 20],
  [21, 22, 23, 24]]]"""
LONG = """\
[[0.0, 1.0, 2.0, ..., 127.0, 128.0, 129.0],
 [130.0, 131.0, 132.0, ..., 257.0, 258.0, 259.0],
 [260.0, 261.0, 262.0, ..., 387.0, 388.0, 389.0],
 ...
 [650.0, 651.0, 652.0, ..., 777.0, 778.0, 779.0],
 [780.0, 781.0, 782.0, ..., 907.0, 908.0, 909.0],
 [910.0, 911.0, 912.0, ..., 1037.0, 1038.0, 1039.0]]"""
DEEP = """\
[[[0, 1, 2, ..., 67, 68, 69],
  [70, 71, 72, ..., 137, 138, 139],
  [140, 141, 142, ..., 207, 208, 209],
  ...
  [350, 351, 352, ..., 417, 418, 419],
  [420, 421, 422, ..., 487, 488, 489],
  [490, 491, 492, ..., 557, 558, 559]],
 [[560, 561, 562, ..., 627, 628, 629],
  [630, 631, 632, ..., 697, 698, 699],
  [700, 701, 702, ..., 767, 768, 769],
  ...
  [910, 911, 912, ..., 977, 978, 979],
  [980, 981, 982, ..., 1047, 1048, 1049],
  [1050, 1051, 1052, ..., 1117, 1118, 1119]]]"""
ROW = "[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]"


def _zeros_of_rank_4():
    rows = f"{ROW},\n   {ROW},\n   {ROW}"
    block = f"[{rows},\n   ...\n   {rows}]"
    half = f"[{block},\n  {block}]"
    return f"[{half},\n {half}]"


@pytest.mark.parametrize(
    ("array", "dtype", "text"),
    [
        (np.array([1.5], np.float32), "f32", "[1.5]"),
        (np.arange(1001), "i64", "[0, 1, 2, ..., 998, 999, 1000]"),
        (np.eye(2, dtype=bool), "bool", "[[true, false],\n [false, true]]"),
        (np.zeros(0, np.float32), "f32", "[]"),
        (np.zeros((2, 0), np.float32), "f32", "[[],\n []]"),
        (np.zeros((0, 2), np.float32), "f32", "[]"),
        (np.arange(1, 25).reshape(2, 3, 4), "i64", CUBE),
        (np.arange(1040, dtype=np.float32).reshape(8, 130), "f32", LONG),
        (np.arange(1120).reshape(2, 8, 70), "i64", DEEP),
        (np.zeros((2, 2, 200, 6), np.float32), "f32", _zeros_of_rank_4()),
    ],
    ids=[
        "one",
        "long-row",
        "bool",
        "empty",
        "no-columns",
        "no-rows",
        "cube",
        "long",
        "deep",
        "rank4",
    ],
)
def test_worked_examples_of_the_elements(array, dtype, text):
    assert array_text(array, dtype) == text


def test_exactly_a_thousand_elements_print_in_full():
    assert "..." not in array_text(np.arange(1000), "i64")


def test_precision_of_a_format_beats_that_of_the_options():
    array = np.full((2, 3), 0.123456789, np.float32)
    two = "[[0.12, 0.12, 0.12],\n [0.12, 0.12, 0.12]]"
    assert array_text(array, "f32", 2) == two
    set_print_options(PrintOptions(precision=4))
    assert array_text(array, "f32", 2) == two
    assert array_text(array[0], "f32") == "[0.1235, 0.1235, 0.1235]"
    assert array_text(np.arange(3), "i64") == "[0, 1, 2]"


def test_threshold_and_edge_items_can_be_changed():
    set_print_options(PrintOptions(threshold=4, edge_items=1))
    assert array_text(np.arange(5), "i64") == "[0, ..., 4]"
    assert (
        array_text(np.arange(6).reshape(2, 3), "i64") == "[[0, ..., 2],\n [3, ..., 5]]"
    )
    assert array_text(np.arange(9).reshape(3, 3), "i64") == (
        "[[0, ..., 2],\n ...\n [6, ..., 8]]"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (1e-5, "1e-5"),
        (1.5e-7, "1.5e-7"),
        (1e16, "1e16"),
        (9.999999e15, "9999999000000000.0"),
        (3.4028235e38, "3.4028235e38"),
        (1e-45, "1e-45"),
        (0.0001, "0.0001"),
        (9.9e-5, "9.9e-5"),
        (123456789, "123456790.0"),
        (0.123456789, "0.12345679"),
        (-0.0, "-0.0"),
        (float("nan"), "NaN"),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
    ],
)
def test_f32_prints_as_rust_does(value, text):
    assert number_text(np.float32(value), "f32") == text


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (np.float16(0.1), "f16", "0.1"),
        (np.float16(65504), "f16", "65500.0"),
        (np.float16(1e-4), "f16", "0.0001"),
        (np.float16(6e-8), "f16", "6e-8"),
        (np.float64(0.1), "f64", "0.1"),
        (np.float64(2 / 3), "f64", "0.6666666666666666"),
        (np.float64(1e300), "f64", "1e300"),
        (np.float32(0.10009765625), "bf16", "0.1"),
        (np.float32(2.984375), "bf16", "2.98"),
        (np.uint8(255), "u8", "255"),
        (np.int64(-(2**63)), "i64", "-9223372036854775808"),
        (np.bool_(True), "bool", "true"),
    ],
)
def test_every_element_type_has_its_own_digits(value, dtype, text):
    assert number_text(value, dtype) == text


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(0.125, 2, "0.12"), (2.5, 0, "2"), (-0.001, 2, "-0.00"), (1e20, 1, f"{1e20:.1f}")],
)
def test_fixed_decimals_round_half_to_even(value, places, text):
    assert number_text(np.float64(value), "f64", places) == text


@given(st.floats(width=32))
def test_f32_text_reads_back_as_the_same_number(value):
    text = number_text(np.float32(value), "f32")
    assert np.float32(float(text)).tobytes() == np.float32(value).tobytes() or (
        np.isnan(value) and text == "NaN"
    )


@given(st.floats(width=64, allow_nan=False))
def test_f64_text_reads_back_and_is_as_short_as_pythons(value):
    text = number_text(np.float64(value), "f64")
    assert float(text) == value
    usual = repr(value)
    if (tied := farther_decimal(value)) is not None:  # Python takes the even one
        usual = str(tied)
    digits = re.sub(r"[eE].*|[-.]", "", text).strip("0")
    assert digits == re.sub(r"[eE].*|[-.]", "", usual).strip("0") or text in "-inf"


@given(st.floats(width=16, allow_nan=False))
def test_f16_text_reads_back_as_the_same_number(value):
    assert np.float16(float(number_text(np.float16(value), "f16"))) == value


@given(st.floats(width=32, allow_nan=False))
def test_bf16_text_reads_back_with_at_most_four_digits(value):
    number = widen(narrow(np.float32(value)))[()]
    text = number_text(number, "bf16")
    with np.errstate(over="ignore"):
        assert widen(narrow(np.float32(float(text))))[()] == number
    assert len(re.sub(r"e.*|[-.]", "", text).strip("0")) <= 4 or text in "-inf"


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_exponent_form_begins_below_1e_4_and_at_1e16(value):
    size = abs(np.float32(value))
    wanted = size != 0 and not np.float32(1e-4) <= size < np.float32(1e16)
    assert ("e" in number_text(np.float32(value), "f32")) == bool(wanted)


def line(array, kind="Float"):
    return tensor_line(array, shape=np.shape(array), backend="Numpy()", kind=kind)


def test_line_gives_four_digits_of_the_statistics():
    assert line(np.array([[1, 2], [3, 4]], np.float32)) == (
        "Tensor Float [2, 2] on Numpy()  mean 2.5  std 1.118  min 1  max 4"
    )
    assert line(np.array([2**62, 0]), "Int").endswith("min 0  max 4611686018427387904")
    assert line(np.eye(2, dtype=bool), "Bool").endswith("true 2 of 4")


def test_line_counts_what_is_not_finite():
    array = np.array([1, np.nan, np.inf, -np.inf], np.float32)
    assert line(array).endswith("mean 1  std 0  min 1  max 1  nan 1  inf 2")
    assert line(np.full(2, np.nan)).endswith("on Numpy()  nan 2")


def test_line_computes_nothing_for_large_or_absent_arrays():
    large = np.broadcast_to(np.float32(1), (10_000_001,))
    assert line(large) == "Tensor Float [10000001] on Numpy()"
    assert tensor_line(None, shape=[2], backend="Cupy(0)", kind="Float") == (
        "Tensor Float [2] on Cupy(0)"
    )


@pytest.mark.parametrize(
    "array",
    [np.zeros(0), np.array(["a"]), np.array([object()]), np.array([1 + 2j])],
    ids=["empty", "text", "object", "complex"],
)
def test_line_and_picture_never_raise_and_never_warn(array):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert line(array).startswith("Tensor Float")
        assert "</div>" in html(array)
        assert "</div>" in html(np.array([1e308, -1e308]), dtype="f64")


PICTURES = {
    "scalar-like": np.ones(1, np.float32),
    "row": np.linspace(-1, 1, 50, dtype=np.float32),
    "small matrix": np.linspace(-1, 1, 144).reshape(12, 12).astype(np.float32),
    "large matrix": np.linspace(-1, 1, 10**6).reshape(1000, 1000).astype(np.float32),
    "narrow matrix": np.ones((5000, 3), np.float32),
    "gray": np.linspace(0, 1, 30 * 28 * 28).reshape(30, 28, 28).astype(np.float32),
    "colors": np.linspace(0, 1, 2 * 3 * 4096).reshape(2, 3, 64, 64).astype(np.float32),
    "channels": np.ones((1, 9, 16, 16), np.float32),
    "rank 6": np.ones((2,) * 6, np.float32),
    "many dims": np.ones((7,) * 6, np.float32),
    "not finite": np.full((20, 20), np.nan, np.float32),
}


@pytest.mark.parametrize("name", PICTURES)
def test_picture_is_small_complete_and_the_same_every_time(name):
    page = html(PICTURES[name])
    assert len(page) < 30_000
    assert page == html(PICTURES[name])
    assert "<script" not in page
    assert page.count("<div") == page.count("</div>")


def test_picture_shows_what_fits_the_shape():
    assert "<table" in html(PICTURES["small matrix"])
    assert html(PICTURES["large matrix"]).count("data:image/png") == 1
    gray = html(PICTURES["gray"])
    assert gray.count("data:image/png") == 8
    assert "28 × 28, 8 of 30 along dim 0" in gray
    assert "2, mean of the channels" in html(PICTURES["colors"])
    assert "<svg" in html(PICTURES["row"])
    assert "<svg" not in html(PICTURES["scalar-like"])


def test_picture_pixels_read_back_with_an_ordinary_reader():
    image_module = pytest.importorskip("PIL.Image")
    import base64
    import io

    array = np.arange(784, dtype=np.float32).reshape(1, 28, 28)
    data = re.search(r"base64,([^\"]+)", html(array)).group(1)
    image = image_module.open(io.BytesIO(base64.b64decode(data)))
    expected = np.rint(255 * array[0].astype(float) / 783).astype(np.uint8)
    assert (np.asarray(image) == expected).all()


def test_picture_ids_follow_the_content():
    ids = {re.search(r'id="([^"]+)"', html(a)).group(1) for a in PICTURES.values()}
    assert len(ids) == len(PICTURES)


def test_picture_escapes_every_fact():
    page = html(np.ones(2), kind="<b>", dtype="<c>", device="<d>", backend='<e a="f">')
    assert not re.search(r"<(b|c|d|e)[ >](?!Tensor)", page)
    assert "&lt;e a=&quot;f&quot;&gt;" in page


def test_picture_of_absent_or_huge_elements_gives_the_facts_only():
    huge = np.broadcast_to(np.float32(1), (10_000_001,))
    for array, shape in ((None, [3]), (huge, huge.shape)):
        page = tensor_html(array, shape=shape, kind="Float", dtype="f32", **FACTS)
        assert len(page) < 400
        assert str(list(shape)) in page
