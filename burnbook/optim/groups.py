"""Parameter groups: which parameters one rule is for.

A group is a question about a parameter, asked with its id and its path in the module
("encoder.layers.0.weight"). Where several groups of an optimizer or a scheduler answer
yes, the last one counts.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Self, SupportsFloat

from burnbook.core.errors import ConfigError
from burnbook.module import Module, ParamId, list_param_ids

Test = Callable[[ParamId, str], bool]


class ParamGroup:
    """Some of the parameters of a module.

    Example:
        >>> biases = ParamGroup.from_predicate("bias")
        >>> biases.matches(ParamId(1), "output.bias")
        True
        >>> first = ParamGroup.from_regex(r"layers\\.0\\.")
        >>> ParamGroup.all().exclude(biases.fuse(first))
        ParamGroup(all, but not (path with 'bias', or path like 'layers\\\\.0\\\\.'))
    """

    __slots__ = ("_test", "text")

    def __init__(self, test: Test, text: str):
        """Use the class methods; `text` says in words what the test asks."""
        self._test = test
        self.text = text

    @classmethod
    def all(cls) -> Self:
        """Every parameter."""
        return cls(lambda _, path: True, "all")

    @classmethod
    def from_path(cls, path: str) -> Self:
        """The one parameter at this path."""
        return cls.from_paths([path])

    @classmethod
    def from_paths(cls, paths: Iterable[str]) -> Self:
        """The parameters at these paths, exactly."""
        known = frozenset(texts("from_paths", paths))
        return cls(lambda _, path: path in known, f"path {_quoted(sorted(known))}")

    @classmethod
    def from_predicate(cls, *parts: str) -> Self:
        """The parameters whose path holds all of these texts."""
        known = texts("from_predicate", parts)
        return cls(
            lambda _, path: all(part in path for part in known),
            f"path with {_quoted(known, ' and ')}",
        )

    @classmethod
    def from_any_predicates(cls, parts: Iterable[str]) -> Self:
        """The parameters whose path holds one of these texts."""
        known = texts("from_any_predicates", parts)
        return cls(
            lambda _, path: any(part in path for part in known),
            f"path with {_quoted(known)}",
        )

    @classmethod
    def from_regex(cls, *patterns: str) -> Self:
        """The parameters in whose path all of these regular expressions are found."""
        known = texts("from_regex", patterns)
        try:
            compiled = [re.compile(pattern) for pattern in known]
        except re.error as error:
            what = f"{error.pattern!r} is not a regular expression: {error.msg}"
            raise ConfigError("ParamGroup.from_regex", what) from None
        return cls(
            lambda _, path: all(pattern.search(path) for pattern in compiled),
            f"path like {_quoted(known, ' and ')}",
        )

    @classmethod
    def ids_from_module(cls, module: Module) -> Self:
        """The parameters that a module has now, wherever they stand later."""
        ids = frozenset(list_param_ids(module))
        name, count = type(module).__name__, len(ids)
        return cls(lambda number, _: number in ids, f"{count} of {name}")

    def fuse(self, other: "ParamGroup") -> Self:
        """The parameters of either group."""
        mine, its = self._test, other._test
        text = f"{self.text}, or {other.text}"
        return type(self)(lambda n, path: mine(n, path) or its(n, path), text)

    def exclude(self, other: "ParamGroup") -> Self:
        """The parameters of this group that are not in the other one."""
        mine, its = self._test, other._test
        text = f"{self.text}, but not ({other.text})"
        return type(self)(lambda n, path: mine(n, path) and not its(n, path), text)

    def matches(self, id: ParamId, path: str) -> bool:  # noqa: A002 - Burn's word
        """Whether the parameter with this id, at this path, belongs to the group."""
        return self._test(id, path)

    def __repr__(self) -> str:
        return f"ParamGroup({self.text})"


class ModuleLearningRate(float):
    """A learning rate for each part of a module; as a plain number, that of the rest.

    Example:
        >>> biases = ParamGroup.from_predicate("bias")
        >>> lr = ModuleLearningRate(0.1).with_group(biases, 0.2)
        >>> lr.of(ParamId(1), "output.bias"), lr.of(ParamId(2), "output.weight"), lr + 0
        (0.2, 0.1, 0.1)
    """

    groups: tuple[tuple[ParamGroup, float], ...]

    def __new__(
        cls,
        base: SupportsFloat,
        groups: tuple[tuple[ParamGroup, float], ...] = (),
    ) -> Self:
        """The rate where no group matches, and the groups with their rates."""
        made = super().__new__(cls, base)
        made.groups = groups
        return made

    def base(self) -> float:
        """The rate of the parameters that are in no group."""
        return float(self)

    def with_group(self, group: ParamGroup, lr: float) -> Self:
        """One more group, which goes before those that are there."""
        return type(self)(self, (*self.groups, (group, float(lr))))

    def of(self, id: ParamId, path: str) -> float:  # noqa: A002
        """The rate of a parameter: that of the last group it is in."""
        for group, lr in reversed(self.groups):
            if group.matches(id, path):
                return lr
        return float(self)

    def __reduce__(self) -> Any:
        return type(self), (float(self), self.groups)

    def __repr__(self) -> str:
        parts = [f"{group!r}: {lr}" for group, lr in self.groups]
        return f"ModuleLearningRate({', '.join([str(float(self)), *parts])})"


def texts(where: str, given: Iterable[Any]) -> list[str]:
    """The texts that a group is made from; one alone may have been meant as a list."""
    found = [given] if isinstance(given, str) else list(given)
    wrong = next((part for part in found if not isinstance(part, str)), None)
    if wrong is not None or not found:
        what = "no text is given" if wrong is None else f"{wrong!r} is not a text"
        cure = f'ParamGroup.{where}("bias")'
        raise ConfigError(f"ParamGroup.{where}", what, cure=cure)
    return found


def _quoted(parts: list[str], between: str = " or ") -> str:
    return between.join(map(repr, parts))
