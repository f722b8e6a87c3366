"""A name that is not there is an error that says what there is."""

import pytest

from burnbook.core.errors import BurnbookError, UnknownNameError
from burnbook.train import RunStore
from burnbook.train.history import MetricHistory
from tests.support.run_folders import make_run


@pytest.fixture
def places(tmp_path):
    """A history, a run and a store that know Loss and Accuracy."""
    history = MetricHistory()
    for split in ("train", "valid"):
        history.add("Loss", split, 0.5)
        history.end_epoch(1, split, {"Loss": 0.5, "Accuracy": 50.0})
    make_run(tmp_path / "a")
    make_run(tmp_path / "b")
    store = RunStore(tmp_path)
    compared = store.compare()
    return {"history": history, "run": store["a"], "store": store, "two": compared}


ASKED = [
    (where, ask.format(name), cure)
    for where, asks in {
        "history": ("epochs({}, 'valid')", "points({}, 'train')"),
        "run": ("best({})", "last({})", "history({})", "batches({})"),
        "store": ("best({})", "filter(metric=({}, 'Valid', '>', 1))"),
        "two": ("winner({})",),
    }.items()
    for ask in asks
    for name, cure in (("'accuracy'", '"Accuracy"'), ("'Los'", '"Loss"'))
]
SPLITS = [
    ("history", "epochs('Loss', 'val')"),
    ("history", "points('Loss', 'validation')"),
    ("history", "last('val')"),
    ("history", "epochs('Loss', 'Valid')"),
    ("run", "best('Loss', 'val')"),
    ("store", "best('Loss', 'val')"),
    ("two", "winner('Loss', 'val')"),
    ("store", "filter(metric=('Loss', 'val', '>', 1))"),
]


@pytest.mark.parametrize(("where", "ask", "cure"), ASKED)
def test_an_unknown_metric_is_named_with_the_nearest(places, where, ask, cure):
    with pytest.raises(UnknownNameError, match="there is no metric") as caught:
        eval(f"place.{ask}", {"place": places[where]})
    assert "metrics" in str(caught.value)
    assert caught.value.cure == cure


@pytest.mark.parametrize(("where", "ask"), SPLITS)
def test_an_unknown_split_is_named(places, where, ask):
    with pytest.raises(BurnbookError, match="split") as caught:
        eval(f"place.{ask}", {"place": places[where]})
    assert "valid" in str(caught.value)


def test_a_field_or_state_that_no_run_has_is_named(places):
    store = places["store"]
    field = next(iter(store["a"].config), None)
    if field is not None:
        with pytest.raises(UnknownNameError, match="no config has"):
            store.filter(config={field + "s": 1})
    with pytest.raises(BurnbookError, match="not a state") as caught:
        store.filter(state="Finished")
    assert caught.value.cure == 'state="finished"'
    with pytest.raises(BurnbookError, match="no run has 'accurcy'") as caught:
        store.sort("accurcy")
    assert caught.value.cure == '"Accuracy"'


def test_what_is_known_but_has_no_number_there_stays_empty(places):
    history, run, store, _ = places.values()
    assert history.epochs("Loss", "test") == history.points("Accuracy", "valid") == []
    assert MetricHistory().epochs("Loss", "valid") == []
    assert run.history("Loss", "test") == []
    assert store.best("Loss", "test") is None
    assert len(store.filter(metric=("Loss", "test", "<", 1))) == 0
