"""Every op of elements is right in relative terms, in every type and every way it runs.

The members are the declared ops of elements; the points run from the smallest number of
a type to the largest, with kinks, 0, ±∞ and NaN; the judge is the op's own formula in
numbers of many digits (tests/support/exact.py). What is less exact stands in the table
of `burnbook.reference.accuracy`, with its reason.
"""

import functools
import importlib.util
from unittest import mock

import numpy as np
import pytest

import burnbook.ops  # noqa: F401 - declares them
from burnbook.backend import Autodiff, Fusion, Numpy, compiled as compiled_kernels
from burnbook.backend.fusion.signature import elementwise
from burnbook.core.dtypes import Float
from burnbook.core.op import OPS, split_sample
from burnbook.program import capture
from burnbook.reference.accuracy import ROWS
from burnbook.tensor import Tensor, apply

exact = pytest.importorskip("tests.support.exact", reason="mpmath is the judge")

OTHERS = {"cast", "recast", "dropout", "sgd_step"}  # another type, draws, updates


def takes_floats(made):
    return any({*row} == {Float} and out is Float for row, out in made.kinds.items())


def by_element(made):
    """Whether an op, of whatever file, computes every element from its own place."""
    if made in elementwise():
        return True
    if made.many or made.optional or not made.samples:
        return False
    attrs, rng = split_sample(made.samples[0])[1], np.random.default_rng(0)
    given = [rng.uniform(0.1, 0.9, 5) for _ in made.inputs]
    try:
        whole = made.forward(np, *given, **attrs)
        parts = [made.forward(np, *[x[[i]] for x in given], **attrs) for i in range(5)]
        return whole.shape == (5,) and np.array_equal(whole, np.concatenate(parts))
    except Exception:  # it takes other shapes
        return False


MEMBERS = sorted(
    (
        made
        for made in OPS.values()
        if made.name not in OTHERS and takes_floats(made) and by_element(made)
    ),
    key=lambda made: made.name,
)
BITS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
TOLERANCE = {"f16": 1.5e-3, "f32": 2e-5, "f64": 1e-12}
POINTS = {
    "f16": """1e-7 1e-4 1e-3 .01 .1 .3 .5 .9 .9995 1 1.001 1.5 2 3 4 5 6 7 8 9 10 11 12
        15 17 20 30 50 80 100 255 300 1000 2e4 65504""",
    "f32": """
        1e-38 1e-35 1e-30 1e-22 1e-20 1e-15 1e-10 1e-7 1e-4 .01 .3 .5 .9995 1 1.001
        3 5 8 9 12 14.3 16.6 20 25 40 60 80 87 88.5 100 1e4 1e7 1e10 1e15 1.5e19 1e20
        1e25 1e30 3e38""",
    "f64": """1e-300 1e-160 1e-10 1e-3 .3 .9995 1 1.001 3 6 8 12 38 60 350 700 709 1e10
        1e160 1.7e308""",
}
PAIRS = {
    "f16": "1e-7 1e-3 .5 1 3 20 300 65504",
    "f32": "1e-38 1e-20 1e-10 1e-3 .5 1 3 20 300 1e10 1e19 1e30 3e38",
    "f64": "1e-160 1e-10 .5 1 3 300 1e19 1e160",
}
MANY = 140_000  # elements from which on every compiled kernel serves
WAYS = {
    "plain f32": Numpy(compiled=False),
    "compiled f32": Numpy(),
    "fusion f32": Fusion(Numpy(compiled=False)),
    "captured f32": Numpy(compiled=False),
    "captured, compiled f32": Numpy(),
    "plain f16": Numpy("f16", compiled=False),
    "fusion f16": Fusion(Numpy("f16", compiled=False)),
    "captured f16": Numpy("f16", compiled=False),
    "plain f64": Numpy("f64", compiled=False),
    "captured f64": Numpy("f64", compiled=False),
}
USED, RAN = set(), []


def attrs_of(made):
    attrs = split_sample(made.samples[0])[1] if made.samples else {}
    return {n: 0.5 if n == "max" else v for n, v in attrs.items()}


def points(made, kind):
    """The inputs for a type: both signs of its points, and pairs of them for two."""
    two = len(made.inputs) == 2
    sizes = np.array((PAIRS if two else POINTS)[kind].split(), BITS[kind])
    if made.name == "powf":
        sizes = sizes[(sizes >= 1e-38) & (sizes <= 300)]
    line = np.concatenate([-sizes, [0], sizes]).astype(np.float64)
    return [np.repeat(line, len(line)), np.tile(line, len(line))] if two else [line]


def doubles(numbers):
    return np.array([float(x) for x in numbers])


@functools.cache
def judged(made, kind):
    """The inputs, what an op gives for them, and its gradients."""
    inputs, attrs = points(made, kind), attrs_of(made)
    exact.mp.prec = 1300 if kind == "f64" else 400
    value = doubles(exact.value(made, inputs, attrs))
    slopes = exact.slopes(made, inputs, attrs) if made.rules else []
    return inputs, value, [None if s is None else doubles(s) for s in slopes]


def found(made, way, inputs):
    """What an op gives in one of the ways, and its gradients."""
    device, attrs, count = WAYS[way], attrs_of(made), inputs[0].size
    if "compiled" in way:
        inputs = [np.resize(x, count * -(-MANY // count)) for x in inputs]
    given = [x.astype(device.float_dtype) for x in inputs]
    if way.startswith("captured"):
        tensors = [Tensor.from_numpy(x, device) for x in given]
        program = capture(lambda *xs: apply(made, *xs, **attrs), *tensors, batch=None)
        return np.asarray(program(*tensors))[:count], []
    tracked = Autodiff(device)
    for _ in range(3 if way.startswith("fusion") else 1):  # the third time it is fused
        tensors = [Tensor.from_numpy(x, tracked).require_grad() for x in given]
        out = apply(made, *tensors, **attrs)
        gradients = out.sum().backward() if made.rules else None
        slopes = [t.grad(gradients) for t in tensors] if made.rules else []
        slopes = [None if s is None else np.asarray(s)[:count] for s in slopes]
        value = np.asarray(out)[:count]
    return value, slopes


def errors(got, true, kind):
    """Relative errors; none of numbers that are hardly larger than the smallest."""
    limits = np.finfo(BITS[kind])
    least = float(limits.smallest_subnormal if kind == "f16" else 1024 * limits.tiny)
    got, most = got.astype(np.float64), float(limits.max) * (1 - TOLERANCE[kind])
    away = np.maximum(np.abs(got - true) - least, 0) / np.maximum(np.abs(true), least)
    both = (np.abs(true) >= most) & (np.abs(got) >= most) & (got * true > 0)
    same = both | (np.isnan(true) & np.isnan(got)) | (got == true)
    return np.where(same, 0, np.nan_to_num(away, nan=np.inf))


def allowed(made, part, got, true, kind):
    """Which errors a row of the table lets pass."""
    fine = np.zeros(got.shape, bool)
    got = got.astype(np.float64)
    for row in ROWS:
        if row.covers(made.name, part, "absolute"):
            here = np.abs(got - true) <= TOLERANCE[kind] * np.maximum(np.abs(true), 1)
        elif row.covers(made.name, part, "one"):
            here = np.abs(got - true) <= 1 + TOLERANCE[kind] * np.abs(true)
        elif row.covers(made.name, part, "inner"):
            here = np.isinf(got) & (np.abs(true) > float(np.finfo(BITS[kind]).max) / 4)
        else:
            continue
        if (here & (errors(got, true, kind) > TOLERANCE[kind])).any():
            USED.add(row)
        fine |= here
    return fine


def complaints(made, way, kind):
    inputs, value, slopes = judged(made, kind)
    got, gradients = found(made, way, inputs)
    limits = np.finfo(BITS[kind])
    whole = np.isfinite(value) & (np.abs(value) <= float(limits.max))
    if "out" in made.kept:  # rules can be as exact as the result that they are given
        whole &= (value == 0) | (np.abs(value) >= float(limits.tiny))
    parts = [("value", got, value, np.ones(value.shape, bool))]
    parts += [
        ("gradient", gradient, slope, whole)
        for gradient, slope in zip(gradients, slopes, strict=False)
        if gradient is not None and slope is not None
    ]
    told = []
    with np.errstate(all="ignore"):
        for part, have, true, here in parts:
            wrong = here & (errors(have, true, kind) > TOLERANCE[kind])
            wrong &= ~allowed(made, part, have, true, kind)
            for i in np.flatnonzero(wrong)[:3]:
                at = ", ".join(f"{x[i]:.6g}" for x in inputs)
                told.append(
                    f"{way}: {part} at {at} is {have[i]:.6g}, not {true[i]:.6g}"
                )
    return told


@pytest.fixture(scope="module")
def every_kernel():
    """Compiled kernels are used where there are any, whether or not they were kept."""
    if importlib.util.find_spec("numba") is None:
        yield
        return
    everything = frozenset(compiled_kernels.FAMILIES)
    with mock.patch.object(compiled_kernels, "_usable", everything):
        yield


@pytest.mark.usefixtures("every_kernel")
@pytest.mark.parametrize("made", MEMBERS, ids=lambda made: made.name)
def test_an_op_of_elements_is_right_in_relative_terms(made):
    RAN.append(made)
    told = [line for way in WAYS for line in complaints(made, way, way[-3:])]
    assert not told, "\n".join(told)


def limit(numbers):
    """Where numbers go: those at 1e40 and at 1e80, or None where that is not seen."""
    near, far = numbers
    if near == far or abs(far - near) < 1e-30:
        return float(far)
    if abs(far) > abs(near) > 1e3:
        return float(np.copysign(np.inf, float(far)))
    return 0.0 if abs(far) < abs(near) < 1e-3 else None


FAR = np.array([1e40, 1e80])
ENDS = {1: [(1,), (-1,)], 2: [(a, b) for a in (1, -1, 0) for b in (1, -1, 0) if a or b]}
ENDING = [(made, signs) for made in MEMBERS for signs in ENDS[len(made.inputs)]]


def end_name(value):
    return value.name if hasattr(value, "name") else "".join("0+-"[s] for s in value)


@pytest.mark.parametrize(("made", "signs"), ENDING, ids=end_name)
def test_an_op_at_infinity_has_its_limit(made, signs):
    RAN.append(made)
    """And so has its gradient; what is NaN on the way, or swings, may be anything.

    Of two inputs both go there at one pace, or one of them is 2 (sign 0). Where the
    result itself has no limit, as of ∞ − ∞, nothing is asked of its gradient.
    """
    if made.name in SWINGING or (made.name == "powf" and signs[0] < 0):
        pytest.skip("it has no limit")
    exact.mp.prec = 400
    far = [FAR * sign if sign else np.array([2.0, 2.0]) for sign in signs]
    attrs = attrs_of(made)
    wanted = [("value", exact.value(made, far, attrs))]
    wanted += (
        [("gradient", s) for s in exact.slopes(made, far, attrs)] if made.rules else []
    )
    end = [np.array([np.inf * sign]) if sign else np.array([2.0]) for sign in signs]
    for way in WAYS:
        got, gradients = found(made, way, end)
        if len(signs) == 2 and np.isnan(got).all():
            continue
        for (part, numbers), have in zip(wanted, [got, *gradients], strict=False):
            if numbers is None or any(exact.mp.isnan(x) for x in numbers):
                continue
            true = limit(numbers)
            if true is None or np.isclose(float(have[0]), true, rtol=1e-3):
                continue
            bound = "infinite" if np.isnan(have[0]) else "one"
            rows = [r for r in ROWS if r.covers(made.name, part, bound)]
            USED.update(rows)
            assert rows, f"{way}: {part} is {have[0]}, not {true}"
            assert np.isnan(have[0]) or abs(have[0] - true) <= 1


SWINGING = {"sin", "cos", "tan"}
KEEPS_NO_NAN = {"sign"}  # its docstring says so


@pytest.mark.parametrize("made", MEMBERS, ids=lambda made: made.name)
def test_nan_stays_nan(made):
    odd = [np.array([np.nan]) for _ in made.inputs]
    for way in WAYS:
        value, _ = found(made, way, odd)
        assert np.isnan(value).all() != (made.name in KEEPS_NO_NAN), way


@pytest.fixture(scope="module", autouse=True)
def every_row_of_the_table_is_needed():
    """Looked at when all tests of this file have run, in whatever order."""
    yield
    if len(RAN) == len(MEMBERS) + len(ENDING):
        assert {row for row in ROWS if row.bound != "far"} <= USED
