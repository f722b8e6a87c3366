"""The cases: calls of Burn 0.15.0, with its results."""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from burnbook.backend.base import Backend
from burnbook.core.dtypes import Bool, Float, Int, KindType, kind_of
from burnbook.tensor import Tensor, TensorData

PATH = Path(__file__).resolve().parents[4] / "shared" / "burn" / "ops-0.15.json"
KINDS: dict[str, KindType] = {"Float": Float, "Int": Int, "Bool": Bool}
NUMPY = {"bool": np.bool_, "i64": np.int64, "i8": np.int8, "u8": np.uint8}
NUMPY |= {"i32": np.int32, "f32": np.float32, "f64": np.float64}
NOT_NUMBERS = {"NaN": np.nan, "-NaN": -np.nan, "inf": np.inf, "-inf": -np.inf}
NOT_GIVEN = ("kind", "rank")  # args that stand for a type in Rust


@dataclass(frozen=True, eq=False)
class Case:
    """One call: its inputs and arguments by their names, and what Burn answered."""

    id: str
    group: str
    op: str
    kind: str
    outputs: Any
    call: str = ""
    inputs: list[dict[str, Any]] = field(default_factory=list)
    args: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] | None = None
    params: list[dict[str, Any]] | None = None
    tracked: list[str] | None = None
    display: str | None = None
    num_params: int | None = None

    @property
    def refused(self) -> bool:
        """Whether Burn panicked."""
        return isinstance(self.outputs, dict)

    def arrays(self) -> dict[str, np.ndarray]:
        """The inputs by name."""
        return {one["name"]: array_of(one) for one in self.inputs}

    def values(self) -> dict[str, Any]:
        """The arguments by name, without those that stand for a type."""
        return {k: read(v) for k, v in self.args.items() if k not in NOT_GIVEN}

    def kind_of_output(self) -> KindType:
        """The kind that is asked for; in Rust it is a part of the type."""
        if "kind" in self.args:
            return KINDS[self.args["kind"]]
        if self.refused or "dtype" not in self.outputs[0]:
            return KINDS.get(self.kind, Float)
        return kind_of(np.dtype(NUMPY[self.outputs[0]["dtype"]]))

    def operands(self, device: Backend) -> list[Any]:
        """Inputs and arguments in the order in which the call names them."""
        return self.in_order(tensors(self.inputs, device) | self.values())

    def in_order(self, found: dict[str, Any]) -> list[Any]:
        """What the call names, in this order."""

        def place(name: str) -> int:
            named = re.search(rf"\b{name}\b(?!\s*:)", self.call)
            return named.start() if named else len(self.call)

        return [found[name] for name in sorted(found, key=place)]


class Listed(list[Any]):
    """A list that is one output; any other is spread into several."""


def read(value: Any) -> Any:
    """An argument: numbers that JSON cannot write are texts."""
    if isinstance(value, list):
        return [read(one) for one in value]
    return NOT_NUMBERS.get(value, value) if isinstance(value, str) else value


def array_of(tensor: dict[str, Any]) -> np.ndarray:
    """The elements of a tensor."""
    flat = [read(one) for one in tensor["data"]]
    return np.array(flat, NUMPY[tensor["dtype"]]).reshape(tensor["shape"])


def data_of(tensor: dict[str, Any]) -> TensorData:
    """The elements of a tensor, outside any backend."""
    return TensorData(array_of(tensor), dtype=tensor["dtype"])


def tensors(found: list[dict[str, Any]], device: Backend) -> dict[str, Tensor]:
    """Tensors by their names."""
    return {one["name"]: Tensor.from_data(data_of(one), device) for one in found}


@cache
def all_cases(path: Path = PATH) -> tuple[Case, ...]:
    """Every case of the file; none where it is absent."""
    return cases_of(path.read_text()) if path.is_file() else ()


def cases_of(text: str) -> tuple[Case, ...]:
    """The cases of a text that is laid out as the file is."""
    return tuple(Case(**one) for one in json.loads(text)["cases"])
