"""Models for others: PyTorch, ONNX, MicroPython, JavaScript, WGSL."""

from burnbook.exporters.javascript import to_javascript
from burnbook.exporters.micropython import to_micropython
from burnbook.exporters.onnx import to_onnx
from burnbook.exporters.pytorch import to_pytorch, write_state_dict
from burnbook.exporters.wgsl import to_wgsl

__all__ = [
    "to_javascript",
    "to_micropython",
    "to_onnx",
    "to_pytorch",
    "to_wgsl",
    "write_state_dict",
]
