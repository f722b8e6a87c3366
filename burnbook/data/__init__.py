"""Building blocks · Dataset. Datasets, transforms, loaders and sources."""

from burnbook.data.batcher import Batcher
from burnbook.data.cache import cache_dir
from burnbook.data.catalog import DatasetInfo, available_datasets
from burnbook.data.dataframe import DataframeDataset
from burnbook.data.dataloader import (
    DataLoader,
    DataLoaderBuilder,
    DataLoaderIterator,
    Progress,
)
from burnbook.data.dataset import Dataset, InMemDataset
from burnbook.data.digits import DigitsDataset
from burnbook.data.idx import read_idx
from burnbook.data.mnist import MnistDataset, MnistItem
from burnbook.data.selection import (
    SamplerDataset,
    SelectionDataset,
    ShuffledDataset,
    random_split,
)
from burnbook.data.sqlite import SqliteDataset
from burnbook.data.sqlite_storage import SqliteDatasetStorage, SqliteDatasetWriter
from burnbook.data.strategy import BatchStrategy, FixBatchStrategy
from burnbook.data.transform import (
    ComposedDataset,
    Mapper,
    MapperDataset,
    PartialDataset,
    WindowsDataset,
)

__all__ = [
    "BatchStrategy",
    "Batcher",
    "ComposedDataset",
    "DataLoader",
    "DataLoaderBuilder",
    "DataLoaderIterator",
    "DataframeDataset",
    "Dataset",
    "DatasetInfo",
    "DigitsDataset",
    "FixBatchStrategy",
    "InMemDataset",
    "Mapper",
    "MapperDataset",
    "MnistDataset",
    "MnistItem",
    "PartialDataset",
    "Progress",
    "SamplerDataset",
    "SelectionDataset",
    "ShuffledDataset",
    "SqliteDataset",
    "SqliteDatasetStorage",
    "SqliteDatasetWriter",
    "WindowsDataset",
    "available_datasets",
    "cache_dir",
    "random_split",
    "read_idx",
]
