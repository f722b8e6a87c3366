"""Fields are checked when a module is made.

Rust knows the type of every field before a program runs. Here the annotations say it,
and each module is compared with them once: when its class is called, or `replace` is.
Modules that come from modules (a step of an optimizer, `map`, `valid`) are not compared
again, so the check costs nothing in training. Nothing is assigned after that.
"""

import collections.abc
import dataclasses
import difflib
import functools
import inspect
import itertools
import numbers
import sys
import types
from collections.abc import Iterator
from typing import Any

from burnbook.core.converters import TypeSpec
from burnbook.core.errors import ConfigError, FieldError, FrozenError
from burnbook.core.other_names import unknown
from burnbook.module.param import Param
from burnbook.module.tree import Tree, field_specs, has_place, spelled
from burnbook.tensor import Tensor
from burnbook.tensor.spec import TensorSpec

Misfit = tuple[str, Any, TypeSpec]  # where, the value, and what should stand there

NUMBERS: dict[type, type] = {
    int: numbers.Integral,
    float: numbers.Real,
    complex: numbers.Complex,
    bool: numbers.Integral,
}


def fits(spec: TypeSpec, value: object) -> bool:
    """Whether the value may stand in a field with this annotation."""
    if spec.form == "class":
        return _is_instance(spec, value)
    if spec.form == "union":
        return any(fits(arm, value) for arm in spec.parts)
    if spec.contains:
        held = _held(spec, value)
        return held is not None and all(map(fits, spec.places(len(held)), held))
    if spec.form == "none":
        return value is None
    if spec.form == "literal":
        return any(value is one or _equal(value, one) for one in spec.values)
    if spec.form == "name":  # only its config is known to be wrong
        return type(value).__name__ != f"{spec.annotation}Config"
    if isinstance(spec.annotation, TensorSpec):
        return isinstance(value, spec.annotation)  # type: ignore[arg-type] # asked as a class
    return spec.kind is None or _is_instance(spec, value)


def misfits(spec: TypeSpec, value: object, at: str) -> Iterator[Misfit]:
    """The parts of a value that do not fit its annotation."""
    if fits(spec, value):
        return
    likely = [arm for arm in spec.meant if arm.contains]
    held = _held(likely[0], value) if len(likely) == 1 else None
    if held is None:
        yield at, value, spec
        return
    names = (
        list(value) if isinstance(value, collections.abc.Mapping) else range(len(held))
    )
    rows = zip(names, likely[0].places(len(held)), held, strict=True)
    for name, wanted, part in rows:
        yield from misfits(wanted, part, f"{at}[{name!r}]")


def _held(spec: TypeSpec, value: Any) -> collections.abc.Collection[object] | None:
    """What such a container holds; None where the value is no such container.

    Lists and tuples stand in for each other.
    """
    if spec.form == "dict":
        return value.values() if isinstance(value, collections.abc.Mapping) else None
    either = spec.kind in (list, tuple)
    if not isinstance(value, (list, tuple) if either else spec.kind):
        return None
    return value if spec.form == "items" or len(value) == len(spec.parts) else None


def _is_instance(spec: TypeSpec, value: Any) -> bool:
    """Whether it is an instance of the class, or of one of that name made again.

    A number may be one of NumPy's, whose bool is no number to NumPy. A lazy parameter
    of unknown shape is not drawn to find out.
    """
    if spec.kind in NUMBERS:
        kind, allowed = type(value), NUMBERS[spec.kind]
        plain = kind is spec.kind or isinstance(value, allowed)
        return plain or kind.__name__.startswith("bool")
    try:
        if not isinstance(value, spec.kind) and not _again(spec.kind, type(value)):
            return False
    except TypeError:  # a Protocol that says nothing at run time
        return True
    inside = _tensor_spec(spec)
    if inside is None or not value.is_shaped:
        return True
    return inside.allows(len(value.shape), value.kind, value.device)


def _again(cls: type, found: type) -> bool:
    """Whether a notebook's cell or a reload has made the class anew."""
    name = cls.__module__, cls.__qualname__
    return any((c.__module__, c.__qualname__) == name for c in found.__mro__)


def _tensor_spec(spec: TypeSpec) -> TensorSpec | None:
    """The Tensor[2] of Param[Tensor[2]]."""
    inside = spec.parts[0].annotation if spec.parts and spec.of_class(Param) else None
    return inside if isinstance(inside, TensorSpec) else None


@functools.cache
def wanted_fields(cls: type) -> tuple[tuple[str, TypeSpec, Any], ...]:
    """Name, what is accepted and the default of each field of a module class."""
    defaults = {field.name: field.default for field in dataclasses.fields(cls)}
    return tuple((name, s, defaults[name]) for name, s in field_specs(cls).items())


# Modules whose constructor is running: only to these values are assigned.
_MAKING: set[int] = set()


def guard_constructor(cls: type) -> None:
    """Let the constructor of a module class compare the fields when it has filled them.

    Why a set of ids: the module itself keeps no mark, and one that is built anew from
    another never passes here.
    """
    make = cls.__init__

    @functools.wraps(make)
    def init(self: Any, *args: object, **named: object) -> None:
        number = id(self)
        if number in _MAKING:  # of a class below: its own constructor goes on
            make(self, *args, **named)
            return
        _MAKING.add(number)
        try:
            try:
                make(self, *args, **named)
            except FieldError as error:
                if error.where == type(self).__name__:
                    _refuse_sizes(type(self), args, named)
                raise
        finally:
            _MAKING.discard(number)
        if not all(
            fits(accepts, self.__dict__[name]) if name in self.__dict__ else False
            for name, accepts, _ in wanted_fields(type(self))
        ):
            check_fields(self, args, named)

    cls.__init__ = init


def check_fields(
    module: Any, args: tuple[Any, ...] = (), named: dict[str, Any] | None = None
) -> None:
    """Raise a FieldError if a field of a module is not what its annotation says."""
    cls, found = type(module), []
    for name, accepts, default in wanted_fields(cls):
        value = module.__dict__.get(name, dataclasses.MISSING)
        if value is dataclasses.MISSING:
            if not hasattr(cls, name):
                raise _never_set(cls, name)
        elif value is not default:
            found += misfits(accepts, value, name)
    if not found:
        return
    facts = [(at, f"{_given(v)}, must be {w.text()}") for at, v, w in found]
    turned = _turned(found)
    if turned is not None:
        names = " and ".join(at for at, _, _ in found[:-1]), found[-1][0]
        verb = "swapped" if len(found) == 2 else "in another order"
        what = f"are {' and '.join(names)} {verb}?"
        first = ", ".join(f"{at}=…" for at, _, _ in found)
        raise FieldError(cls.__name__, what, facts, f"{cls.__name__}({first}) by name")
    at, value, accepts = found[0]
    what = f"this must be {_article(accepts.text())}, not {_given(value, short=True)}"
    if (args or named) and not _may_be_sizes(accepts):
        _refuse_sizes(cls, args, named or {})
    cure = _cure(at, value, accepts)
    facts = facts[1:] if len(found) > 1 else _details(value)
    raise FieldError(f"{cls.__name__}.{at}", what, facts, cure)


def refuse_change(
    module: Any, name: str, value: object = None, verb: str = "set"
) -> None:
    """Raise unless the constructor of the module is running, or Python marks it."""
    if id(module) in _MAKING or (name.startswith("__") and name.endswith("__")):
        return
    cls = type(module).__name__
    fields = list(field_specs(type(module)))
    where = f"{cls}.{name}"
    what = "a module never changes in place"
    if name in fields:
        kind = isinstance(value, Tensor) and isinstance(module.__dict__[name], Param)
        new = f"module.{name}.map(lambda _: …)" if kind else "…"
        cure = f"module = module.replace({name}={new}), a changed copy"
        if verb == "delete":
            cure = f"module = module.replace({name}=None), where None is allowed"
        raise FrozenError(where, what, cure=cure)
    if name == "requires_grad":
        raise unknown(cls, "Module", name)
    near = difflib.get_close_matches(name, fields, 1)
    facts = [("fields", ", ".join(fields) or "none")]
    cure = f"a field: the line `{name}: {type(value).__name__}` in the class"
    cure = f"module = module.replace({near[0]}=…)" if near else cure
    raise FrozenError(where, f"{what}, and {name} is not a field", facts, cure)


def known_fields(module: Any, names: collections.abc.Iterable[str]) -> dict[str, str]:
    """The fields that these names mean; a FieldError for one that is none."""
    cls = type(module)
    known = {spelled(name): name for name in field_specs(cls)}
    known |= {name: name for name in known.values()}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            facts = [("fields", ", ".join(field_specs(cls)) or "none")]
            cure = f"{near[0]}=…" if near else None
            what = f"{name} is not one of its fields"
            raise FieldError(f"{cls.__name__}.replace", what, facts, cure)
    return known


def check_settings(before: Any, after: Any) -> None:
    """Raise for a setting that the config of a layer refuses: `replace(prob=1.5)`.

    The config is the one of the same name as the class; what it refuses in `before`
    already is not asked again.
    """
    config = config_of(type(before))
    if config is None or not hasattr(config, "__dataclass_fields__"):
        return
    refused = _refusal(config, after)
    if refused is not None and str(refused) != str(_refusal(config, before)):
        refused.where = f"{type(before).__name__}.replace"
        raise refused from None


def _refusal(config: type, module: Any) -> ConfigError | None:
    """What a config says about the settings of a layer that it could have made."""
    made = object.__new__(config)
    rows = getattr(type(module), "shown", None)
    computed = dict(row for row in rows or () if isinstance(row, tuple))
    for field in dataclasses.fields(config):  # type: ignore[arg-type] # a dataclass
        known = (field.name, field.name.removesuffix("s"))  # strides: stride
        held = next((module.__dict__[n] for n in known if n in module.__dict__), None)
        if held is None or isinstance(held, (Tree, Param, Tensor)):
            given = None if field.default is dataclasses.MISSING else field.default
            held = computed.get(field.name, lambda _, given=given: given)(module)
        object.__setattr__(made, field.name, held)
    try:
        made.validate()
    except ConfigError as error:
        return error
    except Exception:  # a setting that the layer does not keep: nothing is known
        return None
    return None


def _never_set(cls: type, name: str) -> FieldError:
    what = f"its constructor has set no {name}"
    cure = f"self.{name} = … in __init__, or no __init__ and {cls.__name__}({name}=…)"
    return FieldError(cls.__name__, what, cure=cure)


def _turned(found: list[Misfit]) -> list[Misfit] | None:
    """The misfits with their values in the order in which all fit, if there is one."""
    if not 2 <= len(found) <= 5 or any("[" in at for at, _, _ in found):
        return None
    for values in itertools.permutations([value for _, value, _ in found]):
        rows = [(at, v, w) for (at, _, w), v in zip(found, values, strict=True)]
        if all(fits(accepts, value) for _, value, accepts in rows):
            return rows
    return None


def _cure(at: str, value: object, accepts: TypeSpec) -> str | None:
    """How to make of the value what the field wants."""
    arms = accepts.meant
    param = next((arm for arm in arms if arm.of_class(Param)), None)
    if value is None:
        field = at.partition("[")[0]
        return f"a value, or `{field}: {accepts.text()} | None` in the class"
    if param is not None and not isinstance(value, Param):
        if isinstance(value, Tensor):
            return f"{param.kind.__name__}.from_tensor(…), which is learned and saved"
        return f"{param.kind.__name__}.from_data(…, device)"
    if param is not None and _tensor_spec(param) is not None:
        return f"a value of that shape, or `{at}: {param.kind.__name__}` for every rank"
    if isinstance(value, Param) and any("Tensor" in arm.text() for arm in arms):
        return f"`{at}: Param` in the class, or param.val() for a constant"
    if is_config(value):
        return f"{type(value).__name__}(…){_init_call(type(value))}"
    if isinstance(value, type):
        config = config_of(value)
        made = f"{config.__name__}(…){_init_call(config)}" if config else ""
        return made or f"{value.__name__}()"
    if any(
        arm.form == "items" and arm.contains and fits(arm.item, value) for arm in arms
    ):
        return f"{at}=[…]"
    if inspect.isgenerator(value):
        return "list(…) of it: a generator can be read only once"
    return None


def _may_be_sizes(accepts: TypeSpec) -> bool:
    """Whether a field takes numbers or several values, as a config's may."""
    several = accepts.contains and accepts.form != "dict"
    return several or accepts.kind in NUMBERS


def is_config(value: object) -> bool:
    """Whether a value looks like a config: frozen fields and an `init`."""
    cls = type(value)
    if isinstance(value, Tree) or not dataclasses.is_dataclass(cls):
        return False
    return hasattr(cls, "init") and hasattr(cls, "to_json")


def config_of(cls: type) -> Any:
    """The config that makes modules of a class, by its name; or None."""
    scope = vars(sys.modules.get(cls.__module__, types))
    config = scope.get(f"{cls.__name__}Config")
    return config if isinstance(config, type) and hasattr(config, "init") else None


def _refuse_sizes(cls: type, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Raise for `nn.Linear(3, 2)`: sizes, where a layer takes its finished parts."""
    config = config_of(cls)
    given = (*args, *named.values())
    parts = (Tree, Param, Tensor)
    if config is None or any(isinstance(v, parts) or is_config(v) for v in given):
        return
    try:
        config(*args, **named)
        shown = [repr(value) for value in args]
        shown += [f"{name}={value!r}" for name, value in named.items()]
    except Exception:  # whatever it says: these are not its arguments
        fields = inspect.signature(config).parameters.values()
        shown = [f.name for f in fields if f.default is f.empty]
    name = f"nn.{config.__name__}" if _is_ours(cls) else config.__name__
    kind = "sizes" if has_place(cls) else "settings"
    what = f"{kind} go into its config; {cls.__name__}(…) itself takes finished parts"
    facts = [("fields", ", ".join(field_specs(cls)))]
    cure = f"{name}({', '.join(shown)}){_init_call(config)}"
    raise FieldError(cls.__name__, what, facts, cure) from None


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("burnbook.nn")


def _init_call(config: type) -> str:
    """`.init(device)`, or `.init()` of what needs no device."""
    try:
        takes = list(inspect.signature(config.init).parameters)[1:]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        takes = ["device"]
    return f".init({'device' if takes else ''})"


def _details(value: object) -> list[tuple[str, str]]:
    if isinstance(value, (Param, Tensor)):
        return [("given", _given(value))]
    return []


def _given(value: object, short: bool = False) -> str:
    """What stands in the field, in a few words."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, (Param, Tensor)):
        kind, sizes = value.kind.__name__, list(value.shape)
        name = "Param" if isinstance(value, Param) else "Tensor"
        shape = f"rank {len(sizes)}" if short else f"{kind} {sizes}"
        return f"{_article(name)} of {shape}" if short else f"{name} {shape}"
    if isinstance(value, (int, float, str)):
        return repr(value)[:40]
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return _article(type(value).__name__)


def _article(text: str) -> str:
    sounds = text[:1].lower() in "aeio" or text.startswith("nd")
    return f"an {text}" if sounds else f"a {text}"


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)
