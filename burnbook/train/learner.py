"""The learner: fit a model, now, awaited, or in a thread.

    model = learner.fit(train, valid)                 # blocks; Ctrl-C stops cleanly
    model = learner.fit(train)                        # without validation
    model = await learner.fit_async(train, valid)     # a notebook's buttons stay alive
    handle = learner.start(train, valid)              # trains while you do other things
    model = handle.wait()

All of them give the model so far when they are stopped, and leave `learner.result`,
which has it as `model`, and the metrics.
What was trained stays in the learner, so that another fit goes on from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import signal
import threading
from collections.abc import Generator, Iterable
from types import FrameType
from typing import Any

from burnbook.core.cures import explains_arguments, explains_call
from burnbook.core.errors import ConfigError, TrainingError
from burnbook.core.other_names import answers
from burnbook.data import DataLoader
from burnbook.data.dataloader.workers import check_main
from burnbook.lr_scheduler import LrScheduler, as_scheduler
from burnbook.module import Module
from burnbook.optim import Optimizer
from burnbook.train.interrupter import SECONDS_BETWEEN_LOOKS, Interrupter
from burnbook.train.live import LiveRun, default_name, registered
from burnbook.train.loop import Fit, Reached
from burnbook.train.plan import TrainingPlan
from burnbook.train.renderer import TrainingResult
from burnbook.train.validation import check_loaders, check_not_validated

SECONDS_TO_SHOW = 2.0  # so long `start` waits at most for what shows the training


@answers("Learner")
class Learner:
    """A model with everything that trains it; made by `LearnerBuilder.build`.

    After each fit, however it ended, `model`, `optim` and `lr_scheduler` are those that
    were trained, `epochs` counts the complete epochs, and `result` says how it ended.
    The objects that were given to `build` stay as they were.

    Another fit goes on from there: with the epochs that are left, if the training was
    stopped, or else with as many again. They are counted on, in logs, checkpoints and
    histories, so that two fits of 5 epochs give what one of 10 does; an epoch that was
    interrupted is trained again from its first batch. What a callback has made of the
    result (an average, the best epoch) is in `model`, but not in the way of training
    on. To go on in another way, change `model`, `optim` or `lr_scheduler` in between;
    to start over, build another learner.

    `Learner(model, optim, 1e-4)` has no plan of its own: `SupervisedTraining` launches
    it.
    """

    def __init__(
        self,
        model: Module,
        optim: Optimizer,
        lr_scheduler: LrScheduler | float,
        plan: TrainingPlan | None = None,
    ) -> None:
        self.model = model
        self.optim = optim
        self.lr_scheduler: LrScheduler | float = as_scheduler(lr_scheduler)
        self._plan = plan
        self.result: TrainingResult | None = None
        self._reached: Reached | None = None  # by the last fit
        self._busy = threading.Lock()

    @property
    def plan(self) -> TrainingPlan:
        """What to measure, keep and show."""
        if self._plan is None:
            raise TrainingError(
                "Learner",
                "nothing says how long to train and where to keep the results",
                cure="SupervisedTraining(folder, train, valid).launch(learner), "
                "or LearnerBuilder(folder).build(model, optim, lr)",
            )
        return self._plan

    def follow(self, plan: TrainingPlan) -> None:
        """Train by this plan from now on; by another than before, from epoch 1 on."""
        if self._plan is not plan:
            self._plan, self._reached = plan, None

    @property
    def epochs(self) -> int:
        """How many epochs are complete, those of the run it has resumed included."""
        return 0 if self._reached is None else self._reached.epochs

    @property
    def interrupter(self) -> Interrupter:
        """The handle that stops or pauses the training."""
        return self.plan.control

    @explains_call(
        "Learner.fit", "fit(train, valid), loaders of batches, or fit(train)"
    )
    @explains_arguments("Learner.fit")
    def fit(
        self,
        train: DataLoader[Any] | Iterable[Any],
        valid: DataLoader[Any] | Iterable[Any] | None = None,
        *,
        num_epochs: int | None = None,
        replace: bool = False,
    ) -> Any:
        """Train, and return the model; Ctrl-C stops cleanly, a second one at once.

        The model can be trained on: it is on Autodiff, and dropout is at work. For
        inference take `learner.fit(train, valid).valid()`.

        valid: without it, or with None, epochs have no validation: its metrics are not
        measured, and nothing may ask for one.

        num_epochs: train for so many epochs more; by default, those that are left of
        the builder's num_epochs, and as many again when none is left.

        replace: stop what this process already trains into the same folder, and wait
        for its end; otherwise that is a TrainingError. It holds for all three ways to
        train.

        Raises:
            ConfigError: num_epochs is not a whole number of at least 1, or without
                `valid` something asks for a metric of validation.
            TrainingError: the learner has no folder and no number of epochs, it or
                another one already trains there, a checkpoint to resume from is
                missing, a training step returns no TrainOutput, or a schedule gives
                what is not a learning rate.
            DataError: `train` or `valid` is not a loader of batches, or gives none.
            RecordError: a checkpoint to resume from is damaged, or of another model.
        """
        more = self._checked("fit", num_epochs, train, valid)
        with self._alone("fit", replace) as run, _interrupt_stops(self.interrupter):
            return self._run(train, valid, run, more).model

    async def fit_async(
        self,
        train: DataLoader[Any] | Iterable[Any],
        valid: DataLoader[Any] | Iterable[Any] | None = None,
        *,
        num_epochs: int | None = None,
        replace: bool = False,
    ) -> Any:
        """Train in a thread while the caller's event loop goes on; canceling stops it.

        As `fit`, it returns a model that can be trained on: `valid()` is for inference.

        Why: a canceled fit still returns the model so far, as an interrupted one
        does: hours of training must not vanish in an exception.
        """
        more = self._checked("fit_async", num_epochs, train, valid)
        handle = self._launch(train, valid, "await", replace, more)
        while not handle.done:
            try:
                await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            except asyncio.CancelledError:
                if self.interrupter.should_stop():
                    raise
                self.interrupter.stop("cancelled")
                task = asyncio.current_task()
                if task is not None:
                    task.uncancel()
        return handle.wait()

    @explains_call(
        "Learner.start", "start(train, valid), loaders of batches, or start(train)"
    )
    def start(
        self,
        train: DataLoader[Any] | Iterable[Any],
        valid: DataLoader[Any] | Iterable[Any] | None = None,
        *,
        num_epochs: int | None = None,
        replace: bool = False,
    ) -> TrainingHandle:
        """Train in a thread and return at once; `handle.wait()` gives the model.

        replace: stop what this process already trains into the same folder first, as
        when a notebook's cell runs again; otherwise that is a TrainingError.

        Raises:
            ConfigError: num_epochs is not a whole number of at least 1, or without
                `valid` something asks for a metric of validation.
            DataError: `train` or `valid` is not a loader of batches, or is empty.
            TrainingError: the learner has no folder and no number of epochs, or it or
                another one already trains there. Other errors are those of `fit`; they
                come out of `handle.wait()`.
        """
        more = self._checked("start", num_epochs, train, valid)
        return self._launch(train, valid, "thread", replace, more)

    def __repr__(self) -> str:
        count = self._plan.num_epochs if self._plan else 0
        epochs = f", {count} epoch{'s' * (count != 1)}" if self._plan else ""
        return f"Learner({type(self.model).__name__}{epochs})"

    def _checked(
        self, method: str, num_epochs: int | None, train: Any, valid: Any
    ) -> int | None:
        """The number of epochs, if it is one, and if the data can be trained on."""
        if num_epochs is None or (type(num_epochs) is int and num_epochs >= 1):
            check_loaders(method, train, valid)
            if valid is None:
                check_not_validated(self.plan.watched)
            return num_epochs
        what = f"num_epochs is {num_epochs!r}, not a number of at least 1"
        cure = f"{method}(train, valid, num_epochs=5)"
        raise ConfigError(f"Learner.{method}", what, cure=cure)

    def _launch(
        self,
        train: DataLoader[Any] | Iterable[Any],
        valid: DataLoader[Any] | Iterable[Any] | None,
        mode: str,
        replace: bool,
        more: int | None,
    ) -> TrainingHandle:
        alone = self._alone(mode, replace)
        run = alone.__enter__()

        def work(here: bool) -> TrainingResult:
            run.mode = "fit" if here else mode
            return self._run(train, valid, run, more)

        return TrainingHandle(work, run, alone)

    def _run(
        self,
        train: DataLoader[Any] | Iterable[Any],
        valid: DataLoader[Any] | Iterable[Any] | None,
        run: LiveRun,
        more: int | None,
    ) -> TrainingResult:
        run.thread = threading.current_thread()
        after, model = self._reached, self.model
        if after is not None and model is after.result:
            model = after.model  # as it was trained, without what on_end made of it
        plan, done = self.plan, self.epochs
        left = more or plan.num_epochs - done
        total = done + (left if left > 0 else plan.num_epochs)
        scheduler = as_scheduler(self.lr_scheduler)
        plan = dataclasses.replace(plan, num_epochs=total)
        if valid is None:
            plan = plan.without_validation()
        fit = Fit(plan, model, self.optim, scheduler, run, after)
        try:
            loaders: Any = (train, valid)  # any iterables of batches
            return fit.run(*loaders)
        finally:
            self.result = run.result = fit.result
            if fit.started and fit.result is not None:
                self._hold(fit)

    def _hold(self, fit: Fit) -> None:
        """Keep what a training has reached, for people and for the next fit."""
        self._reached = reached = fit.reached()
        self.model = reached.result
        self.optim, self.lr_scheduler = fit.optim, fit.scheduler

    @contextlib.contextmanager
    def _alone(self, mode: str, replace: bool) -> Generator[LiveRun]:
        """One training at a time; what was asked of the previous one is forgotten."""
        check_main("Learner.fit")
        if self._busy.locked() and not replace:
            raise TrainingError(
                "Learner.fit",
                "this learner is already training",
                cure="wait for it, stop it with learner.interrupter.stop(), "
                "or build another learner",
            )
        plan, control = self.plan, self.interrupter
        name = plan.name or default_name(plan.directory)
        with (
            registered(
                name, plan.directory, control, mode, writes=plan.writes, replace=replace
            ) as run,
            self._busy,
        ):
            control.reset()
            yield run


class TrainingHandle:
    """A training that runs in a thread: wait for it, stop it, pause it.

    Where no thread can be started, as in a browser, the caller has trained already.
    """

    def __init__(self, work: Any, run: LiveRun, alone: Any) -> None:
        self.control = control = run.control
        self.name = run.name
        self._work, self._alone = work, alone
        self._result: TrainingResult | None = None
        self._error: BaseException | None = None
        # The caller's context is passed on: what the thread prints and shows then
        # belongs to the notebook cell that started it, not to the newest one.
        self._thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(self._train,),
            name="burnbook training",
            daemon=True,
        )
        try:
            self._thread.start()
        except RuntimeError:  # no threads here
            with _interrupt_stops(control):
                self._train(here=True)
        else:  # two trainings of one cell are shown in their order
            run.wait_until_shown(SECONDS_TO_SHOW)

    def _train(self, here: bool = False) -> None:
        try:
            self._result = self._work(here)
        except BaseException as error:  # handed to whoever waits
            self._error = error
        finally:
            self._alone.__exit__(None, None, None)

    @property
    def done(self) -> bool:
        """Whether the training has ended."""
        return not self._thread.is_alive()

    @property
    def result(self) -> TrainingResult | None:
        """How the training ended; None while it runs."""
        return self._result

    def wait(self) -> Any:
        """Wait for the end and return the model; Ctrl-C stops the training cleanly."""
        with _interrupt_stops(self.control):
            while not self.done:
                self._thread.join(SECONDS_BETWEEN_LOOKS)
        if self._error is not None:
            raise self._error
        return self._result.model if self._result else None

    def stop(self, reason: str = "stopped") -> None:
        """End the training after the batch that runs now."""
        self.control.stop(reason)

    def pause(self) -> None:
        """Hold the training after the batch that runs now."""
        self.control.pause()

    def resume(self) -> None:
        """Go on."""
        self.control.resume()

    def save_checkpoint(self) -> None:
        """Keep a checkpoint of the epoch that runs now, when it ends."""
        self.control.save_checkpoint()

    def __repr__(self) -> str:
        state = "paused" if self.control.paused else "running"
        return f"TrainingHandle({'done' if self.done else state})"


@contextlib.contextmanager
def _interrupt_stops(control: Interrupter) -> Generator[None]:
    """Ctrl-C asks the training to stop; a second Ctrl-C raises KeyboardInterrupt."""

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if control.should_stop():
            raise KeyboardInterrupt
        control.stop("interrupted")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.default_int_handler)
