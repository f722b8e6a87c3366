"""Our artifact directories in a reader of Burn's layout, and Burn's lines in ours."""

from math import inf, nan

import pytest

from burnbook import train
from tests.support.artifact_reader import Artifacts, read_entry
from tests.support.tiny_training import checkpointed, file_names, fitted

NAMES = ["Accuracy", "Learning Rate", "Loss"]


def run_training(folder, epochs, lr=0.05, resume=False):
    made = checkpointed(folder, epochs)
    made.metric_train_numeric(train.LearningRateMetric())
    if resume:
        made.checkpoint()
    return fitted(made, lr=lr).result


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "artifact"
    return folder, run_training(folder, 7)


@pytest.fixture(scope="module")
def resumed(tmp_path_factory):
    """Three epochs, then seven; Burn would write the fourth into epoch-1."""
    folder = tmp_path_factory.mktemp("run") / "artifact"
    run_training(folder, 3)
    return folder, run_training(folder, 7, resume=True)


@pytest.mark.parametrize("run", ["whole", "resumed"])
def test_a_run_has_the_layout_of_burn(run, request):
    folder, result = request.getfixturevalue(run)
    found = Artifacts(folder)
    assert list(found.train) == list(found.valid) == [1, 2, 3, 4, 5, 6, 7]
    assert sorted(found.train[1].metrics) == ["Accuracy", "Learning_Rate", "Loss"]
    assert sorted(found.valid[7].metrics) == ["Accuracy", "Loss"]
    for split, epochs in (("train", found.train), ("valid", found.valid)):
        assert [count for _, count in epochs[4].metrics["Accuracy"]] == [16, 16, 8]
        assert [count for _, count in epochs[4].metrics["Loss"]] == [16, 16, 8]
        means = {number: epoch.mean("Loss") for number, epoch in epochs.items()}
        assert dict(result.history.epochs("Loss", split)) == pytest.approx(means)


@pytest.mark.parametrize("run", ["whole", "resumed"])
def test_the_checkpoints_that_remain_are_those_the_logs_ask_for(run, request):
    folder, _ = request.getfixturevalue(run)
    found = Artifacts(folder)
    assert set(found.checkpoints) == found.kept_by_default()


def test_a_resumed_run_writes_what_a_whole_one_writes(whole, resumed):
    one, other = Artifacts(whole[0]), Artifacts(resumed[0])
    for split in ("train", "valid"):
        for number in range(1, 8):
            pair = [getattr(run, split)[number].metrics for run in (one, other)]
            assert pair[0] == pair[1]


def test_the_diary_tells_of_every_save_before_every_removal(whole):
    found = Artifacts(whole[0])
    files = [e[3] for e in found.diary if e[2] == "burn_train::checkpoint::file"]
    saves = [text for text in files if text.startswith("Saving checkpoint ")]
    assert len(saves) == 7 * 3
    first = f"Saving checkpoint 1 to {whole[0]}/checkpoint/"
    assert saves[:3] == [f"{first}{p}-1" for p in ("model", "optim", "scheduler")]
    alive = set()
    for text in files:
        if text.startswith("Saving"):
            alive.add(text.rpartition("/")[2])
        else:
            assert text.startswith("Removing checkpoint ")
            alive.remove(text.rpartition("/")[2].removesuffix(".mpk"))
            assert len({name.rpartition("-")[2] for name in alive}) >= 2
    left = {f"{p}-{n}" for n, parts in found.checkpoints.items() for p in parts}
    assert alive == left
    head = found.diary[0]
    assert head[1:3] == ["INFO", "burn_train::learner::train_val"]
    assert head[3].startswith("Fitting the model:\n Tiny {\n")


def test_the_summary_is_the_one_that_follows_from_the_logs(whole):
    folder, _ = whole
    printed = str(train.LearnerSummary(folder, NAMES))
    assert printed.split("\n\n\n")[1] == Artifacts(folder).summary(NAMES)


@pytest.mark.parametrize(
    "value",
    [0.0, 100.0, 1e-7, 5e-324, 1.7976931348623157e308, 1e22, 0.1, -2.5, nan, inf, -inf],
)
def test_every_number_is_written_as_the_reader_expects(value):
    entry = train.NumericEntry(value, 64).serialize()
    found, count = read_entry(entry, "here")
    assert count == 64
    assert found == value or (found != found and value != value)


def test_the_reader_refuses_what_burn_would_not_write():
    for line in ("1e-05,1", "100.0,64", "5,", "5,0", "5,1.0", " 5,1", "", "+1,1"):
        with pytest.raises(AssertionError):
            read_entry(line, "here")


# Lines of a real run of Burn 0.16.1, as the sheet of facts quotes them

BURN = {
    "train/epoch-1/Accuracy.log": "10.9375,64\n95.83333333333334,24\n",
    "train/epoch-1/Loss.log": "2.3005497455596924,1\n0.0000001,1\n",
    "valid/epoch-1/Accuracy.log": "100,64\n",
    "valid/epoch-1/Loss.log": "NaN,1\n",
    "experiment.log": (
        "2024-12-12T04:23:02.729942Z  INFO burn_train::checkpoint::file: "
        "Saving checkpoint 1 to artifact/checkpoint/optim-1    \n"
    ),
    "checkpoint/model-1.mpk": "",
    "checkpoint/optim-1.mpk": "",
    "checkpoint/scheduler-1.mpk": "",
}


@pytest.fixture
def of_burn(tmp_path):
    for name, text in BURN.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_the_lines_of_burn_itself_are_read_by_both(of_burn):
    found = Artifacts(of_burn)
    ours = train.FileMetricLogger(of_burn / "train")
    for name in ("Accuracy", "Loss"):
        entries = ours.read_numeric(name, 1)
        pairs = [(entry.value, entry.count) for entry in entries]
        assert pairs == found.train[1].metrics[name]
    valid = train.FileMetricLogger(of_burn / "valid")
    store = train.EventStore([ours], [valid])
    expected = (10.9375 * 64 + 95.83333333333334 * 24) / 88
    assert store.find_metric("Accuracy", 1, split=train.Split.Train) == expected
    printed = str(train.LearnerSummary(of_burn, ["Accuracy", "Loss"]))
    assert printed.endswith(found.summary(["Accuracy", "Loss"]))


def test_reading_a_line_and_writing_it_gives_the_same_text(of_burn):
    for name, text in BURN.items():
        if not name.endswith(("Accuracy.log", "Loss.log")):
            continue
        entries = map(train.NumericEntry.deserialize, text.split())
        assert [entry.serialize() for entry in entries] == text.split()


def test_names_with_spaces_become_files_without(tmp_path):
    logger = train.FileMetricLogger(tmp_path)
    logger.start_epoch(1)
    logger.log(train.MetricEntry("Learning Rate", "", "0.0001,1"))
    logger.end_epoch(1)
    assert file_names(tmp_path / "epoch-1") == ["Learning_Rate.log"]
