"""Archives that nobody can trust: nothing leaves the folder or grows too large."""

import gzip
import io
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from burnbook.core.errors import DataError
from burnbook.data.dataset.source.transfer import remove_abandoned
from burnbook.data.formats.archive import Bounds, extract_tar, read_tar
from tests.support import mirrors
from tests.support.cases import cases

mirror, impatient = mirrors.mirror, mirrors.impatient  # fixtures
ROOT = Path(__file__).resolve().parents[2]
BOUNDS = Bounds(100, 1 << 22)


def tar(*entries, mode="w", kind=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=kind) as archive:
        for name, content, *sort in entries:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            if sort:
                entry.type, entry.linkname = sort[0], "/etc/passwd"
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def read(data, bounds=BOUNDS):
    with closing(read_tar(io.BytesIO(data), "x.tar", bounds)) as files:
        return {path: content.read(1 << 20) for path, content in files}


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize(
    "kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]
)
def test_files_come_out_under_their_names(mode, kind):
    long = "folder/" + "n" * 90 if kind == tarfile.USTAR_FORMAT else "f/" + "ü" * 150
    files = {"./a/b.txt": b"text", "empty": b"", long: b"x" * 1000}
    found = read(tar(*files.items(), mode=mode, kind=kind))
    assert found == {"a/b.txt": b"text", "empty": b"", long: b"x" * 1000}


@cases(
    "name",
    "/etc/passwd",
    "../up",
    "a/../../up",
    "a\\..\\up",
    "C:/windows",
    "a\nb",
    "x" * 1001,
)
def test_a_path_that_leads_elsewhere_is_refused(tmp_path, name):
    with pytest.raises(DataError, match="holds a path that leads out of its folder"):
        extract_tar(
            io.BytesIO(tar((name, b"x"))), "x.tar", tmp_path / "in" / "to", BOUNDS
        )
    assert not (tmp_path / "up").exists()
    assert not list((tmp_path).glob("**/*.part"))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_only_ordinary_files_come_out(tmp_path, kind):
    data = tar(("link", b"", kind))
    with pytest.raises(DataError, match="'link', which is not a regular file"):
        extract_tar(io.BytesIO(data), "x.tar", tmp_path / "to", BOUNDS)
    assert list(tmp_path.iterdir()) == []


def test_sizes_and_numbers_have_their_limits():
    many = tar(*[(f"{i}", b"") for i in range(101)])
    with pytest.raises(DataError, match="holds more than 100 files"):
        read(many)
    bomb = tar(("zeros", bytes(50_000_000)), mode="w:gz")
    assert len(bomb) < 100_000
    with pytest.raises(DataError, match="unpacks to more than 4,194,304 bytes"):
        read(bomb)
    header = tar(("x", bytes(3 << 20), tarfile.XHDTYPE), mode="w:gz")
    with pytest.raises(DataError, match="is damaged or cut off"):
        read(header)


def test_a_size_below_zero_ends_at_once():
    data = bytearray(tar(("a", b"x" * 600), ("b", b"y")))
    data[124:136] = b"\xff" * 10 + (-1024 & 0xFFFF).to_bytes(2, "big")  # base 256
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    began = time.process_time()
    with pytest.raises(DataError, match=r"x\.tar"):
        read(bytes(data))
    assert time.process_time() - began < 30  # it ends, however slow the machine is


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_an_archive_cut_anywhere_is_not_whole(pack):
    whole = pack(tar(("a", b"x" * 600), ("b", b"y" * 600)))
    ends = [len(whole) * i // 40 for i in range(40)]
    if pack is bytes:  # what is only zeros at the end may be missing
        ends = [end for end in ends if any(whole[end:])]
    for end in ends:
        with pytest.raises(DataError, match=r"x\.tar"):
            read(whole[:end])


def test_what_killed_processes_left_goes_after_a_day(tmp_path):
    target = tmp_path / "speech"
    names = [f".speech.{'0a' * 16}.part", f".speech.{'1b' * 16}.from"]
    (tmp_path / names[0]).mkdir()
    (tmp_path / names[0] / "half.wav").write_bytes(b"")
    (tmp_path / names[1]).write_bytes(b"")
    others = [".speech.part", ".speech.from", "speech", ".other.part"]
    for name in others:
        (tmp_path / name).write_bytes(b"")
    remove_abandoned(target)
    assert len(list(tmp_path.iterdir())) == 6
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    remove_abandoned(target)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


# Killed again and again

OBTAIN = """
import sys
from pathlib import Path
from burnbook.data.dataset.source.download import Archive, obtain_folder
obtain_folder(Path(sys.argv[1]), [Archive(sys.argv[2])], "")
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX's")
def test_a_folder_killed_at_any_moment_is_whole_or_not_there(mirror, tmp_path):
    content = np.random.default_rng(2).bytes(200_000)
    data = tar(*[(f"{i}", content[i * 500 :][:3000]) for i in range(400)])
    sending = threading.Event()

    def slowly(request):
        request.send_response(200)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        for i in range(0, len(data), 100_000):
            request.wfile.write(data[i : i + 100_000])
            sending.set()
            time.sleep(0.02)

    server, place = mirror(slowly), tmp_path / "cache" / "set"
    arguments = [sys.executable, "-c", OBTAIN, str(place), f"{server.url}/set.tar"]
    for moment in (0.0, 0.1, 0.2, 0.3):
        sending.clear()
        process = subprocess.Popen(
            arguments, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        assert sending.wait(30) or process.poll() is not None
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not place.exists() or len(list(place.iterdir())) == 400
        if place.exists():
            break
    subprocess.run(arguments, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    assert len(list(place.iterdir())) == 400
    assert (place / "7").read_bytes() == content[3500:6500]
