"""A module as a crate of Rust for Burn: structs, configs, methods, and the record."""

from burnbook.exporters.rust.project import RustModel, rust_model, to_rust

__all__ = ["RustModel", "rust_model", "to_rust"]
