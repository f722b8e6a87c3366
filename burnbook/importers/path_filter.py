"""PathFilter: which parameters of a module a store loads or saves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from burnbook.importers.key_remap import rust_regex

Predicate = Callable[[str, str], bool]


@dataclass(frozen=True)
class PathFilter:
    """Criteria for paths of parameters: a path passes if any one of them holds.

    Without criteria nothing passes. Each method gives another filter.

    Example:
        >>> encoder = PathFilter().with_regex(r"^encoder\\..*")
        >>> chosen = encoder.with_full_path("head.bias")
        >>> [chosen.matches(p) for p in ("encoder.0.weight", "head.bias", "head.gamma")]
        [True, True, False]
    """

    regexes: tuple[re.Pattern[str], ...] = ()
    full_paths: tuple[str, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    passes_all: bool = False

    @classmethod
    def all(cls) -> PathFilter:
        """A filter that lets every path pass."""
        return cls(passes_all=True)

    @classmethod
    def none(cls) -> PathFilter:
        """A filter that lets no path pass."""
        return cls()

    def with_regex(self, pattern: str) -> PathFilter:
        """Also paths in which a pattern of Rust's regex matches anywhere.

        Raises:
            ConfigError: it is no such pattern.
        """
        return self.with_regexes([pattern])

    def with_regexes(self, patterns: Iterable[str]) -> PathFilter:
        """Also paths in which one of these patterns matches.

        Raises:
            ConfigError: one is no pattern of Rust's regex.
        """
        more = tuple(rust_regex(pattern, "PathFilter") for pattern in patterns)
        return replace(self, regexes=self.regexes + more)

    def with_full_path(self, path: str) -> PathFilter:
        """Also exactly this path."""
        return self.with_full_paths([path])

    def with_full_paths(self, paths: Iterable[str]) -> PathFilter:
        """Also exactly these paths."""
        return replace(self, full_paths=(*self.full_paths, *paths))

    def with_predicate(self, predicate: Predicate) -> PathFilter:
        """Also paths for which `predicate(path, containers)` is true.

        containers: the classes around the parameter: "Struct:Net.Struct:Linear".
        """
        return replace(self, predicates=(*self.predicates, predicate))

    def with_predicates(self, predicates: Iterable[Predicate]) -> PathFilter:
        """Also paths for which one of these predicates is true."""
        return replace(self, predicates=(*self.predicates, *predicates))

    def match_all(self) -> PathFilter:
        """Every path."""
        return replace(self, passes_all=True)

    def or_(self, other: PathFilter) -> PathFilter:
        """Paths that either filter lets pass."""
        return PathFilter(
            self.regexes + other.regexes,
            self.full_paths + other.full_paths,
            self.predicates + other.predicates,
            self.passes_all or other.passes_all,
        )

    def matches(self, path: str, containers: str = "") -> bool:
        """Whether the path of a parameter passes."""
        return (
            self.passes_all
            or path in self.full_paths
            or any(regex.search(path) for regex in self.regexes)
            or any(holds(path, containers) for holds in self.predicates)
        )

    def is_empty(self) -> bool:
        """Whether there are no criteria."""
        return not self.criteria_count()

    def criteria_count(self) -> int:
        """How many criteria there are; 1 where every path passes."""
        if self.passes_all:
            return 1
        return len(self.regexes) + len(self.full_paths) + len(self.predicates)
