"""Every public function and constructor, called with something of another sort.

`fresh_calls.txt` has a right call of every public name. While its rows run, the calls
of all public functions, methods and constructors are noted with their arguments; what
no row calls is given values by its annotations. Then one argument at a time is replaced
by an object of another sort: an array, a list, a text, a number, None, a class, a
config, a tensor of another kind.
"""

from __future__ import annotations

import collections
import collections.abc as abc
import contextlib
import copy
import importlib
import inspect
import io
import random
import signal
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.support.namespaces import packages

ROOT = Path(__file__).resolve().parents[2]
OURS = ("burnbook", "burnbook_widgets")
SECONDS = 30  # for one call, also where the machine is busy or a name is looked up


#: Files that readers import from, besides packages.
FILES = {"burnbook": ["burnbook.tensor.quantization"], "burnbook_widgets": []}
#: Public names of packages that have no list of them.
MORE = {"burnbook.program": ("capture", "captured", "capture_training")}


class Target(NamedTuple):
    """A public function, method or constructor.

    name: as in `burnbook.train.Learner.fit`. owner: the class of a method.
    """

    name: str
    function: Callable[..., Any]
    owner: type | None
    attr: str

    @property
    def code(self) -> types.CodeType | None:
        return getattr(unwrapped(self.function), "__code__", None)


class Outcome(NamedTuple):
    """What a call with a wrong argument has come to.

    how: "ours", an error of the library; "raw", one of Python's; "silent", none.
    """

    target: str
    parameter: str
    sort: str
    how: str
    text: str


def unwrapped(function: Any) -> Any:
    """The function that a wrapper is around; of an op its method, not its formula."""
    return inspect.unwrap(function, stop=lambda f: hasattr(f, "__signature__"))


def targets() -> dict[str, Target]:
    """All that is public, once each, by its name."""
    found: dict[str, Target] = {}
    for root, top in ((ROOT, "burnbook"), (ROOT / "widgets", "burnbook_widgets")):
        for package in [*packages(root, top), *FILES[top]]:
            module = importlib.import_module(package)
            for name in getattr(module, "__all__", MORE.get(package, ())):
                for target in _of_name(package, name, getattr(module, name)):
                    before = found.get(target.name)
                    if before is None or _is_above(target.owner, before.owner):
                        found[target.name] = target
    return found


def _is_above(cls: type | None, other: type | None) -> bool:
    return cls is not None and other is not None and issubclass(other, cls)


def _of_name(package: str, name: str, held: Any) -> Iterator[Target]:
    if isinstance(held, types.FunctionType):
        yield Target(f"{package}.{name}", held, None, name)
    if not isinstance(held, type):
        return
    for base in held.__mro__:
        if base.__module__.partition(".")[0] not in OURS:
            continue
        if getattr(base, "_is_protocol", False) or issubclass(base, Exception):
            continue
        for attr, member in vars(base).items():
            inner = getattr(member, "__func__", member)
            if not isinstance(inner, types.FunctionType) or isinstance(
                member, property
            ):
                continue
            if attr.startswith("_") and attr != "__init__":
                continue
            if base.__name__ == "QuantizedTensor" and hasattr(base.__base__, attr):
                continue  # the same by another way
            name_ = base.__name__ if attr == "__init__" else f"{base.__name__}.{attr}"
            yield Target(f"{base.__module__}.{name_}", inner, held, attr)


# right calls


def noted(found: dict[str, Target], only: str = "") -> dict[str, dict[str, Any]]:
    """The arguments of a right call of each target that the rows of the table call."""
    from tests.support.fresh_calls import rows
    from tests.support.fresh_tools import run

    several = collections.Counter(target.code for target in found.values())
    codes = {t.code: t for t in found.values() if several[t.code] == 1}
    calls: dict[str, dict[str, Any]] = {}

    def look(frame: types.FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        target = codes.get(frame.f_code)
        if target is not None and target.name not in calls:
            calls[target.name] = dict(frame.f_locals)

    for row in rows():
        if not row.startswith(only):
            continue
        sys.setprofile(look)
        try:
            with quiet():
                run(row, "plain", "small")
        except Exception:
            pass
        finally:
            sys.setprofile(None)
    return calls


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing is printed, and nothing is warned of."""
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            yield


class Values:
    """Something for each annotation: of the calls that were noted, or made."""

    def __init__(self, calls: dict[str, dict[str, Any]]):
        from burnbook.backend import Numpy
        from burnbook.nn import LinearConfig
        from burnbook.tensor import Float, Tensor

        self.trying: set[type] = set()
        self.device = Numpy(compiled=False)
        self.pool: dict[type, Any] = {}
        for call in calls.values():
            for value in call.values():
                self.pool.setdefault(type(value), value)
        self.pool |= {
            int: 2,
            float: 0.5,
            bool: True,
            str: "x",
            Tensor: Tensor.ones([2, 3], self.device),
            type(Float): Float,
        }
        layer = LinearConfig(3, 2).init(self.device)
        self.pool[type(layer)] = layer

    def of(self, spec: Any, default: Any) -> Any:
        """A value that an annotation means."""
        from burnbook.core.arguments import fits

        if default is not inspect.Parameter.empty:
            return default
        for part in spec.meant or (spec,):
            found = self._of(part)
            if found is not NOTHING and fits(found, spec):
                return found
        return self.pool[int] if spec.form == "any" else None

    def _of(self, spec: Any) -> Any:
        match spec.form:
            case "none":
                return None
            case "literal":
                return spec.values[0]
            case "tuple":
                return tuple(self._of(part) for part in spec.parts)
            case "items" if spec.kind.__module__.partition(".")[0] not in OURS:
                return [self._of(spec.item)] * 2 if spec.contains else [1, 2]
            case "dict":
                return {}
            case _:
                return self._of_class(spec.kind)

    def _of_class(self, kind: Any) -> Any:
        from burnbook.backend.base import Backend

        if kind is abc.Callable:
            return lambda *args, **named: args[0] if args else None
        if kind is np.ndarray:
            return np.ones((2, 3), np.float32)
        if kind in self.pool:
            return self.pool[kind]
        if not isinstance(kind, type):
            return NOTHING
        if issubclass(kind, Path) or kind.__name__ == "PathLike":
            return Path("made")
        if kind is Backend:
            return self.device
        with contextlib.suppress(TypeError):
            for held in list(self.pool.values()):
                if isinstance(held, kind):
                    return held
        return self.made(kind)

    def made(self, kind: type) -> Any:
        """An object of a class, by values for its constructor."""
        from burnbook.core.arguments import signature_of

        if kind.__module__.partition(".")[0] not in OURS or kind in self.trying:
            return NOTHING
        self.trying.add(kind)
        try:
            places = signature_of(kind.__init__).places[1:]
            made = kind(*[self.of(p.spec, p.default) for p in places])
            self.pool[kind] = made
            return made
        except Exception:
            return NOTHING
        finally:
            self.trying.discard(kind)


NOTHING = object()


def sorts(values: Values) -> dict[str, Any]:
    """Objects of the sorts that people confuse."""
    from burnbook.nn import LinearConfig
    from burnbook.tensor import Int, Tensor

    return {
        "array": np.ones((2, 3), np.float32),
        "list": ["a", 1.5],
        "text": "nothing of that name",
        "number": 2.5,
        "None": None,
        "class": LinearConfig,
        "config": LinearConfig(3, 2),
        "module": LinearConfig(3, 2).init(values.device),
        "ints": Tensor.from_data([[1, 2]], values.device, Int),
        "dtype": np.float32,
        "dots": ...,
    }


# wrong calls

#: What goes on after the call, in a thread or when it is awaited; `fit` is called.
LEFT_OUT = {
    "burnbook.train.learner.Learner.start",
    "burnbook.train.learner.Learner.fit_async",
}


class TooLong(BaseException):
    """A call did not end."""


def _alarm(*_: object) -> None:
    raise TooLong


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what takes longer."""
    before = signal.signal(signal.SIGALRM, _alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def sweep(
    found: dict[str, Target],
    calls: dict[str, dict[str, Any]],
    values: Values,
    chosen: Callable[[str], bool] = lambda _: True,
) -> Iterator[Outcome]:
    """Call each target with one wrong argument at a time."""
    wrong = sorts(values)
    for name, target in found.items():
        if not chosen(name) or name in LEFT_OUT:
            continue
        for parameter, sort, call in _calls(target, calls.get(name), values, wrong):
            how, text = _tried(call)
            yield Outcome(name, parameter, sort, how, text)


def _calls(
    target: Target, call: dict[str, Any] | None, values: Values, wrong: dict[str, Any]
) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    from burnbook.core.arguments import fits, signature_of

    try:
        signature = signature_of(target.function)
    except (ValueError, TypeError):
        return
    places = list(signature.places)
    own = bool(places) and places[0].name in ("self", "cls")
    this = None
    if own:
        first = places.pop(0).name
        this = _this(target, call, values, first)
        if this is NOTHING:
            return
    try:
        function = _bound(target, this)
    except AttributeError:  # a field of the same name
        return
    takes = [
        *places,
        *(p for p in signature.named.values() if p not in signature.places),
    ]
    right = {}
    for p in takes:
        given = (call or {}).get(p.name, NOTHING)
        right[p.name] = given if given is not NOTHING else values.of(p.spec, p.default)
    for p in takes:
        for sort, value in wrong.items():
            if value is p.default or fits(value, p.spec):
                continue
            given = {**right, p.name: value}
            yield p.name, sort, lambda given=given: function(**given)


def _this(
    target: Target, call: dict[str, Any] | None, values: Values, name: str
) -> Any:
    if name == "cls":
        return target.owner
    if target.attr == "__init__":
        made = (call or {}).get("self")
        return type(made) if made is not None else target.owner
    if call is not None and hasattr(type(call["self"]), target.attr):
        return call["self"]
    found = next((v for v in values.pool.values() if isinstance(v, target.owner)), None)
    if found is None and target.owner is not None:
        found = values.made(target.owner)
    return NOTHING if found is None else found


def _bound(target: Target, this: Any) -> Callable[..., Any]:
    if this is None:
        home: Any = target.owner or sys.modules[target.name.rpartition(".")[0]]
        return getattr(home, target.attr)
    if target.attr == "__init__":
        return this
    with contextlib.suppress(Exception):
        this = this if isinstance(this, type) else copy.copy(this)
    return getattr(this, target.attr)


def _tried(call: Callable[[], Any]) -> tuple[str, str]:
    from burnbook.core.errors import BurnbookError

    try:
        with quiet(), limited(SECONDS):
            call()
    except BurnbookError as error:
        return "ours", str(error)
    except TooLong:
        return "endless", ""
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        file = trace.tb_frame.f_code.co_filename if trace else ""
        at = f"{file.rpartition('burnbook/')[2]}:{trace.tb_lineno if trace else 0}"
        return "raw", f"{type(error).__name__}: {error} @ {at}"
    return "silent", ""


def main() -> None:
    """Print what has come of every call: `python -m tests.support.wrong_arguments`."""
    import json
    import os

    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    if os.environ.get("BARE"):
        import burnbook.core.other_names as names

        names.checks_arguments = lambda *_: None
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["BURNBOOK_CACHE"] = folder
        found = targets()
        calls = noted(found)
        values = Values(calls)
        sys.stderr.write(f"{len(found)} targets, {len(calls)} noted\n")
        rows = list(sweep(found, calls, values, lambda n: pattern in n))
    count = collections.Counter(row.how for row in rows)
    sys.stderr.write(
        f"{len(rows)} calls of {len({r.target for r in rows})}: {dict(count)}\n"
    )
    out = Path(sys.argv[2] if len(sys.argv) > 2 else "/dev/stdout")
    out.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    random.seed(0)
    main()
