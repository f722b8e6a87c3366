"""Metrics of pictures: against their formulas with SciPy's filters, and by hand."""

import math

import numpy as np
import pytest

from burnbook import train
from burnbook.train.metric.vision.ms_ssim import BETAS, halved
from tests.support.metric_tools import floats, ints, update


def pictures(size, n=2, c=3, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, (n, c, *size)).astype(np.float32)
    y = np.clip(x + rng.uniform(-noise, noise, x.shape), 0, 1).astype(np.float32)
    return x, y


def value_of(metric, x, y):
    entry = update(metric, floats(x), floats(y))
    return float(entry.serialize.split(",")[0])


def test_psnr_is_ten_log_ten_of_peak_over_error():
    x = np.zeros((2, 1, 2, 2), np.float32)
    y = x.copy()
    y[0] += 0.1  # error 0.01: 20 dB
    y[1] += 1.0  # error 1: 0 dB
    entry = update(train.PsnrMetric(train.PsnrMetricConfig(1.0)), floats(x), floats(y))
    assert entry.name == "PSNR@1"
    assert entry.formatted == "epoch 10.00 dB - batch 10.00 dB"
    assert entry.serialize.endswith(",2")
    louder = train.PsnrMetricConfig(255.0).init()
    assert value_of(louder, x, y) == pytest.approx(10 + 20 * math.log10(255), rel=1e-6)


def test_psnr_of_equal_pictures_is_the_one_of_the_smallest_error():
    x, _ = pictures((4, 4))
    assert value_of(train.PsnrMetricConfig(1.0).init(), x, x) == pytest.approx(100.0)
    assert value_of(
        train.PsnrMetricConfig(1.0).with_epsilon(1e-4).init(), x, x
    ) == pytest.approx(40.0)


def ssim_maps(x, y, size, sigma, mode):
    """Brightness and structure with SciPy's filter, picture by picture."""
    ndimage = pytest.importorskip("scipy.ndimage")

    def blur(of):
        reach = (size // 2) / sigma
        only = [sigma if axis > 1 else 0 for axis in range(4)]
        return ndimage.gaussian_filter(of, only, mode=mode, truncate=reach)

    x, y = x.astype(float), y.astype(float)
    mx, my = blur(x), blur(y)
    c1, c2 = 0.01**2, 0.03**2
    light = (2 * mx * my + c1) / (mx**2 + my**2 + c1)
    both = blur(x * x) - mx**2 + blur(y * y) - my**2
    return light, (2 * (blur(x * y) - mx * my) + c2) / (both + c2)


def test_ssim_follows_its_formula_with_zeros_past_the_border():
    x, y = pictures((16, 13))
    metric = train.SsimMetric(train.SsimMetricConfig(1.0))
    entry = update(metric, floats(x), floats(y))
    light, structure = ssim_maps(x, y, 11, 1.5, "constant")
    expected = (light * structure).mean()
    assert entry.name == "SSIM (dr=1, w=11, σ=1.5)"
    assert float(entry.serialize.split(",")[0]) == pytest.approx(expected, abs=1e-9)
    assert entry.formatted == f"epoch {expected:.4f} - batch {expected:.4f}"


def test_ssim_of_equal_pictures_is_one_and_of_opposites_below_zero():
    x, _ = pictures((12, 12))
    metric = train.SsimMetricConfig(1.0).with_kernel_size(5).with_sigma(1.0).init()
    assert metric.name == "SSIM (dr=1, w=5, σ=1)"
    assert value_of(metric, x, x) == pytest.approx(1.0)
    assert value_of(metric, x, 1.0 - x) < -0.3


def test_ms_ssim_is_the_product_of_its_scales():
    x, y = pictures((36, 32), noise=0.05)
    config = (
        train.MsSsimMetricConfig(1.0).with_kernel_size(3).with_betas([0.2, 0.3, 0.5])
    )
    got = value_of(train.MsSsimMetric(config), x, y)
    expected = np.ones(x.shape[:2])
    for scale, beta in enumerate([0.2, 0.3, 0.5]):
        light, structure = ssim_maps(x, y, 3, 1.5, "mirror")
        mean = (light * structure if scale == 2 else structure).mean((2, 3))
        expected *= np.maximum(mean, 0) ** beta
        x, y = halved(x), halved(y)
    assert got == pytest.approx(expected.mean(), abs=1e-6)


def test_ms_ssim_has_five_scales_that_weigh_one_in_all():
    assert sum(BETAS) == pytest.approx(1.0, abs=1e-4)
    x, y = pictures((48, 48), n=1, c=1)
    metric = train.MsSsimMetricConfig(1.0).with_kernel_size(3).init()
    assert metric.name == "MS-SSIM (pr=1, k=3, σ=1.5)"
    assert value_of(metric, x, x) == pytest.approx(1.0)
    assert 0.0 < value_of(metric, x, y) < 1.0


def test_halving_leaves_an_odd_row_out():
    x = np.arange(15.0).reshape(1, 1, 3, 5)
    assert halved(x).tolist() == [[[[3.0, 5.0]]]]


def masks(*rows):
    """One example, one row of four pixels per class."""
    return ints(np.array(rows).reshape(1, len(rows), 2, 2))


def test_dice_is_twice_the_overlap_without_the_background():
    outputs = masks([0, 0, 0, 0], [1, 1, 1, 0])
    targets = masks([1, 1, 1, 1], [0, 1, 1, 0])
    entry = update(train.DiceMetric(), outputs, targets)
    value, weight = entry.serialize.split(",")
    assert float(value) == pytest.approx(2 * 2 / 5)
    assert (entry.name, weight) == ("4D Dice Metric", "1")
    assert entry.formatted == "epoch 0.8000 - batch 0.8000"
    whole = train.DiceMetricConfig().with_include_background(True).init()
    value = update(whole, outputs, targets).serialize.split(",")[0]
    assert float(value) == pytest.approx(2 * 2 / 9)


def test_dice_of_one_class_is_that_class_and_of_empty_masks_one():
    one = update(train.DiceMetric(), masks([1, 1, 0, 0]), masks([1, 0, 0, 0]))
    assert float(one.serialize.split(",")[0]) == pytest.approx(2 / 3)
    assert update(train.DiceMetric(), masks([0] * 4), masks([0] * 4)).serialize == "1,1"


def test_dice_is_the_f1_score_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (2, 3, 2, 4, 4, 4))
    entry = update(train.DiceMetric(rank=5), ints(x), ints(y))
    theirs = metrics.f1_score(y[:, 1:].ravel(), x[:, 1:].ravel())
    assert entry.name == "5D Dice Metric"
    assert float(entry.serialize.split(",")[0]) == pytest.approx(theirs)


def test_an_empty_batch_of_pictures_weighs_nothing():
    nothing = floats(np.zeros((0, 1, 12, 12)))
    for metric in (
        train.PsnrMetricConfig(1.0).init(),
        train.SsimMetricConfig(1.0).init(),
    ):
        assert update(metric, nothing, nothing).serialize == "NaN,0"


def test_metrics_of_pictures_can_be_renamed():
    metric = train.PsnrMetricConfig(1.0).init().with_name("Loudness")
    x, _ = pictures((4, 4))
    entry = update(metric, floats(x), floats(x))
    text = "epoch 100.00 dB - batch 100.00 dB"
    assert entry == train.MetricEntry("Loudness", text, entry.serialize)
    assert repr(metric) == "PsnrMetric(Loudness)"
