"""Adam equals PyTorch's, configured alike, over a hundred steps."""

import numpy as np
import pytest

from burnbook.autodiff import Autodiff
from burnbook.backend import Numpy
from burnbook.module import Module, Param
from burnbook.optim import (
    AdamConfig,
    GradientClippingConfig,
    GradientsParams,
    WeightDecayConfig,
)
from burnbook.tensor import Tensor

torch = pytest.importorskip("torch")


class Pair(Module):
    weight: Param
    bias: Param


@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("clip", [None, "Value", "Norm"])
@pytest.mark.parametrize(("float_type", "tolerance"), [("f64", 1e-12), ("f32", 2e-5)])
def test_adam_over_a_hundred_steps(decay, clip, float_type, tolerance):
    rng = np.random.default_rng(0)
    plain = Numpy(float=float_type)
    dtype = plain.float_dtype
    start = [rng.normal(size=(7, 5)).astype(dtype), rng.normal(size=5).astype(dtype)]
    device = Autodiff(plain)
    module = Pair(*[Param.from_tensor(Tensor.from_numpy(w, device)) for w in start])
    config = AdamConfig().with_epsilon(1e-8)
    if decay:
        config = config.with_weight_decay(WeightDecayConfig(decay))
    if clip:
        config = config.with_grad_clipping(getattr(GradientClippingConfig, clip)(1.0))
    optim = config.init()
    theirs = [torch.nn.Parameter(torch.from_numpy(w.copy())) for w in start]
    other = torch.optim.Adam(theirs, lr=0.01, weight_decay=decay)
    for _ in range(100):
        grads = [rng.normal(size=w.shape).astype(dtype) for w in start]
        held = GradientsParams()
        for param, grad in zip((module.weight, module.bias), grads, strict=True):
            held.register(param.id, Tensor.from_numpy(grad, plain))
        module = optim.step(0.01, module, held)
        for weight, grad in zip(theirs, grads, strict=True):
            weight.grad = torch.from_numpy(clipped(grad, clip))
        other.step()
    for param, weight in zip((module.weight, module.bias), theirs, strict=True):
        ours, wanted = np.asarray(param.val()), weight.detach().numpy()
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, wanted, atol=tolerance, rtol=tolerance)


def clipped(grad: np.ndarray, clip: str | None) -> np.ndarray:
    if clip == "Value":
        return np.clip(grad, -1, 1)
    norm = np.linalg.norm(grad)
    return grad * grad.dtype.type(1 / norm) if clip == "Norm" and norm > 1 else grad
