"""The names of a file as a tree whose groups open one by one.

A file may have hundreds of thousands of names, so nothing is made before it is looked
at: a closed group is a list of numbers.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

DOTS = re.compile(r"\.")
PATHS = re.compile(r"[./]")  # what ONNX files have between the parts of a name
DEEPEST = 40  # levels; the rest of a name is one label


class Group:
    """Names that begin alike; `members` are their numbers.

    start: how many letters they share. place, of: among the rows around it.
    """

    __slots__ = ("children", "label", "level", "members", "of", "path", "place")

    def __init__(self, path: str, label: str, level: int, members: Any) -> None:
        self.path, self.label, self.level = path, label, level
        self.members = np.asarray(members, np.int32)
        self.children: list[Group | Leaf] | None = None
        self.place, self.of = 1, 1


class Leaf:
    """A row that is no group: the number of a name, and the end of it that is shown."""

    __slots__ = ("label", "level", "number", "of", "place")

    def __init__(self, number: int, label: str, level: int) -> None:
        self.number, self.label, self.level = number, label, level
        self.place, self.of = 1, 1


Row = Group | Leaf


class NameTree:
    """Names in groups by the parts of their paths.

    Example:
        >>> tree = NameTree(["fc.weight", "fc.bias", "scale"], DOTS)
        >>> [row.label for row in tree.rows()]
        ['fc', 'scale']
        >>> [row.label for row in tree.rows({"fc"})]
        ['fc', 'weight', 'bias', 'scale']
    """

    def __init__(
        self,
        names: list[str],
        between: re.Pattern[str] = DOTS,
        members: Any = None,
    ) -> None:
        self.names, self.between = names, between
        every = np.arange(len(names), dtype=np.int32)
        self.root = Group("", "", 0, every if members is None else members)

    def rows(self, opened: set[str] | None = None) -> list[Row]:
        """The rows that are seen where the groups of these paths are open."""
        found: list[Row] = []
        waiting: list[Row] = list(reversed(self.children(self.root)))
        while waiting:
            row = waiting.pop()
            found.append(row)
            if isinstance(row, Group) and opened and row.path in opened:
                waiting += reversed(self.children(row))
        return found

    def children(self, group: Group) -> list[Row]:
        """What a group holds."""
        if group.children is None:
            group.children = self._split(group)
        return group.children

    def groups(self, most: int) -> list[Group]:
        """Groups from the outermost inwards, as many as one asks for."""
        found: list[Group] = []
        waiting = [self.root]
        for group in waiting:
            inner = [row for row in self.children(group) if isinstance(row, Group)]
            found += inner
            waiting += inner
            if len(found) >= most:
                break
        return found[:most]

    def around(self, name: str) -> list[str]:
        """The paths of the groups that a name lies in, the outermost first."""
        found: list[str] = []
        group: Group | None = self.root
        while group is not None:
            inner = next(
                (
                    row
                    for row in self.children(group)
                    if isinstance(row, Group) and self._is_inside(name, row.path)
                ),
                None,
            )
            if inner is not None:
                found.append(inner.path)
            group = inner
        return found

    def _is_inside(self, name: str, path: str) -> bool:
        """Whether the next letter of a name that begins so divides it."""
        rest = name[len(path) : len(path) + 1]
        return bool(name.startswith(path) and rest and self.between.match(rest))

    def _split(self, group: Group) -> list[Row]:
        cut = len(group.path) + 1 if group.level else 0
        level = group.level + 1
        heads: dict[str, list[int]] = {}
        for number in group.members.tolist():
            name: str = self.names[number]
            found = self.between.search(name, cut + 1) if level < DEEPEST else None
            end = found.start() if found and found.end() < len(name) else 0
            heads.setdefault(name[:end] if end else f"\0{number}", []).append(number)
        rows: list[Row] = []
        for path, numbers in heads.items():
            if len(numbers) == 1 or path[0] == "\0":
                rows += [Leaf(n, self.names[n][cut:], level) for n in numbers]
            else:
                rows.append(Group(path, path[cut:], level, numbers))
        if len(rows) > 1 and all(
            isinstance(row, Group) and row.label.isdecimal() for row in rows
        ):
            rows.sort(key=lambda row: (len(row.label.lstrip("0")), row.label))
        for place, row in enumerate(rows, 1):
            row.place, row.of = place, len(rows)
        return rows
