"""The closeness view without a browser: its controls, what it sends, its still form."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.support.cases import cases

pytest.importorskip("anywidget", reason="the widgets need anywidget")

from burnbook.backend import Numpy
from burnbook.core.errors import ConfigError
from burnbook.module import Module
from burnbook.nn import Linear, LinearConfig
from burnbook.tensor import Tensor
from burnbook.tensor.closeness import check_closeness
from burnbook_widgets import ClosenessView
from tests.support.widget_state import widget_count

NAMES = ["first", "second", "third", "fourth", "fifth"]


def two():
    """Ten numbers that differ, two of them much."""
    a = np.arange(20, dtype=np.float32).reshape(4, 5)
    b = a.copy()
    b[1, 2] += 1e-3
    b[3, 4] -= 0.5
    return ClosenessView(a, b)


def layers():
    """Five arrays: same, nearly, a little off, all off, and one of another shape."""
    a = {name: np.ones((4, 25)) for name in NAMES}
    b = {name: np.ones((4, 25)) for name in NAMES}
    b["second"] += 1e-7
    b["third"][0, :5] += 0.05
    b["fourth"] += 0.3
    b["fifth"] = np.ones(3)
    return ClosenessView(a, b)


def names(view):
    return [line["name"] for line in view.panel.layers]


def test_two_tensors_give_a_ladder_and_their_worst_elements():
    view = two()
    ladder = view.panel.ladder
    assert ladder["levels"][0] == ["1e-1", 20, 20, "100%", "PASS"]
    assert ladder["levels"][1] == ["1e-2", 19, 20, "95.00%", "WARN"]
    assert ladder["levels"][4][1:] == [18, 20, "90.00%", "WARN"]
    assert ladder["worst"][0] == ["[3, 4]", "19", "18.5", "0.5"]
    assert ladder["worst"][1][0] == "[1, 2]"
    assert view.panel.layers == []
    assert repr(view) == "ClosenessView([4, 5]; within 1e-1)"


def test_a_report_tensors_and_modules_are_taken_alike():
    device = Numpy()
    tensor = Tensor.from_floats([1.0, 2.0], device)
    for given in ((tensor, tensor), (check_closeness(tensor, tensor),)):
        assert repr(ClosenessView(*given)) == "ClosenessView([2]; within 1e-8)"

    class Pair(Module):
        one: Linear
        two: Linear

        def forward(self, x):
            return self.two.forward(self.one.forward(x))

    def make():
        device.seed(0)
        config = LinearConfig(3, 3)
        return Pair(config.init(device), config.init(device))

    view = ClosenessView(make(), make(), Tensor.ones([2, 3], device))
    assert view.report.what == "Layer"
    assert names(view) == ["one", "two", "output"]
    assert "3 layers at 1e-4: 3 PASS" in repr(view)


def test_the_table_starts_at_the_first_difference_and_is_judged_at_epsilon():
    view = layers()
    assert names(view) == NAMES
    verdicts = [line["verdict"] for line in view.panel.layers]
    assert verdicts == ["PASS", "PASS", "WARN", "FAIL", "FAIL"]
    assert view.layer == "third"
    assert view.panel.layers[2]["close"] == "95.00%"
    assert view.panel.layers[4]["largest"] == "shapes [4, 25] and [3]"
    view.epsilon = 1e-8
    assert view.panel.layers[1]["verdict"] == "FAIL"
    view.epsilon = 0.1
    assert view.counts() == {"PASS": 3, "WARN": 0, "FAIL": 2}
    assert view.epsilon_control.value == view.epsilon == 1e-1


def test_controls_and_twins_say_the_same():
    view = layers()
    view.epsilon_control.value = 1e-2
    assert view.epsilon == 1e-2
    view.only_control.value = True
    assert view.only_differences
    assert names(view) == ["third", "fourth", "fifth"]
    view.only_differences = False
    assert view.only_control.value is False
    view.find_control.value = "FI"
    assert names(view) == ["first", "fifth"]
    view.find = ""
    view.sort_control.value = "name"
    assert names(view) == sorted(NAMES)
    view.sort("largest")
    assert view.sort_control.value == "largest"
    assert names(view)[:3] == ["fifth", "fourth", "third"]
    view.sort("largest")  # once more turns it round
    assert names(view) == ["first", "second", "third", "fourth", "fifth"]
    view.first_control.click()
    assert view.layer == "third"


@cases(
    "by down first",
    ("order", False, "first"),
    ("order", True, "fifth"),
    ("verdict", False, "fourth"),
    ("close", False, "fifth"),
    ("close", True, "first"),
    ("within", False, "first"),
    ("within", True, "fifth"),
)
def test_every_order_of_the_table(by, down, first):
    view = layers()
    view.sort(by, down)
    assert names(view)[0] == first
    assert view.panel.head["by"] == by


def test_a_click_in_the_panel_chooses_and_sorts():
    view = layers()
    view._told(None, {"do": "choose", "name": "fourth"}, [])
    assert view.layer == "fourth"
    assert view.panel.ladder["name"] == "fourth"
    assert view.panel.said.startswith("fourth: FAIL, largest difference 0.3")
    view._told(None, {"do": "sort", "by": "name"}, [])
    assert names(view) == sorted(NAMES)


def test_what_goes_wrong_in_a_click_is_a_line_in_the_view():
    view = layers()
    view.panel._handle_custom_msg({"do": "choose", "name": "sixth"}, [])
    assert view.panel.fault == "ClosenessView: there is no parameter 'sixth'"
    view.panel._handle_custom_msg({"do": "choose", "name": "first"}, [])
    assert view.panel.fault == ""
    with pytest.raises(ConfigError, match="there is no parameter 'sixth'"):
        view.layer = "sixth"
    with pytest.raises(ConfigError, match="cannot sort by 'colour'"):
        view.sort("colour")


def test_a_layer_that_cannot_be_compared_says_why():
    view = layers()
    view.layer = "fifth"
    assert view.panel.ladder["levels"] == []
    assert view.panel.ladder["note"] == "cannot be compared: shapes [4, 25] and [3]"


def test_thousands_of_layers_are_shown_in_pages_and_stay_small():
    a = {f"layer {i:04}": np.zeros(3) for i in range(2500)}
    b = {name: zeros + (name == "layer 1234") for name, zeros in a.items()}
    view = ClosenessView(a, b)
    assert view.pages == view.page_control.max == 25
    view.first_difference()
    assert (view.layer, view.page) == ("layer 1234", 13)
    assert "layer 1234" in names(view)
    view.page_control.value = 2
    assert names(view)[0] == "layer 0100"
    state = view.panel.get_state(["head", "layers", "ladder", "said", "fault"])
    assert len(json.dumps(state)) < 50_000
    view.find = "layer 12"
    assert view.pages == 1
    assert "and 2,400 more" in ClosenessView(a, b).still()


def test_not_a_number_and_nothing_at_all_are_shown():
    view = ClosenessView(np.array([np.nan, 1.0]), np.array([1.0, 1.0]))
    assert view.panel.ladder["worst"] == [["[0]", "NaN", "1", "NaN"]]
    assert "NaN" in view.still()
    empty = ClosenessView({}, {})
    assert "Nothing to compare." in empty.still()
    assert empty.first_difference() is None


def test_the_still_form_has_the_ladder_the_worst_and_the_layers():
    view = layers()
    html = view.still()
    for text in ("✗ FAIL", "! WARN", "✓ PASS", "95.00%", "1e-8", "fourth", "[0, 0]"):
        assert text in html
    assert "<script" not in html
    assert layers().still() == html
    odd = {"<b>&": np.ones(2)}
    assert "<b>&" not in ClosenessView(odd, odd).still()


def test_static_pages_get_no_widget(static):
    view = layers()
    view.epsilon = 1e-2
    view.layer = "fourth"
    assert set(view.bundle()) == {"text/html", "text/plain"}
    assert repr(view) == "ClosenessView(5 parameters at 1e-2: 2 PASS, 1 WARN, 2 FAIL)"


def test_close_frees_every_widget_and_leaves_the_still_form(same_widgets):
    before = widget_count()
    view = layers()
    assert widget_count() > before
    live_bundle = view.bundle()
    assert "application/vnd.jupyter.widget-view+json" in live_bundle
    assert live_bundle["text/html"] == view.still()
    shown = []

    class Place:
        def update(self, bundle, raw):
            shown.append(bundle)

    view._places.append(Place())
    view.close()
    assert shown == [{"text/html": view.still(), "text/plain": repr(view)}]
    view.close()
    view.epsilon = 1e-1  # a closed view still answers
    assert view.counts()["PASS"] == 3
