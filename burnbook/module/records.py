"""From a module to its record, and from a record to a module.

The record has the names of the module: a parameter is (id, elements), a constant None.
Loading compares everything first; what does not fit is listed in one error, and since a
module is never changed but built anew, the old one stays as it was.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from burnbook.core.converters import ANYTHING, TypeSpec
from burnbook.core.errors import RecordError, explain, warn_caller
from burnbook.core.files import PathLike
from burnbook.core.tree import Pytree, like
from burnbook.module.files import files
from burnbook.module.param import Param, ParamId, ParamRecord, leaf
from burnbook.module.releases import Release, changed_since, unwrapped
from burnbook.module.reparameterization import Reparameterized
from burnbook.module.report import LoadReport
from burnbook.module.running import RunningState
from burnbook.module.schema import arranged, schema
from burnbook.module.tree import (
    Tree,
    field_specs,
    is_constant,
    named_arm,
    places,
    spelled,
    walk,
)
from burnbook.tensor import Tensor, TensorData
from burnbook.tensor.qfloat import QFloat


class Choices:
    """How strictly a record is loaded: by default in both directions."""

    partial = False
    unused = False

    def allow_partial(self, on: bool = True) -> Self:
        """The record, of which a module takes what fits and keeps the rest its own."""
        return self._choosing(partial=on)

    def allow_unused(self, on: bool = True) -> Self:
        """The record, of which may be left what the module has no place for."""
        return self._choosing(unused=on)

    def _choosing(self, **chosen: bool) -> Self:
        made = type(self).__new__(type(self))
        if isinstance(self, dict) and isinstance(made, dict):
            made.update(self)
        made.__dict__.update(self.__dict__, **chosen)
        return made


@dataclass(frozen=True)
class Unreadable:
    """What stands in a record for a tensor that cannot be had: why not."""

    why: str


class ModuleRecord(Choices, dict[str, Any]):
    """The record of a module, which remembers the module for formats without names.

    It is a dict, and only that when it is copied or pickled. One that was loaded knows
    no module, but the release of Burn that wrote it, if the file says so.
    """

    def __init__(
        self,
        record: dict[str, Any],
        module: Tree | None = None,
        release: Release = (),
    ):
        super().__init__(record)
        self.module, self.release = module, release

    def save(self, path: PathLike) -> Path:
        """Write it as Burn 0.22 does, in burnpack; returns the file's path.

        Element types stay. The ending of a recorder asks for its format.

        Raises:
            RecordError: `path` names no file, or it cannot be written.
        """
        return files().save(self, path)

    @classmethod
    def load(cls, path: PathLike) -> Any:
        """The record in a file, burnpack if its ending does not say otherwise.

        Raises:
            RecordError: there is no such file, it is damaged or of another format.
        """
        return files().load(path)

    def at_release(self, release: Release) -> Any:
        """The record with the fields that this release of Burn has, in its order."""
        if self.module is None:
            return dict(self)
        return arranged(schema(self.module, release=release), self)

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class LoadedRecord(Choices, dict[str, Any]):
    """What a recorder has read: a dict that knows which release of Burn wrote it."""

    def __init__(self, record: dict[str, Any], release: Release):
        super().__init__(record)
        self.release = release

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def module_record(module: Tree) -> Any:
    """The record of a whole module; None where nothing is in it."""
    record = to_record(module)
    return ModuleRecord(record, module) if isinstance(record, dict) else record


def to_record(value: object, spec: TypeSpec = ANYTHING) -> Any:
    """The record of a module or of a part of one."""
    if (variant := named_arm(value, spec)) is not None:
        name, arm = variant
        return {name: to_record(value, arm)}
    if isinstance(value, Reparameterized):
        name, parts = value.attached.NAME, to_record(value.attached)
        return {"base": to_record(value.stored), name: parts}
    if isinstance(value, Param):
        return ParamRecord(value.id.serialize(), value.to_saved())
    if isinstance(value, Tree):
        record = None
        if value.spread:
            record = None if is_constant(value) else to_record(parts_of(value))
        elif not is_constant(value):
            specs = field_specs(type(value)).items()
            record = {
                spelled(name): to_record(getattr(value, name), h) for name, h in specs
            }
        return _chosen(record, type(value), spec)
    item = spec.item
    if isinstance(value, (list, tuple)):
        specs = places(spec, len(value))
        parts = [to_record(a, b) for a, b in zip(value, specs, strict=True)]
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, dict):
        return {str(key): to_record(part, item) for key, part in value.items()}
    return None


def _chosen(record: Any, cls: type, spec: TypeSpec) -> Any:
    """The record of a module below the name that a union has for it."""
    if not spec.choice:
        return record
    arm = spec.arm(cls)
    inner = record if arm is None else _chosen(record, cls, arm)
    return {spec.variant(cls): inner}


def load_record(module: Any, record: object, partial: bool) -> Any:
    """The module with the values of the record; a RecordError lists what misfits."""
    partial = partial or getattr(record, "partial", False)
    made, loading = _loaded(module, record, partial)
    where = f"load into {type(module).__name__}"
    if partial:
        _warn_of_nothing(where, module, loading)
        return made
    problems = loading.problems
    if getattr(record, "unused", False):  # allowed to be there
        problems = [row for row in problems if row[1] != UNKNOWN]
    if problems:
        raise _misfit(where, module, record, problems, loading.only_params)
    if loading.left_out:
        facts = [(path, LEFT_OUT) for path in loading.left_out]
        what = "the record leaves out what the module has, so it is gone"
        cure = "load_record(record, partial=True) to keep the module's own values"
        warn_caller(explain(where, what, facts, cure))
    return made


def _misfit(
    where: str,
    module: Any,
    record: object,
    problems: list[tuple[str, str]],
    only_params: bool,
) -> RecordError:
    """What does not match, and what to do about it."""
    total = sum(isinstance(leaf, Param) for _, leaf in walk(module))
    count = len(problems)
    what = f"{count} place{'s do' if count > 1 else ' does'} not match"
    if only_params:
        verb = "do" if count > 1 else "does"
        what = f"{count} of {total} parameters {verb} not match"
    cure = _cure_of(problems, module, record)
    return RecordError(where, what, problems, cure)


def _cure_of(problems: list[tuple[str, str]], module: Any, record: Any) -> str:
    if any(text.endswith(TURNED) for _, text in problems):
        return (
            'SafetensorsRecorder(layout="pytorch") if PyTorch wrote the file: '
            "it keeps the weight of a Linear as [d_output, d_input]"
        )
    theirs = [path for path, text in problems if text == UNKNOWN]
    ours = [path for path, text in problems if text.startswith(NOWHERE)]
    if theirs and len(theirs) == len(problems):
        lenient = hasattr(record, "allow_unused")
        how = "record.allow_unused(True)" if lenient else "record, partial=True"
        keep = f"load_record({how}) to leave the rest of the record"
    else:
        keep = "load_record(record, partial=True) to keep the module's own values"
    first = getattr(record, "cure", "the config that the record was made with")
    if hasattr(record, "cure_for"):
        first = record.cure_for(module, ours) or first
    for paths, flag in ((ours, False), (theirs, True)):
        if paths and len(paths) == len(problems) and all(map(_is_bias, paths)):
            first = f"with_bias({flag}) in the config of the layer, as in the file"
    return f"{first}, or {keep}"


def _is_bias(path: str) -> bool:
    return path.rpartition(".")[2] == "bias"


def _warn_of_nothing(where: str, module: Any, loading: "Loading") -> None:
    """Warn where a partial load found nothing that fits."""
    count = sum(1 for _ in _params(module))
    if loading.loaded or not count:
        return
    facts = loading.problems[:MOST_SHOWN]
    facts += [(path, UNKNOWN) for path in loading.passed[:MOST_SHOWN]]
    what = f"0 of {count} parameters loaded, the module keeps all its own values"
    warn_caller(explain(where, what, facts, "the record of such a module"))


def load_partial(module: Any, record: object) -> tuple[Any, LoadReport]:
    """The module with what fits of a record, and a report of the rest."""
    made, loading = _loaded(module, record, True)
    _warn_of_nothing(f"load into {type(module).__name__}", module, loading)
    theirs = [path for path, text in loading.problems if text == UNKNOWN]
    ours = {path: text for path, text in loading.problems if text != UNKNOWN}
    kept = {}
    for path, _ in _params(module):
        if path not in loading.loaded:
            parts = path.split(".")
            places = (".".join(parts[:n]) for n in range(len(parts), -1, -1))
            kept[path] = next((ours[at] for at in places if at in ours), NOWHERE)
    unused = (*theirs, *loading.passed)
    return made, LoadReport(type(module).__name__, tuple(loading.loaded), kept, unused)


def _loaded(module: Any, record: Any, partial: bool) -> tuple[Any, "Loading"]:
    release = getattr(record, "release", ())
    given = record
    if hasattr(record, "for_module"):  # of a format without names
        record = record.for_module(module)
    if record is not None and not isinstance(record, (dict, ParamRecord)):
        raise RecordError(
            f"load into {type(module).__name__}",
            f"{_what(record)} is not a record",
            cure="what recorder.load(path, device) or model.into_record() gives",
        )
    loading = Loading(release, partial)
    made = loading.part(module, record, ANYTHING, "")
    if hasattr(given, "unused_by"):
        unused = given.unused_by(module)
        rows = enumerate(loading.problems)
        loading.problems = [
            (path, given.meant(path, unused if i < MEANT else []))
            if text == NOWHERE
            else (path, text)
            for i, (path, text) in rows
        ]
        for name in unused:
            loading.note(name, UNKNOWN, a_param=False)
    return made, loading


TURNED = ", transposed"
NOWHERE, UNKNOWN = "not in the record", "not in the module"
LEFT_OUT = "left out in the record"
MOST_SHOWN = 4  # names of each sort in a warning
MEANT = 20  # problems for which a name is looked for: each is much work


class Loading:
    """One walk over a module and a record, side by side."""

    def __init__(self, release: Release = (), partial: bool = False) -> None:
        self.release, self.partial = release, partial
        self.problems: list[tuple[str, str]] = []
        self.loaded: dict[str, None] = {}  # paths, in order
        self.passed: list[str] = []  # tensors for what is constant here
        self.left_out: list[str] = []  # parameters that the record says are absent
        self.only_params = True
        self.done: dict[Param, Param] = {}  # tied weights stay tied

    def part(self, value: object, record: object, spec: TypeSpec, path: str) -> Any:
        """The part of the module with what its part of the record holds."""
        if (variant := named_arm(value, spec)) is not None and isinstance(record, dict):
            return self.variant(value, record, *variant, path)
        if isinstance(value, Reparameterized):
            return self.attached(value, record, spec, path)
        if isinstance(value, Param):
            return self.param(value, record, spec, path)
        if is_constant(value):
            return self.constant(value, record, path)
        if isinstance(value, Tensor):
            return value
        if record is None and spec.optional and next(_params(value), None):
            return self.absent(value, path)
        if record is None or record is MISSING:
            for at, _ in _params(value):
                self.note(f"{path}.{at}".strip("."), NOWHERE)
            return value
        if isinstance(value, Tree):
            return self.module(value, record, spec, path)
        return self.container(value, record, spec, path)

    def constant(self, value: Any, record: object, path: str) -> Any:
        """What has no parameters here, whatever the record holds in its place."""
        for at, held in _leaves(record, path):
            if value is None or isinstance(held, ParamRecord):
                self.note(at, UNKNOWN, a_param=False)
            else:
                self.passed.append(at)
        return value

    def absent(self, value: Any, path: str) -> Any:
        """Nothing, as a record of Burn says; loaded in part, the module keeps its own.

        Why: an option that is None in a record was None in the module that wrote it.
        """
        for at, _ in [("", value)] if isinstance(value, Param) else _params(value):
            inner = f"{path}.{at}".strip(".")
            if self.partial:
                self.note(inner, LEFT_OUT)
            else:
                self.left_out.append(inner)
        return value if self.partial else None

    def variant(
        self, value: Any, record: dict[str, Any], name: str, spec: TypeSpec, path: str
    ) -> Any:
        """A list or a parameter that a union has a name for; the record may lack it."""
        theirs, held = next(iter(record.items()), (name, None))
        if (
            len(record) != 1 or theirs.isdecimal()
        ):  # a list of a format without variants
            return self.part(value, record, spec, path)
        if theirs != name:
            return self.note(path, f"record {theirs}, module {name}", value, False)
        return self.part(value, held, spec, path)

    def param(
        self, param: Param, record: object, spec: TypeSpec, path: str
    ) -> Param | None:
        """The parameter with the values and the id of the record."""
        if record is None and spec.optional:
            return self.absent(param, path)
        if record is None or record is MISSING:
            return self.note(path, NOWHERE, param)
        if isinstance(record, Unreadable):
            return self.note(path, record.why, param)
        if isinstance(record, dict) and set(record) == {"id", "param"}:
            record = ParamRecord(record["id"], record["param"])
        if isinstance(record, TensorData):  # a format without ids: ours stays
            record = ParamRecord(param.id.serialize(), record)
        if not isinstance(record, ParamRecord):
            return self.note(path, f"record {_what(record)}, module a parameter", param)
        data: Any = record.param
        if misfit := _misfit_of(param, data):
            return self.note(path, misfit, param)
        try:
            number = ParamId.deserialize(record.id)
        except (RecordError, TypeError, AttributeError):
            return self.note(path, f"its id is {str(record.id)[:40]!r}", param)
        value = Tensor.from_data(data, param.device, param.kind)
        value = param.from_saved(value)
        flag = param.is_require_grad() and not isinstance(data.dtype, QFloat)
        made = _with_value(param, number, leaf(value, flag), flag)
        self.loaded[path] = None
        return self.done.setdefault(param, made)

    def attached(
        self, param: Reparameterized, record: object, spec: TypeSpec, path: str
    ) -> Param | None:
        """A parameter and what is attached; a plain record has the stored one only."""
        if record is None and spec.optional:
            return self.absent(param, path)
        name, base, parts = param.attached.NAME, record, MISSING
        if isinstance(record, dict) and "base" in record:
            base, parts = record["base"], record.get(name, MISSING)
        stored = self.param(param.stored, base, ANYTHING, path)
        attached = self.part(param.attached, parts, ANYTHING, f"{path}.{name}")
        if stored is None:
            return param
        return self.done.setdefault(param, Reparameterized(stored, attached))

    def module(self, value: Tree, record: object, spec: TypeSpec, path: str) -> Any:
        """The module with every field loaded."""
        name = spec.variant(type(value))
        if spec.choice and isinstance(record, dict) and len(record) == 1:
            ((variant, held),) = record.items()
            arm = spec.arm(type(value))
            if variant == name and arm is not None and arm.choice:
                return self.module(value, held, arm, path)
            if variant == name:
                record = held
            elif variant not in map(spelled, field_specs(type(value))):
                return self.note(path, f"record {variant}, module {name}", value, False)
        if value.spread:
            return self.spread(value, record, path)
        if not isinstance(record, dict):
            text = f"record {_what(record)}, module {name}"
            return self.note(path or name, text, value, False)
        record = unwrapped(type(value), record)
        self.warn(value, record, path)
        made = object.__new__(type(value))
        made.__dict__.update(value.__dict__)
        specs = field_specs(type(value))
        for field, inner in specs.items():
            name = spelled(field)
            at = f"{path}.{name}" if path else name
            held = self.needed(value, field, record.get(name, MISSING), at)
            made.__dict__[field] = self.part(getattr(value, field), held, inner, at)
        for field in record:
            if field not in map(spelled, specs):
                self.stranger(record[field], f"{path}.{field}" if path else str(field))
        return made

    def needed(self, value: Tree, field: str, record: object, path: str) -> object:
        """What a record holds for a field; nothing where a module does without it."""
        if getattr(value, field) is None and field in getattr(value, "passed_over", ()):
            self.passed += [at for at, _ in _leaves(record, path)]
            return None
        return record

    def spread(self, value: Tree, record: object, path: str) -> Any:
        """A module whose parts are those of a field, such as Sequential."""
        parts = parts_of(value)
        if isinstance(record, (list, tuple)):  # as a list of layers is recorded
            record = {str(i): held for i, held in enumerate(record)}
        if not isinstance(record, dict):
            text = f"record {_what(record)}, module {type(value).__name__}"
            return self.note(path or type(value).__name__, text, value, False)
        made = object.__new__(type(value))
        made.__dict__.update(value.__dict__)
        at = f"{path}." if path else ""
        made.__dict__[value.spread] = {
            name: self.part(held, record.get(name, MISSING), ANYTHING, at + name)
            for name, held in parts.items()
        }
        for name, held in record.items():
            if name not in parts:
                self.stranger(held, f"{at}{name}")
        return made

    def container(self, value: Any, record: Any, spec: TypeSpec, path: str) -> Any:
        """A list, tuple or dict with every part loaded."""
        item = spec.item
        if isinstance(value, dict):
            known = record if isinstance(record, dict) else {}
            return {
                key: self.part(
                    part, known.get(str(key), MISSING), item, f"{path}.{key}"
                )
                for key, part in value.items()
            }
        if isinstance(record, dict) and all(map(str.isdecimal, record)):
            # A flat format names parts by position and leaves constants out.
            names = [str(place) for place in range(len(value))]
            for key in sorted(record.keys() - set(names)):
                self.stranger(record[key], f"{path}.{key}")
            record = [record.get(name, MISSING) for name in names]
        if not isinstance(record, (list, tuple)) or len(record) != len(value):
            text = f"record {_what(record)}, module {_what(value)}"
            return self.note(path, text, value, False)
        rows = enumerate(zip(value, record, places(spec, len(value)), strict=True))
        parts = [self.part(a, b, inner, f"{path}.{i}") for i, (a, b, inner) in rows]
        return like(value, parts)

    def warn(self, value: Tree, record: dict[str, Any], path: str) -> None:
        """Warn where this release of Burn computed otherwise than the layer does."""
        old = changed_since(value, self.release)
        if old is None or old.field in record:
            return
        name, release = type(value).__name__, ".".join(map(str, self.release[:2]))
        since = ".".join(map(str, old.until))
        setting = f"with_{old.field}({old.value})"
        text = (
            f"load {path or name}: Burn {release} computes a {name} with "
            f"{old.field}={old.value}, this one has {old.field}="
            f"{getattr(value, old.field)}, so with these weights it gives other "
            f"numbers; try: {name}Config(…).{setting}; for a file that burnbook wrote, "
            f"version='{since}.0' on its recorder"
        )
        warn_caller(text)

    def stranger(self, record: object, path: str) -> None:
        """Note the parameters of a part that the module does not have."""
        for at, _ in _leaves(record, path):
            self.note(at, UNKNOWN, a_param=False)

    def note(self, path: str, text: str, own: Any = None, a_param: bool = True) -> Any:
        """Remember a misfit; the module keeps its own part."""
        self.problems.append((path, text))
        self.only_params &= a_param
        return own


class _Missing:
    """Not in the record at all, which is not the same as None."""


MISSING = _Missing()


def parts_of(value: Tree) -> dict[str, Any]:
    """The parts of a module that has those of one field."""
    return getattr(value, value.spread)


def _misfit_of(param: Param, data: Any) -> str:
    """Why the elements of a record do not fit a parameter; "" if they do."""
    if not isinstance(data, TensorData):
        return f"record {_what(data)}, module a tensor"
    ours, theirs = list(param.saved_shape), list(data.shape)
    if ours != theirs:
        turned = TURNED if theirs == ours[::-1] and len(ours) == 2 else ""
        return f"record {theirs}, module {ours}{turned}"
    if data.kind is not param.kind:
        return f"record {data.kind.__name__}, module {param.kind.__name__}"
    return ""


def _with_value(param: Param, number: ParamId, value: Tensor, flag: bool) -> Param:
    """The parameter with the id and the value of a record."""
    trainable = param.is_trainable()
    made = type(param)(number, value, require_grad=flag, trainable=trainable)
    if isinstance(param, RunningState):
        made.is_frozen = param.is_frozen  # type: ignore[attr-defined] # of the same class
    return made


def _leaves(record: object, path: str) -> Iterator[tuple[str, Any]]:
    """Every tensor of a part of a record, with the path to it."""
    for names, held in Pytree({}).leaves(record, (path,)):
        if isinstance(held, (ParamRecord, TensorData)):
            yield ".".join(names), held


def _params(value: object) -> Iterator[tuple[str, Param]]:
    return ((path, leaf) for path, leaf in walk(value) if isinstance(leaf, Param))


def _what(value: object) -> str:
    if isinstance(value, (ParamRecord, TensorData)):
        return "a tensor"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"a part with {', '.join(map(str, list(value)[:4])) or 'nothing'}"
    return "nothing" if value is None else type(value).__name__
