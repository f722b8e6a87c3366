"""Initializers: the distributions from which the parameters of layers are drawn.

The variance of the initial weights decides whether activations vanish or explode in
deep networks. Kaiming's rule depends on the number of inputs of a unit (fan-in),
Xavier's on inputs and outputs. A parameter made here is lazy: it reserves its random
key at once and draws its numbers at the first use, so the order of use changes nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from burnbook.backend.base import Backend
from burnbook.config import ConfigEnum, holding, unit
from burnbook.core.dtypes import Float
from burnbook.core.errors import ConfigError
from burnbook.module import Param, ParamId
from burnbook.ops.random import normal, orthogonal, uniform
from burnbook.tensor import Tensor
from burnbook.tensor.create import some_device
from burnbook.tensor.shape import check_dims


class Initializer(ConfigEnum):
    """How the values of a parameter are drawn, with fan the number of inputs.

    KaimingUniform: U(−a, a), a = √3 · gain / √fan. KaimingNormal: std = gain / √fan.
    XavierUniform: U(−a, a), a = √3 · gain · √(2 / (fan_in + fan_out)). XavierNormal:
    std = gain · √(2 / (fan_in + fan_out)). Orthogonal: rows (or columns, if there are
    more rows) at right angles, of length gain; Saxe et al., 2013 (arXiv 1312.6120).
    Separate(weight=…, bias=…), which `with_bias` makes: another rule for biases.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> Initializer.Constant(value=3.0).init([2], Numpy()).val().to_data().to_list()
        [3.0, 3.0]
    """

    Constant = holding(value=float)
    Ones = unit()
    Zeros = unit()
    Uniform = holding(min=float, max=float)
    Normal = holding(mean=float, std=float)
    KaimingUniform = holding(gain=float, fan_out_only=bool)
    KaimingNormal = holding(gain=float, fan_out_only=bool)
    XavierUniform = holding(gain=float)
    XavierNormal = holding(gain=float)
    Orthogonal = holding(gain=float)
    Separate: ClassVar[Any]  # holds two of these, so it is declared below

    def validate(self) -> None:
        """Refuse an empty range and a negative standard deviation."""
        if self.variant == "Uniform" and not self.min <= self.max:
            raise ConfigError(
                "Initializer.Uniform", f"min {self.min} lies above max {self.max}"
            )
        if self.variant == "Normal" and not self.std >= 0:
            raise ConfigError("Initializer.Normal", f"std is {self.std}, below 0")
        if self.variant == "Separate":
            for name, rule in zip(self.names, self.values, strict=True):
                unfit = (
                    ("Separate",) if name == "weight" else ("Separate", "Orthogonal")
                )
                if rule.variant in unfit:
                    what = f"{rule.variant} is no rule for a {name}"
                    cure = "Initializer.Zeros, or another rule for one parameter"
                    raise ConfigError("Initializer.Separate", what, cure=cure)

    def with_bias(self, bias: "Initializer | None" = None) -> "Initializer":
        """The same rule for weights, with another one for biases.

        bias: their rule; None leaves them as they are in a layer without an
            initializer, U(−1/√fan_in, 1/√fan_in).

        Example:
            >>> from burnbook.backend.numpy import Numpy
            >>> rule = Initializer.Ones.with_bias(Initializer.Zeros)
            >>> rule.init_bias(2, None, None, Numpy()).val().to_data().to_list()
            [0.0, 0.0]

        Raises:
            ConfigError: `bias` is Orthogonal, which needs rows.
        """
        weight = self.weight if self.variant == "Separate" else self
        return type(self).Separate(
            weight=weight, bias=KAIMING if bias is None else bias
        )

    def init(self, shape: Sequence[int], device: Backend) -> Param:
        """A lazy parameter of this shape; for the rules that need no fan."""
        return self.init_with(shape, None, None, device)

    def init_with(
        self,
        shape: Sequence[int],
        fan_in: int | None,
        fan_out: int | None,
        device: Backend,
    ) -> Param:
        """A lazy parameter of this shape, for a layer with these fans."""
        if self.variant == "Separate":
            return self.weight.init_with(shape, fan_in, fan_out, device)
        dims = check_dims(f"Initializer.{self.variant}", shape)
        device = some_device("init", device)
        key = device.next_key() if self.variant in _RANDOM else None
        draw = _Draw(self, dims, fan_in, fan_out, key)
        return Param.uninitialized(
            ParamId.new(), draw, device, require_grad=True, shape=dims
        )

    def init_bias(
        self, size: int, fan_in: int | None, fan_out: int | None, device: Backend
    ) -> Param:
        """The bias of a layer whose weight this rule draws: as in Burn, by the same.

        Unless `with_bias` says otherwise. Only Orthogonal needs rows, which a bias has
        not: then it is drawn as in a layer with the default initializer, from
        U(−1/√fan_in, 1/√fan_in).
        """
        rule = KAIMING if self.variant == "Orthogonal" else self
        rule = self.bias if self.variant == "Separate" else rule
        return rule.init_with([size], fan_in, fan_out, device)

    def limits(self, fan_in: int | None, fan_out: int | None) -> tuple[float, float]:
        """Low and high of a uniform rule, mean and spread of a normal one."""
        if self.variant in ("Uniform", "Normal"):
            return self.values
        fan_in, fan_out = self._fan(fan_in, fan_out)
        std = self.gain * math.sqrt(2.0 / (fan_in + fan_out))
        if self.variant.endswith("Normal"):
            return 0.0, std
        edge = math.sqrt(3.0) * std
        return -edge, edge

    def _fan(self, fan_in: int | None, fan_out: int | None) -> tuple[int, int]:
        """Both fans; the one that Kaiming looks at, twice: √(2 / 2 fan) = 1 / √fan."""
        if self.variant.startswith("Kaiming"):
            fan_in = fan_out = fan_out if self.fan_out_only else fan_in
        if fan_in is None or fan_out is None:
            raise ConfigError(
                f"Initializer.{self.variant}",
                "this layer does not say how many inputs and outputs a unit has",
                [("fan_in", str(fan_in)), ("fan_out", str(fan_out))],
                "Initializer.Normal or Initializer.Uniform",
            )
        return max(fan_in, 1), max(fan_out, 1)


_SEPARATE = holding(weight=Initializer, bias=Initializer)
_SEPARATE.__set_name__(Initializer, "Separate")
Initializer.Separate = Initializer.variants["Separate"] = _SEPARATE

_FILL = {"Ones": 1.0, "Zeros": 0.0}
_RANDOM = set(Initializer.variants) - {"Constant", "Separate", *_FILL}


@dataclass(frozen=True)
class _Draw:
    """What a lazy parameter remembers of its initializer."""

    initializer: Initializer
    shape: tuple[int, ...]
    fan_in: int | None
    fan_out: int | None
    key: tuple[int, int] | None

    def __call__(self, device: Backend, require_grad: bool) -> Tensor:
        made = self._values(device)
        return made.require_grad() if require_grad else made

    def _values(self, device: Backend) -> Tensor:
        rule, shape = self.initializer, self.shape
        if self.key is None:
            value = rule.values[0] if rule.values else _FILL[rule.variant]
            return Tensor.full(shape, value, device)
        attrs: dict[str, Any] = {
            "shape": shape,
            "key": self.key,
            "dtype": device.float_dtype,
        }
        if rule.variant == "Orthogonal":
            _check_rows(shape)
            attrs["gain"] = rule.gain
            return Tensor.of(device.run(orthogonal, (), attrs), Float, device)
        first, second = rule.limits(self.fan_in, self.fan_out)
        if rule.variant.endswith("Normal"):
            attrs |= {"mean": first, "std": second}
            op = normal
        else:
            attrs |= {"low": first, "high": second}
            op = uniform
        return Tensor.of(device.run(op, (), attrs), Float, device)


def _check_rows(shape: tuple[int, ...]) -> None:
    if len(shape) < 2:
        raise ConfigError(
            "Initializer.Orthogonal",
            f"a parameter of shape {list(shape)} cannot have orthogonal rows",
            cure="another initializer for it, such as Initializer.Zeros",
        )


#: What every layer uses unless told otherwise: U(−1/√fan_in, 1/√fan_in).
KAIMING = Initializer.KaimingUniform(gain=1.0 / math.sqrt(3.0), fan_out_only=False)
