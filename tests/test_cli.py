"""The command line: what each command does, its help, its exit codes, its errors."""

import os
import subprocess
import sys

import pytest

from burnbook import cli
from burnbook.cli import learn
from burnbook.record import CompactRecorder
from burnbook.train import LearnerSummary

COMMANDS = ["lab", "guide", "datasets", "warmup", "inspect", "new"]


def run(capsys, *arguments):
    """The exit code, and what was written."""
    code = cli.main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


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
        path.write_text(f"the original of {name}")
    monkeypatch.setattr(learn, "chapters_folder", lambda: source)
    return source


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(capsys, command):
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert f"example: burnbook {command}" in capsys.readouterr().out


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    shown = capsys.readouterr().out
    assert all(f"\n    {command} " in shown for command in COMMANDS)


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
    assert names == [
        "01_overview.ipynb",
        "02_getting_started.ipynb",
        "pictures/a.svg",
    ]
    mine = folder / "01_overview.ipynb"
    mine.write_text("mine")
    run(capsys, "lab", folder, "--no-start")
    assert mine.read_text() == "mine"
    run(capsys, "lab", folder, "--no-start", "--fresh")
    assert mine.read_text() == "the original of 01_overview.ipynb"


def test_lab_opens_chapter_one(tmp_path, chapters, capsys, monkeypatch):
    calls = []
    monkeypatch.setattr(
        learn.subprocess, "call", lambda command, cwd: calls.append((command, cwd)) or 0
    )
    monkeypatch.setattr(learn.importlib.util, "find_spec", lambda name: object())
    folder = tmp_path / "work"
    code, _, _ = run(capsys, "lab", folder, "--", "--no-browser")
    assert code == 0
    as_root = ["--allow-root"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    expected = ["-m", "jupyterlab", "01_overview.ipynb", *as_root, "--no-browser"]
    assert calls == [([sys.executable, *expected], folder)]


def test_lab_without_jupyterlab_says_how_to_get_it(
    tmp_path, chapters, capsys, monkeypatch
):
    monkeypatch.setattr(learn.importlib.util, "find_spec", lambda name: None)
    code, _, err = run(capsys, "lab", tmp_path / "work")
    assert (code, err) == (
        1,
        "burnbook lab: JupyterLab is not installed\n"
        "  try: pip install 'burnbook[lab]'\n",
    )


def test_lab_does_not_replace_a_file(tmp_path, chapters, capsys):
    (tmp_path / "work").write_text("mine")
    code, _, err = run(capsys, "lab", tmp_path / "work")
    assert (code, err) == (
        1,
        f"burnbook lab: {tmp_path}/work is a file\n  try: another folder\n",
    )


def test_datasets_lists_what_is_here(capsys):
    code, out, _ = run(capsys, "datasets")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("DigitsDataset      1,797 items  ")
    assert lines[1].startswith("MnistDataset      70,000 items  12 MB to download ")
    assert lines[2] == f"downloads are kept in {os.environ['BURNBOOK_CACHE']}"


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


def test_new_writes_a_project_that_stands_on_its_own(tmp_path, capsys):
    folder = tmp_path / "digits"
    code, out, _ = run(capsys, "new", folder)
    assert (code, out) == (
        0,
        f"{folder}: model.py, data.py, training.py, inference.py, main.py\n"
        f"next: cd {folder} && python main.py\n",
    )
    for path in folder.iterdir():
        assert "examples.guide" not in path.read_text()


def test_new_overwrites_nothing(tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.py").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name, what in (("full", "is not empty"), ("file", "is a file")):
        code, _, err = run(capsys, "new", tmp_path / name)
        assert (code, err) == (
            1,
            f"burnbook new: {tmp_path}/{name} {what}, and nothing is overwritten\n"
            "  try: another name\n",
        )
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.py"]


def test_new_below_a_file_names_that_file(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    code, _, err = run(capsys, "new", tmp_path / "file" / "deeper")
    assert code == 1
    assert err == f"burnbook new: {tmp_path}/file is a file\n  try: another folder\n"


def test_guide_into_a_file_explains_itself(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    code, _, err = run(
        capsys, "guide", "--dataset", "digits", "--artifact-dir", tmp_path / "file"
    )
    assert code == 1
    assert err == (
        f"burnbook guide: artifact directory {tmp_path}/file: this is a file, "
        "not a folder\n  try: another folder, or move the file away\n"
    )


def test_guide_without_a_network_names_every_mirror_and_what_to_do(
    tmp_path, capsys, monkeypatch
):
    refusing = "http://127.0.0.1:9/"
    monkeypatch.setattr("burnbook.data.mnist.MIRRORS", [refusing])
    monkeypatch.setenv("BURNBOOK_MNIST_MIRROR", "http://localhost:9/mine")
    monkeypatch.setenv("BURNBOOK_CACHE", str(tmp_path / "cache"))
    code, out, err = run(
        capsys, "guide", "--dataset", "mnist", "--artifact-dir", tmp_path / "guide"
    )
    assert (code, out) == (1, "")
    for part in (refusing, "http://localhost:9/mine", "guide --dataset digits"):
        assert part in err
    assert list(tmp_path.iterdir()) == []


def test_the_guide_trains_and_reads_item_42(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("BURNBOOK_DISPLAY", "plain")
    folder = tmp_path / "guide"
    code, out, _ = run(
        capsys, "guide", "--dataset", "digits", "--epochs", 1, "--artifact-dir", folder
    )
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == (
        f"Training on 1,438 images of digits, 1 epoch; everything is kept in {folder}"
    )
    assert lines[1].startswith("epoch 1/1  train Accuracy ")
    assert lines[-1].startswith("Predicted ")
    assert lines[-1].split()[2] == "Expected"
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "config.json",
        "model.mpk",
        "experiment.log",
        "checkpoint",
        "train",
        "valid",
    }
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
