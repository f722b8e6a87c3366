"""Burn 0.15 and 0.22 read modules, optimizers and schedules with unusual options.

Burn's own programs load what burnbook wrote, say what they found, and write the modules
again: the same bytes come back.
"""

import json
import re
import subprocess

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.module import ParamId
from burnbook.module.param import ParamRecord
from burnbook.record import (
    BinFileRecorder,
    BurnpackRecorder,
    NamedMpkFileRecorder,
    PrettyJsonFileRecorder,
)
from tests.golden.test_burn_reads import close, known_small, one_step
from tests.golden.test_made_0_15 import leaves
from tests.support import cargo, newest_burn
from tests.support.unusual_models import (
    CONTAINERS,
    FEED_FORWARD,
    LAYERS_0_15,
    LAYERS_0_22,
    SCHEDULES_0_15,
    SCHEDULES_0_22,
    made_for,
    optimizer_0_22,
    optimizers_0_15,
    optimizers_0_22,
)

pytestmark = pytest.mark.slow
RECORDERS = [BinFileRecorder, NamedMpkFileRecorder, PrettyJsonFileRecorder]
#: Behind a norm gradients are noise of f32, which Adafactor divides by its own size.
NOISE = ("conv.", "batch_norm.")
every_recorder = pytest.mark.parametrize(
    "recorder", RECORDERS, ids=lambda recorder: recorder.extension
)


def line_of(release, path):
    """What Burn's program prints of one file."""
    source = f"unusual_{release.replace('.', '_')}.rs"
    program = cargo.built(f"check-{release}", "unusual", source)
    done = subprocess.run([program, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def burn_reads(release, path):
    """What Burn finds in one file."""
    line = line_of(release, path)
    assert "error" not in line, line["error"]
    return line["found"]


def without_arrays(text):
    """A text in which Rust's arrays look like its tuples: Python has tuples alone."""
    return re.sub(r"\(L0(, L\d+)*\)", lambda t: f"[0..{t[0].count('L')}]", text)


@every_recorder
@pytest.mark.parametrize("name", [*CONTAINERS, *LAYERS_0_15])
def test_burn_0_15_loads_a_module_and_writes_the_same(name, recorder, tmp_path):
    module = made_for("0.15", name)
    path = recorder().record(module.into_record(), tmp_path / name)
    found = burn_reads("0.15", path)
    wanted = dict(leaves(module.into_record()))
    assert found.keys() == wanted.keys()
    for at, held in wanted.items():
        row = found[at]
        assert (row["id"], row["shape"]) == (held.id, list(held.param.shape)), at
        values = held.param.array.astype(np.float64).reshape(-1)
        np.testing.assert_allclose(row["values"], values, 1e-7, err_msg=at)
    if name != "rotary":  # Burn's d_model is that of a pair: 2
        text = (tmp_path / f"{name}_text").read_text()
        assert without_arrays(text) == without_arrays(str(module))
    again = recorder().path(tmp_path / f"{name}_again")
    assert again.read_bytes() == path.read_bytes()


@every_recorder
@pytest.mark.parametrize("name", optimizers_0_15())
def test_burn_0_15_steps_on_with_an_optimizer(name, recorder, tmp_path):
    device, config = Autodiff(Numpy()), optimizers_0_15()[name]
    model, optimizer = known_small(device), config.init()
    for step in range(3):
        model = one_step(model, optimizer, step, device)
    path = recorder().record(optimizer.into_record(), tmp_path / name)
    found = burn_reads("0.15", path)
    model = one_step(model, optimizer, 3, device)
    for at, param in model.named_params():
        close(param.val().inner(), found[at], at, 5e-6, 2e-6)


@every_recorder
@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("name", SCHEDULES_0_15)
def test_burn_0_15_goes_on_with_a_schedule(name, steps, recorder, tmp_path):
    made = SCHEDULES_0_15[name].init()
    for _ in range(steps):
        made.step()
    path = recorder().record(made.into_record(), tmp_path / name)
    found = burn_reads("0.15", path)
    assert [made.step() for _ in found] == pytest.approx(found, rel=1e-12)


def rows_of(found):
    """The rows by the paths of a record; a variant is part of it."""
    return {row["path"]: row for row in found}


@pytest.mark.parametrize("name", [*CONTAINERS, *LAYERS_0_22])
def test_burn_0_22_loads_a_module_and_writes_the_same(name, tmp_path):
    module = made_for("0.22", name)
    path = BurnpackRecorder().record(module, tmp_path / name)
    found = rows_of(burn_reads("0.22", path))
    wanted = dict(leaves(module.into_record()))
    assert found.keys() == wanted.keys()
    for at, held in wanted.items():
        row, number = found[at], int(ParamId.deserialize(held.id))
        assert (row["id"], row["shape"]) == (number, list(held.param.shape)), at
        values = held.param.array.astype(np.float64).reshape(-1)
        np.testing.assert_array_equal(row["values"], values, at)
    again = tmp_path / f"{name}_again.bpk"
    assert again.read_bytes() == path.read_bytes()


def test_burn_0_22_has_no_place_for_the_activation_of_a_feed_forward(tmp_path):
    """It skips that field, and says so of a file that has it, as ours do."""
    layer = FEED_FORWARD.init(Numpy())
    path = BurnpackRecorder().record(layer, tmp_path / "feed_forward")
    error = line_of("0.22", path)["error"]
    assert error.endswith('Unused tensors: ["activation.PRelu.alpha"]')
    again = FEED_FORWARD.init(Numpy()).load_file(path, BurnpackRecorder())
    assert again.into_record() == layer.into_record()


@pytest.mark.parametrize("name", optimizers_0_22())
def test_burn_0_22_steps_on_with_an_optimizer(name, tmp_path):
    device = Autodiff(Numpy())
    model = newest_burn.filled(newest_burn.Small.new(device), 100)
    optimizer = optimizer_0_22(name)
    for _ in range(2):
        model = newest_burn.train_step(model, optimizer)
    recorder = BurnpackRecorder()
    recorder.record(model, tmp_path / f"{name}_model")
    path = recorder.record(optimizer, tmp_path / name)
    found = rows_of(burn_reads("0.22", path))
    model = newest_burn.train_step(model, optimizer)
    for at, held in leaves(model.valid().into_record()):
        assert isinstance(held, ParamRecord)
        if "running" in at or (name == "optim-adafactor" and at.startswith(NOISE)):
            continue
        values = np.reshape(found[at]["values"], found[at]["shape"])
        np.testing.assert_allclose(held.param.array, values, 1e-5, 6e-6, err_msg=at)


@pytest.mark.parametrize("steps", [0, 1, 4, 7])
@pytest.mark.parametrize("name", SCHEDULES_0_22)
def test_burn_0_22_goes_on_with_a_schedule(name, steps, tmp_path):
    made = SCHEDULES_0_22[name].init()
    for _ in range(steps):
        made.step()
    path = BurnpackRecorder().record(made, tmp_path / name)
    found = burn_reads("0.22", path)
    assert [made.step() for _ in found] == pytest.approx(found, rel=1e-12)
