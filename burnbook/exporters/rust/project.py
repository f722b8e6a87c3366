"""A crate around a model: its manifest, an example that predicts, and the record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burnbook.core.errors import RecordError
from burnbook.core.files import (
    PathLike,
    at_home,
    atomic_write,
    open_regular,
    printable,
)
from burnbook.core.versions import VERSION
from burnbook.exporters.paths import export_path
from burnbook.exporters.rust.calls import TREE, captured
from burnbook.exporters.rust.functions import Function, arguments_of
from burnbook.exporters.rust.modules import Modules, refuse
from burnbook.exporters.rust.operations import kind_of
from burnbook.exporters.rust.source import module_source
from burnbook.exporters.rust.text import (
    Dialect,
    checked,
    plain,
    quoted,
    snake_case,
    type_name,
)
from burnbook.module import Module
from burnbook.nn.sequential import Sequential
from burnbook.program import Value
from burnbook.record import BurnpackRecorder, NamedMpkFileRecorder
from burnbook.record.settings import (
    FullPrecisionSettings,
    HalfPrecisionSettings,
    PrecisionSettings,
)

TEXTS = Path(__file__).with_name("texts")
LOCK = Path(__file__).parents[2] / "rust/project/Cargo.lock"
FEATURES = {
    False: ("std", "ndarray", "autodiff"),
    True: ("std", "flex", "autodiff", "store"),
}
PINNED = (
    "# Burn 0.15 was written for this pre-release; the final 2.0 does not fit.\n"
    'bincode = { version = "=2.0.0-rc.3", default-features = false, '
    'features = ["alloc", "serde"] }\n'
)
#: The first line of Cargo.toml, and how files begin that were written here.
MARK = "# A model as a crate for Burn, written by burnbook."
MARKS = {
    "Cargo.toml": re.escape(MARK),
    "src/model.rs": r"//! .*, for Burn \d+\.\d+\.\d+\.",
    "src/main.rs": r"//! Predicts with .*: `cargo run -- input\.json`, or from ones\.",
}
PLAIN = """[profile.dev]
debug = false
"""
#: The crates are optimized in a debug build, too: only they take time when it runs.
OPTIMIZED = """[profile.dev]
debug = false

[profile.dev.package."*"]
opt-level = 1
"""


@dataclass(frozen=True)
class RustModel:
    """A model as Rust: the text of its module, and what its record holds.

    source: `model.rs`. function: the method that was captured, as Rust has it.
    """

    title: str
    dialect: Dialect
    source: str
    record: Any
    function: Function
    half: bool

    @property
    def file(self) -> str:
        """The name of the record's file."""
        return f"model.{'bpk' if self.dialect.new else 'mpk'}"

    def write_record(self, path: PathLike) -> Path:
        """Write the record that `load` reads."""
        if self.dialect.new:
            return BurnpackRecorder().record(self.record, path)
        settings = HalfPrecisionSettings if self.half else FullPrecisionSettings
        recorder = NamedMpkFileRecorder(settings, version=self.dialect.version)
        return recorder.record(self.record, path)


def to_rust(
    module: Module,
    path: PathLike,
    *examples: Any,
    version: str = VERSION,
    settings: type[PrecisionSettings] = FullPrecisionSettings,
    method: str = "forward",
    batch: Any = 0,
    overwrite: bool = False,
) -> Path:
    """Write a module as a crate for Burn: `cargo run` in the folder predicts.

    path: the folder to write: Cargo.toml, src/model.rs with a struct for each class and
        a config with its sizes, src/main.rs, and the record that `load` in model.rs
        reads. examples: what `method` is called with, to capture what it does.
    version: which Burn it is for: 0.15, whose record is NamedMpk, or 0.22 (.bpk).
    settings: the precision of the record; HalfPrecisionSettings for half the size.
    batch: the dim that may have another size in each run, see `program.capture`.
    overwrite: whether files of other origin may be replaced; a crate that was written
        here before always is.

    Fields have their names, so that the record of the module itself fits where Rust
    allows them as names: those of a Sequential, "0", are layer0 in both. A layer that
    Burn lacks is written as the operations that it runs. Numbers in Python's code are
    numbers there. Initializers are Burn's: a layer does not know how it was drawn.

    Raises:
        RecordError: Burn has no such layers or operations; all are listed by name, and
            nothing is written. Or the folder holds files that were not written here.
        GraphError: the module cannot be captured.

    Example:
        >>> import tempfile
        >>> from burnbook.backend import Numpy
        >>> from burnbook.nn import LinearConfig, Relu, Sequential
        >>> from burnbook.tensor import Tensor
        >>> model = Sequential(LinearConfig(3, 2).init(Numpy()), Relu())
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = to_rust(model, folder.name, Tensor.ones([1, 3], Numpy()))
        >>> sorted(str(p.relative_to(path)) for p in path.rglob("*.*"))
        ['Cargo.lock', 'Cargo.toml', 'model.mpk', 'src/main.rs', 'src/model.rs']
        >>> text = (path / "src/model.rs").read_text()
        >>> print(*text.splitlines()[39:43], sep="\\n")
            pub fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
                let x = self.layer0.forward(input); // [n, 2]
                self.layer1.forward(x) // [n, 2]
            }
        >>> folder.cleanup()
    """
    export_path("to_rust", module, path, examples)
    half = settings is HalfPrecisionSettings
    made = rust_model(
        module, *examples, version=version, half=half, method=method, batch=batch
    )
    folder = Path(at_home(path))
    texts = {
        "Cargo.toml": manifest(crate_name(folder), made.dialect),
        "src/model.rs": made.source,
        "src/main.rs": main_source(made),
    }
    if not made.dialect.new:
        texts["Cargo.lock"] = locked(crate_name(folder))
    if not overwrite:
        _refuse_foreign(folder, [*texts, made.file])
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / name, RecordError) as file:
            file.write(text.encode())
    made.write_record(folder / "model")
    return folder


def files_of(version: str) -> list[str]:
    """What `to_rust` writes into the folder for this release of Burn."""
    new = Dialect.of(version).new
    record = f"model.{'bpk' if new else 'mpk'}"
    names = ["Cargo.lock", "Cargo.toml", record, "src/main.rs", "src/model.rs"]
    return names[1:] if new else names


def _refuse_foreign(folder: Path, names: Iterable[str]) -> None:
    """Raise where a file that would be written is there, and is not of a crate of ours.

    What cannot say so itself, the record and Cargo.lock, is as Cargo.toml says.
    """
    foreign = [
        name
        for name in names
        if (folder / name).exists() and not _is_ours(folder, name)
    ]
    if foreign:
        what = "files are there that were not written by this exporter"
        cure = "another folder; or overwrite=True, burnbook export-rust --overwrite"
        raise RecordError(f"write {printable(folder)}", what, foreign, cure)


def _is_ours(folder: Path, name: str) -> bool:
    """Whether a file begins as one that was written here."""
    path = folder / (name if name in MARKS else "Cargo.toml")
    if not path.is_file():
        return False
    with open_regular(path, RecordError) as file:
        line = file.readline(500).decode("utf-8", "replace").rstrip("\r\n")
    return re.fullmatch(MARKS.get(name, MARKS["Cargo.toml"]), line) is not None


def rust_model(
    module: Module,
    *examples: Any,
    version: str = VERSION,
    half: bool = False,
    method: str = "forward",
    batch: Any = 0,
) -> RustModel:
    """A module as Rust, without writing anything; see `to_rust`."""
    dialect = Dialect.of(version)
    if not isinstance(module, Module):
        what = f"{type(module).__name__} is not a module"
        raise RecordError("export_rust", what, cure="config.init(device)")
    title = "Model" if type(module) is Sequential else type(module).__name__
    if _is_layer(module):  # a model of one layer, which has a name in the record
        module = Sequential(**{snake_case(title): module})
        title = "Model"
    program, call = captured(module, examples, method, batch)
    made = Modules(module, program, call, dialect, type_name(title))
    refuse(made.refused, dialect, title)
    file = f"model.{'bpk' if dialect.new else 'mpk'}"
    source = module_source(made, title, file, half)
    root = made.root.struct
    assert root is not None
    name = made.methods[id(call)]
    function = next(f for f in root.functions if f.signature.startswith(f"{name}("))
    return RustModel(title, dialect, source, made.root.record, function, half)


def _is_layer(module: Module) -> bool:
    cls = type(module)
    return cls.__module__.startswith("burnbook.nn.") and not isinstance(
        module, Sequential
    )


def crate_name(folder: Path) -> str:
    """The name of the crate: that of the folder, as cargo accepts it."""
    name = re.sub(r"[^a-z0-9_-]", "-", folder.resolve().name.lower()).strip("-_")
    return name if name[:1].isalpha() else f"model-{name}".rstrip("-")


def manifest(name: str, dialect: Dialect) -> str:
    """Cargo.toml: Burn of exactly this release, and what reads the input."""
    features = ", ".join(f'"{one}"' for one in FEATURES[dialect.new])
    burn = f'version = "={dialect.version}", default-features = false'
    edition = "2024" if dialect.new else "2021"
    return f"""{MARK}
[package]
name = "{name}"
version = "0.1.0"
edition = "{edition}"

[dependencies]
burn = {{ {burn}, features = [{features}] }}
{"" if dialect.new else PINNED}serde = {{ version = "1", features = ["derive"] }}
serde_json = "1"

{PLAIN if dialect.new else OPTIMIZED}"""


def locked(name: str, lock: Path = LOCK, old: str = "cell") -> str:
    """Cargo.lock of a crate: the releases of all crates that another one has.

    lock: that of the other crate, which is called `old`; ours for Burn 0.15 at first.
    """
    head, *blocks = lock.read_text(encoding="utf-8").split("[[package]]\n")
    first = f'name = "{old}"\n'
    blocks = [
        f'name = "{name}"\n{block.removeprefix(first)}'
        if block.startswith(first)
        else block
        for block in blocks
    ]
    blocks = [block.rstrip("\n") + "\n" for block in blocks]
    blocks.sort(
        key=lambda block: block.split('"')[1]
    )  # the order in which cargo writes
    return "\n".join([head.rstrip("\n") + "\n", *[f"[[package]]\n{b}" for b in blocks]])


def main_source(made: RustModel) -> str:
    """main.rs: predict from a file of numbers, or from ones."""
    given = arguments_of(made.function.call.inside)
    first, value = given[0]
    names = [path for path, _ in given]
    more = f" ({plain(', '.join(names))})" if len(given) > 1 else ""
    inputs = ", ".join(map(quoted, names))
    title, name = plain(made.title), plain(first)
    lines = [
        f"//! Predicts with {title}: `cargo run -- input.json`, or from ones.",
        "//!",
        "//! The file has the inputs by name, row by row:",
        f'//! {{"{name}": {{"shape": {_example(value)}, "data": [ … ]}}}}{more}',
        "mod model;",
        "",
        *imports(made.dialect, "use std::process::ExitCode;"),
        f"const INPUTS: [&str; {len(names)}] = [{inputs}];",
        f'const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/{made.file}");',
        "",
        numbers_text(made.dialect),
        *predictor(made, "predict", "model"),
        "",
        text_of("main"),
    ]
    return checked("\n".join(lines))


def imports(dialect: Dialect, *others: str) -> list[str]:
    """What the example of a release imports, and others behind it."""
    more = "Device, " if dialect.new else ""
    first = [f"use burn::tensor::{{{more}Tensor, TensorData}};"]
    backend = [] if dialect.new else ["type B = NdArray<f32>;", ""]
    if not dialect.new:
        first.insert(0, "use burn::backend::NdArray;")
    serde = ["use serde::{Deserialize, Serialize};", "use std::collections::BTreeMap;"]
    return [*first, *serde, *others, "", *backend]


def numbers_text(dialect: Dialect) -> str:
    """How numbers are read and written; the newest Burn has other names for it."""
    text = text_of("numbers")
    if dialect.new:
        text = text.replace("data.shape.to_vec()", "data.shape().to_vec()")
        text = text.replace("<f64>().to_vec()", "<f64>().try_to_vec()")
    return text


def text_of(name: str) -> str:
    """One of the texts beside this file."""
    return (TEXTS / f"{name}.rs").read_text(encoding="utf-8")


def _example(value: Value) -> str:
    return f"[{', '.join(str(s) if isinstance(s, int) else 'n' for s in value.shape)}]"


def predictor(made: RustModel, name: str, module: str) -> Iterator[str]:
    """A function of Rust that loads the record, and calls the method on inputs."""
    dialect, function = made.dialect, made.function
    turbofish = "" if dialect.new else "::<B>"
    given = "record: &str, given: &BTreeMap<String, Numbers>"
    yield "/// What the model with the weights of this record makes of the inputs."
    yield f"fn {name}({given}) -> Vec<Numbers> {{"
    yield f"    let device = {'Device' if dialect.new else 'Default'}::default();"
    yield f"    let model = {module}::load{turbofish}(record, &device).expect(record);"
    names: list[str] = []
    for number, (path, value) in enumerate(arguments_of(function.call.inside)):
        shape = [size if isinstance(size, int) else 1 for size in value.shape]
        kind = kind_of(value)
        element = {"Float": "f32", "Int": "i64", "Bool": "bool"}[kind]
        tensor = dialect.tensor(len(shape), kind)
        tensor = re.sub(r"\b(Int|Bool)>", r"burn::tensor::\1>", tensor)
        names.append(f"x{number}")
        yield f'    let data = Numbers::named(given, "{path}", &{shape});'
        data = f"data.convert::<{element}>()"
        yield f"    let x{number}: {tensor} = Tensor::from_data({data}, &device);"
    call = f"model.{function.signature.partition('(')[0]}({', '.join(names)})"
    count = len(TREE.collect(function.call.gives, Value, []))
    if count == 1:
        yield f"    vec![Numbers::of({call}.into_data())]"
    else:
        parts = [f"y{i}" for i in range(count)]
        yield f"    let ({', '.join(parts)}) = {call};"
        yield "    vec!["
        yield from (f"        Numbers::of({part}.into_data())," for part in parts)
        yield "    ]"
    yield "}"
