"""Logs, the event store, strategies, early stopping, the summary, checkpoint files."""

import re
from functools import partial

import pytest

from burnbook import train
from burnbook.core.errors import ConfigError, DataError, TrainingError
from burnbook.record import FullPrecisionSettings, NamedMpkFileRecorder
from burnbook.train.checkpoint_strategy import Delete, Save, default_strategy
from tests.support.cases import cases
from tests.support.refusals import refused
from tests.support.run_folders import write_logs
from tests.support.tiny_training import (
    LOWEST_LOSS,
    Probe,
    builder,
    checkpointed,
    file_names,
    fitted,
)


def entry(name, value, count=1):
    return train.MetricEntry(name, "", train.NumericEntry(value, count).serialize())


def store_with(losses, name="Loss", split=train.Split.Valid):
    """A store that has seen these epochs; None stands for nothing logged."""
    logger = train.InMemoryMetricLogger()
    store = train.EventStore([logger], [logger])
    for epoch, value in enumerate(losses, 1):
        store.start_epoch(epoch, split)
        if value is not None:
            store.log(split, entry(name, value))
        store.end_epoch(epoch, split)
    return store


def write_epochs(folder, table):
    """Write {(split, metric): [lines of epoch 1, lines of epoch 2, …]}."""
    for (split, metric), epochs in table.items():
        for epoch, lines in enumerate(epochs, 1):
            write_logs(folder, split, epoch, **{metric: lines})


# Logs


def test_metric_files_have_the_layout_of_the_book(tmp_path):
    logger = train.FileMetricLogger(tmp_path / "train")
    for epoch in (1, 2):
        logger.start_epoch(epoch)
        logger.log(train.MetricEntry("Learning Rate", "", "0.0001,1"))
        logger.log(train.MetricEntry("Loss", "", f"{epoch},1"))
        logger.log(train.MetricEntry("Loss", "", "0.5,1"))
        logger.end_epoch(epoch)
    files = {
        str(path.relative_to(tmp_path)): path.read_bytes()
        for path in tmp_path.rglob("*.log")
    }
    assert files == {
        "train/epoch-1/Learning_Rate.log": b"0.0001,1\n",
        "train/epoch-1/Loss.log": b"1,1\n0.5,1\n",
        "train/epoch-2/Learning_Rate.log": b"0.0001,1\n",
        "train/epoch-2/Loss.log": b"2,1\n0.5,1\n",
    }
    assert logger.epochs() == 2
    assert logger.read_numeric("Loss", 2) == [
        train.NumericEntry(2.0, 1),
        train.NumericEntry(0.5, 1),
    ]
    assert logger.read_numeric("Loss", 3) == []


def test_an_epoch_logged_again_starts_its_files_anew(tmp_path):
    logger = train.FileMetricLogger(tmp_path)
    for value in ("1,1", "2,1"):
        logger.start_epoch(1)
        logger.log(train.MetricEntry("Loss", "", value))
        logger.end_epoch(1)
    assert (tmp_path / "epoch-1" / "Loss.log").read_text() == "2,1\n"


def test_logged_lines_reach_the_disk_within_a_second(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("burnbook.train.logger.time.monotonic", lambda: clock[0])
    logger = train.FileMetricLogger(tmp_path)
    logger.start_epoch(1)
    path = tmp_path / "epoch-1" / "Loss.log"
    logger.log(train.MetricEntry("Loss", "", "1,1"))
    assert path.read_text() == ""
    clock[0] = 0.6
    logger.log(train.MetricEntry("Loss", "", "2,1"))
    assert path.read_text() == "1,1\n2,1\n"
    logger.close()


def test_a_broken_log_is_an_error(tmp_path):
    write_epochs(tmp_path, {("train", "Loss"): [["0.5,1", "0.5,"]]})
    with pytest.raises(DataError, match=r"'0\.5,' is not an entry"):
        train.FileMetricLogger(tmp_path / "train").read_numeric("Loss", 1)


def test_the_diary_has_the_layout_of_the_book(tmp_path):
    diary = train.FileApplicationLogger(tmp_path / "experiment.log")
    diary.info("burn_train::checkpoint::file", "Saving checkpoint 2 to x/m-2")
    diary.warn("burn_train::learner", "slow")
    diary.error("burn_train::learner", "PANIC => too bad")
    diary.close()
    lines = (tmp_path / "experiment.log").read_text().splitlines()
    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
    assert [re.sub(moment, "now", line) for line in lines] == [
        "now  INFO burn_train::checkpoint::file: Saving checkpoint 2 to x/m-2",
        "now  WARN burn_train::learner: slow",
        "now ERROR burn_train::learner: PANIC => too bad",
    ]


def test_the_diary_goes_on_where_it_ended(tmp_path):
    for text in ("first", "second"):
        diary = train.FileApplicationLogger(tmp_path / "experiment.log")
        diary.info("a", text)
        diary.close()
    assert len((tmp_path / "experiment.log").read_text().splitlines()) == 2


def test_a_line_cut_off_by_a_kill_does_not_count(tmp_path):
    write_logs(tmp_path, "", 1, Accuracy=["50,64"])
    with (tmp_path / "epoch-1" / "Accuracy.log").open("a") as file:
        file.write("95.8")
    logger = train.FileMetricLogger(tmp_path)
    assert logger.read_numeric("Accuracy", 1) == [train.NumericEntry(50.0, 64)]


def test_a_disk_that_fails_at_the_end_of_an_epoch_is_an_error(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    logger = train.FileMetricLogger(tmp_path)
    logger.start_epoch(1)
    logger.log(train.MetricEntry("Loss", "", "1,1"))
    monkeypatch.setattr("burnbook.train.logger.os.fsync", full)
    with pytest.raises(TrainingError, match=r"Loss\.log: No space left on device"):
        logger.end_epoch(1)
    logger.close()


def test_the_diary_begins_a_line_after_half_of_one(tmp_path):
    path = tmp_path / "experiment.log"
    path.write_text("2026-01-01T00:00:00.000000Z  INFO a: first\n2026-01-0")
    diary = train.FileApplicationLogger(path)
    diary.info("b", "second")
    diary.close()
    lines = path.read_text().splitlines()
    assert lines[1] == "2026-01-0"
    assert lines[2].endswith("Z  INFO b: second")
    assert len(lines) == 3


def test_a_log_that_cannot_be_written_stops_with_a_cure(tmp_path):
    (tmp_path / "epoch-1").write_text("in the way")
    logger = train.FileMetricLogger(tmp_path)
    logger.start_epoch(1)
    first = f"write {tmp_path}/epoch-1/Loss.log: File exists\n"
    cures = ("try: free some space", "another folder", "resume with checkpoint()")
    act = partial(logger.log, train.MetricEntry("Loss", "", "1,1"))
    refused(TrainingError, act, first, "earlier epochs are kept", *cures)


# The event store


def test_the_mean_of_an_epoch_weighs_batches():
    valid = train.Split.Valid
    store = train.EventStore([], [train.InMemoryMetricLogger()])
    store.start_epoch(1, valid)
    store.log(valid, entry("Accuracy", 50.0, 64))
    store.log(valid, entry("Accuracy", 100.0, 16))
    store.end_epoch(1, valid)
    assert store.find_metric("Accuracy", 1) == 60.0
    assert store.find_metric("Loss", 1) is None


def test_the_best_epoch_is_the_earliest_among_equals():
    store = store_with([3.0, 1.0, 1.0, 2.0])
    assert store.find_epoch(*LOWEST_LOSS) == 2
    metric, mean, _, split = LOWEST_LOSS
    assert store.find_epoch(metric, mean, train.Direction.Highest, split) == 1


def test_the_search_for_the_best_epoch_ends_at_a_gap():
    assert store_with([3.0, None, 1.0]).find_epoch(*LOWEST_LOSS) == 1
    assert store_with([None, 1.0]).find_epoch(*LOWEST_LOSS) is None


def test_epochs_of_an_older_run_beyond_this_one_do_not_count(tmp_path):
    write_epochs(tmp_path, {("valid", "Loss"): [["3,1"], ["2,1"], ["1,1"]]})
    store = train.EventStore([], [train.FileMetricLogger(tmp_path / "valid")])
    store.last_epoch = 2
    assert store.find_epoch(*LOWEST_LOSS) == 2


# Strategies


def run_strategy(strategy, losses):
    """What is saved and deleted epoch by epoch, and what is on disk at the end."""
    logger = train.InMemoryMetricLogger()
    store = train.EventStore([], [logger])
    disk, table = set(), []
    for epoch, loss in enumerate(losses, 1):
        store.start_epoch(epoch, train.Split.Valid)
        if loss is not None:
            store.log(train.Split.Valid, entry("Loss", loss))
        store.end_epoch(epoch, train.Split.Valid)
        actions = strategy.checkpointing(epoch, store)
        for action in actions:
            if isinstance(action, Save):
                disk.add(epoch)
            else:
                disk.discard(action.epoch)
        table.append(actions)
    return table, sorted(disk)


@cases(
    "strategy losses left",
    (train.KeepLastNCheckpoints(1), [1, 1, 1], [3]),
    (train.KeepLastNCheckpoints(2), [1, 1, 1, 1], [3, 4]),
    (train.MetricCheckpointingStrategy(*LOWEST_LOSS), [3, 2, 4, 1], [4]),
    (train.MetricCheckpointingStrategy(*LOWEST_LOSS), [3, 2, 4, 5], [2]),
    (train.MetricCheckpointingStrategy(*LOWEST_LOSS), [None, None], [2]),
    (default_strategy(), [5, 1, 2, 3, 4], [2, 4, 5]),
    (default_strategy(), [5, 4, 3, 2, 1], [4, 5]),
    (default_strategy(), [5, 4, 3, 2, 3], [4, 5]),
    (default_strategy(), [1, 2, 0, 3, 4, 5], [3, 5, 6]),
    (default_strategy(), [None] * 4, [3, 4]),
)
def test_strategies_leave_what_they_promise(strategy, losses, left):
    assert run_strategy(strategy, losses)[1] == left


def test_saving_comes_before_deleting():
    table, _ = run_strategy(default_strategy(), [5, 4, 3])
    assert table == [[Save()], [Save()], [Save(), Delete(1)]]


def test_a_composed_strategy_can_be_used_again_after_reset():
    strategy = default_strategy()
    first = run_strategy(strategy, [5, 1, 2, 3])
    strategy.reset()
    assert run_strategy(strategy, [5, 1, 2, 3]) == first


def test_impossible_strategies_are_refused():
    empty = train.ComposedCheckpointingStrategy
    since = train.StoppingCondition.NoImprovementSince
    last = train.KeepLastNCheckpoints
    for act, *told in (
        (partial(last, 0), "KeepLastNCheckpoints: 0", "try: KeepLast"),
        (empty, "ComposedCheckpointingStrategy: ", "no strategy", "try: ComposedCheck"),
        (
            partial(since, 0),
            "StoppingCondition.NoImprovementSince: n_epochs = 0",
            "try: n",
        ),
    ):
        refused(ConfigError, act, *told)


@cases(
    "losses n_epochs stopped_at",
    ([3, 2, 1, 0], 1, None),
    ([3, 2, 2, 0], 1, 3),
    ([3, 2, 4, 5, 0], 2, 4),
    ([3, None, 4, 5], 2, 3),
    ([float("nan"), float("nan"), float("nan")], 2, 3),
)
def test_early_stopping_stops_where_nothing_improves(losses, n_epochs, stopped_at):
    condition = train.StoppingCondition.NoImprovementSince(n_epochs=n_epochs)
    strategy = train.MetricEarlyStoppingStrategy(*LOWEST_LOSS, condition)
    store = store_with(losses)
    stops = (e for e in range(1, len(losses) + 1) if strategy.should_stop(e, store))
    assert next(stops, None) == stopped_at


# The summary

TABLE = {
    ("train", "Loss"): [["0.612,1"], ["0.009409,1"]],
    ("train", "Accuracy"): [["80,64", "93.148,16"], ["97.01,64"]],
    ("valid", "Loss"): [["0.228,1"], ["0.063,1"]],
}

SUMMARY = """\
======================== Learner Summary ========================
Model:
Model {
  params: 3
}
Total Epochs: 2


| Split | Metric   | Min.     | Epoch    | Max.     | Epoch    |
|-------|----------|----------|----------|----------|----------|
| Train | Loss     | 9.409e-3 | 2        | 0.612    | 1        |
| Train | Accuracy | 82.630   | 1        | 97.010   | 2        |
| Valid | Loss     | 0.063    | 2        | 0.228    | 1        |"""


def test_the_summary_is_the_text_that_burn_prints(tmp_path):
    write_epochs(tmp_path, TABLE)
    model = "Model {\n  params: 3\n}"
    summary = train.LearnerSummary(tmp_path, ["Loss", "Accuracy"], model=model)
    assert str(summary) == SUMMARY
    assert repr(summary) == "LearnerSummary(2 epochs, 3 rows)"
    page = summary._repr_html_()
    assert "<td>9.409e-3</td>" in page
    assert "<pre>Model {" in page


def test_the_summary_can_leave_out_epochs_of_an_older_run(tmp_path):
    write_epochs(tmp_path, TABLE)
    summary = train.LearnerSummary(tmp_path, ["Loss"], epochs=1)
    assert summary.rows[0].lowest == (1, 0.612)


def test_extremes_are_the_first_lowest_and_the_last_highest(tmp_path):
    lines = [["1,1"], ["2,1"], ["1,1"], ["2,1"]]
    write_epochs(tmp_path, {("train", "Loss"): lines})
    row = train.LearnerSummary(tmp_path, ["Loss"]).rows[0]
    assert (row.lowest, row.highest) == ((1, 1.0), (4, 2.0))


def test_not_a_number_is_the_highest_of_all(tmp_path):
    write_epochs(tmp_path, {("train", "Loss"): [["1,1"], ["NaN,1"], ["inf,1"]]})
    row = train.LearnerSummary(tmp_path, ["Loss"]).rows[0]
    assert row.cells() == ("Train", "Loss", "1.000", "1", "NaN", "2")


def test_a_summary_of_nothing_says_so(tmp_path):
    none, empty = tmp_path / "none", tmp_path
    for folder, *told in (
        (none, "does not exist", "try: the folder that was given to LearnerBuilder"),
        (empty, "No training or validation artifacts", "try: a training with metrics"),
    ):
        act = partial(train.LearnerSummary, folder, ["Loss"])
        refused(TrainingError, act, "LearnerSummary: ", f": {folder}\n", *told)


# History, interrupter


def test_history_keeps_at_most_a_thousand_points_and_their_numbers():
    history = train.MetricHistory()
    for i in range(5000):
        history.add("Loss", "train", float(i))
    points = history.points("Loss", "train")
    assert len(points) <= 1000
    assert all(value == number - 1 for number, value in points)
    assert points[0] == (1, 0.0)
    assert points[-1][0] > 4990
    assert history.points("Loss", "valid") == []


def test_the_first_reason_to_stop_stays():
    control = train.Interrupter()
    control.stop("first")
    control.stop("second")
    assert (control.should_stop(), control.reason) == (True, "first")


def test_a_pause_ends_by_resume_or_stop_and_ticks_meanwhile():
    for end in ("resume", "stop"):
        control, ticks = train.Interrupter(), []

        def tick(control=control, ticks=ticks, end=end):
            ticks.append(1)
            if len(ticks) == 3:
                getattr(control, end)()

        control.pause()
        control.wait_while_paused(tick)
        assert len(ticks) == 3


# Checkpoint files


def checkpointer(folder):
    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    diary = train.FileApplicationLogger(folder / "experiment.log")
    return train.FileCheckpointer(recorder, folder / "checkpoint", diary)


RECORDS = {"model": {"a": 1}, "optim": {}, "scheduler": None}


def test_a_checkpoint_is_three_files_and_comes_back(tmp_path):
    files = checkpointer(tmp_path)
    files.save(3, RECORDS)
    names = file_names(tmp_path / "checkpoint")
    assert names == ["model-3.mpk", "optim-3.mpk", "scheduler-3.mpk"]
    assert files.restore(3, None)["model"] == {"a": 1}
    files.delete(3)
    files.delete(3)
    assert list((tmp_path / "checkpoint").iterdir()) == []
    files.log.close()
    text = (tmp_path / "experiment.log").read_text()
    folder = tmp_path / "checkpoint"
    saving = f"burn_train::checkpoint::file: Saving checkpoint 3 to {folder}/model-3"
    assert saving in text
    assert f"Restoring checkpoint 3 from {folder}/scheduler-3" in text
    assert f"Removing checkpoint {folder}/optim-3.mpk" in text


def test_only_whole_checkpoints_count(tmp_path):
    files = checkpointer(tmp_path)
    files.save(1, RECORDS)
    files.save(2, RECORDS)
    files.path("scheduler", 2).unlink()
    assert files.epochs() == [1]
    assert files.newest() == 1
    files.log.close()
    facts = (f"in {tmp_path}/checkpoint\n", "missing  scheduler-2.mpk")
    cures = ("try: one of the complete epochs", "checkpoint() for the newest")
    told = ("checkpoint(2): ", *facts, "whole    epoch 1", *cures)
    refused(TrainingError, partial(files.restore, 2, None), *told)


def test_checkpoints_of_an_earlier_run_are_set_aside_not_lost(tmp_path):
    older = checkpointer(tmp_path)
    for epoch in (1, 2, 3):
        older.save(epoch, RECORDS)
    newer = checkpointer(tmp_path)
    newer.began_after = 1
    newer.save(2, RECORDS)
    older.log.close()
    newer.log.close()
    folder = tmp_path / "checkpoint"
    assert newer.epochs() == [1, 2]
    parts = ("model", "optim", "scheduler")
    aside = [f"{part}-{epoch}.mpk" for part in parts for epoch in (2, 3)]
    assert file_names(folder / "earlier-1") == aside


def test_training_again_keeps_the_checkpoints_of_three_earlier_runs(tmp_path):
    for _ in range(6):
        fitted(checkpointed(tmp_path, 1))
    folder = tmp_path / "checkpoint"
    kept = [path.name for path in folder.iterdir() if path.is_dir()]
    assert sorted(kept) == ["earlier-3", "earlier-4", "earlier-5"]
    log = (tmp_path / "experiment.log").read_text()
    assert "the checkpoints of 3 earlier runs take" in log
    assert "Removing checkpoints of an older run" in log


def test_a_shorter_run_names_the_logs_of_a_longer_one(tmp_path):
    fitted(builder(tmp_path, 4))
    probe = Probe()
    fitted(builder(tmp_path, 2).renderer(probe))
    assert "the logs epoch-3 to epoch-4 in this folder" in probe.run.notice
    fitted(builder(tmp_path, 4).renderer(probe))
    assert not probe.run.notice
