"""What options accept, and the errors for anything else."""

from __future__ import annotations

import re
from typing import Any

from burnbook.core.argument_cures import given
from burnbook.core.call_source import texts_of_call
from burnbook.core.errors import (
    ConfigError,
    DataError,
    TrainingError,
    explain,
    warn_caller,
)
from burnbook.core.other_names import closest, required_arguments
from burnbook.core.roles import MODEL, OPTIMIZER, RATE, in_right_order, wrong_form
from burnbook.data import DataLoader, Dataset
from burnbook.lr_scheduler import (
    ExponentialLrScheduler,
    LrScheduler,
    StepLrScheduler,
    observers,
)
from burnbook.module import Module
from burnbook.optim import LBFGS, Optimizer, __all__ as optimizers
from burnbook.train.events import Direction, Split, best_direction
from burnbook.train.logger import MetricLogger
from burnbook.train.metric import Metric, metric_name
from burnbook.train.metric.naming import check_name
from burnbook.train.plan import Measured

WORDS = {Split.Train: "training", Split.Valid: "validation"}
FIT = "fit(train, valid), where valid is a loader of validation batches"


def needs(owner: Any, option: str, value: object, name: str, cure: str) -> None:
    """Refuse a value that cannot do what the option asks of it."""
    if isinstance(value, type) or not hasattr(value, name):
        shown = value.__name__ if isinstance(value, type) else repr(value)
        what = f"{shown} does not fit this option"
        if isinstance(value, type):
            what = f"{shown} is a class: the option takes an object of it"
            known = cure.startswith(f"{shown}(") or not hasattr(value, name)
            cure = cure if known else f"{shown}({required_arguments(value)})"
        raise ConfigError(f"{type(owner).__name__}.{option}", what, cure=cure)


def count(owner: Any, option: str, value: int) -> int:
    """The value, if it is a whole number of at least 1."""
    if type(value) is not int or value < 1:
        raise ConfigError(
            f"{type(owner).__name__}.{option}",
            f"{value!r} is not a number of at least 1",
            cure=f"{option}({_whole(value)})",
        )
    return value


def _whole(value: object) -> int:
    """The number that a text or a float stands for; at least 1."""
    try:
        return max(1, int(float(value)))  # type: ignore[arg-type] # what it is not, raises
    except (TypeError, ValueError, OverflowError):
        return 1


def add_metric(
    owner: Any, metrics: list[Measured], metric: Metric, plotted: bool
) -> None:
    """Put a metric into the list; it replaces one of the same name."""
    metric = metric() if isinstance(metric, type) else metric
    name = type(metric).__name__
    if not hasattr(metric, "update"):
        raise ConfigError(
            type(owner).__name__,
            f"{name} is not a metric",
            cure="AccuracyMetric(), LossMetric(), or a subclass of Metric",
        )
    others = [pair for pair in metrics if pair[0].name != getattr(metric, "name", None)]
    check_name(type(owner).__name__, metric, [other.name for other, _ in others])
    if plotted and not metric.numeric:
        raise ConfigError(
            type(owner).__name__,
            f"{name} has no value, so it cannot be plotted",
            cure=f"metric_train({name}()) or metric_valid({name}())",
        )
    metrics[:] = [*others, (metric, plotted)]


def check_rate(
    where: str, lr_scheduler: LrScheduler | float | None
) -> LrScheduler | float:
    """Refuse a build without a learning rate; `as_scheduler` checks the number.

    A rate of 0 is allowed: nothing is learned, for example to try early stopping.
    """
    if lr_scheduler is None:
        raise ConfigError(
            where,
            "there is no learning rate",
            cure="build(model, optim, 1e-3), or a scheduler in place of the number",
        )
    check_form(where, 2, lr_scheduler, RATE)
    return lr_scheduler


def no_rate(
    scheduler: LrScheduler, lr: Any, epoch: int, iteration: int
) -> TrainingError:
    """The error for a scheduler that gave something other than a learning rate."""
    return TrainingError(
        f"train epoch {epoch}, iteration {iteration}",
        f"{lr!r} is not a learning rate",
        [("scheduler", type(scheduler).__name__)],
        "a step() that returns finite numbers of at least 0",
    )


def check_watched(
    where: str,
    strategy: Any,
    measured: dict[Split, list[Metric]],
    loggers: dict[Split, list[MetricLogger]],
) -> None:
    """Refuse a strategy that needs a metric which is not measured or cannot be read.

    strategy: of stopping or keeping checkpoints, or a schedule of learning rates.
    """
    for inner in getattr(strategy, "strategies", ()):
        check_watched(where, inner, measured, loggers)
    for part in observers(strategy, now=False):
        kind = type(part).__name__
        _check_measured(where, kind, followed(part), measured, loggers)
        _check_plateau(part)
    name, split = getattr(strategy, "metric", None), getattr(strategy, "split", None)
    if isinstance(name, str) and split in measured:
        _check_measured(
            where, type(strategy).__name__, (name, split), measured, loggers
        )


def _check_plateau(part: object) -> None:
    """Warn of a schedule that waits for its metric to become worse."""
    highest = getattr(getattr(part, "config", None), "highest_is_best", None)
    best = best_direction(followed(part)[0])
    if highest is None or best is None or highest is (best is Direction.Highest):
        return
    words = "higher" if best is Direction.Highest else "lower"
    what = f"{followed(part)[0]} is better when {words}, but highest_is_best={highest}"
    cure = f"highest_is_best={not highest}"
    warn_caller(explain(type(part).__name__, what, cure=cure))


def check_not_validated(watched: list[tuple[str, Any]]) -> None:
    """Refuse what asks for a metric of validation, where there is no validation.

    watched: where each strategy, callback or schedule was given, and itself.
    """
    for where, strategy in watched:
        check_not_validated([(where, s) for s in getattr(strategy, "strategies", ())])
        for part in observers(strategy, now=False):
            name, split = followed(part)
            if split is Split.Valid:
                raise _not_validated(where, part, name, 'split="train"')
        name, split = getattr(strategy, "metric", None), getattr(strategy, "split", "")
        if isinstance(name, str) and split is Split.Valid:
            raise _not_validated(where, strategy, name, "Split.Train")


def _not_validated(where: str, part: Any, name: str, other: str) -> ConfigError:
    kind = type(part).__name__
    what = f"{kind} needs {name!r} of validation, without such data"
    return ConfigError(where, what, cure=f"{FIT}; or {kind} with {other}")


def check_captured(where: str, mode: object) -> None:
    """Refuse what is no way to capture: True, False or "auto"."""
    if mode is not True and mode is not False and mode != "auto":
        what = f"{mode!r} is not True, False or 'auto'"
        raise ConfigError(f"{where}.captured", what, cure="captured()")


def check_loaders(where: str, train: object, valid: object) -> None:
    """Refuse what cannot give a batch, before the first one.

    valid: None where there is no validation. An iterable without a length may still
    turn out to be empty.
    """
    if _holds_arrays(train) and _holds_arrays(valid):
        what = "arrays are not loaders of batches: inputs and targets make one"
        cure = f"{where}(DataLoaderBuilder().batch_size(64).build((inputs, targets)))"
        raise DataError("training data", what, cure=cure)
    named: dict[str, Any] = {"training": train}
    if valid is not None:
        named["validation"] = valid
    for name, loader in named.items():
        check_loader(name, loader)
        try:
            empty = len(loader) == 0
        except TypeError:  # it has no length
            continue
        if empty:
            cure = "a dataset that is not empty"
            if name == "validation":
                cure += f"; or {where}(train), to train without validation"
            raise DataError(
                f"{name} data",
                "the loader has no batch",
                [("loader", type(loader).__name__)],
                cure,
            )


def check_loader(name: str, loader: object) -> None:
    """Refuse what does not give batches; name: of the data."""
    if not isinstance(loader, Dataset) and _holds_arrays(loader):
        what = f"{given(loader)} is not a loader of batches"
        cure = "DataLoaderBuilder().batch_size(64).build((inputs, targets))"
        raise DataError(f"{name} data", what, cure=cure)
    inside = loader if isinstance(loader, (list, tuple)) else ()
    if inside and all(isinstance(each, DataLoader) for each in inside):
        what = f"{len(inside)} loaders in one {type(loader).__name__}"
        texts = texts_of_call("fit")
        shown = texts[0].strip("()[]") if len(texts) == 1 else "train, valid"
        cure = f"fit({shown}), one after the other"
        raise DataError(f"{name} data", what, cure=cure)
    if isinstance(loader, Dataset) or not hasattr(loader, "__iter__"):
        what = f"{type(loader).__name__} is not a loader of batches"
        cure = "DataLoaderBuilder(batcher).batch_size(64).build(dataset)"
        raise DataError(f"{name} data", what, cure=cure)


def _holds_arrays(loader: object) -> bool:
    """Whether it is data, all at once: an array, a tensor, two of them, numbers.

    A list of batches is a loader, and a batch may be an array.
    """
    if hasattr(loader, "dtype") or isinstance(loader, (str, bytes, dict)):
        return True
    if not isinstance(loader, (list, tuple)) or not loader:
        return False
    plain = all(isinstance(item, (int, float, str)) for item in loader)
    together = isinstance(loader, tuple) and len(loader) == 2
    return plain or (together and all(hasattr(item, "dtype") for item in loader))


def followed(part: Any) -> tuple[str, Split]:
    """The metric that a schedule with `observe` follows, and of which split."""
    name, split = getattr(part, "metric", "Loss"), getattr(part, "split", "valid")
    return metric_name(name), Split(split)


def _check_measured(
    where: str,
    kind: str,
    asked: tuple[str, Split],
    measured: dict[Split, list[Metric]],
    loggers: dict[Split, list[MetricLogger]],
) -> None:
    """Refuse what a class asks for, a metric of a split, if nobody can tell it."""
    name, split = asked
    if any(name == metric.name and metric.numeric for metric in measured[split]):
        kinds = [type(logger) for logger in loggers[split]]
        if kinds and all(k.read_numeric is MetricLogger.read_numeric for k in kinds):
            raise ConfigError(
                where,
                f"{kinds[0].__name__} cannot be read back, so {name!r} stays unknown",
                cure=f"read_numeric(name, epoch) in {kinds[0].__name__}, or "
                "metric_loggers(InMemoryMetricLogger(), InMemoryMetricLogger()) too",
            )
        return
    raise ConfigError(
        where,
        f"{name!r} is not measured in {WORDS[split]}",
        [
            ("strategy", kind),
            *((WORDS[each], _named(metrics)) for each, metrics in measured.items()),
        ],
        _cure(name, split, measured),
    )


def _named(metrics: list[Metric]) -> str:
    return ", ".join(m.name for m in metrics if m.numeric) or "nothing"


def _cure(name: str, split: Split, measured: dict[Split, list[Metric]]) -> str:
    """The call that measures it, or the nearest name that is measured."""
    here = f"metric_{split.value}_numeric"
    for metric in (metric for metrics in measured.values() for metric in metrics):
        if metric.name == name and metric.numeric:
            return f"{here}({type(metric).__name__}()) before build"
    bare = re.sub(r"^(val|valid|test|train)_", "", name)  # as Keras names them
    near = closest(bare, [metric.name for metric in measured[split]])
    if near:
        return f"{near!r}, or {here}(...) with the metric of that name"
    class_name = {"Loss": "LossMetric()", "Accuracy": "AccuracyMetric()"}.get(name)
    return f"{here}({class_name or 'the metric of that name'}) before build"


def check_order(where: str, roles: tuple[str, ...], *given: object) -> None:
    """Refuse arguments that would do in another order, with the call in that order."""
    found = in_right_order(where.rpartition(".")[2], roles, given)
    if found:
        raise ConfigError(where, found[0], cure=found[1])


def check_form(where: str, place: int, value: object, role: str) -> None:
    """Refuse a class or a config in place of what it makes.

    place: of the argument in the reader's call; below 0 where it is none of its own.
    """
    found = wrong_form(where.rpartition(".")[2], place, value, role)
    if found:
        raise ConfigError(where, found[0], cure=found[1])


def check_model(where: str, model: Module, place: int = 0) -> None:
    """Refuse what cannot be trained."""
    check_form(where, place, model, MODEL)
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


def check_optimizer(
    where: str, optim: Optimizer, model: Module, place: int = 1
) -> None:
    """Refuse what cannot take a step with the gradients of one batch.

    A model that has an `optimize` of its own may take its steps as it likes.
    """
    check_form(where, place, optim, OPTIMIZER)
    if isinstance(optim, LBFGS) and not hasattr(model, "optimize"):
        raise ConfigError(
            where,
            "LBFGS asks for several losses in a step, the Learner's step has one",
            cure="model, loss = optim.step(lr, model, closure) in a loop of your own, "
            "or AdamConfig().init()",
        )
    if not (hasattr(optim, "step") and hasattr(optim, "into_record")):
        what = f"{type(optim).__name__} is not an optimizer"
        raise ConfigError(where, what, cure=f"{_config_named(optim)}().init()")


def _config_named(text: object) -> str:
    """The config of an optimizer that a text like "sgd" stands for; else Adam's."""
    known = [name[:-6] for name in optimizers if name.endswith("Config")]
    near = closest(text, known) if isinstance(text, str) else None
    return f"{near or 'Adam'}Config"


def short(scheduler: Any, left: int, steps: int, batches: int) -> str:
    """The warning, at its start, for a run that is longer than its schedule."""
    then = "stays where it ends"
    if hasattr(scheduler, "restarts"):
        then = "starts again at the full rate"
    at = f"ends after {left} of {steps} steps, and then" if left else "has ended, and"
    return (
        f"{type(scheduler).__name__} {at} {then}: this training takes "
        f"{steps} steps, {batches} in an epoch. Let num_iters be those of the whole run"
    )


FEW_STEPS = 20  # of a trial, where nothing is learned anyway
NOTHING = 1e-7  # of the first rate: what is left of it trains nothing


def vanishing(scheduler: object, steps: int, batches: int) -> str:
    """The warning for a rate that falls by the batch where epochs were meant; or "".

    Why only then: a rate that is meant to end low falls by less in each epoch.
    """
    name, config = type(scheduler).__name__, getattr(scheduler, "config", None)
    gamma = getattr(config, "gamma", 1.0)
    if isinstance(scheduler, StepLrScheduler):
        size = scheduler.config.step_size
        left, is_early = gamma ** (steps // size), size < batches
        cure = f"step_size={size * batches}, which is {size} epochs"
    elif isinstance(scheduler, ExponentialLrScheduler):
        left, is_early = gamma**steps, gamma**batches < 0.5
        cure = f"gamma={gamma ** (1 / batches):.6g}, which is {gamma:g} in each epoch"
    else:
        return ""
    if not is_early or left >= NOTHING or steps < FEW_STEPS:
        return ""
    return (
        f"{name} goes on with each batch, and {batches} of them are an epoch: at the "
        f"end of {steps} steps the rate is {left:.0e} of the first. Let {cure}"
    )


def restarted(scheduler: Any, epoch: int, iteration: int) -> str:
    """The warning for a run that is longer than its cosine."""
    count = scheduler.config.num_iters + 1
    return (
        f"{type(scheduler).__name__}: the {count} steps of the schedule are over at "
        f"epoch {epoch}, iteration {iteration}, and it starts again at the full rate. "
        "To decay once, let num_iters be the steps of the whole run: epochs x batches"
    )
