"""The process in which ONNX's own inference runs: a script, and no part of burnbook.

It is started by `inference.py`, with nothing but Python's core and the compiled file
of the package onnx: so it is there in a few hundredths of a second. A request and an
answer are lists of bytes, see `frame`.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

TYPE_CHECKING = False  # importing typing takes longer than all the rest of this
if TYPE_CHECKING:
    from typing import Any

IDLE = 30  # seconds without a request after which the process ends
MOST_SECONDS = 60  # for one answer
ROOM = 1 << 30  # bytes of memory for an answer, beside eight times the request


def frame(parts: Sequence[bytes]) -> bytes:
    """Some bytes as one: how many there are, how long each is, and they themselves."""
    sizes = [len(part) for part in parts]
    return struct.pack(f"<{1 + len(sizes)}Q", len(sizes), *sizes) + b"".join(parts)


def unframed(read: Callable[[int], bytes]) -> list[bytes] | None:
    """What `frame` made; None where it ends early. read: gives so many bytes."""
    head = read(8)
    if len(head) < 8:
        return None
    count = struct.unpack("<Q", head)[0]
    sizes = struct.unpack(f"<{count}Q", read(8 * count))
    parts = [read(size) for size in sizes]
    return parts if [len(part) for part in parts] == list(sizes) else None


def answer(tools: Any, request: list[bytes]) -> bytes:
    """What ONNX says to a request, as bytes; none where it refuses."""
    word, *rest = request
    try:
        if word == b"shapes":
            model, follow = rest
            return tools.shape_inference.infer_shapes(
                model, False, False, follow == b"1"
            )
        op, domain, opset, node, *types = rest
        schema = tools.defs.get_schema(op.decode(), int(opset), domain.decode())
        return schema.get_context_dependent_function(node, types)
    except Exception:  # what does not follow stays unknown
        return b""


def compiled_tools(folders: list[str], paths: list[str]) -> Any:
    """The compiled file of onnx, without the package around it where that is enough."""
    package = ModuleType("onnx")
    package.__path__ = folders
    sys.modules["onnx"] = package
    try:
        import onnx.onnx_cpp2py_export as tools
    except ImportError:
        del sys.modules["onnx"]
        sys.path[:] = paths
        import onnx.onnx_cpp2py_export as tools
    return tools


def limit_memory(request: int) -> None:
    """Have no more memory than an answer to a request may take."""
    try:
        import resource

        pages = int(open("/proc/self/statm").read().split()[0])  # noqa: SIM115
        most = pages * resource.getpagesize() + ROOM + 8 * request
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, OSError, ValueError):
        return  # systems without /proc have no such limit


def serve(folders: list[str], paths: list[str]) -> None:
    """Answer requests until there are none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a notebook's "stop" is not for it
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    watched = open(os.devnull, "w")  # noqa: SIM115
    tools = compiled_tools(folders, paths)
    while True:
        faulthandler.dump_traceback_later(IDLE, exit=True, file=watched)
        request = unframed(requests.read)
        if request is None:
            return
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True, file=watched)
        answers.write(b"+")  # it has come: what ends the process now is its own fault
        answers.flush()
        limit_memory(sum(map(len, request)))
        answers.write(frame([answer(tools, request)]))
        answers.flush()


if __name__ == "__main__":
    count = int(sys.argv[1])
    serve(sys.argv[2 : 2 + count], sys.argv[2 + count :])
