"""Datasets: rows by number, from memory, files and tables."""

from burnbook.data.dataset.base import Dataset, InMemDataset
from burnbook.data.dataset.dataframe import DataframeDataset
from burnbook.data.dataset.fake import FakeDataset
from burnbook.data.dataset.sqlite import SqliteDataset
from burnbook.data.dataset.sqlite_storage import (
    SqliteDatasetStorage,
    SqliteDatasetWriter,
)

__all__ = [
    "DataframeDataset",
    "Dataset",
    "FakeDataset",
    "InMemDataset",
    "SqliteDataset",
    "SqliteDatasetStorage",
    "SqliteDatasetWriter",
]
