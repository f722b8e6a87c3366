"""`X.new(…)`, `X.default()` and `X.init(…)` of Rust, asked of every public class."""

import importlib
import inspect
import linecache
from enum import Enum
from pathlib import Path

import pytest

from burnbook import nn, optim
from burnbook.config import Config
from burnbook.core.errors import BurnbookError, UnknownNameError
from burnbook.core.other_names import CONSTRUCTORS, Constructor
from burnbook.prelude import Numpy
from tests.support.namespaces import packages

NEEDS_ONNX = "burnbook.importers.onnx.Backend"
PROTOCOL = "_is_protocol"
ROOT = Path(__file__).resolve().parents[2]


def public_classes():
    """Every class that a package of burnbook lists, and where."""
    found = {}
    for name in packages(ROOT, "burnbook"):
        if name.startswith("burnbook.cli"):
            continue  # tools of the command line
        package = importlib.import_module(name)
        for public in getattr(package, "__all__", ()):
            value = getattr(package, public)
            ours = isinstance(value, type) and f"{name}.{public}" != NEEDS_ONNX
            ours = ours and value.__module__.startswith("burnbook.")
            kinds = ours and (issubclass(value, Enum), getattr(value, PROTOCOL, False))
            if ours and not any(kinds):
                found[value] = f"{name}.{public}"
    return found


CLASSES = public_classes()


class OwnConfig(Config):
    size: int
    rate: float = 0.5


def asked(code, **names):
    """The error of a line of code that has a source, as in a notebook."""
    linecache.cache["<asked>"] = (len(code), None, [code], "<asked>")
    with pytest.raises(UnknownNameError) as caught:
        eval(compile(code, "<asked>", "eval"), names)
    return caught.value


def test_there_are_many_classes():
    assert len(CLASSES) > 500


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_every_public_class_names_itself_or_its_config(name):
    wrong = []
    for cls, path in CLASSES.items():
        held = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)
        if not isinstance(held, Constructor):
            if held is None:
                wrong.append(f"{path}.{name}: Python's own error")
            continue  # it has one, or a row of the tables
        error = asked(f"{cls.__name__}.{name}()", **{cls.__name__: cls})
        makes = (f"{cls.__name__}(", f"{cls.__name__}Config(", f"{cls.__name__}.")
        if not (error.cure.startswith(makes) or error.cure.startswith("def init")):
            wrong.append(f"{path}.{name}: {error.cure}")
    assert not wrong


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_what_needs_no_arguments_is_made_by_the_cure(name):
    """Letter for letter, in a space where the class has the name that was used."""
    wrong, made = [], 0
    for cls, path in CLASSES.items():
        held = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)
        if not isinstance(held, Constructor):
            continue
        at, _, public = path.rpartition(".")
        home = importlib.import_module(at)
        cure = asked(f"home.{public}.{name}()", home=home).cure
        if cure.startswith("def init") or "(…)" in cure:
            continue
        try:
            out = eval(cure, {"home": home, "device": Numpy()})
        except (TypeError, BurnbookError):
            if _asks_nothing(cls):
                wrong.append(f"{path}: {cure}")
            continue
        made += 1
        if not isinstance(out, (cls, optim.OptimizerAdaptor)):
            wrong.append(f"{path}: {cure} gives {type(out).__name__}")
    assert not wrong
    assert made > 100


# Made by what they come from: the call says so in an error of its own.
ELSEWHERE = {"Gradients", "Tensor", "QuantizedTensor", "Cupy", "TrainingHandle"}


def _asks_nothing(cls):
    if inspect.isabstract(cls) or cls.__name__ in ELSEWHERE:
        return False
    if vars(importlib.import_module(cls.__module__)).get(f"{cls.__name__}Config"):
        return False
    try:
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    except (TypeError, ValueError):
        return False
    return all(p.default is not p.empty for p in parameters)


@pytest.mark.parametrize(
    ("code", "cure"),
    [
        ("nn.DropoutConfig.new(0.5)", "nn.DropoutConfig(0.5)"),
        ("nn.LinearConfig.new(8, 2)", "nn.LinearConfig(8, 2)"),
        ("nn.Linear.new(8, 2)", "nn.LinearConfig(8, 2).init(device)"),
        ("nn.Relu.new()", "nn.Relu()"),
        ("OwnConfig.new(3)", "OwnConfig(3)"),
        ("optim.AdamConfig.new()", "optim.AdamConfig()"),
        ("optim.Adam.new()", "optim.AdamConfig().init()"),
    ],
)
def test_the_cure_has_the_arguments_of_the_reader(code, cure):
    names = {"nn": nn, "optim": optim, "OwnConfig": OwnConfig, "device": Numpy()}
    assert asked(code, **names).cure == cure
    eval(cure, names)


def test_without_a_source_the_cure_names_what_is_needed():
    with pytest.raises(UnknownNameError) as caught:
        exec("OwnConfig.new(3)", {"OwnConfig": OwnConfig})
    assert caught.value.cure == "OwnConfig(size)"


def test_such_names_are_not_there_for_whoever_asks():
    for cls in (OwnConfig, nn.Relu, optim.GradientsParams):
        assert not hasattr(cls, "new")
        assert not hasattr(cls, "default")
