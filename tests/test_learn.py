"""The helpers of the chapters: same, check, peek, and the small pictures."""

from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("PIL", reason="pictures are drawn with the [lab] extra")

from burnbook import ops
from burnbook.backend import Counting, Decorator
from burnbook.prelude import Autodiff, Int, Numpy, Tensor
from burnbook.train import (
    AccuracyInput,
    Adaptor,
    EarlyStoppingStrategy,
    LossInput,
    MetricsRenderer,
    NumericMetric,
)
from burnbook_widgets import learn
from burnbook_widgets.chapters import exercises
from burnbook_widgets.chapters.answers import Holds, Value
from burnbook_widgets.pictures import Bars, Images, Lines


@pytest.fixture
def said(capsys):
    def run(function, *arguments):
        function(*arguments)
        return capsys.readouterr().out

    return run


def floats(*values):
    return Tensor.from_floats(list(values), Numpy())


def test_same_says_so_for_tensors_arrays_and_lists(said):
    assert (
        said(learn.same, floats(1, 2), [1.0, 2.0])
        == "✔ the same: 2 values, shape [2]\n"
    )
    assert said(learn.same, 3.0, np.float32(3)) == "✔ the same: 1 value, shape []\n"


def test_same_says_what_differs(said):
    assert said(learn.same, [1, 2], [[1], [2]]).startswith(
        "✘ different shapes: [2] and"
    )
    assert said(learn.same, [1, 2, 3], [1, 2, 4]) == "✘ 1 of 3 values differ\n"


def test_same_forgives_rounding_but_not_more(said):
    assert said(learn.same, [1.0], [1.000001]).startswith("✔")
    assert said(learn.same, [1.0], [1.001]).startswith("✘")


def test_an_untouched_exercise_waits(said):
    assert said(learn.check, "1.1", ...) == "✎ 1.1 not tried yet\n"


def test_a_right_answer_passes_and_a_wrong_one_gets_a_hint(said):
    assert said(learn.check, "1.1", 6) == "✔ 1.1\n"
    wrong = said(learn.check, "1.1", 7)
    assert wrong.startswith("✘ 1.1: not that value\n  hint: ")
    assert "6" not in wrong.replace("1.1", "")  # a hint, not the answer


def trouble(right, answer):
    return Value(lambda: right, "").trouble(answer)


def test_answers_are_compared_by_kind_shape_and_value():
    right = floats(1, 2)
    assert trouble(right, floats(1, 2)) is None
    assert trouble(right, [1.0, 2.0]) == "it is a list, and should be a tensor"
    assert trouble(5, floats(5)) == "it is a Tensor, and should be not a tensor"
    assert "Int" in trouble(right, Tensor[1, Int].from_ints([1, 2], Numpy()))
    assert trouble(right, floats(1, 2, 3)).startswith("its shape is [3]")
    assert trouble(right, floats(3, 3)) == "wrong in 2 places"
    assert trouble(5, "five") == "it is a str, and should be a number"


def test_an_answer_that_raises_is_told_so():
    asked = Holds(lambda answer: answer.no_such_thing, "")
    assert "AttributeError" in asked.trouble(3)


@pytest.mark.parametrize("number", list(exercises.EXERCISES))
def test_no_exercise_accepts_nothing(number):
    exercise = exercises.EXERCISES[number]
    assert exercise.hint
    for nothing in (None, "", [], object()):
        assert exercise.trouble(nothing) is not None


class Never(EarlyStoppingStrategy):
    def should_stop(self, epoch, store):
        return False


class FirstLoss(NumericMetric):
    name = "First loss"
    Input = LossInput

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
class OneColumn(Adaptor):
    score: Tensor
    positive: Tensor


class WrongWay(OneColumn):
    pass


OneColumn.adapts = {
    AccuracyInput: lambda it: AccuracyInput(it.score.unsqueeze_dim(1), it.positive)
}
WrongWay.adapts = {
    AccuracyInput: lambda it: AccuracyInput(
        Tensor.stack([it.score, -it.score], 1), it.positive
    )
}


class CountsOps(Decorator):
    numbers = 0

    def run(self, op, values, attrs):
        self.numbers += 1
        return self.inner.run(op, values, attrs)


@pytest.mark.parametrize(
    ("number", "near", "said"),
    [
        ("4.1.1", Autodiff(Numpy("f64")), "its whole numbers are i64"),
        ("4.1.2", CountsOps, "it says 3 where 44 were made"),
        ("4.1.3", Counting(Autodiff(Numpy())), "it counts forward ops only"),
        ("4.1.3", Autodiff(Numpy()), "nothing in it counts"),
        ("4.1.4", lambda device: Tensor.zeros([3], device), "its three numbers are"),
        ("4.1.4", lambda device: np.random.rand(3), "two calls give different"),
        ("4.3.2", lambda g, x, y: (g / y, g / y), "the gradient for y is another"),
        ("4.3.4", lambda g: None, "with it the slope of x² at 3 is 6"),
        ("4.3.5", Autodiff(Numpy()), "it does not compute relu again"),
        ("4.6.3", Never(), "with 90 % it says go on"),
        ("4.6.4", MetricsRenderer(), "after 50, 80 and 70 % it says None"),
        ("4.8.3", FirstLoss, "for the loss [1.0, 5.0, 3.0] its value is 1.0"),
        ("4.8.3", Forgetful, "after clear() it shows 'epoch 3.67"),
        ("4.8.4", OneColumn, "its outputs are [4, 1]"),
        ("4.8.4", WrongWay, "three of four are right, and it logs 25,4"),
    ],
)
def test_a_near_miss_is_told_in_what_respect(number, near, said):
    assert exercises.EXERCISES[number].trouble(near).startswith(said)


def test_peek_prints_an_op_with_its_gradients_and_its_file(said):
    text = said(learn.peek, ops.sub)
    assert text.startswith("# burnbook/ops/elementwise.py\n")
    assert "def sub(" in text
    assert "sub.grad(" in text


def test_peek_prints_functions_and_classes(said):
    assert "def same(" in said(learn.peek, learn.same)
    assert "class Value" in said(learn.peek, Value)


@pytest.mark.parametrize(
    ("picture", "text"),
    [
        (Images(np.zeros((2, 4, 5)), ["a", "b"]), "Images(2 of 4 × 5: a, b)"),
        (Bars({"a": 1, "b": 2.5}, "Counts"), "Bars(Counts; a, b)"),
        (Lines({"loss": [3, 2, 1.0]}, "A run"), "Lines(A run; loss; 3 points)"),
        (Lines({"flat": [1.0, 1.0]}), "Lines(; flat; 2 points)"),
    ],
)
def test_pictures_are_png_and_one_line_of_text(picture, text):
    assert picture.png().startswith(b"\x89PNG")
    assert repr(picture) == text


def test_drawings_have_twice_the_pixels_they_take_on_the_page():
    data, size = Bars({"a": 1}, "Counts")._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert size == {"width": 403, "height": 50}
    assert Images(np.zeros((1, 4, 5)))._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "picture",
    [Lines({"loss": [3, 2, 1.0]}, "损失"), Bars({"训练": 1, "valid": 2}, "Counts")],
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
    import io

    from PIL import Image

    image = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    sheet = Image.open(io.BytesIO(Images(image, zoom=1).png()))
    grey = [[sheet.getpixel((x, y))[0] for x in (0, 1)] for y in (0, 1)]
    assert grey == [[0, 255], [255, 0]]
