"""The artifact directory, checked before training."""

from __future__ import annotations

import os
from pathlib import Path

from burnbook.core.errors import TrainingError
from burnbook.core.files import shown_path


def check_folder(folder: Path) -> None:
    """Make the artifact directory, or say why it cannot hold anything."""
    where = f"artifact directory {shown_path(folder)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise _blocked(where, folder) or TrainingError(
            where,
            f"it cannot be made: {cause.strerror}",
            cure="another folder, one of your own",
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TrainingError(
            where, "no permission to write in it", cure="a folder of your own"
        )


def _blocked(where: str, folder: Path) -> TrainingError | None:
    """The error for a file, or a link that leads nowhere, where a folder should be."""
    blocker = next((p for p in (folder, *folder.parents) if os.path.lexists(p)), folder)
    name = "this" if blocker == folder else shown_path(blocker)
    if os.path.isdir(blocker):
        return None
    if os.path.islink(blocker) and not os.path.exists(blocker):
        target = os.readlink(blocker)
        there = os.path.lexists(os.path.join(blocker.parent, target))
        what = f"{name} is a link to {target}, which does not exist"
        cure = "make the folder that it leads to, or another folder"
        if there:
            what, cure = f"{name} is a link that leads in a circle", "another folder"
        return TrainingError(where, what, cure=cure)
    what = f"{name} is a file, not a folder"
    return TrainingError(where, what, cure="another folder, or move the file away")
