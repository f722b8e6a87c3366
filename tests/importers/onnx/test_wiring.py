"""Files whose nodes do not fit together, and files without any: all of it is said."""

from itertools import pairwise

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper

from burnbook.backend.numpy import Numpy
from burnbook.core.errors import ArgumentError, BurnbookError, RecordError
from burnbook.importers.onnx import check, load, wiring
from burnbook.importers.onnx.graph import Graph, Node, names_taken
from burnbook.importers.onnx.wiring import faults_of
from burnbook.tensor import Tensor

node = helper.make_node


def model(*nodes, outputs=("y",), constants=()):
    def values(names):
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in names]

    graph = helper.make_graph(nodes, "g", values("x"), values(outputs), constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def told(made):
    """What the report says, which is what loading says."""
    report = check(made)
    assert not report.is_supported()
    with pytest.raises(RecordError) as caught:
        load(made, Numpy())
    for where, what in report.faults:
        assert f"{where} {what}" in str(report)
        assert where in str(caught.value)
        assert what in str(caught.value)
    return report.faults


CASES = {
    "a cycle": (
        [node("Add", ["x", "b"], ["a"], "p"), node("Relu", ["a"], ["b"], "q")],
        [("p", "takes 'b', which q makes of what this node makes: a cycle")],
    ),
    "itself": (
        [node("Add", ["x", "b"], ["b"], "p")],
        [("p", "takes 'b', which it makes itself")],
    ),
    "nothing": (
        [node("Add", ["x", "nope"], ["b"], "p")],
        [("p", "takes 'nope', which nothing makes")],
    ),
    "two nodes of one name": (
        [node("Neg", ["x"], ["b"], "p"), node("Relu", ["x"], ["b"])],
        [("the value 'b'", "is made twice: Neg p, Relu")],
    ),
    "the name of an input": (
        [node("Neg", ["x"], ["x"], "p"), node("Relu", ["x"], ["b"], "q")],
        [("the value 'x'", "is made twice: an input, Neg p")],
    ),
    "an output that nothing makes": (
        [node("Neg", ["x"], ["a"], "p")],
        [("the output 'b'", "is made by no node")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_report_says_what_loading_refuses(name):
    nodes, faults = CASES[name]
    assert told(model(*nodes, outputs=["b"])) == faults


def test_all_faults_are_said_at_once():
    nodes = [
        node("Add", ["x", "one"], ["a"], "p"),
        node("Add", ["a", "two"], ["a"], "q"),
        node("Relluu", ["a"], ["y"], "r"),
    ]
    places = [where for where, _ in told(model(*nodes))]
    assert places == ["the value 'a'", "p", "q"]
    with pytest.raises(RecordError, match="1 operator is not known") as caught:
        load(model(*nodes), Numpy())
    assert ("Relluu", "at r (known: Relu)") in caught.value.facts


def test_two_constants_of_one_name_are_refused():
    one = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    made = model(node("Add", ["x", "w"], ["y"]), constants=[one, one])
    assert told(made) == [("the value 'w'", "is made twice: a constant, a constant")]
    twice = [node("Constant", [], ["c"], value_float=float(k)) for k in range(2)]
    made = model(*twice, node("Add", ["x", "c"], ["y"]))
    assert told(made) == [("the value 'c'", "is made twice: a constant, a constant")]


def branch(*nodes):
    value = helper.make_tensor_value_info("t", TensorProto.FLOAT, None)
    return helper.make_graph(nodes, "branch", [], [value])


def test_a_graph_in_a_node_sees_what_nodes_around_it_make():
    true = node("Constant", [], ["c"], value_int=1)
    as_bool = node("Cast", ["c"], ["cond"], to=TensorProto.BOOL)

    def with_branch(name):
        inner = branch(node("Neg", [name], ["t"], "inside"))
        return node("If", ["cond"], ["y"], then_branch=inner, else_branch=inner)

    before, after = node("Relu", ["x"], ["h"]), node("Relu", ["x"], ["later"], "q")
    fine = model(true, as_bool, before, with_branch("h"), after)
    assert check(fine).faults == []
    assert load(fine, Numpy()) is not None
    unsorted = model(true, as_bool, before, with_branch("later"), after)
    assert check(unsorted).faults == []
    found = load(unsorted, Numpy()).forward(Tensor.from_floats([-1.0, 2.0]))
    np.testing.assert_array_equal(found, [0, -2])
    ring = node("Relu", ["y"], ["later"], "q")
    faults = told(model(true, as_bool, before, with_branch("later"), ring))
    assert faults[-1] == (
        "inside",
        "takes 'later', which q makes of what this node makes: a cycle",
    )


@pytest.mark.parametrize("name", ["bytes", "file", "model"])
def test_a_file_without_a_graph_is_no_model(name, tmp_path):
    path = tmp_path / "empty.onnx"
    path.write_bytes(b"")
    given = {"bytes": b"", "file": path, "model": onnx.ModelProto()}[name]
    for function in (check, load):
        with pytest.raises(RecordError, match=r"has no graph|is empty"):
            function(given)
    with pytest.raises(RecordError, match="has no graph"):
        load(onnx.ModelProto(ir_version=9).SerializeToString())


def test_a_graph_without_outputs_is_refused():
    made = model(node("Relu", ["x"], ["a"]), outputs=[])
    assert told(made) == [("the graph", "has no outputs")]


@pytest.mark.parametrize("given", [None, 3, ["model.onnx"]])
def test_what_is_no_model_at_all_is_said_by_its_type(given):
    with pytest.raises(ArgumentError, match=f"{type(given).__name__} is no ONNX model"):
        load(given)


def test_a_long_ring_of_nodes_ends_with_a_short_error():
    count = 3000
    names = ["y", *(f"v{k}" for k in range(count - 1)), "y"]
    nodes = [node("Relu", [a], [b]) for a, b in pairwise(names)]
    with pytest.raises(BurnbookError) as caught:
        load(model(*reversed(nodes)), Numpy())
    assert len(str(caught.value).splitlines()) < 50


def test_a_long_file_that_is_not_in_order_is_sorted():
    names = ["x", *(f"v{k}" for k in range(998)), "y"]
    nodes = [node("Relu", [a], [b]) for a, b in pairwise(names)]
    file = model(*reversed(nodes))
    found = load(file, Numpy()).forward(Tensor.from_floats([-1.0, 2.0]))
    np.testing.assert_array_equal(found, [0, 2])
    assert file.graph.node[0].output[0] == "y"  # what was given stays


def test_nodes_in_reverse_order_are_each_looked_at_once(monkeypatch):
    looked = []
    monkeypatch.setattr(
        wiring, "names_taken", lambda nodes: looked.append(1) or names_taken(nodes)
    )
    count = 400
    nodes = [
        Node("Relu", "", 14, [f"v{k}"], [f"v{k + 1}"], {}, name=f"n{k}")
        for k in reversed(range(count))
    ]
    faults = faults_of(Graph("g", ["v0"], [f"v{count}"], nodes))
    assert len(faults) == count - 1
    assert all("not in order" in what for _, what in faults)
    assert len(looked) <= 2 * count


def test_cycles_beside_each_other_are_told_from_what_is_out_of_order():
    nodes = [
        Node("Add", "", 14, ["x", "b"], ["a"], {}, name="A"),
        Node("Add", "", 14, ["a", "c"], ["b"], {}, name="B"),
        Node("Add", "", 14, ["x", "e"], ["c"], {}, name="C"),
        Node("Add", "", 14, ["x", "e"], ["d"], {}, name="D"),
        Node("Add", "", 14, ["d", "x"], ["e"], {}, name="E"),
    ]
    faults = dict(faults_of(Graph("g", ["x"], ["b"], nodes)))
    assert faults["A"].endswith("B makes of what this node makes: a cycle")
    assert faults["B"].endswith("C makes later: the nodes are not in order")
    assert faults["C"].endswith("E makes later: the nodes are not in order")
    assert faults["D"].endswith("E makes of what this node makes: a cycle")


def test_a_graph_that_takes_what_its_own_node_makes_is_a_cycle():
    inner = Graph("i", [], ["z"], [Node("Relu", "", 14, ["y"], ["z"], {}, name="in")])
    outer = Node("If", "", 21, ["x"], ["y"], {"then_branch": inner}, name="out")
    (fault,) = faults_of(Graph("g", ["x"], ["y"], [outer]))
    assert fault == (
        "in",
        "takes 'y', which out makes of what this node makes: a cycle",
    )


def of_function(given, made, outputs):
    """A model of one call of a function, whose body is a Relu of a into b."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    body = [node("Relu", ["a"], ["b"])]
    function = helper.make_function("own", "F", given, made, body, opsets[:1])
    call = node("F", ["x"], outputs, domain="own")

    def values(names):
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in names]

    graph = helper.make_graph([call], "g", values("x"), values(filter(None, outputs)))
    return helper.make_model(
        graph, functions=[function], opset_imports=opsets, ir_version=9
    )


@pytest.mark.parametrize(
    ("made", "outputs"),
    [
        (["a", "b"], ["p", "q"]),
        (["a", "a", "b"], ["p", "p2", "q"]),
        (["a", "b", "b"], ["p", "q", "q2"]),
        (["b", "a"], ["q"]),
        (["a", "b"], ["", "q"]),
    ],
)
def test_a_function_passes_on_what_it_takes_as_often_as_it_says(made, outputs):
    x = np.float32([1, -2])
    module = load(of_function(["a"], made, outputs), Numpy())
    found = module.forward(Tensor[1].from_numpy(x, Numpy()))
    wanted = {"a": x, "b": np.maximum(x, 0)}
    shown = found if isinstance(found, tuple) else (found,)
    kept = [name for name, out in zip(made, outputs, strict=False) if out]
    for one, name in zip(shown, kept, strict=True):
        np.testing.assert_array_equal(np.asarray(one.value), wanted[name])
