"""The artifact directory, checked before training."""

from __future__ import annotations

import os
from pathlib import Path

from burnbook.core.errors import TrainingError


def check_folder(folder: Path) -> None:
    """Make the artifact directory, or say why it cannot hold anything."""
    where = f"artifact directory {folder}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        blocker = next(p for p in (folder, *folder.parents) if p.exists())
        raise TrainingError(
            where,
            f"{'this' if blocker == folder else blocker} is a file, not a folder",
            cure="another folder, or move the file away",
        ) from None
    except OSError as cause:
        raise TrainingError(
            where,
            f"it cannot be made: {cause.strerror}",
            cure="another folder, one of your own",
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TrainingError(
            where, "no permission to write in it", cure="a folder of your own"
        )
