"""Metrics: their numbers, their texts, and the lines of their logs."""

import math
import random
from functools import partial

import numpy as np

from burnbook import train
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import TrainingError
from burnbook.data import Progress
from burnbook.train import numbers
from tests.support.cases import cases
from tests.support.metric_tools import floats, ints, metadata, update
from tests.support.refusals import refused
from tests.support.tiny_training import builder, fitted, log_lines


@cases(
    "value text",
    (100.0, "100"),
    (10.9375, "10.9375"),
    (95.83333333333334, "95.83333333333334"),
    (float(np.float32(2.3005497)), "2.3005497455596924"),
    (1e-7, "0.0000001"),
    (1e21, "1000000000000000000000"),
    (5e-324, "0." + "0" * 323 + "5"),
    (-0.0, "-0"),
    (0.0, "0"),
    (float("nan"), "NaN"),
    (float("inf"), "inf"),
    (float("-inf"), "-inf"),
)
def test_log_numbers_are_written_as_rust_writes_them(value, text):
    assert numbers.plain_float(value) == text


def test_log_numbers_give_the_number_back_and_never_an_exponent():
    rng = random.Random(1)
    for _ in range(500):
        value = rng.uniform(-1, 1) * 10 ** rng.randint(-30, 30)
        text = numbers.plain_float(value)
        assert float(text) == value
        assert "e" not in text


@cases(
    "value text",
    (0.61243, "0.61"),
    (0.1, "1.00e-1"),
    (0.05, "5.00e-2"),
    (0.0, "0.00e0"),
    (-3.0, "-3.00e0"),
    (83.2871, "83.29"),
    (float("nan"), "NaN"),
    (float("inf"), "inf"),
    (float("-inf"), "-inf"),
)
def test_screen_numbers_turn_scientific_at_a_tenth(value, text):
    assert numbers.format_float(value, 2) == text


def test_fixed_and_scientific_numbers():
    assert numbers.fixed_float(0.125, 2) == "0.12"
    assert numbers.scientific_float(123456.0, 3) == "1.235e5"


def test_accuracy_counts_right_guesses_in_percent():
    metric = train.AccuracyMetric()
    outputs = floats([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
    entry = update(metric, outputs, ints([1, 0, 0, 1]))
    text = "epoch 75.00 % - batch 75.00 %"
    assert entry == train.MetricEntry("Accuracy", text, "75,4")
    assert metric.value() == 75.0


def test_accuracy_runs_on_over_the_epoch_and_forgets_it():
    metric = train.AccuracyMetric()
    wrong = floats([[0.0, 1.0]]), ints([0])
    update(metric, floats([[0.0, 1.0]] * 3), ints([1, 1, 1]))
    assert update(metric, *wrong).formatted == "epoch 75.00 % - batch 0.00e0 %"
    metric.clear()
    assert update(metric, *wrong).formatted.startswith("epoch 0.00e0 %")


def test_accuracy_leaves_padding_out_of_share_and_weight():
    metric = train.AccuracyMetric().with_pad_token(9)
    outputs = floats([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    assert update(metric, outputs, ints([1, 9, 1])).serialize == "50,2"
    assert update(metric, outputs, ints([9, 9, 9])).serialize == "NaN,0"


def test_loss_weighs_by_the_length_of_its_tensor():
    metric = train.LossMetric()
    entry = update(metric, floats([2.5]))
    assert entry == train.MetricEntry("Loss", "epoch 2.50 - batch 2.50", "2.5,1")
    entry = update(metric, floats([1.0, 2.0, 3.0]))
    assert entry.serialize == "2,3"
    assert entry.formatted == "epoch 2.12 - batch 2.00"


def test_learning_rate_needs_no_item():
    metric = train.LearningRateMetric()
    entry = metric.update(None, metadata(lr=1e-4))
    text = "epoch 1.00e-4 - batch 1.00e-4"
    assert entry == train.MetricEntry("Learning Rate", text, "0.0001,1")
    assert metric.update(None, metadata()).serialize == "0,1"


def test_entries_come_back_from_their_lines():
    for values in ((10.9375, 64), (100.0,), (1e-9, 1)):
        entry = train.NumericEntry(*values)
        assert train.NumericEntry.deserialize(entry.serialize() + "\n") == entry
    assert math.isnan(train.NumericEntry.deserialize("NaN,3").value)


def test_outputs_adapt_to_what_metrics_want():
    loss, output, targets = floats([0.5]), floats([[1.0, 0.0]]), ints([0])
    item = train.ClassificationOutput(loss, output, targets)
    assert item.adapt(train.LossInput).tensor is loss
    assert item.adapt(train.AccuracyInput).targets is targets
    assert item.adapt(None) is None
    assert repr(item) == "ClassificationOutput(loss [1], output [1, 2], targets [1])"


def test_adapting_to_something_else_says_what_is_possible():
    item = train.RegressionOutput(floats([0.5]), floats([[1.0]]), floats([[1.0]]))
    facts = ("cannot become an AccuracyInput\n", "  it can become  LossInput\n")
    cures = ("try: a metric with Input = RegressionOutput", "class Mine(RegressionOut")
    act = partial(item.adapt, train.AccuracyInput)
    refused(TrainingError, act, "RegressionOutput.adapt: ", *facts, *cures)


def test_advice_never_patches_a_class_of_the_library():
    class Mine(train.RegressionOutput):
        adapts = {train.AccuracyInput: lambda item: "adapted"}  # noqa: RUF012

    item = Mine(floats([0.5]), floats([[1.0]]), floats([[1.0]]))
    assert item.adapt(train.AccuracyInput) == "adapted"
    assert item.adapt(train.LossInput).tensor is item.loss
    act = partial(item.adapt, train.PerplexityInput)
    cure = "try: adapts = {PerplexityInput: lambda"
    refused(TrainingError, act, "Mine.adapt: ", cure, "in Mine")


def test_a_metric_may_read_the_item_itself(tmp_path):
    class Largest(train.NumericMetric):
        name = "Largest"
        Input = train.ClassificationOutput

        def update(self, item, metadata):
            value = float(np.asarray(item.output).max())
            return self.state.update(value, item.output.dims()[0], self.options)

    class Mine(train.ClassificationOutput):
        pass

    item = train.RegressionOutput(floats([0.5]), floats([[1.0]]), floats([[3.0]]))
    assert item.adapt(train.RegressionOutput) is item
    mine = Mine(item.loss, item.output, item.targets)
    assert mine.adapt(train.ClassificationOutput) is mine
    fitted(builder(tmp_path, 1).metric_valid_numeric(Largest()))
    assert len(log_lines(tmp_path, "valid", "Largest")) > 2


def test_a_subclass_adapts_to_more():
    class Named(train.ClassificationOutput):
        pass

    Named.adapts = {str: lambda item: "named"}

    item = Named(floats([0.5]), floats([[1.0, 0.0]]), ints([0]))
    assert item.adapt(str) == "named"
    assert item.adapt(train.LossInput).tensor is item.loss


def test_metrics_read_tracked_tensors():
    device = Autodiff(Numpy())
    outputs = floats([[0.0, 1.0]], device).require_grad() * 2.0
    entry = update(train.AccuracyMetric(), outputs, ints([1], device))
    assert entry.serialize == "100,1"


def test_progress_prints_as_in_rust():
    assert str(train.TrainingProgress(Progress(64, 60000), 1, 10, 1)) == (
        "TrainingProgress { progress: Progress { items_processed: 64, "
        "items_total: 60000 }, epoch: 1, epoch_total: 10, iteration: 1 }"
    )
