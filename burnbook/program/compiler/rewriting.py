"""Other steps for the same results, which cost less: for programs that only infer.

Permutations are views and cost nothing, but what is computed of a view goes through
memory in leaps: so they come after elementwise steps instead of before. Straight lines
behind a convolution go into its weights. A layer that is asked for every step of a
sequence by itself reads its weights once for all of them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.op import OPS, BackwardOp
from burnbook.program.compiler.equal_steps import with_equal_steps
from burnbook.program.compiler.fusion import attrs_of
from burnbook.program.sizes import mapped
from burnbook.program.values import Step, Value

CONVOLUTIONS = ("conv2d", "conv")
NORM = "batch_norm_known"
PAIRS = {"add", "sub", "mul", "div"}
ELEMENTWISE = {
    *PAIRS,
    *("relu", "sigmoid", "tanh", "gelu", "silu", "leaky_relu", "clamp", "exp", "log"),
    *("sqrt", "square", "neg", "abs", "elu", "softplus", "mish"),
}
FEW = 3  # layers with the same weights that are one call already where there are fewer
LARGE = 256  # elements of a constant that is worth a look for another like it
Constants = dict[Value, Any]


def rewritten(
    steps: Sequence[Step],
    outputs: Iterable[Value],
    constants: Constants,
    used: Callable[[Sequence[Step], Iterable[Value]], list[Step]],
) -> list[Step]:
    """The steps of a program that cost less; what they give differs by rounding.

    used: which steps are left of those that some output needs.
    """
    outputs, found = tuple(outputs), list(steps)
    if not any(isinstance(step.op, BackwardOp) for step in steps):
        found = used(with_late_permutations(found, constants), outputs)
        found = used(with_layers_of_all_steps(found, constants), outputs)
        found = used(with_equal_steps(found, outputs, constants), outputs)
    return with_lines_in_weights(found, outputs, constants)


def with_equal_constants_once(
    steps: Sequence[Step], constants: Mapping[Value, Any]
) -> tuple[Step, ...]:
    """The steps with one of the constants that hold the same numbers.

    A loop that was written out makes its weights anew in each turn.
    """
    alike: dict[Any, list[Value]] = defaultdict(list)
    for value, array in constants.items():
        if type(array) is np.ndarray and array.size >= LARGE:
            alike[array.dtype.str, array.shape].append(value)
    known: dict[bytes, Value] = {}
    same: dict[Value, Value] = {}
    for values in alike.values():
        for value in values if len(values) > 1 else ():
            array = np.ascontiguousarray(constants[value])
            place = repr((array.dtype.str, array.shape)).encode()
            key = blake2b(array.view(np.uint8).data, key=place[:64]).digest()
            same[value] = known.setdefault(key, value)
    if all(value is other for value, other in same.items()):
        return tuple(steps)
    swap = lambda leaf: same.get(leaf, leaf) if type(leaf) is Value else leaf  # noqa: E731
    return tuple([replace(s, inputs=mapped(s.inputs, swap)) for s in steps])


def with_late_permutations(steps: Sequence[Step], constants: Constants) -> list[Step]:
    """The steps with permutations behind elementwise steps instead of before them.

    Only where permutations or such steps follow: others would rather read in a row.
    """
    readers: dict[Value, list[str]] = defaultdict(list)
    for step in steps:
        for value in step.values:
            readers[value].append(step.op.name)
    moved: dict[Value, tuple[Value, tuple[int, ...]]] = {}  # what it is, in which order
    found: list[Step] = []
    for step in steps:
        axes = _order_of(step)
        if axes is not None:
            source, before = moved.get(step.inputs[0], (step.inputs[0], None))
            axes = axes if before is None else tuple([before[i] for i in axes])
            moved[step.out] = source, axes
            found.append(_permuted(source, axes, step))
            continue
        follow = readers[step.out]
        if follow and all(
            n in ELEMENTWISE or n in ("permute", "swap_dims") for n in follow
        ):
            before = _before_order(step, moved, constants)
            if before is not None:
                inputs, axes = before
                inner = _unordered(step, axes)
                moved[step.out] = inner, axes
                found.append(replace(step, inputs=inputs, outputs=(inner,)))
                found.append(_permuted(inner, axes, step))
                continue
        found.append(step)
    return found


def _order_of(step: Step) -> tuple[int, ...] | None:
    """The order in which a step gives the dims of its input, if that is all it does."""
    if type(step.inputs[0] if step.inputs else None) is not Value:
        return None
    rank = len(step.inputs[0].shape)
    if step.op.name == "permute":
        return tuple([axis % rank for axis in step.attrs["axes"]])
    if step.op.name != "swap_dims":
        return None
    axes = list(range(rank))
    one, other = step.attrs["dim1"] % rank, step.attrs["dim2"] % rank
    axes[one], axes[other] = axes[other], axes[one]
    return tuple(axes)


def _permuted(source: Value, axes: tuple[int, ...], like: Step) -> Step:
    op: Any = OPS["permute"]
    return Step(op, (source,), {"axes": axes}, like.outputs, like.path, like.line)


def _unordered(step: Step, axes: tuple[int, ...]) -> Value:
    """What stands for the result of a step before its dims are put in order."""
    shape: list[Any] = [None] * len(axes)
    for to, axis in enumerate(axes):
        shape[axis] = step.out.shape[to]
    out = step.out
    return Value(f"{out.name}.inner", "result", out.dtype, tuple(shape))


def _before_order(
    step: Step,
    moved: dict[Value, tuple[Value, tuple[int, ...]]],
    constants: Constants,
) -> tuple[tuple[Any, ...], tuple[int, ...]] | None:
    """The inputs of an elementwise step before they were put in order, and the order.

    None where they are in several orders, or in none.
    """
    if step.op.name not in ELEMENTWISE or len(step.outputs) != 1:
        return None
    orders = {moved[v][1] for v in step.values if v in moved}
    if len(orders) != 1:
        return None
    (axes,) = orders
    inputs: list[Any] = []
    for value in step.inputs:
        if type(value) is not Value:
            inputs.append(value)
        elif value in moved:
            inputs.append(moved[value][0])
        else:
            array = constants.get(value)
            if type(array) is not np.ndarray or array.ndim not in (0, len(axes)):
                return None
            if array.ndim:
                array = np.ascontiguousarray(array.transpose(np.argsort(axes)))
            inputs.append(_constant(f"{value.name}.inner", array, constants))
    return tuple(inputs), axes


def _constant(name: str, array: NDArray[Any], constants: Constants) -> Value:
    value = Value(name, "constant", array.dtype, array.shape)
    constants[value] = array
    return value


def with_layers_of_all_steps(steps: Sequence[Step], constants: Constants) -> list[Step]:
    """The steps with layers that work on slices of one tensor as one layer.

    That is what a recurrent layer is that was written out step by step: each asks the
    same weights what its own slice means.
    """
    makers = {step.out: step for step in steps}
    groups: dict[Any, dict[Value, int]] = defaultdict(dict)
    for step in steps:
        found = _layer_of_slice(step, makers, constants)
        if found is not None:
            base, place = found
            groups[base, step.inputs[1:]][step.out] = place
    of_all: dict[Value, tuple[Any, int]] = {}
    for (base, _), members in groups.items():
        if len(members) >= FEW and 2 * len({*members.values()}) >= base.shape[0]:
            group = _Whole(base)
            of_all.update({out: (group, place) for out, place in members.items()})
    kept: list[Step] = []
    for step in steps:
        group, place = of_all.get(step.out, (None, 0))
        if group is None:
            kept.append(step)
            continue
        kept += group.steps_for(step, place)
    return kept


def _layer_of_slice(
    step: Step, makers: dict[Value, Step], constants: Constants
) -> tuple[Value, int] | None:
    """What a linear layer of fixed weights has a slice of, and which one."""
    if step.op.name != "linear" or any(v not in constants for v in step.values[1:]):
        return None
    shape = step.inputs[0].shape
    picked = makers.get(step.inputs[0])
    while picked is not None and picked.op.name == "reshape":
        picked = makers.get(picked.inputs[0])
    if picked is None or picked.op.name not in ("select", "slice"):
        return None
    base: Value = picked.inputs[0]
    place = _place_of(picked, base, constants)
    if place is None or base in constants or len(base.shape) != 3:
        return None
    return (base, place) if shape == base.shape[1:] else None


def _place_of(step: Step, base: Value, constants: Constants) -> int | None:
    """The one place along the first dim that a step picks, if it does just that."""
    count = base.shape[0]
    if type(count) is not int:
        return None
    if step.op.name == "select":
        places = constants.get(step.inputs[1])
        if step.attrs["dim"] % len(base.shape) or type(places) is not np.ndarray:
            return None
        place = int(places[0]) if places.size == 1 else -1
        return place if 0 <= place < count else None
    first, *rest = step.attrs["index"]
    whole = all(
        (one.start, one.stop, one.step) in (((0, size, None)), (None, None, None))
        for one, size in zip(rest, base.shape[1:], strict=False)
    )
    if not whole or first.step not in (None, 1) or type(first.start) is not int:
        return None
    is_one = step.out.shape[0] == 1 and 0 <= first.start < count
    return first.start if is_one else None


class _Whole:
    """One layer for all slices of a tensor, made where the first of them stood."""

    def __init__(self, base: Value):
        self.base = base
        self.out: Value | None = None

    def steps_for(self, step: Step, place: int) -> list[Step]:
        """What takes the place of the layer of one slice."""
        made: list[Step] = []
        out = step.out
        if self.out is None:
            shape = (*self.base.shape[:-1], out.shape[-1])
            self.out = Value(f"{out.name}.all", "result", out.dtype, shape)
            inputs = (self.base, *step.inputs[1:])
            made.append(replace(step, inputs=inputs, outputs=(self.out,)))
        picked = replace(out, name=f"{out.name}.one", shape=(1, *out.shape))
        index = {"index": (slice(place, place + 1),)}
        cut: Any = OPS["slice"]
        shaped: Any = OPS["reshape"]
        made.append(Step(cut, (self.out,), index, (picked,), step.path, step.line))
        attrs = {"shape": out.shape}
        made.append(Step(shaped, (picked,), attrs, (out,), step.path, step.line))
        return made


def with_lines_in_weights(
    steps: Sequence[Step], outputs: Iterable[Value], constants: Constants
) -> list[Step]:
    """The steps with straight lines of channels inside the convolutions before them.

    That is what norms of known moments are, and sums and products with a number for
    each channel. With a convolution before it, it is one convolution, whose weights are
    new constants. Only where nothing else wants what the convolution gives.
    """
    uses = Counter(value for step in steps for value in step.values)
    uses.update(outputs)
    lines: dict[Value, _Line] = {}  # by what convolutions give so far
    kept: list[Step | None] = list(steps)
    for i, step in enumerate(steps):
        if step.op.name in CONVOLUTIONS:
            line = _Line.of(step, i, constants)
            if line is not None:
                lines[step.out] = line
            continue
        places = [
            k for k, v in enumerate(step.inputs) if type(v) is Value and v in lines
        ]
        if len(places) != 1 or uses[step.inputs[places[0]]] != 1:
            continue
        line = lines[step.inputs[places[0]]]
        more = _line_of(step, places[0], line, constants)
        if more is None:
            continue
        line.then(*more)
        kept[line.at], kept[i] = None, step
        line.at, lines[step.out] = i, line
    for line in {id(line): line for line in lines.values() if line.is_changed}.values():
        last = steps[line.at]
        kept[line.at] = line.merged(last.out, constants)
    return [step for step in kept if step is not None]


@dataclass
class _Line:
    """A convolution of fixed weights, and a straight line for each of its channels.

    at: the number of the step that gives its result so far.
    """

    conv: Step
    at: int
    weight: NDArray[Any]
    factor: Any
    shift: Any
    is_changed: bool = False

    @classmethod
    def of(cls, conv: Step, at: int, constants: Constants) -> "_Line | None":
        """The line that changes nothing; None where weights are not known."""
        held = [None if v is None else constants.get(v, v) for v in conv.inputs[1:]]
        both: list[Any] = [*held, None][:2]
        weight, bias = both
        arrays = [weight] if bias is None else [weight, bias]
        if any(type(a) is not np.ndarray for a in arrays) or weight.dtype != np.float32:
            return None
        shift = np.zeros(len(weight)) if bias is None else bias.astype(np.float64)
        return cls(conv, at, weight, np.ones(len(weight)), shift)

    def then(self, factor: Any, shift: Any) -> None:
        """Let another line follow."""
        self.factor = self.factor * factor
        self.shift = self.shift * factor + shift
        self.is_changed = True

    def merged(self, out: Value, constants: Constants) -> Step:
        """The convolution with all of it in its weights."""
        wide = self.weight * self.factor.reshape(-1, *[1] * (self.weight.ndim - 1))
        inputs: list[Value] = []
        for name, array in (("weight", wide), ("bias", self.shift)):
            array = array.astype(self.weight.dtype)
            inputs.append(_constant(f"{out.name}.{name}", array, constants))
        return replace(self.conv, inputs=(self.conv.inputs[0], *inputs), outputs=(out,))


def _line_of(
    step: Step, place: int, line: _Line, constants: Constants
) -> tuple[Any, Any] | None:
    """What a step multiplies each channel by and adds to it, if that is all it does."""
    if step.op.name == NORM:
        return None if place else _line_of_norm(step, constants)
    if step.op.name not in PAIRS or step.out.dtype != line.weight.dtype:
        return None
    if step.out.shape != line.conv.out.shape:
        return None
    other = _numbers(step.inputs[1 - place], line, constants)
    if other is None:
        return None
    if step.op.name == "add":
        return 1.0, other
    if step.op.name == "mul":
        return other, 0.0
    if step.op.name == "sub":
        return (1.0, -other) if place == 0 else (-1.0, other)
    return (1.0 / other, 0.0) if place == 0 and np.all(other) else None


def _line_of_norm(step: Step, constants: Constants) -> tuple[Any, Any] | None:
    arrays = [constants.get(v) for v in step.inputs[1:]]
    if any(type(a) is not np.ndarray for a in arrays):
        return None
    gamma, beta, mean, var = (np.asarray(a, np.float64) for a in arrays)
    factor = gamma / np.sqrt(var + attrs_of(step)["epsilon"])
    return factor, beta - mean * factor


def _numbers(value: Any, line: _Line, constants: Constants) -> Any:
    """One number or one for each channel, in double precision; None for others."""
    if type(value) is not Value:
        return np.float64(value) if type(value) in (int, float) else None
    array = constants.get(value)
    if type(array) is not np.ndarray:
        return None
    shape = (1, len(line.weight), *[1] * (len(line.conv.out.shape) - 2))
    is_one = array.size == 1 or array.shape == shape
    return array.astype(np.float64).reshape(-1) if is_one else None
