"""How the kernels of this folder are compiled.

Sums may be reordered, so that they run in vector registers. NaN and inf are respected:
a loss that becomes NaN must be seen. Python's lock is released while a kernel runs.

The compiler is imported by the first kernel that has to be compiled. A kernel whose
machine code is kept (machine_code.py) does not need it, nor do the functions that
kernels are made of: until then a `Part` stands in their place.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import CellType, FunctionType
from typing import Any
from zlib import crc32

import numpy as np

from burnbook.backend.compiled.runtime import cache, machine_code
from burnbook.backend.compiled.runtime.locks import held_in_forks
from burnbook.core.errors import DataError

f32, f64 = np.float32, np.float64
LANES = 16  # floats of a vector register
# How many such vectors a processor holds at once; without AVX-512, a vector takes two
# registers or four, and sums that do not fit are written to memory at every step.
HELD = 32 if cache.has_avx512() else 8

FLAGS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}
exact_flags = {**FLAGS, "fastmath": False}
# Parts borrow the arrays they are given: to count references at every slice took a
# fifth of attention's time. So a part neither makes arrays nor gives one; what does is
# a counting part, or an inlined one, which counts where its caller does.
BORROWS: dict[str, Any] = {"_nrt": False}

_lock = held_in_forks(threading.RLock())
_waiting: list[Callable[[], None]] = []  # what compiles each kernel not called yet


class Compiler:
    """A module of the compiler, which is imported when it is first used."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, what: str) -> Any:
        return getattr(import_module(self._name), what)


types: Any = Compiler("numba.core.types")
cgutils: Any = Compiler("numba.core.cgutils")
ir: Any = Compiler("llvmlite.ir")
sigutils: Any = Compiler("numba.core.sigutils")
arrayobj: Any = Compiler("numba.np.arrayobj")


class Part:
    """A function that kernels are made of, before the compiler is there.

    make: what turns the function into one that the compiler knows.
    """

    def __init__(self, function: Callable[..., Any], make: Callable[..., Any]):
        self.function, self.make = function, make
        self.made: Any = None

    def __call__(self, *args: Any) -> Any:
        made = self.ready()
        with _lock:
            _fill_scopes()
        return made(*args)

    def ready(self) -> Any:
        """The function that the compiler knows."""
        with _lock:
            if self.made is None:
                self.made = self.make(self.function)
            return self.made


def part_with(**flags: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator for functions that kernels are made of, compiled in this way."""

    def make(function: Callable[..., Any]) -> Any:
        code = import_module("numba").njit(**flags)(_in_scope(function))
        if not flags.get("_nrt", True):
            _borrowing.append(code)
        return code

    return lambda function: Part(function, make)


_borrowing: list[Any] = []


def _check_borrowing() -> None:
    """Refuse a part that borrows and gives an array, which its caller would free.

    Why: the compiler refuses an array by itself, but not one in a tuple.
    """
    for code in _borrowing:
        for signature in code.nopython_signatures:
            result = signature.return_type
            given = result.types if isinstance(result, types.BaseTuple) else [result]
            if any(isinstance(kind, types.Array) for kind in given):
                what = f"{code.py_func.__qualname__} gives an array"
                raise TypeError(f"{what}: it has to be a counting or an inlined part")


part = part_with(**FLAGS, **BORROWS)
exact_part = part_with(**exact_flags, **BORROWS)
counting_part = part_with(**FLAGS)
exact_counting_part = part_with(**exact_flags)
inlined_part = part_with(inline="always", **exact_flags)  # where a call costs too much


def intrinsic(function: Callable[..., Any]) -> Any:
    """A decorator for parts that are written in the compiler's own terms."""
    return Part(function, lambda f: import_module("numba.extending").intrinsic(f))


def kernel_code(signature: str) -> Callable[..., Any]:
    """Machine code for one signature: the one that is kept, or at the first call."""
    return kernel_with(signature, **FLAGS)


def exact_code(signature: str) -> Callable[..., Any]:
    """The same without reordering: for results that are equal bit for bit."""
    return kernel_with(signature, **exact_flags)


def kernel_with(signature: str, **flags: Any) -> Callable[..., Any]:
    """The same, compiled in this way."""

    def decorate(function: Callable[..., Any]) -> Any:
        path = _place_of(function, signature)
        kept = machine_code.read(path) if uses_kept_code else None
        if kept is None:
            return _at_first_call(function, signature, flags)
        again = Part(function, lambda f: _at_first_call(f, signature, flags))
        _kept[id(kept)] = kept, again
        return kept

    return decorate


uses_kept_code = machine_code.is_supported()
_kept: dict[int, tuple[Any, Part]] = {}  # and each as a part of another kernel


def compile_waiting() -> None:
    """Compile every kernel of the files imported so far, so that all are kept.

    Raises:
        DataError: the code could not be written.
    """
    while _waiting:
        _waiting.pop()()


def _place_of(function: Callable[..., Any], signature: str) -> Path:
    """Where the machine code of a kernel is kept; one function may have several."""
    code = function.__code__
    name = f"{Path(code.co_filename).stem}.{function.__name__}.{code.co_firstlineno}"
    return cache.folder() / f"{name}.{crc32(signature.encode()):08x}.o"


def _at_first_call(
    function: Callable[..., Any], signature: str, flags: dict[str, Any]
) -> Any:
    """A kernel that is compiled, or taken from numba's cache, at its first call.

    Why: numba would compile for whatever types come first, so the place where it does
    is taken by a compilation for the types that are declared; after it a call costs
    nothing more.
    """
    numba_keeps = not machine_code.is_supported()
    is_done = False
    with cache.keeping_code():
        code: Any = import_module("numba").njit(cache=numba_keeps, **flags)(
            _in_scope(function)
        )

    def compile_() -> None:
        nonlocal is_done
        with _lock:
            if is_done:
                return
            _fill_scopes()
            code.compile(signature)  # unless it was compiled as a part of another
            _check_borrowing()
            code.disable_compile()
            del code._compile_for_args
            is_done = True
            if not numba_keeps:
                place = _place_of(function, signature)
                machine_code.write(
                    place, code, sigutils.normalize_signature(signature)[0]
                )

    def instead(*args: Any) -> Any:
        with suppress(DataError):  # the next process compiles it again
            compile_()
        return code  # numba calls it now

    code._compile_for_args = instead
    _waiting.append(compile_)
    return code


# What the names of a file mean to the compiler: parts are what it can compile, and kept
# code is compiled once more. Python goes on with the names of the file itself.
_scopes: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}


def _in_scope(function: Callable[..., Any]) -> Any:
    """The same function, with names that mean what they mean to the compiler."""
    names = function.__globals__
    if id(names) not in _scopes:
        _scopes[id(names)] = names, {}
    scope = _scopes[id(names)][1]
    cells = tuple(
        CellType(_known(cell.cell_contents)) for cell in function.__closure__ or ()
    )
    code, name = function.__code__, function.__name__
    made = FunctionType(code, scope, name, function.__defaults__, cells or None)
    made.__module__, made.__doc__ = function.__module__, function.__doc__
    return made


def _fill_scopes() -> None:
    """See to it that each scope has all names of its file."""
    filled = 0
    while filled < len(_scopes):  # new ones come in on the way
        filled = len(_scopes)
        for names, scope in list(_scopes.values()):
            for name, value in list(names.items()):
                if name not in scope:
                    scope[name] = _known(value)


def _known(value: Any) -> Any:
    """A part or kept code as the compiler knows it; anything else is as it is."""
    if isinstance(value, Part):
        return value.ready()
    if id(value) in _kept:
        return _kept[id(value)][1].ready()
    return value


@intrinsic
def wide_product(typing, a, b):
    """The high and low 64 bits of a 64 by 64 bit product, as one instruction."""
    result = types.UniTuple(types.uint64, 2)

    def build(context, builder, signature, args):
        double, single = ir.IntType(128), ir.IntType(64)
        x, y = (builder.zext(value, double) for value in args)
        product = builder.mul(x, y)
        high = builder.trunc(builder.lshr(product, double(64)), single)
        low = builder.trunc(product, single)
        return context.make_tuple(builder, result, (high, low))

    return result(types.uint64, types.uint64), build


@intrinsic
def floats_at(typing, address, size):
    """So many floats from an address on, as an array; somebody else holds them."""
    kind = types.Array(types.float32, 1, "C")

    def build(context, builder, signature, args):
        array = context.make_array(kind)(context, builder)
        place = builder.inttoptr(args[0], ir.FloatType().as_pointer())
        step = context.get_constant(types.intp, 4)
        arrayobj.populate_array(array, place, [args[1]], [step], step, None)
        return array._getvalue()

    return kind(types.int64, types.int64), build
