"""Every op as ONNX writes it, beside ONNX Runtime."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from burnbook.backend import Numpy
from burnbook.core.errors import GraphError
from burnbook.core.op import OPS
from burnbook.exporters.onnx import onnx_model, unsupported
from burnbook.exporters.onnx.forms import FORMS
from burnbook.ops.elementwise import max_pair, min_pair
from burnbook.ops.trigonometry import atan2, hypot
from burnbook.program import capture
from burnbook.tensor import Tensor, apply
from burnbook.tensor.module import avg_pool2d, max_pool2d, max_pool2d_with_indices
from tests.support.onnx_sessions import session
from tests.support.op_programs import sample

DEVICE = Numpy()
NEEDED = {"cumprod": 26}  # the opset that has it; ONNX Runtime has not

# What has no form, and why nothing is lost by it: gradients and steps of optimizers are
# for training; random numbers, too; the rest ONNX does not know.
NO_FORM = {
    "training": [
        "conv_x",
        "conv_weight",
        "conv2d_x",
        "conv2d_weight",
        "deform_corners",
        "deform_corners_x",
        "embedding_weight",
        "interpolate_x",
        "cross_entropy_logits",
        "linear_scan",
        "adaptive_avg_pool2d_x",
        "adaptive_avg_pool_x",
        "avg_pool2d_x",
        "avg_pool_x",
        "max_pool2d_x",
        "max_pool2d_pick",
        "max_pool_x",
        "max_pool_pick",
        "rotary_turns",
        "slide_back",
        "newest",
        "rfft_back",
        "irfft_back",
        "cofactor",
        "cofactor_x",
        "newton_schulz",
        "lbfgs_direction",
        "clip_scale",
        "ctc_labels",
        "ctc_skips",
        "ctc_loss",
        "rnnt_labels",
        "rnnt_loss",
        "last_of_equals",
        "sgd_step",
        "momentum_step",
        "adam_step",
        "amsgrad_step",
        "adagrad_step",
        "rmsprop_step",
        "rmsprop_momentum_step",
        "rmsprop_centered_step",
        "adan_step",
    ],
    "unknown to ONNX": ["cummax", "cummin", "inverse", "solve", "log_det", "det_sign"],
    "folded": ["pack", "unpack"],  # of constants, so they are computed at once
}
WITHOUT = {name for names in NO_FORM.values() for name in names}
ROWS = [
    pytest.param(op, row, id=f"{op.name}-{i}")
    for op in OPS.values()
    if op.name not in WITHOUT and op.inputs
    for i, row in enumerate(op.samples)
]


def test_every_op_has_a_form_or_a_reason():
    drawn = {"uniform", "normal", "bernoulli", "orthogonal", "dropout"}
    known = {name for name in OPS if not name.startswith("_")}
    assert known - set(FORMS) - WITHOUT == set()
    assert drawn <= set(FORMS), "random numbers have a sentence of their own"
    assert set(FORMS) & WITHOUT == set(), "these have a form by now"


@pytest.mark.parametrize(("op", "row"), ROWS)
def test_onnx_runtime_gives_what_the_op_gives(op, row):
    try:
        program, arrays, wanted = sample(op, row)
    except GraphError as error:
        assert "depends on elements" in str(error)  # noqa: PT017 - one op does
        return
    refused = unsupported(program)
    if op.name in NEEDED:
        opset = NEEDED[op.name]
        assert f"needs opset {opset}" in refused[0][2]
        onnx.checker.check_model(onnx_model(program, opset=opset), full_check=True)
        return
    if refused:
        assert all("training" in why or "float" in why for *_, why in refused) or (
            "padding_out" in refused[0][2]
        )
        return
    model = onnx_model(program)
    onnx.checker.check_model(model, full_check=True)
    feeds = {v.name: a for v, a in zip(program.inputs, arrays, strict=True)}
    found = session(model).run(None, feeds)
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, 1e-5, 1e-6)


POOLS = {
    "max": lambda x, *sizes: max_pool2d(x, *sizes, ceil_mode=True),
    "places": lambda x, *sizes: max_pool2d_with_indices(x, *sizes, ceil_mode=True)[1],
    "average": lambda x, *sizes: avg_pool2d(x, *sizes, True, ceil_mode=True),
    "inner average": lambda x, *sizes: avg_pool2d(x, *sizes, False, ceil_mode=True),
}


@pytest.mark.parametrize("opset", [17, 19, 22])
@pytest.mark.parametrize("size", [(5, 5), (5, 6), (6, 8), (7, 5)])
@pytest.mark.parametrize("name", POOLS)
def test_windows_that_would_begin_beyond_an_image_are_not_counted(name, size, opset):
    for kernel, stride, padding in ((2, 2, 1), (3, 3, 1), (2, 3, 1), (3, 2, 1)):
        sizes = [[n, n] for n in (kernel, stride, padding)]
        x = np.random.default_rng(0).standard_normal((1, 2, *size)).astype(np.float32)
        given = Tensor.from_numpy(x, DEVICE)
        model = onnx_model(lambda x, s=sizes: POOLS[name](x, *s), given, opset=opset)
        onnx.checker.check_model(model, full_check=True)
        (found,) = session(model).run(None, {"x": x})
        wanted = np.asarray(POOLS[name](given, *sizes))
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)


@pytest.mark.parametrize("opset", [17, 18, 20])
def test_infinite_numbers_of_half_precision_are_found(opset):
    x = np.array([1, np.inf, -np.inf, np.nan, 3], np.float16)
    given = Tensor.from_numpy(x, Numpy(float="f16"))
    model = onnx_model(
        lambda x: (x.is_inf(), x.is_finite(), x.hypot(x)), given, opset=opset
    )
    onnx.checker.check_model(model, full_check=True)
    infinite, finite, length = session(model).run(None, {"x": x})
    np.testing.assert_array_equal(infinite, np.isinf(x))
    np.testing.assert_array_equal(finite, np.isfinite(x))
    np.testing.assert_allclose(length, np.hypot(x, x), 1e-2)


@pytest.mark.parametrize("op", [atan2, hypot, max_pair, min_pair], ids=lambda o: o.name)
def test_infinities_zeros_and_nan_meet_as_they_do_here(op):
    values = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf, np.nan]
    sides = np.meshgrid(np.array(values, np.float32), np.array(values, np.float32))
    given = [Tensor.from_numpy(side, DEVICE) for side in sides]
    program = capture(lambda x, y: apply(op, x, y), *given, batch=None)
    model = onnx_model(program)
    onnx.checker.check_model(model, full_check=True)
    (found,) = session(model).run(None, dict(zip("xy", sides, strict=True)))
    (wanted,) = program.run(*[tensor.value for tensor in given])
    np.testing.assert_allclose(found, wanted, 1e-6, 1e-7)
    if op is atan2:  # zeros have a sign
        np.testing.assert_array_equal(
            np.signbit(found) | np.isnan(found), np.signbit(wanted) | np.isnan(wanted)
        )
