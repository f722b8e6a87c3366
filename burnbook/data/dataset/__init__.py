"""Datasets: rows by number, from memory, files and tables."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.data.dataset.arrays import ArrayDataset, SequenceDataset
from burnbook.data.dataset.base import Dataset
from burnbook.data.dataset.convert import as_dataset
from burnbook.data.dataset.dataframe import DataframeDataset
from burnbook.data.dataset.fake import FakeDataset
from burnbook.data.dataset.in_memory import InMemDataset
from burnbook.data.dataset.sqlite import SqliteDataset
from burnbook.data.dataset.sqlite_storage import (
    SqliteDatasetStorage,
    SqliteDatasetWriter,
)

__all__ = [
    "ArrayDataset",
    "DataframeDataset",
    "Dataset",
    "FakeDataset",
    "InMemDataset",
    "SequenceDataset",
    "SqliteDataset",
    "SqliteDatasetStorage",
    "SqliteDatasetWriter",
    "as_dataset",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
