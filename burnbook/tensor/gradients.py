"""What a tensor says about gradients."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self

from burnbook.backend.autodiff.graph import Graph, Hook, add_hook
from burnbook.backend.base import Backend
from burnbook.core.cures import explains_arguments
from burnbook.core.dropped import result_matters
from burnbook.core.dtypes import Float, kind_of
from burnbook.core.errors import BackendError, GraphError, KindError
from burnbook.tensor.methods import Methods


class Tracking(Methods):
    """Gradients are read from the container that `backward()` returns.

    Without autodiff these are harmless: `require_grad` returns the tensor itself.
    """

    __slots__ = ()

    @result_matters("x = x.require_grad()")
    def require_grad(self) -> Self:
        """Ask for the gradient of this tensor; it becomes a leaf of the graph.

        On Autodiff around Autodiff it becomes one at every level where it was nothing
        before, so that its gradient can be differentiated again.
        """
        backend = self.backend
        if not backend.ad_enabled:
            return self
        if self.kind is not Float:
            raise KindError(
                "require_grad",
                f"{self.kind.__name__} tensors have no gradient",
                cure=".float() before it",
            )
        node = getattr(self.value, "node", None) if self._tracked() else None
        if node is None:
            value = self.value
            if getattr(backend, "depth", 0) and not hasattr(value, "node"):
                value = self.inner().require_grad().value
            return self._same(backend.leaf(value))
        if node.op is None:
            return self
        raise GraphError(
            "require_grad",
            f"this tensor is the result of {node.op.name}, not a leaf",
            cure="call require_grad() on the inputs, or detach() this tensor first",
        )

    def is_require_grad(self) -> bool:
        """Whether this tensor is a leaf that gradients are collected for."""
        return self._tracked() and self.value.node.op is None

    def set_require_grad(self, require_grad: bool) -> Self:
        """True is require_grad(); False gives an untracked tensor."""
        return self.require_grad() if require_grad else self._same(self._plain())

    def detach(self) -> Self:
        """The same values, cut from the graph; a leaf stays a leaf, a new one."""
        plain = self._same(self._plain())
        return plain.require_grad() if self.is_require_grad() else plain

    @explains_arguments("backward")
    def backward(self, *, keep_graph: bool = False) -> Any:
        """Gradients of the sum of this tensor for every leaf behind it.

        The graph behind it is used up: a second backward that meets a part of it is an
        error that names the op there. Returns a `Gradients` container.

        keep_graph: leave the graph for another backward, which may start at another
        tensor; the last one goes without, and frees the memory.

        Example:
            >>> from burnbook.backend import Autodiff, Numpy
            >>> from burnbook.tensor import Tensor
            >>> x = Tensor.from_floats([1.0, 2.0], Autodiff(Numpy())).require_grad()
            >>> y = x * x
            >>> once = y.backward(keep_graph=True)
            >>> x.grad(once).into_data().to_list()
            [2.0, 4.0]
            >>> x.grad((y * y).backward()).into_data().to_list()
            [4.0, 32.0]
        """
        if keep_graph:
            return self.backend.backward(self.value, keep_graph=True)
        return self.backend.backward(self.value)

    def grad(self, gradients: Any = None) -> Self | None:
        """This tensor's gradient on the inner backend; None if it was not reached.

        gradients: what `loss.backward()` returned; the loss may be on an inner backend,
        being made of gradients itself. The result of an op keeps none.
        """
        if gradients is None or not hasattr(gradients, "get"):
            what = "gradients are what backward() returns, not a part of the tensor"
            cure = "gradients = loss.backward(); x.grad(gradients)"
            raise GraphError("grad", what, cure=cure)
        for node, below in self._nodes():
            found = gradients.get(node)
            if found is not None:
                return type(self)(found, self.kind, below, self.rank)
        node = self.value.node if self._tracked() else None
        if node is not None and node.op is not None:
            what = f"this tensor is the result of {node.op.name}, which keeps none"
            cure = "x = x.detach().require_grad() before it is used, or x.hook(print)"
            raise GraphError("grad", what, cure=cure)
        return None

    def grad_remove(self, gradients: Any) -> Self | None:
        """As grad, and take it out of the container."""
        for node, below in self._nodes():
            found = gradients.remove(node)
            if found is not None:
                return type(self)(found, self.kind, below, self.rank)
        return None

    def grad_replace(self, gradients: Any, gradient: Self) -> None:
        """Put another gradient in the place of this tensor's."""
        if not self._tracked():
            raise GraphError("grad_replace", "this tensor is not tracked")
        nodes = [node for node, _ in self._nodes()]
        known = [node for node in nodes if gradients.get(node) is not None]
        gradients.replace((known or nodes)[0], gradient.value)

    def hook(self, act: Callable[[Self], Self | None]) -> Hook:
        """Let a function see the gradient of this tensor on its way back.

        It gets the whole gradient, on the inner backend; what it returns (unless None)
        takes its place. `remove()` on the result ends it.
        """
        graph = self.graph()  # looks at its nodes only when asked for them
        return add_hook(self.backend, self.value.node, graph.on_tensors(act))

    def graph(self) -> Graph:
        """Everything behind this tensor that gradients flow through, newest first."""
        if not self._tracked():
            raise GraphError(
                "graph",
                "no tensor behind this one requires a gradient",
                cure="call require_grad() on the inputs of the computation",
            )
        value, below = self.value, self.backend.inner
        wrap = partial(_wrapped, type(self), below)
        return Graph(
            value.node, self.backend, wrap, partial(_unwrapped, below), value.dtype
        )

    def inner(self) -> Self:
        """The same values on the backend below the autodiff one."""
        backend = self.backend
        if not backend.ad_enabled:
            raise BackendError("inner", f"{backend!r} has no backend below it")
        return type(self)(self._plain(), self.kind, backend.inner, self.rank)

    @classmethod
    def from_inner(cls, tensor: Self, device: Backend | None = None) -> Self:
        """The same values, untracked, on an autodiff backend above the tensor's."""
        return tensor._lifted(device or tensor.backend.autodiff())

    def _tracked(self) -> bool:
        tracked = getattr(self.backend, "tracked", None)
        return tracked is not None and type(self.value) is tracked

    def _plain(self) -> Any:
        return self.value.value if self._tracked() else self.value

    def _lifted(self, backend: Backend) -> Self:
        """The same raw value as one of a backend above."""
        return type(self)(self.value, self.kind, backend, self.rank)

    def _same(self, value: Any) -> Self:
        return type(self)(value, self.kind, self.backend, self.rank)

    def _nodes(self) -> Iterator[tuple[Any, Backend]]:
        """The node of each level that tracks this tensor, and the backend below it."""
        value, backend = self.value, self.backend
        while hasattr(value, "node"):
            if type(value) is getattr(backend, "tracked", None):
                yield value.node, backend.inner
                value = value.value
            backend = backend.inner


def _wrapped(make: type[Tracking], below: Backend, value: Any) -> Any:
    """A raw value of the backend below as a tensor; shapes and numbers stay."""
    if not hasattr(value, "dtype"):
        return value
    return make(value, kind_of(value.dtype), below, len(value.shape))


def _unwrapped(below: Backend, tensor: Any) -> Any:
    """The raw value of what a hook returned."""
    if not isinstance(tensor, Tracking):
        return tensor
    if tensor.backend is not below:
        raise BackendError(
            "hook",
            f"gradients live on {below!r}, this tensor on {tensor.backend!r}",
            cure="inner() on it",
        )
    return tensor.value
