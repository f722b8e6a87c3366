"""How exact float32 steps are: the corrections are Burn's, and nothing else is lost.

Burn takes 1 − βᵗ in float32, where βᵗ near 1 leaves but a few digits. Steps that follow
Burn cannot be those of PyTorch to the last digit; but beside the same formula in
float64, with Burn's corrections, they lose no more than PyTorch's float32 does.
"""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.module import Module, Param
from burnbook.optim import (
    AdamConfig,
    AdamWConfig,
    AdanConfig,
    GradientsParams,
    LambConfig,
)
from burnbook.tensor import Tensor

F32 = np.float32
STEPS, SIZE, LR = 100, 1000, 0.01


class Weights(Module):
    w: Param


def single(beta):
    return float(F32(beta))


def in_f32(beta, time):
    """1 − βᵗ in float32, by squaring, as in Burn."""
    power, square = F32(1), F32(beta)
    while time:
        power = power * square if time & 1 else power
        square, time = square * square, time >> 1
    return float(F32(1) - power)


def in_f64(beta, time):
    return 1 - single(beta) ** time


def adam(grads, epsilon, corrected, decay=0.0, largest=False):
    """Adam in float64, with betas of float32."""
    b_1, b_2 = single(0.9), single(0.999)
    w = m = v = top = np.zeros(grads.shape[1])
    for time, g in enumerate(grads, 1):
        m, v = b_1 * m + (1 - b_1) * g, b_2 * v + (1 - b_2) * g * g
        top = np.maximum(top, v) if largest else v
        root = np.sqrt(top / corrected(0.999, time)) + epsilon
        w = w * (1 - LR * decay) - LR * m / corrected(0.9, time) / root
    return w


def adan(grads, epsilon):
    b_1, b_2, b_3 = map(single, (0.98, 0.92, 0.99))
    w = m = d = n = np.zeros(grads.shape[1])
    before = grads[0]
    for time, g in enumerate(grads, 1):
        change, before = g - before, g
        m, d = b_1 * m + (1 - b_1) * g, b_2 * d + (1 - b_2) * change
        n = b_3 * n + (1 - b_3) * (g + b_2 * change) ** 2
        root = np.sqrt(n / in_f64(0.99, time)) + epsilon
        w = w - LR * (m / in_f64(0.98, time) + b_2 * d / in_f64(0.92, time)) / root
    return w


OURS = {
    "adam": (
        AdamConfig(epsilon=1e-8),
        lambda g: adam(g, 1e-8, in_f32),
        {"cls": "Adam"},
    ),
    "adamw": (
        AdamWConfig(epsilon=1e-8, weight_decay=0.1),
        lambda g: adam(g, 1e-8, in_f32, decay=0.1),
        {"cls": "AdamW", "weight_decay": 0.1},
    ),
    "amsgrad": (
        AdamConfig(epsilon=1e-8, amsgrad=True),
        lambda g: adam(g, 1e-8, in_f32, largest=True),
        {"cls": "Adam", "amsgrad": True},
    ),
    "adan": (AdanConfig(), lambda g: adan(g, 1e-8), {"cls": "Adam"}),
    "lamb": (
        LambConfig(epsilon=1e-8, weight_decay=0.0, use_trust_ratio=False),
        lambda g: adam(g, 1e-8, in_f32),
        {"cls": "Adam"},
    ),
}


def ours(config, grads, device):
    model = Weights(Param.from_tensor(Tensor.zeros([grads.shape[1]], device)))
    optim = config.init()
    for row in grads:
        loss = (model.w.val() * Tensor.from_numpy(row, device)).sum()
        grads_of = GradientsParams.from_grads(loss.backward(), model)
        model = optim.step(LR, model, grads_of)
    return np.asarray(model.w.val())


def error_of_torch(cls, grads, **options):
    torch = pytest.importorskip("torch")
    ends = []
    for dtype in (torch.float32, torch.float64):
        w = torch.zeros(grads.shape[1], dtype=dtype, requires_grad=True)
        optim = getattr(torch.optim, cls)([w], lr=LR, **options)
        for row in grads:
            w.grad = torch.from_numpy(row).to(dtype)
            optim.step()
        ends.append(w.detach().double())
    return float((ends[0] - ends[1]).abs().max())


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", OURS)
def test_float32_steps_lose_no_more_than_those_of_pytorch(name, compiled):
    grads = np.random.default_rng(1).normal(size=(STEPS, SIZE)).astype(F32)
    config, formula, other = OURS[name]
    found = ours(config, grads, Autodiff(Numpy(compiled=compiled)))
    lost = abs(found - formula(grads.astype(float))).max()
    assert 0 < lost < 2.5 * error_of_torch(grads=grads, **other)


@pytest.mark.parametrize("name", ["adam", "adamw", "amsgrad"])
def test_float64_steps_are_the_formula_of_pytorch(name):
    torch = pytest.importorskip("torch")
    grads = np.random.default_rng(2).normal(size=(20, 50))
    config, _, other = OURS[name]
    found = ours(config, grads, Autodiff(Numpy(float="f64")))
    w = torch.zeros(50, dtype=torch.float64, requires_grad=True)
    options = {key: value for key, value in other.items() if key != "cls"}
    optim = getattr(torch.optim, other["cls"])([w], lr=LR, **options)
    for row in grads:
        w.grad = torch.from_numpy(row)
        optim.step()
    np.testing.assert_allclose(found, w.detach().numpy(), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("compiled", [True, False])
def test_constant_gradients_step_as_burns_float32_does(compiled):
    """Ten steps along 1 at rate 1 end at −9.99996 in Burn; at −10 in float64."""
    m = v = w = F32(0)
    for time in range(1, 11):
        m = m * F32(0.9) + (F32(1) - F32(0.9))
        v = v * F32(0.999) + (F32(1) - F32(0.999))
        root = np.sqrt(v / F32(in_f32(0.999, time))) + F32(1e-12)
        w = w - m / F32(in_f32(0.9, time)) / root
    ends = []
    for device in (Numpy(compiled=compiled), Numpy(float="f64", compiled=compiled)):
        model = Weights(Param.from_tensor(Tensor.zeros([1], Autodiff(device))))
        optim = AdamConfig(epsilon=1e-12).init()
        for _ in range(10):
            grads = GradientsParams.from_grads(model.w.val().sum().backward(), model)
            model = optim.step(1.0, model, grads)
        ends.append(model.w.val().into_scalar())
    assert ends[0] == pytest.approx(w, rel=3e-7)
    assert ends[0] != pytest.approx(-10, rel=1e-6)
    assert ends[1] == pytest.approx(-10, rel=1e-11)
