"""Which datasets there are, how big they are, and which are on this computer."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burnbook.core.files import cache_dir
from burnbook.data.dataset.audio import speech
from burnbook.data.dataset.nlp import texts
from burnbook.data.dataset.source.download import (
    Archive,
    Mirror,
    RemoteFile,
    as_url,
    mirrors_of,
)
from burnbook.data.dataset.source.downloaded import DownloadedDataset
from burnbook.data.dataset.source.huggingface import HuggingfaceDatasetLoader
from burnbook.data.dataset.tabular import diabetes, housing
from burnbook.data.dataset.vision import cifar, fashion_mnist, mnist
from burnbook.data.dataset.vision.digits import COUNT


@dataclass(frozen=True)
class DatasetInfo:
    """One line of the list of datasets."""

    name: str
    items: int
    size: int  # bytes to download, 0 where nothing is
    available: bool  # without a network
    source: str
    about: str
    folder: Path | None = None  # in the cache, where downloads go


def available_datasets() -> list[DatasetInfo]:
    """List the datasets that the library knows.

    Example:
        >>> for info in available_datasets():
        ...     print(f"{info.name:<22}{info.items:>8,}")
        DigitsDataset            1,797
        MnistDataset            70,000
        FashionMnistDataset     70,000
        Cifar10Dataset          60,000
        Cifar100Dataset         60,000
        AgNewsDataset          127,600
        DbPediaDataset         630,000
        SpeechCommandsDataset   99,720
        DiabetesDataset            442
        HousingDataset          20,640
    """
    here = importlib.util.find_spec("sklearn") is not None
    about = "handwritten digits, 8×8 scaled to 28×28"
    digits = DatasetInfo("DigitsDataset", COUNT, 0, here, "scikit-learn", about)
    return [digits, *_images(), *_texts(), _speech(), *_tables(here)]


def _images() -> list[DatasetInfo]:
    found = [
        _info(mnist.MnistDataset, 70_000, 11_594_722, "handwritten digits, 28×28"),
        _info(fashion_mnist.FashionMnistDataset, 70_000, 30_878_645, "clothes, 28×28"),
    ]
    for cls, known in (
        (cifar.Cifar10Dataset, cifar.MIRRORS_10),
        (cifar.Cifar100Dataset, cifar.MIRRORS_100),
    ):
        about = f"color photographs of {cls.num_classes()} kinds, 32×32"
        found.append(_info(cls, 60_000, known[0].size or 0, about))
    return found


def _texts() -> list[DatasetInfo]:
    about = "articles on 14 kinds of things"
    return [
        _info(texts.AgNewsDataset, 127_600, 31_327_765, "news of 4 topics"),
        _info(texts.DbPediaDataset, 630_000, 68_341_743, about),
    ]


def _speech() -> DatasetInfo:
    folder = cache_dir() / "speech_commands"
    archives = speech.KNOWN.values()
    here = all(
        (folder / archive.url.removesuffix(".tar.gz")).is_dir()
        or (folder / archive.url).is_file()
        for archive in archives
    )
    size = sum(archive.size or 0 for archive in archives)
    mirror = mirrors_of(speech.VARIABLE, speech.FOLDERS)[0]
    about = "one of 35 spoken words, one second each"
    name = "SpeechCommandsDataset"
    return DatasetInfo(name, 99_720, size, here, _address(mirror), about, folder)


def _tables(here: bool) -> list[DatasetInfo]:
    loader = HuggingfaceDatasetLoader.new(housing.NAME)
    hub, stored = f"https://huggingface.co/datasets/{housing.NAME}", loader.db_file()
    patients = ("DiabetesDataset", diabetes.COUNT, 0, here, "scikit-learn")
    districts = ("HousingDataset", housing.COUNT, 743_040, stored.is_file(), hub)
    about = "eight features of a Californian district, and its median house value"
    return [
        DatasetInfo(
            *patients, "ten features of a patient, and the disease a year later"
        ),
        DatasetInfo(*districts, about, stored.parent),
    ]


def _info(
    cls: type[mnist.MnistDataset | DownloadedDataset[Any]],
    items: int,
    size: int,
    about: str,
) -> DatasetInfo:
    source = cls.source()
    folder, mirrors = source.place, source.every_mirror
    here = _archive_is_here(mirrors, folder) or all(
        _is_here(file, folder) for file in source.every_file
    )
    address = _address(mirrors[0]) if mirrors else ""
    return DatasetInfo(cls.__name__, items, size, here, address, about, folder)


def _is_here(file: RemoteFile, folder: Path) -> bool:
    """Look, without reading 50 MB: the content is checked when it is used."""
    plain = folder / file.name
    if plain.is_file() and file.size in (None, plain.stat().st_size):
        return True
    return (folder / (file.name + (file.packed or ".gz"))).is_file()


def _archive_is_here(mirrors: Sequence[Mirror], folder: Path) -> bool:
    archives = [one for one in mirrors if isinstance(one, Archive)]
    return any((folder / archive.name).is_file() for archive in archives)


def _address(mirror: Mirror) -> str:
    return mirror.url if isinstance(mirror, Archive) else as_url(mirror)
