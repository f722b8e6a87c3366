"""What the kernels of all backends share.

A kernel takes what its op's forward code takes and gives what that gives; it returns
None for arrays that it does not serve, and then the plain code runs.
"""

from collections.abc import Callable
from inspect import Parameter
from typing import Any

Kernel = Callable[..., Any]


def defaults_of(op: Any) -> Callable[[Kernel], Kernel]:
    """Let a function's attributes have the defaults that an op declares for them.

    Example:
        >>> from burnbook.ops.norm import layer_norm
        >>> @defaults_of(layer_norm)
        ... def kernel(x, *, epsilon):
        ...     return epsilon
        >>> kernel(1.0)
        1e-05
    """
    declared = getattr(op, "source", op).attrs  # those of an op's gradient are the op's
    defaults = {n: v for n, v in declared.items() if v is not Parameter.empty}

    def complete(function: Kernel) -> Kernel:
        given = getattr(function, "__kwdefaults__", None) or {}
        function.__kwdefaults__ = given | defaults
        return function

    return complete


def kernels_in(table: dict[Any, Kernel]) -> Callable[[Any], Callable[[Kernel], Kernel]]:
    """The decorator that lists a function as the kernel of an op or of its gradient.

    What a kernel takes, and the defaults, are said once, by the op.
    """

    def kernel(op: Any) -> Callable[[Kernel], Kernel]:
        def register(function: Kernel) -> Kernel:
            table[op] = defaults_of(op)(function)
            return function

        return register

    return kernel


def needed(found: tuple[Any, ...], needs: tuple[bool, ...]) -> tuple[Any, ...]:
    """The gradients that were asked for, None for the others."""
    pairs = zip(found, needs, strict=False)  # inputs left out at the end have no need
    return tuple([v if need else None for v, need in pairs])
