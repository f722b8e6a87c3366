"""Losses of numbers call their inputs predictions; scores of classes are logits."""

import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core.errors import ShapeError
from burnbook.tensor import Tensor


@pytest.mark.parametrize(
    "loss",
    [
        nn.MseLoss.new(),
        nn.HuberLossConfig(1.0).init(),
        nn.SmoothL1LossConfig().init(),
        nn.LpLossConfig(2.0).init(),
        nn.PoissonNllLossConfig().init(),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_a_regression_has_predictions(loss):
    two = Tensor.ones([2], Numpy()), Tensor.ones([2, 1], Numpy())
    with pytest.raises(ShapeError) as caught:
        loss.forward(*two)
    text = str(caught.value)
    assert "predictions" in text
    assert "logits" not in text
