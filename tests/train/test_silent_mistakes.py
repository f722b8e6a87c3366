"""Programs that train badly without an error warn, and those that are right do not."""

import copy
import warnings

import numpy as np
import pytest

from burnbook import nn
from burnbook.core.errors import GraphError, ResultDropped
from burnbook.data import DataLoaderBuilder
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.lr_scheduler import (
    CosineAnnealingLrSchedulerConfig,
    ExponentialLrSchedulerConfig,
    StepLrSchedulerConfig,
)
from burnbook.nn.attention import generate_autoregressive_mask
from burnbook.optim import (
    AdamConfig,
    GradientsAccumulator,
    GradientsParams,
    MomentumConfig,
    SgdConfig,
)
from burnbook.prelude import Autodiff, Module, Numpy, Param, Tensor
from burnbook.train import ClassificationOutput, Ema, LearnerBuilder, TrainOutput

DEVICE = Autodiff(Numpy(compiled=False))
X = Tensor.ones([4, 2], DEVICE)


def linear():
    return nn.LinearConfig(2, 2).init(DEVICE)


def grads(model, times=1.0):
    return GradientsParams.from_grads((model(X) * times).sum().backward(), model)


def said(act):
    """The first lines of what an action warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [str(w.message) for w in caught]


# Optimizers


RULES = {
    "adam": AdamConfig(),
    "momentum": SgdConfig(momentum=MomentumConfig(momentum=0.9)),
}


@pytest.mark.parametrize("rule", RULES)
def test_an_optimizer_for_each_step_warns_once(rule):
    def act():
        model = linear()
        for _ in range(6):
            model = RULES[rule].init().step(0.1, model, grads(model))

    (text,) = said(act)
    assert "each by an optimizer of its own" in text
    assert "optim = RULES[rule].init() once, before the loop" in text


def test_an_optimizer_without_a_memory_may_be_made_anew():
    def act():
        model = linear()
        for _ in range(6):
            model = SgdConfig().init().step(0.1, model, grads(model))

    assert said(act) == []


def test_new_optimizers_for_other_models_are_right():
    def several():
        for _ in range(6):
            made = linear()
            AdamConfig().init().step(0.1, made, grads(made)).forward(X)

    def from_one():
        start = linear()
        for rate in (0.1, 0.2, 0.3, 0.4, 0.5):
            AdamConfig().init().step(rate, start, grads(start)).forward(X)

    def stages():
        model = linear()
        for _ in range(6):
            optim = AdamConfig().init()
            for _ in range(2):
                model = optim.step(0.1, model, grads(model))

    for act in (several, from_one, stages):
        assert said(act) == []


@pytest.mark.parametrize("rule", RULES)
def test_steps_whose_result_is_not_kept_warn_once(rule):
    def act():
        model, optim = linear(), RULES[rule].init()
        for _ in range(8):
            better = optim.step(0.1, model, grads(model))
        return better

    (text,) = said(act)
    assert "4 steps start from one model" in text
    assert text.endswith("try: model = optim.step(0.1, model, grads(model))")
    with pytest.warns(ResultDropped):
        act()


def test_steps_that_are_kept_are_right():
    def kept():
        model, optim = linear(), AdamConfig().init()
        for _ in range(8):
            model = optim.step(0.1, model, grads(model))

    def two_models():
        one, other, optim = linear(), linear(), AdamConfig().init()
        for _ in range(8):
            one = optim.step(0.1, one, grads(one))
            other = optim.step(0.1, other, grads(other))

    def from_one_start():
        start = linear()
        for _ in range(8):
            optim = AdamConfig().init()
            optim.step(0.1, start, grads(start)).forward(X)
            copy.deepcopy(optim)

    def several_rates():
        start, optim = linear(), SgdConfig().init()
        for rate in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6):
            optim.step(rate, start, grads(start)).forward(X)

    for act in (kept, two_models, from_one_start, several_rates):
        assert said(act) == []


def test_a_rule_without_memory_steps_from_one_model_for_several_tasks():
    """As meta-learning does, and clients of one server."""

    def act():
        start, inner = linear(), SgdConfig().init()
        for _ in range(8):
            inner.step(0.1, start, grads(start)).forward(X)

    assert said(act) == []


def test_models_that_come_and_go_are_not_one(monkeypatch):
    def act():
        optim = AdamConfig().init()
        for _ in range(8):
            model = linear()
            optim.step(0.1, model, grads(model)).forward(X)
            del model

    assert said(act) == []


# Gradients that are gone


def test_sums_that_were_asked_for_twice_say_so():
    model, accumulator = linear(), GradientsAccumulator()
    accumulator.accumulate(model, grads(model))
    accumulator.grads()
    with pytest.raises(GraphError, match="has given the sums before") as caught:
        SgdConfig().init().step(0.1, model, accumulator.grads())
    assert "once for each step" in caught.value.cure
    for _ in range(3):  # what is right
        accumulator.accumulate(model, grads(model))
        accumulator.accumulate(model, grads(model))
        model = SgdConfig().init().step(0.1, model, accumulator.grads())
    assert len(accumulator.grads()) == 0


def test_a_part_without_a_gradient_this_time_has_none():
    model, accumulator = linear(), GradientsAccumulator()
    accumulator.accumulate(model, grads(model))
    accumulator.grads()
    loss = (X @ model.weight.val()).sum()
    accumulator.accumulate(model, GradientsParams.from_grads(loss.backward(), model))
    sums = accumulator.grads()
    assert sums.get(model.bias.id) is None
    assert sums.get(model.weight.id) is not None


def test_clipping_after_the_step_says_so():
    model, found = linear(), None
    found = grads(model)
    clip = GradientClippingConfig.GlobalNorm(1.0).init()
    clipped = clip.clip_gradients(found)
    model = SgdConfig().init().step(0.1, model, clipped)
    with pytest.raises(GraphError, match="nothing to clip") as caught:
        clip.clip_gradients(clipped)
    assert "before step" in caught.value.cure
    assert len(clip.clip_gradients(GradientsParams())) == 0


# Layers that are no fields


def test_a_layer_without_an_annotation_warns():
    def layer():
        class Wrong(Module):
            fc = linear()

    def param():
        class Wrong(Module):
            weight = Param.from_tensor(X)

    for act, name in ((layer, "fc: Linear"), (param, "weight: Param")):
        (text,) = said(act)
        assert f"`{name}` in its place" in text


def test_what_a_class_may_hold_is_right():
    def act():
        class Right(Module):
            fc: nn.Linear = linear()
            loss = nn.MseLoss()
            relu = nn.Relu()
            kind = nn.Linear
            config = nn.LinearConfig(2, 2)
            size = 3
            table = X

        class Below(Right):
            pass

        Right().forward = None if False else 1

    with pytest.raises(Exception, match="never changes"):
        assert said(act) == []


# Masks


def mask(values):
    return Tensor.from_numpy(np.asarray(values)[None], DEVICE).bool()


def attended(hidden):
    layer = nn.MultiHeadAttentionConfig(4, 2).init(DEVICE)
    x = Tensor.ones([1, hidden.dims()[1], 4], DEVICE)
    layer(nn.MhaInput.self_attn(x).mask_attn(hidden))


@pytest.mark.parametrize("steps", [2, 3, 7])
def test_triangles_that_hide_the_wrong_side_warn(steps):
    whole = np.ones((steps, steps), bool)
    (text,) = said(lambda: attended(mask(np.tril(whole))))
    assert "hides the past and shows the future" in text
    (text,) = said(lambda: attended(mask(np.triu(whole))))
    assert "hides the position itself" in text
    assert "generate_autoregressive_mask(" in text
    made = mask(np.tril(whole)).bool_not()
    assert np.array_equal(made, generate_autoregressive_mask(1, steps, DEVICE))


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_other_masks_are_right(steps):
    whole = np.ones((steps, steps), bool)
    right = {
        "autoregressive": np.triu(whole, 1),
        "backward": np.tril(whole, -1),
        "nothing": ~whole,
        "itself": np.eye(steps, dtype=bool) & (steps > 1),
        "window": np.triu(whole, 1) | np.tril(whole, -2),
        "both ends": (np.eye(steps) + np.eye(steps)[::-1] > 0) & (steps > 2),
    }
    for name, values in right.items():
        assert said(lambda values=values: attended(mask(values))) == [], name


# Schedules that are meant by the epoch


class Net(Module):
    fc: nn.Linear

    def train_step(self, batch):
        item = self.valid_step(batch)
        return TrainOutput(self, item.loss.backward(), item)

    def valid_step(self, batch):
        x, y = batch
        out = self.fc(x)
        loss = nn.CrossEntropyLossConfig().init(x.device()).forward(out, y)
        return ClassificationOutput(loss, out, y)


def trained(tmp_path, schedule, epochs):
    data = (np.ones((16, 2), np.float32), np.arange(16) % 2)
    loader = DataLoaderBuilder().batch_size(2).build(data)
    builder = LearnerBuilder(tmp_path).renderer(None).num_epochs(epochs)
    learner = builder.build(Net(linear()), SgdConfig().init(), schedule)
    return said(lambda: learner.fit(loader))


BY_EPOCH = {
    "step": (StepLrSchedulerConfig(0.1, 3).with_gamma(0.1), 6, "step_size=24"),
    "each": (StepLrSchedulerConfig(0.1, 1).with_gamma(0.1), 6, "step_size=8"),
    "exponential": (ExponentialLrSchedulerConfig(0.1, 0.5), 6, "gamma=0.917004"),
    "slower": (ExponentialLrSchedulerConfig(0.1, 0.9), 30, "gamma=0.986916"),
}


@pytest.mark.parametrize("name", BY_EPOCH)
def test_a_rate_that_falls_by_the_batch_warns(tmp_path, name):
    config, epochs, cure = BY_EPOCH[name]
    (text,) = trained(tmp_path, config.init(), epochs)
    assert "goes on with each batch, and 8 of them are an epoch" in text
    assert cure in text


RIGHT = {
    "step by epochs": (StepLrSchedulerConfig(0.1, 24).with_gamma(0.1), 6),
    "a little": (StepLrSchedulerConfig(0.1, 3).with_gamma(0.9), 6),
    "short": (StepLrSchedulerConfig(0.1, 3).with_gamma(0.1), 1),
    "low at the end": (ExponentialLrSchedulerConfig(0.1, 0.86), 6),
    "nothing": (ExponentialLrSchedulerConfig(0.1, 1.0), 6),
    "cosine": (CosineAnnealingLrSchedulerConfig(0.1, 48), 6),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_rate_that_ends_low_is_right(tmp_path, name):
    config, epochs = RIGHT[name]
    assert trained(tmp_path, config.init(), epochs) == []


# Averages


def test_an_average_that_forgets_warns():
    for decay, cure in ((0.001, "Ema(0.999)"), (0.1, "Ema(0.9)")):
        (text,) = said(lambda decay=decay: Ema(decay))
        assert text.endswith(f"try: {cure}")
    for decay in (0.0, 0.5, 0.9, 0.999):
        assert said(lambda decay=decay: Ema(decay)) == []
