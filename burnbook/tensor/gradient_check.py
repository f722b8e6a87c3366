"""check_gradient: whether the gradient of a function is its slope, element by element.

For a gradient that somebody wrote: a function with `custom_gradient`, an op, a layer.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from burnbook.backend.autodiff import Autodiff
from burnbook.backend.base import Backend
from burnbook.backend.numpy import Numpy
from burnbook.core.dtypes import Float
from burnbook.core.errors import BackendError, KindError
from burnbook.core.rng import Stream, use_stream
from burnbook.tensor.tensor import Tensor

Function = Callable[..., Any]
Index = tuple[int, ...]


@dataclass(frozen=True)
class GradientRow:
    """What was found for one input: the element that is farthest off, and both numbers.

    order: 1 for the gradient, 2 for the gradient of the gradient. checked: how many of
    its elements were tried. worst: index, gradient and slope; None without elements.
    """

    name: str
    shape: tuple[int, ...]
    order: int
    checked: int
    worst: tuple[Index, float, float] | None
    passed: bool

    def __str__(self) -> str:
        size = math.prod(self.shape)
        count = f"{size}" if self.checked == size else f"{self.checked} of {size}"
        title = f"{self.name}  Float {list(self.shape)}"
        if self.order == 2:
            title += ", second order"
        counted = f"{count} element{'' if self.checked == 1 else 's'}"
        if self.passed or self.worst is None:
            return f"✔ {title}: {counted}"
        at, given, slope = self.worst
        place = f"at {list(at)} " if at else ""
        return (
            f"✘ {title}: {place}the gradient is {given:.6g}, the slope {slope:.6g}, "
            f"the worst of {counted}"
        )


@dataclass(frozen=True)
class GradientReport:
    """What `check_gradient` found: a row for each Float input."""

    subject: str
    rows: tuple[GradientRow, ...]

    @property
    def passed(self) -> bool:
        """Whether every gradient is the slope."""
        return all(row.passed for row in self.rows)

    @property
    def failed(self) -> tuple[GradientRow, ...]:
        """The rows of the inputs whose gradient is another number than the slope."""
        return tuple(row for row in self.rows if not row.passed)

    def __str__(self) -> str:
        return "\n  ".join([f"check_gradient {self.subject}", *map(str, self.rows)])

    __repr__ = __str__


def check_gradient(
    function: Function,
    *inputs: Any,
    device: Backend | None = None,
    second: bool = False,
    elements: int = 200,
    rtol: float | None = None,
) -> GradientReport:
    """Compare the gradient of a function of tensors with its slopes.

    function: takes the inputs, and gives a Float tensor or a tuple of tensors. inputs:
    a Float tensor or array, or a list of sizes for one that is drawn; everything else
    is handed on as it is, Int tensors on the device. device: where it runs, with
    Autodiff; its float type decides how near the numbers must be. second: the gradient
    of the gradient as well; tensors that the function holds must be inputs then.
    elements: how many are tried of each input; of larger ones some are drawn. rtol: the
    relative difference that is allowed, 1e-5 in float64.

    Example:
        >>> check_gradient(lambda x, y: (x * y).tanh(), [2, 3], [1, 3])
        check_gradient <lambda>
          ✔ x  Float [2, 3]: 6 elements
          ✔ y  Float [1, 3]: 3 elements

    Why: it runs in float64, unless told otherwise: a slope found by trying
    (f(x + h) − f(x − h)) / 2h has enough digits there. Random ops draw the same numbers
    in every run. A gradient that is meant to differ, as of rounding, fails.
    """
    where = Autodiff(Numpy(float="f64")) if device is None else device
    if not where.ad_enabled:
        cure = f"Autodiff({where!r})"
        raise BackendError("check_gradient", "the device does not track", cure=cure)
    rng = np.random.default_rng(0)
    given = [_input(one, where, rng) for one in inputs]
    names = _names(function, len(given))
    floats = [i for i, x in enumerate(given) if _is_float(x)]
    if not floats:
        what = "none of the inputs is a Float tensor or a list of sizes"
        raise KindError("check_gradient", what, cure="check_gradient(f, [2, 3])")
    trial = _Trial(function, given, floats, where, rtol)
    rows = trial.rows(names, 1, elements)
    if second:
        above = _Trial(_gradient_of(trial), given, floats, where, rtol)
        rows += above.rows(names, 2, elements)
    subject = getattr(function, "__name__", type(function).__name__)
    return GradientReport(subject, tuple(rows))


class _Trial:
    """A function, and what it is given."""

    def __init__(
        self,
        function: Function,
        given: list[Any],
        floats: list[int],
        device: Backend,
        rtol: float | None,
    ):
        self.function = function
        self.given = given
        self.floats = floats
        self.device = device
        wide = device.float_dtype == np.float64
        self.step = 1e-6 if wide else 1e-2
        self.rtol = rtol or (1e-5 if wide else 2e-2)
        self.atol = 1e-8 if wide else 1e-3

    def rows(self, names: Sequence[str], order: int, most: int) -> list[GradientRow]:
        leaves = [
            x.detach().require_grad() if i in self.floats else x
            for i, x in enumerate(self.given)
        ]
        total = self.total(self.run(leaves))
        grads = total.backward() if _tracked(total) else None
        size = 1.0 + abs(float(np.asarray(total).item()))
        made: list[GradientRow] = []
        for i in self.floats:
            found = leaves[i].grad(grads) if grads is not None else None
            grad = np.zeros(leaves[i].dims()) if found is None else np.asarray(found)
            made.append(self._row(names[i], i, grad, order, most, size))
        return made

    def run(self, inputs: list[Any]) -> list[Tensor]:
        """The Float results, with the same random numbers in every run."""
        with use_stream(Stream(1)):
            made = self.function(*inputs)
        several = isinstance(made, (tuple, list))
        outs = [out for out in (made if several else [made]) if _is_float(out)]
        if not outs:
            shown = type(made).__name__
            what = f"the function gives {shown}, and no Float tensor"
            raise KindError("check_gradient", what, cure="return a Float tensor")
        return outs

    def total(self, outs: list[Tensor]) -> Tensor:
        """One number made of all results, each element with a weight of its own."""
        rng = np.random.default_rng(2)
        parts = [
            (out * _float(_weights(rng, out.dims()), out.backend)).sum() for out in outs
        ]
        return sum(parts[1:], parts[0])

    def _row(
        self, name: str, i: int, grad: np.ndarray, order: int, most: int, size: float
    ) -> GradientRow:
        """Try the elements of one input, and keep the one that is farthest off."""
        count = grad.size
        places = np.arange(count)
        if count > most:
            places = np.sort(np.random.default_rng(3).choice(count, most, False))
        worst: tuple[Index, float, float] | None = None
        excess, passed = -1.0, True
        for place in places:
            at: Any = np.unravel_index(place, grad.shape)
            index = tuple(int(n) for n in at)
            slope, one = self._slope(i, index), float(grad[index])
            allowed = self.rtol * abs(slope) + self.atol * size
            off = abs(one - slope) / allowed
            off = math.inf if math.isnan(off) else off
            if off > excess:
                excess, worst = off, (index, one, slope)
            passed = passed and off <= 1.0
        shape = tuple(grad.shape)
        return GradientRow(name, shape, order, len(places), worst, passed)

    def _slope(self, i: int, index: Index) -> float:
        """(f(x + h) − f(x − h)) / 2h for one element."""
        values = np.array(self.given[i], np.float64)
        step = self.step * max(1.0, abs(float(values[index])))
        ends: list[float] = []
        for way in (step, -step):
            moved = values.copy()
            moved[index] += way
            inputs = list(self.given)
            inputs[i] = _float(moved, self.device)
            rng = np.random.default_rng(2)
            outs = [np.asarray(out, np.float64) for out in self.run(inputs)]
            ends.append(sum(float((o * _weights(rng, o.shape)).sum()) for o in outs))
        return (ends[0] - ends[1]) / (2 * step)


def _gradient_of(trial: _Trial) -> Function:
    """The gradient of a function as a function, on the same device."""
    outer = Autodiff(trial.device)

    def gradient(*inputs: Any) -> tuple[Tensor, ...]:
        above = [
            Tensor.from_inner(x, outer) if isinstance(x, Tensor) else x for x in inputs
        ]
        for i in trial.floats:
            above[i] = above[i].require_grad()
        total = trial.total(trial.run(above))
        grads = total.backward() if _tracked(total) else None
        found = [
            above[i].grad(grads) if grads is not None else None for i in trial.floats
        ]
        return tuple(
            inputs[i].zeros_like() if grad is None else grad
            for i, grad in zip(trial.floats, found, strict=True)
        )

    return gradient


def _weights(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    shape = tuple(shape)
    return rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape)


def _names(function: Function, count: int) -> list[str]:
    """What the function calls its inputs."""
    try:
        params = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        params = []
    names: list[str] = []
    for i in range(count):
        param = params[min(i, len(params) - 1)] if params else None
        if param is None or (
            i >= len(params) and param.kind is not param.VAR_POSITIONAL
        ):
            names.append(f"input {i}")
        elif param.kind is param.VAR_POSITIONAL:
            names.append(f"{param.name}[{i - params.index(param)}]")
        else:
            names.append(param.name)
    return names


def _input(one: Any, device: Backend, rng: np.random.Generator) -> Any:
    """An input as the function gets it, on the device and without a gradient."""
    if isinstance(one, list) and all(type(n) is int for n in one):
        return _float(rng.standard_normal(one), device)
    if isinstance(one, Tensor):
        array = np.asarray(one)
        return _float(array, device) if one.kind is Float else _moved(array, device)
    if isinstance(one, np.ndarray):
        floats = one.dtype.kind == "f"
        return _float(one, device) if floats else _moved(one, device)
    return one


def _moved(array: np.ndarray, device: Backend) -> Tensor:
    return Tensor.from_numpy(array, device)


def _float(values: np.ndarray, device: Backend) -> Tensor:
    return Tensor.from_numpy(np.asarray(values, device.float_dtype), device)


def _is_float(x: Any) -> bool:
    return isinstance(x, Tensor) and x.kind is Float


def _tracked(x: Tensor) -> bool:
    return hasattr(x.value, "node") and type(x.value) is getattr(
        x.backend, "tracked", None
    )
