"""Texts: rows of CSV files by number, the real AG News, and files in folders."""

import gzip
import hashlib
import io
import pickle
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from burnbook import data
from burnbook.core.errors import DataError
from burnbook.data.dataset import csv_rows
from burnbook.data.dataset.csv_rows import LabeledTexts
from burnbook.data.dataset.nlp import texts
from burnbook.data.dataset.nlp.text_folder import TextDatasetItem, decoded
from tests.support import mirrors
from tests.support.cases import cases
from tests.support.mirrors import not_found, send

mirror, impatient = mirrors.mirror, mirrors.impatient  # fixtures
ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT.parent / "shared" / "data" / "ag_news"
needs_news = pytest.mark.skipif(
    not REAL.is_dir(), reason="the real AG News file does not lie beside the repository"
)


def write(tmp_path, content, name="test.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path, num_classes=4):
    return list(LabeledTexts(path, num_classes))


# Rows


@pytest.mark.parametrize("chunk", [1, 7, 1 << 22])
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n\n"])
def test_rows_are_found_between_quotes_and_newlines(tmp_path, monkeypatch, chunk, end):
    monkeypatch.setattr(csv_rows, "CHUNK", chunk)
    text = '"3","A ""title""","two\nlines, and a comma"\n\n4,plain,"x"\r\n"1","ü","é"'
    expected = [
        (2, 'A "title"', "two\nlines, and a comma"),
        (3, "plain", "x"),
        (0, "ü", "é"),
    ]
    path = write(tmp_path, text + end)
    assert read(path) == expected
    assert read(write(tmp_path, "\ufeff" + text)) == expected
    assert read(write(tmp_path, gzip.compress(text.encode()))) == expected


@cases(
    "row reason",
    ('"1","a"', "it does not have 3 values"),
    ('"1","a","b","c"', "it does not have 3 values"),
    ('"0","a","b"', "'0' is not one of 1 … 4"),
    ('"five","a","b"', "'five' is not one of 1 … 4"),
    ('"1","a","b', "unexpected end of data"),
    ('"1","a"x,"b"', "expected after"),
)
def test_a_row_that_does_not_fit_is_named(tmp_path, row, reason):
    path = write(tmp_path, f'"1","a","b"\n{row}\n')
    dataset = LabeledTexts(path, 4)
    assert dataset.get(0) == (0, "a", "b")
    with pytest.raises(DataError) as error:
        dataset.get(1)
    assert f"{path}, row 2 does not fit: " in str(error.value)
    assert reason in str(error.value)


def test_rows_go_to_processes_and_come_back(tmp_path):
    dataset = data.AgNewsDataset.from_csv(write(tmp_path, '"1","a","b"\n"2","c","d"\n'))
    again = pickle.loads(pickle.dumps(dataset))
    assert (
        list(again)
        == list(dataset)
        == [data.AgNewsItem(0, "a", "b"), data.AgNewsItem(1, "c", "d")]
    )
    assert (len(again), again.get(2), again.get(-1)) == (2, None, None)


def test_rows_do_not_fill_the_memory(tmp_path):
    line = b'"1","title","' + b"word " * 40 + b'"\n'
    path = write(tmp_path, line * 50_000)
    LabeledTexts(path, 4)  # what is imported on first use counts elsewhere
    tracemalloc.start()
    dataset = LabeledTexts(path, 4)
    assert dataset.get(49_999)[2].startswith("word word")
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(dataset) == 50_000
    assert kept < path.stat().st_size / 8


# AG News and DBpedia


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("BURNBOOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@needs_news
def test_the_real_news_come_from_a_folder_once(monkeypatch, cache):
    monkeypatch.setenv("BURNBOOK_AG_NEWS_MIRROR", REAL.as_uri())
    monkeypatch.setattr(texts, "AG_NEWS_MIRRORS", [])
    test = data.AgNewsDataset.test()
    assert len(test) == 7_600
    first = test.get(0)
    assert (first.label, data.AgNewsDataset.class_name(first.label)) == (2, "Business")
    assert first.title == "Fears for T N pension after talks"
    assert first.text.startswith("Fears for T N pension after talks Unions repres")
    last = test.get(7_599)
    assert (last.label, last.title) == (2, "EBay gets into rentals")
    assert last.content.endswith(
        r"adding to its already exhaustive breadth of offerings."
    )
    counts = [0] * data.AgNewsDataset.num_classes()
    for item in test:
        counts[item.label] += 1
    assert counts == [1900] * 4
    assert test.get_many([7_599, 0]) == [last, first]
    monkeypatch.delenv("BURNBOOK_AG_NEWS_MIRROR")
    assert data.AgNewsDataset.test().get(7_599) == last
    assert list(data.AgNewsDataset.from_csv(REAL / "test.csv.gz")) == list(test)


def test_an_archive_brings_both_parts(mirror, monkeypatch, cache):
    parts = {"dbpedia_csv/train.csv": b'14,"A book"," Of words."\n' * 3}
    parts["dbpedia_csv/test.csv"] = b'1,"A firm"," Of people."\n'
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    server = mirror(out.getvalue())
    monkeypatch.setenv("BURNBOOK_DB_PEDIA_MIRROR", f"{server.url}/dbpedia_csv.tgz")
    monkeypatch.setattr(data.DbPediaDataset, "counts", {"train": 3, "test": 1})
    train, test = data.DbPediaDataset.train(), data.DbPediaDataset.test()
    assert server.asked == ["/data/dbpedia_csv.tgz"]
    assert train.get(2) == data.DbPediaItem("A book", " Of words.", 13)
    assert data.DbPediaDataset.class_name(13) == "WrittenWork"
    assert test.get(0).text == "Title: A firm - Content:  Of people."
    assert {info.name: info for info in data.available_datasets()}[
        "DbPediaDataset"
    ].available


def test_own_files_need_an_own_checksum(mirror, monkeypatch, cache):
    content = b'"2","Goal","Two to one."\n'
    server = mirror(
        lambda request: (
            send(request, content)
            if request.path.endswith("train.csv")
            else not_found(request)
        )
    )
    monkeypatch.setenv("BURNBOOK_AG_NEWS_MIRROR", server.url)
    monkeypatch.setattr(texts, "AG_NEWS_MIRRORS", [])
    with pytest.raises(DataError, match="sent different content: expected 29,470,338"):
        data.AgNewsDataset.train()
    own = {"train.csv": hashlib.sha256(content).hexdigest()}
    assert list(data.AgNewsDataset.train(checksums=own)) == [
        data.AgNewsItem(1, "Goal", "Two to one.")
    ]
    with pytest.raises(DataError, match="answered 404 Not Found") as error:
        data.AgNewsDataset.test()
    assert "AgNewsDataset.from_csv(path) with a file of yours" in str(error.value)


# Files in folders


def test_texts_of_a_folder_have_its_name_as_class(tmp_path):
    for name, text in {
        "good/2.txt": "well",
        "bad/1.TXT": "ill",
        "bad/x.md": "no",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    dataset = data.TextFolderDataset.new_classification(tmp_path)
    assert [(item.text, item.label) for item in dataset] == [("ill", 0), ("well", 1)]
    assert dataset.get(0).text_path == str(tmp_path / "bad" / "1.TXT")
    assert (dataset.get(2), dataset.get(-1)) == (None, None)
    with pytest.warns(UserWarning, match="all 1 files are of one class, 'bad'"):
        few = data.TextFolderDataset.new_classification_with(tmp_path, ["md"])
    assert len(few) == 1
    few = data.TextFolderDataset.new_classification(
        tmp_path, classes=["fair", "good", "bad"]
    )
    assert [item.label for item in few] == [2, 1]
    items = [(tmp_path / "good/2.txt", "good")]
    own = data.TextFolderDataset.new_classification_with_items(items, ["bad", "good"])
    assert own.get(0) == TextDatasetItem("well", 1, str(tmp_path / "good" / "2.txt"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030", "gbk"])
def test_encodings_are_tried_in_the_order_of_burn(encoding):
    assert decoded("负面文本样本".encode(encoding)) == "负面文本样本"


def test_what_no_encoding_explains_keeps_its_readable_part():
    assert decoded(b"word \xff\xff\x00 end") == "word \ufffd\ufffd\x00 end"
    assert decoded(b"\xfe\xff\x00w\x00") == "w\ufffd"
