# ruff: noqa: F401 - rows of composed_calls.txt use what is imported
"""A call of every function that is made of others, for the claims of the table.

The rows stand in composed_calls.txt; here is what their expressions use.
"""

import json
from pathlib import Path

import numpy as np

from burnbook.tensor import (
    Bool,
    Distribution,
    Float,
    Int,
    Tensor,
    TensorData,
    activation,
    grid,
    linalg,
    signal,
)
from burnbook.tensor.quantization import QuantizationParameters, QuantizationScheme

SYMMETRIC = QuantizationScheme.PerTensorSymmetric()


def ints(like, values):
    return Tensor.from_data(values, like.backend, Int)


def ones(like, shape):
    return Tensor.ones(shape, like.backend, like.kind)


def mask(like):
    array = np.arange(np.prod(like.dims())).reshape(like.dims()) % 2 == 0
    return Tensor.from_data(array, like.backend, Bool)


def inplace(x):
    new = x.clone()
    new.inplace(lambda t: t * 2.0)
    return new


def replaced(x):
    y = x.require_grad()
    gradients = (y * 2.0).backward()
    y.grad_replace(gradients, y.grad(gradients) * 0.0)
    return float(y.grad(gradients).sum())


def a_gradient(x, name):
    y = x.require_grad()
    return getattr(y, name)((y * 2.0).backward())


def calls():
    """Every call with the shape of its x; a call that makes a tensor takes a kind."""
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    found = {}
    for line in text.replace("\n    ", " ").splitlines():
        head, _, expression = line.partition(": ")
        if head.startswith("= "):
            found[head[2:]] = eval(f"lambda kind: {expression}", globals()), None
        elif head and head[0] != "#":
            name, _, shape = head.partition(" ")
            call = eval(f"lambda x: {expression}", globals())
            found[name] = call, tuple(json.loads(shape or "[2, 3]"))
    return found


CALLS = calls()
KINDS = {"F": Float, "I": Int, "B": Bool}
