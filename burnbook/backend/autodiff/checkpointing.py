"""Memory for time: values that are computed again.

Normally the tape keeps every value that a gradient rule asks for. With
`Autodiff(B, checkpointing=BalancedCheckpointing())` the outputs of memory-bound ops
(those that are quick to repeat: sums, products, tanh, slices) are not kept. Where a
rule asks for one, the tape keeps its recipe instead: the op and where its inputs come
from, down to the nearest values that are kept. Results are the same, bit for bit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from burnbook.backend.autodiff.tape import Node, Tracked
from burnbook.core.op import Op

# Burn's list, and (in the last two rows) what newer Burn makes of ops on that list.
MEMORY_BOUND = frozenset(
    (
        *("add", "sub", "mul", "div", "remainder", "neg", "recip", "powf"),
        *("exp", "log", "log1p", "sqrt", "abs", "sin", "cos", "tanh", "erf"),
        *("round", "floor", "ceil", "sign"),
        *("gelu", "relu", "sigmoid", "log_sigmoid"),
        *("square", "tan", "sinh", "cosh", "asin", "acos", "atan", "trunc"),
        *("asinh", "acosh", "atanh", "leaky_relu", "silu", "elu", "mish", "softplus"),
        *("swap_dims", "permute", "flip", "reshape", "expand", "repeat_dim"),
        *("slice", "slice_assign", "select", "select_assign"),
    )
)


class CheckpointStrategy:
    """Which values are computed again instead of kept; subclass it for your own.

    Burn's `CheckpointStrategy`. Which files of a training stay on the disk is another
    matter: `burnbook.train.CheckpointingStrategy`.
    """

    def recomputes(self, op: Op) -> bool:
        """Whether the output of an op is computed again when a gradient needs it."""
        raise TypeError(f"{type(self).__name__} must say which ops it recomputes")


@dataclass(frozen=True)
class NoCheckpointing(CheckpointStrategy):
    """Every op keeps what its gradient needs: the fastest way, and the default."""

    def recomputes(self, op: Op) -> bool:
        return False


@dataclass(frozen=True)
class BalancedCheckpointing(CheckpointStrategy):
    """Outputs of memory-bound ops are recomputed, those of compute-bound ops kept.

    memory_bound: the names of the ops to recompute.

    Example:
        >>> from burnbook.ops import matmul, tanh
        >>> balanced = BalancedCheckpointing()
        >>> balanced.recomputes(tanh), balanced.recomputes(matmul)
        (True, False)
    """

    memory_bound: frozenset[str] = MEMORY_BOUND

    def recomputes(self, op: Op) -> bool:
        return op.name in self.memory_bound

    def __repr__(self) -> str:
        if self.memory_bound == MEMORY_BOUND:
            return "BalancedCheckpointing()"
        return f"BalancedCheckpointing(frozenset({sorted(self.memory_bound)}))"


class Lazy(Tracked):
    """A tracked value that may also know how to be computed again."""

    __slots__ = ("recipe",)

    def __init__(self, value: Any, node: Node):
        super().__init__(value, node)
        self.recipe: Recipe | None = None


class Recipe:
    """How to compute a value again: the op, and its inputs (values or recipes).

    Once computed it stays here until the last rule that needs it has run; nobody else
    holds a recipe, so the tape frees the value by forgetting.
    """

    __slots__ = ("attrs", "inputs", "op", "shape", "value")

    def __init__(self, op: Op, inputs: tuple[Any, ...], attrs: Any, shape: Any):
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.shape = shape
        self.value: Any = None


def recomputing(
    run: Callable[..., Any],
    inner_run: Callable[..., Any],
    tracked: type[Lazy],
    strategy: CheckpointStrategy,
) -> Callable[..., Any]:
    """The `run` of an Autodiff with a strategy; `run` is the plain one.

    Ops that the strategy does not ask about (no gradient, no tracked input) take the
    plain way.
    """

    def checkpointed_run(op: Any, values: tuple[Any, ...], attrs: Any) -> Any:
        parents = tuple([v.node if type(v) is tracked else None for v in values])
        if op.keep is None or not any(parents):
            return run(op, values, attrs)
        bare = tuple([v.value if type(v) is tracked else v for v in values])
        known = tuple(
            [v.recipe or v.value if type(v) is tracked else v for v in values]
        )
        out = inner_run(op, bare, attrs)
        first = out[0] if op.extras else out
        recipe = None
        if not op.extras and strategy.recomputes(op):
            recipe = Recipe(op, known, attrs, first.shape)
        stored = first if recipe is None else recipe
        keep = op.keep
        if len(parents) == 2 and None in parents:
            keep = op.keep_second if parents[0] is None else op.keep_first
        kept = keep(known, (stored, *out[1:]) if op.extras else stored)
        made = tracked(first, Node(op, parents, kept, attrs, first.shape))
        made.recipe = recipe
        return (made, *out[1:]) if op.extras else made

    return checkpointed_run


def with_values(run: Callable[..., Any]) -> Callable[..., Any]:
    """A `run` for gradient rules that carries out the recipes among its values."""

    def run_with_values(op: Any, values: tuple[Any, ...], attrs: Any) -> Any:
        return run(op, tuple([computed(v, run) for v in values]), attrs)

    return run_with_values


def computed(kept: Any, run: Callable[..., Any]) -> Any:
    """What the tape keeps, as a value: recipes are carried out, the rest is itself.

    Why: a long chain is computed with a list of what is open, not by functions calling
    themselves, so that its length has no limit.
    """
    if type(kept) in (list, tuple):
        return type(kept)(computed(part, run) for part in kept)
    if type(kept) is not Recipe:
        return kept
    pending = [kept]
    while pending:
        recipe = pending[-1]
        missing = [v for v in recipe.inputs if type(v) is Recipe and v.value is None]
        if recipe.value is None and missing:
            pending += missing
            continue
        pending.pop()
        if recipe.value is None:
            values = [v.value if type(v) is Recipe else v for v in recipe.inputs]
            recipe.value = run(recipe.op, tuple(values), recipe.attrs)
    return kept.value
