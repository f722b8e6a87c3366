"""The training loop: epochs, batches, steps, and nothing else.

    for every epoch:
        for every batch of train:   step, gradients, optimizer, metrics
        for every batch of valid:   step, metrics        (where there is one)
        keep a checkpoint?  stop early?

What measures and shows is in `monitor.py`, what saves in `checkpoint_manager.py`.
"""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from burnbook.backend import Backend
from burnbook.core.errors import DataError, TrainingError, warn_caller
from burnbook.core.rng import use_stream
from burnbook.data import DataLoader, Progress
from burnbook.data.dataloader.workers import PATIENCE
from burnbook.lr_scheduler import LrScheduler, observers
from burnbook.module import Module
from burnbook.optim import GradientsAccumulator, GradientsParams, Optimizer
from burnbook.train.callback import CallbackRunner, TrainingState
from burnbook.train.captured_steps import CapturedSteps, batches_in, takes_whole
from burnbook.train.checkpoint import CALLBACKS, opened
from burnbook.train.checkpoint_manager import CheckpointManager
from burnbook.train.earlier import earlier_runs
from burnbook.train.events import Split
from burnbook.train.interrupter import Interrupter
from burnbook.train.live import LiveRun
from burnbook.train.monitor import Monitor
from burnbook.train.nan_report import StepFacts, check_loss, loss_of
from burnbook.train.output import TrainOutput
from burnbook.train.parallel import Devices
from burnbook.train.plan import TrainingPlan
from burnbook.train.renderer import TrainingResult
from burnbook.train.run_status import NAME, STATUS, began, ended
from burnbook.train.training_strategy import Numbered
from burnbook.train.validation import (
    check_loader,
    followed,
    no_rate,
    restarted,
    short,
    vanishing,
)

SOURCE = "burn_train::learner::epoch"
INFINITE = float("inf")


@dataclass
class Reached:
    """What a training has reached, for the next fit of the same learner.

    model: as it was trained, before any callback's `on_end`; result: the one that was
    returned. epochs: complete ones. steps: of the optimizer. asked_for: epochs whose
    checkpoints people want to be kept.
    """

    model: Any
    result: Any
    epochs: int
    steps: int
    asked_for: set[int]


class Fit:
    """One training, from its first epoch to its result.

    after: what an earlier fit of the same learner has reached; this one goes on there.
    """

    def __init__(
        self,
        plan: TrainingPlan,
        model: Module,
        optim: Optimizer,
        scheduler: LrScheduler,
        live: LiveRun,
        after: Reached | None = None,
    ) -> None:
        self.plan, self.control, self.live = plan, plan.control, live
        self.devices = Devices(plan.devices or model.devices(), plan.checkpointing)
        self.paradigm = plan.paradigm or self.devices
        self.model = model.fork(self.devices.main)
        self.optim = copy.deepcopy(optim)  # the one that was given stays as it was
        self.scheduler = copy.deepcopy(scheduler)
        self.began = time.monotonic()
        self.after = after
        self.epochs_done = self.steps = 0
        self.callbacks = CallbackRunner(plan.callbacks)
        self.at = (0, 0, 0.0)  # epoch, iteration, rate of the last step
        self.train_batches: Callable[[], Iterator[Any]] = lambda: iter(())
        self.started = False  # what was to be resumed is loaded
        self.warned = False  # that the schedule is too short
        self.monitor = Monitor(plan, live)
        self.fast = CapturedSteps(plan, self.devices, self._tell)
        self.checkpoints = CheckpointManager(
            plan, self.monitor.store, self.monitor.renderer.saved
        )
        self.result: TrainingResult | None = None

    def run(
        self, train: DataLoader[Any], valid: DataLoader[Any] | None
    ) -> TrainingResult:
        """Train until the last epoch, or until somebody or something says stop."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._run(train, valid)  # a loss that breaks is explained below

    def _run(
        self, train: DataLoader[Any], valid: DataLoader[Any] | None
    ) -> TrainingResult:
        monitor, log = self.monitor, self.plan.log
        text = str(self.model)
        failed: BaseException | None = None
        given = (train, valid)
        try:
            log.info("burn_train::learner::train_val", f"Fitting the model:\n {text}")
            if self.plan.name:
                log.info(NAME, self.plan.name)
            start = self._resume()
            self.started = True
            log.info(STATUS, began(start, self.plan.num_epochs))
            train = on_device(train, self.devices.main)
            if valid is not None:
                valid = on_device(valid, self.devices.main.inner)
            self.train_batches = lambda: self._batches_again(train)
            notice = self._notice(train)
            monitor.start(start, text, notice, self._shown())
            self.live.shown()
            if self.checkpoints.ended:
                self.control.stop(self.checkpoints.ended)
            for epoch in range(start, self.plan.num_epochs + 1):
                if self.control.should_stop() or not self._epoch(epoch, train, valid):
                    break
            result = self._end()
            monitor.finish(result, text, self._shown())
        except BaseException as error:
            failed = error
            self._fail(error)
            raise
        finally:
            end_workers((train, valid), given, failed)
            try:
                monitor.close()
            except (OSError, TrainingError):  # the disk, of which was told already
                if failed is None:
                    raise
            finally:
                log.close()
        return result

    def _fail(self, error: BaseException) -> None:
        """Keep the model so far, and write down what ended the training if possible."""
        name = type(error).__name__
        notes = "".join(f" ({note})" for note in notes_of(error))
        with contextlib.suppress(OSError, TrainingError):
            text = f"PANIC => {name}: {error}{notes}"
            self.plan.log.error("burn_train::learner", text)
        with contextlib.suppress(OSError, TrainingError):
            self._end(f"{name}: {str(error).partition(chr(10))[0]}{notes}")

    def _resume(self) -> int:
        """Load the checkpoint to resume from; returns the first epoch to train."""
        if self.checkpoints.files is not None:
            self.checkpoints.files.check([self.optim, self.scheduler])
        if self.after is not None:
            self.epochs_done, self.steps = self.after.epochs, self.after.steps
            self.checkpoints.go_on(self.epochs_done, self.after.asked_for)
            return self.epochs_done + 1
        self.callbacks.reset()
        self.epochs_done = self.checkpoints.restore(self.devices.main, self._load)
        return self.epochs_done + 1

    def _load(self, records: dict[str, Any]) -> None:
        """Take the records of an epoch, all three or none."""
        model = self.model.load_record(records["model"])
        place = opened(records["scheduler"], self.scheduler)
        scheduler = self.scheduler.load_record(place)
        self.optim = self.optim.load_record(records["optim"])
        self.model, self.scheduler = model, scheduler
        self._load_callbacks(records.get(CALLBACKS))

    def _load_callbacks(self, record: Any) -> None:
        """Take the records of the callbacks; say which of them begin anew."""
        held = record or {}
        self.steps = held.get("steps", 0)
        missing = self.callbacks.load_record(held.get(CALLBACKS), self.model)
        if missing:
            names = ", ".join(missing)
            self.checkpoints.notice = (
                f"the checkpoint knows nothing of {names}, which begins anew"
            )

    def _callback_records(self) -> Any:
        """What a checkpoint holds of the callbacks; None without any."""
        if not self.callbacks:
            return None
        return {"steps": self.steps, CALLBACKS: self.callbacks.into_record() or {}}

    def _notice(self, train: DataLoader[Any]) -> str:
        """What people should know before it starts."""
        plan = self.plan
        notices = [self.checkpoints.notice]
        if plan.writes:
            earlier = earlier_runs(plan.directory, plan.num_epochs)
            for text in earlier:
                plan.log.info(SOURCE, text)
            notices += earlier
        short = too_short(self.scheduler, train, self.epochs_done, self.plan.num_epochs)
        if short:
            self.warned = True
            self.plan.log.warn(SOURCE, short)
            warn_caller(short)
            notices.append(short)
        return "; ".join(filter(None, notices))

    def _batches_again(self, train: DataLoader[Any]) -> Iterator[Any]:
        """One more pass over the training data, for a callback."""
        epoch = max(self.epochs_done, 1)
        with use_stream(self.devices.main.stream.split("another pass")):
            batches = batches_of(train, epoch, "training")
            with closing(batches):
                for _, batch, _ in batches:
                    yield batch

    def _state(self, **known: Any) -> TrainingState:
        """Where the training stands, for callbacks."""
        epoch, iteration, lr = self.at
        return TrainingState(
            known.pop("model", self.model),
            epoch,
            self.plan.num_epochs,
            iteration,
            self.steps,
            lr,
            self.devices.main,
            self.plan.directory,
            self.control,
            batches=self.train_batches,
            **known,
        )

    def _end(self, failure: str | None = None) -> TrainingResult:
        why = failure or self.control.reason
        model = self.model
        if failure is None and self.callbacks:
            means = self.monitor.means
            model = self.callbacks.call(
                "on_end", self._state(metrics=means, interrupted=why)
            )
            self.monitor.renderer.update_callbacks(self._shown())
        self.result = TrainingResult(
            model,
            self.monitor.history,
            why,
            self.epochs_done,
            time.monotonic() - self.began,
            str(self.plan.directory),
            self.live.name,
        )
        self.plan.log.info(STATUS, ended(self.epochs_done, self.plan.num_epochs, why))
        return self.result

    def reached(self) -> Reached:
        """What the next fit goes on from."""
        assert self.result is not None
        asked_for = self.checkpoints.asked_for
        result = self.result.model
        return Reached(self.model, result, self.epochs_done, self.steps, asked_for)

    def _epoch(
        self, epoch: int, train: DataLoader[Any], valid: DataLoader[Any] | None
    ) -> bool:
        """One epoch of both splits; False when training is over."""
        stream = self.devices.main.stream
        with use_stream(stream.split(f"train epoch {epoch}")):
            self._train(epoch, train)
        if self.control.should_stop():
            return False
        validated = self.model
        if valid is not None:
            with use_stream(stream.split(f"valid epoch {epoch}")):
                validated = self._valid(epoch, valid)
            if self.control.should_stop():
                return False
        self._observe(epoch)
        if self.callbacks:
            state = self._state(metrics=self.monitor.means, validated=validated)
            self.model = self.callbacks.call("on_epoch", state)
        if shown := self._shown():
            self.monitor.renderer.update_callbacks(shown)
        parts = (self.model, self.optim, self.scheduler, self._callback_records)
        self.checkpoints.after(epoch, *parts)
        self.epochs_done = epoch
        self.plan.log.flush()
        reason = self.checkpoints.reason_to_stop(epoch)
        if reason:
            self.control.stop(reason)
        return not self.control.should_stop()

    def _tell(self, text: str) -> None:
        """Say why steps are not captured: in the log, and as a warning if asked for."""
        self.plan.log.warn(SOURCE, text)
        if self.plan.captured is True:
            warn_caller(text)

    def _shown(self) -> list[tuple[str, str]]:
        """What dashboards say of callbacks, and of steps that are not captured."""
        return [*self.callbacks.shown(), *self.fast.shown()]

    def _outputs(
        self, epoch: int, loader: DataLoader[Any], batches: Iterable[Numbered]
    ) -> Generator[tuple[int, Any, Any, Progress, float, Any], None, None]:
        """Of every step: number, batch, output, progress, rate, and the new model.

        The last is None where the optimizer has still to take its step.
        """
        if not self.fast.is_on:
            steps = self.paradigm.steps(batches, lambda: self.model)
            with closing(steps):
                for number, batch, output, progress in steps:
                    lr = self._rate(epoch, number)
                    yield number, batch, output, progress, lr, None
                    del batch, output
            return
        fast, count = self.fast, batches_in(loader)
        group = self.paradigm.group * self.plan.accumulation
        for number, batch, progress in batches:
            model: Any = self.model
            made: Any = None
            inspects = getattr(self.monitor.renderer, "inspects", True)
            whole = takes_whole(model, self.optim, group, inspects)
            may = fast.may(epoch, number, count)
            if may and whole:
                lr = self._rate(epoch, number)
                output, made = fast.step(model, self.optim, lr, batch)
            else:
                output = (
                    fast.gradients(model, batch) if may else model.train_step(batch)
                )
                lr = self._rate(epoch, number)
            yield number, batch, output, progress, lr, made
            del batch, output, made

    def _train(self, epoch: int, loader: DataLoader[Any]) -> None:
        """All batches of the training split."""
        plan, monitor, info = self.plan, self.monitor, self.plan.log.info
        info(SOURCE, f"Executing training step for epoch {epoch}")
        monitor.start_epoch(epoch, Split.Train)
        group = self.paradigm.group * plan.accumulation
        sums, waiting = GradientsAccumulator(), 0
        batches = batches_of(loader, epoch, "training", self.control)
        steps = self._outputs(epoch, loader, batches)
        with closing(batches), closing(steps):
            for iteration, batch, output, progress, lr, made in steps:
                info(SOURCE, f"Iteration {iteration}")
                grads = check_output(self.model, output).grads
                if not math.isfinite(loss_of(output.item)):
                    self._report_nan(
                        output.item, "train", epoch, iteration, batch, grads, lr
                    )
                monitor.renderer.inspect(self.model, grads)
                self.at = (epoch, iteration, lr)
                if group == 1:
                    self._take_step(lr, grads, output.item, made)
                else:
                    sums.accumulate(self.model, grads)
                    waiting = (waiting + 1) % group
                    if not waiting:
                        self._take_step(lr, sums.grads(), output.item)
                monitor.batch(Split.Train, output.item, progress, iteration, lr)
                del batch, output, grads, made  # their memory serves the next step
                if self._stopped():
                    break
        monitor.end_epoch(epoch, Split.Train)

    def _observe(self, epoch: int) -> None:
        """Tell a schedule what has become of the metric that it follows."""
        for part in observers(self.scheduler):
            name, split = followed(part)
            value = self.monitor.store.find_metric(name, epoch, split=split)
            if value is not None:
                part.observe(value)

    def _rate(self, epoch: int, iteration: int) -> float:
        """The learning rate of this step; warns once if the schedule starts again."""
        before = getattr(self.scheduler, "restarts", 0)
        lr = self.scheduler.step()
        if not 0.0 <= lr < INFINITE:
            raise no_rate(self.scheduler, lr, epoch, iteration)
        restarts = before == 0 and getattr(self.scheduler, "restarts", 0)
        if restarts and not self.warned:
            text = restarted(self.scheduler, epoch, iteration)
            self.plan.log.warn(SOURCE, text)
            warn_caller(text)
        return lr

    def _valid(self, epoch: int, loader: DataLoader[Any]) -> Any:
        """All batches of the validation split, without gradients and dropout.

        Returns the model that was validated, as it is in training.
        """
        monitor = self.monitor
        self.plan.log.info(SOURCE, f"Executing validation step for epoch {epoch}")
        monitor.start_epoch(epoch, Split.Valid)
        chosen = self.model
        if self.callbacks:
            chosen = self.callbacks.call("on_valid", self._state())
        model: Any = chosen.valid()
        batches = batches_of(loader, epoch, "validation", self.control)
        fast, count = self.fast, batches_in(loader)
        with closing(batches):
            for iteration, batch, progress in batches:
                if fast.may(epoch, iteration, count):
                    item = fast.validate(model, batch)
                else:
                    item = model.valid_step(batch)
                if not math.isfinite(loss_of(item)):
                    self._report_nan(item, "valid", epoch, iteration, batch)
                monitor.batch(Split.Valid, item, progress, iteration, None)
                del batch, item
                if self._stopped():
                    break
        monitor.end_epoch(epoch, Split.Valid)
        return chosen

    def _take_step(
        self, lr: float, grads: GradientsParams, item: object, made: Any = None
    ) -> None:
        """One step of the optimizer, if it is still to be made, and what callbacks
        make of it."""
        self.model = self._step(lr, grads) if made is None else made
        self.steps += 1
        if self.callbacks:
            self.model = self.callbacks.call("on_step", self._state(output=item))

    def _step(self, lr: float, grads: GradientsParams) -> Any:
        """The model after a step of the optimizer; a model may define its own way."""
        own = getattr(self.model, "optimize", None)
        if own is not None:
            return own(self.optim, lr, grads)
        return self.optim.step(lr, self.model, grads)

    def _report_nan(
        self,
        item: object,
        split: str,
        epoch: int,
        iteration: int,
        batch: object,
        grads: GradientsParams | None = None,
        lr: float | None = None,
    ) -> None:
        """The loss is not finite: end the training with the reason, if it is broken."""
        kept, model = self.checkpoints.last, self.model
        facts = StepFacts(split, epoch, iteration, model, batch, grads, lr, kept)
        check_loss(loss_of(item), facts)

    def _stopped(self) -> bool:
        """Wait while paused; True when training is to end."""
        if self.control.paused:
            self.control.wait_while_paused(self.monitor.renderer.tick)
        if self.control.should_stop():
            self.plan.log.info(SOURCE, "Training interrupted.")
            return True
        return False


def notes_of(error: BaseException) -> list[str]:
    """What stands beside the first line of an error: the callback that raised it."""
    facts: list[Any] = getattr(error, "facts", [])
    pairs = [fact for fact in facts if isinstance(fact, tuple)]
    told = [f"in the callback {text}" for name, text in pairs if name == "callback"]
    return [*told, *getattr(error, "__notes__", ())]


def too_short(scheduler: Any, loader: Any, done: int, num_epochs: int) -> str:
    """The warning for a schedule that is over before the training is; else "".

    It needs a scheduler that says how many steps it has left, and a loader that says
    how many batches it gives.
    """
    left = getattr(scheduler, "steps_left", None)
    try:
        batches = len(loader)
    except TypeError:
        return ""
    steps = batches * (num_epochs - done)
    if left is None:
        return vanishing(scheduler, steps, batches)
    if left >= steps:
        return ""
    return short(scheduler, left, steps, batches)


def on_device(loader: DataLoader[Any], device: Backend) -> Any:
    """The loader, making its batches where the model is; others stay as they are."""
    move = getattr(loader, "to_device", None)
    return loader if move is None else move(device)


def end_workers(
    loaders: tuple[Any, Any], given: tuple[Any, Any], failed: BaseException | None
) -> None:
    """End the workers of the loaders that the training has made for its devices.

    Those at work are waited for, unless somebody has pressed Ctrl-C twice.
    """
    for loader, own in zip(loaders, given, strict=True):
        if loader is not own and isinstance(loader, DataLoader):
            forced = isinstance(failed, KeyboardInterrupt)
            loader.close(0.0 if forced else PATIENCE)


def batches_of(
    loader: DataLoader[Any], epoch: int, name: str, control: Interrupter | None = None
) -> Generator[tuple[int, Any, Progress], None, None]:
    """The batches of an epoch: the number, the batch, the progress after it.

    It ends when it is stopped while workers make the next batch, even if they hang.
    """
    check_loader(name, loader)
    set_epoch = getattr(loader, "set_epoch", None)
    if set_epoch is not None:
        set_epoch(epoch)
    walk = iter(loader)
    stop_when = getattr(walk, "stop_when", None)
    if stop_when is not None and control is not None:
        stop_when(control.should_stop)
    progress = getattr(walk, "progress", None)
    total = len(loader) if progress is None and hasattr(loader, "__len__") else 0
    count = 0
    try:
        for batch in walk:
            count += 1
            done = progress() if progress else Progress(count, max(total, count))
            yield count, batch, done
    finally:
        close = getattr(walk, "close", None)
        if close is not None:
            close()  # ends the loader's workers at once
    if not count and not (control is not None and control.should_stop()):
        raise DataError(
            f"{name} data",
            f"the loader gave no batch in epoch {epoch}",
            [("loader", type(loader).__name__)],
            "a dataset that is not empty, and a loader that can be iterated many times",
        )


def check_output(model: Module, output: Any) -> TrainOutput:
    """The output of a training step, or an error that shows what it should be."""
    if isinstance(output, TrainOutput):
        return output
    raise TrainingError(
        f"{type(model).__name__}.train_step",
        f"it returned {type(output).__name__}, not TrainOutput",
        cure="return TrainOutput(self, item.loss.backward(), item)",
    )
