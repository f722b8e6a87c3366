"""The trainings of a process by name, and one training at a time in a folder."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from burnbook.core.errors import TrainingError
from burnbook.train import LearnerSummary, PlainRenderer, RunStore, live_runs
from burnbook.train.live import REPLACED, default_name
from burnbook.train.lock import FILE, FolderLock, Holder
from burnbook.train.renderer import TerminalRenderer
from tests.support.programs import start
from tests.support.tiny_training import (
    Probe,
    build,
    builder,
    checkpointed,
    fitted,
    learner,
    loader,
    same_weights,
    stop_at,
)
from tests.support.waiting import wait_until


def paused(folder, name=None):
    """A training that waits after its first batch, and its learner."""
    made = builder(folder, 100).renderer(stop_at(1, lambda control: control.pause()))
    trained = build(made.name(name) if name else made)
    handle = trained.start(loader(), loader(1))
    wait_until(lambda: handle.control.paused)
    return trained, handle


def end(handle):
    handle.stop()
    handle.wait()


# Names


def test_a_run_is_called_after_its_folder_or_as_somebody_says(tmp_path):
    probe = Probe()
    fitted(builder(tmp_path / "guide").renderer(probe))
    assert (probe.run.name, probe.run.named) == ("guide", False)
    named = fitted(builder(tmp_path / "guide").renderer(probe).name(" two words "))
    assert (probe.run.name, probe.run.named) == ("two words", True)
    assert named.result.name == "two words"


def test_the_name_of_a_strange_folder_is_still_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert default_name(Path()) == tmp_path.name
    assert default_name(Path("..")) == tmp_path.parent.name
    assert default_name(Path("a\x1b[31m\nb")) == "a?[31m?b"
    assert len(default_name(Path("x" * 300))) == 80


def test_a_name_is_in_the_diary_the_store_and_the_summary(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("BURNBOOK_DISPLAY", "plain")
    made = builder(tmp_path / "first").name("baseline").summary()
    fitted(made)
    assert "\nRun: baseline\n" in capsys.readouterr().out
    diary = (tmp_path / "first" / "experiment.log").read_text("utf-8")
    assert "burnbook::train::name: baseline\n" in diary
    fitted(builder(tmp_path / "second"))
    store = RunStore(tmp_path)
    titles = {run.name: run.title for run in store}
    assert titles == {"first": "baseline", "second": "second"}
    assert store["baseline"].name == "first"
    assert "first · baseline" in str(store)
    assert store["first"].state == "finished"
    found = LearnerSummary(tmp_path / "first", ["Loss"], name="<b>")
    assert "&lt;b&gt;" in found._repr_html_()


def test_a_resume_without_a_name_has_none(tmp_path):
    fitted(builder(tmp_path / "run").name("first"))
    fitted(builder(tmp_path / "run"))
    assert RunStore(tmp_path)["run"].title == "run"


def test_renderers_show_a_name_that_tells_runs_apart(tmp_path):
    stream = io.StringIO()
    made = builder(tmp_path, 1).renderer(PlainRenderer(stream))
    fitted(made)
    assert stream.getvalue().startswith("epoch 1/1")
    fitted(made.name("baseline"))
    assert stream.getvalue().splitlines()[1].startswith("baseline  epoch 1/1")
    screen = io.StringIO()
    fitted(made.renderer(TerminalRenderer(screen)))
    assert "Metrics · baseline" in screen.getvalue()
    assert "baseline: trained 1 epoch" in screen.getvalue()


# Finding runs again


def test_live_runs_are_found_by_name_and_leave_at_their_end(tmp_path):
    assert live_runs() == {}
    trained, handle = paused(tmp_path / "a" / "guide")
    other, second = paused(tmp_path / "b" / "guide")
    runs = live_runs()
    assert list(runs) == ["guide", "guide 2"]
    run = runs["guide 2"]
    assert second.name == run.name
    assert repr(run) == "LiveRun(guide 2, paused)"
    assert run.renderer.run.name == "guide 2"
    assert run.renderer.run.named
    assert run.directory == tmp_path / "b" / "guide"
    assert (run.mode, run.done, run.result) == ("thread", False, None)
    run.control.stop("seen enough")
    assert run.wait(60)
    second.wait()
    assert run.result is other.result
    assert run.result.interrupted == "seen enough"
    assert repr(run) == "LiveRun(guide 2, ended)"
    assert list(live_runs()) == ["guide"]
    end(handle)
    assert live_runs() == {}
    assert trained.result is not None


def test_trainings_of_one_cell_are_shown_in_their_order(tmp_path):
    shown = []

    class Slow(Probe):
        def start(self, run):
            time.sleep(0.05 * (2 - len(shown)))
            shown.append(run.name)
            super().start(run)

    handles = []
    for name in ("first", "second"):
        trained = build(builder(tmp_path / name, 1).renderer(Slow()))
        handles.append(trained.start(loader(), loader(1)))
        assert shown[-1] == name
    for handle in handles:
        handle.wait()
    assert shown == ["first", "second"]


def test_a_run_that_fails_leaves_too(tmp_path):
    with pytest.raises(Exception, match="no batch"):
        build(builder(tmp_path)).fit(iter([]), loader(1))
    assert live_runs() == {}
    assert not (tmp_path / FILE).exists()


# One training in a folder


def test_a_second_training_of_this_process_is_refused_and_hurts_nobody(tmp_path):
    _, handle = paused(tmp_path / "guide")
    with pytest.raises(TrainingError) as error:
        build(builder(tmp_path / "guide")).start(loader(), loader(1))
    with pytest.raises(TrainingError, match="already writes there"):
        fitted(builder(tmp_path / "." / "guide"))
    first, run, process, _, cure = str(error.value).splitlines()
    assert first.endswith("guide: a training of this process already writes there")
    assert run == "  run      guide"
    assert process.startswith(f"  process  {os.getpid()} on ")
    assert "replace=True" in cure
    assert handle.control.paused
    assert not handle.control.should_stop()
    end(handle)
    fitted(builder(tmp_path / "guide", 1))
    assert not (tmp_path / "guide" / FILE).exists()


def test_a_shared_plan_is_not_reset_by_a_refused_training(tmp_path):
    made = builder(tmp_path, 100).renderer(stop_at(1, lambda c: c.pause()))
    first, second = build(made), build(made)
    handle = first.start(loader(), loader(1))
    wait_until(lambda: handle.control.paused)
    with pytest.raises(TrainingError):
        second.start(loader(), loader(1))
    assert handle.control.paused
    end(handle)


def test_replace_stops_the_first_and_waits_for_it(tmp_path):
    trained, handle = paused(tmp_path)
    model = learner(tmp_path, 2).fit(loader(), loader(1), replace=True)
    assert handle.done
    assert trained.result.interrupted == REPLACED
    whole = learner(tmp_path / "whole", 2)
    assert same_weights(model, whole.fit(loader(), loader(1)))


def test_a_cell_may_run_again_with_one_learner(tmp_path):
    made = builder(tmp_path, 1)
    acts = iter([lambda control: control.pause()])
    probe = stop_at(1, lambda control: next(acts, lambda control: None)(control))
    trained = build(made.renderer(probe))
    first = trained.start(loader(), loader(1))
    wait_until(lambda: first.control.paused)
    again = trained.start(loader(), loader(1), replace=True)
    again.wait()
    assert first.done
    assert trained.result.interrupted is None
    assert live_runs() == {}


def test_trainings_that_write_nothing_share_a_folder(tmp_path):
    def quiet():
        made = builder(tmp_path / "none", 100).with_application_logger(None)
        made._plan.train_metrics, made._plan.valid_metrics = [], []
        return build(made.renderer(stop_at(1, lambda control: control.pause())))

    handles = [quiet().start(loader(), loader(1)) for _ in range(2)]
    for handle in handles:
        wait_until(lambda handle=handle: handle.control.paused)
        end(handle)
    assert not (tmp_path / "none").exists()


HOLDER = """
import sys, time
from pathlib import Path
from burnbook.train.lock import FolderLock
lock = FolderLock(Path(sys.argv[1]), "guide")
lock.acquire()
print("held", flush=True)
sys.stdin.read()
lock.release()
"""


@pytest.fixture
def other(tmp_path):
    """A process that holds the folder until its input ends."""
    process = start("-c", HOLDER, tmp_path)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_another_process_is_refused_by_its_number(tmp_path, other):
    with pytest.raises(TrainingError) as error:
        learner(tmp_path, 1).fit(loader(), loader(1), replace=True)
    text = str(error.value)
    assert f"process {other.pid} on " in text.splitlines()[0]
    assert "already trains there" in text
    assert not (tmp_path / "experiment.log").exists()
    other.communicate("")
    learner(tmp_path, 1).fit(loader(), loader(1))
    assert not (tmp_path / FILE).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_process_leaves_nothing_in_the_way(tmp_path, other):
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert (tmp_path / FILE).exists()
    learner(tmp_path, 1).fit(loader(), loader(1))
    assert not (tmp_path / FILE).exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_neither_keeps_nor_gives_back_the_lock(tmp_path):
    _, handle = paused(tmp_path)
    into, out = os.pipe()
    child = os.fork()
    if child == 0:  # no exception may leave this block
        os.close(out)
        os.read(into, 1)  # until the parent has ended its training
        os._exit(0 if live_runs() == {} else 1)
    os.close(into)
    assert (tmp_path / FILE).exists()
    assert not acquired(tmp_path)
    end(handle)
    assert acquired(tmp_path)  # while the child still lives
    os.close(out)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_outlives_a_killed_training_blocks_no_resume(tmp_path):
    reads, writes = os.pipe()
    stays, leaves = os.pipe()
    first = os.fork()
    if first == 0:  # trains, forks a child, and is killed
        held = FolderLock(tmp_path, "first")
        held.acquire()
        os.close(leaves)
        if os.fork() == 0:
            os.write(writes, b"x")
            os.read(stays, 1)
            os._exit(0)
        time.sleep(60)
        os._exit(0)
    os.read(reads, 1)
    assert not acquired(tmp_path)
    os.kill(first, signal.SIGKILL)
    os.waitpid(first, 0)
    assert acquired(tmp_path)
    for end_of_pipe in (reads, writes, stays, leaves):
        os.close(end_of_pipe)


# Odd file systems


@pytest.fixture
def no_locks(monkeypatch):
    monkeypatch.setattr("burnbook.train.lock.lock_file", lambda file: None)


def signed(folder, **changes):
    text = {**vars(Holder.here("guide")), **changes}
    (folder / FILE).write_text(json.dumps(text))


def acquired(folder, replace=False):
    lock = FolderLock(folder, "mine")
    try:
        lock.acquire(replace)
    except TrainingError:
        return False
    lock.release()
    return True


def test_without_locks_the_text_of_a_dead_process_counts_for_nothing(
    tmp_path, no_locks
):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    signed(tmp_path, process=dead.pid, birth="")
    assert acquired(tmp_path)
    for damaged in (b"", b"{", b"[]", b'{"process": 1e999}', b"\xff" * 5000, b"9" * 99):
        (tmp_path / FILE).write_bytes(damaged)
        assert acquired(tmp_path)
    signed(tmp_path, process=-1, birth="")
    assert acquired(tmp_path)
    signed(tmp_path)  # this process itself, which has it registered if it trains
    assert acquired(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="asks for a process by its number")
def test_without_locks_a_living_process_is_told_by_its_birth(tmp_path, no_locks):
    parent = os.getppid()
    signed(tmp_path, process=parent, birth="")
    assert not acquired(tmp_path)
    if Path("/proc/self/stat").exists():
        signed(tmp_path, process=parent, birth="another boot 17")
        assert acquired(tmp_path)


def test_without_locks_another_host_counts_while_it_writes(tmp_path, no_locks):
    signed(tmp_path, host="elsewhere")
    assert not acquired(tmp_path)
    long_ago = time.time() - 600
    os.utime(tmp_path / FILE, (long_ago, long_ago))
    (tmp_path / "experiment.log").write_text("it goes on\n")
    assert not acquired(tmp_path)
    os.utime(tmp_path / "experiment.log", (long_ago, long_ago))
    assert acquired(tmp_path)
    signed(tmp_path, host="elsewhere")
    assert acquired(tmp_path, replace=True)


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")
def test_what_is_no_file_is_left_alone_and_training_goes_on(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("kept")
    puts = (lambda path: path.symlink_to(precious), os.mkfifo, Path.mkdir)
    for number, put in enumerate(puts):
        folder = tmp_path / str(number)
        folder.mkdir()
        put(folder / FILE)
        assert acquired(folder)
        learner(folder, 1).fit(loader(), loader(1))
        assert os.path.lexists(folder / FILE)
    assert precious.read_text() == "kept"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_folder_that_takes_no_file_is_trained_in_without_a_lock(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    folder = tmp_path / "still"
    folder.mkdir(mode=0o500)
    assert acquired(folder)


def test_many_want_a_folder_at_once_and_one_gets_it(tmp_path):
    for _ in range(20):
        barrier, got = threading.Barrier(4), []

        def want(lock, barrier=barrier, got=got):
            barrier.wait()
            with suppress(TrainingError):
                lock.acquire()
                got.append(lock)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(want, [FolderLock(tmp_path, "one") for _ in range(4)]))
        assert len(got) == 1
        got[0].release()


def test_checkpoints_of_a_replaced_run_are_whole(tmp_path):
    slow = Probe(lambda probe: time.sleep(0.002))
    first = build(checkpointed(tmp_path, 100).renderer(slow))
    handle = first.start(loader(), loader(1))
    wait_until((tmp_path / "checkpoint" / "scheduler-2.mpk").exists)
    probe = stop_at(4, lambda control: control.stop())
    second = build(checkpointed(tmp_path, 100).checkpoint().renderer(probe))
    second.fit(loader(), loader(1), replace=True)
    assert handle.done
    assert probe.run.start_epoch == first.result.epochs + 1
    assert not list((tmp_path / "checkpoint").glob("earlier-*"))
