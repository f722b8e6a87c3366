"""The interrupter: stop, pause, save from outside.

Its methods only set flags, so a button, a signal or another thread may call them at
any time; the training loop looks at the flags after every batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS_BETWEEN_LOOKS = 0.05


class Interrupter:
    """A handle on a running training.

    Example:
        >>> control = Interrupter()
        >>> control.stop("seen enough")
        >>> control.should_stop(), control.reason
        (True, 'seen enough')

    Why: plain attributes and no lock, because a signal handler may run in the middle of
    any line and must never wait for one.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self.paused = False
        self.checkpoint_wanted = False

    def stop(self, reason: str = "stopped") -> None:
        """End the training after the batch that runs now; the first reason stays."""
        if self.reason is None:
            self.reason = reason

    def should_stop(self) -> bool:
        """Whether somebody has asked to stop."""
        return self.reason is not None

    def pause(self) -> None:
        """Hold the training after the batch that runs now."""
        self.paused = True

    def resume(self) -> None:
        """Go on."""
        self.paused = False

    def save_checkpoint(self) -> None:
        """Keep a checkpoint of the epoch that runs now, whatever the strategy says.

        Why: it is written when the epoch ends, as a run can resume only after a
        complete epoch; the strategy never deletes it.
        """
        self.checkpoint_wanted = True

    def reset(self) -> None:
        """Forget what was asked; every fit begins with this."""
        self.reason = None
        self.paused = self.checkpoint_wanted = False

    def wait_while_paused(self, tick: Callable[[], None] | None = None) -> None:
        """Return at once, or when resumed or stopped; `tick` is called meanwhile."""
        while self.paused and self.reason is None:
            if tick is not None:
                tick()
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def __repr__(self) -> str:
        state = "paused" if self.paused else "running"
        return f"Interrupter({self.reason or state})"
