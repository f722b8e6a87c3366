"""Images: every depth as the file has it, folders of classes, masks and boxes."""

import io
import json
import pickle
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from burnbook.core.errors import DataError
from burnbook.data import Batcher, DataLoaderBuilder
from burnbook.data.dataset.vision import image as images
from burnbook.data.dataset.vision.image import (
    BoundingBox,
    BoundingBoxes,
    ImageDatasetItem,
    Label,
    MultiLabel,
    SegmentationMask,
    read_image,
    read_mask,
)
from burnbook.data.dataset.vision.image_folder import ImageFolderDataset
from tests.support.cases import cases
from tests.support.refusals import refused

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
RANDOM = np.random.default_rng(0)
BYTES = RANDOM.integers(0, 256, (5, 4, 3), np.uint8)


class Together(Batcher):
    """All images of a batch in one array, and their labels."""

    def batch(self, items):
        images = np.stack([item.image for item in items])
        return images, [item.annotation.label for item in items]


def saved(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)
    return path


def big_png(array, filters=None):
    """Write a PNG of 16 bits per channel with the filters asked for, one per line."""
    height, width, channels = array.shape
    step = 2 * channels
    lines = array.astype(">u2").view(np.uint8).reshape(height, width * step).astype(int)
    out = b""
    for y in range(height):
        kind = filters[y % len(filters)] if filters else 0
        coded = []
        for x in range(width * step):
            a = lines[y, x - step] if x >= step else 0
            b = lines[y - 1, x] if y else 0
            c = lines[y - 1, x - step] if y and x >= step else 0
            p = a + b - c
            nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            coded.append((lines[y, x] - [0, a, b, (a + b) // 2, nearest][kind]) % 256)
        out += bytes([kind]) + bytes(coded)
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    head = struct.pack(">IIBBBBB", width, height, 16, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body))
        + kind
        + body
        + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in (
            (b"IHDR", head),
            (b"IDAT", zlib.compress(out)),
            (b"IEND", b""),
        )
    )


# Pixels


@pytest.mark.parametrize("extension", ["png", "bmp", "tif", "ppm"])
def test_bytes_come_back_as_they_were_saved(tmp_path, extension):
    found = read_image(saved(tmp_path / f"x.{extension}", BYTES))
    assert found.dtype == np.uint8
    assert found.tolist() == BYTES.tolist()


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_gray_opacity_and_color_keep_their_channels(tmp_path, channels):
    array = RANDOM.integers(0, 256, (3, 2, channels), np.uint8)
    plain = array[:, :, 0] if channels == 1 else array
    found = read_image(saved(tmp_path / "x.png", plain))
    assert found.tolist() == array.tolist()


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("filters", [[0], [1], [2], [3], [4], [4, 3, 2, 1, 0]])
def test_sixteen_bits_stay_sixteen(tmp_path, channels, filters):
    array = RANDOM.integers(0, 1 << 16, (7, 5, channels), np.uint16)
    path = tmp_path / "x.png"
    path.write_bytes(big_png(array, filters))
    found = read_image(path)
    assert found.dtype == np.uint16
    assert found.tolist() == array.tolist()


def test_gray_of_sixteen_bits_as_pillow_writes_it(tmp_path):
    array = RANDOM.integers(0, 1 << 16, (7, 5), np.uint16)
    for name in ("x.png", "x.tif"):
        found = read_image(saved(tmp_path / name, array))
        assert (found.dtype, found[:, :, 0].tolist()) == (np.uint16, array.tolist())


def test_floats_stay_floats(tmp_path):
    array = RANDOM.normal(size=(4, 3)).astype(np.float32)
    found = read_image(saved(tmp_path / "x.tif", array))
    assert found.dtype == np.float32
    assert found[:, :, 0].tolist() == array.tolist()


def test_palettes_bits_and_cmyk_become_what_burn_makes_of_them(tmp_path):
    picture = Image.fromarray(BYTES).quantize(4)
    picture.save(tmp_path / "p.png")
    expected = np.asarray(picture.convert("RGB"))
    assert read_image(tmp_path / "p.png").tolist() == expected.tolist()
    bits = RANDOM.integers(0, 2, (4, 9)).astype(bool)
    found = read_image(saved(tmp_path / "b.png", bits))
    assert found[:, :, 0].tolist() == (bits * 255).tolist()
    Image.fromarray(BYTES).convert("CMYK").save(tmp_path / "c.jpg")
    assert read_image(tmp_path / "c.jpg").shape == (5, 4, 3)
    picture.info["transparency"] = 0
    picture.save(tmp_path / "t.png", transparency=0)
    assert read_image(tmp_path / "t.png").shape == (5, 4, 4)


def test_a_mask_holds_palette_places_or_the_first_channel(tmp_path):
    classes = RANDOM.integers(0, 4, (4, 5), np.uint8)
    picture = Image.fromarray(classes).convert("P")
    picture.putdata(classes.ravel().tolist())
    picture.save(tmp_path / "p.png")
    assert read_mask(tmp_path / "p.png").tolist() == classes.tolist()
    assert read_mask(saved(tmp_path / "l.png", classes)).tolist() == classes.tolist()
    assert read_mask(saved(tmp_path / "c.png", BYTES)).tolist() == (
        BYTES[:, :, 0].tolist()
    )
    deep = RANDOM.integers(0, 1 << 16, (3, 3, 3), np.uint16)
    (tmp_path / "d.png").write_bytes(big_png(deep))
    assert read_mask(tmp_path / "d.png").tolist() == deep[:, :, 0].tolist()
    bits = RANDOM.integers(0, 2, (4, 9)).astype(bool)
    assert read_mask(saved(tmp_path / "b.png", bits)).tolist() == bits.tolist()


# Files that are not right


def whole_png():
    out = io.BytesIO()
    Image.fromarray(BYTES).save(out, "PNG")
    return out.getvalue()


@cases(
    "content reason",
    (b"", "it is none of BMP"),
    (b"<svg></svg>", "it is none of BMP"),
    (b"%!PS-Adobe-3.0 EPSF-3.0\n(ls) system\n", "it is none of BMP"),
    (whole_png()[:60], "cannot be decoded"),
    (big_png(np.zeros((3, 3, 3)))[:50], "cannot be decoded as an image: it is cut"),
)
def test_a_broken_image_is_named(tmp_path, content, reason):
    path = tmp_path / "broken.png"
    path.write_bytes(content)
    refused(DataError, lambda: read_image(path), f"image: {path} cannot be", reason)


@pytest.mark.parametrize("depth", [8, 16])
def test_a_bomb_is_not_unpacked(tmp_path, depth):
    head = struct.pack(">IIBBBBB", 50_000, 50_000, depth, 2, 0, 0, 0)
    body = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + head
    body += struct.pack(">I", zlib.crc32(b"IHDR" + head))
    (tmp_path / "bomb.png").write_bytes(body + bytes(100))
    with pytest.raises(DataError, match=r"bomb\.png"):
        read_image(tmp_path / "bomb.png")


def test_pixels_that_unpack_to_more_than_they_say_are_refused(tmp_path):
    array = np.zeros((3, 3, 3), np.uint16)
    content = big_png(array)
    lines = zlib.compress(bytes(10_000_000))
    place = content.index(b"IDAT")
    (length,) = struct.unpack(">I", content[place - 4 : place])
    body = b"IDAT" + lines
    bomb = content[: place - 4] + struct.pack(">I", len(lines)) + body
    bomb += struct.pack(">I", zlib.crc32(body)) + content[place + 8 + length :]
    (tmp_path / "x.png").write_bytes(bomb)
    with pytest.raises(DataError, match="its number of pixels is not as stated"):
        read_image(tmp_path / "x.png")


def test_an_image_of_one_million_pixels_is_the_most_if_one_says_so(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(images, "MOST_PIXELS", 19)
    with pytest.raises(DataError, match="claims 4 × 5 pixels, 19 at most"):
        read_image(saved(tmp_path / "x.png", BYTES))


def test_a_small_file_cannot_claim_a_large_image(tmp_path):
    path = saved(tmp_path / "x.bmp", BYTES)
    data = bytearray(path.read_bytes())
    data[18:26] = struct.pack("<2i", 8000, 8000)
    path.write_bytes(data)
    with pytest.raises(DataError, match="claims 8,000 × 8,000 pixels, 2,8"):
        read_image(path)
    blank = saved(tmp_path / "blank.png", np.zeros((4000, 4000), np.uint8))
    assert read_image(blank).shape == (4000, 4000, 1)


# Folders


@pytest.fixture
def animals(tmp_path):
    root = tmp_path / "animals"
    for name in ("dog/2.png", "dog/1.PNG", "cat/one/deep.jpg", "cat/9.bmp"):
        saved(root / name, BYTES)
    (root / "cat" / "notes.txt").write_text("no image")
    (root / "cat" / "png").write_text("no image either")
    return root


def test_the_folder_is_the_class_and_paths_give_the_order(animals):
    dataset = ImageFolderDataset.new_classification(animals)
    paths = [Path(item.image_path).relative_to(animals).as_posix() for item in dataset]
    assert paths == ["cat/9.bmp", "cat/one/deep.jpg", "dog/1.PNG", "dog/2.png"]
    assert dataset.classes == ["cat", "dog", "one"]
    assert [item.annotation for item in dataset] == [
        Label(0),
        Label(2),
        Label(1),
        Label(1),
    ]
    item = dataset.get(3)
    assert (item.image_height, item.image_width) == (5, 4)
    assert item.image.tolist() == BYTES.tolist()
    assert (len(dataset), dataset.get(4), dataset.get(-1)) == (4, None, None)
    assert dataset.get_many([3, 0]) == [dataset.get(3), dataset.get(0)]


def test_only_the_extensions_asked_for_are_taken(animals):
    dataset = ImageFolderDataset.new_classification_with(animals, [".BMP", "jpg"])
    assert len(dataset) == 2
    with pytest.raises(DataError, match="'svg' is not an extension"):
        ImageFolderDataset.new_classification_with(animals, ["svg"])


def test_links_are_followed_but_not_in_circles(animals, tmp_path):
    saved(tmp_path / "elsewhere" / "1.png", BYTES)
    (animals / "bird").symlink_to(tmp_path / "elsewhere")
    (animals / "cat" / "up").symlink_to(animals)
    dataset = ImageFolderDataset.new_classification(animals)
    assert dataset.classes == ["bird", "cat", "dog", "one"]
    assert len(dataset) == 5


def test_several_labels_keep_the_order_given(animals):
    dataset = ImageFolderDataset.new_multilabel_classification_with_items(
        [
            (animals / "dog/2.png", ["dog", "animal"]),
            (animals / "cat/9.bmp", ["animal", "cat"]),
        ],
        ["animal", "cat", "dog"],
    )
    assert [item.annotation for item in dataset] == [
        MultiLabel((2, 0)),
        MultiLabel((0, 1)),
    ]
    assert dataset.get(0).annotation == MultiLabel((2, 0))


def test_items_of_ones_own_have_the_places_of_their_classes(animals):
    items = [(animals / "dog/2.png", "dog"), (str(animals / "cat/9.bmp"), "cat")]
    dataset = ImageFolderDataset.new_classification_with_items(items, ["dog", "cat"])
    assert [item.annotation.label for item in dataset] == [0, 1]
    with pytest.raises(DataError, match="a class that is not listed: 'cat'"):
        ImageFolderDataset.new_classification_with_items(items, ["dog"])


def test_masks_have_the_size_of_their_images(tmp_path):
    mask = RANDOM.integers(0, 3, (5, 4), np.uint8)
    image = saved(tmp_path / "image.png", BYTES)
    good = saved(tmp_path / "mask.png", mask)
    bad = saved(tmp_path / "other.png", mask.T.copy())
    dataset = ImageFolderDataset.new_segmentation_with_items(
        [(image, good), (image, bad)], ["a", "b", "c"]
    )
    assert dataset.get(0).annotation == SegmentationMask(mask.astype(np.int64))
    assert repr(dataset.get(0)).endswith("SegmentationMask(5×4))")
    with pytest.raises(DataError, match=r"is not a mask for .*: their sizes differ"):
        dataset.get(1)


def coco(tmp_path, **changes):
    table = {
        "images": [{"id": 7, "file_name": "a.png"}, {"id": 3, "file_name": "b.png"}],
        "annotations": [
            {"image_id": 7, "category_id": 18, "bbox": [1, 2, 3.5, 4]},
            {"image_id": 7, "category_id": 1, "bbox": [0, 0, 1, 1]},
        ],
        "categories": [{"id": 18, "name": "dog"}, {"id": 1, "name": "person"}],
    }
    (tmp_path / "coco.json").write_text(json.dumps(table | changes))
    for name in ("a.png", "b.png"):
        saved(tmp_path / name, BYTES)
    return ImageFolderDataset.new_coco_detection(tmp_path / "coco.json", tmp_path)


def test_coco_boxes_belong_to_their_images(tmp_path):
    dataset = coco(tmp_path)
    assert dataset.names == {1: "person", 18: "dog"}
    assert dataset.classes == ["person", "dog"]
    first = BoundingBoxes(
        (BoundingBox((1, 2, 3.5, 4), 18), BoundingBox((0, 0, 1, 1), 1))
    )
    assert [item.annotation for item in dataset] == [first, BoundingBoxes(())]


@cases(
    "changes",
    {"images": 3},
    {"annotations": [{"image_id": 99, "category_id": 1, "bbox": [0, 0, 1, 1]}]},
    {"annotations": [{"image_id": 7, "category_id": 1, "bbox": [0, 0]}]},
    {"images": [{"id": 7, "file_name": "missing.png"}], "annotations": []},
)
def test_a_coco_file_that_does_not_fit_is_refused(tmp_path, changes):
    with pytest.raises(DataError, match=r"coco\.json"):
        coco(tmp_path, **changes)


def test_items_compare_by_value():
    item = ImageDatasetItem(BYTES, Label(1), "x")
    assert item == ImageDatasetItem(BYTES.copy(), Label(1), "x")
    assert item != ImageDatasetItem(BYTES, Label(2), "x")
    assert item != ImageDatasetItem(BYTES.astype(np.uint16), Label(1), "x")
    assert repr(item) == "ImageDatasetItem(image=5×4×3 uint8, Label(label=1))"


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_reads_images_in_its_workers(animals, workers):
    dataset = ImageFolderDataset.new_classification(animals)
    builder = DataLoaderBuilder(Together()).batch_size(3).shuffle(5)
    found = list(builder.num_workers(workers).build(dataset))
    assert [images.shape for images, _ in found] == [(3, 5, 4, 3), (1, 5, 4, 3)]
    labels = [label for _, labels in found for label in labels]
    order = list(DataLoaderBuilder(Together()).batch_size(4).shuffle(5).build(dataset))
    assert labels == order[0][1]
    assert sorted(labels) == [0, 1, 1, 2]
    again = pickle.loads(pickle.dumps(dataset))
    assert [again.get(i) for i in range(4)] == [dataset.get(i) for i in range(4)]


def test_splits_share_their_classes_where_a_folder_lacks_one(animals, tmp_path):
    train = ImageFolderDataset.new_classification(animals)
    source = train.items[-1][0]
    last = source.parent.name
    first = next(name for name in train.classes if name != last)
    (tmp_path / "valid" / last).mkdir(parents=True)
    shutil.copy(source, tmp_path / "valid" / last / source.name)
    with pytest.warns(UserWarning, match="of one class") as caught:
        ImageFolderDataset.new_classification(tmp_path / "valid")
    assert "classes=train.classes" in str(caught[0].message)
    valid = ImageFolderDataset.new_classification(
        tmp_path / "valid", classes=train.classes
    )
    assert (valid.classes, valid.get(0).annotation.label) == (
        train.classes,
        train.classes.index(last),
    )
    with pytest.raises(DataError, match="not listed"):
        ImageFolderDataset.new_classification(tmp_path / "valid", classes=[first])
