"""Building blocks · Dataset. What data there is, how big, and whether it is here."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from burnbook.data import mnist
from burnbook.data.cache import cache_dir
from burnbook.data.digits import COUNT
from burnbook.data.download import RemoteFile, as_url, mirrors_of


@dataclass(frozen=True)
class DatasetInfo:
    """One line of the list of datasets."""

    name: str
    items: int
    size: int  # bytes to download, 0 where nothing is
    available: bool  # without a network
    source: str
    about: str


def available_datasets() -> list[DatasetInfo]:
    """List the datasets that the library can give.

    Example:
        >>> [info.name for info in available_datasets()]
        ['DigitsDataset', 'MnistDataset']
    """
    files = [file for pair in mnist.FILES.values() for file in pair]
    mirrors = mirrors_of("BURNBOOK_MNIST_MIRROR", mnist.MIRRORS)
    return [
        DatasetInfo(
            "DigitsDataset",
            COUNT,
            0,
            importlib.util.find_spec("sklearn") is not None,
            "scikit-learn",
            "handwritten digits, 8×8 scaled to 28×28",
        ),
        DatasetInfo(
            "MnistDataset",
            70_000,
            11_594_722,
            all(_is_here(file, cache_dir() / "mnist") for file in files),
            as_url(str(mirrors[0])),
            "handwritten digits, 28×28",
        ),
    ]


def _is_here(file: RemoteFile, folder: Path) -> bool:
    """Look, without reading 50 MB: the content is checked when it is used."""
    plain = folder / file.name
    if plain.is_file() and plain.stat().st_size == file.size:
        return True
    return (folder / (file.name + file.packed)).is_file()
