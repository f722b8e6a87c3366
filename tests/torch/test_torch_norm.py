"""Norms, activations and the rest equal PyTorch's, forward and every gradient."""

import math

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.config import Config
from burnbook.core.other_names import all_rows
from burnbook.tensor import Tensor
from tests.torch.shared import RNG, agree, close, leaves, torch

F = torch.nn.functional

DEVICES = {
    "f64": Autodiff(Numpy(float="f64")),
    "f32": Autodiff(Numpy(compiled=False)),
    "compiled": Autodiff(Numpy()),
}


def random_values(module):
    """The module with random values in place of ones and zeros."""

    class Fill:
        def map_float(self, _, tensor):
            values = RNG.uniform(0.5, 1.5, tensor.dims())
            made = Tensor.from_numpy(values, tensor.backend).cast(tensor.dtype)
            return made.require_grad() if tensor.is_require_grad() else made

    return module.map(Fill())


def compare(ours, theirs, x, device, names=()):
    """Outputs, and the gradients of input and parameters for one random direction.

    `theirs` takes the input and our parameters, in the order of `names`.
    """
    (mine,), (other,) = leaves(device, x)
    held = [getattr(ours, name).val() for name in names]
    copies = [torch.tensor(np.asarray(t), requires_grad=True) for t in held]
    pairs = [(mine, other), *zip(held, copies, strict=True)]
    agree(ours.forward(mine), theirs(other, *copies), pairs)


@pytest.fixture(params=DEVICES)
def device(request):
    return DEVICES[request.param]


@pytest.mark.parametrize("epsilon", [1e-5, 0.3])
@pytest.mark.parametrize("shape", [(48,), (64, 48), (2, 5, 300), (3, 5)], ids=str)
def test_layer_norm(device, shape, epsilon):
    size = shape[-1]
    layer = nn.LayerNormConfig(size).with_epsilon(epsilon).init(device)
    x = RNG.normal(1, 2, shape)

    def theirs(x, gamma, beta):
        return F.layer_norm(x, [size], gamma, beta, epsilon)

    compare(random_values(layer), theirs, x, device, ["gamma", "beta"])
    layer = nn.LayerNormConfig(size).with_epsilon(epsilon).with_bias(False).init(device)
    theirs = lambda x, gamma: F.layer_norm(x, [size], gamma, None, epsilon)  # noqa: E731
    compare(random_values(layer), theirs, x, device, ["gamma"])


@pytest.mark.parametrize("shape", [(48,), (64, 48), (2, 5, 300)], ids=str)
def test_rms_norm(device, shape):
    layer = random_values(nn.RmsNormConfig(shape[-1]).with_epsilon(0.01).init(device))
    theirs = lambda x, gamma: F.rms_norm(x, [shape[-1]], gamma, 0.01)  # noqa: E731
    compare(layer, theirs, RNG.normal(1, 2, shape), device, ["gamma"])


GROUPS = [(1, 6), (2, 6), (6, 6), (3, 12)]


@pytest.mark.parametrize("groups", GROUPS, ids=str)
@pytest.mark.parametrize("rest", [(), (5,), (4, 3), (7, 9), (2, 3, 4)], ids=str)
def test_group_norm(device, rest, groups):
    x = RNG.normal(1, 2, (3, groups[1], *rest))
    if x[0].size // groups[0] < 2:
        pytest.skip("a group of one number")
    config = nn.GroupNormConfig(*groups).with_epsilon(0.1)

    def theirs(x, gamma, beta):
        rows = x.reshape(3, groups[0], -1)
        var, mean = torch.var_mean(rows, -1, correction=0, keepdim=True)
        hat = ((rows - mean) / (var.sqrt() + 0.1)).reshape(x.shape)
        line = (-1, *[1] * len(rest))
        return hat * gamma.reshape(line) + beta.reshape(line)

    layer = random_values(config.init(device))
    compare(layer, theirs, x, device, ["gamma", "beta"])
    layer = random_values(config.with_epsilon_inside(True).init(device))
    theirs = lambda x, gamma, beta: F.group_norm(x, groups[0], gamma, beta, 0.1)  # noqa: E731
    compare(layer, theirs, x, device, ["gamma", "beta"])


@pytest.mark.parametrize("rest", [(16,), (4, 5), (2, 3, 4)], ids=str)
def test_instance_norm(device, rest):
    x = RNG.normal(1, 2, (3, 4, *rest))
    config = nn.InstanceNormConfig(4).with_epsilon(0.1).with_epsilon_inside(True)
    layer = random_values(config.init(device))

    def theirs(x, gamma, beta):
        return F.instance_norm(x, weight=gamma, bias=beta, eps=0.1)

    compare(layer, theirs, x, device, ["gamma", "beta"])
    bare = config.with_affine(False).init(device)
    compare(bare, lambda x: F.instance_norm(x, eps=0.1), x, device)


@pytest.mark.parametrize("shape", [(9, 3), (4, 3, 20), (5, 3, 6, 7), (2, 3, 2, 3, 4)])
def test_batch_norm(device, shape):
    """In training; PyTorch divides the variance that it remembers by n − 1."""
    x = RNG.normal(1, 2, shape)
    layer = random_values(nn.BatchNormConfig(3).with_momentum(0.3).init(device))
    state = [torch.from_numpy(np.array(layer.running_mean.val()))]
    state += [torch.from_numpy(np.array(layer.running_var.val()))]
    before = state[1].clone()

    def theirs(x, gamma, beta):
        return F.batch_norm(x, *state, gamma, beta, training=True, momentum=0.3)

    compare(layer, theirs, x, device, ["gamma", "beta"])
    close(layer.running_mean.val(), state[0])
    count = x.size // 3
    biased = 0.7 * before + (state[1] - 0.7 * before) * (count - 1) / count
    close(layer.running_var.val(), biased)


@pytest.mark.parametrize("shape", [(9, 3), (4, 3, 20), (1, 3, 6, 7)])
@pytest.mark.parametrize("compiled", [True, False])
def test_batch_norm_for_inference(shape, compiled):
    device = Numpy() if compiled else Numpy(compiled=False)
    x = RNG.normal(1, 2, shape).astype(np.float32)
    layer = random_values(nn.BatchNormConfig(3).init(device))
    names = ("running_mean", "running_var", "gamma", "beta")
    values = [torch.from_numpy(np.array(getattr(layer, n).val())) for n in names]
    out = layer.forward(Tensor.from_numpy(x, device))
    close(out, F.batch_norm(torch.from_numpy(x), *values), 1e-5)


@pytest.mark.parametrize("size", [1, 3, 5, 9])
def test_local_response_norm(device, size):
    layer = nn.LocalResponseNormConfig(size).with_alpha(0.5).with_k(2.0).init()
    theirs = lambda x: F.local_response_norm(x, size, 0.5, 0.75, 2.0)  # noqa: E731
    compare(layer, theirs, RNG.normal(size=(2, 6, 5, 4)), device)


@pytest.mark.parametrize("size", [2, 4, 6])
def test_an_even_window_of_local_response_norm_is_the_mirrored_one(size):
    """The odd channel is after here, as in ONNX, and before in PyTorch."""
    layer = nn.LocalResponseNormConfig(size).with_alpha(0.5).init()
    x = RNG.normal(size=(2, 6, 5, 4))
    ours = np.asarray(layer.forward(Tensor.from_numpy(x[:, ::-1], Numpy(float="f64"))))
    theirs = F.local_response_norm(torch.from_numpy(x), size, 0.5)
    assert np.allclose(ours[:, ::-1], theirs)


# Our layer or its config, and what PyTorch has.
ACTIVATIONS = {
    "relu": (nn.Relu(), F.relu),
    "relu6": (nn.Relu6(), F.relu6),
    "gelu": (nn.Gelu(), F.gelu),
    "gelu approximate": (
        nn.Gelu(approximate=True),
        lambda x: F.gelu(x, approximate="tanh"),
    ),
    "sigmoid": (nn.Sigmoid(), torch.sigmoid),
    "log sigmoid": (nn.LogSigmoid(), F.logsigmoid),
    "tanh": (nn.Tanh(), torch.tanh),
    "tanhshrink": (nn.Tanhshrink(), F.tanhshrink),
    "softsign": (nn.Softsign(), F.softsign),
    "silu": (nn.SiLU(), F.silu),
    "hard swish": (nn.HardSwish(), F.hardswish),
    "mish": (nn.Mish(), F.mish),
    "selu": (nn.Selu(), F.selu),
    "leaky relu": (nn.LeakyReluConfig(), F.leaky_relu),
    "steep leaky relu": (
        nn.LeakyReluConfig(negative_slope=1.5),
        lambda x: F.leaky_relu(x, 1.5),
    ),
    "elu": (nn.EluConfig(alpha=1.3), lambda x: F.elu(x, 1.3)),
    "celu": (nn.CeluConfig(alpha=2.0), lambda x: F.celu(x, 2.0)),
    "threshold": (nn.ThresholdConfig(0.3, 2.0), lambda x: F.threshold(x, 0.3, 2)),
    "thresholded relu": (
        nn.ThresholdedReluConfig(alpha=0.7),
        lambda x: F.threshold(x, 0.7, 0.0),
    ),
    "hard sigmoid": (
        nn.HardSigmoidConfig(alpha=0.3, beta=0.4),
        lambda x: torch.clamp(0.3 * x + 0.4, 0.0, 1.0),
    ),
    "hardtanh": (
        nn.HardtanhConfig(min_val=-0.5, max_val=2.0),
        lambda x: F.hardtanh(x, -0.5, 2.0),
    ),
    "softplus": (nn.SoftplusConfig(beta=2.0), lambda x: F.softplus(x, 2.0, 1e9)),
    "softplus, threshold": (
        nn.SoftplusConfig(beta=2.0, threshold=0.5),
        lambda x: F.softplus(x, 2.0, 0.5),
    ),
    "hard shrink": (nn.HardShrinkConfig(), F.hardshrink),
    "soft shrink": (nn.SoftShrinkConfig(), F.softshrink),
    "softmax": (nn.Softmax(1), lambda x: torch.softmax(x, 1)),
    "log softmax": (nn.LogSoftmax(2), lambda x: torch.log_softmax(x, 2)),
    "softmin": (nn.Softmin(0), lambda x: F.softmin(x, 0)),
    "glu": (nn.Glu(1), lambda x: F.glu(x, 1)),
    "glu from the end": (nn.Glu(-1), F.glu),
    "rrelu": (nn.RReluConfig(lower=0.3, upper=0.3), lambda x: F.leaky_relu(x, 0.3)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(device, name):
    ours, theirs = ACTIVATIONS[name]
    ours = ours.init() if isinstance(ours, Config) else ours
    compare(ours, theirs, RNG.normal(0, 2, (3, 4, 6)), device)


@pytest.mark.parametrize("count", [1, 4])
def test_prelu(device, count):
    layer = random_values(nn.PReluConfig(num_parameters=count).init(device))
    compare(layer, F.prelu, RNG.normal(size=(3, 4, 5)), device, ["alpha"])


@pytest.mark.parametrize("bias", [True, False])
def test_swiglu(bias):
    device = DEVICES["f64"]
    layer = nn.SwiGluConfig(5, 3).with_bias(bias).init(device)
    held = [t.val() for _, t in layer.named_params()]
    copies = [torch.from_numpy(np.array(t)).requires_grad_() for t in held]
    a, c, b, d = copies if bias else (copies[0], 0.0, copies[1], 0.0)
    (mine,), (other,) = leaves(device, RNG.normal(size=(4, 5)))
    out, wanted = layer.forward(mine), F.silu(other @ a + c) * (other @ b + d)
    agree(out, wanted, [(mine, other), *zip(held, copies, strict=True)])


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_pixels_and_channels(device, factor):
    many = RNG.normal(size=(2, 2 * factor**2, 3, 4))
    shuffle = nn.PixelShuffleConfig(factor).init()
    compare(shuffle, lambda x: F.pixel_shuffle(x, factor), many, device)
    large = RNG.normal(size=(2, 3, 4 * factor, 2 * factor))
    back = nn.PixelUnshuffleConfig(factor).init()
    compare(back, lambda x: F.pixel_unshuffle(x, factor), large, device)


class Pair:
    """A distance to a fixed other input, as a layer of one input."""

    def __init__(self, layer, other):
        self.layer, self.other = layer, other

    def forward(self, x):
        return self.layer.forward(x, Tensor.from_numpy(self.other, x.backend))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_distances(device, p):
    x, y = RNG.normal(size=(2, 5, 7))
    y = np.asarray(Tensor.from_numpy(y, device))
    layer = Pair(nn.PairwiseDistanceConfig(p=p).init(), y)
    theirs = lambda x: F.pairwise_distance(x, torch.from_numpy(y.copy()), p)  # noqa: E731
    compare(layer, theirs, x, device)
    layer = Pair(nn.CosineSimilarityConfig().init(), y)
    theirs = lambda x: F.cosine_similarity(x, torch.from_numpy(y.copy()))  # noqa: E731
    compare(layer, theirs, x, device)


@pytest.mark.parametrize("shape", [(2, 3), (4, 3, 5)])
def test_the_running_variance_divides_by_n_as_burns_and_not_as_pytorchs(shape):
    """What its docstring and the table of names say of the two."""
    device = Autodiff(Numpy(float="f64"))
    layer, theirs = nn.BatchNormConfig(3).init(device), torch.nn.BatchNorm1d(3).double()
    x = np.random.default_rng(0).normal(size=shape)
    layer.forward(Tensor.from_numpy(x, device))
    theirs(torch.tensor(x))
    n = x.size // 3
    taken = np.asarray(layer.running_var.value_sync()) - 0.9
    assert np.allclose(taken, (theirs.running_var.numpy() - 0.9) * (n - 1) / n)
    assert np.allclose(layer.running_mean.value_sync(), theirs.running_mean.numpy())
    (row,) = [r for r in all_rows() if "BatchNorm2d" in r.names and r.theirs]
    assert "n − 1" in row.advice.remark
    assert "n − 1" in nn.BatchNorm.__doc__
