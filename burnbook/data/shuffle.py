"""Orders and draws that depend on a seed alone.

All come from raw bits of Philox, a counter-based generator: the same (seed, purpose,
epoch) gives the same order on every machine and under every version of NumPy, and
nothing global is read or changed.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import ConfigError

Indices = NDArray[np.int64]

SHUFFLE, SAMPLE, SPLIT, LOAD, FAKE = (
    1,
    2,
    3,
    4,
    5,
)  # equal seeds, but streams of their own


def permutation(size: int, seed: int, purpose: int, epoch: int = 0) -> Indices:
    """Put 0 … size − 1 in a random order: sort them by one random number each.

    Example:
        >>> permutation(5, seed=42, purpose=SHUFFLE).tolist()
        [3, 1, 0, 4, 2]
    """
    return np.argsort(_bits(size, seed, purpose, epoch), kind="stable")


def draws(size: int, below: int, seed: int, purpose: int, epoch: int = 0) -> Indices:
    """Draw `size` numbers from 0 … below − 1, each one equally likely every time."""
    unit = (_bits(size, seed, purpose, epoch) >> np.uint64(11)) * 2.0**-53  # [0, 1)
    return (unit * below).astype(np.int64)


def check_seed(where: str, seed: Any) -> int:
    """Return the seed as an int, or say that it is not one."""
    try:
        if isinstance(seed, bool):
            raise TypeError
        return operator.index(seed)
    except TypeError:
        what = f"the seed must be a whole number, got {seed!r}"
        raise ConfigError(where, what, cure="a number such as 42") from None


def _bits(size: int, seed: int, purpose: int, epoch: int) -> NDArray[np.uint64]:
    key = np.array([seed % 2**64, (purpose << 56) + epoch % 2**56], dtype=np.uint64)
    return np.random.Philox(key=key).random_raw(size)
