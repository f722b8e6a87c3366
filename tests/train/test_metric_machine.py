"""Metrics of the machine: processor, memory, heat, GPUs, and the clock."""

import sys
import time
from types import ModuleType, SimpleNamespace

import pytest

from burnbook import train
from burnbook.train.events import mean
from tests.support.cases import cases
from tests.support.metric_tools import metadata

psutil = pytest.importorskip("psutil")


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes where it is told to."""
    now = SimpleNamespace(seconds=100.0)
    for name in ("monotonic", "perf_counter"):
        monkeypatch.setattr(time, name, lambda: now.seconds)
    return now


class Times(SimpleNamespace):
    """What psutil knows of the processors: seconds of each kind since the start."""

    def _asdict(self):
        return dict(vars(self))


@pytest.fixture
def times(monkeypatch):
    told = Times(
        user=10.0, system=5.0, idle=80.0, iowait=5.0, guest=2.0, guest_nice=0.0
    )
    monkeypatch.setattr(psutil, "cpu_times", lambda: told)
    return told


# The processor


def test_cpu_use_is_the_busy_share_of_the_time_since_the_last_look(clock, times):
    metric = train.CpuUse()
    times.user, times.idle = times.user + 1.0, times.idle + 3.0
    entry = metric.update(None, metadata())
    assert entry == train.MetricEntry("CPU Usage", "CPU Usage: 25.00 %", "25.00")
    assert metric.value() == 25.0
    clock.seconds += 0.1  # too early for another look
    times.user += 100.0
    assert metric.update(None, metadata()).serialize == "25.00"
    clock.seconds += 0.2
    assert metric.update(None, metadata()).serialize == "100.00"


def test_waiting_for_disks_and_guests_counted_twice_are_no_work(clock, times):
    metric = train.CpuUse()
    times.iowait, times.system = times.iowait + 1.0, times.system + 1.0
    times.user, times.guest = times.user + 2.0, times.guest + 2.0
    assert metric.update(None, metadata()).serialize == "75.00"


def test_no_time_at_all_is_no_use(clock, times):
    assert train.CpuUse().update(None, metadata()).serialize == "0.00"


def test_memory_is_what_others_cannot_have(monkeypatch):
    told = SimpleNamespace(total=16_000_000_000, available=12_345_678_901)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: told)
    metric = train.CpuMemory()
    text = "RAM Used: 3.65 / 16.00 Gb"
    entry = metric.update(None, metadata())
    assert entry == train.MetricEntry("CPU Memory", text, "3.654321099")
    assert metric.value() == 3.654321099


@cases(
    "sensors value text",
    ({"nvme": [45.0], "coretemp": [61.5, 40.0]}, 61.5, "61.50"),
    ({"k10temp": [50.0]}, 50.0, "50.00"),
    ({"nvme": [45.0], "coretemp": []}, None, "NaN"),
    ({}, None, "NaN"),
)
def test_temperature_is_the_processors_or_not_a_number(
    monkeypatch, sensors, value, text
):
    told = {
        name: [SimpleNamespace(current=degrees) for degrees in row]
        for name, row in sensors.items()
    }
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: told, raising=False)
    metric = train.CpuTemperature()
    shown = f"CPU Temperature: {text} °C"
    entry = metric.update(None, metadata())
    assert entry == train.MetricEntry("CPU Temperature", shown, text)
    assert metric.value() == value


def test_a_system_without_sensors_has_no_temperature(monkeypatch):
    monkeypatch.delattr(psutil, "sensors_temperatures", raising=False)
    assert train.CpuTemperature().update(None, metadata()).serialize == "NaN"


def test_this_machine_has_numbers_that_make_sense():
    use, memory = train.CpuUse(), train.CpuMemory()
    lines = [metric.update(None, metadata()).serialize for metric in (use, memory)]
    entries = [train.NumericEntry.deserialize(line) for line in lines]
    assert 0.0 <= entries[0].value <= 100.0
    assert 0.0 < entries[1].value < memory.total
    assert [entry.count for entry in entries] == [None, None]
    assert mean(entries[:1]) == entries[0].value


# GPUs


@pytest.fixture
def gpus(monkeypatch):
    """Two GPUs that are not there: a library of the same names as NVIDIA's."""
    library: SimpleNamespace = ModuleType("pynvml")  # type: ignore[assignment]
    cards = [(2.5e9, 80e9, 7, 41), (1e9, 24e9, 100, 83)]

    class NVMLError(Exception):
        pass

    library.NVMLError = NVMLError
    library.NVML_TEMPERATURE_GPU = 0
    library.nvmlInit = lambda: None
    library.nvmlDeviceGetCount = lambda: len(cards)

    def handle(index):
        if index >= len(cards):
            raise NVMLError("no such GPU")
        return cards[index]

    library.nvmlDeviceGetHandleByIndex = handle
    library.nvmlDeviceGetMemoryInfo = lambda card: SimpleNamespace(
        used=card[0], total=card[1]
    )
    library.nvmlDeviceGetUtilizationRates = lambda card: SimpleNamespace(gpu=card[2])
    library.nvmlDeviceGetTemperature = lambda card, sensor: card[3]
    library.cards = cards
    monkeypatch.setitem(sys.modules, "pynvml", library)
    return library


def test_cuda_stats_show_and_log_every_gpu(gpus):
    entry = train.CudaMetric().update(None, metadata())
    text = (
        " GPU #0 - Memory 2.50/80.00 Gb - Usage 7%"
        " GPU #1 - Memory 1.00/24.00 Gb - Usage 100%"
    )
    assert entry == train.MetricEntry("CUDA Stats", text, "2.5/80 1/24 ")


def test_cuda_stats_of_one_gpu_are_logged_as_in_burn(gpus):
    del gpus.cards[1]
    assert train.CudaMetric().update(None, metadata()).serialize == "2.5/80 "


def test_a_gpu_has_a_temperature(gpus):
    entry = train.GpuTemperature(1).update(None, metadata())
    name = "GPU Temperature #1"
    assert entry == train.MetricEntry(name, f"{name}: 83.00 °C", "83.00")
    assert train.GpuTemperature().value() == 41.0
    assert train.GpuTemperature(7).value() is None


def test_a_gpu_that_stops_answering_is_unavailable(gpus, clock):
    metric = train.CudaMetric()
    metric.update(None, metadata())

    def fail(card):
        raise gpus.NVMLError("lost")

    gpus.nvmlDeviceGetMemoryInfo = fail
    clock.seconds += 1.0
    entry = metric.update(None, metadata())
    assert entry == train.MetricEntry("CUDA Stats", "Unavailable", "Unavailable")


@pytest.mark.parametrize("lack", ["package", "driver", "gpu"])
def test_without_a_gpu_training_goes_on(gpus, monkeypatch, lack):
    def fail():
        raise gpus.NVMLError("no driver")

    if lack == "package":
        monkeypatch.setitem(sys.modules, "pynvml", None)
    elif lack == "driver":
        gpus.nvmlInit = fail
    else:
        gpus.cards.clear()
    entry = train.CudaMetric().update(None, metadata())
    assert entry == train.MetricEntry("CUDA Stats", "Unavailable", "Unavailable")
    metric = train.GpuTemperature()
    assert metric.update(None, metadata()).formatted == "GPU Temperature: NaN °C"
    assert metric.value() is None


# The clock


def test_iteration_speed_counts_from_the_first_update(clock):
    metric = train.IterationSpeedMetric()
    first = metric.update(None, metadata(iteration=1))
    text = "epoch 0.00e0 iter/sec - batch 0.00e0 iter/sec"
    assert first == train.MetricEntry("Iteration Speed", text, "0,1")
    clock.seconds += 0.5
    second = metric.update(None, metadata(iteration=2))
    text = "epoch 2.00 iter/sec - batch 4.00 iter/sec"
    assert second == train.MetricEntry("Iteration Speed", text, "4,1")
    metric.clear()
    assert metric.update(None, metadata(iteration=1)) == first
