"""Inputs whose dims stand in another order, or are gone: the cure brings them back.

Every layer with channels is given images and sequences with the channels last (or, for
the norms of the last dim, second); the cure is applied and the layer then runs.
"""

import re

import pytest

from burnbook import nn
from burnbook.config import Config
from burnbook.core.errors import BurnbookError, ConfigError, ShapeError
from burnbook.data import DataLoaderBuilder, InMemDataset
from burnbook.lr_scheduler import StepLrSchedulerConfig
from burnbook.optim import AdamConfig
from burnbook.prelude import Autodiff, Distribution, Numpy, Tensor

DEVICE = Autodiff(Numpy(compiled=False))
LAYERS = {
    "batch norm": nn.BatchNormConfig(3),
    "group norm": nn.GroupNormConfig(1, 3),
    "instance norm": nn.InstanceNormConfig(3),
    "conv 1d": nn.Conv1dConfig(3, 4, 3),
    "conv 2d": nn.Conv2dConfig([3, 4], [3, 3]),
    "conv 3d": nn.Conv3dConfig([3, 4], [2, 2, 2]),
    "transposed 1d": nn.ConvTranspose1dConfig([3, 4], 3),
    "transposed 2d": nn.ConvTranspose2dConfig([3, 4], [3, 3]),
    "transposed 3d": nn.ConvTranspose3dConfig([3, 4], [2, 2, 2]),
}
RANKS = {"1d": [3], "2d": [4], "3d": [5]}
MEMBERS = [(name, rank) for name in LAYERS for rank in RANKS.get(name[-2:], [3, 4, 5])]


def applied(cure, x):
    """What the code of a cure makes of an input."""
    return eval(re.split(r": the |, a batch|: flatten", cure)[0], {"x": x})


@pytest.mark.parametrize(("name", "rank"), MEMBERS)
def test_channels_that_come_last_are_moved(name, rank):
    layer = LAYERS[name].init(DEVICE)
    x = Tensor.ones([2, *[6] * (rank - 2), 3], DEVICE)
    with pytest.raises(ShapeError) as caught:
        layer(x)
    assert "the channels come last" in caught.value.cure
    assert applied(caught.value.cure, x).dims()[:2] == (2, 3)
    layer(applied(caught.value.cure, x))


@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("config", [nn.LayerNormConfig(3), nn.RmsNormConfig(3)])
def test_channels_that_come_second_are_moved(config, rank):
    x = Tensor.ones([2, 3, *[6] * (rank - 2)], DEVICE)
    with pytest.raises(ShapeError) as caught:
        config.init(DEVICE)(x)
    assert "the channels come second" in caught.value.cure
    config.init(DEVICE)(applied(caught.value.cure, x))


@pytest.mark.parametrize("name", ["batch norm", "group norm", "instance norm"])
def test_another_number_of_channels_is_no_other_order(name):
    with pytest.raises(ShapeError) as caught:
        LAYERS[name].init(DEVICE)(Tensor.ones([2, 5, 6, 6], DEVICE))
    assert "permute" not in caught.value.cure


@pytest.mark.parametrize("rows", [2, 4])
def test_a_batch_that_was_flattened_too_comes_back(rows):
    layer = nn.LinearConfig(72, 3).init(DEVICE)
    flat = Tensor.ones([rows, 2, 6, 6], DEVICE).flatten()
    with pytest.raises(ShapeError) as caught:
        layer(flat)
    assert layer(applied(caught.value.cure, flat)).dims() == (rows, 3)
    with pytest.raises(ShapeError) as caught:
        layer(Tensor.ones([100], DEVICE))
    assert caught.value.cure == "LinearConfig(100, 3)"


RECURRENT = {
    "lstm": (nn.LstmConfig(3, 5, True), lambda z: nn.LstmState(z, z)),
    "gru": (nn.GruConfig(3, 5, True), lambda z: z),
    "rnn": (nn.RnnConfig(3, 5, True), nn.RnnState),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_sequences_whose_steps_come_first_are_turned(name):
    config, state = RECURRENT[name]
    x, held = Tensor.ones([7, 4, 3], DEVICE), state(Tensor.zeros([4, 5], DEVICE))
    with pytest.raises(ShapeError) as caught:
        config.init(DEVICE)(x, held)
    assert "with_batch_first(False)" in caught.value.cure
    config.init(DEVICE)(applied(caught.value.cure, x), held)
    config.with_batch_first(False).init(DEVICE)(x, held)


@pytest.mark.parametrize("name", RECURRENT)
def test_a_single_sequence_is_made_a_batch(name):
    layer, x = RECURRENT[name][0].init(DEVICE), Tensor.ones([6, 3], DEVICE)
    with pytest.raises(ShapeError) as caught:
        layer(x)
    for way in caught.value.cure.split("; or "):
        layer(applied(way.partition(",")[0], x))


# Values of configs that stand for numbers


class Sizes(Config):
    hidden: int = 16
    rate: float = 0.1
    maybe: int | None = None


CONVERTED = {
    "Sizes(hidden='32')": "hidden=32",
    "Sizes(hidden=32.0)": "hidden=32",
    "Sizes(hidden=[32])": "hidden=32",
    "Sizes(rate='1e-3')": "rate=0.001",
    "Sizes(maybe='8')": "maybe=8",
    "nn.LayerNormConfig([8])": "d_model=8",
    "nn.DropoutConfig(50)": "prob=0.5",
    "AdamConfig(betas=(0.9, 0.99))": "beta_1=0.9, beta_2=0.99",
    "nn.Conv2dConfig(3, 8, 5)": "[3, 8], [5, 5]",
    "nn.Conv3dConfig(3, 8, 3)": "[3, 8], [3, 3, 3]",
    "nn.ConvTranspose1dConfig(3, 8, 3)": "[3, 8], 3",
    "nn.ConvTranspose2dConfig(3, 8, 3, 2)": "[3, 8], [3, 3], stride=…",
    "AdamConfig(eps=1e-8)": "epsilon=1e-08",
    "nn.LinearConfig(in_features=3, out_features=5)": "d_input=3",
    "nn.Conv2dConfig([3, 8], [3, 3]).with_padding(1)": "PaddingConfig2d.Explicit(1, 1)",
}


@pytest.mark.parametrize("line", CONVERTED)
def test_a_value_that_stands_for_a_number_is_shown_as_one(line):
    names = {"Sizes": Sizes, "nn": nn, "AdamConfig": AdamConfig}
    with pytest.raises(ConfigError) as caught:
        eval(line, names)
    assert caught.value.cure == CONVERTED[line]


@pytest.mark.parametrize("value", ["wide", 32.5, [1, 2], None, "inf", {}])
def test_what_stands_for_no_number_has_no_such_cure(value):
    with pytest.raises(ConfigError) as caught:
        Sizes(hidden=value)
    assert caught.value.cure is None


def test_other_places_of_a_first_argument():
    with pytest.raises(ConfigError) as caught:
        StepLrSchedulerConfig(AdamConfig().init(), 30)
    assert caught.value.cure.startswith("initial_lr=0.1")
    with pytest.raises(BurnbookError) as caught:
        DataLoaderBuilder(InMemDataset([1, 2]), batch_size=8, shuffle=True)
    code = caught.value.cure
    assert code.endswith(".batch_size(8).shuffle(42).build(InMemDataset([1, 2]))")
    assert len(eval(code, globals())) == 1
    with pytest.raises(BurnbookError, match="is a dataset"):
        DataLoaderBuilder(InMemDataset([1, 2])).batch_size(2).build([1])
    for word, name in (("normal", "Normal"), ("uniform", "Uniform")):
        with pytest.raises(ConfigError) as caught:
            Tensor.random([2], word, DEVICE)
        assert isinstance(
            Tensor.random([2], eval(caught.value.cure), DEVICE), Tensor
        ), name
    assert Distribution is not None
