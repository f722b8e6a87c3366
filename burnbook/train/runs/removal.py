"""Deleting runs, and nothing else.

A folder goes only when it is a run below the store's folder, reached without any link,
and holds nothing but what trainings write. It is renamed first, so that it disappears
at once and whole; what a killed deletion leaves is removed by the next one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from pathlib import Path

from burnbook.core.errors import TrainingError
from burnbook.train.runs.run import SPLITS, Run, is_run

GRAVE = ".burnbook-deleted-"
FOLDERS = {*SPLITS, "checkpoint"}
ENDINGS = (".log", ".json", ".mpk", ".gz", ".bin", ".bpk", ".safetensors", ".tmp")


def delete_run(root: Path, path: Path, *, everything: bool = False) -> None:
    """Delete the folder of a run below `root`, or say why it stays.

    everything: also when it holds files that no training writes.
    """
    where = f"delete {path}"
    _check_place(where, root, path)
    if not is_run(path):
        raise TrainingError(where, "this is not the folder of a run")
    if Run(path).state == "running":
        what, cure = "the run is still training", "stop it first"
        raise TrainingError(where, what, cure=cure)
    foreign = [] if everything else foreign_files(path)
    if foreign:
        raise TrainingError(
            where,
            "the folder holds more than a run",
            [("also there", ", ".join(foreign[:5]) + (", …" * (len(foreign) > 5)))],
            "moving that elsewhere, or delete(run, everything=True)",
        )
    grave = root / f"{GRAVE}{uuid.uuid4().hex}"
    try:
        os.rename(path, grave)
    except OSError as cause:
        what = f"it cannot be moved: {cause.strerror}"
        raise TrainingError(where, what, cure="a folder of your own") from None
    for left in [*root.glob(f"{GRAVE}*")]:
        if not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)  # links inside go, not their ends


def _check_place(where: str, root: Path, path: Path) -> None:
    """Refuse what is not below the root, or reached through a link."""
    try:
        inner = Path(os.path.abspath(path)).relative_to(os.path.abspath(root))
    except ValueError:
        inner = None
    if inner is None:
        raise TrainingError(where, f"it is not inside {root}")
    if not inner.parts:
        what = "it is the folder that was given to RunStore"
        raise TrainingError(where, what, cure="RunStore of the folder above")
    step = Path(os.path.abspath(root))
    for part in inner.parts:
        step /= part
        if step.is_symlink():
            what = f"{step.name} is a link to another place"
            raise TrainingError(where, what, cure="removing the link by hand")


def foreign_files(path: Path) -> list[str]:
    """The names at the top of a run's folder that no training writes."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        for entry in sorted(path.iterdir()):
            if entry.is_symlink() or not _is_of_a_run(entry):
                found.append(entry.name)
    return found


def _is_of_a_run(entry: Path) -> bool:
    if entry.is_dir():
        return entry.name in FOLDERS
    return entry.name.endswith(ENDINGS)
