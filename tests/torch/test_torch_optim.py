"""Every optimizer equals PyTorch's, configured alike, over a hundred steps."""

import numpy as np
import pytest

from burnbook import optim
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import UnknownNameError
from burnbook.core.other_names import all_rows
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.lr_scheduler import (
    CosineAnnealingLrSchedulerConfig,
    ExponentialLrSchedulerConfig,
    LinearLrSchedulerConfig,
    StepLrSchedulerConfig,
)
from burnbook.module import Module, Param
from burnbook.optim import (
    LBFGS,
    AdaGradConfig,
    AdamConfig,
    AdamWConfig,
    AdjustLrFn,
    GradientsAccumulator,
    GradientsParams,
    LBFGSConfig,
    LineSearchFn,
    MomentumConfig,
    MuonConfig,
    RmsPropConfig,
    SgdConfig,
    WeightDecayConfig,
)
from burnbook.tensor import Tensor
from tests.support.optimizers_tried import one
from tests.torch.shared import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other make these small steps fifty times slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Pair(Module):
    weight: Param
    bias: Param


def starts(dtype, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(70, 50)).astype(dtype), rng.normal(size=5).astype(dtype)]


def pair(plain) -> Pair:
    device = Autodiff(plain)
    arrays = starts(plain.float_dtype)
    return Pair(*[Param.from_tensor(Tensor.from_numpy(w, device)) for w in arrays])


DECAY = WeightDecayConfig(0.01)
SLIDE = MomentumConfig(momentum=0.8, dampening=0.0)
NESTEROV = SLIDE.with_nesterov(True)
PENALTY, QUICK = {"weight_decay": 0.01}, {"betas": (0.8, 0.9), "eps": 1e-5}
ADAM = AdamConfig(beta_1=0.8, beta_2=0.9)
ADAMW = AdamWConfig(beta_1=0.8, beta_2=0.9, weight_decay=0.1, amsgrad=True)
STILL = RmsPropConfig(alpha=0.9, momentum=0.0, centered=True)
CENTERED = {"alpha": 0.9, "eps": 1e-5, "centered": True}
THEIRS = {
    SgdConfig: "SGD",
    AdamConfig: "Adam",
    AdamWConfig: "AdamW",
    AdaGradConfig: "Adagrad",
    RmsPropConfig: "RMSprop",
}
# Our config and PyTorch's arguments; what differs by default is said.
ALIKE = {
    "sgd": (SgdConfig(), {}),
    "sgd decay": (SgdConfig(weight_decay=DECAY), PENALTY),
    "momentum": (SgdConfig(momentum=SLIDE), {"momentum": 0.8}),
    "dampening": (
        SgdConfig(momentum=MomentumConfig(), weight_decay=DECAY),
        {"momentum": 0.9, "dampening": 0.1, **PENALTY},
    ),
    "nesterov": (SgdConfig(momentum=NESTEROV), {"momentum": 0.8, "nesterov": True}),
    "nesterov decay": (
        SgdConfig(momentum=NESTEROV, weight_decay=DECAY),
        {"momentum": 0.8, "nesterov": True, **PENALTY},
    ),
    "adam": (AdamConfig(epsilon=1e-8), {}),
    "adam decay": (ADAM.with_weight_decay(DECAY), {**QUICK, **PENALTY}),
    "amsgrad": (ADAM.with_amsgrad(True), {**QUICK, "amsgrad": True}),
    "adamw": (AdamWConfig(), {"eps": 1e-5, "weight_decay": 1e-4}),
    "adamw amsgrad": (ADAMW, {**QUICK, "weight_decay": 0.1, "amsgrad": True}),
    "adagrad": (AdaGradConfig(epsilon=1e-10), {}),
    "adagrad decay": (
        AdaGradConfig(lr_decay=0.1, weight_decay=DECAY),
        {"lr_decay": 0.1, "eps": 1e-5, **PENALTY},
    ),
    "rmsprop": (RmsPropConfig(momentum=0.0, epsilon=1e-8), {}),
    "rmsprop momentum": (
        RmsPropConfig(weight_decay=DECAY),
        {"momentum": 0.9, "eps": 1e-5, **PENALTY},
    ),
    "rmsprop centered": (STILL, CENTERED),
    "rmsprop both": (STILL.with_momentum(0.5), {"momentum": 0.5, **CENTERED}),
}


def run(config, arguments, plain, steps=100, clip=None):
    """Both optimizers over the same gradients; gives both results."""
    rng, dtype = np.random.default_rng(1), plain.float_dtype
    module, optim = pair(plain), config.init()
    theirs = [torch.nn.Parameter(torch.from_numpy(w)) for w in starts(dtype)]
    other = getattr(torch.optim, THEIRS[type(config)])(theirs, lr=0.01, **arguments)
    for _ in range(steps):
        grads = [rng.normal(size=tuple(w.shape)).astype(dtype) for w in theirs]
        held = GradientsParams()
        for param, grad in zip((module.weight, module.bias), grads, strict=True):
            held.register(param.id, Tensor.from_numpy(grad, plain))
        module = optim.step(0.01, module, held)
        for weight, grad in zip(theirs, grads, strict=True):
            weight.grad = torch.from_numpy(clipped(grad, clip))
        other.step()
    ours = [np.asarray(param.val()) for param in (module.weight, module.bias)]
    return ours, [weight.detach().numpy() for weight in theirs]


def clipped(grad: np.ndarray, clip: str | None) -> np.ndarray:
    if clip == "Value":
        return np.clip(grad, -1, 1)
    norm = np.linalg.norm(grad)
    return grad * grad.dtype.type(1 / norm) if clip == "Norm" and norm > 1 else grad


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize(
    ("plain", "tolerance"),
    [
        (Numpy(float="f64"), 1e-11),
        (Numpy(compiled=False), 1e-4),
        (Numpy(compiled=True), 1e-4),
    ],
    ids=["f64", "f32", "compiled"],
)
def test_a_hundred_steps(name, plain, tolerance):
    if plain.compiled:
        pytest.importorskip("numba", reason="kernels are compiled by numba")
    for ours, wanted in zip(*run(*ALIKE[name], plain), strict=True):
        assert ours.dtype == plain.float_dtype
        np.testing.assert_allclose(ours, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("clip", ["Value", "Norm"])
def test_clipping_over_a_hundred_steps(clip):
    config = AdamConfig(grad_clipping=getattr(GradientClippingConfig, clip)(1.0))
    plain = Numpy(float="f64")
    rows = run(config, {"eps": 1e-5}, plain, clip=clip)
    for ours, wanted in zip(*rows, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("shape", [(12, 8), (8, 12), (9, 9)])
@pytest.mark.parametrize("adjust", ["Original", "MatchRmsAdamW"])
def test_muon_within_the_half_precision_that_pytorch_computes_in(shape, adjust):
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("this PyTorch has no Muon")
    rng, plain = np.random.default_rng(2), Numpy(float="f64")
    start = rng.normal(size=shape)
    module = one(start, Autodiff(plain))
    config = MuonConfig(adjust_lr_fn=getattr(AdjustLrFn, adjust), weight_decay=DECAY)
    optim, weight = config.init(), torch.nn.Parameter(torch.from_numpy(start.copy()))
    words = {"Original": "original", "MatchRmsAdamW": "match_rms_adamw"}
    other = torch.optim.Muon(
        [weight], lr=0.02, weight_decay=0.01, adjust_lr_fn=words[adjust]
    )
    for _ in range(20):
        grad = rng.normal(size=shape)
        held = GradientsParams({module.weight.id: Tensor.from_numpy(grad, plain)})
        module = optim.step(0.02, module, held)
        weight.grad = torch.from_numpy(grad)
        other.step()
    moved = np.asarray(module.weight.val()) - start
    wanted = weight.detach().numpy() - start
    assert np.abs(moved - wanted).max() < 0.02 * np.abs(wanted).max()


A = np.random.default_rng(3).normal(size=(30, 6))
Y = np.sin(A @ np.arange(6)) + 0.1 * A[:, 0]


def bumpy(w, x, y, tanh):
    """A loss with a curvature that changes: Σ (tanh(A w) − y)² + 0.1 Σ w⁴."""
    error = tanh(x @ w) - y
    return (error * error).sum() + (w * w * w * w).sum() * 0.1


@pytest.mark.parametrize(
    ("lr", "search", "attrs"),
    [
        (0.1, None, {"max_iter": 4, "max_eval": 100}),
        (0.1, None, {"max_iter": 6}),
        (1.0, "strong_wolfe", {"max_iter": 5, "max_eval": 1000}),
        (1.0, "strong_wolfe", {"history_size": 3, "max_eval": 1000}),
        (1e-3, "strong_wolfe", {"max_iter": 1, "max_eval": 1000}),
        (300.0, "strong_wolfe", {"max_iter": 3, "max_eval": 1000}),
    ],
)
def test_lbfgs_goes_the_same_way(lr, search, attrs):
    device = Autodiff(Numpy(float="f64"))
    start = np.linspace(-1, 1, 6).reshape(6, 1)
    module = one(start, device)
    x, y = (Tensor.from_numpy(a, device) for a in (A, Y.reshape(30, 1)))
    weight = torch.tensor(start, requires_grad=True)
    config, counts = LBFGSConfig(**attrs), [0, 0]
    if search:
        config = config.with_line_search_fn(LineSearchFn.StrongWolfe)
    optim = config.init()
    other = torch.optim.LBFGS([weight], lr=lr, line_search_fn=search, **attrs)
    assert isinstance(optim, LBFGS)

    def ours(module):
        counts[0] += 1
        loss = bumpy(module.weight.val(), x, y, Tensor.tanh)
        return loss, GradientsParams.from_grads(loss.backward(), module)

    def theirs():
        counts[1] += 1
        other.zero_grad()
        given = torch.from_numpy(A), torch.from_numpy(Y.reshape(30, 1))
        loss = bumpy(weight, *given, torch.tanh)
        loss.backward()
        return loss

    for _ in range(12):
        module, loss = optim.step(lr, module, ours)
        wanted = other.step(theirs).item()
        assert np.isclose(loss, wanted, rtol=1e-9, atol=1e-12)
    assert counts[0] == counts[1]
    found = np.asarray(module.weight.val())
    np.testing.assert_allclose(found, weight.detach().numpy(), rtol=1e-7, atol=1e-9)


SCHEDULES = {
    "linear": (
        LinearLrSchedulerConfig(0.5, 0.1, 10),
        "LinearLR",
        {"start_factor": 1.0, "end_factor": 0.2, "total_iters": 10},
    ),
    "cosine": (
        CosineAnnealingLrSchedulerConfig(0.5, 25, min_lr=0.1),
        "CosineAnnealingLR",
        {"T_max": 25, "eta_min": 0.1},
    ),
    "exponential": (
        *(ExponentialLrSchedulerConfig(0.5, 0.9), "ExponentialLR"),
        {"gamma": 0.9},
    ),
    "step": (
        *(StepLrSchedulerConfig(0.5, 4, gamma=0.5), "StepLR"),
        {"step_size": 4, "gamma": 0.5},
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.filterwarnings("ignore:Detected call of")
def test_schedules_follow_the_same_curve(name):
    config, cls, arguments = SCHEDULES[name]
    optim = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    other = getattr(torch.optim.lr_scheduler, cls)(optim, **arguments)
    schedule = config.init()
    for _ in range(26):
        assert np.isclose(schedule.step(), other.get_last_lr()[0], rtol=1e-12)
        other.step()


@pytest.mark.parametrize(
    ("plain", "tolerance"),
    [(Numpy(float="f64"), 1e-12), (Numpy(compiled=False), 2e-6)],
    ids=["f64", "f32"],
)
@pytest.mark.parametrize("threshold", [0.5, 2.0, 1e3])
@pytest.mark.parametrize("batches", [1, 3])
def test_clipping_by_global_norm_is_clip_grad_norm(
    plain, tolerance, threshold, batches
):
    rng, dtype = np.random.default_rng(4), plain.float_dtype
    module = pair(plain)
    clipping = GradientClippingConfig.GlobalNorm(threshold)
    optim = SgdConfig(gradient_clipping=clipping).init()
    theirs = [torch.nn.Parameter(torch.from_numpy(w)) for w in starts(dtype)]
    other = torch.optim.SGD(theirs, lr=0.1)
    for _ in range(20):
        sums = GradientsAccumulator()
        other.zero_grad()
        for _ in range(batches):
            grads = [rng.normal(size=tuple(w.shape)).astype(dtype) for w in theirs]
            held = GradientsParams()
            for param, grad in zip((module.weight, module.bias), grads, strict=True):
                held.register(param.id, Tensor.from_numpy(grad, plain))
            sums.accumulate(module, held)
            for weight, grad in zip(theirs, grads, strict=True):
                old = 0.0 if weight.grad is None else weight.grad
                weight.grad = torch.from_numpy(grad) + old
        total, held = torch.nn.utils.clip_grad_norm_(theirs, threshold), sums.grads()
        np.testing.assert_allclose(held.norm(), total.item(), rtol=1e-6)
        module = optim.step(0.1, module, held)
        other.step()
    for param, weight in zip((module.weight, module.bias), theirs, strict=True):
        wanted = weight.detach().numpy()
        np.testing.assert_allclose(param.val(), wanted, tolerance, tolerance)


def optimizers_of_pytorch():
    found = getattr(torch.optim, "__dict__", {})
    return sorted(n for n, kind in found.items() if isinstance(kind, type))


@pytest.mark.parametrize("name", optimizers_of_pytorch())
def test_only_the_same_rule_is_said_to_be_the_same(name):
    """A row beside PyTorch, where the name is answered without "the nearest"."""
    if name == "Optimizer" or hasattr(optim, name):
        return
    with pytest.raises(UnknownNameError) as caught:
        getattr(optim, name)
    if "in burnbook this is" not in caught.value.what:
        assert "the nearest" in caught.value.what
        return
    rows = [row for row in all_rows() if name in row.names and row.theirs]
    same = any(theirs.how == "" for row in rows for theirs in row.theirs)
    assert same or name in ("SparseAdam", "ASGD")  # Adam; two things together
