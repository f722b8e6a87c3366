"""Every record that Burn 0.15 wrote: read with the values beside it, written back.

The files and what is in them are found by their names, see the README beside them; so
files that are added there are tried too.
"""

import gzip
import json
from collections import Counter

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.module.param import ParamRecord
from burnbook.optim import GradientsParams
from burnbook.record import (
    BinBytesRecorder,
    BinFileRecorder,
    BinGzFileRecorder,
    BurnRecord,
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
from tests.golden.shared import BURN, needs_burn
from tests.support.burn_models import made_for
from tests.support.burn_training import optimizer, scheduler

pytestmark = needs_burn
MADE = BURN / "made-0.15"
SETTINGS = {
    "full": FullPrecisionSettings,
    "half": HalfPrecisionSettings,
    "double": DoublePrecisionSettings,
}
RECORDERS = {
    "mpk.gz": NamedMpkGzFileRecorder,
    "json.gz": JsonGzFileRecorder,
    "bin.gz": BinGzFileRecorder,
    "mpk": NamedMpkFileRecorder,
    "json": PrettyJsonFileRecorder,
    "bin": BinFileRecorder,
    "mpkbytes": NamedMpkBytesRecorder,
    "binbytes": BinBytesRecorder,
}


def split(name):
    """ "small-full.bin" is small, full, bin."""
    stem, _, ending = name.partition(".")
    kind, _, precision = stem.rpartition("-")
    return kind, precision, ending


FILES = sorted(path.name for path in MADE.glob("*") if split(path.name)[2] in RECORDERS)
of_kind = {"module": [], "optim": [], "scheduler": []}
for each in FILES:
    of_kind.get(each.partition("-")[0], of_kind["module"]).append(each)


def expected(name):
    kind = split(name)[0]
    kind = "everything" if kind.startswith("layer-") else kind
    return json.loads((MADE / f"{kind}.expect.json").read_text())


def recorder_of(name):
    _, precision, ending = split(name)
    return RECORDERS[ending](SETTINGS[precision], version="0.15.0")


def read_back(name):
    recorder, path = recorder_of(name), MADE / name
    return recorder.load(path.read_bytes() if name.endswith("bytes") else path)


def written(recorder, record, folder):
    """The bytes that a recorder writes, unpacked."""
    if not hasattr(recorder, "path"):
        return recorder.record(record)
    return unpacked(recorder.record(record, folder / "again").read_bytes())


def unpacked(data):
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def same_bytes(recorder, record, name, folder):
    assert written(recorder, record, folder) == unpacked((MADE / name).read_bytes())


def leaves(record, path=""):
    """Each tensor and number of a record with its path."""
    if isinstance(record, dict | list | tuple):
        pairs = record.items() if isinstance(record, dict) else enumerate(record)
        for key, value in pairs:
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    elif record is not None:
        yield path, record


def check_tensors(record, wanted):
    found = dict(leaves(record))
    assert found.keys() == wanted.keys()
    for path, held in wanted.items():
        check_leaf(found[path], held, path)


def check_leaf(found, held, path):
    if not isinstance(held, dict):
        assert found == held, path
        return
    if isinstance(found, ParamRecord):
        assert found.id == held["id"], path
        found = found.param
    assert list(found.shape) == held["shape"], path
    values = np.array(held["values"]).reshape(held["shape"])
    if isinstance(held["dtype"], str):
        values = special(held["values"]).reshape(held["shape"])
        kind = held["dtype"].lower()
        stored = values.astype(kind.replace("f", "float").replace("i", "int"))
        np.testing.assert_array_equal(found.array, stored, path)
    else:
        np.testing.assert_array_equal(found.array, values, path)


def special(values):
    """Numbers as they stand in JSON: infinities and NaN are texts there."""
    return np.array([float(v) if isinstance(v, str) else v for v in values])


def close(found, wanted, path="", rtol=2e-6, atol=2e-7):
    values = special(wanted["values"]).reshape(wanted["shape"])
    np.testing.assert_allclose(np.asarray(found), values, rtol, atol, err_msg=path)


def test_all_files_have_a_kind(capsys):
    counts = Counter(split(name)[0].partition("-")[0] for name in FILES)
    with capsys.disabled():
        print(f"\nrecords of Burn 0.15: {len(FILES)}, {dict(counts)}")
    assert FILES


@pytest.mark.parametrize("name", of_kind["module"])
def test_a_module_is_read_with_its_values_and_written_back(name, tmp_path):
    kind, precision, _ = split(name)
    wanted = expected(name)["tensors"][precision]
    part = kind.removeprefix("layer-") + "." if kind.startswith("layer-") else ""
    wanted = {
        path.removeprefix(part): held
        for path, held in wanted.items()
        if path.startswith(part)
    }
    hidden = next((w["shape"][0] for p, w in wanted.items() if p == "linear1.bias"), 2)
    model = made_for(kind, hidden).load_record(read_back(name))
    check_tensors(model.into_record(), wanted)
    same_bytes(recorder_of(name), model.into_record(), name, tmp_path)


@pytest.mark.parametrize("name", of_kind["module"])
def test_a_module_computes_what_burn_computes(name):
    kind, precision, _ = split(name)
    part = kind.removeprefix("layer-") if kind.startswith("layer-") else ""
    runs = expected(name).get("forward", {})
    if part:
        runs = {n: run for n, run in runs.items() if n.partition(".")[0] == part}
    if not runs or precision == "half":
        pytest.skip("Burn computed nothing with it")
    if part:
        parts = {part: made_for(kind).load_record(read_back(name))}
        whole = made_for("everything")
        model = type(whole)(**{**vars(whole), **parts})
    else:
        hidden = expected(name)["tensors"][precision].get("linear1.bias")
        hidden = hidden["shape"][0] if hidden else 2
        model = made_for(kind, hidden).load_record(read_back(name))
    for run, held in runs.items():
        made = model.outputs(run, [given(one) for one in held["inputs"]])
        assert len(made) == len(held["outputs"]), run
        for found, want in zip(made, held["outputs"], strict=True):
            close(found, want, run)


def given(held, device=None):
    """An input of Burn as a tensor."""
    device = device or Numpy()
    values = np.array(held["values"]).reshape(held["shape"])
    if held["dtype"].startswith("F"):
        values = values.astype(np.float32)
    return Tensor.from_numpy(values, device)


@pytest.mark.parametrize("name", of_kind["optim"])
def test_an_optimizer_is_read_with_its_states_and_written_back(name, tmp_path):
    kind, precision, _ = split(name)
    want = expected(name)
    optim = optimizer(want["config"], kind).load_record(read_back(name))
    found = flat_states(optim.into_record())
    assert found.keys() == want["tensors"][precision].keys()
    for path, held in want["tensors"][precision].items():
        check_leaf(found[path], held, path)
    same_bytes(recorder_of(name), optim.into_record(), name, tmp_path)
    same_bytes(recorder_of(name), optim, name, tmp_path)


def flat_states(record):
    return dict(leaves(record))


@pytest.mark.parametrize("name", [n for n in of_kind["optim"] if split(n)[1] != "half"])
def test_an_optimizer_steps_as_in_burn(name):
    """The fourth step from the record; it and the three before from the beginning."""
    kind, _, _ = split(name)
    want, device = expected(name), Autodiff(Numpy())
    before = json.loads((MADE / "small.expect.json").read_text())["tensors"]["full"]
    runs = [
        (want["steps"][-1]["after"], [want["fourth"]], read_back(name)),
        (before, [*want["steps"], want["fourth"]], None),
    ]
    for before, steps, record in runs:
        model = small_with(before, device)
        optim = optimizer(want["config"], kind)
        if record is not None:
            optim = optim.load_record(record)
        for step in steps:
            model = one_step(model, optim, step, device)
            for path, param in model.named_params():
                close(param.val().inner(), step["after"][path], path)


def small_with(values, device):
    model = made_for("small")
    record = model.into_record()
    for path, held in values.items():
        at, keys = record, path.split(".")
        for key in keys[:-1]:
            at = at[key]
        data = given(held).to_data()
        at[keys[-1]] = ParamRecord(held["id"], data)
    return model.load_record(record).to_device(device).train()


def one_step(model, optim, step, device):
    x, target = (given(step[name], device) for name in ("input", "target"))
    error = model.forward(x) - target
    loss = error.powf_scalar(2.0).mean()
    close(loss.inner(), step["loss"], "loss", 1e-5)
    return optim.step(
        step["lr"], model, GradientsParams.from_grads(loss.backward(), model)
    )


@pytest.mark.parametrize("name", of_kind["scheduler"])
def test_a_schedule_goes_on_from_its_record(name, tmp_path):
    kind, _, _ = split(name)
    want = expected(name)
    made = scheduler(want["config"], kind).load_record(read_back(name))
    same_bytes(recorder_of(name), made, name, tmp_path)
    for rate in want["rates"][want["steps"] :]:
        assert made.step() == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize("name", [n for n in FILES if not n.endswith("bytes")])
def test_a_file_that_is_only_read_is_written_back(name, tmp_path):
    recorder = recorder_of(name)
    record = recorder.read(MADE / name)
    assert isinstance(record, BurnRecord)
    path = recorder.write(record, tmp_path / "again")
    assert unpacked(path.read_bytes()) == unpacked((MADE / name).read_bytes())
