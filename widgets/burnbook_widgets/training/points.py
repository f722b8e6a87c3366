"""Every batch of a run, read when somebody looks closely.

A `Trace` has 512 buckets however long a run lasts, so what one zooms into would fade.
The logs on the disk have every batch: they are read for the epochs in sight.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import numpy as np

from burnbook.train.runs.logs import read_log

MOST_READ = 400_000  # batches of all metrics that one look reads; beyond, buckets do
MOST_KEPT = 500_000  # batches of epochs that have ended, kept for the next look


class Points:
    """The batches of training of one run, from `<dir>/train/epoch-<e>/<Metric>.log`."""

    def __init__(self, directory: str) -> None:
        self._folder = Path(directory) / "train"
        self._kept: OrderedDict[tuple[str, int, int, int], np.ndarray] = OrderedDict()
        self._size = 0

    def values(self, metric: str, epoch: int, newest: float | None) -> np.ndarray:
        """The values of one metric in one epoch, one for each batch; none without logs.

        newest: when the run ended, in seconds of the system's clock. What was written
        later is another run's.
        """
        name = f"{metric.replace(' ', '_')}.log"
        path = self._folder / f"epoch-{epoch}" / name
        try:
            about = path.stat()
        except OSError:
            return np.empty(0)
        if newest is not None and about.st_mtime > newest + 1:
            return np.empty(0)
        key = (metric, epoch, about.st_mtime_ns, about.st_size)
        found = self._kept.get(key)
        if found is None:
            log = read_log(path)
            found = (np.empty(0) if log is None else log.values).astype("<f4")
            self._keep(key, found)
        self._kept.move_to_end(key)
        return found

    def _keep(self, key: tuple[str, int, int, int], values: np.ndarray) -> None:
        for old in [k for k in self._kept if k[:2] == key[:2]]:
            self._size -= len(self._kept.pop(old))
        self._kept[key] = values
        self._size += len(values)
        while self._size > MOST_KEPT and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._size -= len(gone)

    def table(
        self,
        metric: str,
        span: tuple[float, float],
        coarse: np.ndarray,
        reached: tuple[int, float, int] | None = None,
        newest: float | None = None,
    ) -> np.ndarray:
        """Every batch from span[0] to span[1] (epochs), as rows of a `Trace`.

        coarse: the buckets of the same line; they say step and time of each position.
        reached: of an epoch that has not ended, its number, which share of it is done
        (0 to 1) and in how many batches.
        """
        low, high = span
        positions, values = [np.empty(0)], [np.empty(0)]
        for epoch in range(max(1, int(np.ceil(low))), int(np.ceil(high)) + 1):
            found = self.values(metric, epoch, newest)
            if not len(found):
                continue
            share, batches = 1.0, len(found)
            if reached is not None and reached[0] == epoch and reached[2]:
                share, batches = reached[1], max(reached[2], len(found))
            positions.append(epoch - 1 + share * np.arange(1, len(found) + 1) / batches)
            values.append(found)
        x, y = np.concatenate(positions), np.concatenate(values)
        inside = (x >= low) & (x <= high)
        x, y = x[inside], y[inside]
        if not len(coarse):
            coarse = np.zeros((1, 6))
        step, seconds = (np.interp(x, coarse[:, 0], coarse[:, i]) for i in (4, 5))
        return np.column_stack([x, y, y, y, step, seconds])
