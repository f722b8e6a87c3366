"""Cross entropies equal PyTorch's in every combination of their options.

Values, slopes and second slopes; classes and probabilities as targets; batches of one,
of none and of pads alone; scores of any size; plain and compiled.
"""

import itertools

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ConfigError, DataError, ShapeError
from burnbook.nn.loss import (
    BinaryCrossEntropyLossConfig,
    CrossEntropyLossConfig,
    Reduction,
)
from burnbook.tensor import Tensor
from tests.support.slopes import second_slopes
from tests.torch.shared import torch

F = torch.nn.functional

EXACT = Numpy(float="f64", compiled=False)
DEVICES = {"plain": Numpy(compiled=False), "as it comes": Numpy(), "exact": EXACT}
NEAR = {"plain": 2e-5, "as it comes": 2e-5, "exact": 1e-11}
WORDS = {Reduction.Mean: "mean", Reduction.Sum: "sum", None: "none"}
WEIGHTS = [1.0, 2.0, 0.5, 3.0]
PAD = 2
devices = pytest.mark.parametrize("name", DEVICES)
reductions = pytest.mark.parametrize("reduction", WORDS, ids=str)


def scores(rows, kind="usual", seed=0):
    x = np.random.default_rng(seed).normal(size=(rows, 4))
    return x * 1e4 if kind == "extreme" else x


def shares(rows, seed=1):
    y = np.random.default_rng(seed).random((rows, 4))
    y[:1] = [0.0, 0.25, 0.75, 0.0]  # a mixture of two
    return y / y.sum(1, keepdims=True)


def run(loss, reduction, *tensors):
    if reduction is None:
        return loss.forward_no_reduction(*tensors)
    return loss.forward(*tensors, reduction)


def compare(name, loss, theirs, x, y, learned=()):
    """The values of a loss, and the slopes of the scores and of what else is learned.

    loss, theirs: functions of scores and targets.
    """
    device, near = DEVICES[name], NEAR[name]
    outer = Autodiff(device)
    dtype = device.float_dtype
    arrays = [a.astype(dtype) if a.dtype.kind == "f" else a for a in (x, y)]
    mine = [Tensor.from_numpy(a, outer) for a in arrays]
    others = [torch.from_numpy(a.copy()) for a in arrays]
    for i in (0, *learned):
        mine[i], others[i] = mine[i].require_grad(), others[i].requires_grad_()
    out, wanted = loss(outer)(*mine), theirs(*others)
    found = np.asarray(out)
    expected = wanted.detach().numpy().reshape(found.shape)
    size = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=near, atol=near * size)
    g = np.random.default_rng(2).normal(size=found.shape).astype(dtype)
    grads = (out * Tensor.from_numpy(g, outer)).backward()
    wanted.backward(torch.from_numpy(g).reshape(wanted.shape))
    for i in (0, *learned):
        slope, other = np.asarray(mine[i].grad(grads)), others[i].grad.numpy()
        np.testing.assert_allclose(slope, other, rtol=near, atol=near * size)


def balance(given, dtype):
    return None if given is None else torch.tensor(given).to(dtype)


OPTIONS = list(itertools.product([None, WEIGHTS], [0.0, 0.1, 1.0], [False, True]))


@devices
@reductions
@pytest.mark.parametrize(("weights", "smoothing", "pads"), OPTIONS, ids=str)
def test_classes_with_every_option(name, reduction, weights, smoothing, pads):
    """PyTorch's ignore_index is a pad token that does not count in the mean."""
    config = CrossEntropyLossConfig(weights=weights, smoothing=smoothing or None)
    if pads:
        config = config.with_pad_tokens([PAD]).with_pads_count(False)
    ignored = PAD if pads else -100

    def theirs(x, y):
        options = {"ignore_index": ignored, "label_smoothing": smoothing}
        how = WORDS[reduction]
        return F.cross_entropy(
            x, y, balance(weights, x.dtype), reduction=how, **options
        )

    for rows, kind in ((7, "usual"), (1, "usual"), (7, "extreme")):
        classes = np.arange(rows) * 3 % 4  # 0 3 2 1 0 3 2
        compare(
            name,
            lambda d: lambda x, y: run(config.init(d), reduction, x, y),
            theirs,
            *(scores(rows, kind), classes),
        )


@devices
@reductions
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=str)
def test_probabilities_with_every_option(name, reduction, weights, smoothing):
    config = CrossEntropyLossConfig(weights=weights, smoothing=smoothing or None)

    def theirs(x, y):
        how = {"reduction": WORDS[reduction], "label_smoothing": smoothing}
        return F.cross_entropy(x, y, balance(weights, x.dtype), **how)

    for rows, kind in ((7, "usual"), (1, "usual"), (7, "extreme")):
        compare(
            name,
            lambda d: lambda x, y: run(config.init(d), reduction, x, y),
            theirs,
            *(scores(rows, kind), shares(rows), (1,)),
        )


@reductions
@pytest.mark.parametrize("smoothing", [None, 0.1])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=str)
def test_one_hot_probabilities_are_classes(reduction, weights, smoothing):
    """But for the mean of weighted ones, which no weights divide, as in PyTorch."""
    config = CrossEntropyLossConfig(weights=weights, smoothing=smoothing)
    loss, classes = config.init(EXACT), np.array([0, 3, 1, 1, 2])
    x = Tensor.from_numpy(scores(5), EXACT)
    of_classes = run(loss, reduction, x, Tensor.from_numpy(classes, EXACT))
    hot = Tensor.from_numpy(np.eye(4)[classes], EXACT)
    of_shares = run(loss, reduction, x, hot)
    if weights and reduction == Reduction.Mean:
        of_shares = of_shares * (5 / np.array(weights)[classes].sum())
    assert np.allclose(of_classes, of_shares, rtol=1e-12)


@pytest.mark.parametrize("soft", [False, True])
def test_probabilities_as_input(soft):
    """logits=False takes probabilities, whatever the targets."""
    y = shares(6) if soft else np.arange(6) % 4
    p = shares(6, seed=5) * 0.96 + 0.01
    config = CrossEntropyLossConfig(weights=WEIGHTS, smoothing=0.2, logits=False)

    def theirs(x, y):
        return F.cross_entropy(
            x.log(), y, balance(WEIGHTS, x.dtype), label_smoothing=0.2
        )

    # The rows sum to 1, so that log softmax of their logarithms is the logarithm.
    p /= p.sum(1, keepdims=True)
    device = Numpy(float="f64", compiled=False)
    out = config.init(device).forward(*[Tensor.from_numpy(a, device) for a in (p, y)])
    wanted = theirs(torch.from_numpy(p), torch.from_numpy(y))
    assert np.isclose(out.into_scalar(), wanted.item(), rtol=1e-12)


SECOND = {
    "classes": ({}, False),
    "classes, all options": (
        {
            "weights": WEIGHTS,
            "smoothing": 0.1,
            "pad_tokens": [PAD],
            "pads_count": False,
        },
        False,
    ),
    "probabilities": ({}, True),
    "probabilities, all options": ({"weights": WEIGHTS, "smoothing": 0.1}, True),
}


@pytest.mark.parametrize("compiled", [False, None], ids=["plain", "as it comes"])
@pytest.mark.parametrize("case", SECOND)
def test_second_slopes(case, compiled):
    options, soft = SECOND[case]
    device = Numpy(float="f64", compiled=compiled)
    y = shares(5) if soft else np.array([0, 3, 2, 1, 1])
    x, direction = scores(5), np.random.default_rng(3).normal(size=(5, 4))

    def loss(tensor):
        made = CrossEntropyLossConfig(**options).init(tensor.device())
        return made.forward(tensor, Tensor.from_numpy(y, tensor.device()))

    found, _ = second_slopes(loss, x, direction, Autodiff(device))
    other = torch.from_numpy(x).requires_grad_()
    how = {
        "weight": balance(options.get("weights"), torch.float64),
        "label_smoothing": options.get("smoothing", 0.0),
        "ignore_index": PAD if "pad_tokens" in options else -100,
    }
    out = F.cross_entropy(other, torch.from_numpy(y), **how)
    (first,) = torch.autograd.grad(out, other, create_graph=True)
    along = torch.from_numpy(direction)
    (second,) = torch.autograd.grad((first * along).sum(), other)
    assert np.isclose(found, (second * along).sum().item(), rtol=1e-9)


@devices
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_batch_of_pads_alone(name, weights, smoothing):
    config = CrossEntropyLossConfig(weights=weights, smoothing=smoothing or None)
    config = config.with_pad_tokens([PAD]).with_pads_count(False)
    classes = np.full(3, PAD)
    for reduction in WORDS:

        def theirs(x, y, reduction=reduction):
            options = {"ignore_index": PAD, "label_smoothing": smoothing}
            how, weight = WORDS[reduction], balance(weights, x.dtype)
            return F.cross_entropy(x, y, weight, reduction=how, **options)

        compare(
            name,
            lambda d, r=reduction: lambda x, y: run(config.init(d), r, x, y),
            *(theirs, scores(3), classes),
        )
    device = Autodiff(DEVICES[name])
    x = Tensor.from_numpy(scores(3).astype(np.float32), device).require_grad()
    out = config.init(device).forward(x, Tensor.from_numpy(classes, device))
    assert np.isnan(out.into_scalar())
    assert not np.asarray(x.grad(out.backward())).any()
    burns = config.with_pads_count(True).init(device)
    assert burns.forward(x, Tensor.from_numpy(classes, device)).into_scalar() == 0


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("smoothing", [None, 0.1])
def test_an_empty_batch(soft, smoothing):
    """PyTorch's mean of nothing is NaN; here it is an error that says so."""
    loss = CrossEntropyLossConfig(smoothing=smoothing).init(EXACT)
    x = Tensor.zeros([0, 4], EXACT)
    y = x if soft else Tensor.from_numpy(np.zeros(0, np.int64), EXACT)
    assert loss.forward_no_reduction(x, y).dims() == (0,)
    assert loss.forward(x, y, Reduction.Sum).into_scalar() == 0
    with pytest.raises(ShapeError, match="there is nothing to average"):
        loss.forward(x, y)


def test_pads_and_probabilities_exclude_each_other():
    """PyTorch refuses ignore_index there, too."""
    loss = CrossEntropyLossConfig(pad_tokens=[0]).init(EXACT)
    x, y = (Tensor.from_numpy(a, EXACT) for a in (scores(3), shares(3)))
    with pytest.raises(ConfigError, match="a row of zeros adds nothing"):
        loss.forward(x, y)
    with pytest.raises(RuntimeError, match="ignore_index is not supported"):
        F.cross_entropy(
            torch.zeros(3, 4), torch.full((3, 4), 0.25), ignore_index=0
        ).item()
    padded = Tensor.from_numpy(shares(3) * [[1], [0], [1]], EXACT)
    each = CrossEntropyLossConfig().init(EXACT).forward_no_reduction(x, padded)
    assert np.asarray(each)[1] == 0


# Binary


@devices
@reductions
@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=str)
def test_binary_probabilities(name, reduction, weights, logits):
    config = BinaryCrossEntropyLossConfig(weights=weights, logits=logits)
    word = "binary_cross_entropy" + ("_with_logits" if logits else "")

    def theirs(x, y):
        how = {"reduction": WORDS[reduction]}
        return getattr(F, word)(x, y, balance(weights, x.dtype), **how)

    for rows, kind in ((6, "usual"), (1, "usual"), (6, "extreme")):
        y = np.random.default_rng(4).random((rows, 4))
        y[0] = [0.0, 1.0, 0.3, 0.5]
        x = scores(rows, kind) if logits else np.random.default_rng(5).random((rows, 4))
        compare(
            name,
            lambda d: lambda *given: run(config.init(d), reduction, *given),
            *(theirs, x, y, (1,) if logits else ()),
        )


@reductions
@pytest.mark.parametrize("logits", [True, False])
def test_weights_of_zero_and_one_are_pytorchs_pos_weight(reduction, logits):
    """A target y has y times the loss of the label 1, 1 − y times that of 0."""
    y = np.random.default_rng(4).random(9)
    x = np.random.default_rng(5).normal(size=9)
    config = BinaryCrossEntropyLossConfig(weights=[1.0, 3.0], logits=logits)
    given = x if logits else 1 / (1 + np.exp(-x))
    tensors = [Tensor.from_numpy(a, EXACT) for a in (given, y)]
    out = run(config.init(EXACT), reduction, *tensors)
    wanted = F.binary_cross_entropy_with_logits(
        *(torch.from_numpy(a) for a in (x, y)),
        pos_weight=torch.tensor([3.0]).double(),
        reduction=WORDS[reduction],
    )
    assert np.allclose(out, wanted.numpy(), rtol=1e-12)


@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("smoothing", [None, 0.0, 0.1, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 3, 2), (0,), (0, 3)], ids=str)
def test_labels_as_float_count_as_labels(shape, weighted, smoothing, logits):
    rng = np.random.default_rng(3)
    x, y = rng.random(shape), rng.integers(0, 2, shape)
    size = shape[-1] if len(shape) > 1 else 2
    weights = [1.5, 0.5, 3.0][:size] if weighted else None
    config = BinaryCrossEntropyLossConfig(weights=weights, smoothing=smoothing)
    loss = config.with_logits(logits).init(EXACT)
    x, y = Tensor.from_numpy(x, EXACT), Tensor.from_numpy(y, EXACT)
    each = loss.forward_no_reduction(x, y)
    assert each.dims() == shape
    assert np.allclose(each, loss.forward_no_reduction(x, y.float()), rtol=1e-13)
    total = loss.forward(x, y, Reduction.Sum).into_scalar()
    assert np.isclose(total, np.asarray(each).sum())


@pytest.mark.parametrize("compiled", [False, None], ids=["plain", "as it comes"])
def test_second_slopes_of_binary_probabilities(compiled):
    device = Numpy(float="f64", compiled=compiled)
    x, y = scores(3).reshape(-1), np.linspace(0, 1, 12)
    direction = np.random.default_rng(3).normal(size=12)
    config = BinaryCrossEntropyLossConfig(weights=[1.0, 2.0], logits=True)

    def loss(tensor):
        made = config.init(tensor.device())
        return made.forward(tensor, Tensor.from_numpy(y, tensor.device()))

    found, _ = second_slopes(loss, x, direction, Autodiff(device))
    other, along = torch.from_numpy(x).requires_grad_(), torch.from_numpy(direction)
    out = F.binary_cross_entropy_with_logits(
        other, torch.from_numpy(y), pos_weight=torch.tensor([2.0]).double()
    )
    (first,) = torch.autograd.grad(out, other, create_graph=True)
    (second,) = torch.autograd.grad((first * along).sum(), other)
    assert np.isclose(found, (second * along).sum().item(), rtol=1e-9)


def test_targets_beyond_zero_and_one_are_refused():
    loss = BinaryCrossEntropyLossConfig(logits=True).init(EXACT)
    x = Tensor.zeros([3], EXACT)
    for wrong in (-0.5, 1.5, 255.0):
        y = Tensor.from_data([0.0, wrong, 1.0], EXACT)
        with pytest.raises(DataError, match=f"is {wrong:.4g}, not a probability"):
            loss.forward(x, y)
