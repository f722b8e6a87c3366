"""Downloads that were cut go on where they stopped, and archives are mirrors too."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest

from burnbook.core.errors import ConfigError, DataError
from burnbook.data.dataset.source import transfer
from burnbook.data.dataset.source.download import (
    Archive,
    RemoteFile,
    archives_of,
    mirrors_of,
    obtain,
    obtain_folder,
    obtain_path,
    with_checksums,
)
from burnbook.data.formats.archive import Bounds
from tests.support import mirrors
from tests.support.mirrors import not_found, send, send_rest

mirror, impatient = mirrors.mirror, mirrors.impatient  # fixtures
ROOT = Path(__file__).resolve().parents[2]
CONTENT = np.random.default_rng(1).bytes(400_000)
FILE = RemoteFile("thing", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "")


def get(folder, *mirrors, file=FILE):
    return obtain(file, folder, [str(m) for m in mirrors], "use another")


def files_in(folder):
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


def cutting(stop, cuts, ranges, tag='"v1"', content=CONTENT):
    """A server that sends `stop` bytes and hangs up, the first `cuts` times."""

    def answer(request):
        ranges.append(request.headers.get("Range"))
        cut = len(ranges) <= cuts
        send_rest(request, content, tag, stop if cut else None)

    return answer


def test_a_cut_download_goes_on_where_it_stopped(mirror, tmp_path):
    ranges = []
    server = mirror(cutting(150_000, 2, ranges))
    assert get(tmp_path, server.url) == CONTENT
    assert ranges == [None, "bytes=150000-", "bytes=300000-"]
    assert files_in(tmp_path) == ["thing"]


def test_the_next_call_goes_on_where_the_last_one_stopped(
    mirror, tmp_path, monkeypatch
):
    ranges = []
    server = mirror(cutting(150_000, 1, ranges))
    monkeypatch.setattr(transfer, "MOST_TRIES", 1)
    with pytest.raises(DataError, match="broke off after 150,000 of 400,000 bytes"):
        get(tmp_path, server.url)
    assert files_in(tmp_path) == [".thing.from", ".thing.part"]
    assert get(tmp_path, server.url) == CONTENT
    assert ranges == [None, "bytes=150000-"]
    assert files_in(tmp_path) == ["thing"]


def test_another_version_is_fetched_from_its_beginning(mirror, tmp_path, monkeypatch):
    ranges = []
    older = bytes(len(CONTENT))
    server = mirror(
        lambda request: (
            cutting(150_000, 1, ranges, '"old"', older)(request)
            if not ranges
            else cutting(0, 0, ranges, '"new"')(request)
        )
    )
    assert get(tmp_path, server.url) == CONTENT
    assert ranges == [None, "bytes=150000-"]


def test_a_part_of_one_mirror_is_not_continued_with_another(
    mirror, tmp_path, monkeypatch
):
    monkeypatch.setattr(transfer, "MOST_TRIES", 1)
    first, second = [], []
    other = mirror(cutting(100_000, 1, first))
    good = mirror(cutting(0, 0, second))
    assert get(tmp_path, other.url, good.url) == CONTENT
    assert (first, second) == ([None], [None])


def test_a_part_that_is_already_whole_needs_no_byte_more(mirror, tmp_path):
    ranges = []
    server = mirror(cutting(0, 0, ranges))
    (tmp_path / ".thing.part").write_bytes(CONTENT)
    note = f'{{"url": "{server.url}/thing", "version": "\\"v1\\""}}'
    (tmp_path / ".thing.from").write_text(note)
    assert get(tmp_path, server.url) == CONTENT
    assert ranges == ["bytes=400000-"]


@pytest.mark.parametrize("note", ["", "{", "[]", '{"url": 3}'])
def test_a_part_with_a_damaged_note_is_dropped(mirror, tmp_path, note):
    ranges = []
    server = mirror(cutting(0, 0, ranges))
    (tmp_path / ".thing.part").write_bytes(bytes(1000))
    (tmp_path / ".thing.from").write_text(note)
    assert get(tmp_path, server.url) == CONTENT
    assert ranges == [None]


def test_a_damaged_part_is_noticed_and_nothing_of_it_stays(mirror, tmp_path):
    server = mirror(cutting(0, 0, []))
    (tmp_path / ".thing.part").write_bytes(bytes(1000))
    note = f'{{"url": "{server.url}/thing", "version": "\\"v1\\""}}'
    (tmp_path / ".thing.from").write_text(note)
    with pytest.raises(DataError, match="sent different content: expected SHA-256"):
        get(tmp_path, server.url)
    assert files_in(tmp_path) == []
    assert get(tmp_path, server.url) == CONTENT


def test_a_server_that_sends_another_range_is_begun_anew(mirror, tmp_path):
    asked = []

    def confused(request):
        asked.append(request.headers.get("Range"))
        if len(asked) == 1:
            send_rest(request, CONTENT, stop=1000)
        elif asked[-1]:
            request.send_response(206)
            request.send_header("Content-Range", "bytes 5-9/400000")
            request.end_headers()
        else:
            send_rest(request, CONTENT)

    assert get(tmp_path, mirror(confused).url) == CONTENT
    assert asked == [None, "bytes=1000-", None]


def test_a_server_that_never_sends_more_is_given_up(mirror, tmp_path):
    ranges = []
    server = mirror(cutting(0, 1000, ranges))
    with pytest.raises(DataError, match="broke off after 0 of 400,000 bytes"):
        get(tmp_path, server.url)
    assert len(ranges) == transfer.TRIES - 1


def test_a_cache_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="cannot be written: Not a directory"):
        get(tmp_path / "file" / "folder", "http://127.0.0.1:9/")


DOWNLOAD = """
import sys
from pathlib import Path
from burnbook.data.dataset.source.download import RemoteFile, obtain
obtain(RemoteFile("thing", packed=""), Path(sys.argv[1]), [sys.argv[2]], "")
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX's")
def test_a_killed_download_is_continued_by_the_next_process(mirror, tmp_path):
    ranges, half, ended = [], threading.Event(), threading.Event()

    def stops_half_way(request):
        ranges.append(request.headers.get("Range"))
        send_rest(request, CONTENT, stop=200_000 if len(ranges) == 1 else None)
        request.wfile.flush()
        if len(ranges) == 1:
            half.set()
            ended.wait(30)

    server = mirror(stops_half_way)
    process = subprocess.Popen(
        [sys.executable, "-c", DOWNLOAD, str(tmp_path), server.url],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert half.wait(30)
    part = tmp_path / ".thing.part"
    while part.stat().st_size < 200_000:
        pass
    process.kill()
    process.wait()
    ended.set()
    assert get(tmp_path, server.url) == CONTENT
    assert ranges == [None, "bytes=200000-"]


# Checksums


def test_md5_and_sha256_are_told_apart_by_their_length(mirror, tmp_path):
    md5 = hashlib.md5(CONTENT).hexdigest()
    good = RemoteFile("thing", None, md5, "")
    assert get(tmp_path, mirror(CONTENT).url, file=good) == CONTENT
    bad = RemoteFile("thing", None, md5[::-1], "")
    with pytest.raises(DataError, match=f"expected MD5 {md5[::-1]}, found {md5}"):
        get(tmp_path, mirror(CONTENT).url, file=bad)


def test_a_checksum_of_the_packed_file_is_checked_too(mirror, tmp_path):
    packed = gzip.compress(CONTENT)
    known = hashlib.sha256(packed).hexdigest()
    file = RemoteFile("thing", len(CONTENT), packed_checksum=known)
    with pytest.raises(DataError, match=f"expected SHA-256 {known}, found"):
        get(tmp_path, mirror(gzip.compress(CONTENT, 1)).url, file=file)
    assert get(tmp_path, mirror(packed).url, file=file) == CONTENT


def test_a_file_without_a_known_checksum_keeps_the_one_it_came_with(mirror, tmp_path):
    file, server = RemoteFile("thing", packed=""), mirror(CONTENT)
    assert get(tmp_path, server.url, file=file) == CONTENT
    noted = f"{hashlib.sha256(CONTENT).hexdigest()}  thing\n"
    assert (tmp_path / "thing.sha256").read_text() == noted
    (tmp_path / "thing").write_bytes(CONTENT[:-1] + b"?")
    assert get(tmp_path, server.url, file=file) == CONTENT
    assert len(server.asked) == 2


def test_own_checksums_take_the_place_of_known_ones():
    own = hashlib.sha256(b"own").hexdigest()
    files = [RemoteFile("a", 3, "0" * 64), RemoteFile("b", 4, "1" * 64)]
    assert with_checksums(files, {"b": own.upper()}) == [
        files[0],
        RemoteFile("b", None, own),
    ]
    with pytest.raises(ConfigError, match="there is no file 'c'"):
        with_checksums(files, {"c": own})
    with pytest.raises(ConfigError, match="'secret' is not a checksum"):
        with_checksums(files, {"a": "secret"})


def test_a_plain_file_may_be_packed_at_its_mirror(mirror, tmp_path):
    def only_packed(request):
        if request.path.endswith(".gz"):
            send(request, gzip.compress(CONTENT))
        else:
            not_found(request)

    server = mirror(only_packed)
    assert get(tmp_path, server.url) == CONTENT
    assert server.asked == ["/data/thing", "/data/thing.gz"]


# Archives as mirrors


def tar(members, mode="w:gz"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


PACK = tar({"set/other": b"more", "set/thing": CONTENT})
ARCHIVE = Archive("set.tgz", len(PACK), hashlib.sha256(PACK).hexdigest())
OTHER = RemoteFile("other", 4, packed="")


def archive_at(server, archive=ARCHIVE):
    url = f"{server.url}/set.tgz"
    return Archive(url, archive.size, archive.checksum, archive.bounds)


def test_an_archive_gives_all_its_files_at_once(mirror, tmp_path):
    server = mirror(PACK)
    found = obtain_path(FILE, tmp_path, [archive_at(server)], "", others=[OTHER])
    assert found.read_bytes() == CONTENT
    assert (tmp_path / "other").read_bytes() == b"more"
    assert obtain_path(OTHER, tmp_path, [], "").read_bytes() == b"more"
    assert server.asked == ["/data/set.tgz"]
    assert files_in(tmp_path) == ["other", "other.sha256", "thing"]


def test_an_archive_put_into_the_cache_is_used(tmp_path):
    (tmp_path / "set.tgz").write_bytes(PACK)
    far = Archive("https://far.example/set.tgz", ARCHIVE.size, ARCHIVE.checksum)
    assert obtain(FILE, tmp_path, [far], "") == CONTENT


BAD_ARCHIVES = {
    "another": (tar({"set/thing": b"x"}), "sent different content: expected"),
    "without": (tar({"set/other": b"more"}), "has no thing in it"),
    "wrong file": (tar({"thing": b"x"}), "sent different content: expected 400,000"),
    "link": (None, "holds 'thing', which is not a regular file"),
}


@pytest.mark.parametrize("kind", BAD_ARCHIVES)
def test_an_archive_that_is_not_right_is_no_mirror(mirror, tmp_path, kind):
    pack, reason = BAD_ARCHIVES[kind]
    if pack is None:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            entry = tarfile.TarInfo("thing")
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(entry)
        pack = out.getvalue()
    known = ARCHIVE if kind == "another" else Archive("", None, None)
    with pytest.raises(DataError, match=reason):
        obtain(FILE, tmp_path, [archive_at(mirror(pack), known)], "")
    assert files_in(tmp_path) == []


def test_a_folder_of_files_appears_whole_or_not_at_all(mirror, tmp_path):
    place = tmp_path / "cache" / "speech"
    small = Archive("", None, None, Bounds(10, 1000))
    with pytest.raises(DataError, match="unpacks to more than 1,000 bytes"):
        obtain_folder(place, [archive_at(mirror(PACK), small)], "")
    assert not place.parent.exists()
    server = mirror(PACK)
    obtain_folder(place, [archive_at(server)], "")
    assert (place / "set" / "thing").read_bytes() == CONTENT
    assert obtain_folder(place, [], "") == place
    assert [p.name for p in place.parent.iterdir()] == ["speech"]


def test_an_archive_on_this_machine_is_read_where_it_lies(tmp_path):
    near, heard = tmp_path / "a folder" / "set.tgz", []
    near.parent.mkdir()
    near.write_bytes(PACK)
    place = tmp_path / "cache" / "set"
    archive = Archive(near.as_uri(), ARCHIVE.size, ARCHIVE.checksum)
    obtain_folder(place, [archive], "", lambda *what: heard.append(what))
    assert (place / "set" / "other").read_bytes() == b"more"
    assert heard[-1] == ("set.tgz, unpacking", len(PACK), len(PACK))
    assert files_in(near.parent) == ["set.tgz"]
    near.write_bytes(PACK[:-1])
    with pytest.raises(DataError, match="sent different content: expected"):
        obtain_folder(tmp_path / "other", [archive], "")
    assert near.read_bytes() == PACK[:-1]
    near.unlink()
    with pytest.raises(DataError, match=r"cannot be reached: there is no such file"):
        obtain_folder(tmp_path / "other", [archive], "")


def test_a_wrong_file_beside_the_one_wanted_does_no_harm(tmp_path):
    (tmp_path / "set.tgz").write_bytes(PACK)
    wrong = RemoteFile("other", 5, packed="")
    far = Archive("https://far.example/set.tgz")
    found = obtain_path(FILE, tmp_path, [far], "", others=[wrong])
    assert found.read_bytes() == CONTENT
    assert files_in(tmp_path) == ["set.tgz", "thing"]


def test_the_users_own_mirror_comes_first(monkeypatch):
    known = [Archive("https://far.example/set.tgz", 3, "0" * 64)]
    monkeypatch.delenv("OWN_MIRROR", raising=False)
    assert mirrors_of("OWN_MIRROR", known) == archives_of("OWN_MIRROR", known) == known
    monkeypatch.setenv("OWN_MIRROR", "http://near.example/data/")
    assert mirrors_of("OWN_MIRROR", known) == ["http://near.example/data/", *known]
    near = Archive("http://near.example/data/set.tgz", 3, "0" * 64)
    assert archives_of("OWN_MIRROR", known) == [near, *known]
    monkeypatch.setenv("OWN_MIRROR", "http://near.example/data/own.tgz")
    own = Archive("http://near.example/data/own.tgz")
    assert archives_of("OWN_MIRROR", known) == [own, *known]
