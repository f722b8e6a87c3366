"""CTC and RNN-T: against all alignments written out, and what padding must not do."""

import itertools
import math

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ShapeError
from burnbook.nn.loss import CTCLossConfig, Reduction, RNNTLossConfig
from burnbook.tensor import Tensor
from tests.oracle import sequences
from tests.support.slopes import second_slopes, slopes

PLAIN = Numpy(float="f64", compiled=False)
AD = Autodiff(PLAIN)
DEVICES = [PLAIN, Numpy(float="f64"), Numpy()]


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def ints(values, device=PLAIN):
    return Tensor.from_numpy(np.asarray(values, np.int64), device)


def ctc(loss, log_probs, targets, inputs, labels, device=PLAIN, **options):
    tensors = [Tensor.from_numpy(np.asarray(log_probs, device.float_dtype), device)]
    tensors += [ints(part, device) for part in (targets, inputs, labels)]
    run = loss.forward_with_reduction if options else loss.forward
    return np.asarray(run(*tensors, **options))


SEQUENCES = {
    # blank, targets, input lengths, target lengths; five frames, four classes
    "even": (0, [[1, 2], [3, 1]], [5, 5], [2, 2]),
    "repeated": (0, [[1, 1], [2, 2]], [5, 3], [2, 2]),
    "uneven": (0, [[1, 2, 3], [3, 0, 0], [2, 2, 9]], [5, 2, 4], [3, 1, 2]),
    "last": (3, [[0, 1], [2, 2]], [5, 4], [2, 2]),
    "middle": (1, [[0, 2], [3, -1]], [4, 5], [2, 1]),
    "nothing said": (0, [[1, 2], [3, 1]], [5, 3], [0, 2]),
    "no targets": (2, np.zeros((2, 0)), [5, 1], [0, 0]),
    "just in time": (0, [[1, 2, 3], [1, 1, 0]], [3, 3], [3, 2]),
}


@pytest.mark.parametrize("device", DEVICES, ids=repr)
@pytest.mark.parametrize("name", SEQUENCES)
def test_ctc_adds_up_every_alignment(name, device):
    blank, targets, inputs, labels = SEQUENCES[name]
    x = log_softmax(np.random.default_rng(0).normal(size=(5, len(inputs), 4)))
    wanted = sequences.ctc_loss(x, np.asarray(targets), inputs, labels, blank)
    loss = CTCLossConfig().with_blank(blank).init()
    found = ctc(loss, x, targets, inputs, labels, device)
    assert np.allclose(found, wanted, rtol=1e-5 if device.float == "f32" else 1e-12)


def test_the_chances_of_all_targets_add_up_to_one():
    """Each of the 3⁴ paths spells exactly one target."""
    x = log_softmax(np.random.default_rng(1).normal(size=(4, 1, 3)))
    loss, total = CTCLossConfig().init(), 0.0
    for count in range(5):
        for target in itertools.product([1, 2], repeat=count):
            row = np.zeros((1, 4))
            row[0, :count] = target
            total += math.exp(-ctc(loss, x, row, [4], [count])[0])
    assert math.isclose(total, 1.0)


def both_slopes(run, x):
    """The slope of the sum of some losses, and the same by small steps."""
    tensor = Tensor.from_numpy(x, AD).require_grad()
    out = run(tensor)
    g = np.random.default_rng(3).normal(size=out.dims())
    found = np.asarray(tensor.grad((out * Tensor.from_numpy(g, AD)).backward()))
    return found, slopes(lambda at: np.asarray(run(Tensor.from_numpy(at, AD))) * g, x)


@pytest.mark.parametrize("name", ["uneven", "repeated", "nothing said"])
def test_the_slope_of_ctc_is_the_true_one(name):
    blank, targets, inputs, labels = SEQUENCES[name]
    x = np.random.default_rng(2).normal(size=(5, len(inputs), 4))
    loss = CTCLossConfig().with_blank(blank).init()
    parts = [ints(part, AD) for part in (targets, inputs, labels)]
    found, wanted = both_slopes(lambda t: loss.forward(t.log_softmax(2), *parts), x)
    assert np.allclose(found, wanted, atol=1e-7)
    for i, length in enumerate(inputs):
        assert not found[length:, i].any()


def test_padding_says_nothing():
    rng = np.random.default_rng(4)
    x = log_softmax(rng.normal(size=(6, 1, 4)))
    loss = CTCLossConfig().init()
    alone = ctc(loss, x[:4], [[1, 2]], [4], [2])
    other = np.concatenate([x[:4], x[4:] * np.inf])
    assert np.allclose(ctc(loss, other, [[1, 2, 99, -7]], [4], [2]), alone)
    other[4:] = np.nan
    assert np.allclose(ctc(loss, other, [[1, 2, 0, 0]], [4], [2]), alone)


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_what_is_too_short_is_infinite_and_has_no_slope(device):
    above = Autodiff(device)
    x = Tensor.random([3, 2, 4], device=above).require_grad()
    parts = [ints(p, above) for p in ([[1, 1], [1, 2]], [2, 3], [2, 2])]
    loss = CTCLossConfig().init().forward(x.log_softmax(2), *parts)
    values = np.asarray(loss)
    assert np.isinf(values[0])
    assert np.isfinite(values[1])
    slope = np.asarray(x.grad(loss.backward()))
    assert not slope[:, 0].any()
    assert slope[:, 1].any()
    spared = CTCLossConfig().with_zero_infinity(True).init()
    assert np.allclose(spared.forward(x.log_softmax(2), *parts), [0, values[1]])


def test_no_frames_say_nothing_or_cannot_say_it():
    x = np.zeros((2, 2, 3))
    found = ctc(CTCLossConfig().init(), x, [[1], [1]], [0, 0], [0, 1])
    assert found[0] == 0
    assert np.isinf(found[1])


REDUCED = {
    Reduction.Mean: lambda a, labels: (a / np.maximum(labels, 1)).mean(),
    Reduction.Auto: lambda a, labels: (a / np.maximum(labels, 1)).mean(),
    Reduction.Sum: lambda a, labels: a.sum(),
    Reduction.BatchMean: lambda a, labels: a.sum() / len(a),
}


@pytest.mark.parametrize("reduction", REDUCED, ids=str)
def test_the_mean_of_ctc_is_one_over_labels_first(reduction):
    _, targets, inputs, labels = SEQUENCES["nothing said"]
    x = log_softmax(np.random.default_rng(5).normal(size=(5, 2, 4)))
    loss = CTCLossConfig().init()
    out = ctc(loss, x, targets, inputs, labels, reduction=reduction)
    losses = ctc(loss, x, targets, inputs, labels)
    assert out.shape == (1,)
    assert np.allclose(out, REDUCED[reduction](losses, np.asarray(labels)))


# RNN-T


def rnnt(loss, x, targets, frames, labels, device=PLAIN):
    tensors = [Tensor.from_numpy(np.asarray(x, device.float_dtype), device)]
    tensors += [ints(part, device) for part in (targets, frames, labels)]
    return np.asarray(loss.forward(*tensors))


TRANSDUCED = {
    # blank, targets, frames, labels; four frames, four classes
    "even": (0, [[1, 2], [3, 1]], [4, 4], [2, 2]),
    "uneven": (0, [[1, 2, 3], [3, 9, 9], [2, 2, -1]], [4, 1, 3], [3, 1, 2]),
    "last": (3, [[0, 1], [2, 2]], [2, 4], [2, 2]),
    "nothing said": (1, [[2], [0]], [4, 3], [0, 1]),
    "no targets": (2, np.zeros((2, 0)), [4, 1], [0, 0]),
}


@pytest.mark.parametrize("device", DEVICES, ids=repr)
@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("name", TRANSDUCED)
def test_the_transducer_adds_up_every_alignment(name, logits, device):
    blank, targets, frames, labels = TRANSDUCED[name]
    targets = np.asarray(targets)
    n, u = targets.shape
    x = np.random.default_rng(6).normal(size=(n, 4, u + 1, 4))
    log_probs = log_softmax(x)
    lead = sequences.rnnt_labels(targets, labels, blank, 4)
    edges = np.take_along_axis(log_probs, lead[:, None].repeat(4, 1), axis=3)
    wanted = sequences.rnnt_loss(edges, frames, labels)
    loss = RNNTLossConfig().with_blank(blank).with_logits(logits).init()
    found = rnnt(loss, x if logits else log_probs, targets, frames, labels, device)
    assert np.allclose(found, wanted, rtol=1e-5 if device.float == "f32" else 1e-12)


def slow_transducer(log_probs, target, blank):
    """The recursion of the paper, node by node, for one sequence."""
    frames, nodes, _ = log_probs.shape
    alpha = np.full((frames, nodes), -np.inf)
    alpha[0, 0] = 0.0
    for t, u in np.ndindex(frames, nodes):
        ways = [alpha[t, u]]
        if t:
            ways.append(alpha[t - 1, u] + log_probs[t - 1, u, blank])
        if u:
            ways.append(alpha[t, u - 1] + log_probs[t, u - 1, target[u - 1]])
        alpha[t, u] = np.logaddexp.reduce(ways)
    return -(alpha[-1, -1] + log_probs[-1, -1, blank])


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_the_transducer_on_longer_sequences(device):
    rng = np.random.default_rng(7)
    x, targets = rng.normal(size=(3, 30, 11, 6)) * 3, rng.integers(1, 6, (3, 10))
    frames, labels = [30, 12, 25], [10, 7, 0]
    wanted = [
        slow_transducer(log_softmax(x[i, :t, : u + 1]), targets[i, :u], 0)
        for i, (t, u) in enumerate(zip(frames, labels, strict=True))
    ]
    found = rnnt(RNNTLossConfig().init(), x, targets, frames, labels, device)
    assert np.allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("logits", [True, False])
def test_the_slope_of_the_transducer_is_the_true_one(logits):
    blank, targets, frames, labels = TRANSDUCED["uneven"]
    x = np.random.default_rng(8).normal(size=(3, 4, 4, 4))
    loss = RNNTLossConfig().with_blank(blank).with_logits(logits).init()
    parts = [ints(part, AD) for part in (targets, frames, labels)]
    found, wanted = both_slopes(lambda t: loss.forward(t, *parts), x)
    assert np.allclose(found, wanted, atol=1e-7)
    for i, (t, u) in enumerate(zip(frames, labels, strict=True)):
        assert not found[i, t:].any()
        assert not found[i, :, u + 1 :].any()


@pytest.mark.parametrize("reduction", REDUCED, ids=str)
def test_the_mean_of_the_transducer_is_one_over_sequences(reduction):
    blank, targets, frames, labels = TRANSDUCED["even"]
    x = np.random.default_rng(9).normal(size=(2, 4, 3, 4))
    loss = RNNTLossConfig().with_blank(blank).init()
    tensors = [Tensor.from_numpy(x, PLAIN)]
    tensors += [ints(part) for part in (targets, frames, labels)]
    losses = np.asarray(loss.forward(*tensors))
    out = loss.forward_with_reduction(*tensors, reduction)
    wanted = losses.sum() if reduction == Reduction.Sum else losses.mean()
    assert np.allclose(out, [wanted])


def test_second_slopes_of_a_whole_loss():
    """Along a direction, ∂²loss is the change of the slope."""
    blank, targets, frames, labels = TRANSDUCED["uneven"]
    loss = RNNTLossConfig().with_blank(blank).init()

    def run(x):
        parts = [ints(part, x.backend) for part in (targets, frames, labels)]
        return loss.forward_with_reduction(x, *parts)

    x, direction = np.random.default_rng(10).normal(size=(2, 3, 4, 4, 4))
    assert np.isclose(*second_slopes(run, x, direction, AD), rtol=1e-4)


def test_lengths_are_asked_for_every_sequence():
    x, y = Tensor.zeros([4, 2, 3], PLAIN), ints([[1], [1]])
    with pytest.raises(ShapeError, match="1 ≠ 2: input_lengths must hold one"):
        CTCLossConfig().init().forward(x, y, ints([4]), ints([1, 1]))


def test_both_print_their_options():
    assert str(CTCLossConfig().init()) == (
        "CTCLoss {\n  blank: 0\n  zero_infinity: false\n}"
    )
    assert str(RNNTLossConfig().init()) == "RNNTLoss {\n  blank: 0\n  logits: true\n}"
    for config in (CTCLossConfig().with_blank(4), RNNTLossConfig().with_logits(False)):
        assert type(config).from_json(config.to_json()) == config
