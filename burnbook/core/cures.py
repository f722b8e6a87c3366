"""What to try when shapes, kinds or arguments do not fit.

Each function looks at what an op was given and answers with code that would work, or
None. They are asked after an op has failed, so they cost nothing before.
"""

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar, cast

from burnbook.core.argument_cures import misfit_of_call
from burnbook.core.arguments import RAW, cause_of, explained
from burnbook.core.errors import ArgumentError
from burnbook.core.other_names import tables

Shape = Sequence[int]
REDUCED_DIMS = ("sum", "mean", "prod", "max", "min", "max_abs")
Cure = Callable[[dict[str, Shape], dict[str, Any]], str | None]


def cure_of(op: str, shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
    """The cure for shapes that an op refuses; `shapes` are those of its inputs."""
    look = CURES.get(op)
    try:
        return look(shapes, attrs) if look else None
    except (KeyError, IndexError):  # an input or a dim is missing: another mistake
        return None


def for_ranks(op: str, a: Shape, b: Shape, names: Sequence[str]) -> str:
    """How two tensors come to one rank: a dim of size 1 more, or one less."""
    if op == "matmul" and len(b) == 1 and len(a) == 2:
        return f"{names[1]}.unsqueeze_dim(1), a column"
    (low, short), (high, long) = sorted(
        zip((a, b), names, strict=True), key=lambda pair: len(pair[0])
    )
    for dim, size in enumerate(high):
        rest = [*high[:dim], *high[dim + 1 :]]
        if size == 1 and rest == list(low):
            return f"{long}.squeeze_dim({dim}), or {short}.unsqueeze_dim({dim})"
    for dim in range(len(high)):
        if len(high) - len(low) == 1 and _stretch((*low[:dim], 1, *low[dim:]), high):
            return f"{short}.unsqueeze_dim({dim})"
    if len(high) - len(low) > 1:
        return f"{short}.unsqueeze({len(high)}), which adds leading dims of size 1"
    return f"{short}.unsqueeze_dim(0)"


def _stretch(a: Shape, b: Shape) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a, b, strict=True))


def for_linear(shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
    """A linear layer: dims that are still to be flattened, or another d_input."""
    x, weight = shapes["x"], shapes["weight"]
    for dim in range(1, len(x) - 1):
        if prod(x[dim:]) == weight[0]:
            return f"x.flatten({dim}, {len(x) - 1}) before the layer"
    if len(x) > 2 and prod(x[1:]) != x[-1]:
        return (
            f"LinearConfig({x[-1]}, {weight[1]}); or for whole examples "
            f"x.flatten(1, {len(x) - 1}) and LinearConfig({prod(x[1:])}, {weight[1]})"
        )
    if len(x) == 1 and x[0] > weight[0] and x[0] % weight[0] == 0:
        rows = f"x.reshape([{x[0] // weight[0]}, {weight[0]}])"
        return f"{rows}: flatten(1, -1) keeps the batch, flatten() does not"
    if x[-1] == weight[1]:
        return f"LinearConfig({x[-1]}, …): the sizes of two layers may be swapped"
    return f"LinearConfig({x[-1]}, {weight[1]})"


def for_matmul(shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
    """A product of matrices: one of them transposed."""
    x, y = shapes["x"], shapes["y"]
    if x[-1] == y[-1]:
        return "x.matmul(y.transpose())"
    if x[-2] == y[-2]:
        return "x.transpose().matmul(y)"
    if x[-2] == y[-1]:
        return "y.matmul(x)"
    return f"y of shape [{x[-1]}, {y[-1]}]"


def channels_moved(x: Shape, channels: int, dim: int = 1) -> str | None:
    """The channels where a layer wants them, in dim 1 or last; None if they are not.

    Example:
        >>> channels_moved([2, 8, 8, 3], 3), channels_moved([2, 8, 8, 3], 4)
        ('x.permute([0, 3, 1, 2]): the channels come last', None)
    """
    if len(x) < 3:
        return None
    if dim == 1 and x[-1] == channels:
        order = [0, len(x) - 1, *range(1, len(x) - 1)]
        return f"x.permute({order}): the channels come last"
    if dim == -1 and x[1] == channels:
        return f"x.permute({[0, *range(2, len(x)), 1]}): the channels come second"
    return None


def for_transposed_conv(shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
    """A transposed convolution: channels that come last, or no batch."""
    x, weight = shapes["x"], shapes["weight"]
    if len(x) == len(weight) - 1 and x[0] == weight[0]:
        return "x.unsqueeze_dim(0): a batch of one"
    if len(x) != len(weight) or x[1] == weight[0]:
        return None
    return channels_moved(x, weight[0]) or f"a layer for {x[1]} channels"


def for_conv(shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
    """A convolution: channels that come last, or another number of channels."""
    x, weight = shapes["x"], shapes["weight"]
    channels = weight[1] * attrs.get("groups", 1)
    if len(x) == len(weight) - 1:
        if channels == 1 and x[0] != 1:
            return "x.unsqueeze_dim(1): a batch of images with one channel"
        return "x.unsqueeze_dim(0): a batch of one" if x[0] == channels else None
    if x[1] == channels:  # the sizes are another matter
        return None
    moved = channels_moved(x, channels)
    if moved:
        return moved
    if len(x) == 4:
        return f"Conv2dConfig([{x[1]}, {weight[0]}], …)"
    return f"a layer for {x[1]} channels"


def for_pair(shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
    """Two shapes element by element: a transposed one, or sizes made equal."""
    (a, x), (b, y) = list(shapes.items())[:2]
    if len(x) >= 2 and tuple(x) == (*y[:-2], y[-1], y[-2]):
        return f"{b}.transpose()"
    odd = [dim for dim, (m, n) in enumerate(zip(x, y, strict=True)) if m != n]
    if len(odd) == 1 and odd[0] == 1 and len(x) == 4:
        return (
            f"a convolution of 1 × 1 on {a}, "
            f"Conv2dConfig([{x[1]}, {y[1]}], [1, 1]): the channels differ"
        )
    if len(odd) == 1:
        dim = odd[0]
        longer, short = (a, y) if x[dim] > y[dim] else (b, x)
        return f"{longer}.narrow({dim}, 0, {short[dim]}), or a size of 1 there"
    return None


def for_classes(shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
    """A cross entropy: images with a class for each pixel, or one-hot targets."""
    logits, targets = shapes["logits"], shapes["targets"]
    if len(logits) > 2 and len(targets) == len(logits) - 1:
        last = [0, *range(2, len(logits)), 1]
        return (
            f"logits.permute({last}).reshape([-1, {logits[1]}]) "
            f"and targets.flatten(0, {len(targets) - 1})"
        )
    if logits == targets:
        return "targets.argmax(1).squeeze_dim(1): one class number for each row"
    if len(targets) == 2 and targets[1] == 1:
        return "targets.squeeze_dim(1)"
    if len(logits) == 3 and len(targets) == 2:
        return "logits.flatten(0, 1) and targets.flatten(0, 1)"
    return None


def for_reshape(shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
    """Another shape: −1 in place of the size that does not fit."""
    have, wanted = prod(shapes["x"]), list(attrs["shape"])
    for dim in range(len(wanted)):
        rest = prod(wanted[:dim] + wanted[dim + 1 :])
        if rest and have % rest == 0:
            shown = [-1 if i == dim else n for i, n in enumerate(wanted)]
            return f"x.reshape({shown})"
    return "sizes whose product is " + str(have)


def for_mask(shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
    """A mask: the shape of what it masks, by stretching one of the two if that does."""
    x, mask = next(iter(shapes.values())), shapes.get("mask")
    if mask is None:
        return None
    if _expands(mask, x):
        return f"mask.expand({list(x)})"
    both = [max(pair) for pair in zip(x, mask, strict=False)]
    if len(x) == len(mask) and _expands(x, both) and _expands(mask, both):
        return f"x.expand({both})"
    return f"a mask of shape {list(x)}, or with sizes of 1"


def _expands(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether a tensor expands to these sizes: from the right, equal sizes or 1."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(a in (1, b) for a, b in pairs)


def for_indices(shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
    """Indices of gather and scatter: one dim more."""
    x, dim = shapes["x"], attrs["dim"]
    short = [n for n in ("indices", "values") if len(shapes.get(n, x)) == len(x) - 1]
    return " and ".join(f"{name}.unsqueeze_dim({dim})" for name in short) or None


def for_norm(config: str, dim: int) -> Cure:
    """A norm of another size: the config for what it is given."""

    def look(shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
        x = shapes["x"]
        if len(x) == 2 and config == "BatchNormConfig" and x[0] == shapes["gamma"][0]:
            return "x.transpose(): the rows are the batch"
        return channels_moved(x, shapes["gamma"][0], dim) or f"{config}({x[dim]})"

    return look


def for_state(shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
    """A state of another batch: none, which begins with zeros, or a part of it."""
    x = shapes["x"]
    if len(x) == 2:
        one = "x.unsqueeze_dim(0), a batch of one sequence"
        return f"{one}; or x.unsqueeze_dim(1), sequences of one step"
    batch = x[0]
    held = [shape for name, shape in shapes.items() if name in ("cell", "hidden")]
    if held and len(held[0]) == 3 and held[0][0] == 1:  # layers first, in PyTorch
        return ".squeeze_dim(0) of each part of the state, which has no dim of layers"
    if not held or held[0][0] == batch:
        return None
    if len(x) == 3 and held[0][0] == x[1]:
        return "x.swap_dims(0, 1): the steps come first; or with_batch_first(False)"
    if held[0][0] > batch:
        return f"state=None, or .narrow(0, 0, {batch}) of each part of the state"
    return "state=None, which begins with zeros"


def for_cat(shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
    """Tensors joined along another dim than the one that differs."""
    first, *others = attrs["xs"]
    for dim in range(len(first)):
        rest = [*first[:dim], *first[dim + 1 :]]
        if all([*each[:dim], *each[dim + 1 :]] == rest for each in others):
            return f"Tensor.cat([…], {dim}): they differ in dim {dim} alone"
    return None


def for_dims(method: str) -> Cure:
    """A reduction along one dim that was given several: the one for several."""

    def look(shapes: dict[str, Shape], attrs: dict[str, Any]) -> str | None:
        dims = attrs["dim"]
        return f"x.{method}({list(dims)})" if isinstance(dims, list | tuple) else None

    return look


CURES: dict[str, Cure] = {
    **{f"{name}_dim": for_dims(f"{name}_dims") for name in REDUCED_DIMS},
    "batch_norm": for_norm("BatchNormConfig", 1),
    "layer_norm": for_norm("LayerNormConfig", -1),
    "rms_norm": for_norm("RmsNormConfig", -1),
    **dict.fromkeys(["lstm", "gru", "rnn"], for_state),
    "cat": for_cat,
    "gather": for_indices,
    "scatter": for_indices,
    "linear": for_linear,
    "matmul": for_matmul,
    "conv2d": for_conv,
    "conv": for_conv,
    "conv_transpose": for_transposed_conv,
    "cross_entropy": for_classes,
    "reshape": for_reshape,
    "mask_fill": for_mask,
    "mask_where": for_mask,
    **dict.fromkeys(
        [
            "add",
            "sub",
            "mul",
            "div",
            "remainder",
            "powf",
            "max_pair",
            "min_pair",
            "equal",
            "not_equal",
            "greater",
            "greater_equal",
            "lower",
            "lower_equal",
            "fmod",
            "atan2",
            "hypot",
        ],
        for_pair,
    ),
}


def for_argument(
    method: str,
    name: str | None,
    known: Sequence[str],
    dim: object = None,
    keepdim: object = False,
    shown: Sequence[str] | None = None,
) -> tuple[str, str | None]:
    """What is wrong with an argument of a method, and the cure.

    name: of the argument; None for a positional one too many. dim and keepdim: what a
    method that takes all elements was given. shown: the arguments that the cure shows,
    by default all that are known.
    """
    takes = ", ".join(known) or "nothing"
    if name is None or name in ("dim", "axis", "axes", "dims"):
        other = REDUCED.get(method)
        if other:
            what = f"takes all elements; along a dim it is {other[0]}"
            return what, _along(other[1], method, dim, keepdim)
    if name is None:
        return f"more values than it takes: {takes}", f"x.{method}({takes})"
    advice = tables()["arguments"].get(name)
    if advice is None:
        return f"{name} is not one of its arguments: {takes}", None
    if advice.code != "-":
        return f"{name} is not one of its arguments: {takes}", f"{advice.code}=…"
    return (
        f"there is no {name} here: {advice.remark}",
        f"x.{method}({', '.join(known if shown is None else shown)})",
    )


def _along(cure: str, method: str, dim: object, keepdim: object) -> str:
    """The cure for a method that takes all elements, with the dim that was meant."""
    if isinstance(dim, (tuple, list)) and method in ("sum", "mean", "prod"):
        return f"x.{method}_dims({list(cast(Sequence[int], dim))})"
    if keepdim is True:
        cure = f"x.{method}_dim(1)"
    return cure if type(dim) is not int else cure.replace("(1)", f"({dim})")


F = TypeVar("F", bound=Callable[..., Any])
KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY


def explains_arguments(where: str) -> Callable[[F], F]:
    """Let a function say what is wrong with its arguments, and what they are here."""

    def wrap(function: F) -> F:
        parameters = inspect.signature(function).parameters
        known = list(parameters)

        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            try:
                return function(*args, **named)
            except RAW as error:
                odd = [name for name in named if name not in known]
                trace = error.__traceback__
                if (
                    not odd
                    or not isinstance(error, TypeError)
                    or trace is None
                    or (
                        trace.tb_next is not None
                        and (trace.tb_next.tb_frame.f_code is function.__code__)
                    )
                ):
                    said = explained(error, function, args, named, where, count=False)
                    raise said from cause_of(error)
            takes = [name for name in known if name not in ("self", "cls")]
            shown = [n for n in takes if parameters[n].kind is not KEYWORD_ONLY]
            what, cure = for_argument(where, odd[0], takes, shown=shown)
            raise ArgumentError(where, what, cure=cure and cure.removeprefix("x."))

        return call  # type: ignore[return-value] # the same signature

    return wrap


def explains_call(where: str, cure: str) -> Callable[[F], F]:
    """Let a function whose arguments do not fit say which, and show a right call.

    Why: it looks only after a call has failed, so a call that fits costs nothing.
    """

    def wrap(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            try:
                return function(*args, **named)
            except ArgumentError:
                raise
            except RAW as error:
                wrong = misfit_of_call(function, args, named)
                if wrong is None or not isinstance(error, TypeError):
                    said = explained(error, function, args, named, where)
                    raise said from cause_of(error)
            raise ArgumentError(where, wrong, cure=_with_given(cure, args[1:]))

        return call  # type: ignore[return-value] # the same signature

    return wrap


def _with_given(cure: str, given: Sequence[object]) -> str:
    """The example of a call, with the numbers that were given in their places.

    Example:
        >>> _with_given("x.topk(1, 1)", [5])
        'x.topk(5, 1)'
    """
    found = re.fullmatch(r"([\w.]+)\(([^()]*)\)", cure)
    if found is None:
        return cure
    shown = found[2].split(", ")
    for place, value in enumerate(given[: len(shown)]):
        if type(value) in (int, float):
            shown[place] = repr(value)
    return f"{found[1]}({', '.join(shown)})"


REDUCED = {
    "sum": ("sum_dim", "x.sum_dim(1), or x.sum_dim(1).squeeze_dim(1) without the dim"),
    "mean": (
        "mean_dim",
        "x.mean_dim(1), or x.mean_dim(1).squeeze_dim(1) without the dim",
    ),
    "prod": (
        "prod_dim",
        "x.prod_dim(1), or x.prod_dim(1).squeeze_dim(1) without the dim",
    ),
    "max": ("max_dim", "x.max_dim(1), or x.max_dim_with_indices(1) for both"),
    "min": ("min_dim", "x.min_dim(1), or x.min_dim_with_indices(1) for both"),
    "any": ("any_dim", "x.any_dim(1)"),
    "all": ("all_dim", "x.all_dim(1)"),
}
