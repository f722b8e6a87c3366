"""Modes: what a layer does in training, and what it does when it is asked.

BatchNorm normalizes by the batch in training and by its running statistics otherwise,
Dropout drops values or keeps them. The device decides: training happens under Autodiff,
and `valid()` leaves it. `eval()` is for all that wants gradients and no training, such
as saliency or fine-tuning below frozen statistics: the device stays, the mode changes.
"""

import difflib
from collections.abc import Iterable
from typing import Any

from burnbook.core.call_source import own_call
from burnbook.core.errors import ConfigError
from burnbook.module.param import Param
from burnbook.module.tree import MODULES, Tree

MOST_PATHS = 8  # of parts, in an error

#: The attribute that a module in eval mode has. It is no field, so no record has it,
#: and every copy of a module has the attributes of the module.
IN_EVAL = "_in_eval"


def put(module: Tree, in_eval: bool) -> None:
    """Set the mode of a module that nobody has seen yet, and of all its parts."""
    for _, part in MODULES.nodes(module):
        if isinstance(part, Tree):
            put_alone(part, in_eval)


def put_alone(module: Tree, in_eval: bool) -> None:
    """Set the mode of a module that nobody has seen yet, and of no part of it."""
    if in_eval:
        vars(module)[IN_EVAL] = True
    else:
        vars(module).pop(IN_EVAL, None)


def put_parts(where: str, module: Tree, paths: Iterable[object], in_eval: bool) -> None:
    """Set the mode of the parts at these paths; a ConfigError if one is not there."""
    for path in paths:
        found = part_at(where, module, path)
        if isinstance(found, Param):
            what = f"{path} is a parameter, and modes are of modules"
            cure = f"model.freeze_group(ParamGroup.from_path({str(path)!r}))"
            raise ConfigError(f"{type(module).__name__}.{where}", what, cure=cure)
        put(found, in_eval)


def part_at(where: str, module: Tree, path: object) -> Any:
    """The module, list or parameter at a path; a ConfigError names the near ones."""
    known: dict[str, Any] = {}
    for names, held in MODULES.nodes(module):
        known.setdefault(".".join(names), held)
    found = known.get(path) if isinstance(path, str) and path else None
    if isinstance(found, (Tree, Param, list, tuple, dict)):
        return found
    parts = [name for name, held in known.items() if name and isinstance(held, Tree)]
    raise no_part(f"{type(module).__name__}.{where}", path, parts)


def no_part(where: str, path: object, parts: list[str]) -> ConfigError:
    """The error for a path where a module has no part."""
    if not isinstance(path, str):
        what = f"{type(path).__name__} is not the path of a part"
        first = parts[0] if parts else "backbone"
        name = where.rpartition(".")[2]
        if isinstance(path, bool) and name in ("train", "eval"):
            mode = name if path else {"train": "eval", "eval": "train"}[name]
            what = f"it takes paths of parts, not {path}"
            own = own_call(name)
            of = own.of.rpartition(".")[0] if own else "model"
            return ConfigError(where, what, cure=f"{of} = {of}.{mode}()")
        return ConfigError(where, what, cure=f'a text, such as "{first}"')
    near = [name for name in parts if path and f"{name}.".startswith(f"{path}.")]
    near = near[:3] or [name for name in parts if path.startswith(f"{name}.")][-1:]
    near += difflib.get_close_matches(path, parts, 3, 0.5)
    last = {name.rpartition(".")[2]: name for name in reversed(parts)}
    ends = difflib.get_close_matches(path.rpartition(".")[2], last, 3, 0.6)
    near = list(dict.fromkeys([*near, *(last[end] for end in ends)]))[:4]
    facts = [("near", ", ".join(near))] if near else []
    more = f", … ({len(parts)})" if len(parts) > MOST_PATHS else ""
    facts.append(("parts", (", ".join(parts[:MOST_PATHS]) or "none") + more))
    known = near or parts
    cure = f'"{known[0]}"' if known else None
    return ConfigError(where, f"there is no part at {path!r}", facts, cure)
