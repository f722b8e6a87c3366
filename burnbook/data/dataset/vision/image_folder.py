"""Images in folders: classes, several labels, masks, boxes.

The dataset holds paths only; an image is read when its item is asked for, so a folder
of any size opens at once, and workers share the work of reading.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burnbook.core.errors import DataError, explain, warn_caller
from burnbook.core.files import (
    PathLike,
    fixed,
    printable,
    read_whole,
    shown_path,
    within_memory,
)
from burnbook.data.dataset.base import Dataset, no_number
from burnbook.data.dataset.vision.image import (
    Annotation,
    BoundingBox,
    BoundingBoxes,
    ImageDatasetItem,
    Label,
    MultiLabel,
    SegmentationMask,
    read_image,
    read_mask,
)
from burnbook.data.formats.fields import shown

EXTENSIONS = ("bmp", "jpg", "jpeg", "png")
READABLE = (*EXTENSIONS, "gif", "pgm", "ppm", "tif", "tiff", "webp")


class ImageFolderDataset(Dataset[ImageDatasetItem]):
    """Images on the disk and what is known about each.

    `classes` names the classes; an annotation holds indices into it (those of COCO hold
    COCO's own category ids, which `names` explains).

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> root = tempfile.TemporaryDirectory()
        >>> for name in ("cat", "dog"):
        ...     (Path(root.name) / name).mkdir()
        ...     Image.new("RGB", (3, 2)).save(Path(root.name) / name / "1.png")
        >>> dataset = ImageFolderDataset.new_classification(root.name)
        >>> dataset.classes, dataset.get(1)
        (['cat', 'dog'], ImageDatasetItem(image=2×3×3 uint8, Label(label=1)))
        >>> root.cleanup()
    """

    def __init__(
        self,
        items: Iterable[tuple[Path, Annotation | Path]],
        classes: Sequence[str],
        names: dict[int, str] | None = None,
    ) -> None:
        self.items = [
            (fixed(path), fixed(mask) if isinstance(mask, Path) else mask)
            for path, mask in items
        ]
        self.classes = list(classes)
        self.names = dict(enumerate(classes)) if names is None else names

    @classmethod
    def new_classification(
        cls, root: PathLike, *, classes: Sequence[str] | None = None
    ) -> ImageFolderDataset:
        """Take every BMP, JPEG and PNG below `root`; its folder is its class.

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
    ) -> ImageFolderDataset:
        """Take the files below `root` with these extensions; the folder is the class.

        Items are sorted by path and classes by name. Links are followed. A warning says
        that all files are of one class.

        classes: as for `new_classification`.

        Raises:
            DataError: `root` is no folder, holds no such files, or holds a folder that
                is not among `classes`.
        """
        known = [_known(extension) for extension in extensions]
        paths = files_below(root, known, "images")
        names, labels = labeled(paths, classes, "images")
        pairs = zip(paths, map(Label, labels), strict=True)
        return cls(list(pairs), names)

    @classmethod
    def new_classification_with_items(
        cls, items: Iterable[tuple[PathLike, str]], classes: Sequence[str]
    ) -> ImageFolderDataset:
        """Take these images, each with the name of its class."""
        place = _places(classes)
        pairs = [(_image(p), Label(_place(p, name, place))) for p, name in items]
        return cls(pairs, classes)

    @classmethod
    def new_multilabel_classification_with_items(
        cls, items: Iterable[tuple[PathLike, Sequence[str]]], classes: Sequence[str]
    ) -> ImageFolderDataset:
        """Take these images, each with the names of all its classes."""
        place = _places(classes)
        pairs: list[tuple[Path, Annotation | Path]] = []
        for path, names in items:
            labels = tuple(_place(path, name, place) for name in _names(path, names))
            pairs.append((_image(path), MultiLabel(labels)))
        return cls(pairs, classes)

    @classmethod
    def new_segmentation_with_items(
        cls, items: Iterable[tuple[PathLike, PathLike]], classes: Sequence[str]
    ) -> ImageFolderDataset:
        """Take these images, each with an image whose pixels are classes."""
        _places(classes)
        return cls([(_image(path), _image(mask)) for path, mask in items], classes)

    @classmethod
    def new_coco_detection(
        cls, annotations: PathLike, images: PathLike
    ) -> ImageFolderDataset:
        """Take the images of a COCO file of boxes; labels are its category ids.

        Source: Lin et al., 2014, arXiv:1405.0312. An image without boxes has an empty
        list.
        """
        name = printable(annotations)
        try:
            with within_memory(f"coco {name}"):
                table: Any = json.loads(read_whole(annotations))
            names = {int(one["id"]): str(one["name"]) for one in table["categories"]}
            boxes: dict[int, list[BoundingBox]] = {}
            for one in table["images"]:
                boxes[int(one["id"])] = []
            for one in table["annotations"]:
                x, y, w, h = (float(value) for value in one["bbox"])
                box = BoundingBox((x, y, w, h), int(one["category_id"]))
                boxes[int(one["image_id"])].append(box)
            files = [(str(one["file_name"]), int(one["id"])) for one in table["images"]]
        except DataError:
            raise
        except (
            ValueError,
            KeyError,
            TypeError,
            RecursionError,
            AttributeError,
            OverflowError,
        ) as error:
            what = f"{name} is not a COCO file of boxes"
            why = printable(str(error)[:100])
            facts = [("why", f"{type(error).__name__}: {why}")]
            raise DataError("coco", what, facts) from None
        folder = fixed(images)
        pairs = [
            (_named(folder, file, name), BoundingBoxes(tuple(boxes[i])))
            for file, i in files
        ]
        return cls(pairs, [names[i] for i in sorted(names)], names)

    def get(self, index: int) -> ImageDatasetItem | None:
        """Read image `index`, or return None where there is none."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        if not 0 <= index < len(self.items):
            return None
        path, known = self.items[index]
        image = read_image(path)
        if isinstance(known, Path):
            known = _mask(known, image.shape[:2], path)
        return ImageDatasetItem(image, known, str(path))

    def __len__(self) -> int:
        return len(self.items)


def files_below(root: PathLike, extensions: Sequence[str], kind: str) -> list[Path]:
    """Return the files below a folder with these extensions, sorted by path.

    Why: a link may lead back up, so no folder is entered twice.
    """
    root = fixed(root)
    if not root.is_dir():
        what = f"there is no folder {shown_path(root)}"
        raise DataError(f"folder of {kind}", what)
    seen: set[str] = set()
    found: list[Path] = []
    for folder, inside, files in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            inside.clear()
            continue
        seen.add(real)
        found += [Path(folder) / name for name in _matching(files, extensions)]
    if not found:
        what = f"there are no {kind} below {shown_path(root)}"
        facts = [("extensions", ", ".join(extensions))]
        raise DataError(f"folder of {kind}", what, facts)
    return sorted(found, key=lambda path: path.parts)


def labeled(
    paths: Sequence[Path], classes: Sequence[str] | None, kind: str
) -> tuple[list[str], list[int]]:
    """The classes of files, and for each one the number of that of its folder.

    Why: classes that are numbered for each folder alone differ where one is missing.
    """
    if classes is None:
        names = sorted({path.parent.name for path in paths})
        if len(names) == 1:
            what = f"all {len(paths)} files are of one class, {names[0]!r}"
            cure = "a folder for each class below it, or classes=train.classes"
            warn_caller(explain(f"folder of {kind}", what, cure=cure))
    else:
        names = list(classes)
    place = _places(classes if classes is not None else names, kind)
    return names, [_place(path, path.parent.name, place, kind) for path in paths]


def _named(folder: Path, file: str, name: str) -> Path:
    """The image that a COCO file names; it lies in the folder, and is there.

    Why: a foreign file could name any other file of this computer.
    """
    parts = Path(file).parts
    outside = os.path.isabs(file) or ".." in parts or Path(file).drive
    if outside or not parts:
        what = f"{name} names {shown(file)}, which is not in {folder}"
        raise DataError("coco", what)
    path = folder / file
    try:
        there = path.is_file()
    except (OSError, ValueError):  # no file can have this name
        there = False
    if not there:
        what = f"{name} names {printable(path)[:300]}, which does not exist"
        raise DataError("coco", what)
    return path


def _matching(files: list[str], extensions: Sequence[str]) -> Iterator[str]:
    for name in files:
        if name.rpartition(".")[2].lower() in extensions and "." in name:
            yield name


def _known(extension: str) -> str:
    plain = extension.lower().lstrip(".")
    if plain not in READABLE:
        what = f"{extension!r} is not an extension of images that can be read"
        facts = [("extensions", ", ".join(READABLE))]
        raise DataError("folder of images", what, facts)
    return plain


def _image(path: PathLike) -> Path:
    _known(Path(path).suffix)
    return fixed(path)


def _places(classes: Sequence[str], kind: str = "images") -> dict[str, int]:
    place = {name: i for i, name in enumerate(classes)}
    if isinstance(classes, str) or len(place) != len(classes):
        what = "classes must be a list of different names"
        raise DataError(f"folder of {kind}", what)
    return place


def _names(path: PathLike, names: Sequence[str]) -> Sequence[str]:
    if isinstance(names, str):
        what = f"{os.fspath(path)} has the text {names!r} where a list of names belongs"
        raise DataError("folder of images", what, cure=f"[{names!r}]")
    return names


def _place(
    path: PathLike, name: str, place: dict[str, int], kind: str = "images"
) -> int:
    if name not in place:
        what = f"{os.fspath(path)} is of a class that is not listed: {name!r}"
        facts = [("classes", ", ".join(list(place)[:20]))]
        raise DataError(f"folder of {kind}", what, facts)
    return place[name]


def _mask(path: Path, size: tuple[int, ...], image: Path) -> SegmentationMask:
    mask = read_mask(path)
    if mask.shape != size:
        what = f"{path} is not a mask for {image}: their sizes differ"
        facts = [
            ("image", f"{size[0]} × {size[1]}"),
            ("mask", f"{mask.shape[0]} × {mask.shape[1]}"),
        ]
        raise DataError("folder of images", what, facts)
    return SegmentationMask(np.ascontiguousarray(mask))
