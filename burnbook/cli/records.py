"""`burnbook inspect`, `convert` and `scaffold`: records without a program."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from burnbook.cli.shared import Subcommands, command, say
from burnbook.core.errors import ArgumentError, RecordError
from burnbook.core.files import atomic_write, printable, read_whole
from burnbook.core.other_names import closest

EXAMPLE = "--module my_model:make"


def add_commands(commands: Subcommands) -> None:
    """Declare the commands of this file."""
    about = "List what a file of weights holds: names, shapes and element types."
    example = "burnbook inspect guide/model.mpk"
    inspect = command(commands, "inspect", run_inspect, about, example)
    inspect.add_argument(
        "file",
        type=Path,
        help="a record, a file of PyTorch or ONNX, or a folder with safetensors",
    )
    about = "Convert a record to another format, chosen by the new file's extension."
    example = "burnbook convert model.mpk model.safetensors --precision half"
    convert = command(commands, "convert", run_convert, about, example)
    convert.add_argument("source", type=Path, help="the record to read")
    convert.add_argument(
        "target",
        type=Path,
        help="the file to write: .mpk .mpk.gz .json .json.gz .bin .bin.gz .bpk "
        ".safetensors",
    )
    convert.add_argument(
        "--precision",
        choices=["keep", "half", "full", "double"],
        default="keep",
        help="the precision of the numbers; default: keep it",
    )
    convert.add_argument(
        "--module",
        metavar="PLACE",
        help="package.file:function that makes the module, which .bin needs",
    )

    about = "Write the Python source of a module that a record fits."
    example = "burnbook scaffold model.mpk -o model.py"
    made = command(commands, "scaffold", run_scaffold, about, example)
    made.add_argument(
        "file", type=Path, help="a record with names: .mpk .json .bpk .safetensors"
    )
    made.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="the file to write, else shown"
    )
    made.add_argument(
        "--name", default="Model", help="the name of the class; default: Model"
    )
    made.add_argument(
        "--overwrite",
        action="store_true",
        help="overwrite a file that holds something else",
    )


def run_inspect(options: argparse.Namespace) -> int:
    """Describe a record."""
    from burnbook.importers.tensor_file import is_of_pytorch
    from burnbook.record import describe

    if is_of_pytorch(options.file):
        from burnbook.importers.pytorch_report import inspect_file

        say(str(inspect_file(options.file)))
    else:
        say(str(describe(options.file)))
    return 0


def run_convert(options: argparse.Namespace) -> int:
    """Convert a record."""
    from burnbook.record import convert
    from burnbook.record.conversion import PRECISIONS

    module = make_module(options.module) if options.module else None
    precision = PRECISIONS.get(options.precision)
    path = convert(options.source, options.target, precision=precision, module=module)
    say(f"wrote {path}, {path.stat().st_size:,} bytes")
    return 0


def run_scaffold(options: argparse.Namespace) -> int:
    """Show or write the source of a module."""
    from burnbook.importers.scaffold import scaffold

    if options.output is not None:
        refuse_record(options.file, options.output)
    text = scaffold(options.file, options.name)
    if options.output is None:
        say(text.rstrip("\n"))
        return 0
    data = text.encode()
    if not options.overwrite:
        _refuse_other(options.output, data)
    with atomic_write(options.output, RecordError) as file:
        file.write(data)
    say(f"wrote {options.output}")
    return 0


def refuse_record(record: Path, *targets: Path) -> None:
    """Raise where a file that would be written is the record that is read.

    Raises:
        ArgumentError: one of the targets is that file, under whatever name.
    """
    for target in targets:
        with contextlib.suppress(OSError, ValueError):  # one of them is not there
            if target.samefile(record):
                where = f"write {printable(target)}"
                what = "that is the record which is read"
                raise ArgumentError(where, what, cure="another name for what it writes")


def _refuse_other(path: Path, data: bytes) -> None:
    """Raise where a file holds anything else than what would be written.

    Why: what was written once is edited by hand, `forward` at least; so a first line
    does not tell that nothing of a person's would be lost.
    """
    if not path.is_file() or read_whole(path, RecordError) == data:
        return
    what = "the file exists, and holds something else"
    cure = "another name, or --overwrite to replace it"
    raise ArgumentError(f"write {printable(path)}", what, cure=cure)


def _makes(value: object, file: str) -> bool:
    """Whether a name of a file is a function or a class of its own."""
    return callable(value) and getattr(value, "__module__", None) == file


def _named(found: Any, file: str, name: str, where: str) -> Any:
    """What a name of a file stands for; it may have dots, as Model.default."""
    make: Any = found
    for word in name.split("."):
        make = getattr(make, word, None)
        if make is None:
            held = [n for n, v in vars(found).items() if _makes(v, file)]
            near = closest(name, held)
            cure = f"--module {file}:{near}" if near else None
            facts = [("it has", ", ".join(held[:8]) or "no function and no class")]
            raise RecordError(where, f"{file} has no {name}", facts, cure)
    return make


def _called(make: Any, name: str, where: str) -> Any:
    """What a function without arguments gives; anything else as it is."""
    if not callable(make):
        return make
    try:
        inspect.signature(make).bind()
    except TypeError as cause:
        what = f"{name} cannot be called without arguments: {cause}"
        cure = "a function without arguments that returns the module"
        raise RecordError(where, what, cure=cure) from None
    except ValueError:  # it has no signature, and may be called
        pass
    return make()


def make_module(place: str) -> Any:
    """The module that `package.file:function` returns, run from the current folder."""
    from burnbook.module import Module

    where = f"--module {place}"
    file, colon, name = place.partition(":")
    if not (file and colon and name):
        raise RecordError(where, "this names no function in a file", cure=EXAMPLE)
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = importlib.import_module(file)
    except ImportError as cause:
        cure = None
        if file.endswith(".py") or "/" in file:
            path = file.removesuffix(".py").replace("/", ".").lstrip(".")
            cure = f"--module {path}:{name}"
        what = f"it cannot be imported: {cause}"
        raise RecordError(where, what, cure=cure) from None
    make = _named(found, file, name, where)
    made = make if isinstance(make, Module) else _called(make, name, where)
    if not isinstance(made, Module):
        what = f"{name} gives {type(made).__name__}, not a Module"
        cure = "a function without arguments that returns the module"
        raise RecordError(where, what, cure=cure)
    return made
