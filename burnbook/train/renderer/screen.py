"""The screen of a terminal, taken over and always given back.

While it is borrowed, the dashboard has the alternate screen (the shell's text is kept
behind it) and hears single keys. It is given back when training ends, fails, or the
process is told to stop: by `leave`, at exit, and on SIGTERM, SIGHUP and Ctrl-Z. What
others print meanwhile is held back and written when the screen is given back.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import select
import shutil
import signal
import sys
import threading
from types import FrameType
from typing import Any, TextIO

ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"  # other screen, no cursor, no wrapping
LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
KEYS = {"\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left"}


class Screen:
    """A terminal's screen: `enter`, `show` rows, hear what is `pressed`, `leave`."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.active = False
        self.rows: list[str] = []
        self.keyboard: int | None = None
        self.cooked: Any = None
        self.handlers: dict[int, Any] = {}
        self.held: dict[str, tuple[Any, io.StringIO]] = {}

    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal, now."""
        with contextlib.suppress(OSError, ValueError):
            columns, rows = os.get_terminal_size(self.stream.fileno())
            if columns and rows:
                return columns, rows
        return shutil.get_terminal_size()

    def enter(self) -> None:
        """Borrow the screen and the keyboard."""
        if self.active:
            return
        self.active = True
        atexit.register(self.leave)
        self._listen()
        self._catch_signals()
        self._hold_prints()
        self._write(ENTER)
        self.rows = []

    def leave(self) -> None:
        """Give everything back; harmless when nothing is borrowed."""
        if not self.active:
            return
        self.active = False
        atexit.unregister(self.leave)
        self._write(LEAVE)
        self._stop_listening()
        self._release_prints()
        for number, handler in self.handlers.items():
            with contextlib.suppress(ValueError, OSError):
                signal.signal(number, handler)
        self.handlers = {}

    def show(self, rows: list[str]) -> None:
        """Write the rows that have changed since the last time."""
        if not self.active:
            return
        parts: list[str] = []
        if len(rows) != len(self.rows):
            parts.append("\x1b[2J")
            self.rows = [""] * len(rows)
        for number, (old, new) in enumerate(zip(self.rows, rows, strict=True), 1):
            if old != new:
                parts.append(f"\x1b[{number};1H{new}")
        self.rows = rows
        if parts:
            self._write("".join(parts))

    def forget(self) -> None:
        """Write every row anew next time: something else may have written."""
        self.rows = [""] * len(self.rows)

    def pressed(self) -> list[str]:
        """The keys pressed since the last time; arrows by name."""
        if self.keyboard is None or not self.active:
            return []
        try:
            ready, _, _ = select.select([self.keyboard], [], [], 0)
            text = os.read(self.keyboard, 64).decode(errors="ignore") if ready else ""
        except (OSError, ValueError):
            return []
        found: list[str] = []
        while text:
            arrow = KEYS.get(text[:3])
            found.append(arrow or text[0])
            text = text[3 if arrow else 1 :]
        return found

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
            self.stream.write(text)
            self.stream.flush()

    def _listen(self) -> None:
        """Read keys one by one, without Enter and without showing them."""
        try:
            import termios
            import tty

            keyboard = sys.stdin.fileno()
            if os.tcgetpgrp(keyboard) != os.getpgrp():  # in the background: hands off
                return
            self.cooked = termios.tcgetattr(keyboard)
            tty.setcbreak(keyboard)
            self.keyboard = keyboard
        except (ImportError, OSError, ValueError, AttributeError):
            self.keyboard = None
        except Exception as cause:  # termios.error has no other base
            if type(cause).__name__ != "error":
                raise
            self.keyboard = None

    def _stop_listening(self) -> None:
        keyboard, self.keyboard = self.keyboard, None
        if keyboard is not None:
            import termios

            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(keyboard, termios.TCSADRAIN, self.cooked)

    def _hold_prints(self) -> None:
        """Collect what is printed to the terminal: it would break the display."""
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and stream.isatty():
                self.held[name] = (stream, io.StringIO())
                setattr(sys, name, self.held[name][1])

    def _release_prints(self) -> None:
        held, self.held = self.held, {}
        for name, (stream, text) in held.items():
            if getattr(sys, name) is text:
                setattr(sys, name, stream)
            with contextlib.suppress(OSError, ValueError):
                stream.write(text.getvalue())
                stream.flush()

    def _catch_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for name in ("SIGTERM", "SIGHUP", "SIGTSTP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                self.handlers[number] = signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Give the screen back, do what the signal asks, come back if we live on."""
        self.leave()
        os.kill(os.getpid(), number)
        self.enter()
