"""Every exporter given its arguments in another order: the error has the right call."""

import inspect
import itertools
import linecache

import numpy as np
import pytest

from burnbook import exporters, nn
from burnbook.core.errors import ArgumentError
from burnbook.prelude import Numpy, Tensor

EXPORTERS = sorted(name for name in exporters.__all__ if name.startswith("to_"))
ENDINGS = {"to_onnx": ".onnx", "to_pytorch": ".pt", "to_rust": "", "to_wgsl": ".js"}
ENDINGS |= {"to_javascript": ".js", "to_micropython": ".py"}


def names(tmp_path, name):
    device = Numpy(compiled=False)
    return {
        "net": nn.LinearConfig(3, 2).init(device),
        "target": str(tmp_path / f"made{ENDINGS[name]}"),
        "x": Tensor.ones([1, 3], device),
        name: getattr(exporters, name),
    }


def run(line, known):
    linecache.cache["<export>"] = (len(line), None, [line], "<export>")
    return eval(compile(line, "<export>", "eval"), known)


def orders():
    for name in EXPORTERS:
        takes = inspect.signature(getattr(exporters, name)).parameters
        words = ["net", "target", *(["x"] if "examples" in takes else [])]
        for order in itertools.permutations(words):
            if order[:2] != ("net", "target"):
                yield name, order


@pytest.mark.parametrize(("name", "order"), list(orders()))
def test_the_cure_is_the_call_in_its_order(name, order, tmp_path):
    known = names(tmp_path, name)
    with pytest.raises(ArgumentError, match="the model comes first") as caught:
        run(f"{name}({', '.join(order)})", known)
    right = ", ".join(word for word in ("net", "target", "x") if word in order)
    assert caught.value.cure == f"{name}({right})"
    if name != "to_onnx" or pytest.importorskip("onnx"):
        run(caught.value.cure, known)
    assert list(tmp_path.iterdir())


@pytest.mark.parametrize("name", EXPORTERS)
def test_what_is_no_path_is_told(name, tmp_path):
    known = {**names(tmp_path, name), "target": np.zeros(2)}
    with pytest.raises(ArgumentError, match="the path is ndarray"):
        run(f"{name}(net, target)", known)
