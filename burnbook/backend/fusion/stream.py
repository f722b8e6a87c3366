"""The operations that wait, and how they are run.

Every thread records a stream of its own. It is run as a whole: when somebody reads a
value of it (from any thread), and when it has grown long. What nobody holds by then is
not kept, and what nobody needs is not computed.

A stream that comes for the second time is made a plan of; the key of the plan is the
stream itself: its ops, shapes and attributes, how they hang together, and which results
are still held.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, Protocol
from weakref import WeakSet, ref

from burnbook.backend.base import AnyOp, Attrs, Backend
from burnbook.backend.compiled.runtime.gil import is_gil_enabled
from burnbook.backend.fusion.deferred import Deferred, Failed
from burnbook.backend.fusion.signature import Signature
from burnbook.core.errors import BackendError, BurnbookError

MANY = 512  # ops: from here on a stream is run where it may be cut
MOST = 4096  # ops: here it is run at once
MOST_BYTES = 1 << 28  # of inputs and results together: here, too
MOST_PLANS = 128

Step = tuple[Signature, tuple[Any, ...]]
NUMBER = "number"  # refs: the next number
HAS_GIL = is_gil_enabled()
new = object.__new__
_getframe = sys._getframe  # pyright: ignore[reportPrivateUsage] - the documented way


class Nest(tuple[Any, ...]):
    """The refs of what stands in a tuple."""

    __slots__ = ()


class Runnable(Protocol):
    """A plan of a stream: it gives the results that are held, for these inputs."""

    def run(self, inputs: list[Deferred], numbers: list[Any]) -> Sequence[Any]: ...


MakePlan = Callable[[Sequence[Step], Sequence[bool], Backend], Runnable]


class Known:
    """A stream that was here before: its plans that nobody uses, and when it was."""

    __slots__ = ("last", "spare")

    def __init__(self) -> None:
        self.spare: list[Runnable] = []
        self.last = 0


class Plans:
    """The plans of a backend, by the streams that they are for; the newest ones."""

    def __init__(self, backend: Backend, make: Callable[[], MakePlan]):
        self.backend, self.make = backend, make
        self.lock = threading.Lock()
        self.known: dict[Any, Known] = {}
        self.hits = self.made = self.turn = 0

    def take(self, key: Any) -> tuple[Known, Runnable | None]:
        """A plan for a stream that was here before; None for a new one."""
        with self.lock:
            self.turn += 1
            known = self.known.get(key)
            if known is None:
                if len(self.known) >= MOST_PLANS:
                    self.known.pop(min(self.known, key=lambda k: self.known[k].last))
                known = self.known[key] = Known()
                known.last = self.turn
                return known, None
            known.last = self.turn
            self.hits += 1
            if known.spare:
                return known, known.spare.pop()
            self.made += 1
        steps, held = key
        return known, self.make()(steps, held, self.backend)

    def clear(self) -> None:
        """Forget all plans."""
        with self.lock:
            self.known.clear()
            self.made = self.hits = 0


class Stream:
    """What one thread records, segment by segment.

    segment: what it is recording now. busy: it is just writing to it.

    Another thread that needs a value closes the segment: it puts a new one in its
    place, and waits until nothing is written to the old one. Why no lock: taking one
    would cost a third of what writing down costs. With Python's lock, who sees that the
    flag is not set can be sure that the next step goes to the new segment; Python
    without that lock takes ours.
    """

    __slots__ = ("busy", "lock", "plans", "segment")

    def __init__(self, plans: Plans):
        self.plans = plans
        self.lock = threading.RLock()
        self.busy = False
        self.segment = Segment(self)


class Segment:
    """Operations that wait for each other's results, and are run together.

    steps: a signature and refs each: which result (0, 1 …) or input (−1, −2 …) an op
    takes. outs: weak references to the results. numbers: those that are no part of
    signatures, in order. places: where ops were called, but for elementwise ones, which
    never fail.
    """

    def __init__(self, stream: Stream):
        self.stream = stream
        self.owner = threading.get_ident()
        self.lock = threading.RLock()
        self.is_running = self.is_over = False
        self.steps: list[Step] = []
        self.outs: list[ref[Deferred]] = []
        self.inputs: list[Deferred] = []
        self.known: dict[int, int] = {}
        self.numbers: list[Any] = []
        self.places: dict[int, tuple[CodeType, int]] = {}
        self.nbytes = self.counted = 0
        segments.add(self)

    def input(self, value: Deferred) -> int:
        """The ref of a value that is there."""
        found = self.known.get(id(value))
        if found is None:
            if type(value.array) is Failed:
                raise value.array.error
            self.inputs.append(value)  # holds it, so that its id stays its own
            found = self.known[id(value)] = -len(self.inputs)
        return found

    def look_at_size(self) -> None:
        """Run the stream if it has become long, or would hold much.

        Why from time to time only: to add up costs as much as to write down.
        """
        added = self.steps[self.counted :]
        self.counted = len(self.steps)
        self.nbytes += sum([signature.nbytes for signature, _ in added])
        held = sum([value.nbytes for value in self.inputs]) + self.nbytes
        if held > MOST_BYTES or self.counted > MOST:
            self.flush()

    def record(self, signature: Signature, refs: tuple[Any, ...]) -> Any:
        """Let an op wait; gives what it will give."""
        if not signature.elementwise:
            self.places[len(self.steps)] = place()
        self.steps.append((signature, refs))
        outs = self.outs
        if not signature.is_tuple:
            made = new(Deferred)
            made.spec = spec = signature.outs[0]
            made.shape = spec.shape
            made.stream, made.number = self, len(outs)
            outs.append(ref(made))
            return made
        found: list[Any] = []
        for spec in signature.outs:
            if spec is None:
                found.append(None)
                continue
            made = new(Deferred)
            made.spec, made.shape = spec, spec.shape
            made.stream, made.number = self, len(outs)
            outs.append(ref(made))
            found.append(made)
        return tuple(found)

    def flush(self) -> None:
        """Run all that waits.

        An op that fails leaves its error to whatever depends on it; all others are
        there, and the first error is raised. Anything else that interrupts, as Ctrl-C
        does, leaves everything to wait as before.
        """
        with self.lock:
            if self.is_over or self.is_running or not self.steps:
                return
            stream = self.stream
            with stream.lock:
                if stream.segment is self:
                    stream.segment = Segment(stream)
                    stream.segment.owner = self.owner
            if self.owner != threading.get_ident():
                while stream.busy:
                    time.sleep(0)
            self.is_running = True
            try:
                error = self._run()
                self.is_over = True
            finally:
                self.is_running = False
            self.inputs, self.known, self.numbers, self.steps = [], {}, [], []
        if error is not None:
            raise error

    def _run(self) -> Exception | None:
        held = [out() for out in self.outs]
        key = tuple(self.steps), tuple([value is not None for value in held])
        values = [value for value in held if value is not None]
        error: Exception | None = None
        known, plan = self.stream.plans.take(key)
        try:
            if plan is None:
                found, error = self._one_by_one(key[1])
            else:
                found = plan.run(self.inputs, self.numbers)
                if len(known.spare) < 2:
                    known.spare.append(plan)
        except Exception as wrong:  # which op it was, the ops will say one by one
            found, error = self._one_by_one(key[1])
            if error is None and getattr(wrong, "where", None) == "fusion":
                error = wrong  # a rule of the user's
        for value, array in zip(values, found, strict=True):
            value.array, value.stream = array, None
        return error

    def _one_by_one(
        self, held: Sequence[bool]
    ) -> tuple[Sequence[Any], Exception | None]:
        """The ops in their order, each as if it were called now."""
        steps, first = self.steps, None
        inputs = [value.array for value in self.inputs]
        needed, last = uses(steps, held)
        results: list[Any] = [None] * len(held)
        numbers, at = iter(self.numbers), 0
        for position, (signature, refs) in enumerate(steps):
            made = range(at, at + sum(out is not None for out in signature.outs))
            at = made.stop
            given = [next(numbers) for _ in range(signature.count)]
            if position not in needed:
                continue
            failed = failure(refs, results)
            if failed is None:
                values, attrs = call_of(signature, refs, results, inputs, given)
                try:
                    out = self.stream.plans.backend.run(signature.op, values, attrs)
                    put(signature, out, results, made.start)
                    del out
                except Exception as error:
                    where = self.places.get(position)
                    failed = Failed(late(signature.op, error, where))
                    first = failed.error if first is None else first
                del values
            if failed is not None:
                for i in made:
                    results[i] = failed
            for i in last.get(position, ()):
                results[i] = None
        return [r for r, one in zip(results, held, strict=True) if one], first


def uses(
    steps: Sequence[Step], held: Sequence[bool]
) -> tuple[set[int], dict[int, list[int]]]:
    """Which steps are needed, and after which of them results are needed no longer."""
    wanted = {i for i, one in enumerate(held) if one}
    needed: set[int] = set()
    last: dict[int, list[int]] = {}
    end = len(held)
    for position in range(len(steps) - 1, -1, -1):
        signature, refs = steps[position]
        start = end - sum(out is not None for out in signature.outs)
        own = range(start, end)
        end = start
        if wanted.isdisjoint(own):
            continue
        needed.add(position)
        over = [i for i in own if i not in wanted]
        for i in results_in(refs):
            if i not in wanted:
                wanted.add(i)
                over.append(i)
        if over:
            last[position] = over
    return needed, last


def results_in(refs: Sequence[Any]) -> list[int]:
    """The results of the stream that a step takes."""
    found: list[int] = []
    for one in refs:
        if type(one) is Nest:
            found += results_in(one)
        elif type(one) is int and one >= 0:
            found.append(one)
    return found


def failure(refs: Sequence[Any], results: Sequence[Any]) -> Failed | None:
    """What has failed among the inputs of a step."""
    for i in results_in(refs):
        if type(results[i]) is Failed:
            return results[i]
    return None


def call_of(
    signature: Signature,
    refs: Sequence[Any],
    results: Sequence[Any],
    inputs: Sequence[Any],
    given: Sequence[Any],
) -> tuple[tuple[Any, ...], Attrs]:
    """The values and attributes of a step."""
    numbers = iter(given)

    def value_at(one: Any, part: Any) -> Any:
        if type(one) is int:
            return results[one] if one >= 0 else inputs[-1 - one]
        if one is NUMBER:
            return next(numbers)
        if type(one) is Nest:
            return tuple([value_at(a, b) for a, b in zip(one, part, strict=True)])
        return part

    pairs = zip(refs, signature.specs, strict=True)
    values = tuple([value_at(one, part) for one, part in pairs])
    if not signature.holes:
        return values, signature.attrs
    holes = {name: next(numbers) for name in signature.holes}
    return values, {**signature.attrs, **holes}


def put(signature: Signature, out: Any, results: list[Any], start: int) -> None:
    """Take over what an op gave."""
    outs = out if signature.is_tuple else (out,)
    at = start
    for array, spec in zip(outs, signature.outs, strict=True):
        if spec is not None:
            results[at] = array
            at += 1


_ours: dict[str, bool] = {}  # of files


def place() -> tuple[CodeType, int]:
    """Where the code outside the library is that runs now: a function, and how far.

    Why not the line: finding it takes time, and mostly nobody asks.
    """
    frame: Any = _getframe(2)
    while True:
        code = frame.f_code
        ours = _ours.get(code.co_filename)
        if ours is None:
            ours = _note_file(frame)
        if not ours:
            return code, frame.f_lasti
        above = frame.f_back
        if above is None:
            return code, frame.f_lasti
        frame = above


def _note_file(frame: FrameType) -> bool:
    """Note whether a file is a part of the library that a reader need not see."""
    if len(_ours) > 1 << 14:  # cells that were typed in and are gone
        _ours.clear()
    name = str(frame.f_globals.get("__name__", ""))
    ours = name.startswith("burnbook.") and not name.startswith("burnbook.examples")
    _ours[frame.f_code.co_filename] = ours
    return ours


def line_of(where: tuple[CodeType, int]) -> str:
    """A place as text: "train.py:12 in step"."""
    code, at = where
    lines = [row[0] for row in code.co_positions()]
    line = lines[at // 2] if 0 <= at // 2 < len(lines) else code.co_firstlineno
    name = code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{line} in {code.co_name}"


def late(op: AnyOp, error: Exception, where: tuple[CodeType, int] | None) -> Exception:
    """An error of an op that was called earlier, with the line that called it."""
    called = ("called at", "before" if where is None else line_of(where))
    if isinstance(error, BurnbookError):
        if called not in error.facts:
            error.facts.append(called)
        return error
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    cure = "the backend without Fusion, where errors come at the call"
    made = BackendError(op.name, what, [called], cure)
    made.__cause__ = error
    return made


segments: WeakSet[Segment] = WeakSet()


def _after_fork() -> None:
    """A child process has one thread, so nobody in it holds a lock."""
    for segment in list(segments):
        segment.lock, segment.is_running = threading.RLock(), False
        segment.stream.lock, segment.stream.busy = threading.RLock(), False
        segment.stream.plans.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
