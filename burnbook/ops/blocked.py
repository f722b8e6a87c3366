"""Arrays block by block, as the steps of optimizers go over them.

Done expression by expression, every step of an optimizer's formula would go through
the whole memory again; done block by block, a block stays in the cache.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace, Shape

BLOCK = 1 << 17  # elements; with fewer, Python takes longer than NumPy
NEAR = 1 << 17  # elements: less, and threads wait for Python's lock; more, for memory
SHARED = 1 << 18  # elements that are worth another thread
GRAIN = 1 << 12


def same_shapes(*shapes: Shape) -> str | None:
    """What is wrong when the shapes of one update differ."""
    if all(shape == shapes[0] for shape in shapes):
        return None
    return "the gradient and the state must have the shape of the parameter"


def in_blocks(
    xp: ArrayNamespace,
    inputs: list[Any],
    reuse: bool,
    scratches: int,
    step: Callable[[Any], None],
) -> tuple[Any, ...]:
    """Go over arrays block by block: step((inputs, outputs, scratch arrays)).

    inputs: a parameter, its gradient, and what is remembered of older gradients. The
    outputs are new arrays for the parameter and the memories; with `reuse` the memories
    take their own new values.

    Why: half precision is computed in single, as its squares soon vanish; its blocks
    are widened before and narrowed after.
    """
    param, _, *memories = inputs
    made = [param] if reuse else [param, *memories]
    outputs = [xp.empty(a.shape, dtype=a.dtype) for a in made]
    outputs += memories if reuse else []
    size, narrow = param.size, param.dtype.itemsize == 2
    wide = xp.float32 if narrow else param.dtype
    most = max(min(BLOCK, size) if xp.__name__ == "numpy" else size, 1)
    if size <= most and not narrow:  # hot: small parameters are many
        scratch = [xp.empty(param.shape, dtype=wide) for _ in range(scratches)]
        step((inputs, outputs, scratch))
        return tuple(outputs)
    flat_inputs = [a.reshape(-1) for a in inputs]
    flat_outputs = [a.reshape(-1) for a in outputs]

    def walk(start: int, stop: int) -> None:
        length = min(most, stop - start)
        scratch = [xp.empty(length, dtype=wide) for _ in range(scratches)]
        for first in range(start, stop, most):
            part = slice(first, min(first + most, stop))
            ins = [a[part] for a in flat_inputs]
            outs = [a[part] for a in flat_outputs]
            free = [a[: outs[0].size] for a in scratch]
            if not narrow:
                step((ins, outs, free))
                continue
            wides = [xp.empty(outs[0].size, dtype=wide) for _ in outs]
            step(([a.astype(wide) for a in ins], wides, free))
            for out, found in zip(outs, wides, strict=True):
                out[...] = found

    on_threads(xp, walk, size, size >= SHARED, GRAIN)
    return tuple(outputs)


def on_threads(
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


def blockwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator for functions (xp, arrays …) that go number by number, in many steps.

    Large arrays of one shape are taken block by block, and on all threads: whatever the
    steps make stays in the cache.
    """

    @wraps(function)
    def run(xp: ArrayNamespace, *arrays: Any) -> Any:
        first = arrays[0]
        if xp.__name__ != "numpy" or first.size < 2 * NEAR:
            return function(xp, *arrays)
        alike = {(a.shape, a.dtype, a.flags.c_contiguous) for a in arrays}
        if alike != {(first.shape, first.dtype, True)}:
            return function(xp, *arrays)
        out = xp.empty(first.shape, dtype=first.dtype)
        flat, flats = out.reshape(-1), [a.reshape(-1) for a in arrays]

        def walk(start: int, stop: int) -> None:
            for at in range(start, stop, NEAR):
                part = slice(at, min(at + NEAR, stop))
                flat[part] = function(xp, *[a[part] for a in flats])

        on_threads(xp, walk, first.size, first.size >= SHARED, GRAIN)
        return out

    return run


def add_penalty(
    xp: ArrayNamespace, g: Array, p: Any, penalty: float, scratch: Array
) -> Any:
    """g + penalty p, or g itself where there is no penalty."""
    if not penalty:
        return g
    xp.multiply(p, penalty, out=scratch)
    return xp.add(scratch, g, out=scratch)


def average(
    xp: ArrayNamespace, old: Array, x: Array, beta: float, out: Array, scratch: Array
) -> None:
    """out = β old + (1 − β) x; x may be the scratch array."""
    xp.multiply(x, 1 - beta, out=scratch)
    xp.multiply(old, beta, out=out)
    xp.add(out, scratch, out=out)


def sqrt_plus(xp: ArrayNamespace, square: Array, epsilon: float, out: Array) -> None:
    """out = √square + ε."""
    xp.sqrt(square, out=out)
    xp.add(out, epsilon, out=out)
