"""Programs as kernels: what JavaScript and WGSL are written from.

A program becomes a `Plan`: views where nothing has to move, chains of ops that go
through elements in one loop, calls of kernels for the rest, and the buffers that hold
what lies between. Both writers print the same plan, each with kernels of its own.
"""

from burnbook.exporters.lowering import forms as forms
from burnbook.exporters.lowering.calls import (
    Argument as Argument,
    Call as Call,
    Chain as Chain,
    Line as Line,
    Made as Made,
    Plan as Plan,
    Read as Read,
    Storage as Storage,
    View as View,
)
from burnbook.exporters.lowering.lowering import (
    lowered as lowered,
    plain as plain,
    problems as problems,
)
