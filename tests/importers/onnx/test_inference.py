"""ONNX's own inference in a process of its own: files may end that one, not this."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="ONNX files are read with it")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend.numpy import Numpy
from burnbook.core.errors import BurnbookError
from burnbook.importers.onnx import check, inference as inference_file, load
from burnbook.importers.onnx.inference import (
    ONNX,
    OnnxProcess,
    inferred,
    without_weights,
)
from burnbook.importers.onnx.inference_process import answer, frame, unframed
from burnbook.importers.onnx.load import source_for

FLOAT = TensorProto.FLOAT
INTS = {"zeros": [0, 0, 0], "ones": [1, 1, 1], "first": [0], "second": [1]}


def value(name, sizes):
    return helper.make_tensor_value_info(name, FLOAT, sizes)


def model(nodes, inputs, constants=()):
    held = [numpy_helper.from_array(np.array(v), k) for k, v in INTS.items()]
    held += [numpy_helper.from_array(v, k) for k, v in dict(constants).items()]
    graph = helper.make_graph(nodes, "g", inputs, [value("y", None)], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def declared():
    """A size below zero that the file declares."""
    nodes = [helper.make_node("Slice", ["x", "first", "second"], ["y"])]
    return model(nodes, [value("x", [-1, 3])])


def convolved():
    """A size below zero that a convolution comes to: its kernel is too long."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Slice", ["c", "zeros", "ones"], ["y"]),
    ]
    return model(nodes, [value("x", [1, 1, 3]), value("w", [1, 1, 9])])


def computed():
    """A size below zero that is the difference of two sizes."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Sub", ["s", "five"], ["less"]),
        helper.make_node("ConstantOfShape", ["less"], ["made"]),
        helper.make_node("Slice", ["made", "first", "second"], ["y"]),
    ]
    return model(nodes, [value("x", [3])], {"five": np.array([5])})


ENDING = pytest.mark.parametrize("made", [declared, convolved, computed])


@ENDING
def test_these_files_end_the_process_in_which_onnx_infers(made, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(made().SerializeToString())
    code = "import onnx, sys; onnx.shape_inference.infer_shapes(onnx.load(sys.argv[1])"
    command = [sys.executable, "-c", f"{code}, data_prop=True)", str(path)]
    ended = subprocess.run(command, capture_output=True).returncode
    if ended >= 0:
        pytest.skip("this version of onnx does not")
    assert ended == -signal.SIGABRT


@ENDING
def test_a_file_that_ends_the_inference_is_read_without_it(made):
    whole = made()
    assert load(whole, Numpy())
    assert check(whole)
    assert inferred(convolved()).graph.node  # and the next one is read as well


def test_after_such_a_file_shapes_are_known_as_before():
    assert load(convolved(), Numpy())
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"])]
    nodes.append(helper.make_node("Relu", ["h"], ["y"]))
    found = inferred(model(nodes, [value("x", [2, 3]), value("w", [3, 7])]))
    (hidden,) = [v for v in found.graph.value_info if v.name == "h"]
    assert [d.dim_value for d in hidden.type.tensor_type.shape.dim] == [2, 7]


def test_one_process_serves_many_files():
    load(model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [2])]), Numpy())
    first = ONNX.process.pid
    load(model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [3])]), Numpy())
    assert ONNX.process.pid == first


def test_a_process_that_has_ended_meanwhile_is_started_again():
    own = OnnxProcess()
    asked = model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [2])])
    try:
        assert own.shapes(asked, True).graph.output[0].type.tensor_type.shape.dim
        own.process.kill()  # nobody has waited for it: it seems to be there
        assert own.shapes(asked, True).graph.output[0].type.tensor_type.shape.dim
    finally:
        own.close()
    assert own.process is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_has_a_process_of_its_own():
    own = OnnxProcess()
    own.start()
    before = own.process
    own.owner = 1  # as in a fork: somebody else started it
    own.start()
    try:
        assert own.process is not before
        assert before.poll() is None  # the other goes on
    finally:
        before.kill()
        before.wait()
        own.close()


def test_without_a_process_the_module_is_made_with_what_the_file_says(monkeypatch):
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    whole = model(nodes, [value("x", [1, 1, 9]), value("w", [1, 1, 3])])
    monkeypatch.setattr(inference_file, "ONNX", OnnxProcess())
    monkeypatch.setattr(sys, "executable", "")
    assert inferred(whole) is whole
    assert load(whole, Numpy())


def test_a_process_that_cannot_be_started_is_none(monkeypatch):
    def none(*_, **__):
        raise OSError("no more processes")

    own = OnnxProcess()
    monkeypatch.setattr(inference_file.subprocess, "Popen", none)
    assert own.ask(b"shapes", b"", b"1") == b""


def test_what_takes_too_long_ends(tmp_path):
    """The watch over an answer is the one over idleness, with another time."""
    script = tmp_path / "inference_process.py"
    text = inference_file.SCRIPT.read_text()
    assert "IDLE = 30 " in text
    script.write_text(text.replace("IDLE = 30 ", "IDLE = 0.2 "))
    own, inference_file.SCRIPT = OnnxProcess(), script
    try:
        own.start()
        assert own.process.wait(timeout=30) == 1
    finally:
        inference_file.SCRIPT = inference_file.Path(inference_file.__file__).with_name(
            "inference_process.py"
        )
        own.close()


def test_the_process_ends_with_the_one_that_started_it():
    code = "from burnbook.importers.onnx.inference import ONNX; ONNX.start(); "
    code += "import os; print(ONNX.process.pid, flush=True); os._exit(0)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    pid = int(made.stdout)
    for _ in range(200):
        if not is_running(pid):
            break
        time.sleep(0.05)
    assert not is_running(pid)


def is_running(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_parts_of_a_conversation_come_through_pieces():
    import io

    parts = [b"shapes", b"", b"\x00" * 100]
    assert unframed(io.BytesIO(frame(parts)).read) == parts
    assert unframed(io.BytesIO(frame(parts)[:-1]).read) is None
    assert unframed(io.BytesIO(b"").read) is None


def test_what_onnx_refuses_is_no_answer():
    from onnx import onnx_cpp2py_export as tools

    assert answer(tools, [b"shapes", b"no model", b"1"]) == b""
    unknown = [b"function", b"None", b"", b"21", b""]
    assert answer(tools, unknown) == b""


def test_bodies_of_operators_are_asked_for_in_the_process_too():
    """Attention is written as ONNX defines it; what it takes may be anything."""
    inputs = [value(n, [1, 2, 4, 8]) for n in "qkv"]
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"])
    graph = helper.make_graph([node], "g", inputs, [value("y", None)])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])
    assert "softmax" in source_for(made).text.lower()
    del made.graph.node[0].input[1:]
    with pytest.raises(BurnbookError):
        load(made, Numpy())


def test_inference_gets_no_weights_of_inner_graphs():
    large = np.zeros((64, 64), np.float32)

    def branch(name):
        return helper.make_graph(
            [helper.make_node("MatMul", ["x", f"w{name}"], [name])],
            name,
            [],
            [value(name, None)],
            [numpy_helper.from_array(large, f"w{name}")],
        )

    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Cast", ["m"], ["is"], to=TensorProto.BOOL),
        helper.make_node(
            "If", ["is"], ["y"], then_branch=branch("a"), else_branch=branch("b")
        ),
    ]
    whole = model(nodes, [value("x", [2, 64])])
    assert len(without_weights(whole).SerializeToString()) < 2000
    made = inferred(whole)
    then = made.graph.node[2].attribute[0].g
    assert [d.dim_value for d in then.output[0].type.tensor_type.shape.dim] == [2, 64]
    assert then.initializer[0].raw_data == large.tobytes()
