"""Ops in numbers of many digits: what their formulas mean, without any rounding.

    value(ops.sigmoid, [[-20.0]], {})     its forward code, in numbers of 400 digits
    slopes(ops.sigmoid, [[-20.0]], {})    its gradient rules

The code of an op is written for any array module; here it gets one whose numbers are
those of mpmath. Cancellation, overflow and vanishing, which make a formula wrong in
float32, are none of these numbers' business.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

mpmath = pytest.importorskip("mpmath", reason="mpmath has the numbers of many digits")
mp = mpmath.MPContext()
mp.prec = 1300  # bits: 1 − tanh at the end of float64 is 1e−308
NAN, INF = mp.nan, mp.inf


def real(x: Any) -> Any:
    """A number as it is; a complex one is none."""
    return NAN if isinstance(x, mp.mpc) else x


def total(function):
    """A function that has an answer everywhere: NaN outside, as arrays have it."""

    def answer(*given):
        if any(mp.isnan(x) for x in given):
            return NAN
        try:
            return real(function(*given))
        except (ValueError, ZeroDivisionError):
            return NAN

    return np.frompyfunc(answer, function.__code__.co_argcount, 1)


def divide(x, y):
    if y == 0:
        return NAN if x == 0 else x * INF
    return x / y


def power(x, y):
    if y == 0 or x == 1:
        return mp.one
    if x == 0:
        return mp.zero if y > 0 else INF
    if mp.isinf(y):
        return INF if (abs(x) > 1) == (y > 0) else mp.zero
    return x**y


def whole_part(x):
    return x if mp.isinf(x) else mp.floor(x) if x >= 0 else mp.ceil(x)


def fmod(x, y):
    if y == 0 or mp.isinf(x):
        return NAN
    return x if mp.isinf(y) else x - y * whole_part(x / y)


FUNCTIONS = {
    "add": total(lambda x, y: x + y),
    "subtract": total(lambda x, y: x - y),
    "multiply": total(lambda x, y: x * y),
    "divide": total(lambda x, y: divide(x, y)),
    "power": total(lambda x, y: power(x, y)),
    "float_power": total(lambda x, y: power(x, y)),
    "fmod": total(lambda x, y: fmod(x, y)),
    "hypot": total(lambda x, y: mp.hypot(x, y)),
    "arctan2": total(lambda y, x: mp.atan2(y, x) if x or y else mp.zero),
    "copysign": total(lambda x, y: abs(x) if y >= 0 else -abs(x)),
    "negative": total(lambda x: -x),
    "absolute": total(lambda x: abs(x)),
    "square": total(lambda x: x * x),
    "reciprocal": total(lambda x: divide(mp.one, x)),
    "sqrt": total(lambda x: mp.sqrt(x)),
    "exp": total(lambda x: mp.exp(x)),
    "expm1": total(lambda x: mp.expm1(x)),
    "log": total(lambda x: mp.log(x)),
    "log1p": total(lambda x: mp.log1p(x) if x != -1 else -INF),
    "sin": total(lambda x: mp.sin(x)),
    "cos": total(lambda x: mp.cos(x)),
    "tan": total(lambda x: mp.tan(x)),
    "arcsin": total(lambda x: mp.asin(x)),
    "arccos": total(lambda x: mp.acos(x)),
    "arctan": total(lambda x: mp.atan(x)),
    "sinh": total(lambda x: mp.sinh(x)),
    "cosh": total(lambda x: mp.cosh(x)),
    "tanh": total(lambda x: mp.tanh(x)),
    "arcsinh": total(lambda x: mp.asinh(x)),
    "arccosh": total(lambda x: mp.acosh(x)),
    "arctanh": total(lambda x: mp.atanh(x) if abs(x) != 1 else x * INF),
    "sign": total(lambda x: mp.sign(x)),
    "floor": total(lambda x: x if mp.isinf(x) else mp.floor(x)),
    "ceil": total(lambda x: x if mp.isinf(x) else mp.ceil(x)),
    "rint": total(lambda x: x if mp.isinf(x) else mp.nint(x)),
    "trunc": total(lambda x: whole_part(x)),
    "maximum": total(lambda x, y: max(x, y)),
    "minimum": total(lambda x, y: min(x, y)),
    "erf": total(lambda x: mp.erf(x)),
}
TRUTHS = {
    **{name: getattr(np, name) for name in ("equal", "not_equal", "less", "greater")},
    **{name: getattr(np, name) for name in ("less_equal", "greater_equal")},
    "isnan": np.frompyfunc(mp.isnan, 1, 1),
    "isinf": np.frompyfunc(mp.isinf, 1, 1),
    "isfinite": np.frompyfunc(mp.isfinite, 1, 1),
}


class Exact:
    """An array of exact numbers, that says of itself that it is one of float64."""

    __array_ufunc__ = None
    dtype = np.dtype(np.float64)

    def __init__(self, numbers: Any):
        self.numbers = numbers

    shape = property(lambda self: self.numbers.shape)
    size = property(lambda self: self.numbers.size)
    ndim = property(lambda self: self.numbers.ndim)

    def astype(self, *_: Any, **__: Any) -> "Exact":
        return self

    def __getitem__(self, picked: Any) -> "Exact":
        return Exact(self.numbers[picked])

    def copy(self) -> "Exact":
        return Exact(self.numbers.copy())

    def __neg__(self) -> "Exact":
        return call("negative", self)


class Truths(np.ndarray):
    """Truth values that may become numbers: `(x > 0).astype(x.dtype)`."""

    def astype(self, dtype: Any, **_: Any) -> Any:
        return exactly(np.asarray(self, float)) if dtype == Exact.dtype else self


def truths(found: Any) -> Any:
    return np.asarray(found, bool).view(Truths)


def numbers_of(x: Any) -> Any:
    if isinstance(x, Exact):
        return x.numbers
    array = np.asarray(x)
    return exactly(np.asarray(array, float)).numbers


def exactly(array: Any) -> Exact:
    """An array of float64, to the last bit."""
    array = np.asarray(array)
    flat = [mp.mpf(float(x)) for x in array.reshape(-1)]
    numbers = np.empty(len(flat), object)
    numbers[:] = flat
    return Exact(numbers.reshape(array.shape))


def call(name: str, *given: Any, out: Any = None, **_: Any) -> Any:
    found = np.asarray(FUNCTIONS[name](*map(numbers_of, given)), object)
    if out is None:
        return Exact(found)
    out.numbers[...] = found
    return out


def _operator(name: str, turned: bool = False) -> Any:
    def method(self: Exact, other: Any) -> Any:
        pair = (other, self) if turned else (self, other)
        if name in TRUTHS:
            return truths(TRUTHS[name](*map(numbers_of, pair)))
        return call(name, *pair)

    return method


for _sign, _name in {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "pow": "power",
}.items():
    setattr(Exact, f"__{_sign}__", _operator(_name))
    setattr(Exact, f"__r{_sign}__", _operator(_name, turned=True))
for _sign, _name in {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}.items():
    setattr(Exact, f"__{_sign}__", _operator(_name))


class ExactSpace(SimpleNamespace):
    """The `xp` of exact numbers."""

    __name__ = "exact"

    def run_op(self, op: Any, values: Any, attrs: Any) -> Any:
        if op.name == "erf":  # its code is an approximation
            return call("erf", *values)
        return op.forward(self, *values, **attrs)

    def __getattr__(self, name: str) -> Any:
        if name in FUNCTIONS:
            return lambda *given, **words: call(name, *given, **words)
        if name in TRUTHS:
            return lambda *given: truths(TRUTHS[name](*map(numbers_of, given)))
        if name.startswith("float"):
            return getattr(np, name)
        raise AttributeError(f"xp.{name}: a row of FUNCTIONS, in tests/support/exact")

    def where(self, mask: Any, x: Any, y: Any) -> Exact:
        return Exact(np.where(mask, numbers_of(x), numbers_of(y)))

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        x = x if low is None else call("maximum", x, low)
        return x if high is None else call("minimum", x, high)

    def fmax(self, x: Any, y: Any) -> Any:
        return self.where(
            self.isnan(x), y, self.where(self.isnan(y), x, self.maximum(x, y))
        )

    def fmin(self, x: Any, y: Any) -> Any:
        return -self.fmax(-x, -y)

    def asarray(self, x: Any, dtype: Any = None) -> Exact:
        return Exact(np.asarray(numbers_of(x), object))

    def ones_like(self, x: Any) -> Exact:
        return exactly(np.ones(x.shape))

    def zeros_like(self, x: Any) -> Exact:
        return exactly(np.zeros(x.shape))


space = ExactSpace()


def value(op: Any, arrays: Any, attrs: Any) -> Any:
    """What an op gives, as an array of exact numbers."""
    out = space.run_op(op, tuple(map(exactly, arrays)), attrs)
    return out.numbers


def slopes(op: Any, arrays: Any, attrs: Any) -> list[Any]:
    """The gradients of the inputs for a gradient of one; None where there is none."""
    values = tuple(map(exactly, arrays))
    out = space.run_op(op, values, attrs)
    g = exactly(np.ones(out.shape))
    needs = tuple(name in op.rules for name in op.inputs)
    made = op.backward.forward(space, g, *op.keep(values, out), needs=needs, **attrs)
    shape = out.shape
    return [
        None if one is None else np.broadcast_to(numbers_of(one), shape) for one in made
    ]
