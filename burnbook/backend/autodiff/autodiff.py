"""A decorator of any backend that remembers its ops.

Forward: run the op below, and keep what its gradient rules ask for. Backward: walk the
nodes from the newest to the oldest; each hands its gradient to the nodes it came from.
A gradient is an op too, run by the backend below, so decorators see it and a backend
may have a kernel for it; when the backend below tracks as well, it can be
differentiated again.
"""

import math
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from numpy import ndarray

from burnbook.backend.autodiff.backward import walk, walk_arrays
from burnbook.backend.autodiff.checkpointing import (
    CheckpointStrategy,
    Lazy,
    NoCheckpointing,
    recomputing,
    with_values,
)
from burnbook.backend.autodiff.errors import (
    cut_or_tracked,
    nothing_tracked,
    remembering_places,
)
from burnbook.backend.autodiff.gradients import Gradients
from burnbook.backend.autodiff.graph import HookedGradients, recipes_behind
from burnbook.backend.autodiff.tape import Node, Parents, Tracked, next_number
from burnbook.backend.autodiff.traced_namespace import TrackedSpace
from burnbook.backend.autodiff.transfer import move, run_at_home
from burnbook.backend.base import (
    AnyOp,
    Attrs,
    Backend,
    BackendWrapper,
    Value,
    Values,
    Watch,
)
from burnbook.backend.numpy import (
    Numpy,
    ignoring_errors,
    no_errors,
    reset_errstate,
    set_errstate,
)
from burnbook.core.op import BackwardOp, keep_inputs

NO_ATTRS: dict[str, Any] = {}
new = object.__new__
NO_CHECKPOINTING = NoCheckpointing()
_tracked_types: dict[type[Tracked], list[type[Tracked]]] = {}
ALWAYS = math.inf  # however many elements there are


class Autodiff(BackendWrapper):
    """Decorate a backend so that it can differentiate: `Autodiff(Numpy())`.

    Values that need no gradient are plain values of the backend below; the others are
    `Tracked`. `Autodiff(Autodiff(B))` differentiates twice: one Autodiff for each
    derivative of an input, and one more to train with a loss that is made of these. A
    model on such a device, by `init`, `to_device` or `fork`, learns from such a loss as
    from any other, in a loop of one's own and in the Learner.

    Example:
        >>> from burnbook.nn import LinearConfig
        >>> from burnbook.optim import GradientsParams
        >>> from burnbook.tensor import Tensor
        >>> model = LinearConfig(1, 1).init(Autodiff(Autodiff(Autodiff(Numpy()))))
        >>> x = Tensor.ones([5, 1], model.devices()[0]).require_grad()
        >>> u = model.forward(x).tanh()
        >>> slope = x.grad(u.sum().backward())  # on Autodiff(Autodiff(Numpy()))
        >>> bend = x.grad(slope.sum().backward())  # on Autodiff(Numpy())
        >>> loss = (bend + u.inner().inner()).square().mean()
        >>> GradientsParams.from_grads(loss.backward(), model)
        GradientsParams(2 gradients)

    checkpointing: what the tape keeps and what it computes again;
    `BalancedCheckpointing()` saves memory for a little time.
    """

    def __init__(
        self,
        inner: Backend,
        checkpointing: CheckpointStrategy = NO_CHECKPOINTING,
    ):
        super().__init__(inner)
        self.ad_enabled = True
        self.checkpointing = checkpointing
        self.depth = inner.depth + 1 if isinstance(inner, Autodiff) else 0
        self.tracked = _tracked_type(Tracked, self.depth)
        self.bare = type(inner) is Numpy
        self.array_space = inner.xp
        self.plain_below: dict[AnyOp, float] = {}  # see _note_limit
        self.space = TrackedSpace(self)
        self.hooked: WeakSet[Node] = WeakSet()
        self.homes: dict[type, Autodiff] = {}  # whose values came here, by their type
        self.arrived: WeakSet[Node] = WeakSet()  # where they did, in graphs that live
        self.prepare: Callable[[Any], Any] = _as_it_is
        self.wants_places = bool(getattr(inner, "wants_places", False))
        if checkpointing != NO_CHECKPOINTING:
            lazy = self.tracked = _tracked_type(Lazy, self.depth)
            self.prepare = with_values
            self.run = recomputing(self.run, inner.run, lazy, checkpointing)
        if self.wants_places:
            self.run = remembering_places(self.run, self.tracked)

    def run(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:  # noqa: C901, PLR0915 - hot
        tracked = self.tracked
        if len(values) == 2:
            x, y = values
            if type(x) is tracked:
                if type(y) is tracked:
                    keep: Any = op.keep
                    parents = (x.node, y.node)
                    values = (x.value, y.value)
                else:
                    keep = op.keep_first
                    parents = (x.node, None)
                    values = (x.value, y)
            elif type(y) is tracked:
                keep = op.keep_second
                parents = (None, y.node)
                values = (x, y.value)
            else:
                return self._inner.run(op, values, attrs)
            x, y = values
            limit = self.plain_below.get(op)
            if limit is None:
                limit = self._note_limit(op)
            if limit is ALWAYS or (type(x) is ndarray and x.size < limit):
                # what Numpy.run does, without the call
                before = set_errstate(no_errors)
                try:
                    out = op.forward(self.array_space, x, y)
                finally:
                    reset_errstate(before)
            elif keep is None:
                return self._run_unknown(op, values, parents, attrs)
            else:
                out = self._inner.run(op, values, attrs)
        else:
            parents = tuple([v.node if type(v) is tracked else None for v in values])
            if not any(parents):
                return self._inner.run(op, values, attrs)
            keep = op.keep
            values = tuple([v.value if type(v) is tracked else v for v in values])
            if keep is None:
                return self._run_unknown(op, values, parents, attrs)
            out = self._inner.run(op, values, attrs)
        kept = values if keep is keep_inputs else keep(values, out)
        if not op.extras:  # tracked(out, Node(…)), without the two calls
            node = new(Node)
            node.op, node.parents, node.kept, node.attrs = op, parents, kept, attrs
            node.number = next_number()
            made = new(tracked)
            made.value, made.node = out, node
            made.shape = node.shape = out.shape
            return made
        first = out[0]
        made = tracked(first, Node(op, parents, kept, attrs, first.shape))
        return (made, *out[1:])

    def _run_unknown(
        self, op: AnyOp, values: Values, parents: Parents, attrs: Attrs
    ) -> Value:
        """An op without rules; a gradient op is differentiated through its code."""
        if isinstance(op, BackwardOp):
            return self.space.trace(op, values, parents, attrs)
        out = self._inner.run(op, values, attrs)
        return cut_or_tracked(op, out, parents, attrs, self.tracked)

    def _note_limit(self, op: AnyOp) -> float:
        """Below how many elements the backend below runs an op's plain code at once."""
        below = self._inner
        limit: float = 0
        if op.fast_path and isinstance(below, Numpy) and self.bare:
            limit = below.limits.get(op, 0) if op in below.kernels else ALWAYS
        self.plain_below[op] = limit
        return limit

    def leaf(self, value: Value) -> Tracked:
        """A value that gradients are collected for."""
        return self.tracked(value, Node(None, (), None, NO_ATTRS, value.shape))

    def receive(self, value: Tracked, source: Backend) -> Value:
        """A tracked value of another device, moved here as a step of the graph."""
        while not isinstance(source, Autodiff):
            source = source.inner
        return move(value, source, self, self.float_dtype)

    def backward(
        self, root: Value, watch: Watch | None = None, keep_graph: bool = False
    ) -> Gradients:
        """Collect the gradient of the sum of `root` for every leaf behind it.

        The graph behind `root` is used up: what it kept is freed on the way, unless it
        is to stay for another backward. Where it meets a part that an earlier backward
        used up, it stops with an error that names the op there. `watch` sees each
        gradient op: (op, values, attrs, result).
        """
        if type(root) is not self.tracked:
            raise nothing_tracked("backward")
        hooked = self.hooked or (
            self.arrived and any(home.hooked for home in self.homes.values())
        )
        raw = _raw(root.value)
        seed = self._inner.xp.ones(raw.shape, dtype=raw.dtype)
        plain = self.prepare is _as_it_is and watch is None
        if isinstance(self._inner, Numpy) and plain and not (hooked or self.arrived):
            with ignoring_errors():
                found = walk_arrays(root.node, seed, self._inner, keep_graph)
            return Gradients(found, self._inner)
        run = self._inner.run
        if self.arrived:
            run = run_at_home(run, self.homes, type(root.value))
        run = self.prepare(run if watch is None else _watched(run, watch))
        grads = {root.node: seed}
        waiting = keep_graph and self.prepare is with_values
        recipes = recipes_behind(root.node) if waiting else ()
        with ignoring_errors():  # 1/0 is inf in a gradient, as it is forward
            grads = HookedGradients(grads) if hooked else grads
            found = walk(root.node, grads, run, keep_graph)
        for recipe in recipes:
            recipe.value = None  # computed again by the next backward
        return Gradients(found, self._inner)

    def __repr__(self) -> str:
        if self.checkpointing == NO_CHECKPOINTING:
            return f"Autodiff({self._inner!r})"
        return f"Autodiff({self._inner!r}, checkpointing={self.checkpointing!r})"

    def to_numpy(self, value: Value) -> Any:
        if type(value) is self.tracked:
            value = value.value
        return self._inner.to_numpy(value)

    def read(self, values: Values) -> Any:
        return self._inner.read(
            tuple([v.value if type(v) is self.tracked else v for v in values])
        )


def _raw(value: Any) -> Any:
    while isinstance(value, Tracked):
        value = value.value
    return value


def _as_it_is(run: Callable[..., Any]) -> Callable[..., Any]:
    return run


def _watched(run: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def run_and_show(op: Any, values: Values, attrs: Attrs) -> Any:
        out = run(op, values, attrs)
        watch(op, values, attrs, out)
        return out

    return run_and_show


def _tracked_type(base: Any, depth: int) -> Any:
    """A type of its own for every depth of nesting, so that values tell their level."""
    types = _tracked_types.setdefault(base, [base])
    while len(types) <= depth:
        name = f"{base.__name__}{len(types)}"
        types.append(type(name, (base,), {"__slots__": ()}))
    return types[depth]
