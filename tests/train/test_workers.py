"""Workers that hang, die or start the program again, and a training that must end."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.programs import ROOT
from tests.support.waiting import wait_until

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")


def start(*arguments):
    """A program in a process group of its own, as a shell starts it."""
    return programs.start(
        *arguments,
        stdin=None,
        env=programs.environment(OPENBLAS_NUM_THREADS="1", BURNBOOK_DISPLAY="none"),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def wait_for(condition, process):
    until = time.monotonic() + 120
    while not condition() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    assert condition(), process.communicate(timeout=5)


def group_is_empty(group):
    """Whether no process of the group is left; a zombie is nobody."""
    for entry in Path("/proc").iterdir():
        try:
            stat = (entry / "stat").read_text()
        except (OSError, ValueError):
            continue
        fields = stat.rpartition(")")[2].split()
        if len(fields) > 2 and fields[2] == str(group) and fields[0] != "Z":
            return False
    return True


def interrupted(folder, workers, presses):
    """How a hanging training ends when Ctrl-C is pressed so often."""
    process = start(ROOT / "tests" / "support" / "hanging_training.py", folder, workers)
    try:
        wait_for((folder / "hung").exists, process)
        for _ in range(presses):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.3)
        out, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if Path("/proc/self/stat").exists():
        wait_until(lambda: group_is_empty(process.pid), 20)
    return out, err, process.returncode


@POSIX
@pytest.mark.parametrize("workers", ["processes", "threads", "started"])
def test_one_interrupt_ends_a_training_whose_workers_hang(tmp_path, workers):
    out, err, code = interrupted(tmp_path, workers, 1)
    assert (out, err, code) == ("ended interrupted 4\n", "", 0)


@POSIX
@pytest.mark.parametrize("workers", ["processes", "threads", "none"])
def test_two_interrupts_end_every_training(tmp_path, workers):
    out, err, code = interrupted(tmp_path, workers, 2)
    if "ended" in out:  # the first was enough
        assert code == 0
    else:
        assert "KeyboardInterrupt" in err
        assert code != 0


@POSIX
@pytest.mark.parametrize("workers", ["plain-processes", "plain-threads", "plain-none"])
def test_an_interrupt_ends_a_loop_without_a_learner(tmp_path, workers):
    out, err, code = interrupted(tmp_path, workers, 1)
    assert out.startswith("batch 0\n")
    assert "KeyboardInterrupt" in err
    assert err.count("Traceback") == 1
    assert code != 0


UNGUARDED = """
import sys
from burnbook.data import DataLoaderBuilder, InMemDataset
from tests.support.tiny_training import Batches, build, builder, items, loader
steps = DataLoaderBuilder(Batches()).batch_size(8).num_workers(2).worker_processes()
train = steps.build(InMemDataset(items() * {times}))
{body}
"""
FIT = """
from burnbook.record import CompactRecorder
made = builder(sys.argv[1], 1).with_file_checkpointer(CompactRecorder())
build(made).fit(train, loader(1))
print("trained", flush=True)
"""
LOOP = """
for batch in train:
    print("trained", flush=True)
"""


def run(folder, body, times=1):
    program = folder / "train.py"
    program.write_text(UNGUARDED.format(body=body, times=times))
    process = start(program, folder / "run")
    out, err = process.communicate(timeout=120)
    return out, err, process.returncode


MORE_THAN_A_PIPE_HOLDS = 4_000  # a process that never reads it must block nobody


@POSIX
@pytest.mark.parametrize("times", [1, MORE_THAN_A_PIPE_HOLDS])
@pytest.mark.parametrize("body", [FIT, LOOP])
def test_a_program_that_does_not_ask_whether_it_is_the_main_one(tmp_path, body, times):
    out, err, code = run(tmp_path, body, times)
    assert out == ""
    assert code != 0
    why = "a worker process imports this program, and would train all over again"
    assert why in err
    assert 'if __name__ == "__main__":' in err.splitlines()[-1]
    last = [line for line in err.splitlines() if "DataError: " in line][-1]
    told = "data loader: a worker process has ended before its first batch"
    assert last.endswith(told)
    folder = tmp_path / "run"
    if body == FIT:
        diary = (folder / "experiment.log").read_text()
        assert diary.count("Training epochs") == 1
        assert not list(folder.glob("checkpoint/*"))


@POSIX
def test_a_program_may_make_its_loader_before_it_asks(tmp_path):
    body = "if __name__ == '__main__':\n" + FIT.replace("\n", "\n    ")
    out, err, code = run(tmp_path, body)
    assert (out, err, code) == ("trained\n", "", 0)
    assert not list(tmp_path.glob("run/checkpoint/earlier-*"))
