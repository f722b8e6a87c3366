"""Building blocks · Learner. What options accept, and what they say to others."""

from __future__ import annotations

from typing import Any

from burnbook.errors import ConfigError
from burnbook.module import Module
from burnbook.train.plan import Measured


def needs(owner: Any, option: str, value: Any, name: str, cure: str) -> None:
    """Refuse a value that cannot do what the option asks of it."""
    if isinstance(value, type) or not hasattr(value, name):
        shown = value.__name__ if isinstance(value, type) else repr(value)
        what = f"{shown} does not fit this option"
        raise ConfigError(f"{type(owner).__name__}.{option}", what, cure=cure)


def count(owner: Any, option: str, value: int) -> int:
    """The value, if it is a whole number of at least 1."""
    if type(value) is not int or value < 1:
        raise ConfigError(
            f"{type(owner).__name__}.{option}",
            f"{value!r} is not a number of at least 1",
            cure=f"{option}(1)",
        )
    return value


def add_metric(owner: Any, metrics: list[Measured], metric: Any, plotted: bool) -> None:
    """Put a metric into the list; one of the same name gives way."""
    metric = metric() if isinstance(metric, type) else metric
    name = type(metric).__name__
    if not hasattr(metric, "update"):
        raise ConfigError(
            type(owner).__name__,
            f"{name} is not a metric",
            cure="AccuracyMetric(), LossMetric(), or a subclass of Metric",
        )
    if plotted and not metric.numeric:
        raise ConfigError(
            type(owner).__name__,
            f"{name} has no value, so it cannot be plotted",
            cure=f"metric_train({name}()) or metric_valid({name}())",
        )
    others = [pair for pair in metrics if pair[0].name != metric.name]
    metrics[:] = [*others, (metric, plotted)]


def check_model(where: str, model: Any) -> None:
    """Refuse what cannot be trained."""
    name = type(model).__name__
    if not (isinstance(model, Module) and model.named_params()):
        what = "has no parameters" if isinstance(model, Module) else "is not a Module"
        raise ConfigError(
            where,
            f"{name} {what}, so there is nothing to learn",
            cure="a subclass of Module with layers as annotated fields",
        )
    for step, gives in (
        ("train_step", "TrainOutput(self, loss.backward(), item)"),
        ("valid_step", "the item, such as ClassificationOutput(loss, output, targets)"),
    ):
        if not callable(getattr(model, step, None)):
            raise ConfigError(
                where,
                f"{name} has no method {step}, so the learner cannot train it",
                cure=f"def {step}(self, batch) in {name}, which returns {gives}",
            )


def check_optimizer(where: str, optim: Any) -> None:
    """Refuse what cannot take a step."""
    if not (hasattr(optim, "step") and hasattr(optim, "into_record")):
        name = type(optim).__name__
        has_init = hasattr(optim, "init")
        raise ConfigError(
            where,
            f"{name} is not an optimizer{', but the config of one' * has_init}",
            cure=f"{name}(...).init()" if has_init else "AdamConfig().init()",
        )
