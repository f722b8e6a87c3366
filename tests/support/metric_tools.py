"""What the tests of metrics share: tensors, batches, and the epoch of a metric."""

from itertools import pairwise

import numpy as np

from burnbook.backend import Numpy
from burnbook.data import Progress
from burnbook.tensor import Tensor
from burnbook.train import ConfusionStatsInput, MetricMetadata, NumericEntry
from burnbook.train.events import mean

PLAIN = Numpy(compiled=False)


def metadata(iteration=1, lr=None):
    return MetricMetadata(Progress(64, 128), 1, 2, iteration, lr)


def floats(values, device=PLAIN):
    return Tensor.from_floats(np.asarray(values, np.float32), device)


def ints(values, device=PLAIN):
    return Tensor.from_ints(np.asarray(values, np.int64), device)


def update(metric, *tensors, iteration=1):
    """The entry of one batch; the tensors are the fields of the metric's input."""
    return metric.update(metric.Input(*tensors), metadata(iteration))


def decisions(scores, targets):
    """The input of confusion metrics."""
    return ConfusionStatsInput(floats(scores), ints(targets).bool())


def cut(count, *sizes):
    """Slices of a whole, for batches of uneven sizes."""
    edges = [0, *np.cumsum(sizes), count]
    return [slice(a, b) for a, b in pairwise(edges) if a < b]


def epoch_value(metric, batches):
    """What the log of an epoch says: each batch's line, then what the metric adds."""
    metric.clear()
    entries = [update(metric, *batch) for batch in batches]
    last = metric.compute()
    lines = [e.serialize for e in [*entries, *([last] if last else [])] if e.serialize]
    return mean([NumericEntry.deserialize(line) for line in lines])
