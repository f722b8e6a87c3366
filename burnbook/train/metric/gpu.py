"""The graphics processors: memory, use, heat.

They come from NVIDIA's own library, through the package nvidia-ml-py; where there is no
such GPU, driver or package, these metrics say so and training goes on.
"""

from __future__ import annotations

import time
from typing import Any

from burnbook.train.metric.base import Metric, MetricEntry, MetricMetadata
from burnbook.train.metric.cpu import SECONDS_BETWEEN_LOOKS, Gauge
from burnbook.train.numbers import fixed_float, plain_float

UNAVAILABLE = "Unavailable"


def nvml() -> Any:
    """NVIDIA's library, initialized; None where there is none."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no package, no driver, or one that does not answer
        return None
    return pynvml


class CudaMetric(Metric):
    """Memory and use of every GPU, as a text.

    Example:
        >>> CudaMetric().name
        'CUDA Stats'

    Why: Burn 0.15 logs the memory of the last GPU only; here the line has that of each.
    """

    name = "CUDA Stats"

    def __init__(self) -> None:
        self.texts = self.look()
        self.looked = time.monotonic()

    def look(self) -> tuple[str, str]:
        """The text for the screen and the line for the log."""
        library = nvml()
        if library is None:
            return UNAVAILABLE, UNAVAILABLE
        try:
            cards = [_card(library, i) for i in range(library.nvmlDeviceGetCount())]
        except library.NVMLError:
            return UNAVAILABLE, UNAVAILABLE
        shown = "".join(
            f" GPU #{i} - Memory {fixed_float(used, 2)}/{fixed_float(total, 2)} Gb"
            f" - Usage {percent}%"
            for i, (used, total, percent) in enumerate(cards)
        )
        line = "".join(
            f"{plain_float(used)}/{plain_float(total)} " for used, total, _ in cards
        )
        return (shown, line) if cards else (UNAVAILABLE, UNAVAILABLE)

    def update(self, item: Any, metadata: MetricMetadata) -> MetricEntry:
        """Look again, if it is time to."""
        now = time.monotonic()
        if now - self.looked >= SECONDS_BETWEEN_LOOKS:
            self.texts, self.looked = self.look(), now
        return MetricEntry(self.name, *self.texts)


class GpuTemperature(Gauge):
    """How hot a GPU is, in °C; NaN where there is none.

    Example:
        >>> GpuTemperature().name, GpuTemperature(1).name
        ('GPU Temperature', 'GPU Temperature #1')

    Why: the book lists it, but Burn 0.15 has none.
    """

    name = "GPU Temperature"
    unit = "°C"

    def __init__(self, index: int = 0) -> None:
        self.index = index
        if index:
            self.name = f"GPU Temperature #{index}"
        super().__init__()

    def look(self) -> float:
        """The reading of the chip's sensor."""
        library = nvml()
        if library is None:
            return float("nan")
        try:
            card = library.nvmlDeviceGetHandleByIndex(self.index)
            sensor = library.NVML_TEMPERATURE_GPU
            return float(library.nvmlDeviceGetTemperature(card, sensor))
        except library.NVMLError:
            return float("nan")

    def __repr__(self) -> str:
        return f"GpuTemperature({self.index or ''})"


def _card(library: Any, index: int) -> tuple[float, float, int]:
    """Used and total memory in GB, and the use in percent."""
    card = library.nvmlDeviceGetHandleByIndex(index)
    memory = library.nvmlDeviceGetMemoryInfo(card)
    percent = library.nvmlDeviceGetUtilizationRates(card).gpu
    return memory.used * 1e-9, memory.total * 1e-9, percent
