"""The graph view of a captured program."""

import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")

import numpy as np

from burnbook.backend import Autodiff, Numpy
from burnbook.examples.guide.model import ModelConfig
from burnbook.optim import SgdConfig
from burnbook.program import capture, capture_training
from burnbook.tensor import Tensor
from burnbook_widgets import GraphView

DEVICE = Numpy()
AD = Autodiff(DEVICE)


def program(device=DEVICE):
    model = ModelConfig(10, 16).init(device)
    return capture(model, Tensor.ones([2, 28, 28], device))


def test_a_program_is_drawn_with_its_shapes():
    view = GraphView(program())
    labels = [part.label for part in view.parts]
    assert "conv1.conv2d = conv2d" in labels
    assert "conv1.weight" in labels
    assert view.parts[-1].size == "[n, 10]"
    assert repr(view).startswith("GraphView(linear2.linear = linear [n, 10]; 9 ops")


def test_its_steps_are_walked_forward():
    view = GraphView(program())
    assert view.steps == 9
    view.step = 2
    text = view.caption()
    assert "conv2d makes conv1.conv2d [n, 8, 26, 26]" in text
    assert "conv1.weight" in text


def test_its_constants_have_values_and_say_what_they_are():
    found = program()
    view = GraphView(found)
    view.chosen = "conv1.weight"
    facts = {name: text for name, text, _ in view.facts()}
    assert facts["kind"] == "parameter"
    assert facts["known from"] == "the program holds it"
    np.testing.assert_array_equal(
        view.value("conv1.weight"), found.parameters["conv1.weight"]
    )
    assert view.value("images") is None


def test_its_modules_are_groups():
    view = GraphView(program())
    assert "Model.conv1" in view.groups
    view.unfold()
    assert "<svg" in view.still()


def test_a_training_step_is_drawn_with_its_gradients():
    model = ModelConfig(10, 16).init(AD)
    given = Tensor.ones([2, 28, 28], AD), Tensor.from_ints([1, 2], AD)
    training = capture_training(
        model,
        lambda model, x, y: model.forward_classification(x, y),
        SgdConfig().init(),
        *given,
    )
    view = GraphView(training)
    assert view.steps == len(training.program.steps)
    called = [part.called for part in view.parts]
    assert "key" in called
    assert "conv1.weight.sgd_step" in called
    view.chosen = "conv1.weight"
    assert view.facts()[1][1] == "state that a step changes"
    assert "<svg" in view.still()
