"""Shapes and types that follow from an ONNX file, as ONNX's own inference has them.

Why: that inference is C++, and some files end it with the whole process: a size below
zero that reaches a Slice is enough, whether the file declares it or a convolution comes
to it. Nobody has a list of all such files, and a file from outside must never end a
notebook's kernel. So it runs in a process of its own, which may die: then what it would
have said stays unknown, and the module is made without.

That process starts in about 40 ms, because it needs neither the package onnx nor NumPy
but one compiled file; it is started before onnx itself is imported, which takes longer,
and is kept for the next files until it has had nothing to do for half a minute.
"""

from __future__ import annotations

import atexit
import math
import os
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, cast

from burnbook.importers.onnx.growth import MOST_DEPTH, checked
from burnbook.importers.onnx.inference_process import frame, unframed
from burnbook.importers.onnx.schemas import stand_in

MOST_SIZES = 1024  # elements of a constant that may say shapes
SCRIPT = Path(__file__).with_name("inference_process.py")


class OnnxProcess:
    """ONNX's inference in a process of its own, started when it is needed."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.owner = 0  # the process that started it: a fork starts another
        self.lock = Lock()

    def start(self) -> None:
        """Have the process ready; it is at work while this one goes on."""
        with self.lock:
            self._running()

    def shapes(self, model: Any, follow: bool) -> Any:
        """The model with what follows from it, or None.

        follow: the values of sizes as well.
        """
        try:
            data = model.SerializeToString()
        except Exception:  # over 2 GB, or names that are no UTF-8
            return None
        found = self.ask(b"shapes", data, b"1" if follow else b"0")
        return _parsed(type(model), found)

    def function(
        self, op: str, domain: str, opset: int, node: Any, types: list[Any]
    ) -> Any:
        """The body that ONNX's definition gives a node, or None."""
        from onnx import FunctionProto

        said = [kind.SerializeToString() for kind in types]
        words = [op.encode(), domain.encode(), str(opset).encode()]
        data = node.SerializeToString()
        return _parsed(FunctionProto, self.ask(b"function", *words, data, *said))

    def ask(self, *request: bytes) -> bytes:
        """The answer to a request; none where there is none."""
        with self.lock:
            for _ in range(2):  # one that had nothing to do may just have ended
                process = self._running()
                if process is None:
                    return b""
                try:
                    came, found = _said(process, frame(request))
                except BaseException:
                    self._drop()
                    raise
                if found is not None:
                    return found
                self._drop()
                if came:
                    return b""
            return b""

    def close(self) -> None:
        """End the process."""
        with self.lock:
            self._drop()

    def _running(self) -> subprocess.Popen[bytes] | None:
        process = self.process
        if process and self.owner == os.getpid() and process.poll() is None:
            return process
        self._drop()
        package = find_spec("onnx")
        folders = list((package and package.submodule_search_locations) or ())
        if not folders or not sys.executable or getattr(sys, "frozen", False):
            return None
        command = [sys.executable, "-I", "-S", "-X", "utf8", str(SCRIPT)]
        command += [str(len(folders)), *folders, *sys.path]
        pipe, none = subprocess.PIPE, subprocess.DEVNULL
        hidden = getattr(subprocess, "CREATE_NO_WINDOW", 0)
        try:
            self.process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=none, creationflags=hidden
            )
        except (OSError, ValueError, NotImplementedError):  # here are no processes
            return None
        self.owner = os.getpid()
        return self.process

    def _drop(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        if self.owner == os.getpid():
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                cast("Any", pipe).close()


def _said(process: Any, request: bytes) -> tuple[bool, bytes | None]:
    """Whether a request came to a process, and its answer; None where it ended."""
    came = False
    try:
        process.stdin.write(request)
        process.stdin.flush()
        came = process.stdout.read(1) == b"+"
        parts = unframed(process.stdout.read)
    except (OSError, ValueError):
        return came, None
    return came, parts[0] if parts else None


def _parsed(kind: type, data: bytes) -> Any:
    """A message of protobuf; None where there are no bytes, or other ones."""
    made = kind()
    try:
        made.ParseFromString(data)
    except Exception:
        return None
    return made if data else None


ONNX = OnnxProcess()
atexit.register(ONNX.close)


def inferred(model: Any) -> Any:
    """The model with the shapes and types that follow from it, where they do.

    Why: inference writes the whole file as bytes and reads it again, so large constants
    are left out meanwhile.
    """
    follow = checked(model)
    found = ONNX.shapes(with_stand_ins(without_weights(model)), follow)
    if found is None:
        return model
    made = type(model)()
    made.CopyFrom(model)
    _say(made.graph, found.graph)
    return made


def _say(graph: Any, found: Any) -> None:
    """Have a graph, and the graphs in its nodes, say what was found out of them."""
    for word in ("value_info", "output"):
        graph.ClearField(word)
        getattr(graph, word).extend(getattr(found, word))
    for node, other in zip(graph.node, found.node, strict=True):
        if other.domain == STAND_INS:
            continue
        for mine, same in zip(node.attribute, other.attribute, strict=True):
            if mine.HasField("g"):
                _say(mine.g, same.g)


def without_weights(model: Any) -> Any:
    """A copy of a model that has types and shapes of large constants alone."""
    light = type(model)()
    for known, value in model.ListFields():
        if known.name == "graph":
            _lighten(light.graph, value)
        else:
            _set(light, known, value)
    return light


def _lighten(light: Any, graph: Any) -> None:
    """Make an empty graph a copy of another, without large constants."""
    light.SetInParent()
    for known, value in graph.ListFields():
        if known.name == "initializer":
            light.initializer.extend(map(_emptied, value))
        elif known.name == "node":
            for node in value:
                _lighten_node(light.node.add(), node)
        else:
            _set(light, known, value)


def _lighten_node(light: Any, node: Any) -> None:
    """Make an empty node a copy of another, without large constants."""
    for known, value in node.ListFields():
        if known.name != "attribute":
            _set(light, known, value)
            continue
        for attribute in value:
            copy = light.attribute.add()
            for field, held in attribute.ListFields():
                if field.name == "g":
                    _lighten(copy.g, held)
                elif field.name == "t" and node.op_type == "Constant":
                    copy.t.CopyFrom(_emptied(held))
                else:
                    _set(copy, field, held)


def _set(message: Any, known: Any, value: Any) -> None:
    """Copy a field of one message to another."""
    if hasattr(value, "extend"):
        getattr(message, known.name).extend(value)
    elif hasattr(value, "CopyFrom"):
        getattr(message, known.name).CopyFrom(value)
    else:
        setattr(message, known.name, value)


def _emptied(tensor: Any) -> Any:
    """A tensor as it is if it may say shapes; else its type and shape alone."""
    if math.prod(tensor.dims) <= MOST_SIZES:
        return tensor
    light = type(tensor)(name=tensor.name, data_type=tensor.data_type)
    light.dims.extend(tensor.dims)
    return light


STAND_INS = "burnbook.shapes"


def with_stand_ins(light: Any) -> Any:
    """The same copy of a model, in which operators of ONNX Runtime are functions.

    Why: inference does not know them, and would know nothing of what follows.
    """
    version = max((o.version for o in light.opset_import if not o.domain), default=1)
    _stand_in(light, light.graph, max(version, 17), 0)
    if any(f.domain == STAND_INS for f in light.functions):
        light.opset_import.add(domain=STAND_INS, version=1)
    return light


def _stand_in(light: Any, graph: Any, opset: int, depth: int) -> None:
    for node in graph.node:
        for a in node.attribute if depth < MOST_DEPTH else ():
            if a.HasField("g"):
                _stand_in(light, a.g, opset, depth + 1)
        known = node.domain == "com.microsoft" or node.op_type in OF_ONNX
        body = stand_in(node) if known else []
        if not body or (not node.domain and _is_defined(node.op_type, light)):
            continue
        made = light.functions.add(domain=STAND_INS, name=f"f{len(light.functions)}")
        made.input.extend(f"i{k}" for k in range(len(node.input)))
        given = {name for one in body for name in one.output}
        kept = [k for k in range(len(node.output)) if f"o{k}" in given]
        made.output.extend(f"o{k}" for k in kept)
        made.node.extend(body)
        made.opset_import.add(domain="", version=opset)
        del node.attribute[:]
        node.domain, node.op_type = STAND_INS, made.name
        node.output[:] = [node.output[k] for k in kept]


#: Of ONNX Runtime though in ONNX's domain, or older there than in ONNX.
OF_ONNX = frozenset(
    ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
)


def _is_defined(op: str, light: Any) -> bool:
    """Whether ONNX has an operator in the version that a model is of."""
    from onnx import defs

    version = max((o.version for o in light.opset_import if not o.domain), default=1)
    return bool(defs.has(op, version, ""))


def fixed_sizes(model: Any) -> dict[str, tuple[int | None, ...]]:
    """Sizes of values that stay the same if all sizes of the inputs were others."""
    has_shapes = any(node.op_type == "Shape" for node in model.graph.node)
    if not (has_shapes and checked(model)):
        return {}
    free = without_weights(model)
    graph = free.graph
    held = {tensor.name for tensor in graph.initializer}
    del graph.value_info[:]
    for k, value in enumerate([*graph.input, *graph.output]):
        shape = value.type.tensor_type.shape
        if value.name not in held and value.type.HasField("tensor_type"):
            for i, dim in enumerate(shape.dim):
                dim.dim_param = f"any_{k}_{i}"
    found = ONNX.shapes(with_stand_ins(free), True)
    if found is None:
        return {}
    return {
        str(value.name): tuple(
            int(d.dim_value) if d.HasField("dim_value") and d.dim_value >= 0 else None
            for d in value.type.tensor_type.shape.dim
        )
        for value in found.graph.value_info
        if value.type.tensor_type.HasField("shape")
    }
