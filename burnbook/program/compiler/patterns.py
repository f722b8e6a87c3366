"""The chains that are fused wherever they occur.

Each function is plain array code and the definition; a backend's own kernels compute
the same in one pass (kernels.py).
"""

from collections.abc import Callable
from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import OPS
from burnbook.program.compiler.fusion import attrs_of, fusion
from burnbook.program.values import Step

ACTIVATIONS = ("relu", "gelu", "silu", "sigmoid")
POOLS = ("avg_pool2d", "avg_pool", "max_pool2d", "max_pool", "adaptive_avg_pool2d")


def _side_by_side(steps: tuple[Step, ...]) -> bool:
    """Whether a pool at the end has windows that lie side by side."""
    last = steps[-1]
    if last.op.name not in POOLS:
        return True
    before, after = steps[-2].out.shape[2:], last.out.shape[2:]
    if not all(type(size) is int for size in (*before, *after)):
        return False
    return window_of(last.op.name, attrs_of(last), before, after) is not None


def window_of(
    name: str, attrs: dict[str, Any], before: Any, after: Any
) -> tuple[int, int] | None:
    """Rows and columns of the windows of a pool; None where they are not side by side.

    before, after: the size of an image. attrs: of the pool.
    """
    if name == "adaptive_avg_pool2d":
        if any(size % count for size, count in zip(before, after, strict=True)):
            return None
        return before[0] // after[0], before[1] // after[1]
    kernel = tuple(attrs["kernel_size"])
    stride, padding = tuple(attrs["stride"]), tuple(attrs["padding"])
    apart = tuple(attrs.get("dilation", (1, 1)))
    if stride != kernel or padding != (0, 0) or apart != (1, 1):
        return None
    if any(n // k != m for n, k, m in zip(before, kernel, after, strict=True)):
        return None  # ceil_mode
    return kernel[0], kernel[1]


@fusion(f"conv2d {'|'.join(ACTIVATIONS)}? {'|'.join(POOLS)}?", when=_side_by_side)
def conv_block(
    xp: ArrayNamespace,
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    chain: tuple[str, ...],
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    **pool: Any,
) -> Any:
    """A convolution, an activation and pooling, image by image."""
    sizes = {"stride": stride, "padding": padding, "dilation": dilation}
    out = OPS["conv2d"](xp, x, weight, bias, groups=groups, **sizes)
    for name in chain[1:]:
        attrs = pool_attrs(name, pool) if name in POOLS else {}
        out = OPS[name](xp, out, **attrs)
    return out


def pool_attrs(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a pool, by the names that its op has for them."""
    prefix = f"{name}_"
    return {key.removeprefix(prefix): value for key, value in given.items()}


@fusion(f"linear {'|'.join((*ACTIVATIONS, 'tanh'))}")
def linear_block(
    xp: ArrayNamespace,
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    chain: tuple[str, ...],
) -> Any:
    """A linear layer and an activation."""
    return OPS[chain[1]](xp, OPS["linear"](xp, x, weight, bias))


@fusion("dropout relu")
def dropped_block(xp: ArrayNamespace, x: Array, *, prob: float, key: Any) -> Any:
    """Dropout and relu."""
    return OPS["relu"](xp, OPS["dropout"](xp, x, prob=prob, key=key))


@fusion("relu.backward dropout.backward")
def dropped_slopes(
    xp: ArrayNamespace,
    g: Array,
    y: Array,
    *,
    prob: float,
    key: Any,
    needs: Any,
    **others: Any,
) -> Any:
    """The gradient of dropout and relu, which gave y."""
    (g,) = gradient("relu")(xp, g, y, needs=needs)
    return OPS["dropout"](xp, g, prob=prob, key=key)


def _shared_evenly(steps: tuple[Step, ...]) -> bool:
    """Whether a pool at the beginning has windows that lie side by side."""
    first = steps[0]
    before, after = first.out.shape[2:], first.inputs[0].shape[2:]
    if not all(type(size) is int for size in (*before, *after)):
        return False
    name = first.op.name.removesuffix(".backward")
    return window_of(name, attrs_of(first), before, after) is not None


@fusion(
    "adaptive_avg_pool2d.backward|avg_pool2d.backward relu.backward dropout.backward?",
    when=_shared_evenly,
)
def pooled_slopes(
    xp: ArrayNamespace,
    g: Array,
    x_shape: Any,
    y: Array,
    *,
    chain: tuple[str, ...],
    prob: float = 0.0,
    key: Any = None,
    needs: Any,
    **others: Any,
) -> Any:
    """The gradient of an average pool, relu and perhaps dropout before it.

    y: what relu gave. others: the attributes of the pool, and what else was asked for.
    """
    pool = chain[0].removesuffix(".backward")
    attrs = {name: others[name] for name in OPS[pool].attrs}
    (g,) = gradient(pool)(xp, g, x_shape, needs=needs, **attrs)
    (g,) = gradient("relu")(xp, g, y, needs=needs)
    return OPS["dropout"](xp, g, prob=prob, key=key) if len(chain) > 2 else g


def gradient(name: str) -> Callable[..., tuple[Any, ...]]:
    """The plain code of the gradients of an op."""
    backward = OPS[name].backward
    if backward is None:
        raise AssertionError(f"{name} has no gradients")
    return backward.forward
