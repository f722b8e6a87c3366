"""Records of one model, its optimizers and schedules by every Burn from 0.13 to 0.21.

The files and what is in them are found by their names, see the README beside them; so
releases that are added there are tried too.
"""

import json
from collections import Counter
from typing import Annotated

import numpy as np
import pytest

from burnbook import lr_scheduler as schedules, nn
from burnbook.backend import Autodiff, Numpy
from burnbook.lr_scheduler import (
    ComposedLrSchedulerConfig,
    CosineAnnealingLrSchedulerConfig,
    ExponentialLrSchedulerConfig,
    LinearLrSchedulerConfig,
    NoamLrSchedulerConfig,
    StepLrSchedulerConfig,
)
from burnbook.module import Module, Param, ParamId
from burnbook.module.param import ParamRecord
from burnbook.nn.conv import Conv2d, Conv2dConfig
from burnbook.optim import (
    AdaGradConfig,
    AdamConfig,
    AdamWConfig,
    GradientsParams,
    MomentumConfig,
    RmsPropConfig,
    SgdConfig,
)
from burnbook.record import (
    BinFileRecorder,
    BinGzFileRecorder,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    JsonGzFileRecorder,
    NamedMpkFileRecorder,
    PrettyJsonFileRecorder,
)
from burnbook.tensor import Tensor
from tests.golden.shared import BURN, needs_burn
from tests.golden.test_made_0_15 import leaves, unpacked

pytestmark = needs_burn
MADE = BURN / "made-versions"
RECORDERS = {
    "mpk": NamedMpkFileRecorder,
    "bin": BinFileRecorder,
    "bin.gz": BinGzFileRecorder,
    "json": PrettyJsonFileRecorder,
    "json.gz": JsonGzFileRecorder,
}
RATE = 1 / 64
ELEMENTS = {"float": np.float32, "int": np.int32, "bool": np.bool_}


def release(folder):
    """ "v0_14" is (0, 14)."""
    return tuple(map(int, folder.removeprefix("v").split("_")))


FOLDERS = sorted(
    path.name
    for path in MADE.glob("v0_*")
    if release(path.name) < (0, 22) and (path / "expect.json").exists()
)
FILES = sorted(
    f"{folder}/{path.name}"
    for folder in FOLDERS
    for path in (MADE / folder).iterdir()
    if path.name.partition(".")[2] in RECORDERS and path.name != "expect.json"
)


def parts(name):
    """ "v0_14/adam_model_half.mpk" is v0_14, adam_model, half, mpk."""
    folder, _, file = name.partition("/")
    stem, _, ending = file.partition(".")
    half = stem.endswith("_half")
    return folder, stem.removesuffix("_half"), half, ending


def ending_in(word):
    return [name for name in FILES if parts(name)[1].endswith(word)]


MODELS, OPTIMIZERS = ending_in("_model"), ending_in("_optim")
QUANTIZED = [name for name in FILES if parts(name)[1].startswith("quantized_")]
SCHEDULES = sorted({*FILES} - {*MODELS, *OPTIMIZERS, *QUANTIZED})


def expected(name):
    return json.loads((MADE / parts(name)[0] / "expect.json").read_text())


def recorder_of(name):
    folder, _, half, ending = parts(name)
    settings = HalfPrecisionSettings if half else FullPrecisionSettings
    plain = RECORDERS[ending](settings)
    version = plain.read(MADE / name).metadata.version
    if release(folder) < (0, 15):
        return plain  # older records are only read
    return RECORDERS[ending](settings, version=version)


def same_bytes(recorder, record, name, folder):
    if release(parts(name)[0]) >= (0, 15):
        data = recorder.record(record, folder / "again").read_bytes()
        assert unpacked(data) == unpacked((MADE / name).read_bytes())


# --- the model ------------------------------------------------------------------------


class Extra(Module):
    sizes: tuple[int, int]
    steps: Param
    mask: Param
    bare: Tensor
    pair: tuple[nn.Linear, nn.Dropout]
    both: tuple[nn.Linear, nn.Linear]
    choice: Annotated[nn.Linear, "First"] | Annotated[nn.LayerNorm, "Second"]
    word: str


class Small(Module):
    linear: nn.Linear
    conv: Conv2d
    batch_norm: nn.BatchNorm
    layer_norm: nn.LayerNorm
    none: nn.Linear | None
    some: nn.Linear | None
    list: "list[nn.Linear]"
    dropout: nn.Dropout
    activation: nn.Relu
    factor: float
    extra: Extra


def small(device=None):
    device = device or Numpy()

    def linear(d_input, d_output, bias=True):
        return nn.LinearConfig(d_input, d_output, bias=bias).init(device)

    def param(value):
        return Param.initialized(ParamId.new(), value)

    dropout = nn.DropoutConfig(0.5).init()
    extra = Extra(
        (2, 3),
        param(Tensor.from_ints([1, 2, 3], device)),
        param(Tensor.from_ints([[0] * 3] * 2, device).bool()),
        Tensor.ones([2], device),
        (linear(1, 2), dropout),
        (linear(2, 2), linear(2, 2)),
        nn.LayerNormConfig(2).init(device),
        "word",
    )
    return Small(
        linear(8, 3),
        Conv2dConfig([1, 2], [2, 2]).init(device),
        nn.BatchNormConfig(2).init(device),
        nn.LayerNormConfig(3).init(device),
        None,
        linear(3, 3, bias=False),
        [linear(3, 3, bias=False), linear(3, 2)],
        dropout,
        nn.Relu(),
        1.5,
        extra,
    )


def forward(model, x):
    """[n, 1, 3, 3] to [n, 2], as in Burn's program."""
    x = model.activation.forward(model.batch_norm.forward(model.conv.forward(x)))
    x = model.linear.forward(x.reshape([x.dims()[0], 8]) * model.factor)
    x = model.some.forward(model.layer_norm.forward(x))
    for each in model.list:
        x = each.forward(x)
    return x


def test_all_files_have_a_kind(capsys):
    counts = Counter(parts(name)[0] for name in FILES)
    kinds = f"{len(MODELS)} models, {len(OPTIMIZERS)} optimizers, "
    kinds += f"{len(SCHEDULES)} schedules, {len(QUANTIZED)} quantized"
    with capsys.disabled():
        print(f"\nrecords of Burn, version by version: {dict(counts)}; {kinds}")
    assert FILES


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_read_with_its_values_and_written_back(name, tmp_path):
    wanted = expected(name)["runs"]["adam"]["tensors"]
    recorder = recorder_of(name)
    model = small().load_record(recorder.load(MADE / name))
    found = dict(leaves(model.into_record()))
    assert len(found) == len(wanted)
    for entry in wanted:
        held = found[entry["path"]]
        assert ParamId.deserialize(held.id) == ParamId.deserialize(entry["id"])
        assert list(held.param.shape) == entry["shape"]
        values = np.array(entry["values"]).reshape(entry["shape"])
        if parts(name)[2] and entry["kind"] == "float":
            values = values.astype(np.float16)
        np.testing.assert_array_equal(held.param.array, values, entry["path"])
    same_bytes(recorder, model.into_record(), name, tmp_path)
    if not parts(name)[2]:
        run = expected(name)["runs"]["adam"]["forward"]
        out = forward(model, tensor(run["input"], Numpy()))
        values = np.array(run["output"]["values"]).reshape(run["output"]["shape"])
        np.testing.assert_allclose(np.asarray(out), values, 2e-6)


def tensor(given, device):
    values = np.array(given["values"], np.float32).reshape(given["shape"])
    return Tensor.from_numpy(values, device)


@pytest.mark.parametrize("name", [n for n in FILES if release(parts(n)[0]) >= (0, 14)])
def test_a_file_that_is_only_read_is_written_back(name, tmp_path):
    recorder = RECORDERS[parts(name)[3]]()
    path = recorder.write(recorder.read(MADE / name), tmp_path / "again")
    assert unpacked(path.read_bytes()) == unpacked((MADE / name).read_bytes())


# --- optimizers -----------------------------------------------------------------------


def optimizer(name):
    kind = parts(name)[1].removesuffix("_optim")
    sgd = SgdConfig().with_momentum(MomentumConfig(momentum=0.9, dampening=0.1))
    rmsprop = RmsPropConfig().with_centered(True).with_momentum(0.5)
    made = {"sgd": sgd, "rmsprop": rmsprop, "adam": AdamConfig()}
    made |= {"adamw": AdamWConfig(), "adagrad": AdaGradConfig()}
    return kind, made[kind].init()


def model_with(entries, device):
    model = small(device)
    record = model.into_record()
    for entry in entries:
        at, keys = record, entry["path"].split(".")
        for key in keys[:-1]:
            at = at[int(key)] if isinstance(at, list | tuple) else at[key]
        values = np.array(entry["values"]).reshape(entry["shape"])
        values = values.astype(ELEMENTS[entry["kind"]])
        data = Tensor.from_numpy(values, Numpy()).to_data()
        at[keys[-1]] = ParamRecord(entry["id"], data)
    return model.load_record(record)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_is_written_back_and_makes_the_third_step(name, tmp_path):
    want = expected(name)
    kind, optim = optimizer(name)
    recorder = recorder_of(name)
    optim = optim.load_record(recorder.load(MADE / name))
    same_bytes(recorder, optim.into_record(), name, tmp_path)
    same_bytes(recorder, optim, name, tmp_path)
    if parts(name)[2]:
        return
    device = Autodiff(Numpy())
    run = want["runs"]["adam"]
    held = want["optimizers"].get(kind)
    before, after = (
        (held["before"], held["after_third_step"])
        if held
        else (
            run["tensors"],
            run["after_third_step"],
        )
    )
    loss_wanted = (held or run)["loss_of_third_step"]
    model = model_with(before, device)
    out = forward(model, tensor(run["forward"]["input"], device))
    loss = (out * out).sum()
    assert float(np.asarray(loss.inner())[0]) == pytest.approx(loss_wanted, rel=1e-4)
    grads = GradientsParams.from_grads(loss.backward(), model)
    model = optim.step(RATE, model, grads)
    found = dict(leaves(model.valid().into_record()))
    for entry in after:
        if entry["kind"] == "float" and "running" not in entry["path"]:
            values = np.array(entry["values"]).reshape(entry["shape"])
            made = found[entry["path"]].param.array
            # tiny gradients behind two norms: the releases differ by 2e-6 themselves
            np.testing.assert_allclose(made, values, 1e-5, 6e-6, err_msg=entry["path"])


# --- schedules ------------------------------------------------------------------------


def schedule(name):
    kind = parts(name)[1].removesuffix("_fresh")
    cosine = CosineAnnealingLrSchedulerConfig(0.5, 10)
    exponential = ExponentialLrSchedulerConfig(0.5, 0.75)
    linear = LinearLrSchedulerConfig(0.5, 0.25, 4)
    noam = NoamLrSchedulerConfig(0.5).with_warmup_steps(5)
    composed = ComposedLrSchedulerConfig().cosine(cosine).linear(linear)
    made = {
        "constant": lambda: schedules.ConstantLr(0.5),
        "cosine": cosine.init,
        "exponential": exponential.init,
        "linear": linear.init,
        "noam": noam.init,
        "step": StepLrSchedulerConfig(0.5, 2).init,
        "composed": composed.exponential(exponential)
        .noam(NoamLrSchedulerConfig(0.5))
        .init,
    }
    return made[kind]()


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_goes_on_from_its_record(name, tmp_path):
    want = expected(name)["schedules"][parts(name)[1]]
    recorder = recorder_of(name)
    made = schedule(name).load_record(recorder.load(MADE / name))
    misfiled = parts(name)[1] == "composed" and release(parts(name)[0]) < (0, 21)
    if not misfiled:  # Burn 0.19 and 0.20 file a cosine under "Linear", and refuse it
        same_bytes(recorder, made, name, tmp_path)
        if made.into_record() is not None:  # None is also a module without parameters
            same_bytes(recorder, made.into_record(), name, tmp_path)
    for rate in want["next"]:
        assert made.step() == pytest.approx(rate, rel=1e-12)


# --- quantized ------------------------------------------------------------------------


class Net(Module):
    linear: nn.Linear


@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_weights_stand_for_the_same_numbers(name, tmp_path):
    folder, stem, _, _ = parts(name)
    told = json.loads((MADE / folder / "quantized.expect.json").read_text())
    wanted = told[stem.removeprefix("quantized_")]["tensors"]
    recorder = recorder_of(name)
    model = Net(nn.LinearConfig(32, 16).init(Numpy()))
    model = model.load_record(recorder.load(MADE / name))
    found = dict(model.named_params())
    for entry in wanted:
        values = np.array(entry["dequantized"]).reshape(entry["shape"])
        made = np.asarray(found[entry["path"]].val().dequantize())
        np.testing.assert_allclose(made, values, 1e-6, 1e-8, err_msg=entry["path"])
    same_bytes(recorder, model.into_record(), name, tmp_path)
