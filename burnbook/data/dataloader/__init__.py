"""From a dataset to batches: batchers, loaders, workers."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
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

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
