"""`burnbook export-pytorch`, `export-onnx` and `export-rust`: models for others."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

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

    about = "Write a module as a crate of Rust for Burn, which predicts with it."
    example = "burnbook export-rust crate/ --module net:make --input 1x28x28"
    made = command(commands, "export-rust", run_rust, about, example)
    made.add_argument("folder", type=Path, help="the folder to write the crate to")
    made.add_argument(
        "--module",
        metavar="PLACE",
        required=True,
        help="package.file:function that makes the module",
    )
    made.add_argument(
        "--input",
        action="append",
        required=True,
        type=_example,
        metavar="SIZES",
        help="the sizes of an input, the batch first, as 1x28x28; :int or :bool behind "
        "them, as 1x16:int; once for each input",
    )
    made.add_argument(
        "--record", type=Path, metavar="FILE", help="the record with the weights"
    )
    made.add_argument(
        "--burn",
        metavar="VERSION",
        default="0.15",
        help="the release of Burn, 0.15 or 0.22; default: 0.15",
    )
    made.add_argument("--half", action="store_true", help="weights as f16")
    made.add_argument(
        "--method", default="forward", help="what to translate; default: forward"
    )
    made.add_argument(
        "--check", action="store_true", help="only report what Burn cannot say"
    )


def _example(text: str) -> tuple[tuple[int, ...], str]:
    """Sizes and the kind of the elements: "1x16:int"."""
    sizes, _, kind = text.partition(":")
    parts = sizes.split("x")
    if kind not in ("", "int", "float", "bool") or not all(
        part.isascii() and part.isdigit() and 0 < int(part) < 1 << 31 for part in parts
    ):
        what = f"{text!r} is no list of sizes; one reads 1x3x32x32, another 1x16:int"
        raise argparse.ArgumentTypeError(what)
    return tuple(map(int, parts)), kind or "float"


def _zeros(sizes: tuple[int, ...], kind: str, device: Any) -> Any:
    """An input of zeros: only its sizes matter."""
    from burnbook.tensor import Int, Tensor

    if kind == "float":
        return Tensor.zeros(sizes, device)
    made = Tensor.zeros(list(sizes), device, Int)
    return made.bool() if kind == "bool" else made


def run_onnx(options: argparse.Namespace) -> int:
    """Load the record into its module, and write both as an ONNX file."""
    from burnbook.backend import Numpy
    from burnbook.exporters import to_onnx
    from burnbook.record.inspection import recorder_for

    recorder = recorder_for(options.record, f"read {options.record}")
    module = make_module(options.module).load_file(options.record, recorder)
    device = next(iter(module.devices()), None) or Numpy()
    examples = [_zeros(sizes, kind, device) for sizes, kind in options.input]
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


def run_rust(options: argparse.Namespace) -> int:
    """Write a crate; what cannot be written is listed before anything is."""
    from burnbook.backend import Numpy
    from burnbook.exporters.rust import rust_model, to_rust
    from burnbook.record.inspection import recorder_for
    from burnbook.record.settings import FullPrecisionSettings, HalfPrecisionSettings

    module = make_module(options.module)
    if options.record is not None:
        recorder = recorder_for(options.record, f"read {options.record}")
        module = module.load_file(options.record, recorder)
    device = next(iter(module.devices()), None) or Numpy()
    examples = [_zeros(sizes, kind, device) for sizes, kind in options.input]
    named = {"version": options.burn, "method": options.method}
    if options.check:
        made = rust_model(module, *examples, **named)
        lines = made.source.count("\n")
        say(f"{made.title} can be written for Burn {options.burn}: {lines} lines")
        return 0
    settings = HalfPrecisionSettings if options.half else FullPrecisionSettings
    path = to_rust(module, options.folder, *examples, settings=settings, **named)
    for file in sorted(path.rglob("*.*")):
        if file.is_file() and "target" not in file.parts:
            say(f"wrote {file}, {file.stat().st_size:,} bytes")
    return 0
