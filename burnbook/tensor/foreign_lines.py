"""What functions of NumPy and PyTorch are in burnbook: lines with the same parameters.

The names are those of the other libraries, where a method of a tensor has another name
or other arguments; the rest is in other_names.txt.
"""

# Functions that ask something of the values, or write them somewhere: no gradient is
# lost that anybody could want.
LOOKING = """
shape ndim size result_type can_cast may_share_memory shares_memory copy copyto put
place putmask array_equal array_equiv allclose isclose array_repr array_str array2string
save savez savez_compressed savetxt histogram histogram_bin_edges histogram2d
histogramdd bincount unique unique_values unique_counts digitize searchsorted
count_nonzero argmax argmin argsort argpartition argwhere nonzero flatnonzero lexsort
any all isin in1d iscomplexobj isrealobj common_type atleast_1d atleast_2d atleast_3d
zeros_like ones_like empty_like full_like
"""
LOOKS = frozenset(LOOKING.split())
REDUCTIONS = {
    **{name: name for name in ("sum", "mean", "prod", "max", "min")},
    "amax": "max",
    "amin": "min",
}
# How a call is written in burnbook: the parameters, and the line.
Lines = tuple[tuple[str, str], ...]
LINES: dict[str, Lines] = {
    **{
        name: (
            ("x", f"x.{ours}()"),
            ("x, axis", f"x.{ours}_dim(axis).squeeze_dim(axis)"),
            ("x, axis, keepdims", f"x.{ours}_dim(axis)"),
        )
        for name, ours in REDUCTIONS.items()
    },
    **{
        name: (
            ("x, axis", f"x.{name}_bias(axis).squeeze_dim(axis)"),
            ("x, axis, keepdims", f"x.{name}_bias(axis)"),
            ("x", f"x.reshape([-1]).{name}_bias(0)"),
        )
        for name in ("var", "std")
    },
    **dict.fromkeys(
        ("concatenate", "concat", "cat"), (("xs, axis=0", "Tensor.cat(xs, axis)"),)
    ),
    "stack": (("xs, axis=0", "Tensor.stack(xs, axis)"),),
    "vstack": (("xs", "Tensor.cat(xs, 0)"),),
    "hstack": (("xs", "Tensor.cat(xs, 1)"),),
    "einsum": (("formula, *xs", "Tensor.einsum(formula, *xs)"),),
    **dict.fromkeys(("dot", "matmul", "mm", "bmm"), (("x, y", "x.matmul(y)"),)),
    "norm": (
        ("x", "linalg.vector_norm(x)"),
        ("x, ord, axis", "linalg.vector_norm(x, ord, axis).squeeze_dim(axis)"),
    ),
    "reshape": (("x, shape", "x.reshape(shape)"),),
    "ravel": (("x", "x.reshape([-1])"),),
    "transpose": (("x", "x.transpose()"), ("x, axes", "x.permute(axes)")),
    "expand_dims": (("x, axis", "x.unsqueeze_dim(axis)"),),
    "unsqueeze": (("x, axis", "x.unsqueeze_dim(axis)"),),
    "squeeze": (("x, axis", "x.squeeze_dim(axis)"), ("x", "x.squeeze()")),
    "swapaxes": (("x, one, other", "x.swap_dims(one, other)"),),
    "moveaxis": (("x, source, destination", "x.movedim(source, destination)"),),
    "flip": (("x, *axis", "x.flip([*axis])"), ("x, *, axis", "x.flip([axis])")),
    "roll": (("x, shift, axis", "x.roll_dim(shift, axis)"),),
    "repeat": (
        (
            "x, repeats, axis",
            "x.unsqueeze_dim(axis + 1).repeat_dim(axis + 1, repeats)"
            ".flatten(axis, axis + 1)",
        ),
    ),
    "broadcast_to": (("x, shape", "x.expand(shape)"),),
    "cumsum": (("x, axis", "x.cumsum(axis)"),),
    "cumprod": (("x, axis", "x.cumprod(axis)"),),
    **dict.fromkeys(("clip", "clamp"), (("x, low, high", "x.clamp(low, high)"),)),
    **dict.fromkeys(("maximum", "fmax"), (("x, y", "x.max_pair(y)"),)),
    **dict.fromkeys(("minimum", "fmin"), (("x, y", "x.min_pair(y)"),)),
    **{
        name: (("x, y", f"x {sign} y"),)
        for sign, names in {
            "+": "add",
            "-": "subtract sub",
            "*": "multiply mul",
            "%": "remainder",
            "/": "divide true_divide div",
            "//": "floor_divide",
            "**": "power pow",
            ">": "greater",
            ">=": "greater_equal",
            "<": "less",
            "<=": "less_equal",
            "==": "equal",
            "!=": "not_equal",
        }.items()
        for name in names.split()
    },
    **{
        f"logical_{name}": (("x, y", f"x.bool().bool_{name}(y.bool())"),)
        for name in ("and", "or", "xor")
    },
    "logical_not": (("x", "x.bool().bool_not()"),),
    **dict.fromkeys(("absolute", "fabs"), (("x", "x.abs()"),)),
    "negative": (("x", "-x"),),
    "rint": (("x", "x.round()"),),
    "expm1": (("x", "x.exp() - 1"),),
    **{f"arc{f}": (("x", f"x.a{f}()"),) for f in ("sin", "cos", "tan")},
    **{f"arc{f}h": (("x", f"x.a{f}h()"),) for f in ("sin", "cos", "tan")},
    "arctan2": (("x, y", "x.atan2(y)"),),
    **{f"is{f}": (("x", f"x.is_{f}()"),) for f in ("nan", "inf")},
    "isfinite": (("x", "x.is_finite()"),),
}
SWAPPED = ("maximum", "fmax", "minimum", "fmin")  # where the tensor may come first
