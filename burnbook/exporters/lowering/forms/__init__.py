"""The forms of all ops: each becomes a line of a chain, a view, or calls of kernels."""

from burnbook.exporters.lowering.forms import (
    elementwise as elementwise,
    layers as layers,
    reduce as reduce,
    shape as shape,
)
