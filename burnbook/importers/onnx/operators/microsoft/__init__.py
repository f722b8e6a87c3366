"""The operators of ONNX Runtime, which its optimizer and its tools write.

Where one is a few operators of ONNX, `apart` puts these in its place, so that layers
are found in them; the others are functions here, as ONNX Runtime computes them:
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from burnbook.importers.onnx.operators.microsoft import (
    attention,
    fused,
    integers,
    narrow_weights,
)

FAMILIES = (attention, fused, integers, narrow_weights)
