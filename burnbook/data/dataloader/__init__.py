"""From a dataset to batches: batchers, loaders, workers."""

from burnbook.data.dataloader.batcher import Batcher
from burnbook.data.dataloader.dataloader import (
    DataLoader,
    DataLoaderBuilder,
    DataLoaderIterator,
    Progress,
    split_dataloader,
)
from burnbook.data.dataloader.stacking import DefaultBatcher
from burnbook.data.dataloader.strategy import BatchStrategy, FixBatchStrategy

__all__ = [
    "BatchStrategy",
    "Batcher",
    "DataLoader",
    "DataLoaderBuilder",
    "DataLoaderIterator",
    "DefaultBatcher",
    "FixBatchStrategy",
    "Progress",
    "split_dataloader",
]
