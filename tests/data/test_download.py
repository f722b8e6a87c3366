"""Downloads: whole or nothing, from whichever mirror has the right content."""

import gzip
import hashlib
import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from burnbook.core.errors import DataError
from burnbook.data import MnistDataset, available_datasets, cache_dir
from burnbook.data.dataset.source import transfer
from burnbook.data.dataset.source.download import RemoteFile, TextProgress, obtain
from burnbook.data.dataset.vision import mnist
from tests.support import mirrors
from tests.support.mirrors import Mirror, not_found, send
from tests.support.refusals import refused

mirror, impatient = mirrors.mirror, mirrors.impatient  # fixtures
ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT.parent / "shared" / "data" / "mnist"
needs_mnist = pytest.mark.skipif(
    not REAL.is_dir(), reason="the real MNIST files do not lie beside the repository"
)


def remote(content, name="thing"):
    return RemoteFile(name, len(content), hashlib.sha256(content).hexdigest())


CONTENT = np.random.default_rng(0).bytes(39_216)
FILE = remote(CONTENT)
PACKED = gzip.compress(CONTENT)


def get(folder, *mirrors, file=FILE, report=None):
    return obtain(file, folder, [str(m) for m in mirrors], "use another", report)


def files_in(folder):
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


# One file, one mirror


@pytest.mark.parametrize("sent", [PACKED, CONTENT], ids=["packed", "plain"])
def test_a_download_is_kept_unpacked_and_asked_for_once(mirror, tmp_path, sent):
    server = mirror(sent)
    assert get(tmp_path, server.url) == CONTENT
    assert get(tmp_path, server.url) == CONTENT
    assert server.asked == ["/data/thing.gz"]
    assert (tmp_path / "thing").read_bytes() == CONTENT
    assert files_in(tmp_path) == ["thing"]


def test_progress_is_reported_as_it_arrives(mirror, tmp_path):
    heard = []
    get(tmp_path, mirror(PACKED).url, report=lambda *what: heard.append(what))
    assert heard[-1] == ("thing", len(PACKED), len(PACKED))
    received = [one[1] for one in heard]
    assert received == sorted(received)


def test_the_terminal_shows_one_line_that_counts_up():
    stream = io.StringIO()
    show = TextProgress(stream)
    show("thing", 0, 4_000_000)
    show("thing", 4_000_000, 4_000_000)
    assert stream.getvalue().split("\r")[-1] == "thing  4.0 / 4.0 MB (100 %)\n"


@pytest.mark.parametrize("form", ["path", "url"])
def test_a_folder_serves_as_a_mirror(tmp_path, form):
    source, cache = tmp_path / "a folder", tmp_path / "cache"
    source.mkdir()
    (source / "thing.gz").write_bytes(PACKED)
    where = source if form == "path" else source.as_uri()
    assert get(cache, where) == CONTENT


# Mirrors that fail


def hangs(request):
    time.sleep(2)


def hangs_half_way(request):
    send(request, PACKED[:500], len(PACKED))
    request.wfile.flush()
    time.sleep(2)


def drips(request):
    request.send_response(200)
    request.end_headers()
    for i in range(200):
        request.wfile.write(PACKED[i : i + 1])
        time.sleep(0.02)


def breaks_off(request):
    send(request, PACKED[:500], len(PACKED))


def flipped(content, place=-1000):
    changed = bytearray(content)
    changed[place] ^= 1
    return bytes(changed)


WRONG = flipped(CONTENT)
BOMB = gzip.compress(CONTENT + bytes(50_000_000))
FAILURES = {
    "404": (not_found, "answered 404 Not Found"),
    "hangs": (hangs, "sent nothing for 0.5 seconds"),
    "hangs half-way": (hangs_half_way, "sent nothing for 0.5 seconds"),
    "drips": (drips, "sent only "),
    "breaks off": (breaks_off, f"broke off after 500 of {len(PACKED):,} bytes"),
    "truncated": (PACKED[:-20], "thing is cut off after "),
    "damaged": (flipped(PACKED, 300), "thing is damaged after "),
    "empty": (b"", f"sent different content: expected {FILE.size:,} bytes, found 0"),
    "page": (b"<html>log in</html>", "sent different content: expected 39,216 bytes"),
    "bomb": (BOMB, f"thing unpacks to more than the {FILE.size:,} bytes"),
    "too much": (CONTENT + bytes(200_000), "sent more than the 39,216 bytes expected"),
    "another file": (
        gzip.compress(WRONG),
        f"sent different content: expected SHA-256 {FILE.checksum}, "
        f"found {hashlib.sha256(WRONG).hexdigest()}",
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_mirror_that_fails_is_named_and_nothing_is_kept(mirror, tmp_path, failure):
    answer, reason = FAILURES[failure]
    server = mirror(answer)
    facts = ("from any of 1 mirrors\n", f"\n  {server.url}  {reason}")
    error = refused(
        DataError,
        lambda: get(tmp_path, server.url),
        "download: thing cannot be loaded",
        *facts,
    )
    assert str(error).splitlines()[2:] == ["  try: use another"]
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("failure", FAILURES)
def test_after_a_mirror_that_fails_the_next_one_is_used(mirror, tmp_path, failure):
    bad, good = mirror(FAILURES[failure][0]), mirror(PACKED)
    assert get(tmp_path, bad.url, good.url) == CONTENT
    assert files_in(tmp_path) == ["thing"]


def test_a_mirror_that_is_not_there_is_named(tmp_path):
    server = Mirror(not_found)
    server.shutdown()
    server.server_close()
    where = (server.url, tmp_path / "nowhere", "gopher://old/")
    reasons = ("Connection refused", "No such file or directory", "url type: gopher")
    refused(
        DataError,
        lambda: get(tmp_path, *where),
        "download: ",
        "cannot be reached: ",
        where[2],
        *reasons,
    )


def test_a_web_mirror_cannot_send_us_to_a_file_of_this_machine(mirror, tmp_path):
    secret = tmp_path / "thing.gz"
    secret.write_bytes(PACKED)

    def redirects(request):
        request.send_response(302)
        request.send_header("Location", secret.as_uri())
        request.end_headers()

    with pytest.raises(DataError, match="cannot be loaded"):
        get(tmp_path / "cache", mirror(redirects).url)


# The cache


def test_a_damaged_file_in_the_cache_is_replaced(mirror, tmp_path):
    server = mirror(PACKED)
    for damage in (CONTENT[:-1], WRONG, b"", CONTENT + bytes(10**6)):
        (tmp_path / "thing").write_bytes(damage)
        assert get(tmp_path, server.url) == CONTENT
        assert (tmp_path / "thing").read_bytes() == CONTENT
    assert len(server.asked) == 4


def test_a_file_put_into_the_cache_by_hand_is_used_packed_or_not(tmp_path):
    for name, content in (("thing.gz", PACKED), ("thing", CONTENT)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_bytes(content)
        assert get(folder) == CONTENT


DOWNLOAD = """
import sys
from burnbook.data.dataset.source.download import RemoteFile, obtain
from pathlib import Path
name, size, digest, folder, mirror = sys.argv[1:]
obtain(RemoteFile(name, int(size), digest), Path(folder), [mirror], "")
print("done")
"""


def downloader(folder, url):
    arguments = [FILE.name, str(FILE.size), FILE.checksum, str(folder), url]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", DOWNLOAD, *arguments],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )


def test_two_processes_may_download_at_once(mirror, tmp_path):
    both = threading.Barrier(2, timeout=30)

    def together(request):
        both.wait()
        send(request, PACKED)

    server = mirror(together)
    started = [downloader(tmp_path, server.url) for _ in range(2)]
    assert [one.communicate(timeout=60)[0] for one in started] == ["done\n"] * 2
    assert files_in(tmp_path) == ["thing"]
    assert get(tmp_path) == CONTENT


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_download_that_is_killed_leaves_no_file_of_that_name(mirror, tmp_path):
    half, ended = threading.Event(), threading.Event()

    def stops_half_way(request):
        send(request, PACKED[: len(PACKED) // 2], len(PACKED))
        request.wfile.flush()
        half.set()
        ended.wait(30)

    process = downloader(tmp_path, mirror(stops_half_way).url)
    assert half.wait(30)
    process.kill()
    process.communicate()
    ended.set()
    assert process.returncode == -signal.SIGKILL
    assert "thing" not in files_in(tmp_path)
    assert get(tmp_path, mirror(PACKED).url) == CONTENT
    assert files_in(tmp_path) == ["thing"]


def test_the_cache_folder_follows_the_platform(monkeypatch, tmp_path):
    monkeypatch.setenv("BURNBOOK_CACHE", str(tmp_path / "own"))
    assert cache_dir() == tmp_path / "own"
    monkeypatch.delenv("BURNBOOK_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    places = {
        "linux": tmp_path / "xdg" / "burnbook",
        "darwin": tmp_path / "Library" / "Caches" / "burnbook",
        "win32": tmp_path / "local" / "burnbook",
    }
    for platform, place in places.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert cache_dir() == place
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == tmp_path / ".cache" / "burnbook"


# MNIST


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("BURNBOOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mnist"


def available(name):
    return {info.name: info.available for info in available_datasets()}[name]


def real_mnist(request):
    send(request, (REAL / Path(request.path).name).read_bytes())


@needs_mnist
def test_mnist_comes_from_a_mirror_once_and_is_the_real_one(
    mirror, monkeypatch, empty_cache
):
    server = mirror(real_mnist)
    monkeypatch.setattr(transfer, "TIMEOUT", 20)
    monkeypatch.setattr(mnist, "MIRRORS", [])
    monkeypatch.setenv("BURNBOOK_MNIST_MIRROR", server.url)
    train, test = MnistDataset.train(), MnistDataset.test()
    assert (len(train), len(test)) == (60_000, 10_000)
    assert [train.get(i).label for i in range(8)] == [5, 0, 4, 1, 9, 2, 1, 3]
    assert [test.get(i).label for i in range(8)] == [7, 2, 1, 0, 4, 1, 4, 9]
    item = train.get(0)
    assert (item.image.shape, item.image.dtype) == ((28, 28), np.float32)
    assert (item.image.min(), item.image.max()) == (0, 255)
    assert train.get(60_000) is None
    assert train.get_many([5, 59_999]) == [train.get(5), train.get(59_999)]
    mean = np.mean([test.get(i).image for i in range(10_000)]) / 255
    assert mean == pytest.approx(0.1325, abs=5e-4)
    assert len(server.asked) == 4
    assert available("MnistDataset")
    monkeypatch.setenv("BURNBOOK_MNIST_MIRROR", "http://127.0.0.1:9/")
    assert MnistDataset.test().get(3) == test.get(3)


def test_without_a_network_the_error_names_mirrors_and_ways_out(
    mirror, monkeypatch, empty_cache
):
    url = mirror(not_found).url
    monkeypatch.setattr(mnist, "MIRRORS", [url + "/a/", url + "/b/"])
    monkeypatch.setenv("BURNBOOK_MNIST_MIRROR", url)
    facts = [f"  {url}{part}  answered 404 Not Found" for part in ("   ", "/a/", "/b/")]
    cures = (
        "DigitsDataset",
        "--dataset digits",
        str(empty_cache),
        "MNIST_MIRROR=file:",
    )
    first = "download: train-images-idx3-ubyte cannot be loaded from any of 3 mirrors\n"
    refused(DataError, MnistDataset.train, first, *facts, "  try: ", *cures)
    assert available("DigitsDataset")
    assert not available("MnistDataset")


def test_every_mirror_offers_the_same_four_files():
    assert len({file.name for pair in mnist.FILES.values() for file in pair}) == 4
    assert len(mnist.MIRRORS) >= 3
    assert all(one.startswith("https://") for one in mnist.MIRRORS)
