"""The sweep: try many configs, spend epochs on the best.

    def train(config, folder, epochs):
        learner = (LearnerBuilder(folder).with_file_checkpointer(CompactRecorder())
                   .metric_valid_numeric(LossMetric()).checkpoint().num_epochs(epochs)
                   .build(config.init(device), AdamConfig().init(), config.lr))
        learner.fit(train_loader, valid_loader)

    found = sweep(ModelConfig(10, 512), {"lr": LogUniform(1e-4, 1e-1)}, train,
                  folder="artifacts/lr", trials=27, max_epochs=9)
    found.best_config, found.runs

`checkpoint()` lets a trial that goes on resume where it was stopped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from burnbook.config import Config
from burnbook.core.errors import ConfigError, TrainingError, explain, warn_caller
from burnbook.core.files import atomic_write, fixed
from burnbook.text.table import ShownAsTable, TextTable
from burnbook.train.events import Direction, Split, check_direction
from burnbook.train.numbers import number_text
from burnbook.train.runs import Run, RunStore
from burnbook.train.runs.run import direction_of, split_name
from burnbook.train.runs.show import value_text
from burnbook.train.sweep.halving import next_task, rungs
from burnbook.train.sweep.space import draw, grid, read_space, with_values
from burnbook.train.sweep.trial import Trial, load_state, save_state

Train = Callable[[Any, Path, int], float | None]


def sweep(
    config: Config | Mapping[str, Any],
    space: Mapping[str, Any],
    train: Train,
    *,
    folder: str | Path,
    trials: int | None = None,
    metric: str = "Loss",
    split: str | Split = "valid",
    direction: Direction | None = None,
    min_epochs: int = 1,
    max_epochs: int = 9,
    eta: int | None = 3,
    seed: int = 0,
    retry: bool = False,
) -> Sweep:
    """Train configs of a space by successive halving, and rank them.

    train(config, folder, epochs) trains up to `epochs` epochs, resuming from what is in
    `folder`; the metric is read from its logs (the best epoch so far), unless it
    returns a number. trials: how many configs to draw; by default, every combination of
    lists. eta: one in `eta` goes on; None trains all to the end.

    Calling it again with the same folder resumes where it stopped; more trials or more
    epochs may be asked for. A trial that raises is recorded and skipped (`retry` tries
    it again); one whose training was interrupted ends the sweep, which can be resumed
    later. At the end it warns if all trials are equal to the digit.

    Source: Jamieson & Talwalkar (2016), the inner loop of Hyperband (2018).
    """
    _check_numbers(trials, min_epochs, max_epochs, eta)
    if direction is not None:
        check_direction("sweep", metric, direction)
    towards = direction or direction_of(metric)
    ranges = read_space(space)
    values = grid(ranges) if trials is None else draw(ranges, trials, seed)
    found = [Trial(number, each) for number, each in enumerate(values)]
    configs = [with_values(config, each) for each in values]
    asked = {
        "space": {name: repr(value) for name, value in ranges.items()},
        "drawn": trials is not None,
        "seed": seed,
        "metric": [metric, split_name(split), towards.value],
    }
    home = fixed(folder)
    home.mkdir(parents=True, exist_ok=True)
    load_state(home, asked, found)
    for trial in found:
        trial.failure = "" if retry else trial.failure
    steps = rungs(min_epochs, max_epochs, eta)
    result = Sweep(home, found, configs, metric, split_name(split), towards)
    while task := next_task(found, steps, eta, towards):
        trial, epochs = task
        going_on = _advance(result, trial, epochs, train)
        save_state(home, asked, found)
        if not going_on:
            return result
    result.done = True
    _warn_of_equals(result)
    return result


def _warn_of_equals(result: Sweep) -> None:
    """Warn if different configs have trained to the digit alike: `train` ignores them.

    Why the logs: one number, such as an accuracy of 100, may be equal by chance; all
    losses and rates of all epochs are not.
    """
    tried = [trial for trial in result.trials if trial.scores and not trial.failure]
    first = min((min(trial.scores) for trial in tried), default=0)
    scores = {trial.scores.get(first) for trial in tried}
    score = next(iter(scores), None)
    if len(tried) < 2 or len(scores) > 1 or score is None or score != score:
        return
    logs = [_curves(result.folder / trial.name, result, first) for trial in tried]
    chance = len(tried) < 3 or score == int(score)  # of a number alone
    if any(other != logs[0] for other in logs) or (chance and not logs[0]):
        return
    names = ", ".join(tried[0].values)
    what = (
        f"all {len(tried)} trials have the same {result.metric}, {number_text(score)}"
    )
    facts = [("different in the configs", names)]
    cure = "a train(config, folder, epochs) that uses its config: config.init(device)"
    warn_caller(explain("sweep", what, facts, cure))


def _curves(folder: Path, result: Sweep, epochs: int) -> list[Any]:
    """What a trial logged of its losses, rates and metric up to an epoch."""
    if not folder.is_dir():
        return []
    run = Run(folder)
    told = {result.metric, "Loss", "Learning Rate"}
    return [
        (name, split, point.epoch, point.value)
        for name, split in run.metrics
        if name in told
        for point in run.history(name, split)
        if point.epoch <= epochs
    ]


def _advance(result: Sweep, trial: Trial, epochs: int, train: Train) -> bool:
    """Train a trial up to an epoch; False when somebody has interrupted it."""
    folder = result.folder / trial.name
    config = result.configs[trial.number]
    _save_config(config, folder / "config.json")
    run = Run(folder, trial.name)
    score: float | None = None
    try:
        if not _is_there(run, epochs, result.metric, result.split):
            score = train(config, folder, epochs)
            if _interrupted(run, epochs):
                return False
    except Exception as error:  # recorded: the other trials go on
        trial.failure = _first_line(error)
        return True
    if score is None:
        score = _read_score(run, epochs, result)
    if score is not None:
        trial.scores[epochs] = _as_number(score)
        return True
    missing = _no_metric(run, result)
    if not any(other.scores for other in result.trials):
        raise missing  # it would be missing everywhere
    trial.failure = _first_line(missing)
    return True


def _as_number(score: Any) -> float:
    """What `train` returned, if it is a number."""
    try:
        return float(score)
    except (TypeError, ValueError):
        raise ConfigError(
            "sweep",
            f"train returned {type(score).__name__}, which is not a number",
            cure="return nothing, so that the metric is read from the logs",
        ) from None


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _is_there(run: Run, epochs: int, metric: str, split: str) -> bool:
    """Whether a killed sweep had trained so far already: the checkpoint comes last."""
    newest = max((c.epoch for c in run.checkpoints), default=0)
    return newest >= epochs and (metric, split) in run.metrics


def _interrupted(run: Run, epochs: int) -> bool:
    """Whether a person has stopped the training before its end."""
    status = run.experiment_log.status
    if status is None or status.reason is None or run.epochs > epochs:
        return False
    return not status.finished


def _read_score(run: Run, epochs: int, result: Sweep) -> float | None:
    """The best number up to an epoch, from the logs; None when none was logged."""
    if (result.metric, result.split) not in run.metrics:
        return None
    points = run.history(result.metric, result.split)
    values = [point.value for point in points if point.epoch <= epochs]
    known = [value for value in values if value == value]  # NaN is never good
    pick = min if result.direction is Direction.Lowest else max
    return pick(known, default=math.nan) if values else None


def _no_metric(run: Run, result: Sweep) -> TrainingError:
    known = ", ".join(f"{split} {name}" for name, split in run.metrics)
    return TrainingError(
        "sweep",
        f"the training logged no {result.split} {result.metric}",
        [("logged", known or "no metrics")],
        "metric_valid_numeric(...), metric=…, or a train that returns a number",
    )


def _save_config(config: Config, path: Path) -> None:
    if hasattr(config, "save"):
        config.save(path)
        return
    with atomic_write(path, ConfigError) as file:
        tree = config if isinstance(config, dict) else vars(config)
        file.write(json.dumps(tree, indent=2, default=str).encode())


def _check_numbers(
    trials: int | None, min_epochs: int, max_epochs: int, eta: int | None
) -> None:
    wrong = ""
    if trials is not None and trials < 1:
        wrong = f"trials={trials} is not a number of at least 1"
    elif not 1 <= min_epochs <= max_epochs:
        wrong = f"min_epochs={min_epochs} to max_epochs={max_epochs} is not a range"
    elif eta is not None and eta < 2:
        wrong = f"eta={eta} would drop no trial"
    if wrong:
        cure = "trials=27, min_epochs=1, max_epochs=9, eta=3, or eta=None"
        raise ConfigError("sweep", wrong, cure=cure)


class Sweep(ShownAsTable):
    """What a sweep has found: the trials, the best first; prints as a table.

    done: whether every trial went as far as it may; False after an interrupt.
    """

    def __init__(
        self,
        folder: Path,
        trials: list[Trial],
        configs: list[Any],
        metric: str,
        split: str,
        direction: Direction,
    ) -> None:
        self.folder, self.configs = folder, configs
        self.metric, self.split, self.direction = metric, split, direction
        self._trials = trials
        self.done = False

    @property
    def trials(self) -> list[Trial]:
        """All trials: those that went furthest first, among them the best."""
        sign = 1.0 if self.direction is Direction.Lowest else -1.0

        def rank(trial: Trial) -> tuple[Any, ...]:
            score = trial.score
            known = score is not None and score == score
            place = sign * score if known and score is not None else 0.0
            return bool(trial.failure), -trial.epochs, not known, place, trial.number

        return sorted(self._trials, key=rank)

    @property
    def runs(self) -> RunStore:
        """The runs of the trials, to compare, filter and export."""
        return RunStore(self.folder)

    @property
    def best(self) -> Trial:
        """The trial that went furthest with the best score."""
        best = self.trials[0]
        if best.score is None:
            failures = [(t.name, t.failure) for t in self._trials if t.failure]
            raise TrainingError("sweep", "no trial has a score", failures[:5])
        return best

    @property
    def best_config(self) -> Any:
        """The config of the best trial."""
        return self.configs[self.best.number]

    def table(self) -> TextTable:
        """The trials as a table."""
        names = list(self._trials[0].values)
        head = ("trial", "epochs", f"{self.split} {self.metric}", *names, "failure")
        rows = [_row(trial, names) for trial in self.trials]
        if not any(trial.failure for trial in self._trials):
            head, rows = head[:-1], [row[:-1] for row in rows]
        failed = sum(bool(trial.failure) for trial in self._trials)
        state = "all trials are done" if self.done else "not finished: call it again"
        note = f"{len(rows)} trials, {failed} failed, in {self.folder}; {state}"
        return TextTable(head, rows, set(range(1, 3 + len(names))), 3, notes=[note])


def _row(trial: Trial, names: list[str]) -> list[str]:
    score = "–" if trial.score is None else number_text(trial.score)
    values = [value_text(trial.values[name]) for name in names]
    return [trial.name, str(trial.epochs), score, *values, trial.failure]
