"""The whole guide: choose a backend, train, infer.

python -m burnbook.examples.guide
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from burnbook.backend import Numpy
from burnbook.backend.autodiff import Autodiff
from burnbook.core.files import cache_dir
from burnbook.examples.guide.data import choose_digits
from burnbook.examples.guide.inference import infer
from burnbook.examples.guide.model import ModelConfig
from burnbook.examples.guide.training import TrainingConfig, train
from burnbook.optim import AdamConfig

ARTIFACTS = cache_dir() / "guide"  # what a training writes
ITEM = 42  # of the test data, as in the book


def main(
    artifact_dir: str | Path | None = None,
    dataset: str | None = None,
    num_epochs: int | None = None,
    seed: int = 42,
) -> int:
    """Train the guide's network, then let it read one digit; returns what it read."""
    device = Numpy()
    folder = Path(artifact_dir or ARTIFACTS)
    digits = choose_digits(dataset)
    config = TrainingConfig(
        ModelConfig(10, 512),
        AdamConfig(),
        num_epochs=num_epochs or digits.num_epochs,
        seed=seed,
    )
    sys.stdout.write(
        f"Training on {len(digits.train):,} images of {digits.name}, "
        f"{config.num_epochs} epoch{'s' * (config.num_epochs > 1)}; "
        f"everything is kept in {folder}\n"
    )
    train(folder, config, Autodiff(device), digits.train, digits.test)
    item = digits.test.get(ITEM)
    assert item is not None  # both test sets are larger
    return infer(folder, device, item)


def options() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(description="Train, then read one digit.")
    parser.add_argument("--artifact-dir", type=Path, help=f"default: {ARTIFACTS}")
    parser.add_argument("--dataset", help="mnist or digits; default: what is there")
    parser.add_argument("--epochs", type=int, help="default: those of the dataset")
    parser.add_argument("--seed", type=int, default=42, help="default: 42")
    return parser.parse_args()


if __name__ == "__main__":
    asked = options()
    main(asked.artifact_dir, asked.dataset, asked.epochs, asked.seed)
