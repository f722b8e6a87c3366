"""What measures and shows: metrics, logs, history, renderer.

Per batch: the text metrics, then the numeric ones, in the order of registration; each
entry goes to the log, then to the renderer.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from burnbook.core.errors import TrainingError
from burnbook.core.files import shown_path
from burnbook.data import Progress
from burnbook.train.callback.runner import Shown
from burnbook.train.events import EventStore, Split
from burnbook.train.history import MetricHistory
from burnbook.train.live import LiveRun, live_runs
from burnbook.train.metric import (
    Metric,
    MetricEntry,
    MetricMetadata,
    MetricState,
    NumericEntry,
)
from burnbook.train.metric.base import digits_of
from burnbook.train.plan import TrainingPlan
from burnbook.train.renderer import (
    MetricsRenderer,
    RunInfo,
    TrainingProgress,
    TrainingResult,
    choose,
)
from burnbook.train.summary import LearnerSummary


class Monitor:
    """Everything that observes a model while it trains."""

    def __init__(self, plan: TrainingPlan, live: LiveRun) -> None:
        self.plan, self.live = plan, live
        self.renderer: MetricsRenderer = plan.renderer or choose()
        live.renderer = self.renderer
        valid_loggers = plan.valid_loggers if plan.validates else []
        self.store = EventStore(plan.train_loggers, valid_loggers)
        self.history = MetricHistory()
        self.epoch = 0
        self.means: dict[str, dict[str, float]] = {}  # of the last epoch, by split
        self.splits = tuple(Split)[: 2 if plan.validates else 1]
        self.metrics = {
            Split.Train: sorted(plan.train_metrics, key=_text_first),
            Split.Valid: sorted(plan.valid_metrics, key=_text_first),
        }

    def start(
        self,
        start_epoch: int,
        model_text: str,
        notice: str = "",
        callbacks: Sequence[Shown] = (),
    ) -> None:
        """Training starts at this epoch; earlier epochs are read from the logs."""
        for epoch in range(1, start_epoch):
            self._remember(epoch)
        plotted = [
            metric
            for metrics in self.metrics.values()
            for metric, plot in metrics
            if plot
        ]
        self.renderer.start(
            RunInfo(
                shown_path(self.plan.directory),
                tuple(dict.fromkeys(metric.name for metric in plotted)),
                self.plan.num_epochs,
                start_epoch,
                self.plan.control,
                model_text,
                self.live.mode,
                {metric.name: metric.unit for metric in plotted if metric.unit},
                notice,
                self.plan.recorder is not None,
                self.live.name,
                bool(self.plan.name) or len(live_runs()) > 1,
                tuple(callbacks),
                self.plan.validates,
                digits_of(plotted),
            )
        )

    def start_epoch(self, epoch: int, split: Split) -> None:
        """A split of an epoch starts."""
        self.epoch = epoch
        self.store.start_epoch(epoch, split)
        self.history.start_epoch(epoch, split.value)
        for metric, _ in self.metrics[split]:
            metric.clear()

    def batch(
        self,
        split: Split,
        item: Any,
        progress: Progress,
        iteration: int,
        lr: float | None,
    ) -> None:
        """A batch is done: measure it, log it, show it."""
        total = self.plan.num_epochs
        metadata = MetricMetadata(progress, self.epoch, total, iteration, lr)
        if self.plan.metric_device is not None and hasattr(item, "to_device"):
            item = item.to_device(self.plan.metric_device)
        states = [
            self._measure(metric, plot, item, metadata, split)
            for metric, plot in self.metrics[split]
        ]
        at = TrainingProgress(progress, self.epoch, total, iteration, lr)
        if split is Split.Train:
            for state in states:
                self.renderer.update_train(state)
            self.renderer.render_train(at)
        else:
            for state in states:
                self.renderer.update_valid(state)
            self.renderer.render_valid(at)

    def _measure(
        self,
        metric: Metric,
        plot: bool,
        item: object,
        metadata: MetricMetadata,
        split: Split,
    ) -> MetricState:
        entry = as_entry(metric, metric.update(adapted(item, metric), metadata))
        self.store.log(split, entry)
        if not plot:
            return MetricState(entry)
        value = metric.value()
        if value is not None:
            at = metadata.iteration
            self.history.add(metric.name, split.value, value, at)
        return MetricState(entry, value)

    def end_epoch(self, epoch: int, split: Split) -> None:
        """A split of an epoch is complete."""
        tell = self.renderer.update_valid
        if split is Split.Train:
            tell = self.renderer.update_train
        for metric, _ in self.metrics[split]:
            entry = metric.compute()
            if entry is not None:
                as_entry(metric, entry, "compute")
                self.store.log(split, entry)
                tell(MetricState(entry))
            metric.clear()
        self.store.end_epoch(epoch, split)
        means = self.means[split.value] = self._means(epoch, split)
        self.history.end_epoch(epoch, split.value, means)
        self.renderer.end_epoch(epoch, split.value, means)

    def finish(
        self, result: TrainingResult, model_text: str, callbacks: Sequence[Shown] = ()
    ) -> None:
        """Training has ended: show how, and the summary if it was asked for."""
        self.renderer.finish(result)
        names = {
            m.name for metrics in self.metrics.values() for m, plot in metrics if plot
        }
        logged = any((self.plan.directory / s.value).is_dir() for s in self.splits)
        quiet = os.environ.get("BURNBOOK_DISPLAY") in ("static", "none")
        if self.plan.summary and logged and not quiet:
            last = self.store.last_epoch
            self.renderer.summary(
                LearnerSummary(
                    self.plan.directory,
                    sorted(names),
                    epochs=last,
                    model=model_text,
                    name=self.plan.name,
                    callbacks=callbacks,
                    splits=[split.name for split in self.splits],
                )
            )

    def close(self) -> None:
        """Give the screen back and put every line on the disk."""
        try:
            self.renderer.close()
        finally:
            self.store.close()

    def _means(self, epoch: int, split: Split) -> dict[str, float]:
        found = {
            metric.name: self.store.find_metric(metric, epoch, split=split)
            for metric, plot in self.metrics[split]
            if plot
        }
        return {name: value for name, value in found.items() if value is not None}

    def _remember(self, epoch: int) -> None:
        """Put an epoch of an earlier run into the history."""
        for split in self.splits:
            metrics = self.metrics[split]
            self.history.start_epoch(epoch, split.value)
            for metric, plot in metrics:
                if plot and not metric.whole_epochs_only:
                    entries = self.store.entries(metric.name, epoch, split)
                    self._add_all(metric.name, split, entries)
            self.history.end_epoch(epoch, split.value, self._means(epoch, split))

    def _add_all(self, name: str, split: Split, entries: list[NumericEntry]) -> None:
        for entry in entries:
            if not entry.final:
                self.history.add(name, split.value, entry.value)


def adapted(item: object, metric: Metric) -> Any:
    """The input of a metric, out of the item that a step returned."""
    if metric.Input is None:
        return None
    adapt = getattr(item, "adapt", None)
    if adapt is not None:
        return adapt(metric.Input)
    wanted = metric.Input.__name__
    if item is None:
        what = f"there is no item to measure: the step returned None, not {wanted}"
        cure = "return ClassificationOutput(loss, output, targets) at its end"
        raise TrainingError(type(metric).__name__, what, cure=cure)
    raise TrainingError(
        f"{type(metric).__name__}",
        f"{type(item).__name__} cannot be adapted to {wanted}",
        cure="an item such as ClassificationOutput(loss, output, targets), "
        "or a subclass of Adaptor of your own",
    )


def as_entry(metric: Metric, entry: Any, method: str = "update") -> MetricEntry:
    """What a metric gave, if it is an entry as logs and screens need it."""
    if hasattr(entry, "serialize") and hasattr(entry, "formatted"):
        return entry
    cure = "return MetricEntry(self.name, text, line)"
    if metric.numeric:
        cure = "return self.state.update(value, count, self.options)"
    raise TrainingError(
        f"{type(metric).__name__}.{method}",
        f"it returned {type(entry).__name__}, not a MetricEntry",
        cure=cure,
    )


def _text_first(pair: tuple[Metric, bool]) -> bool:
    return pair[1]
