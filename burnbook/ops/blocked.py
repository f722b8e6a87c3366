"""Walking over arrays block by block, as updates do.

Done expression by expression, every step of an optimizer's formula would go through
the whole memory again; done block by block, a block stays in the cache.
"""

from collections.abc import Callable
from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace

BLOCK = 1 << 17  # elements; with fewer, Python takes longer than NumPy
SHARED = 1 << 18  # elements that are worth another thread
GRAIN = 1 << 12
Shape = tuple[int, ...]


def same(*shapes: Shape) -> str | None:
    """What is wrong when the shapes of one update differ."""
    if all(shape == shapes[0] for shape in shapes):
        return None
    return "the gradient and all that is remembered need the shape of the parameter"


def results(
    xp: ArrayNamespace, param: Array, memories: list[Any], reuse: bool
) -> list[Any]:
    """Where results go: new arrays, or for the memories, if they are given away, they."""
    olds = [param] if reuse else [param, *memories]
    news = [xp.empty(a.shape, dtype=a.dtype) for a in olds]
    return [*news, *memories] if reuse else news


def sweep(
    xp: ArrayNamespace,
    olds: list[Any],
    news: list[Any],
    spares: int,
    step: Callable[[Any], None],
) -> None:
    """Walk over arrays block by block: step((old ones, new ones, spare room)).

    Why: half precision is computed in single, as its squares soon vanish; its blocks
    are copied wide before and narrow after.
    """
    size, narrow = olds[0].size, olds[0].dtype.itemsize == 2
    wide = xp.float32 if narrow else olds[0].dtype
    most = max(min(BLOCK, size) if xp.__name__ == "numpy" else size, 1)
    if size <= most and not narrow:  # hot: small parameters are many
        shape = olds[0].shape
        step((olds, news, [xp.empty(shape, dtype=wide) for _ in range(spares)]))
        return
    inputs, outputs = ([a.reshape(-1) for a in some] for some in (olds, news))

    def walk(start: int, stop: int) -> None:
        room = (min(most, stop - start),)
        rooms = [xp.empty(room, dtype=wide) for _ in range(spares)]
        for first in range(start, stop, most):
            part = slice(first, min(first + most, stop))
            ins, outs = ([a[part] for a in some] for some in (inputs, outputs))
            free = [room[: outs[0].size] for room in rooms]
            if not narrow:
                step((ins, outs, free))
                continue
            wides = [xp.empty(outs[0].size, dtype=wide) for _ in outs]
            step(([a.astype(wide) for a in ins], wides, free))
            for out, found in zip(outs, wides, strict=True):
                out[...] = found

    spread(xp, walk, size, size >= SHARED, GRAIN)


def spread(
    xp: ArrayNamespace,
    work: Callable[[int, int], None],
    total: int,
    worth: bool,
    grain: int = 1,
) -> None:
    """Cover 0 … total by calls work(start, stop), on all threads if that is worth it."""
    share = getattr(xp, "share", None)
    if share is None or not worth:
        work(0, total)
    else:
        share(work, (), total, grain)


def penalized(xp: ArrayNamespace, g: Array, p: Any, penalty: float, room: Array) -> Any:
    """g + penalty p, or g itself where there is no penalty."""
    if not penalty:
        return g
    xp.multiply(p, penalty, out=room)
    return xp.add(room, g, out=room)


def average(
    xp: ArrayNamespace, old: Array, x: Array, beta: float, out: Array, room: Array
) -> None:
    """out = β old + (1 − β) x; x may be the room."""
    xp.multiply(x, 1 - beta, out=room)
    xp.multiply(old, beta, out=out)
    xp.add(out, room, out=out)


def below(xp: ArrayNamespace, square: Array, epsilon: float, out: Array) -> None:
    """out = √square + ε."""
    xp.sqrt(square, out=out)
    xp.add(out, epsilon, out=out)
