"""Large weights beside an ONNX file: where they stand, and writes that fail."""

import os

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core import files
from burnbook.core.errors import DataError
from burnbook.exporters.onnx import export, to_onnx
from burnbook.importers.onnx import load
from tests.support.written_models import numbers

DEVICE = Numpy()
X = numbers(2, 64)


@pytest.fixture(autouse=True)
def small_limit(monkeypatch):
    monkeypatch.setattr(export, "LARGEST", 1000)


def linear(size=32):
    return nn.LinearConfig(64, size).init(DEVICE)


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def gives(path, model):
    """Whether ONNX Runtime, onnx and the importer read what the model computes."""
    wanted = np.asarray(model.forward(X))
    started = runtime.InferenceSession(str(path))
    found = started.run(None, {started.get_inputs()[0].name: np.asarray(X)})[0]
    onnx.checker.check_model(str(path), full_check=True)
    whole = onnx.load(path)  # with what lies beside it
    inner = runtime.InferenceSession(whole.SerializeToString())
    (again,) = inner.run(None, {inner.get_inputs()[0].name: np.asarray(X)})
    ours = np.asarray(load(path, DEVICE).forward(X))
    return all(np.allclose(y, wanted, 1e-5, 1e-5) for y in (found, again, ours))


def refuse(monkeypatch, end):
    """Let the disk refuse files whose name ends so."""
    replace = os.replace

    def refused(source, target):
        if str(target).endswith(end):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(files.os, "replace", refused)


def test_large_weights_stand_beside_the_file(tmp_path):
    model = linear()
    path = to_onnx(model, tmp_path / "m.onnx", X)
    name, side = listed(tmp_path)
    assert name == "m.onnx"
    assert side.startswith("m.onnx.")
    assert side.endswith(".data")
    assert path.stat().st_size < 2000
    assert (tmp_path / side).stat().st_size < 10_000
    assert gives(path, model)


def test_the_folder_need_not_be_there_nor_be_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = linear()
    to_onnx(model, "m.onnx", X)
    path = to_onnx(model, tmp_path / "runs" / "one" / "m.onnx", X)
    assert listed(path.parent) == listed(tmp_path)[:2]
    assert gives(path, model)


def test_the_same_model_again_gives_the_same_files(tmp_path):
    model = linear()
    to_onnx(model, tmp_path / "m.onnx", X)
    first = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    to_onnx(model, tmp_path / "m.onnx", X)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == first


def test_the_weights_of_the_model_before_are_removed(tmp_path, monkeypatch):
    to_onnx(linear(), tmp_path / "m.onnx", X)
    (before,) = set(listed(tmp_path)) - {"m.onnx"}
    (tmp_path / "other.data").write_bytes(b"stays")
    model = linear()
    path = to_onnx(model, tmp_path / "m.onnx", X)
    names = listed(tmp_path)
    assert len(names) == 3
    assert before not in names
    assert "other.data" in names
    assert gives(path, model)
    monkeypatch.setattr(export, "LARGEST", 1 << 20)
    to_onnx(model, path, X)
    assert listed(tmp_path) == ["m.onnx", "other.data"]


def test_what_another_program_wrote_beside_its_model_stays(tmp_path):
    path = to_onnx(linear(), tmp_path / "m.onnx", X)
    foreign = onnx.load(path, load_external_data=False)
    foreign.producer_name = "another"
    path.write_bytes(foreign.SerializeToString())
    (side,) = set(listed(tmp_path)) - {"m.onnx"}
    to_onnx(linear(), path, X)
    assert side in listed(tmp_path)


@pytest.mark.parametrize("end", [".data", ".onnx"])
def test_a_write_that_fails_leaves_the_model_before_whole(end, tmp_path, monkeypatch):
    before = linear()
    path = to_onnx(before, tmp_path / "m.onnx", X)
    names = listed(tmp_path)
    with monkeypatch.context() as patch:
        refuse(patch, end)
        with pytest.raises(DataError, match="the disk is full"):
            to_onnx(linear(), path, X)
    assert listed(tmp_path) == names
    assert gives(path, before)


def test_what_is_no_model_is_written_over(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"no model")
    model = linear()
    to_onnx(model, path, X)
    assert gives(path, model)
