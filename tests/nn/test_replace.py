"""replace() refuses what the config of a layer refuses."""

import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.config import Config
from burnbook.core.errors import ConfigError
from burnbook.module import Module

DEVICE = Numpy(compiled=False)
WRONG = {
    "dropout": (nn.DropoutConfig(0.5).init(), {"prob": 1.5}),
    "noise": (nn.GaussianNoiseConfig(0.1).init(), {"std": -1.0}),
    "batch norm": (nn.BatchNormConfig(3).init(DEVICE), {"momentum": 7.0}),
    "batch norm epsilon": (nn.BatchNormConfig(3).init(DEVICE), {"epsilon": -1.0}),
    "layer norm": (nn.LayerNormConfig(3).init(DEVICE), {"epsilon": -1.0}),
    "rms norm": (nn.RmsNormConfig(3).init(DEVICE), {"epsilon": 0.0}),
    "group norm": (nn.GroupNormConfig(2, 4).init(DEVICE), {"num_groups": 3}),
    "rrelu": (nn.RReluConfig().init(), {"lower": 0.9}),
    "pool": (nn.MaxPool2dConfig([2, 2]).init(), {"stride": (0, 1)}),
    "conv": (nn.Conv2dConfig([2, 4], [3, 3]).init(DEVICE), {"stride": (0, 1)}),
    "conv dilation": (nn.Conv1dConfig(2, 4, 3).init(DEVICE), {"dilation": 0}),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_setting_out_of_its_range_is_refused(name):
    layer, fields = WRONG[name]
    with pytest.raises(ConfigError) as error:
        layer.replace(**fields)
    assert next(iter(fields)) in str(error.value) or "groups" in str(error.value)
    assert type(layer).__name__ in str(error.value)


def test_what_the_config_takes_is_taken():
    assert nn.DropoutConfig(0.5).init().replace(prob=1.0).prob == 1.0
    pool = nn.MaxPool2dConfig([2, 2]).init().replace(stride=(2, 2), kernel_size=(3, 3))
    assert pool.stride == (2, 2)
    norm = nn.BatchNormConfig(3).init(DEVICE).replace(momentum=0.0)
    assert norm.momentum == 0.0
    conv = nn.Conv2dConfig([2, 4], [3, 3]).init(DEVICE)
    assert conv.replace(stride=(2, 2), bias=None).bias is None


class HalfConfig(Config):
    share: float
    size: int

    def validate(self):
        if not 0.0 <= self.share <= 1.0:
            raise ConfigError("HalfConfig", f"share is {self.share}, not in [0, 1]")
        if self.size < 1:
            raise ConfigError("HalfConfig", "size is below 1")

    def init(self):
        return Half(self.share)


class Half(Module):
    share: float


def test_a_layer_of_ones_own_with_a_config_is_checked_too():
    layer = HalfConfig(0.5, 3).init()
    with pytest.raises(ConfigError, match="share is 2"):
        layer.replace(share=2.0)
    assert layer.replace(share=0.25).share == 0.25  # its size is not known
