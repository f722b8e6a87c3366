"""Recurrent layers with PyTorch's weights: PyTorch's numbers, states and gradients."""

import itertools

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.nn import LstmState, RnnState
from burnbook.tensor import Tensor
from tests.torch.shared import agree, close, leaves, torch

F64 = Autodiff(Numpy(float="f64"))

# The order of gates in PyTorch's weights, by our names.
GATES = {
    "Lstm": ("input", "forget", "cell", "output"),
    "Gru": ("reset", "update", "new"),
    "Rnn": ("",),
}
THEIRS = {"Lstm": torch.nn.LSTM, "Gru": torch.nn.GRU, "Rnn": torch.nn.RNN}
SIZES = [(2, 5, 3, 4), (1, 1, 2, 3), (5, 7, 4, 8)]  # b, s, d_input, d_hidden
CASES = list(itertools.product(THEIRS, SIZES, [True, False]))


def gate(layer, name):
    return getattr(layer, f"{name}_gate".strip("_"))


def shared(layer, other, kind, suffix):
    """Every parameter of ours, and the rows of PyTorch's that hold the same numbers."""
    for part, short in (("input", "ih"), ("hidden", "hh")):
        for sort in ("weight", "bias"):
            rows = getattr(other, f"{sort}_{short}_l0{suffix}", None)
            if rows is None:
                continue
            size = len(rows) // len(GATES[kind])
            for i, name in enumerate(GATES[kind]):
                linear = getattr(gate(layer, name), f"{part}_transform")
                yield linear, sort, rows, slice(i * size, (i + 1) * size)


def copy_weights(layer, other, kind, suffix, device):
    """Give our layer the weights of one direction of PyTorch's."""
    for linear, sort, rows, own in shared(layer, other, kind, suffix):
        param = getattr(linear, sort)
        block = np.ascontiguousarray(rows.detach().numpy()[own].T)
        value = Tensor.from_numpy(block, device).require_grad()
        made = param.initialized(param.id, value)
        object.__setattr__(linear, sort, made)  # modules never change in place


def check_gradients(layer, other, kind, suffix, grads):
    for linear, sort, rows, own in shared(layer, other, kind, suffix):
        slope = rows.grad[own]
        slope = slope.mT if sort == "weight" else slope
        close(getattr(linear, sort).val().grad(grads), slope)


def states_of(kind, tensors):
    """Our state and PyTorch's, from one or two tensors of any library."""
    if kind == "Lstm":
        return LstmState(tensors[1], tensors[0]), tuple(tensors)
    return (RnnState(tensors[0]) if kind == "Rnn" else tensors[0]), tensors[0]


def parts(kind, result):
    """Output and final states (hidden first) of our layer."""
    if isinstance(result, Tensor):
        return [result]
    output, state = result
    if kind == "Lstm":
        return [output, state.hidden, state.cell]
    return [output, state.hidden if kind == "Rnn" else state]


def compare(kind, sizes, bias, both, device, given=True, first=True):
    """One layer of each: outputs, states and all gradients for random directions."""
    b, s, i, h = sizes
    dtype = np.float64 if device is F64 else np.float32
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    other = THEIRS[kind](i, h, bias=bias, batch_first=first, bidirectional=both)
    other = other.to(torch.float64 if device is F64 else torch.float32)
    config = getattr(nn, f"{'Bi' if both else ''}{kind}Config")(i, h, bias)
    layer = config.with_batch_first(first).init(device)
    sides = [(layer, "")]
    if both:
        sides = [(layer.forward_, ""), (layer.reverse, "_reverse")]
    for side, suffix in sides:
        copy_weights(side, other, kind, suffix, device)
    x = rng.normal(size=(b, s, i) if first else (s, b, i)).astype(dtype)
    starts = [rng.normal(size=(1 + both, b, h)).astype(dtype) for _ in "hc"]
    starts = starts[: 1 + (kind == "Lstm")] if given else []
    mine, their = leaves(device, x, *starts)
    state = other_state = None
    if given:
        ours = mine[1:] if both else [t.squeeze(0) for t in mine[1:]]
        state, _ = states_of(kind, ours)
        _, other_state = states_of(kind, their[1:])
    found = parts(kind, layer.forward(mine[0], state))
    output, end = other(their[0], other_state)
    wanted = [output, *(end if isinstance(end, tuple) else (end,))]
    total, other_total = 0.0, 0.0
    for ours, theirs in zip(found, wanted, strict=False):  # a Gru gives no state
        theirs = theirs.reshape(ours.dims())
        close(ours, theirs)
        g = rng.normal(size=ours.dims()).astype(dtype)
        total = (ours * Tensor.from_numpy(g, device)).sum() + total
        other_total = (theirs * torch.from_numpy(g)).sum() + other_total
    grads = total.backward()
    other_total.backward()
    for ours, theirs in zip(mine, their, strict=True):
        close(ours.grad(grads), theirs.grad)
    for side, suffix in sides:
        check_gradients(side, other, kind, suffix, grads)


@pytest.mark.parametrize(("kind", "sizes", "bias"), CASES, ids=str)
def test_one_direction(kind, sizes, bias):
    compare(kind, sizes, bias, False, F64)


@pytest.mark.parametrize(("kind", "sizes", "bias"), CASES, ids=str)
def test_both_directions(kind, sizes, bias):
    compare(kind, sizes, bias, True, F64)


@pytest.mark.parametrize("kind", THEIRS)
@pytest.mark.parametrize("both", [False, True])
def test_without_a_state_and_with_the_steps_leading(kind, both):
    compare(kind, (3, 4, 5, 6), True, both, F64, given=False, first=False)
    compare(kind, (3, 4, 5, 6), True, both, F64, given=True, first=False)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])
@pytest.mark.parametrize("kind", THEIRS)
@pytest.mark.parametrize("both", [False, True])
def test_in_single_precision_at_a_common_size(kind, both, compiled):
    if compiled:
        pytest.importorskip("numba", reason="kernels are compiled by numba")
    device = Autodiff(Numpy(compiled=compiled))
    compare(kind, (9, 20, 16, 32), True, both, device)


def test_weights_of_a_gru_that_resets_first_are_those_of_the_cells():
    """PyTorch has no such layer, so it is written out with PyTorch's functions."""
    layer = nn.GruConfig(3, 4, True).with_reset_after(False).init(F64)
    x = np.random.default_rng(0).normal(size=(2, 5, 3))
    (mine,), (their,) = leaves(F64, x)
    held = {name: param.val() for name, param in layer.named_params()}
    other = {
        n: torch.tensor(np.asarray(t), requires_grad=True) for n, t in held.items()
    }

    def part(name, side, rows):
        path = f"{name}_gate.{side}_transform"
        return rows @ other[f"{path}.weight"] + other[f"{path}.bias"]

    h, outs = torch.zeros(2, 4, dtype=torch.float64), []
    for t in range(5):
        row = their[:, t]
        z = torch.sigmoid(part("update", "input", row) + part("update", "hidden", h))
        r = torch.sigmoid(part("reset", "input", row) + part("reset", "hidden", h))
        n = torch.tanh(part("new", "input", row) + part("new", "hidden", r * h))
        h = (1 - z) * n + z * h
        outs.append(h)
    pairs = [(mine, their), *((held[name], other[name]) for name in held)]
    agree(layer.forward(mine), torch.stack(outs, 1), pairs)
