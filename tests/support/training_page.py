"""A run told to a dashboard without a browser: what its tests have in common."""

from __future__ import annotations

import time

from burnbook.data import Progress
from burnbook.train import (
    Interrupter,
    MetricEntry,
    MetricHistory,
    MetricState,
    RunInfo,
    TrainingProgress,
    TrainingResult,
)
from burnbook_widgets import NotebookRenderer
from burnbook_widgets.training.curves import Curves

METRICS = ("Loss", "Accuracy")
UNITS = {"Accuracy": "%"}


def click(dashboard, button):
    """What the page sends when a button is clicked."""
    dashboard.chart._handle_custom_msg({"do": button, "id": f"{button} 1"}, [])


def set_look(dashboard, **changes):
    """What the page sends when the look is changed there."""
    names = ("smoothing", "log", "detail", "axis", "splits", "zoom", "shown")
    look = {name: getattr(dashboard.chart, name) for name in names}
    dashboard.chart._handle_custom_msg({"do": "look", **look, **changes}, [])


class Page:
    """A screen that remembers what it was asked to show."""

    def __init__(self):
        self.places: list[list] = []

    def put(self, bundle, metadata=None):
        self.places.append([bundle])
        shown = self.places[-1]

        class Place:
            def replace(self, bundle, metadata=None):
                shown.append(bundle)

        return Place()

    def show(self, bundle, metadata=None):
        self.places.append([bundle])


def run_info(control=None, epochs=4, start=1, directory="run", **others):
    control = control or Interrupter()
    known = (directory, METRICS, epochs, start, control, "Model")
    return RunInfo(*known, units=UNITS, **others)


def started(control=None, page=None, **others):
    """A renderer whose run has begun."""
    renderer = NotebookRenderer(page or Page())
    renderer.start(run_info(control, **others))
    return renderer


def simulate(renderer, epochs=4, batches=(20, 5), control=None, pause=0.0):
    """What a learner tells a renderer: a loss that falls and an accuracy that rises."""
    control = control or Interrupter()
    history = MetricHistory()
    renderer.start(run_info(control, epochs))
    step = 0
    for epoch in range(1, epochs + 1):
        for split, count in zip(("train", "valid"), batches, strict=True):
            update = getattr(renderer, f"update_{split}")
            total = dict.fromkeys(METRICS, 0.0)
            for batch in range(1, count + 1):
                control.wait_while_paused(renderer.tick)
                if control.should_stop():
                    return finish(renderer, history, control, epoch)
                step += split == "train"
                values = {"Loss": 2 * 0.97**step, "Accuracy": 100 - 90 * 0.97**step}
                for name, value in values.items():
                    update(MetricState(MetricEntry(name, f"{value}", ""), value))
                    history.add(name, split, value)
                    total[name] += value / count
                at = Progress(64 * batch, 64 * count)
                progress = TrainingProgress(at, epoch, epochs, batch)
                getattr(renderer, f"render_{split}")(progress)
                time.sleep(pause)
            renderer.end_epoch(epoch, split, total)
            history.end_epoch(epoch, split, total)
    return finish(renderer, history, control, epochs)


def finish(renderer, history, control, epoch):
    result = TrainingResult("model", history, control.reason, epoch, 1.5, "run")
    renderer.finish(result)
    renderer.close()
    return result


def some_curves(epochs=3, batches=8):
    curves = Curves(METRICS)
    for epoch in range(1, epochs + 1):
        for batch in range(batches):
            curves.update("Loss", 2.0 / (epoch + batch / batches))
            curves.update("Accuracy", 100.0 - 90.0 / epoch)
            curves.step("train", epoch - 1 + (batch + 1) / batches)
        for split in ("train", "valid"):
            means = {"Loss": 1.5 / epoch, "Accuracy": 100 - 80 / epoch}
            curves.end_epoch(epoch, split, means)
    return curves
