"""Restores a saved file and is killed at a given step: FILE FOLDER SHIPPED STEP.

A step is one change of a name in the reader's folder, or one file unpacked.
"""

import os
import signal
import sys
from pathlib import Path

from burnbook.cli.workspace import restore_work


def main(file, folder, shipped, step):
    left = int(step)
    change = os.replace

    def count_down(*args, **named):
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return change(*args, **named)

    os.replace = count_down
    restore_work(Path(file), folder=folder, shipped=shipped)


if __name__ == "__main__":
    main(*sys.argv[1:])
