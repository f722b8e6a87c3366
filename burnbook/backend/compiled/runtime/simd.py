"""Sixteen floats as one value, in code that LLVM leaves alone.

Where a loop touches many stretches of the same arrays, LLVM cannot know that they do
not overlap, and works on one number after the other. Code that says "these sixteen" has
no such doubt. A processor with shorter registers takes two or four of its own for one.
"""

from typing import Any

from burnbook.backend.compiled.runtime.jit import (
    LANES,
    Compiler,
    cgutils,
    intrinsic,
    ir,
    types,
)

vectors: Any = Compiler("burnbook.backend.compiled.runtime.vectors")


def _address(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """The address of sixteen numbers of an array of one dim."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), vectors.FLOATS.as_pointer())


def _repeated(builder, one):
    nothing = ir.Constant(vectors.FLOATS, ir.Undefined)
    first = builder.insert_element(nothing, one, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, nothing, zeros)


@intrinsic
def load(typing, array, at):
    """Sixteen numbers of an array of one dim, from a place on."""

    def build(context, builder, signature, args):
        place = _address(context, builder, signature.args[0], *args)
        return builder.load(place, align=4)

    return vectors.sixteen(array, types.int64), build


@intrinsic
def store(typing, array, at, value):
    """Write sixteen numbers to an array of one dim, from a place on."""

    def build(context, builder, signature, args):
        place = _address(context, builder, signature.args[0], *args[:2])
        builder.store(args[2], place, align=4)
        return context.get_dummy_value()

    return types.void(array, types.int64, vectors.sixteen), build


@intrinsic
def load_at(typing, address):
    """Sixteen numbers from an address on."""

    def build(context, builder, signature, args):
        place = builder.inttoptr(args[0], vectors.FLOATS.as_pointer())
        return builder.load(place, align=4)

    return vectors.sixteen(types.int64), build


@intrinsic
def store_at(typing, address, value):
    """Write sixteen numbers from an address on."""

    def build(context, builder, signature, args):
        place = builder.inttoptr(args[0], vectors.FLOATS.as_pointer())
        builder.store(args[1], place, align=4)
        return context.get_dummy_value()

    return types.void(types.int64, vectors.sixteen), build


@intrinsic
def repeat_at(typing, address):
    """The number at an address, sixteen times."""

    def build(context, builder, signature, args):
        place = builder.inttoptr(args[0], ir.FloatType().as_pointer())
        return _repeated(builder, builder.load(place))

    return vectors.sixteen(types.int64), build


@intrinsic
def broadcast(typing, value):
    """One number, sixteen times."""

    def build(context, builder, signature, args):
        return _repeated(builder, args[0])

    return vectors.sixteen(types.float32), build


@intrinsic
def repeat(typing, array, at):
    """The number at a place of an array of one dim, sixteen times."""

    def build(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return _repeated(builder, builder.load(builder.gep(data, [args[1]])))

    return vectors.sixteen(array, types.int64), build


@intrinsic
def larger(typing, a, b):
    """The larger of two numbers each; NaN where one of them is."""

    def build(context, builder, signature, args):
        kind = ir.FunctionType(vectors.FLOATS, (vectors.FLOATS, vectors.FLOATS))
        name = f"llvm.maximum.v{LANES}f32"
        maximum = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(maximum, args)

    return vectors.sixteen(vectors.sixteen, vectors.sixteen), build


@intrinsic
def rectify(typing, value):
    """What is below zero becomes zero; NaN stays.

    Not for numbers that go back to where they came from: LLVM would write some and skip
    the others, which AMD's processors do one by one.
    """

    def build(context, builder, signature, args):
        zero = ir.Constant(vectors.FLOATS, [0.0] * LANES)
        return builder.select(builder.fcmp_ordered("<", args[0], zero), zero, args[0])

    return vectors.sixteen(vectors.sixteen), build


@intrinsic
def total(typing, value):
    """The sum of the vectors.sixteen, in whatever order is quickest."""

    def build(context, builder, signature, args):
        number = ir.FloatType()
        kind = ir.FunctionType(number, (number, vectors.FLOATS))
        name = f"llvm.vector.reduce.fadd.v{LANES}f32"
        add_up = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(add_up, (number(0), args[0]), fastmath=vectors.FLAGS)

    return types.float32(vectors.sixteen), build


@intrinsic
def transpose(typing, x, at, stride, out, to, step):
    """Exchange rows and columns of sixteen by sixteen numbers of arrays of one dim.

    Rows begin at `at`, `stride` apart; those written begin at `to`, `step` apart.
    In four rounds, rows that are 1, 2, 4 and 8 apart exchange such blocks of columns.
    """

    def build(context, builder, signature, args):
        def row(which: int, start: Any, apart: Any, number: int) -> Any:
            many = builder.mul(apart, ir.Constant(ir.IntType(64), number))
            at = builder.add(start, many)
            return _address(context, builder, signature.args[which], args[which], at)

        def chosen(a: Any, b: Any, places: list[int]) -> Any:
            mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), places)
            return builder.shuffle_vector(a, b, mask)

        rows = [
            builder.load(row(0, args[1], args[2], i), align=4) for i in range(LANES)
        ]
        for size in (1, 2, 4, 8):
            columns = range(LANES)
            low = [j if not j & size else LANES + j - size for j in columns]
            high = [j + size if not j & size else LANES + j for j in columns]
            for i in range(LANES):
                if not i & size:
                    a, b = rows[i], rows[i + size]
                    rows[i], rows[i + size] = chosen(a, b, low), chosen(a, b, high)
        for i, value in enumerate(rows):
            builder.store(value, row(3, args[4], args[5], i), align=4)
        return context.get_dummy_value()

    places = (types.int64, types.int64)
    return types.void(x, *places, out, *places), build
