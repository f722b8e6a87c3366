"""Losses against their formulas written out in NumPy: values, slopes, second slopes."""

import math

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.config import Config
from burnbook.core.dtypes import Float
from burnbook.core.errors import ConfigError, DataError, KindError, ShapeError
from burnbook.tensor import Tensor
from burnbook.tensor.activation import cross_entropy_with_logits
from tests.support.slopes import second_slopes, slopes

PLAIN = Numpy(float="f64", compiled=False)
AD = Autodiff(PLAIN)

LINES = {
    "MseLoss": nn.MseLoss.new(),
    "SoftMarginLoss": nn.SoftMarginLoss.new(),
    "HuberLoss {delta: 0.5, lin_bias: 0.125}": nn.HuberLossConfig(0.5).init(),
    "LpLoss {\n  p: 3\n}": nn.LpLossConfig(3.0).init(),
    "SmoothL1Loss {\n  beta: 0.5\n}": nn.SmoothL1LossConfig().with_beta(0.5).init(),
    "BinaryCrossEntropyLoss {weights: Tensor {rank: 1, shape: [3]}, smoothing: None, "
    "logits: false}": nn.BinaryCrossEntropyLossConfig()
    .with_weights([3.0, 7.0, 0.9])
    .init(PLAIN),
    "PoissonNllLoss {log_input: true, full: false, eps: 0.00000001}": (
        nn.PoissonNllLossConfig().init()
    ),
    "GaussianNLLLoss {eps: 0.5, full: false}": (
        nn.GaussianNLLLossConfig().with_eps(0.5).init()
    ),
    "KLDivLoss {log_target: true}": nn.KLDivLossConfig().with_log_target(True).init(),
    "CosineEmbeddingLoss {margin: 0.5, reduction: Mean}": (
        nn.CosineEmbeddingLossConfig().with_margin(0.5).init()
    ),
    "HingeEmbeddingLoss {margin: 1}": nn.HingeEmbeddingLossConfig().init(),
    "MarginRankingLoss {margin: 0}": nn.MarginRankingLossConfig().init(),
    "MultiMarginLoss {margin: 1, p: 1}": nn.MultiMarginLossConfig().init(),
    "TripletMarginLoss {margin: 1, p: 2}": nn.TripletMarginLossConfig().init(),
}


@pytest.mark.parametrize("line", LINES)
def test_a_loss_prints_as_in_burn(line):
    assert str(LINES[line]) == line


CONFIGS = [
    nn.HuberLossConfig(0.5),
    nn.LpLossConfig(1.5),
    nn.SmoothL1LossConfig().with_beta(2.0),
    nn.BinaryCrossEntropyLossConfig().with_weights([1.0, 2.0]).with_smoothing(0.1),
    nn.PoissonNllLossConfig().with_full(True),
    nn.GaussianNLLLossConfig().with_full(True),
    nn.KLDivLossConfig().with_log_target(True),
    nn.CosineEmbeddingLossConfig().with_reduction(nn.Reduction.Sum),
    nn.HingeEmbeddingLossConfig().with_margin(2.0),
    nn.MarginRankingLossConfig().with_margin(0.25),
    nn.MultiMarginLossConfig().with_p(2),
    nn.TripletMarginLossConfig().with_p(3.0),
    nn.GramMatrixLossConfig([1.0, 0.0, 2.0, 1.0, 1.0]).with_use_avg_pool(True),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: type(c).__name__)
def test_the_config_of_a_loss_comes_back_from_json(config):
    assert type(config).from_json(config.to_json()) == config


# Values and slopes. A case: the loss of each element or row, the formula, the inputs.

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
Z = RNG.normal(size=(4, 3))
SIGNS = np.where(RNG.random((4, 3)) < 0.5, -1.0, 1.0)
ROW_SIGNS = np.array([1, -1, -1, 1])
CLASSES = np.array([2, 0, 1, 1])
P = RNG.random((4, 3)) * 0.8 + 0.1
SHARES = P / P.sum(1, keepdims=True)
COUNTS = np.array([[0.0, 1.0, 2.0], [5.0, 1.5, 0.5], [3.0, 3.0, 0.0], [7.0, 2.0, 1.0]])
LOGS = np.log(SHARES)


def huber(x, y, delta):
    r = np.abs(x - y)
    return np.where(r <= delta, r * r / 2, delta * r - delta * delta / 2)


def stirling(y):
    n = np.maximum(y, 1.0)
    formula = n * np.log(n) - n + np.log(2 * math.pi * n) / 2
    return np.where(y > 1, formula, 0.0)


def cosine(a, b):
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return (a * b).sum(1) / lengths


def leads(x, classes, margin, p):
    out = np.zeros(len(x))
    for row, target in enumerate(classes):
        for other in range(x.shape[1]):
            if other != target:
                lack = max(0.0, margin - x[row, target] + x[row, other])
                out[row] += lack**p / x.shape[1]
    return out


def triplet(a, b, c, margin, p):
    near = (np.abs(a - b) ** p).sum(1) ** (1 / p)
    far = (np.abs(a - c) ** p).sum(1) ** (1 / p)
    return np.maximum(0, near - far + margin)


def gaussian(x, y, v):
    return (np.log(v) + (x - y) ** 2 / v) / 2


def gaussian_full(x, y, v):
    v = np.maximum(v, 0.05)
    return gaussian(x, y, v) + np.log(2 * math.pi) / 2


def similar(a, b, y):
    return np.where(y == 1, 1 - cosine(a, b), np.maximum(0, cosine(a, b) + 0.5))


RATE = nn.PoissonNllLossConfig(log_input=False, eps=1e-3)
FULL_POISSON = nn.PoissonNllLossConfig(full=True)
FULL_GAUSSIAN = nn.GaussianNLLLossConfig(full=True, eps=0.05)
HINGE, RANKING = (
    nn.HingeEmbeddingLossConfig(margin=0.6),
    nn.MarginRankingLossConfig(margin=0.3),
)
SMOOTH, KL_LOG = nn.SmoothL1LossConfig(beta=0.7), nn.KLDivLossConfig(log_target=True)
MARGIN, SQUARED = nn.MultiMarginLossConfig(margin=0.8), nn.MultiMarginLossConfig(p=2)
NEAR = nn.TripletMarginLossConfig()
TRIPLET, SOFT = NEAR.with_p(3.0).with_margin(2.0), nn.SoftMarginLoss.new()
XY, XYZ, XYS, XS = (X, Y), (X, Y, Z), (X, Y, SIGNS), (X, SIGNS)
XC, AWAY = (X, CLASSES), (X, COUNTS + 0.05)  # away from the step of the formula at 1
FORMULAS = {
    "mse": (nn.MseLoss.new(), lambda x, y: (x - y) ** 2, XY),
    "l1": (nn.LpLossConfig.l1(), lambda x, y: abs(x - y), XY),
    "l2": (nn.LpLossConfig.l2(), lambda x, y: (x - y) ** 2, XY),
    "l2.5": (nn.LpLossConfig(2.5), lambda x, y: abs(x - y) ** 2.5, XY),
    "l3": (nn.LpLossConfig(3.0), lambda x, y: abs(x - y) ** 3, XY),
    "l0.5": (nn.LpLossConfig(0.5), lambda x, y: abs(x - y) ** 0.5, XY),
    "huber": (nn.HuberLossConfig(0.7), lambda x, y: huber(x, y, 0.7), XY),
    "huber-0": (nn.HuberLossConfig(0.0), lambda x, y: 0 * x, XY),
    "smooth_l1": (SMOOTH, lambda x, y: huber(x, y, 0.7) / 0.7, XY),
    "poisson": (nn.PoissonNllLossConfig(), lambda x, y: np.exp(x) - y * x, (X, COUNTS)),
    "poisson-full": (FULL_POISSON, lambda x, y: np.exp(x) - y * x + stirling(y), AWAY),
    "poisson-rate": (RATE, lambda x, y: x - y * np.log(x + 1e-3), (P, COUNTS)),
    "gaussian": (nn.GaussianNLLLossConfig(), gaussian, (X, Y, P)),
    "gaussian-full": (FULL_GAUSSIAN, gaussian_full, (X, Y, P[:, :1])),
    "kl_div": (nn.KLDivLossConfig(), lambda x, y: y * (np.log(y) - x), (LOGS, SHARES)),
    "kl_div-log": (KL_LOG, lambda x, y: np.exp(y) * (y - x), (LOGS * 2, LOGS)),
    "cosine": (nn.CosineEmbeddingLossConfig(margin=-0.5), similar, (X, Y, ROW_SIGNS)),
    "hinge": (HINGE, lambda x, y: np.where(y == 1, x, np.maximum(0, 0.6 - x)), XS),
    "ranking": (RANKING, lambda a, b, y: np.maximum(0, 0.3 - y * (a - b)), XYS),
    "soft_margin": (SOFT, lambda x, y: np.log(1 + np.exp(-y * x)), XS),
    "multi_margin": (MARGIN, lambda x, y: leads(x, y, 0.8, 1), XC),
    "multi_margin-2": (SQUARED, lambda x, y: leads(x, y, 1.0, 2), XC),
    "triplet": (NEAR, lambda a, b, c: triplet(a, b, c, 1.0, 2), XYZ),
    "triplet-3": (TRIPLET, lambda a, b, c: triplet(a, b, c, 2.0, 3), XYZ),
}


LOSSES = {
    name: made.init() if isinstance(made, Config) else made
    for name, (made, *_) in FORMULAS.items()
}
CASES = {  # the loss of each element or row, without a reduction
    name: (getattr(loss, "forward_no_reduction", loss.forward), *FORMULAS[name][1:])
    for name, loss in LOSSES.items()
}
SIGNED = {"hinge", "ranking", "soft_margin"}  # their last input has no slope


@pytest.mark.parametrize("name", CASES)
def test_the_loss_of_each_element_is_the_formula(name):
    loss, formula, arrays = CASES[name]
    out = loss(*[Tensor.from_numpy(a, PLAIN) for a in arrays])
    assert np.allclose(out, formula(*arrays), rtol=1e-12, atol=1e-14)


def learned(name):
    """The places of the inputs that have a slope."""
    arrays = CASES[name][2]
    places = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
    return places[:-1] if name in SIGNED else places


@pytest.mark.parametrize("name", CASES)
def test_every_slope_is_that_of_the_formula(name):
    loss, formula, arrays = CASES[name]
    tensors = [Tensor.from_numpy(a, AD) for a in arrays]
    tensors = [t.require_grad() if t.kind is Float else t for t in tensors]
    out = loss(*tensors)
    g = np.random.default_rng(1).normal(size=out.dims())
    grads = (out * Tensor.from_numpy(g, AD)).backward()
    for i in learned(name):

        def weighed(x, i=i):
            return formula(*arrays[:i], x, *arrays[i + 1 :]) * g

        wanted = slopes(weighed, arrays[i])
        assert np.abs(np.asarray(tensors[i].grad(grads)) - wanted).max() < 1e-6


@pytest.mark.parametrize("name", CASES)
def test_second_slopes_follow_from_the_first(name):
    loss, _, (x, *rest) = CASES[name]

    def run(tensor):
        return loss(tensor, *[Tensor.from_numpy(a, tensor.backend) for a in rest])

    direction = np.random.default_rng(2).normal(size=x.shape)
    found, wanted = second_slopes(run, x, direction, AD)
    assert np.isclose(found, wanted, rtol=1e-4, atol=1e-5)


# Reductions

REDUCED = {
    nn.Reduction.Mean: lambda a: a.mean(),
    nn.Reduction.Sum: lambda a: a.sum(),
    nn.Reduction.BatchMean: lambda a: a.sum() / len(a),
    nn.Reduction.Auto: lambda a: a.mean(),
}
ONE_NUMBER = [
    *("mse", "l3", "huber", "smooth_l1", "poisson", "gaussian"),
    *("hinge", "ranking", "soft_margin", "multi_margin", "triplet"),
]


@pytest.mark.parametrize("reduction", REDUCED, ids=str)
@pytest.mark.parametrize("name", ONE_NUMBER)
def test_a_reduction_makes_one_number_of_all_losses(name, reduction):
    _, formula, arrays = CASES[name]
    tensors = [Tensor.from_numpy(a, PLAIN) for a in arrays]
    loss = LOSSES[name]
    run = getattr(loss, "forward_with_reduction", loss.forward)
    out = run(*tensors, reduction)
    assert out.dims() == (1,)
    assert np.allclose(out, REDUCED[reduction](formula(*arrays)))
    if reduction == nn.Reduction.Mean:
        assert np.allclose(run(*tensors), out)


@pytest.mark.parametrize("reduction", REDUCED, ids=str)
def test_the_divergence_is_averaged_over_the_batch_unless_told_otherwise(reduction):
    _, formula, arrays = CASES["kl_div"]
    x, y = [Tensor.from_numpy(a, PLAIN) for a in arrays]
    how = nn.Reduction.BatchMean if reduction == nn.Reduction.Auto else reduction
    out = nn.KLDivLossConfig().init().forward(x, y, reduction)
    assert np.allclose(out, REDUCED[how](formula(*arrays)))


@pytest.mark.parametrize("reduction", REDUCED, ids=str)
def test_the_config_of_the_cosine_loss_holds_its_reduction(reduction):
    config = nn.CosineEmbeddingLossConfig().with_margin(-0.5).with_reduction(reduction)
    _, formula, arrays = CASES["cosine"]
    out = config.init().forward(*[Tensor.from_numpy(a, PLAIN) for a in arrays])
    assert np.allclose(out, REDUCED[reduction](formula(*arrays)))


def test_one_loss_for_each_image():
    x, y = RNG.normal(size=(2, 3, 4, 5)), RNG.normal(size=(2, 3, 4, 5))
    a, b = Tensor.from_numpy(x, PLAIN), Tensor.from_numpy(y, PLAIN)
    out = nn.LpLossConfig.l2().forward_reduce_dims(a, b, [1, 2, -1])
    assert np.allclose(out, ((x - y) ** 2).mean((1, 2, 3), keepdims=True))
    out = nn.SmoothL1LossConfig().init().forward_reduce_dims(a, b, [3])
    assert np.allclose(out, huber(x, y, 1.0).mean(3, keepdims=True))


# Where a formula has an end


def slope_of(loss, x, *others):
    x = Tensor.from_data(x, AD).require_grad()
    others = [Tensor.from_data(o, AD, None) for o in others]
    return np.asarray(x.grad(loss(x, *others).backward()))


def test_an_error_of_zero_has_a_finite_slope():
    for p in (0.5, 1.0, 1.5, 2.0, 3.0):
        slope = slope_of(nn.LpLossConfig(p).init().forward, [1.0, 2.0], [1.0, 5.0])
        assert slope[0] == 0
        assert np.isfinite(slope).all()
    same = [[1.0, 2.0]]
    slope = slope_of(nn.TripletMarginLossConfig().init().forward, same, same, same)
    assert np.isfinite(slope).all()


def test_a_zero_vector_has_a_finite_slope():
    loss = nn.CosineEmbeddingLossConfig().init()
    target = Tensor.from_ints([1], AD)
    slope = slope_of(lambda x, y: loss.forward(x, y, target), [[0.0, 0.0]], [[1.0, 2]])
    assert np.isfinite(slope).all()


def test_a_variance_below_the_least_counts_as_the_least():
    loss = nn.GaussianNLLLossConfig().with_eps(0.5).init()
    x, y, v = (Tensor.from_data([value], PLAIN) for value in (1.0, 0.0, 0.0))
    assert np.allclose(loss.forward(x, y, v), (math.log(0.5) + 2) / 2)


def test_a_target_of_zero_adds_nothing_to_the_divergence():
    out = (
        nn.KLDivLossConfig()
        .init()
        .forward_no_reduction(
            Tensor.from_data([[-1.0, -2.0]], PLAIN),
            Tensor.from_data([[0.0, 1.0]], PLAIN),
        )
    )
    assert np.allclose(out, [[0.0, 2.0]])


# What goes wrong often, and whether the cure repairs it


def test_the_cures_for_wrong_targets_give_the_right_loss():
    loss = nn.CrossEntropyLossConfig().init(PLAIN)
    scores = Tensor.from_numpy(np.random.default_rng(0).normal(size=(4, 3)), PLAIN)
    classes = Tensor.from_ints([0, 2, 1, 2], PLAIN)
    wanted = loss.forward(scores, classes).into_scalar()
    hot = classes.one_hot(3)
    with pytest.raises(KindError, match=r"one-hot.*[^$]*argmax\(1\)\.squeeze_dim\(1\)"):
        loss.forward(scores, hot)
    assert loss.forward(scores, hot.argmax(1).squeeze_dim(1)).into_scalar() == wanted
    margin = nn.MultiMarginLossConfig().init()
    soft = hot.float() * 0.9 + 0.1 / 3
    cure = r"CrossEntropyLossConfig\(\)\.init\(device\)\.forward\(input, target"
    with pytest.raises(KindError, match=cure):
        margin.forward(scores, soft)
    smooth = nn.CrossEntropyLossConfig().with_smoothing(0.1).init(PLAIN)
    assert np.isclose(
        loss.forward(scores, soft).into_scalar(),
        smooth.forward(scores, classes).into_scalar(),
    )
    assert np.isclose(
        cross_entropy_with_logits(scores, soft).into_scalar(),
        loss.forward(scores, soft).into_scalar(),
    )
    many = Tensor.from_data([[1.0, 1.0, 0.0]] * 4, PLAIN)
    with pytest.raises(KindError, match=r"targets / targets\.sum_dim\(1\)\.clamp_min"):
        loss.forward(scores, many)
    loss.forward(scores, many / many.sum_dim(1).clamp_min(1.0))
    teacher = scores * 2.0
    with pytest.raises(DataError, match=r"targets\.softmax\(1\)"):
        loss.forward(scores, teacher)
    loss.forward(scores, teacher.softmax(1))
    images = scores.reshape([1, 2, 2, 3]).permute([0, 3, 1, 2])
    with pytest.raises(ShapeError, match=r"permute\(\[0, 2, 3, 1\]\)\.reshape"):
        loss.forward(images, classes.reshape([1, 2, 2]))
    rows = images.permute([0, 2, 3, 1]).reshape([-1, 3])
    assert np.isclose(loss.forward(rows, classes).into_scalar(), wanted)


@pytest.mark.parametrize(
    "config",
    [nn.CrossEntropyLossConfig(), nn.CrossEntropyLossConfig().with_smoothing(0.1)],
)
def test_no_advice_makes_a_fraction_zero(config):
    scores = Tensor.zeros([2, 3], PLAIN)
    with pytest.raises(KindError) as caught:
        config.init(PLAIN).forward(scores, Tensor.from_data([0.3, 1.0], PLAIN))
    assert ".int()" not in str(caught.value)
    frames = Tensor.zeros([4, 2, 3], PLAIN)
    labels, two = (
        Tensor.from_data([[0.5], [1.0]], PLAIN),
        Tensor.from_ints([2, 2], PLAIN),
    )
    with pytest.raises(KindError) as caught:
        nn.CTCLossConfig().init().forward(frames, labels, two, two)
    assert ".int()" not in str(caught.value)
    binary = nn.BinaryCrossEntropyLossConfig().init(PLAIN)
    halves = Tensor.from_data([0.5, 0.5], PLAIN)
    with pytest.raises(DataError, match="not a probability from 0 to 1") as caught:
        binary.forward(halves, Tensor.from_data([127.0, 1.0], PLAIN))
    assert ".int()" not in str(caught.value)


def test_a_softmax_before_cross_entropy_is_refused():
    device = Autodiff(PLAIN)
    loss = nn.CrossEntropyLossConfig().init(device)
    scores = Tensor.from_data([[1.0, 2.0]], device).require_grad()
    classes = Tensor.from_ints([1], device)
    with pytest.raises(ConfigError, match="logits have been through a softmax"):
        loss.forward(scores.softmax(1), classes)
    plain = nn.CrossEntropyLossConfig().with_logits(False).init(device)
    assert np.isclose(
        plain.forward(scores.softmax(1), classes).into_scalar(),
        loss.forward(scores, classes).into_scalar(),
    )


def test_binary_cross_entropy_takes_no_scores_for_probabilities():
    scores = Tensor.from_data([2.5, -1.0], PLAIN)
    classes = Tensor.from_ints([1, 0], PLAIN)
    with pytest.raises(DataError, match=r"with_logits\(True\)"):
        nn.BinaryCrossEntropyLossConfig().init(PLAIN).forward(scores, classes)
    cured = nn.BinaryCrossEntropyLossConfig().with_logits(True).init(PLAIN)
    wanted = -np.log(1 / (1 + np.exp([-2.5, -1.0]))).mean()
    assert np.isclose(cured.forward(scores, classes).into_scalar(), wanted)


# Every loss alike

FRAMES, LENGTHS = RNG.normal(size=(5, 4, 3)), np.array([5, 4, 5, 3])
LABELS, ONES = np.array([[1], [2], [1], [2]]), np.array([1, 1, 1, 1])
EACH = {  # every loss of the package, and what it takes: four rows
    **{name: (LOSSES[name], CASES[name][2]) for name in CASES},
    "cross_entropy": (nn.CrossEntropyLossConfig().init(PLAIN), XC),
    "cross_entropy-shares": (
        nn.CrossEntropyLossConfig(smoothing=0.1).init(PLAIN),
        (X, SHARES),
    ),
    "binary": (nn.BinaryCrossEntropyLossConfig(logits=True).init(PLAIN), (X, P)),
    "ctc": (nn.CTCLossConfig().init(), (FRAMES, LABELS, LENGTHS, ONES)),
    "rnnt": (
        nn.RNNTLossConfig().init(),
        (RNG.normal(size=(4, 5, 2, 3)), LABELS, LENGTHS, ONES),
    ),
}


def test_no_loss_is_left_out():
    tried = {type(loss) for loss, _ in EACH.values()} | {nn.GramMatrixLoss}
    named = {getattr(nn.loss, name) for name in nn.loss.__all__ if name[-4:] == "Loss"}
    assert tried == named


@pytest.mark.parametrize("name", EACH)
def test_every_loss_takes_a_reduction_and_gives_each_loss_without(name):
    loss, arrays = EACH[name]
    tensors = [Tensor.from_numpy(a, PLAIN) for a in arrays]
    each = loss.forward_no_reduction(*tensors)
    assert each.dims()[0] == 4
    for reduction in (nn.Reduction.Sum, nn.Reduction.BatchMean, nn.Reduction.Mean):
        out = loss.forward(*tensors, reduction)
        assert out.dims() == (1,)
        if (name, reduction) != ("ctc", nn.Reduction.Mean):  # by length
            assert np.allclose(out, REDUCED[reduction](np.asarray(each)))


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("word", ["mean", "sum", "none"])
def test_pytorchs_words_for_a_reduction_have_a_cure(name, word):
    loss, arrays = EACH[name]
    tensors = [Tensor.from_numpy(a, PLAIN) for a in arrays]
    cure = "forward_no_reduction" if word == "none" else f"Reduction.{word.title()}$"
    with pytest.raises(ConfigError, match=cure):
        loss.forward(*tensors, word)


def test_smooth_l1_takes_a_reduction():
    x, y = Tensor.from_data([1.0, 2.0]), Tensor.from_data([1.5, 5.0])
    loss = nn.SmoothL1LossConfig().init()
    assert loss.forward(x, y, nn.Reduction.Mean).to_data().to_list() == [1.3125]
    assert loss.forward(x, y, nn.Reduction.Sum).to_data().to_list() == [2.625]
    assert loss.forward(x, y).to_data().to_list() == [0.125, 2.5], "as in Burn"


def test_pads_count_stands_in_no_json_where_it_is_as_in_burn():
    config = nn.CrossEntropyLossConfig().with_pad_tokens([0])
    for version in ("0.15", "0.22"):
        assert "pads_count" not in config.to_json(version=version)
        text = config.with_pads_count(False).to_json(version=version)
        assert nn.CrossEntropyLossConfig.from_json(text).pads_count is False


def test_a_loss_whose_pads_do_not_count_stays_so_in_every_copy():
    loss = nn.CrossEntropyLossConfig(pad_tokens=[0], pads_count=False).init(AD)
    record = nn.CrossEntropyLossConfig(pad_tokens=[0]).init(AD).into_record()
    assert loss.into_record() == record, "Burn's record has no place for it"
    copies = [loss.valid(), loss.clone(), loss.no_grad(), loss.load_record(record)]
    assert not any(copy.pads_count for copy in [*copies, loss.to_device(PLAIN)])
    assert str(loss).endswith("logits: true, pads_count: false}")
