"""Datasets whose files are downloaded: where they come from, said once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from burnbook.core.files import cache_dir
from burnbook.data.dataset.source.download import (
    Archive,
    Mirror,
    RemoteFile,
    Report,
    default_report,
    mirrors_of,
    obtain_path,
    with_checksums,
)
from burnbook.data.dataset.split import SplitDataset

Item = TypeVar("Item")
Checksums = Mapping[str, str] | None  # of the reader's own files, by name


@dataclass(frozen=True)
class Source:
    """The files of a dataset: where mirrors have them, and where they are kept.

    folder: its name in the cache.
    variable: the environment variable that names a mirror to try first.
    offline: what to do without a network; {file} or {archive}, {folder} and
        {variable} are filled in.
    """

    folder: str
    variable: str
    mirrors: Sequence[Mirror]
    files: Mapping[str, Sequence[RemoteFile]]  # those of each part
    offline: str

    @property
    def place(self) -> Path:
        """The folder in the cache."""
        return cache_dir() / self.folder

    @property
    def every_file(self) -> list[RemoteFile]:
        """The files of all parts."""
        return [file for part in self.files.values() for file in part]

    @property
    def every_mirror(self) -> list[Mirror]:
        """The mirrors in the order in which they are tried, the reader's own first."""
        return mirrors_of(self.variable, self.mirrors)

    def obtain(
        self, split: str, progress: Report | None, checksums: Checksums = None
    ) -> list[tuple[str, Path]]:
        """Return name and place of each file of one part, fetched if need be.

        Raises:
            DataError: no mirror has one of the files.
            ConfigError: `checksums` names a file that does not exist.
        """
        folder, every = self.place, with_checksums(self.every_file, checksums)
        names = {file.name for file in self.files[split]}
        mirrors = self.every_mirror
        report = progress or default_report()
        archives = [one.name for one in self.mirrors if isinstance(one, Archive)]
        filled = {
            "archive": "".join(archives[:1]),
            "folder": folder,
            "variable": self.variable,
        }
        found: list[tuple[str, Path]] = []
        for file in (one for one in every if one.name in names):
            cure = self.offline.format(file=file.name, **filled)
            path = obtain_path(file, folder, mirrors, cure, report, every)
            found.append((file.name, path))
        return found


class DownloadedDataset(SplitDataset[Item]):
    """One part of a dataset whose files are downloaded and checked when first used."""

    @classmethod
    def train(cls, progress: Report | None = None, checksums: Checksums = None) -> Self:
        """Return the training part; calls `progress(file, received, total)` meanwhile.

        checksums: SHA-256 or MD5 of files that are not the original ones, by name.

        Raises:
            DataError: no mirror has the files, or they hold something else.
            ConfigError: `checksums` names a file that does not exist.
        """
        return cls._load("train", progress, checksums)

    @classmethod
    def test(cls, progress: Report | None = None, checksums: Checksums = None) -> Self:
        """Return the test part; arguments and errors are those of `train`."""
        return cls._load("test", progress, checksums)

    @classmethod
    @abstractmethod
    def source(cls) -> Source:
        """Return where the files come from, and where they are kept."""

    @classmethod
    @abstractmethod
    def _load(cls, split: str, progress: Report | None, checksums: Checksums) -> Self:
        """Fetch the files of one part and read them."""
