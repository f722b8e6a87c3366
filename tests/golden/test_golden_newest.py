"""What Burn 0.22 wrote: modules, optimizers, schedules, quantized weights."""

import json

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.lr_scheduler import (
    ComposedLrSchedulerConfig as Composed,
    ConstantLr,
    CosineAnnealingLrSchedulerConfig as Cosine,
    ExponentialLrSchedulerConfig as Exponential,
    LinearLrSchedulerConfig as Linear,
    LrSchedulerConfig,
    NoamLrSchedulerConfig as Noam,
    SequentialLrSchedulerConfig as Sequential,
    StepLrSchedulerConfig as Step,
)
from burnbook.module import Lora, Module
from burnbook.module.param import ParamId, ParamRecord
from burnbook.optim import (
    AdafactorConfig,
    AdaGradConfig,
    AdamConfig,
    AdamWConfig,
    AdanConfig,
    LambConfig,
    LionConfig,
    MomentumConfig,
    MuonConfig,
    ParamGroup,
    RmsPropConfig,
    SgdConfig,
)
from burnbook.record import BurnpackRecorder, SafetensorsRecorder
from burnbook.record.flat import nest
from burnbook.record.tree import tensors
from burnbook.tensor import Int, Tensor, TensorData
from tests.golden.shared import BURN, needs_burn
from tests.support.newest_burn import (
    Container,
    Small,
    expected,
    given,
    train_step,
    values_of,
)

FOLDER = BURN / "made-versions" / "v0_22"
pytestmark = needs_burn


def files(pattern):
    """The names of files; one that is not there where none are, for the skip."""
    return sorted(path.name for path in FOLDER.glob(pattern)) or [pattern]


def facts(name):
    """What Burn wrote down about its files."""
    return json.loads((FOLDER / f"{name}.expect.json").read_text())


def recorder_of(name):
    if name.endswith(".bpk"):
        return BurnpackRecorder()
    layout = "pytorch" if "torch" in name else "burn"
    return SafetensorsRecorder(layout=layout)


def leaves_of(item, path=()):
    """(path, id, data) of every tensor of a record; LoRA's base has no name."""
    if isinstance(item, ParamRecord):
        yield ".".join(path), int(ParamId.deserialize(item.id)), item.param
    elif isinstance(item, TensorData):
        yield ".".join(path), None, item
    elif isinstance(item, dict):
        for key, part in item.items():
            yield from leaves_of(part, path if key == "base" else (*path, key))


@pytest.mark.parametrize("name", files("*.bpk") + files("*.safetensors"))
def test_a_file_is_written_back_byte_for_byte(name, tmp_path):
    # As it stands in the file: in whose layout matters to a module only.
    recorder = BurnpackRecorder() if name.endswith(".bpk") else SafetensorsRecorder()
    path = recorder.write(recorder.read(FOLDER / name), tmp_path / "again")
    assert path.read_bytes() == (FOLDER / name).read_bytes()


MODULES = [
    n for kind in ("everything", "container", "small") for n in files(f"{kind}*")
]
MODULES = [n for n in MODULES if not n.endswith(".json")]


@pytest.mark.parametrize("name", [n for n in MODULES if "_torch" not in n])
def test_every_tensor_of_a_module_is_the_one_that_burn_held(name):
    """With the precision that the file has: half of a number is not the number."""
    stem = name.partition(".")[0]
    places = [stem, stem.split("_")[0]]
    known = next(FOLDER / f"{p}.expect.json" for p in places if expects(p))
    rows = expected(known)
    if stem == "small_after_adam":
        rows = {
            r["path"]: r for r in facts("optimizers")["optimizers"]["adam"]["before"]
        }
    item = recorder_of(name).read(FOLDER / name).item
    found = list(leaves_of(item))
    for path, number, data in found:
        at = path if path in rows else with_variant(path, rows)
        row = rows[at]
        wanted = values_of(row)
        assert tuple(data.shape) == wanted.shape, path
        wide = {"f16": 1e-3, "bf16": 1e-2}.get(data.dtype, 0.0)
        values = data.convert("f64").to_numpy() if data.dtype != "bool" else data.array
        assert np.abs(values - wanted).max(initial=0) <= wide, path
        assert number in (row["id"], None), path
    whole = "filter" not in stem and stem != "small_group"
    assert not whole or len(found) == len(rows)


def expects(stem):
    return (FOLDER / f"{stem}.expect.json").exists()


def with_variant(path, rows):
    """The path of an expectation whose enum variants the file leaves out."""
    plain = {p.replace(".First", "").replace(".Second", ""): p for p in rows}
    return plain[path]


@pytest.mark.parametrize("name", [n for n in MODULES if n.startswith("container")])
def test_a_module_with_every_kind_of_field_is_loaded(name):
    loaded = Container.new(Numpy()).load_file(FOLDER / name, recorder_of(name))
    rows = expected(FOLDER / "container.expect.json")
    params = dict(loaded.named_params())
    for path, row in rows.items():
        param = params[path.replace(".First", "").replace(".Second", "")]
        assert np.array_equal(np.asarray(param.val()), values_of(row)), path
        assert name.endswith(".safetensors") or int(param.id) == row["id"]
    assert len(params) == len(rows)


def test_a_lora_adapter_is_loaded():
    plain = Small.new(Numpy())
    weight = ParamGroup.from_path("linear.weight")
    tuned = plain.apply_lora(Lora(2, 4.0).set_param_group(weight))
    loaded = tuned.load_file(FOLDER / "small_lora.bpk", BurnpackRecorder())
    params = dict(loaded.named_params())
    rows = expected(FOLDER / "small_lora.expect.json")
    assert params.keys() == rows.keys()
    for path, row in rows.items():
        assert np.array_equal(np.asarray(params[path].val()), values_of(row)), path
        assert int(params[path].id) == row["id"]


def test_a_group_of_parameters_is_loaded_alone():
    record = BurnpackRecorder().load(FOLDER / "small_group.bpk")
    module, report = Small.new(Numpy()).load_partial(record)
    assert report.loaded == ("linear.weight",)
    rows = expected(FOLDER / "small.expect.json")
    weight = np.asarray(module.linear.weight.val())
    assert np.array_equal(weight, values_of(rows["linear.weight"]))


# Layers: what they compute with Burn's weights

COLUMNS = nn.LinearLayout.Col
SIDES = nn.PaddingConfig2d.Explicit(1, 0, 1, 0)
FORWARD = {
    "linear": nn.LinearConfig(4, 3),
    "linear_col": nn.LinearConfig(4, 3, layout=COLUMNS),
    "linear_plain": nn.LinearConfig(4, 3, bias=False),
    "conv1": nn.Conv1dConfig(2, 4, 3, groups=2),
    "conv2": nn.Conv2dConfig([2, 3], [3, 2], padding=SIDES),
    "conv3": nn.Conv3dConfig([1, 2], [2, 2, 2]),
    "conv_t1": nn.ConvTranspose1dConfig([2, 3], 3, stride=2),
    "conv_t2": nn.ConvTranspose2dConfig([2, 3], [2, 2], stride=[2, 2]),
    "conv_t3": nn.ConvTranspose3dConfig([2, 1], [2, 2, 2]),
    "deform": nn.DeformConv2dConfig([2, 3], [2, 2]),
    "batch": nn.BatchNormConfig(3),
    "layer": nn.LayerNormConfig(4),
    "layer_plain": nn.LayerNormConfig(4, bias=False),
    "group": nn.GroupNormConfig(2, 4),
    "instance": nn.InstanceNormConfig(3),
    "rms": nn.RmsNormConfig(4),
    "lstm": nn.LstmConfig(3, 2, True),
    "lstm_coupled": nn.LstmConfig(3, 2, True, input_forget=True),
    "bilstm": nn.BiLstmConfig(3, 2, True),
    "gru": nn.GruConfig(3, 2, True),
    "gru_before": nn.GruConfig(3, 2, True, reset_after=False),
    "bigru": nn.BiGruConfig(3, 2, True),
    "rnn": nn.RnnConfig(3, 2, True),
    "birnn": nn.BiRnnConfig(3, 2, True),
    "mha": nn.MultiHeadAttentionConfig(4, 2),
    "cross": nn.CrossAttentionConfig(4, 6, 2, 1, 2),
    "encoder": nn.TransformerEncoderConfig(4, 6, 2, 2),
    "decoder": nn.TransformerDecoderConfig(4, 6, 2, 1, norm_first=True),
    "pwff": nn.PositionWiseFeedForwardConfig(4, 6),
    "swiglu": nn.SwiGluConfig(4, 3, bias=True),
    "prelu": nn.PReluConfig(num_parameters=3),
    "prelu_one": nn.PReluConfig(),
    "embedding": nn.EmbeddingConfig(5, 4),
}
CALLS = {
    "mha": lambda layer, x: layer.forward(nn.MhaInput.self_attn(x)).context,
    "encoder": lambda layer, x: layer.forward(nn.TransformerEncoderInput(x)),
    "decoder": lambda layer, *x: layer.forward(nn.TransformerDecoderInput(*x)),
}


@pytest.mark.parametrize("file", ["everything.bpk", "everything.safetensors"])
@pytest.mark.parametrize("name", FORWARD)
def test_a_layer_computes_what_burn_computed(name, file):
    run, device = facts("everything")["forward"][name], Numpy()
    item = recorder_of(file).load(FOLDER / file, device)
    layer = FORWARD[name].init(device).load_record(item[name])
    if "tokens" in run:
        inputs = [Tensor.from_data(run["tokens"], device, Int)]
    else:
        arrays = [values_of(row).astype(np.float32) for row in run["inputs"]]
        inputs = [Tensor.from_numpy(array, device) for array in arrays]
    call = CALLS.get(name, lambda layer, *x: layer.forward(*x))
    found = call(layer, *inputs)
    found = found[0] if isinstance(found, tuple) else found  # without the state
    wanted = values_of(run["output"])
    assert found.shape == wanted.shape
    assert np.abs(np.asarray(found) - wanted).max() < 5e-6


@pytest.mark.parametrize("file", ["everything.bpk", "everything.safetensors"])
def test_a_layer_is_written_as_burn_wrote_it(file, tmp_path):
    """All layers that have parameters, in their order: the names are Burn's, too."""
    recorder, device = recorder_of(file), Numpy()
    item = recorder.load(FOLDER / file, device)
    for name, config in FORWARD.items():
        layer = config.init(device).load_record(item[name])
        path = recorder.record({name: layer}, tmp_path / "again")
        found = {p: data for p, _, data in leaves_of(recorder.load(path))}
        theirs = {p: data for p, _, data in leaves_of({name: item[name]})}
        assert found == theirs
        assert list(found) == list(theirs)


# Optimizers: the state after two steps, and the third


def groups():
    linear = ParamGroup.from_path("linear.weight")
    sgd = SgdConfig(momentum=MomentumConfig())
    return AdamConfig().init().with_group(linear, sgd)


OPTIMIZERS = {
    "adam": AdamConfig,
    "adan": AdanConfig,
    "lion": LionConfig,
    "lamb": LambConfig,
    "adafactor": AdafactorConfig,
    "muon": MuonConfig,
    "sgd": SgdConfig,
    "sgd_momentum": lambda: SgdConfig(momentum=MomentumConfig()),
    "rmsprop": lambda: RmsPropConfig(centered=True, momentum=0.5),
    "groups": groups,
    "adamw": AdamWConfig,
    "adagrad": AdaGradConfig,
}


def module_of(rows, device):
    """The small module with the values and ids of expectations."""
    held = {
        row["path"]: ParamRecord(
            ParamId(row["id"]).serialize(),
            TensorData.of(values_of(row).astype(np.float32)),
        )
        for row in rows
    }
    return Small.new(device).load_record(nest(held, 10**6))


@pytest.mark.parametrize("name", sorted({n[6:-4] for n in files("optim_*.bpk")}))
def test_an_optimizer_takes_the_step_that_burn_took(name):
    run = facts("optimizers")["optimizers"][name]
    made = OPTIMIZERS[name]()
    optim = made.init() if hasattr(made, "init") else made
    optim.load_record(BurnpackRecorder().load(FOLDER / f"optim_{name}.bpk"))
    assert len(optim.into_record()) == 12
    device = Numpy().autodiff()
    module = module_of(run["before"], device)
    x = Tensor.from_numpy(given(2, 1, 3, 3), Numpy())
    module.forward(x.to_device(device))  # Burn's copies share what moves in it
    output = np.asarray(module.valid().forward(x)).ravel()
    assert output == pytest.approx(run["forward"]["output"]["values"], abs=2e-6)
    after = dict(train_step(module, optim).named_params())
    for row in run["after_third_step"]:
        path = row["path"]
        # The running statistics move in `forward`; and the batch norm takes the bias
        # before it away again, whose gradient is only what rounding leaves.
        if "running" not in path and path != "conv.bias":
            found = np.asarray(after[path].val())
            assert np.abs(found - values_of(row)).max() < 2e-5, path


# Schedules


SEQUENCE = [LrSchedulerConfig.Linear(Linear(0.5, 0.25, 2))]
SEQUENCE += [LrSchedulerConfig.Cosine(Cosine(0.25, 6))]
SCHEDULES = {
    "cosine": Cosine(0.5, 10).init,
    "exponential": Exponential(0.5, 0.75).init,
    "linear": Linear(0.5, 0.25, 4).init,
    "noam": Noam(0.5, warmup_steps=5).init,
    "step": Step(0.5, 2).init,
    "constant": lambda: ConstantLr(0.5),
    "sequential": Sequential(SEQUENCE, [2]).init,
    "composed": (
        Composed()
        .cosine(Cosine(0.5, 10))
        .linear(Linear(0.5, 0.25, 4))
        .exponential(Exponential(0.5, 0.75))
        .noam(Noam(0.5, warmup_steps=5))
        .init
    ),
}


@pytest.mark.parametrize("name", sorted({n[9:-4] for n in files("schedule_*.bpk")}))
def test_a_schedule_goes_on_where_burn_left_it(name):
    schedule = SCHEDULES[name.removesuffix("_fresh")]()
    schedule.load_record(BurnpackRecorder().load(FOLDER / f"schedule_{name}.bpk"))
    wanted = facts("optimizers")["schedules"][name]["next"]
    assert [schedule.step() for _ in wanted] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("name", sorted({n[9:-4] for n in files("schedule_*.bpk")}))
def test_a_schedule_writes_what_burn_wrote(name, tmp_path):
    schedule = SCHEDULES[name.removesuffix("_fresh")]()
    for _ in facts("optimizers")["schedules"][name]["before"]:
        schedule.step()
    for record in (schedule, schedule.into_record()):
        path = BurnpackRecorder().record(record, tmp_path / "schedule")
        assert path.read_bytes() == (FOLDER / f"schedule_{name}.bpk").read_bytes()


# Quantized weights


class Net(Module):
    linear: nn.Linear

    @classmethod
    def new(cls):
        return cls(nn.LinearConfig(32, 16).init(Numpy()))


@pytest.mark.parametrize("name", sorted({n[10:-4] for n in files("quantized_*.bpk")}))
def test_quantized_weights_stand_for_the_numbers_that_burn_held(name):
    schemes = facts("quantized")["schemes"]
    if name not in schemes:
        pytest.skip("Burn wrote down nothing about it")
    path = FOLDER / f"quantized_{name}.bpk"
    rows = {row["path"]: row for row in schemes[name]["tensors"]}
    item = BurnpackRecorder().load(path, Numpy())
    for at, data in tensors(item):
        row = rows[".".join(at)]
        wanted = np.reshape(row.get("dequantized", row.get("values")), row["shape"])
        found = data.dequantize() if data.dtype != "f32" else data
        assert found.to_numpy() == pytest.approx(wanted, abs=1e-7)
        if "bytes" in row and data.dtype != "f32":
            assert list(bytes(data.bytes)) == row["bytes"]
    net = Net.new().load_record(item)
    x = Tensor.from_numpy(given(2, 32, seed=1), Numpy())
    output = schemes[name]["output"]
    assert np.asarray(net.linear.forward(x)) == pytest.approx(
        values_of(output), abs=1e-5
    )
