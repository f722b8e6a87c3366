"""The table of operations: Burn's functions, and ours.

`python -m burnbook.reference.stubs --table` prints it, appendix A1 shows it. Every
section of
the book is here, and what newer Burn adds; a name that differs from Burn's is written
`theirs=ours`. Behind a colon stands PyTorch's name, or nothing where other_names.txt
has it. Kinds, shapes and gradients come from the ops and from `composed`.
"""

import functools
import inspect
import re
from dataclasses import dataclass
from typing import Any

from burnbook.core.op import OPS
from burnbook.core.other_names import tables
from burnbook.reference.composed import composed
from burnbook.tensor import Tensor, activation, grid, linalg, signal

BOOK = {
    "basic": """
        cat:cat empty:empty from_primitive stack:stack all:all all_dim:all any:any
        any_dim:any chunk:chunk device:device dims: equal: expand:expand
        flatten:flatten flip:flip into_data into_primitive into_scalar:item
        narrow:narrow not_equal: permute:permute movedim:movedim repeat_dim:repeat
        repeat:repeat reshape: shape:shape slice slice_assign squeeze:squeeze
        to_data to_device: unsqueeze:unsqueeze unsqueeze_dim:unsqueeze""",
    "numeric": """
        eye:eye full:full ones:ones zeros:zeros abs:abs add:add add_scalar:add
        all_close: argmax:argmax argmin:argmin argsort:argsort
        argsort_descending:argsort bool:bool clamp:clamp clamp_max:clamp
        clamp_min:clamp contains_nan div:div div_scalar:div equal_elem:eq
        full_like:full_like gather:gather greater: greater_elem:gt greater_equal:
        greater_equal_elem:ge is_close: is_nan: lower: lower_elem:lt
        lower_equal: lower_equal_elem:le mask_fill: mask_where:
        max:max max_dim:max max_dim_with_indices max_pair: mean:mean
        mean_dim:mean min:min min_dim:min min_dim_with_indices min_pair: mul:mul
        mul_scalar:mul neg:neg not_equal_elem:ne ones_like:ones_like pad:pad powf:pow
        powi:pow powf_scalar: powi_scalar:pow prod:prod prod_dim:prod
        rem=remainder:remainder scatter:scatter_add select: select_assign
        sign:sign sort:sort sort_descending:sort sort_descending_with_indices:sort
        sort_with_indices:sort sub:sub sub_scalar:sub sum:sum sum_dim:sum topk:topk
        topk_with_indices:topk tril:tril triu:triu zeros_like:zeros_like""",
    "float": """
        one_hot ceil:ceil cos:cos erf:erf exp:exp floor:floor from_floats
        from_full_precision int: log:log log1p:log1p matmul:matmul random
        random_like: recip: round:round sin:sin sqrt:sqrt
        swap_dims:transpose tanh:tanh to_full_precision:float transpose:T var:var
        var_bias var_mean var_mean_bias""",
    "int": """
        arange:arange arange_step:arange float:float from_ints int_random
        cartesian_grid one_hot""",
    "bool": """
        diag_mask tril_mask triu_mask argwhere:argwhere float:float int:
        nonzero:nonzero not=bool_not:""",
    "quantization": "quantize dequantize",
    "autodiff": """
        detach:detach require_grad:requires_grad_ is_require_grad:requires_grad
        set_require_grad:requires_grad_ backward:backward grad:grad grad_remove inner
        from_inner""",
    "activation": """
        gelu: hard_sigmoid: leaky_relu: log_sigmoid:
        log_softmax:log_softmax mish: prelu: quiet_softmax relu:relu
        sigmoid:sigmoid silu: softmax:softmax softmin: softplus:
        tanh:tanh""",
}
SOURCE = {
    "basic": """
        from_data transpose:T swap_dims:transpose squeeze_dims unsqueeze_dims iter_dim
        inplace""",
    "numeric": "remainder_scalar:remainder",
    "float": "cov:cov into_full_precision:float",
    "quantization": "quantize_dynamic",
    "bool": "from_bool bool_not:",
    "autodiff": "grad_replace",
    "activation": "cross_entropy_with_logits:cross_entropy",
}
NEWER = {
    "basic": """
        dtype cast:to rank:dim empty_like:empty_like split:split split_with_sizes:split
        roll:roll roll_dim:roll slice_dim slice_fill select_dim:select take:take
        gather_nd scatter_nd mask_select: t:t unfold:unfold squeeze_dim
        equal_scalar:eq not_equal_scalar:ne""",
    "numeric": """
        argtopk:topk cumsum:cumsum cumprod:cumprod cummin:cummin cummax:cummax dot:dot
        max_abs max_abs_dim max_abs_dims max_dims:amax mean_dims:mean min_dims:amin
        prod_dims sum_dims:sum sum_dims_squeeze:sum one_hot_fill remainder:remainder
        fmod:fmod fmod_scalar:fmod greater_scalar:gt greater_equal_scalar:ge
        lower_scalar:lt lower_equal_scalar:le square:square""",
    "float": """
        trunc:trunc is_finite: is_inf: acos:acos acosh:acosh asin:asin
        asinh:asinh atan:atan atanh:atanh atan2:atan2 cosh:cosh sinh:sinh tan:tan
        hypot:hypot deg2rad:deg2rad rad2deg:rad2deg cross:cross median:median
        median_with_indices:median grid_sample_2d: categorical:multinomial
        """,
    "int": """
        bitwise_and:bitwise_and bitwise_or:bitwise_or bitwise_xor:bitwise_xor
        bitwise_not:bitwise_not bitwise_left_shift:bitwise_left_shift
        bitwise_right_shift:bitwise_right_shift bitwise_and_scalar bitwise_or_scalar
        bitwise_xor_scalar bitwise_left_shift_scalar bitwise_right_shift_scalar""",
    "bool": "bool_and: bool_or: bool_xor:",
    "activation": """
        celu: elu: glu:glu gelu_approximate:gelu hard_shrink:
        hard_swish: hardtanh: relu6: selu: shrink
        soft_shrink:softshrink softsign: tanhshrink:tanhshrink
        threshold:threshold thresholded_relu:threshold""",
    "linalg": """
        cosine_similarity:cosine_similarity det: diag: l0_norm l1_norm
        l2_norm lp_norm lu:lu lu_decomposition:lu_factor qr: matvec:matmul
        max_abs_norm min_abs_norm outer:outer outer_dim trace:
        vector_norm:vector_norm vector_normalize:normalize""",
    "signal": """
        rfft:rfft irfft:irfft cfft:fft stft:stft istft:istft
        blackman_window:blackman_window hamming_window:hamming_window
        hann_window:hann_window""",
    "grid": "affine_grid_2d:affine_grid meshgrid: meshgrid_stack",
}
# What Burn has not, under the name of the field.
OURS = {
    "basic": "at:index_put",
    "numeric": "einsum:einsum",
    "float": "logsumexp:logsumexp std:std std_bias:std",
}
# What newest Burn calls those of 0.15 that have another name there.
RENAMED = {
    "rem": "remainder",
    "not": "bool_not",
    "squeeze": "squeeze_dim",
    "int_random": "random",
    "into_primitive": "try_into_primitive",
    "from_full_precision": "cast",
    "to_full_precision": "cast",
    "into_full_precision": "cast",
    "equal_elem": "equal_scalar",
    "not_equal_elem": "not_equal_scalar",
    "greater_elem": "greater_scalar",
    "greater_equal_elem": "greater_equal_scalar",
    "lower_elem": "lower_scalar",
    "lower_equal_elem": "lower_equal_scalar",
}
HOMES: dict[str, Any] = {
    "activation": activation,
    "linalg": linalg,
    "signal": signal,
    "grid": grid,
}


@dataclass(frozen=True)
class Row:
    """One function of Burn, and what there is of it here."""

    edition: str  # "book", "source" (0.15, not in the book), "newer", "ours"
    section: str
    burn: str  # "" of "ours"
    name: str
    torch: str
    present: bool
    kinds: str  # "FF>F II>I" of an op, "F I > B" of a function made of ops
    gradient: str  # "yes", "no", or "" where there is none to speak of
    shapes: str
    summary: str  # the first sentence of its help
    is_op: bool

    @property
    def newest(self) -> str:
        """What newest Burn calls it."""
        return RENAMED.get(self.burn, self.burn)


def rows() -> list[Row]:
    """Every function of Burn, in the order of the book, and what Burn has not."""
    editions = {"book": BOOK, "source": SOURCE, "newer": NEWER, "ours": OURS}
    return [
        _row(edition, section, entry)
        for edition, table in editions.items()
        for section, text in table.items()
        for entry in text.split()
    ]


def text() -> str:
    """The whole table, and how much of it there is."""
    found = rows()
    lines = [
        f"{'Burn':30}{'here':30}{'section':14}{'edition':9}"
        f"{'kinds':22}{'gradient':10}PyTorch"
    ]
    for row in found:
        here = row.name if row.present else "MISSING"
        lines.append(
            f"{row.burn:30}{here:30}{row.section:14}{row.edition:9}"
            f"{row.kinds:22}{row.gradient:10}{row.torch}".rstrip()
        )
    present = sum(row.present for row in found)
    lines.append(f"{present} of {len(found)} functions are present")
    return "\n".join(lines) + "\n"


def _row(edition: str, section: str, entry: str) -> Row:
    names, colon, torch = entry.partition(":")
    burn, _, name = names.partition("=")
    name = name or burn
    if colon and not torch:
        torch = _elsewhere()[name]
    home = HOMES.get(section, Tensor)
    present = hasattr(home, name) or name in Tensor.__slots__
    op, known = OPS.get(name), composed(section, name)
    help_text = inspect.getdoc(getattr(home, name, None)) or ""
    kinds = gradient = ""
    if op:
        kinds, gradient = op.row, "yes" if op.rules else "no"
    elif known:
        kinds, gradient = known.kinds, known.gradient
    shapes = _shapes(op.__doc__ or "") if op else ""
    shapes = shapes or _shapes(help_text) or (known.shapes if known else "")
    if name == "rank":
        help_text = "The number of dims."
    summary = " ".join(help_text.split("\n\n")[0].split())
    about = (kinds, gradient, shapes, summary, op is not None)
    burn = "" if edition == "ours" else burn
    return Row(edition, section, burn, name, torch, present, *about)


@functools.cache
def _elsewhere() -> dict[str, str]:
    """What PyTorch calls a method that has another name there."""
    found: dict[str, str] = {}
    for name, advice in tables()["Tensor"].items():
        call = re.match(r"\w+\.(\w+)\(", advice.code)
        if call and not name.endswith("_"):
            found.setdefault(call[1], name)
    return found


def _shapes(text: str) -> str:
    """What the `Shapes:` line of a docstring says."""
    found = re.search(r"^ *Shapes: (.+)$", text, re.MULTILINE)
    return found[1] if found else ""
