"""FLOPs: how many operations on numbers an op takes.

A product that is added to a sum counts as two, any other function of a number as one,
and moving numbers about as none. These are the operations that the formula asks for,
not what a kernel saves or repeats.
"""

from collections.abc import Callable
from math import prod

Shape = tuple[int, ...]
Rule = Callable[[list[Shape], Shape], int]

MOVES = {
    *("argwhere", "cast", "cat", "expand", "flip", "gather", "mask_fill", "mask_where"),
    *("pad", "permute", "recast", "reshape", "scatter", "select", "select_assign"),
    *("select_put", "slice", "slice_assign", "slice_spread", "swap_dims", "unfold4d"),
    *("ctc_labels", "rnnt_labels", "argsort", "argtopk", "argmedian", "sort"),
}
REDUCTIONS = {
    *("adaptive_avg_pool", "adaptive_avg_pool2d", "all", "all_dim", "any", "any_dim"),
    *("argmax", "argmin", "max", "max_dim", "mean", "mean_dim", "min", "min_dim"),
    *("prod", "prod_dim", "sum", "sum_dim", "sum_to"),
}
#: What each number takes: exp, a sum, a division; mean, variance, scale and shift.
PASSES = {
    "softmax": 3,
    "log_softmax": 3,
    "layer_norm": 7,
    "rms_norm": 4,
    "group_norm": 7,
    "batch_norm": 7,
    "batch_norm_known": 4,
}
WINDOWS = {"avg_pool", "avg_pool2d", "max_pool", "max_pool2d"}
#: What each unit takes at every step, besides the products with the weights.
GATES = {"rnn": 1, "lstm": 9, "gru": 9}


def flops(name: str, shapes: list[Shape], out: Shape, window: int = 1) -> int:
    """The operations of one run of an op, from the shapes of its inputs and its output.

    window: how many numbers a pooling op looks at for each of its results.

    Example:
        >>> flops("matmul", [(2, 3), (3, 5)], (2, 5))  # 10 sums of 3 products
        60
    """
    rule = _attention if "attention" in name else PRODUCTS.get(name)
    if rule is not None:
        return rule(shapes, out)
    if name in MOVES:
        return 0
    if name in REDUCTIONS:
        return prod(shapes[0]) if shapes else 0
    if name in GATES:
        x, weight, recurrent = shapes[:3]
        steps = prod(x[:-1])
        return 2 * steps * (prod(weight) + prod(recurrent)) + GATES[name] * prod(out)
    return prod(out) * (window if name in WINDOWS else PASSES.get(name, 1))


def _linear(shapes: list[Shape], out: Shape) -> int:
    return 2 * prod(out) * shapes[1][0] + _bias(shapes, out)


def _conv(shapes: list[Shape], out: Shape) -> int:
    return 2 * prod(out) * prod(shapes[1][1:]) + _bias(shapes, out)


def _conv_transpose(shapes: list[Shape], out: Shape) -> int:
    return 2 * prod(shapes[0]) * prod(shapes[1][1:]) + _bias(shapes, out)


def _attention(shapes: list[Shape], out: Shape) -> int:
    """Scores, softmax, and the mean of the values: q [..., s, d], k [..., m, d]."""
    (*rest, s, d), m = shapes[0], shapes[1][-2]
    return prod(rest) * s * m * (2 * d + 2 * out[-1] + PASSES["softmax"])


def _bias(shapes: list[Shape], out: Shape) -> int:
    return prod(out) if len(shapes) > 2 else 0


PRODUCTS: dict[str, Rule] = {
    "matmul": lambda shapes, out: 2 * prod(out) * shapes[0][-1],
    "linear": _linear,
    "conv": _conv,
    "conv2d": _conv,
    "conv_transpose": _conv_transpose,
}
