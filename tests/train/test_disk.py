"""The disk is full, or the folder goes: an error of ours, and the model so far."""

import errno
import os
import shutil
import sys

import pytest

from burnbook.core.errors import TrainingError
from burnbook.core.files import open_text
from burnbook.train import FileMetricLogger, InMemoryMetricLogger, MetricLogger
from tests.support.programs import ROOT, python
from tests.support.refusals import tells
from tests.support.tiny_training import (
    Probe,
    Tiny,
    build,
    builder,
    checkpointed,
    fitted,
    loader,
    stop_at,
)


class FullFile:
    """A file on a disk that has room for some characters in all its files."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, text):
        self.room[0] -= len(text)

    def flush(self):
        if self.room[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    def fileno(self):
        return self.file.fileno()

    def tell(self):
        return self.file.tell()

    def close(self):
        self.file.close()
        self.flush()


@pytest.fixture
def full(monkeypatch):
    """Files whose path has a part in it have room for so many characters."""

    def fill(part, room):
        opened, left = open_text, [room]

        def limited(path, mode, *args, **kwargs):
            file = opened(path, mode, *args, **kwargs)
            if part in str(path) and mode in ("w", "a"):
                return FullFile(file, left)
            return file

        monkeypatch.setattr("burnbook.train.logger.open_text", limited)
        monkeypatch.setattr("burnbook.train.logger.SECONDS_BETWEEN_FLUSHES", -1)

    return fill


def failed(trained):
    """The error of a training that the disk ends, and what is left of it."""
    with pytest.raises(TrainingError) as error:
        trained.fit(loader(), loader(1))
    assert isinstance(trained.result.model, Tiny)
    assert trained.result.interrupted.startswith("TrainingError: ")
    return str(error.value)


@pytest.mark.parametrize("room", [0, 20, 100, 200])
def test_a_full_disk_under_the_metric_logs(tmp_path, full, room):
    full("Loss.log", room)
    text = failed(build(builder(tmp_path, 50)))
    assert text.startswith(f"write {tmp_path}/")
    assert text.partition("\n")[0].endswith("Loss.log: No space left on device")


@pytest.mark.parametrize("room", [0, 100, 400, 3000])
def test_a_full_disk_under_the_diary(tmp_path, full, room):
    full("experiment.log", room)
    text = failed(build(builder(tmp_path, 50)))
    facts = ("No space left on device\n", "earlier epochs are kept")
    where = f"write {tmp_path}/experiment.log: "
    tells(text, where, *facts, "try: free some space")


def test_a_full_disk_under_everything(tmp_path, full):
    full(str(tmp_path), 300)
    assert "No space left" in failed(build(builder(tmp_path, 50)))


def test_a_diary_that_failed_writes_again_in_the_next_training(tmp_path, full):
    with pytest.MonkeyPatch.context() as patch:
        full("experiment.log", 100)
        made = builder(tmp_path, 1)
        failed(build(made))
        patch.undo()
    made._plan.log.path = tmp_path / "other.log"
    fitted(made)
    assert "finished" in (tmp_path / "other.log").read_text()


def test_what_is_logged_in_memory_has_every_batch_until_the_error(tmp_path, full):
    memory = InMemoryMetricLogger()
    full("Loss.log", 100)
    made = builder(tmp_path, 50).metric_loggers(memory, InMemoryMetricLogger())
    made.metric_loggers(FileMetricLogger(tmp_path / "train"), InMemoryMetricLogger())
    trained = build(made)
    failed(trained)
    assert memory.epochs() == trained.result.epochs + 1
    for epoch in range(1, trained.result.epochs + 1):
        assert len(memory.read_numeric("Loss", epoch)) == 3


def test_every_logger_is_closed_whatever_another_raises(tmp_path):
    closed = []

    class Noted(MetricLogger):
        def __init__(self, name, fails):
            self.name, self.fails = name, fails

        def close(self):
            closed.append(self.name)
            if self.fails:
                raise TrainingError("close", self.name)

    made = builder(tmp_path, 1)
    made.metric_loggers(Noted("a", True), Noted("b", False))
    made.metric_loggers(Noted("c", True), Noted("d", True))
    trained = build(made)
    with pytest.raises(TrainingError):
        trained.fit(loader(), loader(1))
    assert sorted(closed) == ["a", "b", "c", "d"]
    assert trained.result.epochs == 1


@pytest.mark.skipif(sys.platform == "win32", reason="open files stay where they are")
def test_a_folder_that_goes_in_the_middle(tmp_path):
    folder = tmp_path / "run"
    probe = stop_at(4, lambda control: shutil.rmtree(folder))
    trained = build(checkpointed(folder, 5).renderer(probe))
    assert failed(trained).startswith(f"write {folder}/")


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_folder_that_becomes_a_file(tmp_path):
    folder = tmp_path / "run"

    def swap(control):
        shutil.rmtree(folder)
        folder.write_text("not a folder")

    trained = build(builder(folder, 5).renderer(stop_at(4, swap)))
    assert failed(trained).startswith(f"write {folder}/")


@pytest.mark.parametrize("kind", ["logs", "checkpoint", "diary"])
@pytest.mark.parametrize("size", [400, 1500])
@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of POSIX")
def test_a_process_that_may_write_no_more(tmp_path, kind, size):
    program = ROOT / "tests" / "support" / "full_disk.py"
    found = python(program, tmp_path, size, kind, timeout=120)
    error, result, history = found.stdout.splitlines()
    assert error.startswith("error write ")
    assert "File too large" in error
    assert found.stderr == ""
    epochs, parameters = map(int, result.split()[1:])
    assert parameters == 4
    assert int(history.split()[1]) >= epochs
    assert not list(tmp_path.rglob(".burnbook-*.tmp"))


def test_a_renderer_that_fails_at_the_end_does_not_hide_the_model(tmp_path):
    class Closing(Probe):
        def close(self):
            raise RuntimeError("no screen")

    trained = build(builder(tmp_path, 1).renderer(Closing()))
    with pytest.raises(RuntimeError, match="no screen"):
        trained.fit(loader(), loader(1))
    assert isinstance(trained.result.model, Tiny)


LOGS = ["train/epoch-1/Loss.log", "valid/epoch-2/Accuracy.log", "experiment.log"]
KEPT = "checkpoint/model-3.mpk"
WHAT = "this is not a regular file but a device or a pipe"


@pytest.fixture
def in_time():
    """What waits for ever fails after a while; nothing here takes a second."""
    signal = pytest.importorskip("signal")
    if not hasattr(signal, "SIGALRM"):
        pytest.skip("this system has no alarms")

    def late(*_):
        raise AssertionError("it waits for ever")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def planted(folder, name, make):
    """Something in the artifact directory before the training begins."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)
    return path


needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")


@needs_pipes
@pytest.mark.parametrize("name", LOGS)
def test_a_pipe_under_the_name_of_a_log_does_not_stop_the_world(
    tmp_path, in_time, name
):
    pipe = planted(tmp_path, name, os.mkfifo)
    made = builder(tmp_path, 3)
    first, *_, cure = failed(build(made)).splitlines()
    assert first == f"write {pipe}: {WHAT}"
    assert "away" in cure
    pipe.unlink()
    fitted(made)  # as the cure says


@needs_pipes
def test_a_pipe_under_the_name_of_a_checkpoint_gives_way(tmp_path, in_time):
    pipe = planted(tmp_path, KEPT, os.mkfifo)
    fitted(checkpointed(tmp_path, 3))  # as what another run left there does
    assert pipe.is_file()


@needs_pipes
def test_a_log_that_is_a_pipe_is_not_read_either(tmp_path, in_time):
    planted(tmp_path, LOGS[0], os.mkfifo)
    with pytest.raises(TrainingError, match=WHAT):
        FileMetricLogger(tmp_path / "train").read_numeric("Loss", 1)


@pytest.mark.parametrize("name", LOGS)
def test_a_link_to_another_disk_is_followed(tmp_path, name):
    other = tmp_path / "other disk" / "file"
    other.parent.mkdir()
    other.write_text("old\n")
    run = tmp_path / "run"
    link = planted(run, name, lambda path: path.symlink_to(other))
    fitted(builder(run, 3))
    assert link.is_symlink()
    old = other.read_bytes().startswith(b"old\n")
    assert old == (name == "experiment.log")  # a diary is continued
    assert other.stat().st_size > 10
