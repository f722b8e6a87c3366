"""Rules for names keep every tensor; what a misnamed one leaves out is said."""

import re
import warnings

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core.errors import ArgumentError, RecordError
from burnbook.exporters.pytorch import write_state_dict
from burnbook.importers import (
    KeyRemapper,
    LoadArgs,
    PyTorchFileRecorder,
    PytorchStore,
    safetensors,
)
from burnbook.importers.pytorch_report import inspect_file
from burnbook.importers.safetensors import SafetensorsFileRecorder, SafetensorsStore
from burnbook.module import Module
from burnbook.record import FullPrecisionSettings, SafetensorsRecorder
from burnbook.tensor.data import TensorData

RULE = (r"^(a|b)\.", "z.")


class Net(Module):
    fc: nn.Linear


def net():
    return Net(nn.LinearConfig(3, 2).init(Numpy()))


def written(folder, name, *names):
    shapes = [
        (2,) if re.search(r"\.(b|bias|offset_of_b)$", key) else (2, 3) for key in names
    ]
    values = {
        key: TensorData(np.full(shape, 1.0, np.float32))
        for key, shape in zip(names, shapes, strict=True)
    }
    if name.endswith(".pt"):
        return write_state_dict(values, folder / name)
    return SafetensorsRecorder().record(values, folder / name)


def ways(name):
    """All that renames the tensors of a file."""
    if name.endswith(".pt"):
        load = PyTorchFileRecorder(FullPrecisionSettings).load
        store = PytorchStore.from_file
    else:
        load = SafetensorsFileRecorder(FullPrecisionSettings).load
        store = SafetensorsStore.from_file
    args = LoadArgs if name.endswith(".pt") else safetensors.LoadArgs
    yield lambda path: load(args(path).with_key_remap(*RULE))
    yield lambda path: net().load_from(store(path).with_key_remapping(*RULE))
    yield lambda path: store(path).with_key_remapping(*RULE).keys()
    if name.endswith(".pt"):
        yield lambda path: inspect_file(path, remap=[RULE])


@pytest.mark.parametrize("name", ["mlp.pt", "mlp.safetensors"])
def test_two_tensors_with_one_new_name_are_an_error_that_names_both(name, tmp_path):
    path = written(tmp_path, name, "a.weight", "b.weight", "c.weight")
    for way in ways(name):
        with pytest.raises(RecordError, match="several tensors one name") as caught:
            way(path)
        assert caught.value.facts == [("z.weight", "a.weight and b.weight")]


@pytest.mark.parametrize("name", ["mlp.pt", "mlp.safetensors"])
def test_rules_that_keep_names_apart_are_fine(name, tmp_path):
    path = written(tmp_path, name, "a.weight", "c.weight")
    store = (PytorchStore if name.endswith("pt") else SafetensorsStore).from_file(path)
    assert store.with_key_remapping(*RULE).keys() == ["c.weight", "z.weight"]


def test_all_tensors_that_share_names_are_counted():
    remapper = KeyRemapper((("[0-9]+", "n"),))
    keys = [f"a{k}" for k in range(9)] + ["c1", "c2"]
    with pytest.raises(RecordError) as caught:
        remapper.all_renamed(keys, "here")
    assert caught.value.facts == [
        ("an", "a0 and a1 and a2 and a3 and 5 more"),
        ("cn", "c1 and c2"),
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("fc.b", "not in the record; did you mean fc.b?"),
        ("module.fc.bias", "not in the record; did you mean module.fc.bias?"),
        ("fc.offset_of_b", "fc.offset_of_b"),
    ],
)
def test_a_misnamed_bias_is_refused_with_the_name_that_is_meant(name, told, tmp_path):
    path = written(tmp_path, "a.pt", "fc.weight", name)
    record = PyTorchFileRecorder(FullPrecisionSettings).load(path, Numpy())
    with pytest.raises(RecordError) as caught:
        net().load_record(record)
    assert "fc.bias " in str(caught.value)
    assert told in str(caught.value)
    assert net().load_record(record, partial=True).fc.bias is not None
    fitting = LoadArgs(path).with_key_remap(f"^{name}$", "fc.bias")
    record = PyTorchFileRecorder(FullPrecisionSettings).load(fitting, Numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert net().load_record(record).fc.bias is not None


def test_arguments_for_another_format_are_refused(tmp_path):
    recorders = [
        (SafetensorsFileRecorder, LoadArgs),
        (PyTorchFileRecorder, safetensors.LoadArgs),
    ]
    for recorder, args in recorders:
        with pytest.raises(ArgumentError, match="LoadArgs is no path"):
            recorder(FullPrecisionSettings).load(args(tmp_path / "a"))
