"""Losses equal PyTorch's: the value, and every slope."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.config import Config
from burnbook.nn.loss import (
    BinaryCrossEntropyLossConfig,
    CosineEmbeddingLossConfig,
    CrossEntropyLossConfig,
    CTCLossConfig,
    GaussianNLLLossConfig,
    GramMatrixLossConfig,
    HingeEmbeddingLossConfig,
    HuberLossConfig,
    KLDivLossConfig,
    LpLossConfig,
    MarginRankingLossConfig,
    MseLoss,
    MultiMarginLossConfig,
    PoissonNllLossConfig,
    Reduction,
    SmoothL1LossConfig,
    SoftMarginLoss,
    TripletMarginLossConfig,
)
from burnbook.tensor import Tensor
from tests.torch.shared import torch

F = torch.nn.functional

F64 = Autodiff(Numpy(float="f64"))
RNG = np.random.default_rng(0)
X, Y, Z = (RNG.normal(size=(6, 4)) for _ in range(3))
P = RNG.random((6, 4)) * 0.8 + 0.1
COUNTS = RNG.integers(0, 6, (6, 4)).astype(float)
SIGNS = np.where(RNG.random((6, 4)) < 0.5, -1.0, 1.0)
ROW_SIGNS = np.where(RNG.random(6) < 0.5, -1, 1)
CLASSES = RNG.integers(0, 4, 6)
SHARES = P / P.sum(1, keepdims=True)
LOGS = np.log(P)
GAUSSIAN, POISSON = GaussianNLLLossConfig(), PoissonNllLossConfig()
HINGE = HingeEmbeddingLossConfig(margin=0.7)
RANKING = MarginRankingLossConfig(margin=0.2)
NEAR, MARGIN = TripletMarginLossConfig(), MultiMarginLossConfig()
KL_LOG, XY, XYZ, XC = KLDivLossConfig(log_target=True), (X, Y), (X, Y, Z), (X, CLASSES)
# Our config, PyTorch's class and its arguments, the inputs.
CASES = {
    "mse": (MseLoss.new(), "MSELoss", {}, XY),
    "l1": (LpLossConfig.l1(), "L1Loss", {}, XY),
    "huber": (HuberLossConfig(0.6), "HuberLoss", {"delta": 0.6}, XY),
    "poisson": (POISSON.with_full(True), "PoissonNLLLoss", {"full": True}, (X, COUNTS)),
    "poisson-rate": (
        *(POISSON.with_log_input(False), "PoissonNLLLoss"),
        *({"log_input": False}, (P, COUNTS)),
    ),
    "gaussian": (GAUSSIAN.with_full(True), "GaussianNLLLoss", {"full": True}, (*XY, P)),
    "kl_div": (KLDivLossConfig(), "KLDivLoss", {}, (LOGS, SHARES)),
    "kl_div-log": (KL_LOG, "KLDivLoss", {"log_target": True}, (LOGS, np.log(SHARES))),
    "hinge": (HINGE, "HingeEmbeddingLoss", {"margin": 0.7}, (X, SIGNS)),
    "ranking": (RANKING, "MarginRankingLoss", {"margin": 0.2}, (*XY, SIGNS)),
    "multi_margin": (MARGIN.with_margin(0.9), "MultiMarginLoss", {"margin": 0.9}, XC),
    "multi_margin-2": (MARGIN.with_p(2), "MultiMarginLoss", {"p": 2}, XC),
    "soft_margin": (SoftMarginLoss.new(), "SoftMarginLoss", {}, (X, SIGNS)),
    "triplet": (
        *(NEAR.with_margin(0.5), "TripletMarginLoss"),
        *({"margin": 0.5, "eps": 0.0}, XYZ),
    ),
    "triplet-3": (NEAR.with_p(3.0), "TripletMarginLoss", {"p": 3.0, "eps": 0.0}, XYZ),
}
TORCH_NAME = {
    Reduction.Mean: "mean",
    Reduction.Sum: "sum",
    Reduction.BatchMean: "batchmean",
}


def compare(ours, theirs, arrays, device=F64, near=1e-12, rtol=1e-9, atol=1e-12):
    """The value of a loss and the slopes of its inputs, but for signs and counts."""
    mine = [Tensor.from_numpy(a, device) for a in arrays]
    others = [torch.from_numpy(a.copy()) for a in arrays]
    learned = [
        i
        for i, a in enumerate(arrays)
        if a.dtype.kind == "f" and a is not SIGNS and a is not COUNTS
    ]
    for i in learned:
        mine[i], others[i] = mine[i].require_grad(), others[i].requires_grad_()
    out, wanted = ours(*mine), theirs(*others)
    assert np.isclose(out.into_scalar(), wanted.item(), rtol=near)
    grads = out.backward()
    wanted.backward()
    for i in learned:
        slope, other = np.asarray(mine[i].grad(grads)), others[i].grad.numpy()
        np.testing.assert_allclose(slope, other, rtol=rtol, atol=atol)


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")
@pytest.mark.parametrize("reduction", [Reduction.Mean, Reduction.Sum], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_a_loss_and_its_slopes(name, reduction):
    made, theirs, options, arrays = CASES[name]
    ours = made.init() if isinstance(made, Config) else made
    theirs = getattr(torch.nn, theirs)(reduction=TORCH_NAME[reduction], **options)
    compare(lambda *tensors: ours.forward(*tensors, reduction), theirs, arrays)


EACH = CASES | {
    "smooth_l1": (SmoothL1LossConfig(beta=0.6), "SmoothL1Loss", {"beta": 0.6}, XY),
    "cosine": (
        *(CosineEmbeddingLossConfig(margin=0.3), "CosineEmbeddingLoss"),
        *({"margin": 0.3}, (X, Y, ROW_SIGNS)),
    ),
}
HUGE = {"mse", "l1", "huber", "smooth_l1", "hinge", "ranking"}
DEVICES = {"plain": Numpy(compiled=False), "as it comes": Numpy(), "exact": F64.inner}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", [6, 1, 0, "huge"])
@pytest.mark.parametrize("name", EACH)
def test_each_loss_and_its_slope_without_a_reduction(name, rows, device):
    """A whole batch, a batch of one, of none, and of numbers of any size."""
    made, theirs, options, arrays = EACH[name]
    if rows == "huge":
        if name not in HUGE and "multi_margin" not in name:
            pytest.skip(
                "its loss of large numbers is infinite there, or its inputs are small"
            )
        arrays = [a * 1e4 if a is X or a is Y else a for a in arrays]
    else:
        arrays = [a[:rows] for a in arrays]
    if not rows and (name.startswith("multi_margin") or name == "cosine"):
        pytest.skip("PyTorch refuses a batch of none")
    outer = Autodiff(DEVICES[device])
    exact, dtype = device == "exact", outer.float_dtype
    arrays = [a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays]
    loss = made.init() if isinstance(made, Config) else made
    mine = [Tensor.from_numpy(a, outer) for a in arrays]
    others = [torch.from_numpy(a.copy()) for a in arrays]
    x, y = mine[0].require_grad(), others[0].requires_grad_()
    out = loss.forward_no_reduction(x, *mine[1:])
    wanted = getattr(torch.nn, theirs)(reduction="none", **options)(y, *others[1:])
    assert out.dims() == tuple(wanted.shape)
    near = 1e-9 if exact else 3e-5
    near = {"rtol": near, "atol": near}
    np.testing.assert_allclose(np.asarray(out), wanted.detach().numpy(), **near)
    slope = x.grad(out.sum().backward())
    wanted.sum().backward()
    np.testing.assert_allclose(np.asarray(slope), y.grad.numpy(), **near)
    total = loss.forward(*mine, Reduction.Sum).into_scalar()
    assert np.isclose(total, wanted.sum().item(), rtol=1e-5)
    if not rows:
        return  # a mean of none is refused, where PyTorch's is NaN
    mean = loss.forward(*mine, Reduction.Mean).into_scalar()
    assert np.isclose(mean, wanted.mean().item(), rtol=1e-5, equal_nan=True)


def test_the_divergence_over_the_batch():
    theirs = torch.nn.KLDivLoss(reduction="batchmean")
    compare(KLDivLossConfig().init().forward, theirs, (LOGS, SHARES))


@pytest.mark.parametrize("reduction", [Reduction.Mean, Reduction.Sum], ids=str)
def test_smooth_l1(reduction):
    loss = SmoothL1LossConfig().with_beta(0.6).init()
    theirs = torch.nn.SmoothL1Loss(reduction=TORCH_NAME[reduction], beta=0.6)
    compare(lambda x, y: loss.forward_with_reduction(x, y, reduction), theirs, (X, Y))


@pytest.mark.parametrize("margin", [0.0, -0.5, 0.3])
def test_cosine_embedding(margin):
    loss = CosineEmbeddingLossConfig().with_margin(margin).init()
    theirs = torch.nn.CosineEmbeddingLoss(margin)
    compare(loss.forward, theirs, (X, Y, ROW_SIGNS))


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5, 3.0]])
@pytest.mark.parametrize("logits", [True, False])
def test_binary_cross_entropy(weights, logits):
    """PyTorch's targets are Float; its weights count the same."""
    config = BinaryCrossEntropyLossConfig().with_weights(weights).with_logits(logits)
    loss = config.init(F64)
    balance = None if weights is None else torch.tensor(weights, dtype=torch.float64)
    name = "binary_cross_entropy" + ("_with_logits" if logits else "")
    compare(
        loss.forward,
        lambda x, y: getattr(F, name)(x, y.double(), balance),
        (X if logits else P, (SIGNS > 0).astype(np.int64)),
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_with_padding_that_counts_for_nothing(smoothing):
    """With weights, Burn's mean leaves out what is no class, as PyTorch's does."""
    classes = np.where(np.arange(6) % 3 == 1, -100, CLASSES)
    weights = [1.0, 2.0, 0.5, 3.0]
    config = CrossEntropyLossConfig().with_weights(weights).with_pad_tokens([-100])
    loss = config.with_smoothing(smoothing or None).init(F64)
    balance = torch.tensor(weights, dtype=torch.float64)
    compare(
        loss.forward,
        lambda x, y: F.cross_entropy(x, y, balance, label_smoothing=smoothing),
        (X, classes),
    )


@pytest.mark.parametrize("average", [False, True])
def test_style_with_the_layers_of_vgg19(average):
    device = Autodiff(Numpy(float="f32"))
    config = GramMatrixLossConfig([1.0, 0.5, 2.0, 1.0, 3.0]).with_use_avg_pool(average)
    loss = config.init(device)
    layers = loss.feat_extractor
    x, y = (RNG.random((2, 3, 16, 16), dtype=np.float32) for _ in range(2))

    def features(images):
        mean = torch.tensor([0.485, 0.456, 0.406]).reshape(3, 1, 1)
        std = torch.tensor([0.229, 0.224, 0.225]).reshape(3, 1, 1)
        out, seen = (images - mean) / std, []
        for name in layers.sources():
            if name.endswith("_1") and seen:
                pool = F.avg_pool2d if average else F.max_pool2d
                out = pool(out, 2)
            layer = getattr(layers, name)
            weight, bias = (
                torch.from_numpy(np.array(p.val())) for p in (layer.weight, layer.bias)
            )
            out = torch.relu(F.conv2d(out, weight, bias, padding=1))
            if name.endswith("_1"):
                seen.append(out.flatten(2))
        return seen

    theirs = torch.from_numpy(x).requires_grad_()
    total = 0
    pairs = zip(features(theirs), features(torch.from_numpy(y)), strict=True)
    for weight, (a, b) in zip(loss.layer_weights, pairs, strict=True):
        _, c, size = a.shape
        apart = ((a @ a.mT - b @ b.mT) ** 2).sum((1, 2)) / (4 * c * c * size * size)
        total = total + weight * apart.mean()
    total.backward()
    ours = Tensor.from_numpy(x, device).require_grad()
    out = loss.forward(ours, Tensor.from_numpy(y, device))
    assert np.isclose(out.into_scalar(), total.item(), rtol=1e-4)
    slope, wanted = np.asarray(ours.grad(out.backward())), theirs.grad.numpy()
    assert np.abs(slope - wanted).max() < 1e-3 * np.abs(wanted).max()


@pytest.mark.parametrize("compiled", [False, None], ids=["plain", "as it comes"])
@pytest.mark.parametrize("reduction", [Reduction.Mean, Reduction.Sum], ids=str)
@pytest.mark.parametrize(("blank", "spared"), [(0, False), (3, True)], ids=str)
def test_ctc(reduction, blank, spared, compiled):
    """After log_softmax, where PyTorch's slopes are the true ones.

    The last sequence is too short for its labels; only with zero_infinity does PyTorch
    give it a slope that is a number.
    """
    frames, labels = [12, 7, 9, 12, 3], [4, 3, 0, 1, 3]
    count = 5 if spared else 4
    device = Autodiff(Numpy(compiled=compiled))
    config = CTCLossConfig().with_blank(blank).with_zero_infinity(spared)
    x = np.random.default_rng(1).normal(size=(12, count, 6)).astype(np.float32)
    targets = np.random.default_rng(2).integers(0, 5, (count, 4))
    targets += targets >= blank
    targets[-1] = targets[-1, 0]
    parts = (targets, np.array(frames[:count]), np.array(labels[:count]))
    loss = config.init()

    def theirs(x, *parts):
        how = (blank, TORCH_NAME[reduction], spared)
        return F.ctc_loss(x.log_softmax(2), *parts, *how)

    compare(
        lambda x, *p: loss.forward_with_reduction(x.log_softmax(2), *p, reduction),
        theirs,
        *((x, *parts), device, 1e-5, 1e-4, 1e-6),
    )
