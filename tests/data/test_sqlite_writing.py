"""Databases that are written: whole or not at all, whoever kills whom."""

import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

from burnbook.core.errors import DataError
from burnbook.data import SqliteDataset, SqliteDatasetStorage, SqliteDatasetWriter
from tests.support.articles import DbPediaItem, article, articles
from tests.support.cases import cases


def test_the_storage_knows_where_its_database_is(tmp_path, monkeypatch):
    monkeypatch.setenv("BURNBOOK_CACHE", str(tmp_path))
    storage = SqliteDatasetStorage.from_name("fancyzhx/ag_news")
    assert storage.db_file() == tmp_path / "fancyzhxag_news.db"
    assert SqliteDatasetStorage.base_dir() == tmp_path
    assert not storage.exists()
    with storage.writer() as writer:
        writer.write("train", article(1))
    assert storage.exists()
    assert list(storage.reader("train", DbPediaItem)) == [article(1)]
    moved = storage.with_base_dir(tmp_path / "other")
    assert moved.db_file() == tmp_path / "other" / "fancyzhxag_news.db"
    exact = SqliteDatasetStorage.from_file(storage.db_file())
    assert exact.reader("train").get(0) == ["title 1", "word ", 1]


def test_the_database_appears_when_it_is_completed(tmp_path):
    writer = SqliteDatasetWriter(tmp_path / "a.db")
    writer.write("train", 1)
    assert not (tmp_path / "a.db").exists()
    assert not writer.is_completed()
    writer.set_completed()
    writer.set_completed()
    assert writer.is_completed()
    assert [p.name for p in tmp_path.iterdir()] == ["a.db"]
    with pytest.raises(DataError, match=r"a.db is completed, nothing can be added"):
        writer.write("train", 2)


def test_an_abandoned_database_leaves_nothing(tmp_path):
    writer = SqliteDatasetWriter(tmp_path / "a.db")
    writer.write("train", 1)
    assert len(list(tmp_path.iterdir())) == 1
    del writer
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    with suppress(KeyError), SqliteDatasetWriter(tmp_path / "a.db") as writer:
        writer.write("train", 1)
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match=r"a.db was dropped"):
        writer.write("train", 1)


def test_an_old_database_stays_until_the_new_one_is_whole(tmp_path):
    path = articles(tmp_path / "a.db", 3)
    with pytest.raises(DataError, match="already exists, and overwrite is False"):
        SqliteDatasetWriter(path)
    reader = SqliteDataset(path, "train", DbPediaItem)
    with SqliteDatasetWriter(path, overwrite=True) as writer:
        writer.write("train", article(99))
        assert len(SqliteDataset(path, "train")) == 3
    assert list(SqliteDataset(path, "train", DbPediaItem)) == [article(99)]
    assert reader.get(2) == article(2)  # it goes on reading the file it opened


def test_threads_write_every_item_once(tmp_path):
    with (
        SqliteDatasetWriter(tmp_path / "a.db") as writer,
        ThreadPoolExecutor(8) as pool,
    ):
        written = pool.map(lambda i: (writer.write("train", i), i), range(2000))
        places = dict(written)
    assert sorted(places) == list(range(2000))
    assert list(SqliteDataset(tmp_path / "a.db", "train")) == [
        places[i] for i in range(2000)
    ]


WRITE_FOR_EVER = """
    import sys
    from burnbook.data import SqliteDatasetWriter
    while True:
        with SqliteDatasetWriter(sys.argv[1], overwrite=True) as writer:
            for i in range(3000):
                writer.write("train", [i, "x" * 200])
        print("whole", flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_writer_leaves_a_whole_database_or_none(tmp_path):
    path, luck = tmp_path / "a.db", random.Random(5)
    command = [sys.executable, "-c", textwrap.dedent(WRITE_FOR_EVER), str(path)]
    for when in range(4):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            if when:
                process.stdout.readline()
            else:  # in the middle of the first
                while not list(tmp_path.glob(".burnbook-*")):
                    time.sleep(0.001)
            time.sleep(luck.random() * 0.03)
            process.kill()
        if path.exists():
            rows = SqliteDataset(path, "train").get_many(range(3000))
            assert [row[0] for row in rows] == list(range(3000))
        else:
            assert when == 0
    left = list(tmp_path.glob(".burnbook-*"))
    for old in left:
        os.utime(old, (0, 0))
    SqliteDatasetWriter(path, overwrite=True).close()
    assert [p.name for p in tmp_path.iterdir()] == ["a.db"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_fails_at_the_end_keeps_the_old_database(
    call, tmp_path, monkeypatch
):
    path = articles(tmp_path / "a.db", 3)
    writer = SqliteDatasetWriter(path, overwrite=True)
    writer.write("train", 1)

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(DataError, match="the disk is full"):
        writer.set_completed()
    monkeypatch.undo()
    assert not writer.is_completed()
    assert len(SqliteDataset(path, "train")) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["a.db"]


def test_a_disk_that_is_full_while_writing_drops_the_new_database(tmp_path):
    writer = SqliteDatasetWriter(tmp_path / "a.db")
    writer._connection.execute("pragma max_page_count = 20")
    rows = ({"text": "x" * 1000} for _ in range(1000))
    with pytest.raises(DataError, match="database or disk is full"):
        writer.write_columns("train", rows)
    assert list(tmp_path.iterdir()) == []


@cases(
    "item why",
    (None, "None cannot be written as an item"),
    (2**70, "int cannot be written"),
    ("\ud800", "str cannot be written"),
    (object(), "object cannot be stored"),
    ([{1: {object()}}], "object cannot be stored"),
    (np.array(["a"]), "an array of <U1 cannot be stored"),
)
def test_what_cannot_be_stored_is_refused_and_the_rest_is_kept(tmp_path, item, why):
    with SqliteDatasetWriter(tmp_path / "a.db") as writer:
        writer.write("train", 1)
        with pytest.raises(DataError, match=why):
            writer.write("train", item)
        assert writer.write("train", 2) == 1
    assert list(SqliteDataset(tmp_path / "a.db", "train")) == [1, 2]


def test_columns_and_packed_items_do_not_mix(tmp_path):
    with SqliteDatasetWriter(tmp_path / "a.db") as writer:
        writer.write_columns("train", [{"a": 1}])
        with pytest.raises(DataError, match="the split 'train' is written already"):
            writer.write("train", 1)
        with pytest.raises(DataError, match="row 1 of test has different fields"):
            writer.write_columns("test", [{"a": 1}, {"b": 1}])
    assert SqliteDataset(tmp_path / "a.db", "train").get(0) == {"a": 1}
