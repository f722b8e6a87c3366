"""The optimizers that every test of them tries, and how far they move a module."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.optim import (
    AdaGradConfig,
    AdamConfig,
    AdamWConfig,
    AdanConfig,
    MomentumConfig,
    MuonConfig,
    ParamGroup,
    RmsPropConfig,
    SgdConfig,
    WeightDecayConfig,
)

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
    "Muon": MuonConfig(weight_decay=WeightDecayConfig(0.1)),
}
every = pytest.mark.parametrize("name", EVERY)


def values(module):
    return {path: np.asarray(param.val()) for path, param in module.named_params()}


def moved(old, new):
    """How far each parameter went, by path."""
    before, after = values(old), values(new)
    return {path: float(np.abs(after[path] - before[path]).max()) for path in before}
