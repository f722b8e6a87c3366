"""The exercises of chapters 7.1 and 7.2: near misses are told in what respect."""

import pytest

from tests.support.cases import cases

pytest.importorskip("plotly", reason="chapters are checked with the [lab,test] extras")

from burnbook.importers.onnx import ModelGen, RecordType
from burnbook.nn import LinearConfig
from burnbook.prelude import Numpy
from burnbook_widgets.chapters.exercises import EXERCISES

APP = ModelGen().input("net.onnx").out_dir("app")
SMALL = APP.record_type(RecordType.Bincode).half_precision(True)


def by_name(data):
    return {b"PK": "pytorch", b"\x08\x08": "onnx"}.get(data[:2], "safetensors")


def swapped(arrays):
    return {name: array.T for name, array in reversed(arrays.items())}


def untouched(arrays):
    return arrays


def one_byte(data, at):
    return data[at] % 128, at + 1


def high_first(data, at):
    number = 0
    while data[at] >= 128:
        number, at = number * 128 + data[at] - 128, at + 1
    return number * 128 + data[at], at + 1


def all_new(model, classes, device):
    hidden = LinearConfig(6, 4).init(device)
    return model.replace(hidden=hidden, output=LinearConfig(4, classes).init(device))


def same_size(model, classes, device):
    return model.replace(output=LinearConfig(4, 10).init(device))


@cases(
    "number near said",
    ("7.1.2", by_name, "of a picture (PNG) it says 'safetensors'"),
    ("7.1.3", untouched, "the weight: it is not transposed"),
    ("7.1.3", swapped, "its names are ['a.bias', 'a.weight']"),
    (
        "7.2.2",
        one_byte,
        r"read(b'\x08\xac\x02:', 1) is (44, 2), and should be (300, 3)",
    ),
    ("7.2.2", high_first, r"read(b'\x08\xac\x02:', 1) is (5634, 3)"),
    ("7.2.3", APP, "the weights have 32 bits"),
    ("7.2.3", SMALL, "the weights lie in a file beside the source"),
    ("7.2.3", APP.half_precision(True).embed_states(True), "weights in the source are"),
    ("7.2.3", SMALL.out_dir("b"), "it writes to b"),
    ("7.2.3", SMALL.input("b.onnx"), "it reads ['net.onnx', 'b.onnx']"),
    ("7.2.4", all_new, "the first layer is another one"),
    ("7.2.4", same_size, "the weight of the last layer is [4, 10]"),
)
def test_a_near_miss_is_told_in_what_respect(number, near, said):
    assert (EXERCISES[number].trouble(near) or "").startswith(said)


def test_the_operators_that_are_known_are_no_answer():
    pytest.importorskip("onnx")
    from burnbook.importers.onnx import check

    asked = EXERCISES["7.2.5"]
    told = asked.trouble(lambda path: list(check(path).operators))
    assert told == "Relu is known, and it returns ['Relu'], not []"
    assert asked.trouble(lambda path: []).startswith("Relo is not known")


def test_other_heads_of_the_right_size_pass():
    def wide(model, classes, device):
        sizes = model.output.weight.shape[0], classes
        return model.replace(output=LinearConfig(*sizes, bias=False).init(Numpy()))

    assert EXERCISES["7.2.4"].trouble(wide) is None
