"""Fusion: a chain of steps that one function computes.

A rule says which ops follow each other, and how to compute them at once:

    @fusion("mul add")
    def multiply_add(xp, x, y, z):
        out = xp.multiply(x, y)
        out += z
        return out

It holds for every chain of such steps in a program in which each result is used by the
next step alone. The function is given what the steps take from elsewhere, in order, and
their attributes; it is plain array code, as an op's forward code is.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from burnbook.core.errors import ArgumentError, BurnbookError
from burnbook.core.op import OPS, BackwardOp
from burnbook.program.values import Step, Value

Forward = Callable[..., Any]
Condition = Callable[[tuple[Step, ...]], bool]
SWAPPED = {"add", "mul", "max_pair", "min_pair"}  # either input may be the chain's


class FusedOp:
    """What a rule makes of a chain of ops: their names, and one forward function.

    steps: those of the chain.
    """

    extras = ()

    def __init__(
        self,
        name: str,
        chain: tuple[str, ...],
        forward: Forward,
        steps: tuple[Step, ...] = (),
    ):
        self.name = name
        self.chain = chain
        self.forward = forward
        self.steps = steps
        self.__doc__ = forward.__doc__

    def __repr__(self) -> str:
        return f"{self.name} ({' → '.join(self.chain)})"

    def first(self, run: Callable[[], Any], wanted: Any) -> Any:
        """What the first run gives, if it is what the chain itself would give.

        wanted: has the shape and the element type of that.

        Raises:
            ArgumentError: the function fails, or gives something else.
        """
        try:
            found = run()
        except BurnbookError:
            raise
        except Exception as error:
            text = (str(error) or "no reason given").splitlines()[0]
            reason = f"{type(error).__name__}: {text}"
            what = f"the rule {self.name} fails"
            raise ArgumentError("fusion", what, [*self._facts(), reason]) from error
        return self.checked(found, wanted)

    def checked(self, found: Any, wanted: Any) -> Any:
        """A result, if it has a shape and elements that fit what is wanted."""
        shape, dtype = getattr(found, "shape", None), getattr(found, "dtype", None)
        if shape is None or dtype is None:
            got = type(found).__name__
            cure = "return an array" + (", as with `return out`" * (found is None))
            what = f"the rule {self.name} gives {got}, which is no array"
        elif tuple(shape) != tuple(wanted.shape) and {*shape, *wanted.shape} - {1}:
            got = f"{list(shape)}"
            what = f"the rule {self.name} gives another shape than its chain"
            cure = f"a result of shape {list(wanted.shape)}"
        elif not np.can_cast(dtype, wanted.dtype, "same_kind"):
            got = f"{list(shape)} {dtype}"
            what = f"the rule {self.name} gives other elements than its chain"
            cure = f"a result of {wanted.dtype}"
        else:
            return found
        facts = [("got", got), ("expected", f"{list(wanted.shape)} {wanted.dtype}")]
        raise ArgumentError("fusion", what, [*self._facts(), *facts], cure)

    def _facts(self) -> list[tuple[str, str]]:
        return [("chain", " → ".join(self.chain))]


@dataclass(frozen=True)
class FusionRule:
    """Which chains of ops are computed at once, and by what.

    links: for each place of the chain the names of the ops that may stand there, and
    whether it may be left out. when: what else must be true of the steps.
    """

    name: str
    links: tuple[tuple[frozenset[str], bool], ...]
    forward: Forward
    when: Condition | None = None

    def matched(
        self,
        steps: Sequence[Step],
        start: int,
        follower: dict[Value, int],
        several: set[int],
    ) -> tuple[int, ...]:
        """The numbers of the longest chain from a step on; empty where there is none.

        follower: of each value that one step alone uses, the number of that step.
        several: the steps of which more than the first result is used; none of a chain
        is, since what a rule makes of it has one result.
        """
        chain: list[int] = []
        for names, may_miss in self.links:
            number = start if not chain else self._next(steps, chain[-1], follower)
            number = None if number in several else number
            if number is not None and steps[number].op.name in names:
                chain.append(number)
            elif not may_miss:
                return ()
        while len(chain) > 1:
            found = tuple([steps[number] for number in chain])
            if self.when is None or self.when(found):
                return tuple(chain)
            if not self._may_end(len(chain) - 1, found):
                return ()
            chain.pop()
        return ()

    @staticmethod
    def _next(
        steps: Sequence[Step], number: int, follower: dict[Value, int]
    ) -> int | None:
        """The step that takes the result of another, as what it works on."""
        out = steps[number].out
        after = follower.get(out)
        if after is None:
            return None
        inputs = steps[after].inputs
        places = [i for i, value in enumerate(inputs) if value is out]
        is_first = places == [0]
        if is_first or (places == [1] and steps[after].op.name in SWAPPED):
            return after
        return None

    def _may_end(self, count: int, steps: tuple[Step, ...]) -> bool:
        """Whether the rule also holds for a chain without its last step."""
        names = iter([step.op.name for step in steps[:count]])
        name = next(names, None)
        for allowed, may_miss in self.links:
            if name in allowed:
                name = next(names, None)
            elif not may_miss:
                return False
        return name is None

    def fuse(self, steps: tuple[Step, ...]) -> Step:
        """One step for a chain of steps."""
        chain = tuple([step.op.name for step in steps])
        inputs: list[Any] = []
        attrs: dict[str, Any] = {}
        passed: Value | None = None
        for step in steps:
            inputs += [value for value in step.inputs if value is not passed]
            for name, value in attrs_of(step).items():
                attrs[f"{step.op.name}_{name}" if name in attrs else name] = value
            passed = step.out
        while inputs and inputs[-1] is None:  # what an op may be called without
            inputs.pop()
        if "chain" in inspect.signature(self.forward).parameters:
            attrs["chain"] = chain
        self._refuse_arguments(chain, len(inputs), attrs)
        last = steps[-1]
        path = next((step.path for step in steps if step.path), "")
        op: Any = FusedOp(self.name, chain, self.forward, steps)
        return Step(op, tuple(inputs), attrs, (last.out,), path, last.line)

    def _refuse_arguments(
        self, chain: tuple[str, ...], count: int, attrs: dict[str, Any]
    ) -> None:
        """Raise where the function cannot be called with what the chain has."""
        signature = inspect.signature(self.forward)
        try:
            signature.bind(None, *[None] * count, **attrs)
        except TypeError as error:
            facts = [
                ("chain", " → ".join(chain)),
                ("takes", str(signature)),
                ("given", ", ".join(["xp", f"{count} inputs", *attrs])),
            ]
            what = f"the rule {self.name} cannot be called: {error}"
            raise ArgumentError("fusion", what, facts) from None


def attrs_of(step: Step) -> dict[str, Any]:
    """All attributes of a step, those that have their default too."""
    op = step.op.source if isinstance(step.op, BackwardOp) else step.op
    declared = getattr(op, "attrs", {})
    defaults = {n: v for n, v in declared.items() if v is not inspect.Parameter.empty}
    return {**defaults, **step.attrs}


RULES: list[FusionRule] = []


def fusion(pattern: str, when: Condition | None = None) -> Callable[[Forward], Forward]:
    """Declare a function as what computes every chain of ops of a pattern.

    pattern: names of ops in order; "relu|gelu" is one of several, with a question mark
    behind it one that may be missing, and "relu.backward" the gradient of an op. The
    function takes `xp`, the inputs of the steps but for those that the chain itself
    passes on, and the attributes of all steps by name; where two have the same name the
    later one is called `<op>_<name>`. If it takes `chain`, it is given the names of the
    ops. when: a condition on the steps.

    The newest rule that fits is used. `without_rule` takes one back.

    Example:
        >>> @fusion("exp log")
        ... def nothing(xp, x):
        ...     return x + 0
        >>> rule = RULES[-1]
        >>> rule.name, len(rule.links)
        ('nothing', 2)
        >>> without_rule("nothing")
    """
    links: list[tuple[frozenset[str], bool]] = []
    for word in pattern.split():
        names = word.removesuffix("?").split("|")
        unknown = [n for n in names if n.removesuffix(".backward") not in OPS]
        if unknown:
            what = f"there is no op {unknown[0]!r}"
            near = get_close_matches(unknown[0], OPS, 1)
            cure = repr(near[0]) if near else "burnbook.core.op.OPS has their names"
            raise ArgumentError("fusion", what, [("pattern", pattern)], cure)
        links.append((frozenset(names), word.endswith("?")))
    if not links or links[0][1]:
        what = "a pattern begins with an op that is always there"
        raise ArgumentError("fusion", what, [("pattern", pattern)])

    def declare(forward: Forward) -> Forward:
        RULES.append(FusionRule(forward.__name__, tuple(links), forward, when))
        return forward

    return declare


def without_rule(name: str) -> None:
    """Take back the newest rule of a name."""
    for rule in reversed(RULES):
        if rule.name == name:
            RULES.remove(rule)
            return
    known = ", ".join(sorted({rule.name for rule in RULES}))
    raise ArgumentError("fusion", f"there is no rule {name!r}", [("rules", known)])


def refuse_others(rules: object) -> None:
    """Raise where something among the rules is none."""
    others: list[object] = [rules]
    if isinstance(rules, (list, tuple)):
        found: Iterable[object] = rules  # pyright: ignore[reportUnknownVariableType]
        others = [rule for rule in found if not isinstance(rule, FusionRule)]
    if others:
        what = f"{others[0]!r} is no rule of fusion"
        known = ", ".join(sorted({rule.name for rule in RULES}))
        name = others[0]
        cure = "rules=[] for none, or rules=[r for r in RULES if r.name == …]"
        if isinstance(name, str) and any(rule.name == name for rule in RULES):
            cure = f"rules=[r for r in RULES if r.name == {name!r}]"
        raise ArgumentError("compile", what, [("rules", known)], cure)


def fused_steps(
    steps: Sequence[Step], outputs: Iterable[Value], rules: Sequence[FusionRule]
) -> list[Step]:
    """The steps with every chain that a rule matches as one step.

    It stands where the last step of the chain stood, so that all its inputs are there.
    """
    uses = Counter(value for step in steps for value in step.values)
    uses.update(outputs)
    several = {i for i, step in enumerate(steps) if _uses_more(step, uses)}
    follower = _followers(steps, uses)
    taken: set[int] = set()
    made: dict[int, Step] = {}
    for start in range(len(steps)):
        for rule in reversed(rules):
            if start in taken:
                break
            chain = rule.matched(steps, start, follower, several)
            if chain and not taken.intersection(chain):
                taken.update(chain)
                made[chain[-1]] = rule.fuse(tuple([steps[i] for i in chain]))
    kept: list[Step] = []
    for number, step in enumerate(steps):
        if number in made:
            kept.append(made[number])
        elif number not in taken:
            kept.append(step)
    return kept


def _uses_more(step: Step, uses: Counter[Value]) -> bool:
    """Whether more than the first result of a step is used."""
    results = [value for value in step.outputs if value is not None]
    return any(uses[value] for value in results[1:])


def _followers(steps: Sequence[Step], uses: Counter[Value]) -> dict[Value, int]:
    """Of each value that one step alone uses, and once, that step."""
    users = {value: i for i, step in enumerate(steps) for value in step.values}
    found: dict[Value, int] = {}
    for step in steps:
        value = next((value for value in step.outputs if value is not None), None)
        if value is not None and uses[value] == 1 and value in users:
            found[value] = users[value]
    return found
