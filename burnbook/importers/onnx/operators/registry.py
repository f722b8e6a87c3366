"""Which ONNX operator which function is, and in which versions."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from functools import update_wrapper
from inspect import Parameter, currentframe, signature
from typing import Any, TypedDict, Unpack

import numpy as np

from burnbook.backend.base import Backend
from burnbook.core.dtypes import Float
from burnbook.core.errors import (
    ArgumentError,
    BurnbookError,
    Fact,
    KindError,
    ShapeError,
)
from burnbook.importers.onnx.values import (
    FLOATS,
    Value,
    as_array,
    as_tensor,
    default_device,
    device_of,
    dtype_of,
    is_float,
    lifted,
    lowered,
    traced_device,
)
from burnbook.importers.onnx.versions import VERSIONS
from burnbook.record.tree import short
from burnbook.tensor import Tensor

Function = Callable[..., Any]
#: What an operator passes on to a convolution or a pool.
OF_WINDOWS = frozenset(
    (
        *("auto_pad", "ceil_mode", "count_include_pad", "dilations", "group"),
        *("kernel_shape", "pads", "strides"),
    )
)
FEW = 8  # elements of an array that an error shows


class Form(TypedDict, total=False):
    """What is said of an operator's function, as `operator` explains."""

    many: bool
    lists: bool
    numbers: bool


class Operator:
    """A function for an ONNX operator: inputs in ONNX's order, attributes by name.

    It may have two forms. The first takes floats as tensors, so gradients flow; it is
    used where a float is among the inputs. `host` takes arrays alone. Where only the
    first is there, other types are refused; where only `host` is, tensors are lowered
    to arrays and floats of the result lifted again.
    """

    def __init__(
        self,
        name: str,
        domain: str,
        versions: tuple[int, ...],
        many: bool = False,
        lists: bool = False,
        numbers: bool = False,
    ):
        self.name, self.domain, self.versions = name, domain, versions
        self.many, self.lists, self.numbers = many, lists, numbers
        self.__name__ = name
        self.on_tensors: Function | None = None
        self.on_arrays: Function | None = None
        self.is_of_tensors = False  # whether the first input of on_tensors is one

    def host(self, function: Function) -> Operator:
        """A decorator: the form for arrays."""
        self.on_arrays = function
        return self

    def __call__(self, *inputs: Value, outputs: int = 1, **attributes: Any) -> Any:
        """One result, or with `outputs` > 1 a tuple of so many."""
        if self.many:
            attributes["outputs"] = outputs
        try:
            found = self._run(inputs, attributes)
        except BurnbookError as error:
            if isinstance(error, KindError) and self._is_mixed(inputs):
                raise self._not_known(inputs) from error
            raise
        except AttributeError as error:
            if not self._is_mixed(inputs):
                raise
            raise self._not_known(inputs) from error
        except FAILURES as error:
            raise failed(self.name, error, inputs, attributes) from error
        if not self.many:
            return found
        return found[0] if outputs == 1 else tuple(found[:outputs])

    def attributes(self) -> frozenset[str]:
        """The names of the attributes that it takes."""
        form: Any = self.on_tensors or self.on_arrays
        found: set[str] = set()
        for name, one in signature(form).parameters.items():
            if one.kind is Parameter.KEYWORD_ONLY:
                found.add(name)
            elif one.kind is Parameter.VAR_KEYWORD:
                found |= OF_WINDOWS
        return frozenset(found - {"outputs"} if self.many else found)

    def is_usual(self, name: str, value: Any) -> bool:
        """Whether an attribute says what would be so without it."""
        if name in ("strides", "dilations"):
            return isinstance(value, list) and set(value) == {1}
        if name == "pads" and isinstance(value, list):
            return set(value) == {0}
        if name == "kernel_shape" and self.name in ("Conv", "ConvTranspose"):
            return True
        form = self.on_tensors or self.on_arrays
        usual = signature(form).parameters.get(name) if form is not None else None
        if usual is None or isinstance(value, np.ndarray):
            return False
        return type(usual.default) is type(value) and usual.default == value

    def _run(self, inputs: tuple[Value, ...], attributes: dict[str, Any]) -> Any:
        device = device_of(inputs)
        own = traced_device(inputs) if device is None else None
        form = self.on_tensors
        if form is None:
            found = self.on_arrays(*self._lowered(inputs), **attributes)  # type: ignore[misc]
            device = device or own
            if device is None:
                return found
            if self.many:
                return tuple(lifted(v, device) for v in found)
            return lifted(found, device)
        if own is not None and any(map(_has_float, inputs)):
            device = own
        if device is not None:
            return self._with_floats(inputs, device, attributes)
        if not any(map(_has_float, inputs)):
            if self.on_arrays is not None:
                return self.on_arrays(*self._lowered(inputs), **attributes)
            if any(map(_is_short, inputs)):  # through float32 and back
                found = self._run(tuple(map(_widened, inputs)), attributes)
                made = found if self.many else (found,)
                back = tuple(map(_shortened, made))
                return back if self.many else back[0]
            raise self._not_known(inputs)
        device = default_device()
        inputs = tuple(lifted(v, device) if type(v) is float else v for v in inputs)
        return lowered(self._with_floats(inputs, device, attributes))

    def _with_floats(
        self, inputs: Sequence[Value], device: Backend, attributes: dict[str, Any]
    ) -> Any:
        """The form for tensors; that for arrays, where only scales are floats."""
        given = self._lifted(inputs, device)
        if not self.is_of_tensors or not given or type(given[0]) is Tensor:
            return self.on_tensors(*given, **attributes)  # type: ignore[misc]
        if self.on_arrays is None:
            raise self._not_known(inputs)
        found = self.on_arrays(*self._lowered(inputs), **attributes)
        return (
            tuple(lifted(v, device) for v in found)
            if self.many
            else lifted(found, device)
        )

    def _is_mixed(self, inputs: Sequence[Value]) -> bool:
        """Whether there are floats among the inputs, and other values."""
        is_float = [_has_float(value) for value in inputs if value is not None]
        return any(is_float) and not all(is_float)

    def _not_known(self, inputs: Sequence[Value]) -> ArgumentError:
        """What is said of inputs for which there is no form."""
        types = [str(as_array(v).dtype) for v in inputs if v is not None]
        what = f"inputs of type {', '.join(types)} are not known here"
        return ArgumentError(f"onnx {self.name}", what)

    def _lifted(self, inputs: Sequence[Value], device: Backend) -> list[Value]:
        """As `lifted`; the frequent cases first."""
        own = device.float_dtype
        found: list[Value] = []
        for value in inputs:
            kind = type(value)
            if kind is np.ndarray:
                is_ready = value.dtype.kind != "f"
                if self.numbers and not value.ndim and value.dtype == own:
                    is_ready, value = True, value.item()
            elif kind is float:
                is_ready = self.numbers
            elif kind is list and value and type(value[0]) is int:
                is_ready = True
                value = value if self.lists and found else np.array(value)
            else:
                is_ready = kind is Tensor or value is None
            found.append(value if is_ready else lifted(value, device))
        return found

    def _lowered(self, inputs: Sequence[Value]) -> list[Value]:
        """As `lowered`; the frequent cases first."""
        found: list[Value] = []
        for value in inputs:
            kind = type(value)
            if kind is list and value and type(value[0]) is int:
                value = value if self.lists and found else np.array(value)
            elif kind is not np.ndarray and value is not None:
                value = lowered(value)
            found.append(value)
        return found


def _has_float(value: Value) -> bool:
    if type(value) is np.ndarray:
        return value.dtype in FLOATS
    if value is None or isinstance(value, (Tensor, int)):
        return isinstance(value, Tensor)
    if isinstance(value, list) and value and isinstance(value[0], (int, float)):
        return not isinstance(value[0], int)
    if isinstance(value, list) and value:
        return any(map(_has_float, value))
    return is_float(as_array(value))


def _is_short(value: Value) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.name == "bfloat16"


def _widened(value: Value) -> Value:
    return value.astype(np.float32) if _is_short(value) else value


def _shortened(value: Value) -> Value:
    is_wide = isinstance(value, np.ndarray) and value.dtype == np.float32
    return value.astype(dtype_of("bfloat16")) if is_wide else value


FAILURES = (ArithmeticError, IndexError, MemoryError, ValueError)


def failed(
    name: str, error: Exception, inputs: Sequence[Value], attributes: dict[str, Any]
) -> ShapeError:
    """What an operator cannot do, with what it was given and where that is written."""
    told = " ".join(str(error).split())[:200]
    what, cure = f"cannot be computed: {told}", "another model, or other inputs"
    if isinstance(error, MemoryError) or "too big" in told or "too large" in told:
        what, cure = "there is not enough memory for the result", "smaller sizes"
    elif isinstance(error, OverflowError):
        what = "the numbers that it is given have no result"
    facts: list[Fact] = [(f"input {k}", told_of(x)) for k, x in enumerate(inputs)]
    facts += [(key, told_of(value)) for key, value in attributes.items()]
    return ShapeError(f"onnx {name}", what, [*facts, *_line()], cure)


def told_of(value: Value) -> str:
    """A value in a few words: its elements, if it has few."""
    if isinstance(value, Tensor):
        return f"{value.kind.__name__} {list(value.value.shape)}"
    if isinstance(value, np.ndarray) and value.size > FEW:
        return f"{value.dtype} {list(value.shape)}"
    if isinstance(value, (np.ndarray, np.generic)):
        return short(f"{value.tolist()}, {value.dtype} {list(value.shape)}")
    if callable(value):
        return "a graph"
    return short(repr(value))


def _line() -> list[Fact]:
    """The line of the imported module's source that called the operator."""
    frame = currentframe()
    while frame and frame.f_globals.get("__name__", "").startswith("burnbook."):
        frame = frame.f_back
    if frame is None:
        return []
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return [("line", f"{frame.f_lineno}: {short(text, 80)}")] if text else []


OPERATORS: dict[tuple[str, str], Operator] = {}


def _operator(name: str, domain: str, form: Form) -> Operator:
    made = Operator(name, domain, VERSIONS[domain][name], **form)
    OPERATORS[domain, name] = made
    return made


def operator(
    name: str, *, domain: str = "", **form: Unpack[Form]
) -> Callable[[Function], Operator]:
    """A decorator for the function of an ONNX operator.

    many: the function takes `outputs`, how many results are wanted, and gives a tuple
    of at least so many. lists: what stands in the source as a list of whole numbers
    comes as that list, and not as an array, unless it is the first input.
    numbers: a single float beside a tensor comes as Python's number. The function
    follows the newest of the operator's `versions`; older forms are rewritten to that
    by `upgrades`.
    """

    def decorate(function: Function) -> Operator:
        made = _operator(name, domain, form)
        made.on_tensors = function
        first = next(iter(signature(function).parameters.values()))
        made.is_of_tensors = first.annotation == "Tensor"
        return update_wrapper(made, function)  # type: ignore[return-value]

    return decorate


def host_operator(
    name: str, *, domain: str = "", **form: Unpack[Form]
) -> Callable[[Function], Operator]:
    """The same for an operator that is computed by NumPy alone, without gradients."""

    def decorate(function: Function) -> Operator:
        made = _operator(name, domain, form)
        made.on_arrays = function
        return update_wrapper(made, function)  # type: ignore[return-value]

    return decorate


def add_operator(domain: str, name: str) -> Callable[[Function], Function]:
    """A decorator: a function of tensors that computes an operator of one's own.

    The function is given the node's inputs as tensors, None for one that is left out,
    and its attributes by name; it returns a tensor, or a tuple of several. It may have
    what tensors have: gradients, captures. Where an operator is known already, the new
    function takes its place; ONNX's own (domain "") stay as they are defined.

    Example:
        >>> @add_operator("com.example", "Swoosh")
        ... def swoosh(x, *, slope=1.0):
        ...     return x * (x * slope).sigmoid()

    Raises:
        ArgumentError: the operator is one of ONNX's, or what is given is no function.
    """
    if domain in ("", "ai.onnx") or not name:
        what = f"{name!r} is not an operator of a domain of one's own"
        raise ArgumentError("add_operator", what, cure='"com.example", a domain')

    def decorate(function: Function) -> Function:
        if not callable(function):
            what = f"{type(function).__name__} is no function"
            raise ArgumentError("add_operator", what, cure="a function of tensors")
        made = Added(name, domain, function)
        RULES_OF_OTHERS.pop((domain, name), None)
        OPERATORS[domain, name] = made
        return function

    return decorate


class Added(Operator):
    """An operator that a user has added."""

    def __init__(self, name: str, domain: str, function: Function):
        super().__init__(name, domain, (NEWEST,))
        self.function = function
        self.on_tensors = function

    def attributes(self) -> frozenset[str]:
        """The names of the attributes that it takes."""
        found = signature(self.function).parameters.values()
        return frozenset(p.name for p in found if p.kind is Parameter.KEYWORD_ONLY)

    def __call__(self, *inputs: Value, outputs: int = 1, **attributes: Any) -> Any:
        """One result, or with `outputs` > 1 a tuple of so many."""
        device = device_of(inputs) or traced_device(inputs) or default_device()
        given = [None if v is None else as_tensor(v, device) for v in inputs]
        found = self.function(*given, **attributes)
        results = tuple(map(_settled, found if isinstance(found, tuple) else (found,)))
        if len(results) < outputs:
            what = f"the function gives {len(results)} of {outputs} results"
            raise ArgumentError(f"onnx {self.name}", what, cure="return a tuple")
        return results[0] if outputs == 1 else results[:outputs]

    @property
    def module(self) -> str:
        """The module that has to be imported so that the operator is known."""
        name = str(getattr(self.function, "__module__", "") or "")
        return "" if name in ("__main__", "builtins") else name


def _settled(value: Value) -> Value:
    """A result as a graph has it: floats as tensors, others as arrays."""
    is_whole = isinstance(value, Tensor) and value.kind is not Float
    return as_array(value) if is_whole else value


def added(domain: str, name: str) -> Operator:
    """An operator that was added, as the source of a model asks for it.

    Raises:
        ArgumentError: it was not added in this process.
    """
    found = OPERATORS.get((domain, name))
    if found is None:
        what = f"the operator {name} of {domain} was not added"
        cure = f'add_operator("{domain}", "{name}"), or importing where it is added'
        raise ArgumentError("onnx", what, cure=cure)
    return found


NEWEST = 1 << 31  # whatever version a file has, its function is the user's
RULES_OF_OTHERS: dict[tuple[str, str], Any] = {}  # how fused operators are taken apart
