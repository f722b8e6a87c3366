"""The book's tables for regression: patients from a file, districts of California."""

import gzip
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from burnbook.core.errors import DataError
from burnbook.data import DiabetesDataset, HousingDataset, HuggingfaceDatasetLoader
from burnbook.data.dataset.tabular.diabetes import DiabetesPatient
from burnbook.data.dataset.tabular.housing import (
    FEATURES_MAX,
    HousingDistrictItem,
    normalized,
)

HOUSING = (
    Path(__file__).resolve().parents[3]
    / "shared/data/california_housing/housing.csv.gz"
)
FIRST = DiabetesPatient(59, 2, 32.1, 101.0, 157, 93.2, 38.0, 4.0, 4.8598, 87, 151)
LAST = DiabetesPatient(36, 1, 19.6, 71.0, 250, 133.2, 97.0, 3.0, 4.5951, 92, 57)


def test_the_patients_are_those_of_the_book():
    pytest.importorskip("sklearn")
    patients = DiabetesDataset.new()
    assert len(patients) == 442
    assert (patients.get(0), patients.get(441)) == (FIRST, LAST)
    assert all(type(patient.age) is int for patient in patients)
    assert repr(patients) == "DiabetesDataset(442 items)"


def test_the_file_of_the_book_is_read(tmp_path):
    path = tmp_path / "diabetes.csv"
    path.write_text(
        "AGE\tSEX\tBMI\tBP\tS1\tS2\tS3\tS4\tS5\tS6\tY\n"
        "59\t2\t32.1\t101\t157\t93.2\t38\t4\t4.8598\t87\t151\n"
        "36\t1\t19.6\t71\t250\t133.2\t97\t3\t4.5951\t92\t57\n"
    )
    assert list(DiabetesDataset.from_file(path)) == [FIRST, LAST]


SKLEARN = (
    "MedInc,HouseAge,AveRooms,AveBedrms,Population,AveOccup,Latitude,Longitude,"
    "MedHouseVal\n8.3252,41.0,6.984126984126984,1.0238095238095237,322.0,"
    "2.5555555555555554,37.88,-122.23,4.526\n"
)
CENSUS = (
    "longitude,latitude,housing_median_age,total_rooms,total_bedrooms,population,"
    "households,median_income,median_house_value,ocean_proximity\n"
    "-122.23,37.88,41.0,880.0,129.0,322.0,126.0,8.3252,452600.0,NEAR BAY\n"
    "-122.22,37.86,21.0,7099.0,,2401.0,1138.0,8.3014,358500.0,NEAR BAY\n"
)


def test_both_tables_of_the_districts_mean_the_same(tmp_path):
    (tmp_path / "sklearn.csv").write_text(SKLEARN)
    (tmp_path / "census.csv").write_text(CENSUS)
    (ours,) = HousingDataset.from_file(tmp_path / "sklearn.csv")
    (theirs,) = HousingDataset.from_file(tmp_path / "census.csv")
    assert ours == theirs
    assert ours.median_house_value == 4.526
    assert len(ours.features()) == 8
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="a row has none of the columns"):
        HousingDataset.from_file(tmp_path / "other.csv")


@pytest.mark.skipif(not HOUSING.is_file(), reason="the census table is not here")
def test_the_real_census_has_its_districts(tmp_path):
    (tmp_path / "housing.csv").write_bytes(gzip.decompress(HOUSING.read_bytes()))
    districts = HousingDataset.from_file(tmp_path / "housing.csv")
    assert len(districts) == 20_640 - 207
    table = normalized(districts.get_many(range(len(districts))))
    assert table.shape == (20_433, 8)
    assert -0.01 < table.min() < 0 < table.mean() < 1 <= table.max() < 1.01
    assert math.isclose(table[:, 0].max(), 1, rel_tol=1e-3)
    assert repr(districts) == "HousingDataset(all, 20,433 items)"


class Feature:
    dtype = "float32"


class Split:
    """A split as Hugging Face gives it: columns of numbers."""

    def __init__(self, count):
        names = SKLEARN.partition("\n")[0].split(",")
        self.columns = {
            n: [j + i / 10 for i in range(count)] for j, n in enumerate(names)
        }
        self.features = dict.fromkeys(names, Feature)

    def flatten(self):
        return self

    def iter(self, batch_size):
        yield self.columns


def test_the_splits_come_from_hugging_face_once(tmp_path, monkeypatch):
    asked = []

    class Library:
        @staticmethod
        def load_dataset(name, subset):
            asked.append(name)
            return {"train": Split(7), "validation": Split(2), "test": Split(3)}

    monkeypatch.setenv("BURNBOOK_CACHE", str(tmp_path))
    monkeypatch.setitem(sys.modules, "datasets", Library)
    splits = [
        HousingDataset.train(),
        HousingDataset.validation(),
        HousingDataset.test(),
    ]
    assert [len(split) for split in splits] == [7, 2, 3]
    assert asked == ["gvlassis/california_housing"]
    expected = HousingDistrictItem(*[j + 0.1 for j in range(9)])
    assert splits[0].get(1) == expected
    assert splits[0].get_many([1]) == [expected]
    loader = HuggingfaceDatasetLoader.new("gvlassis/california_housing")
    assert loader.dataset("test").get(0)["MedInc"] == 0.0


def test_normalized_measures_lie_between_0_and_1():
    top = HousingDistrictItem(*FEATURES_MAX, 5.0)
    assert normalized([top]).tolist() == [[1.0] * 8]
    assert normalized([]).shape == (0, 8)
    assert normalized([top]).dtype == np.float32
