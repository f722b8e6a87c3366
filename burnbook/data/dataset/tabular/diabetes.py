"""442 diabetes patients: the book's table for a dataset made from CSV.

The table is that of Efron and others (Least angle regression, 2004). scikit-learn ships
it, so it needs no network; `from_csv` reads the file of the book's example.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import DataError
from burnbook.core.files import PathLike
from burnbook.data.dataset.in_memory import InMemDataset
from burnbook.data.formats.tables import read_csv

COUNT = 442
COLUMNS = {
    "age": "AGE",
    "sex": "SEX",
    "bmi": "BMI",
    "bp": "BP",
    "tc": "S1",
    "ldl": "S2",
    "hdl": "S3",
    "tch": "S4",
    "ltg": "S5",
    "glu": "S6",
    "response": "Y",
}


@dataclass(frozen=True)
class DiabetesPatient:
    """Ten features of a patient, and how far the disease progressed within a year."""

    age: int
    sex: int
    bmi: float  # body mass index
    bp: float  # average blood pressure
    tc: int  # total cholesterol
    ldl: float
    hdl: float
    tch: float  # total cholesterol / HDL
    ltg: float  # log of triglycerides
    glu: int  # blood sugar
    response: int


class DiabetesDataset(InMemDataset[DiabetesPatient]):
    """The 442 patients, in the order of the table.

    Example:
        >>> patients = DiabetesDataset.new()
        >>> len(patients), patients.get(0).bmi, patients.get(441).response
        (442, 32.1, 57)
    """

    @classmethod
    def new(cls) -> DiabetesDataset:
        """Return the table that scikit-learn ships."""
        kinds: list[Any] = [
            int if field.type in (int, "int") else float
            for field in DiabetesPatient.__dataclass_fields__.values()
        ]
        rows = _read().tolist()
        return cls(
            DiabetesPatient(*[kind(x) for kind, x in zip(kinds, row, strict=True)])
            for row in rows
        )

    @classmethod
    def from_file(cls, path: PathLike) -> DiabetesDataset:
        """Read the table of the book's example: separated by tabs, with its header."""
        return cls(read_csv(path, DiabetesPatient, "\t", '"', True, COLUMNS))


def _read() -> NDArray[np.float64]:
    """Read the files in milliseconds; importing scikit-learn takes a second."""
    found = importlib.util.find_spec("sklearn")
    for folder in (found and found.submodule_search_locations) or []:
        names = ("diabetes_data_raw.csv.gz", "diabetes_target.csv.gz")
        paths = [Path(folder) / "datasets" / "data" / name for name in names]
        if all(path.is_file() for path in paths):
            return _checked(*map(np.loadtxt, paths))
    if found is None:
        what = "scikit-learn is not installed; the table comes with it"
        raise DataError("DiabetesDataset", what, cure="pip install scikit-learn")
    datasets: Any = importlib.import_module("sklearn.datasets")
    table = datasets.load_diabetes(scaled=False)
    return _checked(table.data, table.target)


def _checked(data: NDArray[Any], target: NDArray[Any]) -> NDArray[np.float64]:
    if data.shape != (COUNT, 10) or target.shape != (COUNT,):
        what = f"scikit-learn's table has the shape {list(data.shape)}"
        facts = [("expected", f"[{COUNT}, 10]")]
        raise DataError("DiabetesDataset", what, facts, "pip install -U scikit-learn")
    return np.column_stack([data, target])
