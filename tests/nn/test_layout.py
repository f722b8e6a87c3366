"""Linear layers whose weight records hold the other way round."""

import copy
import pickle

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import RecordError
from burnbook.module import Lora, Module
from burnbook.nn import LinearLayout
from burnbook.optim import AdamConfig, GradientsParams
from burnbook.record import SafetensorsRecorder
from burnbook.tensor import Tensor, TensorData
from tests.support.quantizing import Q8S, QuantStore
from tests.support.recorders import every_recorder

PLAIN = Numpy()
AD = Autodiff(PLAIN)
COL = nn.LinearConfig(4, 3).with_layout(LinearLayout.Col)


def pair(device=PLAIN):
    """The same layer twice, in both layouts."""
    made = []
    for config in (nn.LinearConfig(4, 3), COL):
        device.seed(3)
        made.append(config.init(device))
    return made


def array(layer):
    return np.asarray(layer.weight.val())


def stored(layer):
    return layer.into_record()["weight"].param


def test_both_layouts_compute_and_print_the_same():
    row, col = pair()
    x = Tensor.random([5, 4], device=PLAIN)
    assert np.array_equal(array(row), array(col))
    assert np.array_equal(row.forward(x), col.forward(x))
    assert str(row) == str(col)
    assert row.weight.shape == col.weight.shape == (4, 3)


def test_records_hold_the_columns():
    row, col = pair()
    assert np.array_equal(stored(row).array, array(row))
    assert np.array_equal(stored(col).array, array(col).T)
    restored = COL.init(PLAIN).load_record(col.into_record())
    assert np.array_equal(array(restored), array(col))
    assert restored.weight.id == col.weight.id
    assert stored(restored) == stored(col)


@every_recorder
def test_every_recorder_keeps_the_layout(kind, tmp_path):
    _, col = pair()
    kind().record(col, tmp_path / "layer")
    restored = COL.init(PLAIN).load_file(tmp_path / "layer", kind())
    assert np.array_equal(array(restored), array(col))
    assert stored(restored).shape == (3, 4)


def test_the_other_layout_is_refused():
    row, col = pair()
    with pytest.raises(RecordError, match=r"record \[3, 4\], module \[4, 3\], trans"):
        row.load_record(col.into_record())
    with pytest.raises(RecordError, match=r"record \[4, 3\], module \[3, 4\], trans"):
        col.load_record(row.into_record())


def step(layer, optim):
    x = Tensor.ones([2, 4], AD)
    loss = (layer.forward(x) ** 2).sum()
    grads = GradientsParams.from_grads(loss.backward(), layer)
    return optim.step(0.1, layer, grads)


def test_a_step_and_its_state_are_those_of_the_other_layout():
    (row, col), optims = pair(AD), [AdamConfig().init() for _ in range(2)]
    for _ in range(2):
        row, col = (step(*each) for each in zip((row, col), optims, strict=True))
    assert np.array_equal(array(row), array(col))
    assert stored(col).shape == (3, 4)
    shapes = [
        [
            next(iter(held["V1"].values()))["momentum"]["moment_1"].shape
            for held in record
        ]
        for record in (optim.into_record().values() for optim in optims)
    ]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    "change",
    [
        copy.deepcopy,
        lambda layer: pickle.loads(pickle.dumps(layer)),
        lambda layer: layer.valid(),
        lambda layer: layer.no_grad(),
        lambda layer: layer.to_device(PLAIN),
        lambda layer: layer.replace(weight=layer.weight.map(lambda w: w * 1.0)),
    ],
    ids=["copy", "pickle", "valid", "no_grad", "to_device", "map"],
)
def test_the_layout_stays_whatever_becomes_of_the_layer(change):
    _, col = pair(AD)
    changed = change(col)
    assert np.array_equal(array(changed), array(col))
    assert np.array_equal(stored(changed).array, array(col).T)


class Net(Module):
    fc: nn.Linear


def test_a_lora_adapter_leaves_the_base_as_it_is():
    _, col = pair()
    tuned = Net(col.fork(AD)).apply_lora(Lora(2, 4.0))
    assert tuned.into_record()["fc"]["weight"]["base"].param.shape == (3, 4)
    folded = tuned.valid()
    assert stored(folded.fc).shape == (3, 4)


def test_quantized_columns_come_back():
    _, col = pair()
    scheme = Q8S.with_store(QuantStore.Native).per_block([4, 1])
    quantized = col.replace(
        weight=col.weight.map(lambda w: w.quantize_dynamic(scheme)), bias=None
    )
    data = stored(quantized)
    assert data.shape == (3, 4)
    assert data.dtype.strategy.scheme.block_size == (1, 4)[1:]
    restored = COL.with_bias(False).init(PLAIN).load_record(quantized.into_record())
    assert np.array_equal(array(restored), array(quantized))


def test_pytorchs_weights_are_stored_so_already(tmp_path):
    weight = np.arange(12, dtype=np.float32).reshape(3, 4)
    tree = {"fc": {"weight": TensorData.of(weight), "bias": TensorData.zeros([3])}}
    SafetensorsRecorder().record(tree, tmp_path / "torch")
    for config in (nn.LinearConfig(4, 3), COL):
        net = Net(config.init(PLAIN))
        net = net.load_file(tmp_path / "torch", SafetensorsRecorder(layout="pytorch"))
        assert np.array_equal(array(net.fc), weight.T)
