"""The learning rate finder: its curve, its suggestion, and what it leaves alone."""

import copy

import numpy as np
import pytest

from burnbook import nn
from burnbook.core.errors import ConfigError, TrainingError
from burnbook.module import Module, Param
from burnbook.optim import AdamConfig, SgdConfig
from burnbook.tensor import Tensor
from burnbook.train import (
    LearningRateCurve,
    RegressionOutput,
    TrainOutput,
    find_learning_rate,
)
from burnbook.train.lr_finder import longest_fall
from tests.support.tiny_training import (
    DEVICE,
    PLAIN,
    learner,
    loader,
    same_weights,
    tiny,
    weights,
)


class Bowl(Module):
    """loss = ½ k |w|²: gradient descent converges below 1/k and explodes above 2/k."""

    w: Param
    steepness: float

    def train_step(self, batch):
        w = self.w.val()
        loss = (w * w).sum() * (self.steepness / 2)
        item = RegressionOutput(loss, w.unsqueeze(), w.unsqueeze())
        return TrainOutput(self, loss.backward(), item)


def bowl(steepness=1.0):
    return Bowl(Param.from_tensor(Tensor.ones([4], DEVICE)), steepness)


class Batch:
    def __init__(self, batches=3):
        self.batches, self.walks = batches, 0

    def __iter__(self):
        self.walks += 1
        return iter(range(self.batches))


def find(model, **options):
    options = {"lowest": 1e-4, "highest": 1e3, "steps": 60, **options}
    return find_learning_rate(model, SgdConfig().init(), Batch(), **options)


@pytest.mark.parametrize("steepness", [0.1, 1.0, 10.0])
def test_the_suggestion_is_where_gradient_descent_converges(steepness):
    found = find(bowl(steepness))
    assert 0.02 / steepness < found.suggestion < 2 / steepness
    assert 0.02 / steepness < found.steepest < 2 / steepness
    assert found.diverged
    assert found.rates[-1] < 1e3


def test_rates_grow_by_the_same_factor():
    found = find(bowl(), steps=50, highest=1e-2)
    factors = np.array(found.rates[1:]) / np.array(found.rates[:-1])
    np.testing.assert_allclose(factors, factors[0])
    assert (found.rates[0], len(found.rates)) == (1e-4, 50)
    assert found.rates[-1] == pytest.approx(1e-2)
    assert not found.diverged


def test_the_first_losses_are_those_of_the_formula():
    found = find(bowl(), steps=5, highest=1.0, smoothing=0.5)
    w = 1.0
    for rate, loss in zip(found.rates, found.losses, strict=True):
        assert loss == pytest.approx(2 * w * w, rel=1e-5)
        w -= rate * w
    one, two = found.losses[:2]
    assert found.smoothed[0] == pytest.approx(one)
    assert found.smoothed[1] == pytest.approx((0.25 * one + 0.5 * two) / 0.75)


def test_a_short_loader_is_walked_again():
    batches = Batch(7)
    find_learning_rate(bowl(), SgdConfig().init(), batches, steps=20, highest=1e-3)
    assert batches.walks == 3


class Normed(Module):
    """A network with what a forward pass changes: running means, and dropout."""

    linear: nn.Linear
    norm: nn.BatchNorm
    dropout: nn.Dropout

    def train_step(self, batch):
        out = self.dropout.forward(self.norm.forward(self.linear.forward(batch.x)))
        loss = (out * out).mean()
        return TrainOutput(self, loss.backward(), RegressionOutput(loss, out, out))


def test_model_optimizer_and_random_numbers_stay_as_they_were():
    model = Normed(
        nn.LinearConfig(4, 3).init(DEVICE),
        nn.BatchNormConfig(3).init(DEVICE),
        nn.DropoutConfig(0.5).init(),
    )
    optim = AdamConfig().init()
    DEVICE.seed(3)
    before, state = weights(model), copy.deepcopy(optim.into_record())
    expected = np.asarray(Tensor.random([3], device=DEVICE))
    DEVICE.seed(3)
    found = find_learning_rate(model, optim, loader(), steps=20)
    assert len(found.losses) == 20
    after = weights(model)
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert optim.into_record() == state
    assert np.array_equal(np.asarray(Tensor.random([3], device=DEVICE)), expected)


def test_training_after_it_is_the_same_as_without_it(tmp_path):
    plain, looked = tiny(), tiny()
    find_learning_rate(looked, AdamConfig().init(), loader(), steps=10)
    one = learner(tmp_path / "a", model=plain).fit(loader(), loader(1))
    two = learner(tmp_path / "b", model=looked).fit(loader(), loader(1))
    assert same_weights(one, two)


def test_it_repeats_to_the_bit():
    one = find_learning_rate(tiny(), AdamConfig().init(), loader(), steps=15)
    two = find_learning_rate(tiny(), AdamConfig().init(), loader(), steps=15)
    assert one == two


def test_a_model_without_autodiff_is_given_one():
    found = find_learning_rate(tiny(PLAIN), AdamConfig().init(), loader())
    assert (
        found.losses == find_learning_rate(tiny(), AdamConfig().init(), loader()).losses
    )


def test_the_longest_fall_may_have_bumps():
    assert longest_fall([5, 4, 6, 3, 7, 2, 8]) == (0, 5)
    assert longest_fall([1, 2, 3]) == (0, 0)


def test_the_valley_does_not_fall_for_one_lucky_batch():
    losses = [*np.linspace(3, 2.9, 10), 1.0, *np.linspace(2.9, 1.5, 30), 4, 9]
    rates = np.logspace(-4, 1, len(losses)).tolist()
    curve = LearningRateCurve(tuple(rates), tuple(losses), tuple(losses), True)
    assert rates[20] < curve.valley < rates[40]
    assert curve.suggestion == curve.valley


def test_the_curve_prints_as_a_picture():
    text = str(find(bowl()))
    lines = text.splitlines()
    assert len(lines) == 15
    assert "▲" in lines[-3]
    assert "1e-04" in lines[-2]
    assert lines[-1].startswith("suggestion ")
    assert lines[-1].endswith("where the loss exploded")


def test_the_curve_on_a_page_takes_the_colors_of_the_page():
    page = find(bowl())._repr_html_()
    assert page.startswith("<svg ")
    assert "currentColor" in page
    assert "#" not in page


def test_a_flat_curve_still_has_a_suggestion():
    flat = (1.0,) * 10
    curve = LearningRateCurve(tuple(np.logspace(-4, 1, 10)), flat, flat, False)
    assert curve.rates[0] / 10 <= curve.steepest <= curve.rates[-1]
    assert curve.rates[0] <= curve.suggestion <= curve.rates[-1]
    assert str(curve)


def test_what_cannot_be_searched_is_explained():
    with pytest.raises(ConfigError, match="steps=2"):
        find(bowl(), steps=2)
    with pytest.raises(TrainingError, match="not a number after only 0 steps"):
        find(bowl(float("nan")))
