"""What PyTorch and MyGrad have for the ops of the table.

A name is looked up in the library; where the arguments differ, a function takes the
library first, then what the op takes. What is missing here is compared with NumPy.
"""

from collections.abc import Callable
from typing import Any

Counterpart = str | Callable[..., Any]

SAME = """
add sub mul div remainder fmod neg abs sign exp log log1p sqrt cos sin tan asin acos
atan sinh cosh tanh asinh acosh atanh atan2 hypot erf floor ceil round trunc square
relu sigmoid bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift
bitwise_right_shift matmul argwhere
"""
SAME_IN_MYGRAD = "exp log log1p sqrt sin cos tan tanh sinh cosh abs matmul square"
PYTORCH: dict[str, Counterpart] = {
    **{name: name for name in SAME.split()},
    "powf": "pow",
    "power": lambda t, x, exponent: t.pow(x, exponent),
    "max_pair": "maximum",
    "min_pair": "minimum",
    "recip": "reciprocal",
    "clamp": lambda t, x, **bounds: t.clamp(x, **bounds),
    "gelu": "nn.functional.gelu",
    "silu": "nn.functional.silu",
    "mish": "nn.functional.mish",
    "log_sigmoid": "nn.functional.logsigmoid",
    "softplus": lambda t, x, beta: t.nn.functional.softplus(x, beta),
    "leaky_relu": lambda t, x, negative_slope: t.nn.functional.leaky_relu(
        x, negative_slope
    ),
    "elu": lambda t, x, alpha: t.nn.functional.elu(x, alpha),
    "equal": "eq",
    "not_equal": "ne",
    "greater": "gt",
    "greater_equal": "ge",
    "lower": "lt",
    "lower_equal": "le",
    "is_nan": "isnan",
    "is_inf": "isinf",
    "is_finite": "isfinite",
    "bool_not": "logical_not",
    "bool_and": "logical_and",
    "bool_or": "logical_or",
    "bool_xor": "logical_xor",
    "to_bool": lambda t, x: x.bool(),
    "inverse": "linalg.inv",
    "det": lambda t, x: t.linalg.det(x)[..., None, None],
    "sum": lambda t, x: x.sum().view(1),
    "mean": lambda t, x: x.mean().view(1),
    "prod": lambda t, x: x.prod().view(1),
    "max": lambda t, x: x.max().view(1),
    "min": lambda t, x: x.min().view(1),
    "all": lambda t, x: x.all().view(1),
    "any": lambda t, x: x.any().view(1),
    "sum_to": lambda t, x, shape: x.sum(
        [d for d, size in enumerate(shape) if size != x.shape[d]], keepdim=True
    ),
    **{
        f"{name}_dim": lambda t, x, dim, f=name: getattr(t, f)(x, dim, keepdim=True)
        for name in ("sum", "mean", "prod", "all", "any")
    },
    **{
        f"{name}_dim": lambda t, x, dim, f=name: getattr(t, f)(x, dim, True).values
        for name in ("max", "min")
    },
    "argmax": lambda t, x, dim: x.argmax(dim, True),
    "argmin": lambda t, x, dim: x.argmin(dim, True),
    "argmedian": lambda t, x, dim: x.median(dim, True).indices,
    "cumsum": lambda t, x, dim: x.cumsum(dim),
    "cumprod": lambda t, x, dim: x.cumprod(dim),
    "cummax": lambda t, x, dim: x.cummax(dim).values,
    "cummin": lambda t, x, dim: x.cummin(dim).values,
    "sort": lambda t, x, dim, descending=False: (
        t.sort(x, stable=True, dim=dim, descending=descending).values
    ),
    "argsort": lambda t, x, dim, descending=False: (
        t.sort(x, stable=True, dim=dim, descending=descending).indices
    ),
    "argtopk": lambda t, x, k, dim: x.topk(k, dim).indices,
    "gather": lambda t, x, places, dim: x.gather(dim, places),
    "scatter": lambda t, x, places, values, dim: x.scatter_add(dim, places, values),
    "select": lambda t, x, places, dim: x.index_select(dim, places),
    "select_assign": lambda t, x, places, values, dim: x.index_add(dim, places, values),
    "select_put": lambda t, x, places, values: x.index_put((places,), values),
    "mask_where": lambda t, x, mask, values: t.where(mask, values, x),
    "mask_fill": lambda t, x, mask, value: x.masked_fill(mask, value),
    "reshape": lambda t, x, shape: x.reshape(shape),
    "swap_dims": lambda t, x, dim1, dim2: x.swapdims(dim1, dim2),
    "permute": lambda t, x, axes: x.permute(axes),
    "expand": lambda t, x, shape: x.expand(shape),
    "flip": lambda t, x, axes: x.flip(axes),
    "cat": lambda t, *xs, dim: t.cat(xs, dim),
    "slice": lambda t, x, index: x[index],
    "slice_assign": lambda t, x, values, index: x.slice_scatter(
        values, 0, index[0].start, index[0].stop
    ),
    "cast": lambda t, x, dtype: x.to(t.float64),
    "pad": lambda t, x, widths, value: t.nn.functional.pad(
        x, [n for pair in reversed(widths) for n in pair], value=value
    ),
    "softmax": lambda t, x, dim: x.softmax(dim),
    "log_softmax": lambda t, x, dim: x.log_softmax(dim),
    "cross_entropy": lambda t, x, y: t.nn.functional.cross_entropy(x, y).view(1),
    "linear": lambda t, x, weight, bias: t.addmm(bias, x, weight),
    "conv2d": lambda t, x, w, b: t.nn.functional.conv2d(x, w, b),
    "conv": lambda t, x, w, b, **attrs: t.nn.functional.conv1d(x, w, b, **attrs),
    "conv_transpose": lambda t, x, w, b, padding_out, **attrs: (
        t.nn.functional.conv_transpose1d(x, w, b, output_padding=padding_out, **attrs)
    ),
    "avg_pool2d": lambda t, x, **attrs: t.nn.functional.avg_pool2d(x, **attrs),
    "avg_pool": lambda t, x, **attrs: t.nn.functional.avg_pool1d(x, **attrs),
    "max_pool2d": lambda t, x, **attrs: t.nn.functional.max_pool2d(x, **attrs),
    "max_pool": lambda t, x, **attrs: t.nn.functional.max_pool1d(x, **attrs),
    "max_pool_indices": lambda t, x, **attrs: t.nn.functional.max_pool1d(
        x, return_indices=True, **attrs
    )[1],
    "adaptive_avg_pool2d": lambda t, x, output_size: (
        t.nn.functional.adaptive_avg_pool2d(x, output_size)
    ),
    "adaptive_avg_pool": lambda t, x, output_size: t.nn.functional.adaptive_avg_pool1d(
        x, output_size
    ),
    "interpolate": lambda t, x, output_size, mode, **attrs: t.nn.functional.interpolate(
        x, output_size, mode="bilinear", **attrs
    ),
    "layer_norm": lambda t, x, gamma, beta, epsilon: t.nn.functional.layer_norm(
        x, gamma.shape, gamma, beta, epsilon
    ),
    "group_norm": lambda t, x, gamma, beta, groups, epsilon: t.nn.functional.group_norm(
        x, groups, gamma, beta, epsilon
    ),
    "batch_norm": lambda t, x, gamma, beta, epsilon: t.nn.functional.batch_norm(
        x, None, None, gamma, beta, True, 0.0, epsilon
    ),
    "attention": lambda t, q, k, v, scale: t.nn.functional.scaled_dot_product_attention(
        q, k, v, scale=scale
    ),
    "unfold4d": lambda t, x, **attrs: t.nn.functional.unfold(x, **attrs),
    "fold4d": lambda t, x, **attrs: t.nn.functional.fold(x, **attrs),
    "dropout": lambda t, x, prob, key: t.nn.functional.dropout(x, prob),
    "uniform": lambda t, shape, **_: t.rand(shape),
    "normal": lambda t, shape, **_: t.randn(shape),
    "bernoulli": lambda t, shape, **_: t.empty(shape).bernoulli_(0.5),
    "rfft_pairs": lambda t, x: t.view_as_real(t.fft.rfft(x)),
    "irfft_pairs": lambda t, x, n: t.fft.irfft(t.view_as_complex(x), n),
    "fft_pairs": lambda t, x, inverse: t.view_as_real(t.fft.fft(t.view_as_complex(x))),
}
MYGRAD: dict[str, Counterpart] = {
    **{name: name for name in SAME_IN_MYGRAD.split()},
    **{
        f"a{name}": f"arc{name}"
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "powf": "power",
    "neg": "negative",
    "recip": "reciprocal",
    "atan2": "arctan2",
    "max_pair": "maximum",
    "min_pair": "minimum",
    "power": lambda m, x, exponent: x**exponent,
    "clamp": lambda m, x, **bounds: m.clip(x, bounds["min"], bounds["max"]),
    "relu": "nnet.activations.relu",
    "sigmoid": "nnet.activations.sigmoid",
    "leaky_relu": lambda m, x, negative_slope: m.nnet.activations.leaky_relu(
        x, negative_slope
    ),
    "elu": lambda m, x, alpha: m.nnet.activations.elu(x, alpha),
    "softmax": lambda m, x, dim: m.nnet.activations.softmax(x, axis=dim),
    "log_softmax": lambda m, x, dim: m.nnet.activations.logsoftmax(x, axis=dim),
    "cross_entropy": lambda m, x, y: m.nnet.losses.softmax_crossentropy(x, y),
    "sum": "sum",
    "mean": "mean",
    "prod": "prod",
    "max": "max",
    "min": "min",
    **{
        f"{name}_dim": lambda m, x, dim, f=name: getattr(m, f)(
            x, axis=dim, keepdims=True
        )
        for name in ("sum", "mean", "prod", "max", "min")
    },
    "cumsum": lambda m, x, dim: m.cumsum(x, axis=dim),
    "cumprod": lambda m, x, dim: m.cumprod(x, axis=dim),
    "reshape": lambda m, x, shape: m.reshape(x, shape),
    "swap_dims": lambda m, x, dim1, dim2: m.swapaxes(x, dim1, dim2),
    "permute": lambda m, x, axes: m.transpose(x, axes),
    "expand": lambda m, x, shape: m.broadcast_to(x, shape),
    "cat": lambda m, *xs, dim: m.concatenate(xs, axis=dim),
    "slice": lambda m, x, index: x[index],
    "mask_where": lambda m, x, mask, values: m.where(mask, values, x),
    "linear": lambda m, x, weight, bias: m.matmul(x, weight) + bias,
}


def find(table: dict[str, Counterpart], library: Any, name: str) -> Any:
    """The library's function for an op, taking inputs and attributes, or None."""
    found = table.get(name)
    if found is None:
        return None
    if isinstance(found, str):
        for part in found.split("."):
            library = getattr(library, part)
        return library
    return lambda *inputs, **attrs: found(library, *inputs, **attrs)
