"""What an operation is: one declaration.

An op is declared once, as plain array code for `xp` (NumPy or CuPy), and everything
hangs on that place: the tensor method, the operator, the kinds it takes, its errors,
its gradient, its tests and its row in the appendix.

    @op("FF>F", symbol="@", reason=inner_sizes)
    def matmul(xp, x, y):
        return xp.matmul(x, y)

    matmul.grad(x=lambda xp, g, y: xp.matmul(g, y.swapaxes(-1, -2)), y=...)

    matmul.examples(samples=[(normal(3, 4), normal(4, 5))])

A gradient rule asks by name for what it needs. From the names we compile, once per op,
what the tape must keep, and the op that turns the gradient of the output into the
gradients of the inputs.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from burnbook.core.dtypes import KINDS, Float, KindType
from burnbook.core.half import HALF, computed_in_single, in_single
from burnbook.core.source_code import generate, listing, shown_as

OPS: dict[str, "Op"] = {}
on_declare: list[Callable[["Op"], None]] = []

Sample = tuple[Any, ...]
Rule = Callable[..., Any]
Keep = Callable[[tuple[Any, ...], Any], tuple[Any, ...]]


class Op:
    """One operation: its forward code, and all that is declared about it.

    `kinds` maps the kinds of the inputs to the kind of the output (a tuple of kinds for
    several outputs). `inputs` names the tensors, `attrs` the keyword-only attributes.
    `fast_path`: two inputs, and no attributes or extras that the tape must look after.
    """

    def __init__(self, forward: Callable[..., Any], kinds: str, **declared: Any):
        through = declared.get("through")
        self.forward = forward if through is None else through(forward)
        self.name = forward.__name__.rstrip("_")
        self.__doc__ = forward.__doc__
        self.__name__ = forward.__name__
        self.__wrapped__ = shown_as(forward, self.listing)
        self.symbol: str | None = declared.get("symbol")
        self.samples: list[Sample] = []
        self.rejects: list[Sample] = []
        self.same_rank: bool = declared.get("same_rank", False)
        self.method: bool = declared.get("method", True)
        self.extras = tuple((declared.get("extra") or "").split())
        params = list(inspect.signature(forward).parameters.values())[1:]
        tensors = [p for p in params if p.kind is not p.KEYWORD_ONLY]
        self.many = any(p.kind is p.VAR_POSITIONAL for p in tensors)
        self.inputs = tuple(p.name for p in tensors)
        self.optional = tuple(p.name for p in tensors if p.default is None)
        self.attrs = {p.name: p.default for p in params if p.kind is p.KEYWORD_ONLY}
        self.reason = _asker(self, declared.get("reason"))
        self.check = _asker(self, declared.get("check"))
        self.kinds = _read_kinds(kinds, self)
        floats = [row.index(Float) for row in self.kinds if Float in row]
        if floats and not declared.get("takes_half"):
            self.forward = computed_in_single(
                self.forward, min(floats), len(self.extras)
            )
        self.rules_take_half: bool = declared.get("rules_take_half", False)
        self.validator = _compile_validator(self, declared.get("check"))
        self.row = kinds
        self.rules: dict[str, Rule] = {}
        self.keep: Keep | None = None
        self.keep_first: Keep | None = None  # of two inputs, only the first is tracked
        self.keep_second: Keep | None = None
        self.kept: tuple[str, ...] = ()
        self.backward: BackwardOp | None = None
        self.can_track: tuple[bool, ...] = (False,) * len(self.inputs)
        self.fast_path = False

    def grad(self, **rules: Rule) -> "Op":
        """Declare ∂loss/∂input, a rule per input; each asks for what it needs by name.

        A rule may ask for `xp`, `g` (the gradient of the output), `out`, any input or
        its `<input>_shape`, any attribute, any extra. A rule may itself be an op. A
        rule that asks for `needs` stands for all inputs at once: it is called with a
        truth value for each and gives a tuple with their gradients, None where not
        needed. `**attrs` at the end of a rule stands for all attributes that it does
        not name.
        """
        offered = {"xp", "g", "out", "position", "needs", *self.inputs, *self.attrs}
        offered |= {f"{name}_shape" for name in self.inputs} | set(self.extras)
        for name, rule in rules.items():
            if name not in self.inputs:
                raise TypeError(f"{self.name} has no input {name!r}")
            unknown = [w for w in _wants(self, rule) if w not in offered]
            if unknown:
                raise TypeError(
                    f"{self.name}.grad({name}=…) asks for {unknown}; "
                    f"it may ask for {sorted(offered)}"
                )
        self.rules = rules
        wanted = {w for rule in rules.values() for w in _wants(self, rule)}
        self.kept = _kept_names(self, wanted)
        self.keep = self.keep_first = self.keep_second = _compile_keep(self, wanted)
        if len(self.inputs) == 2 and not self.many:
            self.keep_first, self.keep_second = (
                _compile_keep(
                    self, set(_wants(self, rules[name]) if name in rules else ()), name
                )
                for name in self.inputs
            )
        self.can_track = tuple(name in rules for name in self.inputs)
        self.backward = BackwardOp(self)
        self.fast_path = self.backward.of_two is not None
        return self

    def examples(
        self, *, samples: Iterable[Sample] = (), rejects: Iterable[Sample] = ()
    ) -> "Op":
        """Add inputs to test the op with: one test for each of them.

        samples: inputs, and attributes in a dict at the end; they run, and gradients,
        kinds, backends and the `Shapes:` line are compared. rejects: the same, and each
        raises an error that names the op.
        """
        self.samples += samples
        self.rejects += rejects
        return self

    def listing(self) -> str:
        """The source of the op: its formula, and its gradient rules.

        Raises: OSError where the source is not known, as at Python's prompt.
        """
        return listing(self.forward, self.rules.values())

    def __call__(self, xp: Any, *values: Any, **attrs: Any) -> Any:
        """Run inside another op's array code: `relu(xp, x)`.

        On the namespace of a backend (see backend/base.py) this goes through its `run`,
        so that kernels and decorators see it; on plain NumPy it is the forward code.
        """
        values += (None,) * (len(self.inputs) - len(values))
        run_op = getattr(xp, "run_op", None)
        out = (
            self.forward(xp, *values, **attrs)
            if run_op is None
            else run_op(self, values, attrs)
        )
        return out[0] if self.extras else out

    def __repr__(self) -> str:
        return f"op {self.name} ({self.row})"

    def __reduce__(self) -> Any:
        return _find, (self.name,)


class BackwardOp:
    """All gradient rules of one op as one op: (g, *kept) -> a gradient per input.

    It is run by the backend below the one that tracks, so decorators see gradients and
    a backend may have a kernel for it. `needs` says which inputs want a gradient; the
    others get None.
    """

    def __init__(self, source: Op):
        self.source = source
        self.name = f"{source.name}.backward"
        self.extras = ()
        self.fast_path = False
        self.rules: dict[str, Rule] = {}
        self.keep = self.keep_first = self.keep_second = None
        self.inputs = ("g", *source.kept)
        self.forward = _compile_backward(source)
        self.of_two = _compile_backward_of_two(source)
        self.__doc__ = f"The gradients of {source.name}."

    def __repr__(self) -> str:
        return f"op {self.name}"

    def __reduce__(self) -> Any:
        return _find_backward, (self.source.name,)


def op(
    kinds: str,
    *,
    symbol: str | None = None,
    reason: Rule | None = None,
    check: Rule | None = None,
    extra: str | None = None,
    same_rank: bool = False,
    method: bool = True,
    through: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    takes_half: bool = False,
    rules_take_half: bool = False,
) -> Callable[[Callable[..., Any]], Op]:
    """Declare an op; the decorated function is its forward code, with `xp` first.

    kinds: rows such as "FF>F II>I" (inputs > output); "F*>F" takes many inputs.
    symbol: the Python operator.
    reason: asked after a failure, by name like a gradient rule (inputs are shapes); it
    returns a sentence, an (error class, sentence) pair, or None for "not my case".
    check: the same, but asked before every run. A reason or check of `*shapes` is given
    those of all inputs.
    extra: names of further outputs that only gradient rules see.
    same_rank: the inputs must have equal ranks (sizes of 1 stretch, ranks never do).
    method: False keeps the op off Tensor.
    through: what carries the forward code out, on large arrays.
    takes_half: the forward code gets float16 as it is: it moves numbers, rounds once,
    or widens them itself. Other code gets float32 (see core/half.py).
    rules_take_half: so do its gradient rules, which may give another type.
    """

    def declare(forward: Callable[..., Any]) -> Op:
        made = Op(
            forward,
            kinds,
            symbol=symbol,
            reason=reason,
            check=check,
            extra=extra,
            same_rank=same_rank,
            method=method,
            through=through,
            takes_half=takes_half,
            rules_take_half=rules_take_half,
        )
        OPS[made.name] = made
        for hook in on_declare:
            hook(made)
        return made

    return declare


Spec = tuple[Any, ...]


def normal(*shape: int) -> Spec:
    """A sample input: standard normal values of this shape."""
    return ("normal", shape)


def positive(*shape: int) -> Spec:
    """A sample input: values in [0.5, 2.5)."""
    return ("positive", shape)


def above(low: float, *shape: int) -> Spec:
    """A sample input: values in [low + 0.5, low + 2.5)."""
    return ("above", shape, low)


def unit(*shape: int) -> Spec:
    """A sample input: values strictly between −0.9 and 0.9."""
    return ("unit", shape)


def distinct(*shape: int) -> Spec:
    """A sample input: a shuffle of well separated values, none of them zero."""
    return ("distinct", shape)


def indices(high: int, *shape: int) -> Spec:
    """A sample input: whole numbers in [0, high)."""
    return ("indices", shape, high)


def truths(*shape: int) -> Spec:
    """A sample input: truth values."""
    return ("truths", shape)


def draw(spec: Spec, rng: np.random.Generator) -> np.ndarray:
    """Draw the array that a sample spec describes."""
    how, shape = spec[0], spec[1]
    if how == "normal":
        return np.asarray(rng.standard_normal(shape))
    if how == "positive":
        return rng.random(shape) * 2 + 0.5
    if how == "above":
        return rng.random(shape) * 2 + 0.5 + spec[2]
    if how == "unit":
        return rng.random(shape) * 1.8 - 0.9
    if how == "distinct":
        size = int(np.prod(shape))
        values = (np.arange(size) - size / 2 + 0.3) / max(size, 1) * 4
        return rng.permutation(values).reshape(shape)
    if how == "indices":
        return rng.integers(0, spec[2], shape)
    return rng.random(shape) < 0.5


def split_sample(row: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Separate the inputs of a sample row from the attributes at its end."""
    return (row[:-1], row[-1]) if row and isinstance(row[-1], dict) else (row, {})


def _find(name: str) -> Op:
    return OPS[name]


def _find_backward(name: str) -> "BackwardOp | None":
    return OPS[name].backward


def _read_kinds(rows: str, made: Op) -> dict[tuple[KindType, ...], Any]:
    """ "FF>F" -> {(Float, Float): Float}; a row may leave out optional inputs."""
    table: dict[tuple[KindType, ...], Any] = {}
    for row in rows.split():
        left, right = row.split(">")
        out = tuple(KINDS[letter] for letter in right)
        table[tuple(KINDS[letter] for letter in left.rstrip("*"))] = (
            out[0] if len(out) == 1 else out
        )
    return table


def _wants(made: Op, rule: Rule) -> tuple[str, ...]:
    """The names that a rule of this op asks for."""
    if isinstance(rule, Op):
        return ("g", *rule.inputs[1:], *rule.attrs)
    named, takes_rest = _params(rule)
    rest = [name for name in made.attrs if name not in named] if takes_rest else []
    return (*named, *rest)


@functools.cache
def _params(rule: Rule) -> tuple[list[str], bool]:
    """The params that a rule names, and whether it takes all other attributes too."""
    params = inspect.signature(rule).parameters.values()
    named = [p.name for p in params if p.kind is not p.VAR_KEYWORD]
    return named, len(named) < len(params)


def _asks_for(made: Op, function: Rule) -> list[str]:
    """What a reason or check takes: input shapes (`*shapes`: all) and attributes."""
    params = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in params):
        return [*made.inputs]
    return [p.name for p in params]


def _asker(made: Op, function: Rule | None) -> Rule | None:
    """Call a reason or check with what it asks for."""
    if function is None:
        return None
    names = _asks_for(made, function)

    def ask(facts: dict[str, Any]) -> Any:
        return function(*[facts[name] for name in names])

    return ask


def _compile_validator(made: Op, check: Rule | None) -> Rule | None:
    """Write the function that asks a check about tensors, as it runs before every run.

    It raises KeyError where an attribute without a default is missing.
    """
    if check is None:
        return None
    scope: dict[str, Any] = {"check": check, "shape_at": _shape_at}
    parts: list[str] = []
    for name in _asks_for(made, check):
        if name in made.attrs:
            default = made.attrs[name]
            scope[f"_default_{name}"] = default
            given = f"attrs.get({name!r}, _default_{name})"
            parts.append(
                f"attrs[{name!r}]" if default is inspect.Parameter.empty else given
            )
        elif made.many:
            parts.append("[t.value.shape for t in tensors]")
        else:
            parts.append(f"shape_at(tensors, {made.inputs.index(name)})")
    call = f"check({', '.join(parts)})"
    return generate(f"{made.name}: validator", "ask(tensors, attrs)", call, scope)


def _shape_at(tensors: tuple[Any, ...], place: int) -> tuple[int, ...] | None:
    tensor = tensors[place] if place < len(tensors) else None
    return None if tensor is None else tensor.value.shape


def _kept_names(made: Op, wanted: set[str]) -> tuple[str, ...]:
    names = [name for name in made.inputs if name in wanted]
    names += [name for name in ("out", *made.extras) if name in wanted]
    names += [f"{n}_shape" for n in made.inputs if f"{n}_shape" in wanted]
    return tuple(names)


def keep_inputs(values: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
    """Keep just the inputs; the tape knows this one and need not call it."""
    return values


def _compile_keep(made: Op, wanted: set[str], tracked: str = "all inputs") -> Keep:
    """Write the function that picks, from one forward run, what the rules ask for.

    What only the rules of untracked inputs would ask for is None: `x * 2.0` keeps no x.
    """
    if made.kept == made.inputs and wanted.issuperset(made.inputs) and not made.many:
        return keep_inputs
    if made.many:
        parts = {made.inputs[0]: "values"}
        parts[f"{made.inputs[0]}_shape"] = "[v.shape for v in values]"
    else:
        at = {name: i for i, name in enumerate(made.inputs)}
        parts = {name: f"values[{i}]" for name, i in at.items()}
        parts |= {f"{n}_shape": f"shape(values[{i}])" for n, i in at.items()}
    parts["out"] = "out[0]" if made.extras else "out"
    parts |= {name: f"out[{i + 1}]" for i, name in enumerate(made.extras)}
    named = [parts[name] if name in wanted else "None" for name in made.kept]
    body = "".join(f"{part}, " for part in named)
    title = f"{made.name}: kept for {tracked}"
    return generate(title, "keep(values, out)", f"({body})", {"shape": np.shape})


def _compile_backward(made: Op) -> Callable[..., Any]:
    """Write the function that calls every rule whose gradient is needed."""
    together = {rule for rule in made.rules.values() if "needs" in _wants(made, rule)}
    if made.many and not together:
        (name,) = made.rules
        return _backward_of_many(made, made.rules[name])
    params = ["xp", "g", *made.kept, "*", "needs"]
    params += [f"{name}=_default_{name}" for name in made.attrs]
    scope = {f"_default_{name}": value for name, value in made.attrs.items()}
    if together:
        (scope["rule"],) = together
        result = f"rule({_arguments(made, scope['rule'])})"
    else:
        calls = [
            call if call in ("None", "g") else f"({call}) if needs[{i}] else None"
            for i, call in enumerate(_rule_calls(made, scope))
        ]
        result = f"({', '.join(calls)},)"
    words = ["needs=needs", *(f"{name}={name}" for name in made.attrs)]
    half = None
    if not made.rules_take_half:
        half = _if_half("backward", made.kept, ", ".join(words), scope)
    title = f"{made.name}.backward"
    return generate(title, f"backward({', '.join(params)})", result, scope, half)


def _if_half(
    name: str, kept: tuple[str, ...], words: str, scope: dict[str, Any]
) -> tuple[str, str]:
    """Of float16, and what a gradient returns then, as code: rules see float32."""
    scope |= {"HALF": HALF, "in_single": in_single}
    values = ", ".join(["g", *kept])
    return "g.dtype is HALF", f"in_single({name}, xp, ({values},), dict({words}))"


def _compile_backward_of_two(made: Op) -> tuple[Callable[..., Any], ...] | None:
    """The same without attributes, for two inputs: only the second, the first, both.

    Why: a chain of small ops spends its time here, and asking nothing is quickest.
    """
    if len(made.inputs) != 2 or made.many or made.attrs or made.extras:
        return None
    scope: dict[str, Any] = {}
    x, y = _rule_calls(made, scope)
    params = ", ".join(["xp", "g", *made.kept])
    bare = made.rules_take_half or {x, y} <= {"g", "None"}  # nothing is computed
    second, first, both = (
        generate(
            f"{made.name}.backward: {name}",
            f"{name}({params})",
            result,
            scope,
            None if bare else _if_half(name, made.kept, "", scope),
        )
        for name, result in {
            "second": f"{'None' if x != 'g' else 'g'}, {y}",
            "first": f"{x}, {'None' if y != 'g' else 'g'}",
            "both": f"{x}, {y}",
        }.items()
    )
    return second, first, both


def _rule_calls(made: Op, scope: dict[str, Any]) -> list[str]:
    """The call of each input's rule, as code; the rules themselves go into the scope.

    "None" where there is no rule. An identity is just "g": it costs nothing, so it
    need not be asked for.
    """
    calls: list[str] = []
    for i, name in enumerate(made.inputs):
        rule = made.rules.get(name)
        if rule is None:
            calls.append("None")
            continue
        if _is_identity(rule):
            calls.append("g")
            continue
        scope[f"rule_{i}"] = rule
        calls.append(f"rule_{i}({_arguments(made, rule)})")
    return calls


def _arguments(made: Op, rule: Rule) -> str:
    """What a rule is called with, as code; what it does not name itself by keyword."""
    names = _wants(made, rule)
    if isinstance(rule, Op):
        names, first = ("xp", *names), len(rule.inputs) + 1
    else:
        first = len(_params(rule)[0])
    return ", ".join([*names[:first], *[f"{name}={name}" for name in names[first:]]])


def _is_identity(rule: Rule) -> bool:
    """Whether a rule is `lambda g: g`: it need not be called."""
    code = getattr(rule, "__code__", None)
    same = (lambda g: g).__code__
    return code is not None and (code.co_code, code.co_varnames) == (
        same.co_code,
        same.co_varnames,
    )


def _backward_of_many(made: Op, rule: Rule) -> Rule:
    """One rule, called once for each of the inputs that need it, with its position."""
    names = _wants(made, rule)

    def backward(xp: Any, g: Any, *kept: Any, needs: Any, **attrs: Any) -> Any:
        given = {**made.attrs, **attrs, **dict(zip(made.kept, kept, strict=True))}
        given |= {"xp": xp, "g": g}
        return tuple(
            rule(**{name: {**given, "position": i}[name] for name in names})
            if need
            else None
            for i, need in enumerate(needs)
        )

    return backward
