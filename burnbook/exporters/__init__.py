"""Models for others: PyTorch, ONNX, Rust for Burn, MicroPython, JavaScript, WGSL."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.exporters.javascript import to_javascript
from burnbook.exporters.micropython import to_micropython
from burnbook.exporters.onnx import to_onnx
from burnbook.exporters.pytorch import to_pytorch, write_state_dict
from burnbook.exporters.rust import to_rust
from burnbook.exporters.wgsl import to_wgsl

__all__ = [
    "to_javascript",
    "to_micropython",
    "to_onnx",
    "to_pytorch",
    "to_rust",
    "to_wgsl",
    "write_state_dict",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
