"""What we write is loaded by Burn 0.22 itself, which goes on as we do."""

import json
import re
import subprocess

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.lr_scheduler import (
    CosineAnnealingLrSchedulerConfig,
    ModuleLrScheduler,
)
from burnbook.optim import AdamConfig
from burnbook.record import BurnpackRecorder, FullPrecisionSettings, SafetensorsRecorder
from burnbook.tensor import Tensor
from tests.support.cargo import built
from tests.support.newest_burn import Container, Small, filled, given, train_step

VARIANTS = {
    "first.": "first.First.",
    "second.": "second.Second.",
    "many.0.": "many.0.First.",
    "many.2.": "many.2.Second.",
}


def in_burn(path):
    """The path of a parameter in Burn, where the variant of an enum is part of it."""
    for ours, theirs in VARIANTS.items():
        if path.startswith(ours):
            return theirs + path.removeprefix(ours)
    return path


def floats(tensor):
    return np.asarray(tensor).astype(np.float64).ravel().tolist()


def verdicts(program, folder):
    """Which files Burn found right, and what it said of the others."""
    done = subprocess.run([program, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [re.match(r"(ok|BAD) +([\w.]+)(.*)", row) for row in done.stdout.split("\n")]
    return {row[2]: row[1] + row[3] for row in rows if row}


@pytest.mark.slow
def test_burn_loads_our_files_and_goes_on_as_we_do(tmp_path):
    program = built("check-0.22", "check_v0_22")
    recorder, device = BurnpackRecorder(), Numpy().autodiff()
    model, optim = filled(Small.new(device), 100), AdamConfig().init()
    schedule = CosineAnnealingLrSchedulerConfig(0.5, 10).init()
    by_module = ModuleLrScheduler(CosineAnnealingLrSchedulerConfig(0.5, 10).init())
    for _ in range(2):
        model = train_step(model, optim)
        schedule.step(), by_module.step()

    recorder.record(model, tmp_path / "small")
    recorder.record(model.into_record(), tmp_path / "small_record")
    texts = {"author": "somebody"}
    named = BurnpackRecorder(FullPrecisionSettings, texts)
    named.record(model, tmp_path / "small_texts")
    SafetensorsRecorder().record(model, tmp_path / "small")
    recorder.record(optim, tmp_path / "optim")
    recorder.record(optim.into_record(), tmp_path / "optim_record")
    recorder.record(schedule, tmp_path / "schedule")
    recorder.record(schedule.into_record(), tmp_path / "schedule_record")
    recorder.record(by_module, tmp_path / "schedule_module")
    container = filled(Container.new(device), 2**64 - 100)
    recorder.record(container, tmp_path / "container")

    x = Tensor.from_numpy(given(2, 1, 3, 3), Numpy())
    output = floats(model.valid().forward(x))
    after = floats(train_step(model, optim).linear.weight.val())
    rates = [schedule.step() for _ in range(3)]
    facts = {"output": output, "after_step": after, "rates": rates}
    (tmp_path / "forward.json").write_text(json.dumps(facts))
    rows = {in_burn(p): floats(m.val()) for p, m in container.named_params()}
    (tmp_path / "container.json").write_text(json.dumps(rows))

    found = verdicts(program, tmp_path)
    names = {path.name for path in tmp_path.iterdir() if path.suffix != ".json"}
    assert found.keys() == names
    assert {name: said for name, said in found.items() if said[:2] != "ok"} == {}
