"""Running sums, products and extremes, and whole products.

Products get their true gradient, zeros included: nothing is divided by an element.
"""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import normal, op
from burnbook.ops.index import scatter
from burnbook.ops.reduce import DIM, DISTINCT, NO_DIM, dim_inside

RUN = 256  # elements that are added one after the other


@op("F>F I>I", check=dim_inside)
def cumsum(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """The running sum along a dim: outᵢ = Σₖ₌₀…ᵢ xₖ.

    Shapes: x [...] -> [...]
    Why: added one after the other in float32, a million elements are 1 % off; so every
    RUN elements begin anew, from what was reached in float64.
    """
    n = x.shape[dim]
    if x.dtype.kind != "f" or n <= RUN:
        return xp.cumsum(x, axis=dim, dtype=x.dtype)
    dim %= x.ndim
    out = xp.empty(x.shape, x.dtype)
    before, many = (slice(None),) * dim, n // RUN
    runs = (*x.shape[:dim], many, RUN, *x.shape[dim + 1 :])
    body = out[*before, : many * RUN].reshape(runs)
    xp.cumsum(x[*before, : many * RUN].reshape(runs), axis=dim + 1, out=body)
    reached = xp.cumsum(body[*before, :, -1:], axis=dim, dtype=xp.float64)
    body[*before, 1:] += reached[*before, :-1].astype(x.dtype)
    if rest := n % RUN:
        tail = out[*before, -rest:]
        xp.cumsum(x[*before, -rest:], axis=dim, out=tail)
        tail += reached[*before, -1].astype(x.dtype)
    return out


cumsum.grad(
    x=lambda xp, g, dim: turned(xp, cumsum(xp, turned(xp, g, dim), dim=dim), dim)
)

cumsum.examples(samples=DIM, rejects=NO_DIM)


@op("F>F I>I", check=dim_inside)
def cumprod(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """The running product along a dim: outᵢ = Πₖ₌₀…ᵢ xₖ.

    Shapes: x [...] -> [...]
    """
    return xp.cumprod(x, axis=dim, dtype=wide(xp, x)).astype(x.dtype, copy=False)


def wide(xp: ArrayNamespace, x: Array) -> Any:
    """The element type that runs along a dim: float64 for floats, else that of x."""
    return xp.float64 if x.dtype.kind == "f" else x.dtype


def scan_fits(x: tuple[int, ...], a: tuple[int, ...], dim: int) -> Any:
    """Why a scan cannot run, or None if it can."""
    return dim_inside(x, dim) or ("the shapes differ" if x != a else None)


@op("FF>F", check=scan_fits, method=False)
def linear_scan(xp: ArrayNamespace, x: Array, a: Array, *, dim: int) -> Array:
    """A running sum that is scaled on the way: outᵢ = xᵢ + aᵢ outᵢ₋₁; a₀ is not used.

    Shapes: x [...], a [...] -> [...]
    """
    lines, scales = xp.moveaxis(x, dim, 0), xp.moveaxis(a, dim, 0)
    out = xp.array(lines, dtype=wide(xp, x), order="C")
    for i in range(1, len(out)):
        out[i] += scales[i] * out[i - 1]
    return xp.moveaxis(out, 0, dim).astype(x.dtype, copy=False)


def linear_scan_x(xp: ArrayNamespace, g: Array, a: Array, dim: int) -> Any:
    """The same from the other end: hᵢ = gᵢ + aᵢ₊₁ hᵢ₊₁."""
    scales = shifted(xp, turned(xp, a, dim), dim, 0.0)
    return turned(xp, linear_scan(xp, turned(xp, g, dim), scales, dim=dim), dim)


def linear_scan_a(xp: ArrayNamespace, g: Array, a: Array, out: Array, dim: int) -> Any:
    """Each scale multiplied the result before it."""
    return linear_scan_x(xp, g, a, dim) * shifted(xp, out, dim, 0.0)


linear_scan.grad(x=linear_scan_x, a=linear_scan_a)

linear_scan.examples(
    samples=[(normal(2, 4, 3), normal(2, 4, 3), {"dim": 1})],
    rejects=[(normal(2, 3), normal(2, 3), {"dim": 2})],
)


def cumprod_x(xp: ArrayNamespace, g: Array, x: Array, out: Array, dim: int) -> Any:
    """What stands before an element, times what comes after it, gradients mixed in."""
    return shifted(xp, out, dim, 1.0) * linear_scan_x(xp, g, x, dim)


cumprod.grad(x=cumprod_x)

cumprod.examples(samples=DIM, rejects=NO_DIM)


@op("F>F I>I", check=dim_inside)
def prod_dim(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """Multiply along one dim, which stays with size 1: out = Π x.

    Shapes: x [..., d, ...] -> [..., 1, ...]
    """
    return xp.prod(x, axis=dim, keepdims=True, dtype=x.dtype)


@op("F>F I>I")
def prod(xp: ArrayNamespace, x: Array) -> Array:
    """Multiply all elements: out = Π x.

    Shapes: x [...] -> [1]
    """
    return xp.prod(x, dtype=x.dtype).reshape(1)


def others(xp: ArrayNamespace, x: Array, dim: int) -> Any:
    """For every element the product of all the others along a dim."""
    before = shifted(xp, cumprod(xp, x, dim=dim), dim, 1.0)
    behind = shifted(xp, cumprod(xp, turned(xp, x, dim), dim=dim), dim, 1.0)
    return before * turned(xp, behind, dim)


prod_dim.grad(x=lambda xp, g, x, dim: g * others(xp, x, dim))

prod_dim.examples(samples=DIM, rejects=NO_DIM)
prod.grad(
    x=lambda xp, g, x: xp.reshape(g * others(xp, xp.reshape(x, (-1,)), 0), x.shape)
)

prod.examples(samples=[(normal(2, 3),)])


@op("F>F I>I", check=dim_inside, takes_half=True)
def cummax(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """The largest element so far along a dim; NaN stays.

    Shapes: x [...] -> [...]
    """
    return running(xp, "maximum", x, dim)


@op("F>F I>I", check=dim_inside, takes_half=True)
def cummin(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """The smallest element so far along a dim; NaN stays.

    Shapes: x [...] -> [...]
    """
    return running(xp, "minimum", x, dim)


@op("F>I I>I", method=False, takes_half=True)
def newest(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """Where the run of equal elements began that each element belongs to.

    Shapes: x [...] -> [...]
    """
    lines = xp.moveaxis(x, dim, -1)
    starts = xp.broadcast_to(xp.arange(x.shape[dim]), lines.shape).copy()
    starts[..., 1:] *= lines[..., 1:] != lines[..., :-1]
    return running(xp, "maximum", xp.moveaxis(starts, -1, dim), dim)


newest.examples(samples=DISTINCT)


def extreme_x(xp: ArrayNamespace, g: Array, out: Array, dim: int) -> Any:
    """Each gradient goes to the element that was the extreme at its place."""
    zeros = xp.zeros(out.shape, g.dtype)
    return scatter(xp, zeros, newest(xp, out, dim=dim), g, dim=dim)


cummax.grad(x=extreme_x)

cummax.examples(samples=DISTINCT, rejects=NO_DIM)
cummin.grad(x=extreme_x)

cummin.examples(samples=DISTINCT, rejects=NO_DIM)


def running(xp: ArrayNamespace, name: str, x: Array, dim: int) -> Any:
    """A function of pairs, run along a dim; CuPy has no accumulate, so by doubling."""
    function = getattr(xp, name)
    if xp.__name__ == "numpy":
        return function.accumulate(x, axis=dim)
    out = xp.moveaxis(x, dim, -1).copy()
    step = 1
    while step < out.shape[-1]:
        out[..., step:] = function(out[..., step:], out[..., :-step])
        step *= 2
    return xp.moveaxis(out, -1, dim)


def turned(xp: ArrayNamespace, x: Array, dim: int) -> Any:
    """The elements along a dim in the opposite order."""
    return xp.flip(x, (dim,))


def shifted(xp: ArrayNamespace, x: Array, dim: int, first: float) -> Any:
    """Every element one place later along a dim; one value comes in, the last goes."""
    dim %= len(x.shape)
    if not x.shape[dim]:
        return x
    size = (*x.shape[:dim], 1, *x.shape[dim + 1 :])
    start = xp.zeros(size, x.dtype) + x.dtype.type(first)
    kept = x[(slice(None),) * dim + (slice(0, -1),)]
    return xp.concatenate([start, kept], axis=dim)
