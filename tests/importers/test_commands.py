"""`burnbook import-pytorch` and `inspect`, and the recorder beside other recorders."""

import argparse

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.cli import main
from burnbook.importers import LoadArgs, PyTorchFileRecorder
from burnbook.module import Module
from burnbook.record import (
    BinFileRecorder,
    BurnpackRecorder,
    FullPrecisionSettings,
    NamedMpkFileRecorder,
    PrettyJsonFileRecorder,
    SafetensorsRecorder,
)

torch = pytest.importorskip("torch", reason="PyTorch makes the files")

DEVICE = Numpy()


class Net(Module):
    fc: nn.Linear
    norm: nn.LayerNorm


def make():
    """What `--module` names."""
    norm = nn.LayerNormConfig(3).init(DEVICE)
    return Net(nn.LinearConfig(2, 3).init(DEVICE), norm)


@pytest.fixture
def file(tmp_path):
    layers = torch.nn.ModuleDict({"fc": torch.nn.Linear(2, 3)})
    layers["norm"] = torch.nn.LayerNorm(3)
    torch.save({"net": layers.state_dict(), "epoch": 3}, tmp_path / "a.pt")
    return tmp_path / "a.pt", layers["fc"].weight.detach().numpy()


PLACE = "tests.importers.test_commands:make"


def test_the_report_says_everything(file, capsys):
    path, _ = file
    assert main(["import-pytorch", str(path)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "a.pt: a file of PyTorch, zip, version 3"
    assert "  net.fc.weight    [3, 2]  f32" in shown
    assert shown[-2:] == ["skipped", "  epoch  3"]
    assert main(["inspect", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == shown


def test_a_check_says_what_misfits(file, capsys):
    path, _ = file
    assert main(["import-pytorch", str(path), "--check", "--module", PLACE]) == 1
    shown = capsys.readouterr().out
    assert "Net: 0 of 4 parameters fit" in shown
    assert "missing; did you mean net.fc.weight?" in shown
    options = ["--check", "--module", PLACE, "--top-level-key", "net"]
    assert main(["import-pytorch", str(path), *options]) == 0
    assert "Net: 4 of 4 parameters fit" in capsys.readouterr().out
    options = ["--check", "--module", PLACE, "--remap", r"^net\.(.*)=$1"]
    assert main(["import-pytorch", str(path), *options]) == 0


def test_a_record_is_written_for_a_module(file, tmp_path, capsys):
    path, weight = file
    out = tmp_path / "out.mpk"
    options = ["-o", str(out), "--top-level-key", "net"]
    assert main(["import-pytorch", str(path), *options]) == 1
    assert "--module" in capsys.readouterr().err
    assert not out.exists()
    assert main(["import-pytorch", str(path), *options, "--module", PLACE]) == 0
    made = make().load_file(out, NamedMpkFileRecorder(FullPrecisionSettings))
    assert np.array_equal(np.asarray(made.fc.weight.val()), weight.T)


def test_refusals_are_short(tmp_path, capsys):
    namespace = argparse.Namespace(rate=0.1)
    torch.save(namespace, tmp_path / "whole.pt")
    assert main(["import-pytorch", str(tmp_path / "whole.pt")]) == 1
    shown = capsys.readouterr().err
    assert "argparse.Namespace" in shown
    assert "torch.save(model.state_dict()" in shown


@pytest.mark.parametrize(
    "recorder",
    [
        NamedMpkFileRecorder,
        PrettyJsonFileRecorder,
        BinFileRecorder,
        BurnpackRecorder,
        SafetensorsRecorder,
    ],
)
def test_every_recorder_saves_the_record(recorder, file, tmp_path):
    path, weight = file
    args = LoadArgs(path).with_top_level_key("net")
    record = PyTorchFileRecorder().load(args, DEVICE, module=make())
    saved = recorder(FullPrecisionSettings).record(record, tmp_path / "out")
    again = recorder(FullPrecisionSettings)
    if recorder is SafetensorsRecorder:
        again = recorder(FullPrecisionSettings, layout="burn")
    made = make().load_file(saved, again)
    assert np.array_equal(np.asarray(made.fc.weight.val()), weight.T)


def test_a_part_of_a_file_is_reported(file):
    path, weight = file
    model = make()
    args = LoadArgs(path).with_key_remap(r"^net\.fc", "fc")
    made, report = model.load_partial(PyTorchFileRecorder().load(args, DEVICE))
    assert report.loaded == ("fc.weight", "fc.bias")
    assert report.unused == ("net.norm.bias", "net.norm.weight")
    assert "did you mean" in str(report) or report.kept
    assert np.array_equal(np.asarray(made.fc.weight.val()), weight.T)
    assert made.norm.gamma is model.norm.gamma


@pytest.mark.parametrize(("given", "written"), [("out", "out.mpk"), ("b.bpk", "b.bpk")])
def test_a_record_without_an_ending_becomes_named_messagepack(
    given, written, file, tmp_path, capsys
):
    path, _ = file
    options = ["-o", str(tmp_path / given), "--module", PLACE, "--top-level-key", "net"]
    assert main(["import-pytorch", str(path), *options]) == 0
    assert f"wrote {tmp_path / written}" in capsys.readouterr().out
    assert (tmp_path / written).is_file()
