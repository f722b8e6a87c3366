"""Steps that are forgotten: results that are not kept, optimizers made anew each time.

Both train in silence and badly. A step starts from the model that the one before has
given; and an optimizer with a memory is the same from step to step.
"""

import weakref
from typing import Any, NamedTuple

from burnbook.core.call_source import own_call
from burnbook.core.errors import ResultDropped, explain, warn_caller

MOST = 3  # steps in a row that may be forgotten before it is said


class _Chain:
    """The model that the first step of an optimizer has given, and how many before."""

    __slots__ = ("count", "made")

    def __init__(self) -> None:
        self.made: Any = None
        self.count = 0


_chain = _Chain()


class LastStep(NamedTuple):
    """The step before: the model as a number, how often it was the same one.

    remembers: whether the rule has a memory; one without may try several rates.
    """

    start: int
    times: int
    remembers: bool


def first_step(module: object, made: object, lr: object, remembers: bool) -> LastStep:
    """An optimizer has made its first step: warn where each one has, for nothing.

    module: that it was given, made: that it has given. A third new optimizer that goes
    on from the model of the one before, which itself was asked once, is no accident.
    """
    found = LastStep(_start(module, lr, remembers), 1, remembers)
    if not remembers:
        return found
    before = _chain.made() if _chain.made is not None else None
    _chain.count = _chain.count + 1 if before is module else 1
    _chain.made = weakref.ref(made)
    if _chain.count == MOST:
        what = f"{MOST} steps, each by an optimizer of its own, which remembers none"
        own = own_call("step")
        of = own.of.removesuffix(".step") if own else "AdamConfig().init()"
        cure = f"optim = {of} once, before the loop, and optim.step(…) in it"
        warn_caller(explain("step", what, cure=cure))
    return found


def _start(module: object, lr: object, remembers: bool) -> int:
    """The model of a step as a number; without a memory, the model and the rate."""
    rate = lr if isinstance(lr, float) else None
    return id(module) if remembers else hash((id(module), rate))


def later_step(before: LastStep, module: object, lr: object) -> LastStep:
    """The step after another one: warn if several began at the same model."""
    last, times, remembers = before
    start = _start(module, lr, remembers)
    if last != start:
        return LastStep(start, 1, remembers)
    if times == MOST:
        own = own_call("step")
        line = "model = optim.step(lr, model, grads)"
        if own and len(own.args) > 1 and own.args[1].isidentifier():
            line = f"{own.args[1]} = {own.of}({', '.join(own.args)})"
        what = f"{MOST + 1} steps start from one model: what they gave was not kept"
        warn_caller(explain("step", what, cure=line), ResultDropped)
    return LastStep(last, times + 1, remembers)
