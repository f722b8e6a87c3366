"""Datasets, transforms, loaders and sources."""

from typing import TYPE_CHECKING

import burnbook.data.dataset.audio as _audio
import burnbook.data.dataset.nlp as _nlp
import burnbook.data.dataset.tabular as _tabular
import burnbook.data.dataset.transform as _transform
import burnbook.data.dataset.vision as _vision
from burnbook.core.files import cache_dir
from burnbook.core.other_names import module_answers
from burnbook.data import dataloader as dataloader, dataset as dataset
from burnbook.data.catalog import DatasetInfo, available_datasets
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
from burnbook.data.dataset.arrays import ArrayDataset, SequenceDataset
from burnbook.data.dataset.audio.speech import (
    SpeechCommandClass,
    SpeechCommandsDataset,
    SpeechItem,
)
from burnbook.data.dataset.base import Dataset
from burnbook.data.dataset.convert import as_dataset
from burnbook.data.dataset.dataframe import DataframeDataset
from burnbook.data.dataset.fake import FakeDataset
from burnbook.data.dataset.in_memory import InMemDataset
from burnbook.data.dataset.nlp.text_folder import TextDatasetItem, TextFolderDataset
from burnbook.data.dataset.nlp.texts import (
    AgNewsDataset,
    AgNewsItem,
    DbPediaDataset,
    DbPediaItem,
)
from burnbook.data.dataset.source.huggingface import HuggingfaceDatasetLoader
from burnbook.data.dataset.sqlite import SqliteDataset
from burnbook.data.dataset.sqlite_storage import (
    SqliteDatasetStorage,
    SqliteDatasetWriter,
)
from burnbook.data.dataset.tabular.diabetes import DiabetesDataset
from burnbook.data.dataset.tabular.housing import HousingDataset
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
from burnbook.data.dataset.vision.cifar import (
    Cifar10Dataset,
    Cifar100Dataset,
    CifarDataset,
    CifarType,
)
from burnbook.data.dataset.vision.digits import DigitsDataset
from burnbook.data.dataset.vision.fashion_mnist import FashionMnistDataset
from burnbook.data.dataset.vision.image import (
    BoundingBox,
    BoundingBoxes,
    ImageDatasetItem,
    Label,
    MultiLabel,
    SegmentationMask,
)
from burnbook.data.dataset.vision.image_folder import ImageFolderDataset
from burnbook.data.dataset.vision.mnist import MnistDataset, MnistItem
from burnbook.data.formats.idx import read_idx

__all__ = ["DatasetInfo", "HuggingfaceDatasetLoader", "available_datasets", "cache_dir"]
__all__ += dataloader.__all__
__all__ += dataset.__all__
__all__ += _audio.__all__
__all__ += _nlp.__all__
__all__ += _tabular.__all__
__all__ += _transform.__all__
__all__ += _vision.__all__

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
