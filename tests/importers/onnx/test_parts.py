"""The parts of a model in its source: scopes, functions, layers, repeated blocks."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from burnbook import nn
from burnbook.backend.numpy import Numpy
from burnbook.importers.onnx import Backend, ModelGen, load, source_of
from burnbook.importers.onnx.load import source_for
from burnbook.tensor import Tensor

RNG = np.random.default_rng(0)


def model(nodes, weights, shape=(2, 4), outputs=("y",), functions=(), opset=20):
    """A file of nodes (op, inputs, output, name, attributes)."""
    made = [
        helper.make_node(
            op, given, [out] if isinstance(out, str) else out, name, **more
        )
        for op, given, out, name, more in nodes
    ]
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(made, "g", [value], ends, held)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions))


def agrees(proto, shape=(2, 4)):
    """Its source, after the results were those of onnx's own evaluator."""
    x = RNG.standard_normal(shape).astype(np.float32)
    wanted = ReferenceEvaluator(proto).run(None, {"x": x})
    found = Backend.prepare(proto).run([x])
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    return source_of(load(proto, Numpy()))


def linear(at, given, out, weights, d=4):
    """A linear layer of PyTorch, in the part that a path says."""
    path = at.replace("/", ".")
    weights[f"{path}.weight"] = RNG.standard_normal((d, d)).astype(np.float32)
    weights[f"{path}.bias"] = RNG.standard_normal(d).astype(np.float32)
    given = [given, f"{path}.weight", f"{path}.bias"]
    return ("Gemm", given, out, f"/{at}/Gemm", {"transB": 1})


def blocks(count):
    """Blocks of two layers and a way around, in a list."""
    weights, nodes, x = {}, [], "x"
    for k in range(count):
        at = f"encoder/layer.{k}"
        nodes += [
            linear(f"{at}/fc1", x, f"{k}a", weights),
            ("Relu", [f"{k}a"], f"{k}b", f"/{at}/act/Relu", {}),
            linear(f"{at}/fc2", f"{k}b", f"{k}c", weights),
            ("Add", [x, f"{k}c"], f"{k}y", f"/{at}/Add", {}),
        ]
        x = f"{k}y"
    nodes.append(("Sigmoid", [x], "y", "/Sigmoid", {}))
    return model(nodes, weights)


def test_repeated_blocks_are_a_list_of_one_class_in_a_loop():
    proto = blocks(3)
    text = agrees(proto)
    assert text.count("\nclass ") == 3
    assert "    layer: list[Layer]\n" in text
    assert "for layer in self.layer:\n            x = layer.forward(x)" in text
    module = load(proto, Numpy())
    paths = [name for name, _ in module.named_params()]
    assert paths[:2] == ["encoder.layer.0.fc1.weight", "encoder.layer.0.fc1.bias"]
    assert len(paths) == 12
    assert isinstance(module.encoder.layer[2].fc2, nn.Linear)


def test_the_record_of_parts_goes_to_a_file_and_back(tmp_path):
    path = tmp_path / "blocks.onnx"
    path.write_bytes(blocks(2).SerializeToString())
    (made,) = ModelGen().input(path).out_dir(tmp_path).run_from_cli()
    space = {"__name__": "blocks", "__file__": str(made)}
    exec(compile(made.read_text(), str(made), "exec", dont_inherit=True), space)
    x = Tensor.ones([2, 4], Numpy())
    found, wanted = space["Model"].default().forward(x), load(path).forward(x)
    assert np.array_equal(np.asarray(found), np.asarray(wanted))


def test_every_node_has_its_line():
    proto = blocks(3)
    source = source_for(proto)
    lines = source.text.splitlines()
    for node in proto.graph.node:
        line = lines[source.lines[node.name][0][0] - 1]
        word = {"Gemm": "fc", "Relu": "ops.relu", "Add": "+", "Sigmoid": "sigmoid"}
        assert word[node.op_type] in line, (node.name, line)
    places = [source.lines[f"/encoder/layer.{k}/fc1/Gemm"][0] for k in range(3)]
    assert len(set(places)) == 1  # one class stands for all of them


def test_a_graph_without_scopes_stays_flat():
    weights = {"w": np.ones((4, 4), np.float32)}
    nodes = [("MatMul", ["x", "w"], "h", "first", {}), ("Relu", ["h"], "y", "", {})]
    text = agrees(model(nodes, weights))
    assert text.count("\nclass ") == 1


def test_a_scope_that_something_runs_between_is_split():
    weights = {}
    nodes = [
        linear("part/a", "x", "a", weights),
        linear("part/b", "a", "b", weights),
        ("Sigmoid", ["b"], "c", "/Sigmoid", {}),
        linear("part/c", "c", "d", weights),
        linear("part/d", "d", "e", weights),
        ("Add", ["e", "b"], "y", "/Add", {}),
    ]
    text = agrees(model(nodes, weights))
    assert "self.part.forward(" in text
    assert "self.part_2.forward(" in text


def test_parts_that_wait_for_each_other_do_not_run_in_a_circle():
    weights = {}
    nodes = [
        linear("p/a", "x", "a", weights),
        linear("q/a", "a", "b", weights),
        linear("q/b", "x", "c", weights),
        linear("p/b", "c", "d", weights),
        linear("p/c", "d", "e", weights),
        linear("q/c", "b", "f", weights),
        ("Add", ["e", "f"], "y", "/Add", {}),
    ]
    agrees(model(nodes, weights))


def test_a_part_that_is_called_twice_is_one_field():
    weights, nodes = {}, []
    for given, made in (("x", "1"), ("1y", "2")):
        nodes += [
            linear("part/a", given, f"{made}a", weights),
            ("Relu", [f"{made}a"], f"{made}b", "/part/Relu", {}),
            linear("part/b", f"{made}b", f"{made}y", weights),
        ]
    nodes.append(("Neg", ["2y"], "y", "/Neg", {}))
    proto = model(nodes, weights)
    text = agrees(proto)
    assert text.count("self.part.forward(") == 2
    assert len(load(proto, Numpy()).named_params()) == 4


def test_values_that_cross_parts_are_arguments_and_results():
    weights = {}
    nodes = [
        linear("part/a", "x", "a", weights),
        linear("part/b", "a", "b", weights),
        linear("other/a", "b", "c", weights),
        linear("other/b", "c", "d", weights),
        ("Add", ["d", "a"], "e", "/other/Add", {}),
        ("Relu", ["e"], "y", "/Relu", {}),
    ]
    text = agrees(model(nodes, weights))
    assert "return a, b" in text
    assert "self.other.forward(" in text
    assert "def forward(self, x, a):" in text


def test_functions_of_the_file_are_classes():
    body = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Add", ["h", "b"], ["i"]),
        helper.make_node("Relu", ["i"], ["j"]),
        helper.make_node("MatMul", ["j", "v"], ["k"]),
        helper.make_node("Add", ["k", "x"], ["y"]),
    ]
    opsets = [helper.make_opsetid("", 20)]
    names = ["x", "w", "b", "v"]
    function = helper.make_function("own", "Block", names, ["y"], body, opsets)
    weights, nodes, x = {}, [], "x"
    for k in range(3):
        given = [x, *[f"{k}{name}" for name in names[1:]]]
        for name in given[1:]:
            shape = (4,) if name.endswith("b") else (4, 4)
            weights[name] = RNG.standard_normal(shape).astype(np.float32)
        nodes.append(("Block", given, f"{k}y", "", {"domain": "own"}))
        x = f"{k}y"
    nodes.append(("Neg", [x], "y", "", {}))
    text = agrees(model(nodes, weights, functions=[function]))
    assert text.count("class Block(Module)") == 1
    assert "for block in self.block:" in text


def test_names_of_tensorflow_lose_the_scope_around_all():
    weights = {}
    nodes = []
    for name, given, made in (("dense", "x", "a"), ("dense_1", "a", "b")):
        weights[f"{made}w"] = RNG.standard_normal((4, 4)).astype(np.float32)
        weights[f"{made}b"] = RNG.standard_normal(4).astype(np.float32)
        at = f"StatefulPartitionedCall/model/{name}"
        nodes += [
            ("MatMul", [given, f"{made}w"], f"{made}1", f"{at}/MatMul", {}),
            ("Add", [f"{made}1", f"{made}b"], made, f"{at}/BiasAdd", {}),
        ]
    nodes.append(("Relu", ["b"], "y", "StatefulPartitionedCall/model/Relu", {}))
    module = load(model(nodes, weights), Numpy())
    assert isinstance(module.dense, nn.Linear)
    assert isinstance(module.dense_1, nn.Linear)


def constants(**values):
    return {name: np.array(value, np.float32) for name, value in values.items()}


def test_a_gelu_in_parts_is_found_again():
    many = constants(root=2**0.5, one=1, half=0.5)
    nodes = [
        ("Div", ["x", "root"], "a", "", {}),
        ("Erf", ["a"], "b", "", {}),
        ("Add", ["b", "one"], "c", "", {}),
        ("Mul", ["x", "c"], "d", "", {}),
        ("Mul", ["d", "half"], "y", "", {}),
    ]
    assert "ops.gelu(x)" in agrees(model(nodes, many))
    nodes[3:] = [("Mul", ["half", "x"], "d", "", {}), ("Mul", ["d", "c"], "y", "", {})]
    assert "ops.gelu(x)" in agrees(model(nodes, many))
    many["root"] = np.array(1.5, np.float32)
    assert "ops.erf(" in agrees(model(nodes, many))


def test_a_gelu_by_tanh_is_found_again():
    many = constants(three=3, part=0.044715, root=(2 / np.pi) ** 0.5, one=1, half=0.5)
    nodes = [
        ("Pow", ["x", "three"], "a", "", {}),
        ("Mul", ["part", "a"], "b", "", {}),
        ("Add", ["x", "b"], "c", "", {}),
        ("Mul", ["c", "root"], "d", "", {}),
        ("Tanh", ["d"], "e", "", {}),
        ("Add", ["one", "e"], "f", "", {}),
        ("Mul", ["x", "half"], "g", "", {}),
        ("Mul", ["g", "f"], "y", "", {}),
    ]
    assert "ops.gelu(x, approximate='tanh')" in agrees(model(nodes, many))


def norm(last):
    many = constants(two=2, epsilon=1e-6, gamma=[1, 2, 3, 4], beta=[1, 0, 1, 0])
    nodes = [
        ("ReduceMean", ["x"], "m", "", {"axes": [-1]}),
        ("Sub", ["x", "m"], "d", "", {}),
        ("Pow", ["d", "two"], "s", "", {}),
        ("ReduceMean", ["s"], "v", "", {"axes": [-1]}),
        ("Add", ["v", "epsilon"], "e", "", {}),
        ("Sqrt", ["e"], "r", "", {}),
        ("Div", [last, "r"], "n", "", {}),
        ("Mul", ["n", "gamma"], "g", "", {}),
        ("Add", ["g", "beta"], "y", "", {}),
    ]
    return model(nodes, many, opset=13)


def test_a_layer_norm_in_parts_is_a_layer():
    proto = norm("d")
    text = agrees(proto)
    assert "nn.LayerNormConfig(4).with_epsilon(1e-06)" in text
    assert text.count("ops.") == 0
    assert "ops.sqrt(" in agrees(norm("x"))  # which is none


def test_a_norm_by_the_mean_square_is_a_layer():
    many = constants(two=2, epsilon=1e-6, one=1, gamma=[1, 2, 3, 4])
    nodes = [
        ("Pow", ["x", "two"], "s", "", {}),
        ("ReduceMean", ["s"], "v", "", {"axes": [-1]}),
        ("Add", ["v", "epsilon"], "e", "", {}),
        ("Sqrt", ["e"], "r", "", {}),
        ("Div", ["one", "r"], "i", "", {}),
        ("Mul", ["x", "i"], "n", "", {}),
        ("Mul", ["gamma", "n"], "y", "", {}),
    ]
    assert "nn.RmsNormConfig(4)" in agrees(model(nodes, many, opset=13))


def test_sizes_that_inputs_decide_stay_and_others_are_computed_once():
    many = {
        "w": np.ones((4, 6), np.float32),
        "last": np.array([-1]),
        "first": np.array([0]),
        "end": np.array([2**60]),
        "one": np.array([1]),
    }
    nodes = [
        ("MatMul", ["x", "w"], "h", "", {}),
        ("Shape", ["h"], "s", "", {}),
        ("Slice", ["s", "last", "end"], "width", "", {}),
        ("Slice", ["s", "first", "one"], "batch", "", {}),
        ("Cast", ["width"], "wide", "", {"to": TensorProto.FLOAT}),
        ("Sqrt", ["wide"], "root", "", {}),
        ("Div", ["h", "root"], "d", "", {}),
        ("Concat", ["batch", "last"], "sizes", "", {"axis": 0}),
        ("Reshape", ["d", "sizes"], "y", "", {}),
    ]
    text = agrees(model(nodes, many))
    assert "2.4494898" in text
    assert "sqrt" not in text
    assert "ops.shape(" in text
    found = Backend.prepare(model(nodes, many)).run([np.ones((5, 4), np.float32)])
    assert found[0].shape == (5, 6)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", ["LSTM", "GRU"])
def test_recurrent_layers_give_all_states_and_the_last(op, direction):
    ways, gates = 1 + (direction == "bidirectional"), {"LSTM": 4, "GRU": 3}[op]
    many = {
        "w": RNG.standard_normal((ways, gates * 3, 4)).astype(np.float32),
        "r": RNG.standard_normal((ways, gates * 3, 3)).astype(np.float32),
        "b": RNG.standard_normal((ways, gates * 6)).astype(np.float32),
        "flat": np.array([0, 0, -1]),
        "one": np.array([1]),
    }
    about = {"direction": direction, "hidden_size": 3}
    if op == "GRU":
        about["linear_before_reset"] = 1
    outputs = ["rows", "y", "c"][: 3 if op == "LSTM" else 2]
    nodes = [(op, ["x", "w", "r", "b"], outputs, "", about)]
    if ways == 2:
        nodes.append(("Transpose", ["rows"], "t", "", {"perm": [0, 2, 1, 3]}))
        nodes.append(("Reshape", ["t", "flat"], "z", "", {}))
    else:
        nodes.append(("Squeeze", ["rows", "one"], "z", "", {}))
    ends = ("z", *outputs[1:])
    proto = model(nodes, many, (5, 2, 4), ends)
    session = pytest.importorskip("onnxruntime").InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    x = RNG.standard_normal((5, 2, 4)).astype(np.float32)
    found = Backend.prepare(proto).run([x])
    for a, b in zip(found, session.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    kind = f"nn.{'Bi' if ways == 2 else ''}{op.title()}Config(4, 3, True)"
    assert kind in source_of(load(proto, Numpy()))


def test_ids_below_zero_count_from_the_end_of_an_embedding():
    table = RNG.standard_normal((5, 3)).astype(np.float32)
    nodes = [helper.make_node("Gather", ["embed.weight", "ids"], ["y"])]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 2])
    end = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 3])
    held = [numpy_helper.from_array(table, "embed.weight")]
    proto = helper.make_model(helper.make_graph(nodes, "g", [ids], [end], held))
    module = load(proto, Numpy())
    assert isinstance(module.embed, nn.Embedding)
    (found,) = Backend.prepare(proto).run([np.array([[0, -1]])])
    assert np.array_equal(found[0], table[[0, 4]])


def test_a_large_weight_of_several_parts_is_held_once():
    many, nodes, x = {"big": np.ones((600, 600), np.float32)}, [], "x"
    for k in range(3):
        at = f"part{k}"
        nodes += [
            ("Add", [x, "big"], f"{k}a", f"/{at}/Add", {}),
            linear(f"{at}/a", f"{k}a", f"{k}b", many, 600),
            linear(f"{at}/b", f"{k}b", f"{k}y", many, 600),
        ]
        x = f"{k}y"
    nodes.append(("Relu", [x], "y", "/Relu", {}))
    module = load(model(nodes, many, (600, 600)), Numpy())
    held = [p for n, p in module.named_params() if not n.startswith("part")]
    assert [p.shape for p in held] == [(600, 600)]
    assert len(module.named_params()) == 13


@pytest.mark.parametrize(
    "word", ["layers", "forward", "new", "map", "class", "nn", "x"]
)
def test_parts_may_have_any_name(word):
    weights = {}
    nodes = [
        linear(f"{word}/{word}", "x", "a", weights),
        linear(f"{word}/b", "a", "b", weights),
        ("Relu", ["b"], "y", "/Relu", {}),
    ]
    agrees(model(nodes, weights))
