"""Every public place that takes a path: relative, from home, and after a chdir."""

import gzip
import importlib
import inspect
import json
import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from burnbook import data, nn
from burnbook.backend import Autodiff, Numpy
from burnbook.config import Config
from burnbook.core.errors import TrainingError
from burnbook.exporters import to_rust
from burnbook.importers import (
    PytorchReader,
    PytorchStore,
    SafetensorsFileRecorder,
    SafetensorsStore,
)
from burnbook.optim import AdamConfig, GradientsParams, LBFGSConfig
from burnbook.record import (
    BinFileRecorder,
    BurnpackRecorder,
    CompactRecorder,
    SafetensorsRecorder,
    convert,
    describe,
)
from burnbook.tensor import Tensor
from burnbook.train import (
    EvaluatorBuilder,
    FileApplicationLogger,
    FileMetricLogger,
    LearnerBuilder,
    Run,
    RunStore,
    SupervisedTraining,
)
from tests.support.tiny_training import Tiny, builder, loader, log_lines, recorder, tiny

PACKAGES = """
config data exporters importers lr_scheduler module nn optim record tensor train
train.callback train.metric
"""
PLAIN = Numpy(compiled=False)
AD = Autodiff(PLAIN)
PIXELS = np.zeros((2, 3, 3), np.uint8)


class Sizes(Config):
    width: int = 3


def layer():
    return nn.LinearConfig(2, 1).init(PLAIN)


def write_images(path):
    image = pytest.importorskip("PIL.Image")
    for name in ("cat", "dog"):
        (path / name).mkdir(parents=True)
        image.new("RGB", (3, 2)).save(path / name / "1.png")
    boxes = {"categories": [], "annotations": [], "images": []}
    boxes["images"].append({"id": 1, "file_name": "cat/1.png"})
    (path / "boxes.json").write_text(json.dumps(boxes))


def write_texts(path):
    for name in ("bad", "good"):
        (path / name).mkdir(parents=True)
        (path / name / "1.txt").write_text(name)


def write_rows(path):
    path.write_text('{"a": 1}\n{"a": 2}\n')


def write_parquet(path):
    pytest.importorskip("polars").DataFrame({"a": [1, 2]}).write_parquet(path)


def write_run(path):
    learner(path).fit(loader(), loader(1))


def write_torch(path):
    torch = pytest.importorskip("torch")
    torch.save({"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, path)


def write_layer(recorder):
    return lambda path: layer().save_file(path, recorder)


def write_safetensors(path):
    layer().save_into(SafetensorsStore.from_file(path))


def learner(path):
    made = builder(path, 1).with_file_checkpointer(recorder())
    return made.build(tiny(), nn_optim(), 0.01)


def nn_optim():
    from burnbook.optim import SgdConfig

    return SgdConfig().init()


def trained(folder_of):
    def act(made):
        made.fit(loader(), loader(1))
        return sorted(p.name for p in Path(folder_of(made)).rglob("model-*"))

    return act


def csv(path):
    path.write_text("a,b\n1,2\n")


def sqlite(path):
    with sqlite3.connect(path) as base:
        base.execute("create table train (row_id integer primary key, item blob)")


# name: (what is there before, how it is made with a path, how it is used)
KEEPS = {
    "LearnerBuilder": (None, learner, trained(lambda made: made.plan.directory)),
    "SupervisedTraining": (
        None,
        lambda path: SupervisedTraining(path, loader(), loader(1)),
        lambda made: check_written(made),
    ),
    "EvaluatorBuilder": (None, EvaluatorBuilder, lambda made: made.build(tiny()) and 1),
    "FileApplicationLogger": (
        None,
        FileApplicationLogger,
        lambda made: (made.info("a", "b"), made.close(), made.path.read_text()[-5:]),
    ),
    "FileMetricLogger": (None, FileMetricLogger, lambda made: made.path("Loss", 1)),
    "Run": (write_run, Run, lambda made: made.epochs),
    "RunStore": (write_run, RunStore, lambda made: [run.epochs for run in made]),
    "ImageFolderDataset.new_classification": (
        write_images,
        data.ImageFolderDataset.new_classification,
        lambda made: made.get(1).image.shape,
    ),
    "ImageFolderDataset.new_classification_with": (
        write_images,
        lambda path: data.ImageFolderDataset.new_classification_with(path, ["png"]),
        lambda made: made.get(1).image.shape,
    ),
    "ImageFolderDataset": (
        write_images,
        lambda path: data.ImageFolderDataset(
            [(Path(path) / "cat/1.png", data.Label(0))], ["cat"]
        ),
        lambda made: made.get(0).image.shape,
    ),
    "ImageFolderDataset.new_classification_with_items": (
        write_images,
        lambda path: data.ImageFolderDataset.new_classification_with_items(
            [(f"{path}/cat/1.png", "cat")], ["cat"]
        ),
        lambda made: made.get(0).image.shape,
    ),
    "ImageFolderDataset.new_multilabel_classification_with_items": (
        write_images,
        lambda path: data.ImageFolderDataset.new_multilabel_classification_with_items(
            [(f"{path}/cat/1.png", ["cat"])], ["cat"]
        ),
        lambda made: made.get(0).image.shape,
    ),
    "ImageFolderDataset.new_segmentation_with_items": (
        write_images,
        lambda path: data.ImageFolderDataset.new_segmentation_with_items(
            [(f"{path}/cat/1.png", f"{path}/dog/1.png")], ["cat"]
        ),
        lambda made: [str(p)[-9:] for p in made.items[0] if p.exists()],
    ),
    "ImageFolderDataset.new_coco_detection": (
        write_images,
        lambda path: data.ImageFolderDataset.new_coco_detection(
            f"{path}/boxes.json", path
        ),
        lambda made: made.get(0).image.shape,
    ),
    "TextFolderDataset.new_classification": (
        write_texts,
        data.TextFolderDataset.new_classification,
        lambda made: made.get(1).text,
    ),
    "TextFolderDataset.new_classification_with": (
        write_texts,
        lambda path: data.TextFolderDataset.new_classification_with(path, ["txt"]),
        lambda made: made.get(1).text,
    ),
    "TextFolderDataset": (
        write_texts,
        lambda path: data.TextFolderDataset([(Path(path) / "bad/1.txt", 0)], ["bad"]),
        lambda made: made.get(0).text,
    ),
    "TextFolderDataset.new_classification_with_items": (
        write_texts,
        lambda path: data.TextFolderDataset.new_classification_with_items(
            [(f"{path}/bad/1.txt", "bad")], ["bad"]
        ),
        lambda made: made.get(0).text,
    ),
    "SqliteDatasetStorage.from_file": (
        None,
        data.SqliteDatasetStorage.from_file,
        lambda made: made.db_file(),
    ),
    "SqliteDatasetStorage.with_base_dir": (
        None,
        lambda path: data.SqliteDatasetStorage.from_name("a").with_base_dir(path),
        lambda made: made.db_file(),
    ),
    "PytorchStore.from_file": (
        write_torch,
        PytorchStore.from_file,
        lambda made: sorted(made.keys()),
    ),
    "SafetensorsStore.from_file": (
        write_safetensors,
        SafetensorsStore.from_file,
        lambda made: sorted(made.keys()),
    ),
    "SafetensorsStore.from_file, to write": (
        None,
        SafetensorsStore.from_file,
        lambda made: layer().save_into(made),
    ),
}


def stepped(optimizer):
    """An optimizer with states."""
    model = nn.LinearConfig(2, 1).init(AD)
    grads = model(Tensor.ones([3, 2], AD)).sum().backward()
    optimizer.step(0.1, model, GradientsParams.from_grads(grads, model))
    return optimizer


def bent():
    """An L-BFGS that has made a step."""
    model, x = nn.LinearConfig(2, 1).init(AD), Tensor.ones([3, 2], AD)
    made = LBFGSConfig().init()

    def closure(model):
        loss = model(x).square().sum()
        return loss, GradientsParams.from_grads(loss.backward(), model)

    made.step(0.1, model, closure)
    return made


OPTIMIZERS = {
    "OptimizerAdaptor": lambda: stepped(AdamConfig().init()),
    "ModuleOptimizer": lambda: stepped(AdamConfig().init()),
    "LBFGS": bent,
}
# Read or written at once: nothing is kept, and `~` is the home folder.
AT_ONCE = {
    "Config.save": (None, Sizes().save),
    "Config.load": (lambda path: Sizes().save(path), Sizes.load),
    "InMemDataset.from_csv": (csv, data.InMemDataset.from_csv),
    "InMemDataset.from_json_rows": (write_rows, data.InMemDataset.from_json_rows),
    "InMemDataset.from_parquet": (write_parquet, data.InMemDataset.from_parquet),
    "DataframeDataset.from_parquet": (
        write_parquet,
        data.DataframeDataset.from_parquet,
    ),
    "read_idx": (None, lambda path: idx(path)),
    "Module.save_file": (
        None,
        lambda path: layer().save_file(path, CompactRecorder()),
    ),
    **{
        f"Module.load_file, {type(one).__name__}": (
            write_layer(one),
            lambda path, one=one: layer().load_file(path, one),
        )
        for one in (
            CompactRecorder(),
            BinFileRecorder(),
            BurnpackRecorder(),
            SafetensorsRecorder(),
        )
    },
    "Module.save_file, without a recorder": (
        None,
        lambda path: layer().save_file(path),
    ),
    "Module.load_file, without a recorder": (
        lambda path: layer().save_file(path),
        lambda path: layer().load_file(path),
    ),
    "ModuleRecord.save": (None, lambda path: layer().into_record().save(path)),
    "ModuleRecord.load": (
        lambda path: layer().into_record().save(path),
        lambda path: type(layer().into_record()).load(path),
    ),
    **{
        f"{name}.{act}": (prepare, use)
        for name, make in OPTIMIZERS.items()
        for act, prepare, use in (
            ("save", None, lambda path, make=make: make().save(path)),
            (
                "load",
                lambda path, make=make: make().save(path),
                lambda path, make=make: make().load(path),
            ),
        )
    },
    "to_rust": (
        None,
        lambda path: to_rust(layer(), path, Tensor.ones([1, 2], PLAIN)),
    ),
    "SafetensorsFileRecorder.load": (
        write_safetensors,
        lambda path: SafetensorsFileRecorder().load(path, PLAIN),
    ),
    "PytorchReader": (write_torch, PytorchReader),
    "describe": (write_layer(CompactRecorder()), lambda path: describe(f"{path}.mpk")),
    "convert": (
        write_layer(CompactRecorder()),
        lambda path: convert(f"{path}.mpk", f"{path}.json"),
    ),
}


def idx(path):
    Path(os.path.expanduser(path)).write_bytes(
        gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 1, 5]))
    )
    return data.read_idx(path)


def check_written(made):
    folder = made._plan.directory
    FileMetricLogger(folder / "train")
    return folder.is_absolute()


def places(root, monkeypatch):
    """A home, and two working directories below it."""
    home = root / "home"
    for name in ("A", "B"):
        (home / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    return home


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.mark.parametrize("given", ["relative", "home"])
@pytest.mark.parametrize("name", KEEPS)
def test_a_path_that_is_kept_is_fixed_when_it_is_given(
    tmp_path, monkeypatch, name, given
):
    prepare, make, use = KEEPS[name]
    home = places(tmp_path, monkeypatch)
    if prepare is not None:
        prepare(home / "A" / "it")
    monkeypatch.chdir(home / "A")
    made = make("it" if given == "relative" else "~/A/it")
    monkeypatch.chdir(home / "B")
    found = use(made)
    assert found
    if isinstance(found, Path):
        assert home / "A" in found.parents
    assert not files(home / "B")
    assert not list(home.rglob("~"))


@pytest.mark.parametrize("name", AT_ONCE)
def test_the_tilde_is_the_home_folder_wherever_a_path_enters(
    tmp_path, monkeypatch, name
):
    prepare, act = AT_ONCE[name]
    home = places(tmp_path, monkeypatch)
    monkeypatch.chdir(home / "B")
    if prepare is not None:
        prepare(home / "A" / "it")
    act("~/A/it")
    assert not files(home / "B")
    assert not list(home.rglob("~"))
    assert files(home / "A")


class Wandering(Tiny):
    """Changes the working directory while it trains."""

    def train_step(self, batch):
        os.chdir(Path.home() / "B")
        return super().train_step(batch)


def test_a_run_stays_in_one_folder_whatever_its_steps_do(tmp_path, monkeypatch):
    home = places(tmp_path, monkeypatch)
    monkeypatch.chdir(home / "A")
    made = builder("run", 2).with_file_checkpointer(recorder())
    made = made.build(tiny(kind=Wandering), nn_optim(), 0.01)
    made.fit(loader(), loader(1))
    made.fit(loader(), loader(1))
    assert not files(home / "B")
    run = home / "A" / "run"
    assert {p.name for p in run.iterdir()} == {
        "checkpoint",
        "experiment.log",
        "train",
        "valid",
    }
    assert log_lines(run, "valid", "Loss", 4)
    monkeypatch.chdir(home / "A")
    again = builder("run", 5).with_file_checkpointer(recorder()).checkpoint(4)
    again.build(tiny(), nn_optim(), 0.01).fit(loader(), loader(1))


def test_a_folder_is_shown_as_it_was_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert repr(LearnerBuilder("runs/a")) == "LearnerBuilder('runs/a', 1 epoch)"
    assert repr(EvaluatorBuilder("runs/a")) == "EvaluatorBuilder('runs/a')"


@pytest.mark.parametrize(
    ("link", "what"),
    [("nowhere", "is a link to nowhere, which does not exist"), ("it", "in a circle")],
)
@pytest.mark.parametrize("inside", ["", "run"])
def test_a_link_that_leads_nowhere_is_called_one(tmp_path, link, what, inside):
    (tmp_path / "it").symlink_to(link)
    with pytest.raises(TrainingError, match=what):
        learner(tmp_path / "it" / inside)


# Public callables with a path that need no case above, and why.
OTHERS = {
    "read at once by what a case above calls": """
        AgNewsDataset.from_csv DiabetesDataset.from_file HousingDataset.from_file
        SpeechCommandsDataset.from_folder PyTorchFileRecorder SafetensorsFileRecorder
        FileRecorder BinFileRecorder BurnpackRecorder SafetensorsRecorder LoadArgs
        config_from_file
        LoraAdapter SqliteDataset SqliteDatasetWriter PytorchStore SafetensorsStore
        LearnerSummary FileCheckpointer sweep RunStore.export_csv
        SqliteDatasetStorage HuggingfaceDatasetLoader Config Module""",
    "written at once by atomic_write": """
        to_javascript to_micropython to_onnx to_pytorch to_wgsl write_state_dict""",
    "made by the library, from a path that is fixed": """
        LiveRun TrainingState RunInfo TrainingResult Sweep Checkpoint check_folder
        CliMetricsRenderer.saved MetricsRenderer.saved RecordSummary DatasetInfo""",
    "no path of a file": """
        Device.backward
        Features LayerProfile LayerSummary Lora.reparameterize QLora.reparameterize
        Reparameterizer WeightNorm.reparameterize ModuleLearningRate ParamGroup
        ApplyError ApplyResult ModuleStore PathFilter""",
}
WORDS = {"path", "folder", "directory", "root", "db_file", "base_dir", "images"}


def with_paths():
    """The public callables that take a path, by name."""
    found = set()
    for package in PACKAGES.split():
        module = importlib.import_module(f"burnbook.{package}")
        for name in module.__all__:
            thing = getattr(module, name)
            calls = {name: thing}
            if inspect.isclass(thing):
                calls = {name: thing.__init__}
                for key in vars(thing):
                    if not key.startswith("_") and callable(getattr(thing, key, None)):
                        calls[f"{name}.{key}"] = getattr(thing, key)
            for key, call in calls.items():
                try:
                    params = inspect.signature(call).parameters.values()
                except (TypeError, ValueError):
                    continue
                if any(p.name in WORDS or "Path" in str(p.annotation) for p in params):
                    found.add(key)
    return found


def test_every_public_place_that_takes_a_path_is_tried_or_explained():
    tried = {name.partition(",")[0] for name in (*KEEPS, *AT_ONCE)}
    others = {name for names in OTHERS.values() for name in names.split()}
    missing = [
        name
        for name in with_paths() - tried
        if name not in others and name.partition(".")[0] not in others
    ]
    assert not missing, f"a case for {sorted(missing)} in tests/package/test_paths.py"
