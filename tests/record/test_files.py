"""A file is there whole or not at all, whatever happens."""

import errno
import os
import stat
import subprocess
import sys
import textwrap
import time
from functools import partial

import pytest

from burnbook.core.errors import ConfigError, DataError
from burnbook.core.files import (
    Draft,
    atomic_write,
    keep_all,
    read_whole,
    remove_leftovers,
)
from burnbook.record import CompactRecorder, RecordError
from burnbook.tensor.data import TensorData
from tests.support.refusals import refused


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(path, text, **options):
    with atomic_write(path, **options) as file:
        file.write(text)


def write_half(path, problem):
    with atomic_write(path) as file:
        file.write(b"half")
        raise problem


def test_a_new_file_appears_with_its_folders(tmp_path):
    write(tmp_path / "a" / "b" / "c", b"one")
    assert (tmp_path / "a" / "b" / "c").read_bytes() == b"one"
    assert names(tmp_path / "a" / "b") == ["c"]


def test_until_the_block_ends_the_old_file_is_there(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_permissions_follow_the_umask_and_are_kept_on_rewriting(tmp_path):
    path = tmp_path / "f"
    write(path, b"1")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o640)
    write(path, b"2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_very_long_name_that_the_system_takes_works(tmp_path):
    write(tmp_path / ("x" * 255), b"long")
    assert names(tmp_path) == ["x" * 255]


@pytest.mark.parametrize("problem", [ValueError("mine"), KeyboardInterrupt()])
def test_an_error_in_the_block_passes_and_leaves_everything_as_it_was(
    problem, tmp_path
):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    with pytest.raises(type(problem)):
        write_half(path, problem)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["f"]


def test_an_os_error_of_the_caller_is_not_ours(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "f"):
        (tmp_path / "missing").read_bytes()
    assert names(tmp_path) == []


class FullDisk:
    """A disk that fails with `code` at the call number `when` of os.<name>."""

    def __init__(self, monkeypatch, name, code, when=1):
        self.real, self.code, self.left = getattr(os, name), code, when
        monkeypatch.setattr(os, name, self)

    def __call__(self, *args, **options):
        self.left -= 1
        if self.left == 0:
            raise OSError(self.code, os.strerror(self.code))
        return self.real(*args, **options)


@pytest.mark.parametrize(
    ("call", "code", "when", "text", "kept"),
    [
        ("open", errno.ENOSPC, 1, "the disk is full", True),
        ("open", errno.EACCES, 1, "no permission to write in", True),
        ("fsync", errno.EIO, 1, "Input/output error", True),
        ("fsync", errno.ENOSPC, 1, "the disk is full", True),
        ("replace", errno.EIO, 1, "Input/output error", True),
        ("replace", errno.EROFS, 1, "no permission to write in", True),
        ("fsync", errno.EIO, 2, "Input/output error", False),  # the folder's
    ],
)
def test_each_failure_of_the_disk_is_explained_and_leaves_a_whole_file(
    call, code, when, text, kept, tmp_path, monkeypatch
):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    FullDisk(monkeypatch, call, code, when)
    with pytest.raises(ConfigError) as error:
        write(path, b"new", error=ConfigError)
    monkeypatch.undo()
    assert str(error.value).startswith(f"write {path}: {text}")
    assert path.read_bytes() == (b"old" if kept else b"new")
    assert names(tmp_path) == ["f"]


def test_a_disk_that_fills_while_writing_is_explained(tmp_path):
    with pytest.raises(DataError, match="the disk is full"):
        write_half(tmp_path / "f", OSError(errno.ENOSPC, "No space left on device"))
    assert names(tmp_path) == []


def test_a_real_full_device_is_explained(tmp_path):
    resource = pytest.importorskip("resource")
    code = f"""
        import resource, signal
        from burnbook.core.errors import DataError
        from burnbook.core.files import atomic_write
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            with atomic_write({str(tmp_path / "f")!r}) as file:
                file.write(bytes(5000))
        except DataError as error:
            assert "File too large" in str(error), error
        else:
            raise SystemExit("written")
    """
    assert resource.RLIMIT_FSIZE is not None
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    assert names(tmp_path) == []


def test_file_systems_that_cannot_sync_folders_are_fine(tmp_path, monkeypatch):
    FullDisk(monkeypatch, "fsync", errno.EINVAL, 2)
    write(tmp_path / "f", b"there")
    assert (tmp_path / "f").read_bytes() == b"there"


def drafts(folder, *names):
    made = [Draft(folder / name) for name in names]
    for draft in made:
        draft.temporary.write_text(draft.target.name)
    return made


def test_files_are_forced_to_the_disk_together_and_the_last_is_named_last(
    tmp_path, monkeypatch
):
    calls = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def noted(first, *more, name=name, real=real):
            of_folder = name == "fsync" and stat.S_ISDIR(os.fstat(first).st_mode)
            calls.append("folder" if of_folder else name)
            return real(first, *more)

        monkeypatch.setattr(os, name, noted)
    *others, last = drafts(tmp_path, "a", "b", "c")
    keep_all(others, last)
    assert calls == [*["fsync"] * 3, *["replace"] * 2, "folder", "replace", "folder"]
    assert [(tmp_path / name).read_text() for name in "abc"] == [*"abc"]


@pytest.mark.parametrize(
    ("call", "when", "kept"),
    [("fsync", 2, ""), ("replace", 1, ""), ("replace", 2, "a")],
)
def test_of_several_files_those_without_a_name_go(
    tmp_path, monkeypatch, call, when, kept
):
    made = drafts(tmp_path, "a", "b", "c")
    FullDisk(monkeypatch, call, errno.EIO, when)
    with pytest.raises(DataError, match="Input/output error"):
        keep_all(made[:2], made[2])
    assert names(tmp_path) == [*kept]


def test_a_parent_that_is_a_file_is_named(tmp_path):
    (tmp_path / "runs").write_bytes(b"")
    runs = tmp_path / "runs"
    told = (f"write {runs / 'model.mpk'}: ", f"{runs} is a file", "try: another folder")
    refused(RecordError, partial(CompactRecorder().record, None, runs / "model"), *told)


def test_a_target_that_is_a_folder_is_named(tmp_path):
    (tmp_path / "f").mkdir()
    with pytest.raises(DataError, match="a folder has this name"):
        write(tmp_path / "f", b"")
    assert names(tmp_path) == ["f"]


def test_a_pipe_or_a_device_is_not_replaced(tmp_path):
    pipe = tmp_path / "model.mpk"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for target in (pipe, link):
        told = (f"write {pipe}: ", "a device or a pipe\n", "try: another file name")
        refused(DataError, partial(write, target, b"new"), *told)
    assert pipe.is_fifo()
    assert names(tmp_path) == ["link", "model.mpk"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(DataError, match="no permission to write in"):
            write(tmp_path / "f", b"")
    finally:
        tmp_path.chmod(0o700)


def test_leftovers_of_killed_writers_can_be_removed(tmp_path):
    for name in (".burnbook-1.tmp", "model.mpk", ".other.tmp"):
        (tmp_path / name).write_bytes(b"")
    assert remove_leftovers(tmp_path) == 0
    assert remove_leftovers(tmp_path, older_than=-1) == 1
    assert names(tmp_path) == [".other.tmp", "model.mpk"]


def test_reading_what_is_not_a_file_is_explained(tmp_path):
    with pytest.raises(DataError, match="this is a folder"):
        read_whole(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)  # so that opening does not wait
    try:
        with pytest.raises(DataError, match="not a regular file"):
            read_whole(tmp_path / "pipe")
    finally:
        os.close(writer)


def test_a_failed_record_keeps_the_older_one(tmp_path, monkeypatch):
    path = CompactRecorder().record({"w": TensorData([1.0])}, tmp_path / "model")
    before = path.read_bytes()
    FullDisk(monkeypatch, "fsync", errno.ENOSPC)
    with pytest.raises(RecordError, match="the disk is full"):
        CompactRecorder().record({"w": TensorData([2.0])}, path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert names(tmp_path) == ["model.mpk"]


def test_a_process_killed_while_writing_leaves_a_whole_file(tmp_path):
    code = f"""
        from burnbook.record import CompactRecorder
        from burnbook.tensor.data import TensorData
        recorder, tree = CompactRecorder(), {{"w": TensorData.zeros([300_000])}}
        for step in range(100_000):
            recorder.record(tree | {{"step": step}}, {str(tmp_path / "model")!r})
    """
    for delay in (0.0, 0.003, 0.01, 0.02, 0.031):
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
        started = time.monotonic()
        while not (tmp_path / "model.mpk").exists():
            assert child.poll() is None
            assert time.monotonic() - started < 60
            time.sleep(0.001)
        time.sleep(delay)
        child.kill()
        child.wait()
        found = CompactRecorder().load(tmp_path / "model")
        assert found["step"] >= 0
        assert found["w"].shape == (300_000,)
        remove_leftovers(tmp_path, older_than=-1)
        (tmp_path / "model.mpk").unlink()
    assert names(tmp_path) == []
