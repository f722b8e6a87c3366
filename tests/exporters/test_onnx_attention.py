"""Attention as ONNX files, where masks hide everything that a query could see."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from burnbook.backend import Numpy
from burnbook.exporters.onnx import onnx_model
from burnbook.ops.attention import attention
from burnbook.program import capture
from burnbook.tensor import Tensor, apply
from tests.support.onnx_sessions import session

DEVICE = Numpy()
LEFT = np.array([[True, True, False, False], [False] * 4])[:, None, None]  # padding
ROW = np.zeros((2, 1, 4, 4), bool)
ROW[0, 0, 1] = ROW[1, 0, :, 0] = True


def bias(mask, value=-np.inf):
    return np.where(mask, value, 0).astype(np.float32)


MASKS = {
    "nothing": None,
    "left padding": LEFT,
    "a whole row": ROW,
    "a bias for left padding": bias(LEFT),
    "a bias for a whole row": bias(ROW),
    "a bias of the lowest number": bias(LEFT, np.finfo(np.float32).min),
}


def both(mask, queries=4, device=DEVICE, **attrs):
    """What ONNX Runtime gives for attention, and what is right."""
    rng, dtype = np.random.default_rng(0), np.dtype(device.float_dtype)
    sizes = (queries, 4, 4)
    given = [rng.standard_normal((2, 1, n, 3)).astype(dtype) for n in sizes]
    given += [] if mask is None else [mask]
    tensors = [Tensor.from_numpy(array, device) for array in given]
    program = capture(
        lambda *xs: apply(attention, *xs, scale=0.5, **attrs), *tensors, batch=None
    )
    model = onnx_model(program)
    onnx.checker.check_model(model, full_check=True)
    feeds = {v.name: array for v, array in zip(program.inputs, given, strict=True)}
    (wanted,) = program.run(*[tensor.value for tensor in tensors])
    return session(model).run(None, feeds)[0], wanted, model


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("hidden", [-np.inf, -1e4])
@pytest.mark.parametrize("mask", MASKS)
def test_a_query_that_sees_nothing_gets_what_it_gets_here(mask, hidden, causal, quiet):
    asked = {"hidden": hidden, "causal": causal, "quiet": quiet}
    found, wanted, _ = both(MASKS[mask], **asked)
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)


def test_a_query_before_all_keys_gets_zeros():
    found, wanted, _ = both(None, queries=6, causal=True)
    assert not wanted[:, :, :2].any()
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)


def test_a_hidden_score_beyond_half_precision_hides_wholly():
    found, wanted, _ = both(LEFT, device=Numpy(float="f16"), hidden=-1e9, causal=True)
    assert not wanted[0, 0, :2].any()
    np.testing.assert_allclose(found, wanted, 1e-2, 1e-3)


def test_where_each_query_sees_itself_softmax_stands_alone():
    *_, model = both(None, causal=True)
    names = [node.op_type for node in model.graph.node]
    assert "Softmax" in names
    assert "ReduceMax" not in names
