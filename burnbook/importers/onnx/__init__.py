"""ONNX files as modules: `load` at once, `ModelGen` as source and record."""

from typing import TYPE_CHECKING, Any

from burnbook.core.other_names import module_answers
from burnbook.importers.onnx.load import check, load, original_names, source_of
from burnbook.importers.onnx.model_gen import ModelGen, RecordType
from burnbook.importers.onnx.operators.registry import add_operator
from burnbook.importers.onnx.report import OnnxReport

if TYPE_CHECKING:
    from burnbook.importers.onnx.backend import Backend
    from burnbook.importers.onnx.closeness import compare

__all__ = [
    "Backend",
    "ModelGen",
    "OnnxReport",
    "RecordType",
    "add_operator",
    "check",
    "compare",
    "load",
    "original_names",
    "source_of",
]

_answer = module_answers(__name__)


def __getattr__(name: str) -> Any:
    if name == "Backend":  # the package onnx is imported only for it
        from burnbook.importers.onnx.backend import Backend

        return Backend
    if name == "compare":
        from burnbook.importers.onnx.closeness import compare

        return compare
    return _answer(name)
