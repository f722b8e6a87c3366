"""A full disk: an error of ours, the old file as it was, and nothing left behind."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="limits of a process need POSIX")

from burnbook.core.errors import BurnbookError

ROOT = Path(__file__).resolve().parents[2]
KEPT = b"what stood there before"
# Each writes more than 4 kB, the most that a file may have, to the path.
WRITERS = {
    "mpk": "record.NamedMpkFileRecorder().record(big, path)",
    "mpk.gz": "record.NamedMpkGzFileRecorder().record(big, path)",
    "json": "record.PrettyJsonFileRecorder().record(big, path)",
    "json.gz": "record.JsonGzFileRecorder().record(big, path)",
    "bin": "layer.save_file(path, record.BinFileRecorder())",
    "bin.gz": "layer.save_file(path, record.BinGzFileRecorder())",
    "safetensors": "layer.save_file(path, record.SafetensorsRecorder())",
    "config.json": "Wide('x' * 10_000).save(path)",
    "sweep.json": "save_state(path.parent, {'a': 'x' * 10_000}, [])",
    "runs.csv": "RunStore(runs).export_csv(path, 'batch')",
    "work.zip": "save_work(path, folder=folder, shipped=runs)",
}
PROGRAM = """
import os, resource, signal, sys
from pathlib import Path
import numpy as np
from burnbook import record
from burnbook.backend import Numpy
from burnbook.config import Config
from burnbook.core.errors import BurnbookError
from burnbook.nn import LinearConfig
from burnbook.tensor.data import TensorData
from burnbook.train import RunStore
from burnbook.train.sweep.trial import save_state
from burnbook.cli.workspace import save_work

class Wide(Config):
    text: str

layer = LinearConfig(90, 90).init(Numpy())
big = {"a": TensorData(np.random.default_rng(0).random(9_000))}
runs, folder = map(Path, sys.argv[1:3])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then writing fails, as on a full disk
for line in sys.stdin:
    name, path, write = line.rstrip("\\n").split("\\t")
    sys.stdout.flush()
    if os.fork() == 0:  # the limit is for good, and for all that is written
        path, told = Path(path), "written"
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            exec(write)
        except BurnbookError as error:
            told = str(error).splitlines()[0]
        except BaseException as error:
            told = repr(error)
        os.write(1, f"{name}\\t{told}\\n".encode())
        os._exit(0)
    os.wait()
"""


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    log = tmp_path / "runs" / "first" / "valid" / "epoch-1" / "Loss.log"
    log.parent.mkdir(parents=True)
    log.write_text("0.5,1\n" * 500)
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "mine.py").write_bytes(b"x = " + os.urandom(9_000).hex().encode())
    paths = {}
    for number, name in enumerate(WRITERS):
        folder = tmp_path / str(number)
        folder.mkdir()
        paths[name] = folder / (name if name == "sweep.json" else f"a.{name}")
        if name != "work.zip":  # it replaces nothing but saved work
            paths[name].write_bytes(KEPT)
    lines = [f"{name}\t{paths[name]}\t{write}\n" for name, write in WRITERS.items()]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "runs", pages],
        input="".join(lines),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = dict(line.split("\t") for line in done.stdout.splitlines())
    assert told.keys() == WRITERS.keys()
    for name, path in paths.items():
        assert told[name].startswith(f"write {path}: "), (name, told[name])
        left = {each.name: each.read_bytes() for each in path.parent.iterdir()}
        assert left == ({} if name == "work.zip" else {path.name: KEPT})


def test_the_error_says_that_the_disk_is_full(tmp_path, monkeypatch):
    from burnbook.nn import LinearConfig

    path = tmp_path / "config.json"
    path.write_bytes(KEPT)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BurnbookError, match="the disk is full"):
        LinearConfig(2, 3).save(path)
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == KEPT
