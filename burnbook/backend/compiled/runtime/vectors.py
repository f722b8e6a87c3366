"""Sixteen floats as one value: what numba's compiler has to know of such a type."""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from burnbook.backend.compiled.runtime.jit import LANES

FLAGS = ("contract", "reassoc", "nsz")
NUMBER = ir.IntType(32)
NUMBERS = ir.VectorType(NUMBER, LANES)
FLOATS = ir.VectorType(ir.FloatType(), LANES)


class Sixteen(types.Type):
    """The type of sixteen floats side by side, as numba's compiler knows it."""

    def __init__(self) -> None:
        super().__init__("sixteen floats")


sixteen = Sixteen()


@register_model(Sixteen)
class SixteenModel(models.PrimitiveModel):
    """How LLVM holds them: in a vector register."""

    def __init__(self, manager: Any, kind: Any):
        super().__init__(manager, kind, FLOATS)


def _operator(function: Callable[..., Any], name: str) -> None:
    """Let `a + b` and the like work on two vectors."""

    class Template(ConcreteTemplate):
        cases = [signature(sixteen, sixteen, sixteen)]  # noqa: RUF012 - numba reads it

    infer_global(function)(Template)  # pyright: ignore[reportOptionalCall] - see numba

    @lower_builtin(function, sixteen, sixteen)
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return getattr(builder, name)(*args, flags=FLAGS)


for _function, _name in {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
}.items():
    _operator(_function, _name)
