"""The batcher of a loader that has none: numbers and arrays are stacked."""

import datetime
import enum
from collections import namedtuple
from dataclasses import dataclass, field

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.core.dtypes import Bool, Float, Int
from burnbook.core.errors import DataError, ShapeError
from burnbook.data import (
    ArrayDataset,
    DataLoaderBuilder,
    Dataset,
    DefaultBatcher,
    InMemDataset,
    MapperDataset,
    MnistItem,
    PartialDataset,
    SamplerDataset,
    SelectionDataset,
    ShuffledDataset,
)
from burnbook.data.dataloader.workers import BatchMaker
from burnbook.tensor import Tensor
from tests.support.refusals import refused


def stacked(*items, device=None):
    return DefaultBatcher().batch(list(items), device)


KINDS = [
    ((True, False), Bool), ((np.bool_(1), np.bool_(0)), Bool),
    ((1, 2), Int), ((np.uint8(1), np.uint8(2)), Int), ((np.int16(1), 2), Int),
    ((1.0, 2.5), Float), ((1, 2.5), Float), ((np.float32(1), np.float16(2)), Float),
    ((np.zeros(3, bool),) * 2, Bool), ((np.zeros((2, 3), np.uint8),) * 2, Int),
    ((np.zeros((2, 3)),) * 2, Float), (([1, 2], [3, 4]), Int),
    (([[1.0, 2]], [[3, 4]]), Float), ((np.array([1, 2], object),) * 2, Int),
]  # fmt: skip


@pytest.mark.parametrize(("items", "kind"), KINDS, ids=str)
def test_the_kind_follows_from_the_type(items, kind):
    made = stacked(*items)
    expected = np.array([np.asarray(one).tolist() for one in items])
    assert made.kind is kind
    assert tuple(made.shape) == expected.shape
    np.testing.assert_array_equal(np.asarray(made), expected)


@dataclass(frozen=True)
class Example:
    pixels: np.ndarray
    label: int
    name: str | None = None
    sizes: tuple[int, float] = (1, 0.5)
    derived: float = field(init=False, default=0.0)

    def __post_init__(self):
        if not isinstance(self.pixels, np.ndarray):
            raise TypeError("not an array")


def test_a_dataclass_keeps_its_class_with_its_parts_stacked():
    batch = stacked(Example(np.zeros((2, 2)), 3, "a"), Example(np.ones((2, 2)), 4))
    assert type(batch) is Example
    assert tuple(batch.pixels.shape) == (2, 2, 2)
    assert np.asarray(batch.label).tolist() == [3, 4]
    assert batch.name == ["a", None]
    assert [part.kind for part in batch.sizes] == [Int, Float]
    assert np.asarray(batch.derived).tolist() == [0.0, 0.0]


def test_items_of_our_datasets_are_stacked():
    items = [MnistItem(np.full((28, 28), n, np.float32), n) for n in range(3)]
    batch = next(iter(DataLoaderBuilder().batch_size(3).build(items)))
    assert type(batch) is MnistItem
    assert tuple(batch.image.shape) == (3, 28, 28)
    assert np.asarray(batch.label).tolist() == [0, 1, 2]


def test_tuples_dicts_and_nested_ones_keep_their_form():
    Pair = namedtuple("Pair", "x y")
    batch = stacked(Pair(1.0, {"a": (2, "t")}), Pair(3.0, {"a": (4, "u")}))
    assert type(batch) is Pair
    number, text = batch.y["a"]
    assert (number.kind, np.asarray(number).tolist(), text) == (Int, [2, 4], ["t", "u"])
    lists = stacked([np.zeros(2), 1], [np.ones(2), 2])
    assert [tuple(part.shape) for part in lists] == [(2, 2), (2,)]


class Color(enum.Enum):
    Red = 1


def test_what_is_no_number_stays_a_list():
    days = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]
    for items in (["a", "b"], days, [Color.Red] * 2, [b"x", b"y"], [None, None]):
        assert stacked(*items) == items
    assert stacked(["a"], ["b", "c"]) == [["a"], ["b", "c"]]


def test_the_device_is_the_loaders():
    device = Autodiff(Numpy(float="f64"))
    batch = next(iter(DataLoaderBuilder().set_device(device).build(([[0.1]], [1]))))
    assert all(part.device() is device for part in batch)
    assert np.asarray(batch[0]).dtype == np.float64
    tensors = stacked(*[Tensor.from_data([1.0, 2.0])] * 3, device=device)
    assert (tensors.device(), tuple(tensors.shape)) == (device, (3, 2))


def test_the_batch_does_not_share_memory_with_the_items():
    x = np.zeros((4, 2), np.float32)
    batch = next(iter(DataLoaderBuilder().batch_size(4).build(x)))
    x += 1
    assert not np.asarray(batch).any()


WRONG = [
    ((1, None), DataError, "a number is missing (None) in item 1", "try: rows without"),
    (({"a": 1}, {"a": None}), DataError, "a: a number is missing", "drop_nulls()"),
    (([1, None], [1, 2]), DataError, "a number is missing (None) in item 0", "gaps"),
    ((None, 1.0), DataError, "is missing (None) in item 0", "try: rows without"),
    (({"a": 1}, {"b": 1}), DataError, "different form", "item 1  dict of b"),
    (((1, 2), (1, 2, 3)), DataError, "different form", "item 1  tuple of 3"),
    ((1, "a"), DataError, "different form", "item 0  int", "item 1  str"),
    (((1,), {}), DataError, "different form", "item 1  dict"),
    ((1j, 2j), DataError, "complex128", "try: int64 or float64"),
    ((2**70, 1), DataError, "object", "try: int64 or float64"),
    ((np.zeros(2), np.zeros(3)), ShapeError, "different shape", "item 1  [3]", "pad"),
    (({"t": [1]}, {"t": [1, 2]}), ShapeError, "different shape", "item 1 t  [2]"),
    ((1.0, np.zeros(1)), ShapeError, "different shape", "item 0  []", "try: resize"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case[2] + str(len(case)))
def test_what_cannot_be_stacked_is_refused(case):
    items, kind, *told = case
    refused(kind, lambda: stacked(*items), "DefaultBatcher: ", *told)


def test_the_loader_says_which_item_of_the_dataset_it_was():
    rows = [{"x": i, "y": None if i == 13 else 0.5} for i in range(20)]
    loader = DataLoaderBuilder().batch_size(8).build(rows)
    told = ("y: a number is missing", "item 13 of the dataset", "try: rows without")
    refused(DataError, lambda: list(loader), "data loader: ", *told)
    ragged = DataLoaderBuilder().batch_size(2).build([np.zeros((2, 2)), np.zeros(3)])
    refused(DataError, lambda: list(ragged), "data loader: ", "item 1 [3]", "try: res")


class Drawn(Dataset):
    """Twenty arrays and labels, made when they are asked for."""

    def get(self, index):
        return (np.full(3, index, np.float32), index % 2) if index < 20 else None

    def __len__(self):
        return 20


@pytest.mark.parametrize("processes", [False, True])
def test_workers_stack_the_same_batches(processes, monkeypatch):
    from pathlib import Path

    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2])
    steps = DataLoaderBuilder().batch_size(6).shuffle(7).drop_last()
    expected = [[np.asarray(p).tolist() for p in b] for b in steps.build(Drawn())]
    workers = steps.num_workers(2)
    workers = workers.worker_processes() if processes else workers
    loader = workers.build(Drawn())
    assert (len(loader), loader.num_items()) == (3, 18)
    assert [[np.asarray(p).tolist() for p in b] for b in loader] == expected
    assert loader.progress().items_processed == 18
    loader.close()


def test_pytorchs_default_collate_makes_the_same():
    torch = pytest.importorskip("torch")
    from torch.utils.data import default_collate

    items = [
        {"x": np.full((2, 3), i, np.float32), "n": i, "f": i / 2, "s": str(i),
         "p": (i, [i, i + 1]), "t": torch.full((2,), i)}
        for i in range(3)
    ]  # fmt: skip
    ours, theirs = stacked(*items), default_collate(items)
    for name in ("x", "n", "f", "t"):
        np.testing.assert_array_equal(np.asarray(ours[name]), theirs[name].numpy())
    assert ours["s"] == theirs["s"]
    np.testing.assert_array_equal(np.asarray(ours["p"][0]), theirs["p"][0].numpy())
    # A list of numbers is an array here: [n, 2]; PyTorch gives two tensors [n].
    columns = np.stack([part.numpy() for part in theirs["p"][1]], axis=1)
    np.testing.assert_array_equal(np.asarray(ours["p"][1]), columns)


def test_pictures_of_pillow_are_arrays():
    image = pytest.importorskip("PIL.Image")
    pictures = [image.fromarray(np.full((4, 5), n, np.uint8)) for n in (1, 2)]
    made = next(iter(DataLoaderBuilder().batch_size(2).build(InMemDataset(pictures))))
    assert (made.kind, tuple(made.shape)) == (Int, (2, 4, 5))


COLUMNS = (
    np.arange(60, dtype=np.float32).reshape(20, 3),
    np.arange(20),
    np.arange(20) % 3 == 0,
    np.arange(40, dtype=np.float64).reshape(20, 2, 1)[:, ::-1],
)
ROWS_OF_ARRAYS = {
    "tuple": ArrayDataset(*COLUMNS),
    "dict": ArrayDataset(**dict(zip("abcd", COLUMNS, strict=True))),
    "one": ArrayDataset(COLUMNS[0]),
    "named": ArrayDataset.of(namedtuple("Row", "x y")(*COLUMNS[:2])),
    "part": PartialDataset(ArrayDataset(*COLUMNS), 3, 17),
    "chosen": SelectionDataset(ArrayDataset(*COLUMNS), [4, 0, 4, 19, 2]),
    "shuffled": ShuffledDataset(ArrayDataset(*COLUMNS), 1),
    "sampled": SamplerDataset(ArrayDataset(*COLUMNS), 33, replacement=True, seed=2),
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", ROWS_OF_ARRAYS)
def test_columns_are_indexed_at_once(name, workers, monkeypatch):
    dataset = ROWS_OF_ARRAYS[name]
    steps = DataLoaderBuilder().batch_size(4).shuffle(5).set_device(Numpy())
    items = steps.build(MapperDataset(dataset, lambda item: item))  # one by one
    expected = list(items)

    def no_items(self, indices):
        raise AssertionError("an item was made")

    monkeypatch.setattr(ArrayDataset, "get_many", no_items)
    found = list(steps.num_workers(workers).build(dataset))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert type(ours) is type(theirs)
        if isinstance(ours, dict):
            assert list(ours) == list(theirs)
            ours, theirs = tuple(ours.values()), tuple(theirs.values())
        one = isinstance(ours, Tensor)
        pairs = zip(*(([ours], [theirs]) if one else (ours, theirs)), strict=True)
        for a, b in pairs:
            assert (a.kind, a.dims()) == (b.kind, b.dims())
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_a_dataset_that_makes_items_is_asked_for_them():
    class Scaled(ArrayDataset):
        def get(self, index):
            row = super().get(index)
            return None if row is None else (row[0] * 100, row[1])

    batch = next(iter(DataLoaderBuilder().batch_size(2).build(Scaled(*COLUMNS[:2]))))
    assert np.asarray(batch[0])[1].tolist() == [300.0, 400.0, 500.0]
    for column in (["a", "b"], [1, 2], np.array([1j, 2j])):
        assert ArrayDataset(np.zeros(2), column).get_stacked([0]) is None
    refused(
        DataError,
        lambda: ArrayDataset(COLUMNS[1]).get_stacked([20]),
        "ArrayDataset: ",
        "item 20",
    )
    refused(
        DataError,
        lambda: ArrayDataset(COLUMNS[1]).get_stacked([-1]),
        "ArrayDataset: ",
        "item -1",
    )


def test_workers_are_left_out_for_small_rows_only():
    small, large = np.zeros((64, 8), np.float32), np.zeros((64, 4096), np.float32)
    for rows, quick in ((small, True), (large, False)):
        maker = BatchMaker(ArrayDataset(rows), DefaultBatcher(), None, 0, 1)
        assert maker.is_quick(32) is quick
    assert not BatchMaker(ArrayDataset(small), list, None, 0, 1).is_quick(32)
    assert not BatchMaker(Drawn(), DefaultBatcher(), None, 0, 1).is_quick(32)
