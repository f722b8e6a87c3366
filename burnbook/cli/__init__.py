"""The command line: `burnbook lab`, `guide`, `runs`, `inspect` and others.

A command ends with 0 when it did what was asked, 1 with an explanation when it could
not, 2 when it was asked wrongly, 130 when Ctrl-C ended it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

import burnbook
from burnbook.cli import exporting, importing, learn, records, runs, work
from burnbook.core.errors import BurnbookError
from burnbook.core.other_names import closest

GROUPS = (learn, runs, records, importing, exporting, work)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    given, behind = _split(given)
    top = parser()
    _know_command(top, given)
    options = top.parse_args(given)
    options.behind = behind
    try:
        return options.run(options)
    except BurnbookError as error:
        return fail(options.command, _without_command(str(error), options.command))
    except BrokenPipeError:
        return 1
    except OSError as error:
        return fail(
            options.command, f"{error.filename or ''}: {error.strerror or error}"
        )
    except KeyboardInterrupt:
        return 130


#: What other tools call something, and the line that does it here.
MEANT = {
    ("train", "fit", "run", "start"): "burnbook new digits, whose main.py trains",
    ("init", "create", "startproject"): "burnbook new digits",
    ("notebook", "jupyter", "jupyterlab", "learn", "book"): "burnbook lab",
    ("tensorboard", "board", "dashboard", "ui", "logs"): "burnbook runs",
    ("info", "show", "view", "summary", "cat"): "burnbook inspect FILE",
    ("download", "data", "dataset", "fetch"): "burnbook datasets",
    ("compile", "build", "precompile"): "burnbook warmup",
    ("export",): "burnbook export-onnx, or another export-…: burnbook --help",
    ("import", "load"): "burnbook import-onnx or import-pytorch",
}


def _know_command(top: argparse.ArgumentParser, given: list[str]) -> None:
    """End with the nearest name for a command that is not there."""
    known = re.findall(r"^    ([a-z][\w-]*)", top.format_help(), re.M)
    if not given or given[0].startswith("-") or given[0] in known:
        return
    meant = next((line for words, line in MEANT.items() if given[0] in words), None)
    if meant:
        top.error(f"there is no command {given[0]}; try: {meant}")
    near = closest(given[0], known)
    if near:
        top.error(f"there is no command {given[0]}; did you mean: burnbook {near}")


def parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    top = argparse.ArgumentParser(
        prog="burnbook",
        description="Learn deep learning by running the Burn Book in Python.",
        epilog="example: burnbook guide",
    )
    version = f"burnbook {burnbook.__version__}"
    top.add_argument("--version", action="version", version=version)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for group in GROUPS:
        group.add_commands(commands)
    return top


def _split(given: list[str]) -> tuple[list[str], list[str]]:
    """For `lab`, what is before `--` and what is behind it, which is JupyterLab's."""
    if given[:1] != ["lab"] or "--" not in given:
        return given, []
    place = given.index("--")
    return given[:place], given[place + 1 :]


def _without_command(text: str, command: str) -> str:
    """An error that begins with the name of the command, without it."""
    return text.removeprefix(f"{command}: ").removeprefix(f"{command} ")


def fail(command: str, text: str) -> int:
    """Say why a command could not do its work: the first line is enough."""
    sys.stderr.write(f"burnbook {command}: {text.strip()}\n")
    return 1
