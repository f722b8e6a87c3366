"""The container that `backward()` returns."""

import math
from collections.abc import Iterator
from typing import Any

from burnbook.backend.autodiff.tape import Node
from burnbook.core.errors import GraphError
from burnbook.core.other_names import answers
from burnbook.ops.elementwise import add


@answers("Gradients")
class Gradients:
    """The gradients of one backward pass, one for each leaf that was reached.

    Gradients live here and never on tensors, so two passes never mix. Read one with
    `tensor.grad(gradients)`, take it out with `tensor.grad_remove(gradients)`. The
    container may be handed to another thread; it belongs to no thread.
    """

    __slots__ = ("_backend", "_by_node", "taken")

    def __init__(self, by_node: dict[Node, Any] | None = None, backend: Any = None):
        self._by_node = {} if by_node is None else by_node
        self._backend = backend
        self.taken: set[int] = set()  # ids of parameters, for the error that asks

    def get(self, node: Node) -> Any:
        """The gradient of a leaf, or None where the pass did not reach it."""
        return self._by_node.get(node)

    def remove(self, node: Node) -> Any:
        """Take the gradient of a leaf out; a second call gives None."""
        return self._by_node.pop(node, None)

    def replace(self, node: Node, value: Any) -> None:
        """Put a gradient in the place of the one that was there."""
        self._by_node[node] = value

    def __add__(self, other: "Gradients") -> "Gradients":
        """The sums of two passes, leaf by leaf, in a new container."""
        sums = dict(self._by_node)
        for node, value in other._by_node.items():
            held = sums.get(node)
            backend = self._backend or other._backend
            sums[node] = value if held is None else backend.run(add, (held, value), {})
        return Gradients(sums, self._backend or other._backend)

    def norm(self) -> float:
        """The length of all gradients as one long vector: √ Σ g²."""
        return math.sqrt(
            sum(float((g.astype("f8") ** 2).sum()) for g in self._arrays())
        )

    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of each gradient."""
        return [tuple(node.shape) for node in self._by_node]

    def nodes(self) -> list[Node]:
        """The leaves that the pass reached, but for those that were taken out."""
        return list(self._by_node)

    def is_finite(self) -> bool:
        """Whether no gradient holds NaN or infinity."""
        return all(math.isfinite(float(abs(g).sum(dtype="f8"))) for g in self._arrays())

    def _arrays(self) -> Iterator[Any]:
        return (self._backend.to_numpy(value) for value in self._by_node.values())

    def __contains__(self, tensor: Any) -> bool:
        """Whether the pass reached a tensor: `weight in gradients`."""
        value = tensor.value
        while hasattr(value, "node"):  # one for each Autodiff around another
            if value.node in self._by_node:
                return True
            value = value.value
        return False

    def __len__(self) -> int:
        return len(self._by_node)

    def __reduce__(self) -> Any:
        raise GraphError(
            "Gradients",
            "they belong to the leaves of this process and cannot be stored or sent",
            cure="GradientsParams.from_grads(gradients, model), which knows ids",
        )

    def __repr__(self) -> str:
        return f"Gradients({len(self)} leaves)"
