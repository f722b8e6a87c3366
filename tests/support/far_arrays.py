"""Arrays that live elsewhere, as those of a GPU do: NumPy may not touch them.

`far` is an array module like CuPy, computed by NumPy behind a wall: its arrays never
become NumPy arrays by accident, NumPy arrays are refused by its functions, and full
reductions give arrays of rank 0. What runs on it does not mix the two worlds.
"""

import operator
import types

import numpy as np

from burnbook.backend.base import Backend
from burnbook.backend.numpy import Numpy
from burnbook.core.dtypes import Bool, Float, Int
from burnbook.core.op import draw, split_sample

ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
WELCOME = {"array", "asarray"}  # these take NumPy arrays over to the other side


class FarArray:
    """An array behind the wall."""

    __slots__ = ("behind",)
    __hash__ = None

    def __init__(self, behind):
        self.behind = behind

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return wrap(getattr(self.behind, name))

    def __array__(self, dtype=None, copy=None):
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def __array_ufunc__(self, ufunc, method, *inputs, **words):
        return wrap(getattr(ufunc, method)(*unwrap(inputs), **unwrap(words)))

    def __getitem__(self, place):
        return wrap(np.asarray(self.behind[unwrap(place)]))

    def __setitem__(self, place, value):
        self.behind[unwrap(place)] = unwrap(value)

    def __len__(self):
        return len(self.behind)

    def __bool__(self):
        return bool(self.behind)

    def __int__(self):
        return int(self.behind)

    def __float__(self):
        return float(self.behind)


def unwrap(given):
    """The arrays behind the wall; a NumPy array on this side is a mistake."""
    if isinstance(given, FarArray):
        return given.behind
    if isinstance(given, np.ndarray) and given.ndim:
        raise TypeError("a NumPy array among arrays of another device")
    if isinstance(given, (list, tuple)):
        return type(given)(map(unwrap, given))
    if isinstance(given, dict):
        return {name: unwrap(value) for name, value in given.items()}
    return given


def wrap(found):
    """Whatever comes from behind the wall, wrapped again."""
    if isinstance(found, np.ndarray):
        return FarArray(found)
    if isinstance(found, np.generic):
        return FarArray(np.asarray(found))
    if isinstance(found, (list, tuple)):
        kind = list if isinstance(found, list) else tuple  # svd has a tuple of its own
        return kind(map(wrap, found))
    is_function = callable(found) and not isinstance(found, type)
    return FarFunction(found) if is_function else found


class FarFunction:
    """A function, a method or a ufunc (with `at` and `reduce`) behind the wall."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *values, **words):
        return wrap(self.function(*unwrap(values), **unwrap(words)))

    def __getattr__(self, name):
        return wrap(getattr(self.function, name))


class FarModule:
    """NumPy's functions, for arrays behind the wall."""

    __name__ = "far"

    def __init__(self, module=np):
        self._module = module

    def __getattr__(self, name):
        found = getattr(self._module, name)
        if isinstance(found, types.ModuleType):
            return FarModule(found)
        if name in WELCOME:
            return lambda *values, **words: FarArray(
                found(*[getattr(v, "behind", v) for v in values], **words)
            )
        return wrap(found)


def _operators():
    for name in (*ARITHMETIC, "and", "or", "xor"):
        function = getattr(operator, f"__{name}__")
        yield f"__{name}__", lambda x, y, f=function: wrap(f(x.behind, unwrap(y)))
        yield f"__r{name}__", lambda x, y, f=function: wrap(f(unwrap(y), x.behind))
        yield f"__i{name}__", lambda x, y, f=function: change(x, f(x.behind, unwrap(y)))
    for name in ("lshift", "rshift", "lt", "le", "eq", "ne", "gt", "ge"):
        function = getattr(operator, f"__{name}__")
        yield f"__{name}__", lambda x, y, f=function: wrap(f(x.behind, unwrap(y)))
    for name in ("neg", "invert", "abs"):
        function = getattr(operator, f"__{name}__")
        yield f"__{name}__", lambda x, f=function: wrap(f(x.behind))


def change(array, value):
    """What `+=` and its kin do: the array itself takes the new values."""
    array.behind[...] = value
    return array


for _name, _function in _operators():
    setattr(FarArray, _name, _function)


class Far(Backend):
    """A backend whose arrays NumPy may not touch."""

    name = "far"

    def __init__(self, float="f32", int="i64"):  # noqa: A002 - as in Backend
        super().__init__(FarModule(), float, int)

    def from_numpy(self, array):
        assert isinstance(array, np.ndarray), "only NumPy arrays come in"
        return FarArray(np.array(array, order="C"))

    def to_numpy(self, value):
        return value.behind


# What ops give on such a backend, beside what they give on NumPy.


def inputs_of(op, row, real=np.float64):
    """Arrays of a float type and int64 for the row of kinds that fits the sample."""
    specs, attrs = split_sample(row)
    rng = np.random.default_rng(0)
    arrays = [draw(spec, rng) for spec in specs]
    kinds = next((k for k in op.kinds if len(k) == len(arrays)), None)
    if op.many:
        kinds = next(iter(op.kinds)) * len(arrays)
    types = {Float: real, Int: np.int64, Bool: np.bool_}
    natural = {"f": Float, "i": Int, "b": Bool}
    for given in op.kinds:
        if len(given) == len(arrays) and all(
            natural[a.dtype.kind] is kind for a, kind in zip(arrays, given, strict=True)
        ):
            kinds = given
    return [a.astype(types[k]) for a, k in zip(arrays, kinds or (), strict=True)], attrs


def outcome(backend, op, arrays, attrs):
    """What an op and its gradient give on a backend, as NumPy arrays."""
    values = tuple(backend.from_numpy(a) for a in arrays)
    out = backend.run(op, values, attrs)
    found = list(out) if isinstance(out, tuple) else [out]
    if op.rules:
        first = found[0]
        ones = backend.xp.ones_like(first)
        needs = tuple(name in op.rules for name in op.inputs)
        if op.many:
            needs = (True,) * len(values)
        needs = needs[: len(values)] + (False,) * (len(needs) - len(values))
        padded = values if op.many else values + (None,) * (len(needs) - len(values))
        kept = op.keep(padded, out)
        grads = backend.run(op.backward, (ones, *kept), {**attrs, "needs": needs})
        found += [g for g in grads if g is not None]
    return [backend.to_numpy(a) for a in found]


def assert_same(op, row, backend, real=np.float64, rtol=1e-6, atol=1e-9):
    """An op and its gradient give on a backend what the plain code gives on NumPy."""
    assert_as_plain(op, *inputs_of(op, row, real), backend, rtol, atol)


def assert_as_plain(op, arrays, attrs, backend, rtol, atol):
    """The same for arrays and attributes that are given."""
    expected = outcome(Numpy(compiled=False), op, arrays, attrs)
    for a, b in zip(outcome(backend, op, arrays, attrs), expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        exact = b.dtype.kind != "f" or op.name in ("uniform", "bernoulli", "dropout")
        np.testing.assert_allclose(a, b, rtol=0 if exact else rtol, atol=atol)
