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


class _LastStep(NamedTuple):
    """The step before: the model that it began at, and how many began there."""

    start: weakref.ref[Any]
    times: int


_last: weakref.WeakKeyDictionary[Any, _LastStep] = weakref.WeakKeyDictionary()


def first_step(optim: object, module: object, made: object) -> None:
    """An optimizer with a memory has made its first step: warn where each one has.

    module: that it was given, made: that it has given. A third new optimizer that goes
    on from the model of the one before, which itself was asked once, is no accident.
    """
    before = _chain.made() if _chain.made is not None else None
    _chain.count = _chain.count + 1 if before is module else 1
    _chain.made = weakref.ref(made)
    if _chain.count == MOST:
        what = f"{MOST} steps, each by an optimizer of its own, which remembers none"
        own = own_call("step")
        of = own.of.removesuffix(".step") if own else "AdamConfig().init()"
        cure = f"optim = {of} once, before the loop, and optim.step(…) in it"
        warn_caller(explain("step", what, cure=cure))
    _last[optim] = _LastStep(weakref.ref(module), 1)


def later_step(optim: object, module: object) -> None:
    """An optimizer has made another step: warn if several began at the same model.

    Only of an optimizer with a memory: one without may step from one model for each
    task, client or rate, as meta-learning does.
    """
    before = _last.get(optim)
    if before is None:
        return
    if before.start() is not module:
        _last[optim] = _LastStep(weakref.ref(module), 1)
        return
    if before.times == MOST:
        own = own_call("step")
        line = "model = optim.step(lr, model, grads)"
        if own and len(own.args) > 1 and own.args[1].isidentifier():
            line = f"{own.args[1]} = {own.of}({', '.join(own.args)})"
        what = f"{MOST + 1} steps start from one model: what they gave was not kept"
        warn_caller(explain("step", what, cure=line), ResultDropped)
    _last[optim] = _LastStep(before.start, before.times + 1)
