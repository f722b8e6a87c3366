"""What the dataset browser makes of single items: their kind, labels and pixels."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import numpy as np
import pytest

from tests.support.cases import cases

pytest.importorskip("anywidget", reason="the widgets need anywidget")

from burnbook import data
from burnbook.backend import Numpy
from burnbook.tensor import Tensor
from burnbook_widgets.dataset.items import as_labels, look
from burnbook_widgets.dataset.pixels import (
    Pack,
    as_pixels,
    data_uri,
    envelope,
    png,
    shrink,
)


@dataclass
class Row:
    age: int
    town: str
    score: float


@cases(
    "item kind",
    (data.DigitsDataset.test().get(0), "image"),
    (data.ImageDatasetItem(np.zeros((5, 4, 3), np.uint8), data.Label(2)), "image"),
    (data.AgNewsItem(1, "title", "content"), "text"),
    ("a bare text", "text"),
    (("a text with a label", 1), "text"),
    ((np.zeros((3, 8, 8)), 4), "image"),
    (np.zeros((8, 8)), "image"),
    (Tensor.from_data([[1.0, 2.0], [3.0, 4.0]], Numpy()), "image"),
    (np.zeros(500), "sound"),
    (np.arange(4.0), "row"),
    ({"age": 3, "town": "Rome"}, "row"),
    (Row(3, "Rome", 0.5), "row"),
    (7, "row"),
)
def test_items_are_recognised_by_what_they_hold(item, kind):
    assert look(item).kind == kind


def test_a_row_shows_its_fields_without_the_label():
    seen = look({"age": 31, "pay": 0.123456, "label": 1, "tags": ["a", "b"]})
    assert seen.fields == {"age": "31", "pay": "0.1235", "tags": "a, b"}


def test_labels_of_every_form_become_keys():
    boxes = data.BoundingBoxes(
        (data.BoundingBox((0, 0, 1, 1), 4), data.BoundingBox((1, 1, 2, 2), 4))
    )
    assert as_labels(boxes) == (4,)
    assert as_labels(data.MultiLabel((2, 0))) == (2, 0)
    assert as_labels(data.SegmentationMask(np.zeros((2, 2), np.int64))) == ()
    assert as_labels(np.float32(1.5)) == (1.5,)
    assert as_labels("cat") == ("cat",)


def test_pixels_keep_known_ranges_and_stretch_others():
    assert as_pixels(np.array([[0.0, 1.0]])).tolist() == [[0, 255]]
    assert as_pixels(np.array([[0.0, 200.0]])).tolist() == [[0, 200]]
    assert as_pixels(np.array([[-2.0, 0.0, 2.0]])).tolist() == [[0, 128, 255]]
    assert as_pixels(np.array([[np.nan, 1.0]])).tolist() == [[0, 255]]
    assert as_pixels(np.zeros((3, 6, 7))).shape == (6, 7, 3)
    assert as_pixels(np.array([[True, False]])).tolist() == [[255, 0]]


def test_the_outline_of_a_sound_holds_its_peaks():
    samples = np.zeros(16_000)
    samples[8_000], samples[100] = 0.5, -0.25
    outline = envelope(samples, 100)
    assert outline.shape == (100, 2)
    assert outline[50].tolist() == [0, 127]
    assert outline[0].tolist() == [-64, 0]


def test_large_pictures_are_made_to_fit():
    picture = np.random.default_rng(0).integers(0, 255, (200, 300, 3)).astype(np.uint8)
    width, height, channels, data = shrink(picture, 6_000)
    assert len(data) <= 6_000
    assert channels in (0, 3)
    assert width > height


def test_a_stored_png_reads_back_as_its_pixels():
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    found = np.asarray(image.open(io.BytesIO(png(pixels.tobytes(), 4, 2, 3))))
    assert np.array_equal(found, pixels)
    pack = Pack()
    uri = data_uri(pack.picture(pixels, 1_000), pack.data)
    file = base64.b64decode(uri.partition(",")[2])
    assert np.array_equal(np.asarray(image.open(io.BytesIO(file))), pixels)
