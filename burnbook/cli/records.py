"""Building blocks · Record. `burnbook inspect`: what a record holds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from burnbook.cli.shared import command, say


def add_commands(commands: Any) -> None:
    """Declare the commands of this file."""
    about = "List what a record holds: names, shapes and element types."
    example = "burnbook inspect guide/model.mpk"
    inspect = command(commands, "inspect", run_inspect, about, example)
    inspect.add_argument("file", type=Path, help="a file that a recorder has written")


def run_inspect(options: argparse.Namespace) -> int:
    """Describe a record."""
    from burnbook.record import describe

    say(str(describe(options.file)))
    return 0
