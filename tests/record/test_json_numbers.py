"""Numbers in JSON are spelled as Burn spells them, so a file comes back as it was.

json_numbers.txt: what serde_json 1.0.154 writes, which Burn uses, for the bits of f32
("f") and f64 ("d").
"""

import json
from pathlib import Path

import numpy as np
import pytest

from burnbook.record import (
    FullPrecisionSettings,
    JsonGzFileRecorder,
    PrettyJsonFileRecorder,
)
from burnbook.record.json_text import encode
from burnbook.record.layout import Lowering

TABLE = [
    line.split()
    for line in Path(__file__).with_name("json_numbers.txt").read_text().splitlines()
]
TYPES = {"f": np.float32, "d": np.float64}


def written(node):
    return b"".join(encode(node, Lowering(None))).decode()


def of_bits(kind, bits):
    return np.frombuffer(bytes.fromhex(bits)[::-1], TYPES[kind])[0]


@pytest.mark.parametrize("kind", ["f", "d"])
def test_every_number_is_spelled_as_rust_spells_it(kind):
    from burnbook.record.json_text import _number

    rows = [(of_bits(k, bits), text) for k, bits, text in TABLE if k == kind]
    assert len(rows) > 100
    wrong = [(text, found) for v, text in rows if (found := _number(v)) != text]
    assert wrong == []


def test_the_numbers_of_a_record_are_spelled_so_too():
    rows = [(float(of_bits(k, bits)), text) for k, bits, text in TABLE if k == "d"]
    assert written([value for value, _ in rows]) == (
        "[" + ",".join(text for _, text in rows) + "]"
    )


@pytest.mark.parametrize("recorder", [JsonGzFileRecorder, PrettyJsonFileRecorder])
def test_a_file_of_0_13_with_numbers_of_every_size_comes_back_byte_by_byte(
    recorder, tmp_path
):
    import gzip

    texts = [text for kind, _, text in TABLE if kind == "f"]
    head = {
        "float": "f32",
        "int": "i32",
        "format": "x",
        "version": "0.13.2",
        "settings": FullPrecisionSettings.__name__,
    }
    top = {"metadata": head, "item": {"w": {"value": "X", "shape": [len(texts)]}}}
    top["_b"] = None
    pretty = recorder is PrettyJsonFileRecorder
    if pretty:
        value = "[\n        " + ",\n        ".join(texts) + "\n      ]"
        text = json.dumps(top, indent=2).replace('"X"', value)
    else:
        value = "[" + ",".join(texts) + "]"
        text = json.dumps(top, separators=(",", ":")).replace('"X"', value)
    data = text.encode()
    path = tmp_path / f"given.{recorder.extension}"
    path.write_bytes(data if pretty else gzip.compress(data, mtime=0))
    again = recorder().write(recorder().read(path), tmp_path / "again").read_bytes()
    assert (again if pretty else gzip.decompress(again)) == data
    assert recorder().read(path).item["w"].array.dtype == np.float32
