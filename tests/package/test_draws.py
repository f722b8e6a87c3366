"""Tests draw the same examples in every run, others when asked, and the same again."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRIED = """
import random, numpy as np
from hypothesis import given, strategies as st

SEEN = []

@given(st.lists(st.integers(), max_size=5))
def test_examples(drawn):
    SEEN.append(drawn)

def test_global_generators():
    print("drawn", hash((str(SEEN), random.random(), np.random.rand())))
    assert not SEEN
"""


def draws(folder: Path, *options: str) -> tuple[str, str]:
    """What a run of pytest drew, and its whole text."""
    file = folder / "test_tried.py"
    file.write_text(TRIED, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p"]
    command += ["no:cacheprovider", "-c", str(ROOT / "pyproject.toml")]
    command += ["--randomly-dont-reorganize", str(file), *options]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    found = re.search(r"drawn (-?\d+)", done.stdout)
    assert found is not None, done.stdout + done.stderr
    return found[1], done.stdout


@pytest.mark.slow
def test_a_run_draws_what_every_run_draws(tmp_path):
    assert draws(tmp_path)[0] == draws(tmp_path)[0]


@pytest.mark.slow
def test_new_draws_come_again_by_the_command_that_is_printed(tmp_path):
    first, text = draws(tmp_path, "--draws=new")
    assert first != draws(tmp_path)[0]
    again = re.search(r"again: python -m pytest --draws=(\d+) '\S*::test_global", text)
    assert again is not None, text
    assert draws(tmp_path, f"--draws={again[1]}")[0] == first
