"""Every field of a public config is described where its class is."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

from burnbook.config import Config
from burnbook.data.dataset.transform import SamplerDatasetOptions
from burnbook.train.metric.base import FormatOptions

PACKAGES = (
    "config",
    "data",
    "grad_clipping",
    "lr_scheduler",
    "module",
    "nn",
    "optim",
    "record",
    "train",
)
OPTIONS = (FormatOptions, SamplerDatasetOptions)


def modules() -> Iterator[str]:
    for name in PACKAGES:
        package = importlib.import_module(f"burnbook.{name}")
        yield package.__name__
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield found.name


def public_configs() -> list[type]:
    found = set(OPTIONS)
    for name in modules():
        for key, kind in vars(importlib.import_module(name)).items():
            is_config = inspect.isclass(kind) and issubclass(kind, Config)
            if is_config and kind is not Config and not key.startswith("_"):
                found.add(kind)
    return sorted(found, key=lambda kind: (kind.__module__, kind.__qualname__))


def described(kind: type, field: str) -> str | None:
    """What is said of a field: `field:` begins a line or a sentence."""
    pattern = rf"(?:^\s*|[.;]\s+){field}: (\S.*?)(?=\n *\w+: |\n *\n|\Z)"
    declaring = [c for c in kind.__mro__ if field in inspect.get_annotations(c)]
    texts = [vars(base).get("__doc__") or "" for base in (kind, *declaring)]
    found = (re.search(pattern, text, re.MULTILINE | re.DOTALL) for text in texts)
    return next((match[1] for match in found if match), None)


@pytest.mark.parametrize("kind", public_configs(), ids=lambda kind: kind.__name__)
def test_every_field_is_described(kind: Any):
    fields = [field.name for field in dataclasses.fields(kind)]
    assert [name for name in fields if described(kind, name) is None] == []


@pytest.mark.parametrize("kind", public_configs(), ids=lambda kind: kind.__name__)
def test_the_described_default_is_the_default(kind: Any):
    for field in dataclasses.fields(kind):
        text = described(kind, field.name) or ""
        if field.default is None:
            assert "None, the default:" in text, field.name
        elif isinstance(field.default, (bool, int, float, tuple)):
            said = re.search(r"\(default ((?:\(.*?\)|[^()])+)\)", text)
            assert said is not None, field.name
            top, _, bottom = said[1].partition("/")
            value = ast.literal_eval(top)
            assert field.default == (value / int(bottom) if bottom else value)


def test_the_walk_finds_configs():
    names = {kind.__name__ for kind in public_configs()}
    assert {"AdamConfig", "Conv2dConfig", "SsimMetricConfig"} <= names
