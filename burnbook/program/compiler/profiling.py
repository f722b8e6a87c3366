"""The profile of a program: what its steps take one by one, and what as a plan.

Step by step every op is called by itself, and its result is allocated; in a plan some
of them are one call, or none. The table sets both beside each other, call by call.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from burnbook.backend.base import AnyOp, Attrs, Backend, Decorator, Value as Raw, Values
from burnbook.module.profiling import time_text
from burnbook.module.summaries import size_text
from burnbook.program.compiler.fusion import FusedOp
from burnbook.program.compiler.plan import Plan
from burnbook.program.compiler.rewriting import NORM, PAIRS
from burnbook.program.values import Step, Value
from burnbook.text.table import ShownAsTable, TextTable

LONGEST = 60  # letters of a row's name
OTHERS = "views, and steps that left"
UPDATES = "copies of the state"


@dataclass(frozen=True)
class CallProfile:
    """One call of a plan: what it computes, and seconds.

    what: its ops; an arrow joins those that are fused, a comma those that go over the
    batch in turns. how: by what it is computed. ops: how many steps of the program it
    stands for. one_by_one: the seconds of these steps, each called by itself. planned:
    those of the call.
    """

    what: str
    shape: tuple[int, ...]
    how: str
    ops: int
    one_by_one: float
    planned: float


@dataclass(frozen=True, repr=False)
class ProgramProfile(ShownAsTable):
    """What a program takes for a batch of n, step by step and as a plan.

    calls: of the plan, in their order. one_by_one, planned: seconds of a whole run.
    bytes, eager_bytes: as those of `Plan`. rounds: of how many runs the least is taken.

    Why: whatever else the machine does only adds to a time, so the least says most.
    """

    name: str
    n: int | None
    calls: tuple[CallProfile, ...]
    one_by_one: float
    planned: float
    bytes: int
    eager_bytes: int
    rounds: int

    def table(self) -> TextTable:
        """The calls as a table, the whole run last."""
        rows = [
            [
                call.what if len(call.what) <= LONGEST else call.what[:LONGEST] + "…",
                str(list(call.shape)) if call.shape else "",
                str(call.ops),
                time_text(call.one_by_one) if call.one_by_one else "–",
                time_text(call.planned) if call.planned else "–",
                call.how,
            ]
            for call in self.calls
        ]
        ops = sum(call.ops for call in self.calls)
        whole = [time_text(self.one_by_one), time_text(self.planned)]
        rows.append(["a whole run", "", str(ops), *whole, ""])
        head = ["calls of the plan", "result", "steps", "one by one", "planned", "how"]
        notes = [
            f"the least of {self.rounds} runs, n = {self.n}",
            f"memory: {size_text(self.eager_bytes)} one by one, "
            f"{size_text(self.bytes)} planned",
        ]
        return TextTable(head, rows, {2, 3, 4}, 5, notes=notes)


class Stopwatch(Decorator):
    """How long each op takes, in the order in which they run."""

    interned = False

    def __init__(self, inner: Backend):
        super().__init__(inner)
        self.seconds: list[float] = []

    def run(self, op: AnyOp, values: Values, attrs: Attrs) -> Raw:
        """Run the op below, and note how long it took."""
        began = time.perf_counter()
        out = self.inner.run(op, values, attrs)
        self.seconds.append(time.perf_counter() - began)
        return out


def profiled(
    name: str,
    steps: Sequence[Step],
    plan: Plan,
    one_by_one: Callable[[Backend], Any],
    planned: Callable[[], list[float]],
    rounds: int,
) -> ProgramProfile:
    """The profile of a plan for steps.

    steps: of the program, before any was fused. one_by_one: run these steps, in their
    order, by a backend. planned: run the plan, and give the seconds of each call.
    """
    single: list[list[float]] = []
    calls: list[list[float]] = []
    wholes: list[tuple[float, float]] = []
    for _ in range(rounds):
        watch = Stopwatch(plan.backend)
        one_by_one(plan.backend)  # so that caches hold what this way needs
        began = time.perf_counter()
        one_by_one(watch)
        between = time.perf_counter()
        planned()
        again = time.perf_counter()
        calls.append(planned())
        wholes.append((between - began, time.perf_counter() - again))
        single.append(watch.seconds)
    times = [min(one) for one in zip(*single, strict=True)]
    taken = [min(one) for one in zip(*calls, strict=True)]
    rows, left = _rows(plan, steps, times, taken)
    if left:
        spent = sum(times[i] for i in left)
        rows.append(CallProfile(OTHERS, (), "no call", len(left), spent, 0.0))
    return ProgramProfile(
        name,
        plan.n,
        tuple(rows),
        min(one for one, _ in wholes),
        min(other for _, other in wholes),
        plan.bytes,
        plan.eager_bytes,
        rounds,
    )


def _rows(
    plan: Plan, steps: Sequence[Step], times: list[float], taken: list[float]
) -> tuple[list[CallProfile], list[int]]:
    """A row for each call of a plan, and the steps that are in none of them."""
    maker = {v: i for i, step in enumerate(steps) for v in step.outputs if v}
    left = set(range(len(steps)))
    rows: list[CallProfile] = []
    rest = list(taken)
    for numbers in plan.steps_of:
        found = [plan.what.steps[i] for i in numbers]
        origins = [o for step in found for o in _origins(step, steps, maker)]
        left -= {*origins}
        how = plan.bounds[numbers[0]].how
        if len(numbers) > 1 and plan.bounds[numbers[0]].together is None:
            how = "in turns"
        rows.append(
            CallProfile(
                ", ".join(map(_text, found)),
                tuple(found[-1].out.shape_at(plan.n)),
                how,
                len(origins),
                sum(times[o] for o in origins),
                rest.pop(0),
            )
        )
    if rest:  # what the next run reads is copied to its place
        rows.append(CallProfile(UPDATES, (), "copy", 0, 0.0, sum(rest)))
    return rows, sorted(left)


def _origins(step: Step, steps: Sequence[Step], maker: dict[Value, int]) -> list[int]:
    """The steps of the program that a step of the plan stands for, the last one first.

    Why: a fused step has the result of its last one, and its chain tells the others. A
    norm that went into the weights of a convolution left its result to that, and what
    the compiler has written itself stands for nothing.
    """
    names = step.op.chain if isinstance(step.op, FusedOp) else (step.op.name,)
    out = next(v for v in step.outputs if v is not None)
    makers = [maker[out]] if out in maker else []
    found: list[int] = []
    for name in reversed(names):
        way = _way_to(name, makers, steps, maker)
        found += way
        makers = [maker[v] for i in way[-1:] for v in steps[i].values if v in maker]
    return found


def _way_to(
    name: str, makers: Sequence[int], steps: Sequence[Step], maker: dict[Value, int]
) -> list[int]:
    """The nearest step of a name that one of some steps comes from, and those between.

    Nothing where there is none: the compiler has put it there.
    """
    ways = [[i] for i in makers]
    while ways:
        way = ways.pop(0)
        step = steps[way[-1]]
        if step.op.name == name:
            return way
        if step.op.name == NORM or step.op.name in PAIRS:
            ways += [[*way, maker[v]] for v in step.values if v in maker]
    return []


def _text(step: Step) -> str:
    return " → ".join(step.op.chain) if isinstance(step.op, FusedOp) else step.op.name
