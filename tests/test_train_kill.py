"""A killed training leaves only checkpoints that load, and goes on from the newest.

`BURNBOOK_KILLS=20 pytest tests/test_train_kill.py` kills as often as you like.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from burnbook.optim import AdamConfig
from tests.tiny_training import (
    builder,
    learner,
    loader,
    recorder,
    same_weights,
    tiny,
)

KILLS = int(os.environ.get("BURNBOOK_KILLS", "5"))
EPOCHS = 25 * KILLS
ROOT = Path(__file__).resolve().parents[1]


def start(folder):
    """A process that trains, or goes on training, in this folder."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "tiny_training.py"), folder, str(EPOCHS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


def kill(process, after, number=signal.SIGKILL):
    time.sleep(after)
    process.send_signal(number)
    process.communicate()


def check_everything_loads(folder):
    """Every file with a checkpoint's name loads, and into the model."""
    paths = sorted((folder / "checkpoint").glob("*.mpk"))
    for path in paths:
        record = recorder().load(path.with_suffix(""))
        if path.name.startswith("model"):
            tiny().load_record(record)
        if path.name.startswith("optim"):
            AdamConfig().init().load_record(record)
    return len(paths)


def test_killed_at_random_moments_every_checkpoint_loads(tmp_path):
    """The same folder is killed again and again; each start resumes the one before."""
    moments = random.Random(7)
    for _ in range(KILLS):
        kill(start(tmp_path), moments.uniform(0.0, 0.4))
        if (tmp_path / "checkpoint").is_dir():
            check_everything_loads(tmp_path)
    assert check_everything_loads(tmp_path) >= 3

    made = builder(tmp_path, EPOCHS).with_file_checkpointer(recorder()).checkpoint()
    resumed = made.build(tiny(), AdamConfig().init(), 0.01)
    model = resumed.fit(loader(), loader(1))
    assert resumed.result.epochs == EPOCHS
    whole = learner(tmp_path / "whole", EPOCHS).fit(loader(), loader(1))
    assert same_weights(model, whole)


def test_a_killed_training_has_its_logs_up_to_the_last_moments(tmp_path):
    process = start(tmp_path)
    deadline = time.monotonic() + 30
    while not (tmp_path / "train" / "epoch-6").is_dir() and time.monotonic() < deadline:
        time.sleep(0.01)
    kill(process, 0.0)
    for epoch in range(1, 6):
        log = tmp_path / "train" / f"epoch-{epoch}" / "Loss.log"
        assert len(log.read_text().splitlines()) == 3
    assert (
        "Executing training step for epoch 1"
        in (tmp_path / "experiment.log").read_text()
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
def test_an_interrupted_process_ends_well(tmp_path):
    process = start(tmp_path)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (out, process.returncode) == ("done\n", 0)
    assert "Traceback" not in err
