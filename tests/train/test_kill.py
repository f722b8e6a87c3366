"""A killed training leaves only checkpoints that load, and goes on from the newest.

`BURNBOOK_KILLS=50 pytest tests/train/test_kill.py` kills as often as you like.
"""

import os
import random
import signal
import sys
import tempfile
from functools import cache

import pytest

from burnbook.optim import AdamConfig
from burnbook.train import FileMetricLogger
from tests.support.artifact_reader import Artifacts
from tests.support.dying_training import CALLS, RECORDERS, made_by
from tests.support.programs import ROOT, environment, start
from tests.support.tiny_training import (
    build,
    builder,
    checkpointed,
    learner,
    loader,
    log_lines,
    recorder,
    same_weights,
    tiny,
)
from tests.support.waiting import wait_until

KILLS = int(os.environ.get("BURNBOOK_KILLS", "12"))
EPOCHS = 6 * KILLS
KINDS = ("training", "writing", "saving", "logging", "time")
PER_EPOCH = {  # how often each moment comes in an epoch, roughly
    "training": 3,
    "writing": 3,
    "saving": 4 + 4 + 3 * 3 + 3,  # logs of both splits, three files, a deletion
    "logging": 12,
}


def begin(script, *arguments):
    program = ROOT / "tests" / "support" / script
    return start(program, *arguments, env=environment(OPENBLAS_NUM_THREADS="1"))


def start_training(folder):
    """A process that trains, or goes on training, in this folder."""
    process = begin("tiny_training.py", folder, EPOCHS)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


@pytest.fixture(scope="module")
def mortal():
    """Train until a moment; says how that ended."""
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")

    def run(folder, epochs, moment, *name):
        process.stdin.write("\t".join([f"{folder}\t{epochs}\t{moment}", *name]) + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    process = begin("dying_training.py")
    yield run
    process.stdin.close()
    process.wait(timeout=30)
    assert process.stderr.read() == ""
    process.stdout.close()
    process.stderr.close()


def check_what_is_left(folder):
    """Every file with a checkpoint's name loads, every log reads; the newest epoch."""
    paths = sorted((folder / "checkpoint").glob("*.mpk"))
    for path in paths:
        record = recorder().load(path.with_suffix(""))
        if path.name.startswith("model"):
            tiny().load_record(record)
        if path.name.startswith("optim"):
            AdamConfig().init().load_record(record)
    logs = FileMetricLogger(folder / "valid")
    begun = logs.epochs()
    for epoch in range(1, begun + 1):
        lines = logs.read_numeric("Loss", epoch)
        assert len(lines) == 3 or epoch == begun
    parts = [path.stem.split("-") for path in paths]
    numbers = {int(number) for _, number in parts}
    whole = [n for n in numbers if sum(int(number) == n for _, number in parts) == 3]
    return max(whole, default=0), begun


def moment_of(kind, moments):
    if kind == "time":
        return f"time:{moments.uniform(0.0, 0.08):.4f}"
    return f"{kind}:{moments.randint(1, 2 * PER_EPOCH[kind])}"


def test_killed_at_random_moments_it_resumes_to_the_same_weights(tmp_path, mortal):
    """The same folder is killed again and again; each start resumes the one before."""
    moments, folder, newest = random.Random(7), tmp_path / "killed", 0
    for number in range(KILLS):
        moment = moment_of(KINDS[number % len(KINDS)], moments)
        assert mortal(folder, EPOCHS, moment) == "killed", moment
        if not folder.is_dir():
            continue
        kept, begun = check_what_is_left(folder)
        assert kept >= max(newest, begun - 1), moment  # at most one epoch is lost
        newest = kept
    assert 0 < newest < EPOCHS

    assert mortal(folder, EPOCHS, "never") == "done"
    assert mortal(folder, EPOCHS, "never") == "done"  # nothing is left: no error
    resumed = build(checkpointed(folder, EPOCHS).checkpoint())
    model = resumed.fit(loader(), loader(1))
    assert resumed.result.epochs == EPOCHS
    whole = learner(tmp_path / "whole", EPOCHS)
    assert same_weights(model, whole.fit(loader(), loader(1)))
    assert set(Artifacts(folder).checkpoints) == Artifacts(folder).kept_by_default()
    for split in ("train", "valid"):
        for epoch in range(1, EPOCHS + 1):
            name = f"{split}/epoch-{epoch}/Accuracy.log"
            logged = (folder / name).read_bytes()
            assert logged == (tmp_path / "whole" / name).read_bytes()


def test_every_call_of_a_save_may_be_the_last(tmp_path, mortal):
    """From the first epoch's end to the third's, all of them, one after the other."""
    whole = learner(tmp_path / "whole", 3).fit(loader(), loader(1))
    calls = range(1, 3 * PER_EPOCH["saving"] + 1)
    for count in calls if KILLS >= 50 else calls[:: len(calls) // 8]:
        folder = tmp_path / str(count)
        ending = mortal(folder, 3, f"saving:{count}")
        assert ending in ("killed", "done")
        kept, begun = check_what_is_left(folder)
        assert kept >= begun - 1
        resumed = build(checkpointed(folder, 3).checkpoint())
        assert same_weights(resumed.fit(loader(), loader(1)), whole)


@pytest.mark.parametrize("name", RECORDERS)
def test_each_recorder_resumes_to_the_same_bits(tmp_path, mortal, name):
    """Killed between fsync, replace and unlink; BURNBOOK_KILLS=100 kills 100 times."""
    if name == "BurnpackRecorder":
        pytest.importorskip("cbor2")
    kills = 100 // len(RECORDERS) + 1 if KILLS >= 100 else 2
    moments, killed, epochs = random.Random(name), 0, 4
    while killed < kills:
        folder = tmp_path / f"killed-{killed}"
        for _ in range(2):  # and once more in the resume
            moment = f"saving:{moments.randint(1, 2 * PER_EPOCH['saving'])}"
            ending = mortal(folder, epochs, moment, name)
            assert ending in ("killed", "done")
            killed += ending == "killed"
        made = builder(folder, epochs).with_file_checkpointer(made_by(name))
        resumed = build(made.checkpoint())
        model = resumed.fit(loader(), loader(1))
        assert resumed.result.epochs == epochs
        assert not (folder / "training-lock.json").exists()
        assert same_weights(model, trained_through(epochs)), moment


@cache
def trained_through(epochs):
    """The model of a run that nothing has interrupted."""
    with tempfile.TemporaryDirectory() as folder:
        return learner(folder, epochs).fit(loader(), loader(1))


def test_the_moments_of_saving_are_those_of_the_library():
    """What the test above counts is what the library calls."""
    text = "".join(
        (ROOT / "burnbook" / name).read_text("utf-8")
        for name in ("core/files.py", "train/logger.py")
    )
    assert all(f"os.{call}(" in text for call in CALLS if call != "rename")


def test_a_killed_training_has_its_logs_up_to_the_last_moments(tmp_path):
    process = start_training(tmp_path)
    wait_until((tmp_path / "train" / "epoch-6").is_dir, 30)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    for epoch in range(1, 6):
        assert len(log_lines(tmp_path, "train", "Loss", epoch)) == 3
    text = (tmp_path / "experiment.log").read_text()
    assert "Executing training step for epoch 1" in text


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
def test_an_interrupted_process_ends_well(tmp_path):
    process = start_training(tmp_path)
    wait_until((tmp_path / "train" / "epoch-1").is_dir, 30)  # in its fit
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (out, process.returncode) == ("done\n", 0)
    assert "Traceback" not in err
