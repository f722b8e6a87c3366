"""The dataset browser without a page: what it recognises, finds, shows and frees."""

from __future__ import annotations

import base64
import io
import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.support.cases import cases

pytest.importorskip("anywidget", reason="the widgets need anywidget")


from burnbook import data
from burnbook.backend import Numpy
from burnbook.core.errors import ConfigError, DataError
from burnbook.examples.guide.data import MnistBatcher
from burnbook.tensor import Tensor
from burnbook_widgets import DatasetBrowser
from burnbook_widgets.dataset.scores import as_chances
from tests.support.widget_state import widget_count

NEWS = [
    data.AgNewsItem(0, "Summit", "Ministers meet in Rome."),
    data.AgNewsItem(1, "Final", "The home team wins."),
    data.AgNewsItem(0, "Rain", "Rome is under water."),
]


@dataclass
class Row:
    age: int
    town: str
    score: float


class Broken(data.Dataset):
    """A dataset whose second item cannot be read."""

    def get(self, index):
        if index == 1:
            raise OSError("the disk says no")
        return {"age": index, "label": index % 2} if 0 <= index < len(self) else None

    def __len__(self):
        return 4


def digits():
    return data.DigitsDataset.test()


def scores_with(mistakes):
    """Scores that are sure and right, except for what is said: {item: (class, by)}."""
    labels = [item.label for item in digits()]
    scores = np.eye(10)[labels] * 5.0
    for index, (code, by) in mistakes.items():
        scores[index, code] = 5.0 + by
    return scores


def told(browser):
    return browser.widget.page["items"]


# ── pages, classes, search ──────────────────────────────────────────────────


def test_a_page_holds_its_items_and_their_pixels():
    browser = DatasetBrowser(digits())
    assert browser.pages == 15
    browser.page = 3
    assert browser.shown == list(range(48, 72))
    first = told(browser)[0]
    start, count, width, height, channels = first["pic"]
    assert (width, height, channels) == (28, 28, 1)
    pixels = np.frombuffer(browser.widget.data[start : start + count], np.uint8)
    item = digits().get(48)
    assert np.abs(pixels.reshape(28, 28) - item.image).max() <= 0.5
    assert first["label"] == str(item.label)


def test_the_balance_counts_every_class():
    browser = DatasetBrowser(digits())
    labels = [item.label for item in digits()]
    assert browser.counts == {str(k): labels.count(k) for k in range(10)}
    assert browser.widget.balance[3] == ["3", labels.count(3), labels.count(3)]


def test_a_filter_keeps_one_class_and_none_keeps_all():
    browser = DatasetBrowser(data.InMemDataset(NEWS), classes=["World", "Sports"])
    browser.filter(label="World")
    assert browser.found == [0, 2]
    browser.filter(label=1)
    assert browser.found == [1]
    browser.filter()
    assert browser.found == [0, 1, 2]


def test_a_search_wants_all_words_in_any_field():
    browser = DatasetBrowser(data.InMemDataset(NEWS), classes=["World", "Sports"])
    browser.search("rome")
    assert browser.found == [0, 2]
    browser.search("WATER rome")
    assert browser.found == [2]
    browser.search("sports")
    assert browser.found == [1]
    browser.filter(label="World")
    assert browser.found == []
    assert "<p>No item matches." in browser.still()
    browser.clear()
    assert browser.found == [0, 1, 2]


def test_selecting_turns_to_the_page_of_the_item():
    browser = DatasetBrowser(digits())
    browser.select(100)
    assert (browser.page, browser.selected) == (5, 100)
    assert browser.widget.detail["i"] == 100
    assert ["size", "28×28 float32"] in browser.widget.detail["facts"]
    browser.select(None)
    assert browser.widget.detail == {}


def test_labels_may_be_a_field_a_function_or_a_list():
    rows = [Row(age, town, 0.5) for age, town in ((3, "Rome"), (40, "Oslo"))]
    assert DatasetBrowser(rows, "town").counts == {"Oslo": 1, "Rome": 1}
    adult = DatasetBrowser(rows, lambda row: row.age > 17)
    assert adult.counts == {"False": 1, "True": 1}
    assert DatasetBrowser(np.zeros((3, 8, 8)), [2, 2, 5]).counts == {"2": 2, "5": 1}


def test_measured_labels_become_ranges_that_hold_every_item():
    values = np.linspace(-1.23, 7.7, 200).tolist()
    browser = DatasetBrowser([{"x": 1, "target": value} for value in values])
    assert sum(browser.counts.values()) == 200
    name = next(iter(browser.counts))
    browser.filter(label=name)
    low, high = map(float, name.split(" … "))
    assert len(browser.found) == browser.counts[name]
    assert all(low <= values[i] < high for i in browser.found)


def test_several_labels_count_in_each_class():
    picture = np.zeros((4, 4, 3), np.uint8)
    items = [
        data.ImageDatasetItem(picture, data.MultiLabel(codes))
        for codes in ((0, 2), (2,))
    ]
    browser = DatasetBrowser(items, classes=["sea", "sky", "sun"])
    assert browser.counts == {"sea": 1, "sky": 0, "sun": 2}
    assert told(browser)[0]["label"] == "sea, sun"


def test_sounds_boxes_and_masks_are_shown():
    wave = np.sin(np.arange(4000) / 9).astype(np.float32)
    sound = DatasetBrowser([data.SpeechItem(wave, 8000, data.SpeechCommandClass.Yes)])
    sound.select(0)
    assert ["length", "0.50 s"] in sound.widget.detail["facts"]
    assert sound.counts == {"Yes": 1}
    sent = []
    sound.widget.send = lambda message, buffers: sent.append((message, *buffers))
    sound.heard({"do": "play"})
    assert sent[0][0] == {"play": 0, "rate": 8000}
    heard = np.frombuffer(sent[0][1], "<i2") / 32767
    assert np.abs(heard - wave).max() < 1e-4
    picture = np.zeros((10, 20, 3), np.uint8)
    boxes = data.BoundingBoxes((data.BoundingBox((5, 2, 10, 4), 1),))
    mask = data.SegmentationMask(np.eye(10, 20, dtype=np.int64))
    items = [data.ImageDatasetItem(picture, one) for one in (boxes, mask)]
    first, second = told(DatasetBrowser(items))
    assert first["boxes"] == [[0.25, 0.2, 0.5, 0.4]]
    assert "mask" in second


def test_an_item_that_cannot_be_read_says_why_and_harms_no_other():
    browser = DatasetBrowser(Broken())
    assert [item["kind"] for item in told(browser)] == ["row", "fault", "row", "row"]
    assert "OSError: the disk says no" in told(browser)[1]["text"]
    assert browser.counts == {"0": 2, "1": 1}
    assert "the disk says no" in browser.still()


def test_reading_stops_in_time_and_goes_on_when_asked(monkeypatch):
    monkeypatch.setattr("burnbook_widgets.dataset.browser.PATIENCE", 0.0)
    browser = DatasetBrowser(digits())
    assert browser.labels.read_count == 256
    assert "labels of the first 256 read" in browser.widget.status["notes"]
    browser.page = browser.pages
    assert told(browser)[-1]["label"] == str(digits().get(358).label)
    browser.read_all()
    assert sum(browser.counts.values()) == 359


# ── before and after, batches ───────────────────────────────────────────────


def test_before_is_shown_beside_after():
    raw = [np.full((6, 6), value, np.uint8) for value in (10, 20)]
    browser = DatasetBrowser([one[:3] for one in raw], before=raw)
    first = told(browser)[0]
    assert first["pic"][2:4] == [6, 3]
    assert first["before"]["pic"][2:4] == [6, 6]
    assert browser.still().count("<img") == 4


def test_columns_are_shown_by_their_rows():
    pixels, labels = np.zeros((6, 8, 8), np.uint8), np.arange(6) % 2
    for source in ((pixels, labels), {"image": pixels, "label": labels.tolist()}):
        browser = DatasetBrowser(source, batcher=data.DefaultBatcher())
        assert (browser.kind, browser.counts) == ("image", {"0": 3, "1": 3})
        browser.view = "batch"
        assert "Int [6, 8, 8]" in browser.still()
    given = DatasetBrowser(pixels, Tensor.from_ints(labels.tolist()))
    assert given.counts == {"0": 3, "1": 3}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_of_other_libraries_are_shown_by_their_rows(library):
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    towns = ["Rome", "Oslo", "Rome"]
    frame = make({"age": [31, None, 5], "town": towns, "label": [0, 1, 0]})
    browser = DatasetBrowser(frame)
    assert (browser.kind, browser.counts) == ("row", {"0": 2, "1": 1})
    assert browser.statistics["age"]["missing"] == "1"
    assert browser.statistics["age"]["highest"] in ("31", "31.0")
    browser.search("rome")
    assert browser.found == [0, 2]
    column = frame["town"]
    assert DatasetBrowser(frame, column).counts == {"Oslo": 1, "Rome": 2}


def test_a_batch_shows_what_the_batcher_makes_of_the_page():
    browser = DatasetBrowser(digits(), batcher=MnistBatcher())
    browser.view = "batch"
    images, targets = browser.widget.page["parts"]
    assert (images["name"], images["about"]) == ("images", "Float [24, 28, 28]")
    assert len(images["pics"]) == 16
    assert targets["about"] == "Int [24]"
    first = [str(digits().get(i).label) for i in range(24)]
    assert targets["values"] == ", ".join(first)
    assert "Float [24, 28, 28]" in browser.still()


# ── predictions ─────────────────────────────────────────────────────────────


def test_mistakes_are_listed_by_the_chance_of_the_true_class():
    wrong = {i: (digits().get(i).label + 1) % 10 for i in (5, 50, 200)}
    sure = dict(zip(wrong, (2.0, 6.0, 4.0), strict=True))
    scores = scores_with({i: (code, sure[i]) for i, code in wrong.items()})
    browser = DatasetBrowser(digits(), predictions=scores)
    assert browser.mistakes == [50, 200, 5]
    browser.view = "mistakes"
    assert browser.shown == [50, 200, 5]
    assert all(item["wrong"] for item in told(browser))
    matrix = browser.confusion
    assert matrix.sum() == 359
    assert np.trace(matrix) == 356
    truth = digits().get(50).label
    browser.filter(label=truth, predicted=wrong[50])
    browser.view = "items"
    assert 50 in browser.found
    assert len(browser.found) == matrix[truth, wrong[50]]
    browser.select(50)
    top = browser.widget.detail["top"]
    assert top[0][0] == str(wrong[50])
    assert top[0][1] == pytest.approx(np.exp(6) / (np.exp(6) + 1 + 8 * np.exp(-5)))


def test_predicted_labels_and_tensors_serve_as_predictions():
    labels = [item.label for item in digits()]
    labels[3] = (labels[3] + 1) % 10
    assert DatasetBrowser(digits(), predictions=np.array(labels)).mistakes == [3]
    scores = Tensor.from_data(scores_with({}).tolist(), Numpy())
    browser = DatasetBrowser(digits(), predictions=scores)
    assert browser.mistakes == []
    assert "accuracy 100.00 %" in browser.widget.status["notes"]


def test_two_classes_may_have_one_score():
    rows = [{"x": i, "label": i % 2} for i in range(4)]
    browser = DatasetBrowser(rows, predictions=[0.1, 0.8, 0.7, 0.9])
    assert browser.confusion.tolist() == [[1, 1], [0, 2]]
    assert browser.mistakes == [2]


def test_chances_are_kept_or_made_by_softmax():
    chances = np.array([[0.25, 0.75]])
    assert np.array_equal(as_chances(chances), chances)
    assert as_chances(np.log(chances)) == pytest.approx(chances)
    assert as_chances(np.array([[1000.0, 0.0]])) == pytest.approx(np.array([[1, 0]]))


def test_many_classes_show_what_was_confused_most():
    rows = [{"x": i, "label": i % 30} for i in range(90)]
    guesses = np.arange(90) % 30
    guesses[[0, 30]] = 7
    browser = DatasetBrowser(rows, predictions=guesses)
    browser.view = "confusion"
    assert browser.widget.grid["worst"] == [[0, 7, 2]]
    assert "predicted as" in browser.still()


# ── what goes wrong ─────────────────────────────────────────────────────────


@cases(
    "act words",
    (lambda b: b.filter(label="zebra"), "no class 'zebra'"),
    (lambda b: b.filter(predicted=1), "nothing was predicted"),
    (lambda b: b.select(3), "no item 3"),
    (lambda b: b.play(), "no sound is selected"),
    (lambda b: setattr(b, "page", 2), "no page 2"),
    (lambda b: setattr(b, "view", "mistakes"), "no view 'mistakes'"),
    (lambda b: DatasetBrowser(b.dataset, before=[1]), "1 items before, 3 after"),
    (lambda b: DatasetBrowser(b.dataset, predictions=[1]), "do not fit 3 items"),
    (lambda b: DatasetBrowser(b.dataset, [1]), "1 labels for 3 items"),
    (lambda b: DatasetBrowser(7), "int is not a dataset"),
    (lambda b: DatasetBrowser([np.zeros((3, 2)), np.zeros(3)]), "look like columns"),
    (
        lambda b: DatasetBrowser(b.dataset, classes="ab", predictions=np.zeros((3, 5))),
        "scores of 5 classes, the labels have 2",
    ),
)
def test_python_hears_of_its_mistakes(act, words):
    browser = DatasetBrowser(data.InMemDataset(NEWS))
    with pytest.raises((ConfigError, DataError)) as caught:
        act(browser)
    assert words in str(caught.value)


def test_a_click_that_fails_is_said_in_the_view_and_nowhere_else():
    browser = DatasetBrowser(digits(), batcher=lambda items: 1 / 0)
    browser.attempt(setattr, browser, "view", "batch")
    assert "ZeroDivisionError" in browser.widget.status["fault"]
    browser.attempt(setattr, browser, "view", "items")
    assert browser.widget.status["fault"] == ""


# ── controls, state, the end ────────────────────────────────────────────────


def test_controls_and_python_follow_each_other():
    browser = DatasetBrowser(digits(), predictions=scores_with({5: (0, 3.0)}))
    controls = browser._controls
    controls.page.value = 4
    assert browser.page == 4
    browser.page = 2
    assert controls.page.value == 2
    controls.forth.click()
    assert browser.page == 3
    controls.label.value = 7
    assert set(np.array([i.label for i in digits()])[browser.found]) == {7}
    controls.label.value = controls.label.options[0][1]
    controls.words.value = "#5"
    assert browser.found[0] == 5
    controls.clear.click()
    assert (controls.words.value, len(browser.found)) == ("", 359)
    controls.views.value = "confusion"
    assert browser.view == "confusion"
    browser.heard({"do": "cell", "truth": 1, "predicted": 1})
    assert (browser.view, controls.views.value) == ("items", "items")


def test_the_state_stays_below_a_hundred_kilobytes():
    large = np.random.default_rng(1).integers(0, 255, (60, 200, 300, 3), np.uint8)
    browser = DatasetBrowser(large, np.arange(60) % 3, before=large)
    browser.select(1)
    state = browser.widget.get_state()
    parts = [
        len(value) * 4 / 3 if isinstance(value, bytes) else len(json.dumps(value))
        for name, value in state.items()
        if name not in ("_esm", "_css")
    ]
    assert 10_000 < sum(parts) < 100_000


def test_what_stays_is_well_formed_and_the_same_every_time():
    class Reader(HTMLParser):
        depth = 0

        def handle_starttag(self, tag, attrs):
            self.depth += tag not in ("img", "br")

        def handle_endtag(self, tag):
            self.depth -= 1

    browser = DatasetBrowser(digits(), predictions=scores_with({5: (0, 3.0)}))
    for view in browser.views:
        browser.view = view
        browser.select(5)
        page = browser.still()
        reader = Reader()
        reader.feed(page)
        assert reader.depth == 0
        assert page == browser.still()
        assert "<script" not in page
        assert len(page) < 100_000


def test_texts_of_items_are_never_markup():
    page = DatasetBrowser([{"text": "<script>x</script>", "label": "<b>"}]).still()
    assert "<script>" not in page
    assert "<b>" not in page


def test_a_static_page_has_no_widget(static):
    browser = DatasetBrowser(data.InMemDataset(NEWS))
    assert set(browser._repr_mimebundle_()) == {"text/plain", "text/html"}
    assert repr(browser) == "DatasetBrowser(3 items of 2 classes; items, page 1 of 1)"


def test_an_empty_dataset_is_shown_as_such():
    browser = DatasetBrowser(data.InMemDataset([]))
    assert (browser.pages, browser.shown, browser.counts) == (1, [], {})
    assert "0 items" in browser.still()


def test_closing_frees_every_widget(same_widgets):
    before = widget_count()
    browser = DatasetBrowser(digits(), predictions=scores_with({}))
    assert widget_count() > before
    browser.close()
    browser.page = 2  # Python still works
    assert "page 2 of 15" in browser.still()


# ── tables, sounds, many pages, none (N24) ──────────────────────────────────


def houses(count=30):
    return [
        {
            "rooms": 3 + i % 4, "price": 223_300.0 + 1000 * ((7 * i) % count),
            "area": None if i == 5 else 50.5 + i, "town": ["Rome", "Oslo"][i % 2],
            "label": i % 3,
        }
        for i in range(count)
    ]  # fmt: skip


def test_tables_show_readable_numbers():
    browser = DatasetBrowser(houses())
    fields = dict(told(browser)[0]["fields"])
    assert fields["price"] == "223300"  # it was 2.233e+05
    assert fields["area"] == "50.5"
    assert "e+05" not in browser.still()


def test_columns_sort_by_twin_and_by_click():
    browser = DatasetBrowser(houses(), page_size=5)
    browser.sort("price", descending=True)
    prices = [houses()[i]["price"] for i in browser.found]
    assert prices == sorted(prices, reverse=True)
    assert browser.shown == browser.found[:5]
    assert "by price, high to low" in browser.widget.status["notes"]
    browser.filter(label=1)
    assert all(i % 3 == 1 for i in browser.found)
    assert browser.sorted_by == ("price", True)
    browser.clear()
    assert browser.found == list(range(30))
    for wanted in [("area", False), ("area", True), None]:
        browser.attempt(browser.heard, {"do": "sort", "by": "area"})
        assert browser.sorted_by == wanted
        if wanted:
            assert browser.found[-1] == 5  # what is missing stays at the end
    browser.sort("town")
    assert browser.found == [*range(1, 30, 2), *range(0, 30, 2)]
    assert browser.widget.page["sorted"] == ["town", False]
    with pytest.raises(ConfigError, match="there is no column 'street'"):
        browser.sort("street")
    browser.attempt(browser.heard, {"do": "sort", "by": "street"})
    assert "no column 'street'" in browser.widget.status["fault"]


def test_statistics_of_columns():
    browser = DatasetBrowser(houses())
    price, area = browser.statistics["price"], browser.statistics["area"]
    assert (price["lowest"], price["highest"]) == ("223300", "252300")
    assert price["mean"] == "237800"
    assert area["missing"] == "1"
    assert browser.statistics["town"] == {"different": "2", "most often": "Rome (15)"}
    assert browser.widget.page["statistics"]["rooms"]["lowest"] == "3"
    html = browser.still()
    for text in ("<tfoot>", "237800", "Rome (15)", "most often"):
        assert text in html


def test_columns_of_odd_values():
    odd = [
        {"a": float("nan"), "b": "x", "c": float("inf")},
        {"a": 1, "b": 2, "c": -1.0},
        {"a": "one", "b": None, "d": True},
    ]
    browser = DatasetBrowser(odd)
    for name in browser.columns.values:
        for descending in (False, True):
            browser.sort(name, descending)
            assert sorted(browser.found) == [0, 1, 2]
    browser.sort("a")
    assert browser.found == [1, 2, 0]
    assert browser.statistics["c"]["missing"] == "1"


def test_sounds_can_be_heard_live_and_in_the_still_form(monkeypatch):
    rate = 16_000
    tone = np.sin(np.arange(rate) * 2 * np.pi * 440 / rate).astype(np.float32)
    sounds = [{"samples": (0.5 + i) * tone, "sample_rate": rate} for i in range(3)]
    browser = DatasetBrowser(sounds)
    assert all(card["sounds"] for card in told(browser))
    sent = []
    monkeypatch.setattr(browser.widget, "send", lambda *parts: sent.append(parts))
    browser.attempt(browser.heard, {"do": "play", "item": 1})
    assert browser.selected == 1
    ((message, (data,)),) = sent
    assert message == {"play": 1, "rate": rate}
    assert len(data) == 2 * rate
    assert "sound" not in browser.widget.detail  # a saved state stays small
    html = browser.still()
    (address,) = re.findall(r'<audio controls src="data:audio/wav;base64,(.*?)"', html)
    import wave

    with wave.open(io.BytesIO(base64.b64decode(address))) as heard:
        assert heard.getframerate() == 8000
        assert heard.getnframes() == 8000
    assert len(html) < 100_000


def test_many_pages_have_a_box_for_their_number():
    browser = DatasetBrowser(range(100_000), page_size=1)
    controls = browser._controls
    assert controls.page.layout.display == "none"
    assert (controls.page_box.max, controls.page_box.layout.display) == (100_000, "")
    controls.page_box.value = 83_334
    assert (browser.page, browser.shown) == (83_334, [83_333])
    browser.page = 17
    assert controls.page_box.value == 17


def test_an_empty_dataset_says_that_it_is_empty():
    browser = DatasetBrowser([])
    assert browser.widget.page["empty"] == "The dataset is empty: it has no items."
    assert "The dataset is empty: it has no items." in browser.still()
    browser.close()
    browser = DatasetBrowser(houses())
    browser.search("castle")
    assert browser.widget.page["empty"].startswith("No item matches.")


def test_the_number_of_an_item_is_that_item_alone():
    browser = DatasetBrowser(list(range(200)))
    browser.search("#17")
    assert browser.found == [17]
    browser = DatasetBrowser(["see #17 there", *"abc", "#171"])
    browser.search("#17")
    assert browser.found == [0]
