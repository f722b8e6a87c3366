"""The training config, and the learner that follows it."""

from __future__ import annotations

import shutil
from pathlib import Path

from burnbook.backend import Backend
from burnbook.config import Config
from burnbook.data import DataLoaderBuilder, Dataset, MnistItem
from burnbook.examples.guide.data import MnistBatcher, choose_digits
from burnbook.examples.guide.model import Model, ModelConfig
from burnbook.optim import AdamConfig
from burnbook.record import CompactRecorder
from burnbook.train import AccuracyMetric, LearnerBuilder, LossMetric, check_folder


class TrainingConfig(Config):
    """Everything that decides how the network is trained."""

    model: ModelConfig
    optimizer: AdamConfig
    num_epochs: int = 10
    batch_size: int = 64
    num_workers: int = 4
    seed: int = 42
    learning_rate: float = 1e-4


def create_artifact_dir(artifact_dir: str | Path) -> None:
    """Make the folder, without what an earlier run left in it."""
    folder = Path(artifact_dir)
    check_folder(folder)
    for name in ("train", "valid", "checkpoint"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("experiment.log", "config.json", "model.mpk"):
        if (folder / name).is_file():
            (folder / name).unlink()


def train(
    artifact_dir: str | Path,
    config: TrainingConfig,
    device: Backend,
    train_dataset: Dataset[MnistItem] | None = None,
    valid_dataset: Dataset[MnistItem] | None = None,
) -> Model:
    """Train the network and save it, with its config, in the artifact directory."""
    if train_dataset is None or valid_dataset is None:
        digits = choose_digits()
        train_dataset = train_dataset or digits.train
        valid_dataset = valid_dataset or digits.test
    create_artifact_dir(artifact_dir)
    config.save(Path(artifact_dir) / "config.json")
    device.seed(config.seed)

    loader = (
        DataLoaderBuilder(MnistBatcher())
        .batch_size(config.batch_size)
        .shuffle(config.seed)
        .num_workers(config.num_workers)
    )
    learner = (
        LearnerBuilder(artifact_dir)
        .metric_train_numeric(AccuracyMetric())
        .metric_valid_numeric(AccuracyMetric())
        .metric_train_numeric(LossMetric())
        .metric_valid_numeric(LossMetric())
        .with_file_checkpointer(CompactRecorder())
        .devices([device])
        .num_epochs(config.num_epochs)
        .summary()
        .build(
            config.model.init(device),
            config.optimizer.init(),
            config.learning_rate,
        )
    )
    model = learner.fit(loader.build(train_dataset), loader.build(valid_dataset))
    model.save_file(Path(artifact_dir) / "model", CompactRecorder())
    return model
