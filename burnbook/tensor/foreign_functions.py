"""Functions of NumPy and PyTorch that are given a tensor.

One rule: what only looks (`np.shape`, `np.allclose`, `np.argmax`) gets the values.
What computes gives an array, which has no gradient: NumPy's functions do so for a
tensor that needs none, and refuse one that has a graph. Its ufuncs (`np.exp`) and
PyTorch's functions refuse every tensor. An error shows the same line in burnbook.
A number of NumPy's on the left of an operator is a number: `np.float64(2) * x`.
"""

import ast
import inspect
import re
import sys
from types import FrameType
from typing import Any

import numpy as np

from burnbook.core.call_source import Asked, Call, asked_at, fill, value_of
from burnbook.core.errors import KindError
from burnbook.core.op import OPS, Op
from burnbook.core.other_names import OtherName, imports_of, tables
from burnbook.tensor.facts import facts_of
from burnbook.tensor.foreign_lines import LINES, LOOKS, REDUCTIONS, SWAPPED
from burnbook.tensor.methods import Methods, lift

# The method of a tensor on the right of what is an operator for arrays.
OPERATORS: dict[Any, str] = {
    np.add: "__radd__",
    np.subtract: "__rsub__",
    np.multiply: "__rmul__",
    np.divide: "__rtruediv__",
    np.floor_divide: "__rfloordiv__",
    np.remainder: "__rmod__",
    np.power: "__rpow__",
    np.equal: "__eq__",
    np.not_equal: "__ne__",
    np.less: "__gt__",
    np.less_equal: "__ge__",
    np.greater: "__lt__",
    np.greater_equal: "__le__",
    np.bitwise_and: "__rand__",
    np.bitwise_or: "__ror__",
    np.bitwise_xor: "__rxor__",
    np.matmul: "__matmul__",
}
OPS_OF_NUMPY = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "floor_divide": "div",
    "power": "powf",
    "less": "lower",
    "less_equal": "lower_equal",
}


class ForeignFunctions:
    """What functions of NumPy and PyTorch ask of a tensor."""

    __slots__ = ()
    __array_priority__ = 1000

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: object, **named: object
    ) -> Any:
        """A number of NumPy beside a tensor; what else NumPy would compute is told."""
        reflected = OPERATORS.get(ufunc)
        if reflected is not None and not named and method == "__call__":
            other = inputs[0]
            if isinstance(other, np.generic):  # np.float64(2) * x
                return getattr(self, reflected)(other.item())
            if isinstance(other, np.ndarray):
                if other.ndim == 0:
                    return getattr(self, reflected)(other.item())
                lift(_op_of(ufunc), self, other)  # type: ignore[arg-type] # it raises
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
        what = "NumPy computes with arrays, not with tensors"
        if "out" in named:
            what = "an array does not become a tensor in place"
        raise _refused("np", ufunc, what, inputs, frame)

    def __array_function__(
        self, function: Any, types: object, args: Any, named: dict[str, Any]
    ) -> Any:
        """A function of NumPy on the values, unless a gradient would be lost."""
        tensors = _tensors_in((args, named))
        if function.__name__ not in LOOKS and any(map(_has_graph, tensors)):
            frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
            first = next(filter(_has_graph, tensors))
            what = "the gradient would end here: NumPy's result has none"
            raise _refused("np", function, what, [first, *tensors], frame)
        return function(*_as_arrays(args), **_as_arrays(named))

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), named: Any = None
    ) -> Any:
        """PyTorch's functions do not take tensors of burnbook."""
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
        what = "PyTorch computes with its own tensors"
        raise _refused("torch", function, what, _tensors_in((args, named)), frame)


def _op_of(ufunc: Any) -> Op:
    name: str = ufunc.__name__
    return OPS[OPS_OF_NUMPY.get(name, name)]


def _has_graph(tensor: Any) -> bool:
    return hasattr(tensor.value, "node")


def _tensors_in(given: object) -> list[Any]:
    """The tensors in the arguments of a call, also in its lists."""
    if isinstance(given, Methods):
        return [given]
    if isinstance(given, dict):
        given = given.values()
    elif not isinstance(given, list | tuple):
        return []
    return [tensor for each in given for tensor in _tensors_in(each)]


def _as_arrays(given: Any) -> Any:
    """The same arguments with the values of each tensor."""
    if isinstance(given, Methods):
        return np.asarray(given)
    if isinstance(given, dict):
        return {name: _as_arrays(each) for name, each in given.items()}
    if type(given) in (list, tuple):
        return type(given)([_as_arrays(each) for each in given])
    return given


def _refused(
    library: str, function: Any, what: str, inputs: Any, frame: FrameType
) -> KindError:
    """The error for a function of another library, with the line in burnbook."""
    name = function.__name__
    tensor = next(each for each in inputs if isinstance(each, Methods))
    while frame.f_back is not None and INSIDE.search(frame.f_code.co_filename):
        frame = frame.f_back
    asked = asked_at(frame)
    node = asked and asked.node
    if asked is not None and isinstance(node, ast.AugAssign):
        cure = f"np.asarray({ast.unparse(node.value)}) for its values"
    elif asked is not None and isinstance(node, ast.Call):
        cure = _line(library, function, _Written(asked, node, frame), tensor)
    else:
        cure = _example(library, name, tensor)
    inner = (getattr(function, "__module__", None) or "").partition(".")[2]
    inner = f"{inner}." if inner and not inner.startswith("_") else ""
    homes = [line for line in imports_of(cure) if line.startswith("from burnbook")]
    facts = [*facts_of(tensor=tensor), *homes]
    return KindError(f"{library}.{inner}{name}", what, facts, cure)


# The files of NumPy and PyTorch, which call their own functions.
INSIDE = re.compile(r"[/\\]site-packages[/\\](numpy|torch)[/\\]")


class _Written:
    """A call as the reader wrote it, its arrays made tensors."""

    def __init__(self, asked: Asked, node: ast.Call, frame: FrameType):
        self.asked, self.node, self.frame = asked, node, frame
        self.device = "device"
        for each in ast.walk(node):
            if isinstance(each, ast.Name | ast.Attribute) and self.is_tensor(each):
                self.device = f"{ast.unparse(each)}.device()"

    def value(self, node: ast.AST) -> object:
        return value_of(node, self.frame) if isinstance(node, ast.expr) else None

    def is_tensor(self, node: ast.AST) -> bool:
        return isinstance(self.value(node), Methods)

    def text(self, node: ast.expr) -> str:
        if isinstance(self.value(node), np.ndarray):
            return f"Tensor.from_data({ast.unparse(node)}, {self.device})"
        if isinstance(self.value(node), int | float):
            return ast.unparse(node)
        if isinstance(node, ast.List | ast.Tuple):
            inside = ", ".join(map(self.text, node.elts))
            return f"[{inside}]"
        return self.asked.text(node)

    def call(self) -> Call | None:
        """The texts of the arguments, or None where some are spread."""
        named = {each.arg or "": self.text(each.value) for each in self.node.keywords}
        if "" in named or any(isinstance(a, ast.Starred) for a in self.node.args):
            return None
        for theirs, ours in (("dim", "axis"), ("keepdim", "keepdims")):
            if theirs in named:
                named[ours] = named.pop(theirs)
        if named.get("keepdims") == "False":
            del named["keepdims"]
        return Call("", tuple(map(self.text, self.node.args)), named)


def _line(library: str, function: Any, written: _Written, tensor: Methods) -> str:
    """The reader's line in burnbook; on the values alone where there is none."""
    call, name = written.call(), function.__name__
    func, args = written.node.func, written.node.args
    asks = ast.unparse(func).rpartition(".")[2] == name
    found = None
    if call is not None and call.args and (asks or written.value(func) is function):
        if name == "where" and len(args) == 3:
            found = _where(written)
        elif name in SWAPPED and not written.is_tensor(args[0]) and len(args) == 2:
            found = _by_pattern(name, call._replace(args=call.args[::-1]), 0)
        else:
            rank = tensor.rank
            found = _by_pattern(name, call, rank) or _by_method(name, call, tensor)
    return found or _on_values(library, written)


def _by_pattern(name: str, call: Call, rank: int) -> str | None:
    """The line of the table that has these parameters, with the reader's arguments."""
    if name in REDUCTIONS or name in ("var", "std"):
        call = _without_all_dims(call, rank)
    for parameters, code in LINES.get(name, ()):
        text = fill(parameters, code, call._replace(of="np"), "np")
        if text is not None:
            several = name in REDUCTIONS and "_dim([" in text
            return text.replace("_dim(", "_dims(") if several else text
    return None


def _without_all_dims(call: Call, rank: int) -> Call:
    """A reduction without its axis where that is all that there are."""
    args, named = call.args or (), call.named or {}
    axis = named.get("axis", args[1] if len(args) == 2 else "")
    count = len(axis.strip("[], ").split(",")) if axis.startswith("[") else 1
    if not axis or count < rank or "keepdims" in named:
        return call
    rest = {key: text for key, text in named.items() if key != "axis"}
    return call._replace(args=args[:1], named=rest)


def _by_method(name: str, call: Call, tensor: Methods) -> str | None:
    """A method of that name, or what a method of that name is called here."""
    first, *rest = call.args or ("x",)
    op, held = OPS.get(name), getattr(type(tensor), "__mro__", ())
    own = next((vars(c)[name] for c in held if name in vars(c)), None)
    plain = inspect.isfunction(own) and len(inspect.signature(own).parameters)
    takes = len(op.inputs) if op and not op.attrs else plain == 1
    if own is not None and not isinstance(own, OtherName):
        fits = takes == len(rest) + 1 and not call.named
        return f"{first}.{name}({', '.join(rest)})" if fits else None
    advice = tables()["Tensor"].get(name)
    if advice is None:
        return None
    for parameters, code in advice.given:
        text = fill(parameters, code, call._replace(of=first, args=tuple(rest)), "x")
        if text is not None:
            return text
    known = {"x", "np", "Tensor", "linalg", "activation", *dir(Methods)}
    others = set(re.findall(r"(?<![\w.])[a-z]\w*", advice.code)) - known
    if rest or call.named or others:
        return None
    return fill("", advice.code, Call(first, (), {}), "x")


def _where(written: _Written) -> str:
    """`np.where(condition, x, y)`: y, with x where the condition is true."""
    mask, yes, no = written.node.args
    condition, one, other = map(written.text, (mask, yes, no))
    number = isinstance(written.value(yes), int | float)
    if not isinstance(written.value(no), int | float):
        return f"{other}.mask_{'fill' if number else 'where'}({condition}, {one})"
    return f"{one}.mask_fill({condition}.bool_not(), {other})"


def _on_values(library: str, written: _Written) -> str:
    """The same call with the values of every tensor, which has no gradient then."""

    class Values(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            if isinstance(node, ast.expr) and written.is_tensor(node):
                text = f"{AS_ARRAY[library]}({ast.unparse(node)})"
                return ast.parse(text, mode="eval").body
            return super().generic_visit(node)

    call = ast.parse(ast.unparse(written.node), mode="eval").body
    return f"{ast.unparse(Values().visit(call))}, which has no gradient"


AS_ARRAY = {"np": "np.asarray", "torch": "torch.as_tensor"}


def _example(library: str, name: str, tensor: Methods) -> str:
    """The line for where the reader's own is not known."""
    for parameters, code in LINES.get(name, ()):
        if parameters in ("x", "x, y"):
            return code
    found = _by_method(name, Call("", ("x",), {}), tensor)
    if found:
        return found
    return f"{AS_ARRAY[library]}(x), which has no gradient"
