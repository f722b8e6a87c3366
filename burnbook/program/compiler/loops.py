"""Chains as machine code: several elementwise ops in one loop, element by element.

A number goes through all ops in a register, and nothing between is written anywhere.
The text of a loop does not name what it is for, so equal chains share one kernel, and
the machine code is kept from process to process as that of all kernels is.

Each op is what its own kernel makes of it (compiled/activation.py), and sums, products
and quotients are rounded one by one, as NumPy does.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np

from burnbook.backend.base import Backend
from burnbook.backend.compiled.runtime import cache, machine_code
from burnbook.program.values import Step, Value

F32 = np.dtype(np.float32)
FORWARD = {  # of ops without attributes
    "add": "({x} + {y})",
    "sub": "({x} - {y})",
    "mul": "({x} * {y})",
    "div": "({x} / {y})",
    "neg": "(-{x})",
    "abs": "abs({x})",
    "square": "({x} * {x})",
    "sqrt": "sqrt({x})",
    "max_pair": "({x} if ({x} >= {y}) | ({x} != {x}) else {y})",
    "min_pair": "({x} if ({x} <= {y}) | ({x} != {x}) else {y})",
}
BACK = {  # the gradient of each input, in the names of what the gradient op is given
    "add": {"x": "{g}", "y": "{g}"},
    "sub": {"x": "{g}", "y": "(-{g})"},
    "mul": {"x": "({g} * {y})", "y": "({g} * {x})"},
    "div": {"x": "({g} / {y})", "y": "(-{g} * {out} / {y})"},
    "neg": {"x": "(-{g})"},
    "exp": {"x": "({g} * {out})"},
    "log": {"x": "({g} / {x})"},
}
MOST = 24  # arrays and numbers that a loop may take


def can_compile(backend: Backend) -> bool:
    """Whether loops of a backend may become machine code."""
    return bool(getattr(backend, "kernels", None)) and cache.has_numba()


def expressions(step: Step) -> list[str | None] | None:
    """What a step computes of an element, for each result; None where it is unknown."""
    arrays = [*step.outputs, *step.values]
    if any(v is not None and v.kind != "number" and v.dtype != F32 for v in arrays):
        return None
    op: Any = step.op
    source = getattr(op, "source", None)
    if source is None:
        one = FORWARD.get(op.name) if not step.attrs else None
        text = one or _of_table(step)
        return None if text is None else [text]
    rules = BACK.get(source.name)
    if rules is None:
        text = _of_table(step)
        return None if text is None else [text]
    outs = zip(source.inputs, step.outputs, strict=True)
    return [None if out is None else rules[name] for name, out in outs]


def _of_table(step: Step) -> str | None:
    """A call of the function that the kernel of an op is made of."""
    tables = _tables()
    op: Any = step.op
    source = getattr(op, "source", op)
    attrs = {n: v for n, v in step.attrs.items() if n != "needs"}
    for kind in ("numbers", "plain"):
        found = tables.get((op is not source, kind, source))
        if found is None:
            continue
        name, options = found
        if kind == "plain" and attrs:
            return None
        given = [f"{{{one}}}" for one in op.inputs if one is not None]
        if kind == "numbers":
            given += [f"{{{one}}}" if one else "zero" for one in options]
        return f"{name}({', '.join(given)})"
    return None


@lru_cache(maxsize=1)
def _tables() -> dict[Any, tuple[str, list[str]]]:
    """For each op of the tables: the name of its function, and its attributes."""
    from burnbook.backend.compiled import activation

    found: dict[Any, tuple[str, list[str]]] = {}
    for back, kind, table in (
        (False, "plain", activation.VALUES),
        (False, "numbers", activation.VALUES_BY_NUMBER),
        (True, "plain", activation.SLOPES),
        (True, "numbers", activation.SLOPES_BY_NUMBER),
    ):
        for op, function in table.items():
            name = f"{kind}_{op.name}{'_back' * back}"
            _functions[name] = function
            options = [*op.attrs, "", ""][:2] if kind == "numbers" else []
            found[back, kind, op] = name, options
    return found


_functions: dict[str, Any] = {}


class Loop:
    """Steps that one loop computes: `length` of them, and `end` is the last one.

    places: of values whose place in memory is known, what stands for that place. A
    result that stands where an input stood has its name, so that the compiler knows.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        outs: Sequence[Value],
        end: int,
        whole: set[Value],
        places: Mapping[Value, Any] | None = None,
    ):
        self.outs, self.end, self.whole = list(outs), end, whole
        self.length = len(steps)
        self._places = places or {}
        self.reads: list[Value] = []
        self.numbers: list[Any] = []
        self._names: dict[Value, str] = {}
        lines: list[str] = []
        for step in steps:
            texts = expressions(step)
            assert texts is not None  # only such steps are given
            named = self._named(step)
            for value, text in zip(step.outputs, texts, strict=False):
                if value is not None and text is not None:
                    name = f"t{len(lines)}"
                    lines.append(f"{name} = {text.format(**named)}")
                    self._names[value] = name
        arrays = [f"a{i}" for i in range(len(self.reads))]
        read = [self._places.get(value, value) for value in self.reads]
        #: Results with a place of their own, which the loop is given.
        self.passed = [v for v in self.outs if self._places.get(v, v) not in read]
        numbers = [f"n{i}" for i in range(len(self.numbers))]
        outs_ = [f"o{i}" for i in range(len(self.passed))]
        targets: list[str] = []
        for value in self.outs:
            if value in self.passed:
                targets.append(outs_[self.passed.index(value)])
            else:
                targets.append(arrays[read.index(self._places[value])])
            lines.append(f"{targets[-1]}[i] = {self._names[value]}")
        head = f"chain({', '.join([*arrays, *numbers, *outs_])})"
        body = [f"for i in range({targets[0]}.size):", *[f"    {one}" for one in lines]]
        text = "\n".join([f"def {head}:", *[f"    {one}" for one in body], ""])
        types = ["f4[::1]"] * len(arrays) + ["f4"] * len(numbers)
        types += ["f4[::1]"] * len(outs_)
        self._source = text, f"void({', '.join(types)})"

    @property
    def kernel(self) -> Any:
        """The machine code, which may have to be compiled at its first call."""
        return compiled(*self._source)

    @property
    def is_kept(self) -> bool:
        """Whether its machine code is kept from another process, so that it is there
        at once."""
        return is_kept(*self._source)

    def _named(self, step: Step) -> dict[str, str]:
        """What the names in a text of a step stand for."""
        inputs: tuple[str, ...] = getattr(step.op, "inputs", ())
        named: dict[str, str] = dict(
            zip(inputs, map(self._at, step.inputs), strict=False)
        )
        for name, value in step.attrs.items():
            if name != "needs":
                limit = {"min": -np.inf, "max": np.inf}.get(name, 0.0)
                named[name] = self._at(limit if value is None else value)
        source = getattr(step.op, "source", step.op)
        for name in getattr(source, "attrs", {}):
            if name not in named:
                named[name] = self._at({"min": -np.inf, "max": np.inf}.get(name, 0.0))
        return named

    def _at(self, value: Any) -> str:
        """A value of the loop: a number, an element, or what was computed."""
        if type(value) is not Value or value.kind == "number":
            if value is None:
                return "zero"
            self.numbers.append(value)
            return f"n{len(self.numbers) - 1}"
        known = self._names.get(value)
        if known is None:
            place = "0" if value in self.whole else "i"
            known = self._names[value] = f"a{len(self.reads)}[{place}]"
            self.reads.append(value)
        return known

    def call(self, writer: Any, named: dict[Value, str]) -> str:
        """The line that calls it."""
        given = [named[value] for value in self.reads]
        given += [writer._at(value, named) for value in self.numbers]  # pyright: ignore[reportPrivateUsage] - what writes the chain
        given += [named[value] for value in self.outs]
        name = writer._constant(self.kernel)  # pyright: ignore[reportPrivateUsage]
        return f"{name}({', '.join(given)})"


def _name_of(text: str, signature: str) -> str:
    return f"chain-{blake2b(f'{signature}{text}'.encode(), digest_size=12).hexdigest()}"


def is_kept(text: str, signature: str) -> bool:
    """Whether the machine code of a text lies on disk."""
    if not machine_code.is_supported():
        return False
    name = _name_of(text, signature)
    if name not in _found and any(cache.folder().glob(f"{name}.*.o")):
        _found.add(name)
    return name in _found


_found: set[str] = set()  # names of machine code that lies on disk


@lru_cache(maxsize=256)
def compiled(text: str, signature: str) -> Any:
    """The kernel of a text, kept on disk by what it says."""
    from burnbook.backend.compiled.runtime.jit import exact_code
    from burnbook.backend.compiled.runtime.vector_math import ZERO

    _tables()
    scope: dict[str, Any] = {**_functions, "sqrt": np.sqrt, "zero": ZERO}
    scope["__name__"] = __name__
    exec(compile(text, _name_of(text, signature), "exec"), scope)
    return exact_code(signature)(scope["chain"])
