"""Quantization: whole modules, and their records."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import GraphError, RecordError, ShapeError
from burnbook.module import Dequantize, Lora, ModuleMapper, QLora, Quantizer
from burnbook.record import (
    FullPrecisionSettings,
    HalfPrecisionSettings,
    JsonGzFileRecorder,
    NamedMpkBytesRecorder,
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    PrettyJsonFileRecorder,
    describe,
    quantized,
)
from burnbook.record.tree import Trouble
from burnbook.tensor import Tensor, TensorData
from burnbook.tensor.quantization import (
    Calibration,
    PerTensorAffineInt8,
    PerTensorSymmetricInt8,
)
from tests.support.quantizing import (
    AFFINE,
    Q8S,
    SCHEMES,
    SYMMETRIC,
    Named,
    kept_as_codes,
    small,
    tensor,
)

# Modules


@pytest.mark.parametrize("scheme", [AFFINE, SYMMETRIC, Q8S.per_block([4])])
def test_a_module_is_quantized_and_still_runs(scheme):
    model, x = small(), tensor(5, 8)
    quantized = model.quantize_weights(Quantizer(Calibration.MinMax, scheme))
    assert kept_as_codes(quantized) == [
        "first.weight", "first.bias", "second.weight", "second.bias",
    ]  # fmt: skip
    assert type(quantized.forward(x)) is Tensor
    assert quantized.forward(x).all_close(model.forward(x), atol=0.1)
    back = quantized.map(Dequantize())
    assert kept_as_codes(back) == kept_as_codes(model) == []
    assert back.forward(x).all_close(quantized.forward(x), atol=1e-6)
    ids = [[p.id for _, p in m.named_params()] for m in (model, back)]
    assert ids[0] == ids[1]
    assert quantized.num_params() == model.num_params()
    moved = quantized.to_device(Numpy(float="f64"))
    assert len(kept_as_codes(moved)) == 4


def test_some_parameters_alone_are_quantized():
    quantizer = Quantizer(Calibration.MinMax, SCHEMES["squares"])
    weights = ["first.weight", "second.weight"]
    model = small()
    assert kept_as_codes(model.quantize_weights_group(quantizer, Named("weight"))) == (
        weights
    )
    quantizer.set_param_group(Named("first.weight"))
    assert kept_as_codes(model.quantize_weights(quantizer)) == ["first.weight"]
    assert kept_as_codes(model.quantize_weights(quantizer, Named("weight"))) == weights


def test_quantizing_again_starts_from_the_numbers():
    model = small().quantize_weights(Quantizer(Calibration.MinMax, AFFINE))
    again = model.quantize_weights(Quantizer(Calibration.MinMax, SYMMETRIC))
    assert all(p.val().scheme == SYMMETRIC for _, p in again.named_params())


def test_norms_are_quantized_as_well():
    norm = nn.LayerNormConfig(4).init(Numpy())
    quantized = norm.quantize_weights(Quantizer(Calibration.MinMax, SYMMETRIC))
    assert kept_as_codes(quantized) == ["gamma", "beta"]
    x = tensor(3, 4)
    assert quantized.forward(x).all_close(norm.forward(x), atol=1e-5)


def test_an_error_names_the_parameter():
    quantizer = Quantizer(Calibration.MinMax, Q8S.per_block([16]))
    with pytest.raises(ShapeError, match=r"param +second\.weight"):
        small().quantize_weights(quantizer)


def test_a_model_with_gradients_is_quantized_below_them():
    model = small(Autodiff(Numpy()))
    quantizer = Quantizer(Calibration.MinMax, SYMMETRIC)
    with pytest.raises(GraphError, match=r"model\.valid\(\)"):
        model.quantize_weights(quantizer)
    quantized = model.valid().quantize_weights(quantizer)
    assert len(kept_as_codes(quantized)) == 4
    with pytest.raises(GraphError, match="Dequantize"):
        quantized.train().named_params()[0][1].val()
    again = quantized.map(Dequantize()).train()
    x = tensor(5, 8, device=Autodiff(Numpy()))
    grads = again.forward(x).sum().backward()
    assert again.first.weight.val().grad(grads) is not None


def test_a_mapper_of_the_reader_dequantizes():
    class Mine(ModuleMapper):
        def map_float(self, id, tensor):  # noqa: A002 - Burn's word
            return tensor.dequantize()

    quantizer = Quantizer(Calibration.MinMax, AFFINE)
    assert kept_as_codes(small().quantize_weights(quantizer).map(Mine())) == []


def test_adapters_learn_beside_codes():
    quantizer = Quantizer(Calibration.MinMax, SYMMETRIC)
    model = small(Autodiff(Numpy()))
    adapted = model.apply_qlora(QLora(Lora(2, 4.0), quantizer))
    x = tensor(5, 8, device=Autodiff(Numpy()))
    out = adapted.forward(x)
    plain = model.valid().quantize_weights(quantizer).forward(x.inner())
    assert out.inner().all_close(plain, atol=1e-5)  # adapters start at 0
    grads = out.sum().backward()
    learned = [path for path, p in adapted.named_params() if p.is_require_grad]
    assert len(learned) == 4
    assert all("lora" in path for path in learned)
    assert sum(
        p.val().grad(grads) is not None for _, p in adapted.named_params()
    ) == len(learned)


# Records

RECORDERS = [NamedMpkFileRecorder, NamedMpkGzFileRecorder, JsonGzFileRecorder,
             PrettyJsonFileRecorder]  # fmt: skip


@pytest.mark.parametrize("recorder", RECORDERS)
@pytest.mark.parametrize("precision", [FullPrecisionSettings, HalfPrecisionSettings])
@pytest.mark.parametrize("scheme", [AFFINE, SYMMETRIC, Q8S])
def test_codes_are_saved_and_loaded(recorder, precision, scheme, tmp_path):
    model = small().quantize_weights(Quantizer(Calibration.MinMax, scheme))
    kept = recorder(precision)
    model.save_file(tmp_path / "model", kept)
    loaded = small().load_file(tmp_path / "model", kept, Numpy())
    saved = SYMMETRIC if scheme is Q8S else scheme  # which means the same
    for (path, a), (_, b) in zip(
        model.named_params(), loaded.named_params(), strict=True
    ):
        assert b.val().scheme == saved, path
        assert np.array_equal(np.asarray(a.val()), np.asarray(b.val())), path
    restored = small().load_file(tmp_path / "model", kept, Numpy()).map(Dequantize())
    x = tensor(5, 8)
    assert restored.forward(x).all_close(model.forward(x), atol=1e-6)


def test_codes_take_a_quarter_of_the_file(tmp_path):
    model = nn.LinearConfig(100, 100).init(Numpy())
    quantized = model.quantize_weights(Quantizer(Calibration.MinMax, AFFINE))
    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    for name, one in (("large", model), ("small", quantized)):
        one.save_file(tmp_path / name, recorder)
    large, less = ((tmp_path / f"{n}.mpk").stat().st_size for n in ("large", "small"))
    assert 3.5 < large / less < 4


@pytest.mark.parametrize(
    ("strategy", "dtype"),
    [
        (
            PerTensorSymmetricInt8(0.5),
            b"\x81\xb6PerTensorSymmetricInt8"
            b"\x82\xa5scale\xca\x3f\x00\x00\x00\xa2_q\x90",
        ),
        (
            PerTensorAffineInt8(0.25, -3),
            b"\x81\xb3PerTensorAffineInt8"
            b"\x83\xa5scale\xca\x3e\x80\x00\x00\xa6offset\xfd\xa2_a\x90",
        ),
    ],
)
def test_the_bytes_of_a_record_are_those_of_burn(strategy, dtype):
    data = TensorData.quantized([1, -2, 3], [3], strategy)
    recorder = NamedMpkBytesRecorder(FullPrecisionSettings)
    raw = recorder.record({"weight": data})
    expected = b"\x83\xa5bytes\xc4\x03\x01\xfe\x03\xa5shape\x91\x03\xa5dtype"
    assert expected + b"\x81\xa6QFloat" + dtype in raw
    assert recorder.load(raw)["weight"] == data


@pytest.mark.parametrize(
    "payload",
    [
        {"PerTensorSymmetricInt8": [0.5, None]},
        {"PerTensorAffineInt8": [0.5, 7, None]},
        {"PerTensorAffineInt8": {"offset": 7, "scale": 0.5}},
    ],
)
def test_structs_by_position_and_in_any_order_are_read(payload):
    data = quantized.read(bytes(6), (2, 3), payload, ("weight",))
    strategy = data.dtype.strategy
    assert strategy.scale == 0.5
    assert getattr(strategy, "offset", 7) == 7


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"PerTensorSymmetricInt8": {}},
        {"PerTensorAffineInt8": {"scale": 0.5}},
        {"PerTensorAffineInt8": {"scale": 0.5, "offset": 1.5}},
        {"PerTensorAffineInt8": {"scale": "0.5", "offset": 1}},
        {"PerBlock": {"scale": 0.5}},
        {"PerTensorSymmetricInt8": {"scale": -1.0}},
        {"PerTensorSymmetricInt8": {"scale": 10**400}},
        {"PerTensorAffineInt8": {"scale": 0.5, "offset": 200}},
        "QInt8",
        [1, 2],
    ],
)
def test_damaged_parameters_are_told(payload):
    with pytest.raises(Trouble, match="weight"):
        quantized.read(bytes(6), (2, 3), payload, ("weight",))


@pytest.mark.parametrize("name", ["blocks", "ternary", "levels", "newer"])
def test_newer_schemes_have_no_place_in_burn_0_15(name, tmp_path):
    data = tensor(4, 8).quantize_dynamic(SCHEMES[name]).to_data()
    with pytest.raises(RecordError, match="in a way that records of Burn"):
        NamedMpkFileRecorder(FullPrecisionSettings).record({"w": data}, tmp_path / "x")


def test_a_record_of_codes_is_described(tmp_path):
    model = small().quantize_weights(Quantizer(Calibration.MinMax, AFFINE))
    model.save_file(tmp_path / "m", NamedMpkFileRecorder(FullPrecisionSettings))
    text = str(describe(tmp_path / "m.mpk"))
    assert "first.weight   [8, 16]  PerTensorAffine(QInt8)" in text


def test_loading_codes_into_a_model_with_gradients_leaves_them_alone(tmp_path):
    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    model = small().quantize_weights(Quantizer(Calibration.MinMax, AFFINE))
    model.save_file(tmp_path / "m", recorder)
    loaded = small(Autodiff(Numpy())).load_file(tmp_path / "m", recorder)
    assert not any(p.is_require_grad for _, p in loaded.named_params())
    x = tensor(5, 8, device=Autodiff(Numpy())).require_grad()
    assert x.grad(loaded.forward(x).sum().backward()) is not None
