"""`burnbook import-onnx`: report, source, record."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from burnbook.cli import main


def saved(path, op="Relu"):
    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3])

    weight = numpy_helper.from_array(np.ones((3, 3), np.float32), "fc.weight")
    nodes = [
        helper.make_node("MatMul", ["x", "fc.weight"], ["h"]),
        helper.make_node(op, ["h"], ["y"], name="last"),
    ]
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")], [weight])
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return str(path)


def test_it_reports_and_writes(tmp_path, capsys):
    path = saved(tmp_path / "net.onnx")
    assert main(["import-onnx", path, "--check"]) == 0
    told = capsys.readouterr().out
    assert "input   x  float32 [1, 3]" in told
    assert "all operators are known" in told
    out = tmp_path / "out"
    assert main(["import-onnx", path, "-o", str(out), "--half"]) == 0
    assert sorted(p.name for p in out.iterdir()) == ["net.mpk", "net.py"]


def test_unknown_operators_end_with_1_and_write_nothing(tmp_path, capsys):
    path = saved(tmp_path / "net.onnx", "Relo")
    assert main(["import-onnx", path]) == 1
    assert "Relo at last" in capsys.readouterr().out
    assert main(["import-onnx", path, "-o", str(tmp_path / "out")]) == 1
    assert not (tmp_path / "out").exists()
    assert main(["import-onnx", str(tmp_path / "none.onnx")]) == 1


def test_a_graph_that_does_not_fit_together_ends_with_1_and_writes_nothing(
    tmp_path, capsys
):
    path = saved(tmp_path / "net.onnx")
    model = onnx.load(path)
    model.graph.node[0].input[0] = "y"
    onnx.save(model, path)
    assert main(["import-onnx", path, "--check"]) == 1
    told = capsys.readouterr().out
    assert "h takes 'y', which last makes of what this node makes: a cycle" in told
    assert main(["import-onnx", path, "-o", str(tmp_path / "out")]) == 1
    assert not (tmp_path / "out").exists()
    (tmp_path / "empty.onnx").write_bytes(b"")
    assert main(["import-onnx", str(tmp_path / "empty.onnx"), "--check"]) == 1
    assert "empty.onnx is empty" in capsys.readouterr().err


def test_the_list_of_all_nodes_tells_layers_from_operators(tmp_path):
    path = saved(tmp_path / "net.onnx")
    out = tmp_path / "out"
    assert main(["import-onnx", path, "-o", str(out), "--development"]) == 0
    told = (out / "net.graph.txt").read_text().splitlines()
    assert told[0].startswith("net.onnx: ONNX")
    assert "  2 nodes of 2 operators and layers:" in told
    assert "         1 nn.Linear" in told
    assert "  all operators are known" in told
    assert told[-2:] == ["nn.Linear of h: x -> h", "Relu-14 'last': h -> y"]


def test_an_operator_of_a_domain_called_like_the_layers_is_not_known(tmp_path, capsys):
    path = saved(tmp_path / "net.onnx")
    model = onnx.load(path)
    model.graph.node[1].domain, model.graph.node[1].op_type = "nn", "Linear"
    onnx.save(model, path)
    assert main(["import-onnx", path, "--check"]) == 1
    assert "nn.Linear at last" in capsys.readouterr().out
