"""Random training loops, captured against step by step: no silent difference."""

import random

import numpy as np
import pytest

from burnbook import nn, seed
from burnbook.backend import Autodiff, Numpy
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.lr_scheduler import CosineAnnealingLrSchedulerConfig
from burnbook.module import Module
from burnbook.optim import (
    AdamConfig,
    AdamWConfig,
    GradientsAccumulator,
    GradientsParams,
    LionConfig,
    MomentumConfig,
    ParamGroup,
    RmsPropConfig,
    SgdConfig,
)
from burnbook.program import captured
from burnbook.tensor import Tensor

AD = Autodiff(Numpy())
WIDTH = 5


class Net(Module):
    layers: list[nn.Linear | nn.BatchNorm | nn.LayerNorm | nn.Dropout]
    kind: str
    head: nn.Linear

    def forward(self, x):
        for layer in self.layers:
            y = layer.forward(x)
            x = y if y is x else getattr(y, self.kind)()
        return self.head.forward(x)


def layer_of(draw):
    return draw.choice(
        [
            lambda: nn.LinearConfig(WIDTH, WIDTH, bias=draw.random() < 0.7).init(AD),
            lambda: nn.LinearConfig(WIDTH, WIDTH).init(AD),
            lambda: nn.BatchNormConfig(WIDTH).init(AD),
            lambda: nn.LayerNormConfig(WIDTH).init(AD),
            lambda: nn.DropoutConfig(draw.choice([0.0, 0.2, 0.5])).init(),
        ]
    )()


def net(draw):
    layers = [layer_of(draw) for _ in range(draw.randint(1, 3))]
    kind = draw.choice(["relu", "tanh", "sigmoid", "square", "abs"])
    made = Net(layers, kind, nn.LinearConfig(WIDTH, 3).init(AD))
    for _, param in made.named_params():
        param.val()
    return made


def clipping(draw):
    make = GradientClippingConfig
    return draw.choice([None, make.Value(0.05), make.Norm(0.1), make.GlobalNorm(0.2)])


def optimizer(draw):
    clip = clipping(draw)
    momentum = MomentumConfig(momentum=0.8, nesterov=draw.random() < 0.5)
    made = draw.choice(
        [
            SgdConfig(gradient_clipping=clip),
            SgdConfig(gradient_clipping=clip, momentum=momentum),
            AdamConfig(grad_clipping=clip),
            AdamWConfig(grad_clipping=clip, weight_decay=0.1),
            RmsPropConfig(grad_clipping=clip),
            LionConfig(grad_clipping=clip),
        ]
    ).init()
    if draw.random() < 0.3:
        made = made.with_group(ParamGroup.from_predicate("head"), SgdConfig())
    return made


def batch(draw):
    count = draw.choice([4, 4, 4, 2])
    rng = np.random.default_rng(draw.randint(0, 1 << 30))
    x = rng.standard_normal((count, WIDTH)).astype(np.float32)
    return Tensor.from_numpy(x, AD), Tensor.from_ints(rng.integers(0, 3, count), AD)


def loss_of(model, x, targets, smooth):
    out = model.forward(x)
    loss = nn.CrossEntropyLossConfig().init(AD).forward(out, targets)
    return loss + out.square().mean() * smooth


def whole(model, optim, lr, x, targets, smooth):
    loss = loss_of(model, x, targets, smooth)
    grads = GradientsParams.from_grads(loss.backward(), model)
    return optim.step(lr, model, grads), loss


def half(model, x, targets, smooth):
    loss = loss_of(model, x, targets, smooth)
    return GradientsParams.from_grads(loss.backward(), model), loss


HEAD = ParamGroup.from_predicate("head")


def changed(draw, model, optim):
    """What a reader may do between two steps."""
    what = draw.choice(["freeze", "unfreeze", "clip", "rule", "fork", "kind"])
    if what == "freeze" and len(model.named_params()) > 2:
        return model.freeze_group(HEAD)
    if what == "unfreeze":
        return model.unfreeze_group(ParamGroup.all())
    if what == "clip":
        clip = clipping(draw)
        optim.with_grad_clipping(clip)
    if what == "rule" and hasattr(optim.optim, "epsilon"):
        optim.optim.epsilon = 1e-3
    if what == "kind":
        return Net(model.layers, "tanh", model.head)
    return model.fork(AD) if what == "fork" else model


def run(number, step_whole, step_half):
    """One loop, all of which its number decides."""
    seed(number)
    draw = random.Random(number)
    model, optim = net(draw), optimizer(draw)
    rate = draw.choice([0.01, 0.1])
    schedule = CosineAnnealingLrSchedulerConfig(rate, 6).init()
    sums = draw.choice([1, 1, 2])
    smooth = draw.choice([0.0, 0.1])
    collected, losses = GradientsAccumulator(), []
    for i in range(7):
        lr, (x, targets) = schedule.step(), batch(draw)
        if draw.random() < 0.15:
            model = changed(draw, model, optim)
        if sums == 1:
            model, loss = step_whole(model, optim, lr, x, targets, smooth)
        else:
            grads, loss = step_half(model, x, targets, smooth)
            collected.accumulate(model, grads)
            if i % 2:
                model = optim.step(lr, model, collected.grads())
        losses.append(loss.into_scalar())
    params = {path: np.asarray(p.val()) for path, p in model.named_params()}
    return losses, params, model.valid().forward(batch(draw)[0].inner())


def compared(number):
    """Whether a plan ran at all; what comes out must agree."""
    steps = captured(whole), captured(half)
    losses, params, out = run(number, *steps)
    others, wanted, expected = run(number, whole, half)
    told = [text for step in steps for text in step.refusals]
    assert not told, (number, told)
    np.testing.assert_allclose(losses, others, 1e-3, 1e-4, err_msg=str(number))
    for path in wanted:
        np.testing.assert_allclose(
            params[path], wanted[path], 5e-3, 5e-4, err_msg=f"{number} {path}"
        )
    np.testing.assert_allclose(
        np.asarray(out), np.asarray(expected), 2e-2, 2e-3, err_msg=str(number)
    )
    return any(step._plans for step in steps)


@pytest.mark.filterwarnings("ignore:.*the optimizer clips gradients")
def test_random_loops_agree():
    ran = [compared(number) for number in range(8)]
    assert sum(ran) >= 6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*the optimizer clips gradients")
@pytest.mark.parametrize("block", range(20))
def test_two_thousand_random_loops_agree(block):
    ran = [compared(100 + 100 * block + number) for number in range(100)]
    assert sum(ran) > 90
