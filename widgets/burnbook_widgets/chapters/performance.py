"""The exercises of chapter 10.7: what is read, what is fused, and by which rule.

See exercises.py for the others. Programs are imported when an answer is judged: every
chapter imports its exercises, and most need no program.
"""

from typing import Any

import numpy as np

from burnbook.backend import Decorator
from burnbook.nn import LinearConfig
from burnbook.prelude import Numpy, Tensor
from burnbook_widgets.chapters.answers import (
    FUNCTION,
    Holds,
    Kind,
    Value,
    compare,
    described,
)

NUMBERS = 1_000_000 * 4  # bytes of the array in the first exercise


class Reads(Decorator):
    """Count how often the device is awaited."""

    interned = False

    def __init__(self, inner: Any):
        super().__init__(inner)
        self.count = 0

    def to_numpy(self, value: Any) -> np.ndarray:
        """One value."""
        self.count += 1
        return super().to_numpy(value)

    def read(self, values: Any) -> list[np.ndarray]:
        """Several at once."""
        self.count += 1
        return super().read(values)


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers that no pattern explains."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def read_at_once(numbers_of: Any) -> str | None:
    """Ask for floats in their order, with one read however many there are."""
    for count in (5, 2):
        device = Reads(Numpy())
        values = [float(n) for n in range(count, 0, -1)]
        losses = [Tensor.from_floats([value], device) for value in values]
        before = device.count
        found = numbers_of(losses)
        if not isinstance(found, list):
            return f"it returns {described(found)}, and should return a list"
        if strange := [one for one in found if not isinstance(one, float)]:
            return f"it holds {described(strange[0])}, and should hold floats"
        if trouble := compare(values, found):
            return f"of {values}: {trouble}"
        if (reads := device.count - before) != 1:
            return f"the device is read {reads} times for {count} losses"
    return None


def in_one_call(heads: Any) -> str | None:
    """Ask for the same numbers, and for a plan of one call."""
    from burnbook.program import capture

    linear = LinearConfig(16, 32).init(Numpy())
    x = Tensor.from_numpy(drawn(6, 16), Numpy())
    out = heads(linear, x)
    if not isinstance(out, Tensor):
        return f"it returns {described(out)}, and should return a tensor"
    sums = linear.forward(x).tanh()
    wanted = sums.reshape([-1, 4, 8]).swap_dims(1, 2)
    if trouble := compare(wanted, out):
        return trouble
    compiled = capture(lambda x: heads(linear, x), x).compile()
    plan: Any = compiled.plan_for(6)
    calls = len(plan.calls)
    return None if calls == 1 else f"the plan has {calls} calls"


def mean_square_rule(rule: Any) -> str | None:
    """Ask for one step in place of three, and for their numbers."""
    from burnbook.program import capture

    def function(x: Tensor, y: Tensor) -> Tensor:
        return (x - y).square().mean()

    for shapes in (((4, 5), (4, 5)), ((7, 3), (1, 3)), ((1,), (1,))):
        given = [Tensor.from_numpy(drawn(*s, seed=i)) for i, s in enumerate(shapes)]
        compiled = capture(function, *given, batch=None).compile(rules=[rule])
        names = [step.op.name for step in compiled.lowered.steps]
        if len(names) != 1:
            return f"with it the steps are {', '.join(names)}, and should be one"
        found, wanted = compiled(*given), function(*given)
        sizes = f"for x {list(shapes[0])} and y {list(shapes[1])}"
        if trouble := compare(wanted, found):
            return f"{sizes}: {trouble}"
    return None


RULE = Kind("a fusion rule", lambda thing: type(thing).__name__ == "FusionRule")

PERFORMANCE: dict[str, Value | Holds] = {
    "10.7.1": Value(
        lambda: 4 * 2 * NUMBERS,
        "operations · (read + written) · elements · bytes of one",
        [
            (2 * NUMBERS, "that is fused; here each operation goes through memory"),
            (4 * NUMBERS, "each operation reads and writes"),
            (3 * 2 * NUMBERS, "there are four operations"),
            (8, "an element has four bytes, and there are a million"),
            (3 * 2 * NUMBERS // 4, "those are numbers; each has four bytes"),
        ],
    ),
    "10.7.2": Holds(
        FUNCTION, read_at_once, "a Transaction, or Tensor.cat and then one read"
    ),
    "10.7.3": Holds(
        FUNCTION, in_one_call, "views last: what is computed elementwise may come first"
    ),
    "10.7.4": Holds(
        RULE,
        mean_square_rule,
        '@fusion("sub square mean") above a function of xp, x and y',
    ),
}
