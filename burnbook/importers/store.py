"""Stores, as in newer Burn: named arrays in a file, loaded into a module.

    store = PytorchStore.from_file("model.pt").with_key_remapping(r"^net\\.", "")
    model, result = model.load_from(store)

A store for another format gives its arrays (`read_arrays`), everything else is here:
the names are remapped, an adapter finds each parameter of the module among them, a
filter chooses, and an ApplyResult says what came of it.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Self, TypeVar

from burnbook.core.converters import ANYTHING
from burnbook.core.errors import (
    ConfigError,
    DataError,
    RecordError,
    explain,
    warn_caller,
)
from burnbook.importers.absence import common_prefix, reason_among, without_prefix
from burnbook.importers.adapter import Adapter, IdentityAdapter
from burnbook.importers.apply_result import (
    ApplyError,
    ApplyResult,
    NotApplied,
)
from burnbook.importers.formulas import warn_of_formulas
from burnbook.importers.key_remap import KeyRemapper, contiguous
from burnbook.importers.lazy_array import LazyArray
from burnbook.importers.path_filter import PathFilter, Predicate
from burnbook.importers.torch_layers import Source, Spot, spots
from burnbook.module.module import Module
from burnbook.module.param import Param, ParamRecord
from burnbook.module.records import Loading
from burnbook.module.tree import rebuild

M = TypeVar("M", bound=Module)
MOST_FACTS = 6  # of a warning


class ModuleStore(ABC):
    """Named arrays for a module; each `with_` method gives another store.

    A store for another format overrides `read_arrays`, and the class attributes where
    other defaults are wanted.
    """

    enum_variants_skipped: ClassVar[bool] = False
    indices_contiguous: ClassVar[bool] = False

    def __init__(self, adapter: Adapter | None = None) -> None:
        """A store without rules or filter; `adapter` is what reads the file."""
        self._adapter: Adapter = adapter or IdentityAdapter()
        self._remapper = KeyRemapper()
        self._filter: PathFilter | None = None
        self._validate, self._partial, self._unused = True, False, False
        self._skip_variants = self.enum_variants_skipped
        self._contiguous = self.indices_contiguous
        self._named: dict[str, LazyArray] | None = None

    @abstractmethod
    def read_arrays(self) -> Mapping[str, LazyArray]:
        """The arrays under the names that the file has for them; elements wait."""

    def read_others(self) -> Mapping[str, str]:
        """What the file has under a name that cannot be loaded, and why not."""
        return {}

    def read_refused(self) -> Iterable[str]:
        """Which of these are tensors."""
        return ()

    @property
    def top_level_keys(self) -> list[str]:
        """The parts of the file that could be loaded alone."""
        return []

    @property
    @abstractmethod
    def source(self) -> str:
        """What errors call the file: its path."""

    def _with(self, **changed: object) -> Self:
        made = copy.copy(self)
        made._named = None
        for name, value in changed.items():
            setattr(made, f"_{name}", value)
        return made

    # Which names

    def with_key_remapping(self, pattern: str, replacement: str) -> Self:
        """With one more rule for names: a pattern of Rust's regex, and "$1".

        Raises:
            ConfigError: it is no such pattern.
        """
        return self._with(remapper=self._remapper.add_pattern(pattern, replacement))

    def remap(self, remapper: KeyRemapper) -> Self:
        """With these rules in place of all others."""
        return self._with(remapper=remapper)

    def map_indices_contiguous(self, on: bool = True) -> Self:
        """Whether numbers in names close their gaps: 0, 2, 5 are parts 0, 1, 2."""
        return self._with(contiguous=on)

    def skip_enum_variants(self, on: bool = True) -> Self:
        """Whether names leave out which class of a union a part is of."""
        return self._with(skip_variants=on)

    # Which parameters

    def filter(self, chosen: PathFilter) -> Self:
        """Only parameters that this filter lets pass; an empty one passes all."""
        return self._with(filter=chosen)

    def with_regex(self, pattern: str) -> Self:
        """Also parameters whose path this pattern of Rust's regex matches."""
        return self.filter((self._filter or PathFilter()).with_regex(pattern))

    def with_regexes(self, patterns: Iterable[str]) -> Self:
        """Also parameters whose path one of these patterns matches."""
        return self.filter((self._filter or PathFilter()).with_regexes(patterns))

    def with_full_path(self, path: str) -> Self:
        """Also the parameter with exactly this path."""
        return self.filter((self._filter or PathFilter()).with_full_path(path))

    def with_full_paths(self, paths: Iterable[str]) -> Self:
        """Also the parameters with exactly these paths."""
        return self.filter((self._filter or PathFilter()).with_full_paths(paths))

    def with_predicate(self, predicate: Predicate) -> Self:
        """Also parameters for which `predicate(path, containers)` is true."""
        return self.filter((self._filter or PathFilter()).with_predicate(predicate))

    def match_all(self) -> Self:
        """All parameters."""
        return self.filter((self._filter or PathFilter()).match_all())

    # How strictly

    def validate(self, on: bool = True) -> Self:
        """Whether a parameter that cannot be loaded is an error, as by default."""
        return self._with(validate=on)

    def allow_partial(self, on: bool = True) -> Self:
        """Whether the module takes what fits, and keeps its own values elsewhere."""
        return self._with(partial=on)

    def allow_unused(self, on: bool = True) -> Self:
        """Whether the file may hold what the module has no place for.

        With a filter it may in any case, as the filter says what is wanted.
        """
        return self._with(unused=on)

    def with_from_adapter(self, adapter: Adapter) -> Self:
        """With another adapter for reading."""
        if not isinstance(adapter, Adapter):
            what = f"{type(adapter).__name__} is no adapter"
            cure = "PyTorchToBurnAdapter()"
            raise ConfigError("with_from_adapter", what, cure=cure)
        return self._with(adapter=adapter)

    # What it has

    def arrays(self) -> dict[str, LazyArray]:
        """All arrays under their remapped names, sorted.

        Raises:
            RecordError: the file cannot be read, or two of its names become one.
        """
        if self._named is None:
            held = self.read_arrays()
            named = self._remapper.all_renamed(held, f"load {self.source}")
            rows = {named[old]: array for old, array in held.items()}
            self._named = {name: rows[name] for name in sorted(rows)}
        return self._named

    def keys(self) -> list[str]:
        """The names, remapped and without gaps in their numbers, sorted."""
        return sorted(self.get_all_snapshots())

    def get_snapshot(self, name: str) -> LazyArray | None:
        """The array of that name, or None."""
        return self.get_all_snapshots().get(name)

    def get_all_snapshots(self) -> dict[str, LazyArray]:
        """The arrays by the names of `keys()`."""
        arrays = self.arrays()
        if not self._contiguous:
            return dict(arrays)
        return {new: arrays[old] for old, new in contiguous(arrays).items()}

    # Into a module

    def apply_to(self, module: M) -> tuple[M, ApplyResult]:
        """The module with the values of the file, and what came of it; never an error
        because something does not fit.

        Raises:
            RecordError: the file itself cannot be read.
        """
        renamed = self._remapper.renamed
        others = {renamed(name): why for name, why in self.read_others().items()}
        refused = set(map(renamed, self.read_refused()))
        applying = _Applying(self.arrays(), self._adapter, self._chosen)
        applying.others, applying.refused = others, refused
        return applying.run(
            module,
            spots(
                module,
                self.arrays(),
                contiguous=self._contiguous,
                skip_variants=self._skip_variants,
            ),
        )

    def load_into(self, module: M) -> tuple[M, ApplyResult]:
        """What `module.load_from(store)` gives: the loaded module, and a result.

        Raises:
            NotApplied: something is missing or does not fit, unless `allow_partial`,
                or the file holds more, unless `allow_unused`; see its `result`.
            RecordError: the file cannot be read.
        """
        made, result = self.apply_to(module)
        wrong = result.errors if self._validate and not self._partial else ()
        missing = () if self._partial else result.missing
        unused = self._left_over(result)
        if wrong or missing or unused:
            counts = len(missing), len(wrong), len(unused)
            raise self._refused(module, result, *counts)
        if self._adapter.in_pytorch and result.applied:
            applied = set(result.applied)
            rows = spots(module, skip_variants=self._skip_variants)
            loaded = (spot for spot in rows if spot.path in applied)
            warn_of_formulas(f"load {self.source}", loaded)
        total = len(result.missing) + len(result.errors)
        if self._partial and total and not result.applied:
            what = f"0 of {total} parameters of {type(module).__name__} loaded"
            cure = self._cure(module, result, total)
            facts = result.facts()[:MOST_FACTS]
            warn_caller(explain(f"load {self.source}", what, facts, cure))
        return made, result

    def _left_over(self, result: ApplyResult) -> tuple[str, ...]:
        """What of the file has no place, where that matters."""
        filtered = self._filter is not None and not self._filter.is_empty()
        lenient = self._partial or self._unused or filtered or not self._validate
        return () if lenient else result.unused

    def _chosen(self, spot: Spot) -> bool:
        chosen = self._filter
        if chosen is None or chosen.is_empty():
            return True
        return chosen.matches(spot.path, spot.containers)

    def _refused(
        self, module: Module, result: ApplyResult, missing: int, wrong: int, unused: int
    ) -> NotApplied:
        parts = [f"{missing} missing"] if missing else []
        parts += [f"{wrong} cannot be loaded"] if wrong else []
        total = len(result.applied) + len(result.missing) + len(result.errors)
        name = type(module).__name__
        what = f"of {total} parameters of {name}, {' and '.join(parts)}"
        more = f"{unused} name{'s' if unused > 1 else ''} of the file left over"
        if not parts:
            what = f"{name} has no place for {more.replace(' left over', '')}"
        elif unused:
            what += f"; {more}"
        cure = self._cure(module, result, missing)
        if unused and not parts:
            cure += ", or allow_unused(True) to leave them"
        elif missing or wrong:
            cure += ", or allow_partial(True) to keep the module's own values"
        error = NotApplied(f"load {self.source}", what, result.facts(), cure)
        error.result = result
        return error

    def _cure(self, module: Module, result: ApplyResult, missing: int) -> str:
        """How names or layouts could be made to fit."""
        if not self._adapter.in_pytorch and _is_turned(result):
            return "with_from_adapter(PyTorchToBurnAdapter()) for a file of PyTorch"
        if missing:
            named = self.get_all_snapshots()
            prefix = common_prefix(spots(module), self._adapter.sources, named)
            calls = without_prefix(prefix, self.top_level_keys, "with_key_remapping")
            if calls:
                return calls.lstrip(".")
        return "with_key_remapping(pattern, replacement) for other names"

    def save_from(self, module: Module) -> object:
        """Write a module's parameters; not every store can.

        Raises:
            RecordError: this store only reads, or the file cannot be written.
        """
        what = f"{type(self).__name__} only reads"
        raise RecordError(f"save {self.source}", what, cure="SafetensorsStore")


def _is_turned(result: ApplyResult) -> bool:
    """Whether shapes are the wrong way round, or norms have PyTorch's names."""
    turned = any(
        error.kind == "shape" and _sizes(error.expected) == _sizes(error.found)[::-1]
        for error in result.errors
    )
    missing = {path.rpartition(".")[2] for path, _ in result.missing}
    unused = {name.rpartition(".")[2] for name in result.unused}
    return turned or bool(missing & {"gamma", "beta"} and unused & {"weight", "bias"})


def _sizes(shape: str) -> list[str]:
    return shape.strip("[]").split(", ")


class _Applying:
    """One walk over the parameters of a module."""

    def __init__(
        self,
        arrays: Mapping[str, LazyArray],
        adapter: Adapter,
        chosen: Callable[[Spot], bool],
    ) -> None:
        self.arrays, self.adapter, self.chosen = arrays, adapter, chosen
        self.others: Mapping[str, str] = {}
        self.refused: set[str] = set()
        self.applied: list[str] = []
        self.skipped: list[str] = []
        self.missing: list[tuple[str, str]] = []
        self.errors: list[ApplyError] = []
        self.used: set[str] = set()
        self.loaded: dict[Param, Param] = {}

    def run(self, module: M, rows: Iterable[Spot]) -> tuple[M, ApplyResult]:
        """The module with what the arrays hold."""
        for spot in rows:
            if spot.layer_type == "BatchNorm":
                self.used |= {counter_beside(s.name) for s in spot.theirs}
            self.one(spot)
        loaded = self.loaded
        made = rebuild(
            module, lambda param: loaded.get(param, param), lambda held: held
        )
        unused = tuple(sorted((self.arrays.keys() | self.refused) - self.used))
        found = (tuple(self.applied), tuple(self.skipped), tuple(self.missing), unused)
        return made, ApplyResult(*found, tuple(self.errors))

    def one(self, spot: Spot) -> None:
        """Load one parameter, or say why not."""
        source = found_among(self.arrays, self.adapter.sources(spot))
        if source is not None:
            self.used.add(source.name)
        if not self.chosen(spot):
            self.skipped.append(spot.path)
        elif source is None:
            self.absent(spot)
        else:
            array = taken(self.arrays, source)
            if isinstance(array, LazyArray):
                array = self.adapter.adapt(array, spot)
            self.load(spot, array)

    def absent(self, spot: Spot) -> None:
        """Say that a parameter is missing, or what the file has in its place."""
        sources = self.adapter.sources(spot)
        why = reason_among(self.others, sources)
        if why is None:
            self.missing.append((spot.path, spot.containers))
        else:
            self.used |= {source.name for source in sources}
            self.errors.append(ApplyError("load", spot.path, found=why))

    def load(self, spot: Spot, array: LazyArray | str) -> None:
        """Give the parameter the values of an array that fits."""
        path, param = spot.path, spot.param
        shape = list(param.saved_shape)
        if isinstance(array, str):
            self.errors.append(ApplyError("adapter", path, found=array))
        elif list(array.shape) != shape:
            found = str(list(array.shape))
            self.errors.append(ApplyError("shape", path, str(shape), found))
        elif array.kind is not param.kind:
            kind = param.kind.__name__
            self.errors.append(ApplyError("dtype", path, kind, array.dtype))
        elif param in self.loaded:  # tied: it has its values
            self.applied.append(path)
        else:
            try:
                record = ParamRecord(param.id.serialize(), array.load())
                loading = Loading()
                made = loading.param(param, record, ANYTHING, path)
            except (RecordError, DataError) as error:
                self.errors.append(ApplyError("load", path, found=error.what))
                return
            if loading.problems or made is None:
                text = loading.problems[0][1] if loading.problems else "nothing"
                self.errors.append(ApplyError("load", path, found=text))
                return
            self.loaded[param] = made
            self.applied.append(path)


def found_among(
    arrays: Mapping[str, LazyArray], sources: Iterable[Source]
) -> Source | None:
    """The first source that the file has."""
    return next((source for source in sources if source.name in arrays), None)


def taken(arrays: Mapping[str, LazyArray], source: Source) -> LazyArray | str:
    """The array that a source speaks of, or why it cannot be taken from the file."""
    array = arrays[source.name]
    if source.of > 1:
        if not array.shape or array.shape[0] % source.of:
            return f"{list(array.shape)} has no {source.of} blocks"
        array = array.part(source.part, source.of)
    if source.turned and len(array.shape) == 2:
        array = array.turned()
    return array


def counter_beside(name: str) -> str:
    """What PyTorch calls the count of batches of a norm with this parameter."""
    return f"{name.rpartition('.')[0]}.num_batches_tracked".lstrip(".")
