"""Random numbers where batches are made: new in every epoch, the same when resumed."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.data import (
    Batcher,
    DataLoaderBuilder,
    InMemDataset,
    Mapper,
    MapperDataset,
)
from burnbook.tensor import Distribution, Tensor


def draw(count):
    return np.array(Tensor.random([count], Distribution.Default, Numpy()))


class Noise(Batcher):
    def batch(self, items, device):
        return Tensor.from_data(np.array(items) + draw(len(items)), device)


class NoisyItem(Mapper):
    def map(self, item):
        return item + float(draw(1)[0])


class Plain(Batcher):
    def batch(self, items, device):
        return Tensor.from_data(np.array(items), device)


NUMBERS = InMemDataset([float(n) for n in range(20)])
PLACES = {
    "batcher": (NUMBERS, Noise()),
    "mapper": (MapperDataset(NUMBERS, NoisyItem()), Plain()),
}


def epoch(place, number, workers=0, seed=1):
    dataset, batcher = PLACES[place]
    builder = DataLoaderBuilder(batcher).batch_size(6).shuffle(seed)
    loader = builder.num_workers(workers).build(dataset)
    loader.set_epoch(number)
    return np.concatenate([np.array(batch) for batch in loader])


@pytest.mark.parametrize("place", PLACES)
def test_an_epoch_draws_anew_and_repeats_bit_by_bit(place):
    first = epoch(place, 1)
    assert np.array_equal(first, epoch(place, 1))
    assert np.array_equal(first, epoch(place, 1, workers=2))
    fractions = [np.sort(np.mod(epoch(place, n), 1)) for n in (1, 2)]
    assert not np.allclose(*fractions)
    assert not np.array_equal(first, epoch(place, 1, seed=2))
