"""What burnbook writes, Burn 0.15 reads: the same values, outputs, steps and rates.

Burn's own program beside the project loads the files and says what it found.
"""

from collections import Counter

import numpy as np
import pytest

from burnbook import lr_scheduler as schedules, optim
from burnbook.backend import Autodiff, Numpy
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.module import ParamId
from burnbook.module.param import ParamRecord
from burnbook.optim import GradientsParams, MomentumConfig, WeightDecayConfig
from burnbook.record import (
    BinBytesRecorder,
    BinFileRecorder,
    BinGzFileRecorder,
    DoublePrecisionSettings,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    JsonGzFileRecorder,
    NamedMpkBytesRecorder,
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    PrettyJsonFileRecorder,
)
from burnbook.tensor import Tensor
from tests.support import cargo
from tests.support.burn_models import everything, made_for, small

pytestmark = pytest.mark.slow
SETTINGS = {
    "full": FullPrecisionSettings,
    "half": HalfPrecisionSettings,
    "double": DoublePrecisionSettings,
}
RECORDERS = {
    "mpk": NamedMpkFileRecorder,
    "mpk.gz": NamedMpkGzFileRecorder,
    "json": PrettyJsonFileRecorder,
    "json.gz": JsonGzFileRecorder,
    "bin": BinFileRecorder,
    "bin.gz": BinGzFileRecorder,
    "mpkbytes": NamedMpkBytesRecorder,
    "binbytes": BinBytesRecorder,
}
MODULES = ["guide", "container", "container2", "everything", "extremes", "small"]
RATES = [
    0.1,
    0.05,
    0.02,
    0.1,
]  # of the steps; records are written after the first three
held = Counter()  # (kind, recorder, precision) -> files that Burn read right


@pytest.fixture(scope="module", autouse=True)
def table(pytestconfig):
    """At the end: recorder × precision × kind, how many files Burn read right."""
    yield
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    kinds = sorted({kind for kind, *_ in held})
    with capture.global_and_fixture_disabled():
        print("\nfiles that Burn 0.15.0 read right")
        print(f"{'recorder':<10}{'precision':<11}" + "".join(f"{k:>12}" for k in kinds))
        for ending in RECORDERS:
            for precision in SETTINGS:
                row = [held[kind, ending, precision] for kind in kinds]
                print(f"{ending:<10}{precision:<11}" + "".join(f"{n:>12}" for n in row))


def write(record, ending, precision, folder):
    """A file that the program loads, and what our recorder reads in it."""
    recorder = RECORDERS[ending](SETTINGS[precision])
    path = folder / f"record.{ending}"
    if ending.endswith("bytes"):
        path.write_bytes(recorder.record(record))
        return path, recorder.load(path.read_bytes())
    return recorder.record(record, path), recorder.load(path)


def burn_reads(kind, precision, *paths):
    program = cargo.built("check-0.15", "check-record")
    found = cargo.lines_of(program, "--kind", kind, "--precision", precision, *paths)
    for line in found:
        assert line["ok"], line["error"]
    return found


def numbers(given):
    values = [float(v) if isinstance(v, str) else v for v in given["values"]]
    return np.array(values).reshape(given["shape"])


def tensor(given):
    values = numbers(given)
    kinds = {"F": np.float32, "I": np.int64, "B": np.bool_}
    return Tensor.from_numpy(values.astype(kinds[given["dtype"][0]]), Numpy())


def close(found, given, where, rtol=2e-5, atol=2e-6):
    np.testing.assert_allclose(
        np.asarray(found), numbers(given), rtol, atol, True, where
    )


def same_values(model, tensors):
    found = dict(model.named_params())
    assert len(found) == len(tensors)
    short = {
        path.replace(".Dense", "").replace(".Narrow", ""): t
        for path, t in tensors.items()
    }
    for path, param in found.items():
        given = short[path]
        assert given["id"] == param.id.serialize()
        value = np.asarray(param.val()).astype(np.float32)
        np.testing.assert_array_equal(value, numbers(given).astype(np.float32), path)


@pytest.mark.parametrize("precision", SETTINGS)
@pytest.mark.parametrize("kind", MODULES)
def test_burn_loads_modules(kind, precision, tmp_path):
    model = made_for(kind, hidden=16)
    files, ours = [], []
    for ending in RECORDERS:
        folder = tmp_path / ending
        folder.mkdir()
        path, record = write(model.into_record(), ending, precision, folder)
        files.append(path)
        ours.append(made_for(kind, hidden=16).load_record(record))
    for ending, again, line in zip(
        RECORDERS, ours, burn_reads(kind, precision, *files), strict=True
    ):
        same_values(again, line["tensors"])
        for name, run in line.get("forward", {}).items():
            made = again.outputs(name, [tensor(one) for one in run["inputs"]])
            for out, given in zip(made, run["outputs"], strict=True):
                close(out, given, f"{ending}: {name}")
        held[kind, ending, precision] += 1


@pytest.mark.parametrize("name", everything().__annotations__)
def test_burn_loads_layers_from_bincode(name, tmp_path):
    layer = getattr(everything(), name)
    path, record = write(layer.into_record(), "bin", "full", tmp_path)
    (line,) = burn_reads(f"layer-{name}", "full", path)
    whole = everything()
    again = getattr(whole, name).load_record(record)
    tensors = line["tensors"].items()
    same_values(again, {p.removeprefix(f"{name}."): given for p, given in tensors})
    whole = type(whole)(**{**vars(whole), name: again})
    for run, given in line["forward"].items():
        made = whole.outputs(run, [tensor(one) for one in given["inputs"]])
        for out, want in zip(made, given["outputs"], strict=True):
            close(out, want, run)
    held["layers", "bin", "full"] += 1


# --- optimizers -----------------------------------------------------------------------


def _optimizers():
    decay = WeightDecayConfig(0.05)
    value = GradientClippingConfig.Value(0.02)
    norm = GradientClippingConfig.Norm(0.05)

    def momentum(dampening, nesterov):
        return MomentumConfig(momentum=0.8, dampening=dampening, nesterov=nesterov)

    sgd, adam, adamw = optim.SgdConfig(), optim.AdamConfig(), optim.AdamWConfig()
    adagrad, rmsprop = optim.AdaGradConfig(), optim.RmsPropConfig()
    some = rmsprop.with_alpha(0.9).with_momentum(0.5).with_centered(True)
    plain = rmsprop.with_momentum(0.0)
    other = adam.with_beta_1(0.8).with_beta_2(0.95).with_epsilon(1e-3)
    return {
        "sgd": sgd,
        "sgd-momentum": sgd.with_momentum(momentum(0.1, False)),
        "sgd-nesterov": sgd.with_momentum(momentum(0.0, True)),
        "sgd-decay": sgd.with_momentum(momentum(0.2, True)).with_weight_decay(decay),
        "sgd-clip-value": sgd.with_gradient_clipping(value),
        "sgd-clip-norm": sgd.with_weight_decay(decay).with_gradient_clipping(norm),
        "adam": adam,
        "adam-decay": other.with_weight_decay(decay),
        "adam-clip-value": adam.with_grad_clipping(value),
        "adam-clip-norm": adam.with_grad_clipping(norm),
        "adamw": adamw,
        "adamw-decay": adamw.with_weight_decay(0.1)
        .with_beta_2(0.99)
        .with_grad_clipping(norm),
        "adagrad": adagrad,
        "adagrad-decay": adagrad.with_lr_decay(0.1)
        .with_weight_decay(decay)
        .with_grad_clipping(value),
        "rmsprop": rmsprop,
        "rmsprop-plain": plain,
        "rmsprop-centered": plain.with_centered(True),
        "rmsprop-all": some.with_weight_decay(decay),
        "rmsprop-clip-norm": rmsprop.with_grad_clipping(norm),
    }


OPTIMIZERS = _optimizers()


def known_small(device):
    """The model of Burn's program, with its numbers and ids."""
    model = small(device)
    ids = {
        path: (k + 1) * 0x9E3779B97F4A7C15 % 2**64
        for k, path in enumerate(sorted(path for path, _ in model.named_params()))
    }
    record = model.into_record()
    for place, (path, param) in enumerate(model.named_params()):
        count = np.arange(int(np.prod(param.shape)))
        ramp = ((13 * place + 7 * count) % 61).astype(np.float32)
        ramp = ramp / np.float32(100) - np.float32(0.3)
        data = Tensor.from_numpy(ramp.reshape(param.shape), Numpy()).to_data()
        at, *keys = record, *path.split(".")
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = ParamRecord(ParamId(ids[path]).serialize(), data)
    return model.load_record(record)


def batch(shape, start, device):
    values = ((start + 3 * np.arange(int(np.prod(shape)))) % 23).astype(np.float32)
    values = values / np.float32(10) - np.float32(1)
    return Tensor.from_numpy(values.reshape(shape), device)


def one_step(model, optimizer, step, device):
    x, target = batch((4, 3), 5 * step, device), batch((4, 2), 7 * step + 1, device)
    loss = (model.forward(x) - target).powf_scalar(2.0).mean()
    grads = GradientsParams.from_grads(loss.backward(), model)
    return optimizer.step(RATES[step], model, grads)


@pytest.mark.parametrize("precision", SETTINGS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_burn_loads_optimizers_and_steps_on(name, precision, tmp_path):
    device = Autodiff(Numpy())
    config = OPTIMIZERS[name]
    model, optimizer = known_small(device), config.init()
    for step in range(3):
        model = one_step(model, optimizer, step, device)
    for ending in RECORDERS:
        folder = tmp_path / ending
        folder.mkdir()
        path, record = write(optimizer.into_record(), ending, precision, folder)
        (line,) = burn_reads(f"optim-{name}", precision, path)
        again = one_step(model, config.init().load_record(record), 3, device)
        found = dict(again.valid().named_params())
        # half: moments of a few bits divide each other
        tolerance = {"half": (2e-4, 2e-4)}.get(precision, (5e-6, 2e-6))
        for param, given in line["fourth"].items():
            close(found[param].val(), given, f"{ending}: {param}", *tolerance)
        held["optimizers", ending, precision] += 1


# --- schedules ------------------------------------------------------------------------

SCHEDULES = {
    "constant": lambda: schedules.ConstantLr(0.01),
    "linear": schedules.LinearLrSchedulerConfig(0.5, 0.1, 8).init,
    "linear-up": schedules.LinearLrSchedulerConfig(0.01, 0.7, 4).init,
    "cosine": schedules.CosineAnnealingLrSchedulerConfig(0.4, 8).with_min_lr(0.05).init,
    "cosine-zero": schedules.CosineAnnealingLrSchedulerConfig(0.25, 3).init,
    "exponential": schedules.ExponentialLrSchedulerConfig(0.3, 0.9).init,
    "noam": schedules.NoamLrSchedulerConfig(0.2)
    .with_warmup_steps(6)
    .with_model_size(16)
    .init,
}


@pytest.mark.parametrize("steps", [0, 5])
@pytest.mark.parametrize("name", SCHEDULES)
def test_burn_goes_on_with_schedules(name, steps, tmp_path):
    for precision in SETTINGS:
        for ending in RECORDERS:
            made = SCHEDULES[name]()
            for _ in range(steps):
                made.step()
            folder = tmp_path / f"{ending}-{precision}"
            folder.mkdir()
            path, _ = write(made.into_record(), ending, precision, folder)
            (line,) = burn_reads(f"scheduler-{name}", precision, path)
            ours = [made.step() for _ in range(25)]
            assert ours == pytest.approx(line["rates"], rel=1e-12), (ending, precision)
            held["schedules", ending, precision] += 1
