"""The evaluator: a trained model on data that it has never seen.

    evaluator = EvaluatorBuilder("guide").metrics([AccuracyMetric(), LossMetric()])
    found = evaluator.build(model).eval("digits", test_loader)
    found.means["Accuracy"]

It came with Burn 0.19. Every test has a name, and its logs stand beside the training's,
in `<dir>/test/<name>/epoch-1`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from burnbook.core.call_source import texts_of_call
from burnbook.core.errors import ConfigError, TrainingError
from burnbook.core.files import fixed, shown_path
from burnbook.core.roles import MODEL
from burnbook.data import DataLoader
from burnbook.module import Module
from burnbook.train.captured_steps import CapturedValidation
from burnbook.train.events import EventStore, Split
from burnbook.train.folder import check_folder
from burnbook.train.interrupter import Interrupter
from burnbook.train.logger import (
    FileApplicationLogger,
    FileMetricLogger,
    MetricLogger,
    SilentApplicationLogger,
)
from burnbook.train.loop import batches_of, on_device
from burnbook.train.metric import Metric, MetricMetadata, MetricState
from burnbook.train.metric.base import digits_of
from burnbook.train.metric.naming import FORBIDDEN, LONGEST, RESERVED
from burnbook.train.monitor import adapted, as_entry
from burnbook.train.options import several
from burnbook.train.plan import Measured
from burnbook.train.renderer import MetricsRenderer, TrainingProgress, choose
from burnbook.train.renderer.plain import metrics_line
from burnbook.train.validation import add_metric, check_captured, check_form, needs

SOURCE = "burn_train::evaluator"


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What a test has found: the means of the metrics, and how it was shown."""

    name: str
    means: dict[str, float]
    units: dict[str, str]
    interrupted: str | None
    seconds: float
    renderer: MetricsRenderer
    digits: dict[str, int] = field(default_factory=dict[str, int])

    def __repr__(self) -> str:
        ending = f"; {self.interrupted}" if self.interrupted else ""
        line = metrics_line(self.means, self.units, self.digits)
        return f"Evaluation({self.name}: {line}{ending})"


class EvaluatorBuilder:
    """Describe a test step by step; `build` gives the evaluator.

    Example:
        >>> EvaluatorBuilder("guide")
        EvaluatorBuilder('guide')
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = fixed(directory)
        self.measured: list[Measured] = []
        self.loggers: list[MetricLogger] = []
        self.shown: MetricsRenderer | None = None
        self.with_summary = False
        self.mode: bool | str = False
        self.control = Interrupter()
        self.log: FileApplicationLogger | None = FileApplicationLogger(
            self.directory / "evaluation.log"
        )

    def metric(self, metric: Metric) -> Self:
        """Show and log a metric."""
        add_metric(self, self.measured, metric, plotted=False)
        return self

    def metric_numeric(self, metric: Metric) -> Self:
        """Show, log and average a metric."""
        add_metric(self, self.measured, metric, plotted=True)
        return self

    def metrics(self, metrics: Metric | Iterable[Metric]) -> Self:
        """Show, log and average metrics."""
        for metric in several(metrics):
            self.metric_numeric(metric)
        return self

    def metrics_text(self, metrics: Metric | Iterable[Metric]) -> Self:
        """Show and log metrics."""
        for metric in several(metrics):
            self.metric(metric)
        return self

    def with_metric_logger(self, logger: MetricLogger) -> Self:
        """Send metrics here instead of into files; several calls add up."""
        needs(self, "with_metric_logger", logger, "log", "InMemoryMetricLogger()")
        self.loggers.append(logger)
        return self

    def renderer(self, renderer: MetricsRenderer | None) -> Self:
        """Show the test in this way, or not at all; unsaid, the place decides."""
        if renderer is None:
            renderer = MetricsRenderer()
        needs(self, "renderer", renderer, "render_test", "PlainRenderer()")
        self.shown = renderer
        return self

    def with_application_logger(self, logger: FileApplicationLogger | None) -> Self:
        """Log somewhere other than to `evaluation.log`; None logs nothing."""
        self.log = logger
        return self

    def captured(self, mode: bool | str = True) -> Self:
        """Run as a plan from the second batch on; "auto": from the 21st.

        What cannot be captured runs step by step, as the log says. False: never, as
        without this call.
        """
        check_captured(type(self).__name__, mode)
        self.mode = mode
        return self

    def interrupter(self) -> Interrupter:
        """The handle that stops the test from outside."""
        return self.control

    def summary(self) -> Self:
        """Show a table of all metrics at the end."""
        self.with_summary = True
        return self

    def build(self, model: Module) -> Evaluator:
        """The evaluator of a model, which runs in inference mode."""
        check_form("EvaluatorBuilder.build", 0, model, MODEL)
        if not isinstance(model, Module) and hasattr(type(model), "interrupter"):
            of = (texts_of_call("build") or ("learner",))[0]
            what = f"{type(model).__name__} is not the model itself"
            raise ConfigError("EvaluatorBuilder.build", what, cure=f"{of}.model")
        if not (isinstance(model, Module) and hasattr(model, "valid_step")):
            raise ConfigError(
                "EvaluatorBuilder.build",
                f"{type(model).__name__} has no method valid_step",
                cure="a Module with def valid_step(self, batch), which returns an item",
            )
        if self.log is not None or not self.loggers:
            check_folder(self.directory)
        return Evaluator(model, self)

    def __repr__(self) -> str:
        return f"EvaluatorBuilder({shown_path(self.directory)!r})"


class Evaluator:
    """A model and what is to be measured of it; made by `EvaluatorBuilder.build`."""

    def __init__(self, model: Module, plan: EvaluatorBuilder) -> None:
        devices = model.devices()
        tracking = bool(devices) and devices[0].ad_enabled
        self.model: Any = model.valid() if tracking else model
        self.plan = plan
        self.metrics = sorted(plan.measured, key=lambda pair: pair[1])

    def eval(self, name: str, loader: DataLoader[Any] | Iterable[Any]) -> Evaluation:
        """Walk through the data once; the batches never change the model."""
        tag = str(name).strip().replace(" ", "-").lower()
        plain = tag.isprintable() and len(tag.encode()) <= LONGEST
        plain = plain and not RESERVED.match(tag)
        if not plain or FORBIDDEN.intersection(tag) or tag.strip(".") == "":
            raise TrainingError(
                "Evaluator.eval",
                f"{name!r} cannot name a folder of logs",
                cure='a plain name, such as "digits"',
            )
        plan, began = self.plan, time.monotonic()
        folder = plan.directory / "test" / tag
        store = EventStore([], [], plan.loggers or [FileMetricLogger(folder)])
        renderer = plan.shown or choose()
        log = plan.log or SilentApplicationLogger()
        log.info(SOURCE, f"Testing the model on {name}")
        try:
            batches: Any = loader
            means = self._walk(str(name), batches, store, renderer)
            units = {m.name: m.unit for m, _ in self.metrics if m.unit}
            why = plan.control.reason
            if why:
                log.info(SOURCE, f"Testing interrupted: {why}")
            seconds = time.monotonic() - began
            digits = digits_of(m for m, _ in self.metrics)
            found = Evaluation(str(name), means, units, why, seconds, renderer, digits)
            line = metrics_line(means, units, digits)
            log.info(SOURCE, f"Tested on {name}: {line}")
            renderer.end_test(str(name), means, units)
            if plan.with_summary:
                renderer.summary(EvaluationSummary(found))
        except BaseException as error:
            with contextlib.suppress(OSError, TrainingError):  # of a full disk
                log.error(SOURCE, f"PANIC => {type(error).__name__}: {error}")
                store.close()
            raise
        finally:
            try:
                store.close()
            finally:
                renderer.close()
                log.close()
        return found

    def _walk(
        self,
        name: str,
        loader: DataLoader[Any],
        store: EventStore,
        renderer: MetricsRenderer,
    ) -> dict[str, float]:
        control, devices = self.plan.control, self.model.devices()
        log = self.plan.log or SilentApplicationLogger()
        step = CapturedValidation(self.plan.mode, lambda text: log.warn(SOURCE, text))
        loader = on_device(loader, devices[0]) if devices else loader
        store.start_epoch(1, Split.Test)
        for metric, _ in self.metrics:
            metric.clear()
        batches = batches_of(loader, 1, "test", control)
        with closing(batches):
            for iteration, batch, progress in batches:
                item = step(self.model, batch, iteration)
                metadata = MetricMetadata(progress, 1, 1, iteration, None)
                for metric, plotted in self.metrics:
                    given = metric.update(adapted(item, metric), metadata)
                    entry = as_entry(metric, given)
                    store.log(Split.Test, entry)
                    value = metric.value() if plotted else None
                    renderer.update_test(name, MetricState(entry, value))
                renderer.render_test(TrainingProgress(progress, 1, 1, iteration))
                if control.paused:
                    control.wait_while_paused(renderer.tick)
                if control.should_stop():
                    break
        self._complete(name, store, renderer)
        means = {
            metric.name: store.find_metric(metric, 1, split=Split.Test)
            for metric, plotted in self.metrics
            if plotted
        }
        return {key: value for key, value in means.items() if value is not None}

    def _complete(
        self, name: str, store: EventStore, renderer: MetricsRenderer
    ) -> None:
        """Metrics that need the whole data say their value now."""
        for metric, _ in self.metrics:
            entry = metric.compute()
            if entry is not None:
                store.log(Split.Test, entry)
                renderer.update_test(name, MetricState(entry))
        store.end_epoch(1, Split.Test)

    def __repr__(self) -> str:
        return f"Evaluator({type(self.model).__name__}, {len(self.metrics)} metrics)"


class EvaluationSummary:
    """The means of a test as a table."""

    def __init__(self, found: Evaluation) -> None:
        self.found = found

    def __str__(self) -> str:
        """The text for terminals."""
        rows = [("Metric", "Value")] + [
            (
                name,
                metrics_line({name: value}, self.found.units, self.found.digits)[
                    len(name) + 1 :
                ],
            )
            for name, value in self.found.means.items()
        ]
        left, right = (max(len(row[i]) for row in rows) for i in (0, 1))
        lines = [f"| {one:<{left}} | {other:<{right}} |" for one, other in rows]
        lines.insert(1, f"|{'-' * (left + 2)}|{'-' * (right + 2)}|")
        rule = "=" * 24
        return "\n".join([f"{rule} Test · {self.found.name} {rule}", *lines])

    def __repr__(self) -> str:
        return f"EvaluationSummary({self.found.name}, {len(self.found.means)} rows)"
