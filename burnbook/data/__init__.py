"""Building blocks · Dataset. Datasets, transforms, loaders and sources."""

from typing import TYPE_CHECKING

from burnbook.data.batcher import Batcher
from burnbook.data.cache import cache_dir
from burnbook.data.catalog import DatasetInfo, available_datasets
from burnbook.data.cifar import (
    Cifar10Dataset,
    Cifar100Dataset,
    CifarDataset,
    CifarType,
)
from burnbook.data.dataframe import DataframeDataset
from burnbook.data.dataloader import (
    DataLoader,
    DataLoaderBuilder,
    DataLoaderIterator,
    Progress,
    split_dataloader,
)
from burnbook.data.dataset import Dataset, InMemDataset
from burnbook.data.diabetes import DiabetesDataset
from burnbook.data.digits import DigitsDataset
from burnbook.data.fake import FakeDataset
from burnbook.data.fashion_mnist import FashionMnistDataset
from burnbook.data.housing import HousingDataset
from burnbook.data.huggingface import HuggingfaceDatasetLoader
from burnbook.data.idx import read_idx
from burnbook.data.image import (
    BoundingBox,
    BoundingBoxes,
    ImageDatasetItem,
    Label,
    MultiLabel,
    SegmentationMask,
)
from burnbook.data.image_folder import ImageFolderDataset
from burnbook.data.mnist import MnistDataset, MnistItem
from burnbook.data.selection import (
    SamplerDataset,
    SamplerDatasetOptions,
    SelectionDataset,
    ShuffledDataset,
    random_split,
)
from burnbook.data.speech import (
    SpeechCommandClass,
    SpeechCommandsDataset,
    SpeechItem,
)
from burnbook.data.sqlite import SqliteDataset
from burnbook.data.sqlite_storage import SqliteDatasetStorage, SqliteDatasetWriter
from burnbook.data.strategy import BatchStrategy, FixBatchStrategy
from burnbook.data.text_folder import TextDatasetItem, TextFolderDataset
from burnbook.data.texts import (
    AgNewsDataset,
    AgNewsItem,
    DbPediaDataset,
    DbPediaItem,
)
from burnbook.data.transform import (
    ComposedDataset,
    Mapper,
    MapperDataset,
    PartialDataset,
    WindowsDataset,
)
from burnbook.other_names import module_answers

__all__ = [
    "AgNewsDataset",
    "AgNewsItem",
    "BatchStrategy",
    "Batcher",
    "BoundingBox",
    "BoundingBoxes",
    "Cifar10Dataset",
    "Cifar100Dataset",
    "CifarDataset",
    "CifarType",
    "ComposedDataset",
    "DataLoader",
    "DataLoaderBuilder",
    "DataLoaderIterator",
    "DataframeDataset",
    "Dataset",
    "DatasetInfo",
    "DbPediaDataset",
    "DbPediaItem",
    "DiabetesDataset",
    "DigitsDataset",
    "FakeDataset",
    "FashionMnistDataset",
    "FixBatchStrategy",
    "HousingDataset",
    "HuggingfaceDatasetLoader",
    "ImageDatasetItem",
    "ImageFolderDataset",
    "InMemDataset",
    "Label",
    "Mapper",
    "MapperDataset",
    "MnistDataset",
    "MnistItem",
    "MultiLabel",
    "PartialDataset",
    "Progress",
    "SamplerDataset",
    "SamplerDatasetOptions",
    "SegmentationMask",
    "SelectionDataset",
    "ShuffledDataset",
    "SpeechCommandClass",
    "SpeechCommandsDataset",
    "SpeechItem",
    "SqliteDataset",
    "SqliteDatasetStorage",
    "SqliteDatasetWriter",
    "TextDatasetItem",
    "TextFolderDataset",
    "WindowsDataset",
    "available_datasets",
    "cache_dir",
    "random_split",
    "read_idx",
    "split_dataloader",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
