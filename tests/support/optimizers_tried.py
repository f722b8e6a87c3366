"""The optimizers that every test of them tries, and how far they move a module."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.module import Module, Param
from burnbook.optim import (
    AdafactorConfig,
    AdaGradConfig,
    AdamConfig,
    AdamWConfig,
    AdanConfig,
    GradientsParams,
    LambConfig,
    LionConfig,
    MomentumConfig,
    MuonConfig,
    ParamGroup,
    RmsPropConfig,
    SgdConfig,
    WeightDecayConfig,
)
from burnbook.tensor import Tensor

PLAIN, WIDE, HALF = Numpy(), Numpy(float="f64"), Numpy(float="f16")
AD = Autodiff(PLAIN)
BIASES = ParamGroup.from_predicate("bias")
EVERY = {
    "Sgd": SgdConfig(weight_decay=WeightDecayConfig(0.1)),
    "Sgd, momentum": SgdConfig(momentum=MomentumConfig(nesterov=True)),
    "Adam": AdamConfig(),
    "Adam, amsgrad": AdamConfig(amsgrad=True),
    "AdamW": AdamWConfig(weight_decay=0.1),
    "AdaGrad": AdaGradConfig(),
    "RmsProp": RmsPropConfig(),
    "RmsProp, centered": RmsPropConfig(centered=True, momentum=0.0),
    "Adan": AdanConfig(weight_decay=0.1),
    "Lamb": LambConfig(weight_decay=0.1),
    "Lion": LionConfig(weight_decay=0.1),
    "Adafactor": AdafactorConfig(weight_decay=0.1, scale_parameter=False),
    "Muon": MuonConfig(weight_decay=WeightDecayConfig(0.1)),
}
every = pytest.mark.parametrize("name", EVERY)


class One(Module):
    weight: Param


class Two(Module):
    first: Param
    second: Param


def one(array, device) -> One:
    return One(Param.from_tensor(Tensor.from_numpy(array, device)))


def two(plain=PLAIN, seed=0, sizes=((6, 3), (2, 4))) -> Two:
    """Two matrices of normal values."""
    rng, device = np.random.default_rng(seed), Autodiff(plain)
    arrays = [rng.normal(size=size).astype(plain.float_dtype) for size in sizes]
    return Two(*[Param.from_tensor(Tensor.from_numpy(a, device)) for a in arrays])


def drawn(module, seed) -> GradientsParams:
    """Normal gradients for all parameters."""
    rng, held = np.random.default_rng(seed), GradientsParams()
    for _, param in module.named_params():
        plain = param.device.inner
        grad = rng.normal(size=tuple(param.shape)).astype(plain.float_dtype)
        held.register(param.id, Tensor.from_numpy(grad, plain))
    return held


def steps(optim, module, seeds):
    """The module after a step for each seed."""
    for seed in seeds:
        module = optim.step(0.01, module, drawn(module, seed))
    return module


def values(module):
    return {path: np.array(param.val()) for path, param in module.named_params()}


def moved(old, new):
    """How far each parameter went, by path."""
    before, after = values(old), values(new)
    return {path: float(np.abs(after[path] - before[path]).max()) for path in before}
