"""Steps on one device, or on several at once.

With several devices every round takes one batch per device; each device has its own
copy of the model, and their gradients are summed on the first one before the optimizer
takes its step (that is why `loop.py` counts the batches of a group).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from copy import copy
from itertools import islice
from typing import Any

from burnbook.backend import Backend
from burnbook.backend.autodiff import Autodiff, BalancedCheckpointing
from burnbook.core.rng import Stream, current_stream, use_stream
from burnbook.module import Module
from burnbook.module.running import average_running_states
from burnbook.train.training_strategy import LearningParadigm, Numbered, Steps


class Devices(LearningParadigm):
    """The devices of a training; the first one holds the model and the optimizer.

    With `checkpointing` each of them recomputes cheap values in the backward pass.
    """

    def __init__(self, devices: list[Backend], checkpointing: bool = False) -> None:
        every = [_tracking(device, checkpointing) for device in devices]
        self.main = every[0]
        self.others = every[1:]
        self.group = len(every)

    def steps(self, batches: Iterable[Numbered], model: Callable[[], Any]) -> Steps:
        """For every batch: its number, itself, what train_step returned, progress."""
        if not self.others:
            for number, batch, progress in batches:
                yield number, batch, model().train_step(batch), progress
            return
        walk = iter(batches)
        with ThreadPoolExecutor(self.group, "burnbook device") as threads:
            while group := list(islice(walk, self.group)):
                yield from self._round(threads, group, model())

    def _round(
        self, threads: ThreadPoolExecutor, group: list[Numbered], model: Module
    ) -> Steps:
        """One batch on each device, at the same time; results in their order."""
        places = [self.main, *self.others]
        waiting: list[Future[tuple[Any, Any]]] = []
        for place, (number, batch, _) in zip(places, group, strict=False):
            stream = stream_for(number)
            work = copy_context().run
            waiting.append(threads.submit(work, _step, stream, model, place, batch))
        pairs = [each.result() for each in waiting]
        average_running_states(model, [fork for fork, _ in pairs])
        outputs = [output for _, output in pairs]
        for (number, batch, progress), output in zip(group, outputs, strict=True):
            if hasattr(output, "grads"):
                output.grads = output.grads.to_device(self.main, model)
            yield number, batch, output, progress


def _tracking(device: Backend, checkpointing: bool) -> Backend:
    if checkpointing:
        below = device.inner if device.ad_enabled else device
        return Autodiff(below, BalancedCheckpointing())
    return device if device.ad_enabled else device.autodiff()


def on_place(batch: Any, place: Backend) -> Any:
    """The batch with its tensors on a device, whatever it is made of."""
    if hasattr(batch, "to_device"):
        return batch.to_device(place)
    if isinstance(batch, dict):
        return {key: on_place(value, place) for key, value in batch.items()}
    if type(batch) in (list, tuple):
        return type(batch)(on_place(value, place) for value in batch)
    if not hasattr(batch, "__dict__"):
        return batch
    moved = copy(batch)  # a dataclass, or any object with fields
    for name, value in vars(batch).items():
        vars(moved)[name] = on_place(value, place)
    return moved


def stream_for(number: int) -> Stream | None:
    """Random numbers of its own for every batch, the same in every run."""
    stream = current_stream()
    if stream is None:
        return None
    return stream.split(f"batch {number}")


def _step(
    stream: Stream | None, model: Any, place: Backend, batch: object
) -> tuple[Any, Any]:
    """The copy of the model on a device, and what its train_step gives."""
    fork = model.fork(place)
    batch = on_place(batch, place)
    if stream is None:
        return fork, fork.train_step(batch)
    with use_stream(stream):
        return fork, fork.train_step(batch)
