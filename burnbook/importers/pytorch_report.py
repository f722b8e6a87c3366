"""What a file of PyTorch holds, and how it fits a module: one report, before loading.

print(inspect_file("model.pt", module=model))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from burnbook.core.errors import Fact
from burnbook.core.files import PathLike, printable
from burnbook.importers.apply_result import MEANT, ApplyResult
from burnbook.importers.formulas import other_formulas
from burnbook.importers.key_remap import KeyRemapper
from burnbook.importers.lazy_array import LazyArray
from burnbook.importers.pytorch import PytorchStore
from burnbook.importers.pytorch_reader import PytorchMetadata, PytorchReader
from burnbook.importers.torch_layers import spots
from burnbook.module.module import Module
from burnbook.record.tree import short

MOST_SKIPPED = 30  # rows of what is no tensor


@dataclass(frozen=True, repr=False)
class PytorchReport:
    """What a file of PyTorch holds; prints as a table.

    arrays: the tensors by their remapped names. skipped: everything else, with what it
    is. module, result: the name of a module's class, and how the file fits it.
    """

    name: str
    metadata: PytorchMetadata
    arrays: dict[str, LazyArray]
    skipped: dict[str, str]
    module: str = ""
    result: ApplyResult | None = None
    refused: tuple[str, ...] = ()  # those of `skipped` that are tensors
    notes: tuple[Fact, ...] = ()  # layers that PyTorch computes otherwise

    @property
    def fits(self) -> bool:
        """Whether the file and the module agree; without one, whether all can be read.

        What is no tensor does not matter. A file without any tensor fits nothing.
        """
        result = self.result
        if result is None:
            return bool(self.arrays) and not self.refused
        return not (result.missing or result.errors or result.unused)

    def __repr__(self) -> str:
        return f"PytorchReport({self.name}, {len(self.arrays)} tensors)"

    def __str__(self) -> str:
        about = self.metadata
        facts = ["a file of PyTorch", about.format_type]
        facts += [f"version {about.pytorch_version}"] if about.pytorch_version else []
        facts += ["big-endian"] if about.byte_order == "big" else []
        lines = [f"{self.name}: {', '.join(facts)}"]
        rows = [(short(n), str(list(a.shape)), a.dtype) for n, a in self.arrays.items()]
        lines += _table(rows)
        count = sum(prod(array.shape) for array in self.arrays.values())
        lines.append(f"  {len(self.arrays)} tensors, {count} elements")
        if self.skipped:
            lines.append("skipped")
            held = [(short(name), what) for name, what in self.skipped.items()]
            lines += _table(held[:MOST_SKIPPED])
            more = len(held) - MOST_SKIPPED
            lines += [f"  … and {more} more"] if more > 0 else []
        lines += self._fit()
        return "\n".join(lines)

    def _fit(self) -> list[str]:
        result = self.result
        if result is None:
            return []
        total = len(result.applied) + len(result.missing) + len(result.errors)
        lines = [f"{self.module}: {len(result.applied)} of {total} parameters fit"]
        missing = [path for path, _ in result.missing]
        rows = [(path, self._meant(path)) for path in missing[:MEANT]]
        rows += [(path, "missing") for path in missing[MEANT:]]
        rows += [(error.path, str(error)) for error in result.errors]
        rows += [(name, "unused") for name in result.unused]
        rows += [(path, f"{why}, PyTorch inside") for path, why in self.notes]
        return lines + _table(rows)

    def _meant(self, path: str) -> str:
        assert self.result is not None
        meant = self.result.suggestion(path)
        return f"missing; did you mean {meant}?" if meant else "missing"


def inspect_file(
    path: PathLike,
    *,
    top_level_key: str | None = None,
    remap: Iterable[tuple[str, str]] = (),
    module: Module | None = None,
) -> PytorchReport:
    """What a file of PyTorch holds; no elements are read unless a module is given.

    remap: pairs of a pattern of Rust's regex and a replacement, as for LoadArgs.
    module: also say how the file fits it.

    Raises:
        ConfigError: a pattern is none.
        RecordError: the file cannot be read, or has no such key.
    """
    remapper = KeyRemapper.from_patterns(remap)
    reader = PytorchReader(path, top_level_key)
    named = remapper.all_renamed(reader, f"read {printable(path)}")
    arrays = {new: reader[old] for old, new in named.items()}
    name, result = str(path).replace("\\", "/").rpartition("/")[2], None
    if module is not None:
        store = PytorchStore.from_file(path).remap(remapper)
        if top_level_key is not None:
            store = store.with_top_level_key(top_level_key)
        _, result = store.apply_to(module)
    kind = "" if module is None else type(module).__name__
    notes: list[Fact] = []
    if module is not None and result is not None:
        applied = set(result.applied)
        notes = other_formulas(s for s in spots(module) if s.path in applied)
    return PytorchReport(
        name,
        reader.metadata(),
        arrays,
        reader.skipped,
        kind,
        result,
        tuple(reader.refused),
        tuple(notes),
    )


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  " + "  ".join(f"{t:<{w}}" for t, w in zip(row, wide, strict=True)).rstrip()
        for row in rows
    ]
