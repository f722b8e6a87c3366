"""What all commands share: how they are declared, and how they speak."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, Protocol

from burnbook.text.table import plain


class Subcommands(Protocol):
    """What `ArgumentParser.add_subparsers` gives: a place to declare commands."""

    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser:
        """The parser of one command."""
        ...


def command(
    commands: Subcommands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    about: str,
    example: str,
) -> argparse.ArgumentParser:
    """Declare a command; `run(options)` returns the exit code."""
    made = commands.add_parser(
        name, help=about, description=about, epilog=f"example: {example}"
    )
    made.set_defaults(run=run)
    return made


def say(text: str) -> None:
    """Write lines for people; what the terminal cannot show, or obeys, is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    lines = "\n".join(map(plain, text.split("\n")))
    shown = lines.encode(encoding, "backslashreplace").decode(encoding)
    sys.stdout.write(shown + "\n")
    sys.stdout.flush()


def positive(text: str) -> int:
    """A whole number of at least 1, from the command line."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return number


def whole(text: str) -> int:
    """A whole number from the command line."""
    try:
        return int(text)
    except ValueError:
        what = f"{text!r} is not a whole number"
        raise argparse.ArgumentTypeError(what) from None
