"""What a call of Burn is like: the conditions under which burnbook differs on purpose.

Each is asked for a call and says whether it holds: that a NaN is among the inputs, that
a dim is meant which is not the last, …
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np


class Call(Protocol):
    """A call of Burn, as far as a row must know it."""

    @property
    def op(self) -> str:
        """Burn's name of the method, function, layer or config."""
        ...

    @property
    def kind(self) -> str:
        """The kind of the first input: Float, Int or Bool; "-" if there is none."""
        ...

    @property
    def args(self) -> Mapping[str, Any]:
        """The arguments that are no tensors."""
        ...

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The config of the layer."""
        ...

    @property
    def tracked(self) -> list[str] | None:
        """The inputs that require a gradient; None without Autodiff."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """The tensors by name."""
        ...


When = Callable[[Call], bool]


def some(test: Callable[[np.ndarray], Any]) -> When:
    """Whether it holds for an element of a Float tensor among the inputs."""

    def when(call: Call) -> bool:
        floats = [a for a in call.arrays().values() if a.dtype.kind == "f"]
        return any(bool(np.any(test(a))) for a in floats)

    return when


def shapes(call: Call) -> list[tuple[int, ...]]:
    """The shapes of the inputs."""
    return [a.shape for a in call.arrays().values()]


def shapes_differ(call: Call) -> bool:
    """Whether the inputs have several shapes."""
    return len(set(shapes(call))) > 1


def is_empty(call: Call) -> bool:
    """Whether an input has no elements."""
    return any(0 in shape for shape in shapes(call))


def is_int(call: Call) -> bool:
    """Whether it is about Int tensors."""
    return call.kind == "Int" or call.args.get("kind") == "Int"


def float_for_int(call: Call) -> bool:
    """Whether an Int tensor meets a number that is a float."""
    return is_int(call) and any(isinstance(v, float) for v in call.args.values())


def fraction_for_int(call: Call) -> bool:
    """Whether an Int tensor meets a number with a fraction."""
    numbers = [v for v in call.args.values() if isinstance(v, float)]
    return is_int(call) and not all(map(float.is_integer, numbers))


def near_the_limits(call: Call) -> bool:
    """Whether differences of these whole numbers overflow."""
    ints = [a for a in call.arrays().values() if a.dtype.kind == "i" and a.size]
    return any(int(a.max()) >= 1 << 62 or int(a.min()) <= -(1 << 62) for a in ints)


def ties(call: Call) -> bool:
    """Whether there are equal elements along the dim."""
    x = next(iter(call.arrays().values()))
    lines = np.moveaxis(x, call.args["dim"], -1).reshape(-1, x.shape[call.args["dim"]])
    return any(len(np.unique(line)) < len(line) for line in lines)


def not_last(call: Call) -> bool:
    """Whether a dim is meant that is not the last."""
    rank = len(shapes(call)[0])
    axes = call.args.get("dim")
    return axes is None or axes < rank - 1


def settings(call: Call) -> Mapping[str, Any]:
    """The arguments, and the fields of the config."""
    return {**call.args, **(call.config or {})}


def grouped(call: Call) -> bool:
    """Whether channels are split into groups."""
    return any(
        value > 1 for key, value in settings(call).items() if key.endswith("groups")
    )


def has(name: str, value: Any) -> When:
    """Whether a setting has this value."""
    return lambda call: settings(call).get(name) == value


def not_square(call: Call) -> bool:
    """Whether the images have different sides."""
    return any(len(s) == 4 and s[2] != s[3] for s in shapes(call)[:1])


NAN: When = some(np.isnan)
INFINITE: When = some(np.isinf)
