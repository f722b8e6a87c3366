"""Texts: news, articles, folders of them."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.data.dataset.nlp.text_folder import TextDatasetItem, TextFolderDataset
from burnbook.data.dataset.nlp.texts import (
    AgNewsDataset,
    AgNewsItem,
    DbPediaDataset,
    DbPediaItem,
)

__all__ = [
    "AgNewsDataset",
    "AgNewsItem",
    "DbPediaDataset",
    "DbPediaItem",
    "TextDatasetItem",
    "TextFolderDataset",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
