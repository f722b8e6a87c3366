"""Datasets and batchers for tests of the data loader; processes can import them."""

import numpy as np

from burnbook import data
from burnbook.tensor import Tensor


class Lists(data.Batcher):
    """A batch is the list of its items."""

    def batch(self, items):
        return list(items)


class Jittered(data.Batcher):
    """Draws random numbers, as augmentation does."""

    def batch(self, items, device):
        noise = np.asarray(Tensor.random([len(items)], device=device))
        return (np.array(items) + noise).tolist()


class Broken(data.Dataset):
    """Item 17 cannot be had."""

    def get(self, index):
        if index == 17:
            raise OSError("no such pixel\nsecond line")
        return index if 0 <= index < 40 else None

    def __len__(self):
        return 40


def numbers(size=50):
    return data.InMemDataset(range(size))


def builder(batcher=None, size=8, workers=0):
    made = data.DataLoaderBuilder(batcher or Lists())
    return made.batch_size(size).num_workers(workers)


def flat(batches):
    return [item for batch in batches for item in batch]
