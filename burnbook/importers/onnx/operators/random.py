"""Random numbers; with a seed, always the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnbook.backend.numpy import Numpy
from burnbook.importers.onnx.operators.registry import host_operator
from burnbook.importers.onnx.values import Value, dtype_of
from burnbook.tensor import Distribution, Tensor


def _generator(seed: float | None) -> np.random.Generator:
    """By a seed of the file, else by burnbook's own seed."""
    return np.random.default_rng(_drawn() if seed is None else int(seed))


def _drawn() -> int:
    bits = Tensor.random([4], Distribution.Uniform(0.0, 65536.0), Numpy())
    return int("".join(f"{int(n):05d}" for n in np.asarray(bits)))


@host_operator("RandomNormal")
def random_normal(
    *,
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
    shape: Sequence[int],
) -> Any:
    """Normally distributed numbers."""
    found = _generator(seed).normal(mean, scale, tuple(shape))
    return found.astype(dtype_of(dtype))


@host_operator("RandomNormalLike")
def random_normal_like(
    x: Value,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Any:
    """Normally distributed numbers in the shape of x."""
    found = _generator(seed).normal(mean, scale, x.shape)
    return found.astype(x.dtype if dtype is None else dtype_of(dtype))


@host_operator("RandomUniform")
def random_uniform(
    *,
    dtype: int = 1,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
    shape: Sequence[int],
) -> Any:
    """Numbers from low to high, all equally likely."""
    return _generator(seed).uniform(low, high, tuple(shape)).astype(dtype_of(dtype))


@host_operator("RandomUniformLike")
def random_uniform_like(
    x: Value,
    *,
    dtype: int | None = None,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Any:
    """Numbers from low to high in the shape of x."""
    found = _generator(seed).uniform(low, high, x.shape)
    return found.astype(x.dtype if dtype is None else dtype_of(dtype))


@host_operator("Bernoulli")
def bernoulli(x: Value, *, dtype: int | None = None, seed: float | None = None) -> Any:
    """1 with the chance that x is, else 0."""
    drawn = _generator(seed).uniform(0, 1, x.shape) < x
    return drawn.astype(x.dtype if dtype is None else dtype_of(dtype))


@host_operator("Multinomial")
def multinomial(
    x: Value, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None
) -> Any:
    """Classes drawn from rows of logits."""
    chances = np.exp(x - x.max(1, keepdims=True)).astype(np.float64)
    limits = np.cumsum(chances / chances.sum(1, keepdims=True), 1)
    drawn = _generator(seed).uniform(0, 1, (len(x), sample_size, 1))
    found = (drawn > limits[:, None]).sum(-1)
    return np.minimum(found, x.shape[1] - 1).astype(dtype_of(dtype))
