"""Losses at their edges: nothing at all, certainty, infinity, and the wrong input."""

import inspect

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ConfigError, DataError, ShapeError
from burnbook.nn import Reduction
from burnbook.nn.check import Trial
from burnbook.tensor import Tensor
from tests.nn.test_every import EVERY, More, name_of

AD = Autodiff(Numpy(float="f64"))
TYPES = {kind: Autodiff(Numpy(float=kind)) for kind in ("f16", "f32", "f64")}
REDUCTIONS = [getattr(Reduction, name) for name in Reduction.variants]


def losses():
    """The rows of the losses among all layers."""
    for subject, *inputs in EVERY:
        more = inputs.pop() if isinstance(inputs[-1], More) else More()
        made = type(subject).__name__.removesuffix("Config")
        if made.endswith("Loss"):
            yield subject, inputs, more


LOSSES = list(losses())


def emptied(loss, inputs):
    """The inputs without examples."""
    axis = 1 if isinstance(loss, nn.CTCLossConfig) else 0
    made = []
    for i, one in enumerate(inputs):
        array = np.zeros(one) if isinstance(one, list) else one
        if callable(array):
            array = np.asarray(array(AD))
        at = axis if i == 0 else 0
        made.append(np.take(array, [], axis=at))
    return made


def test_every_loss_has_a_row():
    named = {name for name in nn.__all__ if name.endswith("Loss")}
    rows = {type(row[0]).__name__.removesuffix("Config") for row in LOSSES}
    assert rows == named


@pytest.mark.parametrize("row", LOSSES, ids=lambda row: name_of(row))
@pytest.mark.parametrize("reduction", REDUCTIONS, ids=str)
def test_of_an_empty_batch_the_sum_is_0_and_a_mean_is_refused(row, reduction):
    subject, inputs, _ = row
    trial = Trial(subject, tuple(inputs), AD, None)
    loss = trial.make()
    given = [Tensor.from_numpy(a, AD) for a in emptied(subject, inputs)]
    run = loss.forward
    if "reduction" not in inspect.signature(run).parameters:
        run = loss.forward_with_reduction
    if reduction == Reduction.Sum:
        assert run(*given, reduction=reduction).into_scalar() == 0
        return
    with pytest.raises(ShapeError, match="there is nothing to average"):
        run(*given, reduction=reduction)
    assert 0 in loss.forward_no_reduction(*given).dims()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("target", [0, 1])
def test_a_wrong_certainty_has_a_finite_loss_and_a_bounded_gradient(kind, target):
    device = TYPES[kind]
    loss = nn.BinaryCrossEntropyLossConfig().init(device)
    labels = Tensor.from_ints([target], device)
    bound = min(1e12, float(np.finfo(device.float_dtype).max) / 1.01)
    for p in (
        0.0,
        1e-40,
        1e-30,
        1e-13,
        1.7e-5,
        3e-5,
        1e-3,
        0.5,
        1 - 1e-3,
        1 - 1e-6,
        1.0,
    ):
        x = Tensor.from_floats([p], device).require_grad()
        value = loss.forward(x, labels)
        held = float(np.asarray(x)[0])  # as the type rounds it
        right = held if target else 1 - held
        with np.errstate(divide="ignore"):
            exact = np.log(held) if target else np.log1p(-held)
        assert value.into_scalar() == pytest.approx(min(100.0, -exact), rel=2e-3)
        slope = float(np.asarray(x.grad(value.backward()))[0])
        wanted = min(bound, 1 / right) if right else bound
        assert slope == pytest.approx(-wanted if target else wanted, rel=2e-3)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("x", [-11.0, -9.5, -8.0, -2.0])
def test_the_worst_example_learns_with_and_without_a_sigmoid_before(kind, logits, x):
    """The slope is σ(x) − 1, though p and 1 / p are at the ends of float16."""
    device = TYPES[kind]
    leaf = Tensor.from_floats([x], device).require_grad()
    loss = nn.BinaryCrossEntropyLossConfig(logits=logits).init(device)
    given = leaf if logits else leaf.sigmoid()
    value = loss.forward(given, Tensor.from_ints([1], device))
    slope = float(np.asarray(leaf.grad(value.backward()))[0])
    assert slope == pytest.approx(1 / (1 + np.exp(-x)) - 1, rel=4e-3)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("floats", [True, False])
@pytest.mark.parametrize("weights", [None, [2.0, 3.0]])
def test_infinite_logits_are_right_or_infinitely_wrong(kind, floats, weights):
    device = TYPES[kind]
    config = nn.BinaryCrossEntropyLossConfig(weights=weights, logits=True)
    loss = config.init(device)
    for sign, target in ((1, 1), (1, 0), (-1, 1), (-1, 0)):
        x = Tensor.from_floats([sign * float("inf")], device).require_grad()
        y = Tensor.from_ints([target], device)
        value = loss.forward(x, y.float() if floats else y)
        right = (sign > 0) == bool(target)
        assert value.into_scalar() == (0.0 if right else float("inf"))
        slope = float(np.asarray(x.grad(value.backward()))[0])
        weight = 1.0 if weights is None else weights[target]
        assert slope == (0.0 if right else sign * weight)


def test_a_collapsed_variance_keeps_its_gradient():
    loss = nn.GaussianNLLLossConfig().init()
    x, y, v = (
        Tensor.from_data([value], AD).require_grad() for value in (0.0, 3.0, 1e-7)
    )
    slope = float(np.asarray(v.grad(loss.forward(x, y, v).backward()))[0])
    assert slope == pytest.approx((1 / 1e-6 - 9 / 1e-12) / 2)


def test_second_derivatives_go_through_what_is_bounded():
    twice = Autodiff(Autodiff(Numpy(float="f64")))
    for make in (lambda: nn.HuberLossConfig(1.0), nn.SmoothL1LossConfig):
        x = Tensor.from_data([0.0, 0.5, 3.0], twice).require_grad()
        out = make().init().forward_no_reduction(x, Tensor.zeros([3], twice)).sum()
        slope = x.grad(out.backward())
        inner = Tensor.from_inner(slope, AD) if slope.device() is not AD else slope
        assert np.allclose(np.asarray(inner), [0.0, 0.5, 1.0])


# Inputs of another meaning


def test_the_divergence_refuses_what_is_no_logarithm_of_probabilities():
    p = Tensor.from_data([[0.2, 0.8], [0.5, 0.5]], AD)
    loss = nn.KLDivLossConfig().init()
    with pytest.raises(DataError, match="not the logarithm of a probability") as said:
        loss.forward(p, p)
    assert "predictions.log() of probabilities" in str(said.value)
    assert loss.forward(p.log(), p).into_scalar() == pytest.approx(0, abs=1e-12)
    with pytest.raises(DataError, match="not a probability") as said:
        loss.forward(p.log(), p.log())
    assert "with_log_target(True)" in str(said.value)
    logs = nn.KLDivLossConfig().with_log_target(True).init()
    assert logs.forward(p.log(), p.log()).into_scalar() == pytest.approx(0, abs=1e-12)
    with pytest.raises(DataError, match="an element of targets"):
        logs.forward(p.log(), p)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("tracked", [True, False])
def test_probabilities_for_scores_are_seen_with_or_without_a_graph(kind, tracked):
    device = TYPES[kind] if tracked else TYPES[kind].inner
    loss = nn.CrossEntropyLossConfig().init(device)
    rng = np.random.default_rng(2)
    scores = Tensor.from_data(rng.normal(size=(8, 5)), device)
    targets = Tensor.from_ints([0, 1, 2, 3, 4, 0, 1, 2], device)
    p = scores.softmax(1)
    for given in (p, p.reshape([8, 5]), p.clone()):
        with pytest.raises(ConfigError, match="been through a softmax"):
            loss.forward(given, targets)
    plain = nn.CrossEntropyLossConfig().with_logits(False).init(device)
    same = loss.forward(scores, targets).into_scalar()
    assert plain.forward(p, targets).into_scalar() == pytest.approx(same, rel=2e-2)


@pytest.mark.parametrize("rows", [np.eye(3), [[0.3, 0.7]], [[0.5, 0.5], [1.0, 2.0]]])
def test_scores_that_happen_to_sum_to_one_are_taken(rows):
    scores = Tensor.from_data(np.asarray(rows, float), AD)
    targets = Tensor.from_ints([0] * len(rows), AD)
    assert np.isfinite(
        nn.CrossEntropyLossConfig().init(AD).forward(scores, targets).into_scalar()
    )


@pytest.mark.parametrize("targets", [[0, 1, 0, 1], [0, 0, 0, 0]])
@pytest.mark.parametrize(
    "config", [nn.CrossEntropyLossConfig(), nn.MultiMarginLossConfig()], ids=repr
)
def test_one_column_of_scores_leaves_nothing_to_choose(config, targets):
    loss = Trial(config, (), AD, None).make()
    scores = Tensor.from_data([[0.3], [1.2], [-0.4], [2.0]], AD)
    labels = Tensor.from_ints(targets, AD)
    with pytest.raises(ShapeError, match="have one column") as said:
        loss.forward(scores, labels)
    text = str(said.value)
    assert "two outputs" in text
    assert "BinaryCrossEntropyLossConfig().with_logits(True)" in text
    cured = nn.BinaryCrossEntropyLossConfig().with_logits(True).init(AD)
    assert isinstance(cured.forward(scores, labels.unsqueeze_dim(1)), Tensor)


def test_weighted_means_of_many_rows_stay_in_float16():
    device = TYPES["f16"].inner
    rows = 70_000
    scores = Tensor.zeros([rows, 2], device)
    targets = Tensor.from_ints(np.arange(rows) % 2, device)
    for config in (
        nn.CrossEntropyLossConfig(weights=[1.0, 3.0]),
        nn.CrossEntropyLossConfig(pad_tokens=[7], pads_count=False),
    ):
        found = config.init(device).forward(scores, targets).into_scalar()
        assert found == pytest.approx(np.log(2), rel=2e-3)
