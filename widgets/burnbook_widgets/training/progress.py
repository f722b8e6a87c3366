"""How far a run is, how fast, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST_GUESS = 0.85  # share of an epoch's time that training takes, until measured


class Meter:
    """Follow a run's progress; `note` per batch is nearly free, the rest on request.

    Example:
        >>> now = iter([0.0, 0.0, 1.0, 1.0, 1.0]).__next__
        >>> meter = Meter(num_epochs=2, start_epoch=1, clock=now)
        >>> meter.note("train", epoch=1, items=10, total=100, iteration=1)
        >>> meter.note("train", epoch=1, items=60, total=100, iteration=6)
        >>> meter.speed(), duration(83)
        (50.0, '1 min 23 s')
    """

    def __init__(
        self,
        num_epochs: int,
        start_epoch: int = 1,
        clock: Callable[[], float] = time.monotonic,
        validates: bool = True,
    ):
        self.num_epochs, self.start_epoch, self.clock = num_epochs, start_epoch, clock
        self.split = "train"
        self.epoch, self.iteration = start_epoch, 0
        self.items = self.total = 0
        self.lr: float | None = None
        self._share = FIRST_GUESS if validates else 1.0
        self._began = clock()
        self._epoch_began = self._valid_began = self._began
        self._first_items = 0
        self._seen: tuple[str, int] | None = None
        self._paused_at: float | None = None
        self._speed = 0.0

    def note(
        self,
        split: str,
        epoch: int,
        items: int,
        total: int,
        iteration: int,
        lr: float | None = None,
    ) -> None:
        """Note where the run is."""
        if self._seen != (split, epoch):
            self._turn(split, epoch, items)
        self.items, self.total, self.iteration = items, total, iteration
        if lr is not None:
            self.lr = lr

    def _turn(self, split: str, epoch: int, items: int) -> None:
        now = self.clock()
        if split == "valid":
            self._speed = self.speed()
            self._valid_began = now
        else:
            whole = now - self._epoch_began
            if self.split == "valid" and whole > 0:
                self._share = (self._valid_began - self._epoch_began) / whole
            self._epoch_began, self._first_items = now, items
        self._seen = (split, epoch)
        self.split, self.epoch = split, epoch

    def pause(self) -> None:
        """Stop the clock."""
        if self._paused_at is None:
            self._paused_at = self.clock()

    def resume(self) -> None:
        """Go on, as if the pause had not been."""
        if self._paused_at is not None:
            away = self.clock() - self._paused_at
            self._began += away
            self._epoch_began += away
            self._valid_began += away
            self._paused_at = None

    def _now(self) -> float:
        return self.clock() if self._paused_at is None else self._paused_at

    def seconds(self) -> float:
        """Time spent training, pauses left out."""
        return self._now() - self._began

    def speed(self) -> float:
        """Items per second of this epoch's training (of the last, while validating)."""
        if self.split == "valid":
            return self._speed
        seconds = self._now() - self._epoch_began
        done = self.items - self._first_items
        return done / seconds if seconds > 0 and done > 0 else self._speed

    def done(self) -> float:
        """The share of the whole run that is behind us, from 0 to 1."""
        part = self.items / self.total if self.total else 0.0
        if self.split == "valid":
            part = self._share + (1 - self._share) * part
        else:
            part *= self._share
        epochs = self.num_epochs - self.start_epoch + 1
        return min(1.0, (self.epoch - self.start_epoch + part) / max(1, epochs))

    def seconds_left(self) -> float | None:
        """How long the rest will take at this pace; None in the first second."""
        done, spent = self.done(), self.seconds()
        return spent * (1 - done) / done if done > 0 and spent > 1 else None


def duration(seconds: float) -> str:
    """A length of time for people: its two largest units."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def facts_of(meter: Meter) -> list[str]:
    """What the line below the bar says: how far, how fast, how long, at what rate."""
    facts = [f"{meter.items:,} of {meter.total:,} items"] if meter.total else []
    if meter.speed() > 0:
        facts.append(f"{meter.speed():,.0f} items/s")
    left = meter.seconds_left()
    if left is not None:
        facts.append(f"about {duration(left)} left")
    if meter.iteration:
        facts.append(f"iteration {meter.iteration:,}")
    if meter.lr is not None:
        facts.append(f"learning rate {meter.lr:.3g}")
    memory = memory_used()
    if memory is not None:
        facts.append(f"memory {size(memory)}")
    return facts


def memory_used() -> int | None:
    """Bytes of memory that this process holds; None where nobody can tell."""
    try:
        import psutil
    except ImportError:
        return None
    return int(psutil.Process().memory_info().rss)


def size(count: float) -> str:
    """A number of bytes for people.

    Example:
        >>> size(312_400_000), size(2_310_000_000)
        ('312 MB', '2.31 GB')
    """
    return f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:.3g} GB"
