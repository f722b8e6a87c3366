"""Text files in folders, one folder per class."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from burnbook.core.errors import DataError
from burnbook.core.files import (
    PathLike,
    fixed,
    printable,
    read_whole,
    within_memory,
)
from burnbook.data.dataset.base import Dataset, no_number
from burnbook.data.dataset.vision.image_folder import files_below, labeled

EXTENSIONS = ("txt",)
MARKS = {  # how a file begins that says its encoding
    b"\xef\xbb\xbf": "utf-8",
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
}


@dataclass(frozen=True, slots=True)
class TextDatasetItem:
    """A text, the index of its class, and where it came from."""

    text: str
    label: int
    text_path: str = ""


class TextFolderDataset(Dataset[TextDatasetItem]):
    """Text files on the disk and their classes; a file is read when asked for.

    Example:
        >>> import tempfile
        >>> root = tempfile.TemporaryDirectory()
        >>> for name in ("bad", "good"):
        ...     (Path(root.name) / name).mkdir()
        ...     _ = (Path(root.name) / name / "1.txt").write_text(f"very {name}")
        >>> dataset = TextFolderDataset.new_classification(root.name)
        >>> dataset.classes, dataset.get(1).text, dataset.get(1).label
        (['bad', 'good'], 'very good', 1)
        >>> root.cleanup()
    """

    def __init__(
        self, items: Iterable[tuple[Path, int]], classes: Sequence[str]
    ) -> None:
        self.items = [(fixed(path), label) for path, label in items]
        self.classes = list(classes)

    @classmethod
    def new_classification(
        cls, root: PathLike, *, classes: Sequence[str] | None = None
    ) -> TextFolderDataset:
        """Take every .txt file below `root`; its folder is its class.

        classes: the classes in their order, as `train.classes` for the other splits: a
        folder may lack some. Without, the names of the folders, sorted.
        """
        return cls.new_classification_with(root, EXTENSIONS, classes=classes)

    @classmethod
    def new_classification_with(
        cls,
        root: PathLike,
        extensions: Sequence[str],
        *,
        classes: Sequence[str] | None = None,
    ) -> TextFolderDataset:
        """Take the files below `root` with these extensions; the folder is the class.

        Items are sorted by path and classes by name. Links are followed. A warning says
        that all files are of one class.

        classes: as for `new_classification`.

        Raises:
            DataError: `root` is no folder, holds no such files, or holds a folder that
                is not among `classes`.
        """
        known = [extension.lower().lstrip(".") for extension in extensions]
        paths = files_below(root, known, "texts")
        names, labels = labeled(paths, classes, "texts")
        return cls(list(zip(paths, labels, strict=True)), names)

    @classmethod
    def new_classification_with_items(
        cls, items: Iterable[tuple[PathLike, str]], classes: Sequence[str]
    ) -> TextFolderDataset:
        """Take these files, each with the name of its class."""
        place = {name: i for i, name in enumerate(classes)}
        pairs: list[tuple[Path, int]] = []
        for path, name in items:
            if name not in place:
                what = f"{os.fspath(path)} is of a class that is not listed: {name!r}"
                facts = [("classes", ", ".join(list(place)[:20]))]
                raise DataError("folder of texts", what, facts)
            pairs.append((fixed(path), place[name]))
        return cls(pairs, classes)

    def get(self, index: int) -> TextDatasetItem | None:
        """Read text `index`, or return None where there is none."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        if not 0 <= index < len(self.items):
            return None
        path, label = self.items[index]
        with within_memory(f"read {printable(path)}"):
            return TextDatasetItem(decoded(read_whole(path)), label, str(path))

    def __len__(self) -> int:
        return len(self.items)


def decoded(data: bytes) -> str:
    """Return the text of a file: by its byte order mark, else UTF-8, else GB18030.

    Why: these are the encodings that Burn tries, in its order; text in none of them
    keeps its readable part, with U+FFFD for the rest.

    Example:
        >>> decoded("déjà vu".encode()), decoded("你好".encode("gbk"))
        ('déjà vu', '你好')
    """
    for mark, encoding in MARKS.items():
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace")
    for encoding in ("utf-8", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", errors="replace")
