"""Steps of a graph in groups that open and close.

A group is a run of steps that the same module made, told by the paths of its parameters
(`net.blocks.0`); steps without parameters belong to what stands on both sides of them.
Long runs without a module are cut into "steps 1–40". Steps are taken in the order in
which they ran, so a closed group is one box and the picture keeps no circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from burnbook_widgets.autodiff.parts import Part

Path = tuple[str, ...]
MANY = 60  # boxes side by side in one group; more are cut into runs
RUN = 30
AT_FIRST = 60  # boxes that a large graph shows before anything is opened


@dataclass
class Group:
    """A run of parts under one name; `items` are numbers of parts, or groups in it."""

    name: str
    items: list[int | Group] = field(default_factory=list)

    def parts(self) -> list[int]:
        """The numbers of all parts, those of inner groups too, in their order."""
        found: list[int] = []
        for item in self.items:
            found += item.parts() if isinstance(item, Group) else [item]
        return found

    def groups(self) -> list[Group]:
        """All groups in it, each before those that it holds."""
        found: list[Group] = []
        for item in self.items:
            if isinstance(item, Group):
                found += [item, *item.groups()]
        return found


def group(parts: Sequence[Part]) -> Group:
    """All parts in groups by the modules that made them; the whole has no name."""
    order = in_order(parts)
    ops = {i for i, part in enumerate(parts) if part.kind == "op"}
    return grouped(order, _paths(parts, order), ops)


def grouped(order: Sequence[int], paths: dict[int, Path], ops: set[int]) -> Group:
    """Numbers in groups by their paths, in this order; `ops` count as steps."""
    whole = Group("", _split(order, paths, 0))
    taken: dict[str, int] = {}
    _cut(whole, ops)
    for found in whole.groups():  # a module that is called again has several runs
        turn = taken[found.name] = taken.get(found.name, 0) + 1
        found.name += f" ({turn})" if turn > 1 else ""
    return whole


def in_order(parts: Sequence[Part]) -> list[int]:
    """Numbers of parts as they are needed: what is no op just before its first use."""
    found: dict[int, None] = {}
    for number, part in enumerate(parts):
        if part.kind == "op":
            found.update(dict.fromkeys(came for _, came in part.inputs))
            found[number] = None
    found.update(dict.fromkeys(range(len(parts))))
    return list(found)


def _paths(parts: Sequence[Part], order: Sequence[int]) -> dict[int, Path]:
    """The module of each part, as the names on the way to it."""
    own: dict[int, Path] = {}
    for number in order:
        part = parts[number]
        if part.kind != "op":
            continue
        path = _own_path(part, [parts[came] for _, came in part.inputs])
        if path is not None:
            own[number] = path
    ops = [number for number in order if parts[number].kind == "op"]
    before, after = nearest(ops, own), nearest(ops[::-1], own)
    for number in ops:  # between two ops of a module: of that module
        if number not in own:
            inside = number in before and number in after
            own[number] = shared([before[number], after[number]]) if inside else ()
    for number in order:
        if parts[number].kind == "op":
            for _, came in parts[number].inputs:
                if parts[came].kind != "op":
                    own.setdefault(came, own[number])
    return own


def _own_path(part: Part, held: Sequence[Part]) -> Path | None:
    """The module that an op says it is of, or that its parameters are of."""
    if part.path is not None:
        return tuple(part.path.split(".")) if part.path else ()
    paths = [_module(p.name) for p in held if p.kind == "leaf" and "." in p.name]
    return shared(paths) if paths else None


def nearest(ops: Sequence[int], known: dict[int, Path]) -> dict[int, Path]:
    """For each op the module of the last one that has a known one."""
    found: dict[int, Path] = {}
    last: Path | None = None
    for number in ops:
        last = known.get(number, last)
        if last is not None:
            found[number] = last
    return found


def _module(name: str) -> Path:
    """The module of a parameter: ("net", "linear") of "net.linear.weight"."""
    return tuple(name.split(".")[:-1])


def shared(paths: Sequence[Path]) -> Path:
    """What paths have in common from their beginning."""
    first, *others = paths
    for other in others:
        same = 0
        while same < min(len(first), len(other)) and first[same] == other[same]:
            same += 1
        first = first[:same]
    return first


def _split(
    order: Sequence[int], paths: dict[int, Path], depth: int
) -> list[int | Group]:
    """Runs of the same module as groups, the rest as it is."""
    items: list[int | Group] = []
    at = 0
    while at < len(order):
        path = paths.get(order[at], ())
        if len(path) <= depth:
            items.append(order[at])
            at += 1
            continue
        end = at
        while (
            end < len(order)
            and paths.get(order[end], ())[: depth + 1] == (path[: depth + 1])
        ):
            end += 1
        inner = _split(order[at:end], paths, depth + 1)
        only = inner[0] if len(inner) == 1 else None
        if isinstance(only, Group):
            items.append(only)  # a module that only holds another one
        elif end - at == 1:
            items += inner
        else:
            items.append(Group(".".join(path[: depth + 1]), inner))
        at = end
    return items


def _cut(whole: Group, ops: set[int]) -> None:
    """Cut what has too many items into runs that can be opened one by one."""
    for item in whole.items:
        if isinstance(item, Group):
            _cut(item, ops)
    while len(whole.items) > MANY:
        runs = [whole.items[i : i + RUN] for i in range(0, len(whole.items), RUN)]
        place, cut = 0, []
        head = f"{whole.name}: " if whole.name else ""
        for run in runs:
            made = Group("", list(run))
            count = len(ops.intersection(made.parts()))
            made.name = f"{head}steps {place + 1}–{place + count}"
            place += count
            cut.append(made)
        whole.items = list(cut)


def at_first(whole: Group) -> set[str]:
    """Which groups are open at first: all of a small graph, else what holds most."""
    count = len(whole.parts())
    if count <= MANY:
        return {found.name for found in whole.groups()}
    opened: set[str] = set()
    while True:
        boxes = visible(whole, opened)
        closed = [box for box in boxes if isinstance(box, Group)]
        largest = max(closed, key=lambda box: len(box.parts()), default=None)
        if largest is None or 2 * len(largest.parts()) <= count:
            return opened
        if len(boxes) + len(largest.items) > AT_FIRST:
            return opened
        opened.add(largest.name)


def visible(whole: Group, opened: set[str]) -> list[int | Group]:
    """The boxes of a picture in which these groups are open."""
    boxes: list[int | Group] = []
    for item in whole.items:
        if isinstance(item, Group) and item.name in opened:
            boxes += visible(item, opened)
        else:
            boxes.append(item)
    return boxes


def around(whole: Group, number: int) -> list[str]:
    """The names of the groups that hold a part, the outermost first."""
    return [found.name for found in whole.groups() if number in found.parts()]
