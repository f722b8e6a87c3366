"""Files that somebody else made: no reader hangs, dies, or reads what is no file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="limits of a process need POSIX")

from tests.support.foreign import READERS
from tests.support.mutation import mutations
from tests.support.programs import python
from tests.support.tree_damage import MAKERS

ROOT = Path(__file__).resolve().parents[2]
SPARSE = 8 << 30


def tried(pairs, seconds=5):
    """What processes with 2 GB and 5 s each say of paths: {name: outcome}."""
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.foreign", str(seconds)],
        input="".join(f"{name}\t{path}\n" for name, path in pairs),
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(line.split("\t", 1) for line in done.stdout.splitlines())


def no_file(kind, path):
    """Something that is no honest file, under that name."""
    path.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, SPARSE)


def beginning(name):
    """How a file of this kind begins, so that a reader goes on with the rest."""
    if "gz" in name:
        return b"\x1f\x8b\x08\0\0\0\0\0\0\x03"
    starts = {
        "idx": b"\0\0\x08\2\0\0\1\0\0\0\0\1",
        "wav": b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0"
        b"\1\0\x08\0data\xff\xff\xff\xff",
        "image": b"\x89PNG\r\n\x1a\n",
        "sqlite": b"SQLite format 3\0",
        "run diary": b"2024-12-12T04:23:02Z INFO Fitting the model\n",
        "run log": b"0.5,1\n",
    }
    return starts.get(name, b"{")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "sparse", "begun"])
def test_what_is_no_file_is_refused_by_every_reader(kind, tmp_path):
    pairs = []
    for number, (name, (_, file)) in enumerate(READERS.items()):
        path = tmp_path / str(number) / file
        no_file(kind, path)
        if kind == "begun":
            with path.open("r+b") as begun:
                begun.write(beginning(name))
        if name.startswith("run"):  # or it would be no run
            log = path.parent / "train" / "epoch-1" / "Loss.log"
            log = log if name != "run log" else path.with_name("Accuracy.log")
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("0.5,1\n")
        pairs.append((name, path))
    told = tried(pairs)
    assert told.keys() == READERS.keys()
    wrong = {
        n: text for n, text in told.items() if not text.startswith(("ours", "read"))
    }
    assert not wrong, wrong
    # A store lists what it can read, and a page that is none is left alone.
    silent = {name for name, text in told.items() if text == "read"}
    known = {"run config", "run diary", "run log", "page", "sweep"}
    if kind == "folder":
        known |= {"images", "text"}
    assert silent <= known, silent


def test_damaged_trees_are_read_or_refused(tmp_path):
    """BURNBOOK_MUTATIONS=3000 for more; a seed and a reader repeat one of them."""
    count = mutations(12)
    program = ("-m", "tests.support.tree_damage", 0, count, tmp_path)
    done = python(*program, timeout=600 + 3 * count)
    assert not done.stderr, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert not [line for line in lines if not line.startswith("done ")]
    assert len(lines) == len(MAKERS)
