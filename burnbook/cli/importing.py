"""`burnbook import-pytorch`: weights of others without a program."""

from __future__ import annotations

import argparse
from pathlib import Path

from burnbook.cli.records import make_module
from burnbook.cli.shared import Subcommands, command, say
from burnbook.core.errors import RecordError


def add_commands(commands: Subcommands) -> None:
    """Declare the commands of this file."""
    about = "Say what a file of PyTorch holds, and convert its weights to a record."
    example = "burnbook import-pytorch model.pt -o model.mpk --module net:make"
    made = command(commands, "import-pytorch", run_pytorch, about, example)
    made.add_argument("file", type=Path, help="a file that torch.save has written")
    made.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="the record to write: OUT.mpk"
    )
    made.add_argument(
        "--top-level-key", metavar="KEY", help="read only what is under this key"
    )
    made.add_argument(
        "--remap",
        action="append",
        default=[],
        type=_rule,
        metavar="A=B",
        help="rename keys: a pattern of Rust's regex, and $1; may be repeated",
    )
    made.add_argument(
        "--module",
        metavar="PLACE",
        help="package.file:function that makes the module the weights are for",
    )
    made.add_argument(
        "--precision",
        choices=["half", "full", "double"],
        default="full",
        help="the precision of the record; default: full",
    )
    made.add_argument(
        "--check", action="store_true", help="only report: 1 where something misfits"
    )


def run_pytorch(options: argparse.Namespace) -> int:
    """Report, and write a record if one is asked for."""
    from burnbook.importers.pytorch import LoadArgs, PyTorchFileRecorder
    from burnbook.importers.pytorch_report import inspect_file
    from burnbook.record.conversion import PRECISIONS
    from burnbook.record.inspection import recorder_for

    module = make_module(options.module) if options.module else None
    rules, key = tuple(options.remap), options.top_level_key
    report = inspect_file(options.file, top_level_key=key, remap=rules, module=module)
    say(str(report))
    if options.check or options.output is None:
        return 0 if report.fits else 1
    settings = PRECISIONS[options.precision]
    kind = type(recorder_for(options.output, f"write {options.output}"))
    if issubclass(kind, PyTorchFileRecorder):
        what = "this format is read here, not written"
        raise RecordError(f"write {options.output}", what, cure="OUT.mpk")
    args = LoadArgs(options.file, rules, key)
    recorder = PyTorchFileRecorder(settings)
    record = recorder.load(args)
    if module is not None:
        record = module.load_record(record).into_record()
    path = kind(settings).record(record, options.output)
    say(f"wrote {path}, {path.stat().st_size:,} bytes")
    return 0


def _rule(text: str) -> tuple[str, str]:
    """A pattern and its replacement, at the last sign of equality."""
    pattern, sign, replacement = text.rpartition("=")
    if not sign or not pattern:
        what = f"{text!r} is no rule; one reads '^module\\.(.*)=$1'"
        raise argparse.ArgumentTypeError(what)
    return pattern, replacement
