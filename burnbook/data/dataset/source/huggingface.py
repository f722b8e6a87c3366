"""Datasets of Hugging Face, kept in an SQLite file.

The library `datasets` is asked once. Every split becomes a table with one column per
field, the layout that Burn's importer makes; from then on only the file is read.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from burnbook.core.errors import BurnbookError, DataError
from burnbook.core.files import PathLike, fixed
from burnbook.data.dataset.sqlite import SqliteDataset
from burnbook.data.dataset.sqlite_storage import (
    SqliteDatasetStorage,
    SqliteDatasetWriter,
)

ROWS = 1000  # read at once
# How the type of a column begins, and what SQLite calls it; other types become JSON.
SQL_TYPES = {
    "int": "integer",
    "uint": "integer",
    "bool": "integer",
    "float": "real",
    "double": "real",
    "binary": "blob",
    "large_binary": "blob",
}


@dataclasses.dataclass(frozen=True)
class HuggingfaceDatasetLoader:
    """Load a dataset of Hugging Face, by its name there or from a folder.

    The first use downloads it; later ones open the file in the cache folder. Columns
    inside others are joined (`image.bytes` becomes `image_bytes`), images and sounds
    stay the bytes of their files, lists become JSON text.

    Example:
        >>> loader = HuggingfaceDatasetLoader.new("dbpedia_14").with_base_dir("data")
        >>> loader.with_subset("v2").db_file().parts[-2:]
        ('data', 'dbpedia_14-v2.db')
        >>> loader.with_huggingface_token("hf_secret")
        HuggingfaceDatasetLoader(dbpedia_14, token=…)
        >>> loader.dataset("train", DbPediaItem)  # doctest: +SKIP
        SqliteDataset(dbpedia_14.db, train, 560,000 items)
    """

    name: str
    subset: str | None = None
    base_dir: Path | None = None
    token: str | None = None
    cache_dir: str | None = None
    data_dir: str | None = None
    trust_remote_code: bool = False

    @classmethod
    def new(cls, name: str) -> HuggingfaceDatasetLoader:
        """Name the dataset: `fancyzhx/ag_news`, or the path of a folder."""
        return cls(name)

    def with_subset(self, subset: str) -> HuggingfaceDatasetLoader:
        """Take one configuration of the dataset."""
        return dataclasses.replace(self, subset=subset)

    def with_base_dir(self, base_dir: PathLike) -> HuggingfaceDatasetLoader:
        """Keep the database in this folder; Burn's own is `~/.cache/burn-dataset`."""
        return dataclasses.replace(self, base_dir=fixed(base_dir))

    def with_huggingface_token(self, token: str) -> HuggingfaceDatasetLoader:
        """Use this token for private datasets."""
        return dataclasses.replace(self, token=token)

    def with_huggingface_cache_dir(self, folder: PathLike) -> HuggingfaceDatasetLoader:
        """Let `datasets` keep its own files in this folder."""
        return dataclasses.replace(self, cache_dir=str(folder))

    def with_huggingface_data_dir(self, folder: PathLike) -> HuggingfaceDatasetLoader:
        """Take the files of this folder of the dataset."""
        return dataclasses.replace(self, data_dir=str(folder))

    def with_trust_remote_code(self, trust: bool = True) -> HuggingfaceDatasetLoader:
        """Allow code that comes with the dataset to run here (False by default)."""
        return dataclasses.replace(self, trust_remote_code=trust)

    def db_file(self) -> Path:
        """Return the path of the database, whether it is there or not."""
        return self._storage().db_file()

    def dataset(self, split: str, item: type[Any] | None = None) -> SqliteDataset[Any]:
        """Open a split, its items as objects of the class `item` or as dicts."""
        storage = self._storage()
        if not storage.exists():
            self._import(storage)
        return storage.reader(split, item)

    def __repr__(self) -> str:
        given = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)[1:]}
        given = {name: value for name, value in given.items() if value}
        given.pop("base_dir", None)
        if self.token:
            given["token"] = "…"
        listed = [self.name, *(f"{name}={value}" for name, value in given.items())]
        return f"HuggingfaceDatasetLoader({', '.join(listed)})"

    def _storage(self) -> SqliteDatasetStorage:
        name = self.name if self.subset is None else f"{self.name}-{self.subset}"
        storage = SqliteDatasetStorage.from_name(name)
        return (
            storage if self.base_dir is None else storage.with_base_dir(self.base_dir)
        )

    def _import(self, storage: SqliteDatasetStorage) -> None:
        library = _datasets()
        options = {
            "token": self.token,
            "cache_dir": self.cache_dir,
            "data_dir": self.data_dir,
            "trust_remote_code": self.trust_remote_code or None,
        }
        options = {name: value for name, value in options.items() if value is not None}
        try:
            splits = library.load_dataset(self.name, self.subset, **options)
            with storage.writer(overwrite=True) as writer:
                for split, data in splits.items():
                    _write_split(writer, str(split), data)
        except BurnbookError:
            raise
        except Exception as error:  # whatever the library and the network raise
            first = str(error).partition("\n")[0]
            what = f"{self.name} is not loaded: {type(error).__name__}: {first[:200]}"
            facts = [("subset", self.subset)] if self.subset else []
            cure = "the name on the hub, a network, or a folder with its files"
            raise DataError("HuggingfaceDatasetLoader", what, facts, cure) from None


def _datasets() -> Any:
    try:
        return importlib.import_module("datasets")
    except ImportError:
        what = "the library `datasets` is not installed"
        cure = "pip install 'burnbook[text]'"
        raise DataError("HuggingfaceDatasetLoader", what, cure=cure) from None


def _write_split(writer: SqliteDatasetWriter, split: str, data: Any) -> None:
    data = _flat(data)
    types = {
        _column(name): _sql_type(feature) for name, feature in data.features.items()
    }
    writer.write_columns(split, _rows(data), types)


def _flat(data: Any) -> Any:
    """Keep images and sounds as the bytes of their files, and join inner columns."""
    for name, feature in data.features.items():
        if getattr(feature, "decode", False) is True:
            stored = dataclasses.replace(feature, decode=False)
            data = data.cast_column(name, stored)
    return data.flatten()


def _rows(data: Any) -> Iterator[Mapping[str, Any]]:
    for block in data.iter(batch_size=ROWS):
        names = [_column(name) for name in block]
        for values in zip(*block.values(), strict=True):
            yield dict(zip(names, values, strict=True))


def _column(name: str) -> str:
    return name.replace(".", "_")


def _sql_type(feature: Any) -> str:
    kind = str(getattr(feature, "dtype", ""))
    return next(
        (sql for name, sql in SQL_TYPES.items() if kind.startswith(name)), "text"
    )
