"""Tables of numbers for regression."""

from burnbook.data.dataset.tabular.diabetes import DiabetesDataset
from burnbook.data.dataset.tabular.housing import HousingDataset

__all__ = ["DiabetesDataset", "HousingDataset"]
