"""How each op is written in ONNX, by family."""

from burnbook.exporters.onnx.forms import (
    elementwise as elementwise,
    layers as layers,
    quantize as quantize,
    reduce as reduce,
    shape as shape,
)
from burnbook.exporters.onnx.forms.registry import (
    FORMS as FORMS,
    NoForm as NoForm,
    form as form,
)
