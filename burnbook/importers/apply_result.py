"""ApplyResult: which parameters of a module a store gave, and what became of the rest.

It prints as the box that newer Burn prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from burnbook.core.errors import Fact, RecordError
from burnbook.core.files import printable

Kind = Literal["shape", "dtype", "adapter", "load"]
SIMILAR = 0.7  # how near a name must be to be meant
LISTED = 10  # names of each sort in the box
MEANT = 20  # missing paths for which a name is looked for: each is much work
COMPARED = 2000  # names that are compared with a missing path


@dataclass(frozen=True)
class ApplyError:
    """Why one parameter could not be loaded.

    kind: "shape", "dtype", "adapter" or "load".
    """

    kind: Kind
    path: str
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        if self.kind in ("shape", "dtype"):
            name = {"shape": "Shape", "dtype": "DType"}[self.kind]
            wanted = f"expected {self.expected}, found {self.found}"
            return f"{name} mismatch for '{self.path}': {wanted}"
        return f"{self.kind.capitalize()} error for '{self.path}': {self.found}"


@dataclass(frozen=True, repr=False)
class ApplyResult:
    """What came of loading a store into a module.

    applied: the paths of parameters that have new values.
    skipped: those that the filter held back.
    missing: those that the store lacks, each with the classes around it.
    unused: names in the store for which the module has no place.
    errors: why others could not be loaded.

    Example:
        >>> result = ApplyResult(("fc.bias",), (), (("fc.weight", ""),), ("fx.weight",))
        >>> result, result.is_success(), result.suggestion("fc.weight")
        (ApplyResult(1 applied, 1 missing, 1 unused), True, 'fx.weight')
    """

    applied: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    unused: tuple[str, ...] = ()
    errors: tuple[ApplyError, ...] = ()

    def is_success(self) -> bool:
        """Whether nothing went wrong; what is missing is no error in itself."""
        return not self.errors

    def suggestion(self, path: str) -> str | None:
        """The unused name that is meant by a missing path, if one is near enough.

        It is the path without the variant of a union, the same with something before
        it, or the nearest by Jaro's measure.
        """
        if (plain := _without_variant(path)) in self.unused:
            return plain
        for name in self.unused:  # with something before it
            if f".{name}".endswith(f".{path}") or f".{path}".endswith(f".{name}"):
                return name
        last = path.rpartition(".")[2]
        likely = sorted(self.unused, key=lambda name: not name.endswith(last))
        near = [
            (jaro(path, name), name)
            for name in likely[:COMPARED]
            if len(name) < 10 * len(path)  # longer ones cannot be near enough
        ]
        best, name = max(near, key=lambda row: row[0], default=(0.0, ""))
        return name if best >= SIMILAR else None

    def facts(self) -> list[Fact]:
        """Errors and missing parameters, for an error; then what is unused."""
        rows: list[Fact] = [(error.path, _why(error)) for error in self.errors]
        for i, (path, _) in enumerate(self.missing):
            meant = self.suggestion(path) if i < MEANT else None
            told = f"missing; did you mean {printable(meant)}?" if meant else "missing"
            rows.append((path, told))
        unused = (
            self.unused if len(self.unused) <= LISTED else self.unused[: LISTED - 1]
        )
        rows += [(printable(name), "not in the module") for name in unused]
        if len(unused) < len(self.unused):
            rows.append(("…", f"{len(self.unused) - len(unused)} others as well"))
        return rows

    def __repr__(self) -> str:
        rows = ("applied", "skipped", "missing", "unused", "errors")
        counts = ((len(getattr(self, name)), name) for name in rows)
        words = ", ".join(f"{count} {name}" for count, name in counts if count)
        return f"ApplyResult({words or 'nothing'})"

    def __str__(self) -> str:
        lines = [
            "┌─ Tensor Loading Summary ─────────────────────────",
            "│",
            f"│ ✓ Successfully applied: {len(self.applied)} tensors",
            f"│ ⊘ Skipped (filtered):  {len(self.skipped)} tensors",
            f"│ ✗ Missing in source:    {len(self.missing)} tensors",
            f"│ ? Unused in target:     {len(self.unused)} tensors",
            f"│ ! Errors:               {len(self.errors)} errors",
        ]
        if self.missing:
            lines += _head(
                "Missing Tensors (requested by model but not found in source)"
            )
            lines += self._about_variants()
            lines += self._missing_lines()
        if self.unused:
            lines += _head("Unused Tensors (in source but not used by model)")
            lines.append("│  First 10 unused tensors:")
            lines += _listed([f"│    • {printable(name)}" for name in self.unused])
        if self.errors:
            lines += _head("Errors")
            lines += _listed([f"│  ⚠️  {error}" for error in self.errors])
        lines += ["│", "└───────────────────────────────────────────────────"]
        return "\n".join(lines)

    def _missing_lines(self) -> list[str]:
        lines = ["│  First 10 missing tensors:"]
        for path, _ in self.missing[:LISTED]:
            lines.append(f"│    • {path}")
            if meant := self.suggestion(path):
                lines.append(f"│        Did you mean: '{printable(meant)}'?")
        return lines + _more(len(self.missing))

    def _about_variants(self) -> list[str]:
        """Advice where missing paths lead through a union of classes."""
        count = sum("Enum:" in containers for _, containers in self.missing)
        if not count:
            return []
        return [
            f"│  ⚠️  {count} paths contain enum variants "
            "(detected from container stack)",
            "│      Burn includes enum variant names in paths, but PyTorch doesn't.",
            "│      Example: Burn has 'field.BaseConv.weight', "
            "PyTorch has 'field.weight'",
            "│",
            "│      💡 Solution 1: Enable skip_enum_variants flag (simplest):",
            "│",
            '│         store = PytorchStore.from_file("model.pth")',
            "│         store = store.skip_enum_variants(True)  # ← Add this",
            "│",
            "│      💡 Solution 2: Remap enum keys in source (most precise):",
            "│",
            '│         store = SafetensorsStore.from_file("model.safetensors")',
            r'│         store = store.with_key_remapping(r"field\.(\w+)", '
            '"field.BaseConv.$1")',
            "│",
        ]


class NotApplied(RecordError):
    """A store does not fit a module; `result` is the whole ApplyResult."""

    result: ApplyResult


def _why(error: ApplyError) -> str:
    if error.kind in ("shape", "dtype"):
        return f"file {error.found}, module {error.expected}"
    return error.found


def _head(text: str) -> list[str]:
    return ["│", f"├─ {text}", "│"]


def _listed(lines: list[str]) -> list[str]:
    return lines[:LISTED] + _more(len(lines))


def _more(count: int) -> list[str]:
    return [f"│    ... and {count - LISTED} more"] if count > LISTED else []


def _without_variant(path: str) -> str:
    """A path without its first part that is written as a class: "a.Conv.b" is a.b."""
    parts = path.split(".")
    for i, part in enumerate(parts[1:-1], 1):
        if part[:1].isupper() and any(letter.islower() for letter in part[1:]):
            return ".".join(parts[:i] + parts[i + 1 :])
    return ""


def jaro(a: str, b: str) -> float:
    """How alike two texts are, from 0 to 1, by Jaro's measure.

    Example:
        >>> round(jaro("MARTHA", "MARHTA"), 4)
        0.9444
    """
    if not a or not b:
        return float(a == b)
    reach = max(max(len(a), len(b)) // 2 - 1, 0)
    taken: set[int] = set()
    left: list[str] = []
    for i, letter in enumerate(a):
        for j in range(max(0, i - reach), min(len(b), i + reach + 1)):
            if j not in taken and b[j] == letter:
                taken.add(j)
                left.append(letter)
                break
    same = len(left)
    if not same:
        return 0.0
    right = [b[j] for j in sorted(taken)]
    swapped = sum(x != y for x, y in zip(left, right, strict=True)) / 2
    return (same / len(a) + same / len(b) + (same - swapped) / same) / 3
