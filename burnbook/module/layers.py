"""The layers of a model, and how to listen to one without changing its class."""

from collections.abc import Callable, Iterator
from typing import Any

from burnbook.core.tree import Path
from burnbook.module.tree import PARTS, Tree


def layers_of(model: Tree) -> Iterator[tuple[str, Any, int]]:
    """Every module of a tree with its path and depth, the outermost first."""
    above: list[Path] = []
    for path, held in PARTS.nodes(model):
        if isinstance(held, Tree):
            while above and path[: len(above[-1])] != above[-1]:
                above.pop()
            yield ".".join(path), held, len(above)
            above.append(path)


def listen(layer: Tree, wrap: Callable[[Callable[..., Any]], Any]) -> None:
    """Put `wrap(method)` in the place of each `forward…` of this one layer."""
    for name in dir(type(layer)):
        if name.startswith("forward") and callable(getattr(layer, name)):
            layer.__dict__[name] = wrap(getattr(layer, name))
