"""Datasets and their transforms: which item stands where, and what is refused."""

import json
import pickle
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from burnbook.core.errors import ConfigError, DataError
from burnbook.data import (
    ComposedDataset,
    Dataset,
    InMemDataset,
    Mapper,
    MapperDataset,
    PartialDataset,
    SamplerDataset,
    SelectionDataset,
    ShuffledDataset,
    WindowsDataset,
    random_split,
)
from tests.support.cases import cases
from tests.support.refusals import refused

SIZES = st.integers(0, 40)
SEEDS = st.integers(-(2**70), 2**70)


class Double(Mapper):
    def map(self, item):
        return item * 2


class Squares(Dataset):
    """Says only what a dataset must say."""

    def __init__(self, size):
        self.size = size

    def get(self, index):
        return index**2 if 0 <= index < self.size else None

    def __len__(self):
        return self.size


def numbers(size):
    return InMemDataset(range(size))


def transforms(size):
    """One of each transform over 0 … size − 1 (which must not be empty)."""
    source = numbers(size)
    return [
        source,
        Squares(size),
        MapperDataset(source, Double()),
        MapperDataset(source, abs),
        PartialDataset(source, size // 3, size),
        ShuffledDataset(source, 1),
        SamplerDataset(source, 2 * size + 1, seed=2),
        SamplerDataset.without_replacement(source, 2 * size + 1, seed=3),
        ComposedDataset([source, Squares(3), InMemDataset([]), source]),
        WindowsDataset(source, 2),
        SelectionDataset(source, [size - 1, 0, 0]),
        PartialDataset(MapperDataset(ShuffledDataset(source, 4), Double()), 0, 5),
    ]


def lookup(dataset):
    return [dataset.get(i) for i in range(len(dataset))]


# What every dataset promises


@given(st.integers(1, 30))
def test_every_dataset_keeps_its_promises(size):
    for dataset in transforms(size):
        items = lookup(dataset)
        assert None not in items
        assert list(dataset) == items
        assert dataset.get_many(range(len(dataset))) == items
        assert dataset.get_many(list(range(len(dataset)))[::-1]) == items[::-1]
        assert dataset.get(len(dataset)) is None
        assert dataset.get(-1) is None
        assert dataset.is_empty() == (not items)


@pytest.mark.parametrize("position", range(len(transforms(7))))
def test_every_dataset_survives_pickling(position):
    dataset = transforms(7)[position]
    again = pickle.loads(pickle.dumps(dataset))
    assert lookup(again) == lookup(dataset)
    assert repr(again) == repr(dataset)


@pytest.mark.parametrize("position", range(len(transforms(7))))
@pytest.mark.parametrize("beyond", [-1, 0])
def test_fetching_many_refuses_an_index_that_is_not_there(position, beyond):
    dataset = transforms(7)[position]
    index = len(dataset) if beyond == 0 else -1
    with pytest.raises(DataError, match=f"there is no item {index}"):
        dataset.get_many([0, index])


def test_a_missing_item_ends_no_walk_in_silence():
    walk = iter(InMemDataset([1, 2, None, 4]))
    assert [next(walk), next(walk)] == [1, 2]
    with pytest.raises(DataError, match="there is no item 2"):
        next(walk)


def test_a_new_get_is_never_passed_by_an_inherited_short_cut():
    class Shifted(InMemDataset):
        def get(self, index):
            item = super().get(index)
            return None if item is None else item + 100

    class Negative(Double):
        def map(self, item):
            return -item

    assert Shifted([1, 2]).get_many([1]) == [102]
    assert MapperDataset(numbers(3), Negative()).get_many([2]) == [-2]


def test_a_dataset_that_says_nothing_is_told_what_to_say():
    class Silent(Dataset):
        pass

    told = (
        "does not define get(index)",
        "try: define get(index) and __len__() in Silent",
    )
    refused(DataError, lambda: Silent().get(0), "Silent: ", *told)


def test_the_error_for_a_missing_item_has_four_parts():
    facts = ("item 3\n", "  dataset  InMemDataset(3 items)\n", "  index    3: ")
    act = numbers(3).get_many
    refused(DataError, lambda: act([0, 3]), "InMemDataset: ", *facts)


# Index arithmetic


@given(SIZES, SIZES, SIZES)
def test_a_partial_dataset_is_a_slice(size, start, end):
    partial = PartialDataset(numbers(size), start, end)
    assert list(partial) == list(range(size))[start:end]
    assert len(partial) == len(list(partial))


@given(SIZES, st.integers(1, 12))
def test_split_gives_equal_views_and_the_last_takes_the_rest(size, num):
    for source in (PartialDataset, SelectionDataset.new_select_all(numbers(size))):
        if source is PartialDataset:
            parts = PartialDataset.split(numbers(size), num)
        else:
            parts = source.split(num)
        assert [len(part) for part in parts[:-1]] == [size // num] * (num - 1)
        assert [item for part in parts for item in part] == list(range(size))


@given(SIZES, st.integers(1, 8), st.integers(1, 9))
def test_split_chunks_cuts_only_between_batches(size, num, batch):
    parts = PartialDataset.split_chunks(numbers(size), num, batch)
    assert [item for part in parts for item in part] == list(range(size))
    assert all(len(part) % batch == 0 for part in parts[:-1])
    batches = [-(-len(part) // batch) for part in parts]
    assert batches == sorted(batches, reverse=True)
    assert not batches or (max(batches) - min(batches) <= 1 and min(batches) > 0)


@given(st.lists(SIZES, max_size=5))
def test_a_composed_dataset_is_a_concatenation(sizes):
    offsets = [100 * i for i in range(len(sizes))]
    parts = [InMemDataset(range(o, o + n)) for o, n in zip(offsets, sizes, strict=True)]
    composed = ComposedDataset(parts)
    assert lookup(composed) == [item for part in parts for item in part]


@given(SIZES, st.integers(1, 45))
def test_windows_slide_by_one(size, window):
    expected = [list(range(i, i + window)) for i in range(size - window + 1)]
    dataset = WindowsDataset(numbers(size), window)
    assert lookup(dataset) == expected
    assert len(dataset) == max(size - window + 1, 0)
    assert list(numbers(size).windows(window)) == expected


def test_a_single_window_is_whole_or_none():
    assert numbers(5).window(3, 2) == [3, 4]
    assert numbers(5).window(3, 3) is None
    assert numbers(5).window(-1, 2) is None


@given(SIZES, SEEDS)
def test_shuffling_keeps_every_item_and_repeats_for_a_seed(size, seed):
    first = list(ShuffledDataset(numbers(size), seed))
    assert sorted(first) == list(range(size))
    assert first == list(ShuffledDataset.with_seed(numbers(size), seed))
    assert first == list(SelectionDataset.new_shuffled(numbers(size), seed))


def test_shuffling_depends_on_the_seed():
    orders = {tuple(ShuffledDataset(numbers(20), seed)) for seed in range(50)}
    assert len(orders) == 50


def test_every_order_of_three_is_equally_likely():
    counts = {}
    for seed in range(6000):
        order = tuple(ShuffledDataset(numbers(3), seed))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert all(850 < count < 1150 for count in counts.values())  # 1000 ± 5 deviations


def test_shuffling_again_shuffles_the_selection():
    chosen = SelectionDataset.from_indices_checked(numbers(100), range(0, 100, 7))
    again = chosen.shuffle(5)
    assert sorted(again) == list(chosen)
    assert list(again) != list(chosen)


# Sampling


@given(st.integers(1, 12), st.integers(0, 40), SEEDS)
def test_sampling_without_replacement_deals_whole_packs(size, draws, seed):
    dealt = list(SamplerDataset.without_replacement(numbers(size), draws, seed))
    assert len(dealt) == draws
    for start in range(0, draws, size):
        pack = dealt[start : start + size]
        assert len(set(pack)) == len(pack)


@given(st.integers(1, 12), st.integers(0, 40), SEEDS)
def test_sampling_with_replacement_stays_inside(size, draws, seed):
    drawn = list(SamplerDataset.with_replacement(numbers(size), draws, seed))
    assert len(drawn) == draws
    assert set(drawn) <= set(range(size))


def test_sampling_with_replacement_is_even():
    drawn = list(SamplerDataset(numbers(10), 20_000, seed=1))
    assert all(1800 < drawn.count(i) < 2200 for i in range(10))  # 2000 ± 4.7 deviations


def test_packs_differ_and_no_pack_is_the_reversed_order():
    dealt = list(SamplerDataset.without_replacement(numbers(30), 90, seed=1))
    packs = [tuple(dealt[i : i + 30]) for i in (0, 30, 60)]
    assert len(set(packs)) == 3
    assert tuple(range(29, -1, -1)) not in packs


@pytest.mark.parametrize("replacement", [True, False])
def test_a_sampler_draws_anew_every_epoch_and_repeats_per_epoch(replacement):
    sampler = SamplerDataset(numbers(50), 50, replacement=replacement, seed=9)
    second = sampler.at_epoch(2)
    assert list(sampler) == list(sampler.at_epoch(1))
    assert list(second) != list(sampler)
    assert list(second) == list(sampler.at_epoch(2))


def test_the_epoch_reaches_a_sampler_below_other_transforms():
    sampler = SamplerDataset(numbers(40), 40, seed=9)
    for above in (
        MapperDataset(sampler, Double()),
        PartialDataset(sampler, 3, 30),
        ShuffledDataset(sampler, 1),
        ComposedDataset([numbers(3), sampler]),
        WindowsDataset(sampler, 2),
        SelectionDataset(sampler, range(30)),
    ):
        assert list(above.at_epoch(2)) != list(above.at_epoch(3))
        assert len(above.at_epoch(2)) == len(above)
    fixed = MapperDataset(numbers(3), Double())
    assert fixed.at_epoch(2) is fixed


def test_there_is_nothing_to_draw_from_an_empty_dataset():
    facts = ("  dataset  InMemDataset(0 items)\n", "  draws    5")
    refused(
        DataError, lambda: SamplerDataset(numbers(0), 5), "SamplerDataset: ", *facts
    )
    assert len(SamplerDataset(numbers(0), 0)) == 0


# Selections and splits


def test_a_checked_selection_refuses_an_index_out_of_range():
    with pytest.raises(DataError, match="there is no item 5"):
        SelectionDataset.from_indices_checked(numbers(5), [0, 5])
    unchecked = SelectionDataset.from_indices_unchecked(numbers(5), [0, 5])
    assert unchecked.get(0) == 0
    assert unchecked.get(1) is None
    with pytest.raises(DataError, match="there is no item 1"):
        list(unchecked)


def test_a_slice_of_a_selection_counts_selected_items():
    chosen = SelectionDataset(numbers(10), [9, 7, 5, 3])
    assert list(chosen.slice(1, 3)) == [7, 5]


@given(st.integers(0, 60), SEEDS)
def test_a_random_split_gives_every_item_to_one_part(size, seed):
    parts = random_split(numbers(size), [0.6, 0.3, 0.1], seed)
    assert sorted(item for part in parts for item in part) == list(range(size))
    for part, share in zip(parts, [0.6, 0.3, 0.1], strict=True):
        assert abs(len(part) - share * size) <= 1


def test_a_random_split_takes_counts_too():
    train, test = random_split(numbers(10), [7, 3], seed=1)
    assert (len(train), len(test)) == (7, 3)
    assert list(test) == list(random_split(numbers(10), [7, 3], seed=1)[1])
    assert list(test) != list(random_split(numbers(10), [7, 3], seed=2)[1])


def test_a_stratified_split_keeps_the_mix():
    items = InMemDataset([(i, i % 3 == 0) for i in range(300)])
    train, test = random_split(items, [0.8, 0.2], seed=1, key=lambda item: item[1])
    assert sum(flag for _, flag in train) == 80
    assert sum(flag for _, flag in test) == 20
    assert len(train) == 240


@cases(
    "parts told",
    ([7, 4], ("sum to 11", "10 items", "try: fractions, such as [0.8, 0.2]")),
    ([0.5, 0.4], ("sum to 0.9", "not to 1", "try: [0.8, 0.2]")),
    ([1.5, -0.5], ("0 or more", "got [1.5, -0.5]")),
)
def test_a_split_that_does_not_add_up_is_refused(parts, told):
    refused(
        ConfigError, lambda: random_split(numbers(10), parts), "random_split: ", *told
    )


@cases(
    "where build what found",
    ("WindowsDataset", lambda x: WindowsDataset(x, 0), "window size", "got 0"),
    ("PartialDataset", lambda x: PartialDataset(x, -1, 2), "start", "got -1"),
    ("PartialDataset.split", lambda x: PartialDataset.split(x, 0), "num", "got 0"),
    ("SamplerDataset", lambda x: SamplerDataset(x, -2), "size", "got -2"),
    ("ShuffledDataset", lambda x: ShuffledDataset(x, 1.5), "seed", "got 1.5\n  try:"),
    ("SelectionDataset", lambda x: SelectionDataset(x, [0.5]), "indices", "float64"),
)
def test_impossible_settings_are_refused(where, build, what, found):
    refused(ConfigError, lambda: build(numbers(3)), f"{where}: ", what, found)


# Tables


@dataclass
class Patient:
    age: int
    bmi: float
    smoker: bool
    note: str | None = None


def test_a_csv_file_becomes_items_of_a_dataclass(tmp_path):
    path = tmp_path / "patients.csv"
    path.write_text('extra;BMI;age;smoker;note\nx;21.5;59;true;\ny;30;48;0;"ok; no"\n')
    dataset = InMemDataset.from_csv(
        path, Patient, delimiter=";", columns={"bmi": "BMI"}
    )
    assert list(dataset) == [
        Patient(59, 21.5, True, None),
        Patient(48, 30.0, False, "ok; no"),
    ]


def test_a_csv_file_without_a_class_becomes_dicts(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\ufeffa,b\n1,x\n\n2,y\n", encoding="utf-8")
    assert list(InMemDataset.from_csv(path)) == [
        {"a": "1", "b": "x"},
        {"a": "2", "b": "y"},
    ]


def test_without_headers_columns_follow_the_fields(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("59,21.5,yes,n\n")
    dataset = InMemDataset.from_csv(path, Patient, has_headers=False)
    assert dataset.get(0) == Patient(59, 21.5, True, "n")


@cases(
    "content where told",
    ("age,bmi,smoker,note\n1,2,no,\nold,2,no,\n", "rows: ", (", line 3", "age: 'old'")),
    ("age,bmi,smoker,note\n1,2\n", "rows: ", (", line 2", "2 values", "4 columns")),
    (
        "age,BMI\n1,2\n",
        "csv: ",
        ("no column bmi, smoker\n", "  columns  age, BMI\n", "try: columns={'field'"),
    ),
)
def test_a_bad_table_names_the_line(tmp_path, content, where, told):
    path = tmp_path / "t.csv"
    path.write_text(content)
    read = InMemDataset.from_csv
    error = refused(DataError, lambda: read(path, Patient), f"{where}{path}", *told)
    if where == "csv: ":
        assert "  Patient  age, bmi, smoker, note\n" in str(error)


def test_json_rows_become_dicts_or_items(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [{"age": 1, "bmi": 2.5, "smoker": False, "more": 0}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert list(InMemDataset.from_json_rows(path)) == rows
    assert InMemDataset.from_json_rows(path, Patient).get(0) == Patient(1, 2.5, False)


@pytest.mark.parametrize("bad", ["", "{", "[" * 100_000, '{"age": 1}', "7"])
def test_a_bad_json_row_names_its_line(tmp_path, bad):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"age": 1, "bmi": 2, "smoker": true}\n' + bad + "\n")
    read = InMemDataset.from_json_rows
    refused(
        DataError, lambda: read(path, Patient), f"rows: {path}, line 2 does not fit: "
    )


def test_a_file_that_is_not_there_or_no_text_is_one_clear_error(tmp_path):
    path = tmp_path / "none.csv"
    told = (f"csv {path}: ", "no such file", "the folder holds no files")
    refused(DataError, lambda: InMemDataset.from_csv(path), *told)
    (tmp_path / "binary.csv").write_bytes(b"a,b\n\xff\xfe,1\n")
    with pytest.raises(DataError, match="is not UTF-8 text: byte 4"):
        InMemDataset.from_csv(tmp_path / "binary.csv")


def test_items_can_be_kept_in_memory():
    calls = []
    source = MapperDataset(numbers(3), lambda x: calls.append(x) or x + 1)
    kept = InMemDataset.from_dataset(source)
    assert list(kept) == list(kept) == [1, 2, 3]
    assert calls == [0, 1, 2]
