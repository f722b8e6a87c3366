"""Trainings that die by SIGKILL at a chosen moment, one fork of this process each.

It reads lines `folder<tab>epochs<tab>moment` and answers each with `killed` or `done`.
A moment is `training:5` (in the fifth step), `writing:2` (in the second file, half
written), `saving:7` (at the seventh call that forces, renames or removes a file; before
it when the number is even, else after it), `logging:9` (in the middle of the ninth
line), `time:0.04` (after so many seconds, wherever it is), or `never`. A fourth part
names the recorder, one of RECORDERS.
"""

import os
import signal
import sys
import time
from pathlib import Path

from burnbook import record
from burnbook.optim import AdamConfig
from burnbook.train.logger import FileMetricLogger
from tests.support.tiny_training import Tiny, builder, loader, tiny

RECORDERS = {
    kind.__name__: kind
    for kind in (
        record.NamedMpkFileRecorder,
        record.NamedMpkGzFileRecorder,
        record.BinFileRecorder,
        record.BinGzFileRecorder,
        record.PrettyJsonFileRecorder,
        record.JsonGzFileRecorder,
        record.BurnpackRecorder,
    )
}
CALLS = ("fsync", "replace", "unlink", "rename")


def die():
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # the signal takes a moment


class Countdown:
    """True at the nth call."""

    def __init__(self, count):
        self.left = count

    def __call__(self):
        self.left -= 1
        return self.left == 0


def die_in_training(count):
    now, step = Countdown(count), Tiny.train_step

    def train_step(self, batch):
        output = step(self, batch)
        if now():
            die()
        return output

    Tiny.train_step = train_step


def die_in_writing(made, count):
    now, encode = Countdown(count), made.encode

    def pieces(record, lower):
        ending = now()
        for piece in encode(record, lower):
            yield piece
            if ending:
                die()

    made.encode = pieces


def die_in_saving(count):
    now, before = Countdown(count), count % 2 == 0

    def wrapped(call):
        def called(*arguments, **options):
            ending = now()
            if ending and before:
                die()
            result = call(*arguments, **options)
            if ending:
                die()
            return result

        return called

    for name in CALLS:
        setattr(os, name, wrapped(getattr(os, name)))


def die_in_logging(count):
    now, log = Countdown(count), FileMetricLogger.log

    def log_half(self, entry):
        log(self, entry)
        if now():
            file = self.files[entry.name]
            file.flush()
            file.truncate(file.tell() - len(entry.serialize) // 2 - 1)
            die()

    FileMetricLogger.log = log_half


def made_by(name):
    """A recorder that loses nothing."""
    kind = RECORDERS[name]
    burnpack = kind is record.BurnpackRecorder
    return kind() if burnpack else kind(record.FullPrecisionSettings)


def train(folder, epochs, moment, name):
    kind, _, count = moment.partition(":")
    made = made_by(name)
    if kind == "training":
        die_in_training(int(count))
    elif kind == "writing":
        die_in_writing(made, int(count))
    elif kind == "saving":
        die_in_saving(int(count))
    elif kind == "logging":
        die_in_logging(int(count))
    plan = builder(folder, epochs).with_file_checkpointer(made).checkpoint()
    plan.build(tiny(), AdamConfig().init(), 0.01).fit(loader(), loader(1))


def run(folder, epochs, moment, name="NamedMpkFileRecorder"):
    """Train in a fork; how it ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            train(Path(folder), int(epochs), moment, name)
            code = 0
        finally:
            os._exit(code)
    if moment.startswith("time:"):
        time.sleep(float(moment.partition(":")[2]))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "killed"
    return "done" if status == 0 else "failed"


if __name__ == "__main__":
    for line in sys.stdin:
        print(run(*line.rstrip("\n").split("\t")), flush=True)
