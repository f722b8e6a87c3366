"""ONNX files without onnx: what is in them, read lazily; damage; lines of source."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from burnbook.core.errors import BurnbookError, RecordError
from burnbook.importers.onnx.file import OnnxFile
from burnbook.importers.onnx.load import load, source_of_file, types_of
from burnbook.importers.onnx.slim import SLIM
from burnbook.importers.onnx.wire import Budget, Message, as_chunk, as_varint
from burnbook.record.tree import Trouble

RNG = np.random.default_rng(0)
LARGE = RNG.normal(size=(64, 40)).astype(np.float32)  # beyond SLIM


def model(nodes, weights, inputs=(("x", [2, 64]),), outputs=(("y", [2, 40]),)):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "net",
        [value(name, 1, shape) for name, shape in inputs],
        [value(name, 1, shape) for name, shape in outputs],
        weights,
    )
    opset = [helper.make_opsetid("", 20)]
    made = helper.make_model(graph, opset_imports=opset, producer_name="tests")
    made.doc_string = "about it"
    return made


def linear():
    nodes = [
        helper.make_node("MatMul", ["x", "fc.weight"], ["h"], "/fc/MatMul"),
        helper.make_node("LeakyRelu", ["h"], ["y"], "/act", alpha=0.25),
    ]
    return model(nodes, [numpy_helper.from_array(LARGE, "fc.weight")])


def test_what_a_file_says_of_itself():
    file = OnnxFile.from_bytes(linear().SerializeToString())
    assert (file.inputs, file.outputs) == (["x"], ["y"])
    assert [node.op for node in file.nodes] == ["MatMul", "LeakyRelu"]
    assert file.nodes[1].attributes == (("alpha", "0.25"),)
    assert file.types == {"x": "f32 [2, 64]", "y": "f32 [2, 40]"}
    facts = dict(file.facts())
    assert facts["opset"] == "ai.onnx 20"
    assert facts["producer"] == "tests"
    assert facts["description"] == "about it"
    weight = file.weights["fc.weight"]
    assert (weight.shape, weight.dtype, weight.num_bytes) == ((64, 40), "f32", 10_240)


TYPES = [
    TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16,
    TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL,
    TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.UINT32, TensorProto.UINT64,
]  # fmt: skip


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("number", TYPES)
def test_elements_are_those_that_onnx_reads(number, raw):
    dtype = helper.tensor_dtype_to_np_dtype(number)
    array = np.array([[0, 1, 7], [2, 1, 100]]).astype(dtype)
    if array.dtype.kind == "i":
        array[0, 2] = -7
    held = array.tobytes() if raw else array.reshape(-1)
    tensor = helper.make_tensor("w", number, array.shape, held, raw=raw)
    file = OnnxFile.from_bytes(model([], [tensor]).SerializeToString())
    assert np.array_equal(file.load("w"), array)
    assert file.load("w").dtype == array.dtype


def test_constant_nodes_are_weights_and_small_numbers_are_facts():
    tensor = numpy_helper.from_array(LARGE, "")
    nodes = [
        helper.make_node("Constant", [], ["w"], value=tensor),
        helper.make_node("Constant", [], ["n"], value_int=3),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    file = OnnxFile.from_bytes(model(nodes, []).SerializeToString())
    assert [node.op for node in file.nodes] == ["MatMul"]
    assert np.array_equal(file.load("w"), LARGE)
    assert file.types["n"] == "3"


def test_weights_in_files_beside_the_model_are_read(tmp_path):
    onnx.save(
        linear(), tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0
    )
    file = OnnxFile(tmp_path / "m.onnx")
    assert np.array_equal(file.load("fc.weight"), LARGE)


def test_weights_outside_of_the_folder_are_not(tmp_path):
    made = linear()
    (tmp_path / "secret").write_bytes(LARGE.tobytes())
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "m.onnx").write_bytes(made.SerializeToString())
    file = OnnxFile(tmp_path / "in" / "m.onnx")
    with pytest.raises(RecordError, match="points out of the model's folder"):
        file.load("fc.weight")


def test_the_slim_model_is_the_same_without_its_weights(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(linear().SerializeToString())
    file = OnnxFile(path)
    text, _ = file.slim()
    assert len(text) < SLIM < path.stat().st_size
    slim = onnx.ModelProto.FromString(text)
    assert [n.op_type for n in slim.graph.node] == ["MatMul", "LeakyRelu"]
    source, known = source_of_file(file)
    x = np.ones((2, 64), np.float32)
    truth = load(path)
    assert source.text == type(truth).source
    assert np.array_equal(source.fields[0].values["weight"], LARGE)
    assert types_of(known)["h"] == "f32 [2, 40]"
    from burnbook.backend import Numpy
    from burnbook.tensor import Tensor

    out = truth.forward(Tensor[2].from_numpy(x, Numpy()))
    want = x @ LARGE
    want = np.where(want > 0, want, 0.25 * want)
    np.testing.assert_allclose(np.asarray(out), want, rtol=1e-5, atol=1e-5)


def test_source_says_which_line_a_value_comes_from(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(linear().SerializeToString())
    source, _ = source_of_file(OnnxFile(path))
    lines = source.text.splitlines()
    ((first, last),) = source.lines["h"]
    assert "self.fc.forward(x)" in "".join(lines[first - 1 : last])
    ((first, last),) = source.lines["y"]
    assert "ops.leaky_relu(" in "".join(lines[first - 1 : last])
    assert "fc.weight" not in source.lines, "a constant has the lines of what reads it"


def test_the_file_is_read_without_the_package_onnx(tmp_path):
    import subprocess

    path = tmp_path / "m.onnx"
    path.write_bytes(linear().SerializeToString())
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        "from burnbook.record import describe\n"
        f"print(describe({str(path)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "fc.weight  [64, 40]  f32" in done.stdout
    assert "2 nodes: LeakyRelu 1, MatMul 1" in done.stdout


# Damage


def test_what_is_no_onnx_file_says_so(tmp_path):
    for data in (b"", b"<html>", b"\x80\x02}q", b"PK\x03\x04", bytes(100)):
        (tmp_path / "m.onnx").write_bytes(data)
        with pytest.raises(RecordError, match=r"no ONNX (file|model)|ends inside"):
            OnnxFile(tmp_path / "m.onnx")


def test_damaged_files_give_our_errors_only():
    whole = linear().SerializeToString()
    rng = random.Random(0)
    opened = refused = 0
    for _ in range(1_500):
        data = bytearray(whole[: rng.choice([len(whole), rng.randrange(len(whole))])])
        for _ in range(rng.randrange(1, 6)):
            if data:
                data[rng.randrange(min(len(data), 300))] = rng.randrange(256)
        try:
            file = OnnxFile.from_bytes(bytes(data))
            for name in file.weights:
                file.load(name)
            file.slim()
            file.facts()
            opened += 1
        except BurnbookError:
            refused += 1
    assert opened > 50
    assert refused > 50


def test_impossible_claims_are_refused_before_memory_is_taken():
    huge = TensorProto(name="w", data_type=1, dims=[1 << 40, 1 << 20], raw_data=b"1234")
    file = OnnxFile.from_bytes(model([], [huge]).SerializeToString())
    with pytest.raises(RecordError, match=r"has shape .* and 4 bytes"):
        file.load("w")
    negative = TensorProto(name="w", data_type=1, dims=[-1])
    with pytest.raises(RecordError, match="impossible shape"):
        OnnxFile.from_bytes(model([], [negative]).SerializeToString())


def test_graphs_within_graphs_end():
    inner = b""
    for _ in range(200):  # If nodes in their own branches
        attribute = as_chunk(1, b"then_branch") + as_chunk(6, inner)
        node = as_chunk(4, b"If") + as_chunk(2, b"y") + as_chunk(5, attribute)
        inner = as_chunk(1, node)
    data = as_chunk(7, inner) + as_chunk(8, as_varint(2 << 3) + as_varint(20))
    with pytest.raises(RecordError, match="deep in each other"):
        OnnxFile.from_bytes(data)


def test_a_file_of_nothing_but_parts_ends():
    message = Message(memoryview(b"\x08\x01" * 100), budget=Budget(50))
    with pytest.raises(Trouble, match="too many parts"):
        list(message.fields())
