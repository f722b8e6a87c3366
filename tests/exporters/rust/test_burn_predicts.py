"""Burn itself compiles what is written for it, loads the record, and computes the same.

All models are modules of one crate for each release, so that it is compiled once.
"""

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from burnbook.exporters.rust import rust_model
from burnbook.exporters.rust.calls import TREE
from burnbook.exporters.rust.functions import arguments_of
from burnbook.exporters.rust.project import (
    locked,
    manifest,
    to_rust,
)
from burnbook.exporters.rust.text import Dialect
from burnbook.tensor import Tensor
from tests.support import cargo, rust_models, rust_operations
from tests.support.rust_crate import several_sources

CLOSE = 1e-5
Numbers = dict[str, list[float]]  # shape, and elements row by row
FOLDERS = {"0.15": "check-0.15", "0.22": "check-0.22"}  # whose target is shared


@cache
def models(version):
    """Modules and their inputs, by name."""
    sources = [rust_models.layers, rust_models.own, rust_operations.operations]
    if version == "0.22":
        sources += [rust_models.newer_layers, rust_operations.newer_operations]
    return {k: v for source in sources for k, v in rust_models.rows(source).items()}


def build(folder: Path, version: str, name: str) -> Path:
    """The program of a crate; the crates of Burn are those of the other programs."""
    place = cargo.folder_of_crates() / FOLDERS[version]
    (folder / ".cargo").mkdir(exist_ok=True)
    (folder / ".cargo/config.toml").write_text(cargo.settings())
    command = ["cargo", "build", "--locked", "--offline"]
    command += ["--target-dir", str(place / "target")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-6000:]
    assert "warning" not in done.stderr, done.stderr[-3000:]
    return place / "target/debug" / name


def lock(version: str, name: str) -> str:
    """Cargo.lock of a crate: for the newest, that of a program of shared/burn."""
    if version == "0.15":
        return locked(name)
    return locked(name, cargo.SOURCES / "check-0.22/Cargo.lock", "check_v0_22")


@cache
def predictions(version: str) -> dict[str, list[Numbers]]:
    """What Burn computes with each model, by name."""
    folder = cargo.folder_of_crates() / f"rust models {version}"
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "data"
    (folder / "src").mkdir(parents=True)
    data.mkdir()
    made = []
    for name, (model, inputs) in models(version).items():
        found = rust_model(model, *inputs, version=version)
        found.write_record(data / name)
        names = [path for path, _ in arguments_of(found.function.call.inside)]
        tensors = TREE.collect(list(inputs), Tensor, [])
        given = {n: numbers(t) for n, t in zip(names, tensors, strict=True)}
        (data / f"{name}.json").write_text(json.dumps(given))
        made.append((name, found))
    for file, text in several_sources(made).items():
        (folder / file).write_text(text)
    name = f"rust_models_{version.replace('.', '_')}"
    (folder / "Cargo.toml").write_text(manifest(name, Dialect.of(version)))
    (folder / "Cargo.lock").write_text(lock(version, name))
    lines = cargo.lines_of(build(folder, version, name), data)
    return {line["name"]: line["outputs"] for line in lines}


def numbers(tensor: Tensor) -> Numbers:
    array = np.asarray(tensor)
    return {"shape": list(array.shape), "data": array.ravel().astype(float).tolist()}


def compare(found, out):
    """Whether Burn's tensors are those of the model."""
    wanted = TREE.collect([out], Tensor, [])
    assert len(found) == len(wanted)
    for ours, theirs in zip(wanted, found, strict=True):
        array = np.asarray(ours, np.float64)
        assert list(array.shape) == theirs["shape"]
        theirs = np.array(theirs["data"]).reshape(array.shape)
        assert np.abs(theirs - array).max(initial=0) < CLOSE


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::burnbook.core.errors.FractionDropped")
@pytest.mark.parametrize("name", list(models("0.15")))
def test_burn_0_15_predicts_the_same(name):
    model, inputs = models("0.15")[name]
    compare(predictions("0.15")[name], model.forward(*inputs))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::burnbook.core.errors.FractionDropped")
@pytest.mark.parametrize("name", list(models("0.22")))
def test_newest_burn_predicts_the_same(name):
    model, inputs = models("0.22")[name]
    compare(predictions("0.22")[name], model.forward(*inputs))


@pytest.mark.slow
def test_crate_of_the_guide_predicts_from_a_file(tmp_path):
    model, inputs = models("0.15")["guide"]
    folder = to_rust(model, tmp_path / "guide-as-rust", *inputs)
    program = build(folder, "0.15", "guide-as-rust")
    given = tmp_path / "input.json"
    given.write_text(json.dumps({"images": numbers(inputs[0])}))
    environment = {**os.environ, "RUST_BACKTRACE": "0"}
    done = subprocess.run(
        [program, given], capture_output=True, text=True, env=environment, check=True
    )
    compare(json.loads(done.stdout), model.forward(*inputs))
    right = numbers(inputs[0])
    for wrong, why in (
        ({"image": right}, 'the inputs are ["image"], the model takes ["images"]'),
        ({}, 'the inputs are [], the model takes ["images"]'),
        ({"images": right, "more": right}, 'the inputs are ["images", "more"], '),
        ({"images": {**right, "data": [1.0]}}, "1 numbers do not fill the shape"),
    ):
        given.write_text(json.dumps(wrong))
        done = subprocess.run([program, given], capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.startswith(f"{given}: ")
        assert why in done.stderr
    ones = subprocess.run([program], capture_output=True, text=True, check=True)
    compare(json.loads(ones.stdout), model.forward(Tensor.ones([1, 28, 28])))
