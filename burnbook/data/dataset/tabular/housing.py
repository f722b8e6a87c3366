"""California's districts of 1990: the book's table for a regression.

Every item is one of 20,640 districts of the census: eight features, and the median
value of its houses in units of 100,000 dollars, which a network learns to predict (Pace
and Barry, Sparse spatial autoregressions, 1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import DataError
from burnbook.core.files import PathLike
from burnbook.data.dataset.in_memory import InMemDataset
from burnbook.data.dataset.source.huggingface import HuggingfaceDatasetLoader
from burnbook.data.dataset.split import Part
from burnbook.data.dataset.transform.transform import MapperDataset
from burnbook.data.formats.tables import read_csv

COUNT = 20_640
NAME = "gvlassis/california_housing"
# The smallest and the largest value of each feature in the training split, in the order
# of `features()`; a district of another split may lie a little outside.
FEATURES_MIN = (0.4999, 1.0, 0.8461, 0.375, 3.0, 0.6923, 32.54, -124.35)
FEATURES_MAX = (15.0, 52.0, 141.9091, 34.0667, 35682.0, 1243.3333, 41.95, -114.31)


@dataclass(frozen=True)
class HousingDistrictItem:
    """One district: its people, its houses, its location, and what a house costs."""

    median_income: float  # in 10,000 dollars
    house_age: float
    avg_rooms: float
    avg_bedrooms: float
    population: float
    avg_occupancy: float
    latitude: float
    longitude: float
    median_house_value: float  # in 100,000 dollars

    def features(self) -> list[float]:
        """Return the eight features, without the value to predict."""
        return [getattr(self, f.name) for f in fields(self)[:-1]]


class HousingDataset(Part[HousingDistrictItem]):
    """The districts of one split.

    `train()`, `validation()` and `test()` come from Hugging Face (`burnbook[text]`) and
    stay in an SQLite file; `from_file` reads a table that you have.
    """

    @classmethod
    def train(cls) -> HousingDataset:
        """Return the districts for training."""
        return cls._load("train")

    @classmethod
    def validation(cls) -> HousingDataset:
        """Return the districts for choosing settings."""
        return cls._load("validation")

    @classmethod
    def test(cls) -> HousingDataset:
        """Return the districts for testing."""
        return cls._load("test")

    @classmethod
    def _load(cls, split: str) -> HousingDataset:
        stored = HuggingfaceDatasetLoader.new(NAME).dataset(split, _Row)
        return cls(MapperDataset(stored, _item), split)

    @classmethod
    def from_file(cls, path: PathLike) -> HousingDataset:
        """Read a CSV table, with the columns of scikit-learn or those of the census.

        Why: the census gives totals of a district, which become means per household;
        its 207 districts without a count of bedrooms are left out.
        """
        rows = [_item(row) for row in read_csv(path, _Row, ",", '"', True, {})]
        return cls(InMemDataset(row for row in rows if row is not None), "all")


def normalized(items: Sequence[HousingDistrictItem]) -> NDArray[np.float32]:
    """Scale every feature to 0 … 1: out = (x − min) / (max − min).

    Shapes: items [n] -> [n, 8]
    """
    table = np.array([item.features() for item in items], np.float64).reshape(-1, 8)
    low, high = np.array(FEATURES_MIN), np.array(FEATURES_MAX)
    return ((table - low) / (high - low)).astype(np.float32)


@dataclass(frozen=True)
class _Row:
    """A row of either table; what the other one has is None."""

    latitude: float | None = None
    longitude: float | None = None
    population: float | None = None
    median_income: float | None = None
    housing_median_age: float | None = None
    total_rooms: float | None = None
    total_bedrooms: float | None = None
    households: float | None = None
    median_house_value: float | None = None
    MedInc: float | None = None
    HouseAge: float | None = None
    AveRooms: float | None = None
    AveBedrms: float | None = None
    Population: float | None = None
    AveOccup: float | None = None
    Latitude: float | None = None
    Longitude: float | None = None
    MedHouseVal: float | None = None


SKLEARN = [f.name for f in fields(_Row)][9:]
CENSUS = [
    "median_income",
    "housing_median_age",
    "total_rooms",
    "total_bedrooms",
    "population",
    "households",
    "latitude",
    "longitude",
    "median_house_value",
]


def _item(row: _Row) -> Any:
    """Make a district; None for one of the census with a gap."""
    values: list[Any] = [getattr(row, name) for name in SKLEARN]
    if None not in values:
        return HousingDistrictItem(*values)
    values = [getattr(row, name) for name in CENSUS]
    if all(value is None for value in values):
        what = "a row has none of the columns"
        facts = [("either", ", ".join(SKLEARN)), ("or", ", ".join(CENSUS))]
        raise DataError("HousingDataset", what, facts)
    if None in values or not row.households:
        return None
    income, age, rooms, bedrooms, people, homes, north, east, worth = values
    means = (rooms / homes, bedrooms / homes, people, people / homes)
    return HousingDistrictItem(income, age, *means, north, east, worth / 100_000)
