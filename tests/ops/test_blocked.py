"""Large arrays are taken block by block or sample by sample: nothing else changes."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.core.op import OPS
from burnbook.ops.attention import attention
from burnbook.ops.blocked import NEAR, SHARED

DEVICE = Numpy(compiled=False)


@pytest.mark.parametrize("name", ["erf", "gelu", "silu", "mish"])
@pytest.mark.parametrize("size", [2 * NEAR, SHARED + 12345])
def test_blocks_give_what_the_whole_gives(name, size):
    op = OPS[name]
    x, g = np.random.default_rng(0).standard_normal((2, size), np.float32)
    x[[0, NEAR, -1]] = np.nan, np.inf, -np.inf
    small = slice(None, None, 2)  # not in one piece: taken as a whole
    found = DEVICE.run(op, (x,), {})
    np.testing.assert_allclose(found[small], DEVICE.run(op, (x[small],), {}), rtol=1e-6)
    rule = op.rules["x"]
    if name != "erf":
        with np.errstate(all="ignore"):  # as a backend does
            slopes = rule(DEVICE.xp, g, x)
            wanted = rule(DEVICE.xp, g[small], x[small])
        assert slopes.shape == x.shape
        np.testing.assert_allclose(slopes[small], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [None, "one", "each"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_many_samples_is_that_of_each(kind, causal):
    n, h, s, d = 5, 4, 160, 8
    assert n * h * s * s >= SHARED
    rng = np.random.default_rng(1)
    query, key, value, g = rng.standard_normal((4, n, h, s, d), np.float32)
    mask = None
    if kind:
        mask = rng.random((n if kind == "each" else 1, 1, s, s)) < 0.3
    attrs = {"scale": 0.3, "causal": causal, "hidden": -1e4}

    def of(some):
        seen = mask if kind != "each" else mask[some]
        given = (query[some], key[some], value[some], seen)
        out, weights = attention.forward(DEVICE.xp, *given, **attrs)
        kept = (given[:3], seen, weights)
        all_attrs = {**attention.attrs, **attrs}
        slopes = attention.rules["query"](
            DEVICE.xp,
            g[some],
            *kept[0],
            seen,
            weights,
            (True, True, True, False),
            *all_attrs.values(),
        )
        return (out, weights, *slopes[:3])

    whole = of(slice(None))
    parts = [of(slice(i, i + 1)) for i in range(n)]
    for found, wanted in zip(whole, zip(*parts, strict=True), strict=True):
        np.testing.assert_array_equal(found, np.concatenate(wanted))


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_gradients_of_norms_in_blocks_are_those_of_single_precision(name):
    op = OPS[name]
    rng = np.random.default_rng(2)
    x, g = rng.standard_normal((2, 300, 1024), np.float32)
    gamma = rng.standard_normal(1024).astype(np.float32)
    lines = (gamma, gamma) if name == "layer_norm" else (gamma,)
    found = []
    for device, kind in ((DEVICE, np.float32), (Numpy("f64", compiled=False), float)):
        given = tuple(a.astype(kind) for a in (x, *lines))
        attrs = {"epsilon": 1e-5}
        out = op.forward(device.xp, *given, **attrs)
        kept = op.keep(given, out)
        needs = (True,) * len(given)
        values = (g.astype(kind), *kept)
        found.append(device.run(op.backward, values, {"needs": needs, **attrs}))
    for single, double in zip(*found, strict=True):
        np.testing.assert_allclose(single, double, rtol=1e-3, atol=1e-3)
