"""Layers and networks as ONNX files, beside ONNX Runtime, and imported again."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from burnbook.backend import Numpy
from burnbook.exporters.onnx import onnx_model, unsupported
from burnbook.tensor import Tensor
from tests.nn.test_every import name_of
from tests.program.test_every import BATCHED, ROWS, arrays, captured
from tests.support.onnx_sessions import session

DEVICE = Numpy()


def checked(program, given, run, **asked):
    model = onnx_model(program, **asked)
    onnx.checker.check_model(model, full_check=True)
    inputs = [np.asarray(x) for x in given]
    feeds = {v.name: x for v, x in zip(program.inputs, inputs, strict=True)}
    for one, other in zip(session(model).run(None, feeds), arrays(run), strict=True):
        np.testing.assert_allclose(one, other, 1e-5, 1e-5)
    return model


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_onnx_runtime_gives_what_the_layer_gives(row):
    program, run, given = captured(row, batch=None)
    refused = unsupported(program)
    assert not refused, refused
    checked(program, given, run(*given))


@pytest.mark.parametrize("row", BATCHED, ids=name_of)
def test_it_does_so_for_another_batch_size(row):
    program, run, given = captured(row)
    count = given[0].dims()[0]
    rows = np.arange(5) % count
    others = [
        Tensor.from_numpy(np.asarray(x)[rows], DEVICE) if x.dims()[0] == count else x
        for x in given
    ]
    checked(program, others, run(*others))
