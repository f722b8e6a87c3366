"""Every op and every function made of ops, on numbers far from one.

The samples of each declaration, and a call of each composed function, are scaled: to
the ends of float16, and to where squares of float32 overflow or vanish. The judge is
the same call in float64, without compiled kernels. What is less exact stands in the
table of `burnbook.reference.accuracy`, with its reason.
"""

import numpy as np
import pytest

import burnbook.ops  # noqa: F401 - declares them
from burnbook.backend import Autodiff, Numpy
from burnbook.backend.fusion.signature import elementwise
from burnbook.core.dtypes import Float
from burnbook.core.errors import DataError, GraphError
from burnbook.core.op import OPS, draw, split_sample
from burnbook.reference.accuracy import ROWS
from burnbook.reference.composed import COMPOSED
from burnbook.tensor import Tensor, apply
from tests.support.composed_calls import CALLS

#: Of each type: factors of the first input, and the error that is let pass, relative to
#: the largest element. A gradient of float16 is made of results that are float16.
SCALES = {"f16": (1e-4, 1.0, 300.0), "f32": (1e-30, 1e-3, 1.0, 1e4, 1e19, 1e30)}
TOLERANCE = {"f16": 5e-3, "f32": 2e-4}
BITS = {"f16": np.float16, "f32": np.float32}
RANDOM = {"random", "random_like", "int_random", "categorical"}
MOVES = {"into_full_precision", "to_full_precision", "from_full_precision"}  # elsewhere
CODES = {"quantize", "quantize_dynamic", "dequantize"}  # whole numbers, by their scale
SIDES = {"f16": ("plain",), "f32": ("plain", "compiled")}


def composed_rows():
    for name, known in COMPOSED.items():
        call, shape = CALLS[name]
        takes_float = "F" in (known.kinds.split(">")[0] or known.kinds).split()
        if shape is None or not takes_float or name in RANDOM | MOVES | CODES | {*OPS}:
            continue
        drawn = np.random.default_rng(0).standard_normal(shape)
        yield pytest.param(name.split(".")[-1], call, [drawn], id=name)


def op_rows():
    for made in OPS.values():
        if made in elementwise() or not any(Float in row for row in made.kinds):
            continue
        for i, row in enumerate(made.samples):
            specs, attrs = split_sample(row)
            rng = np.random.default_rng(0)
            arrays = [draw(spec, rng) for spec in specs]

            def call(*tensors, made=made, attrs=attrs):
                return apply(made, *tensors, **attrs)

            if any(array.dtype.kind == "f" for array in arrays):
                yield pytest.param(made.name, call, arrays, id=f"{made.name}-{i}")


MEMBERS = [*op_rows(), *composed_rows()]
USED, RAN = set(), []


def scaled(arrays, scale, bits):
    """The arrays with the first one of floats scaled, as this type holds them."""
    found, first = [], True
    for array in arrays:
        if array.dtype.kind == "f":
            array = (array * (scale if first else 1)).astype(bits).astype(np.float64)
            first = False
        found.append(array)
    return found


def results(call, arrays, device):
    """What a call gives, and the gradients of its inputs where there are some."""
    tensors = [
        Tensor.from_numpy(x.astype(device.float_dtype), device).require_grad()
        if x.dtype.kind == "f"
        else Tensor.from_numpy(x, device)
        for x in arrays
    ]
    out = call(*tensors)
    outs = [
        one
        for one in (out if isinstance(out, (tuple, list)) else [out])
        if isinstance(one, Tensor) and one.kind is Float
    ]
    values = [np.asarray(one, np.float64) for one in outs]
    if not outs or not hasattr(outs[0].value, "node"):
        return values, []
    weights = np.linspace(0.5, 1.5, values[0].size).reshape(values[0].shape)
    weights = weights.astype(np.float16).astype(device.float_dtype)
    try:
        gradients = (outs[0] * Tensor.from_numpy(weights, device)).backward()
    except GraphError:  # an op without one
        return values, []
    found = [t.grad(gradients) for t in tensors if t.kind is Float]
    return values, [np.asarray(g, np.float64) for g in found if g is not None]


def error(got, true, kind, size):
    """The largest error, relative to the largest element; ∞ where only one is finite.

    size: what elements usually have; where all are far smaller they are a difference,
    as the gradient of a number that is normalized alone, and only its rounding is seen.
    """
    limits = np.finfo(BITS[kind])
    wanted = true.astype(BITS[kind]).astype(np.float64)
    ends = np.abs(true) > float(limits.max) * 0.98
    finite = np.isfinite(wanted) & np.isfinite(got)
    if ((np.isfinite(wanted) != np.isfinite(got)) & ~ends).any():
        return np.inf
    least = float(limits.smallest_subnormal * 2 if kind == "f16" else limits.tiny)
    away = np.abs(got - wanted)[finite].max(initial=0)
    most = max(np.abs(wanted[finite]).max(initial=0), 1e-3 * size, 1e-300)
    return max(away - least, 0) / most


def largest(array):
    """The largest finite size of an element."""
    return np.abs(array[np.isfinite(array)]).max(initial=0)


def excused(name, part, scale):
    """Whether a row of the table speaks of this; it counts as needed then."""
    for row in ROWS:
        if row.covers(name, part, "far") and (
            scale >= row.beyond or scale <= 1 / row.beyond
        ):
            USED.add(row)
            return True
    return False


@pytest.mark.parametrize(("name", "call", "arrays"), MEMBERS)
def test_it_is_as_exact_as_its_type_on_every_scale(name, call, arrays):
    RAN.append(name)
    told = []
    for kind, scales in SCALES.items():
        for scale in scales:
            given = scaled(arrays, scale, BITS[kind])
            wide = Autodiff(Numpy("f64", compiled=False))
            try:
                wanted = results(call, given, wide)
            except DataError:  # 1e30 fits into no whole number
                continue
            for side in SIDES[kind]:
                compiled = False if side == "plain" else None
                found = results(call, given, Autodiff(Numpy(kind, compiled=compiled)))
                pairs = zip(("value", "gradient"), found, wanted, strict=True)
                for part, have, true in pairs:
                    assert len(have) == len(true)
                    floats = [x for x in given if x.dtype.kind == "f"]
                    sizes = [0.0] * len(true)
                    if part == "gradient" and len(true) == len(floats):
                        out = largest(wanted[0][0])
                        sizes = [out / max(largest(x), 1e-200) for x in floats]
                    trios = zip(have, true, sizes, strict=True)
                    with np.errstate(all="ignore"):
                        away = [error(a, b, kind, size) for a, b, size in trios]
                    worst = max(away, default=0)
                    if worst > TOLERANCE[kind] and not excused(name, part, scale):
                        told.append(
                            f"{side} {kind}: {part} · {scale:g} is {worst:.2g} off"
                        )
    assert not told, "\n".join(told)


@pytest.fixture(scope="module", autouse=True)
def every_row_about_scales_is_needed():
    """Looked at when all tests of this file have run, in whatever order."""
    yield
    if len(RAN) == len(MEMBERS):
        assert {row for row in ROWS if row.bound == "far"} <= USED
