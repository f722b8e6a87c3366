"""Texts: news, articles, folders of them."""

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
