"""Programs that run as a plan: fused steps, bound kernels, memory given out once."""

from burnbook.program.compiler.compiled_program import (
    CompiledProgram as CompiledProgram,
)
from burnbook.program.compiler.fusion import (
    RULES as RULES,
    FusionRule as FusionRule,
    fusion as fusion,
    without_rule as without_rule,
)
