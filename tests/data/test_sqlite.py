"""Datasets in SQLite files: Burn's layout, whole files only, damage explained."""

import datetime
import enum
import gc
import os
import pickle
import random
import sqlite3
import subprocess
import sys
import textwrap
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

import msgpack
import numpy as np
import pytest
from numpy.typing import NDArray

from burnbook import data
from burnbook.core.errors import DataError
from tests.support.articles import DbPediaItem, article, articles, run_sql
from tests.support.cases import cases
from tests.support.refusals import refused

ROOT = Path(__file__).resolve().parents[2]


class Color(enum.Enum):
    Red = "r"
    Green = "g"


@dataclass
class Inner:
    x: float
    tags: list[str] = field(default_factory=list)


@dataclass
class Everything:
    flag: bool
    count: int
    ratio: float
    text: str
    raw: bytes
    pixels: NDArray[np.uint8]
    color: Color
    inner: Inner
    maybe: int | None
    pair: tuple[int, str]
    table: dict[str, float]
    mode: Literal["a", "b"] = "a"

    def __eq__(self, other):
        same = np.array_equal(self.pixels, other.pixels)
        mine = {**vars(self), "pixels": 0}
        return same and mine == {**vars(other), "pixels": 0}


def everything(**changes):
    pixels = np.arange(6, dtype=np.uint8).reshape(2, 3)
    inner, table = Inner(1.5, ["p"]), {"k": 2.0}
    plain = (True, -(2**40), 0.5, "é", b"\0\xff", pixels)
    item = Everything(*plain, Color.Green, inner, None, (7, "q"), table)
    return replace(item, **changes)


def tables(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("select name, sql from sqlite_master").fetchall()


# Reading what was written


def test_items_come_back_as_objects_of_their_class(tmp_path):
    path = articles(tmp_path / "dbpedia.db")
    dataset = data.SqliteDataset.from_db_file(path, "train", DbPediaItem)
    assert len(dataset) == 10
    assert list(dataset) == [article(i) for i in range(10)]
    assert dataset.get(10) is None
    assert dataset.get(-1) is None
    assert dataset.get_many([3, 9, 3, 0]) == [article(i) for i in (3, 9, 3, 0)]
    assert dataset.get_many([]) == []
    assert dataset.db_file() == path
    assert dataset.split() == "train"
    assert repr(dataset) == "SqliteDataset(dbpedia.db, train, 10 items)"


def test_many_scattered_rows_come_in_their_order(tmp_path):
    path = articles(tmp_path / "a.db", 2000)
    dataset = data.SqliteDataset(path, "train", DbPediaItem)
    wanted = random.Random(1).choices(range(2000), k=1500)
    assert dataset.get_many(wanted) == [article(i) for i in wanted]
    assert dataset.get_many(range(100, 1900)) == [article(i) for i in range(100, 1900)]
    assert dataset.get_many(range(9, 0, -3)) == [article(i) for i in (9, 6, 3)]


def test_an_index_that_is_not_there_is_named(tmp_path):
    dataset = data.SqliteDataset(articles(tmp_path / "a.db", 3), "train")
    facts = ("item 3\n", "SqliteDataset(a.db, train, 3 items)", "index    3")
    refused(DataError, lambda: dataset.get_many([0, 3]), "SqliteDataset: ", *facts)


@pytest.mark.parametrize("packed", [True, False])
def test_every_kind_of_field_comes_back(tmp_path, packed):
    items = [everything(), everything(maybe=3, flag=False, mode="b")]
    with data.SqliteDatasetWriter(tmp_path / "e.db") as writer:
        if packed:
            assert [writer.write("t", item) for item in items] == [0, 1]
        else:
            rows = [{**vars(i), "color": i.color.name} for i in items]
            assert writer.write_columns("t", rows, {"maybe": "integer"}) == 2
    found = list(data.SqliteDataset(tmp_path / "e.db", "t", Everything))
    assert found == items
    assert found[0].pixels.dtype == np.uint8
    assert (found[0].color, type(found[0].flag)) == (Color.Green, bool)


class Pair(NamedTuple):
    a: int
    b: str = "none"


class Typed(TypedDict):
    a: int
    b: str


@cases(
    "kind item stored",
    (None, {"a": [1, None]}, {"a": [1, None]}),
    (None, 7, 7),
    (int, 7, 7),
    (str, "seven", "seven"),
    (list[float], [1, 2.5], [1.0, 2.5]),
    (tuple[int, str], (1, "x"), (1, "x")),
    (dict[int, str], {1: "x"}, {1: "x"}),
    (Pair, Pair(1, "x"), Pair(1, "x")),
    (Pair, [1], Pair(1, "none")),
    (Typed, {"a": 1, "b": "x"}, {"a": 1, "b": "x"}),
    (Inner, {"x": 1, "more": 2}, Inner(1.0)),
    (np.uint8, 255, np.uint8(255)),
    (frozenset[int], {1, 2}, frozenset({1, 2})),
    (Any, [[]], [[]]),
)
def test_an_item_may_be_of_any_plain_kind(tmp_path, kind, item, stored):
    with data.SqliteDatasetWriter(tmp_path / "k.db") as writer:
        writer.write("train", item)
    found = data.SqliteDataset(tmp_path / "k.db", "train", kind).get(0)
    assert found == stored
    assert type(found) is type(stored)


def test_without_a_class_columns_become_dicts(tmp_path):
    rows = [{"x": 0.5, "day": datetime.date(2024, 2, 29), "n": None, "b": b"\1"}]
    with data.SqliteDatasetWriter(tmp_path / "c.db") as writer:
        writer.write_columns("train", rows)
    found = data.SqliteDataset(tmp_path / "c.db", "train").get(0)
    assert found == {"x": 0.5, "day": "2024-02-29", "n": None, "b": b"\1"}

    @dataclass
    class Row:
        day: datetime.date
        x: float
        missing: str = "default"

    item = data.SqliteDataset(tmp_path / "c.db", "train", Row).get(0)
    assert item == Row(datetime.date(2024, 2, 29), 0.5)


def test_a_lone_blob_named_item_stays_a_column(tmp_path):
    with data.SqliteDatasetWriter(tmp_path / "c.db") as writer:
        writer.write_columns("train", [{"item": b"\xc1 no MessagePack"}])
    found = data.SqliteDataset(tmp_path / "c.db", "train").get(0)
    assert found == {"item": b"\xc1 no MessagePack"}


def test_splits_with_any_name_live_side_by_side(tmp_path):
    names = ["train", "test", "a b", 'quo"te', "select", "ä; drop table train"]
    with data.SqliteDatasetWriter(tmp_path / "s.db") as writer:
        for i, name in enumerate(names):
            assert [writer.write(name, j) for j in range(i + 1)] == list(range(i + 1))
    sizes = [len(data.SqliteDataset(tmp_path / "s.db", name)) for name in names]
    assert sizes == [1, 2, 3, 4, 5, 6]


# Burn's layout


def test_the_layout_is_that_of_burn(tmp_path):
    path = articles(tmp_path / "a.db", 2)
    assert tables(path)[0] == (
        "train",
        'CREATE TABLE "train" (row_id integer primary key autoincrement not null, '
        '"item" blob not null)',
    )
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("select row_id, item from train").fetchall()
    assert rows == [
        (i + 1, msgpack.packb([*vars(article(i)).values()])) for i in (0, 1)
    ]


def test_a_database_of_rust_is_read(tmp_path):
    """Column names in any case, fields as arrays, Vec<u8> as numbers, enums by name."""

    @dataclass
    class Raw:
        image_bytes: bytes
        color: Color
        label: int

    rows = [
        msgpack.packb([[0, 128, 255], "Red", 3]),
        msgpack.packb([b"ab", "Green", 4]),
    ]
    path = run_sql(
        tmp_path / "rust.db",
        "create table train (ROW_ID INTEGER primary key autoincrement not null, "
        "Item BLOB not null)",
        *[("insert into train (item) values (?)", (row,)) for row in rows],
    )
    assert list(data.SqliteDataset(path, "train", Raw)) == [
        Raw(b"\0\x80\xff", Color.Red, 3),
        Raw(b"ab", Color.Green, 4),
    ]


def test_extra_columns_are_left_out_and_never_computed(tmp_path):
    path = run_sql(
        tmp_path / "x.db",
        "create table train (label integer, row_id integer primary key, title text, "
        "content text, extra blob, bomb blob generated always as (zeroblob(9e8)))",
        "insert into train values (3, 1, 'a', 'b', x'00')",
    )
    assert list(data.SqliteDataset(path, "train", DbPediaItem)) == [
        DbPediaItem("a", "b", 3)
    ]
    found = data.SqliteDataset(path, "train").get(0)
    assert found == {"label": 3, "title": "a", "content": "b", "extra": b"\0"}


def test_length_is_the_last_row_and_a_gap_has_no_item(tmp_path):
    path = articles(tmp_path / "a.db", 5)
    run_sql(path, "delete from train where row_id = 3")
    dataset = data.SqliteDataset(path, "train", DbPediaItem)
    assert len(dataset) == 5
    assert dataset.get(2) is None
    for wanted in ([1, 2, 3], [0, 2, 4], [2]):
        with pytest.raises(DataError, match="there is no item 2"):
            dataset.get_many(wanted)


# The dataset in use


def book_split(dataset):
    """The book's chain: shuffled, then the first 80 percent."""
    shuffled = data.ShuffledDataset.with_seed(dataset, 42)
    return data.PartialDataset(shuffled, 0, len(dataset) * 8 // 10)


def test_the_transforms_of_the_book_work_on_a_dataset_on_disk(tmp_path):
    dataset = data.SqliteDataset(articles(tmp_path / "a.db", 50), "train", DbPediaItem)
    sampled = data.SamplerDataset(dataset, 10_000)
    assert len(sampled) == 10_000
    assert sampled.get_many(range(300)) == [sampled.get(i) for i in range(300)]
    in_memory = data.InMemDataset(article(i) for i in range(50))
    assert list(book_split(dataset)) == list(book_split(in_memory))


def labels(items):
    return [item.label for item in items]


@pytest.mark.parametrize("seed", [None, 42])
def test_the_order_is_the_same_for_any_number_of_workers(tmp_path, seed):
    dataset = data.SqliteDataset(articles(tmp_path / "a.db", 500), "train", DbPediaItem)
    loader = data.DataLoaderBuilder(labels).batch_size(32)
    loader = loader if seed is None else loader.shuffle(seed)
    plain = loader.build(dataset)
    epochs = [list(plain), list(plain)]
    for workers in (1, 3, 8):
        threaded = loader.num_workers(workers).build(dataset)
        assert [list(threaded), list(threaded)] == epochs
    assert (epochs[0] == epochs[1]) == (seed is None)


def test_spawned_processes_open_the_file_anew(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    dataset = data.SqliteDataset(articles(tmp_path / "a.db", 100), "train")
    loader = data.DataLoaderBuilder(len).batch_size(16).num_workers(1)
    assert pickle.loads(pickle.dumps(dataset)).get(3) == dataset.get(3)
    spawned = loader.worker_processes().build(dataset)
    assert list(spawned) == [16] * 6 + [4]
    spawned.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_has_connections_of_its_own(tmp_path):
    dataset = data.SqliteDataset(articles(tmp_path / "a.db", 100), "train", DbPediaItem)
    code = f"""
        import os
        from burnbook.data import SqliteDataset
        dataset = SqliteDataset({str(dataset.db_file())!r}, "train")
        assert dataset.get(5)[0] == "title 5"
        if not (child := os.fork()):
            right = dataset.get(6)[0] == "title 6"
            os._exit(not (right and len(dataset._connections.idle) == 2))
        assert os.waitpid(child, 0)[1] == 0
        assert dataset.get(7)[0] == "title 7"
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_threads_share_a_dataset(tmp_path):
    dataset = data.SqliteDataset(articles(tmp_path / "a.db", 300), "train", DbPediaItem)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(dataset.get, [i % 300 for i in range(3000)]))
    assert found == [article(i % 300) for i in range(3000)]
    (idle,) = dataset._connections.idle.values()
    assert 1 <= len(idle) <= 8
    dataset.close()
    assert idle == []
    assert dataset.get(1) == article(1)


def test_reading_takes_the_same_memory_however_long_the_table(tmp_path):
    with data.SqliteDatasetWriter(tmp_path / "long.db") as writer:
        for _ in range(20_000):
            writer.write("train", "x" * 100)
    dataset = data.SqliteDataset(tmp_path / "long.db", "train")
    loader = data.DataLoaderBuilder(len).batch_size(64).num_workers(2).build(dataset)
    assert sum(loader) == 20_000
    gc.collect()
    tracemalloc.start()
    try:
        assert sum(loader) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 500_000  # of 2.2 MB
    finally:
        tracemalloc.stop()


def test_the_file_is_only_read(tmp_path):
    path = articles(tmp_path / "a.db", 3)
    before = path.read_bytes()
    path.chmod(0o444)
    dataset = data.SqliteDataset(path, "train")
    with pytest.raises(DataError, match="readonly"):
        dataset._connections.rows("delete from train")
    assert len(list(dataset)) == 3
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.db"]
