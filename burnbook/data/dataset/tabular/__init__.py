"""Tables of numbers for regression."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.data.dataset.tabular.diabetes import DiabetesDataset
from burnbook.data.dataset.tabular.housing import HousingDataset

__all__ = ["DiabetesDataset", "HousingDataset"]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
