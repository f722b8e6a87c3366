"""Work on a GPU as CUDA graphs: recorded once, launched as a whole.

While a stream records, nothing runs; what would be launched becomes a node of a graph.
So nothing may read a value back, everything stays where it was in memory, and numbers
that a launch was given stay what they were. Numbers that change from run to run
therefore stand in GPU memory: keys of random numbers (`DeviceKey`) and the factors of
optimizers (`Factors`).
"""

import contextlib
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np

from burnbook.backend.base import AnyOp, Attrs, Value, Values
from burnbook.backend.cuda import optimizer_steps
from burnbook.backend.cuda.cublas import Cublas
from burnbook.backend.cuda.random import DeviceKey, draw_words
from burnbook.backend.cuda.source import KERNELS
from burnbook.backend.kernels import Kernel

T = TypeVar("T")
ROWS, WIDTH = 64, 12  # of a room for factors


class Room:
    """Rows of numbers in GPU memory that each run writes anew, in one transfer."""

    def __init__(self, xp: Any, count: int, width: int, dtype: Any):
        self.here = np.zeros((count, width), dtype)
        self.there = xp.zeros((count, width), dtype)

    def send(self) -> None:
        """Send all rows to the GPU."""
        self.there.set(self.here)


class Factors:
    """The factors of an optimizer's step, in a row of GPU memory."""

    def __init__(self, room: Room, number: int, op: Any):
        self.names = optimizer_steps.FORMULAS[op][1].split()
        self.op, self.room, self.number = op, room, number

    def set(self, attrs: Mapping[str, Any]) -> None:
        """Compute them from the attributes of the op; `Room.send` sends them."""
        facts = optimizer_steps.numbers(**{**self.op.attrs, **attrs})
        row = self.room.here[self.number]
        row[: len(self.names)] = [facts[name] for name in self.names]

    def step(self, xp: Any, values: Values) -> Any:
        """The op itself, with the factors that stand there."""
        row = self.room.there[self.number]
        given = [row[i] for i in range(len(self.names))]
        out = optimizer_steps.element_kernel(xp, self.op)(*values, *given)
        return tuple(out) if isinstance(out, (tuple, list)) else out


class Recorder:
    """Records graphs for one GPU; one at a time.

    It runs ops as the backend does, but that products go to cuBLAS directly (CuPy's own
    way refuses to be recorded), and arrays of the CPU are sent beside the recording.
    """

    def __init__(self, cupy: Any, backend: Any):
        self.cupy, self.backend = cupy, backend
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.beside = cupy.cuda.Stream(non_blocking=True)
        self.lock = threading.RLock()
        self.xp = RecordedSpace(cupy, self)

        self.kernels: Mapping[Any, Kernel] = {
            op: partial(function, self.xp) for op, function in KERNELS.items()
        }
        self.products = Cublas(cupy, self.stream)
        self.sent: list[Any] = []

    def run(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:
        """Run or record one op."""
        kernel = self.kernels.get(op)
        if kernel is not None:
            out = kernel(*values, **attrs)
            if out is not None:
                return out
        return op.forward(self.xp, *values, **attrs)

    def numbers(self) -> "ChangingNumbers":
        """Room for the numbers of a program that change from run to run."""
        return ChangingNumbers(self.cupy)

    def write(self, place: Any, array: Any) -> None:
        """Write an array over another one, in each launch."""
        place[...] = array

    def rehearse(self, work: Callable[[], T]) -> T:
        """Do some work as it will be recorded, so that all kernels are there."""
        with self.lock, self.backend.on_device():
            self.cupy.cuda.get_current_stream().synchronize()
            with self.stream:
                found = work()
            self.stream.synchronize()
            return found

    def record(self, work: Callable[[], T]) -> "tuple[Graph, T]":
        """Record some work: the graph, and what the work gave, where launches put it.

        Any error of the work is raised when the recording has been given up.
        """
        cupy = self.cupy
        with self.lock, self.backend.on_device():
            self.sent = []
            pool = cupy.cuda.MemoryPool()
            cupy.cuda.get_current_stream().synchronize()
            with cupy.cuda.using_allocator(pool.malloc), self.stream:
                self.stream.begin_capture()
                try:
                    found = work()
                except BaseException:
                    with contextlib.suppress(Exception):
                        self.stream.end_capture()
                    self._renew()
                    raise
                try:
                    graph = self.stream.end_capture()
                except BaseException:
                    self._renew()
                    raise
            return Graph(graph, pool, self.sent), found

    def _renew(self) -> None:
        """Another stream, after one whose recording failed."""
        self.stream = self.cupy.cuda.Stream(non_blocking=True)
        self.products.use(self.stream)

    def send(self, array: Any, dtype: Any = None) -> Any:
        """An array of the CPU on the GPU, sent beside what is being recorded."""
        with self.beside:
            made = self.cupy.array(array, dtype=dtype)
        self.beside.synchronize()
        self.sent.append(made)
        return made


class ChangingNumbers:
    """The keys and factors of one program, in GPU memory."""

    def __init__(self, xp: Any):
        self._xp = xp
        self._rooms: list[Room] = []
        self._free: dict[Any, tuple[Room, int]] = {}

    def keys(self, count: int) -> list[DeviceKey]:
        """So many keys of random numbers."""
        if not count:
            return []
        room = Room(self._xp, count, 2, np.uint64)
        self._rooms.append(room)
        return [DeviceKey(room.there[i], room.here[i]) for i in range(count)]

    def factors(self, op: AnyOp, values: Values) -> Factors | None:
        """The factors of an optimizer's step; None where it has none."""
        chars = {v.dtype.char for v in values if v is not None}
        if (
            op not in optimizer_steps.FORMULAS
            or len(chars) != 1
            or not chars <= {"f", "d"}
        ):
            return None
        dtype = values[0].dtype
        room, number = self._free.get(dtype, (None, ROWS))
        if room is None or number == ROWS:
            room, number = Room(self._xp, ROWS, WIDTH, dtype), 0
            self._rooms.append(room)
        self._free[dtype] = room, number + 1
        return Factors(room, number, op)

    def send(self) -> None:
        """Send what was set to the GPU."""
        for room in self._rooms:
            room.send()


class Graph:
    """Recorded work; a call launches it on the current stream.

    pool: the memory of all that it computes. sent: arrays that it reads.
    """

    def __init__(self, graph: Any, pool: Any, sent: list[Any]):
        self._graph, self._sent = graph, sent
        self._pool = pool

    @property
    def bytes(self) -> int:
        """How many bytes are kept for what it computes."""
        return self._pool.total_bytes()

    def __call__(self) -> None:
        self._graph.launch()


class RecordedSpace:
    """The `xp` of ops while they are recorded."""

    def __init__(self, module: Any, recorder: Recorder):
        self.module = module
        self.__name__ = module.__name__
        self._recorder = recorder

    def run_op(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:
        return self._recorder.run(op, values, attrs)

    def philox(self, count: int, key: Any) -> Any:
        """The first 64-bit words of a key's sequence."""
        return draw_words(self, count, key)

    def matmul(self, x: Any, y: Any) -> Any:
        """x · y by cuBLAS where it can, as CuPy computes it elsewhere."""
        made = self._recorder.products.matmul(x, y)
        return self.module.matmul(x, y) if made is None else made

    def dot(self, x: Any, y: Any) -> Any:
        """x · y of matrices by cuBLAS."""
        made = None
        if x.ndim == 2 == y.ndim:
            made = self._recorder.products.matmul(x, y)
        return self.module.dot(x, y) if made is None else made

    def array(self, value: Any, dtype: Any = None, **how: Any) -> Any:
        if isinstance(value, self.module.ndarray):
            return self.module.array(value, dtype=dtype, **how)
        return self._recorder.send(value, dtype)

    def asarray(self, value: Any, dtype: Any = None, **how: Any) -> Any:
        if isinstance(value, self.module.ndarray):
            return self.module.asarray(value, dtype=dtype, **how)
        return self._recorder.send(value, dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "module":
            raise AttributeError(name)
        found = getattr(self.module, name)
        setattr(self, name, found)
        return found
