"""A module as a crate of Rust for Burn: structs, configs, methods, and the record."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.exporters.rust.project import RustModel, rust_model, to_rust

__all__ = ["RustModel", "rust_model", "to_rust"]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
