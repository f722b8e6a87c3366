"""Fields: checked when a module is made, and never assigned afterwards."""

# ruff: noqa: F401 - what only annotations name, which are texts here

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools
import pickle
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, Optional, TypeVar, Union

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.dtypes import Int
from burnbook.core.errors import FieldError, FrozenError
from burnbook.module import Module, Param, RunningState
from burnbook.module.tree import has_place
from burnbook.tensor import Tensor

DEVICE = Autodiff(Numpy(compiled=False))
CONFIG = nn.LinearConfig(2, 2)
LAYER = CONFIG.init(DEVICE)
T = TypeVar("T")


def param(*sizes, kind=None):
    tensor = Tensor.ones(list(sizes), DEVICE)
    return Param.from_tensor(tensor if kind is None else tensor.int())


def module_with(annotation):
    """A class with one field of that type; its annotations are texts."""
    scope = {"__annotations__": {"part": annotation}, "__module__": __name__}
    return type("Owner", (Module,), scope)


class Mode(enum.Enum):
    FAST = 1


FITS = [
    ("nn.Linear", LAYER),
    ("nn.Linear | None", None),
    ("Optional[nn.Linear]", None),
    ("Union[nn.Linear, nn.Relu]", nn.Relu()),
    ("nn.Conv2d | nn.Linear | None", LAYER),
    ("Module", LAYER),
    ("list[nn.Linear]", [LAYER, LAYER]),
    ("list[nn.Linear]", ()),
    ("Sequence[nn.Linear]", [LAYER]),
    ("typing.List[nn.Linear | None]", [LAYER, None]),
    ("list[tuple[nn.Linear, int]]", [(LAYER, 3)]),
    ("dict[str, nn.Linear]", {"a": LAYER}),
    ("Mapping[str, list[nn.Linear]]", collections.OrderedDict(a=[LAYER])),
    ("tuple[int, str]", (1, "a")),
    ("tuple[int, int]", [3, 3]),
    ("tuple[int, ...]", (1, 2, 3)),
    ("Param", param(2)),
    ("Param | None", None),
    ("Param", RunningState.from_tensor(Tensor.ones([2], DEVICE))),
    ("Param[Tensor]", param(2)),
    ("Param[Tensor[1]]", param(2)),
    ("Param[Tensor[2, Int]]", param(2, 2, kind=Int)),
    ("list[Param[Tensor[1]]] | None", [param(2), param(3)]),
    ("Param[Tensor[2]] | None", LAYER.weight),
    ("Tensor", Tensor.ones([2], DEVICE)),
    ("Tensor[1]", Tensor.ones([2], DEVICE)),
    ("float", 3),
    ("float", np.float32(3)),
    ("int", np.int64(3)),
    ("int", True),
    ("bool", np.bool_(True)),
    ("str", "a"),
    ("Mode", Mode.FAST),
    ("Literal['a', 'b']", "b"),
    ("Callable[[Tensor], Tensor]", abs),
    ("Callable", nn.Relu()),
    ("Any", CONFIG),
    ("object", 3),
    ("T", CONFIG),
    ("typing.Annotated[nn.Linear, 'Full']", LAYER),
    ("NotYetDefined", LAYER),
    ("list[NotYetDefined]", [LAYER]),
    ("nn.LinearConfig", CONFIG),
    ("np.ndarray", np.ones(2)),
]


@pytest.mark.parametrize(("annotation", "value"), FITS, ids=[a for a, _ in FITS])
def test_what_fits_is_accepted(annotation, value):
    assert module_with(annotation)(value).part is value


MISFITS = [
    ("nn.Linear", CONFIG, "part: this must be a Linear, not a LinearConfig"),
    ("nn.Linear", None, "not None"),
    ("nn.Linear", nn.Relu(), "must be a Linear, not a Relu"),
    ("nn.Linear", nn.Linear, "not the class Linear"),
    ("nn.Linear", LAYER.weight, "not a Param of rank 2"),
    ("nn.Linear | nn.Relu", CONFIG, r"a Linear \| Relu, not a LinearConfig"),
    ("Optional[nn.Linear]", CONFIG, r"a Linear \| None, not a LinearConfig"),
    ("list[nn.Linear]", [LAYER, CONFIG], r"part\[1\]: this must be a Linear"),
    ("list[nn.Linear] | None", [CONFIG], r"part\[0\]: this must be a Linear"),
    ("list[nn.Linear]", LAYER, r"a list\[Linear\], not a Linear"),
    ("list[nn.Linear]", iter([LAYER]), r"not a list_iterator"),
    ("dict[str, nn.Linear]", {"a": CONFIG}, r"part\['a'\]: this must be a Linear"),
    ("dict[str, list[nn.Linear]]", {"a": [CONFIG]}, r"part\['a'\]\[0\]: this must"),
    ("tuple[int, int]", (1, 2, 3), r"a tuple\[int, int\], not a tuple of 3"),
    ("tuple[int, int]", 3, "not 3"),
    ("Param", Tensor.ones([2], DEVICE), "a Param, not a Tensor of rank 1"),
    ("Param", np.ones(2), "a Param, not an ndarray"),
    ("Param", 0.5, "a Param, not 0.5"),
    ("Param[Tensor[2]]", param(2), r"a Param\[Tensor\[2\]\], not a Param of rank 1"),
    ("Param[Tensor[1, Int]]", param(2), r"a Param\[Tensor\[1, Int\]\], not"),
    ("list[Param[Tensor[1]]]", [param(2), param(2, 2)], r"part\[1\]: this must"),
    ("Param[Tensor[1]]", LAYER.weight, "of rank 2"),
    ("RunningState", param(2), "a RunningState, not a Param"),
    ("Tensor", param(2), "a Tensor, not a Param of rank 1"),
    ("Tensor[2]", Tensor.ones([2], DEVICE), r"a Tensor\[2\], not a Tensor of rank 1"),
    ("float", "0.5", "a float, not '0.5'"),
    ("int", 2.5, "an int, not 2.5"),
    ("str", 3, "a str, not 3"),
    ("Literal['a', 'b']", "c", "not 'c'"),
    ("Callable", 3, "a function, not 3"),
    ("Linear", CONFIG, "a Linear, not a LinearConfig"),  # a name nobody knows here
    ("list[Linear] | None", [CONFIG], r"part\[0\]: this must be a Linear"),
]


@pytest.mark.parametrize(
    ("annotation", "value", "text"), MISFITS, ids=[f"{a} {t}" for a, _, t in MISFITS]
)
def test_what_does_not_fit_is_refused(annotation, value, text):
    with pytest.raises(FieldError, match=text) as caught:
        module_with(annotation)(value)
    assert len(str(caught.value).splitlines()[0]) < 120


def test_the_cures_work():
    forgotten = module_with("nn.Linear")
    with pytest.raises(FieldError, match=r"try: LinearConfig\(…\)\.init\(device\)"):
        forgotten(CONFIG)
    assert forgotten(CONFIG.init(DEVICE)).num_params() == 6
    learned = module_with("Param")
    with pytest.raises(FieldError, match=r"try: Param\.from_tensor\(…\)"):
        learned(Tensor.ones([1, 1], DEVICE))
    assert learned(Param.from_tensor(Tensor.ones([1, 1], DEVICE))).num_params() == 1
    with pytest.raises(FieldError, match=r"try: nn\.LinearConfig\(3, 2\)\.init"):
        nn.Linear(3, 2)
    assert nn.LinearConfig(3, 2).init(DEVICE).num_params() == 8
    with pytest.raises(FieldError, match=r"DropoutConfig\(…\)\.init\(\)"):
        module_with("nn.Dropout")(nn.DropoutConfig(0.5))


def test_swapped_arguments_are_named():
    class Two(Module):
        first: nn.Linear
        drop: nn.Dropout
        last: nn.Conv2d

    drop, conv = nn.DropoutConfig(0.5).init(), nn.Conv2dConfig([1, 1], [3, 3])
    conv = conv.init(DEVICE)
    with pytest.raises(FieldError, match=r"Two: are first and drop swapped\?"):
        Two(drop, LAYER, conv)
    with pytest.raises(FieldError, match=r"are first and drop and last in another"):
        Two(drop, conv, LAYER)
    assert Two(LAYER, drop, conv).last is conv


SIZES = [
    (cls, args)
    for name, cls in vars(nn).items()
    for args in ((3, 2), (4,))
    if isinstance(cls, type)
    and issubclass(cls, Module)
    and hasattr(nn, f"{name}Config")
    if has_place(cls)
]


@pytest.mark.parametrize(
    ("cls", "args"), SIZES, ids=[f"{cls.__name__}{args}" for cls, args in SIZES]
)
def test_a_layer_is_not_made_from_sizes(cls, args):
    with pytest.raises(FieldError, match=r"this must be|\.init\("):
        cls(*args)


def test_classes_of_a_function_are_known():
    class Inner(Module):
        layer: nn.Linear

    class Outer(Module):
        inner: Inner
        more: list[Inner] | None

    inner = Inner(LAYER)
    assert Outer(inner, None).num_params() == 6
    with pytest.raises(FieldError, match=r"inner: this must be an Inner, not a Linear"):
        Outer(LAYER, None)
    with pytest.raises(FieldError, match=r"more\[0\]: this must be an Inner"):
        Outer(inner, [LAYER])


def test_a_class_that_a_cell_defines_twice_stays_good():
    scope = {"nn": nn, "Module": Module, "__name__": "__main__"}
    cell = "class Block(Module):\n    layer: nn.Linear\n"
    exec(cell, scope)
    exec("class Net(Module):\n    block: Block\n", scope)
    exec(cell, scope)
    assert scope["Net"](scope["Block"](LAYER)).num_params() == 6


def test_a_module_may_hold_modules_of_its_own_class():
    class Tree(Module):
        value: Param
        below: list[Tree]

    leaf = Tree(param(1), [])
    assert Tree(param(1), [leaf, leaf]).num_params() >= 2
    with pytest.raises(FieldError, match=r"below\[0\]"):
        Tree(param(1), [LAYER])


def test_generic_and_inherited_modules():
    class Holder(Module, Generic[T]):
        held: T
        size: int

    class Wide(Holder[nn.Linear]):
        scale: float = 1.0

    assert Holder[int](LAYER, 3).held is LAYER
    assert Wide(LAYER, 3).scale == 1.0
    with pytest.raises(FieldError, match=r"Wide\.size: this must be an int"):
        Wide(LAYER, "3")
    other = module_with("Holder")
    assert other(Holder(LAYER, 3))


def test_a_default_is_accepted_as_it_is():
    class Loose(Module):
        layer: nn.Linear = None  # type: ignore[assignment] # as people write it
        size: int = None  # type: ignore[assignment]

    assert Loose().layer is None
    with pytest.raises(FieldError):
        Loose(CONFIG)


def test_an_own_constructor_assigns_and_is_checked():
    class Net(Module):
        layer: nn.Linear
        width: int

        def __init__(self, width):
            self.width = width
            self.layer = nn.LinearConfig(width, 2).init(DEVICE)
            self.width = width + 0

    class Wrong(Module):
        layer: nn.Linear

        def __init__(self):
            self.layer = CONFIG

    class Half(Module):
        layer: nn.Linear
        other: nn.Linear

        def __init__(self):
            self.layer = LAYER

    class Deeper(Net):
        extra: int

        def __init__(self, width):
            super().__init__(width)
            self.extra = 1

    assert Net(3).num_params() == 8
    assert Deeper(3).extra == 1
    with pytest.raises(FrozenError):
        Deeper(3).extra = 2
    with pytest.raises(FieldError, match="not a LinearConfig"):
        Wrong()
    with pytest.raises(FieldError, match="its constructor has set no other"):
        Half()


def test_post_init_may_set_fields():
    class Sized(Module):
        sizes: tuple[int, ...]

        def __post_init__(self):
            self.sizes = tuple(self.sizes)

    assert Sized([1, 2]).sizes == (1, 2)


def test_a_lazy_parameter_is_not_drawn_to_check_it():
    layer = CONFIG.init(DEVICE)
    module_with("Param[Tensor[2]]")(layer.weight)
    assert not layer.weight.is_initialized


# Nothing changes in place


def test_assigning_and_deleting_raise():
    layer = CONFIG.init(DEVICE)
    for name in ("weight", "bias", "zz", "_hidden", "forward"):
        with pytest.raises(FrozenError, match="never changes in place"):
            setattr(layer, name, None)
    with pytest.raises(FrozenError, match="never changes in place"):
        del layer.bias
    with pytest.raises(dataclasses.FrozenInstanceError):
        layer.bias = None
    assert layer.bias is not None


def test_replace_gives_a_checked_copy():
    layer = CONFIG.init(DEVICE)
    bare = layer.replace(bias=None)
    assert (bare.bias, bare.weight) == (None, layer.weight)
    assert layer.bias is not None
    with pytest.raises(FieldError, match=r"Linear\.weight: this must be a Param"):
        layer.replace(weight=Tensor.ones([2, 2], DEVICE))
    with pytest.raises(FieldError, match="weight=…"):
        layer.replace(wieght=None)
    halved = layer.replace(weight=layer.weight.map(lambda value: value * 0.5))
    assert halved.weight.id == layer.weight.id
    assert halved.weight.val().is_require_grad()
    assert dataclasses.replace(layer, bias=None).bias is None


@pytest.mark.parametrize(
    "change",
    [
        copy.copy,
        copy.deepcopy,
        lambda m: pickle.loads(pickle.dumps(m)),
        lambda m: m.clone(),
        lambda m: m.valid().train(),
        lambda m: m.replace(bias=None),
    ],
)
def test_copies_are_closed_too(change):
    made = change(CONFIG.init(DEVICE))
    assert type(made) is nn.Linear
    with pytest.raises(FrozenError):
        made.weight = None


def test_a_cached_property_still_works():
    class Cached(Module):
        size: int

        @functools.cached_property
        def double(self):
            return self.size * 2

    assert Cached(2).double == 4


def test_running_statistics_are_what_changes():
    norm = nn.BatchNormConfig(2).init(DEVICE)
    before = vars(norm).copy()
    norm.forward(Tensor.random([4, 2, 3], device=DEVICE))
    assert vars(norm) == before
    assert np.asarray(norm.running_mean.val()).any()


def test_steps_and_maps_do_not_check_again(monkeypatch):
    from burnbook.module import fields

    def refuse(*_):
        raise AssertionError("checked again")

    layer = CONFIG.init(DEVICE)
    monkeypatch.setattr(fields, "wanted_fields", refuse)
    layer.clone().valid().train().fork(DEVICE).no_grad()
    with pytest.raises(AssertionError, match="checked again"):
        nn.Linear(layer.weight, None)
