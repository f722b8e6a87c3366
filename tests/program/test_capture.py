"""capture: what a program is made of, and what cannot become one."""

import functools
import pickle
import re
from math import log, sqrt

import numpy as np
import pytest

from burnbook import nn, ops
from burnbook.backend import Autodiff, Counting, Fusion, Numpy
from burnbook.core.errors import (
    ArgumentError,
    DimError,
    GraphError,
    KindError,
    RecordError,
    ShapeError,
)
from burnbook.core.rng import Stream, use_stream
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import Lora, Module, Param, Quantizer
from burnbook.program import Dim, Program, capture, resolved
from burnbook.tensor import Distribution, Float, Tensor
from burnbook.tensor.activation import log_softmax
from burnbook.tensor.quantization import Calibration, QuantScheme
from tests.support.cases import cases

DEVICE = Numpy()
AD = Autodiff(DEVICE)


def drawn(*shape, device=DEVICE, seed=0):
    array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Tensor.from_numpy(array, device)


class Mlp(Module):
    first: nn.Linear
    second: nn.Linear
    activation: nn.Relu

    def forward(self, x):
        x = self.activation.forward(self.first.forward(x))
        return self.second.forward(x).softmax(1)

    @classmethod
    def make(cls, device=DEVICE, seed=1):
        with use_stream(Stream(seed)):
            first = nn.LinearConfig(4, 6).init(device)
            made = cls(first, nn.LinearConfig(6, 3).init(device), nn.Relu())
            for _, param in made.named_params():
                param.val()
        return made


def names(program):
    return [step.op.name for step in program.steps]


# What a program says


LISTING = """\
Mlp(x [n, 4] f32):
  first.weight [4, 6] f32                                                   # parameter
  first.bias [6] f32                                                        # parameter
  second.weight [6, 3] f32                                                  # parameter
  second.bias [3] f32                                                       # parameter
  first.linear [n, 6] = linear(x, first.weight, first.bias)                 # Mlp.first, mlp.py:1
  activation.relu [n, 6] = relu(first.linear)                               # Mlp.activation, mlp.py:1
  second.linear [n, 3] = linear(activation.relu, second.weight, second.bias)  # Mlp.second, mlp.py:1
  softmax [n, 3] = softmax(second.linear, dim=1)                            # Mlp, mlp.py:1
  return softmax"""  # noqa: E501 - as it is printed


def test_a_program_is_listed_with_shapes_modules_and_lines():
    text = str(capture(Mlp.make(), drawn(2, 4)))
    assert re.sub(r"test_capture\.py:\d+", "mlp.py:1", text) == LISTING


def test_a_step_knows_the_users_line():
    program = capture(Mlp.make(), drawn(2, 4))
    assert program.steps[0].line.text == (
        "x = self.activation.forward(self.first.forward(x))"
    )
    assert program.steps[-1].line.text.startswith("return self.second")
    assert program.steps[0].path == "Mlp.first"


def test_ops_are_the_declared_ones():
    program = capture(Mlp.make(), drawn(2, 4))
    assert [step.op for step in program.steps] == [
        *(ops.linear, ops.relu, ops.linear, ops.softmax)
    ]


def test_names_of_values_are_unique():
    def four(x):
        return x.exp().exp().exp() + x.exp()

    program = capture(four, drawn(2))
    found = [value.name for value in program.values]
    assert found == ["x", "exp", "exp_2", "exp_3", "exp_4", "add"]


def test_an_input_called_as_an_op_does_not_take_its_name():
    program = capture(lambda relu: relu.relu(), drawn(2))
    assert [value.name for value in program.values] == ["relu", "relu_2"]


def test_how_often_a_value_is_used():
    program = capture(lambda x: x * x + x.exp(), drawn(2))
    (x,) = program.inputs
    assert program.uses[x] == 2
    assert program.uses[program.outputs[0]] == 1


# Constants


def test_parameters_have_their_module_path_and_share_their_array():
    model = Mlp.make()
    program = capture(model, drawn(2, 4))
    assert list(program.parameters) == [
        *("first.weight", "first.bias", "second.weight", "second.bias")
    ]
    assert program.parameters["first.weight"] is model.first.weight.val().value


class Tied(Module):
    here: Param
    there: Param

    def forward(self, x):
        return x @ self.here.val() + x @ self.there.val()


def test_a_shared_parameter_is_one_constant():
    param = Param.from_tensor(drawn(3, 3))
    program = capture(Tied(param, param), drawn(2, 3))
    assert [value.name for value in program.constants] == ["here"]


def test_running_statistics_are_buffers():
    program = capture(nn.BatchNormConfig(3).init(DEVICE), drawn(2, 3, 4, 4))
    kinds = {value.name: value.kind for value in program.constants}
    assert kinds == {
        "gamma": "parameter",
        "beta": "parameter",
        "running_mean": "buffer",
        "running_var": "buffer",
    }


def test_other_tensors_are_constants_each_once():
    shift = drawn(4, seed=1)
    program = capture(lambda x: x + shift.unsqueeze() * shift.unsqueeze(), drawn(2, 4))
    assert [(v.name, v.kind) for v in program.constants] == [("constant", "constant")]


def test_a_function_finds_the_models_that_it_uses():
    model = Mlp.make()
    program = capture(lambda x: model.forward(x).log(), drawn(2, 4))
    assert "first.weight" in program.parameters


def test_several_models_have_the_names_of_their_variables():
    one, two = nn.LinearConfig(4, 4).init(DEVICE), nn.LinearConfig(4, 4).init(DEVICE)
    program = capture(lambda x: two.forward(one.forward(x)), drawn(2, 4))
    assert set(program.parameters) == {
        *("one.weight", "one.bias", "two.weight", "two.bias")
    }


def test_a_method_and_a_partial_function_find_theirs():
    model = Mlp.make()
    for function in (model.forward, functools.partial(Mlp.forward, model)):
        assert "second.bias" in capture(function, drawn(2, 4)).parameters


# The batch


def test_sizes_follow_the_batch():
    program = capture(lambda x: x.reshape([-1, 2]), drawn(2, 6))
    assert program.inputs[0].shape == (Dim(1), 6)
    assert program.outputs[0].shape == (Dim(3), 2)
    assert str(program.steps[0]) == "reshape [n*3, 2] = reshape(x, shape=(n*3, 2))"


def test_a_size_may_have_a_constant_part():
    extra = drawn(1, 3, seed=1)
    program = capture(lambda x: Tensor.cat([extra, x, x], 0), drawn(2, 3))
    assert str(program.outputs[0]) == "cat [n*2 + 1, 3] f32"
    assert program.run(np.zeros((5, 3), np.float32))[0].shape == (11, 3)


def test_attributes_follow_the_batch():
    program = capture(lambda x: x.reshape([x.dims()[0] * 3, 2]), drawn(2, 6))
    attrs = program.steps[0].attrs
    assert attrs == {"shape": (Dim(3), 2)}
    assert resolved(attrs, 7) == {"shape": (21, 2)}


def test_numbers_follow_the_batch():
    program = capture(lambda x: x.sum_dim(0) / x.dims()[0], drawn(2, 3))
    x = np.ones((7, 3), np.float32)
    np.testing.assert_array_equal(program.run(x)[0], np.ones((1, 3)))


def test_another_dim_may_be_the_batch():
    lstm = nn.LstmConfig(3, 4, True).with_batch_first(False).init(DEVICE)
    program = capture(lambda x: lstm.forward(x, None)[0], drawn(5, 2, 3), batch=1)
    assert program.inputs[0].shape == (5, Dim(1), 3)
    x = drawn(5, 4, 3, seed=2)
    assert program.check(lambda x: lstm.forward(x, None)[0], x).first_difference is None


def test_no_dim_may_be_the_batch():
    program = capture(lambda x: x * 2.0, drawn(2, 6), batch=None)
    assert program.inputs[0].shape == (2, 6)
    assert not program.has_batch
    with pytest.raises(ShapeError, match="x has another shape"):
        program.run(np.zeros((3, 6), np.float32))


def test_each_input_may_say_what_its_batch_is():
    program = capture(lambda x, y: x @ y, drawn(2, 2), drawn(2, 2), batch=(0, None))
    assert program.outputs[0].shape == (Dim(1), 2)
    assert program.inputs[1].shape == (2, 2)


def test_inputs_of_another_length_are_fixed():
    program = capture(lambda x, y: x @ y, drawn(5, 2), drawn(2, 3))
    assert [str(value) for value in program.inputs] == ["x [n, 2] f32", "y [2, 3] f32"]


def test_inputs_must_agree_about_the_batch():
    program = capture(lambda x, y: x + y, drawn(2, 3), drawn(2, 3))
    with pytest.raises(ShapeError, match="y has another shape"):
        program.run(np.zeros((3, 3), np.float32), np.zeros((4, 3), np.float32))


@cases(
    "make",
    lambda n: Tensor.zeros([n, 2]),
    lambda n: Tensor.full([n, 2], 2.5),
    lambda n: Tensor.arange(n).float().reshape([-1, 1]).expand([n, 2]),
    lambda n: Tensor.arange(3, n + 3).float().reshape([-1, 1]).expand([n, 2]),
    lambda n: Tensor.arange(2, 2 * n + 2, step=2).float().reshape([-1, 1]) * 1.0,
    lambda n: Tensor.arange(n, 2 * n).float().reshape([-1, 1]).expand([n, 2]),
    lambda n: (
        Tensor.arange(2 * n + 1, 5 * n + 1, step=3).float().reshape([-1, 1]) * 1.0
    ),
    lambda n: Tensor.ones([n, 2]) / n,
    lambda n: Tensor.from_data([[1.0, 2.0]] * n),
)
def test_tensors_that_are_made_for_the_batch_follow_it(make):
    def function(x):
        return x + make(x.dims()[0])

    program = capture(function, drawn(2, 2))
    for size in (1, 2, 6):
        x = drawn(size, 2, seed=3)
        np.testing.assert_array_equal(
            np.asarray(program(x)), np.asarray(x + make(size))
        )


def test_a_range_may_be_empty_for_one_row():
    def function(x):
        return x, Tensor.arange(2, x.dims()[0] + 1)

    program = capture(function, drawn(3, 2))
    for size in (1, 2, 6):
        x = drawn(size, 2, seed=3)
        np.testing.assert_array_equal(program(x)[1], function(x)[1])


def squares(n):
    return [[float(i * i)] for i in range(n)]


def test_a_tensor_that_no_rule_explains_is_refused():
    with pytest.raises(GraphError, match="a tensor that Python made") as caught:
        capture(lambda x: Tensor.from_data(squares(x.dims()[0])) * x, drawn(2, 1))
    assert "Tensor.from_data(squares(" in str(caught.value)
    assert "Tensor.ones([n, 3], device) / n" in str(caught.value)


# What comes in and goes out


def test_arguments_and_results_may_be_trees():
    def function(pair, more):
        x, y = pair
        return {"sum": x + y, "more": [more["z"] * 2.0, (x,)]}

    given = (drawn(2, 3), drawn(2, 3, seed=1)), {"z": drawn(2, 1)}
    program = capture(function, *given)
    assert [v.name for v in program.inputs] == ["pair.0", "pair.1", "more.z"]
    made = program(*given)
    assert set(made) == {"sum", "more"}
    np.testing.assert_array_equal(made["more"][1][0], given[0][0])
    np.testing.assert_array_equal(made["sum"], given[0][0] + given[0][1])


def test_arguments_may_be_dataclasses():
    layer = nn.MultiHeadAttentionConfig(4, 2).init(DEVICE)
    x, memory = drawn(2, 3, 4), drawn(2, 5, 4)
    mask = Tensor.from_data([[False, True, False, False, True]] * 2, DEVICE)
    given = nn.MhaInput.new(x, memory, memory).mask_pad(mask)
    program = capture(layer, given)
    assert [v.name for v in program.inputs][:2] == ["input.query", "input.key"]
    np.testing.assert_array_equal(program(given).context, layer.forward(given).context)


def test_a_state_goes_in_and_comes_out():
    layer = nn.LstmConfig(3, 4, True).init(DEVICE)
    x = drawn(2, 5, 3)
    _, state = layer.forward(x, None)
    program = capture(layer, x, state)
    names = [value.name for value in program.inputs]
    assert names == [names[0], "state.cell", "state.hidden"]
    made, wanted = program(x, state), layer.forward(x, state)
    assert type(made[1]) is type(wanted[1])
    np.testing.assert_array_equal(made[1].cell, wanted[1].cell)


def test_a_model_may_return_its_input():
    program = capture(nn.Identity(), drawn(2, 3))
    assert program.steps == ()
    assert program.outputs == program.inputs


def test_inputs_may_be_unused():
    program = capture(lambda x, y: x.exp(), drawn(2), drawn(2))
    assert [value.name for value in program.inputs] == ["x", "y"]
    assert program.uses[program.inputs[1]] == 0


def test_the_same_tensor_twice_is_two_inputs():
    x = drawn(2, 3)
    program = capture(lambda a, b: a - b, x, x)
    out = program.run(np.full((1, 3), 5.0, "f"), np.full((1, 3), 3.0, "f"))
    np.testing.assert_array_equal(out[0], np.full((1, 3), 2.0))


def test_the_same_output_twice_is_one_value():
    def function(x):
        y = x.exp()
        return y, y

    program = capture(function, drawn(2))
    assert program.outputs[0] is program.outputs[1]


def test_a_function_of_nothing_has_constants_only():
    weight = drawn(2, 3)
    program = capture(lambda: weight.exp())
    assert program.inputs == ()
    np.testing.assert_array_equal(program.run()[0], np.asarray(weight.exp()))
    np.testing.assert_array_equal(program(), weight.exp())


def test_a_constant_may_be_a_result():
    weight = drawn(2, 3)
    program = capture(lambda x: (x.exp(), weight), drawn(2))
    assert program.outputs[1].kind == "constant"
    np.testing.assert_array_equal(program(drawn(2))[1], weight)


def test_arguments_that_are_no_tensors_stay_as_they_were():
    program = capture(lambda x, power: x**power, drawn(2), 3)
    np.testing.assert_allclose(program.run(np.float32([2.0]))[0], [8.0])


def test_whole_numbers_and_truth_values_go_through():
    program = capture(lambda x: (x * 2, x.greater_elem(1)), Tensor.from_ints([1, 2]))
    assert [v.dtype_name for v in program.outputs] == ["i64", "bool"]
    made = program(Tensor.from_ints([1, 2, 3]))
    assert np.asarray(made[1]).tolist() == [False, True, True]


# Where it runs


def test_a_model_on_autodiff_is_captured_below_it():
    model = ModelConfig(10, 16).init(AD)
    program = capture(model, drawn(2, 28, 28, device=AD))
    assert program.backend is DEVICE
    assert "dropout" not in names(program)
    x = drawn(3, 28, 28)
    np.testing.assert_array_equal(program(x), model.valid().forward(x))


def test_gradients_flow_through_a_program():
    program = capture(Mlp.make(), drawn(2, 4))
    x, y = (drawn(3, 4, device=AD).require_grad() for _ in range(2))
    one = x.grad(program(x).square().sum().backward())
    other = y.grad(Mlp.make(AD).forward(y).square().sum().backward())
    np.testing.assert_array_equal(one, other)


def test_a_program_runs_on_another_backend():
    program = capture(Mlp.make(), drawn(2, 4))
    counting = Counting(DEVICE)
    program.run(np.zeros((2, 4), np.float32), backend=counting)
    assert counting.counts == {"linear": 2, "relu": 1, "softmax": 1}
    double = program.run(np.zeros((2, 4)), backend=Numpy(float="f64"))
    assert double[0].dtype == np.float64


def test_every_run_is_alike_after_a_capture():
    model = Mlp.make()
    before = dict(vars(DEVICE)), dict(vars(AD))
    capture(model, drawn(2, 4))
    with pytest.raises(GraphError):
        capture(lambda x: x * float(x.sum()), drawn(2, 4))
    assert (dict(vars(DEVICE)), dict(vars(AD))) == before
    assert type(model.forward(drawn(2, 4)).value) is np.ndarray


def test_a_capture_inside_a_capture_is_refused():
    with pytest.raises(GraphError, match="a capture is running"):
        capture(lambda x: capture(lambda y: y.exp(), x)(x), drawn(2))


# What cannot become a program


def by_truth(x):
    if x.sum() > 0.0:
        return x
    return -x


def by_text(x):
    assert f"{x}"
    return x


def by_export(x):
    return Tensor.from_numpy(np.asarray(x) + 1)


@cases(
    "function named line",
    (by_truth, "a truth value", "if x.sum() > 0.0:"),
    (lambda x: x * x.sum().into_scalar(), "into_scalar()", "x.sum().into_scalar()"),
    (lambda x: Tensor.from_data(x.to_data()), "to_data()", "x.to_data()"),
    (lambda x: x * float(x.sum()), "float(…)", "float(x.sum())"),
    (lambda x: x.narrow(0, int(x.sum()), 1), "int(…)", "int(x.sum())"),
    (by_text, "a formatted text", 'assert f"{x}"'),
    (lambda x: (print(x), x)[1], "print(…) or str(…)", "print(x)"),
    (by_export, "NumPy", "np.asarray(x) + 1"),
    (lambda x: x[x.greater_elem(0.5)], "argwhere", "x[x.greater_elem(0.5)]"),
    ids=lambda case: getattr(case, "__name__", str(case)),
)
def test_python_that_looks_at_elements_is_refused(function, named, line):
    with pytest.raises(GraphError) as caught:
        capture(function, drawn(2, 3))
    text = str(caught.value)
    assert "capture: " in text
    assert "depend" in text
    assert named in text
    assert line in text
    assert "test_capture.py:" in text


def test_looking_inside_a_layer_names_the_layer():
    class Gate(Module):
        def forward(self, x):
            return x if bool(x.sum() > 0.0) else -x

    class Outer(Module):
        gate: Gate

        def forward(self, x):
            return self.gate.forward(x)

    with pytest.raises(GraphError) as caught:
        capture(Outer(Gate()), drawn(2, 3))
    assert dict(caught.value.facts)["module"] == "Outer.gate"


def test_looking_at_what_no_input_reaches_is_fine():
    weight = Tensor.from_floats([3.0])
    program = capture(lambda x: x * float(weight.sum()), drawn(2))
    np.testing.assert_array_equal(program.run(np.float32([2.0]))[0], [6.0])


def by_size(x):
    return x.exp() if x.dims()[0] > 2 else x.log()


@cases(
    "function line",
    (by_size, "return x.exp() if"),
    (lambda x: x * log(x.dims()[0]), "log(x.dims()[0])"),
    (lambda x: x + Tensor.full([x.dims()[0], 3], float(x.dims()[0])), "Tensor.full"),
    (
        lambda x: (
            x * Tensor.from_data([[float(i * i)] * 3 for i in range(x.dims()[0])])
        ),
        "i * i",
    ),
    (lambda x: x * 2.0 ** x.dims()[0], "2.0 ** x.dims()[0]"),
    (lambda x: Tensor.stack([row * 2.0 for row in x], 0), "for row in x"),
    ids=lambda case: getattr(case, "__name__", str(case)),
)
def test_what_no_size_explains_is_refused(function, line):
    with pytest.raises(GraphError) as caught:
        capture(function, drawn(2, 3))
    assert line in str(caught.value)
    assert "batch=None" in str(caught.value)
    assert isinstance(capture(function, drawn(2, 3), batch=None), Program)


def test_a_function_of_one_batch_size_says_so():
    with pytest.raises(GraphError, match="a batch of 3 fails"):
        capture(lambda x: x.reshape([2, 3]), drawn(2, 3))


def test_random_numbers_would_be_frozen():
    with pytest.raises(GraphError, match="random numbers are drawn here") as caught:
        capture(lambda x: x + Tensor.random([3], Distribution.Default), drawn(3))
    assert "Tensor.random" in str(caught.value)


def test_random_numbers_of_python_are_refused_whatever_is_allowed():
    def function(x):
        first, second = x.device().next_key()
        shift = np.random.default_rng([first, second]).random()
        return x + float(shift)

    with pytest.raises(GraphError, match="drawn by Python") as caught:
        capture(function, drawn(2), keys=True)
    assert "first, second = x.device().next_key()" in str(caught.value)


def test_what_a_capture_leaves_behind_says_so():
    left = []

    def function(x):
        left.append(x.exp())
        return left[-1] * 2.0

    capture(function, drawn(2))
    for use in (lambda: left[0] + 1.0, lambda: np.asarray(left[0])):
        with pytest.raises(GraphError, match="a tensor of a capture is used after it"):
            use()


def test_keys_make_new_random_numbers_in_each_run():
    dropout = nn.DropoutConfig(0.5).init()
    x = drawn(4, 50, device=AD)
    program = capture(lambda x: dropout.forward(x), x, keys=True)
    assert [str(key) for key in program.keys] == ["key [2] key"]
    ones = np.ones((4, 50), np.float32)
    one, other = program.run(ones)[0], program.run(ones)[0]
    assert (one != other).any()
    again = [program.run(ones, keys=[(3, 4)])[0] for _ in range(2)]
    np.testing.assert_array_equal(*again)


@cases(
    "call words",
    (lambda: capture(3, drawn(2)), "int is neither a model nor a function"),
    (lambda: capture(Mlp.make(), drawn(2, 4), method="go"), "no method 'go'"),
    (lambda: capture(lambda x, y: x, drawn(2)), "cannot be called with 1 examples"),
    (lambda: capture(lambda x: x, drawn(0, 2)), "no rows"),
    (lambda: capture(lambda x: x, drawn(2), batch=3), "dim 3 does not exist"),
    (lambda: capture(lambda x: x, drawn(2), batch=(0, 0)), "2 dims for 1 tensors"),
)
def test_wrong_calls_are_explained(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


@cases(
    "function cast",
    (lambda x: (x.cast("f64") * 2.0).exp(), "f64"),
    (lambda x: x.cast("f64").sum_dim(1), "f64"),
    (lambda x: x.cast("f16").argmax(1), "f16"),
    (lambda x: x.int().cast("i32").cumsum(1), "i32"),
)
def test_a_cast_to_a_type_of_another_device_is_told(function, cast):
    with pytest.raises(GraphError, match=f"a value was cast to {cast}"):
        capture(function, drawn(2, 3))


def test_a_cast_and_back_is_part_of_the_program():
    x = drawn(2, 3)
    program = capture(lambda x: x.cast("f16").cast("f32") * 3.0, x)
    wanted = np.asarray(x).astype(np.float16).astype(np.float32) * 3
    np.testing.assert_array_equal(np.asarray(program(x)), wanted)


@pytest.mark.parametrize("compiled", [True, False])
def test_an_index_that_no_class_has_is_refused_in_each_run(compiled):
    device = Numpy(compiled=compiled)

    def index(*values):
        return Tensor.from_ints(values, device)

    rows = capture(lambda i: i.one_hot(4), index(0, 1))
    filled = capture(lambda i: i.one_hot_fill(4, 2.0, -1.0), index(0, 1))
    for program in (rows, rows.compile()):
        np.testing.assert_array_equal(program(index(3, 0)), index(3, 0).one_hot(4))
        for wrong in (index(0, -1), index(4, 1), index(-4)):
            with pytest.raises(DimError, match="indices run from"):
                program(wrong)
    for program in (filled, filled.compile()):
        counted = index(-1, -4, 2)  # from the end
        wanted = counted.one_hot_fill(4, 2.0, -1.0)
        np.testing.assert_array_equal(program(counted), wanted)
        for wrong in (index(0, -5), index(4, 1)):
            with pytest.raises(DimError, match="indices run from"):
                program(wrong)


class Settings:
    scale = 2.0

    def __init__(self):
        self.sizes = [1.0, 3.0]


def test_an_object_that_changes_in_place_is_refused():
    settings, x = Settings(), drawn(2, 3)
    program = capture(lambda x, s: x * (s.scale * s.sizes[1]), x, settings)
    for run in (program, program.compile()):
        np.testing.assert_array_equal(run(x, settings), x * 6.0)
        settings.scale = 10.0
        with pytest.raises(ArgumentError, match=r"s\.scale is another value"):
            run(x, settings)
        del settings.scale
        settings.sizes[1] = 4.0
        with pytest.raises(ArgumentError, match=r"s\.sizes is another value"):
            run(x, settings)
        settings.sizes[1] = 3.0


class Trainer:
    def __init__(self, model):
        self.model = model


def test_running_statistics_of_a_module_that_nobody_found_are_refused_and_stay():
    norm = nn.BatchNormConfig(3).init(AD)
    trainer, x = Trainer(norm), drawn(4, 3, device=AD)
    before = np.array(norm.running_mean.val())

    def looks(x):
        return x if trainer.model.forward(x).sum().into_scalar() > 0 else -x

    wrong = [
        (lambda x: trainer.model.forward(x), "a module moves its running statistics"),
        (looks, "into_scalar"),
    ]
    for function, words in wrong:
        with pytest.raises(GraphError, match=words):
            capture(function, x)
        np.testing.assert_array_equal(norm.running_mean.val(), before)
    trainer.model = norm.eval()
    program = capture(lambda x: trainer.model.forward(x), x)
    np.testing.assert_array_equal(program(x), trainer.model.forward(x))
    norm.forward(x)
    assert (np.asarray(norm.running_mean.val()) != before).all()


@pytest.mark.parametrize("size", [1, 2, 20])
def test_examples_that_do_not_fit_are_explained_as_in_a_call(size):
    layer, x = nn.Conv1dConfig(4, 8, 3).init(DEVICE), drawn(size, 5, 20)
    with pytest.raises(ShapeError, match="a layer for 5 channels") as told:
        capture(layer, x)
    assert str(told.value).count("\n") == 4
    assert told.value.__context__ is None


def test_what_fails_for_other_sizes_than_the_examples_says_so():
    def alone(x):
        return x if x.dims()[0] == 1 else x.sum_dim(5)

    with pytest.raises(GraphError, match="a batch of 2 fails: sum_dim: dim 5"):
        capture(alone, drawn(1, 3))


def test_a_model_that_trains_is_checked_as_it_infers():
    model, x = nn.BatchNormConfig(3).init(AD), drawn(4, 3, device=AD)
    assert "All 1 are close" in str(capture(model, x).check(model, x))


def test_a_call_with_too_few_tensors_is_explained():
    program = capture(lambda x, y: x + y, drawn(2), drawn(2))
    with pytest.raises(ArgumentError, match="it takes 2 tensors, and 1 came"):
        program(drawn(2))
    with pytest.raises(ArgumentError, match="it takes 2 inputs, and 1 came"):
        program.run(np.zeros(2))


def test_a_tensor_of_another_kind_is_explained():
    program = capture(lambda x: x.exp(), drawn(2))
    with pytest.raises(ArgumentError, match="x is Int"):
        program(Tensor.from_ints([1]))


# Newer weights


def test_newer_weights_come_from_a_model_a_record_or_a_dict():
    program = capture(Mlp.make(), drawn(2, 4))
    newer = Mlp.make(seed=2)
    x = drawn(3, 4)
    wanted = np.asarray(newer.forward(x))
    assert (np.asarray(program(x)) != wanted).any()
    arrays = {path: np.asarray(p.val()) for path, p in newer.named_params()}
    for source in (newer, newer.into_record(), arrays, Mlp.make(AD, seed=2)):
        np.testing.assert_array_equal(program.with_constants(source)(x), wanted)


def test_weights_that_do_not_fit_are_refused():
    program = capture(Mlp.make(), drawn(2, 4))
    with pytest.raises(RecordError, match="do not fit") as caught:
        program.with_constants({"first.weight": np.zeros((4, 5))})
    assert "first.weight: [4, 5], not [4, 6]" in str(caught.value)
    with pytest.raises(RecordError, match="nothing has a name of the program"):
        program.with_constants({"weight": np.zeros(3)})


class Scaled(Module):
    factor: Param

    def forward(self, x):
        return x * self.factor.val().into_scalar()


def test_a_weight_that_python_looked_at_stays_as_it_is():
    program = capture(Scaled(Param.from_tensor(drawn(1))), drawn(2))
    with pytest.raises(RecordError, match="do not fit"):
        program.with_constants({"factor": np.float32([7.0])})


def test_quantized_weights_are_codes_with_a_step_that_makes_numbers_of_them():
    model = Mlp.make().quantize_weights(Quantizer(Calibration.MinMax, QuantScheme()))
    program = capture(model, drawn(2, 4))
    codes = [value for value in program.constants if value.name.endswith(".codes")]
    assert [str(value) for value in codes][:1] == ["first.weight.codes [4, 6] i8"]
    simple = program.simplify()
    made = [step for step in simple.steps if step.op is ops.from_codes]
    assert len(made) == len(codes) == 4
    assert made[0].inputs[0] is codes[0]
    assert simple.check(model, drawn(3, 4)).first_difference is None
    other = Mlp.make(seed=2).quantize_weights(
        Quantizer(Calibration.MinMax, QuantScheme())
    )
    with pytest.raises(RecordError, match="do not fit") as caught:
        program.with_constants(other)
    assert "codes go with their scales" in str(caught.value)


def test_low_rank_adapters_are_folded():
    model = Mlp.make(AD).apply_lora(Lora(2, 4.0))
    program = capture(model, drawn(2, 4))
    assert "first.weight" in program.parameters
    assert names(program) == ["linear", "relu", "linear", "softmax"]


# Whole models


def sequence(model, *given):
    return model.forward(nn.TransformerEncoderInput.new(*given))


def test_a_transformer_is_captured():
    config = nn.TransformerEncoderConfig(8, 16, 2, 2).with_norm_first(True)
    model = config.init(AD)
    valid = model.valid()
    program = capture(lambda x: sequence(valid, x), drawn(2, 5, 8))
    assert not [v for v in program.constants if v.kind == "constant"]
    assert (
        program.check(lambda x: sequence(valid, x), drawn(7, 5, 8)).first_difference
        is None
    )


def test_a_sentence_classifier_is_captured():
    class Classifier(Module):
        words: nn.Embedding
        reader: nn.Gru
        out: nn.Linear

        def forward(self, tokens):
            read = self.reader.forward(self.words.forward(tokens), None)
            return self.out.forward(read[:, -1].flatten(1, -1))

    model = Classifier(
        nn.EmbeddingConfig(11, 4).init(DEVICE),
        nn.GruConfig(4, 5, True).init(DEVICE),
        nn.LinearConfig(5, 2).init(DEVICE),
    )
    tokens = Tensor.from_ints(np.arange(18).reshape(3, 6) % 11, DEVICE)
    program = capture(model, tokens)
    more = Tensor.from_ints(np.arange(48).reshape(8, 6) % 11, DEVICE)
    assert program.check(model, more).first_difference is None


def test_attention_weights_must_be_asked_for():
    layer = nn.MultiHeadAttentionConfig(4, 2).init(DEVICE)
    given = nn.MhaInput.self_attn(drawn(2, 3, 4))
    made = capture(layer, given)(given)
    with pytest.raises(GraphError, match="what was asked for when it was captured"):
        _ = made.weights
    program = capture(lambda x: layer.forward(x).weights, given)
    np.testing.assert_array_equal(program(given), layer.forward(given).weights)


@cases(
    "result words",
    (object(), "the result holds object"),
    ([1, {"x": object()}], "object at 1.x"),
    (None, "no tensor comes out"),
)
def test_what_comes_out_is_tensors(result, words):
    with pytest.raises(GraphError, match=words):
        capture(lambda x: result, drawn(2))


@pytest.mark.parametrize("size", [1, 9, 20])
def test_a_branch_for_the_size_of_the_example_alone_is_refused(size):
    def run(a):
        return a * 3.0 if a.dims()[0] == size else a

    with pytest.raises(GraphError, match="batch size") as caught:
        capture(run, drawn(size, 6))
    assert "return a * 3.0" in str(caught.value)
    assert capture(run, drawn(size, 6), batch=None).steps


@cases(
    "function words",
    (lambda a: a * 2.0 if a.dims()[0] > 1 else a, "which op runs"),
    (lambda a: a + (2.0 if a.dims()[0] > 1 else 1.0), "no a·n"),
    (lambda a: a.squeeze() * 2.0, "another number of parts"),
    (lambda a: a / a.sum().into_scalar() if a.dims()[0] == 1 else a, "depends on"),
    ids=lambda case: getattr(case, "__name__", str(case)),
)
@pytest.mark.parametrize("size", [1, 2, 7, 20])
def test_a_branch_for_one_row_is_refused_whatever_the_examples(function, words, size):
    with pytest.raises(GraphError, match=words) as caught:
        capture(function, drawn(size, 6))
    assert "lambda a:" in str(caught.value)


def test_a_program_of_one_row_fits_other_sizes():
    model = Mlp.make()
    program = capture(model, drawn(1, 4))
    for size in (1, 2, 7, 30):
        assert program.check(model, drawn(size, 4)).first_difference is None


def test_a_program_refuses_one_row_where_its_function_does():
    def run(a):
        assert a.dims()[0] > 1, "two rows or more"
        return a - a.mean_dim(0)

    program = capture(run, drawn(5, 6))
    for ready in (program, program.compile()):
        with pytest.raises(ArgumentError, match="fails for a batch of one") as caught:
            ready(drawn(1, 6))
        assert "two rows or more" in str(caught.value)
        assert ready(drawn(2, 6)).dims() == (2, 6)


def test_another_size_that_fails_is_told_with_its_line():
    def run(a):
        if a.dims()[0] % 2:
            raise ValueError("even sizes only")
        return a.reshape([2, -1])

    with pytest.raises(GraphError, match="5 fails: ValueError: even sizes only") as own:
        capture(run, drawn(4, 6))
    assert 'raise ValueError("even' in str(own.value)
    assert isinstance(own.value.__cause__, ValueError)
    with pytest.raises(GraphError, match="a batch of 5 fails: reshape") as caught:
        capture(lambda a: a.reshape([4, -1]), drawn(4, 3))
    assert "capture(lambda a: a.reshape([4, -1])" in str(caught.value)


def test_what_a_function_raises_for_its_own_examples_stays_what_it_is():
    def run(a):
        raise ValueError("never")

    with pytest.raises(ValueError, match="never"):
        capture(run, drawn(4, 6))


def rows_by(x):
    return x.matmul(x.transpose())


def contrastive(x):
    """The loss that tells views of one example from all others."""
    n = x.dims()[0]
    scores = rows_by(x / (x * x).sum_dim(1).sqrt()) / 0.5 - Tensor.eye(n) * 1e9
    return -(log_softmax(scores, 1) * Tensor.eye(n, kind=Float)).sum() / n


FOLLOWING = {
    "var": lambda x: (x.var(0), x.var(), x.std(0) + x * 0.0),
    "std": lambda x: (x - x.mean_dim(0)) / (x.std(0) + 1e-5),
    "inverse": lambda x: x * (1 / x.dims()[0]) + 2.5 / x.dims()[0],
    "root": lambda x: x / sqrt(x.dims()[0]) + -1.5 / sqrt(x.dims()[0] + 2),
    "times": lambda x: x * (x.dims()[0] / 3) - (x.dims()[0] - 0.25),
    "square": lambda x: x / (x.dims()[0] * x.dims()[0]) - 1 / x.dims()[0] ** 2,
    "clamp": lambda x: x.clamp(-1 / x.dims()[0], x.dims()[0] * x.dims()[0]),
    "tri": lambda x: rows_by(x).tril(0) + rows_by(x).triu(2) - rows_by(x).tril(-3),
    "wide": lambda x: x.mask_fill(Tensor.triu_mask([x.dims()[0], 6], -1), 0.5),
    "diag": lambda x: rows_by(x) - Tensor.diag_mask([x.dims()[0]] * 2, -1).float(),
    "eye": contrastive,
}


@pytest.mark.parametrize("offset", [-4, 4])
def test_a_mask_whose_edge_is_hardly_seen_is_refused(offset):
    def half(x):
        return rows_by(x).tril(offset) if offset < 0 else rows_by(x).triu(offset)

    with pytest.raises(GraphError, match="a tensor that Python made"):
        capture(half, drawn(2, 6))
    program, x = capture(half, drawn(6, 6)), drawn(20, 6)
    np.testing.assert_allclose(*map(np.asarray, (program(x), half(x))), 1e-5)


def test_a_mask_that_its_device_cannot_count_is_refused():
    narrow = Numpy(int="i8")

    def run(x):
        return x.mask_fill(Tensor.triu_mask([x.dims()[0], 3], 0, narrow), 0.5)

    with pytest.raises(GraphError, match="a tensor that Python made"):
        capture(run, drawn(4, 3, device=narrow))


def test_sizes_of_constants_are_no_powers():
    with pytest.raises(GraphError, match="does not follow the batch"):
        capture(lambda x: x * Tensor.ones([x.dims()[0] ** 2]).sum(), drawn(4))


def test_constants_may_be_empty_for_one_row():
    def run(x):
        counts = Tensor.triu_mask([x.dims()[0] - 1, 3], 0).float()
        return x + counts.sum().unsqueeze_dim(0)

    program = capture(run, drawn(5, 3))
    for n in (1, 2, 9):
        x = drawn(n, 3)
        np.testing.assert_array_equal(*map(np.asarray, (program(x), run(x))))


def test_floats_of_f64_are_exact():
    device = Numpy(float="f64")

    def run(x):
        return (x * (x.dims()[0] * 0.1)).floor()

    def tens(n):
        return Tensor.from_numpy(np.full((n, 1), 10.0), device)

    program = capture(run, tens(4))
    for n in range(1, 60):
        np.testing.assert_array_equal(
            *map(np.asarray, (program(tens(n)), run(tens(n))))
        )


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("size", [1, 2, 4, 20])
def test_numbers_and_masks_follow_the_batch(name, size):
    function = FOLLOWING[name]
    program = capture(function, drawn(size, 6))
    compiled = program.compile()
    for n in (1, 2, 3, 6, 40):
        x = drawn(n, 6, seed=n)
        wanted = function(x)
        for ready in (program, compiled):
            pairs = ready(x), wanted
            if isinstance(wanted, Tensor):
                pairs = [ready(x)], [wanted]
            for found, one in zip(*pairs, strict=True):
                np.testing.assert_allclose(*map(np.asarray, (found, one)), 1e-5, 1e-6)


def test_numbers_that_follow_the_batch_can_be_read():
    program = capture(
        lambda x: x * (2 / x.dims()[0]) / sqrt(x.dims()[0] - 0.5), drawn(3)
    )
    text = program.text(lines=False)
    assert "mul(x, 2 / n)" in text
    assert "div(mul, 0.707107 * sqrt(n*2 - 1))" in text


def test_whole_numbers_of_a_mask_are_counted_once():
    program = capture(contrastive, drawn(4, 6))
    names = [step.op.name for step in program.steps]
    assert names.count("cumsum") == 1
    assert names.count("equal") == 2


@cases(
    "function cure",
    (lambda a: a * (a.dims()[0] / (a.dims()[0] + 1)), "an op of its own"),
    (lambda a: a.exp() if a.dims()[0] > 4 else a.log(), "the same ops"),
    (lambda a: print(a) or a, "print what the program returns"),
    ids=["number", "ops", "print"],
)
def test_what_is_refused_has_a_cure_that_helps(function, cure):
    with pytest.raises(GraphError, match=cure):
        capture(function, drawn(4))


def test_a_program_is_part_of_another_one_and_a_compiled_one_is_not():
    inner = capture(lambda a: a.exp(), drawn(2))
    outer = capture(lambda a: inner(a) * 2.0, drawn(2))
    assert [step.op.name for step in outer.steps] == ["exp", "mul"]
    compiled = inner.compile()
    with pytest.raises(GraphError, match="a compiled program asks") as caught:
        capture(lambda a: compiled(a) * 2.0, drawn(2))
    assert "the program itself" in str(caught.value)


# Programs without their functions


def test_a_program_is_pickled_without_its_function():
    layer = nn.LinearConfig(6, 2).init(DEVICE)

    def local(a, by: "Unknown" = 2.0, *, plus=1.0):  # noqa: F821 - nobody asks
        return layer.forward(a) * by + plus

    program, x = capture(local, drawn(4, 6)), drawn(3, 6)
    wanted = np.asarray(local(x))
    for ready in (program, program.compile()):
        again = pickle.loads(pickle.dumps(ready))
        np.testing.assert_array_equal(np.asarray(again(x, by=2.0)), wanted)
        for given in ({"by": 3.0}, {"plus": 3.0}):
            with pytest.raises(ArgumentError, match="is another value"):
                again(x, **given)
        with pytest.raises(ArgumentError, match="unexpected keyword argument 'other'"):
            again(x, other=3.0)


def test_defaults_that_no_copy_can_have_are_left_behind():
    weights = drawn(300, 300)

    def run(x, act=lambda v: v.exp(), weight=weights, by=2.0):
        return act(x) * by + weight.sum_dims([0, 1])

    program, x = capture(run, drawn(4, 3)), drawn(2, 3)
    data = pickle.dumps(program)
    assert len(data) < 400_000  # the weight once, among the constants
    again = pickle.loads(pickle.dumps(pickle.loads(data)))
    for given in ({}, {"by": 2.0}):
        found = again(x, **given)
        np.testing.assert_array_equal(*map(np.asarray, (found, run(x))))
    for given in ({"by": 3.0}, {"act": print}):
        with pytest.raises(ArgumentError, match="is another value"):
            again(x, **given)


def test_a_program_keeps_no_examples():
    x = drawn(400, 600)
    assert len(pickle.dumps(capture(lambda a: a * 2.0, x))) < 10_000


def test_what_is_another_number_in_each_run_is_refused_for_one_batch_size_too():
    numbers = iter(range(100))
    with pytest.raises(GraphError, match=r"another number in each run: 0\.0, 1\.0"):
        capture(lambda a: a * next(numbers), drawn(4, 6), batch=None)


def test_ops_that_are_others_in_each_run_are_refused_for_one_batch_size_too():
    turns = iter([True, False])
    with pytest.raises(GraphError, match="do not do the same") as caught:
        capture(lambda a: a.exp() if next(turns) else a.log(), drawn(4), batch=None)
    assert "next(turns)" in str(caught.value)


# Models and tensors from elsewhere


def test_a_model_that_was_never_used_is_drawn_aside():
    held = {"layer": nn.LinearConfig(6, 2).init(DEVICE)}
    program = capture(lambda a: held["layer"].forward(a), drawn(4, 6))
    assert [step.op.name for step in program.steps] == ["linear"]
    x = drawn(3, 6)
    wanted = np.asarray(held["layer"].forward(x))
    np.testing.assert_array_equal(np.asarray(program(x)), wanted)


@pytest.mark.parametrize("given", ["another", "class", "none"])
def test_another_model_than_the_captured_one_is_refused(given):
    first, second = [nn.LinearConfig(6, 2).init(DEVICE) for _ in range(2)]
    program = capture(lambda a, model: model.forward(a), drawn(4, 6), first)
    x = drawn(3, 6)
    wanted = np.asarray(first.forward(x))
    np.testing.assert_array_equal(np.asarray(program(x, first)), wanted)
    other = {"another": second, "class": nn.Linear, "none": None}[given]
    for ready in (program, program.compile()):
        with pytest.raises(ArgumentError, match="model is another value"):
            ready(x, other)


class Holder:
    """No container that anybody knows."""

    def __init__(self, held):
        self.held = held


@pytest.mark.parametrize("make", [Holder, lambda t: Holder([{"x": t}]), lambda t: {t}])
def test_objects_that_hide_tensors_are_refused(make):
    with pytest.raises(ArgumentError, match="whose tensors nobody sees"):
        capture(lambda a, other: a * 2.0, drawn(4, 6), make(drawn(4, 6)))


def test_a_set_that_changed_is_another_argument():
    numbers = {2.0}
    program = capture(lambda a, s: a * sum(s), drawn(4, 6), numbers)
    assert program(drawn(4, 6), {2.0}).dims() == (4, 6)
    numbers.add(3.0)
    with pytest.raises(ArgumentError, match="s is another value"):
        program(drawn(4, 6), numbers)


def test_a_cache_that_a_capture_filled_is_named():
    made = {}

    def run(a):
        if not made:
            made["mask"] = Tensor.ones([6, 6]).cumsum(0)
        return a.matmul(made["mask"])

    for _ in range(2):
        with pytest.raises(GraphError, match="a cache that it filled") as caught:
            capture(run, drawn(4, 6))
        assert 'made["mask"]' in str(caught.value)
    made.clear()
    run(drawn(4, 6))
    assert len(capture(run, drawn(4, 6)).steps) == 1


@pytest.mark.parametrize("batch", ["0", 1.0, {0: None}])
def test_what_is_no_dim_is_no_batch(batch):
    with pytest.raises(ArgumentError, match="and no dim"):
        capture(lambda a: a * 2.0, drawn(4, 6), batch=batch)


# Arguments that are no tensors


def scaled_by(a, s=1.0, *, shift=0.0):
    return a * s + shift


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((5.0,), {}),
        ((), {"s": 5.0}),
        ((), {}),  # the default is not what was captured
        ((True,), {}),
        ((None,), {}),
        ((2.0,), {"shift": 1.0}),
    ],
)
def test_another_number_than_the_captured_one_is_refused(args, named):
    program = capture(scaled_by, drawn(4, 6), 2.0)
    for run in (program, program.compile()):
        if run is not program and not args and not named:
            continue  # one tensor is all that the compiled program takes
        with pytest.raises(ArgumentError, match="captured") as caught:
            run(drawn(4, 6), *args, **named)
        assert "capture again" in str(caught.value)


def test_the_error_names_the_argument_and_both_values():
    program = capture(scaled_by, drawn(4, 6), 2.0)
    with pytest.raises(ArgumentError) as caught:
        program(drawn(4, 6), 5.0)
    text = str(caught.value)
    assert "s is another value" in text
    assert "5.0" in text
    assert "2.0" in text


@pytest.mark.parametrize("value", [2.0, 2, np.float32(2.0)])
def test_the_captured_number_may_come_again(value):
    x = drawn(3, 6)
    program = capture(scaled_by, drawn(4, 6), 2.0)
    for run in (program, program.compile()):
        assert (run(x, value) - x * 2.0).abs().max().into_scalar() == 0.0
        assert (run(x, s=value) - x * 2.0).abs().max().into_scalar() == 0.0


def test_an_argument_that_was_not_there_at_the_capture_is_refused():
    program = capture(scaled_by, drawn(4, 6))
    program(drawn(4, 6), 1.0)  # its default
    with pytest.raises(ArgumentError, match="s is another value"):
        program(drawn(4, 6), 5.0)


def test_numbers_inside_of_containers_are_compared_too():
    def scaled(batch):
        return batch["x"] * batch["by"]

    x = drawn(4, 6)
    program = capture(scaled, {"x": x, "by": 2.0})
    program({"x": x, "by": 2.0})
    with pytest.raises(ArgumentError, match=r"batch\.by is another value"):
        program({"x": x, "by": 3.0})


def test_tensors_of_a_dict_are_found_by_their_keys():
    def difference(batch):
        return batch["a"] - batch["b"]

    a, b = drawn(4, 6), drawn(4, 6, seed=1)
    program = capture(difference, {"a": a, "b": b})
    found = program({"b": b, "a": a})
    assert (found - (a - b)).abs().max().into_scalar() == 0.0


# Numbers that come out


def test_numbers_in_the_result_follow_the_batch():
    def run(a):
        return {"sum": a + 1.0, "rows": a.dims()[0], "half": [a.dims()[0] * 2, "rows"]}

    program = capture(run, drawn(4, 6))
    for ready in (program, program.compile()):
        for size in (1, 4, 9):
            made = ready(drawn(size, 6))
            assert made["rows"] == size
            assert made["half"] == [2 * size, "rows"]
            assert made["sum"].dims() == (size, 6)


@pytest.mark.parametrize(
    "number", [lambda n: log(n), lambda n: f"{n} rows", lambda n: n == 4]
)
def test_what_does_not_follow_the_batch_as_a_size_is_refused(number):
    with pytest.raises(GraphError, match="the result"):
        capture(lambda a: (a + 1.0, number(a.dims()[0])), drawn(4, 6))
    program = capture(lambda a: (a, number(a.dims()[0])), drawn(4, 6), batch=None)
    assert program(drawn(4, 6))[1] == number(4)


def test_a_number_that_is_another_one_for_one_row_is_refused():
    with pytest.raises(GraphError, match="the result"):
        capture(lambda a: (a, 7 if a.dims()[0] == 1 else a.dims()[0]), drawn(1, 6))


@pytest.mark.parametrize("above", [lambda d: d, Autodiff, Fusion])
def test_checks_of_elements_are_left_out(above):
    device = above(DEVICE)

    def function(x):
        chosen = x.argmax(1).squeeze_dim(1).one_hot(3)
        return x.int(), x.round().int(), chosen, x.round().one_hot_fill(4, 1.0, 0.0)

    def tensor(rows):
        return Tensor.from_numpy(np.array(rows, np.float32), device)

    program = capture(function, tensor([[0.2, 1.7, 1.0], [2.0, 0.3, 0.1]]))
    x = tensor([[2.2, 0.7, 1.0], [-1.4, 0.3, 3.1], [0.0, 1.5, 1.0]])
    for found, wanted in zip(program(x), function(x), strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def test_floats_in_place_of_indices_are_named():
    layer = nn.EmbeddingConfig(10, 4).init(Numpy())
    with pytest.raises(KindError, match="takes Float and Int") as caught:
        capture(layer, Tensor.ones([1, 3]))
    assert "whole numbers" in str(caught.value)
