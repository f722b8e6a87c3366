"""Random items, samplers with options, loaders shared among devices."""

import enum
import pickle
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from burnbook import data
from burnbook.data.formats.fields import converter


class Color(enum.Enum):
    Red = 1
    Green = 2


@dataclass
class Everything:
    flag: bool
    count: int
    ratio: float
    text: str
    raw: bytes
    pixels: NDArray[np.uint8]
    color: Color
    maybe: int | None
    pair: tuple[int, str]
    many: tuple[float, ...]
    table: dict[str, list[np.int16]]
    mode: Literal["a", "b"]


KINDS = [Everything, str, int, float, bool, bytes, Color, list[int], np.int8, None]


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_random_items_fit_their_class_and_repeat_for_a_seed(kind):
    dataset = data.FakeDataset(60, kind, seed=3)
    assert len(dataset) == 60
    check = converter(kind)
    for item in dataset:
        if kind is Everything:
            for name, note in Everything.__annotations__.items():
                value = getattr(item, name)
                converter(note)(value.tolist() if name == "pixels" else value)
        else:
            check(item.item() if kind is np.int8 else item)
    texts = [repr(item) for item in dataset]
    assert len(set(texts)) > 1
    assert texts == [repr(item) for item in pickle.loads(pickle.dumps(dataset))]
    assert texts != [repr(item) for item in data.FakeDataset(60, kind, seed=4)]


def test_random_items_can_be_stored_and_come_back(tmp_path):
    items = list(data.FakeDataset(40, Everything, seed=1))
    with data.SqliteDatasetWriter(tmp_path / "fake.db") as writer:
        for item in items:
            writer.write("train", item)
    found = list(data.SqliteDataset(tmp_path / "fake.db", "train", Everything))
    assert list(map(repr, found)) == list(map(repr, items))


def test_options_say_how_a_sampler_draws():
    source = data.InMemDataset(range(10))
    options = data.SamplerDatasetOptions()
    assert len(data.SamplerDataset(source, options)) == 10
    half = options.without_replacement().with_size_ratio(0.55).with_seed(7)
    assert (half.size_of(source), half.replace_samples) == (5, False)
    drawn = list(data.SamplerDataset(source, half))
    assert drawn == list(data.SamplerDataset.without_replacement(source, 5, seed=7))
    fixed = half.with_fixed_size(12).with_replacement()
    assert list(data.SamplerDataset(source, fixed)) == list(
        data.SamplerDataset.with_replacement(source, 12, seed=7)
    )
    assert len(data.SamplerDataset(source, fixed.with_default_size())) == 10


@pytest.mark.parametrize("devices", [1, 2, 3, 9])
def test_a_loader_shared_among_devices_gives_every_batch_once(devices):
    loader = (
        data.DataLoaderBuilder(list).batch_size(4).build(data.InMemDataset(range(22)))
    )
    parts = data.split_dataloader(loader, list(range(devices)))
    assert len(parts) == min(devices, 6)
    assert [part.settings.device for part in parts] == list(range(len(parts)))
    batches = [batch for part in parts for batch in part]
    assert batches == list(loader)
