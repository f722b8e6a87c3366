"""Sweeps: where they look, who goes on, and what survives a kill."""

import json
import math
from dataclasses import dataclass

import pytest

from burnbook.config import Config
from burnbook.core.errors import BurnbookError, ConfigError, TrainingError
from burnbook.train import Choice, Direction, LogUniform, Run, Uniform, Whole, sweep
from burnbook.train.sweep.halving import promoted, rungs
from burnbook.train.sweep.space import draw, grid, read_space, with_values
from burnbook.train.sweep.trial import Trial
from tests.support.tiny_training import builder, fitted, recorder, stop_at, tiny


class TinyConfig(Config):
    lr: float = 0.01
    width: int = 8


# Where it looks


def test_draws_depend_on_the_seed_and_the_number_of_the_trial_only():
    space = read_space({"lr": LogUniform(1e-4, 1.0), "width": Whole(1, 64, log=True)})
    few, many = draw(space, 3, seed=7), draw(space, 30, seed=7)
    assert many[:3] == few
    assert draw(space, 3, seed=8) != few
    assert all(1e-4 <= row["lr"] <= 1.0 and 1 <= row["width"] <= 64 for row in many)
    assert {type(row["width"]) for row in many} == {int}
    assert min(row["lr"] for row in many) < 1e-2 < max(row["lr"] for row in many)


def test_every_part_of_a_range_is_as_likely():
    shares = [i / 1000 for i in range(1000)]
    counts = [sum(Whole(1, 4).at(s) == n for s in shares) for n in range(1, 5)]
    assert counts == [250] * 4
    logs = [math.log10(LogUniform(1e-4, 1.0).at(s)) for s in shares]
    assert [sum(p <= x < p + 1 for x in logs) for p in range(-4, 0)] == [250] * 4
    assert Whole(3, 5).at(0.999999999) == 5
    assert Whole(3, 5, log=True).at(0.999999999) == 5


def test_lists_make_a_grid_and_draws_without_repetition():
    space = read_space({"a": [1, 2, 3], "b": ("x", "y")})
    assert len(grid(space)) == 6
    drawn = draw(space, 5, seed=1)
    assert len({tuple(row.values()) for row in drawn}) == 5
    assert len(draw(space, 99, seed=1)) == 6


def test_values_go_into_configs_dataclasses_and_dicts():
    @dataclass
    class Outer:
        inner: TinyConfig
        name: str = "a"

    config = Outer(TinyConfig())
    made = with_values(config, {"inner.lr": 0.5, "name": "b"})
    assert (made.inner.lr, made.inner.width, made.name) == (0.5, 8, "b")
    assert (config.inner.lr, config.name) == (0.01, "a")
    with pytest.raises(ConfigError, match=r"no field 'inner\.depth'"):
        with_values(config, {"inner.depth": 1})


# Who goes on


def test_one_in_eta_goes_on():
    assert rungs(1, 27, 3) == [1, 3, 9, 27]
    trials = [Trial(i, {}, {1: float(i)}) for i in range(9)]
    best = promoted(trials, 1, 3, Direction.Lowest)
    assert [trial.number for trial in best] == [0, 1, 2]
    best = promoted(trials, 1, 3, Direction.Highest)
    assert [trial.number for trial in best] == [8, 7, 6]


def test_nan_and_failures_do_not_go_on():
    trials = [Trial(0, {}, {1: math.nan}), Trial(1, {}, {1: 5.0}), Trial(2, {}, {1: 1})]
    trials[2].failure = "out of memory"
    best = promoted(trials, 1, 3, Direction.Lowest)
    assert [trial.number for trial in best] == [1]


# The whole


def scores(calls=None):
    """A training that only notes what it is asked; lower is better at lr = 0.1."""

    def train(config, folder, epochs):
        if calls is not None:
            calls.append((folder.name, epochs))
        return abs(math.log10(config["lr"]) + 1) + 1 / epochs

    return train


def test_halving_spends_epochs_on_the_best(tmp_path):
    calls = []
    space = {"lr": LogUniform(1e-5, 1.0)}
    found = sweep({"lr": 0.0}, space, scores(calls), folder=tmp_path, trials=27)
    assert found.done
    assert [sum(e == epochs for _, e in calls) for epochs in (1, 3, 9)] == [27, 9, 3]
    assert found.best.epochs == 9
    distance = {t.number: abs(math.log10(t.values["lr"]) + 1) for t in found.trials}
    assert found.best.number == min(distance, key=distance.get)
    assert found.best_config == found.best.values
    first = [trial.number for trial in found.trials[:3]]
    assert first == sorted(distance, key=distance.get)[:3]


def test_without_eta_every_trial_goes_to_the_end(tmp_path):
    calls = []
    space = {"lr": [0.1, 1.0]}
    sweep({"lr": 0.0}, space, scores(calls), folder=tmp_path, eta=None, max_epochs=4)
    assert calls == [("trial-000", 4), ("trial-001", 4)]


def test_a_second_call_finds_all_done_and_a_longer_one_goes_on(tmp_path):
    space, calls = {"lr": [1e-3, 1e-2, 0.1]}, []
    first = sweep({"lr": 0.0}, space, scores(calls), folder=tmp_path, max_epochs=3)
    calls.clear()
    second = sweep({"lr": 0.0}, space, scores(calls), folder=tmp_path, max_epochs=3)
    assert calls == []
    assert [t.scores for t in second.trials] == [t.scores for t in first.trials]
    sweep({"lr": 0.0}, space, scores(calls), folder=tmp_path, max_epochs=9)
    assert calls == [("trial-002", 9)]


def test_a_killed_sweep_goes_on_where_it_was(tmp_path):
    space = {"lr": [1e-3, 1e-2, 0.1]}

    def killed(config, folder, epochs):
        if folder.name == "trial-002":
            raise KeyboardInterrupt
        return scores()(config, folder, epochs)

    with pytest.raises(KeyboardInterrupt):
        sweep({"lr": 0.0}, space, killed, folder=tmp_path, max_epochs=3)
    calls = []
    found = sweep({"lr": 0.0}, space, scores(calls), folder=tmp_path, max_epochs=3)
    assert calls == [("trial-002", 1), ("trial-002", 3)]
    assert found.best.values == {"lr": 0.1}


def test_a_failing_trial_is_recorded_and_not_fatal(tmp_path):
    def train(config, folder, epochs):
        if config["lr"] > 0.5:
            raise ValueError("the loss is NaN\nwith details")
        return scores()(config, folder, epochs)

    space = {"lr": [1.0, 0.1]}
    found = sweep({"lr": 0.0}, space, train, folder=tmp_path, eta=2, max_epochs=2)
    assert [t.failure for t in found.trials] == ["", "ValueError: the loss is NaN"]
    assert found.best.values == {"lr": 0.1}
    assert "ValueError: the loss is NaN" in str(found)
    assert "1 failed" in str(found)
    again = {"folder": tmp_path, "eta": 2, "max_epochs": 2}
    assert sweep({"lr": 0.0}, space, scores(), **again).trials[-1].failure
    retried = sweep({"lr": 0.0}, space, scores(), retry=True, **again)
    assert not any(t.failure for t in retried.trials)


def test_when_all_trials_fail_there_is_no_best(tmp_path):
    def train(config, folder, epochs):
        raise ValueError("no")

    found = sweep({"lr": 0.0}, {"lr": [1.0]}, train, folder=tmp_path)
    with pytest.raises(TrainingError, match="no trial has a score"):
        _ = found.best


def test_a_metric_that_nobody_logs_is_said_after_the_first_training(tmp_path):
    calls = []

    def train(config, folder, epochs):
        calls.append(folder.name)

    with pytest.raises(TrainingError, match="the training logged no valid Loss"):
        sweep({"lr": 0.0}, {"lr": [0.1, 0.2]}, train, folder=tmp_path)
    assert calls == ["trial-000"]


def test_a_trial_without_the_metric_is_recorded_where_others_have_it(tmp_path):
    def train(config, folder, epochs):
        return 0.5 if folder.name == "trial-000" else None

    found = sweep({"lr": 0.0}, {"lr": [0.1, 0.2]}, train, folder=tmp_path)
    assert [bool(trial.failure) for trial in found.trials] == [False, True]
    assert "logged no valid Loss" in found.trials[1].failure


def learn(calls=None, renderer=None):
    """Train the tiny network, going on from the checkpoint in the folder."""

    def train(config, folder, epochs):
        made = builder(folder, epochs).with_file_checkpointer(recorder()).checkpoint()
        if renderer is not None:
            made = made.renderer(renderer)
        learner = fitted(made, tiny(), config.lr)
        if calls is not None:
            calls.append((folder.name, learner.result.epochs))

    return train


def test_trials_that_go_on_start_from_their_checkpoint(tmp_path):
    space = {"lr": [1e-6, 0.05, 1e-5]}
    options = {"folder": tmp_path, "max_epochs": 3}
    found = sweep(TinyConfig(), space, learn(), **options)
    assert found.best_config == TinyConfig(lr=0.05)
    run = found.runs["trial-001"]
    assert (run.epochs, run.state) == (3, "finished")
    assert run.config["lr"] == 0.05
    text = (run.path / "experiment.log").read_text()
    assert "Restoring checkpoint 1" in text
    assert "Training epochs 2 to 3" in text
    assert [found.runs[f"trial-00{n}"].epochs for n in (0, 2)] == [1, 1]
    history = [p.value for p in run.history("Loss")]
    assert found.best.scores == {1: history[0], 3: min(history)}
    assert found.runs.sort("Loss")[0].name == "trial-001"


def test_a_trial_trained_before_the_kill_is_not_trained_again(tmp_path):
    space = {"lr": [0.05, 0.01]}
    options = {"folder": tmp_path, "eta": 2, "max_epochs": 2}
    first = sweep(TinyConfig(), space, learn(), **options)
    (tmp_path / "sweep.json").unlink()  # as if no answer had been written
    calls = []
    again = sweep(TinyConfig(), space, learn(calls), **options)
    assert calls == []
    assert [t.scores for t in again.trials] == [t.scores for t in first.trials]


def test_an_interrupted_training_ends_the_sweep_until_it_is_called_again(tmp_path):
    space = {"lr": [0.05, 0.01]}
    options = {"folder": tmp_path, "eta": 2, "max_epochs": 2}
    probe = stop_at(5, lambda control: control.stop("interrupted"))
    found = sweep(TinyConfig(), space, learn(renderer=probe), **options)
    assert not found.done
    assert "not finished: call it again" in str(found)
    assert Run(tmp_path / "trial-001").state == "stopped"
    assert sweep(TinyConfig(), space, learn(), **options).done


def test_metrics_may_be_better_when_higher(tmp_path):
    space = {"lr": [1e-6, 0.05]}
    options = {"folder": tmp_path, "eta": 2, "max_epochs": 4, "metric": "Accuracy"}
    found = sweep(TinyConfig(), space, learn(), **options)
    best = max(found.trials, key=lambda t: (t.epochs, t.score))
    assert found.best is best


def test_a_sweep_prints_the_best_first(tmp_path):
    space = {"lr": [1e-3, 0.1]}
    found = sweep({"lr": 0.0}, space, scores(), folder=tmp_path, eta=2, max_epochs=2)
    lines = str(found).splitlines()
    assert lines[0].split() == ["trial", "epochs", "valid", "Loss", "lr"]
    assert lines[2].split() == ["trial-001", "2", "0.500", "0.1"]
    assert "<table>" in found._repr_html_()


def test_another_sweep_in_the_same_folder_is_refused(tmp_path):
    sweep({"lr": 0.0}, {"lr": [0.1]}, scores(), folder=tmp_path)
    with pytest.raises(ConfigError, match="holds another sweep"):
        sweep({"lr": 0.0}, {"lr": [0.2]}, scores(), folder=tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"asked": {}, "trials": [1]}'])
def test_a_damaged_state_file_is_explained_and_kept(tmp_path, text):
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(BurnbookError):
        sweep({"lr": 0.0}, {"lr": [0.2]}, scores(), folder=tmp_path)
    assert (tmp_path / "sweep.json").read_text() == text


def test_the_state_file_is_plain_json(tmp_path):
    space = {"lr": Uniform(0.1, 0.2), "size": Choice((1, 2))}
    sweep({"lr": 0.0, "size": 1}, space, scores(), folder=tmp_path, trials=2)
    tree = json.loads((tmp_path / "sweep.json").read_text())
    assert [row["number"] for row in tree["trials"]] == [0, 1]
    assert set(tree["trials"][0]["scores"]) <= {"1", "3", "9"}


# A train that ignores its config


def logging_train(reads):
    """Writes the logs of a training that reads its config, or does not."""

    def train(config, folder, epochs):
        for epoch in range(1, epochs + 1):
            value = config["lr"] / epoch if reads else 0.25 / epoch
            log = folder / "valid" / f"epoch-{epoch}" / "Loss.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(f"{value},1\n")
            log.with_name("Accuracy.log").write_text("100,1\n")

    return train


GRID = {"lr": [0.1, 0.2, 0.3]}


@pytest.mark.parametrize("metric", ["Loss", "Accuracy"])
@pytest.mark.parametrize("eta", [None, 3])
def test_a_train_that_ignores_its_config_is_told_once(tmp_path, metric, eta):
    train = logging_train(reads=False)
    options = {"folder": tmp_path, "metric": metric, "max_epochs": 3, "eta": eta}
    with pytest.warns(UserWarning, match="all 3 trials have the same") as caught:
        sweep({"lr": 0.0}, GRID, train, **options)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "different in the configs  lr" in str(caught[0].message)


def test_a_returned_number_that_is_always_the_same_is_told(tmp_path):
    with pytest.warns(UserWarning, match="all 3 trials have the same"):
        sweep({"lr": 0.0}, GRID, lambda *_: 0.3125, folder=tmp_path)


def test_equal_by_chance_is_not_told(tmp_path):
    config = {"lr": 0.0}
    sweep(config, GRID, lambda *_: 100.0, folder=tmp_path / "a")  # an accuracy
    sweep(config, {"lr": [0.1, 0.2]}, lambda *_: 0.5, folder=tmp_path / "b")
    train = logging_train(reads=True)  # the accuracies are equal, the losses are not
    sweep(config, GRID, train, folder=tmp_path / "c", metric="Accuracy")
    sweep(config, {"lr": [0.1]}, logging_train(False), folder=tmp_path / "d")
    sweep(config, GRID, lambda *_: math.nan, folder=tmp_path / "e")
