"""ai.onnx.preview.training: steps of optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook.importers.onnx.operators.registry import host_operator
from burnbook.importers.onnx.values import Value, number

DOMAIN = "ai.onnx.preview.training"


def _parts(inputs: tuple[Any, ...], each: int) -> list[tuple[Any, ...]]:
    """Values, gradients and states of each parameter; a file lists kind after kind."""
    count = len(inputs) // each
    return [inputs[i::count] for i in range(count)]


def _joined(results: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(part for kind in zip(*results, strict=True) for part in kind)


@host_operator("Adagrad", domain=DOMAIN, many=True)
def adagrad(
    rate: Value,
    step: Value,
    *inputs: Value,
    decay_factor: float = 0.0,
    epsilon: float = 0.0,
    norm_coefficient: float = 0.0,
    outputs: int = 1,
) -> tuple[Any, ...]:
    """A step of Adagrad: new values, then new sums of squares."""
    r = number(rate) / (1 + number(step) * decay_factor)

    def one(x: Value, g: Value, h: Value) -> tuple[Any, ...]:
        g = norm_coefficient * x + g
        h = h + g * g
        return (x - r * g / (np.sqrt(h) + epsilon)).astype(x.dtype), h.astype(x.dtype)

    return _joined([one(*part) for part in _parts(inputs, 3)])


@host_operator("Adam", domain=DOMAIN, many=True)
def adam(
    rate: Value,
    step: Value,
    *inputs: Value,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 0.0,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
    outputs: int = 1,
) -> tuple[Any, ...]:
    """A step of Adam: new values, averages, averages of squares."""
    r, t = number(rate), number(step)
    if t > 0:
        r = r * np.sqrt(1 - beta**t) / (1 - alpha**t)

    def one(x: Value, g: Value, v: Value, h: Value) -> tuple[Any, ...]:
        g = norm_coefficient * x + g
        v = alpha * v + (1 - alpha) * g
        h = beta * h + (1 - beta) * g * g
        new = (1 - norm_coefficient_post) * (x - r * v / (np.sqrt(h) + epsilon))
        return tuple(part.astype(x.dtype) for part in (new, v, h))

    return _joined([one(*part) for part in _parts(inputs, 4)])


@host_operator("Momentum", domain=DOMAIN, many=True)
def momentum(
    rate: Value,
    step: Value,
    *inputs: Value,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
    outputs: int = 1,
) -> tuple[Any, ...]:
    """A step with momentum, perhaps Nesterov's: new values, then new momenta."""
    r, share = number(rate), beta if number(step) > 0 else 1.0

    def one(x: Value, g: Value, v: Value) -> tuple[Any, ...]:
        g = norm_coefficient * x + g
        v = alpha * v + share * g
        change = g + alpha * v if mode == "nesterov" else v
        return (x - r * change).astype(x.dtype), v.astype(x.dtype)

    return _joined([one(*part) for part in _parts(inputs, 3)])
