"""The whole guide: choose a backend, train, infer.

python -m burnbook.examples.guide
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from burnbook.backend import Numpy
from burnbook.backend.autodiff import Autodiff
from burnbook.examples.guide.data import choose_digits
from burnbook.examples.guide.inference import infer
from burnbook.examples.guide.model import ModelConfig
from burnbook.examples.guide.training import TrainingConfig, train
from burnbook.optim import AdamConfig

ITEM = 42  # of the test data, as in the book


def main(
    artifact_dir: str | Path | None = None,
    dataset: str | None = None,
    num_epochs: int | None = None,
    seed: int = 42,
) -> int:
    """Train the guide's network, then let it read one digit; returns what it read."""
    device = Numpy()
    folder = Path(artifact_dir or Path(tempfile.gettempdir()) / "guide")
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


if __name__ == "__main__":
    main()
