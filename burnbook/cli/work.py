"""`burnbook save` and `restore`: take your work along, bring it back."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

from burnbook.cli.learn import CHAPTERS, chapters_folder, copy_chapters
from burnbook.cli.shared import Subcommands, command, say
from burnbook.cli.workspace import Saved, find_folder, restore_work, save_work
from burnbook.core.errors import ConfigError


def add_commands(commands: Subcommands) -> None:
    """Declare the commands of this file."""
    about = "Put the chapters you have changed, and your training runs, into one file."
    save = command(commands, "save", run_save, about, "burnbook save my-work.zip")
    save.add_argument(
        "file", nargs="?", type=Path, help="default: burnbook-work, with date and time"
    )
    save.add_argument("--folder", type=Path, help="where the chapters are")
    save.add_argument(
        "--without-artifacts", action="store_true", help="only notebooks and Python"
    )
    about = "Bring back what `burnbook save` wrote, without losing what is there."
    restore = command(
        commands, "restore", run_restore, about, "burnbook restore my-work.zip"
    )
    restore.add_argument("file", type=Path, help="a file that `burnbook save` wrote")
    restore.add_argument("--folder", type=Path, help="where the chapters are")
    restore.add_argument(
        "--with-modules",
        action="store_true",
        help="Python files as they were, not as text; only for a file of your own",
    )


def run_save(options: argparse.Namespace) -> int:
    """Save."""
    say(str(save(options.file, options.folder, not options.without_artifacts)))
    say("bring it back with: burnbook restore FILE")
    return 0


def save(
    file: Path | None = None, folder: Path | None = None, artifacts: bool = True
) -> Saved:
    """Save the work of the chapters here, or of those in `folder`."""
    place = _folder(folder)
    if place is None:
        where = folder or Path.cwd()
        what, cure = f"there are no chapters in {where}", "save --folder FOLDER"
        raise ConfigError("save", what, cure=cure)
    name = f"burnbook-work-{datetime.now():%Y-%m-%d-%H%M}.zip"
    shipped = chapters_folder()
    return save_work(
        file or Path(name), folder=place, shipped=shipped, artifacts=artifacts
    )


def run_restore(options: argparse.Namespace) -> int:
    """Restore; where there are no chapters yet, they are copied first."""
    place = _folder(options.folder)
    fresh = place is None
    folder = place or options.folder or Path(CHAPTERS)
    done = restore_work(
        options.file,
        folder=folder,
        shipped=chapters_folder(),
        modules=options.with_modules,
    )
    if fresh:
        copy_chapters(folder)
    say(str(done))
    return 0


def _folder(given: Path | None) -> Path | None:
    """Where the chapters are: there, or near the current folder."""
    shipped = chapters_folder()
    if given is None:
        return find_folder(Path.cwd(), shipped)
    known = any((given / path.name).is_file() for path in shipped.glob("*.ipynb"))
    return given.resolve() if known else None
