"""Every operation that Burn has, once, also with numbers in the place of tensors.

The rows of one kind of input are one module, which gives all results.
"""

from collections.abc import Callable, Iterator
from typing import Any

from burnbook import nn
from burnbook.tensor import Tensor, activation, linalg, module
from tests.support.rust_models import Example, floats, ints, mask

Operation = Callable[..., Tensor]
LINES: dict[str, Operation] = {  # of x, y [3, 4], between -1 and 1
    "abs": lambda x, y: x.abs(),
    "exp": lambda x, y: x.exp(),
    "log": lambda x, y: (x + 2.0).log(),
    "log1p": lambda x, y: x.abs().log1p(),
    "erf": lambda x, y: x.erf(),
    "recip": lambda x, y: (x + 2.0).recip(),
    "sqrt": lambda x, y: x.abs().sqrt(),
    "cos": lambda x, y: x.cos(),
    "sin": lambda x, y: x.sin(),
    "tanh": lambda x, y: x.tanh(),
    "round": lambda x, y: (x * 3.0).round(),
    "floor": lambda x, y: (x * 3.0).floor(),
    "ceil": lambda x, y: (x * 3.0).ceil(),
    "sign": lambda x, y: x.sign(),
    "sum": lambda x, y: x.sum(),
    "mean": lambda x, y: x.mean(),
    "max": lambda x, y: x.max(),
    "min": lambda x, y: x.min(),
    "any": lambda x, y: x.any(),
    "all": lambda x, y: x.all(),
    "is_nan": lambda x, y: x.is_nan(),
    "relu": lambda x, y: activation.relu(x),
    "gelu": lambda x, y: activation.gelu(x),
    "sigmoid": lambda x, y: activation.sigmoid(x),
    "silu": lambda x, y: activation.silu(x),
    "mish": lambda x, y: activation.mish(x),
    "log_sigmoid": lambda x, y: activation.log_sigmoid(x),
    "leaky_relu": lambda x, y: activation.leaky_relu(x, 0.1),
    "softplus": lambda x, y: activation.softplus(x, 2.0),
    "softmax": lambda x, y: activation.softmax(x, 1),
    "log_softmax": lambda x, y: activation.log_softmax(x, 0),
    "sum_dim": lambda x, y: x.sum_dim(1),
    "mean_dim": lambda x, y: x.mean_dim(0),
    "l2_norm": lambda x, y: linalg.l2_norm(x, 1),
    "std": lambda x, y: x.std(0),
    "max_dim": lambda x, y: x.max_dim(1),
    "min_dim": lambda x, y: x.min_dim(0),
    "any_dim": lambda x, y: x.any_dim(1),
    "all_dim": lambda x, y: x.all_dim(0),
    "argmax": lambda x, y: x.argmax(1),
    "argmin": lambda x, y: x.argmin(0),
    "gather": lambda x, y: x.gather(1, y.argmax(1)),
    "scatter": lambda x, y: x.scatter(1, y.argmax(1), y.sum_dim(1)),
    "argsort": lambda x, y: x.argsort(1),
    "argsort_descending": lambda x, y: x.argsort_descending(1),
    "sort": lambda x, y: x.sort(0),
    "sort_descending": lambda x, y: x.sort_descending(1),
    "topk": lambda x, y: x.topk_with_indices(2, 1)[1],
    "add": lambda x, y: x + y,
    "add_scalar": lambda x, y: 2.0 + x,
    "sub": lambda x, y: x - y,
    "sub_scalar": lambda x, y: 2.0 - x,
    "mul": lambda x, y: x * y.sum_dim(1),
    "mul_scalar": lambda x, y: x.mul_scalar(3),
    "div": lambda x, y: x / (y + 2.0),
    "div_scalar": lambda x, y: x / 3,
    "div_by": lambda x, y: 3.0 / (x + 2.0),
    "neg": lambda x, y: -x,
    "square": lambda x, y: x.powi_scalar(2),
    "power": lambda x, y: x.powi_scalar(3),
    "powf": lambda x, y: (x + 2.0).powf(y),
    "half_power": lambda x, y: x.abs().powf_scalar(0.5),
    "powf_scalar": lambda x, y: (x + 2.0).powf_scalar(0.3),
    "remainder_scalar": lambda x, y: x.remainder_scalar(0.3),
    "equal": lambda x, y: x.equal(y.sum_dim(0)),
    "equal_scalar": lambda x, y: x.sign().equal_scalar(1.0),
    "not_equal": lambda x, y: x.not_equal(y),
    "not_equal_scalar": lambda x, y: x.sign().not_equal_scalar(1.0),
    "greater": lambda x, y: x > y,
    "greater_scalar": lambda x, y: x > 0.1,
    "greater_equal": lambda x, y: x >= y,
    "greater_equal_scalar": lambda x, y: x >= 0.1,
    "lower": lambda x, y: x < y,
    "lower_scalar": lambda x, y: x < 0.1,
    "lower_equal": lambda x, y: x <= y,
    "lower_equal_scalar": lambda x, y: x <= 0.1,
    "max_pair": lambda x, y: x.max_pair(y.sum_dim(1)),
    "min_pair": lambda x, y: x.sum_dim(0).min_pair(y),
    "clamp": lambda x, y: x.clamp(-0.2, 0.3),
    "clamp_min": lambda x, y: x.clamp_min(0.1),
    "clamp_max": lambda x, y: x.clamp_max(0.1),
    "mask_fill": lambda x, y: x.mask_fill(y > 0.0, 3.0),
    "mask_where": lambda x, y: x.mask_where(y > 0.0, y),
    "to_int": lambda x, y: (x * 9.0).int(),
    "to_bool": lambda x, y: x.bool(),
    "matmul": lambda x, y: x.matmul(y.transpose()),
    "linear": lambda x, y: module.linear(x, y.transpose()),
    "cat": lambda x, y: Tensor.cat([x, y], 1),
    "expand": lambda x, y: x.sum_dim(1).expand([-1, 5]),
    "flip": lambda x, y: x.flip([0, 1]),
    "permute": lambda x, y: x.permute([1, 0]),
    "reshape": lambda x, y: x.reshape([-1, 2]),
    "swap_dims": lambda x, y: x.swap_dims(0, 1),
    "slice": lambda x, y: x.slice([(0, 2), (1, 3)]),
    "slice_assign": lambda x, y: x.slice_assign(
        [slice(0, 2), slice(1, 3)], y.slice([(0, 2), (0, 2)])
    ),
    "pad": lambda x, y: x.pad((1, 2, 0, 1), 0.5),
}
NEWER_LINES: dict[str, Operation] = {
    "acos": lambda x, y: x.acos(),
    "acosh": lambda x, y: (x + 3.0).acosh(),
    "asin": lambda x, y: x.asin(),
    "asinh": lambda x, y: x.asinh(),
    "atan": lambda x, y: x.atan(),
    "atanh": lambda x, y: (x * 0.9).atanh(),
    "cosh": lambda x, y: x.cosh(),
    "sinh": lambda x, y: x.sinh(),
    "tan": lambda x, y: x.tan(),
    "square": lambda x, y: x.square(),
    "trunc": lambda x, y: (x * 3.0).trunc(),
    "is_finite": lambda x, y: x.is_finite(),
    "is_inf": lambda x, y: x.is_inf(),
    "atan2": lambda x, y: x.atan2(y.sum_dim(1)),
    "hypot": lambda x, y: x.hypot(y.sum_dim(1)),
    "fmod": lambda x, y: x.fmod(y),
    "fmod_scalar": lambda x, y: x.fmod_scalar(0.3),
    "fmod_batch": lambda x, y: (x * 9.0).fmod_scalar(x.dims()[0]),
    "remainder": lambda x, y: x.remainder(y),
    "cumsum": lambda x, y: x.cumsum(1),
    "cumprod": lambda x, y: x.cumprod(0),
    "cummin": lambda x, y: x.cummin(1),
    "cummax": lambda x, y: x.cummax(1),
    "elu": lambda x, y: activation.elu(x, 0.5),
    "prod": lambda x, y: x.prod(),
    "prod_dim": lambda x, y: x.prod_dim(1),
}
INTS: dict[str, Operation] = {  # of i, j [3, 4], from 1 to 9
    "abs": lambda i, j: (i - 5).abs(),
    "sign": lambda i, j: (i - 5).sign(),
    "sum": lambda i, j: i.sum(),
    "prod": lambda i, j: i.prod(),
    "prod_dim": lambda i, j: i.prod_dim(1),
    "max_dim": lambda i, j: i.max_dim(1),
    "argmax": lambda i, j: i.argmax(1),
    "any": lambda i, j: (i - 1).any(),
    "all_dim": lambda i, j: (i - 1).all_dim(1),
    "add": lambda i, j: i + j,
    "sub_scalar": lambda i, j: 3 - i,
    "mul": lambda i, j: i * j,
    "div": lambda i, j: i / j,
    "div_scalar": lambda i, j: i / 2,
    "neg": lambda i, j: -i,
    "square": lambda i, j: i.powi_scalar(2),
    "power": lambda i, j: i.powi_scalar(3),
    "remainder_scalar": lambda i, j: i.remainder_scalar(3),
    "equal": lambda i, j: i.equal(j),
    "equal_scalar": lambda i, j: i.equal_scalar(3),
    "greater": lambda i, j: i > j,
    "lower_scalar": lambda i, j: i < 4,
    "max_pair": lambda i, j: i.max_pair(j),
    "clamp": lambda i, j: i.clamp(2, 5),
    "mask_fill": lambda i, j: i.mask_fill(j > 4, 7),
    "mask_where": lambda i, j: i.mask_where(j > 4, j),
    "float": lambda i, j: i.float(),
    "bool": lambda i, j: (i - 1).bool(),
    "sort": lambda i, j: i.sort(1),
    "gather": lambda i, j: i.gather(1, j.argmax(1)),
    "cat": lambda i, j: Tensor.cat([i, j], 0),
    "expand": lambda i, j: i.sum_dim(1).expand([-1, 5]),
    "pad": lambda i, j: i.pad((1, 2, 0, 1), 3),
    "select": lambda i, j: i.select(0, j.slice([(0, 1), (0, 2)]).reshape([2]) % 3),
    "select_assign": lambda i, j: i.select_assign(
        1, j.slice([(0, 1), (0, 2)]).reshape([2]) % 4, j.narrow(1, 0, 2)
    ),
}
NEWER_INTS: dict[str, Operation] = {
    "remainder": lambda i, j: i.remainder(j),
    "cumsum": lambda i, j: i.cumsum(1),
    "cummax": lambda i, j: i.cummax(1),
    "bitwise_not": lambda i, j: i.bitwise_not(),
    "bitwise_and": lambda i, j: i.bitwise_and(j),
    "bitwise_or": lambda i, j: i.bitwise_or(j),
    "bitwise_xor": lambda i, j: i.bitwise_xor(j.sum_dim(1)),
    "bitwise_left_shift": lambda i, j: i.bitwise_left_shift(j),
    "bitwise_right_shift": lambda i, j: i.bitwise_right_shift(j),
    "bitwise_and_scalar": lambda i, j: i.bitwise_and_scalar(5),
    "bitwise_or_scalar": lambda i, j: i.bitwise_or_scalar(5),
    "bitwise_xor_scalar": lambda i, j: i.bitwise_xor_scalar(5),
    "bitwise_left_shift_scalar": lambda i, j: i.bitwise_left_shift_scalar(2),
    "bitwise_right_shift_scalar": lambda i, j: i.bitwise_right_shift_scalar(1),
    "bitwise_batch": lambda i, j: i.bitwise_and_scalar(i.dims()[0]),
}
BOOLS: dict[str, Operation] = {  # of a, b [3, 4]
    "bool_not": lambda a, b: a.bool_not(),
    "any": lambda a, b: a.any(),
    "all_dim": lambda a, b: a.all_dim(1),
    "equal": lambda a, b: a.equal(b),
    "not_equal": lambda a, b: a.not_equal(b),
    "int": lambda a, b: a.int(),
    "float": lambda a, b: a.float(),
    "expand": lambda a, b: a.any_dim(1).expand([-1, 5]),
    "flip": lambda a, b: a.flip([1]),
    "cat": lambda a, b: Tensor.cat([a, b], 0),
    "reshape": lambda a, b: a.reshape([-1, 2]),
    "swap_dims": lambda a, b: a.swap_dims(0, 1),
}
NEWER_BOOLS: dict[str, Operation] = {
    "bool_and": lambda a, b: a.bool_and(b),
    "bool_or": lambda a, b: a.bool_or(b.any_dim(1)),
    "bool_xor": lambda a, b: a.bool_xor(b),
}
IMAGES: dict[str, Operation] = {  # of an image [2, 4, 8, 8] and a line [2, 4, 9]
    "max_pool1d": lambda x, y: module.max_pool1d(y, 3, 2, 1, 2),
    "max_pool1d_plain": lambda x, y: module.max_pool1d(y, 3, 3),
    "max_pool2d": lambda x, y: module.max_pool2d(x, [3, 2], [2, 1], [1, 0], [1, 2]),
    "avg_pool1d": lambda x, y: module.avg_pool1d(y, 3, 2, 1),
    "avg_pool1d_without": lambda x, y: module.avg_pool1d(y, 3, 2, 1, False),
    "avg_pool2d": lambda x, y: module.avg_pool2d(x, 3, 2, 1),
    "avg_pool2d_without": lambda x, y: module.avg_pool2d(x, 3, 2, 1, False),
    "adaptive_avg_pool1d": lambda x, y: module.adaptive_avg_pool1d(y, 4),
    "adaptive_avg_pool2d": lambda x, y: module.adaptive_avg_pool2d(x, [3, 5]),
    "conv1d": lambda x, y: module.conv1d(y, _ones(y, 3, 4, 2)),
    "conv2d": lambda x, y: module.conv2d(x, _ones(x, 3, 4, 2, 3)),
    "conv3d": lambda x, y: module.conv3d(_deep(x), _ones(x, 3, 2, 1, 2, 3)),
    "conv_transpose1d": lambda x, y: module.conv_transpose1d(y, _ones(y, 4, 3, 2)),
    "conv_transpose2d": lambda x, y: module.conv_transpose2d(x, _ones(x, 4, 3, 2, 3)),
    "conv_transpose3d": lambda x, y: module.conv_transpose3d(
        _deep(x), _ones(x, 2, 3, 1, 2, 3)
    ),
    "embedding": lambda x, y: module.embedding(_ones(x, 9, 3), y.argmax(1).squeeze(1)),
}
NEWER_IMAGES: dict[str, Operation] = {
    "max_pool1d_ceil": lambda x, y: module.max_pool1d(y, 2, 2, 0, 1, True),
    "max_pool2d_ceil": lambda x, y: module.max_pool2d(x, 3, 2, 1, 1, True),
    "avg_pool1d_ceil": lambda x, y: module.avg_pool1d(y, 2, 2, 0, True, True),
    "avg_pool2d_ceil": lambda x, y: module.avg_pool2d(x, 3, 2, 1, False, True),
    "adaptive_avg_pool3d": lambda x, y: module.adaptive_avg_pool3d(_deep(x), 2),
}


def _ones(like: Tensor, *shape: int) -> Tensor:
    return Tensor.ones(list(shape), like.device())


def _deep(x: Tensor) -> Tensor:
    return x.reshape([-1, 2, 2, 8, 8])


def _all(operations: dict[str, Operation]) -> Any:
    """A module that gives the result of each operation."""
    return nn.Sequential(lambda x, y: tuple(run(x, y) for run in operations.values()))


Group = tuple[str, dict[str, Operation], tuple[Any, ...]]


def groups(newer: bool = False) -> Iterator[Group]:
    """A name, operations and the inputs of them all.

    newer: those that only the newest Burn has.
    """
    pair = floats(3, 4), floats(3, 4, seed=4)
    images = floats(2, 4, 8, 8), floats(2, 4, 9)
    whole = ints(3, 4, below=8) + 1, ints(3, 4, below=8).flip([0, 1]) + 1
    truths = mask(3, 4), mask(3, 4).flip([1])
    yield "lines", NEWER_LINES if newer else LINES, pair
    yield "whole", NEWER_INTS if newer else INTS, whole
    yield "truths", NEWER_BOOLS if newer else BOOLS, truths
    yield "images", NEWER_IMAGES if newer else IMAGES, images


def operations() -> Iterator[Example]:
    """Modules of all operations that each release has."""
    for name, rows, inputs in groups():
        yield f"operations_{name}", _all(rows), inputs


def newer_operations() -> Iterator[Example]:
    """Modules of all operations that only the newest has."""
    for name, rows, inputs in groups(newer=True):
        yield f"newer_operations_{name}", _all(rows), inputs
