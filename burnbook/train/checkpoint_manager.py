"""What is kept after an epoch, and where to resume."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnbook.backend import Backend
from burnbook.core.errors import BurnbookError, RecordError, TrainingError
from burnbook.core.files import shown_path
from burnbook.lr_scheduler import LrScheduler
from burnbook.module import Module
from burnbook.optim import Optimizer
from burnbook.train.checkpoint import CALLBACKS, SOURCE, FileCheckpointer
from burnbook.train.checkpoint_strategy import Save
from burnbook.train.events import EventStore
from burnbook.train.plan import TrainingPlan

Load = Callable[[dict[str, Any]], None]  # takes the records of an epoch, or raises
Tell = Callable[[int, str, str], None]  # hears of a checkpoint: epoch, folder, trouble


class CheckpointManager:
    """Saves and restores checkpoints, and asks the strategies."""

    def __init__(self, plan: TrainingPlan, store: EventStore, tell: Tell) -> None:
        self.plan, self.store, self.tell = plan, store, tell
        self.asked_for: set[int] = set()  # epochs that people want to be kept
        self.files: FileCheckpointer | None = None
        self.last = ""  # what an error may say about the newest checkpoint
        self.notice = ""  # what people should know about how this run resumed
        self.ended: str | None = None  # why nothing is left to train
        if plan.recorder is not None:
            folder = plan.directory / "checkpoint"
            self.files = FileCheckpointer(plan.recorder, folder, plan.log)

    def restore(self, device: Backend, load: Load) -> int:
        """Let `load` take the newest checkpoint that it can; returns its epoch, or 0.

        Why: after a power cut a file may be there and yet damaged. Where no number was
        asked for, the complete epoch before it is what people want. An error that every
        epoch has is about the model, and is raised.
        """
        self.plan.strategy.reset()
        if self.plan.early_stopping is not None:
            self.plan.early_stopping.reset()
        epochs = self._epochs_to_try()
        first: RecordError | TrainingError | None = None
        for epoch in epochs:
            self._check_epoch(epoch)
            assert self.files is not None
            try:
                load(self.files.restore(epoch, device))
            except (RecordError, TrainingError) as trouble:
                first = first or trouble
                continue
            if first is not None:
                self._tell(epoch, first)
            self.files.began_after = epoch
            self.last = self._kept(epoch)
            self._replay(epoch)
            return epoch
        if first is not None:
            raise first
        return 0

    def go_on(self, epoch: int, asked_for: set[int]) -> None:
        """Go on after this epoch of the same learner, from what is in memory.

        asked_for: the epochs that people want to be kept. A strategy that has ended the
        training counts anew: whoever fits again wants to train on.
        """
        self.plan.strategy.reset()
        if self.plan.early_stopping is not None:
            self.plan.early_stopping.reset()
        self.asked_for = asked_for
        if self.files is not None:
            self.files.began_after = epoch
            self.last = self._kept(epoch) if epoch in self.files.epochs() else ""
        self._replay(epoch)
        if self.ended and self.plan.early_stopping is not None:
            self.plan.early_stopping.reset()
            self.ended = None

    def _epochs_to_try(self) -> list[int]:
        resume = self.plan.resume
        if resume is None:
            return []
        if self.files is None:
            raise TrainingError(
                "checkpoint",
                "there is no checkpointer to load it with",
                cure="with_file_checkpointer(...) with the recorder that saved it",
            )
        if resume.epoch is not None:
            return [resume.epoch]
        self.files.check_kind("checkpoint")
        return self.files.epochs()[::-1]

    def _check_epoch(self, epoch: int) -> None:
        """Refuse an epoch after which nothing is left to do.

        Why: without a number the last epoch is fine. Starting a finished run again
        gives its model, so that a script may be started until it is done.
        """
        total, resume = self.plan.num_epochs, self.plan.resume
        if epoch < total or (epoch == total and resume and resume.epoch is None):
            return
        which = "the last" if epoch == total else "beyond the last"
        raise TrainingError(
            f"checkpoint({epoch})",
            f"epoch {epoch} is {which} of {total}: nothing is left to train",
            cure=f"num_epochs({epoch + 1}) or more",
        )

    def _tell(self, epoch: int, trouble: Exception) -> None:
        """Say that a newer checkpoint could not be loaded, and why."""
        why = str(trouble).partition("\n")[0]
        self.notice = f"resuming after epoch {epoch}, as a newer one is damaged: {why}"
        self.plan.log.warn(SOURCE, self.notice)

    def _replay(self, last: int) -> None:
        """Let the strategies see the earlier epochs, as if they had been there.

        Why: otherwise early stopping would start counting again, and the best epoch of
        the first part would stay forever. A run that had stopped early already does so
        again.
        """
        for epoch in range(1, last + 1):
            self.store.last_epoch = epoch
            self.plan.strategy.checkpointing(epoch, self.store)
            self.ended = self.reason_to_stop(epoch)

    def after(
        self,
        epoch: int,
        model: Module,
        optim: Optimizer,
        scheduler: LrScheduler,
        callbacks: Callable[[], Any] = lambda: None,
    ) -> None:
        """Save and delete what the strategy says, and save what people asked for.

        callbacks: gives the record of the callbacks; asked only if it is to be saved.
        """
        if self.files is None:
            return
        parts = {"model": model, "optim": optim, "scheduler": scheduler}
        actions = self.plan.strategy.checkpointing(epoch, self.store)
        by_strategy = any(isinstance(action, Save) for action in actions)
        wanted = self.plan.control.checkpoint_wanted
        if by_strategy or wanted:
            parts[CALLBACKS] = callbacks()
        if wanted:
            self.plan.control.checkpoint_wanted = False
            self.asked_for.add(epoch)
            if not by_strategy:
                self._save_as_asked(epoch, parts)
        if by_strategy:
            self._save(epoch, parts)
        for action in actions:
            if not isinstance(action, Save) and action.epoch not in self.asked_for:
                self.files.delete(action.epoch)

    def _save(self, epoch: int, parts: dict[str, Any]) -> None:
        assert self.files is not None
        self.store.sync()  # a run that resumes there asks for the logs
        self.files.save(epoch, parts)
        self.last = self._kept(epoch)
        self.tell(epoch, shown_path(self.files.directory), "")

    def _save_as_asked(self, epoch: int, parts: dict[str, Any]) -> None:
        """Save beyond the strategy; a failure is reported and ends no training."""
        assert self.files is not None
        try:
            self._save(epoch, parts)
        except (OSError, BurnbookError) as trouble:
            why = str(trouble).partition("\n")[0]
            self.plan.log.warn(SOURCE, f"Checkpoint {epoch} was not saved: {why}")
            self.tell(epoch, shown_path(self.files.directory), why)

    def reason_to_stop(self, epoch: int) -> str | None:
        """Why the early stopping strategy ends the training here, if it does."""
        strategy = self.plan.early_stopping
        if strategy is None or not strategy.should_stop(epoch, self.store):
            return None
        return strategy.reason()

    def _kept(self, epoch: int) -> str:
        assert self.files is not None
        return f"epoch {epoch} is kept in {shown_path(self.files.directory)}"
