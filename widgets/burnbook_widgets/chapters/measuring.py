"""The exercises about metrics: what is right, and a hint.

They belong to chapter 4.8; see exercises.py for the others.
"""

from typing import Any

from burnbook.data import Progress
from burnbook.prelude import Int, Numpy, Tensor
from burnbook.train import (
    AccuracyInput,
    AccuracyMetric,
    Adaptor,
    LossInput,
    Metric,
    MetricMetadata,
)
from burnbook_widgets.chapters.answers import Holds, Value, a_class

WHERE = MetricMetadata(Progress(4, 8), 1, 2, 1)


def largest_loss(kind: Any) -> str | None:
    """Ask for a numeric metric: the largest element of each loss, anew every epoch."""
    make: Any = kind
    metric = make()
    if not metric.numeric or metric.Input is not LossInput:
        return "it should be numeric, and its input a LossInput"
    entries = []
    for loss in ([1.0, 5.0, 3.0], [2.0, 0.5], [4.0]):
        if len(entries) == 2:
            metric.clear()
        tensor = Tensor.from_floats(loss, Numpy())
        entries.append(metric.update(LossInput(tensor), WHERE))
        found = metric.value()
        if found != max(loss):
            return f"for the loss {loss} its value is {found}, not the largest"
    lines = [entry.serialize.partition(",")[0] for entry in entries]
    if lines != ["5", "2", "4"]:
        return f"its lines begin with {', '.join(lines)}"
    once = "epoch 4.00 - batch 4.00"
    shown = entries[2].formatted
    return None if shown == once else f"after clear() it shows {shown!r}"


def sign_output(kind: Any) -> str | None:
    """Ask for an item of score [n] and sign [n] that accuracy can read."""
    make: Any = kind
    score = Tensor.from_floats([2.0, -1.0, 0.5, -3.0], Numpy())
    positive = Tensor[1, Int].from_ints([1, 1, 1, 0], Numpy())
    item = make(score, positive).adapt(AccuracyInput)
    if not isinstance(item, AccuracyInput):
        return "it does not become an AccuracyInput yet"
    if list(item.outputs.dims()) != [4, 2]:
        return f"its outputs are {list(item.outputs.dims())}, and should be [4, 2]"
    line = AccuracyMetric().update(item, WHERE).serialize
    return None if line == "75,4" else f"three of four are right, and it logs {line}"


MEASURING: dict[str, Value | Holds] = {
    "4.8.1": Value(
        lambda: "75,64",
        "a value in percent, and how many it stands for",
        [
            ("0.75,64", "accuracy is logged in percent"),
            ("75.0,64", "a whole number is logged without .0"),
            ("75", "how many examples it stands for is missing"),
            ("48,64", "the first number is the accuracy, not how many are right"),
            ("75%,64", "the line has numbers only"),
        ],
    ),
    "4.8.2": Value(
        lambda: 62.5,
        "with β² = 4: 5 · TP / (5 · TP + 4 · FN + FP), times a hundred",
        [
            (12 / 18 * 100, "that is the F score with β = 1"),
            (3000 / 42, "false positives and false negatives are exchanged"),
            (75, "that is the precision"),
            (60, "that is the recall"),
            (300 * 6 / (18 + 8 + 2), "β is squared: 4, not 2"),
        ],
    ),
    "4.8.3": Holds(
        a_class(Metric, "a class of metrics"),
        largest_loss,
        "item.tensor.max().into_scalar(), then the state",
    ),
    "4.8.4": Holds(
        a_class(Adaptor, "a class of items that adapt"),
        sign_output,
        "two columns: Tensor.cat of −score and score, dim 1",
    ),
}
