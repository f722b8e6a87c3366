"""What was given, what was wanted, and how the one becomes the other.

Asked only after an argument has not fitted. The text of a cure is what a reader can
type: it names what was given by what it is, as nobody knows its name here.
"""

import dataclasses
import inspect
import os
import re
from collections import abc
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from burnbook.core.call_source import texts_of_call
from burnbook.core.converters import TypeSpec, resolved
from burnbook.core.dtypes import KindType
from burnbook.core.held_tensors import cure_for_holder, is_tensor
from burnbook.core.other_names import closest, home_of, required_arguments

LONGEST = 40  # letters of a value that are shown
FLOATS = ("float16", "float32", "float64", "float", "half", "double", "bfloat16")
SHORT = {"f16": "float16", "f32": "float32", "f64": "float64"}


def given(value: object) -> str:
    """What an argument is, in a few words."""
    if value is None:
        return "None"
    if isinstance(value, KindType):
        return f"the kind {value.__name__}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array of shape {list(value.shape)}"
    if is_tensor(value):
        held: Any = value
        return f"a tensor {held.kind.__name__} {list(held.shape)}"
    name = type(value).__name__
    if isinstance(value, (bool, int, float, str, bytes)):
        return f"{name} {_short(repr(value))}"
    if isinstance(value, (list, tuple, dict, set)):
        return f"{name} {_short(repr(value))}" if _is_plain(value) else f"a {name}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    return name


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _is_plain(value: Any) -> bool:
    return all(isinstance(item, (bool, int, float, str)) for item in value)


def is_config(value: object) -> bool:
    """Whether it is a config that makes something by `init`."""
    return hasattr(type(value), "to_json") and callable(_own(type(value), "init"))


def _own(cls: type, name: str) -> Any:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


WORDS: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "a text",
    os.PathLike: "a path",
    np.ndarray: "a NumPy array",
    abc.Callable: "a function",
    type: "a class",
    KindType: "Float, Int or Bool",
}
OF_OURS = {"Tensor": "a tensor", "Backend": "a device", "Path": "a path"}


def wanted(spec: TypeSpec) -> str:
    """What an annotation means, in a few words: "a device or None"."""
    if spec.form == "union":
        parts = dict.fromkeys(wanted(part) for part in spec.parts)
        found = [each for each in parts if each != "None"]
        if "a path" in found and "a text" in found:
            found.remove("a text")
        if "a number" in found and "a whole number" in found:
            found.remove("a whole number")
        if len(found) > 4:
            found = [*found[:3], "…"]
        return " or ".join([*found, *(["None"] if "None" in parts else [])])
    if spec.form == "none":
        return "None"
    if spec.form == "literal":
        return " or ".join(map(repr, spec.values))
    if spec.kind in WORDS:
        return WORDS[spec.kind]
    ours = isinstance(spec.kind, type) and _is_ours(spec.kind)
    if spec.form in ("items", "tuple", "dict") and not ours:
        return _of_items(spec)
    name = getattr(spec.kind, "__name__", spec.text())
    return OF_OURS.get(name, f"{_article(name)} {name}")


def _article(name: str) -> str:
    return "an" if name[:1] in "AEIOUaeio" else "a"


PLURALS = {
    "a tensor": "tensors",
    "a text": "texts",
    "a number": "numbers",
    "a whole number": "whole numbers",
    "a device": "devices",
}


def _of_items(spec: TypeSpec) -> str:
    if spec.form == "dict":
        return "a dict"
    if spec.form == "tuple":
        return f"a tuple of {len(spec.arms)}"
    if not spec.contains or spec.item.form == "any":
        return "a list"
    inner = wanted(spec.item)
    plural = PLURALS.get(inner) or inner.partition(" ")[2] or inner
    return f"a list of {plural}"


Cure = Callable[[Any, TypeSpec, str], str | None]


def cure_of(value: object, spec: TypeSpec, where: str) -> str | None:
    """The cure for a value that is not what was wanted; None where none is known."""
    arms = spec.meant
    for look in LOOKS:
        for arm in arms:
            found = look(value, arm, where)
            if found:
                return found
    return None


def _name(arm: TypeSpec) -> str:
    return getattr(arm.kind, "__name__", "")


def for_kind(value: object, arm: TypeSpec, where: str) -> str | None:
    """A dtype where a kind belongs: the kind, or a device of that element type."""
    if arm.kind is not KindType:
        return None
    name = str(getattr(value, "__name__", value)).rpartition(".")[2].lower()
    name = SHORT.get(name, name)
    if name in ("float16", "float32", "float64"):
        return f'Float; for {name} a device of that type: Numpy("{_short_of(name)}")'
    if name in FLOATS:
        return "Float"
    if name.startswith("bool"):
        return "Bool"
    if name.startswith(("int", "uint", "long", "i8", "i16", "i32", "i64", "u8")):
        return "Int"
    return "Float, Int or Bool"


def _short_of(name: str) -> str:
    return next(short for short, long in SHORT.items() if long == name)


def for_class(value: object, arm: TypeSpec, where: str) -> str | None:
    """A class in place of an object of it: the call that makes one."""
    if not isinstance(value, type) or not isinstance(arm.kind, type):
        return None
    if isinstance(value, KindType) or not _is_below(value, arm.kind):
        return _for_config_class(value, arm)
    return f"{value.__name__}({required(value)})"


def _for_config_class(value: type, arm: TypeSpec) -> str | None:
    """The class of a config in place of what it makes."""
    made = made_by_config(value)
    if made is None or not _is_below(made, arm.kind):
        return None
    return f"{value.__name__}({required(value)}){init_of(value)}"


def _is_below(cls: object, kind: object) -> bool:
    try:
        return isinstance(cls, type) and issubclass(cls, kind)  # type: ignore[arg-type]
    except TypeError:  # a protocol
        return False


def made_by_config(config: type) -> type | None:
    """What a config makes, by the annotation of its `init`."""
    init = _own(config, "init")
    if init is None or not (hasattr(config, "to_json") or hasattr(config, "variants")):
        return None
    inner = inspect.unwrap(init) if callable(init) else None
    found = getattr(inner, "__annotations__", {}).get("return")
    made = resolved(inner, found) if inner is not None else None
    return made if isinstance(made, type) else None


def init_of(config: type) -> str:
    """The call of the `init` of a config: ".init(device)" or ".init()"."""
    takes = inspect.signature(_own(config, "init")).parameters
    return ".init(device)" if "device" in takes else ".init()"


def for_config(value: object, arm: TypeSpec, where: str) -> str | None:
    """A config in place of what it makes."""
    if isinstance(value, type) or not is_config(value):
        return None
    made = made_by_config(type(value))
    if made and not (_is_below(made, arm.kind) or _is_protocol(arm.kind)):
        return None
    return f"{type(value).__name__}(…){init_of(type(value))}"


def for_holder(value: object, arm: TypeSpec, where: str) -> str | None:
    """An object with tensors in place of one of them."""
    return cure_for_holder(value, "x") if _name(arm) == "Tensor" else None


def for_input(value: object, arm: TypeSpec, where: str) -> str | None:
    """A tensor in place of the object that holds the inputs of a layer."""
    if not is_tensor(value) or not dataclasses.is_dataclass(arm.kind):
        return None
    kind: Any = arm.kind
    if "," not in (asked := required(kind)):
        return f"{kind.__name__}({'x' if asked else ''})"
    for name, held in vars(kind).items():
        takes = isinstance(held, classmethod) and inspect.signature(held.__func__)
        if takes and len(takes.parameters) == 2:
            return f"{kind.__name__}.{name}(x), or {kind.__name__}({asked})"
    return None


def for_array(value: object, arm: TypeSpec, where: str) -> str | None:
    """NumPy arrays and lists where a tensor, a dataset or a loader belongs."""
    plain = isinstance(value, (np.ndarray, list, tuple))
    if _name(arm) == "Tensor":
        if isinstance(value, np.ndarray):
            return "Tensor.from_numpy(array, device)"
        if isinstance(value, (list, tuple)):
            return "Tensor.from_data(values, device)"
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return f"Tensor.from_data([{value!r}], device)"
    if _name(arm) == "DataLoader" and (plain or is_tensor(value)):
        return "DataLoaderBuilder().batch_size(32).build((inputs, targets))"
    if _name(arm) == "Dataset" and (plain or is_tensor(value)):
        return "as_dataset((inputs, targets)), of NumPy arrays"
    return None


def for_tensor(value: object, arm: TypeSpec, where: str) -> str | None:
    """A tensor where a number, a list or an array belongs."""
    if not is_tensor(value):
        return None
    if where in ("Tensor.cat", "Tensor.stack"):
        return joined(where)
    if arm.kind in (int, float, bool):
        return "x.into_scalar(), of a tensor with one element"
    if arm.kind is np.ndarray:
        return "np.asarray(x)"
    if arm.form in ("items", "tuple"):
        return "x.into_data().to_list()"
    return None


def joined(where: str) -> str:
    """`Tensor.cat(x, y, 0)` with the tensors in a list."""
    texts = list(texts_of_call(where.rpartition(".")[2])) or ["x", "y", "dim"]
    dim = texts.pop() if re.fullmatch(r"-?\d+|dim", texts[-1]) else "0"
    return f"{where}([{', '.join(texts)}], {dim})"


def for_number(value: object, arm: TypeSpec, where: str) -> str | None:
    """A number in place of a list, a text in place of a number, a word for a truth."""
    if isinstance(value, (bool, int, float)) and arm.form in ("items", "tuple"):
        count = len(arm.arms) if arm.form == "tuple" else 1
        return f"[{', '.join([repr(value)] * count)}]"
    if isinstance(value, str) and arm.kind in (int, float):
        try:
            return repr(arm.kind(value))
        except ValueError:
            return None
    if arm.kind is bool and isinstance(value, (int, float)) and value in (0, 1):
        return repr(bool(value))
    if arm.kind is int and isinstance(value, float) and value.is_integer():
        return repr(int(value))
    return None


def for_choice(value: object, arm: TypeSpec, where: str) -> str | None:
    """The names of a choice, that of a text first."""
    kind: Any = arm.kind
    if arm.form == "literal":
        return " or ".join(map(repr, arm.values))
    if not isinstance(kind, type) or not _is_ours(kind) or _is_protocol(kind):
        return None
    names = list(kind.__members__) if issubclass(kind, Enum) else []
    names = names or [n for n, v in vars(kind).items() if isinstance(v, kind)]
    names = names or list(getattr(kind, "variants", {}))
    if not names:
        return None
    if isinstance(value, str):
        near = closest(value, names)
        names = [near] if near else names
    return " or ".join(f"{kind.__name__}.{name}" for name in names[:4])


def _is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


DEVICES = "Numpy(), Cupy(0) or Autodiff(Numpy())"


def for_name(value: object, arm: TypeSpec, where: str) -> str | None:
    """How what was wanted is made."""
    kind: Any = arm.kind
    if _name(arm) == "Backend":
        if isinstance(value, str) and value.startswith(("cuda", "gpu")):
            return "Cupy(0)"
        return DEVICES
    if arm.kind is type and not isinstance(value, type) and value is not None:
        return f"the class itself: {type(value).__name__}"
    if arm.kind is abc.Callable:
        return "a function, such as lambda x: x"
    if not isinstance(kind, type) or kind in WORDS or not _is_ours(kind):
        return None
    if _is_protocol(kind) or inspect.isabstract(kind):
        return None
    if home_of(kind.__name__) is None:
        return None
    if hasattr(kind, "find_part"):
        if hasattr(type(getattr(value, "model", None)), "find_part"):
            return f"{type(value).__name__.lower()}.model"
        return "a module, such as LinearConfig(3, 2).init(device)"
    return f"{kind.__name__}({required(kind)})"


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("burnbook", "burnbook_widgets")


def required(cls: type) -> str:
    """The arguments without a default of a constructor."""
    return required_arguments(cls)


LOOKS: tuple[Cure, ...] = (
    for_kind,
    for_class,
    for_config,
    for_holder,
    for_input,
    for_array,
    for_tensor,
    for_number,
    for_choice,
    for_name,
)


def number_cure(where: str, function: Callable[..., Any], of: str | None) -> str | None:
    """The call with as many arguments as it takes.

    of: what the reader has written before the dot.
    """
    parameters = list(inspect.signature(function).parameters.values())
    owner, _, name = where.rpartition(".")
    if owner and function.__name__ != "__init__":
        if parameters and parameters[0].name == "self":
            owner = of or f"{owner}(…)"
        where = f"{owner}.{name}"
    own = parameters[:1] and parameters[0].name in ("self", "cls")
    shown = [
        f"{each.name}=…" if each.kind is each.KEYWORD_ONLY else each.name
        for each in (parameters[1:] if own else parameters)
        if each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    return f"{where}({', '.join(shown)})"


def habit_cure(
    name: str, args: tuple[Any, ...], named: dict[str, Any], of: str | None
) -> str | None:
    """The call that has the meaning of one in another library; None if it is none.

    name: of the method; of: what the reader has written before the dot.
    """
    if name == "step" and args and hasattr(args[0], "observe"):  # a plateau's metric
        given = ", ".join(texts_of_call(name)) or "loss"
        of = of or "scheduler"
        return f"{of}.observe({given}); lr = {of}.step()"
    if of is None and name == "__init__" and OF_LOADER.keys() & named.keys():
        return _loader_cure(named, texts_of_call("DataLoaderBuilder"))
    if named.get("strict") is False and name in ("load_record", "load_file"):
        texts = texts_of_call(name)
        given = (
            texts[0] if texts else name.removeprefix("load_").replace("file", "path")
        )
        if name == "load_file":
            given = f"recorder.load({given}, device)"
        return f"{of or 'model'}.load_record({given}, partial=True)"
    return None


#: Options of a loader, and how the builder of one says them.
OF_LOADER = {
    "batch_size": "batch_size({})",
    "shuffle": "shuffle(42)",
    "num_workers": "num_workers({})",
    "drop_last": "drop_last({})",
}


def _loader_cure(named: dict[str, Any], texts: tuple[str, ...]) -> str:
    """`DataLoader(dataset, batch_size=8)` of PyTorch as a builder says it."""
    given = [(n, v) for n, v in named.items() if n in OF_LOADER and v not in (False, 0)]
    options = "".join(f".{OF_LOADER[name].format(repr(v))}" for name, v in given)
    dataset = texts[0] if texts else "dataset"
    return f"DataLoaderBuilder(){options}.build({dataset})"


def misfit_of_call(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> str | None:
    """What is wrong with the arguments of a call; None if they fit."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **named)
    except TypeError:
        known = signature.parameters
        places = [n for n, p in known.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        takes = ", ".join(name for name in known if name != "self")
        odd = [name for name in named if name not in known]
        if odd:
            return f"{odd[0]} is not one of its arguments: {takes}"
        given = {*places[: len(args)], *named}
        missing = [
            name
            for name, parameter in known.items()
            if name not in given and parameter.default is parameter.empty
        ]
        if missing:
            *others, last = missing
            if not others:
                return f"{last} is missing"
            return f"{', '.join(others)} and {last} are missing"
        if not takes:
            return "it takes no arguments"
        return f"more values than it takes: {takes}"
    return None
