"""Articles in a database, as the book stores them, and statements to damage it."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass

from burnbook.data import SqliteDatasetWriter


@dataclass
class DbPediaItem:
    title: str
    content: str
    label: int


def article(i):
    return DbPediaItem(f"title {i}", "word " * (i % 7), i % 14)


def articles(path, count=10, split="train"):
    with SqliteDatasetWriter(path) as writer:
        for i in range(count):
            assert writer.write(split, article(i)) == i
    return path


def run_sql(path, *statements):
    """Run statements, some of them with values."""
    with closing(sqlite3.connect(path)) as connection:
        for one in statements:
            connection.execute(*([one] if isinstance(one, str) else one))
        connection.commit()
    return path
