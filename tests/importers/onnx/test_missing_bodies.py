"""Control flow without its graphs is refused in the same words by every entrance."""

import pytest

onnx = pytest.importorskip("onnx", reason="the files are made with it")

from onnx import TensorProto, helper

from burnbook.cli import main
from burnbook.core.errors import RecordError
from burnbook.importers.onnx import ModelGen, check, load

BODIES = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}
CASES = [(op, missing) for op, names in BODIES.items() for missing in names]


def generate(path):
    return ModelGen().input(path).out_dir(path.parent / "out").run_from_cli()


ENTRANCES = {"load": load, "check": check, "ModelGen": generate}


def damaged(op, missing):
    """A node of control flow that lacks one of its graphs."""
    value = helper.make_tensor_value_info("e", TensorProto.FLOAT, [])
    made = helper.make_node("Constant", [], ["e"], value_float=1.0)
    body = helper.make_graph([made], "body", [], [value])
    held = {name: body for name in BODIES[op] if name != missing}
    more = {"num_scan_inputs": 1} if op == "Scan" else {}
    node = helper.make_node(op, ["c"], ["y"], **held, **more)
    given = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [])
    graph = helper.make_graph([node], "g", [given], [out])
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


@pytest.fixture(params=CASES, ids=" without ".join)
def file(request, tmp_path):
    onnx.save(damaged(*request.param), tmp_path / "a.onnx")
    return tmp_path / "a.onnx", request.param[1]


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_an_entrance_names_what_is_missing(file, entrance):
    path, missing = file
    with pytest.raises(RecordError, match="does not follow ONNX's rules") as refused:
        ENTRANCES[entrance](path)
    assert f"no {missing}" in str(refused.value)


def test_the_command_does_so_too(file, capsys):
    path, missing = file
    assert main(["import-onnx", str(path), "-o", str(path.parent / "out")]) == 1
    assert f"no {missing}" in "".join(capsys.readouterr())
