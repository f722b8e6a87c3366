"""Datasets of Hugging Face in SQLite: with the real library, and with a stand-in."""

import json
import sys
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest

from burnbook.core.errors import DataError
from burnbook.data import DataLoaderBuilder, HuggingfaceDatasetLoader, SqliteDataset
from tests.support.refusals import refused


@dataclass
class DbPediaItem:
    title: str
    content: str
    label: int


@dataclass
class Value:
    dtype: str


@dataclass
class Image:
    decode: bool = True
    dtype: str = "PIL.Image.Image"


@dataclass
class Split:
    """As much of a split as the loader asks for."""

    features: dict
    columns: dict
    asked: list = field(default_factory=list)

    def cast_column(self, name, feature):
        assert feature == Image(decode=False)
        return Split({**self.features, name: feature}, self.columns)

    def flatten(self):
        features, columns = {}, {}
        for name, feature in self.features.items():
            if feature == Image(decode=False):
                features[f"{name}.bytes"] = Value("binary")
                columns[f"{name}.bytes"] = [b"\xff\xd8" for _ in self.columns[name]]
            else:
                assert feature != Image()
                features[name], columns[name] = feature, self.columns[name]
        return Split(features, columns)

    def iter(self, batch_size):
        count = len(next(iter(self.columns.values())))
        for start in range(0, count, batch_size):
            part = slice(start, start + batch_size)
            yield {name: column[part] for name, column in self.columns.items()}


def split_of(count):
    columns = {
        "title": [f"title {i}" for i in range(count)],
        "content": ["words"] * count,
        "label": [None, *range(1, count)][:count],
        "picture": [object()] * count,
        "scores": [[0.5, i] for i in range(count)],
        "nested.x": [float(i) for i in range(count)],
    }
    kinds = ["string", "string", "int64", None, "list", "float32"]
    features = {
        name: Image() if kind is None else Value(kind)
        for name, kind in zip(columns, kinds, strict=True)
    }
    return Split(features, columns)


class Library:
    """A stand-in for the library: remembers what it was asked."""

    def __init__(self):
        self.asked = []
        self.splits = {
            "train": split_of(2500),
            "test": split_of(3),
            "empty": split_of(0),
        }

    def load_dataset(self, name, subset, **options):
        self.asked.append((name, subset, options))
        return self.splits


@pytest.fixture
def library(monkeypatch):
    found = Library()
    monkeypatch.setitem(sys.modules, "datasets", found)
    return found


@pytest.fixture
def loader(tmp_path):
    return HuggingfaceDatasetLoader.new("hub/dbpedia").with_base_dir(tmp_path)


def test_the_book_s_dataset_is_asked_for_once_and_kept(library, loader, tmp_path):
    train = loader.dataset("train", DbPediaItem)
    assert isinstance(train, SqliteDataset)
    assert train.db_file() == tmp_path / "hubdbpedia.db"
    assert len(train) == 2500
    assert train.get(2499) == DbPediaItem("title 2499", "words", 2499)
    assert len(loader.dataset("test")) == 3
    assert len(loader.dataset("empty", DbPediaItem)) == 0
    assert library.asked == [("hub/dbpedia", None, {})]
    assert [p.name for p in tmp_path.iterdir()] == ["hubdbpedia.db"]


def test_columns_are_flat_and_pictures_stay_bytes(library, loader):
    found = loader.dataset("test").get(2)
    assert found == {
        "title": "title 2", "content": "words", "label": 2,
        "picture_bytes": b"\xff\xd8", "scores": "[0.5, 2]", "nested_x": 2.0,
    }  # fmt: skip

    @dataclass
    class Scored:
        label: int | None
        scores: list[float]
        picture_bytes: np.ndarray

    scored = loader.dataset("test", Scored).get(0)
    assert (scored.label, scored.scores) == (None, [0.5, 0.0])
    assert scored.picture_bytes.tolist() == [255, 216]


def test_every_option_reaches_the_library(library, loader, tmp_path):
    full = (
        loader.with_subset("v2")
        .with_huggingface_token("hf_secret")
        .with_huggingface_cache_dir(tmp_path / "c")
        .with_huggingface_data_dir("part")
        .with_trust_remote_code()
    )
    assert full.dataset("test").db_file() == tmp_path / "hubdbpedia-v2.db"
    options = {
        "token": "hf_secret",
        "cache_dir": str(tmp_path / "c"),
        "data_dir": "part",
        "trust_remote_code": True,
    }
    assert library.asked == [("hub/dbpedia", "v2", options)]
    assert "hf_secret" not in repr(full)
    assert loader == HuggingfaceDatasetLoader("hub/dbpedia").with_base_dir(tmp_path)


def test_the_cache_folder_is_where_databases_go(library, monkeypatch, tmp_path):
    monkeypatch.setenv("BURNBOOK_CACHE", str(tmp_path / "cache"))
    found = HuggingfaceDatasetLoader.new("ag_news").dataset("test")
    assert found.db_file() == tmp_path / "cache" / "ag_news.db"


def test_an_import_that_fails_leaves_no_file_and_can_be_repeated(
    library, loader, tmp_path
):
    good = library.splits["test"]
    bad = split_of(3)
    bad.columns["label"][2] = 2**64
    library.splits["test"] = bad
    with pytest.raises(DataError, match="label of test: 18446744073709551616 needs"):
        loader.dataset("train")
    assert list(tmp_path.iterdir()) == []
    library.splits["test"] = good
    assert len(loader.dataset("train")) == 2500


def test_what_the_library_raises_is_explained_without_the_token(
    library, loader, tmp_path
):
    def fail(*args, **options):
        raise ConnectionError("no route to the hub\nmore lines")

    library.load_dataset = fail
    act = partial(loader.with_huggingface_token("hf_secret").dataset, "train")
    told = ("hub/dbpedia", "ConnectionError: no route to the hub\n", "try: the name on")
    error = refused(DataError, act, "HuggingfaceDatasetLoader: ", *told)
    assert "hf_secret" not in str(error)
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_on_disk_feeds_a_loader(library, loader):
    def labels(items):
        return [item.label for item in items]

    dataset = loader.dataset("train")
    batches = DataLoaderBuilder(len).batch_size(64).num_workers(2).build(dataset)
    assert sum(batches) == 2500
    assert len(list(batches)) == 40


@pytest.mark.filterwarnings("ignore")  # those of the library
def test_the_real_library_reads_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("datasets", reason="pip install 'burnbook[text]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    picture = {"bytes": b"\x89PNG", "path": "a.png"}
    table = pyarrow.table(
        {
            "title": ["a", "b"],
            "content": ["x", "é"],
            "label": [1, 0],
            "image": [picture, picture],
            "scores": [[1, 2], []],
        }
    )
    features = {
        "title": {"dtype": "string", "_type": "Value"},
        "content": {"dtype": "string", "_type": "Value"},
        "label": {"names": ["zero", "one"], "_type": "ClassLabel"},
        "image": {"_type": "Image"},
        "scores": {
            "feature": {"dtype": "int64", "_type": "Value"},
            "_type": "Sequence",
        },
    }
    head = {"huggingface": json.dumps({"info": {"features": features}})}
    (tmp_path / "data").mkdir()
    for split in ("train", "test"):
        path = tmp_path / "data" / f"{split}-00000-of-00001.parquet"
        parquet.write_table(table.replace_schema_metadata(head), path)
    loader = (
        HuggingfaceDatasetLoader.new(str(tmp_path / "data"))
        .with_base_dir(tmp_path / "db")
        .with_huggingface_cache_dir(tmp_path / "cache")
    )
    train = loader.dataset("train", DbPediaItem)
    assert list(train) == [DbPediaItem("a", "x", 1), DbPediaItem("b", "é", 0)]
    found = loader.dataset("test").get(0)
    assert found["image_bytes"] == b"\x89PNG"
    assert found["scores"] == "[1, 2]"
