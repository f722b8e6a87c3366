"""What goes over to a cell of Rust, and what comes back."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.rust import RustError
from burnbook.rust.values import backend_in_rust, device_of, give, take
from burnbook.tensor import Bool, Int, Tensor

DEVICE = Numpy()


def test_a_tensor_becomes_a_file_and_an_expression(tmp_path):
    x = Tensor[2].from_floats([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], DEVICE)
    i = Tensor[1, Int].from_ints([7, -8], DEVICE)
    b = Tensor[1, Bool].from_data([True, False], DEVICE)
    found = give({"x": x.transpose(), "i": i, "b": b}, tmp_path)
    assert found == {
        "x": 'crate::burnbook::input::<2, burn::tensor::Float>("x", [2, 3])',
        "i": 'crate::burnbook::input::<1, burn::tensor::Int>("i", [2])',
        "b": 'crate::burnbook::input::<1, burn::tensor::Bool>("b", [2])',
    }
    array = np.load(tmp_path / "x.in.npy", allow_pickle=False)
    assert array.flags.c_contiguous
    assert array.dtype == np.dtype("<f4")
    assert array.tolist() == [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]
    assert np.load(tmp_path / "i.in.npy").dtype == np.dtype("<i8")
    assert np.load(tmp_path / "b.in.npy").tolist() == [True, False]


def test_a_leaf_stays_a_leaf(tmp_path):
    x = Tensor[1].ones([2], Autodiff(DEVICE))
    found = give({"x": x, "w": x.require_grad()}, tmp_path)
    assert not found["x"].endswith(".require_grad()")
    assert found["w"].endswith(".require_grad()")


def test_numbers_are_written_exactly(tmp_path):
    given = {"n": -3, "yes": True, "low": -(2**63), "a": 0.1, "one": np.float32(1)}
    found = give(given, tmp_path)
    assert found["n"] == "-3_i64"
    assert found["yes"] == "true"
    assert found["low"] == f"{-(2**63)}_i64"
    bits = int(found["a"].removeprefix("f64::from_bits(").removesuffix(")"))
    assert np.uint64(bits).view(np.float64) == 0.1
    assert found["one"].startswith("f64::from_bits(")


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("text", "x is a str, neither a tensor nor a number"),
        (None, "x is a NoneType, neither"),
        (2**63, "9223372036854775808 does not fit in 64 bits"),
        (np.ones(3), "x is a ndarray, neither"),
    ],
)
def test_other_values_are_refused(tmp_path, value, what):
    with pytest.raises(RustError, match=what):
        give({"x": value}, tmp_path)


def test_the_cells_backend_is_that_of_its_tensors():
    one = Tensor[1].ones([2], DEVICE)
    wide = Tensor[1].ones([2], Numpy(float="f64", int="i32"))
    assert device_of({"n": 3}) is None
    assert device_of({"n": 3, "x": one}) is DEVICE
    assert backend_in_rust(None) == "burn::backend::NdArray"
    assert backend_in_rust(wide.backend) == "burn::backend::NdArray<f64, i32>"
    assert backend_in_rust(Autodiff(DEVICE)) == (
        "burn::backend::Autodiff<burn::backend::NdArray<f32, i64>>"
    )
    with pytest.raises(RustError) as caught:
        device_of({"x": one, "w": wide})
    assert caught.value.cure == "w = w.to_device(x.device())"
    with pytest.raises(RustError, match="NdArray has no f16"):
        device_of({"x": Tensor[1].ones([2], Numpy(float="f16"))})


def test_files_come_back_as_tensors_and_numbers(tmp_path):
    np.save(tmp_path / "y.out.npy", np.ones((2, 3), "<f4"))
    np.save(tmp_path / "k.out.npy", np.array([1, 2], "<i8"))
    np.save(tmp_path / "s.out.npy", np.array(2.5))
    found = take(["y", "k", "s"], tmp_path, DEVICE)
    assert found["y"].dims() == (2, 3)
    assert found["k"].kind is Int
    assert found["s"] == 2.5
    assert type(found["s"]) is float


def test_a_file_that_holds_objects_is_not_read(tmp_path):
    np.save(tmp_path / "y.out.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        take(["y"], tmp_path, DEVICE)
