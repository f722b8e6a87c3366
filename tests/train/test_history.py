"""The history of a training as dict, JSON and tables."""

import json
import math
import sys

import pytest

from burnbook import train
from burnbook.core.errors import ConfigError, DataError
from tests.support.tiny_training import builder, fitted, log_lines

SPLITS = ("train", "valid")


def column(table, name, split):
    rows = zip(table["split"], table[name], strict=True)
    return [value for of, value in rows if of == split]


def test_the_history_has_a_row_for_each_epoch_and_split(tmp_path):
    result = fitted(builder(tmp_path, 3)).result
    table = result.history.to_dict()
    assert list(table) == ["epoch", "split", "Accuracy", "Loss"]
    assert table["epoch"] == [1, 1, 2, 2, 3, 3]
    assert table["split"] == [*SPLITS] * 3
    for split in SPLITS:
        for name in ("Accuracy", "Loss"):
            means = [value for _, value in result.history.epochs(name, split)]
            assert column(table, name, split) == means


def test_the_history_has_a_row_for_each_batch_as_the_logs_have(tmp_path):
    table = fitted(builder(tmp_path, 2)).result.history.to_dict("step")
    assert list(table) == ["epoch", "split", "iteration", "step", "Accuracy", "Loss"]
    for split in SPLITS:
        assert column(table, "epoch", split) == [1, 1, 1, 2, 2, 2]
        assert column(table, "iteration", split) == [1, 2, 3, 1, 2, 3]
        assert column(table, "step", split) == [1, 2, 3, 4, 5, 6]
        lines = [line for e in (1, 2) for line in log_lines(tmp_path, split, "Loss", e)]
        logged = [float(line.split(",")[0]) for line in lines]
        assert column(table, "Loss", split) == logged


@pytest.mark.parametrize("per", ["epoch", "step"])
def test_json_and_tables_hold_the_same(tmp_path, per):
    history = fitted(builder(tmp_path, 2)).result.history
    table = history.to_dict(per)
    assert json.loads(history.to_json(per)) == table
    for method, library in (("to_polars", "polars"), ("to_pandas", "pandas")):
        pytest.importorskip(library)
        frame = getattr(history, method)(per)
        assert list(frame.columns) == list(table)
        for name, values in table.items():
            assert list(frame[name]) == values


def test_what_was_not_measured_has_no_value():
    history = train.MetricHistory()
    history.end_epoch(1, "train", {"Loss": 0.5})
    history.end_epoch(1, "valid", {"Loss": math.nan, "Accuracy": 50.0})
    table = history.to_dict()
    assert table["Accuracy"] == [None, 50.0]
    assert json.loads(history.to_json())["Loss"] == [0.5, None]
    pandas = pytest.importorskip("pandas")
    assert history.to_pandas()["Accuracy"].isna().tolist() == [True, False]
    assert isinstance(history.to_pandas(), pandas.DataFrame)
    polars = pytest.importorskip("polars")
    assert history.to_polars()["Accuracy"].to_list() == [None, 50.0]
    assert history.to_polars().schema["Loss"] == polars.Float64


def test_a_history_of_nothing_is_an_empty_table():
    history = train.MetricHistory()
    assert history.to_dict() == {"epoch": [], "split": []}
    for library in ("polars", "pandas"):
        pytest.importorskip(library)
        assert len(getattr(history, f"to_{library}")("step")) == 0


def test_every_batch_is_kept_though_a_picture_needs_fewer():
    history = train.MetricHistory()
    for value in range(5000):
        history.add("Loss", "train", float(value))
    assert len(history.points("Loss", "train")) <= 1000
    assert history.to_dict("step")["Loss"] == [float(i) for i in range(5000)]


def test_a_row_stands_for_an_epoch_or_a_step():
    with pytest.raises(ConfigError, match='per="epoch" or per="step"'):
        train.MetricHistory().to_dict("batch")


def test_a_library_that_is_missing_is_named_with_the_way_to_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(DataError, match="pip install polars"):
        train.MetricHistory().to_polars()
