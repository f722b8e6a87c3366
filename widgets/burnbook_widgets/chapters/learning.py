"""The exercises about learners.

They belong to chapter 4.6; see exercises.py for the others.
"""

from typing import Any

from burnbook.train import (
    EarlyStoppingStrategy,
    EventStore,
    InMemoryMetricLogger,
    MetricEntry,
    MetricsRenderer,
    Split,
)
from burnbook_widgets.chapters.answers import Holds, Value, an


def goal(strategy: Any) -> str | None:
    """Ask for an end in the first epoch whose valid accuracy is 90 or more."""
    log = InMemoryMetricLogger()
    store = EventStore([], [log])
    strategy.reset()
    for epoch, accuracy in enumerate((50, 89.9, 90, 95), start=1):
        store.start_epoch(epoch, Split.Valid)
        log.log(MetricEntry("Accuracy", "", f"{accuracy},64"))
        ends = bool(strategy.should_stop(epoch, store))
        if ends != (accuracy >= 90):
            told = f"with an accuracy of {accuracy} % it says"
            return f"{told} {'stop' if ends else 'go on'}"
    return None


def best_seen(renderer: Any) -> str | None:
    """Ask for the highest valid accuracy of all epochs."""
    noted: Any = renderer  # of the reader, with a field of its own
    for epoch, accuracy in enumerate((50.0, 80.0, 70.0), start=1):
        renderer.end_epoch(epoch, "train", {"Accuracy": 99.0})
        renderer.end_epoch(epoch, "valid", {"Accuracy": accuracy})
    found = getattr(noted, "best", None)
    if found == 99.0:
        return "it looks at the training accuracy, too"
    if found == 70.0:
        return "it keeps the last accuracy, not the highest"
    return None if found == 80.0 else f"after 50, 80 and 70 % its best is {found}"


LEARNING: dict[str, Value | Holds] = {
    "4.6.1": Value(
        lambda: 50,
        "the group that is not full takes no step",
        [
            (60, "three batches are no group of four"),
            (57, "each epoch begins a group anew"),
            (57.5, "each epoch begins a group anew"),
            (230, "there is one step for four batches"),
            (5, "that is one epoch"),
        ],
    ),
    "4.6.2": Value(
        lambda: [2, 4, 5],
        "the last two, and the one with the lowest loss",
        [
            ([4, 5], "the best epoch is kept, too"),
            ([2], "the last two are kept, too"),
            ([2, 5], "the last two are kept, not only the last one"),
        ],
    ),
    "4.6.3": Holds(
        an(EarlyStoppingStrategy, called="a strategy of early stopping"),
        goal,
        "store.find_metric(name, epoch), and compare",
    ),
    "4.6.4": Holds(
        an(MetricsRenderer, called="a renderer"),
        best_seen,
        'only when split == "valid"; means["Accuracy"]',
    ),
}
