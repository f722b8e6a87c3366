"""Building blocks · Autodiff. The container that `backward()` returns."""

from typing import Any

from burnbook.autodiff.tape import Node


class Gradients:
    """The gradients of one backward pass, one for each leaf that was reached.

    Gradients live here and never on tensors, so two passes never mix. Read one with
    `tensor.grad(gradients)`, take it out with `tensor.grad_remove(gradients)`.
    """

    __slots__ = ("_by_node",)

    def __init__(self, by_node: dict[Node, Any] | None = None):
        self._by_node = {} if by_node is None else by_node

    def get(self, node: Node) -> Any:
        """The gradient of a leaf, or None where the pass did not reach it."""
        return self._by_node.get(node)

    def remove(self, node: Node) -> Any:
        """Take the gradient of a leaf out; a second call gives None."""
        return self._by_node.pop(node, None)

    def replace(self, node: Node, value: Any) -> None:
        """Put a gradient in the place of the one that was there."""
        self._by_node[node] = value

    def __len__(self) -> int:
        return len(self._by_node)

    def __repr__(self) -> str:
        return f"Gradients({len(self)} leaves)"
