"""The helpers of the chapters: same, check, peek, and the small pictures."""

import io
import math
from dataclasses import dataclass
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.support.cases import cases

pytest.importorskip("PIL", reason="pictures are drawn with the [lab] extra")

from PIL import Image

from burnbook import ops, train
from burnbook.backend import Counting, Decorator
from burnbook.config import Config
from burnbook.core.errors import BurnbookError, ConfigError
from burnbook.data import InMemDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.lr_scheduler import LrSchedulerConfig
from burnbook.module import Module
from burnbook.nn import Linear, LinearConfig, Relu
from burnbook.prelude import Autodiff, Distribution, Int, Numpy, Tensor
from burnbook_widgets import SchedulePlot, learn
from burnbook_widgets.chapters.answers import FUNCTION, Holds, Value, compare
from burnbook_widgets.chapters.exercises import EXERCISES
from burnbook_widgets.drawing import LIGHT, Words
from burnbook_widgets.pictures import Bars, Images, Lines


@pytest.fixture
def said(capsys):
    def run(function, *arguments):
        function(*arguments)
        return capsys.readouterr().out

    return run


def floats(*values):
    return Tensor.from_floats(list(values), Numpy())


def opened(picture):
    return Image.open(io.BytesIO(picture.png()))


def test_same_says_so_for_tensors_arrays_and_lists(said):
    text = "✔ the same: 2 values, shape [2]\n"
    assert said(learn.same, floats(1, 2), [1.0, 2.0]) == text
    assert said(learn.same, 3.0, np.float32(3)) == "✔ the same: 1 value, shape []\n"


def test_same_says_what_differs(said):
    text = said(learn.same, [1, 2], [[1], [2]])
    assert text.startswith("✘ different shapes: [2] and")
    assert said(learn.same, [1, 2, 3], [1, 2, 4]) == "✘ 1 of 3 values differ\n"


def test_same_forgives_rounding_but_not_more(said):
    assert said(learn.same, [1.0], [1.000001]).startswith("✔")
    assert said(learn.same, [1.0], [1.001]).startswith("✘")


def test_an_untouched_exercise_waits(said):
    assert said(learn.check, "1.1", ...) == "✎ 1.1 not tried yet\n"


def test_a_right_answer_passes_and_a_wrong_one_gets_a_hint(said):
    assert said(learn.check, "1.1", 6) == "✔ 1.1\n"
    wrong = said(learn.check, "1.1", 7)
    assert wrong.startswith("✘ 1.1: it is too large\n  hint: ")
    assert "6" not in wrong.replace("1.1", "")  # a hint, not the answer


@cases(
    "number near",
    ("3.1.9", "3.1.1, 3.1.2, 3.1.3, 3.1.4"),
    ("4.66.1", "4.6.1"),
    (3.1, "3.1.1"),
    ("words", None),
)
def test_a_number_that_no_exercise_has_is_told_the_near_ones(number, near):
    with pytest.raises(BurnbookError) as caught:
        learn.check(number, 1)
    text = str(caught.value)
    assert text.startswith(f"check: there is no exercise '{number}'\n")
    assert (near or "try: the number") in text
    assert ("near it" in text) == (near is not None)


def test_a_number_without_quotes_is_understood(said):
    assert said(learn.check, 1.1, 6) == "✔ 1.1\n"


# What the sentences say


def test_types_are_told_by_name():
    right = floats(1, 2)
    assert compare(right, floats(1, 2)) is None
    kind = "and should be a tensor of kind Float"
    assert compare(right, [1.0, 2.0]) == f"it is a list, {kind}"
    assert compare(right, None) == f"it is None, {kind}; is a return missing?"
    assert compare(right, len) == f"it is a function, {kind}"
    assert compare(right, np) == f"it is a Python module, {kind}"
    itself = f"it is the class Linear itself, {kind}: Linear(…)?"
    assert compare(right, Linear) == itself
    tensor = "it is a tensor, and should be a number: .into_scalar() makes one"
    assert compare(5, floats(5)) == tensor
    assert compare([5], floats(5)).endswith(".to_data().to_list() makes one")
    assert compare(5, "5") == "it is a string: leave out the quotes"
    assert compare(5, True) == "it is True, and should be a number"
    assert compare(5, [5]) == "it is a list of 1, and one number is asked for"
    assert compare([5, 6], 5) == "it is one number, and a list of 2 is asked for"
    assert compare([1, 2], []) == "it is an empty list"
    assert compare([1, 2], [[1], [2, 3]]) == "its rows differ in length"
    assert compare("a", 5) == "it is a number, and should be a string"


def test_kind_and_shape_are_told_with_what_they_should_be():
    right = Tensor.from_floats([[1, 2, 3], [4, 5, 6]], Numpy())
    ints = Tensor[2, Int].from_ints([[1, 2, 3], [4, 5, 6]], Numpy())
    assert compare(right, ints) == "its kind is Int, and should be Float"
    shapes = "its shape is [3, 2], and should be [2, 3]"
    assert compare(right, right.transpose()) == f"it is transposed: {shapes}"
    reshaped = right.reshape([3, 2])
    assert compare(right, reshaped) == f"the elements are right, but {shapes}"
    assert compare(right, reshaped * 2.0) == shapes
    assert compare([1, 2], [1, 2, 3]) == "it has 3 elements, and should have 2"


@cases(
    "right answer told",
    (5, 6, "one too many"),
    (5, 4, "one too few"),
    (5, 5.5, "nearly: a whole number is asked for"),
    (5, -5, "the right size with the wrong sign"),
    (2_099_712, 2_099_700, "it is too small"),  # counts are exact
    (0.4, 0.8, "it is twice what it should be"),
    (66.5, 0.665, "it is a hundredth of what it should be"),
    (0.4, 2.5, "it is upside down: 1 divided by it is right"),
    (0.4, math.nan, "it is nan"),
    (0.4, 0.7, "it is too large"),
    ([1, 2, 3], [3, 2, 1], "it is in reverse order"),
    ([1, 2, 3], [2, 1, 3], "the right numbers, in another order"),
    ([1, 2, 3], [-1, -2, -3], "the right sizes with the wrong sign"),
    ([0, 2, 4], [0, 1, 2], "every number is half of what it should be"),
    ([1, 2, 3], [0, 1, 2], "every number is too small by the same amount"),
    ([1, 2, 3], [1, 9, 3], "one of 3 numbers is wrong: the one at [1] is too large"),
    ([1, 2, 4], [9, 9, 4], "2 of 3 numbers are wrong: the one at [0] is too large"),
    ([[1, 2], [3, 4]], [[1, 3], [2, 4]], "it is transposed: rows and columns are"),
    (["a", "b"], ["b", "a"], "the right words, in another order"),
    (["a", "b"], ["a", "c"], "'c' does not belong in it"),
    ("model.v2", "Model. v2", "nearly: check the spaces, and upper"),
)
def test_numbers_and_words_are_told_how_they_differ(right, answer, told):
    assert compare(right, answer).startswith(told)


def test_rounding_to_four_digits_is_right_and_to_fewer_is_told():
    for good in (66.67, 66.6667, 200 / 3, np.float32(200 / 3)):
        assert compare(200 / 3, good) is None
    for few in (67, 66.7, 66.66):
        assert compare(200 / 3, few) is not None
    assert compare(200 / 3, 66.7) == "nearly: round it less, to 4 digits or more"
    assert compare([1 / 3, 2 / 3], [0.3333, 0.6667]) is None


def test_a_slip_that_an_exercise_knows_is_told_first():
    known = Value(lambda: 10, "", [(9, "the biases are missing"), ([1], "not a list")])
    assert known.trouble(9) == "the biases are missing"
    assert known.trouble([1]) == "not a list"
    assert known.trouble(11) == "one too many"


# Every exercise, asked with everything that does not belong there


class Empty:
    """Nothing that an exercise asks for."""


WRONG = {
    "None": None,
    "an empty string": "",
    "a string": "anything",
    "an empty list": [],
    "rows of two lengths": [[1], [1, 2]],
    "seven numbers": [1, 2, 3, 4, 5, 6, 7],
    "a number": 123_456_789,
    "a truth": True,
    "not a number": math.nan,
    "an object": object(),
    "a class": Empty,
    "a class of modules": Relu,
    "a function": lambda *given: None,
    "a function with dots": lambda *given: ...,
    "a Python module": np,
    "a tensor": floats(7, 7, 7, 7, 7),
    "ints": Tensor[2, Int].from_ints([[7]], Numpy()),
    "a backend": Numpy(),
    "a dict": {"weight": 1},
}
CRUDE = ("object has no attribute", "NoneType", "ellipsis", "places", "another one")


@pytest.mark.parametrize("number", list(EXERCISES))
def test_every_exercise_answers_wrong_things_with_a_sentence(number, said):
    exercise = EXERCISES[number]
    assert exercise.hint
    for name, wrong in WRONG.items():
        shown = said(learn.check, number, wrong)
        assert shown.startswith(f"✘ {number}: "), name
        told, hint = shown.splitlines()
        assert hint == f"  hint: {exercise.hint}"
        assert 1 < len(told) < 160, name
        if not callable(wrong):
            assert not [word for word in CRUDE if word in told], (name, told)


VALUES = [number for number, each in EXERCISES.items() if isinstance(each, Value)]


@pytest.mark.parametrize("number", VALUES)
def test_values_nearly_right_are_told_from_the_right_one(number):
    """Wrong value, shape and kind: each gets a sentence of its own."""
    exercise = EXERCISES[number]
    right = exercise.right()
    assert exercise.trouble(right) is None
    if isinstance(right, str):
        assert exercise.trouble(right + "!")
    elif isinstance(right, Tensor):
        whole = right.kind is Int
        other = right.float() if whole else right.int()
        wanted = "Int" if whole else "Float"
        assert exercise.trouble(other).endswith(f"and should be {wanted}")
        assert exercise.trouble(right + (1 if whole else 1.0)) is not None
        assert "shape" in exercise.trouble(right.unsqueeze_dim(0))
    elif isinstance(right, list):
        assert exercise.trouble([*right, right[0]]) is not None
        assert exercise.trouble(right[:-1]) is not None
    else:
        assert exercise.trouble(right + 1) is not None
        assert exercise.trouble(-right) == "the right size with the wrong sign"
        assert exercise.trouble([right]) is not None


@pytest.mark.parametrize("number", VALUES)
def test_no_slip_is_the_right_answer_and_each_is_told(number):
    exercise = EXERCISES[number]
    right = exercise.right()
    for wrong, told in exercise.slips:
        if isinstance(right, Tensor):
            make = Tensor.from_ints if right.kind is Int else Tensor.from_floats
            wrong = make(wrong, Numpy())
        assert exercise.trouble(wrong) == told


def test_an_answer_that_raises_is_told_so():
    asked = Holds(FUNCTION, lambda answer: answer(1, 2), "")
    assert asked.trouble(lambda: 3).startswith("using it raised TypeError: ")


def test_an_object_where_a_class_is_asked_for_is_told_so():
    exercise = EXERCISES["4.4.3"]
    layer = LinearConfig(2, 2).init(Numpy())
    told = "it is an object; give the class itself: Linear, without ( )"
    assert exercise.trouble(layer) == told
    assert EXERCISES["4.4.2"].trouble(Relu).startswith("it is the class Relu itself")


class Longest(Module):
    first: Linear
    second: Linear

    def forward(self, x):
        x = Relu().forward(self.first.forward(x))
        return Relu().forward(self.second.forward(x))


class Bent(Longest):
    def forward(self, x):
        return self.second.forward(self.first.forward(x))


def mlp(kind):
    sizes = {"first": (784, 32), "second": (32, 10)}
    layers = {name: LinearConfig(*each).init(Numpy()) for name, each in sizes.items()}
    return kind(**layers)


class Straight(Longest):
    def forward(self, x):
        return self.second.forward(Relu().forward(self.first.forward(x)))


class Letters(Config):
    num_classes: int
    hidden_size: int
    dropout: float = 0.5


Uniform, random = Distribution.Default, Tensor[1].random


def constant(model, item):
    return 7


def unnormalized(model, item):
    images = Tensor[2].from_numpy(item.image, Numpy()).unsqueeze_dim(0)
    return model.forward(images).argmax(1).flatten(0, 1).into_scalar()


def as_tensor(model, item):
    images = MnistBatcher(Numpy()).batch([item]).images
    return model.forward(images).argmax(1).flatten(0, 1)


class Never(train.EarlyStoppingStrategy):
    def should_stop(self, epoch, store):
        return False


class FirstLoss(train.NumericMetric):
    name = "First loss"
    Input = train.LossInput

    def update(self, item, metadata):
        first = float(np.asarray(item.tensor)[0])
        return self.state.update(first, 1, self.options)


class Forgetful(FirstLoss):
    def update(self, item, metadata):
        worst = item.tensor.max().into_scalar()
        return self.state.update(worst, 1, self.options)

    def clear(self):
        pass


@dataclass
class OneColumn(train.Adaptor):
    score: Tensor
    positive: Tensor


class WrongWay(OneColumn):
    pass


def adapted(outputs):
    kind = train.AccuracyInput
    return {kind: lambda item: kind(outputs(item.score), item.positive)}


OneColumn.adapts = adapted(lambda score: score.unsqueeze_dim(1))
WrongWay.adapts = adapted(lambda score: Tensor.stack([score, -score], 1))


class CountsOps(Decorator):
    numbers = 0

    def run(self, op, values, attrs):
        self.numbers += 1
        return self.inner.run(op, values, attrs)


@cases(
    "number near said",
    ("3.1.2", Letters(26, 64), "its dropout is 0.5, and should be 0.25"),
    ("3.1.4", mlp(Bent), "forward leaves out the Relu"),
    ("3.1.4", mlp(Longest), "forward ends with a Relu, too"),
    ("3.2.3", InMemDataset(range(10)), "item 2 is 2, and should be the square"),
    ("3.4.3", Tensor.from_floats([1, 2], Autodiff(Numpy())), "its backend still"),
    ("3.5.3", constant, "it does not ask the model"),
    ("3.5.3", lambda model, item: item.label, "for a model that sees a 7: it"),
    ("3.5.3", unnormalized, "the images that the model gets: "),
    ("3.5.3", as_tensor, "for a model that sees a 7: it is a tensor, and should"),
    ("4.1.1", Autodiff(Numpy("f64")), "its whole numbers are i64"),
    ("4.1.2", CountsOps, "it says 3 where 44 were made"),
    ("4.1.3", Counting(Autodiff(Numpy())), "it counts forward ops only"),
    ("4.1.3", Autodiff(Numpy()), "nothing in it counts"),
    ("4.1.4", lambda device: Tensor.zeros([3], device), "its three numbers are"),
    ("4.1.4", lambda of: random([3], Uniform, of), "two calls give different"),
    ("4.3.2", lambda g, x, y: g / y, "it should return two gradients"),
    ("4.3.2", lambda g, x, y: (g / y, g / y), "the gradient for y: "),
    ("4.3.2", lambda g, x, y: (g / y, g * x / y**2), "the gradient for y: its sign"),
    ("4.3.2", lambda g, x, y: (1 / y, -g * x / y**2), "the gradient for x: g is"),
    ("4.3.4", lambda g: None, "with it the slope of x² at 3 is 6"),
    ("4.3.5", Autodiff(Numpy()), "it does not compute relu again"),
    ("4.6.3", Never(), "with an accuracy of 90 % it says go on"),
    ("4.6.4", train.MetricsRenderer(), "after 50, 80 and 70 % its best is None"),
    ("4.8.3", FirstLoss, "for the loss [1.0, 5.0, 3.0] its value is 1.0"),
    ("4.8.3", Forgetful, "after clear() it shows 'epoch 3.67"),
    ("4.8.4", OneColumn, "its outputs are [4, 1]"),
    ("4.8.4", WrongWay, "three of four are right, and it logs 25,4"),
)
def test_a_near_miss_is_told_in_what_respect(number, near, said):
    assert (EXERCISES[number].trouble(near) or "").startswith(said)


def reads(model, item):
    return int(as_tensor(model, item).into_scalar())


@cases(
    "number right",
    ("3.1.4", mlp(Straight)),
    ("3.4.3", floats(1, 2)),
    ("3.5.3", reads),
    ("4.3.2", lambda g, x, y: [g / y, -g * x / y / y]),
)
def test_what_is_right_in_other_words_passes(number, right):
    assert EXERCISES[number].trouble(right) is None


def test_peek_prints_an_op_with_its_gradients_and_its_file(said):
    text = said(learn.peek, ops.sub)
    assert text.startswith("# burnbook/ops/elementwise.py\n")
    assert "def sub(" in text
    assert "sub.grad(" in text


def test_peek_prints_functions_and_classes(said):
    assert "def same(" in said(learn.peek, learn.same)
    assert "class Value" in said(learn.peek, Value)


@cases(
    "picture text",
    (Images(np.zeros((2, 4, 5)), ["a", "b"]), "Images(2 of 4 × 5: a, b)"),
    (Bars({"a": 1, "b": 2.5}, "Counts"), "Bars(Counts; a, b)"),
    (Lines({"loss": [3, 2, 1.0]}, "A run"), "Lines(A run; loss; 3 points)"),
    (Lines({"flat": [1.0, 1.0]}), "Lines(; flat; 2 points)"),
)
def test_pictures_are_png_and_one_line_of_text(picture, text):
    assert picture.png().startswith(b"\x89PNG")
    assert repr(picture) == text


def test_drawings_have_twice_the_pixels_they_take_on_the_page():
    data, size = Bars({"a": 1}, "Counts")._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert size == {"width": 403, "height": 50}
    assert Images(np.zeros((1, 4, 5)))._repr_png_().startswith(b"\x89PNG")


@cases(
    "picture",
    Lines({"loss": [3, 2, 1.0]}, "损失"),
    Bars({"训练": 1, "valid": 2}, "Counts"),
)
def test_chinese_words_are_left_to_the_fonts_of_the_reader(picture):
    assert picture.png() is None
    svg = picture._repr_svg_()
    assert "Noto Sans CJK" in svg
    assert picture.drawing().title in svg
    latin = Lines({"loss": [3, 2, 1.0]}, "A run")
    assert latin._repr_svg_() is None
    assert "CJK" not in latin.drawing().svg()


@pytest.mark.parametrize("name", ["0.15 → 0.17", "σ²", "café"])
def test_letters_that_pillow_lacks_are_left_to_them_too(name):
    picture = Bars({name: 1}, "Counts")
    assert picture.png() is None
    assert name in picture._repr_svg_()
    assert "CJK" not in picture._repr_svg_()


def test_pillow_writes_every_letter_of_ascii():
    names = "".join(map(chr, range(32, 127)))
    assert Bars({names: 1}, names).png().startswith(b"\x89PNG")


def test_bars_leave_room_for_wide_names():
    narrow, wide = Bars({"aaaa": 1}).drawing(), Bars({"训练训练": 1}).drawing()
    assert wide.width == narrow.width + 4 * 7


def test_images_show_the_values_they_are_given():
    image = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    sheet = opened(Images(image, zoom=1))
    grey = [[sheet.getpixel((x, y))[0] for x in (0, 1)] for y in (0, 1)]
    assert grey == [[0, 255], [255, 0]]


# ── pictures that can be read (N23) ─────────────────────────────────────────


class Alts(HTMLParser):
    """The images of a page, with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.images = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            self.images.append(dict(attrs))


@cases(
    "picture words",
    (
        Lines({"loss": [3, 2.5, 1.0]}, "Run", x_label="step"),
        "Run. Line chart over step: loss from 3 at 0 to 1 at 2, lowest 1, highest 3",
    ),
    (
        Lines({"a <b>": [np.nan, 2.0, np.inf]}),
        "Line chart over position: a <b> from 2 at 1 to 2 at 1, lowest 2, highest 2",
    ),
    (
        Bars({"right": 98.7, "wrong": 0.0008113}, "Percent"),
        "Percent. Bar chart: right: 98.7; wrong: <0.1",
    ),
    (
        Images(np.zeros((2, 4, 5)), ["seven", "one"]),
        "2 gray images of 5 by 4 pixels: seven, one",
    ),
    (Images(np.zeros((1, 3, 4, 5))), "One color image of 5 by 4 pixels"),
    (Images(np.zeros((1, 4, 5)), alt="a seven"), "a seven"),
)
def test_pictures_say_what_is_to_be_seen(picture, words):
    assert picture.words == words
    bundle, metadata = picture._repr_mimebundle_()
    (image,) = Alts(bundle["text/html"]).images
    assert image["alt"] == words
    assert image["src"].startswith("data:image/png;base64,iVBOR")
    assert metadata["image/png"]["alt"] == words
    assert bundle["text/plain"] == repr(picture)
    if not isinstance(picture, Images):
        assert picture.drawing().title == words


def test_a_line_chart_has_two_axes_with_labels():
    values = 2.3 * np.exp(-np.arange(30) / 6)
    sheet = Lines({"loss": values}, "A run", x_label="step", y_label="nats").drawing()
    texts = [shape.text for shape in sheet.shapes if isinstance(shape, Words)]
    for text in ("A run", "step", "nats", "loss", "0.5", "2.0", "0", "10", "25"):
        assert text in texts
    far = Lines({"r": [1, 2, 3]}, x=[1e-5, 1e-4, 1e-3], x_label="rate", log=True)
    texts = [shape.text for shape in far.drawing().shapes if isinstance(shape, Words)]
    assert {"1e-5", "0.0001", "0.001"} <= set(texts)


def test_names_of_lines_wrap_and_nothing_overlaps():
    lines = {f"a rather long name {i}": [i, 2 * i] for i in range(8)}
    sheet = Lines(lines, x_label="step").drawing()
    words = [s for s in sheet.shapes if isinstance(s, Words) and s.anchor == "start"]
    names = [(*s.at, s.text) for s in words if s.text in lines]
    assert len(names) == 8
    assert len({y for _, y, _ in names}) > 1
    for left, y, text in names:
        assert left + 7 * len(text) <= sheet.width
        assert y <= sheet.height
        beside = [x for x, other, _ in names if other == y and x > left]
        assert all(x >= left + 7 * len(text) for x in beside)


@cases(
    "picture",
    Lines({}),
    Lines({"empty": []}),
    Lines({"odd": [np.nan, np.inf, -np.inf]}),
    Lines({"one": [5.0]}),
    Lines({"tiny": [1e-30, 2e-30]}),
    Lines({"huge": [1e30, -1e30]}),
    Bars({}),
    Bars({"a": float("nan"), "b": float("inf"), "c": -2.0}),
    Images(np.full((1, 4, 5), np.nan)),
    Images(np.zeros((0, 4, 5))),
)
def test_odd_numbers_are_drawn_too(picture):
    bundle, _ = picture._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG")


def test_words_of_pictures_have_paper_and_contrast():
    """Grey words on a clear background can be read on white or on black, not both."""
    sheet = opened(Lines({"a": [1, 2]}, "A run")).convert("RGBA")
    corners = [(0, 0), (sheet.width - 1, sheet.height - 1)]
    assert all(min(sheet.getpixel(corner)) >= 250 for corner in corners)
    darkest = min(sum(pixel[:3]) for _, pixel in sheet.getcolors(1_000_000))
    assert darkest <= sum(bytes.fromhex(LIGHT["ink"][1:])) + 12


def test_colors_stay_what_they_are():
    red = np.zeros((1, 3, 2, 2))
    red[0, 0] = 1.0
    for images in (red, np.moveaxis(red, 1, -1), (255 * red).astype(int)):
        sheet = opened(Images(images, zoom=1))
        assert sheet.getpixel((0, 0)) == (255, 0, 0, 255)


def test_a_picture_is_saved_in_the_form_that_its_path_ends_in(tmp_path):
    lines, sheet = Lines({"loss": [3, 2, 1.0]}, "A <run>"), Images(np.eye(4)[None])
    for picture in (lines, Bars({"a": 1.0, "b": 2.0}, "Both"), sheet):
        path = picture.save(tmp_path / "new" / "one.PNG")
        assert Image.open(path).tobytes() == opened(picture).tobytes()
        text = picture.save(tmp_path / "one.html").read_text("utf-8")
        assert text.startswith("<!doctype html>")
        assert picture._repr_mimebundle_()[0]["text/html"] in text
        assert "<run>" not in text
    root = ElementTree.parse(lines.save(str(tmp_path / "one.svg"))).getroot()
    assert root.tag.endswith("svg")
    assert root.get("aria-label") == lines.words
    kept = (tmp_path / "one.svg").read_bytes()
    with pytest.raises(ConfigError, match=r"Images is no .svg\n.*one.png or one.html"):
        sheet.save(tmp_path / "one.svg")
    with pytest.raises(ConfigError, match=r"no file without an ending\n.*one.svg or"):
        lines.save(tmp_path / "one")
    assert (tmp_path / "one.svg").read_bytes() == kept


def test_a_view_is_saved_as_the_page_that_it_leaves(tmp_path):
    view = SchedulePlot(LrSchedulerConfig.Constant(0.1), steps=4)
    assert view.still() in view.save(tmp_path / "rate.html").read_text("utf-8")
    with pytest.raises(ConfigError, match=r"SchedulePlot is no .png\n.*rate.html"):
        view.save(tmp_path / "rate.png")
