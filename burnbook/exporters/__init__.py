"""Models for others: PyTorch's weights, ONNX files."""

from burnbook.exporters.onnx import to_onnx
from burnbook.exporters.pytorch import to_pytorch, write_state_dict

__all__ = ["to_onnx", "to_pytorch", "write_state_dict"]
