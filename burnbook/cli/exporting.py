"""`burnbook export-pytorch`: weights for PyTorch without a program."""

from __future__ import annotations

import argparse
from pathlib import Path

from burnbook.cli.records import make_module
from burnbook.cli.shared import Subcommands, command, say


def add_commands(commands: Subcommands) -> None:
    """Declare the commands of this file."""
    about = "Write the weights of a record for PyTorch."
    example = "burnbook export-pytorch model.mpk model.pt --module net:make"
    made = command(commands, "export-pytorch", run_export, about, example)
    made.add_argument("record", type=Path, help="the record to read")
    made.add_argument(
        "target",
        type=Path,
        help="the file to write: .pt or .pth for torch.load, or .safetensors",
    )
    made.add_argument(
        "--module",
        metavar="PLACE",
        required=True,
        help="package.file:function that makes the module of the record, which alone "
        "knows which layer a weight is of, and so how PyTorch lays it out",
    )
    made.add_argument(
        "--dtype",
        choices=["f16", "bf16", "f32", "f64"],
        default="f32",
        help="the element type of the floats; default: f32",
    )
    made.add_argument(
        "--top-level-key", metavar="KEY", help="the key above the state dict"
    )


def run_export(options: argparse.Namespace) -> int:
    """Load the record into its module, and write that for PyTorch."""
    from burnbook.exporters import to_pytorch
    from burnbook.importers import FloatCastAdapter
    from burnbook.record.inspection import recorder_for
    from burnbook.record.settings import (
        DoublePrecisionSettings,
        FullPrecisionSettings,
    )

    wide = options.dtype == "f64"
    settings = DoublePrecisionSettings if wide else FullPrecisionSettings
    recorder = type(recorder_for(options.record, f"read {options.record}"))(settings)
    module = make_module(options.module).load_file(options.record, recorder)
    path = to_pytorch(
        module,
        options.target,
        adapter=FloatCastAdapter.to(options.dtype),
        top_level_key=options.top_level_key,
    )
    say(f"wrote {path}, {path.stat().st_size:,} bytes")
    return 0
