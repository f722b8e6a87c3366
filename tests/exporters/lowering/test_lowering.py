"""What programs become: views, chains, calls, and memory that is used again."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ArgumentError, DataError
from burnbook.core.op import OPS
from burnbook.exporters import to_micropython
from burnbook.exporters.forms import NoForm
from burnbook.exporters.javascript import to_javascript
from burnbook.exporters.lowering import (
    Call,
    Chain,
    Storage,
    View,
    files,
    lowered,
    problems,
)
from burnbook.exporters.lowering.registry import FORMS
from burnbook.exporters.lowering.sizes import fixed, largest, plus, times
from burnbook.exporters.wgsl import to_wgsl
from burnbook.optim import AdamConfig
from burnbook.program import CompiledTraining, capture, capture_training
from burnbook.program.sizes import Dim
from burnbook.tensor import Int, Tensor

DEVICE = Numpy()


def plan_of(run, *examples, batch=0):
    return lowered("here", run, examples, batch)


def shown(plan):
    return [c.kernel if isinstance(c, Call) else c.name for c in plan.calls]


def test_sizes_that_follow_the_batch_are_added_and_multiplied():
    assert plus(Dim(2, 1), Dim(1)) == Dim(3, 1)
    assert plus(Dim(2, 1), Dim(-2)) == 1
    assert times(Dim(2, 1), 3) == Dim(6, 3)
    assert times(0, Dim(5)) == 0
    assert largest([Dim(4), 3, Dim(2, 9), 2]) == [Dim(4), Dim(2, 9)]
    with pytest.raises(NoForm, match="square of the batch"):
        times(Dim(1), Dim(1))
    with pytest.raises(NoForm, match="a layer follows the batch"):
        fixed(Dim(1), "a layer")


def test_views_of_views_read_the_right_elements():
    x = Storage("x", "input", "f32", 24)
    view = View.whole(x, (2, 3, 4)).permuted((2, 0, 1))
    assert (view.shape, view.strides) == ((4, 2, 3), (1, 12, 4))
    assert view.reshaped((4, 6)) is None
    assert view.reshaped((4, 1, 2, 3)).strides == (1, 0, 12, 4)
    assert not view.is_straight
    assert View.whole(x, (2, 12)).reshaped((24,)).is_whole
    assert View.whole(x, (24,)).stretched((5, 24)).strides == (0, 1)


def test_moving_elements_becomes_part_of_the_loop_that_reads_them():
    def run(x):
        return x.swap_dims(1, 2)[:, 1:].flip([1]) + 1.0

    plan = plan_of(run, Tensor.ones([2, 3, 4]))
    assert shown(plan) == ["add"]
    (chain,) = plan.calls
    (view,) = chain.reads
    assert (view.shape, view.strides) == ((Dim(1), 3, 3), (12, -1, 4))
    assert view.offset == 3


def test_dims_that_lie_one_behind_the_other_are_one_loop():
    bias = Tensor.ones([1, 3, 1, 1])

    def run(x):
        return x + bias

    (chain,) = plan_of(run, Tensor.ones([2, 3, 4, 5])).calls
    assert isinstance(chain, Chain)
    assert chain.loops() == (
        [Dim(1), 3, 20],
        [[60, 20, 1], [0, 1, 0], [60, 20, 1]],
    )


def test_a_chain_that_two_ops_read_is_computed_once():
    def run(x):
        y = x.exp()
        return (y + 1.0) * (y - 1.0)

    assert shown(plan_of(run, Tensor.ones([2]), batch=None)) == ["exp", "add_sub_mul"]


def test_a_chain_never_reads_more_buffers_than_a_kernel_may_bind():
    def run(*xs):
        total = xs[0]
        for x in xs[1:]:
            total = total + x
        return total

    plan = plan_of(run, *[Tensor.ones([2]) for _ in range(20)], batch=None)
    assert len(plan.calls) > 2
    assert all(len(call.inputs) <= 7 for call in plan.calls)


def test_results_never_lie_where_a_kernel_still_reads():
    layers = [nn.LinearConfig(8, 8).init(DEVICE) for _ in range(4)]

    def run(x):
        first = x
        for layer in layers:
            x = layer.forward(x).relu() + first
        return x

    plan = plan_of(run, Tensor.ones([2, 8], DEVICE))
    assert 2 <= len(plan.buffers) <= 3
    held = {}
    for call in plan.calls:
        for one in call.inputs:
            assert one.role != "result" or held[one.slot] is one
            assert one.role != "result" or one.slot != call.target.slot
        held[call.target.slot] = call.target


def test_what_follows_from_constants_is_computed_now():
    x = Tensor.ones([2, 3])
    held = Tensor.from_floats([[1.0, 2.0, 3.0]])

    def run(x):
        return x * (held.exp() + 1.0).swap_dims(0, 1).reshape([1, 3])

    plan = plan_of(run, x)
    assert shown(plan) == ["mul"]
    (constant,) = plan.constants
    np.testing.assert_allclose(constant.array, np.exp([1, 2, 3]) + 1, 1e-6)


def test_whole_numbers_of_more_than_32_bits_are_refused():
    far = Tensor.from_ints([1 << 40])

    def run(x):
        return x + far

    ((op, _, why),) = problems("here", run, (Tensor.from_ints([1]),), None)
    assert (op, why) == ("add", "a whole number of it has more than 32 bits")


@pytest.mark.parametrize(
    ("op", "run"),
    [
        ("add", lambda i: i + 5_000_000_000),
        ("sub", lambda i: i - (1 << 31)),
        ("greater", lambda i: i.greater_elem(1 << 31)),
        ("clamp", lambda i: i.clamp_max(1 << 40)),
        ("clamp", lambda i: i.clamp(np.int64(-1 << 40), 3)),
        ("hot_rows", lambda i: i.reshape([1]).one_hot_fill(3, 1 << 40, 0, -1)),
        ("mask_fill", lambda i: i.mask_fill(i.greater_elem(0), -(1 << 40))),
        ("pad", lambda i: i.pad((1, 1, 0, 0), 1 << 40)),
    ],
)
def test_a_literal_of_more_than_32_bits_is_refused(op, run):
    x = Tensor.from_ints([[1]], DEVICE)
    ((found, _, why),) = problems("here", run, (x,), None)
    assert found == op
    assert why.startswith("the whole number ")
    assert why.endswith(" has more than 32 bits")


def test_the_least_and_the_largest_of_32_bits_are_written():
    def run(i):
        return (i + ((1 << 31) - 1)) * -(1 << 31)

    assert problems("here", run, (Tensor.from_ints([1], DEVICE),), None) == []


@pytest.mark.parametrize("run", [lambda i: i / 0, lambda i: i % 0])
def test_a_whole_number_is_not_divided_by_zero(run):
    i = Tensor.empty([0], DEVICE, Int)
    ((_, _, why),) = problems("here", run, (i,), None)
    assert why == "it divides a whole number by zero"


def test_products_of_the_batch_with_itself_are_refused():
    def run(x):
        return x.matmul(x.swap_dims(0, 1))

    found = problems("here", run, (Tensor.ones([3, 2]),))
    assert found == [("matmul", "", "it grows with the square of the batch")]


def test_an_input_that_grows_with_the_square_of_the_batch_is_refused():
    program = capture(lambda x: x + 1.0, Tensor.ones([3, 2]))
    object.__setattr__(program.inputs[0], "shape", (Dim(1), Dim(1)))
    found = problems("here", program, ())
    assert found == [("input", "x", "it grows with the square of the batch")]


def test_weights_are_packed_as_narrow_as_was_asked():
    values = np.linspace(-2, 2, 1024).astype(np.float32)
    one = Storage("w", "constant", "f32", 1024, array=values)
    few = Storage("b", "constant", "f32", 3, array=values[:3])
    flags = Storage("m", "constant", "bool", 3, array=np.ones(3, np.uint8))
    for precision, width in (("f32", 4), ("f16", 2), ("int8", 1)):
        made = files.packed([flags, one, few], precision)
        forms = [form for _, form, *_ in made.table]
        assert forms == ["bool", precision, "f32"]
        starts = [start for _, _, start, *_ in made.table]
        assert starts == [0, 4, 4 + 1024 * width]
    huge = Storage("h", "constant", "f32", 512, array=np.full(512, 1e6, np.float32))
    assert files.packed([huge], "f16").table[0][1] == "f32", "f16 would overflow"


def test_every_op_that_onnx_has_has_kernels_or_a_reason():
    known = {name for name in OPS if not name.startswith("_")}
    from burnbook.exporters.onnx.forms import FORMS as ONNX

    without = {
        *("scatter", "select_assign", "select_put", "det", "argwhere"),
        *("fft_pairs", "rfft_pairs", "irfft_pairs", "irfft_back", "rfft_back"),
        *("to_codes", "from_codes"),  # of constants, so they are computed at once
        *("uniform", "normal", "bernoulli", "orthogonal", "dropout"),
        *("batch_norm", "max_pool_indices"),  # of training, and of pools
    }
    assert (set(ONNX) & known) - set(FORMS) - without == set()


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (to_javascript, "m.onnx"),
        (to_wgsl, "m.py"),
        (to_wgsl, "m"),
        (to_micropython, "m.js"),
    ],
)
def test_a_name_of_another_format_is_refused_and_its_file_stays(write, name, tmp_path):
    (tmp_path / name).write_bytes(b"what was there")
    with pytest.raises(ArgumentError, match="is not named like what it writes"):
        write(lambda x: x.exp(), tmp_path / name, Tensor.ones([1, 3]))
    assert (tmp_path / name).read_bytes() == b"what was there"


@pytest.mark.parametrize("write", [to_javascript, to_wgsl, to_micropython])
def test_a_compiled_program_is_refused(write, tmp_path):
    compiled = capture(lambda x: x.exp(), Tensor.ones([1, 3])).compile()
    with pytest.raises(ArgumentError, match="a compiled program came"):
        write(compiled, tmp_path / "net.py" if write is to_micropython else "net.js")


@pytest.mark.parametrize("write", [to_javascript, to_wgsl, to_micropython])
def test_a_training_is_refused_and_its_model_written(write, tmp_path):
    device = Autodiff(DEVICE)
    model, x = nn.LinearConfig(3, 2).init(device), Tensor.ones([4, 3], device)
    path = tmp_path / ("net.py" if write is to_micropython else "net.js")

    def loss(model, x):
        return model.forward(x).square().mean()

    training = capture_training(model, loss, AdamConfig().init(), x)
    compiled = CompiledTraining(training)
    with pytest.raises(ArgumentError, match=r"Training came(.|\n)*model\(state\), …\)"):
        write(training, path)
    with pytest.raises(ArgumentError, match=r"CompiledTraining came(.|\n)*model, …\)"):
        write(compiled, path)
    assert not path.exists()
    write(compiled.model, path, Tensor.ones([1, 3]))
    assert path.exists()


def scaled(number):
    return lambda x: x * Tensor.full([1, 300], number, DEVICE)


@pytest.mark.parametrize("write", [to_javascript, to_wgsl])
def test_a_write_that_fails_leaves_the_old_file_whole(write, tmp_path, monkeypatch):
    x, path = Tensor.ones([1, 300], DEVICE), tmp_path / "net.js"
    write(scaled(2.0), path, x, weights="beside")
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    replace = os.replace

    def broken(source, target):
        if Path(target).name == "net.js":
            raise OSError(errno.EIO, "the disk is broken")
        replace(source, target)

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(DataError, match="the disk is broken"):
        write(scaled(3.0), path, x, weights="beside")
    monkeypatch.undo()
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("write", [to_javascript, to_wgsl])
def test_a_new_file_takes_the_old_weights_away_and_no_others(write, tmp_path):
    x, path = Tensor.ones([1, 300], DEVICE), tmp_path / "net.js"
    others = [tmp_path / "net.weights", tmp_path / "net.js.my.weights"]
    for other in others:
        other.write_bytes(b"kept")
    twin = write(scaled(2.0), tmp_path / "net.mjs", x, weights="beside")
    first = write(scaled(2.0), path, x, weights="beside")
    second = write(scaled(3.0), path, x, weights="beside")
    assert first.beside != second.beside
    kept = {*others, path, second.beside, twin.path, twin.beside}
    assert set(tmp_path.iterdir()) == kept
    assert second.beside.name in path.read_text()
    write(scaled(3.0), path, x)
    assert set(tmp_path.iterdir()) == kept - {second.beside}


def named(x):
    return {"sum": x.tanh(), "idx": x.argmax(1), "2x": x * 2.0}


@pytest.mark.parametrize("write", [to_javascript, to_wgsl])
def test_outputs_are_called_as_the_keys_that_they_stand_under(write, tmp_path):
    made = write(named, tmp_path / "net.js", Tensor.ones([1, 3]))
    assert made.outputs == ("sum", "idx", "2x")
    text = (tmp_path / "net.js").read_text("utf-8")
    assert "// out sum [n, 3] f32" in text
    assert "// out idx [n, 1] i32" in text


@pytest.mark.parametrize("write", [to_javascript, to_wgsl])
def test_names_of_outputs_may_be_given(write, tmp_path):
    x, names = Tensor.ones([1, 3]), ["a", "b", "in"]
    made = write(named, tmp_path / "net.js", x, output_names=names)
    assert made.outputs == ("a", "b", "in")
    with pytest.raises(ArgumentError, match="2 names came, and there are 3 outputs"):
        write(named, tmp_path / "net.js", x, output_names=["a", "b"])


@pytest.mark.parametrize("write", [to_javascript, to_wgsl])
def test_a_name_of_an_output_is_not_given_twice(write, tmp_path):
    path = tmp_path / "net.js"
    with pytest.raises(ArgumentError, match="'a' is given to two outputs"):
        write(named, path, Tensor.ones([1, 3]), output_names=["a", "b", "a"])
    assert not path.exists()


NARROWER = {
    "f16": lambda x: x.cast("f16").cast("f32"),
    "f16 of i32": lambda x: x.cast("i32").cast("f16"),
}


@pytest.mark.parametrize("write", [to_javascript, to_wgsl, to_micropython])
@pytest.mark.parametrize("name", NARROWER)
def test_a_cast_that_rounds_to_f16_is_refused(name, write, tmp_path):
    path = tmp_path / ("net.py" if write is to_micropython else "net.js")
    with pytest.raises(ArgumentError, match="it rounds to f16"):
        write(NARROWER[name], path, Tensor.ones([1, 3]))
