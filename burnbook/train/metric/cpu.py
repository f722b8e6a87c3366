"""The processor: how busy, how full its memory, how hot."""

from __future__ import annotations

import time
from typing import Any

from burnbook.core.errors import TrainingError
from burnbook.train.metric.base import Metric, MetricEntry, MetricMetadata, NumericEntry
from burnbook.train.numbers import fixed_float

SECONDS_BETWEEN_LOOKS = 0.2

# Names of a processor's sensor: Intel, AMD, ARM boards, and the firmware's.
SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal", "acpitz")


def psutil_for(name: str) -> Any:
    """The package psutil, or an error that says how to get it."""
    try:
        import psutil
    except ImportError:
        what = "the package psutil is not installed; this metric needs it"
        raise TrainingError(name, what, cure="pip install 'burnbook[lab]'") from None
    return psutil


class Gauge(Metric):
    """The base of metrics that look at the machine, at most every 200 ms.

    A subclass defines `look()`, which returns the value. The log gets every value as it
    is, so the epoch is the plain mean of its batches.
    """

    numeric = True
    higher_is_better = False

    def __init__(self) -> None:
        self.current = self.look()
        self.looked = float("-inf")  # the first batch looks again

    def look(self) -> float:
        """The value now."""
        raise TypeError(f"{type(self).__name__} does not say where it looks")

    def formatted(self) -> str:
        """The value for the screen."""
        return f"{self.name}: {fixed_float(self.current, 2)} {self.unit}"

    def line(self) -> str:
        """The value for the log."""
        return fixed_float(self.current, 2)

    def update(self, item: Any, metadata: MetricMetadata) -> MetricEntry:
        """Look again, if it is time to."""
        now = time.monotonic()
        if now - self.looked >= SECONDS_BETWEEN_LOOKS:
            self.current, self.looked = self.look(), now
        return MetricEntry(self.name, self.formatted(), self.line())

    def value(self) -> float | None:
        """The value of the last look; None where there is no sensor."""
        return None if self.current != self.current else self.current


class CpuUse(Gauge):
    """How busy the processors are, in percent, since the last look.

    Example:
        >>> CpuUse().name
        'CPU Usage'
    """

    name = "CPU Usage"
    unit = "%"

    def __init__(self) -> None:
        self.seen: tuple[float, float] | None = None
        super().__init__()

    def look(self) -> float:
        """Busy time / all time of all processors together; 0 at the first look."""
        times = psutil_for(self.name).cpu_times()._asdict()
        for within in ("guest", "guest_nice"):  # Linux counts them in user and nice
            times.pop(within, None)
        total = sum(times.values())
        busy = total - times["idle"] - times.get("iowait", 0.0)
        before, self.seen = self.seen or (total, busy), (total, busy)
        passed, worked = total - before[0], busy - before[1]
        return min(max(100.0 * worked / passed, 0.0), 100.0) if passed > 0 else 0.0


class CpuMemory(Gauge):
    """How much memory of the machine is in use, in GB (10⁹ bytes).

    Example:
        >>> CpuMemory().name
        'CPU Memory'
    """

    name = "CPU Memory"
    unit = "Gb"

    def look(self) -> float:
        """What is not available to other programs."""
        memory = psutil_for(self.name).virtual_memory()
        self.total = memory.total / 1e9
        return (memory.total - memory.available) / 1e9

    def formatted(self) -> str:
        """Used and total."""
        used, total = fixed_float(self.current, 2), fixed_float(self.total, 2)
        return f"RAM Used: {used} / {total} Gb"

    def line(self) -> str:
        """All digits."""
        return NumericEntry(self.current).serialize()


class CpuTemperature(Gauge):
    """How hot the processor is, in °C; NaN where the machine has no such sensor.

    Example:
        >>> CpuTemperature().name
        'CPU Temperature'
    """

    name = "CPU Temperature"
    unit = "°C"

    def look(self) -> float:
        """The first reading of the processor's sensor."""
        read = getattr(psutil_for(self.name), "sensors_temperatures", None)
        sensors = read() if read is not None else {}
        found = [sensors[name][0].current for name in SENSORS if sensors.get(name)]
        return float(found[0]) if found else float("nan")
