"""What the tests of quantization share: schemes, tensors, a module."""

from dataclasses import dataclass

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.module import Module
from burnbook.tensor import Tensor, activation
from burnbook.tensor.quantization import (
    QuantizationScheme,
    QuantizationType,
    QuantizedTensor,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDtype,
)

AFFINE = QuantizationScheme.PerTensorAffine(QuantizationType.QInt8)
SYMMETRIC = QuantizationScheme.PerTensorSymmetric(QuantizationType.QInt8)
Q8S = QuantScheme().with_value(QuantValue.Q8S)
SCHEMES = {
    "affine": AFFINE,
    "symmetric": SYMMETRIC,
    "newer": QuantScheme(),
    "native": Q8S.with_store(QuantStore.Native),
    "blocks": Q8S.per_block([4], ScaleDtype.F16),
    "squares": QuantScheme().with_value(QuantValue.Q4F).per_block([2, 4]),
    "levels": QuantScheme().per_block([2], ScaleDtype.UE4M3).per_tensor(),
    "native ternary": QuantScheme()
    .with_value(QuantValue.Q2S)
    .with_store(QuantStore.Native)
    .per_block([4], ScaleDtype.UE8M0),
    "ternary": QuantScheme().with_value(QuantValue.Q2S),
    "bytes": QuantScheme()
    .with_value(QuantValue.E2M1)
    .with_store(QuantStore.PackedNative())
    .per_block([4], ScaleDtype.BF16),
    "floats": QuantScheme().with_value(QuantValue.E4M3),
    "small floats": QuantScheme().with_value(QuantValue.E5M2).per_block([4]),
}
every_scheme = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
BOOK = [-1.8, -1.0, 0.0, 0.5]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def tensor(*shape, seed=0, device=None):
    return Tensor.from_numpy(numbers(*shape, seed=seed), device or Numpy())


def codes(x):
    return x.to_data().to_list()


class Small(Module):
    first: nn.Linear
    second: nn.Linear

    def forward(self, x):
        return self.second.forward(activation.relu(self.first.forward(x)))


def small(device=None):
    device = device or Numpy()
    first = nn.LinearConfig(8, 16).init(device)
    return Small(first, nn.LinearConfig(16, 4).init(device))


@dataclass
class Named:
    """A group of parameters: those whose path ends so."""

    end: str

    def matches(self, id, path):  # noqa: A002 - Burn's word
        return path.endswith(self.end)


def kept_as_codes(model):
    params = model.named_params()
    return [path for path, p in params if isinstance(p.val(), QuantizedTensor)]
