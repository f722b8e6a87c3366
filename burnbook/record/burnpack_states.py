"""Optimizers and schedules in burnpack: the names that Burn 0.22 gives their parts.

An optimizer has tensors "2001.momentum.moment_1" and numbers "2001.momentum.time",
"2001.__rank", where 2001 is the id of a parameter; the texts of the file say where it
stood: {"2001": "linear.weight"}. A schedule has numbers alone, under the group that
they are for: "0.current_iter". Here these become the records that every other format
holds, and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from burnbook.lr_scheduler.base import NUMBER, Numbers, RealPlace, WholePlace
from burnbook.module.param import ParamId, ParamRecord
from burnbook.record.flat import Named, flatten, nest
from burnbook.record.layout import Lowering
from burnbook.record.tree import Trouble, short

RANK = "__rank"
LENGTH = "len"  # of a list: so many tensors "0", "1", …
PARTS = "schedulers"  # of a schedule made of others
LBFGS = {"history_s", "history_y", "g_iter"}  # the one optimizer without ids


def named_parts(item: Any, lower: Lowering) -> Iterator[Named | tuple[str, Any]]:
    """Tensors and (name, number) of a record, with the names of the newest Burn."""
    if is_optimizer(item):
        for text, held in item.items():
            yield from _state(text, held["V1"], lower)
    elif isinstance(item, dict) and item.keys() >= LBFGS:
        yield from flatten(_with_lengths(item), lower)
    else:
        yield from flatten(_schedule(item), lower)


def paths_of(item: Any) -> dict[str, str]:
    """The texts that go with a record: where the parameters of an optimizer stand."""
    paths = getattr(item, "paths", {}) if is_optimizer(item) else {}
    return {_decimal(text): path for text, path in paths.items()}


def is_optimizer(item: object) -> bool:
    """Whether a record is that of an optimizer: {id: {"V1": {"Rank2": state}}}."""
    if not isinstance(item, dict) or not item:
        return False
    for held in item.values():
        inner = held.get("V1") if isinstance(held, dict) and len(held) == 1 else None
        if not isinstance(inner, dict) or len(inner) != 1:
            return False
        ((rank, state),) = inner.items()
        number = str(rank).removeprefix("Rank")
        if number == rank or not number.isdecimal() or not isinstance(state, dict):
            return False
    return True


def record_of(leaves: dict[str, Any], size: int) -> dict[str, Any]:
    """The record behind the names of a file of `size` bytes."""
    ranks = {}
    for name, value in leaves.items():
        number, _, last = name.partition(".")
        if last == RANK and number.isascii() and number.isdecimal():
            ranks[number] = value
    if not ranks:
        return _with_lists(nest(leaves, size))
    states: dict[str, dict[str, Any]] = {}
    for name, leaf in leaves.items():
        number, _, rest = name.partition(".")
        if number not in ranks or not rest:
            what = f"{short(name)} belongs to no parameter"
            raise Trouble(what, f"names that begin with an id, and {RANK} of each")
        state = states.setdefault(number, {})
        if rest != RANK:
            state[rest] = leaf.param if isinstance(leaf, ParamRecord) else leaf
    record = {}
    for number, state in states.items():
        if int(number) >= 2**64:
            raise Trouble(f"{short(number)} is not an id", "64 bits")
        rank = f"Rank{ranks[number]}"
        held = _with_lists(nest(state, size))
        record[ParamId(number).serialize()] = {"V1": {rank: held}}
    return record


def _state(
    text: str, held: dict[str, Any], lower: Lowering
) -> Iterator[Named | tuple[str, Any]]:
    """The parts of the state of one parameter; each tensor has its id."""
    ((rank, state),) = held.items()
    number = _decimal(text)
    yield f"{number}.{RANK}", int(rank.removeprefix("Rank"))
    for part in flatten(_with_lengths(state), lower):
        if isinstance(part, Named):
            yield part._replace(name=f"{number}.{part.name}", id=text)
        else:
            yield f"{number}.{part[0]}", part[1]


def _decimal(text: str) -> str:
    return str(int(ParamId.deserialize(text)))


def _with_lengths(node: Any) -> Any:
    """The lists of a state as dicts with their length."""
    if isinstance(node, list | tuple):
        rows = {str(i): _with_lengths(part) for i, part in enumerate(node)}
        return rows | {LENGTH: len(node)}
    if isinstance(node, dict):
        return {name: _with_lengths(part) for name, part in node.items()}
    return node


def _with_lists(node: Any) -> Any:
    """The dicts that say how long they are, as lists."""
    if not isinstance(node, dict):
        return node
    made = {name: _with_lists(part) for name, part in node.items()}
    count = made.get(LENGTH)
    places = [str(i) for i in range(len(made) - 1)]
    if type(count) is int and count == len(places) and made.keys() == {LENGTH, *places}:
        return [made[place] for place in places]
    return made


def _schedule(item: Any) -> Any:
    """The record of a schedule, below the number of its group; others as they are."""
    if not _has_place(item):
        return item
    found = _below(item)
    by_group = isinstance(item, dict) and all(map(str.isdecimal, item))
    return found if by_group else {"0": found}


def _has_place(item: Any) -> bool:
    """Whether somewhere in a record a number says where a schedule stands.

    A number that stands under its name already came from a file and stays there.
    """
    if isinstance(item, Numbers):
        return True
    if isinstance(item, list):
        return any(map(_has_place, item))
    if isinstance(item, dict):
        of_file = PARTS not in item
        rows = item.items()
        return any(_has_place(n) for name, n in rows if not (of_file and _is(n, name)))
    return isinstance(item, WholePlace | RealPlace)


def _is(item: Any, name: str) -> bool:
    """Whether a record is a number with this name."""
    return isinstance(item, WholePlace | RealPlace) and item.name == name


def _below(item: Any) -> Any:
    """The numbers of a schedule by name."""
    if isinstance(item, Numbers):
        return dict(item)
    if isinstance(item, WholePlace | RealPlace):
        return {item.name: item}
    if isinstance(item, int | float):  # of a schedule of one's own
        return {NUMBER: item}
    if not isinstance(item, dict):
        return item
    if isinstance(item.get(PARTS), list):
        rows = [next(iter(row.values())) for row in item[PARTS]]
        own = {name: part for name, part in item.items() if name != PARTS}
        return own | {str(i): _below(row) for i, row in enumerate(rows)}
    return {place: _below(held) for place, held in item.items()}
