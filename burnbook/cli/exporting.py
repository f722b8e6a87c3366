"""`burnbook export-…`: models for PyTorch, ONNX, Burn, browsers and WebGPU."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from burnbook.cli.records import make_module, refuse_record
from burnbook.cli.shared import Subcommands, command, say

Run = Callable[[argparse.Namespace], int]


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
    _module(
        made,
        ", which alone knows which layer a weight is of, and so how PyTorch lays it "
        "out",
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
    made = _of_record(commands, "export-onnx", run_onnx, about, "model.onnx")
    made.add_argument(
        "--opset", type=int, default=18, help="the version of ONNX; default: 18"
    )

    about = "Write a record and its module as JavaScript, for browsers and Node."
    made = _of_record(commands, "export-javascript", run_javascript, about, "model.js")
    _weights(made)

    about = (
        "Write a record and its module as kernels of WGSL, with a driver for WebGPU."
    )
    made = _of_record(commands, "export-wgsl", run_wgsl, about, "model.js")
    _weights(made)

    about = "Write a module as a crate of Rust for Burn, which predicts with it."
    example = "burnbook export-rust crate/ --module net:make --input 1x28x28"
    made = command(commands, "export-rust", run_rust, about, example)
    made.add_argument("folder", type=Path, help="the folder to write the crate to")
    _module(made)
    _inputs(made)
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
    made.add_argument(
        "--overwrite",
        action="store_true",
        help="replace files in the folder that this command did not write",
    )


def _of_record(
    commands: Subcommands, name: str, run: Run, about: str, target: str
) -> argparse.ArgumentParser:
    """A command that reads a record into its module and writes both to a file."""
    example = f"burnbook {name} model.mpk {target} --module net:make --input 1x28x28"
    made = command(commands, name, run, about, example)
    made.add_argument("record", type=Path, help="the record to read")
    made.add_argument("target", type=Path, help=f"the file to write: {target}")
    _module(made)
    _inputs(made)
    return made


def _module(made: argparse.ArgumentParser, why: str = "") -> None:
    made.add_argument(
        "--module",
        metavar="PLACE",
        required=True,
        help=f"package.file:function that makes the module of the record{why}",
    )


def _inputs(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--input",
        action="append",
        required=True,
        type=_example,
        metavar="SIZES",
        help="the sizes of an input, the batch first, as 1x3x32x32; :int or :bool "
        "behind them, as 1x16:int; once for each input",
    )


def _weights(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--precision",
        choices=["f32", "f16", "int8"],
        default="f32",
        help="how weights are written; default: f32",
    )
    made.add_argument(
        "--beside",
        action="store_true",
        help="weights in a file beside it, TARGET.HASH.weights",
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


def _read(options: argparse.Namespace) -> tuple[Any, list[Any]]:
    """The module with the record in it, and examples of its inputs."""
    from burnbook.record.inspection import recorder_for

    refuse_record(options.record, options.target)
    recorder = recorder_for(options.record, f"read {options.record}")
    module = make_module(options.module).load_file(options.record, recorder)
    return module, _examples(module, options)


def _examples(module: Any, options: argparse.Namespace) -> list[Any]:
    from burnbook.backend import Numpy

    device = next(iter(module.devices()), None) or Numpy()
    return [_zeros(sizes, kind, device) for sizes, kind in options.input]


def run_onnx(options: argparse.Namespace) -> int:
    """Load the record into its module, and write both as an ONNX file."""
    from burnbook.exporters import to_onnx

    module, examples = _read(options)
    path = to_onnx(module, options.target, *examples, opset=options.opset)
    say(f"wrote {path}, {path.stat().st_size:,} bytes")
    return 0


def run_javascript(options: argparse.Namespace) -> int:
    """Load the record into its module, and write both as JavaScript."""
    from burnbook.exporters import to_javascript

    return _written(options, to_javascript)


def run_wgsl(options: argparse.Namespace) -> int:
    """Load the record into its module, and write both as kernels of WGSL."""
    from burnbook.exporters import to_wgsl

    return _written(options, to_wgsl)


def _written(options: argparse.Namespace, write: Callable[..., Any]) -> int:
    module, examples = _read(options)
    weights = "beside" if options.beside else "embedded"
    asked = {"precision": options.precision, "weights": weights}
    made = write(module, options.target, *examples, **asked)
    for file in filter(None, (made.path, made.beside)):
        say(f"wrote {file}, {file.stat().st_size:,} bytes")
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

    refuse_record(options.record, options.target)
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
    from burnbook.exporters.rust import rust_model, to_rust
    from burnbook.exporters.rust.project import files_of
    from burnbook.record.inspection import recorder_for
    from burnbook.record.settings import FullPrecisionSettings, HalfPrecisionSettings

    module = make_module(options.module)
    if options.record is not None:
        names = ("model.mpk", "model.bpk")
        refuse_record(options.record, *(options.folder / name for name in names))
        recorder = recorder_for(options.record, f"read {options.record}")
        module = module.load_file(options.record, recorder)
    examples = _examples(module, options)
    named: dict[str, Any] = {"version": options.burn, "method": options.method}
    if options.check:
        made = rust_model(module, *examples, **named)
        lines = made.source.count("\n")
        say(f"{made.title} can be written for Burn {options.burn}: {lines} lines")
        return 0
    settings = HalfPrecisionSettings if options.half else FullPrecisionSettings
    named |= {"settings": settings, "overwrite": options.overwrite}
    path = to_rust(module, options.folder, *examples, **named)
    for file in (path / name for name in files_of(options.burn)):
        say(f"wrote {file}, {file.stat().st_size:,} bytes")
    return 0
