"""ModelGen: names of files that Python can import and that hide nothing."""

import importlib.util
import keyword
import sys

import pytest

onnx = pytest.importorskip("onnx")

from hypothesis import given, strategies as st
from onnx import TensorProto, helper

from burnbook.core.errors import ArgumentError
from burnbook.importers.onnx import ModelGen
from burnbook.importers.onnx.model_gen import module_name


def written(path):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, [2])],
        [value("y", TensorProto.FLOAT, [2])],
    )
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("é", "e"),
        ("模型", "u6a21u578b"),
        ("class", "class_model"),
        ("numpy", "numpy_model"),
        ("burnbook", "burnbook_model"),
        ("-", "model"),
        ("2d", "_2d"),
        ("mnist", "mnist"),
    ],
)
def test_a_source_is_importable_and_hides_no_package(stem, name, tmp_path):
    path = written(tmp_path / f"{stem}.onnx")
    (made,) = ModelGen().input(path).out_dir(tmp_path / "out").run_from_cli()
    assert made.name == f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, made)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.Model.__name__ == "Model"


def test_a_source_keeps_its_name_when_it_is_written_again(tmp_path, monkeypatch):
    path = written(tmp_path / "my_relu.onnx")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        (made,) = ModelGen().input(path).out_dir(tmp_path).run_from_cli()
        assert made.name == "my_relu.py"


def test_two_files_that_would_become_one_source_are_refused(tmp_path):
    paths = [written(tmp_path / f"{stem}.onnx") for stem in ("a-b", "a_b")]
    generator = ModelGen().input(paths[0]).input(paths[1]).out_dir(tmp_path)
    with pytest.raises(ArgumentError, match=r"two files become a_b\.py"):
        generator.run_from_cli()


@given(st.text(min_size=1, max_size=12))
def test_any_name_becomes_a_new_word_of_ascii(stem):
    name = module_name(stem)
    assert name.isidentifier()
    assert name.isascii()
    assert not keyword.iskeyword(name)
    assert name not in sys.stdlib_module_names
