"""Building blocks · Optimizer. Walking over arrays block by block, as updates do.

Done expression by expression, every step of an optimizer's formula would go through
the whole memory again; done block by block, a block stays in the cache.
"""

from collections.abc import Iterator
from typing import Any

BLOCK = 1 << 14  # elements
Shape = tuple[int, ...]


def same(*shapes: Shape) -> str | None:
    """What is wrong when the shapes of one update differ."""
    if all(shape == shapes[0] for shape in shapes):
        return None
    return "the gradient and all that is remembered need the shape of the parameter"


def results(xp: Any, param: Any, memories: list[Any], reuse: bool) -> list[Any]:
    """Where results go: new arrays, or for the memories, if they are given away, they."""
    olds = [param] if reuse else [param, *memories]
    news = [xp.empty(a.shape, dtype=a.dtype) for a in olds]
    return [*news, *memories] if reuse else news


def sweep(
    xp: Any, olds: list[Any], news: list[Any], spares: int
) -> Iterator[tuple[list[Any], list[Any], list[Any]]]:
    """Walk over arrays block by block: the old ones, the new ones, and spare room.

    Why: half precision is computed in single, as its squares soon vanish; its blocks
    are copied wide before and narrow after.
    """
    size, narrow = olds[0].size, olds[0].dtype.itemsize == 2
    wide = xp.float32 if narrow else olds[0].dtype
    block = max(min(BLOCK, size) if xp.__name__ == "numpy" else size, 1)
    rooms = [xp.empty(block, dtype=wide) for _ in range(spares)]
    inputs, outputs = ([a.reshape(-1) for a in some] for some in (olds, news))
    for first in range(0, size, block):
        part = slice(first, min(first + block, size))
        ins, outs = ([a[part] for a in some] for some in (inputs, outputs))
        free = [room[: outs[0].size] for room in rooms]
        if not narrow:
            yield ins, outs, free
            continue
        wides = [xp.empty(outs[0].size, dtype=wide) for _ in outs]
        yield [a.astype(wide) for a in ins], wides, free
        for out, found in zip(outs, wides, strict=True):
            out[...] = found


def penalized(xp: Any, g: Any, p: Any, penalty: float, room: Any) -> Any:
    """g + penalty p, or g itself where there is no penalty."""
    if not penalty:
        return g
    xp.multiply(p, penalty, out=room)
    return xp.add(room, g, out=room)


def average(xp: Any, old: Any, x: Any, beta: float, out: Any, room: Any) -> None:
    """out = β old + (1 − β) x; x may be the room."""
    xp.multiply(x, 1 - beta, out=room)
    xp.multiply(old, beta, out=out)
    xp.add(out, room, out=out)


def below(xp: Any, square: Any, epsilon: float, out: Any, scale: float = 1.0) -> None:
    """out = scale √square + ε."""
    xp.sqrt(square, out=out)
    if scale != 1.0:
        xp.multiply(out, scale, out=out)
    xp.add(out, epsilon, out=out)
