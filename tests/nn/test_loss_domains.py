"""A loss of scores is given scores, one of probabilities gets probabilities."""

import warnings

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import BurnbookError
from burnbook.nn.loss import (
    BinaryCrossEntropyLossConfig,
    CrossEntropyLossConfig,
    MseLoss,
    Reduction,
)
from burnbook.tensor import Tensor
from burnbook.tensor.activation import log_sigmoid

DEVICES = {"plain": Numpy(), "graph": Autodiff(Numpy())}
SCORES = np.random.default_rng(3).normal(size=(8, 4)).astype(np.float32) * 3
CLASSES, LABELS = [0, 1, 2, 3] * 2, (SCORES > 0).astype(int)

PROBABILITIES = {
    "scores": lambda x: x,
    "log_softmax": lambda x: x.log_softmax(1),
    "sigmoid": lambda x: x.sigmoid(),
    "softmax over rows": lambda x: x.softmax(0),
    "percent": lambda x: x.softmax(1) * 100.0,
}
RIGHT = {
    "softmax": lambda x: x.softmax(1),
    "softmax over rows of one": lambda x: x.softmax(1).transpose().transpose(),
    "exp of log": lambda x: x.log_softmax(1).exp(),
    "clipped": lambda x: x.softmax(1).clamp(1e-3, 1.0 - 1e-3),
    "mixed": lambda x: (x.softmax(1) + (x * 2.0).softmax(1)) / 2.0,
    "certain": lambda x: (x * 1000.0).softmax(1),
}


def scores_on(device, values=SCORES):
    x = Tensor.from_data(values, device)
    return x.require_grad() if device.ad_enabled else x


def told(act, match):
    """Whether an act ends in an error or a warning that says this, with a cure."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            act()
        except BurnbookError as error:
            return match in str(error) and "try: " in str(error)
    texts = [str(each.message) for each in caught]
    return len(texts) == 1 and match in texts[0] and "try: " in texts[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PROBABILITIES)
def test_what_is_no_probability_is_told(name, device):
    device = DEVICES[device]
    loss = CrossEntropyLossConfig().with_logits(False).init(device)
    given = PROBABILITIES[name](scores_on(device))
    targets = Tensor.from_ints(CLASSES, device)
    assert told(lambda: loss.forward(given, targets), "logits")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_probabilities_are_silent(name, device, dtype):
    device = DEVICES[device] if dtype == "f32" else Numpy(float=dtype)
    loss = CrossEntropyLossConfig().with_logits(False).init(device)
    given = RIGHT[name](scores_on(device))
    loss.forward(given, Tensor.from_ints(CLASSES, device))


SQUASHES = {
    "sigmoid": lambda x: x.sigmoid(),
    "log_sigmoid": log_sigmoid,
    "sigmoid, squeezed": lambda x: x.sigmoid().reshape([1, 8, 4]).squeeze(0),
    "sigmoid, transposed": lambda x: x.transpose().sigmoid().transpose(),
    "softmax": lambda x: x.softmax(1),
}


@pytest.mark.parametrize("name", SQUASHES)
@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_logits_that_were_squashed_are_told(name, kind):
    device = DEVICES["graph"]
    config = BinaryCrossEntropyLossConfig().with_logits(True)
    targets = Tensor.from_ints(LABELS, device)
    if kind == "classes":
        config, targets = CrossEntropyLossConfig(), Tensor.from_ints(CLASSES, device)
    given = SQUASHES[name](scores_on(device))
    act = lambda: config.init(device).forward(given, targets)  # noqa: E731
    assert told(act, "been through a")


def test_scores_are_silent_whatever_their_size():
    device = DEVICES["graph"]
    targets, labels = (Tensor.from_ints(t, device) for t in (CLASSES, LABELS))
    x = scores_on(device)
    for given in (x, x.relu(), x.tanh(), x.sigmoid() * 4.0, x * 0.01, x.log_softmax(1)):
        CrossEntropyLossConfig().init(device).forward(given, targets)
    binary = BinaryCrossEntropyLossConfig()
    for given in (x, x.relu(), x.tanh(), x.sigmoid() * 4.0, x * 0.01):
        binary.with_logits(True).init(device).forward(given, labels)
    for given in (x.sigmoid(), x.softmax(1)):
        binary.init(device).forward(given, labels)


@pytest.mark.parametrize("row", [[0.5, 0.2, 0, 0], [0.9, 0.9, 0, 0], [0.1] * 4])
def test_shares_that_are_not_one_in_all_are_told(row):
    device, config = Numpy(), CrossEntropyLossConfig()
    shares = np.float32([row] * 8)
    targets = Tensor.from_data(shares, device)
    act = lambda: config.init(device).forward(scores_on(device), targets)  # noqa: E731
    assert told(act, "does not sum to 1")


def test_shares_that_are_one_in_all_or_none_are_silent():
    device = Numpy()
    x, loss = scores_on(device), CrossEntropyLossConfig().init(device)
    shares = x.softmax(1)
    for targets in (shares, shares * 0.7 + 0.3 / 4, shares * 0.0):
        loss.forward(x, targets, Reduction.Sum)


@pytest.mark.parametrize("over", [lambda x: x.softmax(1), lambda x: x.log_softmax(1)])
@pytest.mark.parametrize("loss", ["binary", "mse"])
def test_a_softmax_over_one_column_is_told(over, loss):
    device = DEVICES["graph"]
    x = scores_on(device, SCORES[:, :1])
    made = (
        BinaryCrossEntropyLossConfig().init(device) if loss == "binary" else MseLoss()
    )
    targets = Tensor.from_ints(LABELS[:, :1], device)
    targets = targets if loss == "binary" else targets.float()
    assert told(lambda: made.forward(over(x), targets), "softmax over one column")
    made.forward(x.softmax(0), targets)  # over the rows: shares of a batch
