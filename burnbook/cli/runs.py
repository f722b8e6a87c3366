"""`burnbook runs`: the trainings below a folder."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from burnbook.cli.shared import Subcommands, command, say


def add_commands(commands: Subcommands) -> None:
    """Declare the commands of this file."""
    about = "List the training runs below a folder, from burnbook or Burn in Rust."
    example = "burnbook runs artifacts --sort Loss"
    runs = command(commands, "runs", run_runs, about, example)
    runs.add_argument(
        "folder", nargs="?", type=Path, default=Path(), help="where to look; default: ."
    )
    runs.add_argument(
        "--compare",
        nargs="+",
        metavar="RUN",
        help="show these runs side by side: config fields that differ, and metrics",
    )
    runs.add_argument(
        "--sort",
        metavar="KEY",
        help="by date (default), name, epochs, state, a metric or a config field",
    )
    runs.add_argument("--reverse", action="store_true", help="reverse the order")
    runs.add_argument("--csv", type=Path, metavar="FILE", help="write a CSV file")
    runs.add_argument(
        "--per",
        choices=["run", "epoch", "batch"],
        default="run",
        help="what a line of the CSV file stands for; default: run",
    )
    runs.add_argument(
        "--delete",
        nargs="+",
        metavar="RUN",
        help="delete these runs, at once and for good",
    )


def run_runs(options: argparse.Namespace) -> int:
    """List, compare, export or delete."""
    from burnbook.train import RunStore

    store = RunStore(options.folder)
    if options.delete:
        for name in options.delete:
            store.delete(name)
            say(f"deleted {name}")
        return 0
    if options.sort or options.reverse:
        store = store.sort(options.sort or "date", reverse=options.reverse)
    if options.csv:
        say(f"wrote {store.export_csv(options.csv, options.per)}")
        return 0
    if options.compare:
        table = store.compare(*options.compare).table()
    else:
        table = store.table()
    say(table.text(screen_width()))
    return 0


def screen_width() -> int | None:
    """How many characters a line of the terminal has; None where there is no end."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
