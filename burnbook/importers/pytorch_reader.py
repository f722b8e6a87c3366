"""PytorchReader: the tensors of a file of PyTorch by name, without PyTorch.

reader = PytorchReader("model.pt")
reader.keys()                       # in milliseconds, however large the file is
reader["fc.weight"].load()          # reads this one
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeVar

from burnbook.core.errors import ConfigError, RecordError
from burnbook.core.files import PathLike, map_file, printable, within_memory
from burnbook.importers.lazy_array import LazyArray
from burnbook.importers.pickle_reader import STATE_DICT, Inert, Name
from burnbook.importers.torch_formats import FileContent, Format, open_file
from burnbook.importers.torch_values import (
    Refusal,
    Storage,
    TorchTensor,
    item_size,
    refusal_of,
)
from burnbook.record.tree import MAX_DEPTH, Trouble, short
from burnbook.tensor.data import TensorData

C = TypeVar("C")
MOST_PARTS = 1_000_000  # of a whole file; a memo may let a few bytes stand for more
MAX_NAME = 4000  # characters of a name
DAMAGED = "the file as it was written: copy or download it again"
SHARED = 16  # how many times the file's size tensors may show the same bytes again
SOME = 64 << 20
Plain = bool | int | float | str | list[Any] | dict[str, Any]


@dataclass(frozen=True)
class PytorchMetadata:
    """What a file says about itself.

    format_type: zip, legacy, tar or pickle.
    pytorch_version: of the format, as the file has it: "3"; empty in old files.
    total_data_size: bytes of all tensors.
    """

    format_type: Format
    byte_order: str
    pytorch_version: str
    tensor_count: int
    total_data_size: int


@dataclass
class _Found:
    arrays: dict[str, LazyArray] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)


class PytorchReader:
    """The tensors of a file of PyTorch: zip, legacy, tar, or a bare pickle.

    top_level_key: read the part under this key only.

    Nested dicts and lists are joined with dots: "model.fc.weight", "weights.0"; a
    module that was saved whole is read as its state dict. What is no tensor is in
    `skipped`, with what it is; so are tensors that have no place here: complex,
    quantized and sparse ones (`refused`). Nothing that a file names is imported or
    called: an object of any class is only its name.

    Raises:
        RecordError: there is no such file, it is damaged or of another format, or it
            is one object or wants a function to be called: then with the name.
    """

    def __init__(self, path: PathLike, top_level_key: str | None = None) -> None:
        where = f"read {printable(path)}"
        self._open(map_file(path, RecordError, where), where, top_level_key)

    @classmethod
    def from_bytes(cls, data: bytes, top_level_key: str | None = None) -> PytorchReader:
        """The tensors of a file that is in memory."""
        made = object.__new__(cls)
        made._open(memoryview(data), "read bytes", top_level_key)
        return made

    def _open(self, data: memoryview, where: str, key: str | None) -> None:
        self.where, self.size, self._file = where, len(data), data.obj
        with within_memory(where, RecordError):
            try:
                self.content: FileContent = open_file(data)
                self.root = self.content.root
                if key is not None:
                    self.root = _below(self.root, key)
                self._found = self._collect(self.root)
            except Trouble as trouble:
                raise trouble.explain(where, [], DAMAGED) from None

    def keys(self) -> list[str]:
        """The names of all tensors, sorted."""
        return sorted(self._found.arrays)

    @property
    def arrays(self) -> dict[str, LazyArray]:
        """The tensors by name, in the order of the file."""
        return self._found.arrays

    @property
    def skipped(self) -> dict[str, str]:
        """What is no tensor, or none that has a place here: by name, what it is."""
        return self._found.skipped

    @property
    def refused(self) -> dict[str, str]:
        """Those of `skipped` that are tensors."""
        return {name: self.skipped[name] for name in sorted(self._found.refused)}

    @property
    def top_level_keys(self) -> list[str]:
        """The keys at the top under which there are parts, for `top_level_key`."""
        if not isinstance(self.root, dict):
            return []
        kinds = (dict, Inert, list, tuple)
        rows = self.root.items()
        return [k for k, held in rows if isinstance(k, str) and isinstance(held, kinds)]

    def __getitem__(self, name: str) -> LazyArray:
        found = self.get(name)
        if found is None:
            what = f"there is no tensor {short(name)}"
            facts = [("tensors", ", ".join(map(short, self.keys()[:6])))]
            raise RecordError(self.where, what, facts)
        return found

    def get(self, name: str) -> LazyArray | None:
        """The tensor of that name, or None."""
        return self._found.arrays.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found.arrays)

    def __len__(self) -> int:
        return len(self._found.arrays)

    def __contains__(self, name: object) -> bool:
        return name in self._found.arrays

    def __repr__(self) -> str:
        return f"PytorchReader({self.content.format}, {len(self)} tensors)"

    def metadata(self) -> PytorchMetadata:
        """What the file says about itself."""
        sizes = (prod(a.shape) * item_size(a.dtype) for a in self.arrays.values())
        order = "big" if self.content.big_endian else "little"
        count, version = len(self), self.content.version
        return PytorchMetadata(self.content.format, order, version, count, sum(sizes))

    def plain(self) -> Plain | None:
        """The part that was asked for as plain data: without tensors, keys as texts.

        None where nothing of that kind is there.
        """
        return _plain(self.root, _Budget())  # no deeper than what was read already

    def load_config(self, config: type[C]) -> C:
        """A config made from the part that was asked for.

        Raises:
            ConfigError: a field is missing or of another type.
            RecordError: that part is no map.
        """
        plain = self.plain()
        if not isinstance(plain, dict):
            what = "a config is a map of names and values, and this is none"
            cure = "the key under which the config was saved"
            raise RecordError(self.where, what, cure=cure)
        return _config_from(config, plain)

    def _collect(self, root: object) -> _Found:
        found, budget = _Found(), _Budget()
        shared = _Shared(SOME + SHARED * self.size)
        if isinstance(root, TorchTensor):
            root = {"tensor": root}
        if isinstance(root, Inert) and _inside(root) is None:
            what = f"it holds {root}, not only tensors"
            raise Trouble(what, cure=STATE_DICT)
        for name, held in _leaves(root, "", 0, budget, set()):
            if isinstance(held, TorchTensor):
                refusal = refusal_of(held)
                if refusal is None:
                    held.check()
                    refusal = shared.refusal(held)
                if refusal is None:
                    found.arrays[name] = self._array(name, held)
                    continue
                held = refusal
            if isinstance(held, Refusal):
                found.refused.add(name)
                found.skipped[name] = f"a tensor that is {held.what}; try: {held.cure}"
            else:
                found.skipped[name] = _kind_of(held)
        return found

    def _array(self, name: str, tensor: TorchTensor) -> LazyArray:
        def read() -> TensorData:
            where = f"{self.where}: {short(name)}"
            self._check_unchanged()
            with within_memory(where, RecordError):
                try:
                    return tensor.read()
                except Trouble as trouble:
                    raise trouble.explain(where, [], DAMAGED) from None

        return LazyArray(name, tensor.shape, tensor.dtype, read)

    def _check_unchanged(self) -> None:
        """Raise if the file is another one by now.

        Why: reading beyond the end of a mapped file kills the process.
        """
        if isinstance(self._file, mmap.mmap) and self._file.size() != self.size:
            what = "the file has changed since it was opened"
            raise RecordError(self.where, what, cure="opening it again")


class _Shared:
    """How many bytes tensors may have beyond those of their storages."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.seen: set[tuple[str, int]] = set()

    def refusal(self, tensor: TorchTensor) -> Refusal | None:
        """Why a tensor is not taken: a few bytes of a file would become too many."""
        storage = tensor.storage
        key = storage.key, id(storage.payload)
        own = 0 if key in self.seen else storage.numel * item_size(storage.dtype)
        self.seen.add(key)
        more = max(tensor.num_bytes - own, 0)
        if more > self.room:
            what = f"the same few elements shown {list(tensor.shape)} times"
            return Refusal(what, "tensor.clone() of the unexpanded one")
        self.room -= more
        return None


class _Budget:
    def __init__(self) -> None:
        self.left = MOST_PARTS

    def spend(self) -> None:
        """One more part."""
        self.left -= 1
        if self.left < 0:
            what = "a few bytes of the file stand for millions of parts"
            raise Trouble(what, f"at most {MOST_PARTS:,} parts")


def _leaves(
    node: object, name: str, depth: int, budget: _Budget, around: set[int]
) -> Iterator[tuple[str, object]]:
    """Everything that is no dict, list or tuple, with its name."""
    budget.spend()
    rows: Any = None
    if isinstance(node, dict):
        rows = node.items()
    elif isinstance(node, (list, tuple)):
        rows = enumerate(node)
    elif isinstance(node, Inert):
        inside = _inside(node)
        rows = None if inside is None else inside.items()
    if rows is None or (isinstance(node, dict) and any(map(_is_object, node))):
        yield name, node
        return
    if id(node) in around:
        raise Trouble(f"{short(name) or 'the file'} holds itself")
    if depth > MAX_DEPTH:
        raise Trouble(f"{short(name)} nests too deeply", f"{MAX_DEPTH} levels")
    around.add(id(node))
    for key, held in rows:
        text = str(key)
        inner = f"{name}.{text}" if name else text
        if len(inner) > MAX_NAME:
            what = f"a name has {len(inner):,} characters"
            raise Trouble(what, f"at most {MAX_NAME:,}", short(inner))
        yield from _leaves(held, inner, depth + 1, budget, around)
    around.discard(id(node))


def _is_object(key: object) -> bool:
    return isinstance(key, Inert)


def _inside(held: Inert) -> dict[Any, Any] | None:
    """What is in an object: the state dict of a module, the rows of a map or a list.

    None where it is an object of another kind.
    """
    state = held.state if isinstance(held.state, dict) else {}
    if state.keys() >= MODULE:
        parts = [state[name] for name in ("_parameters", "_buffers", "_modules")]
        if all(isinstance(part, dict) for part in parts):
            left_out = state.get("_non_persistent_buffers_set", ())
            left_out = left_out if isinstance(left_out, (set, frozenset)) else ()
            params, buffers, modules = parts
            buffers = {k: v for k, v in buffers.items() if k not in left_out}
            rows = {**params, **buffers, **modules}
            return {key: part for key, part in rows.items() if part is not None}
    if held.rows:
        return None if any(map(_is_object, held.rows)) else held.rows
    return dict(enumerate(held.parts)) if held.parts else None


ARRAYS = ("numpy.ndarray", "numpy.matrix")
MODULE = {"_parameters", "_buffers", "_modules"}


def _kind_of(held: object) -> str:
    """What something is that is no tensor."""
    if isinstance(held, Inert):
        cure = "torch.from_numpy(array) before torch.save"
        return f"{held}; try: {cure}" if held.name in ARRAYS else str(held)
    if isinstance(held, dict):
        return f"a map of {len(held)} whose keys are objects"
    if held is None or isinstance(held, (bool, int, float)):
        return short(repr(held))
    if isinstance(held, str):
        return f"a text: {short(held, 30)!r}"
    if isinstance(held, (set, frozenset)):
        return f"a set of {len(held)}"
    if isinstance(held, bytes):
        return f"{len(held)} bytes"
    if isinstance(held, Storage):
        return f"a storage of {held.numel} elements, without a shape"
    if isinstance(held, Name):
        return f"the name {short(held.text)}"
    return type(held).__name__


def _below(root: object, key: str) -> object:
    """The part under a key at the top."""
    if isinstance(root, dict) and key in root:
        return root[key]
    what = f"there is no {short(repr(key))} at the top of the file"
    if not isinstance(root, dict):
        raise Trouble(what, "a map at the top", _kind_of(root), "no top_level_key")
    keys = ", ".join(short(name, 30) for name in list(root)[:8])
    raise Trouble(what, found=keys or "an empty map", cure="one of the keys found")


NOTHING: Any = object()


def _plain(node: object, budget: _Budget, depth: int = 0) -> Any:
    """Plain data; what is none disappears from maps and lists."""
    budget.spend()
    if depth > MAX_DEPTH:
        raise Trouble("the file nests too deeply", f"{MAX_DEPTH} levels")
    if node is None or isinstance(node, (bool, int, float, str)):
        return node
    if isinstance(node, dict):
        rows = {
            key: _plain(held, budget, depth + 1)
            for key, held in node.items()
            if isinstance(key, str)
        }
        return {key: held for key, held in rows.items() if held is not NOTHING}
    if isinstance(node, (list, tuple)):
        parts = [_plain(held, budget, depth + 1) for held in node]
        return [part for part in parts if part is not NOTHING]
    return NOTHING if depth else None


def _config_from(config: type[C], plain: dict[str, Any]) -> C:
    """A config from a map, whose other names do not matter."""
    import json

    known = getattr(config, "json_fields", None)
    if known is None:
        what = f"{getattr(config, '__name__', config)} is no Config"
        cure = "class NetConfig(Config): …"
        raise ConfigError("load_config", what, cure=cure)
    names = {name for name, _, _ in known()}
    given = {name: value for name, value in plain.items() if name in names}
    make: Any = config
    return make.from_json(json.dumps(given))
