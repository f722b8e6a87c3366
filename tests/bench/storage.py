"""A long dataset in an SQLite file: rows a second, and memory while it streams.

    python -m tests.bench.storage [rows]

Writes `rows` items (2,000,000 by default) into a temporary folder and walks them: in
order and shuffled, alone and with two workers. The memory is that of the process, read
before each walk and at its highest during it.
"""

import dataclasses
import os
import sys
import tempfile
import time
from pathlib import Path

from burnbook.data import DataLoaderBuilder, SqliteDataset, SqliteDatasetWriter

BATCH = 64


@dataclasses.dataclass
class Article:
    title: str
    content: str
    label: int


def article(i):
    return Article(f"article {i}", f"what number {i} says, " * 4, i % 14)


def memory():
    """The memory that the process holds now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def write(path, rows):
    began = time.perf_counter()
    with SqliteDatasetWriter(path) as writer:
        for i in range(rows):
            writer.write("train", article(i))
    return rows / (time.perf_counter() - began)


def walk(dataset, seed, workers):
    """Return rows a second, memory before, highest memory, and a sum to check."""
    builder = DataLoaderBuilder(len).batch_size(BATCH).num_workers(workers)
    builder = builder if seed is None else builder.shuffle(seed)
    loader = builder.build(dataset)
    before = highest = memory()
    began, rows = time.perf_counter(), 0
    for number, count in enumerate(loader):
        rows += count
        if number % 500 == 0:
            highest = max(highest, memory())
    return rows / (time.perf_counter() - began), before, highest, rows


def figures(folder, rows):
    """Yield what, rows a second, memory before and at most: writing, then each walk."""
    path = Path(folder) / "articles.db"
    yield "write", write(path, rows), 0, 0
    dataset = SqliteDataset(path, "train", Article)
    for name, seed in (("in order", None), ("shuffled", 42)):
        for workers in (0, 2):
            speed, before, highest, seen = walk(dataset, seed, workers)
            assert seen == rows
            yield f"{name}, {workers} workers", speed, before, highest


def main(rows=2_000_000):
    with tempfile.TemporaryDirectory() as folder:
        for what, speed, before, highest in figures(folder, rows):
            memory = f"memory {before:.0f} MB before, {highest:.0f} MB at most"
            print(f"{what:<20} {speed:>9,.0f} rows/s  {memory if before else ''}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
