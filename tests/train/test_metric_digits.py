"""How metrics write numbers: negative ones, and digits of one's own."""

import io

import numpy as np
import pytest

from burnbook.data import Progress
from burnbook.tensor import Tensor
from burnbook.train import (
    Interrupter,
    LossInput,
    LossMetric,
    MetricMetadata,
    PlainRenderer,
    RunInfo,
)
from burnbook.train.metric.base import NumericMetric, digits_of
from burnbook.train.numbers import format_float, number_text, signed_float
from burnbook.train.summary import _value


@pytest.mark.parametrize("value", [1.661, 0.0123, 97.0104, 0.1, np.inf, 1e-9, 1e9])
def test_a_sign_changes_no_digit(value):
    for write in (lambda x: signed_float(x, 2), number_text, _value):
        assert write(-value) == "-" + write(value)
    assert signed_float(value, 2) == format_float(value, 2)  # as Burn
    assert signed_float(0.0, 2) == format_float(0.0, 2)


def test_negative_losses_are_read_as_others():
    item = LossInput(Tensor.from_floats([-1.661]))
    entry = LossMetric().update(item, MetricMetadata(Progress(1, 2), 1, 2, 1))
    assert entry.formatted == "epoch -1.66 - batch -1.66"


class Fine(NumericMetric):
    name = "Fine"
    precision = 4


class Finer(Fine):
    name = "Finer"


class Usual(NumericMetric):
    name = "Usual"


class Said(NumericMetric):
    name = "Said"
    precision = 2


def test_the_line_of_an_epoch_has_the_digits_of_the_metric():
    metrics = [
        Fine(),
        Finer(),
        Usual(),
        Said(),
        Usual().changed(name="Own", precision=5),
    ]
    digits = digits_of(metrics)
    assert digits == {"Fine": 4, "Finer": 4, "Said": 2, "Own": 5}
    stream = io.StringIO()
    renderer = PlainRenderer(stream)
    names = tuple(metric.name for metric in metrics)
    renderer.start(RunInfo("run", names, 1, 1, Interrupter(), "Model", digits=digits))
    means = dict.fromkeys(names, 0.612345)
    renderer.end_epoch(1, "train", means)
    renderer.end_epoch(1, "valid", means)
    line = "Fine 0.6123  Finer 0.6123  Usual 0.612  Said 0.61  Own 0.61235"
    assert f"train {line}  ·  valid {line}" in stream.getvalue()
