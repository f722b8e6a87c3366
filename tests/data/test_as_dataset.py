"""Arrays, lists and datasets of others become datasets; the rest is refused."""

import pickle
import subprocess
import sys
from collections import UserList, namedtuple

import numpy as np
import pytest

from burnbook import data
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ConfigError, DataError
from burnbook.data import ArrayDataset, InMemDataset, SequenceDataset, as_dataset
from burnbook.tensor import Tensor
from tests.support.refusals import refused

X = np.arange(12.0, dtype=np.float32).reshape(6, 2)
Y = np.arange(6) % 3


def same(row, expected):
    assert type(row) is type(expected)
    for one, other in zip(row, expected, strict=True):
        np.testing.assert_array_equal(one, other)


# Columns


def test_rows_of_arrays_are_tuples_in_their_types():
    dataset = as_dataset((X, Y))
    assert (len(dataset), dataset.get(6), dataset.get(-1)) == (6, None, None)
    same(dataset.get(2), (X[2], Y[2]))
    same(dataset.get_many([5, 0])[0], (X[5], Y[5]))
    assert dataset.get(0)[0].dtype == np.float32
    with pytest.raises(DataError, match="there is no item 6"):
        dataset.get_many([0, 6])


def test_nothing_is_copied_and_nothing_can_be_written():
    row = as_dataset((X, Y)).get(3)[0]
    assert np.shares_memory(row, X)
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 1.0
    assert X.flags.writeable


def test_a_memory_map_stays_in_its_file(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    row = as_dataset(mapped).get(4)
    assert np.shares_memory(row, mapped)
    assert row.tolist() == X[4].tolist()


class Stored:
    """As h5py and Zarr have arrays: read from a file by the row."""

    shape, dtype = X.shape, X.dtype

    def __init__(self):
        self.read = []

    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        self.read.append(index)
        return X[index]

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("the whole file was read")


def test_an_array_in_a_file_is_read_by_the_row():
    stored = Stored()
    dataset = as_dataset((stored, Y))
    assert stored.read == []
    same(dataset.get_many([4, 1])[1], (X[1], Y[1]))
    assert stored.read == [4, 1]


def test_one_array_gives_its_rows_and_a_tuple_of_one_tuples():
    assert as_dataset(Y).get(4) == 1
    assert as_dataset(X).get(1).tolist() == [2.0, 3.0]
    same(as_dataset((X,)).get(1), (X[1],))


def test_columns_by_name_give_dicts():
    for dataset in (as_dataset({"x": X, "y": Y}), ArrayDataset(x=X, y=Y)):
        row = dataset.get(5)
        assert (list(row), row["x"].tolist(), row["y"]) == (["x", "y"], [10, 11], 2)


def test_a_named_tuple_of_columns_gives_such_tuples():
    Pair = namedtuple("Pair", "image label")
    row = as_dataset(Pair(X, Y)).get(1)
    assert type(row) is Pair
    assert row.label == 1


def test_lists_and_other_sequences_are_columns_beside_arrays():
    ragged = [np.zeros(1), np.zeros(2), np.zeros(3)]
    row = as_dataset((ragged, ["a", "b", "c"], range(3), UserList("xyz"))).get(2)
    assert (len(row[0]), *row[1:]) == (3, "c", 2, "z")


def test_a_dataset_may_be_a_column_and_draws_anew():
    drawn = data.SamplerDataset(InMemDataset(range(100)), 6, seed=1)
    pairs = as_dataset((drawn, Y))
    first, second = pairs.at_epoch(1), pairs.at_epoch(2)
    assert [a for a, _ in first] == list(drawn.at_epoch(1))
    assert [a for a, _ in second] == list(drawn.at_epoch(2)) != list(drawn.at_epoch(1))
    fixed = as_dataset((X, Y))
    assert fixed.at_epoch(2) is fixed


@pytest.mark.parametrize("device", [Numpy(), Autodiff(Numpy())])
def test_rows_of_tensors_are_numpys(device):
    row = as_dataset((Tensor.from_numpy(X, device), Tensor.from_ints([0] * 6))).get(1)
    same(row, (X[1], np.int64(0)))


def test_a_structured_array_is_a_table():
    table = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")])
    assert as_dataset(table).get(1) == {"a": 3, "b": 4.5}


def test_a_dataset_of_arrays_can_be_sent_to_processes():
    for dataset in (as_dataset((X, Y)), ArrayDataset(x=X, y=Y), as_dataset(X)):
        again = pickle.loads(pickle.dumps(dataset))
        assert repr(again.get_many([1, 3])) == repr(dataset.get_many([1, 3]))


# Items


def test_a_list_holds_items_and_a_dataset_is_returned():
    items = as_dataset([X, X[:3]])
    assert (len(items), items.get(1).shape) == (2, (3, 2))
    assert as_dataset(items) is items
    assert list(as_dataset((1, "a"))) == [1, "a"]
    assert list(as_dataset(((X, 1), (X, 2)))) == [(X, 1), (X, 2)]


class Toy:
    """A dataset by PyTorch's rules: no end but its length."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        assert isinstance(index, int)
        return index * 10


def test_anything_with_a_length_and_items_is_a_dataset():
    toy = as_dataset(Toy())
    assert (list(toy), toy.get(5), toy.get(-1)) == ([0, 10, 20, 30, 40], None, None)
    assert repr(toy) == "SequenceDataset(Toy, 5 items)"
    assert list(InMemDataset(Toy())) == list(toy)
    assert list(InMemDataset.from_dataset(Toy())) == list(toy)


def test_many_items_are_asked_for_at_once_where_that_is_possible():
    class Many(Toy):
        def __getitems__(self, indices):
            return [-index for index in indices]

    assert SequenceDataset(Many()).get_many([1, 4]) == [-1, -4]
    with pytest.raises(DataError, match="there is no item 5"):
        SequenceDataset(Many()).get_many([5])


def test_items_in_brackets_come_before_a_get_of_another_meaning():
    class Raw(Toy):  # as PyTorch Geometric's: get leaves out the transform
        def get(self, index):
            return "raw"

    assert as_dataset(Raw()).get(1) == 10
    assert list(data.DataLoaderBuilder(list).batch_size(5).build(Raw())) == [
        [0, 10, 20, 30, 40]
    ]


TRANSFORMS = {
    "shuffled": lambda d: data.ShuffledDataset(d, 1),
    "selection": lambda d: data.SelectionDataset.from_indices_checked(d, [5, 0]),
    "all": data.SelectionDataset.new_select_all,
    "sampler": lambda d: data.SamplerDataset(d, 4, seed=1),
    "ratio": lambda d: data.SamplerDataset(d, data.SamplerDatasetOptions(ratio=0.5)),
    "partial": lambda d: data.PartialDataset(d, 2, 5),
    "split": lambda d: data.PartialDataset.split(d, 2)[1],
    "chunks": lambda d: data.PartialDataset.split_chunks(d, 2, 2)[0],
    "random": lambda d: data.random_split(d, [0.5, 0.5], 3)[0],
    "mapper": lambda d: data.MapperDataset(d, lambda row: row),
    "windows": lambda d: data.WindowsDataset(d, 2),
    "composed": lambda d: data.ComposedDataset([d, d]),
    "memory": InMemDataset.from_dataset,
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_take_what_becomes_a_dataset(name):
    make = TRANSFORMS[name]
    expected, found = make(as_dataset((X, Y))), make((X, Y))
    assert len(found) == len(expected) > 1
    assert repr(list(found)) == repr(list(expected))


# What is refused


FRAMELESS = [
    (lambda: as_dataset((X, Y[:4])), "different lengths", "6 rows", "4 rows"),
    (lambda: as_dataset((X, 4)), "int has no rows", "[6, 2]", "try: a list for items"),
    (lambda: as_dataset([X, Y]), "look like columns", "[6, 2]", "try: a tuple of"),
    (lambda: InMemDataset([X, Y]), "look like columns", "[6]", "ArrayDataset(X, y)"),
    (lambda: InMemDataset((X, Y)), "holds columns", "2 of 6 rows", "ArrayDataset(X, y"),
    (lambda: InMemDataset({"x": X}), "its keys as items", "try: as_dataset({"),
    (lambda: as_dataset({"x": 1}), "'x' is int", "try: {'image': X"),
    (lambda: as_dataset("x.csv"), "a text is not", "try: InMemDataset.from_csv"),
    (lambda: as_dataset("x.parquet"), "a text is not", "InMemDataset.from_parquet"),
    (lambda: as_dataset({1, 2}), "set has no items by number", "InMemDataset(list("),
    (lambda: as_dataset(iter([1])), "no items by number", "InMemDataset(list("),
    (lambda: as_dataset(data.FakeDataset), "is a class", "try: FakeDataset(…)"),
    (lambda: as_dataset(np.array(3.0)), "a single number", "at least one dim"),
    (lambda: as_dataset(np.ma.array([1, 2], mask=[0, 1])), "masked", "filled(0)"),
    (lambda: ArrayDataset(), "by place or by name", "ArrayDataset(x, y)"),
    (lambda: ArrayDataset(X, "abcdef"), "column 1 is str", "try: arrays, lists"),
    (lambda: data.ComposedDataset((X, Y)), "look like columns", "(X, y)"),
    (lambda: data.DataLoaderBuilder().build({}), "no key", "try: {'image': X"),
]


@pytest.mark.parametrize("case", FRAMELESS, ids=lambda case: case[1])
def test_what_is_no_dataset_or_unclear_is_refused(case):
    act, *told = case
    refused(DataError, act, "", *told)


def test_a_class_of_items_belongs_to_tables():
    told = ("rows of tuple", "item  Toy", "lambda row: Toy(*row)")
    refused(ConfigError, lambda: as_dataset((X, Y), Toy), "as_dataset: ", *told)


def test_a_list_of_many_equal_arrays_is_a_list_of_items():
    assert len(as_dataset([X, X])) == len(InMemDataset([X, X])) == 2
    assert len(InMemDataset([X, X[:3, 0]])) == 2


def test_optional_libraries_are_not_imported_for_arrays_and_lists():
    code = (
        "import sys, numpy\n"
        "from burnbook.data import DataLoaderBuilder, InMemDataset\n"
        "x, y = numpy.zeros((3, 2)), [1, 2, 3]\n"
        "next(iter(DataLoaderBuilder().batch_size(2).build((x, y))))\n"
        "InMemDataset([1, 2])\n"
        "print({'pandas', 'polars', 'pyarrow', 'torch'} & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("set()\n", "")


# PyTorch's as the oracle


def test_tensors_and_datasets_of_pytorch_give_pytorchs_batches():
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, Subset, TensorDataset

    x, y = torch.from_numpy(X.copy()), torch.from_numpy(Y)
    theirs = TensorDataset(x.requires_grad_(), y)
    for source in ((x, y), theirs, (X, Y), Subset(theirs, range(6))):
        for size, drop in ((4, False), (4, True), (6, True), (1, False), (9, False)):
            builder = data.DataLoaderBuilder().batch_size(size).drop_last(drop)
            loader = builder.build(source)
            expected = DataLoader(theirs, size, drop_last=drop)
            assert len(loader) == len(expected)
            for batch, wanted in zip(loader, expected, strict=True):
                for one, other in zip(batch, wanted, strict=True):
                    assert np.asarray(one).tolist() == other.tolist()


def test_bfloat16_and_iterable_datasets_of_pytorch():
    torch = pytest.importorskip("torch")
    row = as_dataset(torch.ones(2, 3, dtype=torch.bfloat16)).get(0)
    assert (row.dtype, row.tolist()) == (np.float32, [1, 1, 1])

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            yield 1

    refused(DataError, lambda: as_dataset(Stream()), "dataset: Stream", "list(…)")
