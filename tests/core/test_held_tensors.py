"""An object that holds a tensor, given where the tensor belongs: its part is named.

Each object with tensors that a layer or a step gives is tried in each place that takes
a tensor; the cure leads to a tensor of that object.
"""

import dataclasses
import importlib
import inspect
import linecache
import pkgutil
from collections import namedtuple

import pytest

import burnbook.nn
import burnbook.train
from burnbook import nn
from burnbook.core.errors import ArgumentError, BurnbookError, ShapeError
from burnbook.core.held_tensors import MEANT, tensors_in
from burnbook.prelude import Autodiff, Module, Numpy, Tensor
from burnbook.train import (
    ClassificationOutput,
    MultiLabelClassificationOutput,
    RegressionOutput,
    SequenceOutput,
)

DEVICE = Autodiff(Numpy(compiled=False))
X = Tensor.ones([2, 4, 8], DEVICE)
LABELS = Tensor.from_ints([0, 1], DEVICE)
Pair = namedtuple("Pair", "image label")


def lstm():
    return nn.LstmConfig(8, 8, True).init(DEVICE)


def attended():
    return nn.MultiHeadAttentionConfig(8, 2).init(DEVICE)(nn.MhaInput.self_attn(X))


# Each kind of object, and the way to the tensor that is meant.
HOLDERS = {
    "tuple of an Lstm": (lambda: lstm()(X), "[0]"),
    "LstmState": (lambda: lstm()(X)[1], ".hidden"),
    "RnnState": (lambda: nn.RnnState(X), ".hidden"),
    "MhaOutput": (attended, ".context"),
    "MhaInput": (lambda: nn.MhaInput.self_attn(X), ".query"),
    "TransformerEncoderInput": (lambda: nn.TransformerEncoderInput(X), ".tensor"),
    "TransformerDecoderInput": (lambda: nn.TransformerDecoderInput(X, X), ".target"),
    "ClassificationOutput": (lambda: ClassificationOutput(X, X, LABELS), ".output"),
    "MultiLabelClassificationOutput": (
        lambda: MultiLabelClassificationOutput(X, X, LABELS),
        ".output",
    ),
    "SequenceOutput": (lambda: SequenceOutput(X, X, LABELS), ".logits"),
    "RegressionOutput": (lambda: RegressionOutput(X, X, X), ".output"),
    "GeneratePaddingMask": (lambda: nn.GeneratePaddingMask(X, X > 0), ".tensor"),
    "pair of a batch": (lambda: (X, LABELS), "[0]"),
    "dict of a batch": (lambda: {"image": X, "label": LABELS}, "['image']"),
    "named tuple": (lambda: Pair(X, LABELS), ".image"),
    "list": (lambda: [X, X], "[0]"),
}
OURS = [name for name in HOLDERS if name[0].isupper()]


def layer(config):
    return lambda held: config.init(DEVICE)(held)


PLACES = {
    "linear": layer(nn.LinearConfig(8, 2)),
    "layer norm": layer(nn.LayerNormConfig(8)),
    "rms norm": layer(nn.RmsNormConfig(8)),
    "batch norm": layer(nn.BatchNormConfig(4)),
    "group norm": layer(nn.GroupNormConfig(2, 4)),
    "conv": layer(nn.Conv1dConfig(4, 4, 3)),
    "embedding": layer(nn.EmbeddingConfig(4, 4)),
    "gru": layer(nn.GruConfig(8, 8, True)),
    "lstm": layer(nn.LstmConfig(8, 8, True)),
    "relu": lambda held: nn.Relu()(held),
    "max pool": lambda held: nn.MaxPool1dConfig(2).init()(held),
    "dropout": lambda held: nn.DropoutConfig(0.5).init()(held),
    "cross entropy": lambda held: nn.CrossEntropyLossConfig().init(DEVICE)(
        held, LABELS
    ),
    "mse": lambda held: nn.MseLoss()(held, X, nn.Reduction.Mean),
    "x + held": lambda held: X + held,
    "held + x": lambda held: held + X,
    "x.matmul(held)": lambda held: X.matmul(held),
    "cat": lambda held: Tensor.cat([X, held], 0),
    "stack": lambda held: Tensor.stack([X, held], 0),
    "attention": lambda held: nn.MhaInput(X, held, X) and nn.MhaInput.self_attn(held),
}


PAIRS = [
    (place, holder)
    for place in PLACES
    for holder in HOLDERS
    if not (place == "held + x" and holder.startswith(("tuple", "pair", "list")))
    and not (place == "held + x" and holder.startswith("named"))
]


@pytest.mark.parametrize(("place", "holder"), PAIRS)
def test_an_object_in_place_of_its_tensor_is_told_the_way_to_it(place, holder):
    make, way = HOLDERS[holder]
    held = make()
    with pytest.raises(BurnbookError) as caught:
        PLACES[place](held)
    text = str(caught.value)
    assert type(held).__name__ in text.partition("\n")[0]
    assert way in caught.value.cure, text
    assert "from_data" not in text
    assert f"{way} " in text.partition("\n")[2]  # a fact with its shape
    if holder == "list":
        assert "Tensor.stack(" in caught.value.cure


def classes_with_tensors():
    """The public dataclasses of layers and of training whose fields are tensors."""
    found = {}
    for package in (burnbook.nn, burnbook.train):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, cls in vars(importlib.import_module(info.name)).items():
                if not inspect.isclass(cls) or name.startswith("_"):
                    continue
                if dataclasses.is_dataclass(cls) and not issubclass(cls, Module):
                    kinds = [str(field.type) for field in dataclasses.fields(cls)]
                    if any("Tensor" in kind for kind in kinds):
                        found[name] = cls
    return found


def test_every_class_with_tensors_is_here():
    made = {
        name
        for name, cls in classes_with_tensors().items()
        if "train.metric" not in cls.__module__  # made for a metric, read by it alone
    }
    assert "LstmState" in made
    assert made - set(OURS) == set()


@pytest.mark.parametrize("name", OURS)
def test_a_method_of_a_tensor_is_asked_of_the_part(name):
    make, way = HOLDERS[name]
    held = make()
    for ask in (lambda: held.relu(), lambda: held.mean_dim(1)):
        with pytest.raises(AttributeError) as caught:
            ask()
        assert caught.value.cure.startswith(f"held{way}."), caught.value
        lines = {"held": held}
        assert eval(caught.value.cure, lines).dims()[0] == 2
    assert not hasattr(held, "nothing_like_it")


@pytest.mark.parametrize("name", OURS)
def test_parts_are_no_places_of_a_tuple(name):
    held, way = HOLDERS[name][0](), HOLDERS[name][1]
    for ask in (lambda: held[0], lambda: list(held)):
        with pytest.raises(ArgumentError, match="no tuple") as caught:
            ask()
        assert way in caught.value.cure


def ran(code, **names):
    """What a program of several lines raises, with its source at hand."""
    name = f"<program {abs(hash(code))}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        exec(compile(code, name, "exec"), names)
    except BurnbookError as error:
        return error
    return names


UNPACKED = {
    "out, h = gru(x)": "out = gru(x)",
    "out, (h, c) = lstm(x)": ("out, state = lstm(x); h, c = state.hidden, state.cell"),
    "out, weights = mha(whole)": "out = mha(whole).context",
    "values, places = x.max_dim(1)": "values, places = x.max_dim_with_indices(1)",
    "values, places = x.topk(3, 1)": "values, places = x.topk_with_indices(3, 1)",
}


@pytest.mark.parametrize("line", UNPACKED)
def test_an_unpacked_result_is_told_what_it_is(line):
    known = {
        "x": Tensor.ones([3, 4, 8], DEVICE),
        "gru": nn.GruConfig(8, 8, True).init(DEVICE),
        "lstm": lstm(),
        "mha": nn.MultiHeadAttentionConfig(8, 2).init(DEVICE),
        "whole": nn.MhaInput.self_attn(X),
    }
    error = ran(f"{line}\n", **known)
    assert isinstance(error, BurnbookError)
    assert error.cure == UNPACKED[line]
    assert isinstance(ran(f"{error.cure}\n", **known), dict)


def test_as_many_names_as_rows_are_right():
    first, second = Tensor.from_data([[1.0, 2.0], [3.0, 4.0]])
    assert second.into_data().to_list() == [3.0, 4.0]
    head, *rest = Tensor.ones([3, 2])
    assert len(rest) == 2
    assert head.dims() == first.dims()
    assert [row.dims() for row in Tensor.ones([2, 3])] == [[3], [3]]
    assert [a.dims() for a, _ in zip(Tensor.ones([2, 3]), "ab", strict=True)]
    with pytest.raises(ShapeError, match="one tensor with 3 rows, and 2 names"):
        _one, _two = Tensor.ones([3, 2])


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (nn.MultiHeadAttentionConfig(8, 2), "MhaInput.self_attn(x)"),
        (nn.TransformerEncoderConfig(8, 16, 2, 1), "TransformerEncoderInput(x)"),
        (nn.TransformerDecoderConfig(8, 16, 2, 1), "TransformerDecoderInput(target"),
    ],
)
def test_a_tensor_in_place_of_an_input_is_told_what_makes_one(config, wanted):
    with pytest.raises(ArgumentError, match="input must be a") as caught:
        config.init(DEVICE)(X)
    assert caught.value.cure.startswith(wanted)
    if wanted.endswith("(x)"):
        code = caught.value.cure.partition(", or ")[0]
        made = eval(f"nn.{code}", {"nn": nn, "x": X})
        assert config.init(DEVICE)(made) is not None


def test_states_as_pytorch_gives_them():
    h, c = Tensor.zeros([2, 8], DEVICE), Tensor.ones([2, 8], DEVICE)
    with pytest.raises(BurnbookError) as caught:
        lstm()(X, (h, c))
    made = eval(caught.value.cure, {"LstmState": nn.LstmState, "state": (h, c)})
    assert made.cell is c
    assert made.hidden is h
    with pytest.raises(ShapeError) as caught:
        lstm()(X, nn.LstmState(c.unsqueeze_dim(0), h.unsqueeze_dim(0)))
    assert ".squeeze_dim(0)" in caught.value.cure


def test_what_holds_no_tensor_has_no_way():
    for value in (3, "text", None, [1.0], {"a": 1}, (X for _ in "a"), X, Tensor, nn):
        assert tensors_in(value) == {}
    assert all(isinstance(name, str) for name in MEANT)
