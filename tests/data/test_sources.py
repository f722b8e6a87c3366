"""Sources: IDX files within bounds, digits and their items."""

import gzip
import struct

import numpy as np
import pytest

from burnbook import data
from burnbook.core.errors import DataError
from burnbook.data.dataset.vision.digits import scale_bilinear
from burnbook.data.dataset.vision.mnist import BytesToImage, LabeledImages
from tests.support.cases import cases
from tests.support.refusals import refused


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


CONTENT = idx(np.random.default_rng(0).integers(0, 256, (50, 28, 28)))
PACKED = gzip.compress(CONTENT)


def flipped(content, place):
    changed = bytearray(content)
    changed[place] ^= 1
    return bytes(changed)


def test_items_compare_by_value_and_say_what_they_are():
    image = np.zeros((28, 28), np.float32)
    assert data.MnistItem(image, 3) == data.MnistItem(image.copy(), 3)
    assert data.MnistItem(image, 3) != data.MnistItem(image + 1, 3)
    assert data.MnistItem(image, 3) != data.MnistItem(image, 4)
    assert repr(data.MnistItem(image, 3)) == "MnistItem(image=28×28 floats, label=3)"


# MNIST as the book builds it


def raw_digits(count):
    pixels = np.random.default_rng(1).integers(0, 256, (count, 28, 28), np.uint8)
    return LabeledImages(pixels, np.arange(count))


def test_a_raw_digit_is_bytes_and_a_label():
    digits = raw_digits(3)
    item = digits.get(2)
    assert (item.image_bytes.shape, item.image_bytes.dtype) == ((28, 28), np.uint8)
    assert (item.label, digits.get(3), len(digits)) == (2, None, 3)


def test_the_mapper_makes_floats_of_bytes_pixel_by_pixel():
    raw = raw_digits(2).get(1)
    item = BytesToImage().map(raw)
    assert (item.image.dtype, item.label) == (np.float32, 1)
    for i, pixel in enumerate(raw.image_bytes.ravel().tolist()):
        assert item.image[i // 28, i % 28] == pixel
    assert BytesToImage().map_many([raw]) == [item]


def test_mnist_passes_questions_on_to_its_mapper():
    mapped = data.MapperDataset(raw_digits(4), BytesToImage())
    for split in ("train", "test"):
        dataset = data.MnistDataset(mapped, split)
        assert (len(dataset), dataset.get(4)) == (4, None)
        assert dataset.get(3) == mapped.get(3)
        assert dataset.get_many([3, 0]) == [mapped.get(3), mapped.get(0)]
        assert repr(dataset) == f"MnistDataset({split}, 4 items)"


# IDX


def write(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("code", "dtype"), [(8, "u1"), (9, "i1"), (11, ">i2"), (12, ">i4"), (14, ">f8")]
)
def test_every_element_type_is_read(tmp_path, code, dtype, pack):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    content = bytes([0, 0, code, 2]) + struct.pack(">2I", 2, 3) + array.tobytes()
    found = data.read_idx(write(tmp_path / "x", pack(content)))
    assert found.tolist() == array.tolist()
    assert found.dtype == array.dtype


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
@cases(
    "content text",
    (b"", "is not an IDX file: it begins with nothing"),
    (b"PK\3\4" + bytes(20), "is not an IDX file: it begins with 50 4b 03 04"),
    (b"\0\0\7\1" + bytes(20), "is not an IDX file: it begins with 00 00 07 01"),
    (CONTENT[:9], "ends inside its header of 16 bytes"),
    (CONTENT[:-1], "is cut off: its header does not fit its length"),
    (CONTENT + b"\0", "(is too long|more than the 39,216 bytes)"),
    (b"\0\0\x08\3" + b"\xff" * 12 + bytes(99), "is cut off: its header"),
    (b"\0\0\x0e\xff" + b"\xff" * 1020, "has 255 dims, 32 at most"),
    (b"\0\0\x08\3" + bytes(4) + b"\xff" * 8, "is cut off: its header"),
)
def test_a_header_is_not_believed(tmp_path, pack, content, text):
    with pytest.raises(DataError, match=text):
        data.read_idx(write(tmp_path / "x", pack(content)))


def test_a_bomb_stops_at_what_its_header_says(tmp_path):
    bomb = gzip.compress(idx(np.zeros((2, 2))) + bytes(200_000_000), 1)
    with pytest.raises(DataError, match="too long: its header does not fit"):
        data.read_idx(write(tmp_path / "x", bomb))
    honest = gzip.compress(idx(np.zeros((3000, 1000))), 1)
    with pytest.raises(DataError, match="is larger than allowed"):
        data.read_idx(write(tmp_path / "x", honest), max_bytes=2_999_999)
    assert data.read_idx(tmp_path / "x", max_bytes=3_000_000).shape == (3000, 1000)


def test_a_small_file_does_not_take_much_memory(tmp_path):
    promise = b"\0\0\x08\2" + struct.pack(">2I", 1 << 16, 1 << 14)  # a gigabyte
    path = write(tmp_path / "x", gzip.compress(promise + bytes(1 << 26), 1))
    with pytest.raises(DataError, match="is larger than allowed") as error:
        data.read_idx(path)
    assert "max_bytes=" in error.value.cure


def test_a_cut_or_damaged_gzip_file_is_one_clear_error(tmp_path):
    with pytest.raises(DataError, match="is cut off after "):
        data.read_idx(write(tmp_path / "x", PACKED[:-30]))
    with pytest.raises(DataError, match="is damaged after "):
        data.read_idx(write(tmp_path / "x", flipped(PACKED, 300)))
    told = (f"read_idx {tmp_path / 'none'}: ", "no such file", "the folder holds x")
    refused(DataError, lambda: data.read_idx(tmp_path / "none"), *told)


# Digits


def test_the_digits_are_split_with_the_same_mix_and_nothing_is_lost():
    train, test = data.DigitsDataset.train(), data.DigitsDataset.test()
    assert (len(train), len(test)) == (1438, 359)
    labels = [[item.label for item in part] for part in (train, test)]
    for digit in range(10):
        share = labels[1].count(digit) / (labels[0] + labels[1]).count(digit)
        assert share == pytest.approx(0.2, abs=0.01)
    seen = {item.image.tobytes() for part in (train, test) for item in part}
    assert len(seen) == 1797


def test_digits_have_the_shape_and_range_of_mnist():
    item = data.DigitsDataset.train().get(0)
    assert (item.image.shape, item.image.dtype) == ((28, 28), np.float32)
    images = np.stack([item.image for item in data.DigitsDataset.test()])
    assert images.min() == 0
    assert 250 < images.max() <= 255


def test_the_split_of_the_digits_follows_the_seed():
    labels = [
        [item.label for item in data.DigitsDataset.test(seed)] for seed in (0, 0, 1)
    ]
    assert labels[0] == labels[1] != labels[2]
    pictures = [{i.image.tobytes() for i in data.DigitsDataset.test(s)} for s in (0, 1)]
    assert len(pictures[0] & pictures[1]) < 150


def test_an_item_is_a_copy_that_may_be_changed():
    data.DigitsDataset.train().get(0).image[:] = -1
    assert data.DigitsDataset.train().get(0).image.min() == 0
    data.DigitsDataset.train().get_many([0])[0].image[:] = -1
    assert data.DigitsDataset.train().get(0).image.min() == 0


def test_bilinear_scaling_agrees_with_a_slow_loop():
    image = np.random.default_rng(0).random((1, 5, 3))
    found = scale_bilinear(image, 7, 8)[0]
    for i in range(7):
        for j in range(8):
            y = min(max((i + 0.5) * 5 / 7 - 0.5, 0), 4)
            x = min(max((j + 0.5) * 3 / 8 - 0.5, 0), 2)
            total = 0.0
            for a in range(5):
                for b in range(3):
                    weight = max(0, 1 - abs(y - a)) * max(0, 1 - abs(x - b))
                    total += weight * image[0, a, b]
            assert found[i, j] == pytest.approx(total)


def test_without_scikit_learn_the_cure_is_named(monkeypatch):
    from burnbook.data.dataset.vision import digits

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    digits._scaled_digits.cache_clear()
    told = ("DigitsDataset: ", "scikit-learn", "try: pip install scikit-learn")
    refused(DataError, data.DigitsDataset.train, *told)
