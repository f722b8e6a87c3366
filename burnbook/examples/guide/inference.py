"""Load the trained network and ask it about one digit."""

from __future__ import annotations

import sys
from pathlib import Path

from burnbook.backend import Backend
from burnbook.data import MnistItem
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.guide.training import TrainingConfig
from burnbook.record import CompactRecorder


def infer(artifact_dir: str | Path, device: Backend, item: MnistItem) -> int:
    """Predict which digit the item shows, with the network that was saved."""
    folder = Path(artifact_dir)
    config = TrainingConfig.load(folder / "config.json")
    record = CompactRecorder().load(folder / "model", device)
    model = config.model.init(device).load_record(record)

    batch = MnistBatcher(device).batch([item])
    output = model.forward(batch.images)
    predicted = int(output.argmax(1).flatten(0, 1).into_scalar())
    sys.stdout.write(f"Predicted {predicted} Expected {item.label}\n")
    return predicted
