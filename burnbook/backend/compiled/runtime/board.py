"""Jobs that several threads do without Python's lock.

The parts of a job stand on a board of whole numbers. Whoever calls puts a job there and
takes parts; so do threads of the pool that have just been at work and still look at the
board (`serve`), within a microsecond. Nobody is waited for who has not taken a part.
After some 300 µs without work a thread goes back to sleep in the pool's queue.

How a part is taken: the ticket on the board says the number of the job, how many parts
it has, and which is next. A thread reads it, reads what the job is, and moves the
ticket on, if it is still the same. A job is written only when all parts of the one
before are done, so what was read belongs to the ticket.
"""

from typing import Any

from burnbook.backend.compiled.runtime.jit import (
    cgutils,
    counting_part,
    intrinsic,
    ir,
    kernel_code,
    part,
    types,
)
from burnbook.backend.compiled.runtime.spin_wait import pause, rest
from burnbook.backend.compiled.runtime.thread_pool import (
    AWAKE,
    CALLED,
    DONE,
    JOB,
    LOCK,
    SPINS,
    TICKET,
    ThreadPool,
)

FUNCTION, ARGUMENTS, FAILED = range(JOB, JOB + 3)  # of a job
BITS = 16  # of a ticket for the next part, and as many above them for their count
PART = MOST_PARTS = (1 << BITS) - 1


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]])


@intrinsic
def look(typing, numbers, i):
    """A number of the board as it is now."""

    def build(context, builder, signature, args):
        return builder.load_atomic(
            _place(context, builder, signature, args), "acquire", 8
        )

    return types.int64(numbers, types.int64), build


@intrinsic
def put(typing, numbers, i, value):
    """Write a number for all to see, after everything written before."""

    def build(context, builder, signature, args):
        place = _place(context, builder, signature, args)
        builder.store_atomic(args[2], place, "release", 8)
        return context.get_dummy_value()

    return types.void(numbers, types.int64, types.int64), build


@intrinsic
def add(typing, numbers, i, value):
    """Add to a number in one step."""

    def build(context, builder, signature, args):
        place = _place(context, builder, signature, args)
        return builder.atomic_rmw("add", place, args[2], "seq_cst")

    return types.int64(numbers, types.int64, types.int64), build


@intrinsic
def swap(typing, numbers, i, old, new):
    """Replace a number if it is still the old one, in one step; whether it was."""

    def build(context, builder, signature, args):
        place = _place(context, builder, signature, args)
        found = builder.cmpxchg(place, args[2], args[3], "seq_cst", "seq_cst")
        return builder.extract_value(found, 1)

    number = types.int64
    return types.boolean(numbers, number, number, number), build


@intrinsic
def address_with(typing, function, args):
    """The addresses of a function of an index alone, and of what else it is given.

    The function is `function(*args, index)`; both last as long as the caller runs.
    """
    given = tuple(args.types)
    called = function.get_call_type(typing, (*given, types.int64), {})
    result = types.UniTuple(types.int64, 2)

    def build(context, builder, signature, values):
        kept = cgutils.pack_struct(builder, cgutils.unpack_tuple(builder, values[1]))
        place = cgutils.alloca_once(builder, kept.type)
        builder.store(kept, place)
        kind = _kind_of_part(context)
        name = context.mangler("part", (*given, types.int64), abi_tags=(), uid=None)
        inner = ir.Function(builder.module, kind, builder.module.get_unique_name(name))
        inner.linkage = "internal"
        body = ir.IRBuilder(inner.append_basic_block("entry"))
        found = body.load(body.bitcast(inner.args[2], kept.type.as_pointer()))
        parts = [body.extract_value(found, k) for k in range(len(given))]
        context.get_function(function, called)(body, [*parts, inner.args[3]])
        body.ret(ir.IntType(32)(0))
        whole = ir.IntType(64)
        pair = builder.ptrtoint(inner, whole), builder.ptrtoint(place, whole)
        return context.make_tuple(builder, result, pair)

    return result(function, args), build


def _kind_of_part(context: Any) -> Any:
    """Of a part's function: as the compiler's own, from a place and an index."""
    takes = (types.voidptr, types.int64)
    return context.call_conv.get_function_type(types.none, takes)


@intrinsic
def call_at(typing, function, arguments, index):
    """Call a function from `address_with`; 1 where it failed, else 0."""

    def build(context, builder, signature, args):
        kind = _kind_of_part(context)
        room = [cgutils.alloca_once(builder, kind.args[k].pointee) for k in (0, 1)]
        code = builder.call(
            builder.inttoptr(args[0], kind.as_pointer()),
            [*room, builder.inttoptr(args[1], kind.args[2]), args[2]],
        )
        is_wrong = builder.icmp_signed("!=", code, code.type(0))
        return builder.zext(is_wrong, ir.IntType(64))

    number = types.int64
    return number(number, number, number), build


@part
def take_part(b):
    """Take a part of the job on the board and do it; False where none is left."""
    ticket = look(b, TICKET)
    index = ticket & PART
    if index >= (ticket >> BITS) & PART:
        return False
    function, arguments = b[FUNCTION], b[ARGUMENTS]
    if not swap(b, TICKET, ticket, ticket + 1):
        return True  # somebody else was first; look again
    if call_at(function, arguments, index):
        put(b, FAILED, 1)
    add(b, DONE, 1)
    return True


@part
def take_board(b):
    """Take the board, for `carry_out`; False where somebody else has it."""
    return swap(b, LOCK, 0, 1)


@counting_part
def carry_out(b, function, args, parts):
    """function(*args, index) for so many indices by all who look; gives the board back.

    The board was taken before.
    """
    job = address_with(function, args)
    b[FUNCTION], b[ARGUMENTS], b[FAILED] = job[0], job[1], 0
    put(b, DONE, 0)
    number = (look(b, TICKET) >> (2 * BITS)) + 1
    put(b, TICKET, (number << (2 * BITS)) | (parts << BITS))
    while take_part(b):
        pass
    looks = 0
    while look(b, DONE) < parts:
        looks += 1
        if looks < SPINS:
            pause()
        else:  # whoever has the last part waits for a processor: it may have this one
            rest()
    failed = look(b, FAILED)
    put(b, LOCK, 0)
    if failed:
        raise MemoryError("a part of a kernel had no memory")


@counting_part
def share_out(b, function, args, parts):
    """function(*args, index) for so many indices, with others where the board is free.

    function: a part or a kernel, which fails for want of memory alone. More than
    MOST_PARTS are all done by the caller.
    """
    if 1 < parts <= MOST_PARTS and take_board(b):
        carry_out(b, function, args, parts)
        return
    job = address_with(function, args)
    for index in range(parts):
        if call_at(job[0], job[1], index):
            raise MemoryError("a part of a kernel had no memory")


@kernel_code("void(i8[::1], i8)")
def serve(b, most):
    """Take parts as they come, until there was none for so many looks, or on a call."""
    add(b, AWAKE, 1)
    looks = 0
    while looks < most and not look(b, CALLED):
        looks = 0 if take_part(b) else looks + 1
        pause()
    add(b, AWAKE, -1)


ThreadPool.serve = staticmethod(serve)
