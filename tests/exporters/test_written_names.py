"""Every writer of text parses what it wrote, whatever things are called.

Names may be long, words of the language, letters of all sorts, or made to become code.
They stand in a record or a model as keys, parameters, classes, inputs and outputs.
"""

import ast
import re
import subprocess
from keyword import iskeyword

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core.errors import BurnbookError, RecordError
from burnbook.core.rng import Stream, use_stream
from burnbook.core.source_code import python_source
from burnbook.exporters import to_javascript, to_micropython, to_onnx, to_rust, to_wgsl
from burnbook.exporters.rust.text import plain, quoted, tokens
from burnbook.importers.onnx.load import source_for
from burnbook.importers.scaffold import scaffold
from burnbook.module import Module, Param
from burnbook.record import FullPrecisionSettings, NamedMpkFileRecorder
from burnbook.tensor import Tensor
from tests.support.gpu_here import needs_gpu
from tests.support.node_models import NODE, needs_node

DEVICE = Numpy()
NAMES = {
    "40 letters": "x" * 40,
    "60 letters": "x" * 60,
    "300 letters": "long_" * 60,
    "a line": "a\npub fn planted() {}\nplanted()\n",
    "a carriage return": "a\rplanted()\u2028planted()\u0085planted()",
    "quotes": "\"'`]planted()[\"'`",
    "a triple quote": '"""\nplanted()\n"""',
    "a backslash": "a\\",
    "comments": "*/ planted() /* // # <!-- -->",
    "braces": "${planted()}}{{planted()}",
    "a keyword": "class",
    "a keyword of Rust": "type",
    "digits": "0",
    "another script": "層é²ﬁ",
    "directions": "a\u202eplanted\u2066",
    "a null": "a\0planted()",
    "nothing": "",
}


class Alone(Module):
    fc: nn.Linear

    def forward(self, x):
        return self.fc.forward(x)


class Net(Module):
    layers: dict[str, nn.Linear]
    params: dict[str, Param]
    many: dict[str, list[nn.Linear]]

    def forward(self, x):
        for one in self.layers.values():
            x = one.forward(x).exp()
        for one in self.params.values():
            x = x + one.val()
        return x


def linear():
    with use_stream(Stream(5)):
        return nn.LinearConfig(2, 2).init(DEVICE)


def model_of(place, name):
    """A model or function with a name in one place, and its input."""
    x = Tensor.ones([3, 2], DEVICE)
    param = Param.from_tensor(Tensor.ones([1, 2], DEVICE))
    if place == "module":
        return Net({name: linear()}, {"a": param}, {}), x
    if place == "parameter":
        return Net({"a": linear()}, {name: param}, {}), x
    if place == "list":
        return Net({"a": linear()}, {}, {name: [linear(), linear()]}), x
    if place == "class":
        made = type("Other", (Alone,), {"__module__": __name__})
        made.__name__ = made.__qualname__ = name.replace("\0", "0")
        return made(linear()), x
    if place == "field":  # which is a name of Python
        field = name if name.isidentifier() and not iskeyword(name) else "fc"
        run = {"forward": lambda self, x: getattr(self, field).forward(x)}
        made = type("One", (Module,), {"__annotations__": {field: nn.Linear}, **run})
        return made(linear()), x
    layer = linear()
    if place == "output":
        return (lambda x: {name: layer.forward(x)}), x
    assert place == "input"
    return (lambda held: layer.forward(held[name])), {name: x}


PLACES = ["module", "parameter", "list", "class", "field", "output", "input"]
by_place = pytest.mark.parametrize("place", PLACES)
ALWAYS = ("60 letters", "a line", "quotes", "a triple quote", "a keyword", "a null")
by_name = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, id=key, marks=[] if key in ALWAYS else [pytest.mark.slow])
        for key, name in NAMES.items()
    ],
)


def is_harmless(text):
    """Python that defines and calls nothing of that name."""
    nodes = list(ast.walk(ast.parse(text)))
    called = [n.func for n in nodes if isinstance(n, ast.Call)]
    words = [getattr(n, "name", "") for n in nodes]
    words += [n.id for n in called if isinstance(n, ast.Name)]
    return "planted" not in words


def written(write, place, name, *more):
    """What a writer gives; None where it says why it cannot take the name."""
    model, x = model_of(place, name)
    try:
        return write(model, *more, x)
    except BurnbookError:
        return None


# Python


@by_name
@pytest.mark.parametrize("place", ["module", "list", "class", "field"])
def test_a_scaffold_is_python(place, name, tmp_path):
    model, _ = model_of(place, name)
    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    record = {"fc": model, "more": {name: [linear(), linear()], "b": linear()}}
    try:
        recorder.record(record, tmp_path / "model")
    except RecordError:  # a name that no record has
        return
    assert is_harmless(scaffold(tmp_path / "model.mpk"))


@by_name
@pytest.mark.parametrize("place", ["value", "node", "input", "output", "weight"])
def test_the_source_of_an_onnx_file_is_python(place, name):
    names = dict.fromkeys(("value", "node", "input", "output", "weight"))
    names = {key: f"/{key}/{key}" for key in names} | {place: name}
    if place != "node" and not name:
        pytest.skip("no value without a name")
    x = helper.make_tensor_value_info(names["input"], TensorProto.FLOAT, ["n", 2])
    y = helper.make_tensor_value_info(names["output"], TensorProto.FLOAT, None)
    weight = numpy_helper.from_array(np.ones((2, 2), np.float32), names["weight"])
    steps = [
        ("MatMul", [names["input"], names["weight"]], "a"),
        ("Cos", ["a"], names["value"]),
        ("Add", [names["value"], "a"], names["output"]),
    ]
    nodes = [helper.make_node(o, i, [out], name=names["node"]) for o, i, out in steps]
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    assert is_harmless(source_for(made.SerializeToString()).text)


@by_name
@by_place
def test_a_file_of_micropython_is_python(place, name, tmp_path):
    made = written(to_micropython_at, place, name, tmp_path / "net.py")
    if made is not None:
        assert is_harmless(made.path.read_text())


def to_micropython_at(model, path, x):
    return to_micropython(model, path, x)


# Others


@needs_node
@by_place
def test_a_module_of_javascript_is_read_by_node(place, tmp_path):
    files = []
    for i, name in enumerate(NAMES.values()):
        for kind, write in (("js", to_javascript), ("gpu", to_wgsl)):
            model, x = model_of(place, name)
            write(model, tmp_path / f"{kind}{i}.js", x)
            files.append(f"{kind}{i}.js")
    lines = ["globalThis.planted = () => console.log('PLANTED');"]
    lines += [f"await import('./{file}');" for file in files]
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "all.js").write_text("\n".join(lines))
    asked = [NODE, str(tmp_path / "all.js")]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
    assert "PLANTED" not in found.stdout


@needs_gpu
@pytest.mark.slow
@by_place
def test_kernels_of_wgsl_are_read_by_wgpu(place, tmp_path):
    for name in NAMES.values():
        model, x = model_of(place, name)
        given = next(iter(x.values())) if isinstance(x, dict) else x
        (found,) = to_wgsl(model, tmp_path / "net.js", x).run(given)
        assert np.isfinite(found).all()


@by_name
@pytest.mark.parametrize("place", ["class", "field", "input"])
def test_a_crate_of_rust_has_the_tokens_of_rust(place, name, tmp_path):
    def write(model, x):
        return to_rust(model, tmp_path / "crate", x)

    made = written(write, place, name)
    assert made is not None or place == "input"
    for file in tmp_path.rglob("*.rs"):
        found = list(tokens(file.read_text()))
        assert ("word", "planted") not in found
        assert all("\n" not in text for sort, text in found if sort == "comment")


@by_name
@by_place
def test_a_file_of_onnx_is_valid(place, name, tmp_path):
    def write(model, x):
        return to_onnx(model, tmp_path / "net.onnx", x)

    if written(write, place, name) is not None:
        onnx.checker.check_model(onnx.load(tmp_path / "net.onnx"))


# The guards themselves


@pytest.mark.parametrize("text", ["x = [\n1 for i in y,\n]", "a\0b", "def f(:", "'"])
def test_what_is_no_python_is_not_given_out(text):
    with pytest.raises(RecordError, match=r"net: the source .* is no Python"):
        python_source(text, "net")


@pytest.mark.parametrize(
    "text",
    ["fn a( {}", "fn a() {}}", 'let a = "b', "// \u202e", "let ² = 1;", "let a = ';"],
)
def test_what_is_no_rust_is_not_given_out(text):
    with pytest.raises(RecordError, match="is no Rust"):
        list(tokens(text))


@by_name
def test_a_comment_of_rust_stays_one(name):
    (found,) = tokens(f"// {plain(name)}")
    assert found[0] == "comment"
    ((sort, text),) = tokens(quoted(name))
    assert sort == "text"
    assert not re.search(r"[\r\n]", text)
