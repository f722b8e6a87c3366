"""A run that Burn began goes on through our Learner."""

import shutil

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.data import DataLoaderBuilder, InMemDataset, MnistItem
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.guide.model import ModelConfig
from burnbook.optim import AdamConfig
from burnbook.record import CompactRecorder
from burnbook.train import AccuracyMetric, LearnerBuilder, LossMetric, MetricsRenderer
from tests.golden.shared import BURN, digits, needs_burn, needs_mnist

PARTS = {"model": "model", "optim": "adam", "scheduler": "scheduler"}
LAST = 10  # the run of Burn 0.16 had ten epochs of 940 batches

pytestmark = [needs_burn, needs_mnist]


@pytest.fixture
def artifacts(tmp_path):
    """The directory as Burn left it: three files of the tenth epoch."""
    (tmp_path / "checkpoint").mkdir()
    for part, name in PARTS.items():
        target = tmp_path / "checkpoint" / f"{part}-{LAST}.mpk"
        shutil.copyfile(BURN / f"playground_{name}_0.16.mpk", target)
    return tmp_path


def loaders():
    """Digits that Burn's run did not train on: 1280 to go on with, 1024 to measure."""
    items = [
        MnistItem(image.astype(np.float32), int(label))
        for image, label in zip(*digits(1280 + 1024), strict=True)
    ]
    made = DataLoaderBuilder(MnistBatcher()).batch_size(64)
    train, valid = InMemDataset(items[:1280]), InMemDataset(items[1280:])
    return made.shuffle(42).build(train), made.build(valid)


def learner(folder, *, resume):
    device = Numpy()
    device.seed(42)
    made = (
        LearnerBuilder(folder)
        .metric_train_numeric(LossMetric())
        .metric_valid_numeric(AccuracyMetric())
        .renderer(MetricsRenderer())
        .with_file_checkpointer(CompactRecorder(version="0.16.1"))
        .devices([device])
        .num_epochs(LAST + 1 if resume else 1)
    )
    made = made.checkpoint(LAST) if resume else made
    model = ModelConfig(num_classes=10, hidden_size=512).init(device)
    return made.build(model, AdamConfig().init(), 1e-4)


def test_a_run_of_burn_goes_on_where_it_ended(artifacts):
    resumed = learner(artifacts, resume=True)
    resumed.fit(*loaders())
    batches = 1280 // 64
    assert resumed.result.epochs == LAST + 1
    assert sorted(path.name for path in (artifacts / "train").iterdir()) == [
        f"epoch-{LAST + 1}"
    ]

    # Adam counts on from Burn's 9400 steps, for every parameter of Burn's model.
    before = CompactRecorder().load(BURN / "playground_adam_0.16.mpk")
    after = CompactRecorder().load(artifacts / "checkpoint" / f"optim-{LAST + 1}")
    assert after.keys() == before.keys()
    for number, held in after.items():
        ((_, state),) = held["V1"].items()
        assert state["momentum"]["time"] == 9400 + batches
        ((_, earlier),) = before[number]["V1"].items()
        assert state["momentum"]["moment_1"].shape == (
            earlier["momentum"]["moment_1"].shape
        )

    # It knows digits already: a fresh model is far behind after the same epoch.
    fresh = learner(artifacts / "fresh", resume=False)
    fresh.fit(*loaders())
    (_, loss), (_, fresh_loss) = (
        each.result.history.epochs("Loss", "train")[0] for each in (resumed, fresh)
    )
    assert loss < 0.5 * fresh_loss
    accuracy = dict(resumed.result.history.epochs("Accuracy", "valid"))[LAST + 1]
    assert accuracy > 90.0


def test_what_goes_on_is_burns_model_to_the_bit(artifacts):
    """Before its first step the resumed model is the file, value for value."""
    made = learner(artifacts, resume=True)
    seen = {}

    class First(MetricsRenderer):
        def start(self, run):
            run.control.stop("only looking")

    made.plan.renderer = First()
    model = made.fit(*loaders())
    record = CompactRecorder().load(BURN / "playground_model_0.16.mpk")
    for path, param in model.named_params():
        layer, name = path.split(".")
        held = record[layer][name].param
        seen[path] = np.array_equal(np.asarray(param.val()), held.array)
    assert len(seen) == 8
    assert all(seen.values())
