"""The tensor view without a browser: what it cuts, counts, reads, prints and frees."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from tests.support.cases import cases

pytest.importorskip("anywidget", reason="the widgets need anywidget")

from burnbook.core.errors import ConfigError, DimError, KindError
from burnbook.prelude import Autodiff, Numpy, Tensor, TensorData
from burnbook.tensor.display import PrintOptions, get_print_options, set_print_options
from burnbook_widgets import TensorView
from burnbook_widgets.tensor.numbers import bars_of, cells, edges_of, facts_of, printed
from burnbook_widgets.tensor.panel import TensorPlane
from tests.support.widget_state import state_size, widget_count


@pytest.fixture(autouse=True)
def same_print_options():
    before = get_print_options()
    yield
    set_print_options(before)


def box(*shape):
    return Tensor.from_data(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


def odd():
    values = [[1.0, np.nan, -2.0], [np.inf, -np.inf, 0.0]]
    return Tensor.from_data(np.array(values, np.float32))


# ── cells, statistics, histograms ───────────────────────────────────────────


@pytest.mark.parametrize(
    "shape", [(1, 1), (7, 5), (1, 1000), (300, 90), (40, 4), (1001, 999)]
)
def test_cells_hold_the_means_of_their_blocks(shape):
    matrix = np.random.default_rng(0).normal(size=shape)
    plane = cells(matrix, most=900, side=50)
    down, across = plane.step
    rows, columns = plane.mean.shape
    assert rows * columns <= 900
    assert max(rows, columns) <= 50
    for row, column in [(0, 0), (rows - 1, columns - 1), (rows // 2, 0)]:
        top, left = row * down, column * across
        block = matrix[top : top + down, left : left + across]
        assert plane.mean[row, column] == pytest.approx(block.mean())


def test_one_nan_among_millions_keeps_its_mark_and_spoils_no_mean():
    matrix = np.ones((1500, 1500), np.float32)
    matrix[700, 800], matrix[3, 4], matrix[5, 1400] = np.nan, np.inf, -np.inf
    plane = cells(matrix)
    places = {int(plane.marks[r, c]) for r, c in np.argwhere(plane.marks)}
    assert places == {1, 2, 4}
    assert np.count_nonzero(plane.marks) == 3
    assert np.array_equal(plane.mean, np.ones_like(plane.mean))


def test_cells_of_bools_and_whole_numbers():
    assert cells(np.eye(4, dtype=bool), most=4).mean.tolist() == [[0.5, 0], [0, 0.5]]
    huge = np.full((2, 2), 2**62)
    assert cells(huge, most=1).mean.tolist() == [[2.0**62]]


def test_nothing_finite_is_an_empty_cell():
    plane = cells(np.array([[np.nan, np.inf]]))
    assert plane.codes(0, 0, signed=True).tolist() == [[-128, -128]]
    assert plane.ends() == (0.0, 0.0)


@pytest.mark.parametrize("signed", [True, False])
def test_the_largest_floats_have_colours_too(signed):
    plane = cells(np.array([[-1.7e308, 0.0, 1.7e308]]))
    codes = plane.codes(-1.7e308, 1.7e308, signed).tolist()
    assert codes == [[-127, 0, 127] if signed else [0, 64, 127]]


def test_facts_count_what_is_not_finite_apart():
    facts = facts_of(np.array([1.0, 3.0, 0.0, np.nan, np.inf, -np.inf, np.nan]))
    assert (facts.size, facts.known, facts.zeros) == (7, 3, 1)
    assert (facts.nan, facts.inf, facts.minus_inf) == (2, 1, 1)
    assert (facts.mean, facts.low, facts.high) == (4 / 3, 0.0, 3.0)
    assert dict(facts_of(np.array([True, False, True])).rows("b")) == {
        "elements": "3",
        "true": "2 (66.7%)",
        "false": "1",
    }


@cases(
    "values",
    [1.0],
    [1e20, 1e20],
    [0.0, 5e-324],
    [1.0, 1.0 + 2**-52],
    [-1.7e308, 1.7e308],
)
def test_histograms_of_awkward_ranges_lose_no_element(values):
    array = np.array(values)
    edges = edges_of(array.min(), array.max(), "f")
    counts, every = bars_of(array, edges)
    assert np.isfinite(edges).all()
    assert (counts.sum(), every) == (len(values), 1)


def test_large_histograms_look_at_some_elements_of_every_column():
    array = np.tile(np.arange(1000.0), (2000, 1))
    counts, every = bars_of(array, edges_of(0, 999, "f"))
    assert every > 1
    assert counts.sum() == pytest.approx(array.size / every, abs=1)
    assert counts.min() > 0.8 * counts.mean()


@pytest.mark.parametrize("shape", [(2, 3), (1001,), (40, 40), (7, 9, 20), (0, 3)])
@pytest.mark.parametrize("threshold", [0, 100, 2000])
def test_the_number_of_printed_elements_is_known_before_printing(shape, threshold):
    view = TensorView(Tensor.from_data(np.ones(shape, np.float32)))
    view.print_options = PrintOptions(threshold=threshold, edge_items=2)
    assert view.text.count("1.0") == printed(shape, threshold, 2)


# ── what is shown ───────────────────────────────────────────────────────────


def test_dims_and_index_choose_the_plane():
    tensor = box(2, 3, 4, 5)
    view, array = TensorView(tensor), tensor.to_data().to_numpy()
    assert view.dims == (2, 3)
    assert np.array_equal(view.matrix, array[0, 0])
    view.dims = (3, 1)
    view.index = {0: 1, 2: 3}
    assert np.array_equal(view.matrix, array[1, :, 3, :].T)
    assert dict(view.index) == {0: 1, 2: 3}
    view.index = {2: -1}
    assert dict(view.index) == {0: 1, 2: 3}
    view.dims = (-4, -1)
    assert (view.dims, dict(view.index)) == ((0, 3), {1: 0, 2: 3})
    assert repr(view) == (
        "TensorView(Float [2, 3, 4, 5]; rows dim 0, columns dim 3, "
        "dim 1 at 0, dim 2 at 3)"
    )


def test_readings_name_every_dim():
    view = TensorView(box(2, 3, 4), dims=(2, 0), index={1: 2})
    view.cell = (3, 1)
    assert view.reading == "[1, 2, 3] = 23.0"
    view.print_options = PrintOptions(precision=3)
    assert view.reading == "[1, 2, 3] = 23.000"
    view.index = {1: 0}
    assert view.reading == "[1, 0, 3] = 15.000"
    view.cell = None
    assert view.reading == ""


def test_the_reading_of_a_block_says_what_is_in_it():
    array = np.ones((4000, 4000), np.float32)
    array[0, 0], array[1, 1] = np.nan, 3.0
    view = TensorView(Tensor.from_data(array))
    view.cell = (5, 28)
    assert view.plane.step == (29, 29)
    assert view.reading == (
        "[0…28, 0…28]: 841 elements, mean 1.002, from 1 to 3, 1 NaN"
    )
    assert "a cell is the mean of 91 × 91 elements" not in view.still()
    assert re.search(r"a cell is the mean of (\d+) × \1 elements", view.still())


@cases(
    "tensor reading text",
    (Tensor.from_data([3.5]), "[0] = 3.5", "[3.5]"),
    (Tensor.from_data([[True, False]]), "[0, 0] = true", "[[true, false]]"),
    (Tensor.from_data([2**62 + 1]), f"[0] = {2**62 + 1}", f"[{2**62 + 1}]"),
    (Tensor.from_data([[np.nan]]), "[0, 0] = NaN", "[[NaN]]"),
    (odd(), "[0, 0] = 1.0", "[[1.0, NaN, -2.0],"),
)
def test_every_kind_is_read_and_printed(tensor, reading, text):
    view = TensorView(tensor)
    view.cell = (0, 0)
    assert view.reading == reading
    assert text in view.text
    assert "<svg" in view.still()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3), (3, 2, 0)])
def test_empty_tensors_say_that_they_are_empty(shape):
    view = TensorView(Tensor.from_data(np.zeros(shape, np.float32)))
    assert view.plane.mean.size == 0
    assert dict(row[:2] for row in view.table())["elements"] == "0"
    assert "0 of 0 elements printed" in view.still()
    with pytest.raises(DimError, match="outside the plane"):
        view.cell = (0, 0)


def test_tracked_and_quantized_tensors_are_shown_as_their_numbers():
    tracked = Tensor.from_data([[1.0, 2.0]], Autodiff(Numpy())).require_grad()
    view = TensorView(tracked)
    assert view.head() == (
        "Tensor Float [1, 2] · f32 · Autodiff(Numpy()) · requires grad"
    )
    from burnbook.tensor.quantization import QuantizationScheme, QuantizationType

    small = Tensor.from_data([[0.0, -12.7], [6.35, 12.7]]).quantize_dynamic(
        QuantizationScheme.PerTensorSymmetric(QuantizationType.QInt8)
    )
    view = TensorView(small)
    view.cell = (1, 1)
    assert float(view.reading.partition(" = ")[2]) == pytest.approx(12.7, abs=0.06)
    assert view.text == str(small)


def test_only_floats_are_asked_for_nan_and_infinity():
    names = {}
    for kind, values in {"f": [1.5], "i": [1], "b": [True]}.items():
        view = TensorView(Tensor.from_data(values))
        names[kind] = [row[0] for row in view.table()[1:]]
        view.close()
    numbers = ["elements", "mean", "std", "min", "max", "zeros"]
    assert names["f"] == [*numbers, "NaN", "inf", "-inf"]
    assert names["i"] == numbers
    assert names["b"] == ["elements", "true", "false"]


# ── the book's text ─────────────────────────────────────────────────────────


def test_text_is_what_print_writes_and_leaves_the_options_alone():
    tensor, before = box(3, 4), get_print_options()
    view = TensorView(tensor)
    assert view.text == str(tensor)
    view.print_options = PrintOptions(precision=2, threshold=0, edge_items=1)
    assert "[[0.00, ..., 3.00]," in view.text
    assert get_print_options() == before
    assert "[[0.0, 1.0, 2.0, 3.0]," in str(tensor)
    view.use_everywhere()
    assert str(tensor) == view.text
    view.reset_print_options()
    assert view.print_options == PrintOptions()


def test_a_text_too_long_for_a_page_is_cut_or_counted():
    view = TensorView(box(60, 60))
    view.print_options = PrintOptions(threshold=4000)
    text, told = view.shown_text()
    assert len(text) < 17_000 < len(view.text)
    assert "the first of them here" in told
    view = TensorView(box(200, 200), print_options=PrintOptions(threshold=10**6))
    assert view.shown_text() == (
        "",
        "40,000 of 40,000 elements printed: too many to show here. "
        "Lower the threshold.",
    )


# ── controls and their twins ────────────────────────────────────────────────


def test_controls_drive_the_view():
    view = TensorView(box(2, 3, 4))
    panel = view.panel
    panel.sliders[0].value = 1
    assert dict(view.index) == {0: 1}
    panel.rows.value = 2  # was in the columns: they change places
    assert view.dims == (2, 1)
    assert (panel.rows.value, panel.columns.value) == (2, 1)
    panel.columns.value = 0
    assert view.dims == (2, 0)
    assert panel.sliders[0].layout.display == "none"
    assert panel.sliders[1].layout.display is None
    panel.colors.value = "around 0"
    panel.own_range.value = True
    assert (view.colors, view.own_range) == ("around 0", True)
    panel.plane.cell = [1, 0]
    assert view.cell == (1, 0)
    assert panel.plane.reading["text"] == view.reading == "[0, 0, 1] = 1.0"
    panel.plane.cell = []
    assert view.cell is None


def test_knobs_change_the_text():
    view = TensorView(box(3, 4))
    panel = view.panel
    assert panel.precision.label == "shortest"
    panel.precision.value = 2
    assert "[[0.00, 1.00" in panel.text.value
    panel.threshold.value = 5
    panel.edge_items.value = 1
    assert "[[0.00, ..., 3.00]" in panel.text.value
    assert view.print_options == PrintOptions(2, 5, 1)
    panel.everywhere.click()
    assert get_print_options() == view.print_options
    assert "every tensor prints like this" in panel.text.value
    panel.reset.click()
    assert view.print_options == PrintOptions()
    assert panel.precision.label == "shortest"


def test_twins_move_the_controls():
    view = TensorView(box(2, 3, 4))
    view.dims, view.index = (0, 2), {1: 2}
    view.colors, view.own_range = "around 0", True
    view.print_options = PrintOptions(precision=14, threshold=7, edge_items=12)
    panel = view.panel
    assert (panel.rows.value, panel.columns.value) == (0, 2)
    assert panel.sliders[1].value == 2
    assert (panel.colors.value, panel.own_range.value) == ("around 0", True)
    assert (panel.precision.value, panel.threshold.value) == (14, 7)
    assert panel.edge_items.value == 12


def test_colours_span_the_tensor_the_plane_or_the_means_of_blocks():
    view = TensorView(box(2, 3, 4))
    assert view.frame(view.plane)["ends"] == ["0", "23"]
    view.own_range = True
    assert view.frame(view.plane)["ends"] == ["0", "11"]
    view.colors = "around 0"
    assert view.frame(view.plane)["ends"] == ["-11", "11"]
    blocks = cells(view.matrix, most=4)
    assert blocks.step == (2, 2)
    view.colors = "low to high"
    assert view.frame(blocks)["ends"] == ["2.5", "10.5"]


def test_a_fault_behind_a_control_is_told_on_the_page():
    view = TensorView(box(2, 3, 4))
    view.panel.plane.cell = [9, 9]
    assert view.panel.plane.trouble == (
        "DimError: TensorView: cell (9, 9) lies outside the plane of 3 × 4"
    )
    view.panel.plane.cell = [1, 1]
    assert view.panel.plane.trouble == ""


def test_the_page_gets_a_colour_and_a_mark_for_every_cell():
    view = TensorView(odd())
    plane = view.panel.plane
    bytes_ = np.frombuffer(plane.data, np.uint8)
    assert bytes_[:6].view(np.int8).tolist() == [64, -128, -127, -128, -128, 0]
    assert bytes_[6:].tolist() == [0, 1, 0, 2, 4, 0]
    assert plane.frame["texts"] == ["1", "nan", "-2", "inf", "-inf", "0"]
    far = {"far outside": 0}
    assert plane.frame["marks"] == {"NaN": 1, "inf": 1, "-inf": 1, **far}
    assert repr(plane) == "TensorPlane(2 × 3)"


@pytest.mark.parametrize(
    "shape", [(4000, 4000), (3, 100, 100), (20, 20), (6, 6, 6, 6, 6)]
)
def test_a_saved_view_stays_small(shape):
    generator = np.random.default_rng(0)
    view = TensorView(Tensor.from_data(generator.random(shape, np.float32)))
    assert state_size(drop_defaults=True) < 100_000
    assert len(view.still()) < 60_000


def test_close_frees_every_widget_and_keeps_the_twins():
    before = widget_count()
    for shape in [(3,), (3, 4), (2, 3, 4)]:
        view = TensorView(box(*shape))
        assert widget_count() > before + 20
        view.close()
        view.close()
        assert widget_count() == before
    view.index = {0: 1}
    assert set(view._repr_mimebundle_()) == {"text/html", "text/plain"}


def test_the_script_is_our_own_and_needs_nothing():
    script = TensorPlane._esm.replace("http://www.w3.org/2000/svg", "")  # a name of SVG
    assert not re.search(r"^\s*import\b|import\(|https?:", script, re.M)
    assert len(script) < 40_000


# ── what is refused ─────────────────────────────────────────────────────────


@cases(
    "name value error text",
    ("dims", (0, 0), DimError, "TensorView: dim 0 cannot be both rows and columns"),
    ("dims", (0,), DimError, "TensorView: (0,) are not 2 dims"),
    ("dims", (0, 7), DimError, "TensorView: there is no dim 7"),
    ("index", {2: 0}, DimError, "TensorView: dim 2 has no index"),
    ("index", {0: 2}, DimError, "TensorView: index 2 is outside dim 0"),
    ("colors", "red", ConfigError, "TensorView: colors is 'red'"),
    ("cell", (3, 0), DimError, "TensorView: cell (3, 0) lies outside"),
    ("print_options", 2, ConfigError, "TensorView: print_options is 2"),
)
def test_wrong_values_are_explained_and_change_nothing(name, value, error, text):
    view = TensorView(box(2, 3, 4))
    before = repr(view)
    with pytest.raises(error, match=re.escape(text)) as caught:
        setattr(view, name, value)
    assert "try: " in str(caught.value)
    assert repr(view) == before


def test_only_tensors_are_viewed_and_an_index_is_not_changed_in_place():
    with pytest.raises(KindError, match="ndarray is not a tensor"):
        TensorView(np.zeros(3))
    view = TensorView(box(2, 3, 4))
    with pytest.raises(TypeError):
        view.index[0] = 1


# ── static pages ────────────────────────────────────────────────────────────


def test_static_pages_get_the_still_form_and_no_widget(static):
    view = TensorView(odd(), print_options=PrintOptions(precision=1))
    bundle = view._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert bundle["text/plain"] == "TensorView(Float [2, 3]; rows dim 0, columns dim 1)"
    html = bundle["text/html"]
    assert html == TensorView(odd(), print_options=PrintOptions(precision=1)).still()
    assert "<script" not in html
    for sign in ("✕ NaN", "▲ inf", "▼ -inf", "orange with a dash: below 0"):
        assert sign in html
    assert "[[1.0, NaN, -2.0]," in html
    view.colors = "low to high"
    assert "pale: -2 · deep blue: 1" in view.still()


def test_an_f64_tensor_shows_all_its_digits():
    data = TensorData.of(np.array([0.1 + 0.2, -1.7e308]))
    view = TensorView(Tensor.from_data(data, Numpy(float="f64")))
    view.cell = (0, 0)
    assert view.reading == "[0] = 0.30000000000000004"


# ── outliers, parts, curves and colors (N14) ────────────────────────────────


def noisy(outlier=1e6):
    values = np.random.default_rng(0).normal(size=(30, 40)).astype(np.float32)
    values[3, 4] = outlier
    return Tensor.from_data(values, Numpy())


def test_an_outlier_does_not_take_the_colors_of_all_others():
    view = TensorView(noisy())
    assert view.scale == "middle 98 %"
    codes = view.codes(view.plane)
    assert (np.abs(codes.astype(int)) > 30).mean() > 0.5  # they were all 0
    assert np.count_nonzero(view.bars) > 20  # it was one bar
    marks = view.marks(view.plane)
    assert np.argwhere(marks & 8).tolist() == [[3, 4]]
    assert view.panel.plane.frame["marks"]["far outside"] == 1
    assert view.panel.plane.frame["ends"][1].startswith("≥ ")
    html = view.still()
    assert "◆ far outside" in html
    assert "and beyond" in html
    view.scale = "whole range"
    assert np.count_nonzero(view.codes(view.plane)) == 1
    view.scale = "logarithmic"
    assert np.count_nonzero(view.codes(view.plane)) > 1000
    assert np.count_nonzero(view.bars) > 5
    assert "logarithmic colors" in view.still()
    view.panel.scale.value = "middle 98 %"
    assert view.scale == "middle 98 %"
    with pytest.raises(ConfigError, match="scale is 'loud'"):
        view.scale = "loud"
    view = TensorView(noisy(0.0))
    assert view.scale == "whole range"  # nothing to guard against


def test_an_outlier_inside_of_a_block_is_marked_too():
    values = np.random.default_rng(0).normal(size=(1000, 1000)).astype(np.float32)
    values[500, 700] = -1e5
    view = TensorView(Tensor.from_data(values, Numpy()))
    down, across = view.plane.step
    assert down > 1
    (place,) = np.argwhere(view.marks(view.plane) & 8).tolist()
    assert place == [500 // down, 700 // across]


@pytest.mark.parametrize("scale", ["whole range", "middle 98 %", "logarithmic"])
@cases(
    "values",
    [[np.nan, np.inf], [-np.inf, np.nan]],
    [[0.0, 0.0]],
    [[3e38, -3e38]],
    [[1e-40, 2e-40]],
    [[7, 7], [7, 7]],
    np.zeros((0, 3)),
    np.zeros(0),
    [np.nan, 1.0, np.inf],
)
def test_odd_values_on_every_scale(values, scale):
    view = TensorView(Tensor.from_data(np.array(values), Numpy()))
    view.scale = scale
    if view.matrix.size:
        view.cell = (0, 0)
        assert view.reading
    assert "<script" not in view.still()
    json.dumps(view.panel.plane.frame, allow_nan=False)


def test_every_part_of_a_large_matrix_can_be_seen_element_by_element():
    values = np.random.default_rng(0).normal(0, 40, (2000, 2000)).astype(np.float32)
    view = TensorView(Tensor.from_data(values, Numpy()))
    means = view.panel.plane.frame["means"]
    assert "mean of" in means
    assert f"elements from {values.min():.4g} to {values.max():.4g}" in means
    view.cell = (1003, 505)
    for _ in range(6):
        view.panel._told(None, {"do": "zoom", "by": 2, "at": [1003, 505]}, None)
    top, left, rows, columns = view.part
    assert top <= 1003 < top + rows
    assert left <= 505 < left + columns
    assert view.plane.whole
    assert np.array_equal(view.shown, values[top : top + rows, left : left + columns])
    frame = view.panel.plane.frame
    assert (frame["corner"], frame["whole"]) == ([top, left], [2000, 2000])
    assert view.reading == f"[1003, 505] = {view._number(values[1003, 505])}"
    assert f"{left} … {left + columns - 1} →" in view.still()
    view.part = (1990, 1995, 50, 50)
    assert view.part == (1990, 1995, 10, 5)
    view.panel._told(None, {"do": "part", "part": None}, None)
    assert view.part is None
    view.panel._told(None, {"do": "part", "part": [5000, 0, 1, 1]}, None)
    assert "lies outside the plane" in view.panel.plane.trouble
    with pytest.raises(DimError, match="lies outside the plane of 2000 × 2000"):
        view.part = (0, 0, 0, 4)


def test_a_part_goes_when_other_dims_are_shown():
    view = TensorView(Tensor.from_data(np.zeros((3, 40, 50)), Numpy()))
    view.part = (10, 20, 5, 5)
    view.index = {0: 2}
    assert view.part == (10, 20, 5, 5)
    view.dims = (0, 1)
    assert view.part is None


def test_rank_one_is_a_curve():
    values = np.sin(np.arange(60) / 5).astype(np.float32)
    values[7] = np.nan
    view = TensorView(Tensor.from_data(values, Numpy()))
    rows = np.frombuffer(view.panel.plane.curve, "<f4").reshape(3, 60)
    assert np.allclose(rows[0], values, equal_nan=True)
    assert view.curve().pieces() == [(0, 6), (8, 59)]
    html = view.still()
    assert html.count('class="train-line"') == 2
    assert "dim 0 →" in html
    view.cell = (0, 20)
    assert view.reading.startswith("[20] = -0.75")
    view.close()
    long = np.arange(100_000, dtype=np.float32)
    view = TensorView(Tensor.from_data(long, Numpy()))
    line = view.curve()
    assert len(line.mean) <= 600
    assert (line.least[0], line.most[-1]) == (0.0, 99_999.0)
    assert len(view.still()) < 60_000


def test_three_planes_are_a_picture_in_color():
    values = np.zeros((2, 3, 4, 5), np.float32)
    values[1, 0], values[1, 2, 1, 2] = 1.0, 0.5
    view = TensorView(Tensor.from_data(values, Numpy()), index={0: 1})
    assert view.can_be_rgb
    view.panel.rgb.value = True
    pixels = np.frombuffer(view.panel.plane.data, np.uint8).reshape(4, 5, 3)
    assert pixels[0, 0].tolist() == [255, 0, 0]
    assert pixels[1, 2].tolist() == [255, 0, 128]
    view.cell = (1, 2)
    assert view.reading == "[1, :, 1, 2]: red 1.0, green 0.0, blue 0.5"
    assert 'alt="picture, 4 rows' in view.still()
    view.dims = (0, 1)
    assert not view.rgb
    view.close()
    whole = TensorView(Tensor.from_data(np.full((3, 2, 2), 200), Numpy()))
    whole.rgb = True
    assert whole.pixels().tolist() == [[[200] * 3] * 2] * 2
    whole.close()
    grey = TensorView(Tensor.from_data(np.zeros((2, 2, 2)), Numpy()))
    with pytest.raises(DimError, match="no three planes of color"):
        grey.rgb = True
