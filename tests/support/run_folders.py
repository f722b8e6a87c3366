"""Artifact folders for tests, written line by line as Burn and we write them."""

import json
import os
import time
from pathlib import Path

STAMP = "2024-12-12T04:23:02.729942Z"


def write_logs(folder, split, epoch, **metrics):
    """`<split>/epoch-<e>/<Metric>.log`, one line per entry."""
    for name, lines in metrics.items():
        path = Path(folder) / split / f"epoch-{epoch}" / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))


def write_diary(folder, *lines, level=" INFO"):
    """`experiment.log`; a line of Rust Burn 0.15.0 ends with four spaces."""
    path = Path(folder) / "experiment.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(f"{STAMP} {level} {line}    \n" for line in lines)


def write_checkpoint(folder, epoch, *parts, extension="mpk"):
    for part in parts or ("model", "optim", "scheduler"):
        path = Path(folder) / "checkpoint" / f"{part}-{epoch}.{extension}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\x83")


def make_run(folder, losses=(0.5, 0.25), accuracy=(80.0, 90.0), state=None, **config):
    """A run with one number per epoch: a loss, an accuracy; the diary says `state`."""
    for epoch, (loss, share) in enumerate(zip(losses, accuracy, strict=True), 1):
        for split in ("train", "valid"):
            write_logs(folder, split, epoch, Loss=[f"{loss},1"])
            write_logs(folder, split, epoch, Accuracy=[f"{share},64"])
    write_diary(folder, "burn_train::learner::train_val: Fitting the model:")
    if state:
        write_diary(folder, f"burnbook::train: {state}")
    if config:
        (Path(folder) / "config.json").write_text(json.dumps(config))
    grow_old(folder)
    return folder


def grow_old(folder, seconds=3600):
    """Let every file of a folder be from an hour ago."""
    then = time.time() - seconds
    for path in sorted(Path(folder).rglob("*")):
        os.utime(path, (then, then))
