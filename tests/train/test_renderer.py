"""Renderers: which one is chosen, what they write, that the terminal comes back."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from burnbook.core.errors import ConfigError
from burnbook.data import Progress
from burnbook.train import (
    Interrupter,
    MetricEntry,
    MetricHistory,
    MetricsRenderer,
    MetricState,
    PlainRenderer,
    RunInfo,
    TerminalRenderer,
    TrainingProgress,
    TrainingResult,
)
from burnbook.train.renderer import choose, chooser
from burnbook.train.renderer.canvas import Canvas, Plot
from burnbook.train.renderer.dashboard import COLORLESS, Theme, draw
from burnbook.train.renderer.screen import ENTER, LEAVE, Screen
from tests.support.cases import cases
from tests.support.programs import environment, start
from tests.support.refusals import refused

STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


def run_info(control=None, epochs=2, directory="guide"):
    names, units = ("Accuracy", "Loss"), {"Accuracy": "%"}
    control = control or Interrupter()
    return RunInfo(directory, names, epochs, 1, control, "Model", "fit", units)


def play(renderer, batches=30, epochs=2):
    """Tell the renderer a short training."""
    for epoch in range(1, epochs + 1):
        for split in ("train", "valid"):
            for batch in range(1, batches + 1):
                told = MetricEntry("Loss", f"epoch 0.70 - batch {1 / batch:.2f}", "1,1")
                update = getattr(renderer, f"update_{split}")
                update(MetricState(told, 1 / batch))
                at = TrainingProgress(Progress(batch, batches), epoch, epochs, batch)
                getattr(renderer, f"render_{split}")(at)
            renderer.end_epoch(epoch, split, {"Accuracy": 83.287, "Loss": 0.7})


def ended(reason=None, epochs=2):
    return TrainingResult(None, MetricHistory(), reason, epochs, 75.0, "guide")


# Choosing


@cases(
    "wish stream kind",
    ("none", Terminal(), MetricsRenderer),
    ("plain", Terminal(), PlainRenderer),
    ("static", Terminal(), PlainRenderer),
    ("", Terminal(), TerminalRenderer),
    ("", io.StringIO(), PlainRenderer),
)
def test_the_place_chooses_the_renderer_and_a_variable_overrules(
    monkeypatch, wish, stream, kind
):
    monkeypatch.setenv("BURNBOOK_DISPLAY", wish)
    monkeypatch.setenv("TERM", "xterm")
    assert type(choose(stream)) is kind


def test_a_terminal_that_cannot_draw_gets_lines(monkeypatch):
    monkeypatch.setenv("BURNBOOK_DISPLAY", "")
    monkeypatch.setenv("TERM", "dumb")
    assert type(choose(Terminal())) is PlainRenderer
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    stream.__class__ = type("Ascii", (Terminal,), {"encoding": "ascii"})
    assert type(choose(stream)) is PlainRenderer


def test_a_notebook_gets_the_renderer_of_the_entry_point(monkeypatch):
    class ZMQInteractiveShell:
        pass

    class Dashboard(MetricsRenderer):
        pass

    shell = SimpleNamespace(get_ipython=ZMQInteractiveShell)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    entry = SimpleNamespace(load=lambda: Dashboard)
    for found, kind in (([entry], Dashboard), ([], PlainRenderer)):
        monkeypatch.setattr(chooser, "entry_points", lambda found=found, **_: found)
        assert type(choose()) is kind


def test_an_unknown_display_is_an_error(monkeypatch):
    monkeypatch.setenv("BURNBOOK_DISPLAY", "fancy")
    told = ("BURNBOOK_DISPLAY: ", "'fancy'", "try: static, plain, none or nothing")
    refused(ConfigError, choose, *told)


# Plain


def test_the_plain_renderer_writes_a_line_per_epoch(monkeypatch):
    monkeypatch.setattr(
        "burnbook.train.renderer.plain.time", SimpleNamespace(monotonic=lambda: 1.0)
    )
    stream = io.StringIO()
    renderer = PlainRenderer(stream)
    renderer.start(run_info(epochs=10))
    play(renderer, epochs=1)
    renderer.finish(ended("interrupted", 1))
    assert stream.getvalue() == (
        "epoch  1/10  train Accuracy 83.29 %  Loss 0.700  ·  "
        "valid Accuracy 83.29 %  Loss 0.700  ·  0.0 s\n"
        "interrupted after 1 epoch; the model so far is kept\n"
    )


# Canvas


@cases(
    "train valid line",
    ({"Loss": 0.5}, {}, "train Loss 0.500  ·  "),
    ({}, {"Loss": 0.5}, "valid Loss 0.500  ·  "),
    ({}, {}, ""),
)
def test_a_split_without_metrics_has_no_place_in_the_line(train, valid, line):
    stream = io.StringIO()
    renderer = PlainRenderer(stream)
    renderer.start(run_info())
    renderer.end_epoch(1, "train", train)
    renderer.end_epoch(1, "valid", valid)
    assert re.fullmatch(rf"epoch 1/2  {line}\d+\.\d s\n", stream.getvalue())


def test_a_canvas_cuts_off_what_lies_outside():
    canvas = Canvas(5, 2)
    canvas.text(-2, 0, "abcdefghij")
    canvas.text(0, 7, "nowhere")
    canvas.text(9, 0, "nowhere")
    canvas.right(5, 1, "xyz", "\x1b[1m")
    assert canvas.lines() == ["cdefg", "  \x1b[1mxyz\x1b[0m"]


def test_a_bar_is_filled_to_its_share():
    canvas = Canvas(4, 1)
    for share, text in ((0.0, "────"), (0.4, "━╸──"), (1.0, "━━━━"), (7.0, "━━━━")):
        canvas.bar(0, 0, 4, share, "", "")
        assert canvas.lines() == [text]


def test_a_plot_draws_lines_from_corner_to_corner():
    plot = Plot(2, 1, (0, 3), (0, 3))
    plot.curve([(0, 3), (3, 0)])
    canvas = Canvas(2, 1)
    plot.paint(canvas, 0, 0)
    assert canvas.lines() == ["⠑⢄"]


# The dashboard


def board(width, height, monkeypatch, theme=COLORLESS):
    monkeypatch.setattr(Screen, "enter", lambda self: None)
    monkeypatch.setattr(Screen, "size", lambda self: (width, height))
    shown = []
    monkeypatch.setattr(Screen, "show", lambda self, rows: shown.append(rows))
    renderer = TerminalRenderer(Terminal())
    renderer.theme = theme
    renderer.start(run_info())
    play(renderer)
    renderer.tick()
    renderer._draw(time.monotonic())
    return renderer, shown[-1]


@cases(
    "size", (80, 24), (120, 40), (200, 60), (60, 18), (59, 17), (20, 5), (5, 2), (1, 1)
)
def test_the_dashboard_fits_every_size(monkeypatch, size):
    _, rows = board(*size, monkeypatch, Theme())
    plain = [STYLE.sub("", row) for row in rows]
    assert len(plain) == size[1]
    assert {len(row) for row in plain} == {size[0]}


def test_the_dashboard_shows_what_there_is_to_know(monkeypatch):
    _, rows = board(80, 24, monkeypatch)
    text = "\n".join(rows)
    for piece in ("Metrics", "Status", "Keys", "Progress", "Accuracy", "Loss"):
        assert piece in text
    assert re.search(r"Loss +0\.70 +0\.70", text)
    assert re.search(r"Epoch +2/2", text)
    assert re.search(r"Items +30/30", text)
    assert re.search(r"[\u2801-\u28ff]", text)


def test_colors_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert TerminalRenderer(Terminal()).theme is COLORLESS


@cases(
    "key check",
    ("q", lambda control, board: control.reason == "stopped with q"),
    ("p", lambda control, board: control.paused and board.mode() == "paused"),
    ("right", lambda control, board: board.first == 1),
    ("left", lambda control, board: board.first == -1),
    ("up", lambda control, board: board.zoomed),
)
def test_keys_act(monkeypatch, key, check):
    renderer, _ = board(80, 24, monkeypatch)
    monkeypatch.setattr(Screen, "pressed", lambda self: [key])
    renderer._draw(time.monotonic())
    assert check(renderer.dashboard.run.control, renderer.dashboard)


def test_the_dashboard_redraws_at_most_ten_times_a_second(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(
        "burnbook.train.renderer.terminal.time",
        SimpleNamespace(monotonic=lambda: clock[0]),
    )
    drawn = []
    monkeypatch.setattr(Screen, "enter", lambda self: None)
    monkeypatch.setattr(Screen, "show", lambda self, rows: drawn.append(clock[0]))
    renderer = TerminalRenderer(Terminal())
    renderer.start(run_info())
    for batch in range(1, 1001):
        clock[0] = batch / 1000
        renderer.render_train(TrainingProgress(Progress(batch, 1000), 1, 2, batch))
    assert 3 <= len(drawn) <= 10


def test_the_end_leaves_plots_and_a_line_in_the_shell(monkeypatch):
    renderer, _ = board(80, 24, monkeypatch)
    renderer.finish(ended())
    lines = renderer.stream.getvalue().splitlines()
    assert len(lines) == 11
    assert lines[-1] == (
        "trained 2 epochs in 1:15  ·  train Accuracy 83.29 %  Loss 0.700  ·  "
        "valid Accuracy 83.29 %  Loss 0.700"
    )


# The screen


def test_the_screen_writes_only_rows_that_changed():
    stream = Terminal()
    screen = Screen(stream)
    screen.enter()
    screen.show(["one", "two"])
    written = len(stream.getvalue())
    screen.show(["one", "2"])
    assert stream.getvalue()[written:] == "\x1b[2;1H2"
    screen.leave()
    screen.leave()
    assert stream.getvalue().count(LEAVE) == 1


def test_what_is_printed_meanwhile_appears_afterwards(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    screen = Screen(stream)
    screen.enter()
    print("a note of the model")
    assert "a note" not in stream.getvalue()
    screen.leave()
    assert sys.stdout is stream
    assert stream.getvalue().endswith(LEAVE + "a note of the model\n")


def test_the_terminal_shows_how_callbacks_stand():
    renderer = TerminalRenderer(Terminal())
    run = replace(run_info(), callbacks=(("Ema", "decay 0.9, 0 steps"), ("note", "")))
    renderer.start(run)
    play(renderer, epochs=1)
    renderer.update_callbacks([("Ema", "decay 0.9, 30 steps"), ("note", "")])
    for size in ((100, 30), (50, 12)):  # the whole dashboard, and the small one
        lines = "\n".join(draw(renderer.dashboard, *size, COLORLESS))
        assert "Ema: decay 0.9, 30 steps" in lines
        assert "note" in lines
    renderer.close()


PROGRAM = """
import os, signal, sys, time
from burnbook.train import RunInfo, Interrupter, TerminalRenderer
renderer = TerminalRenderer()
try:
    renderer.start(RunInfo("x", ("Loss",), 2, 1, Interrupter(), "Model"))
    {ending}
finally:
    renderer.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
@cases(
    "ending code",
    ("pass", 0),
    ("raise ValueError('too bad')", 1),
    ("sys.exit(3)", 3),
    ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)", -signal.SIGTERM),
    ("renderer.close = lambda: None", 0),
)
def test_the_terminal_comes_back_however_it_ends(ending, code):
    import pty
    import termios

    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    streams = {"stdin": theirs, "stdout": theirs, "stderr": subprocess.DEVNULL}
    options = {"env": environment(TERM="xterm"), "start_new_session": True}
    process = start("-c", PROGRAM.format(ending=ending), **streams, **options)
    assert process.wait(timeout=30) == code
    written = b""
    while LEAVE.encode() not in written:
        written += os.read(ours, 65536)
    assert ENTER.encode() in written
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)
