"""Newest Burn reads the configs that are saved for it, and they are read back."""

import dataclasses
import json
import re
import subprocess
from types import UnionType
from typing import get_args, get_origin

import pytest

from burnbook import grad_clipping, lr_scheduler, nn, optim
from burnbook.config import ConfigEnum
from burnbook.core.errors import ConfigError
from burnbook.lr_scheduler import LrSchedulerConfig, NoamLrSchedulerConfig
from tests.support import cargo

NEWEST = "0.22"
SOURCE = (cargo.RUST / "configs_0_22.rs").read_text()
NAMES = re.findall(r"^ {12}(\w+Config),$", SOURCE, re.MULTILINE)
CHOICES = {
    nn.PaddingConfig1d: nn.PaddingConfig1d.Explicit(2, 1),
    nn.PaddingConfig2d: nn.PaddingConfig2d.Explicit(1, 2, 1, 2),
    nn.PaddingConfig3d: nn.PaddingConfig3d.Explicit(1, 2, 3),
    nn.Initializer: nn.Initializer.Normal(0.5, 0.25),
    nn.ActivationConfig: nn.ActivationConfig.Relu,
    nn.LinearLayout: nn.LinearLayout.Col,
    LrSchedulerConfig: LrSchedulerConfig.Constant(0.5),
    grad_clipping.GradientClippingConfig: grad_clipping.GradientClippingConfig.Norm(
        2.0
    ),
    optim.WeightDecayConfig: optim.WeightDecayConfig(0.5),
    optim.MomentumConfig: optim.MomentumConfig().with_nesterov(True),
}


def class_of(name):
    places = [nn, nn.loss, optim, lr_scheduler]
    return next(getattr(place, name) for place in places if hasattr(place, name))


def value_of(hint, default):
    """A value of this type that is another one than the default."""
    if get_origin(hint) is UnionType:
        hint = get_args(hint)[0]
    if get_origin(hint) is tuple:
        defaults = default if isinstance(default, tuple) else [default] * 3
        return tuple(map(value_of, get_args(hint), defaults))
    if get_origin(hint) is list:
        return [value_of(get_args(hint)[0], None)]
    if hint in CHOICES:
        return CHOICES[hint]
    if hint is bool:
        return default is False
    if hint is int:
        return default + 1 if isinstance(default, int) else 4
    if hint is float:
        return 0.375  # no default is, and f32 holds it, which some of Burn's fields are
    if issubclass(hint, ConfigEnum):
        return next(
            getattr(hint, x) for x in hint.variants if getattr(hint, x) != default
        )
    return next(member for member in hint if member != default)


def plain(cls):
    """The config with nothing but what it asks for."""
    rows = [row for row in cls.json_fields() if row[2] is dataclasses.MISSING]
    values = {name: value_of(hint, None) for name, hint, _ in rows}
    if cls is lr_scheduler.SequentialLrSchedulerConfig:
        values["schedulers"] *= 2
    return cls(**values)


def changed(config):
    """The config with another value in every field that may have one."""
    for name, hint, default in type(config).json_fields():
        if default is not dataclasses.MISSING:
            value = value_of(hint, default)
            try:
                config = getattr(config, f"with_{name}")(value)
            except ConfigError:  # it does not go with the others
                assert not isinstance(value, bool), name
    return config


@pytest.mark.slow
def test_newest_burn_reads_every_config(tmp_path):
    program = cargo.built("check-0.22", "configs", "configs_0_22.rs")
    made = {}
    for kind, change in (("plain", lambda x: x), ("changed", changed)):
        (tmp_path / kind).mkdir()
        for name in NAMES:
            path = tmp_path / kind / f"{name}.json"
            made[path] = change(plain(class_of(name)))
            made[path].save(path, version=NEWEST)
    done = subprocess.run([program, *made], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert {p.stem: x for p, x in zip(made, said, strict=True) if x is not None} == {}
    for path, config in made.items():
        again = path.with_name(f"{path.stem}_again.json").read_bytes()
        ours = json.loads(config.to_json(version=NEWEST))
        theirs = json.loads(again)
        assert theirs == {name: ours[name] for name in theirs}, path.stem
        type(config).from_json(again)  # what Burn writes is read here


@pytest.mark.parametrize("name", NAMES)
def test_what_is_saved_for_newest_burn_is_read_here(name):
    config = changed(plain(class_of(name)))
    assert type(config).from_json(config.to_json(version=NEWEST)) == config
    assert type(config).from_json(config.to_json()) == config


def test_what_newer_burn_renamed_is_saved_and_read_by_both_names():
    config = NoamLrSchedulerConfig(2.0)
    assert json.loads(config.to_json(version="0.22"))["factor"] == 2.0
    assert "factor" not in config.to_json()
    rest = '"warmup_steps": 4000, "model_size": 512}'
    assert NoamLrSchedulerConfig.from_json('{"factor": 2.0,' + rest) == config
    both = '{"factor": 3.0, "init_lr": 2.0,'
    with pytest.raises(ConfigError, match="factor is not a field"):
        NoamLrSchedulerConfig.from_json(both + rest)


def test_a_padding_has_a_number_for_each_side_since_0_21():
    padding = nn.PaddingConfig2d.Explicit(1, 2)
    config = nn.Conv2dConfig([1, 1], [3, 3], padding=padding)
    for version, wanted in (("0.15", [1, 2]), ("0.20", [1, 2]), ("0.21", [1, 2, 1, 2])):
        tree = json.loads(config.to_json(version=version))
        assert tree["padding"] == {"Explicit": wanted}


@pytest.mark.parametrize("version", ["0.14", "0.23", "1", "newest", 0.22])
def test_other_versions_are_refused(version, tmp_path):
    with pytest.raises(ConfigError, match="cannot be written"):
        nn.LinearConfig(1, 2).save(tmp_path / "config.json", version=version)
    assert list(tmp_path.iterdir()) == []
