"""The text of a Rust module: its imports, structs, configs and methods, and `load`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from burnbook.exporters.rust.functions import Function
from burnbook.exporters.rust.modules import Modules, Struct
from burnbook.exporters.rust.text import Dialect, indented, plain, quoted

LINE = 100  # rustfmt's


def module_source(made: Modules, title: str, record: str, half: bool) -> str:
    """The whole text of `model.rs`. record: the name of the record's file."""
    dialect = made.dialect
    root = made.root.struct
    assert root is not None
    structs = [root, *(one for one in made.structs if one is not root)]
    body: list[str] = []
    for struct in structs:
        body += [*_struct(struct, dialect), ""]
    body += _load(root, dialect, record, half)
    head = [
        f"//! {title}, for Burn {dialect.version}.",
        "//!",
        f"//! `load` makes the module with the weights in `{record}`. Fields have the",
        "//! names of that record; a shape stands behind the line that makes it, where",
        "//! n is the size of the batch.",
    ]
    uses = _uses(made, "\n".join(body), half)
    return "\n".join([*head, *uses, "", *body]) + "\n"


def _uses(made: Modules, body: str, half: bool) -> list[str]:
    """The imports that the text needs."""
    dialect, found = made.dialect, {k: set(v) for k, v in made.uses.items()}
    names = {
        "module": ("Module",),
        "tensor": ("activation", "module"),
        "tensor::ops": ("ConvOptions", "ConvTransposeOptions", "IndexingUpdateOp"),
    }
    found.setdefault("config", set()).add("Config")
    found.setdefault("module", set()).add("Module")
    found.setdefault("tensor", set()).add("Tensor")
    for name in names["tensor"]:
        if f" {name}::" in body or f"({name}::" in body:
            found["tensor"].add(name)
    for name in names["tensor::ops"]:
        if f"{name}::" in body:
            found.setdefault("tensor::ops", set()).add(name)
    for kind in ("Int", "Bool"):
        if re.search(rf"Tensor(::)?<[^>]*, {kind}>", body):
            found["tensor"].add(kind)
    if ".elem()" in body:
        found["tensor"].add("ElementConversion")
    if dialect.new:
        if "&Device" in body:
            found["tensor"].add("Device")
        found["store"] = {"ModuleRecord", "RecordError"}
        if "IndexingUpdateOp" in found.get("tensor::ops", ()):
            found["tensor"].add("IndexingUpdateOp")
            found["tensor::ops"].discard("IndexingUpdateOp")
    else:
        found["tensor::backend"] = {"Backend"}
        settings = "HalfPrecisionSettings" if half else "FullPrecisionSettings"
        found["record"] = {
            "NamedMpkFileRecorder", settings, "Recorder", "RecorderError",
        }  # fmt: skip
    lines = (
        ["use std::path::Path;", ""] if dialect.new else ["use std::path::PathBuf;", ""]
    )
    for module in sorted(found):
        kept = sorted(
            name
            for name in found[module]
            if re.search(rf"\b{name}\b", body)
            or name in ("Config", "Module", "Recorder")
        )
        if kept:
            lines += _use(module, kept)
    return ["", *lines]


def _use(module: str, names: list[str]) -> Iterator[str]:
    if len(names) == 1:
        yield f"use burn::{module}::{names[0]};"
        return
    line = f"use burn::{module}::{{{', '.join(names)}}};"
    if len(line) <= LINE:
        yield line
        return
    yield f"use burn::{module}::{{"
    row = "   "
    for name in names:
        if len(row) + len(name) + 2 > LINE:
            yield row
            row = "   "
        row += f" {name},"
    yield row
    yield "};"


def _struct(struct: Struct, dialect: Dialect) -> Iterator[str]:
    generic = struct.generic and not dialect.new
    bound, backend = (dialect.bound, dialect.backend) if generic else ("", "")
    if struct.doc:
        yield f"/// {plain(struct.doc)}"
    clone = "" if generic or dialect.new else "Clone, "
    yield f"#[derive(Module, {clone}Debug)]"
    if struct.fields:
        yield f"pub struct {struct.name}{bound} {{"
        yield from indented(f"pub {name}: {part.kind}," for name, part in struct.fields)
        yield "}"
    else:
        yield f"pub struct {struct.name};"
    yield ""
    yield f"/// The sizes of a [`{struct.name}`]."
    yield f"#[derive(Config{', Debug' if struct.debug else ''})]"
    yield f"pub struct {struct.name}Config {{"
    for config in struct.configs:
        yield f"    #[config(default = {quoted(config.default)})]"
        yield f"    pub {config.name}: {config.kind},"
    yield "}"
    yield ""
    yield f"impl {struct.name}Config {{"
    yield from indented(_init(struct, dialect, generic))
    yield "}"
    if struct.functions:
        yield ""
        yield f"impl{bound} {struct.name}{backend} {{"
        for number, function in enumerate(struct.functions):
            if number:
                yield ""
            yield from indented(_function(function, dialect, generic))
        yield "}"


def _init(struct: Struct, dialect: Dialect, generic: bool) -> Iterator[str]:
    bound = dialect.bound if generic else ""
    kind = f"{struct.name}{dialect.backend if generic else ''}"
    given = f", device: {dialect.device}" if struct.needs_device else ""
    yield "/// The module with the initial values of its layers."
    yield f"pub fn init{bound}(&self{given}) -> {kind} {{"
    if struct.fields:
        yield f"    {struct.name} {{"
        yield from indented(
            (f"{name}: {part.init}," for name, part in struct.fields), 2
        )
        yield "    }"
    else:
        yield f"    {struct.name}"
    yield "}"


def _function(function: Function, dialect: Dialect, generic: bool) -> Iterator[str]:
    signature = function.signature
    if not generic and not dialect.new:
        signature = signature.replace("(", f"{dialect.bound}(", 1)
    line = f"pub fn {signature} {{"
    if len(line) + 4 <= LINE:
        yield line
    else:
        yield f"{line.partition('(&self, ')[0]}("
        yield "    &self,"
        yield from (f"    {one}," for one in function.declared)
        yield f") -> {line.rpartition(') -> ')[2]}"
    for code, shape in function.lines:
        yield f"    {code} // {shape}" if shape else f"    {code}"
    shape = f" // {function.tail_shape}" if function.tail_shape else ""
    yield f"    {function.result}{shape}"
    yield "}"


def _load(root: Struct, dialect: Dialect, record: str, half: bool) -> Iterator[str]:
    about = f'/// The module with the weights of a record: `load("{record}", &device)`.'
    made = f"{root.name}Config::new().init({'device' if root.needs_device else ''})"
    if dialect.new:
        yield about
        yield f"pub fn load(path: impl AsRef<Path>, device: &Device) -> Result<{root.name}, RecordError> {{"
        yield f"    let module = {made};"
        yield "    module.try_load_record(ModuleRecord::load(path)?)"
        yield "}"
        return
    settings = "HalfPrecisionSettings" if half else "FullPrecisionSettings"
    kind = f"{root.name}<B>" if root.generic else root.name
    yield about
    yield "pub fn load<B: Backend>("
    yield "    path: impl Into<PathBuf>,"
    yield "    device: &B::Device,"
    yield f") -> Result<{kind}, RecorderError> {{"
    yield f"    let recorder = NamedMpkFileRecorder::<{settings}>::new();"
    if not root.generic:
        yield "    let record = Recorder::<B>::load(&recorder, path.into(), device)?;"
        yield f"    Ok(Module::<B>::load_record({made}, record))"
    else:
        yield "    let record = recorder.load(path.into(), device)?;"
        yield f"    Ok({made}.load_record(record))"
    yield "}"
