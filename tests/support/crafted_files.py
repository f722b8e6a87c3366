"""Files of PyTorch, safetensors and ONNX, changed where it hurts, tried in numbers.

Bytes are flipped, cut and spliced as by accident; and pickles, directories of archives,
headers and graphs are changed as by somebody who knows them: other names, sizes of
2**63, offsets that overlap, graphs with circles, data outside of the folder. Nothing
but our errors may come of it, nothing may run, and memory stays near the file's size.

`python -m tests.support.crafted_files 100000` tries so many of each kind, in a child
process with limits; a number repeats one: `... pt 1 --start 4711`.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import itertools
import json
import pickletools
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from burnbook.core.errors import BurnbookError
from burnbook.exporters import write_state_dict
from burnbook.importers.pytorch_reader import PytorchReader
from burnbook.record.safetensors_files import SafetensorsFile
from burnbook.record.safetensors_format import Written, encode
from burnbook.tensor import TensorData

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT.parent / "shared" / "golden"
SIZES = [0, 1, 2, 3, -1, 255, 2**31 - 1, 2**31, 2**32, 2**40, 2**48, 2**62, 2**63 - 1]
LARGE = [*SIZES, -(2**63), 2**64, 10**30]
Make = Callable[[random.Random], bytes]


# By accident


def damaged(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, cut, doubled, or taken from another file."""
    made = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        if not made:
            break
        at, count = rng.randrange(len(made)), rng.choice([1, 2, 4, 8, 40])
        match rng.randrange(8):
            case 0:
                made[at] = rng.randrange(256)
            case 1:
                made[at] ^= 1 << rng.randrange(8)
            case 2:
                made[at : at + count] = bytes(
                    [rng.choice([0, 255])] * len(made[at : at + count])
                )
            case 3:
                del made[at : at + count]
            case 4:
                made[at:at] = made[at : at + count]
            case 5:
                del made[at:]
            case 6:
                start = rng.randrange(len(other))
                made[at : at + count] = other[start : start + count]
            case _:
                made[at:] = other[rng.randrange(len(other)) :]
    return bytes(made)


# PyTorch


@cache
def torch_seeds() -> list[bytes]:
    """Files that burnbook writes; PyTorch's where it is, Burn's where they lie."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.pt"
        tensors = {
            f"part.{i}.{kind}": TensorData(np.arange(6).reshape(2, 3)).convert(kind)
            for i, kind in enumerate(["f32", "f16", "i64", "u8"])
        }
        deep = {"model": tensors, "epoch": 3, "names": ["a", "b"], "rate": 0.5}
        found = [write_state_dict(each, path).read_bytes() for each in (tensors, deep)]
    with contextlib.suppress(ImportError):
        from tests.support.mutated_files import small_files

        found += [data for _, data in small_files()]
    if (GOLDEN / "pytorch").is_dir():
        paths = sorted((GOLDEN / "pytorch").glob("*.pt"))
        found += [p.read_bytes() for p in paths if p.stat().st_size < 10_000]
    return found


NAMES = [
    *("os\nsystem", "posix\nsystem", "builtins\neval", "builtins\nexec"),
    *("subprocess\nPopen", "socket\nsocket", "builtins\ngetattr", "builtins\nopen"),
    *("importlib\nimport_module", "numpy.core.multiarray\n_reconstruct"),
    *("torch._utils\n_rebuild_tensor_v2", "torch._utils\n_rebuild_tensor_v3"),
    *("torch._utils\n_rebuild_parameter", "torch._tensor\n_rebuild_from_type_v2"),
    *("torch\nFloatStorage", "torch\nLongStorage", "torch.storage\nUntypedStorage"),
    *("torch.storage\n_load_from_bytes", "torch\nfloat16", "torch\nSize"),
    *("collections\nOrderedDict", "collections\ndefaultdict", "collections\nCounter"),
    *("builtins\ndict", "builtins\nset", "builtins\nfrozenset", "_codecs\nencode"),
    *("torch._utils\n_rebuild_sparse_tensor", "torch._utils\n_rebuild_qtensor"),
    *("__main__\nNet", "torch\ndevice", "torch.jit._pickle\nrestore_type_tag"),
]
OPCODES = b".()]}tRbQq\x80\x81\x85\x86\x87\x8a\x8b\x93\x94\x95cGJKMNXesua0l2d1\x8f\x91"


def number(value: int, rng: random.Random) -> bytes:
    """A pickle's instruction for a whole number."""
    if -(2**31) <= value < 2**31 and rng.random() < 0.5:
        return b"J" + struct.pack("<i", value)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


@lru_cache(500)
def pickle_parts(data: bytes) -> tuple[tuple[str, bytes], ...]:
    """The instructions of one pickle, as their names and bytes; of none if damaged."""
    try:
        found = [(op.name, at or 0) for op, _, at in pickletools.genops(data)]
    except Exception:  # of pickletools: whatever it meets
        return ()
    ends = [at for _, at in found[1:]] + [found[-1][1] + 1]
    rows = zip(found, ends, strict=True)
    return tuple((name, data[at:end]) for (name, at), end in rows)


@lru_cache(500)
def members_of(data: bytes) -> tuple[tuple[str, bytes], ...]:
    """Names and contents of a zip archive; of none if damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old:
            return tuple((m.filename, old.read(m)) for m in old.infolist())
    except Exception:  # of zipfile: whatever it meets
        return ()


def marks(data: bytes, mark: bytes) -> list[int]:
    """Where a mark stands."""
    return [found.start() for found in re.finditer(re.escape(mark), data)]


def crafted_pickle(data: bytes, rng: random.Random) -> bytes:  # noqa: C901 - a table
    """The pickle with other numbers, names, references or instructions."""
    parts = list(pickle_parts(data))
    if not parts:
        return damaged(data, data, rng)
    rest = data[sum(len(part) for _, part in parts) :]
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(parts))
        like = [
            i for i, (name, _) in enumerate(parts) if "INT" in name or "LONG" in name
        ]
        names = [i for i, (name, _) in enumerate(parts) if name.endswith("GLOBAL")]
        match rng.randrange(9):
            case 0 if like:
                parts[rng.choice(like)] = ("INT", number(rng.choice(LARGE), rng))
            case 1 if like:
                parts[rng.choice(like)] = ("INT", number(rng.randrange(-3, 300), rng))
            case 2 if names:
                name = rng.choice(NAMES).encode()
                parts[rng.choice(names)] = ("GLOBAL", b"c" + name + b"\n")
            case 3:
                del parts[at]
            case 4:
                parts[at:at] = [rng.choice(parts)] * rng.choice([1, 1, 2, 50])
            case 5:
                other = rng.randrange(len(parts))
                parts[at], parts[other] = parts[other], parts[at]
            case 6:
                parts[at:at] = [("GET", b"h" + bytes([rng.randrange(40)]))]
            case 7:
                parts[at] = ("?", bytes([rng.choice(OPCODES)]))
            case _:
                stop = rng.randrange(at, min(at + 30, len(parts)))
                parts[at:at] = parts[at:stop] * rng.choice([1, 2, 20])
        parts = parts[:20_000] or [("STOP", b".")]
    return b"".join(part for _, part in parts) + rest


def crafted_archive(data: bytes, rng: random.Random, change: bool = True) -> bytes:
    """The zip archive with another pickle, or with another directory."""
    members = members_of(data)
    if not members:
        return damaged(data, data, rng)
    made, known = io.BytesIO(), set[str]()
    with zipfile.ZipFile(made, "w") as new:
        for name, content in members:
            if name.endswith("data.pkl") and change:
                content = crafted_pickle(content, rng)
            if rng.random() < 0.03:
                name = rng.choice(["../x", "/etc/passwd", name + "x", "a" * 3000, name])
            if rng.random() < 0.02:
                content = content[: rng.randrange(len(content) + 1)]
            packed = zipfile.ZIP_DEFLATED if rng.random() < 0.1 else zipfile.ZIP_STORED
            if rng.random() < 0.02:
                content = bytes(rng.choice([10_000, 3_000_000]))
            if name in known:
                continue
            known.add(name)
            new.writestr(zipfile.ZipInfo(name), content, packed)
    return made.getvalue()


FIELDS = {  # of a zip file's central directory: where each is, and how long
    "flags": (8, 2),
    "method": (10, 2),
    "crc": (16, 4),
    "packed": (20, 4),
    "size": (24, 4),
    "name": (28, 2),
    "extra": (30, 2),
    "comment": (32, 2),
    "disk": (34, 2),
    "offset": (42, 4),
}


def crafted_directory(data: bytes, rng: random.Random) -> bytes:
    """The archive with wrong sizes, places and methods in its directories."""
    made = bytearray(data)
    heads, local = marks(data, b"PK\x01\x02"), marks(data, b"PK\x03\x04")
    ends = [at for at in marks(data, b"PK\x05\x06") if at + 22 <= len(data)]
    for _ in range(rng.choice([1, 1, 2, 3])):
        kind = rng.randrange(4)
        if kind < 2 and heads:
            at = rng.choice(heads)
            place, count = FIELDS[rng.choice(list(FIELDS))]
        elif kind == 2 and local:
            at = rng.choice(local)
            place, count = rng.choice(
                [(6, 2), (8, 2), (18, 4), (22, 4), (26, 2), (28, 2)]
            )
        elif ends:
            at = rng.choice(ends)
            place, count = rng.choice([(8, 2), (10, 2), (12, 4), (16, 4), (20, 2)])
        else:
            return damaged(data, data, rng)
        values = [0, 1, 8, 9, 2**8 - 1, 2**15, 2**16 - 1, 2**31, 2**32 - 1]
        value = rng.choice([*values, rng.randrange(2**16)]) % 2 ** (8 * count)
        made[at + place : at + place + count] = value.to_bytes(count, "little")
    return bytes(made)


def crafted_pt(rng: random.Random) -> bytes:
    """A file of PyTorch that is none."""
    seeds = torch_seeds()
    data = rng.choice(seeds)
    kind = rng.random()
    if kind < 0.3:
        return damaged(data, rng.choice(seeds), rng)
    if data[:2] != b"PK":
        return crafted_pickle(data, rng)
    if kind < 0.75:
        return crafted_archive(data, rng)
    if kind < 0.95:
        return crafted_directory(data, rng)
    return crafted_directory(crafted_archive(data, rng, change=False), rng)


# safetensors


@cache
def safe_seeds() -> list[bytes]:
    """Files of some tensors, of all element types."""
    found: list[bytes] = []
    kinds = ["F32", "F16", "BF16", "I64", "U8", "BOOL", "F8_E4M3", "F64", "U64"]
    widths = [4, 2, 2, 8, 1, 1, 1, 8, 8]
    for count in (1, 3, len(kinds)):
        head, body = {"__metadata__": {"format": "pt"}}, b""
        for i, (kind, width) in enumerate(zip(kinds[:count], widths, strict=False)):
            size = 6 * width
            span = [len(body), len(body) + size]
            about = {"dtype": kind, "shape": [2, 3], "data_offsets": span}
            head[f"part.{i}.weight"] = about  # type: ignore[assignment] # of JSON
            body += bytes(range(size))
        text = json.dumps(head).encode()
        found.append(len(text).to_bytes(8, "little") + text + body)
    one = TensorData(np.ones((3, 4), np.float32))
    content = Written("w", "F32", [3, 4], 48, one.as_bytes)
    found.append(b"".join(encode([content], {"a": "b"})))
    return found


ODD = [
    *(None, True, 1.5, "F32", "", [], {}, [[]], "é" * 10, "\ud800"),
    *(-1, 0, 2**31, 2**63, 2**64, 10**30, 1e300),
]


def odd(rng: random.Random) -> object:
    """What no header has in any place, new each time."""
    return copy.deepcopy(rng.choice(ODD))


def crafted_safetensors(rng: random.Random) -> bytes:  # noqa: C901 - a table
    """A safetensors file that is none."""
    seeds = safe_seeds()
    data = rng.choice(seeds)
    if rng.random() < 0.3:
        return damaged(data, rng.choice(seeds), rng)
    length = int.from_bytes(data[:8], "little")
    head, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    names = [name for name in head if name != "__metadata__"]
    for _ in range(rng.choice([1, 1, 2, 4])):
        name = rng.choice(names)
        about = head[name] if isinstance(head.get(name), dict) else {}
        match rng.randrange(10):
            case 0:
                about["dtype"] = rng.choice(["F32", "I8", "F4", "C64", "X", odd(rng)])
            case 1:
                shape = [rng.choice(LARGE) for _ in range(rng.choice([0, 1, 2, 5, 70]))]
                about["shape"] = rng.choice([shape, odd(rng)])
            case 2:
                a, b = rng.randrange(-1, len(body) + 9), rng.randrange(len(body) + 9)
                about["data_offsets"] = rng.choice([[a, b], [b, a], [a], [0, 0]])
            case 3:
                about["data_offsets"] = [rng.choice(LARGE), rng.choice(LARGE)]
            case 4:
                about[rng.choice(["dtype", "shape", "data_offsets", "x"])] = odd(rng)
            case 5 if about:
                about.pop(rng.choice(list(about)))
            case 6:
                head["__metadata__"] = rng.choice([odd(rng), {"a": odd(rng)}])
            case 7:
                head[rng.choice(["", "a" * 5000, "../x", "a.b", "part.0"])] = dict(
                    about
                )
            case 8:
                head[name] = odd(rng)
            case _:
                body = body[: rng.randrange(len(body) + 1)] + bytes(
                    rng.choice([0, 0, 7])
                )
    text = json.dumps(head, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.1:
        deep = rng.choice([50, 5000, 100_000])
        text = rng.choice(
            ['{"a":' * deep, "[" * deep + "]" * deep, text[:-1] + "," + text[1:]]
        )
    if rng.random() < 0.05:
        text = text.replace(
            "6", rng.choice(["1e999", "NaN", "6.0", "-0", "9" * 9000]), 1
        )
    raw = text.encode("utf-8", "surrogatepass")
    size = rng.choice(LARGE) % 2**64 if rng.random() < 0.05 else len(raw)
    return size.to_bytes(8, "little") + raw + body


# ONNX


@cache
def onnx_seeds() -> list[bytes]:
    """Small graphs: a classifier, control flow, functions; Burn's where they lie."""
    from tests.support.onnx_graphs import graphs

    found = [model.SerializeToString() for model in graphs()]
    if (GOLDEN / "onnx").is_dir():
        paths = sorted((GOLDEN / "onnx").glob("*.onnx"))
        found += [p.read_bytes() for p in paths if p.stat().st_size < 20_000]
    return found


def varint(value: int) -> bytes:
    """A whole number as protobuf has it."""
    made = bytearray()
    value %= 2**64
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def fields(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a protobuf message: start, start of the value, end, wire type."""
    at = 0
    while at < len(data):
        start, key, shift = at, 0, 0
        while True:
            byte = data[at]
            key |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                break
        kind, value = key & 7, at
        if kind in (0, 2):
            size, shift = 0, 0
            while True:
                byte = data[at]
                size |= (byte & 127) << shift
                at, shift = at + 1, shift + 7
                if byte < 128:
                    break
            if kind == 2:
                value, at = at, at + size
        else:
            at += {1: 8, 5: 4}[kind]
        if at > len(data):
            raise ValueError
        yield start, value, at, kind


def crafted_message(data: bytes, rng: random.Random, depth: int = 0) -> bytes:
    """A message in which a length, a number or a field somewhere is another."""
    try:
        found = list(fields(data))
    except (IndexError, KeyError, ValueError):
        return damaged(data, data, rng) if data else data
    if not found:
        return data
    start, value, end, kind = rng.choice(found)
    if kind == 2 and rng.random() < 0.8 and depth < 12:
        inner = crafted_message(data[value:end], rng, depth + 1)
        key = data[start:value]
        tag = key[: len(key) - len(varint(end - value))]
        size = len(inner)
        if rng.random() < 0.05:
            size = rng.choice([0, size + 1, size - 1, 2**31, 2**32 - 1, 2**63])
        return data[:start] + tag + varint(size) + inner + data[end:]
    match rng.randrange(5):
        case 0:
            return data[:start] + data[end:]
        case 1:
            return data[:end] + data[start:end] * rng.choice([1, 2, 30]) + data[end:]
        case 2 if kind == 0:
            return data[:value] + varint(rng.choice(LARGE)) + data[end:]
        case 3:
            tag = varint(rng.randrange(1, 40) << 3 | kind)
            return data[:start] + tag + data[start + 1 :]
        case _:
            return damaged(data, data, rng)


def crafted_graph(model: object, rng: random.Random) -> None:  # noqa: C901, PLR0915 - a table
    """Change what a model means: shapes, circles, attributes, types, places."""
    from onnx import TensorProto

    graph = model.graph  # type: ignore[attr-defined] # a ModelProto
    nodes, held = list(graph.node), list(graph.initializer)
    attributes = [a for node in nodes for a in node.attribute]
    names = [n for node in nodes for n in (*node.input, *node.output)]
    match rng.randrange(14):
        case 0 if held:
            tensor = rng.choice(held)
            dims = [rng.choice(SIZES) for _ in range(rng.choice([0, 1, 2, 70]))]
            tensor.dims[:] = dims if rng.random() < 0.6 else tensor.dims[::-1]
        case 1 if held:
            rng.choice(held).data_type = rng.choice([0, *range(1, 30), 99, -1])
        case 2 if nodes:  # a circle, or something that is made twice
            node = rng.choice(nodes)
            if node.input and rng.random() < 0.7:
                node.input[rng.randrange(len(node.input))] = rng.choice(names)
            elif node.output:
                node.output[rng.randrange(len(node.output))] = rng.choice(names)
        case 3 if attributes:
            a = rng.choice(attributes)
            a.i = rng.choice(SIZES)
            if a.ints:
                a.ints[rng.randrange(len(a.ints))] = rng.choice(SIZES)
        case 4 if attributes:
            a = rng.choice(attributes)
            many = rng.choice([1, 2, 5, 100_000 if rng.random() < 0.02 else 9])
            a.ints.extend([rng.choice(SIZES)] * many)
            a.s = rng.choice([b"", b"SAME_UPPER", b"x'\"\n" * 30, b"\xff\xfe"])
        case 5 if attributes:
            rng.choice(attributes).type = rng.randrange(15)
        case 6 if attributes:
            rng.choice(attributes).f = rng.choice([float("nan"), float("inf"), -1e30])
        case 7 if held:
            tensor = rng.choice(held)
            tensor.data_location = TensorProto.EXTERNAL
            places = ["../x", "/etc/passwd", "a/../../b", "", "\x00", ".", "w.bin"]
            tensor.external_data.add(key="location", value=rng.choice(places))
            value = str(rng.choice([*LARGE, "x", ""]))
            tensor.external_data.add(key=rng.choice(["offset", "length"]), value=value)
        case 8 if nodes:
            rng.choice(nodes).op_type = rng.choice([n.op_type for n in nodes] + OPS)
        case 9:
            for opset in model.opset_import:  # type: ignore[attr-defined] # see above
                opset.version = rng.choice([*SIZES, *range(1, 30)])
        case 10 if nodes:
            at = rng.randrange(len(nodes))
            if rng.random() < 0.5:
                del graph.node[at]
            else:
                graph.node.add().CopyFrom(nodes[at])
        case 11:
            values = [*graph.input, *graph.output, *graph.value_info]
            if values:
                kind = rng.choice(values).type.tensor_type
                kind.elem_type = rng.choice([0, *range(1, 30), 1000])
                for dim in kind.shape.dim:
                    dim.dim_value = rng.choice(SIZES)
        case 12 if attributes:  # the whole graph inside of itself
            a = rng.choice(attributes)
            a.type = 5
            copy = type(graph)()
            copy.CopyFrom(graph)
            a.g.CopyFrom(copy)
        case _ if nodes:
            node = rng.choice(nodes)
            node.input.extend([rng.choice(names)] * rng.choice([1, 2, 40]))


OPS = [
    *("Relu", "If", "Loop", "Scan", "Reshape", "Cast", "Concat", "Gather", "Resize"),
    *("Conv", "LSTM", "MatMul", "Transpose", "Slice", "Pad", "Tile", "Constant"),
    *("ConstantOfShape", "Split", "Squeeze", "Identity", "QLinearMatMul", "OneHot"),
    *("SequenceAt", "Optional", "Einsum", "BatchNormalization", "Softmax", "Fancy"),
]


def crafted_onnx(rng: random.Random) -> bytes:
    """An ONNX file that lies."""
    seeds = onnx_seeds()
    data = rng.choice(seeds)
    kind = rng.random()
    if kind < 0.2:
        return damaged(data, rng.choice(seeds), rng)
    if kind < 0.5:
        return crafted_message(data, rng)
    import onnx

    model = onnx.ModelProto()
    model.ParseFromString(data)
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        with contextlib.suppress(ValueError, TypeError):  # protobuf has limits, too
            crafted_graph(model, rng)
    return model.SerializeToString()


# Trying them


def read_pt(data: bytes) -> int:
    """Read everything; gives the bytes of the tensors."""
    reader = PytorchReader.from_bytes(data)
    reader.plain()
    reader.metadata()
    return sum(reader[name].load().array.nbytes for name in reader)


def read_safetensors(data: bytes) -> int:
    """Read everything; gives the bytes of the tensors."""
    file = SafetensorsFile.from_bytes(data)
    return sum(file[name].array.nbytes for name in file)


def read_onnx(data: bytes) -> int:
    """Report, and build the module; gives the bytes of its weights."""
    from burnbook.backend import Numpy
    from burnbook.importers.onnx import check, load

    str(check(data))
    module = load(data, Numpy())
    values = (np.asarray(param.val()) for _, param in module.named_params())
    return sum(value.nbytes for value in values)


KINDS: dict[str, tuple[Make, Callable[[bytes], int], int]] = {
    # how to make one, how to read it, and the memory that reading itself may take
    "pt": (crafted_pt, read_pt, 2 << 20),
    "safetensors": (crafted_safetensors, read_safetensors, 2 << 20),
    "onnx": (crafted_onnx, read_onnx, 16 << 20),
}
FORBIDDEN = (
    *("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen"),
    *("socket.connect", "socket.bind", "pickle.find_class", "os.remove", "os.rename"),
    *("os.mkdir", "shutil.rmtree", "ctypes.dlopen"),
)


class Ran(BaseException):
    """A file made something happen that reading must not do."""


@dataclass
class Outcome:
    """What came of many files."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    worst: int = 0  # bytes beyond twice the file and its tensors
    slowest: float = 0.0


_watching = False


def watch(event: str, args: tuple[object, ...]) -> None:
    """An audit hook: raise where a file makes something happen."""
    if not _watching:
        return
    is_path = event == "open" and not isinstance(args[0], int)
    writes = is_path and any(c in str(args[1]) for c in "wax+")
    if event == "subprocess.Popen" and "inference_process.py" in str(args[1]):
        return  # where ONNX's own inference runs, in case it ends its process
    if event in FORBIDDEN or writes:
        raise Ran(f"{event} {args!r}"[:200])


def late(*_: object) -> None:
    """Raise: a file took too long."""
    raise Ran("longer than the time it has")


def try_many(kind: str, count: int, start: int = 0, seconds: int = 20) -> Outcome:
    """Try files `start` to `start + count`; each number is always the same file."""
    global _watching
    make, read, room = KINDS[kind]
    outcome = Outcome()
    signal.signal(signal.SIGALRM, late)
    for number in range(start, start + count):
        data = make(random.Random(f"{kind} {number}"))
        tensors, what, began = 0, "read", time.process_time()
        tracemalloc.start()
        signal.alarm(seconds)
        try:
            _watching = True
            tensors = read(data)
        except BurnbookError as error:
            what = "refused"
            if len(str(error)) > 4000:
                outcome.findings.append(f"{number}: a text of {len(str(error))}")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            what = "failed"
            outcome.findings.append(f"{number}: {type(error).__name__}: {error}"[:300])
        finally:
            _watching = False
            signal.alarm(0)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        beyond = peak - 2 * len(data) - 2 * tensors
        if beyond > room:
            text = f"{number}: {peak:,} bytes for {len(data):,}, tensors {tensors:,}"
            outcome.findings.append(text)
        outcome.counts[what] += 1
        outcome.worst = max(outcome.worst, beyond)
        outcome.slowest = max(outcome.slowest, time.process_time() - began)
    return outcome


def limited(kind: str, count: int, start: int, memory: int = 3 << 30) -> Outcome:
    """The same in a child process, which has that much address space and no more."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_child, args=(theirs, kind, count, start, memory))
    child.start()
    theirs.close()
    try:
        found: Outcome = ours.recv()
    except EOFError:
        child.join()
        text = f"{start} to {start + count}: the process ended with {child.exitcode}"
        return Outcome(findings=[text])
    child.join()
    return found


def _child(pipe: object, kind: str, count: int, start: int, memory: int) -> None:
    KINDS[kind][1](_SEEDS[kind]()[0])  # imports what it needs
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    sys.addaudithook(watch)
    pipe.send(try_many(kind, count, start))  # type: ignore[attr-defined] # a Connection


_SEEDS = {"pt": torch_seeds, "safetensors": safe_seeds, "onnx": onnx_seeds}


def main(arguments: list[str] | None = None) -> int:
    """Try many files of one kind, or of all, and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=[*KINDS, "all"])
    parser.add_argument("count", type=int)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--batch", type=int, default=5000)
    options = parser.parse_args(arguments)
    bad = 0
    for kind in KINDS if options.kind == "all" else [options.kind]:
        total = Outcome()
        for start in itertools.count(options.start, options.batch):
            left = options.start + options.count - start
            if left <= 0:
                break
            found = limited(kind, min(options.batch, left), start)
            total.counts += found.counts
            total.findings += found.findings
            total.worst = max(total.worst, found.worst)
            total.slowest = max(total.slowest, found.slowest)
            for line in found.findings[:20]:
                print(f"  {kind} {line}", flush=True)
            print(f"  {kind} {total.counts.total():,}", end="\r", flush=True)
        bad += len(total.findings)
        print(
            f"{kind}: {dict(total.counts)}, {len(total.findings)} findings, at most "
            f"{total.worst:,} bytes beyond twice the file and its tensors, "
            f"slowest {total.slowest:.2f} s",
            flush=True,
        )
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
