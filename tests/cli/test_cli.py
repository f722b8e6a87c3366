"""The command line: what each command does, its help, its exit codes, its errors."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import burnbook
from burnbook import cli, nn
from burnbook.backend import Numpy
from burnbook.cli import learn
from burnbook.nn import LinearConfig
from burnbook.record import (
    BinFileRecorder,
    CompactRecorder,
    FullPrecisionSettings,
    NamedMpkFileRecorder,
    SafetensorsRecorder,
    describe,
)
from burnbook.record.tree import tensors
from burnbook.tensor import TensorData
from burnbook.train import LearnerSummary
from tests.conftest import SHARED
from tests.support.programs import python
from tests.support.refusals import tells
from tests.support.run_folders import make_run

COMMANDS = ["lab", "guide", "datasets", "warmup", "runs", "inspect", "convert", "new"]
COMMANDS += ["save", "restore", "import-onnx", "import-pytorch", "export-pytorch"]
COMMANDS += [
    "export-onnx",
    "export-rust",
    "export-javascript",
    "export-wgsl",
    "scaffold",
]


def run(capsys, *arguments):
    """The exit code, and what was written."""
    code = cli.main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def guide(capsys, dataset, folder, *options):
    options = ("--dataset", dataset, "--artifact-dir", folder, *options)
    return run(capsys, "guide", *options)


def fails(capsys, *arguments):
    """What a command writes that ends with 1."""
    code, _, err = run(capsys, *arguments)
    assert code == 1
    return err


@pytest.fixture
def chapters(tmp_path, monkeypatch):
    """A folder of two chapters, with what is not for readers beside them."""
    source = tmp_path / "chapters"
    for name in (
        "02_getting_started.ipynb",
        "01_overview.ipynb",
        "pictures/a.svg",
        "src/01_overview.py",
        "artifacts/model.mpk",
        "sanitize.cfg",
        ".ipynb_checkpoints/01_overview.ipynb",
    ):
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        said = f"the original of {name}"
        page = {"cells": [], "metadata": {"title": said}, "nbformat": 4}
        path.write_text(json.dumps(page) if path.suffix == ".ipynb" else said)
    monkeypatch.setattr(learn, "chapters_folder", lambda: source)
    return source


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(capsys, command):
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert f"example: burnbook {command}" in capsys.readouterr().out


def test_python_runs_the_package_as_the_command():
    done = python("-m", "burnbook", "--version")
    assert done.stdout == f"burnbook {burnbook.__version__}\n", done.stderr


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    shown = capsys.readouterr().out
    listed = re.findall(r"^    (\S+)", shown, re.MULTILINE)
    assert set(listed) == set(COMMANDS)


@pytest.mark.parametrize(
    "arguments",
    [[], ["fly"], ["guide", "--epochs", "0"], ["guide", "--dataset", "cats"]],
)
def test_a_wrong_command_ends_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "usage: burnbook" in capsys.readouterr().err


def test_lab_copies_the_chapters_and_keeps_what_was_changed(tmp_path, chapters, capsys):
    folder = tmp_path / "work"
    code, out, _ = run(capsys, "lab", folder, "--no-start")
    assert (code, out) == (0, f"2 chapters in {folder}\n")
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert names == ["01_overview.ipynb", "02_getting_started.ipynb", "pictures/a.svg"]
    mine = folder / "01_overview.ipynb"
    mine.write_text("mine")
    run(capsys, "lab", folder, "--no-start")
    assert mine.read_text() == "mine"
    run(capsys, "lab", folder, "--no-start", "--fresh")
    assert "the original of 01_overview.ipynb" in mine.read_text()


def test_lab_opens_chapter_one(tmp_path, chapters, capsys, monkeypatch):
    calls = []

    def serve(command, cwd, env):
        calls.append((command, cwd))
        return 0

    monkeypatch.setattr(learn, "_serve", serve)
    monkeypatch.setattr(learn.importlib.util, "find_spec", lambda name: object())
    folder = tmp_path / "work"
    code, _, _ = run(capsys, "lab", folder, "--", "--no-browser")
    assert code == 0
    as_root = ["--allow-root"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    page = "--LabApp.default_url=/lab/tree/01_overview.ipynb"
    expected = ["-m", "jupyterlab", page, *as_root, "--no-browser"]
    assert calls == [([sys.executable, *expected], folder)]
    assert not (tmp_path / "--no-browser").exists()


@pytest.mark.parametrize("options", [["--port=1"], ["--no-browser", "--port=1"], []])
def test_what_follows_two_dashes_is_for_jupyterlab(
    options, tmp_path, chapters, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "lab", "mine", "--no-start", "--", *options)[0] == 0
    assert [path.name for path in tmp_path.iterdir() if "mine" in path.name] == ["mine"]
    assert run(capsys, "lab", "--no-start", "--", *options)[0] == 0
    assert (tmp_path / learn.CHAPTERS).is_dir()


def ask(address, patience=180):
    """The answer of a server, which prints its address a moment before it listens."""
    end = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(address) as answer:
                return answer.read()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def test_lab_serves_chapter_one_and_asks_about_no_news(tmp_path, chapters):
    jupyterlab = pytest.importorskip("jupyterlab", reason="it is started for real")
    assert jupyterlab.__version__ >= "4"
    command = [sys.executable, "-m", "burnbook", "lab", "work", "--", "--no-browser"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = [f"--port={port}", "--IdentityProvider.token=x"]
    env = {**os.environ, "HOME": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path)}
    server = subprocess.Popen(
        [*command, *options, "--ServerApp.port_retries=50"],
        cwd=tmp_path,
        env=env,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines = iter(server.stderr.readline, "")
        line = next(line for line in lines if "http://127.0.0.1" in line)
        base, page = re.search(r"(http://127\.0\.0\.1:\d+)(\S+)", line).groups()
        assert page.startswith("/lab/tree/01_overview.ipynb")
        settings = "lab/api/settings/@jupyterlab/apputils-extension:notification"
        schema = json.loads(ask(f"{base}/{settings}?token=x"))["schema"]["properties"]
        assert schema["fetchNews"]["default"] == "false"
        assert schema["checkForUpdates"]["default"] is False
    finally:
        server.terminate()  # and with it JupyterLab, which has the same pipe
        server.communicate(timeout=60)


def test_lab_without_jupyterlab_says_how_to_get_it(
    tmp_path, chapters, capsys, monkeypatch
):
    monkeypatch.setattr(learn.importlib.util, "find_spec", lambda name: None)
    err = fails(capsys, "lab", tmp_path / "work")
    tells(err, "burnbook lab: JupyterLab", "try: pip install 'burnbook[lab]'\n")


def test_lab_does_not_replace_a_file(tmp_path, chapters, capsys):
    (tmp_path / "work").write_text("mine")
    err = fails(capsys, "lab", tmp_path / "work")
    tells(err, f"burnbook lab: {tmp_path}/work is a file", "try: another folder\n")


def test_datasets_lists_what_is_here(capsys):
    code, out, _ = run(capsys, "datasets")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("DigitsDataset           1,797 items  ")
    mnist = "MnistDataset           70,000 items  12 MB to download "
    assert lines[1].startswith(mnist)
    assert lines[-4].startswith("SpeechCommandsDataset  99,720 items  2541 MB to down")
    assert lines[-2].startswith("HousingDataset         20,640 items  1 MB to download")
    assert lines[-1] == f"downloads are kept in {os.environ['BURNBOOK_CACHE']}"


def test_inspect_lists_a_record(tmp_path, capsys):
    path = CompactRecorder().record({"step": 3}, tmp_path / "state")
    code, out, _ = run(capsys, "inspect", path)
    assert code == 0
    assert "step" in out


def test_inspect_of_what_is_no_record_explains_itself(tmp_path, capsys):
    (tmp_path / "bad.mpk").write_bytes(b"\xc1\xc1")
    for name in ("bad.mpk", "none.mpk", "bad.txt"):
        code, out, err = run(capsys, "inspect", tmp_path / name)
        assert (code, out) == (1, "")
        first, *rest = err.splitlines()
        assert first.startswith("burnbook inspect: ")
        assert all(line.startswith("  ") for line in rest)


# Runs, records


GOLDEN = SHARED / "golden" / "burn"
needs_golden = pytest.mark.skipif(
    not GOLDEN.is_dir(), reason="the real files of Burn are not here"
)


def test_runs_lists_compares_sorts_exports_and_deletes(tmp_path, capsys):
    make_run(tmp_path / "a", lr=0.1)
    make_run(tmp_path / "b", (0.5, 0.125), lr=0.2)
    code, out, _ = run(capsys, "runs", tmp_path)
    lines = [line.split()[:3] for line in out.splitlines()]
    assert (code, lines[2:4]) == (0, [["a", "finished", "2"], ["b", "finished", "2"]])
    _, out, _ = run(capsys, "runs", tmp_path, "--sort", "Loss")
    assert [line.split()[0] for line in out.splitlines()[2:4]] == ["b", "a"]
    _, out, _ = run(capsys, "runs", tmp_path, "--compare", "a", "b")
    assert ["lr", "0.1", "0.2"] in [line.split() for line in out.splitlines()]
    table = tmp_path / "runs.csv"
    _, out, _ = run(capsys, "runs", tmp_path, "--csv", table, "--per", "epoch")
    assert out == f"wrote {table}\n"
    assert len(table.read_text().splitlines()) == 1 + 2 * 2 * 2 * 2
    _, out, _ = run(capsys, "runs", tmp_path, "--delete", "a")
    assert out == "deleted a\n"
    assert not (tmp_path / "a").exists()


def test_runs_of_a_run_that_is_not_there_names_those_that_are(tmp_path, capsys):
    make_run(tmp_path / "a")
    code, out, err = run(capsys, "runs", tmp_path, "--compare", "a", "z")
    assert (code, out) == (1, "")
    text = "burnbook runs: RunStore: there is no run 'z'\n  runs  a\n"
    assert err == text


def test_runs_fits_the_terminal(tmp_path, capsys, monkeypatch):
    make_run(tmp_path / ("a-very-long-name" * 5), lr=0.1)
    make_run(tmp_path / "b", lr=0.2)
    monkeypatch.setattr("burnbook.cli.runs.screen_width", lambda: 80)
    _, out, _ = run(capsys, "runs", tmp_path)
    assert max(map(len, out.splitlines()[:4])) <= 80


@needs_golden
@pytest.mark.parametrize(
    ("name", "tensors"),
    [
        ("c4.mpk", 6),
        ("cnn_half_0.15.mpk", 8),
        ("mnist_head.bpk", 18),
        ("mnist_model.bin", 20),
        ("playground_adam_0.16.mpk", 16),
        ("playground_model_0.16.mpk", 8),
        ("playground_scheduler_0.16.mpk", 0),
    ],
)
def test_inspect_opens_every_real_file_of_burn(name, tensors, capsys):
    code, out, _ = run(capsys, "inspect", GOLDEN / name)
    assert code == 0
    assert out.splitlines()[0].startswith(f"{name}: ")
    assert f"  {tensors} tensors, " in out


@needs_golden
@pytest.mark.parametrize("ending", ["mpk.gz", "json", "json.gz", "bpk", "safetensors"])
def test_convert_keeps_every_element_of_a_real_file(ending, tmp_path, capsys):
    source = GOLDEN / "playground_model_0.16.mpk"
    there, back = tmp_path / f"model.{ending}", tmp_path / "back.mpk"
    code, out, _ = run(capsys, "convert", source, there)
    assert (code, out) == (0, f"wrote {there}, {there.stat().st_size:,} bytes\n")
    run(capsys, "inspect", there)
    run(capsys, "convert", there, back)
    before, after = describe(source), describe(back)
    assert sorted(map(tuple, before)) == sorted(map(tuple, after))
    one = dict(tensors(NamedMpkFileRecorder().read(source).item))
    two = dict(tensors(NamedMpkFileRecorder().read(back).item))
    assert one.keys() == two.keys()
    assert all(np.array_equal(one[k].to_numpy(), two[k].to_numpy()) for k in one)


@needs_golden
def test_convert_makes_lists_and_precisions(tmp_path, capsys):
    source = GOLDEN / "cnn_half_0.15.mpk"  # its layers stand in arrays
    flat, back = tmp_path / "model.safetensors", tmp_path / "model.mpk"
    run(capsys, "convert", source, flat, "--precision", "full")
    assert {entry.dtype for entry in describe(flat)} == {"f32"}
    run(capsys, "convert", flat, back, "--precision", "half")
    assert {entry.dtype for entry in describe(back)} == {"f16"}
    item = NamedMpkFileRecorder().read(back).item
    assert [type(item["conv"]), len(item["conv"])] == [list, 2]


def make_linear():
    return LinearConfig(2, 3).init(Numpy())


def test_convert_to_and_from_bincode_needs_the_module(tmp_path, capsys):
    model = make_linear()
    model.save_file(tmp_path / "model", CompactRecorder())
    place = ["--module", f"{__name__}:make_linear"]
    sys.modules[__name__].make_linear = make_linear
    paths = [tmp_path / name for name in ("model.mpk", "model.bin", "back.mpk")]
    err = fails(capsys, "convert", *paths[:2])
    assert err.startswith(f"burnbook convert: {paths[0]}: bincode has no names")
    assert run(capsys, "convert", *paths[:2], *place)[0] == 0
    fails(capsys, "convert", *paths[1:])
    assert run(capsys, "convert", *paths[1:], *place)[0] == 0
    assert paths[2].read_bytes() == paths[0].read_bytes()


def test_inspect_shows_shards_as_one_file(tmp_path, capsys):
    for name in ("a", "b"):
        tree = {name: {"weight": TensorData([[1.0, 2.0]])}}
        SafetensorsRecorder().record(tree, tmp_path / name)
    code, out, _ = run(capsys, "inspect", tmp_path)
    assert code == 0
    assert "a.weight  [1, 2]  f32\n  b.weight  [1, 2]  f32" in out
    assert "in 2 files: a.safetensors, b.safetensors" in out
    index = {"weight_map": {"b.weight": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    for path in (tmp_path, tmp_path / "model.safetensors.index.json"):
        code, out, _ = run(capsys, "inspect", path)
        assert (code, "a.weight" in out, "b.weight" in out) == (0, False, True)
    (tmp_path / "b.safetensors").unlink()
    assert "no such file" in fails(capsys, "inspect", tmp_path)


@pytest.mark.parametrize("kind", ["mpk", "bin", "safetensors"])
def test_export_pytorch_needs_the_record_and_its_module(kind, tmp_path, capsys):
    torch = pytest.importorskip("torch")
    model = make_linear()
    model.save_file(tmp_path / "model", CompactRecorder())
    place = ["--module", f"{__name__}:make_linear"]
    sys.modules[__name__].make_linear = make_linear
    paths = [tmp_path / name for name in ("model.mpk", f"copy.{kind}", "model.pt")]
    run(capsys, "convert", *paths[:2], *place)
    code, out, _ = run(capsys, "export-pytorch", *paths[1:], *place)
    assert code == 0
    assert out.startswith(f"wrote {paths[2]}, ")
    twin = torch.nn.Linear(2, 3)
    twin.load_state_dict(torch.load(paths[2], weights_only=True))
    half = np.asarray(model.weight.val()).astype(np.float16).astype(np.float32)
    assert np.array_equal(twin.weight.detach().numpy(), half.T)
    more = ["--dtype", "bf16", "--top-level-key", "net"]
    assert run(capsys, "export-pytorch", *paths[1:], *place, *more)[0] == 0
    found = torch.load(paths[2], weights_only=True)["net"]
    assert found["bias"].dtype is torch.bfloat16
    with pytest.raises(SystemExit):
        run(capsys, "export-pytorch", *paths[1:])
    err = fails(capsys, "export-pytorch", paths[0], tmp_path / "a.zip", *place)
    assert "the ending names no format of PyTorch" in err


def test_export_rust_writes_a_crate_with_the_weights_of_a_record(tmp_path, capsys):
    model = make_linear()
    model.save_file(tmp_path / "model", CompactRecorder())
    sys.modules[__name__].make_linear = make_linear
    place = ["--module", f"{__name__}:make_linear", "--input", "1x2"]
    place += ["--record", tmp_path / "model.mpk"]
    code, out, _ = run(capsys, "export-rust", tmp_path / "crate", *place)
    assert code == 0
    assert [line.split(",")[0].rpartition("/")[2] for line in out.splitlines()] == [
        "Cargo.lock", "Cargo.toml", "model.mpk", "main.rs", "model.rs",
    ]  # fmt: skip
    item = NamedMpkFileRecorder(FullPrecisionSettings).load(tmp_path / "crate/model")
    wanted = np.asarray(model.weight.val()).astype(np.float16).astype(np.float32)
    assert np.array_equal(item["linear"]["weight"].param.array, wanted)
    code, out, _ = run(capsys, "export-rust", tmp_path / "no", *place, "--check")
    assert (code, (tmp_path / "no").exists()) == (0, False)
    assert out.startswith("Model can be written for Burn 0.15: ")
    err = fails(capsys, "export-rust", tmp_path / "no", *place, "--burn", "0.18")
    assert "there is no Rust for Burn '0.18'" in err
    for shape in ("1xa", "1:text", "0"):
        with pytest.raises(SystemExit):
            run(capsys, "export-rust", tmp_path / "no", *place[:2], "--input", shape)
        assert "is no list of sizes" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["javascript", "wgsl"])
def test_export_javascript_and_wgsl_write_a_module_of_javascript(
    kind, tmp_path, capsys
):
    make_linear().save_file(tmp_path / "model", CompactRecorder())
    sys.modules[__name__].make_linear = make_linear
    target = tmp_path / "net.js"
    given = [f"export-{kind}", tmp_path / "model.mpk", target]
    given += ["--module", f"{__name__}:make_linear", "--input", "1x2"]
    code, out, _ = run(capsys, *given, "--precision", "f16", "--beside")
    assert code == 0
    names = [line.split(",")[0].rpartition("/")[2] for line in out.splitlines()]
    assert len(names) == 2
    assert names[0] == "net.js"
    assert re.fullmatch(r"net\.js\.[0-9a-f]{12}\.weights", names[1])
    assert "export class Model" in target.read_text()
    err = fails(capsys, *given[:4], f"{__name__}:absent", "--input", "1x2")
    assert "absent" in err


@pytest.mark.parametrize("kind", ["javascript", "wgsl"])
def test_weights_beside_a_module_never_take_the_place_of_a_record(
    kind, tmp_path, capsys
):
    path = make_linear().save_file(tmp_path / "net", BinFileRecorder())
    before = path.read_bytes()
    sys.modules[__name__].make_linear = make_linear
    given = [f"export-{kind}", path, tmp_path / "net.js", "--beside"]
    given += ["--module", f"{__name__}:make_linear", "--input", "1x2"]
    assert run(capsys, *given)[0] == 0
    assert path.name == "net.bin"
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["pytorch", "onnx", "javascript", "wgsl", "rust"])
def test_no_export_overwrites_the_record_that_it_reads(kind, tmp_path, capsys):
    record = make_linear().save_file(tmp_path / "model", NamedMpkFileRecorder())
    if kind == "rust":
        given = [tmp_path, "--record", record]
    else:
        endings = {"pytorch": ".pt", "onnx": ".onnx"}
        target = tmp_path / f"net{endings.get(kind, '.js')}"
        target.symlink_to(record)
        given = [record, target]
    before = record.read_bytes()
    sys.modules[__name__].make_linear = make_linear
    given += ["--module", f"{__name__}:make_linear"]
    given += [] if kind == "pytorch" else ["--input", "1x2"]
    err = fails(capsys, f"export-{kind}", *given)
    assert "that is the record which is read" in err
    assert record.read_bytes() == before


def test_scaffold_shows_or_writes_the_source_of_a_module(tmp_path, capsys):
    nn.Sequential(fc=make_linear()).save_file(tmp_path / "net", CompactRecorder())
    code, out, _ = run(capsys, "scaffold", tmp_path / "net.mpk", "--name", "Net")
    assert code == 0
    assert "class Net(Module):" in out
    assert "fc: nn.LinearConfig = nn.LinearConfig(2, 3)" in out
    code, told, _ = run(
        capsys,
        "scaffold",
        tmp_path / "net.mpk",
        "--name",
        "Net",
        "-o",
        tmp_path / "a.py",
    )
    assert (code, told) == (0, f"wrote {tmp_path / 'a.py'}\n")
    assert (tmp_path / "a.py").read_text() == out
    CompactRecorder().record({"step": 3}, tmp_path / "state")
    assert "there are no parameters" in fails(
        capsys, "scaffold", tmp_path / "state.mpk"
    )


@pytest.mark.parametrize("way", ["same", "spelled", "link", "hard link"])
def test_scaffold_never_overwrites_the_record_that_it_reads(
    way, tmp_path, capsys, monkeypatch
):
    path = make_linear().save_file(tmp_path / "net", CompactRecorder())
    before = path.read_bytes()
    target = tmp_path / "other.py"
    if way == "same":
        target = path
    elif way == "spelled":
        monkeypatch.chdir(tmp_path)
        target = Path("../") / tmp_path.name / "net.mpk"
    elif way == "link":
        target.symlink_to(path)
    else:
        target.hardlink_to(path)
    for more in ([], ["--overwrite"]):
        err = fails(capsys, "scaffold", path, "-o", target, *more)
        assert "that is the record which is read" in err
    assert path.read_bytes() == before


def test_scaffold_replaces_what_somebody_wrote_only_when_asked(tmp_path, capsys):
    record = nn.Sequential(fc=make_linear()).save_file(
        tmp_path / "net", CompactRecorder()
    )
    target = tmp_path / "net.py"
    given = ["scaffold", record, "-o", target]
    assert run(capsys, *given)[0] == 0
    written = target.read_text()
    assert run(capsys, *given)[0] == 0  # the same again
    target.write_text(written + "# by hand\n")
    err = fails(capsys, *given)
    assert "the file exists, and holds something else" in err
    assert target.read_text() == written + "# by hand\n"
    assert "--overwrite" in err
    assert run(capsys, *given, "--overwrite")[0] == 0
    assert target.read_text() == written


def test_export_rust_replaces_a_crate_of_somebody_only_when_asked(tmp_path, capsys):
    sys.modules[__name__].make_linear = make_linear
    (tmp_path / "Cargo.toml").write_text("[package]\n")
    given = ["export-rust", tmp_path, "--module", f"{__name__}:make_linear"]
    given += ["--input", "1x2"]
    assert "--overwrite" in fails(capsys, *given)
    (tmp_path / "notes.txt").touch()
    code, out, _ = run(capsys, *given, "--overwrite", "--burn", "0.22")
    assert code == 0
    written = [line.split(",")[0].removeprefix("wrote ") for line in out.splitlines()]
    names = ["Cargo.toml", "model.bpk", "src/main.rs", "src/model.rs"]
    assert written == [str(tmp_path / name) for name in names]
    assert run(capsys, *given, "--burn", "0.22")[0] == 0


def test_convert_refuses_a_module_that_does_not_fit(tmp_path, capsys):
    CompactRecorder().record({"step": 3}, tmp_path / "state")
    arguments = [tmp_path / "state.mpk", tmp_path / "a.bin"]
    place = ["--module", f"{__name__}:make_linear"]
    assert "load into Linear" in fails(capsys, "convert", *arguments, *place)
    assert not (tmp_path / "a.bin").exists()


def test_new_writes_a_project_that_stands_on_its_own(tmp_path, capsys):
    folder = tmp_path / "digits"
    code, out, _ = run(capsys, "new", folder)
    assert (code, out) == (
        0,
        f"{folder}: model.py, data.py, training.py, inference.py, main.py, "
        "pyproject.toml\n"
        f"next: cd {folder} && python main.py\n"
        "in a new environment, before it: pip install --editable .\n",
    )
    for path in folder.iterdir():
        assert "examples.guide" not in path.read_text()


@pytest.mark.parametrize(
    ("folder", "name"),
    [("digits", "digits"), ("My Burn_App", "my-burn-app"), ("_", "my-burn-app")],
)
def test_a_new_project_has_a_manifest_that_names_this_burnbook(
    folder, name, tmp_path, capsys
):
    run(capsys, "new", tmp_path / folder)
    manifest = tomllib.loads((tmp_path / folder / "pyproject.toml").read_text())
    assert manifest["project"]["name"] == name
    needs = manifest["project"]["dependencies"]
    assert f"burnbook[fast]~={burnbook.__version__}" in needs
    modules = {path.stem for path in (tmp_path / folder).glob("*.py")}
    assert {*manifest["tool"]["setuptools"]["py-modules"]} == modules


def test_a_project_can_be_checked_without_running_it(tmp_path, capsys):
    check = [sys.executable, "-m", "compileall", "-q"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run(capsys, "new", whole)
    assert subprocess.run([*check, whole], capture_output=True).returncode == 0
    run(capsys, "new", broken)
    with (broken / "model.py").open("a") as file:
        file.write("def forward(self:\n")
    found = subprocess.run([*check, broken], capture_output=True, text=True)
    assert found.returncode == 1
    assert "model.py" in found.stdout


def test_new_overwrites_nothing(tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.py").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name, what in (("full", "is not empty"), ("file", "is a file")):
        err = fails(capsys, "new", tmp_path / name)
        tells(err, f"burnbook new: {tmp_path}/{name} {what}", "try: another name\n")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.py"]


def test_new_below_a_file_names_that_file(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    err = fails(capsys, "new", tmp_path / "file" / "deeper")
    tells(err, f"burnbook new: {tmp_path}/file is a file", "try: another folder\n")


def test_guide_into_a_file_explains_itself(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    code, _, err = guide(capsys, "digits", tmp_path / "file")
    assert code == 1
    first = f"burnbook guide: artifact directory {tmp_path}/file: this is a file"
    tells(err, first, "try: another folder")


def test_guide_without_a_network_names_every_mirror_and_what_to_do(
    tmp_path, capsys, monkeypatch
):
    refusing = "http://127.0.0.1:9/"
    monkeypatch.setattr("burnbook.data.dataset.vision.mnist.MIRRORS", [refusing])
    monkeypatch.setenv("BURNBOOK_MNIST_MIRROR", "http://localhost:9/mine")
    monkeypatch.setenv("BURNBOOK_CACHE", str(tmp_path / "cache"))
    code, out, err = guide(capsys, "mnist", tmp_path / "guide")
    assert (code, out) == (1, "")
    for part in (refusing, "http://localhost:9/mine", "guide --dataset digits"):
        assert part in err
    assert list(tmp_path.iterdir()) == []


def test_the_guide_trains_and_reads_item_42(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("BURNBOOK_DISPLAY", "plain")
    folder = tmp_path / "guide"
    code, out, _ = guide(capsys, "digits", folder, "--epochs", 1)
    assert code == 0
    lines = out.splitlines()
    what = "Training on 1,438 images of digits, 1 epoch"
    assert lines[0] == f"{what}; everything is kept in {folder}"
    assert lines[1].startswith("epoch 1/1  train Accuracy ")
    assert lines[-1].startswith("Predicted ")
    assert lines[-1].split()[2] == "Expected"
    files = {"config.json", "model.mpk", "experiment.log"}
    names = {path.name for path in folder.iterdir()}
    assert names == {*files, "checkpoint", "train", "valid"}
    assert LearnerSummary(folder, ["Accuracy", "Loss"]).epochs == 1


@pytest.mark.slow
def test_a_new_project_trains_in_a_process_of_its_own(tmp_path, capsys):
    folder = tmp_path / "digits"
    run(capsys, "new", folder)
    program = "import main; main.main('run', 'digits', 1)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "BURNBOOK_DISPLAY": "plain"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("Predicted ")


@pytest.mark.parametrize(
    ("word", "line"),
    [(word, line) for words, line in cli.MEANT.items() for word in words],
)
def test_words_of_other_tools_name_the_command_that_is_here(capsys, word, line):
    with pytest.raises(SystemExit) as ended:
        cli.main([word, "file.py"])
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert error.endswith(f"there is no command {word}; try: {line}\n")
    known = cli.parser().format_help()
    for command in re.findall(r"burnbook ([a-z][\w-]*)", line):
        assert f"    {command} " in known
