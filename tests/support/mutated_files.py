"""Damaged files of PyTorch, tried in numbers: only our errors, and little memory.

`python -m tests.support.mutated_files 100000` tries so many and says what came of them.
"""

import os
import sys
import tracemalloc
import zipfile

import numpy as np

from burnbook.core.errors import BurnbookError
from burnbook.importers.pytorch_reader import PytorchReader


def stored_part(data):
    """Where the pickle of a zip file begins and ends, to damage it alone."""
    import io

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        about = next(m for m in archive.infolist() if m.filename.endswith("data.pkl"))
    at = about.header_offset
    name, extra = (
        int.from_bytes(data[at + i : at + i + 2], "little") for i in (26, 28)
    )
    start = at + 30 + name + extra
    return start, start + about.file_size


def mutated(data, rng):
    """A damaged copy: bytes changed, cut, doubled or replaced by large numbers."""
    start, end = 0, len(data)
    if data[:2] == b"PK" and rng.random() < 0.7:
        start, end = stored_part(data)
    made = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(start, max(end, start + 1)))
        kind = rng.random()
        if kind < 0.35:
            made[at : at + 1] = bytes([int(rng.integers(256))])
        elif kind < 0.5:
            made[at : at + 1] = bytes(
                [made[at] ^ (1 << int(rng.integers(8)))] if at < len(made) else [0]
            )
        elif kind < 0.65:
            opcodes = b".()]}tRbQq\x80\x81\x85\x86\x87\x8a\x8b\x93\x94\x95cGJKMNXesua0"
            made[at : at + 1] = bytes([opcodes[int(rng.integers(len(opcodes)))]])
        elif kind < 0.75:
            size = int(rng.choice([1, 4, 8]))
            made[at : at + size] = b"\xff" * size
        elif kind < 0.85:
            size = int(rng.integers(1, 40))
            made[at : at + size] = made[at : at + size] * 2
        elif kind < 0.95:
            size = int(rng.integers(1, 40))
            made[at : at + size] = b""
        else:
            made = made[: max(at, 1)]
        end = min(end, len(made))
        start = min(start, end)
    return bytes(made)


def outcome(data):
    """ "read", or "refused"; everything else is raised. All tensors are read."""
    try:
        reader = PytorchReader.from_bytes(data)
        reader.plain()
        reader.metadata()
        for name in reader:
            reader[name].load()
    except BurnbookError as error:
        text = str(error)
        return "refused" if len(text) < 2000 else f"too long: {text[:80]}"
    return "read"


def try_many(files, count, seed=0):
    """How many damaged files were read, and how many refused; and the largest peak.

    The peak is that of memory in bytes beyond twice the file and the tensors in it.
    """
    rng = np.random.default_rng(seed)
    found = {"read": 0, "refused": 0}
    worst = 0
    tracemalloc.start()
    try:
        for i in range(count):
            name, data = files[i % len(files)]
            damaged = mutated(data, rng)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                found[outcome(damaged)] += 1
            except BaseException:
                sys.stderr.write(f"{name}, number {i}\n")
                with open(f"/tmp/damaged-{os.getpid()}.pt", "wb") as file:
                    file.write(damaged)
                raise
            peak = tracemalloc.get_traced_memory()[1] - before
            worst = max(worst, peak - 20 * len(damaged))
    finally:
        tracemalloc.stop()
    return found, worst


def small_files():
    """Files of every format, none of them large."""
    from tests.importers import torch_files

    chosen = [(name, data) for name, data, _ in torch_files.files()]
    return [(name, data) for name, data in chosen if len(data) < 20_000]


if __name__ == "__main__":
    sys.stdout.write(f"{try_many(small_files(), int(sys.argv[1]))}\n")
