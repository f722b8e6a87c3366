"""What came of loading a record that fits only in part."""

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

R_co = TypeVar("R_co", covariant=True)


class Store(Protocol[R_co]):
    """Where `load_from` takes values from and `save_into` puts them."""

    def load_into(self, module: Any) -> tuple[Any, R_co]:
        """The module with the values of the store, and what came of it."""
        ...

    def save_from(self, module: Any) -> object:
        """Write the parameters of a module."""
        ...


@dataclass(frozen=True, repr=False)
class LoadReport:
    """Which parameters a record gave, which kept their own values, what was left over.

    `kept` says for each path why; `unused` are parts of the record that the module
    has no place for.
    """

    module: str  # the name of its class
    loaded: tuple[str, ...]
    kept: dict[str, str]
    unused: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every parameter came from the record, and nothing was left over."""
        return not self.kept and not self.unused

    def __repr__(self) -> str:
        counts = len(self.loaded), len(self.kept), len(self.unused)
        words = (f"{n} {w}" for n, w in zip(counts, WORDS, strict=True) if n)
        return f"LoadReport({self.module}: {', '.join(words) or 'nothing'})"

    def __str__(self) -> str:
        total = len(self.loaded) + len(self.kept)
        lines = [f"{self.module}: {len(self.loaded)} of {total} parameters loaded"]
        rows = [(WORDS[0], path, "") for path in self.loaded]
        rows += [(WORDS[1], path, why) for path, why in self.kept.items()]
        rows += [(WORDS[2], path, "not in the module") for path in self.unused]
        wide = max((len(path) for _, path, why in rows if why), default=0)
        lines += [f"  {w:<6}  {path:<{wide}}  {why}".rstrip() for w, path, why in rows]
        return "\n".join(lines)


WORDS = ("loaded", "kept", "unused")
