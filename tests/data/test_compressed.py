"""Compressed tables: read within bounds, whatever their name; others are named."""

import bz2
import gzip
import lzma
import sys

import pytest

from burnbook.core.errors import DataError
from burnbook.data import InMemDataset
from tests.support.refusals import refused

PACK = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}
TEXT = "\ufeffname,age\n" + "".join(f"Éva {i},{i}\n" for i in range(5_000))


def write(path, content):
    path.write_bytes(content)
    return path


def read(path):
    return list(InMemDataset.from_csv(path))


@pytest.fixture(params=PACK)
def kind(request):
    return request.param


def test_a_table_is_unpacked_whatever_its_name(tmp_path, kind):
    path = write(tmp_path / "table", PACK[kind](TEXT.encode()))
    rows = read(path)
    assert len(rows) == 5_000
    assert (rows[0]["name"], rows[-1]) == ("Éva 0", {"name": "Éva 4999", "age": "4999"})


def test_streams_that_stand_one_after_the_other_are_one_text(tmp_path, kind):
    raw, pack = TEXT.encode(), PACK[kind]
    parts = [raw[:7], raw[7:30_000], b"", raw[30_000:]]
    path = write(tmp_path / "t.csv", b"".join(map(pack, parts)) + bytes(512))
    assert read(path) == read(write(tmp_path / "plain.csv", raw))


def test_json_rows_may_be_compressed(tmp_path, kind):
    path = write(tmp_path / "rows", PACK[kind](b'{"a": 1}\n{"a": 2}\n'))
    assert list(InMemDataset.from_json_rows(path)) == [{"a": 1}, {"a": 2}]


def test_a_file_may_not_unpack_without_end(tmp_path, kind, monkeypatch):
    monkeypatch.setattr("burnbook.data.formats.tables.SMALL", 1_000)
    path = write(tmp_path / "t", PACK[kind](b"a\n" + (b"1" * 999 + b"\n") * 3_000))
    told = ("unpacks to more than", "try: unpacking it first")
    refused(DataError, lambda: read(path), f"{kind}: ", *told)


def test_damage_is_named(tmp_path, kind):
    whole = PACK[kind](TEXT.encode())
    middle = len(whole) // 2
    damaged = whole[:-8] + bytes(byte ^ 0x55 for byte in whole[-8:])
    cases = {
        "cut off after": [whole[:-4], whole[:middle]],
        "damaged after": [damaged, whole + b"other"],
    }
    for told, contents in cases.items():
        for content in contents:
            act = lambda c=content: read(write(tmp_path / "t", c))  # noqa: E731
            refused(DataError, act, "", f"{kind}: ", told, "try: downloading")


def test_xz_may_not_ask_for_much_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("burnbook.data.formats.compressed.XZ_MEMORY", 1 << 16)
    path = write(tmp_path / "t", lzma.compress(TEXT.encode()))
    refused(DataError, lambda: read(path), "xz: ", "after 0 decompressed bytes")


OTHERS = [
    (b"PK\x03\x04rest", "ZIP", "`unzip`"),
    (b"7z\xbc\xaf\x27\x1crest", "7-Zip", "`7z x`"),
    (b"\x04\x22\x4d\x18rest", "LZ4", "`lz4 -d`"),
    (b"PAR1rest", "Parquet", "from_parquet"),
    (b"SQLite format 3\0rest", "SQLite", "SqliteDataset"),
]
if sys.version_info < (3, 14):
    OTHERS.append((b"\x28\xb5\x2f\xfdrest", "Zstandard", "`zstd -d`"))


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case[1])
def test_other_formats_are_refused_by_their_names(tmp_path, case):
    content, name, cure = case
    path = write(tmp_path / "t.csv", content)
    refused(DataError, lambda: read(path), "csv: ", name, "gzip, bzip2 and xz", cure)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="Python 3.14 has Zstandard")
def test_zstandard_is_read_where_python_has_it(tmp_path):
    import importlib

    zstd = importlib.import_module("compression.zstd")
    path = write(tmp_path / "t", zstd.compress(TEXT.encode()))
    assert len(read(path)) == 5_000
