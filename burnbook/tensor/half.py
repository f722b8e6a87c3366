"""Functions of tensors that are made of several ops: float16 is widened around them.

Each op rounds its result once, but what lies between two ops of a formula would be
float16: a sum of powers overflows there, though the norm fits.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from burnbook.tensor.methods import Methods

F = TypeVar("F", bound=Callable[..., Any])


def in_full_precision(function: F) -> F:
    """Let a function of tensors compute in float32 where they are float16.

    Its first argument decides; what it gives is float16 again, with gradients.
    """

    first = next(iter(inspect.signature(function).parameters))

    @functools.wraps(function)
    def run(*given: Any, **named: Any) -> Any:
        x = given[0] if given else named.get(first)
        if x is None or x.backend.float != "f16":
            return function(*given, **named)
        wide = [_wide(value) for value in given]
        words = {name: _wide(value) for name, value in named.items()}
        out = function(*wide, **words)
        if isinstance(out, tuple):
            return tuple([x.from_full_precision(one) for one in out])
        return x.from_full_precision(out)

    return run  # type: ignore[return-value] # it takes what the function takes


def _wide(value: Any) -> Any:
    return value.into_full_precision() if isinstance(value, Methods) else value  # type: ignore[attr-defined]
