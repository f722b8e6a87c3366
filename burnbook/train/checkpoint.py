"""Checkpoints: model, optimizer and scheduler of an epoch.

    <dir>/checkpoint/model-3.mpk  optim-3.mpk  scheduler-3.mpk

Those of an earlier run in the same folder are moved to `checkpoint/earlier-1`, see
`earlier.py`; the three newest folders of this kind stay.

Callbacks that have something to remember add `callbacks-3.mpk`, always in named
MessagePack and in full precision; Burn does not read it, and needs no such file.

Each file is written whole or not at all and forced to the disk, the scheduler last: an
epoch counts only when all three are there, and an older epoch goes only after that. So
a crash or a power cut at any moment leaves the previous epoch usable.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

from burnbook.backend import Backend
from burnbook.core.errors import TrainingError
from burnbook.core.files import (
    Draft,
    fixed,
    keep_all,
    remove_leftovers,
    shown_path,
    sync_folder,
)
from burnbook.lr_scheduler import LrScheduler
from burnbook.lr_scheduler.base import NUMBER
from burnbook.record import (
    BinFileRecorder,
    BurnpackRecorder,
    BurnRecord,
    FileRecorder,
    FullPrecisionSettings,
    NamedMpkFileRecorder,
    SealedRecord,
)
from burnbook.record.layout import Lowering
from burnbook.record.tree import Trouble
from burnbook.train.earlier import next_folder, remove_oldest
from burnbook.train.logger import FileApplicationLogger

PARTS = ("model", "optim", "scheduler")  # in the order of saving
CALLBACKS = "callbacks"  # saved before the scheduler, where there are any
SOURCE = "burn_train::checkpoint::file"
RECORDERS = {  # one for each kind of file
    "mpk": "CompactRecorder",
    "mpk.gz": "NamedMpkGzFileRecorder",
    "json": "PrettyJsonFileRecorder",
    "json.gz": "JsonGzFileRecorder",
    "bin": "BinFileRecorder",
    "bin.gz": "BinGzFileRecorder",
    "bpk": "BurnpackRecorder",
}


OF_CALLBACKS = NamedMpkFileRecorder(FullPrecisionSettings)


class FileCheckpointer:
    """Save, restore and delete the checkpoints of a run, by epoch."""

    def __init__(
        self, recorder: FileRecorder, directory: str | Path, log: FileApplicationLogger
    ) -> None:
        self.recorder = recorder
        self.directory = fixed(directory)
        self.log = log
        self.began_after = 0  # the epoch after which this run resumes
        self.history_is_ours = False

    def save(self, epoch: int, records: dict[str, Any]) -> None:
        """Write the three records of an epoch, given as such or as what they are of.

        A fourth one, "callbacks", is written as it is, if it is not None.
        """
        if not self.history_is_ours:
            with self._explained("make room in"):
                self._set_aside(self.began_after + 1)
            self.history_is_ours = True
        parts = [*PARTS[:-1]]
        if records.get(CALLBACKS) is not None:
            parts.append(CALLBACKS)
        ours = getattr(type(self.recorder), "record", None) is FileRecorder.record
        drafts: list[Draft] = []
        try:
            for part in (*parts, PARTS[-1]):
                path = self._stem(part, epoch)
                to = shown_path(path)
                self.log.info(SOURCE, f"Saving checkpoint {epoch} to {to}")
                if part == CALLBACKS:
                    record = BurnRecord(OF_CALLBACKS.metadata, records[part])
                    drafts.append(OF_CALLBACKS.draft(record, path))
                elif ours:
                    record = self._recordable(records[part])
                    drafts.append(self.recorder.draft(record, path))
                else:  # a way of somebody else, one file after the other
                    keep_all(drafts)
                    drafts.clear()
                    self.recorder.record(self._recordable(records[part]), path)
        except BaseException:
            for draft in drafts:
                draft.discard()
            raise
        keep_all(drafts[:-1], drafts[-1] if drafts else None)

    def check(self, parts: list[Any]) -> None:
        """Refuse at once what could not be saved after an epoch of work."""
        if not isinstance(self.recorder, FileRecorder):
            return  # somebody else's recorder, which says so itself when it saves
        for part in parts:
            record = BurnRecord(self.recorder.metadata, self._recordable(part))
            try:
                lower = Lowering(release=record.metadata.release)
                for _ in self.recorder.encode(record, lower):
                    pass
            except Trouble as trouble:
                where = f"save {type(part).__name__} as {self.recorder.kind}"
                raise trouble.explain(where, [], "CompactRecorder()") from None

    def restore(self, epoch: int, device: Backend | None) -> dict[str, Any]:
        """Read the three records of an epoch, and that of the callbacks if there is."""
        missing = [part for part in PARTS if not self.path(part, epoch).is_file()]
        if missing:
            self.check_kind(f"checkpoint({epoch})")
            raise TrainingError(
                f"checkpoint({epoch})",
                f"epoch {epoch} has no complete checkpoint in {self}",
                [
                    ("missing", ", ".join(self.path(p, epoch).name for p in missing)),
                    ("whole", self._list(self.epochs())),
                ],
                "one of the complete epochs, or checkpoint() for the newest of them",
            )
        records: dict[str, Any] = {}
        for part in PARTS:
            path = self._stem(part, epoch)
            self.log.info(SOURCE, self._restoring(epoch, path))
            records[part] = self.recorder.load(path, device)
        path = self._of_callbacks(epoch)
        if path.is_file():
            self.log.info(SOURCE, self._restoring(epoch, path))
            records[CALLBACKS] = OF_CALLBACKS.read(path).item
        return records

    def __str__(self) -> str:
        return shown_path(self.directory)

    @staticmethod
    def _restoring(epoch: int, path: Path) -> str:
        return f"Restoring checkpoint {epoch} from {shown_path(path)}"

    @contextlib.contextmanager
    def _explained(self, what: str) -> Generator[None]:
        """What the file system refuses, as an error of ours."""
        try:
            yield
        except OSError as cause:
            raise TrainingError(
                f"{what} {shown_path(self.directory)}",
                cause.strerror or str(cause),
                cure="a folder of your own, with some space left",
            ) from None

    def _recordable(self, part: Any) -> Any:
        """What the recorder can write for a model, an optimizer or a schedule."""
        if isinstance(self.recorder, BinFileRecorder):
            return part  # bincode has no names: the part says what stands where
        if not hasattr(part, "into_record"):
            return part
        if isinstance(self.recorder, BurnpackRecorder) and hasattr(part, "step"):
            return named_record(part)
        return part.into_record()

    def delete(self, epoch: int) -> None:
        """Remove an epoch, the scheduler first, so that it stops counting at once."""
        paths = [self.path(part, epoch) for part in reversed(PARTS)]
        for path in (*paths, self._of_callbacks(epoch)):
            if path.exists():
                self.log.info(SOURCE, f"Removing checkpoint {shown_path(path)}")
                with self._explained(f"remove {path.name} from"):
                    path.unlink(missing_ok=True)

    def epochs(self) -> list[int]:
        """The epochs that are complete, the newest last."""
        found = sorted({epoch for epoch, _ in self._files(PARTS)})
        return [e for e in found if all(self.path(p, e).is_file() for p in PARTS)]

    def newest(self) -> int | None:
        """The newest complete epoch; None when there is none."""
        return max(self.epochs(), default=None)

    def check_kind(self, where: str) -> None:
        """Refuse to resume where only another recorder has left complete epochs.

        Why: the run would start over, and set aside what people want to resume from.
        """
        if self.epochs():
            return
        kinds: dict[str, dict[int, int]] = {}
        for epoch, path in self._files(PARTS):
            count = kinds.setdefault(path.name.partition(".")[2], {})
            count[epoch] = count.get(epoch, 0) + 1
        for kind, count in sorted(kinds.items()):
            whole = sorted(e for e, files in count.items() if files == len(PARTS))
            if whole and kind in RECORDERS:
                raise TrainingError(
                    where,
                    f"the checkpoints here are .{kind}, not .{self.recorder.extension}",
                    [
                        ("whole", self._list(whole)),
                        ("folder", str(self)),
                    ],
                    "the recorder that wrote them, such as with_file_checkpointer("
                    f"{RECORDERS[kind]}()); or leave out checkpoint() to start over",
                )

    def path(self, part: str, epoch: int) -> Path:
        """The file of one part of an epoch."""
        return self.directory / f"{part}-{epoch}.{self.recorder.extension}"

    def _stem(self, part: str, epoch: int) -> Path:
        return self.directory / f"{part}-{epoch}"

    def _of_callbacks(self, epoch: int) -> Path:
        return OF_CALLBACKS.path(self._stem(CALLBACKS, epoch))

    def _files(self, parts: tuple[str, ...]) -> Iterable[tuple[int, Path]]:
        if not self.directory.is_dir():
            return
        shape = re.compile(rf"(?:{'|'.join(parts)})-(\d+)\..+")
        for path in self.directory.iterdir():
            match = shape.fullmatch(path.name)
            if match:
                yield int(match[1]), path

    def _set_aside(self, epoch: int) -> None:
        """Move what an older run saved for this epoch and later ones out of the way.

        Why: only now, because until something better is there the old files are all
        there is; otherwise the newest checkpoint in the folder could be another run's,
        or an epoch could be one run's model with another run's optimizer.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        for folder in (self.directory.parent, self.directory.parent.parent):
            with contextlib.suppress(OSError):  # a folder that cannot be listed
                sync_folder(folder)
        remove_leftovers(self.directory)
        every = (CALLBACKS, *PARTS)
        older = [path for number, path in self._files(every) if number >= epoch]
        if not older:
            return
        aside = next_folder(self.directory)
        aside.mkdir()
        to = shown_path(aside)
        self.log.info(SOURCE, f"Moving checkpoints of an earlier run to {to}")
        for path in sorted(
            older, key=lambda path: every.index(path.name.split("-")[0]), reverse=True
        ):
            path.rename(aside / path.name)
        for path in remove_oldest(self.directory):
            gone = shown_path(path)
            self.log.info(SOURCE, f"Removing checkpoints of an older run, {gone}")
        sync_folder(self.directory)

    def _list(self, epochs: list[int]) -> str:
        return ", ".join(f"epoch {epoch}" for epoch in epochs) or "none"


def named_record(schedule: LrScheduler) -> Any:
    """The record of a schedule with a name for every number, as burnpack needs it.

    Example:
        >>> class Mine:
        ...     def into_record(self):
        ...         return 11
        >>> named_record(Mine())
        {'value': 11}

    Why: the library's own numbers know their names; those of one's own schedule do not.
    """
    record = schedule.into_record()
    plain = isinstance(record, int | float) and not hasattr(record, "scalar")
    return {NUMBER: record} if plain else record


def opened(record: object, schedule: LrScheduler) -> Any:
    """The record that a schedule loads, out of what a recorder gave."""
    if isinstance(record, SealedRecord):
        return record.for_module(schedule)
    if isinstance(record, dict) and list(record) == [NUMBER]:
        return record[NUMBER]
    return record
