"""Building blocks · Learner. What is kept after an epoch, and where to go on from."""

from __future__ import annotations

from typing import Any

from burnbook.errors import TrainingError
from burnbook.train.checkpoint import FileCheckpointer
from burnbook.train.events import EventStore
from burnbook.train.plan import TrainingPlan
from burnbook.train.strategy import Save


class Keeper:
    """Saves and restores checkpoints, and asks the strategies."""

    def __init__(self, plan: TrainingPlan, store: EventStore) -> None:
        self.plan, self.store = plan, store
        self.files: FileCheckpointer | None = None
        self.last = ""  # what an error may say about the newest checkpoint
        if plan.recorder is not None:
            folder = plan.directory / "checkpoint"
            self.files = FileCheckpointer(plan.recorder, folder, plan.diary)

    def restore(self, device: Any) -> tuple[int, dict[str, Any] | None]:
        """The epoch to go on after, and its records; (0, None) for a fresh start."""
        self.plan.strategy.reset()
        if self.plan.early_stopping is not None:
            self.plan.early_stopping.reset()
        epoch = self._epoch_to_resume()
        if epoch is None:
            return 0, None
        if epoch >= self.plan.num_epochs:
            raise TrainingError(
                f"checkpoint({epoch})",
                f"epoch {epoch} is the last of {self.plan.num_epochs}: nothing is left",
                cure=f"num_epochs({epoch + 1}) or more",
            )
        assert self.files is not None
        records = self.files.restore(epoch, device)
        self.last = self._kept(epoch)
        self._replay(epoch)
        return epoch, records

    def _epoch_to_resume(self) -> int | None:
        resume = self.plan.resume
        if resume is None:
            return None
        if self.files is None:
            raise TrainingError(
                "checkpoint",
                "there is no checkpointer to load it with",
                cure="with_file_checkpointer(...) with the recorder that saved it",
            )
        return self.files.newest() if resume.epoch is None else resume.epoch

    def _replay(self, last: int) -> None:
        """Let the strategies see the epochs before, as if they had been there."""
        for epoch in range(1, last + 1):
            self.store.last_epoch = epoch
            self.plan.strategy.checkpointing(epoch, self.store)
            if self.plan.early_stopping is not None:
                self.plan.early_stopping.should_stop(epoch, self.store)

    def after(self, epoch: int, model: Any, optim: Any, scheduler: Any) -> None:
        """Save and delete what the strategy says."""
        if self.files is None:
            return
        actions = self.plan.strategy.checkpointing(epoch, self.store)
        for action in sorted(actions, key=lambda a: not isinstance(a, Save)):
            if isinstance(action, Save):
                parts = {"model": model, "optim": optim, "scheduler": scheduler}
                records = {name: part.into_record() for name, part in parts.items()}
                self.files.save(epoch, records)
                self.last = self._kept(epoch)
            else:
                self.files.delete(action.epoch)

    def reason_to_stop(self, epoch: int) -> str | None:
        """Why the early stopping strategy ends the training here, if it does."""
        strategy = self.plan.early_stopping
        if strategy is None or not strategy.should_stop(epoch, self.store):
            return None
        return (
            f"stopped early: {strategy.metric} has not improved since "
            f"epoch {strategy.best_epoch}"
        )

    def _kept(self, epoch: int) -> str:
        assert self.files is not None
        return f"epoch {epoch} is kept in {self.files.directory}"
