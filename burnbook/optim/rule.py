"""What all rules share: their protocol, checks, decay.

A rule knows one parameter. Its formula is an op (see ops/optimizer_steps.py) that makes
the new parameter and the new state in one pass; here the results become tensors again.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from burnbook.config import Config
from burnbook.core.dtypes import Float
from burnbook.core.errors import ConfigError
from burnbook.core.formulas import deferred
from burnbook.core.op import Op
from burnbook.nn.shared import at_least
from burnbook.tensor import Tensor


class SimpleOptimizer(Protocol):
    """How one parameter is updated; pure: all that is remembered is the state.

    state_type: the dataclass of the state, which is what its record is read with. A
    rule may have `check(shape)`, which raises for a parameter that it cannot update;
    `shapes(shape)`, the shapes of its state where they are not the parameter's; and
    `reuses = True`: its step takes `reuse`, True where nobody else holds the state,
    so that the new one may take its place in memory.
    """

    state_type: type[Any]

    def step(
        self, lr: float, tensor: Tensor, grad: Tensor, state: Any | None
    ) -> tuple[Tensor, Any | None]:
        """The new tensor and the new state; both tensors are on the inner backend."""
        ...


class WeightDecayConfig(Config):
    """L2 weight decay: `penalty` times the weight is added to its gradient.

    penalty: what the weight is multiplied by, at least 0.
    """

    penalty: float

    def validate(self) -> None:
        """Refuse a negative penalty, which would make weights grow."""
        at_least(self, 0, "penalty")


class MomentumConfig(Config):
    """How much of the last update goes on: v ← momentum · v + (1 − dampening) g.

    momentum: how much of the last update goes on, at least 0 (default 0.9).
    dampening: the share of the new gradient that is left out, in [0, 1) (default 0.1).
    nesterov: whether to step along momentum · v + g, as Nesterov does, instead of v
        (default False).

    Example:
        >>> MomentumConfig().with_nesterov(True)
        MomentumConfig(momentum=0.9, dampening=0.1, nesterov=True)

    Why: dampening is 0.1 as in Burn; PyTorch has 0.
    """

    momentum: float = 0.9
    dampening: float = 0.1
    nesterov: bool = False

    def validate(self) -> None:
        """Refuse a negative momentum, and a dampening that stops or turns gradients."""
        at_least(self, 0, "momentum")
        fractions(self, dampening=self.dampening)


R = TypeVar("R", bound=type)


def from_config(cls: R) -> R:
    """Let a rule print its config, and say what makes it where it is given a model."""
    cls.__repr__ = shown  # pyright: ignore[reportAttributeAccessIssue] - a method
    return made_by_config("the rule for one parameter", "step(lr, model, grads)")(cls)


def made_by_config(so: str, then: str) -> Callable[[R], R]:
    """Let a class say that it is made by its config, where it is given anything else.

    so: what the class is. then: the call that takes what people give it instead.
    """
    return functools.partial(_made_by_config, so, then)


def _made_by_config(so: str, then: str, cls: R) -> R:
    make = cls.__init__

    @functools.wraps(make)
    def init(self: Any, *args: Any, **named: Any) -> None:
        name, given = cls.__name__, args[0] if args else named.get("config")
        if not isinstance(given, Config):
            kind = "nothing" if given is None else type(given).__name__
            what = f"{kind} is not {name}Config: it is {so}"
            raise ConfigError(name, what, cure=f"{name}Config().init(), then {then}")
        make(self, *args, **named)

    cls.__init__ = init
    return cls


def fractions(config: Any, **values: float) -> None:
    """Raise a ConfigError for the first of these numbers outside [0, 1)."""
    for name, value in values.items():
        if not 0.0 <= value < 1.0:
            what = f"{name} is {value}, not in [0, 1)"
            raise ConfigError(type(config).__name__, what)


def in_f32(attrs: dict[str, Any], *names: str) -> dict[str, Any]:
    """The same numbers, these with the digits of f32: 0.999 -> 0.9990000128746033.

    Why: Burn keeps the factors of averages in f32, and 1 − 0.999 has but a thousandth
    of the digits: in f64 the averages of squares would differ by a hundred thousandth.
    On a backend of f64 the factors are as the config has them.
    """
    return attrs | {name: _single(attrs[name]) for name in names}


def _single(number: float) -> float:
    """A number of f32; below 1 where the number is."""
    near = np.float32(number)
    top = np.nextafter(np.float32(1), np.float32(0))
    return float(min(near, top) if number < 1 else near)


def is_f64(tensor: Tensor) -> bool:
    """Whether a tensor has the digits of f64."""
    return tensor.value.dtype.itemsize == 8


def penalty_of(decay: WeightDecayConfig | None) -> float:
    """The penalty, or none."""
    return 0.0 if decay is None else decay.penalty


def as_f32(value: float) -> float:
    """A number of a config as Burn holds it: with 32 bits."""
    return float(np.float32(value))


def one_minus(beta: float) -> float:
    """1 − beta, computed with 32 bits."""
    return float(np.float32(1) - np.float32(beta))


@deferred
def corrected(beta: float, time: int) -> float:
    """1 − betaᵗ, computed with 32 bits by repeated squares, as Rust's `powi` does.

    Example:
        >>> round(corrected(0.9, 2), 6)
        0.19
    """
    power, base, count = np.float32(1), np.float32(beta), time
    with np.errstate(under="ignore"):
        while count:
            power = power * base if count % 2 else power
            base, count = base * base, count // 2
    return float(np.float32(1) - power)


def widened(tensor: Tensor) -> Tensor:
    """The tensor in single precision where it is in half, whose squares soon vanish."""
    return tensor.cast("f32") if tensor.value.dtype.itemsize == 2 else tensor


def narrowed(made: Tensor, like: Tensor) -> Tensor:
    """What was computed from `widened` tensors, in the precision of one of them."""
    return made.cast(like.dtype) if made.value.dtype != like.value.dtype else made


def update(
    op: Op, tensor: Tensor, others: tuple[Tensor, ...], attrs: dict[str, Any]
) -> list[Tensor]:
    """Run the op of a rule: the new parameter, and the new state in its order."""
    device, rank, make = tensor.backend, tensor.rank, type(tensor)
    values = (tensor.value, *[other.value for other in others])
    out = device.run(op, values, attrs)
    if not isinstance(out, tuple):
        return [make(out, Float, device, rank)]
    return [make(value, Float, device, rank) for value in out]


def zeros(tensor: Tensor) -> Tensor:
    """Zeros in the shape and element type of a parameter: a memory that is new."""
    device, value = tensor.backend, tensor.value
    blank = device.xp.zeros(value.shape, dtype=value.dtype)
    return type(tensor)(blank, Float, device, tensor.rank)


def shown(rule: Any) -> str:
    """How a rule prints: its name, and what its config sets."""
    fields = (
        (f.name, getattr(rule.config, f.name)) for f in dataclasses.fields(rule.config)
    )
    parts = [
        f"{name}={value!r}"
        for name, value in fields
        if value is not None and value is not False and "clipping" not in name
    ]
    return f"{type(rule).__name__}({', '.join(parts)})"
