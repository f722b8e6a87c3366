"""`burnbook import-pytorch` and `import-onnx`: models of others without a program."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

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
        "-o",
        "--output",
        type=Path,
        metavar="OUT",
        help="the record to write; its ending says the format, .mpk where it has none",
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

    about = "Say what an ONNX file holds, and write it as Python source and a record."
    example = "burnbook import-onnx model.onnx -o model/"
    made = command(commands, "import-onnx", run_onnx, about, example)
    made.add_argument("file", type=Path, help="an ONNX file")
    made.add_argument(
        "--operators",
        metavar="MODULE",
        action="append",
        default=[],
        help="a module that adds operators with add_operator, imported first",
    )
    made.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="the folder to write to"
    )
    made.add_argument(
        "--record-type",
        choices=["NamedMpk", "NamedMpkGz", "PrettyJson", "Bincode"],
        default="NamedMpk",
        help="the format of the weights; default: NamedMpk",
    )
    made.add_argument("--half", action="store_true", help="weights as f16")
    made.add_argument(
        "--embed", action="store_true", help="weights in the source; needs Bincode"
    )
    made.add_argument(
        "--development", action="store_true", help="write a list of all nodes as well"
    )
    made.add_argument(
        "--check", action="store_true", help="only report: 1 where something is unknown"
    )
    made.add_argument(
        "--compare",
        action="store_true",
        help="compare every value with the original's, for the inputs in "
        "test_data_set_0 beside the file: 1 where one is not close",
    )


def run_pytorch(options: argparse.Namespace) -> int:
    """Report, and write a record if one is asked for."""
    from burnbook.core.errors import RecordError
    from burnbook.importers.pytorch import LoadArgs, PyTorchFileRecorder
    from burnbook.importers.pytorch_report import inspect_file
    from burnbook.record.conversion import PRECISIONS

    module = make_module(options.module) if options.module else None
    rules, key = tuple(options.remap), options.top_level_key
    report = inspect_file(options.file, top_level_key=key, remap=rules, module=module)
    say(str(report))
    if options.check or options.output is None:
        return 0 if report.fits else 1
    if module is None and not report.fits:
        what = "there is no tensor to write"
        if report.refused:
            what = f"{len(report.refused)} of its tensors cannot be read"
        facts = [(name, report.skipped[name]) for name in report.refused[:6]]
        cure = "--top-level-key KEY for a part without them"
        raise RecordError(f"import {options.file}", what, facts, cure)
    settings = PRECISIONS[options.precision]
    target = options.output
    target = target if target.suffix else target.with_name(f"{target.name}.mpk")
    kind = _writer_of(target, options.file)
    args = LoadArgs(options.file, rules, key)
    recorder = PyTorchFileRecorder(settings)
    record = recorder.load(args)
    if module is not None:
        record = module.load_record(record).into_record()
    path = kind(settings).record(record, target)
    say(f"wrote {path}, {path.stat().st_size:,} bytes")
    return 0


def _writer_of(target: Path, source: Path) -> Any:
    """The class of recorder that a name asks for; only records are written here."""
    from burnbook.record.inspection import recorder_for

    where = f"write {target}"
    try:
        return type(recorder_for(target, where))
    except RecordError as error:
        made = target.with_suffix(".mpk")
        what = f"{target.suffix} is none of the formats of a record"
        cure = f"burnbook import-pytorch {source} -o {made}"
        raise RecordError(where, what, error.facts, cure) from None


def _rule(text: str) -> tuple[str, str]:
    """A pattern and its replacement, at the last sign of equality."""
    pattern, sign, replacement = text.rpartition("=")
    if not sign or not pattern:
        what = f"{text!r} is no rule; one reads '^module\\.(.*)=$1'"
        raise argparse.ArgumentTypeError(what)
    return pattern, replacement


def import_operators(name: str) -> None:
    """Import a module that adds operators, from the current folder or installed."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        import_module(name)
    except ImportError as cause:
        what = f"it cannot be imported: {cause}"
        cure = "the name of a module in this folder, without .py"
        raise RecordError(f"--operators {name}", what, cure=cure) from None


def run_onnx(options: argparse.Namespace) -> int:
    """Report, and write source and record if a folder is given."""
    from burnbook.importers.onnx import ModelGen, RecordType, check, compare

    for name in options.operators:
        import_operators(name)
    report = check(options.file)
    say(str(report))
    if options.compare and report.is_supported():
        values = compare(options.file)
        say(str(values))
        if values.first_difference is not None:
            return 1
    if options.check or options.output is None:
        return 0 if report.is_supported() else 1
    kind = RecordType[options.record_type]
    generator = ModelGen().input(options.file).out_dir(options.output)
    generator = generator.record_type(kind).half_precision(options.half)
    generator = generator.embed_states(options.embed)
    for path in generator.development(options.development).run_from_cli():
        say(f"wrote {path}")
    return 0
