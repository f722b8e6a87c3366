"""Every operation, layer and random program gives on Fusion what it gives without.

Each runs several times: an op runs at once when its shapes are new, then it is written
down, and from the second equal stream on a plan runs.
"""

import numpy as np
import pytest

import burnbook
import burnbook.ops
from burnbook import nn
from burnbook.backend import Autodiff, Fusion, Numpy
from burnbook.backend.fusion.signature import elementwise
from burnbook.core.dtypes import kind_of
from burnbook.core.op import OPS, Op, draw, split_sample
from burnbook.module import Module
from burnbook.program.trees import ARGUMENTS
from burnbook.tensor import Tensor, apply
from tests.nn.test_every import EVERY, More, name_of

WIDE = Numpy(float="f64", compiled=False)
SAMPLES = [
    pytest.param(made, *split_sample(row), id=f"{made.name}-{i}")
    for made in OPS.values()
    for i, row in enumerate(made.samples)
    if made.inputs
]
SMOOTH = [row for row in SAMPLES if row.values[0].rules]
TIMES = 4


def arrays_of(specs):
    rng = np.random.default_rng(0)
    return [draw(spec, rng) for spec in specs]


def outputs(out):
    return out if isinstance(out, tuple) else (out,)


@pytest.mark.parametrize(("made", "specs", "attrs"), SAMPLES)
def test_every_op_gives_the_same_bits(made: Op, specs, attrs):
    arrays = arrays_of(specs)

    def run(device):
        tensors = [Tensor.from_numpy(array, device) for array in arrays]
        return [np.asarray(one) for one in outputs(apply(made, *tensors, **attrs))]

    wanted, fused = run(WIDE), Fusion(WIDE)
    for _ in range(TIMES):
        for one, other in zip(run(fused), wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("made", "specs", "attrs"), SMOOTH)
def test_every_gradient_has_the_same_bits(made: Op, specs, attrs):
    arrays = arrays_of(specs)

    def run(device):
        tensors = [
            Tensor.from_numpy(array, device).require_grad()
            if array.dtype.kind == "f"
            else Tensor.from_numpy(array, device)
            for array in arrays
        ]
        out = outputs(apply(made, *tensors, **attrs))[0]
        grads = (out * 1.5).sum().backward()
        found = [t.grad(grads) for t in tensors if t.is_require_grad()]
        return [np.asarray(one) for one in found if one is not None]

    wanted, fused = run(Autodiff(WIDE)), Autodiff(Fusion(WIDE))
    for _ in range(TIMES):
        for one, other in zip(run(fused), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("made", "specs", "attrs"),
    [row for row in SAMPLES if row.values[0] in elementwise()],
)
def test_elementwise_ops_have_the_shape_of_their_inputs(made: Op, specs, attrs):
    arrays = arrays_of(specs)
    out = made.forward(np, *arrays, **attrs)
    assert out.shape == np.broadcast_shapes(*[array.shape for array in arrays])


def layer_of(subject, device):
    if isinstance(subject, Module):
        return subject.to_device(device)
    try:
        return subject.init(device)
    except TypeError:
        return subject.init()


@pytest.mark.parametrize("row", EVERY, ids=name_of)
def test_every_layer_gives_the_same_with_its_gradients(row):
    subject, *inputs = row
    more = inputs.pop() if isinstance(inputs[-1], More) else More()

    def run(device, times):
        burnbook.seed(3)
        module = layer_of(subject, device)
        found = []
        for turn in range(times):
            rng = np.random.default_rng(turn)
            given = []
            for one in inputs:
                if isinstance(one, list):
                    one = rng.standard_normal(one).astype(np.float32)
                elif isinstance(one, np.ndarray) and one.dtype.kind == "f":
                    one = one.astype(np.float32)
                if callable(one):
                    given.append(one(device))
                    continue
                tensor = Tensor.from_numpy(np.array(one), device)
                is_float = tensor.kind is kind_of(np.dtype(np.float32))
                given.append(tensor.require_grad() if is_float else tensor)
            out = (
                more.forward(module, *given) if more.forward else module.forward(*given)
            )
            tensors = ARGUMENTS.collect(out, Tensor, [])
            one = tensors[0]
            found += [np.asarray(tensor) for tensor in tensors]
            if one.is_require_grad() or hasattr(one.value, "node"):
                grads = one.sum().backward()
                leaves = [t for t in given if t.is_require_grad()]
                leaves += [p.val() for _, p in module.named_params()]
                gradients = [
                    leaf.grad(grads) for leaf in leaves if leaf.is_require_grad()
                ]
                found += [np.asarray(g) for g in gradients if g is not None]
        return found

    wanted = run(Autodiff(Numpy()), TIMES)
    made = run(Autodiff(Fusion(Numpy())), TIMES)
    assert len(made) == len(wanted) > 0
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


UNARY = ("exp", "tanh", "sigmoid", "neg", "abs", "square", "sin", "relu", "floor")
BINARY = ("add", "sub", "mul", "max_pair", "min_pair")


def random_program(seed, shape):
    """A function of a device: tensors are made, dropped and read in a random order.

    It is the same for the same seed, whatever the device.
    """

    def run(device):
        rng = np.random.default_rng(seed)
        held = [
            Tensor.from_numpy(rng.uniform(-1, 1, shape).astype(np.float32), device)
            for _ in range(3)
        ]
        seen = []
        for _ in range(40):
            what = rng.integers(0, 10)
            x = held[rng.integers(len(held))]
            y = held[rng.integers(len(held))]
            if what < 3:
                held.append(
                    getattr(x, UNARY[rng.integers(len(UNARY))])().clamp(-3.0, 3.0)
                )
            elif what < 6:
                held.append(getattr(x, BINARY[rng.integers(len(BINARY))])(y) * 0.5)
            elif what == 6:
                held.append(x + y.mean_dim(0))
            elif what == 7:
                held.append(
                    x.swap_dims(0, 1).reshape(list(shape)) * float(rng.random())
                )
            elif what == 8 and len(held) > 2:
                del held[rng.integers(len(held))]
            else:
                seen.append(np.array(np.asarray(x)))
        return [*seen, *[np.array(np.asarray(x)) for x in held]]

    return run


@pytest.mark.parametrize("shape", [(3, 4), (300, 500)], ids=["small", "large"])
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_with_reads_in_between(seed, shape):
    program = random_program(seed, shape)
    wanted, fused = program(Numpy(compiled=False)), Fusion(Numpy(compiled=False))
    for _ in range(TIMES):
        for one, other in zip(program(fused), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("strategy", [None, "balanced"])
def test_checkpointing_above_fusion_gives_the_same_gradients(strategy):
    from burnbook.backend.autodiff import BalancedCheckpointing

    how = {} if strategy is None else {"checkpointing": BalancedCheckpointing()}

    def run(device):
        x = Tensor.from_numpy(np.linspace(-1, 1, 12).reshape(3, 4), device)
        x = x.require_grad()
        y = nn.Tanh().forward(x * 2.0).exp() + x.sigmoid()
        return np.asarray(x.grad(y.sum().backward()))

    wanted = run(Autodiff(WIDE))
    fused = Autodiff(Fusion(WIDE), **how)
    for _ in range(TIMES):
        np.testing.assert_allclose(run(fused), wanted, rtol=1e-12)
