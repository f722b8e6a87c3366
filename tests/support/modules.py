"""Modules that several tests look at: nested ones, and one with every kind of field."""

import numpy as np

from burnbook.backend import Autodiff, Numpy
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import Module, Param, ParamId
from burnbook.nn import Conv2d, Conv2dConfig, Linear, LinearConfig
from burnbook.tensor import Tensor

PLAIN = Numpy()
AD = Autodiff(Numpy())


def guide(device, hidden=512):
    """The guide's model."""
    return ModelConfig(10, hidden).init(device)


def values(module: Module) -> list[np.ndarray]:
    return [np.array(param.val()) for _, param in module.named_params()]


def ids(module: Module) -> list[tuple[str, ParamId]]:
    return [(path, param.id) for path, param in module.named_params()]


def same_values(a: Module, b: Module) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(values(a), values(b), strict=True))


class Gate(Module):
    input_transform: Linear
    hidden_transform: Linear


class Net(Module):
    gate: Gate
    layers: list[Linear]


def net(device=PLAIN, tied=True) -> Net:
    """Four linear layers; the last two share their weights, or are two."""
    gate = Gate(LinearConfig(2, 3).init(device), LinearConfig(3, 3).init(device))
    first, second = (LinearConfig(3, 3).with_bias(False).init(device) for _ in range(2))
    return Net(gate, [first, first if tied else second])


class Mixed(Module):
    factor: Param
    mask: Param | None
    constant: Tensor
    ratio: float
    name: str
    flag: bool
    pair: tuple[int, int]
    odd: tuple[int, str]
    empty: list[Linear]
    nothing: Linear | None


def mixed(device=PLAIN) -> Mixed:
    factor = Param.initialized(ParamId(1), Tensor.ones([2, 3], device))
    constant = Tensor.zeros([3], device)
    odd = (1, "a")
    return Mixed(factor, None, constant, 1e-5, "text", True, (1, 2), odd, [], None)


class DwsConv(Module):
    dconv: Conv2d
    pconv: Conv2d


class Block(Module):
    conv: DwsConv | Conv2d
    norm: Linear | None = None


def block(dws: bool, device=PLAIN) -> Block:
    conv = Conv2dConfig([2, 2], [1, 1]).with_bias(False).init(device)
    return Block(DwsConv(conv, conv) if dws else conv)
