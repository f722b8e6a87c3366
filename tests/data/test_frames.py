"""Tables of pandas, Polars and Arrow: the same rows, and nothing silently wrong."""

import datetime
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from burnbook.core.errors import DataError
from burnbook.data import (
    ComposedDataset,
    DataframeDataset,
    DataLoaderBuilder,
    InMemDataset,
    PartialDataset,
    ShuffledDataset,
    as_dataset,
)
from tests.support.refusals import refused

DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 13, 30)
COLUMNS = {
    "whole": [1, None, 3],
    "real": [0.5, None, 2.0],
    "flag": [True, None, False],
    "text": ["a", None, ""],
    "day": [DAY, None, DAY],
    "moment": [MOMENT, None, MOMENT],
    "list": [[1, 2], None, []],
    "span": [datetime.timedelta(seconds=3), None, datetime.timedelta(0)],
}
ROWS = [
    dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)
]


def polars_table():
    return pytest.importorskip("polars").DataFrame(COLUMNS)


def lazy_table():
    return polars_table().lazy()


def arrow_table():
    return pytest.importorskip("pyarrow").table(COLUMNS)


def arrow_batch():
    return arrow_table().to_batches()[0]


def arrow_chunks():
    arrow = pytest.importorskip("pyarrow")
    table = arrow_table()
    return arrow.concat_tables([table.slice(0, 1), table.slice(1)])


def nullable_pandas():
    """As pandas keeps missing values without making floats of whole numbers."""
    pandas = pytest.importorskip("pandas")
    kinds = {"whole": "Int64", "real": "Float64", "flag": "boolean", "text": "string"}
    frame = pandas.DataFrame(
        {
            name: pandas.Series(c, dtype=kinds.get(name, "object"))
            for name, c in COLUMNS.items()
        }
    )
    return frame.astype({"moment": "datetime64[us]", "span": "timedelta64[us]"})


def arrow_pandas():
    pandas = pytest.importorskip("pandas")
    return arrow_table().to_pandas(types_mapper=pandas.ArrowDtype)


TABLES = [
    polars_table, lazy_table, arrow_table, arrow_batch, arrow_chunks, nullable_pandas,
    arrow_pandas,
]  # fmt: skip


@dataclass
class Row:
    whole: int | None
    text: str | None
    day: datetime.date | None
    list: list[int] | None
    real: float | None = 9.0
    absent: str = "default"


@pytest.mark.parametrize("table", TABLES)
def test_rows_are_the_same_whatever_the_library(table):
    dataset = as_dataset(table())
    found = [
        {key: list(value) if key == "list" and value is not None else value
         for key, value in row.items()}
        for row in dataset
    ]  # fmt: skip
    assert found == ROWS
    assert [type(value) for value in found[0].values()] == [
        int, float, bool, str, datetime.date, datetime.datetime, list,
        datetime.timedelta,
    ]  # fmt: skip
    assert [row["whole"] for row in dataset.get_many([2, 0, 2])] == [3, 1, 3]
    assert dataset.get_many([]) == []
    assert (len(dataset), dataset.get(3), dataset.get(-1)) == (3, None, None)
    assert repr(dataset) == "DataframeDataset(3 items)"


@pytest.mark.parametrize("table", TABLES)
def test_rows_become_objects_of_a_class(table):
    dataset = as_dataset(table(), Row)
    assert isinstance(dataset, DataframeDataset)
    first = Row(1, "a", DAY, [1, 2], 0.5)
    assert list(dataset) == [
        first,
        Row(None, None, None, None, None),
        Row(3, "", DAY, [], 2.0),
    ]
    assert pickle.loads(pickle.dumps(dataset)).get(0) == first


@pytest.mark.parametrize("table", TABLES)
def test_a_missing_value_that_may_not_be_missing_is_named(table):
    @dataclass
    class Strict:
        whole: int

    told = ("whole: None is not int", "try: `… | None`")
    first = "DataframeDataset: row 1 does not fit"
    refused(DataError, lambda: DataframeDataset(table(), Strict).get(1), first, *told)


@pytest.mark.parametrize("table", TABLES)
def test_days_become_numbers_where_an_int_is_asked_for(table):
    @dataclass
    class Numbered:
        day: int | None

    if table is nullable_pandas:  # a column of objects: there is no type to count in
        refused(DataError, lambda: as_dataset(table(), Numbered).get(0), "Data", "day:")
        return
    days = [row.day for row in as_dataset(table(), Numbered)]
    assert days == [(DAY - datetime.date(1970, 1, 1)).days, None, *days[:1]]


@pytest.mark.parametrize("table", TABLES)
def test_a_moment_is_no_date_unless_it_is_midnight(table):
    @dataclass
    class Dated:
        moment: datetime.date

    told = ("moment: ", "is not date")
    refused(DataError, lambda: as_dataset(table(), Dated).get(0), "DataframeDa", *told)


@pytest.mark.parametrize("table", [polars_table, arrow_table, nullable_pandas])
def test_loaders_and_transforms_take_tables(table):
    frame = table()
    numbers = DataLoaderBuilder(lambda rows: [row["whole"] for row in rows])
    assert list(numbers.batch_size(2).build(frame)) == [[1, None], [3]]
    assert len(ShuffledDataset(frame, 1)) == 3
    assert [len(part) for part in PartialDataset.split(frame, 2)] == [1, 2]
    refused(DataError, lambda: InMemDataset(frame), "InMemDataset: ", "is a table",
            "try: DataframeDataset(frame")  # fmt: skip
    pairs = as_dataset((frame, [7, 8, 9]))
    assert pairs.get(2)[1] == 9
    assert pairs.get(2)[0]["text"] == ""


# pandas alone


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


def test_plain_columns_of_pandas_are_views_and_rows_go_by_place(pandas):
    values = np.arange(6.0).reshape(3, 2)
    frame = pandas.DataFrame(values, columns=["a", "b"], index=[7, 0, 1], copy=False)
    dataset = as_dataset(frame)
    assert dataset.get(0) == {"a": 0.0, "b": 1.0}
    assert as_dataset(frame.sort_values("a", ascending=False)).get(0)["a"] == 4.0
    assert as_dataset(frame.loc[[1]]).get(0) == {"a": 4.0, "b": 5.0}


def test_nan_of_pandas_stays_nan_unless_none_is_allowed(pandas):
    @dataclass
    class Maybe:
        x: float | None

    @dataclass
    class Must:
        x: float

    frame = pandas.DataFrame({"x": [0.5, np.nan]})
    assert math.isnan(as_dataset(frame).get(1)["x"])
    assert math.isnan(as_dataset(frame, Must).get(1).x)
    assert as_dataset(frame, Maybe).get(1) == Maybe(None)


def test_whole_numbers_that_became_floats_are_ints_again(pandas):
    @dataclass
    class Count:
        n: int | None

    frame = pandas.DataFrame({"n": [4, None, 2]})
    assert frame["n"].dtype == np.float64
    assert [row.n for row in as_dataset(frame, Count)] == [4, None, 2]
    told = ("n: 2.5 is not int",)
    odd = pandas.DataFrame({"n": [2.5]})
    refused(DataError, lambda: as_dataset(odd, Count).get(0), "DataframeDataset", *told)


def test_categories_periods_and_zones_are_their_values(pandas):
    frame = pandas.DataFrame(
        {
            "c": pandas.Categorical(["low", None, "high"]),
            "z": pandas.to_datetime(["2024-01-01", None, "2024-01-02"], utc=True),
            "o": [1, None, "mixed"],
            "n": [np.int64(3), np.nan, np.float32(0.5)],
            "a": [np.zeros(2), None, np.ones(2)],
        }
    )
    frame["n"] = frame["n"].astype(object)
    first, second, third = as_dataset(frame)
    assert (first["c"], second["c"], third["c"]) == ("low", None, "high")
    assert first["z"] == datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    assert (second["z"], second["o"], second["a"], second["n"]) == (None,) * 4
    assert (first["o"], third["o"], third["a"].tolist()) == (1, "mixed", [1, 1])


def test_an_index_is_no_column_but_a_field_may_bear_its_name(pandas):
    @dataclass
    class Named:
        id: int
        x: float

    index = pandas.Index([10, 20], name="id")
    frame = pandas.DataFrame({"x": [0.5, 1.5]}, index=index)
    assert as_dataset(frame).get(1) == {"x": 1.5}
    assert as_dataset(frame, Named).get(1) == Named(20, 1.5)
    assert as_dataset(frame.reset_index()).get(0) == {"id": 10, "x": 0.5}


def test_moments_of_pandas_are_counted_in_their_unit(pandas):
    @dataclass
    class Counted:
        at: int | None

    at = pandas.to_datetime(["1970-01-01 00:00:02", None]).as_unit("ms")
    rows = as_dataset(pandas.DataFrame({"at": at}), Counted)
    assert [row.at for row in rows] == [2000, None]


def test_names_that_are_no_texts_stay_and_double_ones_are_refused(pandas):
    assert as_dataset(pandas.DataFrame([[1, 2]])).get(0) == {0: 1, 1: 2}
    twice = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    told = ("the column 'a' 2 times", "columns  a, a", "try: other names")
    refused(DataError, lambda: as_dataset(twice), "DataframeDataset: ", *told)
    assert len(as_dataset(pandas.DataFrame(index=range(3)))) == 3
    assert as_dataset(pandas.DataFrame(index=range(3))).get(2) == {}


def test_arrays_in_a_column_fit_annotated_arrays(pandas):
    @dataclass
    class Picture:
        pixels: NDArray[np.float32]

    @dataclass
    class Bytes:
        pixels: NDArray[np.uint8]

    frame = pandas.DataFrame({"pixels": [np.eye(2), np.eye(2) * 300, np.eye(2) / 2]})
    dataset = as_dataset(frame, Picture)
    assert dataset.get(1).pixels.dtype == np.float32
    assert dataset.get(1).pixels.tolist() == [[300, 0], [0, 300]]
    assert as_dataset(frame, Bytes).get(0).pixels.dtype == np.uint8
    for wrong in (1, 2):
        act = lambda wrong=wrong: as_dataset(frame, Bytes).get(wrong)  # noqa: E731
        refused(DataError, act, "DataframeDataset: row", "is not uint8")


def test_columns_alone_are_columns(pandas):
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns = [
        pandas.Series([5, 6, 7], index=[2, 1, 0]), pandas.Index([5, 6, 7]),
        polars.Series([5, 6, 7]), arrow.array([5, 6, 7]),
        arrow.chunked_array([[5], [6, 7]]),
    ]  # fmt: skip
    for column in columns:
        assert list(as_dataset(column)) == [5, 6, 7]
        assert as_dataset((["a", "b", "c"], column)).get(2) == ("c", 7)
        assert type(as_dataset(column).get(0)) is int
    refused(DataError, lambda: as_dataset([columns[0], columns[1]]), "dataset: ",
            "look like columns")  # fmt: skip


def test_groups_are_no_dataset_and_tables_follow_one_another(pandas):
    frame = pandas.DataFrame({"x": [1, 2]})
    told = "DataFrameGroupBy has no items by number"
    refused(DataError, lambda: as_dataset(frame.groupby("x")), "dataset: ", told)
    both = ComposedDataset([frame, frame])
    assert [row["x"] for row in both] == [1, 2, 1, 2]


def test_a_double_name_in_arrow_and_decimals(pandas):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.Table.from_arrays([arrow.array([1]), arrow.array([2])], ["a", "a"])
    refused(DataError, lambda: as_dataset(table), "DataframeDataset", "'a' 2 times")

    @dataclass
    class Price:
        p: float

    import decimal

    table = arrow.table({"p": [decimal.Decimal("1.25")]})
    assert as_dataset(table, Price).get(0) == Price(1.25)


def test_a_table_gives_the_same_batches_with_any_workers(pandas):
    frame = pandas.DataFrame({"x": np.arange(50.0), "y": np.arange(50) % 3})
    steps = DataLoaderBuilder().batch_size(8).shuffle(4).drop_last()
    batches = [
        [(np.asarray(b["x"]).tolist(), np.asarray(b["y"]).tolist()) for b in loader]
        for loader in (steps.num_workers(n).build(frame) for n in (0, 1, 3))
    ]
    assert batches[0] == batches[1] == batches[2]
    assert len(batches[0]) == 6
    rows = {(x, y) for xs, ys in batches[0] for x, y in zip(xs, ys, strict=True)}
    assert len(rows) == 48
    assert all(y == x % 3 for x, y in rows)
