"""A function of tensors with a gradient of one's own.

The function is ordinary tensor code, and so is its gradient: it runs on the backend
below Autodiff, and where that one tracks as well, the gradient is differentiated like
any other code. `check_gradient` compares it with the slopes of the function.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, overload

from burnbook.backend.autodiff.autodiff import Autodiff
from burnbook.backend.autodiff.tape import Node, note
from burnbook.backend.autodiff.traced_namespace import unwrap
from burnbook.backend.base import Backend
from burnbook.core.dtypes import Float, KindType, kind_of
from burnbook.core.error_context import running_modules
from burnbook.core.errors import (
    ArgumentError,
    BackendError,
    GraphError,
    KindError,
    ShapeError,
)
from burnbook.core.op import BackwardOp
from burnbook.tensor.facts import facts_of, kind_and_shape
from burnbook.tensor.tensor import Tensor

Code = Callable[..., Any]
Inputs = list[tuple[str, Any]]  # names and values; a value may be a number or None
Shape = tuple[int, ...]


@overload
def custom_gradient(function: Code, *, keep: str = ...) -> "CustomGradient": ...
@overload
def custom_gradient(*, keep: str = ...) -> "Callable[[Code], CustomGradient]": ...
def custom_gradient(
    function: Code | None = None, *, keep: str = ""
) -> "CustomGradient | Callable[[Code], CustomGradient]":
    """Give a function of tensors a gradient of its own.

    The function takes tensors, and may take numbers or None beside them; it returns a
    tensor, or a tuple of them. The code of its gradient is registered with `backward`.
    It asks by name for what it needs, and the graph keeps that: `g` is the gradient of
    the result (a tuple of them if there are several, None for those that are not
    Float), `out` the result, an input's name the input, `<input>_shape` its shape, and
    `needs` says for each input whether its gradient is asked for. It returns a gradient
    for each input, None where there is none; of a function with one Float input just
    that gradient.

    keep: names, with spaces between them, of values that the function returns after its
    results; its callers do not see them, the gradient may ask for them. A parameter
    after `*` is an option and has no gradient.

    Example:
        >>> from burnbook.backend import Autodiff, Numpy
        >>> @custom_gradient
        ... def rounded(x):
        ...     return x.round()
        >>> @rounded.backward
        ... def straight_through(g):
        ...     return g
        >>> x = Tensor.from_floats([0.4, 1.6], Autodiff(Numpy())).require_grad()
        >>> gradients = (rounded(x) * x).sum().backward()
        >>> print(x.grad(gradients).into_data().to_list())  # x + round(x)
        [0.4000000059604645, 3.5999999046325684]

    Why: the gradient of what is rounded is 0 wherever there is one; pretending that it
    is 1 trains quantized networks. Others are exact, but need less memory or time than
    the gradients of the parts, or do not overflow where those do.
    """
    if function is None:
        return lambda function: CustomGradient(function, keep)
    return CustomGradient(function, keep)


class CustomGradient:
    """A function of tensors and the code of its gradient: see `custom_gradient`.

    It is also the op of a node of the graph, under the function's name.
    """

    fast_path = False
    extras: tuple[str, ...] = ()
    symbol = None

    def __init__(self, function: Code, keep: str = ""):
        functools.update_wrapper(self, function)
        self.name = function.__name__
        self.forward = function
        self.signature = inspect.signature(function)
        self.gradient: Code | None = None
        self.wanted: tuple[str, ...] = ()
        self.saves = tuple(keep.split())
        params = list(self.signature.parameters.values())
        self.inputs = tuple(p.name for p in params if p.kind is not p.KEYWORD_ONLY)
        self.rules = self.inputs
        self.kept: tuple[str, ...] = ()
        self.many = any(p.kind is p.VAR_POSITIONAL for p in params)
        self.op = _Op(self)
        if any(p.kind is p.VAR_KEYWORD for p in params):
            what = "a function with a gradient of its own names all its parameters"
            raise ArgumentError(self.name, what, cure="the options by name, after a *")
        if not self.inputs:
            what = "a function with a gradient of its own takes tensors"
            raise ArgumentError(self.name, what, cure="a parameter in front of the *")

    def backward(self, gradient: Code) -> Code:
        """Register the code of the gradient; it asks by name for what it needs.

        Raises: ArgumentError where it asks for something that there is not.
        """
        shapes = [f"{name}_shape" for name in self.inputs]
        offered = ["g", "out", "needs", *self.inputs, *shapes, *self.saves]
        wanted = tuple(inspect.signature(gradient).parameters)
        unknown = [name for name in wanted if name not in offered]
        if unknown:
            what = f"its gradient asks for {', '.join(unknown)}"
            facts = [("there is", ", ".join(offered))]
            cure = f'@custom_gradient(keep="{unknown[0]}"), and return it as well'
            raise ArgumentError(self.name, what, facts, cure)
        self.gradient = gradient
        self.wanted = wanted
        self.kept = tuple(n for n in wanted if n not in ("g", "needs", *shapes))
        self.op = _Op(self)
        return gradient

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function; where a gradient is wanted, the graph gets one step."""
        inputs, options = self._bound(args, named)
        backend = self._backend(inputs)
        auto = _autodiff(backend)
        if auto is None:
            results = self._run(inputs, options)
            return results.outs[0] if results.single else results.outs
        lowered = [(name, _lowered(value, auto)) for name, value in inputs]
        options = {name: _lowered(value, auto) for name, value in options.items()}
        try:
            results = self._run(lowered, options)
        except BackendError as error:
            error.facts.append(f"in {self.name}, which computes below Autodiff")
            error.cure = f"every tensor that {self.name} uses as one of its inputs"
            raise
        outs = self._tracked(backend, auto, inputs, results)
        return outs[0] if results.single else tuple(outs)

    def __reduce__(self) -> str:
        return self.forward.__qualname__  # as functions: by the name in its module

    def __repr__(self) -> str:
        return f"{self.name}{self.signature}"

    def _bound(self, args: Any, named: Any) -> tuple[Inputs, dict[str, Any]]:
        """The inputs with their names, in order, and the options."""
        try:
            bound = self.signature.bind(*args, **named)
        except TypeError as error:
            takes = str(self.signature)
            raise ArgumentError(self.name, f"{error}; it takes {takes}") from None
        bound.apply_defaults()
        inputs: Inputs = []
        options: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = self.signature.parameters[name].kind
            if kind is inspect.Parameter.KEYWORD_ONLY:
                options[name] = value
            elif kind is inspect.Parameter.VAR_POSITIONAL:
                inputs += [(f"{name}[{i}]", one) for i, one in enumerate(value)]
            else:
                inputs.append((name, value))
        for name, value in inputs:
            self._refuse_hidden(name, value)
        for name, value in options.items():
            if isinstance(value, Tensor) and hasattr(value.value, "node"):
                what = f"the option {name} wants a gradient, and options have none"
                cure = f"{name} in front of the *, or {name}.set_require_grad(False)"
                raise GraphError(self.name, what, cure=cure)
        return inputs, options

    def _refuse_hidden(self, name: str, value: Any) -> None:
        """Stop at an input that has tensors inside, which no gradient would find."""
        if hasattr(value, "val") and hasattr(value, "is_require_grad"):
            what = f"{name} is a Param, not a tensor"
            raise KindError(self.name, what, cure=f"{name}.val(), which is its tensor")
        held = isinstance(value, (list, tuple)) and any(
            isinstance(one, Tensor) for one in value
        )
        if held or hasattr(value, "named_params"):
            shown = type(value).__name__
            what = f"{name} is a {shown} with tensors in it, so no gradient finds them"
            cure = "each tensor as an input; a parameter *xs takes any number"
            raise KindError(self.name, what, cure=cure)

    def _backend(self, inputs: Inputs) -> Backend:
        """The one backend that all inputs live on."""
        tensors = {name: value for name, value in inputs if isinstance(value, Tensor)}
        if not tensors:
            what = f"none of its inputs ({', '.join(self.inputs)}) is a tensor"
            raise KindError(self.name, what, cure="Tensor.from_data(…, device)")
        (first, one), *others = tensors.items()
        for name, other in others:
            if other.backend is not one.backend:
                what = f"{first} and {name} live on different backends"
                cure = f"{name}.to_device({one.backend!r})"
                raise BackendError(self.name, what, facts_of(**tensors), cure)
        return one.backend

    def _run(self, inputs: Inputs, options: dict[str, Any]) -> "_Results":
        """What the function makes: its results, and what it wants to be kept."""
        made: Any = self.forward(*[value for _, value in inputs], **options)
        several = isinstance(made, (tuple, list))
        parts = list(made) if several else [made]
        count = len(parts) - len(self.saves)
        if count < 1:
            saves = ", ".join(self.saves)
            what = f"it returns {len(parts)} of its results and {saves}, which is kept"
            cure = f"return result, {saves}"
            raise ArgumentError(self.name, what, cure=cure)
        for i, out in enumerate(parts[:count]):
            if not isinstance(out, Tensor):
                which = f"result {i}" if count > 1 else "its result"
                what = f"{which} is {type(out).__name__}, not a tensor"
                raise KindError(self.name, what, cure="return a tensor, or several")
        saved = dict(zip(self.saves, parts[count:], strict=True))
        single = not several or (bool(self.saves) and count == 1)
        return _Results(tuple(parts[:count]), saved, single)

    def _tracked(
        self, backend: Backend, auto: Autodiff, inputs: Inputs, results: "_Results"
    ) -> list[Tensor]:
        """The results on a backend that tracks, with our gradient at every level.

        results: on the backend below, where the ops of the function's own code track
        them. What is kept stays so; the results get our gradient there as well.
        """
        lowered = [(name, _lowered(value, auto)) for name, value in inputs]
        deeper = _autodiff(auto.inner)
        outs = list(results.outs)
        if deeper is not None:
            below = results.lowered(deeper)
            outs = self._tracked(auto.inner, deeper, lowered, below)
        parents = tuple(
            value.value.node
            if isinstance(value, Tensor) and type(value.value) is auto.tracked
            else None
            for _, value in inputs
        )
        if not any(parents):
            return [_on(backend, out.value) for out in outs]
        if self.gradient is None:
            what = "it has no code for its gradient, and one is needed"
            cure = f"@{self.name}.backward above a function that computes it"
            raise GraphError(self.name, what, cure=cure)
        known = dict(lowered)
        if self.many:
            last = len(self.inputs) - 1
            known[self.inputs[last]] = tuple(value for _, value in lowered[last:])
        known |= {**results.saved, "out": outs[0] if results.single else tuple(outs)}
        kept = tuple(_kept(known[name]) for name in self.kept)
        shapes = [
            (name, value.kind, tuple(value.value.shape))
            if isinstance(value, Tensor)
            else (name, None, ())
            for name, value in lowered
        ]
        made = [(out.kind, tuple(out.value.shape)) for out in outs]
        call = _Call(auto.inner, tuple(shapes), tuple(made), results.single)
        nodes = _nodes(self, call, parents, kept)
        if auto.wants_places:
            for node in filter(None, nodes):
                note(node, "place", running_modules())
        return [
            _on(backend, out.value if node is None else auto.tracked(out.value, node))
            for out, node in zip(outs, nodes, strict=True)
        ]


class _Results(NamedTuple):
    """What a function made: its results, and what it wants to be kept."""

    outs: tuple[Tensor, ...]
    saved: dict[str, Any]
    single: bool  # one tensor, not a tuple of one

    def lowered(self, auto: Autodiff) -> "_Results":
        outs = tuple(_lowered(out, auto) for out in self.outs)
        saved = {name: _lowered(value, auto) for name, value in self.saved.items()}
        return _Results(outs, saved, self.single)


class _Call(NamedTuple):
    """What a gradient must know of one call, beside what is kept."""

    below: Backend
    inputs: tuple[tuple[str, KindType | None, Shape], ...]
    outs: tuple[tuple[KindType, Shape], ...]
    single: bool

    def floats(self) -> list[Shape]:
        """The shapes of the results that a gradient can come to."""
        return [shape for kind, shape in self.outs if kind is Float]


class _Plain(NamedTuple):
    """Something that is kept and is no tensor."""

    value: Any


class _Op:
    """The step of the graph that a call is."""

    fast_path = False
    extras: tuple[str, ...] = ()
    keep = None

    def __init__(self, custom: CustomGradient):
        self.custom = custom
        self.name, self.inputs, self.kept = custom.name, custom.inputs, custom.kept
        self.rules = custom.inputs
        self.many = custom.many
        self.backward = _Backward(
            self, custom.kept, functools.partial(_gradients, custom)
        )

    def __repr__(self) -> str:
        return f"op {self.name}"


class _Part:
    """The step from all results of a call, one after the other, to one of them."""

    name, inputs, rules, kept = "result", ("results",), ("results",), ()
    fast_path = many = False
    extras: tuple[str, ...] = ()
    keep = None
    backward: "_Backward"

    def __repr__(self) -> str:
        return "op result"


class _Backward(BackwardOp):
    """The gradient of such a step; it runs tensor code on the backend of its call."""

    def __init__(self, source: Any, kept: tuple[str, ...], forward: Code):
        self.source = source
        self.name = f"{source.name}.backward"
        self.extras = ()
        self.fast_path = False
        self.rules = {}
        self.keep = self.keep_first = self.keep_second = None
        self.inputs = ("g", *kept)
        self.forward = forward
        self.__doc__ = f"The gradients of {source.name}."

    def __reduce__(self) -> Any:
        raise TypeError("a graph cannot be pickled")


def _nodes(
    custom: CustomGradient, call: _Call, parents: Any, kept: tuple[Any, ...]
) -> list[Node | None]:
    """A node for each result; None for those that are not Float.

    Of several Float results each is a part of one node, whose gradient is that of all
    of them in one row: so it is computed once, when all have come.
    """
    shapes = call.floats()
    sizes = [prod(shape) for shape in shapes]
    total = shapes[0] if len(shapes) == 1 else (sum(sizes),)
    whole = Node(custom.op, parents, kept, {"call": call}, total)
    nodes: list[Node | None] = []
    start = 0
    for kind, shape in call.outs:
        if kind is not Float:
            nodes.append(None)
        elif len(shapes) == 1:
            nodes.append(whole)
        else:
            place = {"below": call.below, "start": start, "total": sum(sizes)}
            nodes.append(Node(PART, (whole,), (), place, shape))
            start += prod(shape)
    return nodes


def _gradients(
    custom: CustomGradient, xp: Any, g: Any, *kept: Any, call: _Call, needs: Any
) -> tuple[Any, ...]:
    """The rule: (g, *kept) on the backend below -> a gradient for each input."""
    assert custom.gradient is not None
    known = dict(
        zip(custom.kept, (_restored(v, call.below) for v in kept), strict=True)
    )
    known |= {f"{name}_shape": shape for name, _, shape in call.inputs}
    if custom.many:
        last = len(custom.inputs) - 1
        shapes = tuple(shape for _, _, shape in call.inputs[last:])
        known[f"{custom.inputs[last]}_shape"] = shapes
    given = _split(_on(call.below, unwrap(g)), call)
    known |= {"g": given[0] if call.single else tuple(given), "needs": needs}
    found: Any = custom.gradient(*[known[name] for name in custom.wanted])
    where = f"{custom.name}.backward"
    parts = _of_inputs(where, found, call)
    return tuple(
        _checked(where, part, one, call.below) if need else None
        for part, one, need in zip(parts, call.inputs, needs, strict=True)
    )


def _split(g: Tensor, call: _Call) -> list[Tensor | None]:
    """The gradient of each result; of several they come in one row."""
    alone = len(call.floats()) == 1
    parts: list[Tensor | None] = []
    start = 0
    for kind, shape in call.outs:
        size = prod(shape)
        if kind is not Float:
            parts.append(None)
        elif alone:
            parts.append(g)
        elif size == 0:
            parts.append(Tensor.zeros(list(shape), call.below))
        else:
            parts.append(g.slice([(start, start + size)]).reshape(list(shape)))
            start += size
    return parts


def _in_row(
    xp: Any, g: Any, *, below: Backend, start: int, total: int, needs: Any
) -> tuple[Any]:
    """The rule of a part: its gradient among zeros for the other results."""
    part = _on(below, unwrap(g)).reshape([-1])
    end = start + part.dims()[0]
    before, after = (Tensor.zeros([n], below) for n in (start, total - end))
    row = [piece for piece in (before, part, after) if piece.dims()[0]]
    return (Tensor.cat(row or [part], 0).value,)


PART = _Part()
PART.backward = _Backward(PART, (), _in_row)


def _of_inputs(where: str, found: Any, call: _Call) -> Sequence[Any]:
    """What the code returned, as one gradient or None for each input."""
    names = [name for name, _, _ in call.inputs]
    if isinstance(found, (tuple, list)):
        if len(found) == len(names):
            return found
        given = f"{len(found)} gradients" if len(found) != 1 else "1 gradient"
        what = f"it returns {given} for {len(names)} inputs"
        cure = f"return {', '.join(f'∂{name}' for name in names)}; None for no gradient"
        raise GraphError(where, what, [("inputs", ", ".join(names))], cure)
    floats = [name for name, kind, _ in call.inputs if kind is Float]
    if len(floats) > 1:
        shown = "nothing" if found is None else "one gradient"
        what = f"it returns {shown} for {len(floats)} inputs, {', '.join(floats)}"
        cure = f"return {', '.join(f'∂{name}' for name in names)}"
        raise GraphError(where, what, cure=cure)
    return [found if kind is Float else None for _, kind, _ in call.inputs]


def _checked(
    where: str, part: Any, one: tuple[str, KindType | None, Shape], below: Backend
) -> Any:
    """The raw gradient of one input, if it is one."""
    name, _, wanted = one
    if part is None:
        return None
    if not isinstance(part, Tensor):
        what = f"the gradient of {name} is {type(part).__name__}, not a tensor"
        raise KindError(where, what, cure=f"a Float tensor of shape {list(wanted)}")
    if part.kind is not Float:
        what = f"the gradient of {name} is {part.kind.__name__}"
        raise KindError(where, what, [("gradient", kind_and_shape(part))], ".float()")
    if part.backend is not below:
        what = f"the gradient of {name} is on another backend"
        rows = [("gradient", repr(part.backend)), ("g", repr(below))]
        raise BackendError(where, what, rows, "only what the code asks for by name")
    shape = tuple(part.value.shape)
    fits = len(shape) == len(wanted) and all(
        size == n or n == 1 for size, n in zip(shape, wanted, strict=True)
    )
    if fits:  # a dim of size 1 was stretched: the engine adds up along it
        return part.value
    what = f"the gradient of {name} has shape {list(shape)}, {name} has {list(wanted)}"
    raise ShapeError(where, what, cure=_for_shape(shape, wanted))


def _for_shape(shape: Shape, wanted: Shape) -> str:
    """How a gradient comes to the shape of its input."""
    if len(shape) >= 2 and wanted == (*shape[:-2], shape[-1], shape[-2]):
        return "transpose() of it"
    if prod(shape) == prod(wanted):
        return f"reshape({list(wanted)}) of it"
    summed = [
        dim for dim in range(len(shape)) if (*shape[:dim], *shape[dim + 1 :]) == wanted
    ]
    if summed:
        return f"sum_dim({summed[0]}).squeeze_dim({summed[0]}) of it"
    if len(shape) == len(wanted) and all(
        n in (1, m) for n, m in zip(shape, wanted, strict=True)
    ):
        return f"expand({list(wanted)}) of it"
    return f"a gradient of shape {list(wanted)}"


def _autodiff(backend: Backend) -> Autodiff | None:
    """The outermost Autodiff of a backend, if it tracks."""
    while not isinstance(backend, Autodiff):
        if not backend.ad_enabled:
            return None
        backend = backend.inner
    return backend


def _on(backend: Backend, value: Any) -> Tensor:
    """A raw value as a tensor of a backend."""
    return Tensor(value, kind_of(value.dtype), backend, len(value.shape))


def _lowered(value: Any, auto: Autodiff) -> Any:
    """A tensor on the backend below; everything else is itself."""
    if not isinstance(value, Tensor):
        return value
    raw = value.value
    return _on(auto.inner, raw.value if type(raw) is auto.tracked else raw)


def _kept(value: Any) -> Any:
    """What the graph keeps of a value: raw ones of tensors, the rest as it is."""
    if isinstance(value, Tensor):
        return value.value
    if isinstance(value, tuple) and any(isinstance(part, Tensor) for part in value):
        return tuple(_kept(part) for part in value)
    return _Plain(value)


def _restored(kept: Any, below: Backend) -> Any:
    """The value that was kept, a tensor on the backend of the gradient."""
    kept = unwrap(kept)
    if isinstance(kept, _Plain):
        return kept.value
    if isinstance(kept, tuple):
        return tuple(_restored(part, below) for part in kept)
    return _on(below, kept)
