"""Configs: every type of field there and back, and files that nobody meant well."""

from __future__ import annotations

import enum
import json
import pathlib
import random
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from burnbook.config import Config, ConfigEnum, holding, unit
from burnbook.core.errors import ConfigError
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.nn import Conv2dConfig, Initializer, PaddingConfig2d
from burnbook.optim import AdamConfig, AdamWConfig, SgdConfig, WeightDecayConfig
from tests.support.refusals import refused


class Mode(enum.IntEnum):
    FAST = 1
    SLOW = 2


class Color(enum.StrEnum):
    RED = "r"
    BLUE = "b"


class Span(typing.NamedTuple):
    start: int
    end: float


@dataclass(frozen=True)
class Place:
    row: int
    names: list[str] = field(default_factory=list)


class LayerConfig(Config):
    size: int
    dropout: float = 0.0


class Norm(ConfigEnum):
    Nothing = unit()
    Layer = holding(LayerConfig)
    Maybe = holding(int | None)
    Group = holding(groups=int, sizes=list[int], note=str | None)


class NodeConfig(Config):
    name: str
    children: list[NodeConfig] = []  # noqa: RUF012 - a fresh list for every config


class Wide(Config):
    mode: Mode
    color: Color
    labels: set[str]
    few: frozenset[int]
    by_number: dict[int, LayerConfig]
    by_color: dict[Color, float]
    place: Place
    span: Span
    folder: pathlib.PurePosixPath
    layers: Sequence[LayerConfig]
    rates: Mapping[str, tuple[float, ...]]
    norm: Norm
    optimizer: AdamConfig | SgdConfig
    level: typing.Literal["low", 3]
    tree: NodeConfig
    norms: list[Norm] | None
    anything: typing.Any = None


whole = st.integers(-(2**63), 2**64 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=1e-300, allow_infinity=False)
layers = st.builds(LayerConfig, whole, dropout=finite)
norms = st.one_of(
    st.just(Norm.Nothing),
    st.builds(Norm.Layer, layers),
    st.builds(Norm.Maybe, st.none() | whole),
    st.builds(Norm.Group, whole, st.lists(whole, max_size=3), st.none() | st.text()),
)
clippings = st.builds(GradientClippingConfig.Norm, positive) | st.builds(
    GradientClippingConfig.Value, positive
)
optimizers = st.one_of(
    st.builds(
        AdamConfig,
        grad_clipping=st.none() | clippings,
        weight_decay=st.none() | st.builds(WeightDecayConfig, positive),
    ),
    st.builds(SgdConfig, gradient_clipping=st.none() | clippings),
)
trees = st.recursive(
    st.builds(NodeConfig, st.text(max_size=3)),
    lambda inner: st.builds(NodeConfig, st.just("n"), children=st.lists(inner)),
    max_leaves=6,
)
jsons = st.recursive(
    st.none() | st.booleans() | whole | finite | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
wides = st.builds(
    Wide,
    st.sampled_from(Mode),
    st.sampled_from(Color),
    st.sets(st.text(max_size=3)),
    st.frozensets(whole),
    st.dictionaries(whole, layers, max_size=3),
    st.dictionaries(st.sampled_from(Color), finite),
    st.builds(Place, whole, st.lists(st.text(max_size=3), max_size=3)),
    st.builds(Span, whole, finite),
    st.sampled_from(["a", "a/b", "/"]).map(pathlib.PurePosixPath),
    st.lists(layers, max_size=2).map(tuple),
    st.dictionaries(st.text(max_size=3), st.lists(finite).map(tuple), max_size=2),
    norms,
    optimizers,
    st.sampled_from(["low", 3]),
    trees,
    norms=st.none() | st.lists(norms, max_size=3),
    anything=jsons,
)


@settings(max_examples=80)
@given(wides)
def test_every_type_of_field_comes_back_from_json(config):
    again = Wide.from_json(config.to_json())
    assert again == config
    assert again.to_json() == config.to_json()


def wide() -> Wide:
    return Wide(
        Mode.FAST,
        Color.BLUE,
        {"b", "a"},
        frozenset([3, 1]),
        {7: LayerConfig(4)},
        {Color.RED: 1},
        Place(2, ["x"]),
        Span(1, 2.0),
        "runs/one",
        [LayerConfig(1)],
        {"lr": [1, 0.5]},
        Norm.Group(2, [1], None),
        SgdConfig(),
        "low",
        NodeConfig("root", children=[NodeConfig("leaf")]),
    )


def test_enums_sets_keys_and_paths_are_written_as_in_rust():
    tree = json.loads(wide().to_json())
    assert (tree["mode"], tree["color"]) == ("FAST", "BLUE")
    assert (tree["labels"], tree["few"]) == (["a", "b"], [1, 3])
    assert tree["by_number"] == {"7": {"size": 4, "dropout": 0.0}}
    assert tree["by_color"] == {"RED": 1.0}
    assert tree["place"] == {"row": 2, "names": ["x"]}
    assert (tree["span"], tree["folder"]) == ([1, 2.0], "runs/one")
    group = {"groups": 2, "sizes": [1], "note": None}
    assert tree["norm"] == {"Group": group}
    assert Norm.Maybe(None) == Wide.from_json(
        wide().to_json().replace(json_of(wide().norm), '{"Maybe": null}')
    ).norm  # fmt: skip


def json_of(value: Norm) -> str:
    """The text of the choice where it stands in the JSON of `wide`."""
    text = wide().to_json()
    start = text.index('"norm": ') + len('"norm": ')
    return text[start : text.index(',\n  "optimizer"')]


def test_an_abstract_type_is_read_as_what_cannot_change():
    config = wide()
    assert type(config.layers) is tuple
    assert type(config.folder) is pathlib.PurePosixPath
    assert config.rates == {"lr": (1.0, 0.5)}
    assert type(config.span) is Span


def test_a_config_may_hold_configs_of_its_own_kind():
    config = NodeConfig("a", children=[NodeConfig("b", children=[NodeConfig("c")])])
    assert NodeConfig.from_json(str(config)).children[0].children[0].name == "c"


def test_types_of_a_function_are_found_although_they_are_texts():
    class Inner(Config):
        size: int

    class Outer(Config):
        inner: Inner
        more: Inner | None

    assert Outer.from_json('{"inner": {"size": 3}}') == Outer(Inner(3))
    assert Outer.from_json('{"inner": {"size": 3}}').inner == Inner(3)


def test_a_type_that_nobody_knows_is_named():
    class Lost(Config):
        inner: Nowhere  # noqa: F821 - that is the point

    with pytest.raises(ConfigError, match="Nowhere is the type of a field"):
        Lost(3)


def test_a_config_that_inherits_adds_its_fields():
    class MoreConfig(LayerConfig):
        rate: float
        note: str | None

    config = MoreConfig(3, 0.5).with_dropout(0.1)
    assert list(json.loads(str(config))) == ["size", "rate", "note", "dropout"]
    assert MoreConfig.from_json(str(config)) == config


def test_the_constructor_lists_all_that_does_not_fit():
    facts = "\n  size must be int, not str '3'\n  dropout must be float, not str 'no'"
    make = lambda: LayerConfig("3", dropout="no")  # noqa: E731
    refused(ConfigError, make, "LayerConfig: 2", facts)


def test_bytes_are_read_as_burn_does_it():
    assert LayerConfig.load_binary(b'{"size": 3}') == LayerConfig(3)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**64, "size is a whole number of more than 64 bits"),
        (-(2**63) - 1, "size is a whole number of more than 64 bits"),
        (np.float32(1), "size must be int, not float32"),
    ],
)
def test_a_whole_number_has_a_place_in_rust(value, text):
    with pytest.raises(ConfigError, match=text):
        LayerConfig(value)
    assert LayerConfig(2**64 - 1).size == 2**64 - 1


@pytest.mark.parametrize("digits", [20, 24, 300])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_long_whole_number_of_a_file_is_called_one(digits, sign):
    """As in Burn's JSON it is read as a float, which the reader has not written."""
    text = f'{{"size": {sign}{"9" * digits}}}'
    with pytest.raises(
        ConfigError, match="size is a whole number of more than 64 bits"
    ):
        LayerConfig.load_binary(text.encode())
    with pytest.raises(ConfigError, match=r"size must be int, not float 2.5"):
        LayerConfig.load_binary(b'{"size": 2.5}')


def test_a_number_that_is_too_large_to_show_is_not_shown():
    with pytest.raises(ConfigError, match="size is a whole number of more than 64"):
        LayerConfig(10**5000)
    with pytest.raises(ConfigError, match="dropout must be float, not int too large"):
        LayerConfig(1, dropout=10**5000)


class Loose(Config):
    held: typing.Any


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1 + 2j, "held: complex has no place in JSON"),
        ([b"x"], r"held\[0\]: bytes has no place in JSON"),
        ({1.5: 1}, "held: 1.5 cannot be a key in JSON"),
        (2**64, "held: a whole number has 64 bits at most"),
        ("\ud800", r"held: '\\ud800' holds an unpaired surrogate"),
        ({"\ud800": 1}, "holds an unpaired surrogate"),
        ({"a": float("inf")}, "held.a: inf has no place in JSON"),
        (Config, "held: type has no place in JSON"),
    ],
)
def test_what_has_no_place_in_json_is_not_saved(value, text, tmp_path):
    with pytest.raises(ConfigError, match=text):
        Loose(value).save(tmp_path / "config.json")
    assert list(tmp_path.iterdir()) == []


def test_numbers_of_numpy_are_written_as_numbers():
    config = Loose([np.float32(0.5), np.int8(3), np.bool_(True), np.float64(1)])
    assert json.loads(str(config)) == {"held": [0.5, 3, True, 1.0]}


def test_depth_ends_at_a_hundred_levels_both_ways():
    deep: typing.Any = None
    for _ in range(99):
        deep = [deep]
    assert Loose.from_json(str(Loose(deep))) == Loose(deep)
    with pytest.raises(ConfigError, match="nests deeper than 100 levels"):
        Loose([[deep]]).to_json()
    with pytest.raises(ConfigError, match="nests deeper than 100 levels"):
        Loose.from_json('{"held": ' + "[" * 101 + "]" * 101 + "}")
    round_it: list[typing.Any] = []
    round_it.append(round_it)
    with pytest.raises(ConfigError, match="nests deeper than 100 levels"):
        Loose(round_it).to_json()


def problem_of(cls: type[Config], text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        cls.from_json(text)
    return str(caught.value)


def test_numbers_end_where_those_of_rust_do():
    assert Loose.from_json('{"held": [1, -1, 18446744073709551615]}').held[2] == (
        2**64 - 1
    )
    assert type(Loose.from_json('{"held": 18446744073709551616}').held) is float
    text = f'{{"size": 1, "dropout": {10**30}}}'
    assert LayerConfig.from_json(text).dropout == 1e30
    for text in ("1e999", "-1e999", "9" * 400):
        found = problem_of(Loose, f'{{"held": {text}}}')
        assert "is too large a number" in found
    found = problem_of(LayerConfig, '{"size": 18446744073709551616}')
    assert "size is a whole number of more than 64 bits" in found


def test_a_name_that_is_there_twice_is_not_read_twice():
    assert problem_of(LayerConfig, '{"size": 1, "size": 2}') == (
        "read LayerConfig: size appears twice"
    )
    text = '{"name": "a", "children": [{"name": "b", "name": "c"}]}'
    assert "children[0].name appears twice" in problem_of(NodeConfig, text)


def test_half_a_character_is_refused_and_can_be_printed():
    text = '{"name": "\\ud800", "\\ud800": 1}'
    found = problem_of(NodeConfig, text)
    assert "name holds an unpaired surrogate: '\\ud800'" in found
    assert found.encode()
    text = '{"held": ["a", {"\\ud800": 1}]}'
    assert "held holds an unpaired surrogate" in problem_of(Loose, text)


@pytest.mark.parametrize("key", ["1.0", "01", "+1", "x", "", "9" * 5000, "²"])
def test_a_key_that_is_no_number_is_refused(key):
    class ByNumber(Config):
        rates: dict[int, float]

    text = json.dumps({"rates": {key: 1.0}})
    assert "must be int" in problem_of(ByNumber, text)
    assert ByNumber.from_json('{"rates": {"-3": 1}}').rates == {-3: 1.0}


def test_a_dict_of_the_user_has_keys_of_the_declared_type():
    class ByName(Config):
        rates: dict[str, float]

    with pytest.raises(ConfigError, match="rates: the key 3 must be str"):
        ByName({3: 1.0})


def test_two_configs_that_look_alike_are_not_guessed():
    class Either(Config):
        optimizer: AdamConfig | AdamWConfig

    assert Either.from_json(str(Either(AdamConfig()))).optimizer == AdamConfig()
    assert Either.from_json(str(Either(AdamWConfig()))).optimizer == AdamWConfig()
    found = problem_of(Either, '{"optimizer": {"beta_1": 0.5}}')
    assert found == (
        "read Either: optimizer may be AdamConfig or AdamWConfig: "
        "the JSON does not say which\n"
        "  try: a ConfigEnum with a variant for each"
    )


def test_a_literal_is_that_value_and_no_other():
    text = wide().to_json()
    for wrong in ("true", "3.0", '"3"', "[]"):
        found = problem_of(Wide, text.replace('"level": "low"', f'"level": {wrong}'))
        assert "level must be 'low' or 3" in found


def test_a_check_of_the_readers_own_is_one_problem_of_the_file():
    class Even(Config):
        size: int

        def validate(self):
            if self.size % 2:
                raise ValueError("an odd size")

    class Outer(Config):
        even: Even

    with pytest.raises(ValueError, match="an odd size"):
        Even(3)
    assert problem_of(Outer, '{"even": {"size": 3}}') == (
        "read Outer: even: an odd size"
    )


def test_a_field_cannot_hide_a_method():
    with pytest.raises(ConfigError, match="save is a method of every config"):

        class Hiding(Config):
            save: bool

    class Fine(Config):
        save_: bool

    assert json.loads(str(Fine(True))) == {"save": True}
    with pytest.raises(ConfigError, match="rate and rate_ have the same name"):

        class Twins(Config):
            rate: float
            rate_: float


class FuzzedConfig(Config):
    conv: Conv2dConfig
    optimizer: AdamConfig
    wide: Wide | None


def start() -> FuzzedConfig:
    conv = Conv2dConfig([1, 8], [3, 3]).with_padding(PaddingConfig2d.Explicit(1, 2))
    conv = conv.with_initializer(Initializer.Normal(0.0, 1.0))
    clipping = GradientClippingConfig.Norm(1.0)
    return FuzzedConfig(conv, AdamConfig(grad_clipping=clipping), wide=wide())


def reads_or_explains(data: str | bytes) -> bool:
    """Whether it is a config; what it gives must come back as it is."""
    try:
        config = FuzzedConfig.from_json(data)
    except ConfigError as error:
        text = str(error)
    else:
        assert FuzzedConfig.from_json(config.to_json()) == config
        return True
    assert len(text.encode()) < 20_000
    return False


def test_no_damage_to_a_file_brings_more_than_an_explanation():
    """Bytes changed, cut, doubled; tokens exchanged with those of other places."""
    good = start().to_json().encode()
    assert reads_or_explains(good)
    draw = random.Random(5)
    tokens = [b"null", b"{", b"}", b"[", b"]", b'"', b"1e999", b"-", b"9" * 30, b","]
    accepted = 0
    for _ in range(1500):
        at, end = sorted(draw.randrange(len(good)) for _ in range(2))
        end = min(end, at + draw.choice([0, 1, 5, 400]))
        middle = draw.choice(
            [b"", good[at:end] * 2, bytes([draw.randrange(256)]), draw.choice(tokens)]
        )
        accepted += reads_or_explains(good[:at] + middle + good[end:])
    assert accepted < 1500


def replaced(tree: typing.Any, part: typing.Any, draw: random.Random) -> typing.Any:
    """The same JSON with one part replaced, somewhere."""
    if isinstance(tree, (dict, list)) and tree and draw.random() < 0.85:
        keys = list(tree) if isinstance(tree, dict) else range(len(tree))
        key = draw.choice(list(keys))
        copy: typing.Any = dict(tree) if isinstance(tree, dict) else list(tree)
        copy[key] = replaced(tree[key], part, draw)
        return copy
    return part


@settings(max_examples=300)
@given(jsons, st.randoms(use_true_random=False))
def test_no_value_in_a_wrong_place_brings_more_than_an_explanation(part, draw):
    tree = json.loads(start().to_json())
    reads_or_explains(json.dumps(replaced(tree, part, draw)))


@settings(max_examples=100)
@given(st.binary(max_size=40) | st.text(max_size=40) | jsons.map(json.dumps))
def test_what_is_no_config_at_all_is_explained(data):
    assert not reads_or_explains(data)
