"""Where burnbook answers otherwise than Burn 0.15, on purpose: one row for each.

The rows about records and files speak of every release, and say of which.

    differences("numbers")
    explain_difference(call)    the row that explains a call, or None

Everything else is meant to agree: tests make every call again that Burn 0.15.0
answered, and a result that differs must be explained by a row. A row says which calls
it is about: their names in Burn, and what their inputs must be like. Its example is run
by the tests, and by appendix A2.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from burnbook.core.errors import ConfigError
from burnbook.reference.calls import (
    INFINITE,
    NAN,
    Call,
    When,
    float_for_int,
    fraction_for_int,
    grouped,
    has,
    is_empty,
    is_int,
    near_the_limits,
    not_last,
    not_square,
    settings,
    shapes,
    shapes_differ,
    some,
    ties,
)

SECTIONS = {
    "numbers": "NaN, infinity and large numbers",
    "integers": "Whole numbers",
    "shapes": "Shapes",
    "gradients": "Gradients",
    "layers": "Layers, losses and metrics",
    "records": "Records and files",
    "python": "Python's ways",
}
PLACES = re.compile(
    r"(?<=[(\[_])(?![)\]])|(?=\.[a-zA-Z])|(?<=[a-z0-9])(?=[A-Z])|(?<=\d)(?=\})"
)


@dataclass(frozen=True)
class Difference:
    """One row: what Burn 0.15 does, what burnbook does, and why.

    example: an expression; None where `proof` names a test instead.
    gives: what it prints, or the first line of its error.
    ops: the names of the calls that differ, in Burn; `when` says which of them.
    """

    section: str
    name: str
    burn: str
    here: str
    why: str
    example: str = ""
    gives: str = ""
    ops: str = ""
    when: When = lambda call: True
    proof: str = ""


def explain_difference(call: Call) -> Difference | None:
    """The first row that a call of Burn falls under."""
    names = {call.op, call.args.get("module")}  # a layer, or how it is printed
    rows = (row for row in DIFFERENCES if names & {*row.ops.split()})
    return next((row for row in rows if row.when(call)), None)


class Differences:
    """Some rows, to be looked at."""

    def __init__(
        self, title: str, rows: tuple[Difference, ...], burn: str = "Burn 0.15"
    ):
        self.title = title
        self.rows = rows
        self.burn = burn

    def __repr__(self) -> str:
        count = len(self.rows)
        return f"{self.title}: {count} difference{'' if count == 1 else 's'}"

    def _repr_html_(self) -> str:
        head = '<th style="text-align:left;width:{}%">{}</th>'
        heads = [head.format(32, self.title), head.format(30, f"in {self.burn}")]
        heads.append(head.format(38, "here, and why"))
        return (
            f'<table style="width:100%"><thead><tr>{"".join(heads)}</tr></thead>'
            f"<tbody>{''.join(map(_line, self.rows))}</tbody></table>"
        )


def differences(section: str) -> Differences:
    """The rows of one section."""
    if section not in SECTIONS:
        what = f"there is no section {section!r}"
        raise ConfigError("differences", what, cure=", ".join(SECTIONS))
    rows = tuple(row for row in DIFFERENCES if row.section == section)
    burn = "Burn, release by release" if section == "records" else "Burn 0.15"
    return Differences(SECTIONS[section], rows, burn)


def _line(row: Difference) -> str:
    left = 'style="text-align:left;vertical-align:top;padding-right:12px"'
    text = escape
    tried = ""
    if row.example:
        shown = f"{_breakable(row.example)}<br>→ {_breakable(row.gives)}"
        tried = f"<br><small><tt>{shown}</tt></small>"
    return (
        f"<tr><td {left}><b>{text(row.name)}</b>{tried}</td>"
        f"<td {left}>{text(row.burn)}</td>"
        f"<td {left}>{text(row.here)}<br><small>{text(row.why)}</small></td></tr>"
    )


def _breakable(code: str) -> str:
    """Code as HTML that may be broken into lines: JupyterLab drops `overflow-wrap`."""
    return PLACES.sub("<wbr>", escape(code))


def _row(section: str, name: str, burn: str, here: str, why: str, **more: Any) -> Any:
    return Difference(section, name, burn, here, why, **more)


def _large(limit: float) -> When:
    return some(lambda x: np.abs(np.nan_to_num(x, nan=0.0)) > limit)


def _argument(test: Callable[[float], bool]) -> When:
    """Whether it holds for a number among the arguments."""

    def when(call: Call) -> bool:
        return any(test(float(value)) for value in call.args.values())

    return when


def _no_class(call: Call) -> bool:
    """Whether there is one column of scores, or a target that is none of them."""
    arrays = list(call.arrays().values())
    pad, pairs = call.args.get("pad_token"), zip(arrays[::2], arrays[1::2], strict=True)
    return any(
        x.shape[-1] == 1 or bool(np.any(((y < 0) | (y >= x.shape[-1])) & (y != pad)))
        for x, y in pairs
    )


def _pads_too_much(call: Call) -> bool:
    """Whether padding_out is as large as the stride, along some dim."""
    given = settings(call)
    pairs = np.broadcast_arrays(given["padding_out"], given["stride"])
    return call.tracked is not None and bool(np.any(pairs[0] >= pairs[1]))


def _unlike_same(call: Call) -> bool:
    """Whether Same is asked for where Burn's formula changes a size."""
    given = settings(call)
    if given.get("padding") != "Same":
        return False
    stride = given.get("stride", given.get("strides", 1))
    sizes = (given["kernel_size"], stride, given.get("dilation", 1))
    kernel, stride, dilation = np.broadcast_arrays(*sizes)
    even = (kernel % 2 == 0) & (stride == 1)
    return bool(np.any(even | ((kernel > 1) & (dilation > 1))))


def _some_padding(call: Call) -> bool:
    """Whether some targets are only padding."""
    pad, arrays = call.args.get("pad_token"), list(call.arrays().values())
    return pad is not None and any(bool(np.any(y == pad)) for y in arrays[1::2])


def _nothing_left(call: Call) -> bool:
    """Whether the padding of a transposed convolution takes all along some dim."""
    given = settings(call)
    kernel = given.get("kernel_size") or call.arrays()["weight"].shape[2:]
    names = ("stride", "dilation", "padding", "padding_out")
    stride, dilation, padding, more = (np.asarray(given[name]) for name in names)
    span = dilation * (np.asarray(kernel) - 1) + 1 + more - 2 * padding
    sizes = np.asarray(shapes(call)[0][2:])
    return bool(np.any((sizes - 1) * stride + span <= 0))


def _lonely(call: Call) -> bool:
    """Whether a group of channels has one value in all."""
    given, shape = settings(call), shapes(call)[0]
    groups = given.get("num_groups", given["num_channels"])
    return bool(np.prod(shape[1:]) == groups)


def _single(call: Call) -> bool:
    """Whether a batch has one value for each channel."""
    return all(np.prod(s) == s[1] for s in shapes(call))


def _not_positive(call: Call) -> bool:
    return call.kind == "Float" and some(lambda x: x <= 0)(call)


def _power_is_none(call: Call) -> bool:
    """Whether a whole number is raised to a power that is not whole, or below 0."""
    powers = _powers(call)
    return is_int(call) and any(np.any((p < 0) | (p != np.trunc(p))) for p in powers)


def _powers(call: Call) -> list[np.ndarray]:
    """The exponents: an argument, or a tensor."""
    given = list(call.args.values()) + list(call.arrays().values())[1:]
    return [np.asarray(value, np.float64) for value in given]


def _sign_of_nan(call: Call) -> bool:
    return some(lambda x: np.isnan(x) & np.signbit(x))(call)


DIFFERENCES: tuple[Difference, ...] = (
    _row(
        "numbers",
        "NaN wins",
        "ignores it unless it comes first; in a window of a pool always",
        "the largest, the smallest and the middle of numbers with a NaN is NaN",
        "as in NumPy and PyTorch: what is unknown may be the largest",
        example="Tensor.from_floats([1.0, nan, 3.0]).max()",
        gives="[nan]",
        ops="max min max_dim min_dim max_dim_with_indices min_dim_with_indices argmax "
        "argmin MaxPool1d MaxPool2d max_pool1d max_pool2d max_pool1d_with_indices "
        "max_pool2d_with_indices AccuracyMetric TopKAccuracyMetric max_pair min_pair",
        when=NAN,
    ),
    _row(
        "numbers",
        "every NaN sorts last",
        "one with a sign bit sorts first",
        "last, and first in descending order, whatever its sign bit is",
        "the sign of a NaN depends on the processor and means nothing",
        example="Tensor.from_floats([1.0, -nan, 0.0]).sort(0)",
        gives="[0.0, 1.0, nan]",
        ops="sort sort_descending sort_with_indices sort_descending_with_indices "
        "argsort argsort_descending topk topk_with_indices",
        when=_sign_of_nan,
    ),
    _row(
        "numbers",
        "equal elements keep their order",
        "the order of their indices is open",
        "sorting is stable: of equals the lower index comes first, also descending",
        "results are the same on every backend",
        example="Tensor.from_ints([1, 0, 1, 0]).argsort(0)",
        gives="[1, 3, 0, 2]",
        ops="sort_with_indices sort_descending_with_indices argsort argsort_descending "
        "topk_with_indices",
        when=ties,
    ),
    _row(
        "numbers",
        "clamp with min above max",
        "below min gives min, above max gives max",
        "max everywhere: min(max(x, min), max)",
        "as in NumPy and PyTorch; Burn's documentation leaves it open",
        example="Tensor.from_floats([0.0, 5.0]).clamp(3.0, 1.0)",
        gives="[1.0, 1.0]",
        ops="clamp",
        when=lambda call: float(call.args["min"]) > float(call.args["max"]),
    ),
    _row(
        "numbers",
        "clamp with a bound of NaN",
        "leaves every element as it is",
        "gives NaN: min(max(x, min), max)",
        "as in NumPy and PyTorch",
        example="Tensor.from_floats([1.0]).clamp_min(nan)",
        gives="[nan]",
        ops="clamp clamp_min clamp_max",
        when=_argument(math.isnan),
    ),
    _row(
        "numbers",
        "the rest of a division by infinity",
        "is NaN",
        "is x, or the infinity where x has the other sign",
        "as in Python, NumPy and PyTorch: x − y ⌊x / y⌋",
        example="Tensor.from_floats([1.5, -1.5]) % inf",
        gives="[1.5, inf]",
        ops="remainder_scalar",
        when=_argument(math.isinf),
    ),
    _row(
        "numbers",
        "windows of −∞ alone",
        "the index of their largest element is 0",
        "is that of an element of the window",
        "as in PyTorch; the gradient goes where the window is",
        example="module.max_pool1d_with_indices("
        "Tensor.from_floats([[[1.0, -inf, -inf]]]), 2, 1)[1]",
        gives="[[[0, 1]]]",
        ops="max_pool1d_with_indices max_pool2d_with_indices",
        when=some(np.isneginf),
    ),
    _row(
        "numbers",
        "infinity is compared as it is",
        "compares by subtracting, so that ∞ ≥ ∞ and −∞ ≤ −∞ are false",
        "∞ ≥ ∞ is true",
        "IEEE 754, as everywhere else",
        example="Tensor.from_floats([inf]).greater_equal(Tensor.from_floats([inf]))",
        gives="[True]",
        ops="greater greater_equal lower lower_equal",
        when=INFINITE,
    ),
    _row(
        "numbers",
        "contains_nan",
        "is true for [∞, −∞] too: it looks at the sum",
        "looks at every element",
        "as newer Burn does",
        example="Tensor.from_floats([inf, -inf]).contains_nan()",
        gives="[False]",
        ops="contains_nan",
        when=_large(1e38),
    ),
    _row(
        "numbers",
        "what is infinitely far is not close",
        "1 is close to ∞, because ∞ ≤ tolerance · ∞",
        "is_close and check_closeness call it different",
        "as in NumPy and PyTorch",
        example="Tensor.from_floats([1.0]).is_close(Tensor.from_floats([inf]))",
        gives="[False]",
        ops="is_close all_close check_closeness",
        when=INFINITE,
    ),
    _row(
        "numbers",
        "assert_within_range and NaN",
        "a NaN is within every range",
        "a NaN is within none",
        "an assertion should find it",
        example="TensorData([nan]).assert_within_range(0.0, 1.0)",
        gives="AssertionError: Element (NaN) is not within range 0.0..1.0",
        ops="assert_within_range",
        when=NAN,
    ),
    _row(
        "numbers",
        "infinities beside what is selected",
        "unfolding multiplies by 0 and 1, resizing by weights of which some are 0, so "
        "that an infinity or a NaN is spread as NaN",
        "unfolding copies; in resizing it reaches only what it has a weight in",
        "0 · ∞ is not meant",
        example="module.interpolate(Tensor.from_floats([[[1.0, inf]]]), 3, "
        'module.InterpolateOptions("Bilinear"))',
        gives="[[[1.0, inf, inf]]]",
        ops="Unfold4d unfold4d Interpolate1d Interpolate2d interpolate",
        when=some(lambda x: ~np.isfinite(x)),
    ),
    _row(
        "numbers",
        "large inputs of activations",
        "softplus is ∞ above 88, gelu(3e38) is ∞, log_sigmoid(−∞) is NaN",
        "softplus, gelu and log_sigmoid are exact as long as β · x is finite",
        "the formulas are rearranged so that nothing overflows",
        example="activation.softplus(Tensor.from_floats([100.0]), 1.0)",
        gives="[100.0]",
        ops="softplus gelu log_sigmoid Gelu LogSigmoid mish",
        when=_large(80.0),
    ),
    _row(
        "numbers",
        "quiet_softmax",
        "exp(x − m) / (1 + Σ exp(x − m)): the 1 is not scaled, so rows depend on m",
        "exp(x) / (1 + Σ exp(x)), as documented; attention with quiet_softmax likewise",
        "newer Burn mended it",
        example="activation.quiet_softmax(Tensor.from_floats([[1.0, 7.0]]), 1)",
        gives="[[0.0025, 0.9966]]",
        ops="quiet_softmax",
    ),
    _row(
        "numbers",
        "products of negative numbers and zeros",
        "prod is exp(Σ log x): NaN for negative numbers, and no gradient at 0",
        "multiplies, and has the true gradient",
        "as the product of Burn's other backends",
        example="Tensor.from_floats([-2.0, 3.0]).prod()",
        gives="[-6.0]",
        ops="prod prod_dim",
        when=_not_positive,
    ),
    _row(
        "numbers",
        "the mean of nothing",
        "panics",
        "is NaN, 0 / 0, for Float; for Int it is an error",
        "as in NumPy and PyTorch",
        example="Tensor.zeros([0]).mean()",
        gives="[nan]",
        ops="mean mean_dim var var_bias var_mean var_mean_bias cov "
        "cross_entropy_with_logits",
        when=is_empty,
    ),
    _row(
        "integers",
        "Int arithmetic takes whole numbers",
        "cuts the fraction of a number off: [1, 2] * 0.5 is [0, 0]",
        "refuses a float; comparisons, clamp and fills take one that is whole",
        "nobody means 0; .float() says what is meant",
        example="Tensor.from_ints([1, 2]) * 0.5",
        gives="KindError: mul: an Int tensor takes whole numbers, not the float 0.5",
        ops="add_scalar sub_scalar mul_scalar div_scalar remainder_scalar",
        when=float_for_int,
    ),
    _row(
        "integers",
        "an Int tensor does not hold fractions",
        "cuts them off: full(…, 7.9) is 7, and x > 2.5 means x > 2",
        "is an error",
        "x > 2 and x > 2.5 differ, and nothing would say so",
        example="Tensor.full([2], 7.9, kind=Int)",
        gives="KindError: full: a tensor of Int cannot hold 7.9",
        ops="full full_like mask_fill clamp clamp_min clamp_max pad equal_elem "
        "not_equal_elem greater_elem greater_equal_elem lower_elem lower_equal_elem",
        when=fraction_for_int,
    ),
    _row(
        "integers",
        "fractions in from_ints and from_data",
        "from_data(…, Int) cuts them off",
        "is an error for lists and arrays; TensorData is converted, as in Burn",
        "a list with a fraction is a mistake more often than a wish",
        example="Tensor.from_ints([1.5])",
        gives="KindError: from_data: an Int tensor cannot hold 1.5",
    ),
    _row(
        "integers",
        "from_ints beyond 32 bits",
        "reads as i32 first, so that 2³¹ panics",
        "reads what the element type holds",
        "an i64 tensor has room",
        example="Tensor.from_ints([2**40])",
        gives="[1099511627776]",
        ops="from_ints",
    ),
    _row(
        "integers",
        "the mean of whole numbers",
        "cuts its fraction off: the mean of [0, 1] is 0",
        "is an error where it is not whole",
        "a share of right answers would always be 0",
        example="Tensor.from_ints([0, 1]).mean()",
        gives="DataError: mean: the mean of these whole numbers is not a whole number",
        ops="mean mean_dim",
        when=is_int,
    ),
    _row(
        "integers",
        "powers that are not whole numbers",
        "a negative or fractional exponent of an Int tensor is cut to one from 0 on",
        "is an error",
        "2⁻¹ is not a whole number; x.float() ** -1 is",
        example="Tensor.from_ints([2]) ** -1",
        gives="KindError: powf_scalar: an Int tensor takes whole exponents ≥ 0, not -1",
        ops="powf powi powf_scalar powi_scalar",
        when=_power_is_none,
    ),
    _row(
        "integers",
        "huge exponents of whole numbers",
        "an exponent from 2³² on panics",
        "wraps round, as every other overflow of Int tensors",
        "one rule for all operations, as in NumPy",
        example="Tensor.from_ints([3]).powi(Tensor.from_ints([2**32]))",
        gives="[2491309678558969857]",
        ops="powf powi powf_scalar powi_scalar",
        when=lambda call: is_int(call) and max(map(np.max, _powers(call))) >= 1 << 32,
    ),
    _row(
        "integers",
        "fractional exponents of powi_scalar",
        "powi_scalar(0.5) of a Float tensor is powf_scalar(0.5)",
        "is an error: the i stands for integer",
        "powf_scalar says what is meant",
        example="Tensor.from_floats([2.0]).powi_scalar(0.5)",
        gives="KindError: powi_scalar: the exponent is 0.5, not a whole number",
        ops="powi_scalar",
        when=lambda call: any(v != int(v) for v in call.args.values()),
    ),
    _row(
        "integers",
        "the smallest i64 divided by −1",
        "panics",
        "wraps round, as every other overflow of Int tensors",
        "one rule for all operations, as in NumPy",
        example="Tensor.from_ints([-(2**63)]) / -1",
        gives="[-9223372036854775808]",
        ops="div div_scalar remainder_scalar",
        when=near_the_limits,
    ),
    _row(
        "integers",
        "comparing whole numbers near the limits",
        "compares by subtracting, which overflows",
        "compares",
        "2⁶² is above −2⁶³",
        example="Tensor.from_ints([-(2**63)]).lower(Tensor.from_ints([1]))",
        gives="[True]",
        ops="greater greater_equal lower lower_equal max_pair min_pair",
        when=near_the_limits,
    ),
    _row(
        "integers",
        "Int max_dim and min_dim along any dim",
        "panic unless the dim is the last",
        "work along every dim",
        "a defect of 0.15",
        example="Tensor.from_ints([[1, 5], [7, 2]]).max_dim(0)",
        gives="[[7, 5]]",
        ops="max_dim min_dim min_dim_with_indices max_dim_with_indices",
        when=lambda call: is_int(call) and not_last(call),
    ),
    _row(
        "integers",
        "one_hot of several indices",
        "panics for more than one index",
        "one row for each index: [n] becomes [n, num_classes]",
        "as documented, and as in newer Burn",
        example="Tensor.from_ints([2, 0]).one_hot(3)",
        gives="[[0, 0, 1], [1, 0, 0]]",
        ops="one_hot",
        when=lambda call: call.kind == "Int",
    ),
    _row(
        "shapes",
        "equal and not_equal stretch",
        "panic unless the shapes are equal",
        "sizes of 1 stretch, as in every operation on pairs",
        "0.15's own check allows it",
        example="Tensor.ones([2]).equal(Tensor.ones([1]))",
        gives="[True, True]",
        ops="equal not_equal",
        when=shapes_differ,
    ),
    _row(
        "shapes",
        "masks stretch",
        "mask_where and mask_fill panic unless the mask has the shape of the tensor",
        "sizes of 1 of a mask stretch; in mask_where those of all three",
        "a mask of one row for all rows is usual",
        example="Tensor.zeros([2, 2]).mask_fill(Tensor.from_bool([[True, False]]), 7)",
        gives="[[7.0, 0.0], [7.0, 0.0]]",
        ops="mask_where mask_fill",
        when=shapes_differ,
    ),
    _row(
        "shapes",
        "chunk stops when nothing is left",
        "adds empty pieces, or panics: 9 in 4 gives 3, 3, 3 and an empty one",
        "gives fewer pieces, of which none is empty",
        "as in PyTorch",
        example="[part.dims() for part in Tensor.zeros([9]).chunk(4, 0)]",
        gives="[(3,), (3,), (3,)]",
        ops="chunk",
        when=lambda call: call.args["chunks"] > 1 or is_empty(call),
    ),
    _row(
        "shapes",
        "choosing along a dim of size 0",
        "gives a tensor without elements where another size is 0, too; else it panics",
        "is an error",
        "there is no element to choose from",
        example="Tensor.zeros([0, 0]).max_dim(1)",
        gives="ShapeError: max_dim: dim 1 has size 0: there is no element to choose "
        "from",
        ops="max_dim min_dim argmax argmin max_dim_with_indices min_dim_with_indices "
        "softmax log_softmax softmin quiet_softmax",
        when=is_empty,
    ),
    _row(
        "shapes",
        "expanding a dim of size 0",
        "panics",
        "keeps it",
        "repeat does, there too",
        example="Tensor.zeros([1, 0]).expand([3, 0]).dims()",
        gives="(3, 0)",
        ops="expand",
        when=is_empty,
    ),
    _row(
        "shapes",
        "pieces of a tensor without elements",
        "iter_dim panics",
        "gives pieces without elements",
        "narrow and select do, there too",
        example="[x.dims() for x in Tensor.zeros([2, 0]).iter_dim(0)]",
        gives="[(1, 0), (1, 0)]",
        ops="iter_dim",
        when=is_empty,
    ),
    _row(
        "shapes",
        "the dim of a sort",
        "sort and sort_descending of a tensor with one dim pass over it",
        "must exist, as for every other operation",
        "a defect of 0.15: argsort asks for it",
        example="Tensor.from_ints([2, 1]).sort(1)",
        gives="DimError: sort: dim 1 does not exist: the tensor has rank 1",
        ops="sort sort_descending",
        when=lambda call: call.args["dim"] >= len(shapes(call)[0]),
    ),
    _row(
        "shapes",
        "slices far below zero",
        "an end below −size wraps round: 0..−5 of size 3 selects everything",
        "is an error",
        "a defect of 0.15",
        example="Tensor.zeros([3]).slice([(0, -5)])",
        gives="DimError: slice: 0..-5 holds no element of dim 0 of size 3",
        ops="slice",
        when=lambda call: "-" in str(call.args["ranges"]),
    ),
    _row(
        "shapes",
        "unsqueeze_dims with several axes",
        "panics where two are equal, and where two are not at the end",
        "inserts dims wherever they are wanted, also several at one place",
        "a defect of 0.15",
        example="Tensor.zeros([3, 4]).unsqueeze_dims([0, -1, -1]).dims()",
        gives="(1, 3, 4, 1, 1)",
        ops="unsqueeze_dims",
        when=lambda call: len(call.args["dims"]) > 1,
    ),
    _row(
        "shapes",
        "matmul with a size of 0",
        "panics",
        "gives a tensor without elements, or zeros",
        "a sum of nothing is 0",
        example="Tensor.zeros([2, 0]).matmul(Tensor.zeros([0, 2]))",
        gives="[[0.0, 0.0], [0.0, 0.0]]",
        ops="matmul",
        when=is_empty,
    ),
    _row(
        "shapes",
        "losses do not stretch",
        "MseLoss and HuberLoss stretch targets of another shape",
        "is an error",
        "[n, 1] against [1, n] compares all with all: a famous bug",
        example="nn.MseLoss().forward(Tensor.ones([2, 1]), Tensor.ones([1, 2]))",
        gives="ShapeError: MseLoss: mse: predictions and targets must have one shape",
        ops="MseLoss HuberLoss MseLossNoReduction HuberLossNoReduction",
        when=shapes_differ,
    ),
    _row(
        "shapes",
        "conv2d with too many channels",
        "computes with the first channels, without a word",
        "is an error",
        "a defect of 0.15",
        example="nn.Conv2dConfig([2, 4], [3, 3]).init(Numpy()).forward("
        "Tensor.zeros([1, 3, 5, 5]))",
        gives="ShapeError: Conv2d: conv2d: 3 ≠ 2 · 1: the channels of x must equal "
        "those of weight times groups",
        ops="Conv1d Conv2d Conv3d conv1d conv2d conv3d",
        when=shapes_differ,
    ),
    _row(
        "shapes",
        "transposed convolutions of which nothing is left",
        "gives a tensor without elements where the padding takes all",
        "is an error",
        "a padding that large is a mistake; as in PyTorch",
        example="module.conv_transpose1d(Tensor.ones([1, 1, 2]), "
        "Tensor.ones([1, 1, 1]), None, module.ConvTransposeOptions(1, 1))",
        gives="ShapeError: conv_transpose: a padding of 1 leaves nothing of the length",
        ops="ConvTranspose1d ConvTranspose2d ConvTranspose3d conv_transpose1d "
        "conv_transpose2d conv_transpose3d",
        when=_nothing_left,
    ),
    _row(
        "shapes",
        "RotaryEncoding of three dims",
        "takes four dims only",
        "takes any number of dims before the last two",
        "[batch, steps, d_model] is what most have",
        example="nn.RotaryEncodingConfig(10, 4).init(Numpy()).forward("
        "Tensor.ones([2, 3, 4])).dims()",
        gives="(2, 3, 4)",
        ops="RotaryEncoding",
        when=lambda call: any(len(shape) != 4 for shape in shapes(call)),
    ),
    _row(
        "gradients",
        "gradients along any dim",
        "of max, min, sort, topk, softmax and log_softmax along a dim that is not the "
        "last they panic, or are wrong",
        "flow along every dim",
        "a defect of 0.15",
        example="(lambda x: x.grad(x.max_dim(0).backward()))("
        "Tensor.eye(2, Autodiff(Numpy())).require_grad())",
        gives="[[1.0, 0.0], [0.0, 1.0]]",
        ops="max_dim min_dim max_dim_with_indices min_dim_with_indices sort "
        "sort_descending topk softmax log_softmax quiet_softmax softmin",
        when=lambda call: call.tracked is not None and not_last(call),
    ),
    _row(
        "gradients",
        "ceil under Autodiff",
        "computes floor",
        "computes ceil",
        "a defect of 0.15",
        example="Tensor.from_floats([1.2], Autodiff(Numpy())).ceil()",
        gives="[2.0]",
        ops="ceil",
        when=lambda call: call.tracked is not None,
    ),
    _row(
        "gradients",
        "repeat",
        "the gradient has the shape of the result",
        "the shape of the input: the copies' gradients are added up",
        "a defect of 0.15",
        example="(lambda x: x.grad(x.repeat([3]).backward()))("
        "Tensor.ones([2], Autodiff(Numpy())).require_grad())",
        gives="[3.0, 3.0]",
        ops="repeat repeat_dim",
        when=lambda call: call.tracked is not None,
    ),
    _row(
        "gradients",
        "scatter's values",
        "their gradient is scattered instead of gathered",
        "every value gets the gradient of its place",
        "a defect of 0.15",
        example="(lambda v: v.grad(Tensor.zeros([3], v.device()).scatter(0, "
        "Tensor.from_ints([2, 2], v.device()), v).backward()))("
        "Tensor.ones([2], Autodiff(Numpy())).require_grad())",
        gives="[1.0, 1.0]",
        ops="scatter",
        when=lambda call: call.tracked is not None,
    ),
    _row(
        "gradients",
        "strides that leave a rest",
        "the gradient of x in convolutions and unfold4d has too few elements where a "
        "stride from 3 on leaves two or more of them out",
        "has the shape of x",
        "a defect of 0.15",
        example="(lambda x: x.grad(module.conv1d(x, Tensor.ones([1, 1, 1], x.device()),"
        " None, module.ConvOptions(3)).backward()))("
        "Tensor.ones([1, 1, 3], Autodiff(Numpy())).require_grad())",
        gives="[[[1.0, 0.0, 0.0]]]",
        ops="conv1d conv2d conv3d Conv1d Conv2d Conv3d unfold4d",
        when=lambda call: (
            call.tracked is not None and bool(np.max(settings(call)["stride"]) > 2)
        ),
    ),
    _row(
        "gradients",
        "padding_out as large as the stride",
        "the gradient of x in transposed convolutions has too many elements",
        "has the shape of x",
        "a defect of 0.15",
        example="(lambda x: x.grad(module.conv_transpose1d(x, "
        "Tensor.ones([1, 1, 1], x.device()), None, "
        "module.ConvTransposeOptions(1, 0, 1)).backward()))("
        "Tensor.ones([1, 1, 2], Autodiff(Numpy())).require_grad()).dims()",
        gives="(1, 1, 2)",
        ops="ConvTranspose1d ConvTranspose2d ConvTranspose3d conv_transpose1d "
        "conv_transpose2d conv_transpose3d",
        when=_pads_too_much,
    ),
    _row(
        "gradients",
        "norms of one value",
        "the gradient of GroupNorm and InstanceNorm is NaN where a group has one value",
        "is 0",
        "the output does not depend on x",
        example="(lambda x: x.grad(nn.InstanceNormConfig(2).init(x.device())"
        ".forward(x).backward()))("
        "Tensor.ones([1, 2], Autodiff(Numpy())).require_grad())",
        gives="[[0.0, 0.0]]",
        ops="GroupNorm InstanceNorm",
        when=lambda call: call.tracked is not None and _lonely(call),
    ),
    _row(
        "gradients",
        "gelu's gradient",
        "that of an approximation with tanh, right to three digits",
        "Φ(x) + x φ(x); also in transformers",
        "the gradient of the function that is computed",
        example="(lambda x: x.grad(activation.gelu(x).backward()))("
        "Tensor.from_floats([1.0], Autodiff(Numpy())).require_grad())",
        gives="[1.0833]",
        ops="gelu Gelu PositionWiseFeedForward TransformerEncoder TransformerDecoder",
        when=lambda call: call.tracked is not None,
    ),
    _row(
        "gradients",
        "max pooling of images that are not square",
        "indices count with the height, so they and the gradient point elsewhere",
        "row · width + column",
        "a defect of 0.15",
        example="module.max_pool2d_with_indices("
        "Tensor.from_floats([[[[1.0, 2.0, 3.0], [6.0, 5.0, 4.0]]]]), 2, stride=1)[1]",
        gives="[[[[3, 4]]]]",
        ops="max_pool2d max_pool2d_with_indices MaxPool2d",
        when=not_square,
    ),
    _row(
        "gradients",
        "convolutions in groups, with a stride",
        "the weights' gradient panics where the stride leaves a rest",
        "has a gradient",
        "a defect of 0.15",
        ops="conv1d conv2d conv3d Conv1d Conv2d Conv3d",
        when=lambda call: call.tracked is not None and grouped(call),
        proof="tests/torch/test_torch_conv.py::test_conv",
    ),
    _row(
        "gradients",
        "deform_conv2d in groups of offsets",
        "the gradients of offsets and mask ignore the group",
        "each group of channels has its own",
        "a defect of 0.15",
        ops="deform_conv2d DeformConv2d",
        when=lambda call: call.tracked is not None and grouped(call),
        proof="tests/tensor/test_functional.py::"
        "test_gradients_of_deform_conv2d_reach_every_input",
    ),
    _row(
        "gradients",
        "interpolation has gradients",
        "only Nearest; Bilinear and Bicubic panic",
        "every mode",
        "a decoder must be trained",
        example="(lambda x: x.grad(module.interpolate(x, 3, "
        'module.InterpolateOptions("Bilinear")).backward()))('
        "Tensor.ones([1, 1, 2], Autodiff(Numpy())).require_grad())",
        gives="[[[1.5, 1.5]]]",
        ops="interpolate Interpolate1d Interpolate2d",
        when=lambda call: call.tracked is not None,
    ),
    _row(
        "gradients",
        "grad of a result",
        "grad() of a tensor that an operation made is None",
        "is an error that says so",
        "None looks as if no gradient had reached it",
        example="(lambda y: y.grad(y.backward()))("
        "Tensor.ones([2], Autodiff(Numpy())).require_grad() * 2)",
        gives="GraphError: grad: this tensor is the result of mul, which keeps none",
    ),
    _row(
        "layers",
        "padding Same keeps sizes",
        "pads both ends alike and leaves dilation out, so an even kernel makes the "
        "output larger, and a dilated one smaller",
        "keeps the size; one zero more is at the end where a kernel is even. "
        "SymmetricSame has Burn's formula",
        "as in PyTorch and newer Burn: the name says so",
        example="nn.Conv1dConfig(1, 1, 2).with_padding(nn.PaddingConfig1d.Same)"
        ".init(Numpy()).forward(Tensor.ones([1, 1, 5])).dims()",
        gives="(1, 1, 5)",
        ops="Conv1d Conv2d Conv3d DeformConv2d MaxPool1d MaxPool2d AvgPool1d AvgPool2d",
        when=_unlike_same,
    ),
    _row(
        "layers",
        "transposed convolutions in groups",
        "with several channels in a group half of the outputs are doubled, others 0",
        "each group by itself",
        "a defect of 0.15",
        ops="ConvTranspose1d ConvTranspose2d ConvTranspose3d conv_transpose1d "
        "conv_transpose2d conv_transpose3d",
        when=grouped,
        proof="tests/torch/test_torch_conv.py::test_conv_transpose",
    ),
    _row(
        "layers",
        "offset_groups of a DeformConv2d",
        "the config's offset_groups is passed over: the layer takes weight_groups",
        "is heeded",
        "a defect of 0.15",
        example="nn.DeformConv2dConfig([4, 4], [3, 3]).with_offset_groups(2)"
        ".init(Numpy()).offset_groups",
        gives="2",
        ops="DeformConv2d",
        when=lambda call: (
            settings(call)["offset_groups"] != settings(call)["weight_groups"]
        ),
    ),
    _row(
        "layers",
        "attention with quiet_softmax",
        "see quiet_softmax: the 1 is not scaled",
        "exp(x) / (1 + Σ exp(x))",
        "newer Burn mended it",
        ops="MultiHeadAttention MultiHeadAttentionCache MultiHeadAttentionCrossCache "
        "TransformerEncoder TransformerDecoder TransformerEncoderCache "
        "TransformerDecoderCache",
        when=has("quiet_softmax", value=True),
        proof="tests/nn/test_attention.py::test_attention_with_every_mask",
    ),
    _row(
        "layers",
        "Gru remembers",
        "every step reads the initial state, [b, s, h], and never the step before",
        "is recurrent; the state is [b, h]",
        "a defect of 0.15, mended in newer Burn",
        example="nn.GruConfig(1, 1, False).init(Numpy()).forward("
        "Tensor.ones([1, 3, 1]), Tensor.zeros([1, 1])).dims()",
        gives="(1, 3, 1)",
        ops="Gru",
        when=lambda call: any(len(s) == 3 and s[1] > 1 for s in shapes(call)),
    ),
    _row(
        "layers",
        "GruConfig says reset_after",
        "has no such field: the reset gate acts before the matrix product",
        "True unless told otherwise, as in newer Burn and PyTorch; weights of Burn "
        "0.15 want reset_after=False",
        "the two are different layers, so the file says which",
        example="nn.GruConfig(2, 3, True).reset_after",
        gives="True",
        ops="GruConfig",
    ),
    _row(
        "layers",
        "RotaryEncoding shows its width",
        "shows half of it",
        "shows d_model",
        "a defect of 0.15",
        example="nn.RotaryEncodingConfig(10, 4).init(Numpy())",
        gives="RotaryEncoding {d_model: 4, max_sequence_length: 10, theta: 10000}",
        ops="RotaryEncoding",
    ),
    _row(
        "layers",
        "cross entropy of probabilities",
        "logits=False is heeded only with smoothing, or softmax is applied again",
        "is heeded always",
        "a defect of 0.15",
        example="nn.CrossEntropyLossConfig().with_logits(False).init(Numpy()).forward("
        "Tensor.from_floats([[0.5, 0.5]]), Tensor.from_ints([0]))",
        gives="[0.6931]",
        ops="CrossEntropyLoss",
        when=has("logits", value=False),
    ),
    _row(
        "layers",
        "the logarithm of 0 in cross entropies",
        "the loss is ∞, or NaN as 0 · ∞",
        "log 0 counts as −100",
        "as in PyTorch: one wrong certainty does not end a training",
        example="nn.BinaryCrossEntropyLossConfig().init(Numpy()).forward("
        "Tensor.from_floats([0.0]), Tensor.from_ints([1]))",
        gives="[100.0]",
        ops="BinaryCrossEntropyLoss CrossEntropyLoss",
        when=lambda call: some(lambda x: (x == 0) | (x == 1))(call),
    ),
    _row(
        "layers",
        "BatchNorm does not train on one value",
        "gives β, whatever x is",
        "is an error where a batch has one value for each channel",
        "it has no variance; as in PyTorch",
        example="nn.BatchNormConfig(3).init(Autodiff(Numpy())).forward("
        "Tensor.ones([1, 3], Autodiff(Numpy())))",
        gives="ShapeError: BatchNorm: batch_norm: one value per channel has no "
        "variance to train with",
        ops="BatchNormTraining BatchNorm",
        when=_single,
    ),
    _row(
        "layers",
        "HammingScore in f64",
        "logs what f32 makes of it: 58.33333134651184",
        "58.333333333333336",
        "the share of two counts, as for every other metric",
        ops="HammingScore",
        proof="tests/train/test_metric_classes.py::"
        "test_hamming_score_is_one_minus_the_loss_of_scikit_learn",
    ),
    _row(
        "layers",
        "accuracy of what is no class",
        "a target that is no class is a miss, and one column of scores always class 0",
        "both are errors; AccuracyMetric.binary() measures one score for each example",
        "a share that looks like any other is taken for the model's",
        example="train.AccuracyMetric().update(train.AccuracyInput("
        "Tensor.from_floats([[0.2], [0.9]]), Tensor.from_ints([0, 1])), None)",
        gives="ShapeError: Accuracy: one score for each example: the best of one class "
        "says nothing",
        ops="AccuracyMetric TopKAccuracyMetric",
        when=_no_class,
    ),
    _row(
        "layers",
        "accuracy of batches with padding",
        "a batch counts for the epoch by all its targets, padding too",
        "it counts by the targets that are not padding",
        "the share of an epoch is that of its targets, however they lie in batches",
        example="train.AccuracyMetric().with_pad_token(2).update(train.AccuracyInput("
        "Tensor.from_floats([[0.2, 0.9], [0.9, 0.2]]), Tensor.from_ints([1, 2])), None)"
        ".serialize",
        gives="100,1",
        ops="AccuracyMetric TopKAccuracyMetric",
        when=_some_padding,
    ),
    _row(
        "layers",
        "quantizing zeros",
        "panics: 0 / 0",
        "the scale is 0.1, the codes are 0",
        "what Burn's own strategies do for a scale of 0",
        example="Tensor.zeros([3]).quantize_dynamic("
        "QuantizationScheme.PerTensorAffine()).dequantize()",
        gives="[0.0, 0.0, 0.0]",
        ops="quantize_dynamic compute_q_params dequantize quantize quantized_matmul",
        when=lambda call: any(not np.any(x) for x in call.arrays().values()),
    ),
    _row(
        "records",
        "a Gru from before Burn 0.17",
        "loads it, and newer Burn computes other numbers with its weights",
        "loads it, and warns where reset_after is True",
        "until 0.16 the reset gate acts before the product; the version is in the file",
        proof="tests/record/test_older_fields.py::"
        "test_a_gru_that_burn_computed_otherwise_warns_with_a_cure_that_works",
    ),
    _row(
        "records",
        "a Gru for Burn before 0.17",
        "has no field reset_after until 0.16, and leaves an unknown key out",
        "named records have the key reset_after where it is True; Bin has no room",
        "so that burnbook's own files are told from those of older Burn",
        proof="tests/record/test_older_fields.py::"
        "test_a_gru_for_older_burn_has_one_key_more_in_named_records",
    ),
    _row(
        "records",
        "a layer norm without bias, coupled gates",
        "have always a bias until 0.19, and a forget gate until 0.21",
        "a LayerNorm without bias is refused in Bin for Burn before 0.20, an Lstm with "
        "input_forget in every Bin; what older files have too much is left out",
        "without names every later byte would be read as something else",
        example="BinBytesRecorder().record("
        "nn.LayerNormConfig(2, bias=False).init(Numpy()))",
        gives="RecordError: write bytes: beta is absent, which Burn 0.15.0 does not "
        "allow there",
    ),
    _row(
        "records",
        "parameters that a release has no field for",
        "keeps no activation of a feed-forward, and of an Lstm none until 0.19",
        "they stand at the end of named records, where Burn leaves them out and "
        "burnbook reads them; Bin refuses them, and Burn 0.22 a .bpk with them unless "
        "allow_unused(true)",
        "nothing that was learned is lost without a word",
        proof="tests/record/test_older_fields.py::"
        "test_parameters_without_a_field_stay_at_the_end_of_named_records",
    ),
    _row(
        "records",
        "records of optimizers and schedules that do not fit",
        "0.22 passes over states of other parameters and over other groups in silence",
        "is an error when the record is loaded, or at the next step",
        "a wrong file would look like a right one",
        proof="tests/optim/test_groups.py::"
        "test_a_record_of_other_groups_is_refused_at_the_step",
    ),
    _row(
        "records",
        "a cosine in a composed schedule",
        'is filed under "Linear" by 0.19 and 0.20, whose own loader refuses it',
        'is filed under "Cosine"; both are read',
        "mended in 0.21",
        example="lr_scheduler.ComposedLrSchedulerConfig().cosine("
        "lr_scheduler.CosineAnnealingLrSchedulerConfig(0.5, 4)).init().into_record()",
        gives="{'schedulers': [{'Cosine': 18446744073709551615}]}",
    ),
    _row(
        "records",
        "the record of a constant rate in Bin",
        "is nothing at all",
        "is nothing if the schedule is recorded, and one byte 0 if into_record() is",
        "into_record() of a constant rate is None, as is that of a module without "
        "parameters; both are read",
        proof="tests/record/test_bincode.py::"
        "test_a_constant_rate_is_nothing_and_its_bare_record_one_byte",
    ),
    _row(
        "records",
        "codes with an offset in burnpack",
        "0.22 has symmetric schemes alone",
        "PerTensorAffine is refused in .bpk; records for Burn 0.15 and 0.16 hold it",
        "without the offset the codes would stand for other numbers",
        proof="tests/record/test_burnpack.py::test_an_offset_has_no_place",
    ),
    _row(
        "records",
        "clipping by the norm of all parameters",
        "is not there: its Norm is that of each parameter",
        'is GradientClippingConfig.GlobalNorm(1.0), {"GlobalNorm": 1.0} in a config, '
        "which Burn does not read",
        "it is what PyTorch's clip_grad_norm_ does; a config without it stays Burn's",
        proof="tests/torch/test_torch_optim.py::"
        "test_clipping_by_global_norm_is_clip_grad_norm",
    ),
    _row(
        "records",
        "callbacks in a checkpoint",
        "are not there",
        "add callbacks-3.mpk to the three files, if there are any with a state",
        "a resumed run gives what a whole one does; Burn reads the other three",
        proof="tests/train/test_callback.py::"
        "test_checkpoints_of_callbacks_come_and_go_with_the_others",
    ),
    _row(
        "records",
        "factors of averages in f64",
        "β of Adam and its kin are f32, whatever the backend is",
        "are f32 as in Burn, but on a backend of f64 as the config has them",
        "f64 is chosen for its digits; 1 − 0.999 in f32 has four right ones",
        proof="tests/optim/test_records.py::"
        "test_the_factors_of_adam_have_the_digits_of_the_backend",
    ),
    _row(
        "records",
        "half precision in Lion and Lamb",
        "0.22 computes a step in the precision of the weights; Adafactor's in single",
        "computes and remembers all three in single, and rounds the weights",
        "squares of small gradients are 0 in half precision",
        proof="tests/optim/test_newer_rules.py::test_half_precision_follows_single",
    ),
    _row(
        "records",
        "LinearLayout.Col draws as Row does",
        "0.22 swaps the fans of a weight stored by columns",
        "both layouts begin with the same numbers",
        "a layout says how a record is stored, not what the layer is",
        proof="tests/nn/test_layout.py::test_both_layouts_compute_and_print_the_same",
    ),
    _row(
        "records",
        "deformable convolution with unequal paddings",
        "0.22 panics where the sides of a dim differ",
        "pads each side as it is told",
        "every other convolution does, there too",
        proof="tests/nn/test_padding.py::test_a_deformable_convolution_is_padded_too",
    ),
    _row(
        "python",
        "sizes are tuples",
        "dims() is an array, shape() a struct",
        "both are tuples; dims() equals a list, too",
        "what Python unpacks and compares",
        example="Tensor.zeros([2, 3]).dims() == [2, 3]",
        gives="True",
    ),
    _row(
        "python",
        "brackets pick as in NumPy",
        "slice takes ranges; select and gather take indices from 0",
        "x[…] takes ints, steps, lists, indices and masks too; −1 is the last",
        "one way for all of them, which readers know",
        example="Tensor.from_ints([5, 6, 7])[[0, -1]]",
        gives="[5, 7]",
    ),
    _row(
        "python",
        "a copy with other elements",
        "slice_assign, select_assign, scatter and mask_fill make it",
        "x.at[…].set(value) and .add(value) do, too, with whatever picks",
        "x[…] = value would change a tensor in place",
        example="Tensor.zeros([3]).at[1].set(2.0)",
        gives="[0.0, 2.0, 0.0]",
    ),
    _row(
        "python",
        "sums by equations, and deviations",
        "has neither; var and vector_norm take one dim",
        "has einsum, std and logsumexp; they take several dims, or all",
        "projects that come from PyTorch and NumPy are full of them",
        example='Tensor.einsum("ii->", Tensor.eye(3))',
        gives="[3.0]",
    ),
    _row(
        "records",
        "two tensors with one new name",
        "the later one takes the place of the other",
        "an error names both",
        "a rule that is too wide would lose weights silently",
        proof="tests/importers/test_key_remap.py::"
        "test_two_tensors_with_one_new_name_are_an_error_that_names_both",
    ),
    _row(
        "records",
        "loading from a store",
        "load_from changes the module in place and gives an ApplyResult",
        "gives both: model, result = model.load_from(store)",
        "modules never change in place; load_partial reads the same way",
        proof="tests/importers/test_store.py::test_everything_is_applied",
    ),
    _row(
        "records",
        "shapes in a file of PyTorch",
        "0.15 takes the shapes of the file",
        "an array of another shape than the parameter is an error",
        "as in newer Burn: a wrong file shows at once",
        proof="tests/importers/test_store.py::"
        "test_misfits_are_errors_unless_they_are_not_validated",
    ),
    _row(
        "records",
        "the record of a file of PyTorch",
        "has Burn's names and layout, as its type says which layers there are",
        "gets them from the module that loads it; to be saved without one, "
        "load(path, device, module=model)",
        "only a module knows whether a matrix is that of a Linear",
        proof="tests/importers/test_golden_pytorch.py::"
        "test_a_record_that_needs_its_module_is_not_saved_without",
    ),
    _row(
        "records",
        "recurrent layers and attention in files of PyTorch",
        "are not mapped",
        "nn.LSTM, nn.GRU, nn.RNN, nn.MultiheadAttention and the layers of "
        "nn.Transformer are, in both directions; InstanceNorm and PRelu as well",
        "users have asked for it since 2024",
        proof="tests/importers/test_layers.py::test_recurrent_layers",
    ),
    _row(
        "records",
        "strides, offsets, complex and quantized tensors in files of PyTorch",
        "0.15 misreads offsets, newer Burn strides; what is of another type is lost",
        "views are read as PyTorch reads them; other tensors are listed as skipped, "
        "each with a cure",
        "weights that are read wrong look like weights",
        proof="tests/importers/test_torch_files.py::test_every_file_has_its_tensors",
    ),
    _row(
        "records",
        "numbers in names of a file of PyTorch",
        "0.22 renumbers them without gaps before it looks at the module",
        "closes gaps where the module has a list; a Sequential keeps the numbers of "
        "its functions, and activations in a list are passed over",
        "both say 0 and 2 for two layers around an activation",
        proof="tests/importers/test_store.py::"
        "test_sequential_keeps_the_numbers_of_its_functions",
    ),
    _row(
        "records",
        "a config in a file of PyTorch",
        "0.15 fills fields that are missing with 0, false or nothing",
        "a missing field keeps its default, or is an error",
        "as Config.load does, and newer Burn",
        proof="tests/importers/test_golden_pytorch.py::test_a_config_from_a_file",
    ),
    _row(
        "records",
        "a regex that is none, in a filter",
        "is left out in silence",
        "is an error",
        "the filter would let other parameters pass than it says",
        proof="tests/importers/test_store.py::"
        "test_what_rust_s_patterns_have_not_is_refused",
    ),
    _row(
        "python",
        "modules never change",
        "fields of a module are assigned to",
        "are not: replace() gives another module",
        "a model one holds is the model one saved",
        example='setattr(nn.LinearConfig(2, 3).init(Numpy()), "bias", None)',
        gives="FrozenError: Linear.bias: a module never changes in place",
    ),
    _row(
        "python",
        "tied parameters count once",
        "num_params counts a parameter as often as it is used",
        "counts it once",
        "it is stored and trained once",
        proof="tests/module/test_module.py::test_what_is_tied_counts_once",
    ),
    _row(
        "python",
        "running statistics belong to one module",
        "clones share them",
        "a step, map and clone give the new module its own",
        "training the new one leaves the old one as it was",
        proof="tests/nn/test_norm.py::test_copies_have_averages_of_their_own",
    ),
    _row(
        "python",
        "a learning rate below 0",
        "climbs",
        "is an error",
        "a sign is easily lost",
        example="optim.SgdConfig().init().step(-0.1, "
        "nn.LinearConfig(2, 1).init(Autodiff(Numpy())), optim.GradientsParams())",
        gives="ConfigError: step: -0.1 is below 0: the step would go uphill",
    ),
    _row(
        "python",
        "check_closeness returns its report",
        "prints it",
        "returns it, and prints it where nobody takes it",
        "a notebook shows it as a table, a test asks it",
        example="check_closeness([1.0, 2.0], [1.0, 2.1]).level(0.1).close",
        gives="2",
    ),
    _row(
        "python",
        "a learner that has trained",
        "is gone: fit takes it and gives the model",
        "holds the trained model, optimizer and schedule, and another fit goes on",
        "a notebook's cell is run again, and names stay",
        proof="tests/train/test_going_on.py::test_two_fits_are_one_of_as_many_epochs",
    ),
    _row(
        "python",
        "training without validation",
        "fit wants both loaders",
        "fit(train) trains without; what asks for a metric of validation is refused",
        "generative models, and fields fitted to one image, have no validation data",
        proof="tests/train/test_without_validation.py::"
        "test_the_weights_are_those_of_a_training_with_validation",
    ),
    _row(
        "python",
        "Fusion is asked for",
        "GPU backends fuse by default, and panic late where an op fails",
        "Fusion(B) decorates any backend below Autodiff; shapes and indices are "
        "checked at the call, and a late error names the op and the line",
        "over small arrays on a CPU, writing down costs more than it saves",
        example="Fusion(Autodiff(Numpy()))",
        gives="BackendError: Fusion: Autodiff(Numpy()) keeps what ran, and nothing "
        "has run yet",
    ),
    _row(
        "python",
        "one training per folder",
        "two trainings may write into one folder",
        "the second is refused while the first runs",
        "their checkpoints would be mixed",
        proof="tests/train/test_live.py::"
        "test_a_second_training_of_this_process_is_refused_and_hurts_nobody",
    ),
)
