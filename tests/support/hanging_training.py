"""Trainings whose dataset hangs, for tests that interrupt them.

`hanging_training.py DIR WORKERS`: WORKERS is `processes`, `threads` or `none`, with a
learner, or the same after `plain-`, in a loop without one. It writes DIR/hung when an
item hangs, and prints how the training ended.
"""

import sys
import time
from pathlib import Path

from burnbook.data import DataLoaderBuilder, Dataset
from tests.support.tiny_training import Batches, build, builder, items, loader


class Hanging(Dataset):
    """Item 20 never comes."""

    def __init__(self, marker):
        self.marker, self.items = marker, items()

    def get(self, index):
        if index == 20:
            self.marker.touch()
            time.sleep(3600)
        return self.items[index]

    def __len__(self):
        return len(self.items)


def main(folder, workers):
    plain, _, kind = workers.rpartition("-")
    steps = DataLoaderBuilder(Batches()).batch_size(8)
    if kind != "none":
        steps = steps.num_workers(2)
    if kind in ("processes", "started"):
        steps = steps.worker_processes()
    train = steps.build(Hanging(folder / "hung"))
    if plain:
        for number, _ in enumerate(train):
            print("batch", number, flush=True)
        return
    trained = build(builder(folder / "run", 9))
    if kind == "started":
        model = trained.start(train, loader(1)).wait()
    else:
        model = trained.fit(train, loader(1))
    print("ended", trained.result.interrupted, len(model.named_params()), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
