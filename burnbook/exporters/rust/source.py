"""The text of a Rust module: its imports, structs, configs and methods, and `load`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from burnbook.exporters.rust.functions import Function
from burnbook.exporters.rust.modules import Modules, Struct
from burnbook.exporters.rust.text import Dialect, checked, indented, plain, quoted

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
        f"//! {plain(title)}, for Burn {dialect.version}.",
        "//!",
        f"//! `load` makes the module with the weights in `{record}`. Fields have the",
        "//! names of that record; a shape stands behind the line that makes it, where",
        "//! n is the size of the batch.",
    ]
    uses = _uses(made, "\n".join(body), half)
    return checked("\n".join([*head, *uses, "", *body]) + "\n")


def _uses(made: Modules, body: str, half: bool) -> list[str]:
    """The imports that the text needs."""
    dialect = made.dialect
    found = {module: set(names) for module, names in made.uses.items()}
    for module, names in OFFERED.items():
        found.setdefault(module, set()).update(names)
    if dialect.new:
        found["store"] = {"ModuleRecord", "RecordError"}
        found["tensor"] |= {"Device", "IndexingUpdateOp"}
    else:
        settings = "HalfPrecisionSettings" if half else "FullPrecisionSettings"
        found["record"] = {"NamedMpkFileRecorder", settings, "RecorderError"}
        found["tensor::backend"] = {"Backend"}
    lines = [f"use std::path::{'Path' if dialect.new else 'PathBuf'};", ""]
    for module in sorted(found):
        kept = {name for name in found[module] if _is_used(name, body)}
        if module == "record":
            kept.add("Recorder")
        if kept:
            lines += _use(module, sorted(kept))
    return ["", *lines]


#: What a text may need besides its layers.
OFFERED = {
    "config": ("Config",),
    "module": ("Module",),
    "tensor": ("Tensor", "Int", "Bool", "activation", "module", "ElementConversion"),
    "tensor::ops": (
        "AvgPoolOptions",
        "ConvOptions",
        "ConvTransposeOptions",
        "MaxPoolOptions",
    ),
}


def _is_used(name: str, body: str) -> bool:
    if name == "ElementConversion":
        return ".elem()" in body
    if name[0].islower():  # a module: `activation::relu`
        return f" {name}::" in body or f"({name}::" in body
    return re.search(rf"\b{name}\b", body) is not None


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
    if not struct.configs:
        yield f"pub struct {struct.name}Config {{}}"
    else:
        yield from _config_fields(struct)
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


def _config_fields(struct: Struct) -> Iterator[str]:
    yield f"pub struct {struct.name}Config {{"
    for config in struct.configs:
        yield f"    #[config(default = {quoted(config.default)})]"
        yield f"    pub {config.name}: {config.kind},"
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
        yield "pub fn load("
        yield "    path: impl AsRef<Path>,"
        yield f"    {'' if root.needs_device else '_'}device: &Device,"
        yield f") -> Result<{root.name}, RecordError> {{"
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
