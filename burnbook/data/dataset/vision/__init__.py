"""Images: MNIST and its kin, folders of images."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
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

__all__ = [
    "BoundingBox",
    "BoundingBoxes",
    "Cifar10Dataset",
    "Cifar100Dataset",
    "CifarDataset",
    "CifarType",
    "DigitsDataset",
    "FashionMnistDataset",
    "ImageDatasetItem",
    "ImageFolderDataset",
    "Label",
    "MnistDataset",
    "MnistItem",
    "MultiLabel",
    "SegmentationMask",
    "read_idx",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
