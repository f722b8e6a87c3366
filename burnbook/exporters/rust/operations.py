"""What each operation is in Burn: a call of a method or function of its tensors.

A rule is a template with the inputs and attributes of the op by name, or a function
that writes the call. Where Burn of a release has no such operation, it refuses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from burnbook.exporters.rust.text import Dialect, Untranslatable, number
from burnbook.program import Dim, Step, Value

KIND = {"f": "Float", "i": "Int", "u": "Int", "b": "Bool"}


class Writing(Protocol):
    """What a rule is given to write with: a function of Rust that comes into being."""

    @property
    def dialect(self) -> Dialect:
        """The release that it is written for."""
        ...

    def expression(self, value: Any) -> str:
        """An input: a tensor that may be consumed, or a number."""
        ...

    def element(self, value: Any, is_float: bool) -> str:
        """A number as an element of a tensor."""
        ...

    def size(self, size: Any) -> str:
        """A size, which may follow the batch."""
        ...

    def device(self) -> str:
        """A reference to the device of the inputs."""
        ...


Rule = str | Callable[[Writing, Step], str]


def kind_of(value: Value) -> str:
    """Float, Int or Bool."""
    return KIND[value.dtype.kind]


def written(step: Step, out: Writing) -> str:
    """The call of an operation.

    Raises:
        Untranslatable: Burn of this release has none.
    """
    name = step.op.name
    rule = (NEWER.get(name) if out.dialect.new else None) or RULES.get(name)
    if rule is None:
        name = PUBLIC.get(name, name)
        raise Untranslatable(f"Burn {out.dialect.version} has no {name}")
    if not isinstance(rule, str):
        return rule(out, step)
    named = dict(zip(step.op.inputs, step.inputs, strict=False))
    parts = {name: out.expression(v) for name, v in named.items() if v is not None}
    numbers = {name: number_of(out, value) for name, value in attrs_of(step).items()}
    return rule.format(**parts, **numbers)


def attrs_of(step: Step) -> dict[str, Any]:
    """What an operation was called with, and its defaults."""
    return {**getattr(step.op, "attrs", {}), **step.attrs}


def number_of(out: Writing, value: Any) -> str:
    """An attribute: a number, a size, or several."""
    if isinstance(value, Dim):
        return out.element(value, True) if value.is_float else out.size(value)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(number_of(out, part) for part in value)}]"
    if isinstance(value, np.generic):
        value = value.item()
    return number(value) if isinstance(value, (int, float)) else str(value)


def shape_text(out: Writing, shape: Sequence[Any]) -> str:
    """A shape as an array of sizes."""
    return f"[{', '.join(map(out.size, shape))}]"


def stretched(out: Writing, value: Any, shape: Sequence[Any]) -> str:
    """A tensor in a shape that it may be smaller than, along dims of size 1."""
    text = out.expression(value)
    if list(value.shape) == list(shape):
        return text
    rank = len(shape)
    if len(value.shape) < rank:
        text += f".unsqueeze::<{rank}>()"
    return f"{text}.expand({expanded(out, shape)})"


def expanded(out: Writing, shape: Sequence[Any]) -> str:
    """A shape as `expand` takes it: sizes of one signed type."""
    sizes = [
        out.size(size) + (" as i64" if isinstance(size, Dim) else "") for size in shape
    ]
    sizes = [
        f"({s[:-7]}) as i64" if s.endswith(" as i64") and " " in s[:-7] else s
        for s in sizes
    ]
    return f"[{', '.join(sizes)}]"


def _scalar(value: Any) -> bool:
    return not isinstance(value, Value)


def _operand(out: Writing, value: Any) -> str:
    """What stands behind an operator: in brackets where it has operators of its own."""
    text = out.expression(value)
    return f"({text})" if isinstance(value, Dim) and " " in text else text


def arithmetic(symbol: str) -> Callable[[Writing, Step], str]:
    """Sums and products: of two tensors, or a tensor and a number on either side."""

    def rule(out: Writing, step: Step) -> str:
        x, y = step.inputs
        if not _scalar(x) or symbol in "+*":
            first, second = (y, x) if _scalar(x) else (x, y)
            return f"{out.expression(first)} {symbol} {_operand(out, second)}"
        if symbol == "-":
            return f"-{out.expression(y)} + {_operand(out, x)}"
        if kind_of(step.out) != "Float":
            raise Untranslatable("a number divided by a tensor of Int")
        recip = f"{out.expression(y)}.recip()"
        is_one = not isinstance(x, Dim) and float(x) == 1.0
        return recip if is_one else f"{recip} * {_operand(out, x)}"

    return rule


def comparison(name: str, turned: str) -> Callable[[Writing, Step], str]:
    """Comparisons: of two tensors of one shape, or a tensor and a number."""

    def rule(out: Writing, step: Step) -> str:
        x, y = step.inputs
        ending = "scalar" if out.dialect.new else "elem"
        if _scalar(x):
            return f"{out.expression(y)}.{turned}_{ending}({out.expression(x)})"
        if _scalar(y):
            return f"{out.expression(x)}.{name}_{ending}({out.expression(y)})"
        shape = step.out.shape
        return f"{stretched(out, x, shape)}.{name}({stretched(out, y, shape)})"

    return rule


def pair(
    name: str, scalar: bool = False, turns: bool = False
) -> Callable[[Writing, Step], str]:
    """A method of two tensors, which it takes in one shape.

    scalar: whether there is one for a tensor and a number. turns: whether x and y may
    change places.
    """

    def rule(out: Writing, step: Step) -> str:
        x, y = step.inputs
        if _scalar(x) and turns:
            x, y = y, x
        if _scalar(x) or (_scalar(y) and not scalar):
            raise Untranslatable(f"{name} of a tensor and a number")
        if not _scalar(y):
            shape = step.out.shape
            return f"{stretched(out, x, shape)}.{name}({stretched(out, y, shape)})"
        is_float = kind_of(step.out) == "Float"
        value = out.element(y, is_float)
        if is_float and isinstance(y, Dim):
            value = f"({value}) as f32"
        return f"{out.expression(x)}.{name}_scalar({value})"

    return rule


def _fmod(out: Writing, step: Step) -> str:
    if kind_of(step.out) != "Float":
        raise Untranslatable(f"Burn {out.dialect.version} has no fmod of Int")
    return pair("fmod", scalar=True)(out, step)


def _atan2(out: Writing, step: Step) -> str:
    y, x = step.inputs
    if _scalar(x) or _scalar(y):
        raise Untranslatable("atan2 of a tensor and a number")
    shape = step.out.shape
    return f"{stretched(out, y, shape)}.atan2({stretched(out, x, shape)})"


def _prod(out: Writing, step: Step) -> str:
    if kind_of(step.out) == "Float" and not out.dialect.new:
        raise Untranslatable(
            f"{step.op.name}: Burn 0.15 computes exp(Σ log x), which is NaN where a "
            "factor is below 0"
        )
    return (_along("prod_dim") if "dim" in step.op.name else _prod_all)(out, step)


def _prod_all(out: Writing, step: Step) -> str:
    return f"{out.expression(step.inputs[0])}.prod()"


def _powf(out: Writing, step: Step) -> str:
    x, y = step.inputs
    if _scalar(x):
        raise Untranslatable("a number to the power of a tensor")
    if _scalar(y):
        return f"{out.expression(x)}.powf_scalar({out.expression(y)})"
    return (
        f"{stretched(out, x, step.out.shape)}.powf({stretched(out, y, step.out.shape)})"
    )


def _remainder(out: Writing, step: Step) -> str:
    x, y = step.inputs
    if _scalar(y):
        return f"{out.expression(x)}.remainder_scalar({out.expression(y)})"
    if _scalar(x) or not out.dialect.new:
        raise Untranslatable(f"Burn {out.dialect.version} has no remainder of tensors")
    return f"{out.expression(x)}.remainder({out.expression(y)})"


def _value(out: Writing, value: Any) -> str:
    """A number as an argument that becomes an element."""
    return out.expression(value) if isinstance(value, Dim) else number_of(out, value)


def _mask_fill(out: Writing, step: Step) -> str:
    x, mask = step.inputs
    value = _value(out, attrs_of(step)["value"])
    made = f"{out.expression(x)}.mask_fill({stretched(out, mask, x.shape)}"
    return f"{made}, {value})"


def _mask_where(out: Writing, step: Step) -> str:
    x, mask, values = (stretched(out, v, step.out.shape) for v in step.inputs)
    return f"{x}.mask_where({mask}, {values})"


def _clamp(out: Writing, step: Step) -> str:
    x = out.expression(step.inputs[0])
    low, high = attrs_of(step).get("min"), attrs_of(step).get("max")
    is_float = kind_of(step.out) == "Float"
    low, high = (None if v is None else out.element(v, is_float) for v in (low, high))
    if low is None:
        return f"{x}.clamp_max({high})"
    return f"{x}.clamp_min({low})" if high is None else f"{x}.clamp({low}, {high})"


def _reshape(out: Writing, step: Step) -> str:
    (x,) = step.inputs
    return f"{out.expression(x)}.reshape({shape_text(out, attrs_of(step)['shape'])})"


def _expand(out: Writing, step: Step) -> str:
    (x,) = step.inputs
    return f"{out.expression(x)}.expand({expanded(out, attrs_of(step)['shape'])})"


def _swap_dims(out: Writing, step: Step) -> str:
    (x,) = step.inputs
    dims = sorted(
        d % len(x.shape) for d in (attrs_of(step)["dim1"], attrs_of(step)["dim2"])
    )
    return f"{out.expression(x)}.swap_dims({dims[0]}, {dims[1]})"


def _axes(method: str) -> Callable[[Writing, Step], str]:
    def rule(out: Writing, step: Step) -> str:
        (x,) = step.inputs
        axes = [axis % len(x.shape) for axis in attrs_of(step)["axes"]]
        return f"{out.expression(x)}.{method}({axes})"

    return rule


def ranges(out: Writing, index: Sequence[Any], shape: Sequence[Any]) -> str:
    """The parts that a slice takes, along each dim."""
    parts: list[str] = []
    for place, size in zip(index, shape, strict=False):
        if not isinstance(place, slice) or place.step not in (None, 1):
            raise Untranslatable(f"a slice with steps: {place}")
        start = place.start or 0
        stop = size if place.stop is None else place.stop
        if isinstance(start, int) and start < 0:
            raise Untranslatable(f"a slice from the end: {place}")
        parts.append(f"{out.size(start)}..{out.size(stop)}")
    return f"[{', '.join(parts)}]"


def _slice(out: Writing, step: Step) -> str:
    (x,) = step.inputs
    index = attrs_of(step)["index"]
    return f"{out.expression(x)}.slice({ranges(out, index, x.shape)})"


def _slice_assign(out: Writing, step: Step) -> str:
    x, values = step.inputs
    index = list(attrs_of(step)["index"])
    index += [slice(None)] * (len(x.shape) - len(index))
    place = ranges(out, index, x.shape)
    return f"{out.expression(x)}.slice_assign({place}, {out.expression(values)})"


def _cat(out: Writing, step: Step) -> str:
    dim = attrs_of(step)["dim"] % len(step.out.shape)
    given = step.inputs[0] if isinstance(step.inputs[0], (list, tuple)) else step.inputs
    parts = ", ".join(out.expression(value) for value in given)
    return f"Tensor::cat(vec![{parts}], {dim})"


def _pad(out: Writing, step: Step) -> str:
    (x,) = step.inputs
    widths = [tuple(pair) for pair in attrs_of(step)["widths"]]
    if any(pair != (0, 0) for pair in widths[:-2]) or len(widths) < 2:
        raise Untranslatable("pad: Burn pads the last two dims")
    (top, bottom), (left, right) = widths[-2:]
    given, is_float = attrs_of(step)["value"], kind_of(step.out) == "Float"
    text = out.expression(x)
    if out.dialect.new:
        value = _value(out, given)
        return f"{text}.pad(({left}, {right}, {top}, {bottom}), {value})"
    value = out.element(given, is_float)
    if isinstance(given, Dim):
        value = f"({value})"
    else:
        value += "_f64" if is_float else "_i64"
    return f"{text}.pad(({left}, {right}, {top}, {bottom}), {value}.elem())"


def _along(method: str) -> Callable[[Writing, Step], str]:
    """A method that takes a dim."""

    def rule(out: Writing, step: Step) -> str:
        x = step.inputs[0]
        rest = "".join(f", {out.expression(v)}" for v in step.inputs[1:])
        dim = attrs_of(step)["dim"] % len(x.shape)
        return f"{out.expression(x)}.{method}({dim}{rest})"

    return rule


def _added(method: str) -> Callable[[Writing, Step], str]:
    """A method that adds values at indices; the newest says so."""

    def rule(out: Writing, step: Step) -> str:
        plain = _along(method)(out, step)
        return f"{plain[:-1]}, IndexingUpdateOp::Add)" if out.dialect.new else plain

    return rule


def _length_dim(out: Writing, step: Step) -> str:
    (x,) = step.inputs
    dim = attrs_of(step)["dim"] % len(x.shape)
    return f"{out.expression(x)}.powi_scalar(2).sum_dim({dim}).sqrt()"


def _sort(out: Writing, step: Step) -> str:
    way = "_descending" if attrs_of(step).get("descending") else ""
    return _along(f"{step.op.name}{way}")(out, step)


def _argtopk(out: Writing, step: Step) -> str:
    (x,) = step.inputs
    k, dim = attrs_of(step)["k"], attrs_of(step)["dim"] % len(x.shape)
    return f"{out.expression(x)}.topk_with_indices({k}, {dim}).1"


def _softmax(function: str) -> Callable[[Writing, Step], str]:
    def rule(out: Writing, step: Step) -> str:
        (x,) = step.inputs
        dim = attrs_of(step)["dim"] % len(x.shape)
        return f"activation::{function}({out.expression(x)}, {dim})"

    return rule


def _cast(out: Writing, step: Step) -> str:
    (x,) = step.inputs
    there = kind_of(step.out)
    text = out.expression(x)
    return text if kind_of(x) == there else f"{text}.{there.lower()}()"


def _linear(out: Writing, step: Step) -> str:
    x, weight, *bias = step.inputs
    wide = "" if len(x.shape) == 2 else ".unsqueeze()"
    text = f"{out.expression(x)}.matmul({out.expression(weight)}{wide})"
    if bias and bias[0] is not None:
        text += f" + {out.expression(bias[0])}.unsqueeze()"
    return text


def _attention(out: Writing, step: Step) -> str:
    query, key, value = step.inputs[:3]
    mask = step.inputs[3] if len(step.inputs) > 3 else None
    attrs = attrs_of(step)
    for name in ("causal", "quiet", "softcap", "prob"):
        if attrs.get(name):
            raise Untranslatable(f"attention with {name}={attrs[name]}")
    rank = len(query.shape)
    shape = (*query.shape[:-1], key.shape[-2])
    if list(key.shape[:-2]) != list(query.shape[:-2]):
        raise Untranslatable("attention whose keys have other leading sizes")
    turned = f"{out.expression(key)}.swap_dims({rank - 2}, {rank - 1})"
    scale = out.element(attrs["scale"], True)
    scale = f"({scale})" if " " in scale else scale
    text = f"{out.expression(query)}.matmul({turned}) * {scale}"
    if mask is not None:
        if kind_of(mask) == "Bool":
            hidden = number(float(attrs.get("hidden", -np.inf)))
            text = f"({text}).mask_fill({stretched(out, mask, shape)}, {hidden})"
        else:
            text = f"{text} + {stretched(out, mask, shape)}"
    return f"activation::softmax({text}, {rank - 1}).matmul({out.expression(value)})"


def _optional(out: Writing, value: Any) -> str:
    return "None" if value is None else f"Some({out.expression(value)})"


def _conv(out: Writing, step: Step) -> str:
    x, weight, *bias = step.inputs
    rank = len(x.shape) - 2
    a = attrs_of(step)
    options = ", ".join(
        [str(list(a[name])) for name in ("stride", "padding", "dilation")]
        + [str(a["groups"])]
    )
    bias_text = _optional(out, bias[0] if bias else None)
    given = f"{out.expression(x)}, {out.expression(weight)}, {bias_text}"
    return f"module::conv{rank}d({given}, ConvOptions::new({options}))"


def _conv_transpose(out: Writing, step: Step) -> str:
    x, weight, *bias = step.inputs
    rank = len(x.shape) - 2
    a = attrs_of(step)
    if not out.dialect.new:
        mixed_groups("conv_transpose", a["groups"], weight.shape[1])
    names = ("stride", "padding", "padding_out", "dilation")
    options = ", ".join([str(list(a[name])) for name in names] + [str(a["groups"])])
    bias_text = _optional(out, bias[0] if bias else None)
    given = f"{out.expression(x)}, {out.expression(weight)}, {bias_text}"
    made = f"ConvTransposeOptions::new({options})"
    return f"module::conv_transpose{rank}d({given}, {made})"


def mixed_groups(kind: str, groups: int, out: int) -> None:
    """Refuse groups that Burn 0.15 computes otherwise."""
    if groups > 1 and math.gcd(groups, out) > 1:
        raise Untranslatable(
            f"Burn 0.15 mixes up the groups of a {kind} where their number ({groups}) "
            f"and that of the channels in one ({out}) have a common divisor"
        )


def _sizes(sizes: Any) -> str:
    found = list(sizes)
    return str(found[0]) if len(found) == 1 else str(found)


def _pool(out: Writing, step: Step) -> str:
    (x,) = step.inputs
    rank, a = len(x.shape) - 2, attrs_of(step)
    if rank > 2:
        raise Untranslatable("Burn pools over one or two dims")
    kind = "max" if "max" in step.op.name else "avg"
    last = _sizes(a.get("dilation", (1,) * rank))
    if kind == "avg":
        last = number(bool(a.get("count_include_pad", True)))
    if out.dialect.new:
        options = _pool_options(kind, rank, a)
        return f"module::{kind}_pool{rank}d({out.expression(x)}, {options})"
    if a.get("ceil_mode"):
        raise Untranslatable("ceil_mode is not in Burn 0.15")
    padding = a.get("padding", (0,) * rank)
    given = ", ".join(map(_sizes, (a["kernel_size"], a["stride"], padding)))
    return f"module::{kind}_pool{rank}d({out.expression(x)}, {given}, {last})"


def _pool_options(kind: str, rank: int, attrs: dict[str, Any]) -> str:
    """The settings of a pool as the newest Burn takes them, without its defaults."""
    kernel = list(attrs["kernel_size"])
    usual: dict[str, Any] = {"stride": kernel, "padding": [0] * rank}
    if kind == "max":
        usual["dilation"] = [1] * rank
    else:
        usual["count_include_pad"] = True
    usual["ceil_mode"] = False
    text = f"{kind.title()}PoolOptions::new({kernel})"
    for name, default in usual.items():
        value = attrs.get(name, default)
        value = list(value) if isinstance(value, tuple) else value
        if value != default:
            shown = value if isinstance(value, list) else number(bool(value))
            text += f".with_{name}({shown})"
    return text


def _adaptive(out: Writing, step: Step) -> str:
    (x,) = step.inputs
    rank = len(x.shape) - 2
    if rank > 2 and not out.dialect.new:
        raise Untranslatable("Burn 0.15 pools over one or two dims")
    size = _sizes(attrs_of(step)["output_size"])
    return f"module::adaptive_avg_pool{rank}d({out.expression(x)}, {size})"


def _embedding(out: Writing, step: Step) -> str:
    weight, indices = step.inputs
    if len(indices.shape) != 2:
        raise Untranslatable("embedding: Burn looks up indices [batch, sequence]")
    return f"module::embedding({out.expression(weight)}, {out.expression(indices)})"


def _same(out: Writing, step: Step) -> str:
    return out.expression(step.inputs[0])


_METHODS = (
    "abs exp log log1p erf recip sqrt cos sin tanh round floor ceil sign bool_not "
    "sum mean max min any all is_nan"
)
_FUNCTIONS = "relu gelu sigmoid silu mish log_sigmoid"
_DIMS = "sum_dim mean_dim max_dim min_dim any_dim all_dim argmax argmin gather"

#: What an operation is called where people use it, if that differs from its own name.
PUBLIC = {
    "argmedian": "median",
    "deform_corners": "deform_conv2d",
    "deform_patches": "deform_conv2d",
    "det": "linalg.det",
    "det_sign": "linalg.slogdet",
    "fft_pairs": "signal.cfft",
    "from_codes": "dequantize",
    "hot_rows": "one_hot_fill (or one_hot)",
    "inverse": "linalg.inv",
    "irfft_pairs": "signal.irfft",
    "length": "the norm of all elements (clipping)",
    "log_det": "linalg.slogdet",
    "log_softmax_at": "rnnt_loss",
    "max_pool_indices": "max_pool with indices",
    "max_pool_pick": "max_pool with indices",
    "neighbor_sum": "local_response_norm",
    "recast": "cast",
    "rfft_pairs": "signal.rfft",
    "select_put": "indexing that replaces values",
    "slide": "unfold",
    "solve": "linalg.solve",
    "to_codes": "quantize",
}

#: What each operation is in every release.
RULES: dict[str, Rule] = {
    **{name: f"{{x}}.{name}()" for name in _METHODS.split()},
    **{name: f"activation::{name}({{x}})" for name in _FUNCTIONS.split()},
    **{name: _along(name) for name in _DIMS.split()},
    "_mark": _same,
    "adaptive_avg_pool": _adaptive,
    "adaptive_avg_pool2d": _adaptive,
    "add": arithmetic("+"),
    "argsort": _sort,
    "argtopk": _argtopk,
    "attention": _attention,
    "avg_pool": _pool,
    "avg_pool2d": _pool,
    "cast": _cast,
    "cat": _cat,
    "clamp": _clamp,
    "conv": _conv,
    "conv2d": _conv,
    "conv_transpose": _conv_transpose,
    "div": arithmetic("/"),
    "embedding": _embedding,
    "equal": comparison("equal", "equal"),
    "expand": _expand,
    "flip": _axes("flip"),
    "half_power": "{x}.powf_scalar(0.5)",
    "greater": comparison("greater", "lower"),
    "greater_equal": comparison("greater_equal", "lower_equal"),
    "leaky_relu": "activation::leaky_relu({x}, {negative_slope})",
    "length_dim": _length_dim,
    "linear": _linear,
    "log_softmax": _softmax("log_softmax"),
    "lower": comparison("lower", "greater"),
    "lower_equal": comparison("lower_equal", "greater_equal"),
    "mask_fill": _mask_fill,
    "mask_where": _mask_where,
    "matmul": "{x}.matmul({y})",
    "max_pair": pair("max_pair"),
    "max_pool": _pool,
    "max_pool2d": _pool,
    "min_pair": pair("min_pair"),
    "mul": arithmetic("*"),
    "neg": "-{x}",
    "not_equal": comparison("not_equal", "not_equal"),
    "pad": _pad,
    "permute": _axes("permute"),
    "power": "{x}.powi_scalar({exponent})",
    "powf": _powf,
    "prod": _prod,
    "prod_dim": _prod,
    "remainder": _remainder,
    "reshape": _reshape,
    "scatter": _added("scatter"),
    "select": _along("select"),
    "select_assign": _added("select_assign"),
    "slice": _slice,
    "slice_assign": _slice_assign,
    "softmax": _softmax("softmax"),
    "softplus": "activation::softplus({x}, {beta})",
    "sort": _sort,
    "square": "{x}.powi_scalar(2)",
    "sub": arithmetic("-"),
    "swap_dims": _swap_dims,
    "to_bool": "{x}.bool()",
}

_NEW_METHODS = (
    "acos acosh asin asinh atan atanh cosh sinh tan square trunc is_finite is_inf "
    "bitwise_not"
)
_PAIRS = "hypot bool_and bool_or bool_xor"
_BITS = "bitwise_and bitwise_or bitwise_xor"
_SHIFTS = "bitwise_left_shift bitwise_right_shift"
#: What only the newest has.
NEWER: dict[str, Rule] = {
    **{name: f"{{x}}.{name}()" for name in _NEW_METHODS.split()},
    **{name: pair(name) for name in _PAIRS.split()},
    **{name: pair(name, scalar=True, turns=True) for name in _BITS.split()},
    **{name: pair(name, scalar=True) for name in _SHIFTS.split()},
    **{name: _along(name) for name in ["cumsum", "cumprod", "cummin", "cummax"]},
    "atan2": _atan2,
    "elu": "activation::elu({x}, {alpha})",
    "fmod": _fmod,
}
