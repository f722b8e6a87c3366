"""What the dashboard says about its buttons.

Buttons tell the kernel, which acts when it hears them; one that waits says "queued".
What only changes the look acts on the page, even while a cell keeps the kernel.
"""

from __future__ import annotations

import sys

NOTES = {
    "await": "● live: buttons act at once while this cell waits for the training.",
    "thread": "● live: buttons act at once; a cell that runs .wait() holds them until "
    "it ends.",
    "fit": "◷ queued: clicks arrive when this cell ends. To stop now, interrupt the "
    "kernel (■): training ends cleanly and keeps the model. What changes the look "
    "acts at once.",
}


def buttons_are(mode: str) -> str:
    """Which note fits: an awaiting cell hears clicks from ipykernel 7 on."""
    kernel = sys.modules.get("ipykernel")
    if mode == "await" and kernel is not None and kernel.version_info[0] < 7:
        return "fit"
    return mode if mode in NOTES else "fit"
