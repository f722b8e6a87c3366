"""Damaged and foreign tables and databases: one clear error each, nothing else."""

import json
import random
import re
import sqlite3
import threading
import time
import tracemalloc
from contextlib import closing
from dataclasses import dataclass, make_dataclass

import msgpack
import numpy as np
import pytest

from burnbook.core.errors import DataError
from burnbook.data import InMemDataset, SqliteDataset, SqliteDatasetWriter
from tests.support.articles import DbPediaItem, article, articles, run_sql
from tests.support.cases import cases
from tests.support.mutation import mutations
from tests.support.refusals import refused

MUTATIONS = mutations(1500)


def test_files_that_hold_no_dataset_are_explained(tmp_path):
    with pytest.raises(DataError, match="cannot be read: No such file"):
        SqliteDataset(tmp_path / "none.db", "train")
    with pytest.raises(DataError, match="is not a regular file"):
        SqliteDataset("/dev/null", "train")
    (tmp_path / "text.db").write_text("label,text\n" * 100)
    with pytest.raises(DataError, match="file is not a database"):
        SqliteDataset(tmp_path / "text.db", "train")
    path = articles(tmp_path / "a.db", 3)
    told = (f"{path} has no split 'test'", "splits  train", "try: 'train'")
    refused(DataError, lambda: SqliteDataset(path, "test"), "SqliteDataset: ", *told)


@cases(
    "statements message",
    (["create table train (x)"], "is not numbered"),
    (["create table train (row_id text primary key)"], "is not numbered"),
    (["create view train as select 1 as row_id"], "has no split 'train'"),
    (
        [
            "create table train (row_id integer primary key, x)",
            "insert into train values (4611686018427387904, 1)",
        ],
        "has gaps: the last row_id is 4611686018427387904",
    ),
    (
        [
            "create table train (row_id integer primary key, x)",
            "insert into train values (-5, 1)",
        ],
        "has gaps: the last row_id is -5",
    ),
)
def test_a_table_that_is_no_split_is_refused(tmp_path, statements, message):
    path = run_sql(tmp_path / "odd.db", *statements)
    with pytest.raises(DataError, match=message):
        SqliteDataset(path, "train")


@cases(
    "data why",
    (msgpack.packb(["t", "c", "x"]), "label: 'x' is not int"),
    (msgpack.packb(["t", "c"]), "2 values where 3 are needed"),
    (msgpack.packb(["t", "c", 1, 2]), "4 values where 3 are needed"),
    (msgpack.packb({"title": "t"}), "content, label is missing"),
    (msgpack.packb(["t", "c", 1]) + b"\0", "1 bytes follow the item"),
    (b"\xdd\xff\xff\xff\xff", "this is not MessagePack|exceeds|incomplete"),
    (b"\xc1", "this is not MessagePack"),
    (b"", "incomplete|no MessagePack"),
    (b"\x91" * 5000, "this is not MessagePack|too deep|incomplete"),
    (b"\x93\xa1\xff\xa0\x00", "utf-8"),
    (b"\x81\x90\x00", "unhashable"),
    (msgpack.packb(msgpack.ExtType(5, b"")), "an extension of type 5"),
    ("text", "str is not bytes"),
)
def test_a_damaged_row_is_named(tmp_path, data, why):
    path = articles(tmp_path / "a.db", 2)
    run_sql(path, ("update train set item = ? where row_id = 2", (data,)))
    dataset = SqliteDataset(path, "train", DbPediaItem)
    assert dataset.get(0) == article(0)
    with pytest.raises(DataError, match="row 2 of train does not fit: ") as error:
        dataset.get(1)
    assert len(str(error.value)) < 400
    with pytest.raises(DataError, match=why):
        dataset.get_many([0, 1])


def outcome(read, limit):
    """Read: "" when it went well, else our error; always quick and small."""
    began, text = time.process_time(), ""
    tracemalloc.start()
    try:
        read()
    except DataError as error:
        text = str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < limit
    assert time.process_time() - began < 30  # it ends, however slow the machine is
    assert len(text) < 1000
    return text


def mutated(data, luck, values):
    """Change some bytes, and now and then cut, double or move a piece."""
    data = bytearray(data)
    for _ in range(luck.choice([1, 1, 3, 30])):
        data[luck.randrange(len(data))] = luck.choice(values)
    a, b = sorted(luck.choices(range(len(data)), k=2))
    return luck.choice(
        [data] * 9 + [data[:a], data[:b] + data[a:], data[b:] + data[:b]]
    )


def test_mutated_databases_give_items_or_one_error_of_ours(tmp_path):
    packed = articles(tmp_path / "a.db", 40).read_bytes()
    with SqliteDatasetWriter(tmp_path / "b.db") as writer:
        writer.write_columns("train", [vars(article(i)) for i in range(40)])
    originals = [packed, (tmp_path / "b.db").read_bytes()]
    path, luck = tmp_path / "bad.db", random.Random(11)

    def read():
        dataset = SqliteDataset(path, "train", luck.choice([DbPediaItem, None]))
        assert len(dataset) < 10_000
        dataset.get(luck.randrange(40))
        dataset.get_many(range(min(len(dataset), 40)))

    texts = set()
    for number in range(MUTATIONS):
        values = [0, 1, 127, 128, 255, 13]
        path.write_bytes(mutated(originals[number % 2], luck, values))
        texts.add(outcome(read, limit=500_000))
    assert "" in texts
    assert len(texts) > 10


@dataclass
class Row:
    age: int
    bmi: float | None
    smoker: bool
    size: np.uint8
    tags: list[str]
    inner: DbPediaItem | None = None


TABLE = "".join(
    f'{age},{age / 3},yes,{age},"[""a, b"", ""c""]",\r\n' for age in range(40)
)
CSV = "age,bmi,smoker,size,tags,inner\r\n" + TABLE
OBJECT = {"age": 1, "bmi": None, "smoker": True, "size": 2, "tags": ["a"]}
JSON = (json.dumps({**OBJECT, "inner": vars(article(2))}) + "\n") * 40


@pytest.mark.parametrize("item", [Row, None])
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_mutated_tables_give_items_or_one_error_of_ours(tmp_path, kind, item):
    path, luck = tmp_path / f"bad.{kind}", random.Random(12)
    original = (CSV if kind == "csv" else JSON).encode()
    from_file = getattr(InMemDataset, "from_csv" if kind == "csv" else "from_json_rows")
    values = b"\n\r\0\"',;[]{}:-+.eE_019ntaN\\ \xff\xc3\x80"
    path.write_bytes(original)
    assert len(from_file(path, item)) == 40
    texts = set()
    for _ in range(MUTATIONS // 4):
        path.write_bytes(mutated(original, luck, values))
        texts.add(outcome(lambda: from_file(path, item), limit=1_000_000))
    assert len(texts) > 10


@cases(
    "content why",
    ("age\n" + "9" * 5000, "line 2 does not fit: age: '999"),
    ("age\n1e999999999\n", "line 2 does not fit: age: '1e999999999' is not int"),
    ("age\n1_000\n", "line 2 does not fit: age: '1_000' is not int"),
    ("age\n" + "1" * 200_000, "field larger than field limit"),
    ("age\n\0\n", "line 2 does not fit"),
    ('age\n"1\n' + "\n" * 9, "line 2 does not fit: unexpected end of data"),
    ("age,age\n1,2\n", "has the column 'age' twice"),
    ("size\n256\n", "has no column age"),
    ("age" + "," * 300_000 + "\n1\n", "line 2 does not fit: 1 values"),
    ("\n\n\n", "has no column age|0 items"),
)
def test_tables_that_ask_for_much_or_mean_nothing_are_refused(tmp_path, content, why):
    @dataclass
    class Aged:
        age: int

    (tmp_path / "t.csv").write_text(content)
    text = outcome(
        lambda: InMemDataset.from_csv(tmp_path / "t.csv", Aged), 100 * 300_000
    )
    assert re.search(why, text or "0 items")


def test_devices_are_no_tables():
    for read in (InMemDataset.from_csv, InMemDataset.from_json_rows):
        with pytest.raises(DataError, match="/dev/zero: this is not a regular"):
            read("/dev/zero")


@cases(
    "row why",
    ({"age": "1"}, "age: '1' is not int"),
    ({"age": 1.0}, "age: 1.0 is not int"),
    ({"age": True}, "age: True is not int"),
    ({"bmi": "x"}, "bmi: 'x' is not float"),
    ({"smoker": 2}, "smoker: 2 is not bool"),
    ({"size": 256}, "size: 256 is not uint8"),
    ({"size": -1}, "size: -1 is not uint8"),
    ({"tags": ["a", 2]}, r"tags: \[1\]: 2 is not str"),
    ({"tags": "a"}, r"tags: 'a' is not list\[str\]"),
    ({"inner": 3}, "inner: an object in braces is needed, got int"),
    ({"inner": {"title": 1}}, "inner: content, label is missing"),
)
def test_a_json_row_names_the_field_that_does_not_fit(tmp_path, row, why):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(OBJECT) + "\n" + json.dumps({**OBJECT, **row}))
    with pytest.raises(DataError, match=f"rows.jsonl, line 2 does not fit: {why}"):
        InMemDataset.from_json_rows(path, Row)


@cases("text kind", ("old", "int"), ("1_0", "float"), ("maybe", "bool"))
def test_a_field_that_may_be_missing_says_so(tmp_path, text, kind):
    path, given = tmp_path / "t.csv", {"int": int, "float": float, "bool": bool}[kind]
    item = make_dataclass("Aged", [("age", given | None)])
    path.write_text(f'age\n""\n{text}\n')
    with pytest.raises(DataError, match=rf"age: '{text}' is not {kind} \| None$"):
        InMemDataset.from_csv(path, item)


def test_a_reader_waits_for_no_writer(tmp_path):
    """A database that another program has locked is explained, not waited for."""
    path = articles(tmp_path / "a.db", 3)
    dataset = SqliteDataset(path, "train")
    dataset.close()
    locked, done = threading.Event(), threading.Event()

    def hold():
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("begin exclusive")
            locked.set()
            done.wait(5)

    thread = threading.Thread(target=hold)
    thread.start()
    locked.wait(5)
    try:
        with pytest.raises(DataError, match="database is locked"):
            dataset.get(0)
    finally:
        done.set()
        thread.join()
