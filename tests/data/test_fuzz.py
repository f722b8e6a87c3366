"""Mutated files: every reader of the sources answers or gives one error of ours."""

import gzip
import io
import json
import random
import struct
import tarfile
import time
import tracemalloc
import warnings
import wave
from contextlib import closing

import numpy as np
import pytest

from burnbook.core.errors import DataError
from burnbook.data.dataset.csv_rows import LabeledTexts
from burnbook.data.dataset.nlp.text_folder import decoded
from burnbook.data.dataset.vision.cifar import parse_cifar
from burnbook.data.dataset.vision.image import read_image, read_mask
from burnbook.data.dataset.vision.image_folder import ImageFolderDataset
from burnbook.data.formats.archive import Bounds, read_tar
from burnbook.data.formats.idx import parse_idx, read_idx
from burnbook.data.formats.png import deep_png
from burnbook.data.formats.wav import parse_wav
from tests.support.mutation import mutations

MUTATIONS = mutations(500)  # of each reader
RANDOM = np.random.default_rng(0)
PICTURE = RANDOM.integers(0, 256, (9, 7, 3), np.uint8)
SLOWEST = 30.0  # seconds: it ends, however slow the machine is
MOST = 24 << 20  # bytes of memory beyond what is there: a few times a buffer


def picture(form, **options):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    out = io.BytesIO()
    image.fromarray(PICTURE).save(out, form, **options)
    return out.getvalue()


def deep():
    from tests.data.test_images import big_png

    return big_png(PICTURE.astype(np.uint16) * 257, [4, 3, 2, 1])


def sound():
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((2, 2, 16_000, 0, "NONE", ""))
        file.writeframes(RANDOM.bytes(400))
    return out.getvalue()


def archive(mode="w"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=tarfile.PAX_FORMAT) as tar:
        for name in ("a/thing", "ü" * 120, "empty"):
            entry = tarfile.TarInfo(name)
            entry.size = 0 if name == "empty" else 700
            tar.addfile(entry, io.BytesIO(RANDOM.bytes(entry.size)))
    return out.getvalue()


def idx():
    return b"\0\0\x08\3" + struct.pack(">3I", 2, 5, 5) + RANDOM.bytes(50)


TABLE = b'"1","A ""title""","two\nlines"\n4,plain,"x"\n"2","\xc3\xbc","y"\n'
COCO = json.dumps(
    {
        "images": [{"id": 1, "file_name": "data"}],
        "annotations": [{"image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4]}],
        "categories": [{"id": 2, "name": "dog"}],
    }
).encode()


def read_rows(path):
    dataset = LabeledTexts(path, 4)
    for i in range(len(dataset)):
        try:
            dataset.get(i)
        except DataError:
            continue


def read_archive(path):
    with (
        open(path, "rb") as file,
        closing(read_tar(file, "x.tar", Bounds(10, 1 << 20))) as files,
    ):
        for _, content in files:
            while content.read(1000):
                pass


def on_bytes(reader):
    return lambda path: reader(path.read_bytes())


READERS = {
    "idx": (idx, on_bytes(lambda data: parse_idx(data, "x"))),
    "idx packed": (lambda: gzip.compress(idx()), read_idx),
    "wav": (sound, on_bytes(lambda data: parse_wav(data, "x"))),
    "tar": (archive, read_archive),
    "tar packed": (lambda: archive("w:gz"), read_archive),
    "png": (lambda: picture("PNG"), read_image),
    "png of 16 bits": (deep, on_bytes(lambda data: deep_png(data, 10**6, "x"))),
    "bmp": (lambda: picture("BMP"), read_image),
    "jpeg": (lambda: picture("JPEG"), read_image),
    "gif": (lambda: picture("GIF"), read_mask),
    "tiff": (lambda: picture("TIFF"), read_image),
    "webp": (lambda: picture("WEBP"), read_image),
    "cifar": (
        lambda: RANDOM.integers(0, 10, 2 * 3073, np.uint8).tobytes(),
        on_bytes(lambda data: parse_cifar(data, "x", 1, 10)),
    ),
    "csv": (lambda: TABLE, read_rows),
    "csv packed": (lambda: gzip.compress(TABLE), read_rows),
    "coco": (
        lambda: COCO,
        lambda path: ImageFolderDataset.new_coco_detection(path, path.parent),
    ),
    "text": (lambda: "负面ü".encode("utf-16"), on_bytes(decoded)),
}
EDGES = [0, 1, 2, 127, 128, 255]


def mutated(data, draw):
    """Change a few bytes, cut, double or insert a piece."""
    out = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 3, 8])):
        place = draw.randrange(len(out) + 1)
        kind = draw.randrange(8)
        if kind < 4 and place < len(out):
            out[place] = draw.choice([*EDGES, draw.randrange(256)])
        elif kind == 4:
            out[place : place + 4] = struct.pack(
                draw.choice("<>") + "I",
                draw.choice([0, 1, 1 << 16, 1 << 31, 2**32 - 1]),
            )
        elif kind == 5:
            del out[place : place + draw.randrange(1, 40)]
        elif kind == 6:
            out[place:place] = out[place : place + draw.randrange(1, 40)]
        else:
            del out[draw.randrange(len(out) + 1) :]
    return bytes(out)


@pytest.mark.parametrize("name", READERS)
def test_a_mutated_file_gives_an_answer_or_our_error(tmp_path, name):
    make, read = READERS[name]
    whole, path, draw = make(), tmp_path / "data", random.Random(name)
    path.write_bytes(whole)
    read(path)  # the file as it is can be read
    refused, slowest = 0, 0.0
    tracemalloc.start()
    try:
        for _ in range(MUTATIONS):
            path.write_bytes(mutated(whole, draw))
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Pillow's, of odd files
                try:
                    read(path)
                except DataError:
                    refused += 1
            slowest = max(slowest, time.process_time() - began)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert slowest < SLOWEST
    assert most < MOST
    assert refused > 0 or name == "text"
