"""The status of a run in its experiment log: began, ended, and why.

Burn's experiment log does not say when a training ends, so anyone who looks at a folder
later cannot tell a finished run from a killed one. Ours has a line at both ends:

    … INFO burnbook::train: Training epochs 1 to 10 in process 4711 on lab-3
    … INFO burnbook::train: Training ended after epoch 10 of 10: finished

A run that was given a name has one more line before them:

    … INFO burnbook::train::name: baseline
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass

STATUS = "burnbook::train"
NAME = "burnbook::train::name"  # the source of the line with the name of the run
FINISHED = "finished"
EARLY = "stopped early"  # how the reason of early stopping starts
_BEGAN = re.compile(r"Training epochs \d+ to (\d{1,9}) in process (\d{1,9}) on (.*)")
_ENDED = re.compile(r"Training ended after epoch (\d{1,9}) of (\d{1,9}): (.*)")


@dataclass(frozen=True)
class RunStatus:
    """What the last such line of the log says; `reason` is None while it goes on.

    ended_after: the epoch after which it ended, None while it goes on.
    """

    num_epochs: int
    process: int | None = None
    host: str = ""
    reason: str | None = None
    ended_after: int | None = None

    @property
    def last_epoch(self) -> int:
        """The last epoch that can be its own: later ones are of an earlier training."""
        if self.finished and self.ended_after is not None:
            return self.ended_after
        return self.num_epochs

    @property
    def finished(self) -> bool:
        """Whether training ran to its end."""
        reason = self.reason or ""
        return reason == FINISHED or reason.startswith(EARLY)

    @property
    def alive(self) -> bool | None:
        """Whether the process still runs; None when it cannot be known here."""
        if self.reason is not None or self.process is None:
            return False
        if self.host != platform.node() or os.name != "posix":
            return None
        try:
            os.kill(self.process, 0)  # only asks: signal 0 is not sent
        except ProcessLookupError:
            return False
        except OSError:  # it runs, and belongs to somebody else
            return True
        return True


def began(start: int, num_epochs: int) -> str:
    """The line at the start of a training."""
    place = f"process {os.getpid()} on {platform.node()}"
    return f"Training epochs {start} to {num_epochs} in {place}"


def ended(epoch: int, num_epochs: int, reason: str | None) -> str:
    """The line at its end.

    Example:
        >>> ended(3, 10, None), read_status(ended(3, 10, "interrupted")).finished
        ('Training ended after epoch 3 of 10: finished', False)
    """
    why = (reason or FINISHED).partition("\n")[0]
    return f"Training ended after epoch {epoch} of {num_epochs}: {why}"


def read_status(line: str) -> RunStatus | None:
    """What such a line says; None for any other line."""
    if found := _ENDED.search(line):
        reason = found[3].strip()
        return RunStatus(int(found[2]), reason=reason, ended_after=int(found[1]))
    if found := _BEGAN.search(line):
        return RunStatus(int(found[1]), int(found[2]), found[3].strip())
    return None
