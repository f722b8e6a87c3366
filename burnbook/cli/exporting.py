"""`burnbook export-pytorch` and `export-onnx`: models for others, without a program."""

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

    about = "Write a record and its module as an ONNX file."
    example = (
        "burnbook export-onnx model.mpk model.onnx --module net:make --input 1x28x28"
    )
    made = command(commands, "export-onnx", run_onnx, about, example)
    made.add_argument("record", type=Path, help="the record to read")
    made.add_argument("target", type=Path, help="the file to write: model.onnx")
    made.add_argument(
        "--module",
        metavar="PLACE",
        required=True,
        help="package.file:function that makes the module of the record",
    )
    made.add_argument(
        "--input",
        action="append",
        required=True,
        type=_example,
        metavar="SIZES",
        help="the sizes of an input, the batch first, as 1x3x32x32; :int behind them "
        "for whole numbers, as 1x16:int; once for each input",
    )
    made.add_argument(
        "--opset", type=int, default=18, help="the version of ONNX; default: 18"
    )


def _example(text: str) -> tuple[tuple[int, ...], bool]:
    """Sizes and whether the elements are whole numbers: "1x16:int"."""
    sizes, _, kind = text.partition(":")
    parts = sizes.split("x")
    if kind not in ("", "int", "float") or not all(
        part.isascii() and part.isdigit() and 0 < int(part) < 1 << 31 for part in parts
    ):
        what = f"{text!r} is no list of sizes; one reads 1x3x32x32, another 1x16:int"
        raise argparse.ArgumentTypeError(what)
    return tuple(map(int, parts)), kind == "int"


def run_onnx(options: argparse.Namespace) -> int:
    """Load the record into its module, and write both as an ONNX file."""
    from burnbook.backend import Numpy
    from burnbook.exporters import to_onnx
    from burnbook.record.inspection import recorder_for
    from burnbook.tensor import Int, Tensor

    recorder = recorder_for(options.record, f"read {options.record}")
    module = make_module(options.module).load_file(options.record, recorder)
    device = next(iter(module.devices()), None) or Numpy()
    examples = [
        Tensor.zeros(list(sizes), device, Int) if whole else Tensor.zeros(sizes, device)
        for sizes, whole in options.input
    ]
    path = to_onnx(module, options.target, *examples, opset=options.opset)
    say(f"wrote {path}, {path.stat().st_size:,} bytes")
    return 0


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
