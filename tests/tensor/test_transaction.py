"""Transactions: several tensors read at once, in their order."""

import numpy as np

from burnbook.backend import Autodiff, Decorator, Fusion, Numpy
from burnbook.module import Quantizer
from burnbook.nn import LinearConfig
from burnbook.tensor import Int, Tensor, Transaction
from burnbook.tensor.quantization import MinMaxCalibration, QuantizationScheme


class Reads(Decorator):
    """Count how often the device is awaited."""

    interned = False

    def __init__(self, inner):
        super().__init__(inner)
        self.reads = 0

    def to_numpy(self, value):
        self.reads += 1
        return super().to_numpy(value)

    def read(self, values):
        self.reads += 1
        return super().read(values)


def test_all_are_read_at_once_in_their_order():
    device = Reads(Numpy())
    x = Tensor.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3), device)
    asked = Transaction.default().register(x.sum()).register(x).register(x.argmax(1))
    total, whole, best = asked.execute()
    assert device.reads == 1
    assert total.to_list() == [15.0]
    assert whole.to_list() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert (best.to_list(), best.dtype) == ([[2], [2]], "i64")


def test_tracked_values_are_read_as_well():
    device = Reads(Numpy())
    x = Tensor.from_floats([2.0], Autodiff(device)).require_grad()
    square, given = Transaction(x * x, x).execute()
    assert (square.to_list(), given.to_list(), device.reads) == ([4.0], [2.0], 1)


def test_what_waits_is_run_and_read_at_once():
    below = Reads(Numpy())
    fused = Fusion(below)
    x = Tensor.from_floats([1.0, 2.0], fused)
    for _ in range(3):  # shapes are known from the second time on
        y = x * 2.0
        below.reads = 0
        double, total = Transaction(y, y.sum()).execute()
        assert (double.to_list(), total.to_list()) == ([2.0, 4.0], [6.0])
        assert (below.reads, fused.waiting) == (1, 0)


def test_every_device_is_awaited_once():
    one, other = Reads(Numpy()), Reads(Numpy(float="f64"))
    tensors = [Tensor.ones([n], device) for n in (1, 2) for device in (one, other)]
    found = Transaction(*tensors).execute()
    assert [data.shape for data in found] == [[1], [1], [2], [2]]
    assert [data.dtype for data in found] == ["f32", "f64", "f32", "f64"]
    assert (one.reads, other.reads) == (1, 1)


def test_codes_are_read_as_they_always_are():
    scheme = QuantizationScheme.PerTensorSymmetric()
    device = Numpy()
    layer = LinearConfig(4, 2).init(device)
    quantizer = Quantizer(MinMaxCalibration(), scheme)
    codes = layer.quantize_weights(quantizer).weight.val()
    found, ints = Transaction(codes, Tensor[1, Int].arange(0, 3, device)).execute()
    assert found.to_list() == codes.to_data().to_list()
    assert ints.to_list() == [0, 1, 2]


def test_a_transaction_stays_as_it_is():
    empty = Transaction()
    more = empty.register(Tensor.ones([1]))
    assert (len(empty.tensors), len(more.tensors)) == (0, 1)
    assert empty.execute() == []
    assert repr(more) == "Transaction(1 tensors)"
