"""Attention as a function: short and long sequences give PyTorch's values."""

import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.tensor import attention as module
from burnbook.tensor.attention import AttentionModuleOptions, attention
from tests.torch.shared import RNG, same, torch


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("s", "t"), [(3, 5), (1, 1), (70, 60)])
@pytest.mark.parametrize("scale", [None, 0.25])
def test_attention_equals_pytorchs(s, t, scale, compiled):
    assert (s * t <= module.SHORT) == (s < 70)
    arrays = [RNG.normal(size=(2, 3, n, d)) for n, d in ((s, 4), (t, 4), (t, 6))]
    how = AttentionModuleOptions(scale=scale)
    theirs = torch.nn.functional.scaled_dot_product_attention
    same(
        lambda q, k, v: attention(q, k, v, options=how),
        lambda q, k, v: theirs(q, k, v, scale=scale),
        Autodiff(Numpy(compiled=compiled)),
        *arrays,
        rtol=2e-5,
    )
