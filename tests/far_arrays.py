"""Arrays that live elsewhere, as those of a GPU do: NumPy may not touch them.

`far` is an array module like CuPy, computed by NumPy behind a wall: its arrays never
become NumPy arrays by accident, NumPy arrays are refused by its functions, and full
reductions give arrays of rank 0. What runs on it does not mix the two worlds.
"""

import operator
import types

import numpy as np

from burnbook.backend.base import Backend

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
