"""What errors advise where a model is made or asked."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.config import Config
from burnbook.core.errors import BackendError, ConfigError, FieldError
from burnbook.module import Module, Param
from burnbook.module.layers import layers_of
from burnbook.tensor import Tensor
from tests.support.refusals import refused

DEVICE = Autodiff(Numpy())


class Own(Module):
    weight_of_mine: Param

    def forward(self, x):
        return x @ self.weight_of_mine.val()

    def turned(self, x):
        return self.weight_of_mine.val() @ x


class RangeConfig(Config):
    low: float = 0.0
    high: float = 1.0

    def validate(self):
        if not self.low < self.high:
            raise ConfigError("RangeConfig", "low must be below high")


class Many(Module):
    parts: list[nn.Linear]


@pytest.mark.parametrize("method", ["forward", "turned"])
def test_own_layers_name_valid(method):
    model = Own(Param.from_tensor(Tensor.ones([2, 2], DEVICE)))
    x = Tensor.ones([2, 2])
    told = ("to_device(Autodiff(Numpy())) to train", "model.valid() to ask")
    refused(BackendError, lambda: getattr(model, method)(x), "Own: matmul", *told)
    assert np.asarray(getattr(model.valid(), method)(x)).tolist() == [[2, 2], [2, 2]]
    outside = model.weight_of_mine.val()
    error = refused(BackendError, lambda: x @ outside, "matmul", "inner()")
    assert "valid" not in str(error)


def test_a_buffer_is_no_parameter():
    model = nn.LinearConfig(2, 2).init(DEVICE)
    for name in ("register_buffer", "named_modules", "get_submodule"):
        with pytest.raises(AttributeError) as caught:
            getattr(model, name)
        told = str(caught.value)
        assert "Param" not in told
        wanted = "RunningState" if name == "register_buffer" else "layers_of(model)"
        assert wanted in told
    held = Many([nn.LinearConfig(1, 1).init(DEVICE) for _ in range(2)])
    assert [path for path, _, _ in layers_of(held)] == ["", "parts.0", "parts.1"]


def test_an_import_is_said_once():
    with pytest.raises(AttributeError) as caught:
        Tensor.eye(2).svd  # noqa: B018
    told = str(caught.value)
    assert told.count("import numpy") == 1
    with pytest.raises(AttributeError) as caught:
        Tensor.eye(2).inverse  # noqa: B018
    assert "linalg.inv" in str(caught.value)
    assert "numpy" not in str(caught.value)


def test_fields_that_fit_each_other_change_at_once():
    config = RangeConfig()
    assert config.replace(low=2.0, high=3.0) == RangeConfig(low=2.0, high=3.0)
    assert config == RangeConfig()
    refused(ConfigError, lambda: config.with_low(2.0), "RangeConfig")
    refused(ConfigError, lambda: config.replace(low=3.0, high=2.0), "RangeConfig")
    refused(FieldError, lambda: config.replace(lo=3.0), "RangeConfig", "low")
    refused(ConfigError, lambda: config.replace(low="a"), "RangeConfig", "low")
