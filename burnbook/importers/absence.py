"""What to say of a parameter that a file lacks: why, and what would find it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from burnbook.importers.apply_result import MEANT
from burnbook.importers.torch_layers import Source, Spot


def reason_among(others: Mapping[str, str], sources: Iterable[Source]) -> str | None:
    """Why the first source that the file has otherwise than as a tensor is none."""
    return next((others[s.name] for s in sources if s.name in others), None)


def common_prefix(
    asked: Iterable[Spot],
    sources: Callable[[Spot], Iterable[Source]],
    names: Iterable[str],
) -> str:
    """What a file has before every name that a module asks for; "" if nothing."""
    by_last: dict[str, list[str]] = {}
    for name in names:
        by_last.setdefault(name.rpartition(".")[2], []).append(name)
    counts: Counter[str] = Counter()
    some = list(islice(asked, MEANT))
    for spot in some:
        found: set[str] = set()
        for source in sources(spot):
            for name in by_last.get(source.name.rpartition(".")[2], ()):
                if name.endswith(f".{source.name}"):
                    found.add(name[: -len(source.name) - 1])
        counts.update(found)
    best, count = max(counts.items(), key=lambda row: row[1], default=("", 0))
    return best if count == len(some) else ""


def without_prefix(prefix: str, top_level_keys: list[str], remap: str) -> str:
    """The calls that take a prefix away: a part of the file, and a rule for names.

    Example:
        >>> print(without_prefix("model.module", ["model"], "with_key_remap"))
        .with_top_level_key("model").with_key_remap(r"^module\\.", "")
    """
    first, _, rest = prefix.partition(".")
    calls = ""
    if first in top_level_keys:
        calls, prefix = f'.with_top_level_key("{first}")', rest
    if prefix:
        pattern = prefix.replace(".", r"\.")
        calls += rf'.{remap}(r"^{pattern}\.", "")'
    return calls
