"""Calls the callbacks of a training in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from burnbook.core.errors import BurnbookError, TrainingError
from burnbook.module import Module
from burnbook.train.callback.base import Callback, TrainingState

Shown = tuple[str, str]  # a callback's name, and its status


class CallbackRunner:
    """The callbacks of a training, each asked with what the one before has made.

    Example:
        >>> CallbackRunner([Callback(), Callback()]).shown()
        [('Callback', ''), ('Callback 2', '')]
    """

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self.by_name: dict[str, Callback] = {}
        for callback in callbacks:
            name, number = callback.name, 1
            while name in self.by_name:
                number += 1
                name = f"{callback.name} {number}"
            self.by_name[name] = callback

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def reset(self) -> None:
        """Let all of them forget what they know."""
        for callback in self.by_name.values():
            callback.reset()

    def call(self, event: str, state: TrainingState) -> Any:
        """The model after all callbacks have seen an event: "on_step", "on_epoch" …"""
        for name, callback in self.by_name.items():
            where = f"{name}.{event}"
            try:
                made = getattr(callback, event)(state)
            except Exception as error:
                _name(error, where, state)
                raise
            if made is not None:
                state = replace(state, model=_checked(where, made, state))
        return state.model

    def shown(self) -> list[Shown]:
        """Their names and what they say about themselves."""
        return [(name, each.status()) for name, each in self.by_name.items()]

    def into_record(self) -> dict[str, Any] | None:
        """What each has to remember, by its name; None where none has anything."""
        records = {name: each.into_record() for name, each in self.by_name.items()}
        found = {name: record for name, record in records.items() if record is not None}
        return found or None

    def load_record(self, record: dict[str, Any] | None, model: Module) -> list[str]:
        """Let each go on from its record; returns the names of those that have none.

        Raises:
            TrainingError: a record is not one of the callback of its name.
        """
        missing: list[str] = []
        for name, callback in self.by_name.items():
            if record is not None and name in record:
                try:
                    callback.load_record(record[name], model)
                except BurnbookError:
                    raise
                except Exception as error:
                    raise TrainingError(
                        f"{name}.load_record",
                        f"{type(error).__name__}: {error}",
                        cure="the callback that the checkpoint was saved with, or "
                        "another name",
                    ) from error
            elif callback.into_record() is not None:
                missing.append(name)
        return missing


def _checked(where: str, made: object, state: TrainingState) -> Any:
    """The model that a callback has returned, where the training is."""
    if not isinstance(made, Module) or not hasattr(made, "train_step"):
        name = type(made).__name__
        raise TrainingError(
            where,
            f"it returned {name}, not a {type(state.model).__name__}",
            cure="return the model that replaces state.model, or None",
        )
    if made.devices() in ([], [state.device]):
        return made
    tracked = all(device.ad_enabled for device in made.devices())
    return (made if tracked else made.train()).fork(state.device)


def _name(error: Exception, where: str, state: TrainingState) -> None:
    """Let an error say in which callback it was raised; its class stays.

    Why: a library that prunes trials does so by an exception of its own.
    """
    place = f"{where}, epoch {state.epoch}, iteration {state.iteration}"
    if isinstance(error, BurnbookError):
        error.facts.append(("callback", place))
    else:
        error.add_note(f"in the callback {place}")
