"""One contender of the table of ops, in a process of its own.

    python -m tests.bench.sides ours|numpy|pytorch|mygrad

It reads a line for each slice of time (op, a file with the inputs, forward or back as
well, how long), runs the op as often as fits, and writes what the best run took.
"""

import importlib  # noqa: I001 - burnbook comes before NumPy
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import burnbook.ops  # noqa: F401 - declares the ops
import numpy as np

from burnbook.backend import Autodiff
from burnbook.backend import Numpy
from burnbook.backend.compiled import warm_up
from burnbook.core.op import OPS, Op
from burnbook.tensor import Tensor, apply
from tests.bench import counterparts
from tests.bench.growth import grow

Step = Callable[[], Any]


def learns(op: Op, arrays: list[np.ndarray]) -> list[bool]:
    """Which inputs get a gradient."""
    can = op.can_track * len(arrays) if op.many else op.can_track
    return [c and a.dtype.kind == "f" for c, a in zip(can, arrays, strict=False)]


def ours(op: Op, arrays: list[np.ndarray], attrs: dict[str, Any], back: bool) -> Step:
    """burnbook, its kernels compiled."""
    device = Autodiff(Numpy()) if back else Numpy()
    tensors = [Tensor.from_numpy(a, device) for a in arrays]
    if not tensors:
        return lambda: device.run(op, (), attrs)
    if back:
        pairs = zip(tensors, learns(op, arrays), strict=True)
        tensors = [t.require_grad() if learn else t for t, learn in pairs]
    call = getattr(Tensor, op.name) if op.method and not attrs else None

    def forward() -> Any:
        return call(*tensors) if call else apply(op, *tensors, **attrs)

    return (lambda: first(forward()).backward()) if back else forward


def bare(op: Op, arrays: list[np.ndarray], attrs: dict[str, Any], back: bool) -> Step:
    """NumPy: the plain code of the op and of its gradient."""
    np.seterr(all="ignore")
    if not back:
        return lambda: op.forward(np, *arrays, **attrs)
    needs = tuple(learns(op, arrays))
    values = (*arrays, *(None,) * (len(op.inputs) - len(arrays)))

    def both() -> Any:
        out = op.forward(np, *arrays, **attrs)
        kept = op.keep(values, out)
        g = np.ones_like(out[0] if op.extras else out)
        return op.backward.forward(np, g, *kept, needs=needs, **attrs)

    return both


def pytorch(
    op: Op, arrays: list[np.ndarray], attrs: dict[str, Any], back: bool
) -> Step | None:
    """PyTorch, eager, with as many threads as there are cores."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    call = counterparts.find(counterparts.PYTORCH, torch, op.name)
    tensors = [torch.from_numpy(a.copy()) for a in arrays]
    if call is None or not back:
        return None if call is None else (lambda: call(*tensors, **attrs))
    pairs = zip(tensors, learns(op, arrays), strict=True)
    leaves = [t.requires_grad_() for t, learn in pairs if learn]

    def both() -> Any:
        out = call(*tensors, **attrs)
        return torch.autograd.grad(out, leaves, torch.ones_like(out))

    return both


def mygrad(
    op: Op, arrays: list[np.ndarray], attrs: dict[str, Any], back: bool
) -> Step | None:
    """MyGrad, where it is installed."""
    library = importlib.import_module("mygrad")
    importlib.import_module("mygrad.nnet")
    call = counterparts.find(counterparts.MYGRAD, library, op.name)
    if call is None:
        return None
    if not back:
        with library.no_autodiff:
            tensors = [library.tensor(a) for a in arrays]

        def forward() -> Any:
            with library.no_autodiff:
                return call(*tensors, **attrs)

        return forward
    learn = learns(op, arrays)
    leaves = [
        library.tensor(a) if yes else a for a, yes in zip(arrays, learn, strict=True)
    ]
    return lambda: call(*leaves, **attrs).backward()


def first(out: Any) -> Any:
    """Of several outputs, the one that a gradient starts from."""
    return out[0] if isinstance(out, tuple) else out


SIDES = {"ours": ours, "numpy": bare, "pytorch": pytorch, "mygrad": mygrad}


def measure(step: Step, milliseconds: float) -> float:
    """The best of as many runs as fit, of two at least."""
    best, count = float("inf"), 0
    end = time.perf_counter() + milliseconds / 1e3
    while count < 2 or time.perf_counter() < end:
        before = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - before)
        count += 1
    return best


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes elsewhere
    make = SIDES[sys.argv[1]]
    if make is ours:
        warm_up()
    known: Any = None
    step: Step | None = None
    for line in sys.stdin:
        name, rows, cols, file, back, milliseconds = json.loads(line)
        try:
            if known != (name, file, back):
                known, step = (name, file, back), None  # the old arrays go first
                _, attrs = grow(OPS[name], rows, cols)
                with np.load(file) as held:
                    arrays = [held[key] for key in held]
                step = make(OPS[name], arrays, attrs, back)
            seconds = None if step is None else measure(step, milliseconds)
            answer = {"seconds": seconds}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
