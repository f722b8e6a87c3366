"""Files that lie: nothing of a file runs, nothing outside its folder is read."""

import ast
import os
import random

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend.numpy import Numpy
from burnbook.core.errors import BurnbookError
from burnbook.importers.onnx import ModelGen, check, load, source_of
from burnbook.tensor import Tensor

MANY = int(os.environ.get("BURNBOOK_MUTATIONS", "10000"))
EVIL = "x\"\"\"\n    import os; os.system('touch /tmp/evil')\n#' \\ {7*7} ; ("


def graph(nodes, inputs=("x",), outputs=("y",), constants=(), shape=(2, 3), name="g"):
    def values(names):
        return [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in names
        ]

    made = helper.make_graph(nodes, name, values(inputs), values(outputs), constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)])


def test_names_and_texts_of_a_file_do_not_become_code():
    weight = numpy_helper.from_array(np.ones((2, 3), np.float32), EVIL + "w")
    nodes = [
        helper.make_node("Add", [EVIL, EVIL + "w"], [EVIL + "sum"], name=EVIL),
        helper.make_node("Relu", [EVIL + "sum"], [EVIL + "out"], name="def f():"),
    ]
    model = graph(nodes, [EVIL], [EVIL + "out"], [weight], (2, 3), EVIL)
    model.producer_name = model.doc_string = EVIL
    module = load(model, Numpy())
    y = module.forward(Tensor.ones([2, 3], Numpy()))
    assert np.array_equal(np.asarray(y), np.full((2, 3), 2.0))
    used = {
        n.id for n in ast.walk(ast.parse(source_of(module))) if isinstance(n, ast.Name)
    }
    assert "os" not in used
    names = [
        "import",
        "class",
        "None",
        "x.y",
        "é",
        "1",
        "_",
        "forward",
        "self",
        "ops",
        "__class__",
        "val",
    ]
    nodes = [
        helper.make_node("Relu", [a], [b])
        for a, b in zip(["x", *names[:-1]], names, strict=True)
    ]
    module = load(graph(nodes, outputs=[names[-1]]), Numpy())
    assert np.asarray(module.forward(Tensor.ones([2, 3], Numpy()))).all()


def test_an_attribute_that_the_operator_does_not_have_is_not_written():
    node = helper.make_node("Relu", ["x"], ["y"])
    node.attribute.append(helper.make_attribute("a=print('evil'), b", 1))
    assert "evil" not in source_of(load(graph([node]), Numpy()))
    node = helper.make_node("LeakyRelu", ["x"], ["y"])
    node.attribute.append(helper.make_attribute("alpha", "print('evil')"))
    with pytest.raises(BurnbookError, match="wrong type"):
        load(graph([node]), Numpy())


def external(location, **more):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=str(value))
    return graph([helper.make_node("Add", ["x", "w"], ["y"])], constants=[tensor])


@pytest.mark.parametrize(
    "location", ["../secret", "/etc/passwd", "sub/../../secret", "link", "folder/.."]
)
def test_external_data_outside_the_folder_is_refused(tmp_path, location):
    (tmp_path / "secret").write_bytes(bytes(24))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    path = folder / "m.onnx"
    path.write_bytes(external(location).SerializeToString())
    with pytest.raises(BurnbookError):
        load(path, Numpy())


def test_external_data_beside_the_model_is_read(tmp_path):
    values = np.arange(6, dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(bytes(8) + values.tobytes())
    path = tmp_path / "m.onnx"
    path.write_bytes(external("w.bin", offset=8, length=24).SerializeToString())
    y = load(path, Numpy()).forward(Tensor.zeros([2, 3], Numpy()))
    assert np.array_equal(np.asarray(y).reshape(-1), values)
    for more in ({"offset": -1}, {"offset": 20, "length": 24}, {"length": "many"}):
        path.write_bytes(external("w.bin", **more).SerializeToString())
        with pytest.raises(BurnbookError):
            load(path, Numpy())
    with pytest.raises(BurnbookError, match="by its path"):
        load(external("w.bin"), Numpy())


def test_a_constant_that_declares_more_than_it_has_is_refused():
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1 << 20, 1 << 20])
    tensor.raw_data = bytes(24)
    model = graph([helper.make_node("Add", ["x", "w"], ["y"])], constants=[tensor])
    with pytest.raises(BurnbookError, match="shape"):
        load(model, Numpy())


def test_unknown_operators_are_all_named_with_their_nodes():
    nodes = [
        helper.make_node("Relluu", ["x"], ["a"], name="first"),
        helper.make_node("Fancy", ["a"], ["b"], name="second", domain="my.ops"),
        helper.make_node("Relluu", ["b"], ["y"], name="third"),
    ]
    model = graph(nodes)
    report = check(model)
    assert not report.is_supported()
    assert "Relluu at first, third (known: Relu)" in str(report)
    with pytest.raises(BurnbookError) as caught:
        load(model, Numpy())
    assert "my.ops.Fancy" in str(caught.value)
    assert "2 operators are not known" in str(caught.value)


def test_a_function_that_calls_itself_is_refused():
    node = helper.make_node("F", ["x"], ["y"], domain="own")
    function = helper.make_function(
        "own", "F", ["x"], ["y"], [node], [helper.make_opsetid("own", 1)]
    )
    model = graph([node])
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("own", 1))
    with pytest.raises(BurnbookError, match="call"):
        load(model, Numpy())


def sample():
    weight = numpy_helper.from_array(np.ones((3, 4), np.float32), "fc.weight")
    sizes = numpy_helper.from_array(np.array([0, -1]), "sizes")
    inner = helper.make_graph(
        [helper.make_node("Identity", ["y0"], ["t"])],
        "inner",
        [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "fc.weight"], ["h"], name="fc/MatMul"),
        helper.make_node("Softmax", ["h"], ["p"], axis=-1),
        helper.make_node("Reshape", ["p", "sizes"], ["y0"]),
        helper.make_node("Constant", [], ["c"], value_int=1),
        helper.make_node("Cast", ["c"], ["cond"], to=TensorProto.BOOL),
        helper.make_node("If", ["cond"], ["y"], then_branch=inner, else_branch=inner),
    ]
    return graph(nodes, constants=[weight, sizes]).SerializeToString()


def mutated(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        place = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[place] = rng.randrange(256)
            case 1:
                del data[place : place + rng.randrange(1, 9)]
            case 2:
                data[place:place] = bytes(rng.randrange(256) for _ in range(4))
            case _:
                data[place] ^= 1 << rng.randrange(8)
        if not data:
            break
    return bytes(data)


@pytest.mark.parametrize("count", [1500, pytest.param(MANY, marks=pytest.mark.slow)])
def test_mutated_files_give_only_our_errors(count):
    rng, data = random.Random(7), sample()
    x = Tensor.ones([2, 3], Numpy())
    assert np.asarray(load(data, Numpy()).forward(x)).shape == (2, 4)
    loaded = 0
    for _ in range(count):
        changed = mutated(data, rng)
        try:
            load(changed, Numpy())
            loaded += 1
        except BurnbookError:
            continue
    assert 0 < loaded < count


def test_model_gen_refuses_what_it_cannot_write(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(sample())
    for wrong in (
        ModelGen().out_dir(tmp_path),
        ModelGen().input(path),
        ModelGen().input(path).out_dir(tmp_path).embed_states(True),
        ModelGen().input(path).input(path).out_dir(tmp_path),
        ModelGen().input(tmp_path / "none.onnx").out_dir(tmp_path),
    ):
        with pytest.raises(BurnbookError):
            wrong.run_from_cli()
