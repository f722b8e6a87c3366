"""The dashboard in a terminal: how it looks.

    ╭ Metrics ──────────╮╭ Loss ─────────────────╮
    │     train   valid ││ 2.3 ⢇                 │
    ╰───────────────────╯│ 0.1  ⠑⠤⣀⣀⣀            │
    ╭ Status ───────────╮╰───────────────────────╯
    ╭ Progress ──────────────────────────────────╮

Everything here is a function from a `TerminalDashboard` (what is known) to a canvas;
`terminal.py` keeps the dashboard and the clock.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from burnbook.train.history import Thinned
from burnbook.train.numbers import signed_float
from burnbook.train.renderer.base import RunInfo, TrainingProgress
from burnbook.train.renderer.canvas import Canvas, Plot

RECENT = 200
SMALLEST = (60, 18)  # below this only bars and numbers fit


@dataclass(frozen=True)
class Theme:
    """Styles by purpose: Okabe and Ito's orange and blue, told apart by every eye."""

    train: str = "\x1b[38;5;214m"
    valid: str = "\x1b[38;5;39m"
    frame: str = "\x1b[38;5;244m"
    strong: str = "\x1b[1m"
    quiet: str = "\x1b[38;5;246m"


COLORLESS = Theme("", "", "", "\x1b[1m", "")


Points = list[tuple[int, float]]


def drawable(points: Points) -> Points:
    """The points that can be drawn: neither NaN nor infinite."""
    return [point for point in points if math.isfinite(point[1])]


@dataclass
class Curve:
    """One metric over training: every batch of train, every epoch of both splits.

    Why: some metrics have a value for whole epochs only, or are measured in validation
    only; their plots go from epoch to epoch instead of from batch to batch.
    """

    train: Thinned = field(default_factory=Thinned)
    recent: deque[tuple[int, float]] = field(
        default_factory=lambda: deque(maxlen=RECENT)
    )
    epochs: dict[str, list[tuple[int, int, float]]] = field(
        default_factory=lambda: {"train": [], "valid": []}
    )

    def end_epoch(self, epoch: int, split: str, value: float) -> None:
        """An epoch of a split: its number, the batches trained until then, its mean."""
        self.epochs[split].append((epoch, self.train.count, value))

    def lines(self, recent: bool) -> tuple[Points, Points, str]:
        """Points of train and valid that can be drawn, and what their x counts."""
        if not self.train.count:
            train, valid = (
                [(epoch, value) for epoch, _, value in self.epochs[split]]
                for split in ("train", "valid")
            )
            return drawable(train), drawable(valid), "epoch"
        train = drawable(list(self.recent) if recent else self.train.points())
        start = train[0][0] if train else 0
        valid = [(at, value) for _, at, value in self.epochs["valid"] if at >= start]
        return train, drawable(valid), "batch"

    def add(self, value: float) -> None:
        """A training batch."""
        self.train.add(value)
        self.recent.append((self.train.count, value))


@dataclass
class TerminalDashboard:
    """Everything the dashboard shows."""

    run: RunInfo
    texts: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    curves: dict[str, Curve] = field(default_factory=dict[str, Curve])
    split: str = "train"
    progress: TrainingProgress | None = None
    share: float = 0.0
    epoch_share: float = 0.0
    elapsed: float = 0.0
    eta: str = "---"
    speed: float = 0.0
    first: int = 0
    zoomed: bool = False
    callbacks: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def mode(self) -> str:
        """What is going on."""
        if self.run.control.should_stop():
            return "stopping"
        if self.run.control.paused:
            return "paused"
        return "training" if self.split == "train" else "validating"


def draw(
    dashboard: TerminalDashboard, width: int, height: int, theme: Theme
) -> list[str]:
    """The dashboard as rows of text, fitted to the size."""
    canvas = Canvas(width, height)
    if width < SMALLEST[0] or height < SMALLEST[1]:
        draw_small(canvas, dashboard, theme)
        return canvas.lines()
    left = min(max(37, width * 38 // 100), 48)
    main = height - 4
    draw_metrics(canvas, dashboard, theme, left, main - 12)
    draw_status(canvas, dashboard, theme, main - 12, left)
    draw_keys(canvas, dashboard, theme, main - 4, left)
    draw_plots(canvas, dashboard, theme, (left, 0, width - left, main))
    draw_bars(canvas, dashboard, theme, main)
    return canvas.lines()


def draw_small(canvas: Canvas, dashboard: TerminalDashboard, theme: Theme) -> None:
    """Bars and numbers only, for a terminal of any size."""
    name = f"{dashboard.run.name} · " if dashboard.run.named else ""
    canvas.text(0, 0, f"{name}{dashboard.mode()} · {_epoch(dashboard)}", theme.strong)
    bar = max(canvas.width - 8, 4)
    canvas.bar(0, 1, bar, dashboard.share, theme.train, theme.frame)
    canvas.text(bar + 1, 1, f"{dashboard.share:>5.0%}")
    canvas.text(0, 2, f"ETA {dashboard.eta}", theme.quiet)
    for row, (name, texts) in enumerate(dashboard.texts.items(), 3):
        train, valid = texts.get("train", "-"), texts.get("valid", "-")
        canvas.text(0, row, f"{name}: {short(train)} | {short(valid)}")
    for row, (name, text) in enumerate(dashboard.callbacks, 3 + len(dashboard.texts)):
        canvas.text(0, row, f"{name}: {text}" if text else name, theme.quiet)


def draw_metrics(
    canvas: Canvas, dashboard: TerminalDashboard, theme: Theme, width: int, height: int
) -> None:
    """The running means of every metric, train beside valid; below them callbacks."""
    title = f"Metrics · {dashboard.run.name}" if dashboard.run.named else "Metrics"
    canvas.box(0, 0, width, height, clip(title, width - 6), theme.frame)
    column = min((width - 17) // 2, 16)
    splits = ("train", "valid") if dashboard.run.validates else ("train",)
    for i, split in enumerate(reversed(splits)):
        canvas.right(width - 2 - column * i, 1, split, getattr(theme, split))
    for row, (name, texts) in enumerate(dashboard.texts.items(), 2):
        if row >= height - 1:
            break
        canvas.text(2, row, clip(name, width - 4 - len(splits) * column))
        for i, split in enumerate(reversed(splits)):
            end = width - 2 - column * i
            canvas.right(end, row, clip(short(texts.get(split, "-")), column - 1))
    for row, (name, text) in enumerate(dashboard.callbacks, 2 + len(dashboard.texts)):
        if row >= height - 1:
            break
        told = f"{name}: {text}" if text else name
        canvas.text(2, row, clip(told, width - 4), theme.quiet)


def draw_status(
    canvas: Canvas, dashboard: TerminalDashboard, theme: Theme, top: int, width: int
) -> None:
    """Where training stands."""
    canvas.box(0, top, width, 8, "Status", theme.frame)
    progress = dashboard.progress
    done = f"{progress.progress.items_processed}" if progress else "0"
    total = f"{progress.progress.items_total}" if progress else "-"
    rows = (
        ("Mode", dashboard.mode().capitalize()),
        ("Epoch", _epoch(dashboard).removeprefix("epoch ")),
        ("Iteration", str(progress.iteration if progress else 0)),
        ("Items", f"{done}/{total}"),
        ("Speed", f"{dashboard.speed:,.0f} items/s" if dashboard.speed else "-"),
        ("Time", clock(dashboard.elapsed)),
    )
    for row, (name, text) in enumerate(rows, top + 1):
        canvas.text(2, row, name, theme.quiet)
        canvas.text(13, row, clip(text, width - 15))


def draw_keys(
    canvas: Canvas, dashboard: TerminalDashboard, theme: Theme, top: int, width: int
) -> None:
    """Which keys do what."""
    canvas.box(0, top, width, 4, "Keys", theme.frame)
    pause = "p resume" if dashboard.run.control.paused else "p pause"
    canvas.text(2, top + 1, f"q stop    {pause}", theme.quiet)
    zoom = "all" if dashboard.zoomed else "recent"
    canvas.text(2, top + 2, f"← → metric    ↑ ↓ {zoom}", theme.quiet)


def draw_bars(
    canvas: Canvas, dashboard: TerminalDashboard, theme: Theme, top: int
) -> None:
    """How much of this epoch and of the whole training is done."""
    width = canvas.width
    canvas.box(0, top, width, 4, "Progress", theme.frame)
    eta = f"ETA {dashboard.eta}"
    bar = width - 16 - max(len(eta), 12)
    rows = (
        ("epoch", dashboard.epoch_share, theme.valid, ""),
        ("total", dashboard.share, theme.train, eta),
    )
    for row, (name, share, style, text) in enumerate(rows, top + 1):
        canvas.text(2, row, name, theme.quiet)
        canvas.bar(8, row, bar, share, style, theme.frame)
        canvas.right(8 + bar + 5, row, f"{share:.0%}")
        canvas.right(width - 2, row, text, theme.quiet)


def draw_plots(
    canvas: Canvas,
    dashboard: TerminalDashboard,
    theme: Theme,
    area: tuple[int, int, int, int],
) -> None:
    """As many plots as fit, one below the other, starting with the chosen metric."""
    x, y, width, height = area
    names = list(dashboard.curves)
    count = min(len(names), max(1, height // 9)) or 1
    for i in range(count):
        top, bottom = y + height * i // count, y + height * (i + 1) // count
        name = names[(dashboard.first + i) % len(names)] if names else "Plot"
        draw_plot(canvas, dashboard, theme, name, (x, top, width, bottom - top))


def draw_plot(
    canvas: Canvas,
    dashboard: TerminalDashboard,
    theme: Theme,
    name: str,
    area: tuple[int, int, int, int],
) -> None:
    """One metric: train as a line, valid as crosses, one per epoch."""
    x, y, width, height = area
    title = f"{name} · recent" if dashboard.zoomed else name
    canvas.box(x, y, width, height, title, theme.frame)
    if width > 30 + len(title):
        end = x + width - 2
        if dashboard.run.validates:
            canvas.right(end, y, " + valid ", theme.valid)
            end -= 9
        canvas.right(end, y, " ━ train", theme.train)
    curve = dashboard.curves.get(name, Curve())
    columns, rows = width - 11, height - 2
    raw, valid, unit = curve.lines(dashboard.zoomed)
    train = binned(raw, 2 * columns)
    if not (train or valid) or columns < 4 or rows < 2:
        canvas.text(x + 9, y + height // 2, "waiting for the first batch", theme.quiet)
        return
    low, high = _range([value for _, value in [*train, *valid]])
    places = [at for at, _ in [*train, *valid]]
    start, end = min(places), max(places)
    plot = Plot(columns, rows, (start, max(end, start + 1)), (low, high))
    plot.curve(train, theme.train)
    plot.curve(valid, theme.valid, dotted=True)
    plot.marks(valid, theme.valid)
    plot.paint(canvas, x + 10, y + 1)
    for row, value in ((1, high), (rows, low)):
        canvas.right(x + 9, y + row, clip(signed_float(value, 2), 8), theme.quiet)
    canvas.right(x + width - 2, y + height - 1, f" {unit} {end:.0f} ", theme.quiet)


def binned(points: list[tuple[int, float]], count: int) -> list[tuple[float, float]]:
    """At most about `count` points: neighbors are averaged.

    Example:
        >>> binned([(1, 0.0), (2, 1.0), (3, 2.0), (4, 3.0)], 2)
        [(1.5, 0.5), (3.5, 2.5)]
    """
    size = -(-len(points) // max(count, 1))
    if size <= 1:
        return [(float(x), y) for x, y in points]
    groups = (points[i : i + size] for i in range(0, len(points), size))
    return [
        (sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group))
        for group in groups
    ]


def short(text: str) -> str:
    """The running mean out of a metric's text.

    Example:
        >>> short("epoch 83.29 % - batch 90.62 %"), short("RAM Used: 1.23 / 4.56 Gb")
        ('83.29 %', 'RAM Used: 1.23 / 4.56 Gb')
    """
    return text.partition(" - batch ")[0].removeprefix("epoch ")


def clip(text: str, width: int) -> str:
    """The text, shortened to a width."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def clock(seconds: float) -> str:
    """Seconds as a clock.

    Example:
        >>> clock(75), clock(3700)
        ('1:15', '1:01:40')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def in_words(seconds: float) -> str:
    """Seconds as the largest unit that fits.

    Example:
        >>> in_words(1), in_words(42), in_words(7300)
        ('1 sec', '42 secs', '2 hours')
    """
    for unit, size in (("day", 86400), ("hour", 3600), ("min", 60), ("sec", 1)):
        count = int(seconds // size)
        if count or size == 1:
            return f"{count} {unit}{'s' * (count != 1)}"
    return ""


def _epoch(dashboard: TerminalDashboard) -> str:
    epoch = (
        dashboard.progress.epoch if dashboard.progress else dashboard.run.start_epoch
    )
    return f"epoch {epoch}/{dashboard.run.num_epochs}"


def _range(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if low == high:
        margin = 0.1 * abs(low) or 0.5
        low, high = low - margin, high + margin
    return low, high
