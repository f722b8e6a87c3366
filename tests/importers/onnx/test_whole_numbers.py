"""Operators of images, of whole numbers: what is computed, and what is refused."""

import numpy as np
import pytest

pytest.importorskip("onnx")

from burnbook.core.errors import ArgumentError
from burnbook.importers.onnx.operators.registry import OPERATORS

RNG = np.random.default_rng(0)
TYPES = ["uint8", "int8", "int32"]
SCALES = np.float32([1, 1, 2, 2])


def image(dtype):
    return RNG.integers(0, 100, (1, 4, 4, 4)).astype(dtype)


def run(op, *inputs, **attributes):
    return OPERATORS["", op](*inputs, **attributes)


@pytest.mark.parametrize("dtype", TYPES)
def test_resize_picks_whole_numbers_as_they_are(dtype):
    x = image(dtype)
    found = run("Resize", x, None, SCALES)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, x.repeat(2, 2).repeat(2, 3))
    old = run("Upsample", x, SCALES)
    np.testing.assert_array_equal(old, found)


def test_resize_picks_numbers_that_no_float_has():
    x = np.full((1, 1, 2, 2), (1 << 60) + 1)
    found = run("Resize", x, None, SCALES)
    assert (found == (1 << 60) + 1).all()


def test_a_crop_beyond_whole_numbers_has_the_value_that_is_asked_for():
    found = run(
        "Resize",
        np.arange(4, dtype="u1").reshape(1, 1, 2, 2),
        np.float32([0, 0, 0, 0, 1, 1, 1, 2]),
        None,
        np.array([1, 1, 2, 3]),
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=9.0,
    )
    np.testing.assert_array_equal(found, [[[[0, 1, 9], [2, 3, 9]]]])


@pytest.mark.parametrize("dtype", TYPES)
def test_means_of_whole_numbers_are_cut_off_as_onnx_runtime_does(dtype):
    runtime = pytest.importorskip("onnxruntime")
    from onnx import helper

    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    value = helper.make_tensor_value_info
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear")
    given = [value("x", kind, [1, 4, 4, 4]), value("scales", 1, [4])]
    graph = helper.make_graph([node], "g", given, [value("y", kind, [1, 4, 8, 8])])
    opsets = [helper.make_opsetid("", 18)]
    file = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    session = runtime.InferenceSession(file.SerializeToString())
    x = image(dtype)
    (wanted,) = session.run(None, {"x": x, "scales": SCALES})
    found = run("Resize", x, None, SCALES, mode="linear")
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_whole_numbers_at_places_of_a_grid_are_those_of_floats(dtype, mode):
    x, grid = image(dtype), RNG.uniform(-1, 1, (1, 3, 3, 2)).astype(np.float32)
    found = run("GridSample", x, grid, mode=mode)
    assert found.dtype == dtype
    floats = run("GridSample", x.astype("f8"), grid.astype("f8"), mode=mode)
    np.testing.assert_array_equal(found, np.trunc(floats + 1e-5).astype(dtype))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("op", ["DepthToSpace", "SpaceToDepth"])
def test_channels_and_pixels_of_whole_numbers_change_places(op, mode):
    x = image("uint8")
    found = run(op, x, blocksize=2, mode=mode)
    assert found.dtype == np.uint8
    floats = run(op, x.astype(np.float32), blocksize=2, mode=mode)
    np.testing.assert_array_equal(found, floats)


def test_the_largest_of_every_channel_of_whole_numbers():
    x = image("int32")
    np.testing.assert_array_equal(run("GlobalMaxPool", x), x.max((2, 3), keepdims=True))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_log_of_a_sum_of_exponentials_of_whole_numbers(dtype):
    x = np.array([[1000, 1000], [-3, 4]], dtype)
    found = run("ReduceLogSumExp", x, np.array([1]), keepdims=0)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, [1000, 4])


@pytest.mark.parametrize("op", ["Conv", "LayerNormalization", "Add"])
def test_whole_numbers_beside_floats_are_refused_by_their_types(op):
    x = image("int8")
    with pytest.raises(ArgumentError, match="inputs of type int8, float32"):
        run(op, x, x.astype(np.float32))
