"""Read an artifact directory by Burn's sheet of facts alone, with nothing of ours.

Nothing here imports burnbook: it is the reader that somebody else would write. Whatever
does not have the layout raises AssertionError with the file and the line.
"""

import math
import re
from datetime import datetime
from pathlib import Path

NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?|NaN|-?inf")  # no exponent, no .0
DIARY = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) ( INFO| WARN|ERROR) "
    r"([a-z_]+(?:::[a-z_]+)*): (.*)"
)
FILE = re.compile(r"(model|optim|scheduler)-([1-9]\d*)\.(mpk|mpk\.gz|bin|bin\.gz|json)")


class Epoch:
    """One epoch of one split: the entries of every metric, as (value, count)."""

    def __init__(self, folder):
        self.metrics = {}
        for path in sorted(folder.iterdir()):
            assert path.suffix == ".log", path
            assert " " not in path.name, path
            self.metrics[path.stem] = read_log(path)
        counts = {len(entries) for entries in self.metrics.values()}
        assert len(counts) == 1, f"{folder}: batches {counts}"
        (self.batches,) = counts

    def mean(self, name):
        entries = self.metrics.get(name, [])
        total = sum(count for _, count in entries)
        return sum(value * count for value, count in entries) / total if total else None


def read_log(path):
    data = path.read_bytes()
    assert data.endswith(b"\n"), f"{path}: the last line has no end"
    assert b"\r" not in data, path
    return [
        read_entry(line, f"{path}:{i}")
        for i, line in enumerate(data.decode("ascii").split("\n")[:-1], 1)
    ]


def read_entry(line, where):
    value, comma, count = line.partition(",")
    assert NUMBER.fullmatch(value), f"{where}: {line!r}"
    number = float(value)
    assert not comma or re.fullmatch(r"[1-9]\d*", count), f"{where}: {line!r}"
    return number, int(count) if comma else 1


def read_split(folder):
    """The epochs of a split by number; they count from 1 without a gap."""
    numbers = sorted(int(p.name.removeprefix("epoch-")) for p in folder.iterdir())
    assert numbers == list(range(1, len(numbers) + 1)), folder
    return {n: Epoch(folder / f"epoch-{n}") for n in numbers}


def read_diary(path):
    """Lines as [moment, level, module, text]; what follows without a head belongs."""
    entries = []
    for line in path.read_text("utf-8").splitlines():
        found = DIARY.fullmatch(line)
        if found:
            moment = datetime.strptime(found[1], "%Y-%m-%dT%H:%M:%S.%fZ")
            level, module, text = found.groups()[1:]
            entries.append([moment, level.strip(), module, text.rstrip()])
        else:
            assert entries, f"{path}: {line!r} before the first entry"
            entries[-1][3] += "\n" + line
    moments = [entry[0] for entry in entries]
    assert moments == sorted(moments), f"{path}: time runs backwards"
    return entries


class Artifacts:
    """Everything in the directory of a run."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.train = read_split(self.folder / "train")
        self.valid = read_split(self.folder / "valid")
        self.diary = read_diary(self.folder / "experiment.log")
        self.checkpoints = {}
        for path in (self.folder / "checkpoint").iterdir():
            if path.is_dir() or path.name.startswith("."):
                continue  # set aside, or half written by a run that was killed
            found = FILE.fullmatch(path.name)
            assert found, path
            self.checkpoints.setdefault(int(found[2]), set()).add(found[1])
        whole = {"model", "optim", "scheduler"}
        assert all(parts == whole for parts in self.checkpoints.values())

    def best_epoch(self, metric="Loss"):
        """The earliest epoch with the lowest mean in validation."""
        best = None
        for number, epoch in self.valid.items():
            value = epoch.mean(metric)
            if best is None or value < best[1]:
                best = number, value
        return best[0]

    def kept_by_default(self):
        """What KeepLastN(2) and the best validation loss leave on the disk."""
        last = max(self.valid)
        return {n for n in (last - 1, last, self.best_epoch()) if n > 0}

    def summary(self, names):
        """The table that the learner prints."""
        width = max(6, *map(len, names))
        rows = [
            f"| Split | {'Metric':<{width}} | Min.     | Epoch    | "
            "Max.     | Epoch    |",
            f"|-------|{'-' * (width + 2)}|{'|'.join(['-' * 10] * 4)}|",
        ]
        for title, split in (("Train", self.train), ("Valid", self.valid)):
            for name in names:
                row = self._row(split, name)
                if row:
                    cells = "".join(f" {cell:<9}|" for cell in row)
                    rows.append(f"| {title} | {name:<{width}} |{cells}")
        return "\n".join(rows)

    @staticmethod
    def _row(split, name):
        stem = name.replace(" ", "_")
        means = [(n, epoch.mean(stem)) for n, epoch in split.items()]
        known = [(n, value) for n, value in means if value is not None]
        if not known:
            return None
        order = [(math.isnan(value), value, n) for n, value in known]
        low = min(order, key=lambda item: item[:2])
        high = max(reversed(order), key=lambda item: item[:2])
        return text(low[1]), str(low[2]), text(high[1]), str(high[2])


def text(value):
    if math.isnan(value):
        return "NaN"
    if value >= 0.01:
        return f"{value:.3f}"
    mantissa, exponent = f"{value:.3e}".split("e")
    return f"{mantissa}e{int(exponent)}"
