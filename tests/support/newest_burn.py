"""The modules that Burn 0.22 filled the files of made-versions/v0_22 with."""

import json
from typing import Annotated

import numpy as np

from burnbook import nn
from burnbook.module import Module, Param, ParamId
from burnbook.module.param import ParamRecord
from burnbook.nn.conv import Conv2d, Conv2dConfig
from burnbook.nn.norm import BatchNorm, BatchNormConfig, LayerNorm, LayerNormConfig
from burnbook.optim import GradientsParams
from burnbook.record.flat import nest
from burnbook.tensor import Bool, Float, Int, Tensor, TensorData

RATE = 0.015625


def given(*dims, seed=0):
    """The inputs that Burn's programs used: ((7 i + seed) mod 16) / 8 − 1."""
    count = int(np.prod(dims))
    return ((7 * np.arange(count) + seed) % 16 / 8 - 1).astype(np.float32).reshape(dims)


class Small(Module):
    linear: nn.Linear
    conv: Conv2d
    batch_norm: BatchNorm
    layer_norm: LayerNorm
    none: nn.Linear | None
    some: nn.Linear | None
    list: list[nn.Linear]
    dropout: nn.Dropout
    activation: nn.Relu
    factor: float

    @classmethod
    def new(cls, device):
        def linear(i, o, bias=False):
            return nn.LinearConfig(i, o, bias=bias).init(device)

        return cls(
            linear(8, 3, True),
            Conv2dConfig([1, 2], [2, 2]).init(device),
            BatchNormConfig(2).init(device),
            LayerNormConfig(3).init(device),
            None,
            linear(3, 3),
            [linear(3, 3), linear(3, 2, True)],
            nn.DropoutConfig(0.25).init(),
            nn.Relu(),
            1.5,
        )

    def forward(self, x):
        x = self.activation.forward(self.batch_norm.forward(self.conv.forward(x)))
        x = self.linear.forward(x.reshape([x.dims()[0], 8]) * self.factor)
        x = self.some.forward(self.layer_norm.forward(x))
        return self.list[1].forward(self.list[0].forward(x))


def train_step(model, optim):
    """The model after one step on the sum of the squares of its output."""
    device = model.linear.weight.device
    out = model.forward(Tensor.from_numpy(given(2, 1, 3, 3), device))
    grads = (out * out).sum().backward()
    return optim.step(RATE, model, GradientsParams.from_grads(grads, model))


class Inner(Module):
    weight: Param
    name: str

    @classmethod
    def new(cls, name, device):
        return cls(Param.from_tensor(Tensor.zeros([2, 3], device)), name)


Choice = (
    Annotated[nn.Linear, "First"]
    | Annotated[LayerNorm, "Second"]
    | Annotated[nn.Identity, "Third"]
)


class Container(Module):
    """A module with every kind of field."""

    some: nn.Linear | None
    none: nn.Linear | None
    list: list[nn.Linear]
    empty: list[nn.Linear]  # noqa: A003 - builtin
    array: tuple[Inner, Inner]
    pair: tuple[nn.Linear, Inner | None]
    three: tuple[Inner, nn.Dropout, LayerNorm]
    first: Choice
    second: Choice
    third: Choice
    many: list[Choice]  # noqa: A003 - builtin
    nested: list[list[Inner]]  # noqa: A003 - builtin
    whole: Param
    flags: Param
    bare: Tensor
    scalar_like: Param
    empty_param: Param
    long_name_of_a_field_that_needs_more_than_twenty_three_bytes: Inner
    number: int
    rate: float
    flag: bool
    word: str
    sizes: tuple[int, int, int]
    maybe: int | None

    @classmethod
    def new(cls, device):
        def linear():
            return nn.LinearConfig(2, 2).init(device)

        def inner(name):
            return Inner.new(name, device)

        def norm():
            return LayerNormConfig(2).init(device)

        whole = Tensor.from_data([1, -2, 300, 70000], device, Int)
        flags = [[True, False, False], [True, True, False]]
        return cls(
            linear(),
            None,
            [linear(), linear()],
            [],
            (inner("a"), inner("b")),
            (linear(), inner("c")),
            (inner("d"), nn.DropoutConfig(0.5).init(), norm()),
            linear(),
            norm(),
            nn.Identity(),
            [linear(), nn.Identity(), norm()],
            [[inner("e")], [], [inner("f"), inner("g")]],
            Param.initialized(ParamId(5001), whole),
            Param.initialized(ParamId(5002), Tensor.from_data(flags, device, Bool)),
            Tensor.from_data([1.0, 2.0], device),
            Param.from_tensor(Tensor.zeros([1], device)),
            Param.initialized(ParamId(5003), Tensor.zeros([0, 3], device)),
            inner("h"),
            3,
            0.5,
            True,
            "word",
            (1, 2, 3),
            4,
        )


def expected(path):
    """The rows of a file of expectations, by path."""
    return {row["path"]: row for row in json.loads(path.read_text())["tensors"]}


def values_of(row):
    """The numbers that a row of expectations has, in its shape."""
    return np.array(row["values"], np.float64).reshape(row["shape"])


def filled(module, first):
    """The module with ramps as values, and the ids first + 1, first + 2, … ."""
    held, number = {}, 0
    for path, param in module.named_params():
        if param.kind is Float:
            number += 1
            count = int(np.prod(param.shape))
            values = ((8 * number + np.arange(count)) % 64 + 1) / 128
            data = TensorData.of(values.astype(np.float32).reshape(param.shape))
            held[path] = ParamRecord(ParamId(first + number).serialize(), data)
    return module.load_record(nest(held, 10**6), partial=True)
