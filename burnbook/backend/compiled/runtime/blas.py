"""BLAS's matrix product, called from inside a kernel.

BLAS has one thread meanwhile; see backend/blas.py. Its address is an argument, since
compiled code is kept in files.
"""

from typing import Any

from burnbook.backend.compiled.runtime.jit import intrinsic, ir, types

ROW_MAJOR, AS_IT_IS, TRANSPOSED = 101, 111, 112  # what cblas.h calls these


@intrinsic
def sgemm(typing, address, form, more, sizes, steps, places):
    """c = a · b, or with more c += a · b, where these lie in memory.

    form: 1 where a is transposed, plus 2 where b is. sizes: rows, columns, depth.
    steps: how far apart the rows of a, b and c begin.
    """
    return types.void(address, form, more, sizes, steps, places), _build_call


def _build_call(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The call of cblas_sgemm, with sizes of 64 bits."""
    address, form, more, *triples = args
    whole, number, real = ir.IntType(64), ir.IntType(32), ir.FloatType()
    pointer = real.as_pointer()
    sizes, (a_row, b_row, c_row), places = (
        [builder.extract_value(triple, k) for k in range(3)] for triple in triples
    )
    a, b, c = (builder.inttoptr(place, pointer) for place in places)

    def which(bit: int) -> Any:
        is_transposed = builder.trunc(builder.lshr(form, whole(bit)), ir.IntType(1))
        return builder.select(is_transposed, number(TRANSPOSED), number(AS_IT_IS))

    takes = [number] * 3 + [whole] * 3 + [real, pointer, whole, pointer, whole]
    kind = ir.FunctionType(ir.VoidType(), [*takes, real, pointer, whole])
    call = builder.inttoptr(address, kind.as_pointer())
    given = [number(ROW_MAJOR), which(0), which(1), *sizes, real(1)]
    share = builder.select(more, real(1), real(0))
    builder.call(call, [*given, a, a_row, b, b_row, share, c, c_row])
    return context.get_dummy_value()
