"""What `fit` returns can be trained on; `valid()` of it is for inference."""

import numpy as np

from burnbook.tensor import Tensor
from burnbook.train import SupervisedTraining
from tests.support.tiny_training import DEVICE, build, builder, learner, loader


def outputs(model, device):
    x = Tensor.ones([64, 4], device)
    return [np.asarray(model.forward(x)) for _ in range(2)]


def test_what_fit_returns_has_dropout_and_valid_has_none(tmp_path):
    model = build(builder(tmp_path, 1), lr=0.05).fit(loader(), loader(1))
    first, second = outputs(model, DEVICE)
    assert model.devices()[0].ad_enabled
    assert not np.array_equal(first, second)
    first, second = outputs(model.valid(), DEVICE.inner)
    np.testing.assert_array_equal(first, second)


def test_what_launch_returns_is_for_inference(tmp_path):
    training = SupervisedTraining(tmp_path / "a", loader(), loader(1)).renderer(None)
    result = training.num_epochs(1).launch(learner(tmp_path / "b"))
    first, second = outputs(result.model, DEVICE.inner)
    np.testing.assert_array_equal(first, second)
