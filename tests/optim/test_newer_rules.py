"""Lion, Lamb and Adafactor: each step is the formula's, number by number."""

import math

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.core.errors import ShapeError
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.optim import AdafactorConfig, LambConfig, LionConfig
from burnbook.record import NamedMpkBytesRecorder
from tests.support.optimizers_tried import HALF, WIDE, drawn, one, steps, two, values

SHAPES = [(5,), (3, 4), (2, 3, 4), (1, 6), (2, 1, 3, 2)]


def single(value):
    """A number of a config, as Burn holds it."""
    return float(np.float32(value))


def rms(array):
    return math.sqrt(np.mean(np.square(array)))


def lion(config, lr, w, grads):
    m = np.zeros_like(w)
    for g in grads:
        u = np.sign(single(config.beta_1) * m + (1 - single(config.beta_1)) * g)
        m = single(config.beta_2) * m + (1 - single(config.beta_2)) * g
        w = w * (1 - lr * single(config.weight_decay)) - lr * u
    return w


def lamb(config, lr, w, grads):
    b1, b2 = single(config.beta_1), single(config.beta_2)
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t, g in enumerate(grads, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        root = np.sqrt(v / (1 - b2**t)) + single(config.epsilon)
        u = m / (1 - b1**t) / root + single(config.weight_decay) * w
        norms = [np.linalg.norm(x.reshape(-1)) for x in (w, u)]
        if config.use_trust_ratio and min(norms) > 0:
            u = u * norms[0] / norms[1]
        w = w - lr * u
    return w


def adafactor(config, lr, w, grads):
    moments = None
    for t, g in enumerate(grads, 1):
        square = g * g + config.epsilon_1
        found = [square]
        if w.ndim >= 2:
            found = [square.mean(-1, keepdims=True), square.mean(-2, keepdims=True)]
        new = t**config.decay_rate
        if moments is not None:
            pairs = zip(moments, found, strict=True)
            found = [(1 - new) * old + new * each for old, each in pairs]
        moments = found
        whole = moments[0]
        if w.ndim >= 2:
            mean = moments[0].mean(-2, keepdims=True)
            whole = moments[0] * moments[1] / mean
        u = g / np.sqrt(whole)
        u = u / max(1.0, rms(u) / config.clip_threshold)
        s = min(lr, 1 / math.sqrt(t)) if config.relative_step else lr
        s *= max(config.epsilon_2, rms(w)) if config.scale_parameter else 1.0
        w = w * (1 - lr * single(config.weight_decay)) - s * u
    return w


PLAIN_STEPS = [
    (LionConfig(), lion),
    (LionConfig(beta_1=0.5, beta_2=0.8, weight_decay=0.3), lion),
    (LambConfig(), lamb),
    (LambConfig(weight_decay=0.1, beta_2=0.9), lamb),
    (LambConfig(weight_decay=0.1, use_trust_ratio=False), lamb),
    (AdafactorConfig(), adafactor),
    (AdafactorConfig(clip_threshold=0.5, weight_decay=0.2, decay_rate=-0.5), adafactor),
    (AdafactorConfig(relative_step=False, scale_parameter=False), adafactor),
    (AdafactorConfig(epsilon_1=0.01, epsilon_2=2.0), adafactor),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("config", "plain"), PLAIN_STEPS)
def test_five_steps_are_the_formulas(config, plain, shape):
    rng = np.random.default_rng(3)
    start = rng.normal(size=shape)
    module, optim, grads = one(start, WIDE.autodiff()), config.init(), []
    for seed in range(5):
        held = drawn(module, seed)
        grads.append(np.asarray(held.get(module.weight.id)))
        module = optim.step(0.7, module, held)
    wanted = plain(config, 0.7, start, grads)
    # The corrections 1 − βᵗ of Lamb have 32 bits, of which 0.999 leaves few.
    assert np.asarray(module.weight.val()) == pytest.approx(wanted, rel=3e-5, abs=3e-5)


@pytest.mark.parametrize("config", [LambConfig(), AdafactorConfig(), LionConfig()])
def test_zeros_stay_finite(config):
    """Neither a parameter nor a gradient of zeros divides by zero."""
    zero, held = one(np.zeros((2, 3), np.float32), Numpy().autodiff()), config.init()
    for _ in range(3):
        grads = drawn(zero, 0)
        plain = grads.remove(zero.weight.id)
        grads.register(zero.weight.id, plain * 0.0)
        zero = held.step(0.1, zero, grads)
    assert not np.asarray(zero.weight.val()).any()
    moved = held.step(0.1, zero, drawn(zero, 1))
    assert np.isfinite(np.asarray(moved.weight.val())).all()


@pytest.mark.parametrize("config", [LambConfig(), AdafactorConfig(), LionConfig()])
def test_half_precision_follows_single(config):
    """Squares of small gradients are lost in half precision, so it is not used."""
    ends = []
    for plain in (HALF, Numpy()):
        module, optim = two(plain), config.init()
        for seed in range(4):
            grads = drawn(module, seed)
            for param in (module.first, module.second):
                grads.register(param.id, grads.remove(param.id) * 1e-3)
            module = optim.step(0.01, module, grads)
        ends.append(values(module))
    for path, found in ends[0].items():
        assert found.astype(np.float64) == pytest.approx(ends[1][path], abs=8e-3)


def test_clipping_goes_before():
    config = LambConfig(grad_clipping=GradientClippingConfig.Value(0.1))
    module = two()
    ends = [steps(c.init(), module, range(2)) for c in (config, LambConfig())]
    first, second = (values(end)["first"] for end in ends)
    assert not np.array_equal(first, second)


def test_the_state_of_adafactor_belongs_to_one_shape():
    module, optim = two(), AdafactorConfig().init()
    steps(optim, module, range(2))
    record = NamedMpkBytesRecorder().record(optim)
    again = AdafactorConfig().init().load_record(NamedMpkBytesRecorder().load(record))
    other = two(sizes=((3, 6), (4, 2)))
    rows = zip(
        (module.first.id, module.second.id), (other.first, other.second), strict=True
    )
    first, second = (type(p)(n, p.val(), require_grad=True) for n, p in rows)
    turned = type(other)(first, second)
    with pytest.raises(ShapeError, match="belongs to another shape"):
        steps(again, turned, [0])
