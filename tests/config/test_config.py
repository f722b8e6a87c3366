"""Configs: how they are made, checked, saved and loaded."""

import enum
import json
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from burnbook.config import Config, ConfigEnum, holding, unit
from burnbook.core.errors import ConfigError
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.nn import Conv2dConfig, Initializer, LinearConfig, PaddingConfig2d
from burnbook.optim import AdamConfig, WeightDecayConfig
from tests.support.refusals import refused


class Speed(enum.Enum):
    SLOW = 1
    FAST = 2


class ModelConfig(Config):
    num_classes: int
    hidden_size: int
    dropout: float = 0.5


class TrainingConfig(Config):
    num_epochs: int = 10
    learning_rate: float = 1.0e-4
    model: ModelConfig
    optimizer: AdamConfig
    note: str | None
    sizes: list[int] = [1, 2]  # noqa: RUF012 - a fresh list for every config
    speed: Speed = Speed.SLOW


def training_config() -> TrainingConfig:
    return TrainingConfig(ModelConfig(10, 512), AdamConfig())


def test_positional_arguments_are_the_fields_without_default():
    config = training_config()
    assert config.model == ModelConfig(num_classes=10, hidden_size=512)
    assert (config.num_epochs, config.note, config.model.dropout) == (10, None, 0.5)


def test_fields_with_a_default_are_named():
    assert ModelConfig(10, 512, dropout=0.1).dropout == 0.1
    with pytest.raises(TypeError):
        ModelConfig(10, 512, 0.1)


def test_every_optional_or_default_field_has_a_builder():
    config = training_config().with_num_epochs(3).with_note("short")
    assert (config.num_epochs, config.note) == (3, "short")
    assert training_config().num_epochs == 10
    assert not hasattr(config, "with_model")


def test_a_builder_checks_its_value():
    with pytest.raises(ConfigError, match="dropout must be float, not str 'much'"):
        ModelConfig(10, 512).with_dropout("much")


def test_a_config_is_frozen_and_equal_by_value():
    config = ModelConfig(10, 512)
    with pytest.raises(AttributeError):
        config.dropout = 0.1
    assert config == ModelConfig(10, 512) != ModelConfig(10, 256)
    assert len({config, ModelConfig(10, 512)}) == 1


def test_a_default_list_is_not_shared():
    training_config().sizes.append(3)
    assert training_config().sizes == [1, 2]


def test_a_config_survives_pickling():
    config = training_config().with_speed(Speed.FAST)
    assert pickle.loads(pickle.dumps(config)) == config
    padding = PaddingConfig2d.Explicit(1, 2)
    assert pickle.loads(pickle.dumps(padding)) == padding


def test_json_is_the_one_that_burn_writes():
    """Required first, then optional, then default; floats as Rust prints them."""
    text = str(AdamConfig().with_grad_clipping(GradientClippingConfig.Norm(1.0)))
    assert text == (
        '{\n  "weight_decay": null,\n  "grad_clipping": {\n    "Norm": 1.0\n  },\n'
        '  "beta_1": 0.9,\n  "beta_2": 0.999,\n  "epsilon": 0.00001\n}'
    )
    tree = json.loads(str(training_config()))
    assert list(tree) == [
        "model",
        "optimizer",
        "note",
        "num_epochs",
        "learning_rate",
        "sizes",
        "speed",
    ]
    assert list(tree["model"]) == ["num_classes", "hidden_size", "dropout"]


def test_choices_are_written_as_in_rust():
    config = Conv2dConfig([1, 8], [3, 3])
    assert '"padding": "Valid"' in str(config)
    config = config.with_padding(PaddingConfig2d.Explicit(1, 2))
    explicit = '"padding": {\n    "Explicit": [\n      1,\n      2\n    ]\n  }'
    assert explicit in str(config)
    assert json.loads(str(config))["initializer"] == {
        "KaimingUniform": {"gain": 1 / np.sqrt(3.0), "fan_out_only": False}
    }
    assert '"initializer": "Zeros"' in str(config.with_initializer(Initializer.Zeros))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e-5, "0.00001"),
        (1e-7, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (0.1, "0.1"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (123456.789, "123456.789"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e16"),
        (1e300, "1e300"),
    ],
)
def test_floats_are_written_as_in_rust(number, text):
    assert str(_Free(number)) == f'{{\n  "penalty": {text}\n}}'


class _Free(Config):
    penalty: float


def test_the_text_of_a_config_is_its_json_and_its_repr_names_the_fields():
    config = ModelConfig(10, 512)
    assert str(config) == config.to_json()
    assert repr(config) == "ModelConfig(num_classes=10, hidden_size=512, dropout=0.5)"


def test_a_config_comes_back_from_its_file(tmp_path):
    config = training_config().with_note("ä").with_speed(Speed.FAST)
    path = tmp_path / "deep" / "config.json"
    config.save(path)
    assert TrainingConfig.load(path) == config
    assert path.read_text(encoding="utf-8") == str(config)
    assert os.listdir(path.parent) == ["config.json"]


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "config.json"
    ModelConfig(10, 512).save(path)
    with pytest.raises(ConfigError, match="penalty: nan has no place in JSON"):
        _Free(float("nan")).save(path)
    assert ModelConfig.load(path) == ModelConfig(10, 512)


def test_a_missing_default_field_keeps_its_default():
    text = '{"num_classes": 3, "hidden_size": 4}'
    assert ModelConfig.from_json(text) == ModelConfig(3, 4)
    assert AdamConfig.from_json("{}") == AdamConfig()


def test_the_config_of_a_real_burn_optimizer_loads():
    text = (
        '{"weight_decay": {"penalty": 0.00005}, "grad_clipping": {"Value": 1.0}, '
        '"beta_1": 0.9, "beta_2": 0.999, "epsilon": 0.00001}'
    )
    config = AdamConfig.from_json(text)
    assert config.weight_decay == WeightDecayConfig(5e-5)
    assert config.grad_clipping == GradientClippingConfig.Value(1.0)


def load_error(tmp_path, text, *parts, config=ModelConfig):
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    refused(ConfigError, lambda: config.load(path), f"load {path}: ", *parts)


def test_an_unknown_field_is_named_with_the_one_that_was_meant(tmp_path):
    text = '{"num_classes": 3, "hidden_size": 4, "dropuot": 0.1}'
    fields = "\n  fields  num_classes, hidden_size, dropout\n"
    cure = "  try: dropout in place of dropuot"
    load_error(tmp_path, text, "dropuot", fields + cure)


def test_a_missing_field_is_named_with_its_type(tmp_path):
    fields = "\n  fields  num_classes, hidden_size, dropout"
    load_error(tmp_path, '{"num_classes": 3}', "hidden_size (int)", fields)


def test_a_field_of_another_type_is_named_with_both(tmp_path):
    text = '{"num_classes": "3", "hidden_size": 4}'
    load_error(tmp_path, text, "num_classes must be int, not str '3'")


def test_all_misfits_are_listed_at_once(tmp_path):
    text = (
        '{"model": {"num_classes": 3.5, "hiden_size": 4}, "optimizer": {}, '
        '"speed": "FASTER", "sizes": [1, "2"]}'
    )
    facts = (
        "\n  model.hiden_size is not a field of ModelConfig\n"
        "  model.num_classes must be int, not float 3.5\n"
        "  model.hidden_size (int) is missing\n"
        "  sizes[1] must be int, not str '2'\n"
        "  speed: Speed has no 'FASTER'\n"
        "  try: model.hidden_size in place of model.hiden_size; FAST"
    )
    load_error(tmp_path, text, "5", facts, config=TrainingConfig)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "this is not JSON"),
        ("[1]", "the JSON must hold the fields of ModelConfig in braces"),
        ('{"num_classes": 1, "hidden_size": NaN}', "NaN is not a JSON number"),
        ("[" * 100_000, "this is not JSON"),
        ('{"num_classes": 1e400, "hidden_size": 1}', "1e400 is too large a number"),
        ("", "it is empty"),
    ],
)
def test_a_file_that_is_no_config_is_refused(tmp_path, text, part):
    load_error(tmp_path, text, part)


def test_a_config_that_fits_its_types_but_not_its_rules_is_refused(tmp_path):
    text = '{"d_input": 0, "d_output": 4}'
    load_error(tmp_path, text, "d_input", "0", "at least 1", config=LinearConfig)
    text = '{"channels": [1, 2], "kernel_size": [3, 3], "padding": {"Explicit": [1]}}'
    part = "padding: Explicit takes int, int"
    load_error(tmp_path, text, part, config=Conv2dConfig)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="there is no such file"):
        ModelConfig.load(tmp_path / "nothing.json")


def test_numbers_of_numpy_and_lists_for_tuples_are_taken():
    config = Conv2dConfig([np.int64(1), 8], np.array([3, 3]))
    assert config.channels == (1, 8)
    assert type(config.channels[0]) is int
    assert type(ModelConfig(1, 2).with_dropout(1).dropout) is float


@pytest.mark.parametrize("value", [True, 1.0, "1", None, [1]])
def test_a_whole_number_is_nothing_else(value):
    with pytest.raises(ConfigError, match="num_classes must be int"):
        ModelConfig(value, 1)


class Shape(ConfigEnum):
    Point = unit()
    Circle = holding(float)
    Box = holding(width=float, height=float)


def test_a_choice_has_names_values_and_attributes():
    box = Shape.Box(width=1, height=2)
    assert box == Shape.Box(1.0, 2.0)
    assert (box.variant, box.values, box.height) == ("Box", (1.0, 2.0), 2.0)
    assert Shape.Point == Shape.Point != Shape.Circle(1.0)
    assert isinstance(Shape.Point, Shape)
    with pytest.raises(AttributeError):
        box.depth  # noqa: B018
    with pytest.raises(AttributeError):
        box.variant = "Point"


def test_a_choice_prints_as_rust_debug_and_as_python():
    assert str(Shape.Circle(2)) == "Circle(2.0)"
    assert str(Shape.Box(1, 2)) == "Box { width: 1.0, height: 2.0 }"
    assert repr(Shape.Box(1, 2)) == "Shape.Box(width=1.0, height=2.0)"
    assert repr(Shape.Point) == "Shape.Point"


def test_a_choice_checks_its_values():
    cure = "\n  try: Shape.Box(width=float, height=float)"
    refused(ConfigError, lambda: Shape.Box(1), "Shape.Box: 2", cure)
    with pytest.raises(ConfigError, match="value 0 must be float, not str 'wide'"):
        Shape.Circle("wide")


class Everything(Config):
    whole: int
    ratio: float
    text: str
    flag: bool
    pair: tuple[int, float]
    many: tuple[int, ...]
    lists: list[list[int]]
    table: dict[str, float]
    shape: Shape
    model: ModelConfig | None
    either: int | str = 1


finite = st.floats(allow_nan=False, allow_infinity=False)
whole = st.integers(-(2**63), 2**64 - 1)  # what Rust has a place for
shapes = st.one_of(
    st.just(Shape.Point),
    st.builds(Shape.Circle, finite),
    st.builds(Shape.Box, finite, finite),
)


@settings(max_examples=60)
@given(
    st.builds(
        Everything,
        whole,
        finite,
        st.text(),
        st.booleans(),
        st.tuples(whole, finite),
        st.lists(whole).map(tuple),
        st.lists(st.lists(whole)),
        st.dictionaries(st.text(), finite),
        shapes,
        model=st.none() | st.builds(ModelConfig, whole, whole),
        either=whole | st.text(),
    )
)
def test_any_config_comes_back_from_its_json(config):
    again = Everything.from_json(config.to_json())
    assert again == config
    assert again.to_json() == config.to_json()
    assert json.loads(config.to_json())["ratio"] == config.ratio
