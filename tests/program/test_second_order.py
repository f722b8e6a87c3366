"""The gradient of every op is captured under a second Autodiff, as it is computed."""

import numpy as np
import pytest

import burnbook.ops  # noqa: F401 - declares them
from burnbook import nn, seed
from burnbook.backend import Autodiff, Numpy
from burnbook.core.op import OPS, draw, split_sample
from burnbook.module import Module
from burnbook.optim import GradientsParams, SgdConfig
from burnbook.program import capture, capture_training
from burnbook.tensor import Tensor, activation, apply

INNER = Autodiff(Numpy())
OUTER = Autodiff(INNER)
SAMPLES = [
    pytest.param(
        o, *split_sample(row), id=f"{o.name}-{i}", marks=[pytest.mark.slow] if i else []
    )
    for o in OPS.values()
    for i, row in enumerate(o.samples)
    if o.rules and o.inputs
]


def f32(array):
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def second_order(made, attrs, free, weights, cotangents):
    """A function of the inputs of an op: the gradients of a sum of its gradients."""

    def function(*given):
        low = [t.require_grad() if i in free else t for i, t in enumerate(given)]
        tensors = [
            Tensor.from_inner(t, OUTER).require_grad()
            if i in free
            else Tensor(t.value, t.kind, OUTER, t.rank)
            for i, t in enumerate(low)
        ]
        out = apply(made, *tensors, **attrs)
        scale = Tensor.from_numpy(weights, OUTER)
        first = (out.square() * scale).backward()
        total = Tensor.zeros([1], INNER)
        for i, cotangent in zip(free, cotangents, strict=True):
            total = total + (tensors[i].grad(first).square() * cotangent).sum()
        second = total.backward()
        found = [low[i].grad(second) for i in free]
        return [total.inner(), *[grad for grad in found if grad is not None]]

    return function


@pytest.mark.parametrize(("made", "specs", "attrs"), SAMPLES)
def test_a_second_order_loss_is_captured_as_it_is_computed(made, specs, attrs):
    rng = np.random.default_rng(0)
    arrays = [f32(draw(spec, rng)) for spec in specs]
    free = [
        i
        for i, x in enumerate(arrays)
        if x.dtype.kind == "f" and made.can_track[0 if made.many else i]
    ]
    out = made.forward(np, *arrays, **attrs)
    out = out[0] if made.extras else out
    weights = rng.uniform(0.5, 1.5, np.shape(out)).astype(np.float32)
    cotangents = [
        Tensor.from_numpy(rng.uniform(0.5, 1.5, arrays[i].shape), INNER) for i in free
    ]
    function = second_order(made, attrs, free, weights, cotangents)
    program = capture(
        function, *[Tensor.from_numpy(array, INNER) for array in arrays], batch=None
    )
    rng = np.random.default_rng(1)  # other elements than those of the capture
    inputs = [Tensor.from_numpy(f32(draw(spec, rng)), INNER) for spec in specs]
    wanted = [np.asarray(tensor) for tensor in function(*inputs)]
    plain = [Tensor(t.value, t.kind, INNER.inner, t.rank) for t in inputs]
    for run in (program, program.compile()):
        for found, right in zip(run(*plain), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(found), right, rtol=2e-4, atol=1e-5)


class Net(Module):
    """Two layers around an activation."""

    first: nn.Linear
    last: nn.Linear

    def forward(self, x, bend):
        return self.last(bend(self.first(x)))


BENDS = {
    "relu": lambda x: x.relu(),
    "abs": lambda x: x.abs(),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "elu": lambda x: activation.elu(x, 1.0),
    "max_dim": lambda x: x * x.max_dim(1),
    "min": lambda x: x * x.min().unsqueeze_dim(0),
}


@pytest.mark.parametrize("name", BENDS)
def test_training_on_the_slope_of_a_network_is_that_of_the_eager_loop(name):
    seed(0)
    net = Net(nn.LinearConfig(1, 16).init(OUTER), nn.LinearConfig(16, 1).init(OUTER))
    x = Tensor.from_numpy(np.linspace(-1, 1, 8, dtype=np.float32)[:, None], OUTER)

    def loss(model, x):
        x = x.require_grad()
        out = model.forward(x, BENDS[name])
        return (x.grad(out.backward()) - 1.0).square().mean()

    optim = SgdConfig().init()
    training = capture_training(net, loss, optim, x, batch=None)
    state = training.start
    for _ in range(3):
        value = loss(net, x)
        state, found = training.step(state, 0.1, x)
        assert np.asarray(found) == np.asarray(value.inner())
        net = optim.step(0.1, net, GradientsParams.from_grads(value.backward(), net))
