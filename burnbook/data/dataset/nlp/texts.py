"""AG News and DBpedia: texts and what they are about.

Zhang, Zhao, LeCun, "Character-level convolutional networks for text classification",
2015, arXiv:1509.01626. Both are CSV files; their rows stay on the disk until they are
asked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

from burnbook.core.errors import DataError
from burnbook.core.files import PathLike
from burnbook.data.dataset.csv_rows import LabeledTexts
from burnbook.data.dataset.source.download import Archive, Mirror, RemoteFile, Report
from burnbook.data.dataset.source.downloaded import (
    Checksums,
    DownloadedDataset,
    Source,
)
from burnbook.data.dataset.transform.transform import Mapper, MapperDataset

Item = TypeVar("Item")
Row = tuple[int, str, str]  # label, title, content
AG_NEWS_MIRRORS: list[Mirror] = [
    "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv/",
    Archive(
        "https://s3.amazonaws.com/fast-ai-nlp/ag_news_csv.tgz",
        11_784_419,
        "b86f328f4dbd072486591cb7a5644dcd",
    ),
]
AG_NEWS_FILES = {
    "train": [
        RemoteFile("train.csv", 29_470_338, "b1a00f826fdfbd249f79597b59e1dc12", "")
    ],
    "test": [
        RemoteFile(
            "test.csv",
            1_857_427,
            "521465c2428ed7f02f8d6db6ffdd4b5447c1c701962353eb2c40d548c3c85699",
            "",
        )
    ],
}
AG_NEWS_ROWS = {"train": 120_000, "test": 7_600}
DB_PEDIA_MIRRORS: list[Mirror] = [
    Archive(
        "https://s3.amazonaws.com/fast-ai-nlp/dbpedia_csv.tgz",
        68_341_743,
        "239c7837b9e79db34486f3de6a00e38e",
    ),
    Archive(
        "https://github.com/le-scientifique/torchDatasets/raw/master/dbpedia_csv.tar.gz",
        None,
        "8139d58cf075c7f70d085358e73af9b3",
    ),
]
DB_PEDIA_FILES = {
    "train": [RemoteFile("train.csv", packed="")],
    "test": [RemoteFile("test.csv", packed="")],
}
DB_PEDIA_ROWS = {"train": 560_000, "test": 70_000}


OFFLINE = (
    ".from_csv(path) with a file of yours; or put {file} into {folder}; "
    "or {variable}=file:///folder/with/it"
)


@dataclass(frozen=True, slots=True)
class AgNewsItem:
    """A piece of news: its class from 0, its title and its content.

    Why: the class is a number, so a loss can take it; newer Burn leaves it the text
    "1" … "4" of the file.
    """

    label: int
    title: str
    content: str

    @property
    def text(self) -> str:
        """Title and content, as the examples of Burn (and Hugging Face) join them."""
        return f"{self.title} {self.content}"


@dataclass(frozen=True, slots=True)
class DbPediaItem:
    """An article: its title, its content and its class from 0."""

    title: str
    content: str
    label: int

    @property
    def text(self) -> str:
        """Title and content, as the examples of Burn join them."""
        return f"Title: {self.title} - Content: {self.content}"


class RowToNews(Mapper[Row, AgNewsItem]):
    """Turn a row into a piece of news."""

    def map(self, item: Row) -> AgNewsItem:
        """Return the row with named fields."""
        return AgNewsItem(*item)


class RowToArticle(Mapper[Row, DbPediaItem]):
    """Turn a row into an article."""

    def map(self, item: Row) -> DbPediaItem:
        """Return the row with named fields."""
        label, title, content = item
        return DbPediaItem(title, content, label)


class CsvTexts(DownloadedDataset[Item]):
    """Labeled texts in CSV files, which stay on the disk."""

    counts: ClassVar[Mapping[str, int]]  # rows of each part
    mapper: ClassVar[Mapper[Row, Any]]

    @classmethod
    def from_csv(cls, path: PathLike) -> Self:
        """Read rows of class (from 1), title and content, gzipped or not.

        Raises:
            DataError: the file cannot be read, or a row does not fit.
        """
        rows = LabeledTexts(path, len(cls.classes))
        return cls(MapperDataset(rows, cls.mapper), os.path.basename(path))

    @classmethod
    def _load(cls, split: str, progress: Report | None, checksums: Checksums) -> Self:
        ((_, path),) = cls.source().obtain(split, progress, checksums)
        rows = _all(LabeledTexts(path, len(cls.classes)), cls.counts, split, checksums)
        return cls(MapperDataset(rows, cls.mapper), split)


class AgNewsDataset(CsvTexts[AgNewsItem]):
    """News on four topics: 120,000 for training, 7,600 for testing.

    The first use downloads a file (29 and 2 MB) and checks it; later uses read the
    cache. `BURNBOOK_AG_NEWS_MIRROR` names a folder with `train.csv` and `test.csv`
    (gzipped or not), or an archive of them, to try first; `checksums` gives the SHA-256
    or MD5 of files that are not the original ones. `from_csv` reads a file as it is.
    """

    classes = ("World", "Sports", "Business", "Technology")

    counts = AG_NEWS_ROWS
    mapper = RowToNews()

    @classmethod
    def source(cls) -> Source:
        """Return where the files come from, and where they are kept."""
        offline = f"{cls.__name__}{OFFLINE}"
        variable, mirrors = "BURNBOOK_AG_NEWS_MIRROR", AG_NEWS_MIRRORS
        return Source("ag_news", variable, mirrors, AG_NEWS_FILES, offline)


class DbPediaDataset(CsvTexts[DbPediaItem]):
    """Articles on things of fourteen kinds: 560,000 for training, 70,000 for testing.

    The first use downloads the archive (68 MB) and checks it; later uses read the
    cache. `BURNBOOK_DB_PEDIA_MIRROR`, `checksums` and `from_csv` are as for
    `AgNewsDataset`.
    """

    classes = (
        "Company",
        "EducationalInstitution",
        "Artist",
        "Athlete",
        "OfficeHolder",
        "MeanOfTransportation",
        "Building",
        "NaturalPlace",
        "Village",
        "Animal",
        "Plant",
        "Album",
        "Film",
        "WrittenWork",
    )

    counts = DB_PEDIA_ROWS
    mapper = RowToArticle()

    @classmethod
    def source(cls) -> Source:
        """Return where the files come from, and where they are kept."""
        offline = f"{cls.__name__}{OFFLINE}"
        variable, mirrors = "BURNBOOK_DB_PEDIA_MIRROR", DB_PEDIA_MIRRORS
        return Source("db_pedia", variable, mirrors, DB_PEDIA_FILES, offline)


def _all(
    rows: LabeledTexts, counts: Mapping[str, int], split: str, checksums: Checksums
) -> LabeledTexts:
    """Return the rows if none is missing; files of one's own may have any number."""
    if not checksums and len(rows) != counts[split]:
        what = f"{rows.path} has {len(rows):,} rows, not {counts[split]:,}"
        cure = "removing the file; it is fetched again"
        raise DataError("texts", what, cure=cure)
    return rows
