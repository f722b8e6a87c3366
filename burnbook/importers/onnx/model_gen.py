"""ONNX files as readable source and a record, as Burn's `ModelGen` makes them."""

from __future__ import annotations

import keyword
import os
import sys
import unicodedata
from base64 import b85encode
from dataclasses import dataclass, replace
from enum import Enum
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Self

from burnbook import record as recorders
from burnbook.backend.numpy import Numpy
from burnbook.core.errors import ArgumentError, ConfigError
from burnbook.core.files import atomic_write
from burnbook.importers.onnx.layers import Layer
from burnbook.importers.onnx.load import class_of, known, record_of
from burnbook.importers.onnx.report import report_of
from burnbook.importers.onnx.source import Loading, settings_for, write
from burnbook.record.tree import short


class RecordType(Enum):
    """The format of the weights; the value is the recorder that reads them."""

    NamedMpk = "NamedMpkFileRecorder"
    NamedMpkGz = "NamedMpkGzFileRecorder"
    PrettyJson = "PrettyJsonFileRecorder"
    Bincode = "BinFileRecorder"


@dataclass(frozen=True)
class ModelGen:
    """Writes a Python module and a record for each ONNX file.

    Example, in a script beside the model:
        ModelGen().input("model/mnist.onnx").out_dir("model/").run_from_cli()

    The settings are given one by one, each by a method that returns a new ModelGen.
    What is written needs burnbook to run, and not the package onnx.
    Source: Burn's `burn_import::onnx::ModelGen`.
    """

    inputs: tuple[Path, ...] = ()
    folder: Path | None = None
    kind: RecordType = RecordType.NamedMpk
    half: bool = False
    embedded: bool = False
    developing: bool = False

    def input(self, path: str | os.PathLike[str]) -> Self:
        """One ONNX file more."""
        return replace(self, inputs=(*self.inputs, Path(path)))

    def out_dir(self, path: str | os.PathLike[str]) -> Self:
        """The folder to write to; it is made where it is missing."""
        return replace(self, folder=Path(path))

    def record_type(self, kind: RecordType) -> Self:
        """The format of the weights; at first NamedMpk."""
        if not isinstance(kind, RecordType):
            names = ", ".join(f"RecordType.{k.name}" for k in RecordType)
            raise ConfigError("ModelGen", f"{kind!r} is no RecordType", cure=names)
        return replace(self, kind=kind)

    def half_precision(self, half: bool) -> Self:
        """Whether floats are written as f16."""
        return replace(self, half=bool(half))

    def embed_states(self, embed: bool) -> Self:
        """Whether the weights stand in the source itself; needs RecordType.Bincode."""
        return replace(self, embedded=bool(embed))

    def development(self, development: bool) -> Self:
        """Whether <stem>.graph.txt is written: all nodes with versions and names."""
        return replace(self, developing=bool(development))

    def run_from_script(self) -> list[Path]:
        """Write below the folder that the environment variable OUT_DIR names."""
        base = os.environ.get("OUT_DIR")
        if base is None:
            what = "the environment variable OUT_DIR is not set"
            cure = "run_from_cli(), which takes out_dir as it is"
            raise ConfigError("ModelGen", what, cure=cure)
        return self._run(Path(base) / self._folder())

    def run_from_cli(self) -> list[Path]:
        """Write to out_dir; returns the paths of the Python files."""
        return self._run(self._folder())

    def _folder(self) -> Path:
        if self.folder is None:
            what = "nothing says where to write"
            raise ConfigError("ModelGen", what, cure='.out_dir("model/")')
        return self.folder

    def _run(self, folder: Path) -> list[Path]:
        if not self.inputs:
            what = "there is no file to read"
            raise ConfigError("ModelGen", what, cure='.input("model.onnx")')
        if self.embedded and self.kind is not RecordType.Bincode:
            what = "embedded weights are written as Bincode"
            cure = ".record_type(RecordType.Bincode)"
            raise ConfigError("ModelGen", what, cure=cure)
        names = [module_name(path.stem) for path in self.inputs]
        for name in names:
            if names.count(name) > 1:
                what = f"two files become {name}.py: one would overwrite the other"
                raise ArgumentError("ModelGen", what, cure="another out_dir for one")
        return [self._one(path, folder) for path in self.inputs]

    def _one(self, path: Path, folder: Path) -> Path:
        model, title = known(path)
        drawn = write(model, title)
        settings = settings_for(drawn.fields, self.half)
        recorder = getattr(recorders, self.kind.value)(getattr(recorders, settings))
        file = path.stem + "." + recorder.extension
        how = Loading(self.kind.value, settings, file, self.embedded)
        model, title = known(path)
        source = write(model, title, how)
        module = class_of(source).new(Numpy())
        if source.fields:
            module = module.load_record(record_of(source))
        states = module.save_file(folder / path.stem, recorder)
        text = source.text
        if self.embedded:
            bits = b85encode(states.read_bytes()).decode()
            rows = [bits[i : i + 80] for i in range(0, len(bits), 80)]
            lines = "\n".join(f'    "{row}"' for row in rows) or '    ""'
            text += f"\n\nSTATES = (\n{lines}\n)\n"
        target = folder / f"{module_name(path.stem)}.py"
        with atomic_write(target) as file:
            file.write(text.encode())
        if self.developing:
            told = f"{report_of(model, title, as_written=False)}\n{_listing(model)}"
            with atomic_write(folder / f"{path.stem}.graph.txt") as file:
                file.write(told.encode())
        return target


def module_name(stem: str) -> str:
    """A file's name as Python can import it, and that hides nothing else.

    Example:
        >>> module_name("my-model.v2"), module_name("é"), module_name("模")
        ('my_model_v2', 'e', 'u6a21')
        >>> module_name("class"), module_name("json"), module_name("numpy")
        ('class_model', 'json_model', 'numpy_model')
    """
    word = "".join(map(_letter, unicodedata.normalize("NFKD", stem)))
    word = word if word.strip("_") else "model"
    word = f"_{word}" if word[0].isdigit() else word
    is_taken = keyword.iskeyword(word) or word in sys.stdlib_module_names
    return f"{word}_model" if is_taken or _is_installed(word) else word


def _letter(letter: str) -> str:
    """What stands for a character in a name; nothing for an accent."""
    if letter.isascii():
        return letter if letter.isalnum() else "_"
    if unicodedata.combining(letter):
        return ""
    return f"u{ord(letter):x}" if letter.isalnum() else "_"


def _is_installed(name: str) -> bool:
    """Whether an installed package has this name.

    Why: only the folders of packages count; a source written before is no package.
    """
    folders = [
        p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")
    ]
    return name == "burnbook" or PathFinder.find_spec(name, folders) is not None


def _listing(model: Any) -> str:
    lines = []
    for _, node in model.graph.walk():
        given, made = ", ".join(node.inputs), ", ".join(node.outputs)
        layer = node.attributes.get("layer")
        if isinstance(layer, Layer):
            of = ", ".join(map(short, layer.labels))
            lines.append(f"nn.{node.op} of {of}: {given} -> {made}")
            continue
        lines.append(f"{node.op}-{node.version} {node.name!r}: {given} -> {made}")
    return "\n".join(lines) + "\n"
