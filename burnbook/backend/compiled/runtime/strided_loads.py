"""Sixteen numbers from places some way apart, and the largest.

Windows that stand `stride` places apart read every second or every third number of a
line. Here vectors are gathered that way, compared, and the places of winners written.
"""

from typing import Any

from burnbook.backend.compiled.runtime.jit import LANES, intrinsic, ir, types
from burnbook.backend.compiled.runtime.simd import vectors


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """The address of an element of an array of one dim."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


@intrinsic
def load_even(typing, array, at):
    """Sixteen numbers of an array of one dim: one at a place, and every second after.

    Why: the second half is read so that nothing behind the last number is touched.
    """

    def build(context, builder, signature, args):
        first = _place(context, builder, signature.args[0], *args)
        later = builder.gep(first, [ir.IntType(64)(LANES - 1)])
        low, high = (
            builder.load(builder.bitcast(place, vectors.FLOATS.as_pointer()), align=4)
            for place in (first, later)
        )
        even = list(range(0, LANES, 2))
        places = even + [LANES + 1 + j for j in even]
        return builder.shuffle_vector(low, high, ir.Constant(vectors.NUMBERS, places))

    return vectors.sixteen(array, types.int64), build


@intrinsic
def load_every(typing, array, at, step):
    """Sixteen numbers of an array of one dim, `step` apart, from a place on."""

    def build(context, builder, signature, args):
        place = _place(context, builder, signature.args[0], *args[:2])
        vector = ir.Constant(vectors.FLOATS, ir.Undefined)
        for j in range(LANES):
            place = builder.gep(place, [args[2]]) if j else place
            vector = builder.insert_element(
                vector, builder.load(place), vectors.NUMBER(j)
            )
        return vector

    return vectors.sixteen(array, types.int64, types.int64), build


@intrinsic
def where_larger(typing, a, b, x, y):
    """y where b > a or b is NaN, else x: a later NaN wins, and nothing wins over it."""

    def build(context, builder, signature, args):
        a, b, x, y = args
        larger = builder.fcmp_ordered(">", b, a)
        nothing = builder.fcmp_unordered("uno", b, b)
        return builder.select(builder.or_(larger, nothing), y, x)

    sixteen = vectors.sixteen
    return sixteen(sixteen, sixteen, sixteen, sixteen), build


@intrinsic
def store_places(typing, array, at, offsets, first, step):
    """Write sixteen int32: first, first + step, … and the offset of each on top."""

    def build(context, builder, signature, args):
        array, at, offsets, first, step = args
        nothing = ir.Constant(vectors.NUMBERS, ir.Undefined)

        def everywhere(number: Any) -> Any:
            number = builder.trunc(number, vectors.NUMBER)
            one = builder.insert_element(nothing, number, vectors.NUMBER(0))
            zeros = ir.Constant(vectors.NUMBERS, [0] * LANES)
            return builder.shuffle_vector(one, nothing, zeros)

        lanes = ir.Constant(vectors.NUMBERS, list(range(LANES)))
        places = builder.add(everywhere(first), builder.mul(everywhere(step), lanes))
        places = builder.add(places, builder.fptosi(offsets, vectors.NUMBERS))
        target = _place(context, builder, signature.args[0], array, at)
        target = builder.bitcast(target, vectors.NUMBERS.as_pointer())
        builder.store(places, target, align=4)
        return context.get_dummy_value()

    number = types.int64
    return types.void(array, number, vectors.sixteen, number, number), build
