"""What other libraries call it, and what it is here.

Whoever knows PyTorch, NumPy, Keras or Rust Burn types their names first. The tables of
`other_names.txt` pair such names with code that works here; a test runs all of it. They
are looked at only when a name was not found, so nothing is slower for them.
"""

import ast
import difflib
import dis
import functools
import inspect
import re
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Sequence
from opcode import opname
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from burnbook.core.call_source import Call, call_at, fill, in_brackets, value_of
from burnbook.core.errors import ADVISERS, UnknownNameError

NEAREST = "the nearest: "  # how the remark begins where the code is something else


class Advice(NamedTuple):
    """What a name of another library is here: code that works, and a remark."""

    code: str
    remark: str
    given: tuple[tuple[str, str], ...] = ()  # parameters, and the code for a call

    @property
    def name(self) -> str:
        """The name of ours that the code is one call of; "" for anything longer."""
        start = re.match(r"(?:[a-zA-Z_]\w*\.)*([a-zA-Z_]\w*)", self.code)
        depth, rest = 0, self.code[start.end() :] if start else "."
        for i, letter in enumerate(rest):
            depth += (letter in "([") - (letter in ")]")
            if depth == 0 and (i < len(rest) - 1 or letter not in ")"):
                return ""
        return start[1] if start else ""


class Theirs(NamedTuple):
    """How another library says what a row is about, in code.

    how: "" where it gives the same values, "random" where it gives the same shape,
    "differs" where the remark says what is different, "runs" where there is nothing to
    compare.
    """

    library: str
    code: str
    how: str


class Row(NamedTuple):
    """A line of the tables, and the lines below it.

    names: those that are looked up where they are missing; there may be none.
    topic: the part of the page that it belongs to; "" for none.
    """

    section: str
    topic: str
    names: tuple[str, ...]
    advice: Advice
    theirs: tuple[Theirs, ...]
    means: tuple[str, ...] = ()  # what is true of the result of the code


# What the code of a section calls the thing that the name is asked of.
FIRST = {
    "Tensor": "x",
    "Module": "model",
    "Optimizer": "optim",
    "LBFGS": "lbfgs",
    "LrScheduler": "scheduler",
    "Learner": "learner",
    "LearnerBuilder": "builder",
    "DataLoader": "loader",
    "DataLoaderBuilder": "builder",
    "Dataset": "dataset",
    "Config": "config",
    "Param": "param",
    "TensorData": "data",
    "Gradients": "gradients",
    "Backend": "device",
    "burnbook.nn": "nn",
    "burnbook": "burnbook",
}


@functools.cache
def tables() -> dict[str, dict[str, Advice]]:
    """All tables; the top of the package also knows the names of prelude and tensor."""
    found: dict[str, dict[str, Advice]] = {}
    for title, lines in _sections():
        found[title] = {}
        for row in _rows(title, lines):
            found[title] |= dict.fromkeys(row.names, row.advice)
    for part in ("burnbook.prelude", "burnbook.tensor"):
        found["burnbook"] = found[part] | found["burnbook"]
    return found


@functools.cache
def all_rows() -> tuple[Row, ...]:
    """Every row, with the code of the other libraries: what the page is made of."""
    return tuple(row for title, lines in _sections() for row in _rows(title, lines))


def _rows(title: str, lines: Iterable[str]) -> list[Row]:
    """The rows of one section, each with what stands below it."""
    found: list[Row] = []
    topic = ""
    for line in lines:
        if line.startswith("## "):
            topic = line[3:]
        elif line.startswith("  "):
            found[-1] = _with_line(found[-1], line.strip())
        else:
            names, _, rest = line.partition(": ")
            found.append(Row(title, topic, tuple(names.split()), _advice(rest), ()))
    return found


def _with_line(row: Row, line: str) -> Row:
    """A row with a line that stands below it."""
    head, _, code = line.partition(": ")
    library, _, how = head.partition(" ")
    if library == "means":
        return row._replace(means=(*row.means, code))
    if library == "given":
        parameters, _, code = line.removeprefix("given (").partition("): ")
        given = (*row.advice.given, (parameters, code))
        return row._replace(advice=row.advice._replace(given=given))
    theirs = Theirs(library, code, how.strip("()"))
    return row._replace(theirs=(*row.theirs, theirs))


def _sections() -> Iterator[tuple[str, list[str]]]:
    """The title and the lines of each section of the file."""
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    parts = re.split(r"^\[([\w.]+)\]$", text, flags=re.MULTILINE)[1:]
    for title, section in zip(parts[::2], parts[1::2], strict=True):
        yield title, [line for line in section.splitlines() if line]


def _advice(text: str) -> Advice:
    code, _, remark = text.partition("  # ")
    return Advice(code, remark)


def unknown(
    where: str,
    of: str,
    name: str,
    known: Iterable[str] = (),
    call: Call | None = None,
) -> UnknownNameError:
    """The error for a name that is not there: what it is here, or what is near it.

    call: where the name was read, if that is known; the cure has what stands there.
    """
    at = f"{where}.{name}"
    advice = tables().get(of, {}).get(name)
    if advice is None and of.startswith("burnbook") and (home := home_of(name)):
        cure = f"from {home} import {name}"
        return UnknownNameError(at, "it is in another place", cure=cure)
    if advice is None:
        near = closest(name, known)
        cure = f"{where}.{near}" if near else None
        return UnknownNameError(at, "there is no such name", cure=cure)
    if advice.code == "-":
        return UnknownNameError(at, f"not needed: {advice.remark}", cure="leave it out")
    if advice.code == name and name in tables()["homes"]:
        cure = tables()["homes"][name].code
        return UnknownNameError(at, "it is in another place", cure=cure)
    code, exact = _in_their_words(of, advice, call)
    shown = code if advice.name in ("", name) else advice.name
    what = f"in burnbook this is {shown}"
    remark = advice.remark
    if remark.startswith(NEAREST):
        what = f"burnbook has none; the nearest is {shown}"
        remark = remark.removeprefix(NEAREST)
    facts = [remark] if remark else []
    if not exact and re.search(r"\d|\[", code):
        facts.append("the numbers are those of an example")
    return UnknownNameError(at, what, facts + imports_of(advice.code), code)


def _in_their_words(of: str, advice: Advice, call: Call | None) -> tuple[str, bool]:
    """The code of a row with the reader's names and numbers; whether all of them."""
    first = FIRST.get(of, "")
    if call is None:
        return advice.code, True  # there is nothing that it could differ from
    for parameters, code in advice.given:
        if call.args is None and parameters:
            continue
        asked = call._replace(args=call.args or (), named=call.named or {})
        text = fill(parameters, code, asked, first)
        if text is not None:
            return text, True
    bare = call._replace(args=(), named={})
    plain = not call.args and not call.named
    return fill("", advice.code, bare, first) or advice.code, plain


def home_of(name: str) -> str | None:
    """The package that has a public name; the outermost, if there are several.

    Example:
        >>> home_of("AdamConfig"), home_of("nothing_of_ours")
        ('burnbook.optim', None)
    """
    root = Path(__file__).parents[1]
    found = []
    for path in root.rglob("__init__.py"):
        names = re.search(r"^__all__ = \[(.*?)\]", path.read_text("utf-8"), re.M | re.S)
        if names and f'"{name}"' in names[1]:
            found.append(".".join(path.parent.relative_to(root.parent).parts))
    return min(found, key=lambda home: (home.count("."), home), default=None)


def imports_of(code: str) -> list[str]:
    """The lines that import what the prelude does not have."""
    homes = tables()["imports"]
    names = dict.fromkeys(
        re.findall(r"(?<![\w.])[a-zA-Z_]\w*", code)
    )  # each once, in their order
    return [homes[name].code for name in names if name in homes]


def field_of(name: str, free: Sequence[str]) -> str | None:
    """What the field of a config is called here, of those that are free; or why not."""
    rows = tables()["fields"]
    advice = rows.get(name)
    if advice is None:
        return None
    same = [word for word, other in rows.items() if other is advice]
    for field in free:  # the reader's own word for the same thing
        if field in same or any(field.endswith(f"_{word}") for word in same):
            return f"{field}=…"
    if advice.code == "-":
        near = closest(name, free)
        return f"{near}=…" if near else advice.remark
    field, value, _ = advice.code.partition("=")
    if value:
        return advice.code if field in free else None
    known = [field for field in advice.code.split(", ") if field in free]
    return ", ".join(f"{field}=…" for field in known) or None


ADVISERS.append(field_of)


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is spelled most like `name`, whatever its capitals."""
    lowered = {text.lower(): text for text in known}
    near = difflib.get_close_matches(name.lower(), lowered, 1, 0.7)
    return lowered[near[0]] if near else None


C = TypeVar("C", bound=type)
#: What is done with the public names of each package; core/arguments adds one.
ON_PACKAGE: list[Callable[[ModuleType, Iterable[str]], None]] = []


class OtherName:
    """An attribute that says, when it is read, what it is called here.

    Why: a `__getattr__` would slow every other attribute of its class down; this costs
    nothing. To `hasattr`, `getattr` with a default and `copy` it is not there.
    """

    __slots__ = ("name", "of")

    def __init__(self, of: str, name: str):
        self.of, self.name = of, name

    def __get__(self, instance: Any, owner: type) -> Any:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
        call = call_at(frame, self.name)
        error = unknown(owner.__name__, self.of, self.name, call=call)
        if call and call.args and ".inner()" in (error.cure or ""):
            error.cure = _with_input(str(error.cure), call.args[0], frame)
        raise _fitted(error, instance, call)


def _with_input(cure: str, text: str, frame: FrameType) -> str:
    """A cure with `x.inner()` for what x is: an array, or a tensor without a graph."""
    try:
        value = value_of(ast.parse(text, mode="eval").body, frame)
    except SyntaxError:
        return cure
    code = f"{text}.inner()"
    if isinstance(value, (np.ndarray, list, tuple)):
        return cure.replace(code, f"Tensor.from_data({text})")
    device = getattr(value, "backend", None)
    return cure if getattr(device, "ad_enabled", True) else cure.replace(code, text)


def _fitted(
    error: UnknownNameError, instance: Any, call: Call | None
) -> UnknownNameError:
    """The error with a cure for the very tensor or module that was asked."""
    kind = getattr(getattr(instance, "kind", None), "__name__", "")
    if error.name == "item" and kind and hasattr(instance, "into_scalar"):
        count = instance.shape.num_elements()
        one = count == 1
        ways = ["any()", "all()"] if kind == "Bool" else ["sum()", "max()"]
        texts = ["into_scalar()"] if one else [f"{way}.into_scalar()" for way in ways]
        error.what = "in burnbook this is into_scalar"
        error.facts[:] = [] if one else [f"one number of {count}: say which"]
        of = call.of if call else "x"
        error.cure = ", or ".join(f"{of}.{text}" for text in texts)
    elif error.cure and ".mask_where(" in error.cure:
        error.cure = _with_number(error.cure)
    elif error.cure and "to_device(" in error.cure:
        error.cure = _to_device(error.cure, instance)
    return error


NUMBER = r"\(?-?\d[\d.e-]*\)?|float\(.*\)"


def _with_number(cure: str) -> str:
    """`where` with a number: a tensor that is filled with it.

    Example:
        >>> _with_number("(0.0).mask_where(mask.bool_not(), x)")
        'x.mask_fill(mask, 0.0)'
        >>> _with_number("x.mask_where(mask.bool_not(), 0.0)")
        'x.mask_fill(mask.bool_not(), 0.0)'
    """
    if found := re.fullmatch(
        rf"({NUMBER})\.mask_where\((.+)\.bool_not\(\), (.+)\)", cure
    ):
        number, mask, x = found[1].strip("()"), found[2], found[3]
        return f"{in_brackets(x)}.mask_fill({mask}, {number})"
    if found := re.fullmatch(rf"(.+)\.mask_where\((.+), ({NUMBER})\)", cure):
        return f"{found[1]}.mask_fill({found[2]}, {found[3]})"
    return cure


def _to_device(cure: str, instance: object) -> str:
    """A move whose device is one of ours, below Autodiff where it was before."""
    start, _, device = cure.rpartition("to_device(")
    device = device.removesuffix(")")
    named = re.match(r"""["'](cuda|gpu|cpu|mps)(?::(\d+))?""", device)
    if named:
        device = "Numpy()" if named[1] == "cpu" else f"Cupy({named[2] or 0})"
    made = device.startswith(("Numpy(", "Cupy("))
    if made and _tracks(instance):
        device = f"Autodiff({device})"
    return f"{start}to_device({device})"


def _tracks(instance: object) -> bool:
    """Whether a tensor or a module lives on an Autodiff device."""
    devices = getattr(instance, "devices", list)()
    where = devices[0] if devices else getattr(instance, "backend", None)
    return bool(getattr(where, "ad_enabled", False))


#: Classes whose objects say which of their names is near to one that they lack.
#: Why not all: a `__getattr__` makes every attribute slower, and a tensor has its own.
WITH_NEAR_NAMES = frozenset(
    [
        "LearnerBuilder",
        "SupervisedTraining",
        "Learner",
        "DataLoaderBuilder",
        "DataLoader",
        "OptimizerAdaptor",
        "EvaluatorBuilder",
        "Recorder",
        "Metric",
        "MetricsRenderer",
    ]
)


def answers_with_near_names(cls: type) -> None:
    """Let the objects of a class answer to a misspelt name with the near one."""
    held: Any = cls
    for base in cls.__mro__:
        if base.__name__ in WITH_NEAR_NAMES and "__getattr__" not in dir(base):
            held = base
            held.__getattr__ = _near_name


def _near_name(self: Any, name: str) -> Any:
    cls = type(self)
    if name.startswith("_"):
        text = f"{cls.__name__!r} object has no attribute {name!r}"
        raise AttributeError(text, name=name, obj=self)
    found = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
    call = call_at(frame, name)
    if isinstance(found, Constructor):
        made, cure = _constructor(cls, cls.__name__, name, call)
        raise UnknownNameError(f"{cls.__name__}.{name}", made, cure=cure)
    if isinstance(found, OtherName):  # its own error has led to this function
        raise _fitted(unknown(cls.__name__, found.of, name, call=call), self, call)
    if found is not None:  # a property, whose own error is raised again
        return object.__getattribute__(self, name)
    near = closest(name, [n for n in dir(cls) if not n.startswith("_")])
    cure = None
    if near:
        cure = f"{call.of if call else cls.__name__}.{near}"
        cure += "(…)" if callable(getattr(cls, near, None)) else ""
    raise UnknownNameError(f"{cls.__name__}.{name}", "there is no such name", cure=cure)


CONSTRUCTORS = ("new", "default", "init")  # how Rust and Burn make an object


class Constructor(OtherName):
    """An attribute that says how an object of the class that was asked is made here."""

    __slots__ = ()

    def __get__(self, instance: object, owner: type) -> Any:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
        call = call_at(frame, self.name)
        at = owner.__name__
        if call is not None and instance is None:
            at = call.of
        made, cure = _constructor(owner, at, self.name, call)
        raise UnknownNameError(f"{owner.__name__}.{self.name}", made, cure=cure)


def answers_to_constructors(cls: type) -> None:
    """Let a class answer to the ways of Rust to make an object, where it has none.

    Why: it names the class that was asked; a row of a table would name one for all.
    """
    if getattr(cls, "_is_protocol", False) or hasattr(type(cls), "__getattr__"):
        return  # a protocol asks for all that it has; an enum hides our error
    for name in CONSTRUCTORS:
        if not any(name in vars(each) for each in cls.__mro__):
            setattr(cls, name, Constructor("", name))


def _constructor(
    cls: type, at: str, name: str, call: Call | None
) -> tuple[str, str | None]:
    """What stands for a constructor of Rust, and the line that works."""
    given = None
    if call is not None and call.args is not None and call.named is not None:
        given = ", ".join([*call.args, *(f"{k}={v}" for k, v in call.named.items())])
    values = [text for text, value in vars(cls).items() if isinstance(value, cls)]
    values += getattr(cls, "variants", {})
    if values:
        several = ", ".join(dict.fromkeys(values))
        known = isinstance(getattr(cls, values[0]), cls)
        first = f"{at}.{values[0]}" if known else f"{at}.{values[0]}(…)"
        if len(several) > 60:  # the first line of an error is to be read at once
            several = ", ".join([*list(dict.fromkeys(values))[:4], "…"])
        return f"its values have names: {several}", first
    home = vars(sys.modules.get(cls.__module__, cls))
    config = home.get(f"{cls.__name__}Config")
    if isinstance(config, type) and "init" in dir(config):
        path, dot, _ = at.rpartition(".")
        make = f"{path}{dot}{config.__name__}"
        takes = inspect.signature(config.init).parameters  # type: ignore[attr-defined]
        device = "device" if "device" in takes else ""
        init = f"{make}({required_arguments(config, given)}).init({device})"
        return f"in burnbook its config makes it: {config.__name__}", init
    if name == "init" and hasattr(cls, "to_json"):
        what = "what the config makes is said in its class"
        return what, "def init(self, device): return …"
    return (
        f"in burnbook this is {cls.__name__}(…)",
        f"{at}({required_arguments(cls, given)})",
    )


def required_arguments(cls: type, given: str | None = None) -> str:
    """The arguments as they were given, or the names of those that have no default."""
    if given is not None:
        return given
    try:  # of the class itself: a metaclass may take anything
        parameters = list(inspect.signature(cls.__init__).parameters.items())[1:]
    except (TypeError, ValueError):
        return "…"
    asked = [
        (f"{name}=…" if each.kind is each.KEYWORD_ONLY else name)
        for name, each in parameters
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    ]
    if asked == ["args"] and cls.__init__ is object.__init__:
        return ""
    return ", ".join(asked)


class FixedName(OtherName):
    """The same for a class whose objects have no names of their own, when it is set."""

    __slots__ = ()

    def __set__(self, instance: Any, value: Any) -> None:
        raise unknown(type(instance).__name__, self.of, self.name)


def answers(of: str, kind: type[OtherName] = OtherName) -> Callable[[C], C]:
    """Let a class answer to the names of a table that it does not have itself."""

    def give(cls: C) -> C:
        for name in tables()[of]:
            if not hasattr(cls, name):
                setattr(cls, name, kind(of, name))
        cls.__dir__ = _listed  # type: ignore[method-assign] # without the answers
        return cls

    return give


class Listed(type):
    """The type of a class whose `dir` leaves out the names that only give answers."""

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if not _answers_only(cls, name)]


class ListedABC(Listed, ABCMeta):
    """The same for classes that others inherit from, with ABC or without."""


# Messages name the type of what was given, and that of a class is `type` to its reader.
Listed.__name__ = ListedABC.__name__ = "type"


def _listed(self: Any) -> list[str]:
    held = getattr(self, "__dict__", {})
    cls = type(self)
    names = object.__dir__(self)
    return [name for name in names if name in held or not _answers_only(cls, name)]


def _answers_only(cls: type, name: str) -> bool:
    found = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)
    return isinstance(found, OtherName)


def _of_functional(module: str, name: str, frame: Any) -> UnknownNameError | None:
    """The error for `nn.functional.relu`: for the name that is read next."""
    if module != "burnbook.nn" or name not in ("functional", "F", "utils"):
        return None
    steps = list(dis.get_instructions(frame.f_code))
    at = next(i for i, step in enumerate(steps) if step.offset == frame.f_lasti)
    path = [name]
    while steps[at + 1].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        at += 1
        path.append(steps[at].argval)
        if steps[at].argval not in ("parametrizations", "parametrize"):
            break
    wanted = path[-1]
    if name == "utils":  # parametrizations.weight_norm and the like
        known = len(path) > 1 and wanted in tables()["burnbook.nn"]
        at_name = ".".join([module, *path[:-1]])
        return unknown(at_name, "burnbook.nn", wanted) if known else None
    if len(path) == 1:
        return None
    for of in ("burnbook.nn", "Tensor"):
        if wanted in tables()[of]:
            return unknown(f"{module}.{name}", of, wanted)
    for home, code in (
        ("burnbook.tensor.activation", f"activation.{wanted}(x)"),
        ("burnbook.tensor.module", f"functional.{wanted}(x)"),
        ("burnbook.tensor", f"x.{wanted}()"),
    ):
        held = sys.modules.get(home)
        held = getattr(held, "Tensor", None) if home == "burnbook.tensor" else held
        if hasattr(held, wanted):
            what, facts = (
                f"in burnbook this is {code.partition('(')[0]}",
                imports_of(code),
            )
            return UnknownNameError(f"{module}.{name}.{wanted}", what, facts, code)
    return None


def module_answers(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module; `from module import name` is answered as well."""

    held = vars(sys.modules[module])
    for name in held.get("__all__", ()):
        found = held.get(name)
        if isinstance(found, type) and found.__module__.startswith("burnbook."):
            answers_to_constructors(found)
            answers_with_near_names(found)
    for act in ON_PACKAGE:
        act(sys.modules[module], held.get("__all__", ()))

    def __getattr__(name: str) -> Any:  # noqa: N807 - the name Python looks for
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
        first_look = frame.f_code.co_name == "_handle_fromlist"
        if name.startswith("__") or first_look or f"{module}.{name}" in sys.modules:
            text = f"module {module!r} has no attribute {name!r}"
            raise AttributeError(text, name=name)
        known = getattr(sys.modules[module], "__all__", ())
        call = call_at(frame, name)
        error = _of_functional(module, name, frame) or unknown(
            module, module, name, known, call
        )
        if opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM":
            raise ImportError(str(error), name=module) from None
        raise error

    return __getattr__
