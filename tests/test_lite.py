"""What a browser can run: the core with NumPy and msgpack alone, without a thread."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_a_training_needs_no_thread_and_nothing_but_numpy_and_msgpack(tmp_path):
    program = [sys.executable, "-m", "tests.bare_training", str(tmp_path)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()
    assert shown[0].startswith("epoch 1/2  train Accuracy ")
    assert shown[1].startswith("epoch 2/2  train Accuracy ")
    assert shown[2:] == [
        "trained 2",
        "records read back",
        "awaited 2",
        "started 2",
        "foreign []",
    ]
