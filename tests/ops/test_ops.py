"""What every declaration promises, checked from itself.

Five promises, one test row for every sample: the gradient is the derivative, the
forward code equals a slow loop, backends agree, the `Shapes:` line is true, and what
shall be rejected is.
"""

import re

import numpy as np
import pytest

import burnbook.ops  # noqa: F401 - declares them
from burnbook.backend import Autodiff, Numpy
from burnbook.core.dtypes import Float, kind_of
from burnbook.core.errors import ShapeError
from burnbook.core.op import OPS, Op, draw, op, split_sample
from burnbook.tensor import Tensor, apply
from tests import oracle

WIDE = Numpy(float="f64", compiled=False)
SAMPLES = [
    pytest.param(o, *split_sample(row), id=f"{o.name}-{i}")
    for o in OPS.values()
    for i, row in enumerate(o.samples)
]
WITH_INPUTS = [row for row in SAMPLES if row.values[0].inputs]
SMOOTH = [row for row in WITH_INPUTS if row.values[0].rules]
RULES = {rule for o in OPS.values() for rule in o.rules.values() if type(rule) is Op}
REJECTS = [
    pytest.param(o, *split_sample(row), id=f"{o.name}-{i}")
    for o in OPS.values()
    for i, row in enumerate(o.rejects)
]


def arrays_of(specs, seed=0):
    rng = np.random.default_rng(seed)
    return [draw(spec, rng) for spec in specs]


def plain(made: Op, arrays, attrs):
    """The forward code on bare arrays, without extras."""
    out = made.forward(np, *arrays, **attrs)
    return out[0] if made.extras else out


@pytest.mark.parametrize(("made", "specs", "attrs"), SMOOTH)
def test_gradient_is_the_derivative(made, specs, attrs):
    rng = np.random.default_rng(1)
    arrays = arrays_of(specs)
    device = Autodiff(WIDE)
    tensors = [leaf(array, device) for array in arrays]
    out = apply(made, *tensors, **attrs)
    weights = rng.standard_normal(tuple(out.shape))
    grads = (out * Tensor.from_numpy(weights, device)).backward()
    for i, (array, tensor) in enumerate(zip(arrays, tensors, strict=True)):
        if array.dtype.kind != "f" or not made.can_track[0 if made.many else i]:
            continue
        direction = rng.standard_normal(array.shape)
        step = 1e-6

        def moved(t, i=i, direction=direction):
            shifted = [x + t * direction if j == i else x for j, x in enumerate(arrays)]
            return float((plain(made, shifted, attrs) * weights).sum())

        slope = (moved(step) - moved(-step)) / (2 * step)
        gradient = np.asarray(tensor.grad(grads))
        assert gradient.shape == array.shape
        assert np.isclose((gradient * direction).sum(), slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("made", "specs", "attrs"), SMOOTH)
def test_second_derivatives_of_every_pair_of_inputs(made, specs, attrs):
    """∂²/∂x∂y for all inputs and the weights of the output at once, symmetry included.

    All float inputs take part, so a rule that cuts one of them out of the graph, for
    whichever derivative comes first, gives another number than the difference quotient.
    """
    rng = np.random.default_rng(2)
    arrays = arrays_of(specs)
    inner = Autodiff(WIDE)
    outer = Autodiff(inner)
    free = [
        j
        for j, x in enumerate(arrays)
        if x.dtype.kind == "f" and made.can_track[0 if made.many else j]
    ]
    weights = rng.standard_normal(plain(made, arrays, attrs).shape)
    directions = {j: rng.standard_normal(arrays[j].shape) for j in free}
    turn = rng.standard_normal(weights.shape)

    def gradients(step):
        """∂(out · weights)/∂x for every input, with all of them moved by `step`."""
        device = Autodiff(WIDE)
        moved = [
            x + step * directions[j] if j in free else x for j, x in enumerate(arrays)
        ]
        tensors = [leaf(x, device) for x in moved]
        out = apply(made, *tensors, **attrs)
        scale = Tensor.from_numpy(weights + step * turn, device)
        grads = (out * scale).backward()
        return [np.asarray(tensors[j].grad(grads)) for j in free]

    low = {j: Tensor.from_numpy(arrays[j], inner).require_grad() for j in free}
    scale = Tensor.from_numpy(weights, inner).require_grad()
    tensors = [
        Tensor.from_inner(low[j], outer).require_grad() if j in free else bare(x, outer)
        for j, x in enumerate(arrays)
    ]
    out = apply(made, *tensors, **attrs)
    first = (out * Tensor.from_inner(scale, outer)).backward()
    cotangents = [rng.standard_normal(arrays[j].shape) for j in free]
    total = Tensor.zeros([1], inner)
    for j, cotangent in zip(free, cotangents, strict=True):
        along = tensors[j].grad(first) * Tensor.from_numpy(cotangent, inner)
        total = total + along.sum()
    second = total.backward()
    found = sum(
        (np.asarray(grad) * directions[j]).sum()
        for j in free
        if (grad := low[j].grad(second)) is not None
    )
    found += (np.asarray(scale.grad(second)) * turn).sum()
    step = 1e-5
    quotient = sum(
        (((after - before) / (2 * step)) * cotangent).sum()
        for after, before, cotangent in zip(
            gradients(step), gradients(-step), cotangents, strict=True
        )
    )
    assert np.isclose(found, quotient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("made", "specs", "attrs"), WITH_INPUTS)
def test_forward_equals_the_slow_loop(made, specs, attrs):
    slow = oracle.find(made.name)
    if slow is None:
        pytest.skip(f"{made.name} is one call of NumPy and has no loop")
    arrays = arrays_of(specs)
    expected = slow(*arrays, **attrs)
    assert np.allclose(plain(made, arrays, attrs), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("made", "specs", "attrs"), WITH_INPUTS)
def test_backends_agree(made, specs, attrs):
    arrays = [
        x.astype(np.float32) if x.dtype.kind == "f" else x for x in arrays_of(specs)
    ]
    answers = []
    for device in (Numpy(compiled=False), Numpy(), Autodiff(Numpy())):
        tensors = [leaf(array, device) for array in arrays]
        out = apply(made, *tensors, **attrs)
        outs = out if isinstance(out, tuple) else (out,)
        answers.append([np.asarray(o) for o in outs])
    for other in answers[1:]:
        for a, b in zip(answers[0], other, strict=True):
            assert a.dtype == b.dtype
            assert np.allclose(a, b, rtol=2e-5, atol=2e-6, equal_nan=True)


@pytest.mark.parametrize(("made", "specs", "attrs"), SAMPLES)
def test_shapes_line_is_true(made, specs, attrs):
    line = re.search(r"Shapes: (.*(?:\n {8}.*)*)", made.__doc__ or "")
    assert line, f"{made.name} has no Shapes: line"
    arrays = arrays_of(specs)
    left, _, right = line[1].partition("->")
    named = dict(re.findall(r"(\w+) \[([^\]]*)\]", left))
    sizes: dict[str, int] = {}
    for name, array in zip(made.inputs, arrays, strict=False):
        assert name in named or made.many, f"{made.name} does not say {name}'s shape"
        if not made.many:
            match_sizes(named[name], array.shape, sizes)
    out = plain(made, arrays, attrs)
    wanted = right.strip()
    if wanted == "shape":
        assert tuple(out.shape) == tuple(attrs["shape"])
    elif isinstance(out, tuple):
        assert len(re.findall(r"\[[^\]]*\]", wanted)) == len(out)
    else:
        match_sizes(re.search(r"\[([^\]]*)\]", wanted)[1], out.shape, sizes)


@pytest.mark.parametrize(("made", "specs", "attrs"), REJECTS)
def test_rejects_name_the_op(made, specs, attrs):
    tensors = [Tensor.from_numpy(array) for array in arrays_of(specs)]
    with pytest.raises(ShapeError, match=f"^{made.name}: "):
        apply(made, *tensors, **attrs)


@pytest.mark.parametrize(
    "made", [o for o in OPS.values() if o.inputs and (o.samples or o not in RULES)]
)
def test_other_kinds_are_refused(made):
    first = made.samples[0] if made.samples else None
    assert first, f"{made.name} declares no sample"
    kinds = {row[0] for row in made.kinds}
    specs, attrs = split_sample(first)
    arrays = arrays_of(specs)
    from burnbook.core.dtypes import KINDS
    from burnbook.core.errors import KindError

    for kind in KINDS.values():
        if kind in kinds:
            continue
        wrong = Tensor.zeros(arrays[0].shape, kind=kind)
        others = [Tensor.from_numpy(x) for x in arrays[1:]]
        with pytest.raises(KindError, match=f"^{made.name}: takes "):
            apply(made, wrong, *others, **attrs)


def test_a_reader_adds_an_op_in_one_cell():
    try:

        @op("F>F")
        def my_swish(xp, x):
            """x · σ(x).

            Shapes: x [...] -> [...]
            """
            return x / (1 + xp.exp(-x))

        my_swish.grad(x=lambda xp, g, x, out: g * (out + (1 - out) / (1 + xp.exp(-x))))
        my_swish.examples(samples=[(("normal", (2, 3)),)])
        x = Tensor.ones([2, 3], Autodiff(Numpy())).require_grad()
        grads = x.my_swish().backward()
        assert np.allclose(np.asarray(x.grad(grads)), 0.9276705)
        with pytest.raises(TypeError, match="may ask for"):
            my_swish.grad(x=lambda g, z: g)
        with pytest.raises(TypeError, match="has no input"):
            my_swish.grad(w=lambda g: g)
    finally:
        OPS.pop("my_swish", None)


def test_a_rule_takes_what_it_does_not_name_by_two_stars():
    """And is called with it by keyword, defaults included."""
    asked = []
    try:

        @op("F>F", method=False)
        def my_line(xp, x, *, scale, shift=0.0, power=1):
            """scale · xᵖ + shift.

            Shapes: x [...] -> [...]
            """
            return scale * x**power + shift

        def rule(xp, g, x, power, **others):
            asked.append(others)
            return g * power * others["scale"] * x ** (power - 1)

        my_line.grad(x=rule)
        x = Tensor.ones([3], Autodiff(Numpy())).require_grad()
        grads = apply(my_line, x, scale=2.0, power=3).backward()
        assert np.asarray(x.grad(grads)).tolist() == [6.0, 6.0, 6.0]
        assert asked == [{"scale": 2.0, "shift": 0.0}]
    finally:
        OPS.pop("my_line", None)


def leaf(array, device):
    """A tensor that keeps its element type, tracked where it can be."""
    tensor = Tensor.from_numpy(array, device)
    return tensor.require_grad() if tensor.kind is Float else tensor


def bare(array, device):
    assert kind_of(array.dtype)
    return Tensor.from_numpy(array, device)


def match_sizes(pattern: str, shape, sizes: dict[str, int]) -> None:
    """Check a shape such as `..., m, k` against real sizes; remember the letters."""
    names = [part.strip() for part in pattern.split(",") if part.strip()]
    if "..." in names:
        at = names.index("...")
        head, tail = names[:at], names[at + 1 :]
        assert len(shape) >= len(head) + len(tail) - names.count("...") + 1
        if "..." in tail:
            return
        pairs = list(zip(head, shape[: len(head)], strict=True))
        pairs += list(zip(tail, shape[len(shape) - len(tail) :], strict=True))
    else:
        assert len(names) == len(shape), f"[{pattern}] is not {list(shape)}"
        pairs = list(zip(names, shape, strict=True))
    for name, size in pairs:
        if name.isdigit():
            assert int(name) == size
        elif name.isalpha():
            assert sizes.setdefault(name, size) == size, (
                f"{name} is {sizes[name]}, {size}"
            )


def test_the_typing_stub_is_fresh():
    from burnbook.reference import stubs

    assert stubs.PATH.read_text() == stubs.text(), (
        "python -m burnbook.reference.stubs --write"
    )
