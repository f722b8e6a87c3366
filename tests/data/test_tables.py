"""Dataframes and rows of files as datasets: typed, picklable, the same for workers."""

import datetime
import enum
import json
import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from burnbook.core.errors import ConfigError, DataError
from burnbook.data import (
    DataframeDataset,
    DataLoaderBuilder,
    InMemDataset,
    SqliteDataset,
    SqliteDatasetWriter,
)
from tests.support.refusals import refused


class Kind(enum.Enum):
    Near = "NEAR BAY"
    Far = "INLAND"


@dataclass
class House:
    rooms: int
    value: float
    kind: Kind
    gaps: float | None = None
    sizes: list[int] = field(default_factory=list)


@dataclass
class Digit:
    pixels: NDArray[np.float32]
    label: np.uint8

    def __eq__(self, other):
        same = np.array_equal(self.pixels, other.pixels)
        return same and self.label == other.label


# Rows of files


def test_texts_become_what_the_annotations_say(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text(
        "value,rooms,kind,sizes,other\n"
        '452600.0,8,NEAR BAY,"[1, 2]",x\n'
        "1e5, 9 ,Far,[],y\n"
    )
    assert list(InMemDataset.from_csv(path, House)) == [
        House(8, 452600.0, Kind.Near, None, [1, 2]),
        House(9, 100000.0, Kind.Far, None, []),
    ]


def test_an_empty_text_is_none_only_where_the_annotation_allows_it(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text("value,rooms,kind,gaps,sizes\n1,2,Far,,[]\n1,,Far,3,[]\n")
    first = f"rows: {path}, line 3"
    refused(
        DataError, lambda: InMemDataset.from_csv(path, House), first, "rooms: '' is"
    )


def test_a_table_without_quotes_takes_them_as_letters(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text('word\tcount\n"\t3\n')
    rows = InMemDataset.from_csv(path, delimiter="\t", quote=None)
    assert list(rows) == [{"word": '"', "count": "3"}]
    with pytest.raises(ConfigError, match="columns cannot be separated by 'tab'"):
        InMemDataset.from_csv(path, delimiter="tab")


def test_a_json_row_makes_arrays_and_nested_items(tmp_path):
    @dataclass
    class Pair:
        left: Digit
        right: Digit | None

    rows = [{"left": {"pixels": [[0, 0.5]], "label": 3}, "right": None}]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    (pair,) = InMemDataset.from_json_rows(path, Pair)
    assert pair.left == Digit(np.array([[0, 0.5]], np.float32), np.uint8(3))
    assert pair.left.pixels.dtype == np.float32
    assert pair.right is None


def test_bytes_in_text_are_numbers_or_base64(tmp_path):
    @dataclass
    class Raw:
        data: bytes
        parts: list[bytes]

    rows = [{"data": [0, 255], "parts": ["AP8=", []]}, {"data": "AP8", "parts": []}]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(rows[0]))
    assert InMemDataset.from_json_rows(path, Raw).get(0) == Raw(
        b"\0\xff", [b"\0\xff", b""]
    )
    with SqliteDatasetWriter(tmp_path / "raw.db") as writer:
        writer.write_columns("train", [{"data": b"\1", "parts": [b"\0\xff", b""]}])
    stored = SqliteDataset(tmp_path / "raw.db", "train", Raw)
    assert stored.get(0) == Raw(b"\1", [b"\0\xff", b""])
    path.write_text(json.dumps(rows[1]))
    with pytest.raises(DataError, match="data: 'AP8' is not bytes"):
        InMemDataset.from_json_rows(path, Raw)


# Dataframes


@dataclass
class Row:
    flag: bool
    count: int
    ratio: float
    text: str
    raw: bytes
    day: datetime.date
    maybe: int | None
    label: int = 5


@dataclass
class Numbered:
    day: int
    time: int | None
    pixels: NDArray[np.float32]


@pytest.fixture
def frame():
    polars = pytest.importorskip("polars", reason="pip install 'burnbook[dataframe]'")
    size = 50
    return polars.DataFrame(
        {
            "text": [f"row {i}" for i in range(size)],
            "count": range(size),
            "ratio": [i / 4 for i in range(size)],
            "flag": [i % 2 == 0 for i in range(size)],
            "raw": [bytes([i]) for i in range(size)],
            "day": [datetime.date(1970, 1, 1 + i % 28) for i in range(size)],
            "time": [datetime.time(0, 0, 1)] * size,
            "maybe": [None if i % 3 else i for i in range(size)],
            "pixels": [[0.5, i] for i in range(size)],
        },
        strict=False,
    )


def row(i):
    day = datetime.date(1970, 1, 1 + i % 28)
    maybe = None if i % 3 else i
    return Row(i % 2 == 0, i, i / 4, f"row {i}", bytes([i]), day, maybe)


def test_rows_of_a_dataframe_become_items(frame):
    dataset = DataframeDataset(frame, Row)
    assert list(dataset) == [row(i) for i in range(50)]
    assert dataset.get_many([7, 7, 0]) == [row(7), row(7), row(0)]
    assert dataset.get_many([]) == []
    assert (dataset.get(50), dataset.get(-1), len(dataset)) == (None, None, 50)
    assert repr(dataset) == "DataframeDataset(50 items)"
    assert list(pickle.loads(pickle.dumps(dataset))) == list(dataset)
    with pytest.raises(DataError, match="there is no item 50"):
        dataset.get_many([0, 50])


def test_dates_and_times_become_numbers_where_an_int_is_asked_for(frame):
    item = DataframeDataset(frame.lazy(), Numbered).get(9)
    assert (item.day, item.time) == (9, 1_000_000_000)
    assert item.pixels.dtype == np.float32
    assert item.pixels.tolist() == [0.5, 9.0]


def test_without_a_class_rows_become_dicts(frame):
    dataset = DataframeDataset(frame.select("text", "count"))
    assert dataset.get(3) == {"text": "row 3", "count": 3}
    assert dataset.get_many([4]) == [{"text": "row 4", "count": 4}]


def test_a_dataframe_gives_the_same_batches_for_any_number_of_workers(frame):
    dataset = DataframeDataset(frame, Row)
    loader = DataLoaderBuilder(list).batch_size(8).shuffle(42)
    plain = list(loader.build(dataset))
    assert len(plain) == 7
    for workers in (1, 3):
        assert list(loader.num_workers(workers).build(dataset)) == plain


def test_a_row_of_a_dataframe_that_does_not_fit_is_named(frame):
    @dataclass
    class Strict:
        text: str
        maybe: int

    dataset = DataframeDataset(frame, Strict)
    assert dataset.get(0) == Strict("row 0", 0)
    told = ("maybe: None is not int\n", "  columns  text, maybe")
    refused(DataError, lambda: dataset.get(1), "DataframeDataset: row 1", *told)


def test_a_missing_column_is_named(frame):
    with pytest.raises(DataError, match="the dataframe has no column count"):
        DataframeDataset(frame.drop("count"), Row)


# A stand-in, so that the way in is tested without Polars too


class DataFrame:
    """As much of a dataframe as the dataset asks for, from a module of that name."""

    __module__ = "polars.dataframe"

    def __init__(self, rows):
        self.data = rows
        self.height = len(rows)
        self.columns = list(rows[0])
        self.schema = dict.fromkeys(rows[0], Plain)

    def row(self, index):
        return tuple(self.data[index].values())

    def rows(self):
        return [tuple(one.values()) for one in self.data]

    def __getitem__(self, indices):
        return DataFrame([self.data[i] for i in indices])

    def select(self, names):
        return DataFrame([{name: one[name] for name in names} for one in self.data])

    def with_columns(self, changes):
        assert changes == []
        return self


class Plain:
    @staticmethod
    def is_temporal():
        return False


def test_a_frame_is_asked_for_rows_only():
    frame = DataFrame([{"rooms": i, "kind": "Far", "value": 0.5} for i in range(4)])
    dataset = DataframeDataset(frame, House)
    assert dataset.get_many([2, 0]) == [
        House(2, 0.5, Kind.Far),
        House(0, 0.5, Kind.Far),
    ]
    assert dataset.get(1) == House(1, 0.5, Kind.Far)
    told = ("list is not a dataframe", "pandas and Polars, tables of Arrow", "try: pan")
    refused(DataError, lambda: DataframeDataset([]), "DataframeDataset: ", *told)


def test_a_gzipped_table_is_read(tmp_path, monkeypatch):
    import gzip

    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress("\ufeffname,age\nÉva,3\n".encode()))
    rows = [*InMemDataset.from_csv(path)]
    assert rows == [{"name": "Éva", "age": "3"}]
    path.write_bytes(gzip.compress(b"a\n" + b"1\n" * 5_000))
    monkeypatch.setattr("burnbook.data.formats.tables.SMALL", 1_000)
    with pytest.raises(DataError, match="unpacks to more than"):
        InMemDataset.from_csv(path)
