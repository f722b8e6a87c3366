"""What layers had in older releases: warnings, refusals, and what is kept."""

import warnings

import msgpack
import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.module import Module
from burnbook.record import (
    BinBytesRecorder,
    BinFileRecorder,
    BurnpackRecorder,
    NamedMpkBytesRecorder,
    NamedMpkFileRecorder,
    PrettyJsonFileRecorder,
    RecordError,
)
from burnbook.tensor import Tensor
from tests.support.refusals import tells

GRU = nn.GruConfig(2, 3, True)
BEFORE = GRU.with_reset_after(False)
LSTM = nn.LstmConfig(2, 3, True)
COUPLED = LSTM.with_input_forget(True)


class Net(Module):
    first: nn.Linear
    rnn: nn.Gru


def net(config):
    return Net(nn.LinearConfig(2, 2).init(Numpy()), config.init(Numpy()))


def of_burn(module, version):
    """A named record as that release of Burn wrote it: with its own fields alone."""
    data = NamedMpkBytesRecorder(version=version).record(module.into_record())
    tree = msgpack.unpackb(data)

    def strip(node):
        if isinstance(node, dict):
            return {k: strip(v) for k, v in node.items() if k != "reset_after"}
        return node

    return msgpack.packb(strip(tree))


def values(module):
    return {path: np.asarray(p.val()).tolist() for path, p in module.named_params()}


# --- a Gru before Burn 0.17 -----------------------------------------------------------


@pytest.mark.parametrize("version", ["0.15.0", "0.16.1"])
@pytest.mark.parametrize("kind", ["bin", "mpk"])
def test_a_gru_that_burn_computed_otherwise_warns_with_a_cure_that_works(version, kind):
    theirs = net(BEFORE)
    recorder, data = NamedMpkBytesRecorder(), of_burn(theirs, version)
    if kind == "bin":
        recorder = BinBytesRecorder(version=version)
        data = recorder.record(theirs.into_record())
    with pytest.warns(UserWarning, match="reset_after") as caught:
        ours = net(GRU).load_record(recorder.load(data))
    (warning,) = caught
    burn = version.rpartition(".")[0]
    parts = (f"Burn {burn}", "reset_after=False", "this one has reset_after=True")
    tells(str(warning.message), "load rnn: ", *parts)
    assert values(ours) == values(theirs)  # it loads all the same

    cure = str(warning.message).partition("try: ")[2].partition(";")[0]
    assert cure == "GruConfig(…).with_reset_after(False)"
    cured = eval(cure.replace("GruConfig(…)", "GRU"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cured = net(cured).load_record(recorder.load(data))
    x = Tensor.from_floats([[[0.5, -1.0], [2.0, 0.25]]], Numpy())
    wanted = np.asarray(theirs.rnn.forward(x))
    assert np.array_equal(np.asarray(cured.rnn.forward(x)), wanted)
    assert not np.array_equal(np.asarray(ours.rnn.forward(x)), wanted)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("version", ["0.15.0", "0.16.1", "0.17.0", "0.21.0"])
def test_a_gru_that_computes_as_burn_did_does_not_warn(version):
    model = net(BEFORE)
    data = of_burn(model, version)
    found = net(BEFORE).load_record(NamedMpkBytesRecorder().load(data))
    assert values(found) == values(model)
    data = BinBytesRecorder(version=version).record(model.into_record())
    found = net(BEFORE).load_record(BinBytesRecorder().load(data))
    assert values(found) == values(model)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("recorder", [NamedMpkFileRecorder, PrettyJsonFileRecorder])
def test_named_files_of_ours_do_not_warn(recorder, tmp_path):
    model = net(GRU)
    path = recorder().record(model.into_record(), tmp_path / "model")
    assert values(net(GRU).load_file(path, recorder())) == values(model)
    newer = recorder(version="0.17.0").record(model.into_record(), tmp_path / "newer")
    assert values(net(GRU).load_file(newer, recorder())) == values(model)


def test_the_other_cure_of_a_bin_file_of_ours_works(tmp_path):
    model = net(GRU)
    old = BinFileRecorder().record(model.into_record(), tmp_path / "old")
    with pytest.warns(UserWarning, match=r"version='0\.17\.0' on its recorder"):
        found = net(GRU).load_file(old, BinFileRecorder())
    assert values(found) == values(model)
    recorder = BinFileRecorder(version="0.17.0")
    new = recorder.record(model.into_record(), tmp_path / "new")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(net(GRU).load_file(new, recorder)) == values(model)


def test_a_gru_for_older_burn_has_one_key_more_in_named_records():
    def keys(config, version):
        data = NamedMpkBytesRecorder(version=version).record(net(config).into_record())
        return list(msgpack.unpackb(data)["item"]["rnn"])

    plain = ["update_gate", "reset_gate", "new_gate", "d_hidden"]
    assert keys(BEFORE, "0.15.0") == plain
    assert keys(GRU, "0.16.1") == [*plain, "reset_after"]
    assert keys(GRU, "0.17.0") == keys(BEFORE, "0.17.0") == [*plain, "reset_after"]


# --- a part that an older release always has ------------------------------------------


def refused_in_bin(layer, version, path):
    with pytest.raises(RecordError) as caught:
        BinBytesRecorder(version=version).record(layer.into_record())
    what = f"{path} is absent, which Burn {version} does not allow there"
    tells(str(caught.value), "write bytes: ", what, "try: BurnpackRecorder")


def cures_hold(make, tmp_path):
    """What is refused in bincode goes into the formats that the error speaks of."""
    for recorder in (BurnpackRecorder(), NamedMpkFileRecorder()):
        layer = make()
        path = recorder.record(layer.into_record(), tmp_path / "layer")
        assert values(make().load_file(path, recorder)) == values(layer)


def plain_norm():
    return nn.LayerNormConfig(4, bias=False).init(Numpy())


def test_a_layer_norm_without_bias_has_no_place_in_bin_before_0_20(tmp_path):
    refused_in_bin(plain_norm(), "0.15.0", "beta")
    refused_in_bin(plain_norm(), "0.19.1", "beta")
    cures_hold(plain_norm, tmp_path)
    layer = plain_norm()
    recorder = BinBytesRecorder(version="0.20.0")
    data = recorder.record(layer.into_record())
    assert values(plain_norm().load_record(recorder.load(data))) == values(layer)


def whole_norm():
    return nn.LayerNormConfig(4).init(Numpy())


def test_the_bias_that_older_burn_always_had_is_left_out_only_when_asked():
    """It has been trained with, so a norm without it would compute something else."""
    layer = whole_norm()
    data = BinBytesRecorder(version="0.15.0").record(layer.into_record())
    with pytest.raises(RecordError, match="1 place does not match\n  beta  not in the"):
        plain_norm().load_record(BinBytesRecorder().load(data))
    found = plain_norm().load_record(BinBytesRecorder().load(data), partial=True)
    assert values(found) == {"gamma": values(layer)["gamma"]}


GATE = ("input_transform", "hidden_transform")
PARTS = [f"{layer}.{name}" for layer in GATE for name in ("weight", "bias")]
GATES = ("input_gate", "forget_gate", "output_gate", "cell_gate")


@pytest.mark.parametrize("version", ["0.15.0", "0.19.1"])
def test_an_lstm_in_bin_has_its_four_gates_one_after_the_other(version):
    layer = LSTM.init(Numpy())
    data = BinBytesRecorder(version=version).record(layer.into_record())
    at, params = 0, dict(layer.named_params())
    for path in (f"{gate}.{part}" for gate in GATES for part in PARTS):
        param = params[path]
        text = param.id.serialize().encode()
        raw = np.asarray(param.val()).astype("<f4").tobytes()
        place = data.index(bytes([len(text)]) + text + bytes([len(raw)]) + raw, at)
        if path != f"input_gate.{PARTS[0]}":  # only an option's byte lies between
            assert data[at:place] == (b"\1" if path.endswith("bias") else b"")
        shape = bytes([len(param.shape), *param.shape])
        at = place + 1 + len(text) + 1 + len(raw) + len(shape) + 1
        number = 1  # of F32, in every release
        assert data[at - len(shape) - 1 : at] == shape + bytes([number])
    assert data[at:] == b"\0"  # d_hidden
    found = LSTM.init(Numpy()).load_record(BinBytesRecorder().load(data))
    assert values(found) == values(layer)


@pytest.mark.parametrize("version", ["0.15.0", "0.20.0", "0.21.0"])
def test_coupled_gates_have_no_place_in_bin(version, tmp_path):
    refused_in_bin(COUPLED.init(Numpy()), version, "forget_gate")
    both = nn.BiLstmConfig(2, 3, False).with_input_forget(True).init(Numpy())
    refused_in_bin(both, version, "forward.forget_gate")
    cures_hold(lambda: COUPLED.init(Numpy()), tmp_path)


@pytest.mark.parametrize("version", ["0.15.0", "0.20.0"])
@pytest.mark.parametrize("recorder", [BinBytesRecorder, NamedMpkBytesRecorder])
def test_the_forget_gate_of_older_burn_is_read_and_left_out(version, recorder):
    layer = LSTM.init(Numpy())
    data = recorder(version=version).record(layer.into_record())
    found = COUPLED.init(Numpy()).load_record(recorder().load(data))
    wanted = values(layer).items()
    assert values(found) == {p: v for p, v in wanted if "forget_gate" not in p}


# --- parameters that an older release has no field for --------------------------------

PRELU = nn.ActivationConfig.PRelu(nn.PReluConfig(num_parameters=1, alpha=0.5))


def feed_forward():
    config = nn.PositionWiseFeedForwardConfig(2, 3).with_activation(PRELU)
    return config.init(Numpy())


def gated():
    return LSTM.with_cell_activation(PRELU).init(Numpy())


@pytest.mark.parametrize(
    ("make", "path", "field"),
    [
        (feed_forward, "activation.alpha", "activation"),
        (gated, "cell_activation.alpha", "cell_activation"),
    ],
)
def test_parameters_without_a_field_stay_at_the_end_of_named_records(
    make, path, field, tmp_path
):
    layer = make()
    data = NamedMpkBytesRecorder(version="0.15.0").record(layer.into_record())
    assert list(msgpack.unpackb(data)["item"])[-1] == field
    found = make().load_record(NamedMpkBytesRecorder().load(data))
    assert values(found) == values(layer)
    assert values(found)[path] == [0.5]
    with pytest.raises(RecordError) as caught:
        BinBytesRecorder(version="0.15.0").record(layer.into_record())
    what = f"{field} has no place in bincode of Burn 0.15.0"
    tells(str(caught.value), "write bytes: ", what, "try: BurnpackRecorder")
    cures_hold(make, tmp_path)
