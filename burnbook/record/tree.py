"""The tree that every recorder takes and gives.

A record is plain Python all the way down: dicts (structs and maps), lists, numbers,
texts, None (a constant of the module, or nothing), and at the leaves TensorData and
ParamRecord. It knows neither backend nor file format. BurnRecord is such a tree with
the metadata that Burn writes ahead of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from burnbook.core.errors import RecordError
from burnbook.core.tree import Kind, Path, Pytree
from burnbook.core.versions import release_of
from burnbook.module.param import ParamRecord
from burnbook.tensor.data import TensorData

T = TypeVar("T")
Convert = Callable[[TensorData, Path], TensorData]
MAX_DEPTH = 100  # levels; the deepest modules have some twenty
OTHERWISE = "a recorder for named MessagePack, which holds every record"


@dataclass(frozen=True)
class Metadata:
    """What Burn writes ahead of every record, as texts in this order."""

    float: str
    int: str
    format: str
    version: str
    settings: str

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers: "0.15.0" -> (0, 15, 0); () when it is none."""
        return release_of(self.version)

    @property
    def is_old(self) -> bool:
        """Whether a tensor is {value, shape} on disk, as before Burn 0.14."""
        return () < self.release < (0, 14)


@dataclass(frozen=True, repr=False)
class BurnRecord:
    """A record exactly as a file holds it: the metadata and the tree."""

    metadata: Metadata
    item: Any

    def __repr__(self) -> str:
        count = sum(1 for _ in tensors(self.item))
        numbers = f"{count} tensor" + ("" if count == 1 else "s")
        return f"BurnRecord({self.metadata.settings}, {numbers})"


def tensors(item: object, path: Path = ()) -> Iterator[tuple[Path, TensorData]]:
    """Every tensor of a tree with the path to it, in the order of the file.

    Example:
        >>> tree = {"norm": {"scale": TensorData([1.0, 2.0]), "epsilon": None}}
        >>> [(".".join(path), data.shape) for path, data in tensors(tree)]
        [('norm.scale', (2,))]
    """
    for at, leaf in RECORDS.leaves(item, path):
        if isinstance(leaf, TensorData):
            yield at, leaf


def map_tensors(item: T, convert: Convert, path: Path = ("item",)) -> T:
    """The same tree with every tensor replaced by `convert(data, path)`."""
    made = (convert(data, at) for at, data in tensors(item, path))
    return RECORDS.map(item, lambda leaf: next(made) if _is_data(leaf) else leaf)


def _is_data(leaf: object) -> bool:
    return isinstance(leaf, TensorData)


RECORDS = Pytree(
    {
        ParamRecord: Kind(
            parts=lambda record: [("", record.param)],
            map=lambda record, go: ParamRecord(record.id, go(record.param)),
            values=lambda record: [record.param],
        )
    }
)


class Marker:
    """An empty marker (Rust's PhantomData), like `_b` that ends every record."""


class Single(float):
    """A number that Rust holds as f32, so the formats write it as one."""


class Trouble(Exception):
    """What is wrong with a record, before anybody knows which file it is."""

    def __init__(
        self, what: str, expected: str = "", found: str = "", cure: str | None = None
    ) -> None:
        super().__init__(what)
        self.what, self.cure = what, cure
        self.facts = [("expected", expected)] if expected else []
        self.facts += [("found", found)] if found else []

    def explain(
        self, where: str, facts: list[tuple[str, str]], cure: str
    ) -> RecordError:
        """The error to raise, now that the file is known."""
        return RecordError(where, self.what, self.facts + facts, self.cure or cure)


def named(path: Path) -> str:
    """A path from the top of a file as text for errors: "conv1.weight", never long."""
    inner = path[1:] if path[:1] == ("item",) else path
    return short(".".join(map(str, inner))) if inner else "the record"


def short(text: object, limit: int = 60) -> str:
    """At most `limit` characters of a foreign text, without line breaks."""
    plain = str(text)[: limit + 1]
    plain = plain if plain.isprintable() else repr(plain)[1:-1]
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"
