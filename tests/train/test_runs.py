"""Runs on disk: what is read of a folder, and what a store does with many of them."""

import csv
import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from burnbook import cli
from burnbook.core.errors import ConfigError, TrainingError, UnknownNameError
from burnbook.record import CompactRecorder
from burnbook.train import Direction, LearnerSummary, Run, RunStore, Split
from burnbook.train.runs.logs import parse_log, read_log
from tests.conftest import SHARED
from tests.support.run_folders import (
    grow_old,
    make_run,
    write_checkpoint,
    write_diary,
    write_logs,
)
from tests.support.tiny_training import builder, fitted, learner, loader, stop_at

GOLDEN = SHARED / "golden" / "burn"
ENDED = "Training ended after epoch 2 of 2: finished"


# Logs


def test_a_last_line_without_its_end_does_not_count(tmp_path):
    path = tmp_path / "Accuracy.log"
    path.write_text("50,64\n100,16\n95.83")
    log = read_log(path)
    assert log.values.tolist() == [50.0, 100.0]
    assert log.mean == 60.0


def test_values_without_a_count_weigh_the_same():
    assert parse_log("12.5\n37.5").mean == 25.0


def test_the_final_entry_of_newer_burn_is_the_number_of_the_epoch():
    log = parse_log("90,64\n50,64\n71.25,final")
    assert (log.values.tolist(), log.mean) == ([90.0, 50.0], 71.25)
    assert parse_log("71.25,final").mean == 71.25


def test_lines_that_are_no_entries_are_skipped_and_counted():
    log = parse_log("50,64\n\x00\x00\x00\n100,16")
    assert (log.mean, log.strange) == (60.0, 1)
    assert parse_log("0.37/0.99 ") is None


def test_counts_that_are_none_are_skipped():
    log = parse_log("50,64\n1,2,3\n70\n1,inf\n1,2.5\n1," + "9" * 999 + "\n100,16")
    assert (log.values.tolist(), log.strange) == ([50.0, 70.0, 100.0], 4)
    assert parse_log("50,64,1\n100").values.tolist() == [100.0]
    assert parse_log("1e308,64\n1e308,64").mean == float("inf")


def test_rust_writes_nan_and_inf():
    assert parse_log("NaN,1\ninf,1").values[1] == float("inf")
    assert str(parse_log("NaN,1\n1,1").mean) == "nan"


def test_both_ways_of_reading_agree():
    fast, slow = parse_log("1.5,2\n2.5,3"), parse_log("1.5,2\n2.5,3\n")
    assert fast.mean == slow.mean == 10.5 / 5


# A run


def rust_run(folder):
    """A folder as Rust Burn 0.16 leaves it; lines as they are in a real one."""
    for epoch in range(1, 11):
        write_logs(folder, "train", epoch, Loss=["2.3005497455596924,1", "1.1,1"])
        write_logs(folder, "valid", epoch, Loss=[f"{1 / epoch},1"])
        write_logs(folder, "valid", epoch, Accuracy=["10.9375,64", "95.83333333334,24"])
        write_logs(folder, "train", epoch, CUDA_Stats=["0.37/0.99 "])
    write_diary(
        folder,
        "burn_train::learner::train_val: Fitting the model:",
        " Model {",
        "burn_train::learner::epoch: Executing training step for epoch 1",
        "burn_train::learner::epoch: Iteration 1",
    )
    write_checkpoint(folder, 9)
    write_checkpoint(folder, 10)
    write_checkpoint(folder, 8, "model", "optim")
    config = {"num_epochs": 10, "optimizer": {"beta_1": 0.9}, "sizes": [1, 2]}
    (folder / "config.json").write_text(json.dumps(config))
    grow_old(folder)
    return Run(folder)


def test_a_run_of_rust_burn_is_read(tmp_path):
    run = rust_run(tmp_path / "guide")
    assert (run.name, run.epochs, run.num_epochs) == ("guide", 10, 10)
    assert (run.state, run.reason) == ("finished", "finished")
    assert run.date == datetime(2024, 12, 12, 4, 23, 2, 729942, UTC)
    assert [c.epoch for c in run.checkpoints] == [9, 10]
    assert run.checkpoints[-1].model.name == "model-10.mpk"
    assert run.metrics == [("Loss", "train"), ("Accuracy", "valid"), ("Loss", "valid")]
    assert run.config == {"num_epochs": 10, "optimizer.beta_1": 0.9, "sizes": [1, 2]}
    assert run.last("Loss", Split.Valid) == run.best("Loss", "Valid") == (10, 0.1)
    assert run.best("Loss", direction=Direction.Highest) == (1, 1.0)
    mean = (10.9375 * 64 + 95.83333333334 * 24) / 88
    assert run.history("Accuracy")[0] == (1, 0, pytest.approx(mean), 88)
    assert run.batches("Loss", "train")[2] == (2, 3, 2.3005497455596924, 1)
    assert repr(run) == "Run('guide', finished, epoch 10 of 10)"


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="the real files of Burn are not here")
def test_checkpoints_of_a_real_run_of_rust_burn_open(tmp_path):
    folder = tmp_path / "playground"
    (folder / "checkpoint").mkdir(parents=True)
    for part, name in (("model", "model"), ("optim", "adam"), ("scheduler",) * 2):
        content = (GOLDEN / f"playground_{name}_0.16.mpk").read_bytes()
        (folder / "checkpoint" / f"{part}-10.mpk").write_bytes(content)
    (run,) = RunStore(tmp_path)
    (checkpoint,) = run.checkpoints
    assert (run.name, run.epochs, checkpoint.epoch) == ("playground", 10, 10)
    record = CompactRecorder().load(checkpoint.model)
    assert list(record)[:2] == ["conv1", "conv2"]


def test_an_interrupted_run_of_rust_burn_has_stopped(tmp_path):
    run = rust_run(tmp_path / "guide")
    write_diary(run.path, "burn_train::learner::epoch: Training interrupted.")
    assert (run.state, run.reason) == ("stopped", "Training interrupted.")
    write_diary(run.path, "burn_train::learner::train_val: Fitting the model:")
    assert run.state == "running"  # again, and its diary is fresh
    write_diary(run.path, "burn_train: PANIC => index out of bounds", level="ERROR")
    assert run.state == "stopped"
    assert run.reason == "PANIC => index out of bounds"


def test_a_killed_run_of_rust_burn_is_not_finished(tmp_path):
    run = rust_run(tmp_path / "guide")
    write_logs(run.path, "train", 11, Loss=["1,1"])
    (run.path / "config.json").unlink()
    grow_old(run.path)
    assert (run.state, run.reason) == ("stopped", "killed")
    write_logs(run.path, "valid", 11, Loss=["1,1"])
    grow_old(run.path)
    assert run.state == "finished"
    (run.path / "config.json").write_text('{"num_epochs": 20}')
    assert run.state == "stopped"


def test_a_run_of_ours_says_itself_how_it_ended(tmp_path):
    made = learner(tmp_path / "run")
    made.fit(loader(), loader(1))
    run = Run(tmp_path / "run")
    assert (run.state, run.reason, run.epochs) == ("finished", "finished", 2)
    assert run.num_epochs == 2
    means = made.result.history.epochs("Loss", "valid")
    assert [(p.epoch, p.value) for p in run.history("Loss")] == means
    assert len(run.batches("Loss", "train")) == 6
    assert [c.epoch for c in run.checkpoints] == [1, 2]


def test_a_run_that_was_stopped_says_why(tmp_path):
    probe = stop_at(4, lambda control: control.stop("seen enough"))
    made = builder(tmp_path / "run", 5).renderer(probe)
    fitted(made)
    run = Run(tmp_path / "run")
    assert (run.state, run.reason, run.num_epochs) == ("stopped", "seen enough", 5)


def test_a_run_that_failed_says_why(tmp_path):
    def fail(control):
        raise ValueError("out of paper\nsecond line")

    made = builder(tmp_path / "run", 5).renderer(stop_at(2, fail))
    with pytest.raises(ValueError, match="out of paper"):
        fitted(made)
    run = Run(tmp_path / "run")
    assert (run.state, run.reason) == ("stopped", "ValueError: out of paper")


def test_a_run_is_running_as_long_as_its_process_lives(tmp_path):
    folder = make_run(tmp_path / "run")
    host = socket.gethostname()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    write_diary(
        folder,
        f"burnbook::train: Training epochs 1 to 9 in process {child.pid} on {host}",
    )
    grow_old(folder)
    assert (Run(folder).state, Run(folder).reason) == ("running", "")
    child.communicate(b"\n")
    assert (Run(folder).state, Run(folder).reason) == ("stopped", "killed")


def test_a_run_on_another_machine_runs_while_it_writes(tmp_path):
    folder = make_run(tmp_path / "run")
    write_diary(
        folder, "burnbook::train: Training epochs 1 to 9 in process 1 on far away"
    )
    assert Run(folder).state == "running"
    grow_old(folder)
    assert Run(folder).state == "stopped"


def test_a_run_is_read_again_when_its_files_have_changed(tmp_path):
    run = Run(make_run(tmp_path / "run"))
    assert run.last("Loss") == (2, 0.25)
    write_logs(run.path, "valid", 2, Loss=["0.125,1", "0.125,1"])
    assert run.last("Loss") == (2, 0.125)


@pytest.mark.parametrize("text", ["", "{", "[1]", "nonsense", "[" * 100_000])
def test_a_config_that_cannot_be_read_has_no_fields(tmp_path, text):
    folder = make_run(tmp_path / "run")
    (folder / "config.json").write_text(text)
    assert Run(folder).config == {}


def test_a_metric_that_is_not_there_has_no_numbers(tmp_path):
    run = Run(make_run(tmp_path / "run"))
    assert run.history("Loss", "test") == run.batches("Loss", "test") == []
    assert run.best("Loss", "test") is run.last("Loss", "test") is None
    for ask in (run.history, run.batches, run.best, run.last):
        with pytest.raises(UnknownNameError, match="no metric 'Perplexity'"):
            ask("Perplexity")


def test_nan_is_never_the_best(tmp_path):
    run = Run(make_run(tmp_path / "run", ("NaN", 0.5, "NaN"), (1, 2, 3)))
    assert run.best("Loss") == (2, 0.5)
    assert str(run.last("Loss")) == "(3, nan)"


# A store


@pytest.fixture
def store(tmp_path):
    """Three runs: the second has the lowest loss, the third the highest accuracy."""
    deep = {"type": "Adam", "beta_1": 0.9}
    make_run(tmp_path / "a", state=ENDED, hidden_size=256, optimizer=deep)
    make_run(tmp_path / "b", (0.5, 0.125), state=ENDED, hidden_size=512, lr=0.1)
    make_run(tmp_path / "deep" / "c", (1, 2), (99, 98), hidden_size=512, lr=0.01)
    (tmp_path / "notes").mkdir()
    return RunStore(tmp_path)


def names(runs):
    return [run.name for run in runs]


def test_a_store_finds_the_runs_below_a_folder(store, tmp_path):
    assert names(store) == ["a", "b", "deep/c"]
    assert (len(store), "a" in store, "notes" in store) == (3, True, False)
    assert store["deep/c"] is store[2]
    assert names(RunStore(tmp_path / "a")) == ["."]


def test_links_and_hidden_folders_are_not_followed(store, tmp_path):
    outside = make_run(tmp_path.parent / f"{tmp_path.name}-outside")
    (tmp_path / "link").symlink_to(outside)
    make_run(tmp_path / ".hidden" / "d")
    assert names(RunStore(tmp_path)) == ["a", "b", "deep/c"]


def test_runs_are_filtered_by_config_metric_and_state(store):
    assert names(store.filter(config={"hidden_size": 512})) == ["b", "deep/c"]
    assert names(store.filter(config={"lr": lambda lr: lr > 0.05})) == ["b"]
    assert names(store.filter(config={"optimizer.type": "Adam"})) == ["a"]
    assert names(store.filter(metric=("Accuracy", "Valid", ">", 90))) == ["deep/c"]
    both = [("Loss", Split.Valid, "<=", 0.25), ("Accuracy", "train", "==", 90)]
    assert names(store.filter(metric=both)) == ["a", "b"]
    assert names(store.filter(lambda run: run.epochs == 3)) == []
    assert names(store.filter(metric=("Loss", "Test", "!=", 1))) == []
    assert names(store.filter(state="finished")) == ["a", "b", "deep/c"]


def test_runs_are_sorted_the_best_first(store):
    assert names(store.sort("Loss")) == ["b", "a", "deep/c"]
    assert names(store.sort("accuracy")) == ["deep/c", "a", "b"]
    assert names(store.sort("train Accuracy", reverse=True)) == ["a", "b", "deep/c"]
    assert names(store.sort("lr")) == ["deep/c", "b", "a"]
    assert names(store.sort("name", reverse=True)) == ["deep/c", "b", "a"]
    assert store.best("Loss") is store["b"]
    assert store.best("Accuracy", "train") is store["deep/c"]
    assert store.best("Loss", "test") is None


def test_a_store_prints_as_a_table(store, tmp_path):
    for run in store:
        os.utime(run.path / "experiment.log", (0, 0))
    first, rule, *rows, rule_, note = str(store).splitlines()
    columns = ["run", "state", "epoch", "Accuracy", "Loss", "hidden_size", "lr"]
    assert [column for column in columns if column in first] == columns
    assert rows[1].split()[:6] == ["b", "finished", "2/2", "90.00", "0.125", "512"]
    assert set(rule) == set(rule_) == {"─"}
    assert note == f"3 runs in {tmp_path}; metrics: the best epoch"
    narrow = store.table().text(40)
    assert max(map(len, narrow.splitlines()[:6])) <= 40
    assert "not shown for lack of room: " in narrow


def test_a_table_on_a_page_has_no_color_of_its_own(store):
    page = store._repr_html_()
    assert page.count("<tr>") == 4
    assert "color" not in page
    assert ">deep/c</td>" in page


def test_an_empty_store_says_so(tmp_path):
    assert str(RunStore(tmp_path)).endswith(f"0 runs in {tmp_path}")
    assert RunStore(tmp_path).rows() == []


def test_comparing_shows_what_differs_and_who_won(store):
    found = store.compare("a", "b")
    assert found.config == {
        "hidden_size": [256, 512],
        "optimizer.type": ["Adam", None],
        "optimizer.beta_1": [0.9, None],
        "lr": [None, 0.1],
    }
    assert found.metrics[("Loss", "valid")] == [(2, 0.25), (2, 0.125)]
    assert found.winner("Loss") is store["b"]
    assert found.winner("Accuracy") is None  # as good as each other
    words = [line.split() for line in str(found).splitlines()]
    assert ["valid", "Loss", "0.250", "@", "2", "*0.125", "@", "2"] in words
    same = store.compare("b", store["b"])
    assert "the configs are the same" in str(same)
    assert "<table>" in found._repr_html_()


def test_rows_per_run_epoch_and_batch(store):
    row = store.rows()[1]
    assert row["run"] == "b"
    assert row["config.hidden_size"] == 512
    assert (row["valid Loss"], row["best epoch valid Loss"]) == (0.125, 2)
    epochs = store.rows("epoch")
    assert len(epochs) == 3 * 2 * 2 * 2
    assert epochs[0] == {
        "run": "a",
        "split": "train",
        "metric": "Accuracy",
        "epoch": 1,
        "value": 80.0,
        "weight": 64.0,
    }
    assert store.rows("batch")[1]["batch"] == 2


def test_csv_has_a_column_for_every_name(store, tmp_path):
    path = store.export_csv(tmp_path / "out" / "runs.csv")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["run"] for row in rows] == ["a", "b", "deep/c"]
    assert [row["config.lr"] for row in rows] == ["", "0.1", "0.01"]
    assert float(rows[0]["best valid Loss"]) == 0.25


def test_without_polars_a_dataframe_is_the_rows(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    assert store.dataframe("epoch") == store.rows("epoch")


def test_a_dataframe_has_the_rows(store):
    polars = pytest.importorskip("polars")
    frame = store.dataframe()
    assert isinstance(frame, polars.DataFrame)
    assert frame["run"].to_list() == ["a", "b", "deep/c"]
    assert frame["config.lr"].to_list() == [None, 0.1, 0.01]


# Deleting


def test_a_deleted_run_is_gone_and_the_others_stay(store, tmp_path):
    store.delete("a", store["deep/c"])
    assert names(store) == names(RunStore(tmp_path)) == ["b"]
    left = sorted(p.name for p in tmp_path.iterdir())
    assert left == ["b", "deep", "notes"]


def refuses(store, path, what, **options):
    before = sorted(store.root.parent.rglob("*"))
    with pytest.raises(TrainingError, match=what):
        store.delete(Run(path), **options)
    assert sorted(store.root.parent.rglob("*")) == before


def test_what_is_not_a_run_below_the_root_stays(store, tmp_path):
    (tmp_path / "notes" / "todo.log").write_text("buy milk")
    refuses(store, tmp_path / "notes", "this is not the folder of a run")
    refuses(store, tmp_path / "deep", "this is not the folder of a run")
    refuses(store, tmp_path, "the folder that was given to RunStore")
    refuses(store, tmp_path / "..", "is not inside")
    inner = RunStore(tmp_path / "deep")
    refuses(inner, tmp_path / "deep" / ".." / "a", "is not inside")


def test_nothing_is_deleted_through_a_link(store, tmp_path):
    outside = make_run(tmp_path.parent / f"{tmp_path.name}-elsewhere" / "x")
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "way").symlink_to(outside.parent)
    refuses(store, tmp_path / "link", "link is a link to another place")
    refuses(store, tmp_path / "way" / "x", "way is a link to another place")


def test_a_link_inside_a_run_goes_but_not_what_it_names(store, tmp_path):
    outside = tmp_path.parent / f"{tmp_path.name}-kept"
    outside.mkdir()
    (outside / "thesis.txt").write_text("years of work")
    (tmp_path / "a" / "train" / "link").symlink_to(outside)
    store.delete("a")
    assert (outside / "thesis.txt").read_text() == "years of work"


def test_a_run_with_something_of_the_users_stays_unless_told(store, tmp_path):
    (tmp_path / "a" / "thesis.py").write_text("years of work")
    refuses(store, tmp_path / "a", "the folder holds more than a run")
    store.delete("a", everything=True)
    assert names(store) == ["b", "deep/c"]


def test_a_run_that_trains_stays(store, tmp_path):
    write_diary(tmp_path / "a", "burn_train::learner::train_val: Fitting the model:")
    refuses(store, tmp_path / "a", "the run is still training")


def test_what_a_killed_deletion_left_is_swept_up(store, tmp_path):
    make_run(tmp_path / ".burnbook-deleted-1234")
    assert names(RunStore(tmp_path)) == ["a", "b", "deep/c"]
    store.delete("b")
    assert not list(Path(tmp_path).glob(".burnbook*"))


def test_questions_that_make_no_sense_are_explained(store):
    with pytest.raises(ConfigError, match="is not a condition"):
        store.filter(metric=("Loss", "Valid", "=<", 1))
    with pytest.raises(ConfigError, match="is not a split"):
        store["a"].history("Loss", "holdout")
    with pytest.raises(ConfigError, match="no run has 'colour'"):
        store.sort("colour")


# Damage


def damaged(rng, raw):
    """The same bytes with a piece cut, doubled or replaced."""
    at, size = int(rng.integers(len(raw) + 1)), int(rng.integers(1, 9))
    how = rng.integers(4)
    if how == 0:
        return raw[:at]
    if how == 1:
        return raw[:at] + rng.bytes(size) + raw[at + size :]
    if how == 2:
        return raw[:at] + raw[max(0, at - size) : at] * 3 + raw[at:]
    return raw[:at] + rng.choice([b"9" * 30, b"\n", b",", b"e999", b"\xff"]) + raw[at:]


def test_a_damaged_folder_is_still_listed(tmp_path):
    host = socket.gethostname()
    folder = rust_run(tmp_path / "run").path
    began = "burnbook::train: Training epochs 1 to 9 in process 1234567 on"
    write_diary(folder, f"{began} {host}", "burnbook::train: Training ended after")
    log = folder / "valid" / "epoch-10" / "Accuracy.log"
    files = [folder / "config.json", folder / "experiment.log", log]
    whole = {path: path.read_bytes() for path in files}
    rng = np.random.default_rng(0)
    for _ in range(150):
        for path in files:
            path.write_bytes(damaged(rng, whole[path]))
        store = RunStore(tmp_path)
        assert str(store).count("\n") >= 3
        assert store.rows()[0]["run"] == "run"
        assert store["run"].state in ("running", "finished", "stopped")


# One damaged run hides no other


DAMAGE = {
    "zone": ("experiment.log", b"9999-12-31T23:59:59-14:00 INFO Fitting the model\n"),
    "time": ("experiment.log", b"yesterday\n"),
    "surrogate": ("config.json", b'{"note": "\\ud800", "rate": 0.1}'),
    "json": ("config.json", b"{"),
    "deep": ("config.json", b'{"a": ' + b"[" * 200 + b"]" * 200 + b"}"),
    "escape": ("config.json", rb'{"note": "\u001b[2Jgone"}'),
    "formula": ("config.json", b'{"note": "=cmd()", "rate": -0.5, "text": "-1.5"}'),
    "name": (b"valid/epoch-1/L\xffss.log", b"0.5,1\n"),
    "huge": ("valid/epoch-1/Loss.log", b"0.5," + b"9" * 5000 + b"\n0.5,1\n"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_run_is_listed_and_so_are_the_others(damage, tmp_path, capsys):
    make_run(tmp_path / "good", note="fine", rate=0.1)
    make_run(tmp_path / "bad\x1b[2J", note="fine")
    name, data = DAMAGE[damage]
    path = os.path.join(os.fsencode(tmp_path / "bad\x1b[2J"), os.fsencode(name))
    Path(os.fsdecode(path)).write_bytes(data)
    store = RunStore(tmp_path)
    assert {run.name for run in store} == {"good", "bad\x1b[2J"}
    for text in (str(store), store._repr_html_(), str(store.compare())):
        assert "good" in text
        assert "\x1b" not in text
        text.encode()
    for per in ("run", "epoch", "batch"):
        store.dataframe(per)
        table = store.export_csv(tmp_path / "out.csv", per).read_text()
        assert "good" in table
        assert not [line for line in table.splitlines() if ",=" in line]
    assert cli.main(["runs", str(tmp_path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_what_of_a_run_is_damaged_is_said(tmp_path):
    make_run(tmp_path / "good")
    for number, name in enumerate(["zone", "json", "deep"]):
        file, data = DAMAGE[name]
        make_run(tmp_path / f"bad-{number}")
        (tmp_path / f"bad-{number}" / file).write_bytes(data)
    store = RunStore(tmp_path)
    assert {run.name: run.damage for run in store} == {
        "good": "",
        "bad-0": "experiment.log: it does not begin with a time",
        "bad-1": "config.json: it is not JSON",
        "bad-2": "config.json: it is nested too deeply",
    }
    lines = str(store).splitlines()
    assert "bad-1 is damaged: config.json: it is not JSON" in lines
    (row,) = [line for line in lines if line.startswith("bad-1  ")]
    assert ", damaged" in row


def test_what_a_longer_training_left_in_the_folder_does_not_count(tmp_path):
    folder = make_run(tmp_path / "a", (4.0, 3.0, 2.0, 1.0), (1.0, 2.0, 3.0, 4.0))
    write_diary(
        folder,
        "burn_train::learner::train_val: Fitting the model:",
        "burnbook::train: Training epochs 1 to 2 in process 1 on lab",
        "burnbook::train: Training ended after epoch 2 of 2: finished",
    )
    run = Run(folder)
    assert (run.epochs, run.best("Loss")) == (2, (2, 3.0))
    assert LearnerSummary(folder, ["Loss"]).epochs == 2
