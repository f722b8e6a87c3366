"""A training whose disk is full: no file of this process grows beyond a size.

As a program, `full_disk.py DIR BYTES KIND`: KIND is `logs` (no checkpointer),
`checkpoint` or `diary` (its metrics stay in memory). It prints how the training ended.
"""

import resource
import signal
import sys
from pathlib import Path

from burnbook.core.errors import BurnbookError
from burnbook.train import InMemoryMetricLogger
from tests.support.tiny_training import build, builder, loader, recorder


def main(folder, size, kind):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error in place of a signal
    made = builder(folder, 10_000)
    if kind == "checkpoint":
        made.with_file_checkpointer(recorder())
    if kind == "diary":
        made.metric_loggers(InMemoryMetricLogger(), InMemoryMetricLogger())
    trained = build(made)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        trained.fit(loader(), loader(1))
    except BurnbookError as error:
        print("error", str(error).replace("\n", " | "))
    result = trained.result
    print("result", result.epochs, len(result.model.named_params()))
    print("history", len(result.history.epochs("Loss", "valid")))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
