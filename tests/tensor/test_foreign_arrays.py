"""Tensors of PyTorch of every type and layout: taken as they are, or with a cure."""

import warnings

import numpy as np
import pytest

from burnbook.core.errors import DataError
from burnbook.prelude import Numpy, Tensor, TensorData

torch = pytest.importorskip("torch", reason="their tensors are the members")

TAKEN = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8"]
NARROW = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]
ONES = [[1.0, 0.0], [0.0, 2.0]]


def members():
    """(name, tensor): a type, a layout, and what else NumPy may not see."""
    for name in (*TAKEN, "bool", *NARROW):
        yield name, torch.tensor(ONES).to(getattr(torch, name))
    for name in ("float32", "bfloat16"):
        tensor = torch.tensor(ONES, dtype=getattr(torch, name))
        yield f"gradient {name}", tensor.clone().requires_grad_()
        yield f"result {name}", tensor.clone().requires_grad_() * 1
        yield f"coo {name}", tensor.to_sparse()
        yield f"csr {name}", tensor.to_sparse_csr()
        yield f"coo gradient {name}", tensor.to_sparse().requires_grad_()
    codes = torch.quantize_per_tensor(torch.tensor(ONES), 1.0, 0, torch.qint8)
    yield "quantized", codes
    yield "negative", torch.complex(torch.zeros(2, 2), -torch.tensor(ONES)).conj().imag


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # compressed layouts are called new
    MEMBERS = dict(members())
WAYS = {
    "from_data": lambda x: Tensor.from_data(x, Numpy()),
    "from_numpy": lambda x: Tensor.from_numpy(x, Numpy()),
    "TensorData": TensorData,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MEMBERS)
def test_a_tensor_is_taken_or_the_cure_makes_it_so(way, name):
    tensor = MEMBERS[name]
    refused = None
    try:
        made = WAYS[way](tensor)
    except DataError as error:
        refused = error
    assert not (refused and name in (*TAKEN, "bool"))
    if refused:
        assert refused.where == way
        made = WAYS[way](eval(refused.cure, {"tensor": tensor}))
    truth = np.array(ONES) != 0 if name == "bool" else ONES
    assert np.array_equal(np.asarray(made), truth)


def test_what_is_not_there_has_no_elements():
    with pytest.raises(DataError, match="from_data: a Tensor gives NumPy no array"):
        Tensor.from_data(torch.ones(2, device="meta"), Numpy())
