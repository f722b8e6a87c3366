"""ONNX files of captured programs: `to_onnx(model, "model.onnx", x)`."""

from burnbook.exporters.onnx.export import (
    onnx_model as onnx_model,
    to_onnx as to_onnx,
    unsupported as unsupported,
)
