"""Where an operation is less exact than its type could be: one row for each reason.

    accuracy()    all rows, to be looked at

Everything else is meant to be right in relative terms: in float16, float32 and float64,
for every number from the smallest to the largest, with and without compiled kernels,
fused and captured. Tests draw the ops from their declarations, compare them with the
same formulas in numbers of 400 digits, and let pass only what a row here allows; a row
that nothing needs fails them too. Results smaller than 1000 times the smallest normal
number may be zero.
"""

from dataclasses import dataclass

from burnbook.reference.appendix import page_table

HEADS = {"functions": 22, "of": 10, "what holds instead": 30, "why": 38}


@dataclass(frozen=True)
class Inexact:
    """One row: functions, and what holds of them instead.

    names: ops and functions. part: "value", "gradient" or "both". bound: what tests let
    pass: "absolute" (an error of some units in the last place of 1, however small the
    result), "one" (off by one), "inner" (∞ where the result nearly is), "infinite" (NaN
    at ±∞), "far" (not from the scale `beyond` on, or below its inverse).
    """

    names: str
    part: str
    bound: str
    holds: str
    why: str
    beyond: float = 0.0

    def covers(self, name: str, part: str, bound: str) -> bool:
        """Whether the row speaks of this part of a function."""
        is_part = self.part in (part, "both")
        return name in self.names.split() and is_part and self.bound == bound


ROWS = (
    Inexact(
        "tanh sigmoid",
        "gradient",
        "absolute",
        "The error is absolute: where the curve is flat to the last digit, it is 0.",
        "It is found from the result alone, as 1 − out² and out (1 − out), so that the "
        "tape keeps one array; PyTorch does the same.",
    ),
    Inexact(
        "gelu",
        "both",
        "absolute",
        "The error is absolute: below −5 the small rest loses digits.",
        "It is x (1 + erf(x/√2)) / 2 as in PyTorch, and 1 + erf cancels there.",
    ),
    Inexact(
        "softplus",
        "value",
        "inner",
        "∞ where βx is beyond the largest number.",
        "x is multiplied by β first.",
    ),
    Inexact(
        "silu mish gelu",
        "both",
        "infinite",
        "NaN at −∞, the gradient at +∞ as well.",
        "They are x times a gate that is 0 there, and ∞ · 0 is NaN; PyTorch's are too.",
    ),
    Inexact(
        "atan2 hypot powf",
        "gradient",
        "infinite",
        "NaN where an input is ±∞.",
        "They are quotients and products of what is infinite there; PyTorch's are too.",
    ),
    Inexact(
        "batch_norm group_norm layer_norm rms_norm",
        "both",
        "far",
        "Wrong from about 1e19 on in float32.",
        "The variance is beyond the largest number; PyTorch's is too.",
        beyond=1e19,
    ),
    Inexact(
        "cosine_similarity vector_normalize",
        "both",
        "far",
        "An ε counts below 1e-30; there and from 1e30 on the gradient loses digits.",
        "Squares of lengths are beyond the smallest or the largest number.",
        beyond=1e29,
    ),
    Inexact(
        "softsign tanhshrink",
        "both",
        "far",
        "The error is absolute, and seen where the result is far smaller than x.",
        "They are differences of numbers that are nearly equal; PyTorch's are too.",
        beyond=300.0,
    ),
    Inexact(
        "lstm gru rnn attention ctc_loss rnnt_loss",
        "gradient",
        "far",
        "Gradients that are far smaller than usual lose digits.",
        "They go through the gradient of tanh, or of scores of 10,000.",
        beyond=300.0,
    ),
    Inexact(
        "rmsprop_momentum_step",
        "value",
        "far",
        "Not for weights of 1e30.",
        "The square of their decay is beyond the largest number.",
        beyond=1e29,
    ),
    Inexact(
        "group_norm",
        "gradient",
        "far",
        "A group of one number has a gradient of some rounding errors instead of 0.",
        "It is a difference of equal numbers, found in different ways.",
        beyond=1e4,
    ),
    Inexact(
        "remainder_scalar",
        "value",
        "far",
        "The rest of a small negative number is 0, not the divisor.",
        "x % y of a tensor and a number is always below y, as in Burn. NumPy and "
        "PyTorch give y, to which y − 1e-8 rounds.",
        beyond=1e4,
    ),
    Inexact(
        "cofactor",
        "gradient",
        "far",
        "NaN from 1e19 on in float32.",
        "Products of elements are beyond the largest number.",
        beyond=1e19,
    ),
)


class Accuracy:
    """The rows, to be looked at."""

    def __repr__(self) -> str:
        return f"Accuracy: {len(ROWS)} exceptions"

    def _repr_html_(self) -> str:
        lines = []
        for row in ROWS:
            names = ", ".join(f"<tt>{name}</tt>" for name in row.names.split())
            part = {"both": "value, gradient"}.get(row.part, row.part)
            cells = (names, part, row.holds, row.why)
            told = "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells)
            lines.append(f"<tr>{told}</tr>")
        return page_table(HEADS, lines)


def accuracy() -> Accuracy:
    """Where an operation is less exact than its type could be, and why."""
    return Accuracy()
