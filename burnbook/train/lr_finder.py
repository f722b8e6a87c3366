"""Which learning rate? Try all of them once.

    found = find_learning_rate(model, optim, train_loader)
    found                       # the curve, and the suggestion
    found.suggestion

The rate grows a little with every batch, from far too small to far too large, and the
loss is noted. Where it falls fastest is a good rate; where it explodes, training ends.

Source: Smith, "Cyclical Learning Rates for Training Neural Networks" (2017).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from burnbook.core.call_source import texts_of_call
from burnbook.core.errors import ConfigError, TrainingError
from burnbook.core.rng import use_stream
from burnbook.core.roles import LOADER, MODEL, OPTIMIZER
from burnbook.data import DataLoader
from burnbook.module import Module
from burnbook.optim import GradientsParams, Optimizer
from burnbook.train.loop import batches_of, check_output, on_device
from burnbook.train.nan_report import loss_of
from burnbook.train.validation import check_form, check_optimizer, check_order

WIDTH, HEIGHT = 60, 12  # size of the plot in a terminal, in characters
SKIPPED = 0.1  # the share of the curve at its start that is noise


@dataclass(frozen=True, repr=False)
class LearningRateCurve:
    """The loss at every learning rate that was tried.

    smoothed: a running mean of the losses, without the bias of its start. diverged:
    whether the loss exploded before the last rate.
    """

    rates: tuple[float, ...]
    losses: tuple[float, ...]
    smoothed: tuple[float, ...]
    diverged: bool

    @property
    def steepest(self) -> float:
        """The rate where the loss falls fastest, per power of ten.

        Only the way down to the lowest loss is looked at.
        """
        end = self._lowest() + 1
        start = min(int(SKIPPED * len(self.rates)), max(end - 3, 0))
        if end - start < 3:
            return self.rates[max(end - 1, 0)] / 10
        logs, losses = np.log10(self.rates[start:end]), self.smoothed[start:end]
        slopes = np.gradient(np.array(losses), logs)
        return self.rates[start + int(np.argmin(slopes))]

    @property
    def valley(self) -> float:
        """The rate two thirds down the longest fall of the loss.

        Why: one lucky batch can make the steepest step; a long fall is not luck.
        """
        start, end = longest_fall(self.smoothed)
        return self.rates[start + (end - start) * 2 // 3]

    @property
    def suggestion(self) -> float:
        """The rate to train with: the valley, which noise affects least."""
        return self.valley

    def picture(self, width: int = WIDTH, height: int = HEIGHT) -> str:
        """The curve drawn with characters, the suggestion marked below."""
        places, values = self._drawn(width)
        low, high = min(values), max(values)
        span = high - low or 1.0
        rows = [[" "] * width for _ in range(height)]
        for place, value in zip(places, values, strict=True):
            row = round((high - value) / span * (height - 1))
            rows[row][place] = "•"
        labels = [f"{high:.3g}", *[""] * (height - 2), f"{low:.3g}"]
        wide = max(map(len, labels))
        pairs = zip(labels, rows, strict=True)
        lines = [f"{label:>{wide}} ┤{''.join(row)}".rstrip() for label, row in pairs]
        axis = ["─"] * width
        mark = self._place(self.suggestion, width)
        axis[mark] = "▲"
        lines.append(f"{'':>{wide}} └{''.join(axis)}")
        first, last = f"{self.rates[0]:.0e}", f"{self.rates[-1]:.0e}"
        gap = width - len(first) - len(last) + 1
        return "\n".join([*lines, f"{'':>{wide}} {first}{'':{gap}}{last}"])

    def __str__(self) -> str:
        return f"{self.picture()}\n{self._words()}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        places, values = self._drawn(480)
        low, high = min(values), max(values)
        span = high - low or 1.0
        points = " ".join(
            f"{place + 40},{round(10 + (high - value) / span * 150)}"
            for place, value in zip(places, values, strict=True)
        )
        x = 40 + self._place(self.suggestion, 480)
        text = 'fill="currentColor" font-size="11"'
        line = 'stroke="currentColor" fill="none"'
        ends = (f"{self.rates[0]:.0e}", f"{self.rates[-1]:.0e}")
        return (
            f'<svg role="img" aria-label="{escape(self._words())}" width="540" '
            f'height="190" viewBox="0 0 540 190">'
            f'<polyline points="{points}" {line} stroke-width="1.5"/>'
            f'<path d="M40 10v155h480" {line} opacity=".5"/>'
            f'<path d="M{x} 10v155" {line} stroke-dasharray="4 3" opacity=".8"/>'
            f'<text x="36" y="14" text-anchor="end" {text}>{high:.3g}</text>'
            f'<text x="36" y="165" text-anchor="end" {text}>{low:.3g}</text>'
            f'<text x="40" y="180" {text}>{ends[0]}</text>'
            f'<text x="520" y="180" text-anchor="end" {text}>{ends[1]}</text>'
            f"</svg><p>{escape(self._words())}</p>"
        )

    def _words(self) -> str:
        end = "where the loss exploded" if self.diverged else "the last one asked for"
        return (
            f"suggestion {self.suggestion:.2g} (steepest {self.steepest:.2g}); "
            f"{len(self.rates)} rates up to {self.rates[-1]:.2g}, {end}"
        )

    def _lowest(self) -> int:
        return int(np.argmin(self.smoothed))

    def _place(self, rate: float, width: int) -> int:
        """The position of a rate on a logarithmic axis."""
        low, high = math.log(self.rates[0]), math.log(self.rates[-1])
        return round((math.log(rate) - low) / ((high - low) or 1.0) * (width - 1))

    def _drawn(self, width: int) -> tuple[list[int], list[float]]:
        """Points of the smoothed curve; what exploded is cut at the first loss."""
        top = max(self.smoothed[0] * 1.5, min(self.smoothed))
        return (
            [self._place(rate, width) for rate in self.rates],
            [min(value, top) for value in self.smoothed],
        )


def find_learning_rate(
    model: Module,
    optim: Optimizer,
    loader: DataLoader[Any] | Iterable[Any],
    *,
    lowest: float = 1e-7,
    highest: float = 10.0,
    steps: int = 100,
    smoothing: float = 0.9,
    explosion: float = 4.0,
) -> LearningRateCurve:
    """Train a copy with a growing learning rate, and see where the loss falls fastest.

    The rate of step i is lowest · (highest / lowest)^(i / (steps − 1)). The loader is
    iterated as often as it takes. It stops when the smoothed loss is `explosion` times
    the lowest so far, or not a number. The model and the optimizer stay as they were,
    and none of their random numbers is drawn.
    """
    _check(lowest, highest, steps, smoothing, explosion)
    where = "find_learning_rate"
    if hasattr(type(model), "interrupter"):  # a Learner
        of = (texts_of_call(where) or ("learner",))[0]
        what = "the model, the optimizer and a loader are wanted, not a Learner"
        cure = f"{where}({of}.model, {of}.optim, loader)"
        raise ConfigError(where, what, cure=cure)
    check_order(where, (MODEL, OPTIMIZER, LOADER), model, optim, loader)
    check_form(where, 0, model, MODEL)
    device = _device(model)
    check_optimizer("find_learning_rate", optim, model)
    model, optim = model.fork(device), copy.deepcopy(optim)
    rates: list[float] = []
    losses: list[float] = []
    smoothed: list[float] = []
    mean, best, exploded = 0.0, math.inf, False
    given: Any = loader  # or any iterable of batches
    batches = _endless(on_device(given, device))
    with (
        np.errstate(over="ignore", invalid="ignore", divide="ignore"),
        use_stream(device.stream.split("learning rate finder")),
    ):
        for i in range(steps):
            trained: Any = model
            output = check_output(model, trained.train_step(next(batches)))
            loss = loss_of(output.item)
            if not math.isfinite(loss):
                exploded = True
                break
            mean = smoothing * mean + (1 - smoothing) * loss
            value = mean / (1 - smoothing ** (i + 1))
            rate = lowest * (highest / lowest) ** (i / (steps - 1))
            rates.append(rate)
            losses.append(loss)
            smoothed.append(value)
            best = min(best, value)
            exploded = i > 1 and best > 0 and value > explosion * best
            if exploded:
                break
            model = _stepped(model, optim, rate, output.grads)
    batches.close()
    if len(rates) < 3:
        raise _too_short(rates, losses)
    return LearningRateCurve(tuple(rates), tuple(losses), tuple(smoothed), exploded)


def _stepped(
    model: Module, optim: Optimizer, rate: float, grads: GradientsParams
) -> Any:
    """The model after a step; it may define its own way, as in the learner."""
    own = getattr(model, "optimize", None)
    if own is not None:
        return own(optim, rate, grads)
    return optim.step(rate, model, grads)


def longest_fall(values: Sequence[float]) -> tuple[int, int]:
    """The first and the last place of the longest falling subsequence.

    Example:
        >>> longest_fall([3.0, 2.9, 2.0, 2.1, 1.0, 5.0])
        (0, 4)
    """
    count = len(values)
    length, start = [1] * count, list(range(count))
    for i in range(count):
        for j in range(i):
            if values[j] > values[i] and length[j] + 1 > length[i]:
                length[i], start[i] = length[j] + 1, start[j]
    end = max(range(count), key=lambda i: length[i])
    return start[end], end


def _endless(loader: DataLoader[Any]) -> Any:
    """The batches of one epoch after another."""

    def walk() -> Iterator[Any]:
        epoch = 1
        while True:
            for _, batch, _ in batches_of(loader, epoch, "training"):
                yield batch
            epoch += 1

    return walk()


def _device(model: Module) -> Any:
    devices = model.devices()
    if not devices or not callable(getattr(model, "train_step", None)):
        what = "has no parameters" if not devices else "has no method train_step"
        raise ConfigError(
            "find_learning_rate",
            f"{type(model).__name__} {what}, so it cannot be trained",
            cure="a Module with layers and train_step(batch) -> TrainOutput",
        )
    device = devices[0]
    return device if device.ad_enabled else device.autodiff()


def _check(
    lowest: float, highest: float, steps: int, smoothing: float, explosion: float
) -> None:
    wrong = ""
    if not 0 < lowest < highest < math.inf:
        wrong = f"lowest={lowest} to highest={highest} is not a range of rates"
    elif type(steps) is not int or steps < 3:
        wrong = f"steps={steps} is not a number of at least 3"
    elif not 0 <= smoothing < 1:
        wrong = f"smoothing={smoothing} is not between 0 and 1"
    elif not explosion > 1:
        wrong = f"explosion={explosion} is not above 1"
    if wrong:
        cure = "lowest=1e-7, highest=10.0, steps=100, smoothing=0.9, explosion=4.0"
        raise ConfigError("find_learning_rate", wrong, cure=cure)


def _too_short(rates: list[float], losses: list[float]) -> TrainingError:
    shown = [
        f"{rate:.0e}: {loss:.3g}" for rate, loss in zip(rates, losses, strict=True)
    ]
    return TrainingError(
        "find_learning_rate",
        f"the loss was not a number after only {len(rates)} steps",
        [("rate: loss", ", ".join(shown) or "none")],
        "lowest=1e-9, or a look at the data: check it with Checked(device)",
    )
