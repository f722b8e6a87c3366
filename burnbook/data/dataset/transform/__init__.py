"""Datasets made of other datasets."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.data.dataset.transform.selection import (
    SamplerDataset,
    SamplerDatasetOptions,
    SelectionDataset,
    ShuffledDataset,
    random_split,
)
from burnbook.data.dataset.transform.transform import (
    ComposedDataset,
    Mapper,
    MapperDataset,
    PartialDataset,
    WindowsDataset,
)

__all__ = [
    "ComposedDataset",
    "Mapper",
    "MapperDataset",
    "PartialDataset",
    "SamplerDataset",
    "SamplerDatasetOptions",
    "SelectionDataset",
    "ShuffledDataset",
    "WindowsDataset",
    "random_split",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
