"""Models for others: PyTorch's weights, ONNX files, MicroPython."""

from burnbook.exporters.micropython import to_micropython
from burnbook.exporters.onnx import to_onnx
from burnbook.exporters.pytorch import to_pytorch, write_state_dict

__all__ = ["to_micropython", "to_onnx", "to_pytorch", "write_state_dict"]
