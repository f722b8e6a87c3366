"""The run store: all trainings below a folder.

store = RunStore("artifacts")
store                                           # a table
good = store.filter(config={"hidden_size": 512}, metric=("Accuracy", "Valid", ">", 90))
store.compare("first", "second")                # how configs and metrics differ
store.dataframe(per="epoch")
store.delete("first")
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from burnbook.core.errors import ConfigError, TrainingError, UnknownNameError
from burnbook.core.files import fixed
from burnbook.text.table import ShownAsTable, TextTable
from burnbook.train.events import Direction, Split
from burnbook.train.metric.naming import nearest, unknown_metric
from burnbook.train.runs.comparison import RunComparison
from burnbook.train.runs.removal import delete_run
from burnbook.train.runs.run import Run, direction_of, is_run, split_name
from burnbook.train.runs.show import Row, frame_of, rows_of, run_table, write_csv

DEEPEST = 4  # levels of folders below the root that are searched
MetricFilter = tuple[str, str | Split, str, float]
STATES = ("running", "finished", "stopped")
SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


class RunStore(ShownAsTable):
    """The runs below a folder, ours and Rust Burn's, the oldest first.

    It looks when it is made; `RunStore(root)` again sees what is new. A run is named by
    its path below the root. Links are not followed.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> log = Path(folder.name) / "first" / "valid" / "epoch-1" / "Loss.log"
        >>> log.parent.mkdir(parents=True)
        >>> _ = log.write_text("0.75,1\\n0.25,1\\n")
        >>> store = RunStore(folder.name)
        >>> [run.name for run in store], store["first"].best("Loss")
        (['first'], (1, 0.5))
        >>> len(store.filter(metric=("Loss", "Valid", "<", 0.4)))
        0
        >>> folder.cleanup()
    """

    def __init__(self, root: str | Path, *, _runs: Sequence[Run] | None = None) -> None:
        self.root = fixed(root)
        if not self.root.is_dir():
            what = "is a file" if self.root.exists() else "does not exist"
            cure = "the folder that was given to LearnerBuilder, or one above it"
            raise TrainingError("RunStore", f"the folder {root} {what}", cure=cure)
        if _runs is None:
            _runs = sorted(_find(self.root), key=lambda run: (run.date, run.name))
        self.runs = list(_runs)

    # Looking

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __contains__(self, name: object) -> bool:
        return any(run.name == name for run in self.runs)

    def __getitem__(self, name: str | int) -> Run:
        """A run by its name or its index, or by its title where only one run has it."""
        if isinstance(name, int):
            return self.runs[name]
        for run in self.runs:
            if run.name == name:
                return run
        titled = [run for run in self.runs if run.title == name]
        if len(titled) == 1:
            return titled[0]
        known = ", ".join(run.name for run in self.runs[:8]) or "none"
        more = ", …" if len(self.runs) > 8 else ""
        facts = [("runs", known + more)]
        raise TrainingError("RunStore", f"there is no run {name!r}", facts)

    # Choosing

    def filter(
        self,
        predicate: Callable[[Run], Any] | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        metric: MetricFilter | Sequence[MetricFilter] = (),
        state: str | None = None,
    ) -> RunStore:
        """The runs that meet all conditions.

        config: a value for each field, or a function of it. metric: (name, split, sign,
        number), or several; the best epoch counts. state: "running", "finished" or
        "stopped".

        Raises:
            ConfigError: a condition is no condition, or the state none of the three.
            UnknownNameError: no run has such a metric, or such a field in its config.
        """
        wanted = [*_metric_filters(metric)]
        for name, *_ in wanted:
            self._check_metric("RunStore.filter", name)
        self._check_fields(config or {})
        _check_state(state)
        found = [
            run
            for run in self.runs
            if (predicate is None or predicate(run))
            and (state is None or run.state == state)
            and (not config or _config_fits(run, config))
            and all(_metric_fits(run, *each) for each in wanted)
        ]
        return RunStore(self.root, _runs=found)

    def sort(self, by: str = "date", *, reverse: bool = False) -> RunStore:
        """The same runs by "date", "name", "epochs" or "state", a metric or a field.

        A metric of validation ("Loss", or of training "train Loss") puts the best run
        first; runs without it come last.
        """
        keys = [(run, self._key(run, by)) for run in self.runs]
        known = [pair for pair in keys if pair[1] is not None]
        if self.runs and not known:
            facts = [("sorted by", "date, name, epochs, state, a metric, a field")]
            near = nearest(by, self._keys())
            cure = f'"{near}"' if near else None
            raise ConfigError("RunStore.sort", f"no run has {by!r}", facts, cure)
        upwards = direction_of(by) is Direction.Lowest or not self._is_metric(by)
        known.sort(key=lambda pair: pair[1], reverse=reverse is upwards)
        rest = [run for run, key in keys if key is None]
        return RunStore(self.root, _runs=[*[run for run, _ in known], *rest])

    def best(
        self,
        metric: str,
        split: str | Split = "valid",
        direction: Direction | None = None,
    ) -> Run | None:
        """The run with the best epoch; None when no run has a number of this split.

        Raises:
            UnknownNameError: the runs have metrics, but none of this name.
        """
        self._check_metric("RunStore.best", metric)
        towards = direction or direction_of(metric)
        name = split_name(split)
        found = [
            (run, run.best(metric, name, towards))
            for run in self.runs
            if (metric, name) in run.metrics
        ]
        known = [(run, best[1]) for run, best in found if best and best[1] == best[1]]
        if not known:
            return None
        pick = min if towards is Direction.Lowest else max
        return pick(known, key=lambda pair: pair[1])[0]

    def compare(self, *runs: Run | str) -> RunComparison:
        """Two runs or more side by side; without any, all of them."""
        chosen = [self._run(run) for run in runs] or self.runs
        if len(chosen) < 2:
            what = f"{len(chosen)} run is not enough" if chosen else "there are no runs"
            cure = 'compare("one", "another")'
            raise TrainingError("RunStore.compare", what, cure=cure)
        return RunComparison(chosen)

    # Taking out

    def rows(self, per: str = "run") -> list[Row]:
        """The runs as plain dicts, one per "run", per "epoch" or per "batch".

        A run's row has the config as `config.<field>`, and of each metric the last
        epoch (`valid Loss`), the best one and which that is.
        """
        return rows_of(self.runs, per)

    def dataframe(self, per: str = "run") -> Any:
        """The same rows as a polars dataframe; without polars, the rows."""
        return frame_of(self.rows(per))

    def export_csv(self, path: str | Path, per: str = "run") -> Path:
        """Write the same rows as CSV: the whole file, or none of it."""
        return write_csv(self.rows(per), path)

    def delete(self, *runs: Run | str, everything: bool = False) -> None:
        """Delete runs, without asking; a folder that is not just a run stays.

        everything: delete the folder also when it holds files that no training writes.
        """
        for run in [self._run(each) for each in runs]:
            delete_run(self.root, run.path, everything=everything)
            self.runs = [other for other in self.runs if other is not run]

    # Showing

    def table(self) -> TextTable:
        """The runs as a table of text."""
        return run_table(self.runs, str(self.root))

    def _run(self, run: Run | str) -> Run:
        return run if isinstance(run, Run) else self[run]

    def _check_metric(self, where: str, metric: str) -> None:
        """Refuse the name of a metric that none of the runs has."""
        names = dict.fromkeys(name for run in self.runs for name, _ in run.metrics)
        if names and metric not in names:
            raise unknown_metric(where, metric, names)

    def _check_fields(self, wanted: Mapping[str, Any]) -> None:
        """Refuse the name of a field that no run's config has."""
        names = dict.fromkeys(name for run in self.runs for name in run.config)
        for name in wanted if names else ():
            if name not in names:
                near = nearest(name, names)
                what, facts = f"no config has {name!r}", [("fields", ", ".join(names))]
                cure = f'config={{"{near}": …}}' if near else None
                raise UnknownNameError("RunStore.filter", what, facts, cure)

    def _keys(self) -> list[str]:
        """What runs can be sorted by."""
        metrics = [name for run in self.runs for name, _ in run.metrics]
        fields = [name for run in self.runs for name in run.config]
        return ["date", "name", "epochs", "state", *metrics, *fields]

    def _is_metric(self, by: str) -> bool:
        return any(_metric_of(run, by) for run in self.runs)

    def _key(self, run: Run, by: str) -> Any:
        if by in ("date", "name", "epochs", "state"):
            return getattr(run, by)
        pair = _metric_of(run, by)
        if pair is not None:
            best = run.best(*pair)
            return best[1] if best and best[1] == best[1] else None
        value = run.config.get(by)
        return None if value is None else _comparable(value)


def _metric_of(run: Run, by: str) -> tuple[str, str] | None:
    """The metric that a name means: of validation, or "train Loss"."""
    names = {
        (name if split == "valid" else f"{split} {name}").lower(): (name, split)
        for name, split in run.metrics
    }
    names |= {f"{split} {name}".lower(): (name, split) for name, split in run.metrics}
    return names.get(by.lower())


def _comparable(value: object) -> tuple[int, Any]:
    """Numbers before texts, so that any two values can be put in order."""
    return (0, value) if isinstance(value, int | float) else (1, str(value))


def _find(root: Path) -> Iterator[Run]:
    """Every run at or below the root; links and hidden folders are left alone."""
    todo: list[tuple[Path, int]] = [(root, 0)]
    while todo:
        folder, depth = todo.pop()
        run = is_run(folder)
        if run:
            name = "." if folder == root else folder.relative_to(root).as_posix()
            yield Run(folder, name)
        if depth == DEEPEST:
            continue
        try:
            with os.scandir(folder) as entries:
                inner = [e for e in entries if e.is_dir(follow_symlinks=False)]
        except OSError:  # no permission: whatever is there is not ours to list
            continue
        own = {"train", "valid", "test", "checkpoint"} if run else set[str]()
        names = [e.name for e in inner if not e.name.startswith(".")]
        todo += [(folder / name, depth + 1) for name in names if name not in own]


def _metric_filters(
    metric: MetricFilter | Sequence[MetricFilter],
) -> list[MetricFilter]:
    given: list[Any] = [metric] if metric and isinstance(metric[0], str) else [*metric]
    for each in given:
        if not isinstance(each, tuple | list) or len(each) != 4 or each[2] not in SIGNS:
            raise ConfigError(
                "RunStore.filter",
                f"metric={each!r} is not a condition",
                [("signs", " ".join(SIGNS))],
                'metric=("Accuracy", "Valid", ">", 90)',
            )
    return given


def _check_state(state: str | None) -> None:
    if state is not None and state not in STATES:
        near = nearest(state, STATES)
        what, facts = f"{state!r} is not a state", [("states", ", ".join(STATES))]
        cure = f'state="{near}"' if near else None
        raise ConfigError("RunStore.filter", what, facts, cure)


def _metric_fits(
    run: Run, name: str, split: str | Split, sign: str, number: float
) -> bool:
    if (name, split_name(split)) not in run.metrics:
        return False
    best = run.best(name, split)
    return best is not None and SIGNS[sign](best[1], number)


def _config_fits(run: Run, wanted: Mapping[str, Any]) -> bool:
    config = run.config
    for name, value in wanted.items():
        if name not in config:
            return False
        found = config[name]
        if not (value(found) if callable(value) else found == value):
            return False
    return True
