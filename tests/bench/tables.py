"""What is measured: the rows of DESIGN's table, and how each number is found."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench import burn
from tests.bench.optimizers import table_optim
from tests.bench.rounds import ROOT, Contender, compare

BUDGETS = json.loads((Path(__file__).parent / "budgets.json").read_text())
NUMPY_FIRST = {"BENCH_NUMPY_FIRST": "1"}
TRAINING = ("eager", "fused Adam", "compile")
VARIANTS = ("fused Adam", "channels-last", "avgpool", "compile")


def peers_of_w1() -> list[Contender]:
    """PyTorch as the guide would be written first, then its faster forms."""
    first = Contender("torch eager", "tests.bench.theirs:w1", ("eager",))
    return [first] + [
        Contender(f"torch {v}", "tests.bench.theirs:w1", (v,)) for v in VARIANTS
    ]


def table_w1(rounds: int) -> Iterator[tuple]:
    ours = "tests.bench.ours:w1"
    contenders = [
        *peers_of_w1(),
        Contender("W1 compiled", ours, (True,)),
        Contender("W1 plain", ours, (False,)),
        Contender(
            "W1 compiled, NumPy imported first",
            ours,
            (True,),
            NUMPY_FIRST,
        ),
        Contender("W1 plain, NumPy imported first", ours, (False,), NUMPY_FIRST),
        *burn.contenders("w1"),
    ]
    results = yield from show(contenders, rounds)
    torch, mine = results.get("torch eager"), results.get("W1 compiled")
    if torch and mine:
        ratio = mine.peak_mb / torch.peak_mb
        note = f"{mine.peak_mb:.0f} MB, torch {torch.peak_mb:.0f} MB"
        yield "W1 peak memory", ratio, note


def table_inference(rounds: int, batch: int) -> Iterator[tuple]:
    make, ours = "tests.bench.theirs:inference", "tests.bench.ours:inference"
    captured = "tests.bench.ours:captured_inference"
    contenders = [
        Contender("torch eager", make, ("eager", batch)),
        Contender("torch channels-last", make, ("channels-last", batch)),
        Contender("torch avgpool", make, ("avgpool", batch)),
        Contender("torch compile", make, ("compile", batch)),
        Contender("ONNX Runtime", "tests.bench.theirs:onnx_inference", (batch,)),
        Contender(f"inference {batch} compiled", ours, (True, batch)),
        Contender(f"inference {batch} plain", ours, (False, batch)),
        Contender(f"inference {batch} captured", captured, (True, batch)),
        Contender(f"inference {batch} captured plain", captured, (False, batch)),
        *burn.contenders(f"inference{batch}"),
    ]
    yield from show(contenders, rounds)


def table_work(
    rounds: int, name: str, variants: tuple[str, ...], *args: int
) -> Iterator[tuple]:
    """A workload in PyTorch's forms and ours, and the peaks of the processes."""
    work = name.split(",")[0].lower()
    in_burn = "w2large" if args == (1024,) else work
    make, ours = f"tests.bench.theirs:{work}", f"tests.bench.ours:{work}"
    contenders = [
        *(Contender(f"torch {v}", make, (v, *args)) for v in variants),
        Contender(f"{name} compiled", ours, (True, *args)),
        Contender(f"{name} plain", ours, (False, *args)),
        *(burn.contenders(in_burn) if work != "w6" else ()),
    ]
    results = yield from show(contenders, rounds)
    torch = results.get("torch eager")
    for kind in ("compiled", "plain"):
        mine = results.get(f"{name} {kind}")
        if torch and mine:
            note = f"{mine.peak_mb:.0f} MB, torch {torch.peak_mb:.0f} MB"
            yield f"{name} peak memory, {kind}", mine.peak_mb / torch.peak_mb, note


# (channels in, channels out, size of the image, size of the kernel, stride)
CONVOLUTIONS = [
    *((3, 16, 32, 3, 1), (16, 16, 32, 3, 1), (16, 32, 32, 3, 2), (32, 32, 16, 3, 1)),
    *((32, 64, 16, 3, 2), (64, 64, 8, 3, 1), (128, 128, 4, 3, 1), (16, 32, 32, 1, 2)),
]


def table_convolutions(rounds: int) -> Iterator[tuple]:
    """Each convolution of residual networks alone, 64 images, forward and back."""
    ours, theirs = "tests.bench.ours:conv", "tests.bench.theirs:conv"
    for sizes in CONVOLUTIONS:
        inputs, channels, size, kernel, stride = sizes
        name = f"conv {inputs}→{channels}, {kernel}×{kernel} on {size}×{size}"
        name += f", stride {stride}"
        contenders = [
            Contender(f"{name}, torch", theirs, sizes),
            Contender(f"{name}, compiled", ours, (True, *sizes)),
            Contender(f"{name}, plain", ours, (False, *sizes)),
        ]
        yield from show(contenders, max(rounds // 2, 5))


def table_w5(rounds: int) -> Iterator[tuple]:
    contenders = [
        Contender("torch eager", "tests.bench.theirs:w5"),
        Contender("W5", "tests.bench.ours:w5"),
    ]
    yield from show(contenders, rounds)


CAPTURED = [
    ("W1", "w1", "eager", ()),
    ("W2, 64", "w2", "fused Adam", (64,)),
    ("W2, 1024", "w2", "fused Adam", (1024,)),
    ("W3", "w3", "eager", ()),
    ("W4", "w4", "eager", ()),
    ("W6", "w6", "eager", ()),
]


def table_captured(rounds: int) -> Iterator[tuple]:
    """Compiled programs: inference and ONNX Runtime, training, small ops in a row."""
    theirs, ours = "tests.bench.theirs:onnx_inference", "tests.bench.ours:inference"
    captured = "tests.bench.ours:captured_inference"
    for batch in (1, 256):
        contenders = [
            Contender(f"ONNX Runtime, {batch}", theirs, (batch,)),
            Contender(f"inference {batch} ÷ ONNX Runtime", ours, (True, batch)),
            Contender(f"captured {batch} ÷ ONNX Runtime", captured, (True, batch)),
            Contender(f"captured {batch}, plain", captured, (False, batch)),
        ]
        yield from show(contenders, rounds)
    for name, work, variant, args in CAPTURED:
        ours = f"tests.bench.ours:{work}"
        captured = f"tests.bench.ours:captured_{work}"
        peer = (f"tests.bench.theirs:{work}", (variant, *args))
        contenders = [
            Contender(f"{name}, torch {variant}", *peer),
            Contender(f"{name}, step by step", ours, (True, *args)),
            Contender(f"{name}, captured", captured, (True, *args)),
            Contender(f"{name}, captured, plain", captured, (False, *args)),
        ]
        yield from show(contenders, rounds)
    contenders = [
        Contender("W5 and back, torch", "tests.bench.theirs:w5"),
        Contender("W5 and back, step by step", "tests.bench.ours:w5"),
        Contender("W5 and back, captured", "tests.bench.ours:captured_w5"),
    ]
    results = yield from show(contenders, rounds)
    if found := results.get("W5 and back, captured"):
        yield "W5 captured, µs an op", found.milliseconds / 1.998, "forward and back"
    chain = "tests.bench.ours:w5_forward"
    contenders = [
        Contender("W5 forward", chain, (False,)),
        Contender("W5 forward, captured", chain, (True,)),
    ]
    results = yield from show(contenders, rounds)
    if found := results.get("W5 forward, captured"):
        yield "W5 captured, µs an op", found.milliseconds / 0.999, "forward"
    for name in ("elementwise", "wide_convolution"):
        ours, what = f"tests.bench.ours:{name}", name.replace("_", " ")
        contenders = [
            Contender(f"{what}, step by step", ours, (False,)),
            Contender(f"{what}, captured", ours, (True,)),
        ]
        yield from show(contenders, rounds)


SIZES = [1 << k for k in (4, 10, 12, 14, 16, 18, 20)]


def table_fusion(rounds: int) -> Iterator[tuple]:
    """The decorator Fusion: chains of elementwise ops, training steps, inference.

    In this process, taking turns, in processor time of this thread: set
    BURNBOOK_THREADS=1 OMP_NUM_THREADS=1, or other threads' time is missing.
    """
    from tests.bench import ours

    works: list[tuple[str, list[Callable]]] = [
        (
            f"chain of 28 ops on {size} elements",
            [ours.fused_chain(fused, True, size) for fused in (False, True)],
        )
        for size in SIZES
    ]
    works += [
        (
            f"the same without tanh, {size} elements",
            [ours.fused_chain(fused, True, size, False) for fused in (False, True)],
        )
        for size in (SIZES[0], SIZES[3], SIZES[-1])
    ]
    works.append(
        ("999 small ops", [ours.fused_small(fused) for fused in (False, True)])
    )
    for name, work, captured, args in (
        ("W1", ours.fused_w1, ours.captured_w1, ()),
        ("W2, 64", ours.fused_w2, ours.captured_w2, (64,)),
        ("W2, 1024", ours.fused_w2, ours.captured_w2, (1024,)),
        ("inference 1", ours.fused_inference, ours.captured_inference, (1,)),
        ("inference 256", ours.fused_inference, ours.captured_inference, (256,)),
    ):
        both = [work(fused, True, *args) for fused in (False, True)]
        works.append((name, [*both, captured(True, *args)]))
    for name, contenders in works:
        least = least_times(contenders, rounds)
        names = ("", ", Fusion", ", captured")
        for which, took in zip(names, least, strict=False):
            yield f"{name}{which}", took / least[0], f"{took * 1e3:.3f} ms"


def least_times(contenders: list[Callable], rounds: int) -> list[float]:
    """The least processor time of each, in turns of a tenth of a second."""
    found = [float("inf")] * len(contenders)
    for contender in contenders:
        for _ in range(8):
            contender()
    for _ in range(rounds):
        for i, contender in enumerate(contenders):
            end = time.perf_counter() + 0.1
            while time.perf_counter() < end:
                started = time.thread_time()
                contender()
                found[i] = min(found[i], time.thread_time() - started)
    return found


FITS = {"w1": "W1", "w2": "W2, 64", "w3": "W3", "w4": "W4", "w6": "W6"}


def table_learner(rounds: int) -> Iterator[tuple]:
    """Whole trainings: loading, metrics, validation and checkpoints included."""
    still = {"BURNBOOK_DISPLAY": "none"}
    for work, name in FITS.items():
        contenders = [
            Contender(
                f"{name} fit, PyTorch's tutorial",
                "tests.bench.their_fits:pytorch",
                (work,),
            ),
            Contender(f"{name} fit, Learner", f"{FIT}:ours", (work, "auto"), still),
            Contender(
                *(f"{name} fit, without capture", f"{FIT}:ours", (work, False), still)
            ),
        ]
        yield from show(contenders, max(rounds // 2, 3), 0)


FIT, THEIRS = "tests.bench.fits", "tests.bench.their_fits"


def table_loop(rounds: int) -> Iterator[tuple]:
    """What the learner and the loader add to an epoch of 100 batches."""
    ours, still = "tests.bench.ours", {"BURNBOOK_DISPLAY": "none"}
    contenders = [
        Contender("bare loop", f"{ours}:bare_loop"),
        Contender("learner", f"{ours}:learner_loop", (), still),
        Contender("loader alone", f"{ours}:load_batches", (0,)),
        Contender("loader alone, 2 workers", f"{ours}:load_batches", (2,)),
    ]
    results, failed = compare(contenders, max(rounds // 2, 5), 1000)
    for name, error in failed.items():
        yield name, None, error
    by_name = {result.name: result for result in results}
    bare = by_name["bare loop"].milliseconds
    for result in results:
        note = f"{result.milliseconds / 100:.3f} ms a batch"
        if result.name == "learner":
            yield "Learner's own share", 1 - 1 / result.ratio, note
        elif result.name == "loader alone":
            rest = bare - result.milliseconds  # the steps themselves
            yield "data loading ÷ W1", result.milliseconds / rest, note
        else:
            yield result.name, result.ratio, note


def show(contenders: list[Contender], rounds: int, milliseconds: float = 200):
    """Compare; yield a row per contender and give the results by name."""
    results, failed = compare(contenders, rounds, milliseconds)
    theirs = [r for r in results if r.name not in BUDGETS]
    best = min(theirs, key=lambda r: r.ratio) if theirs else None
    for result in results:
        least, most = result.spread
        note = f"{result.milliseconds:.3f} ms ({least:.3f} to {most:.3f})"
        note += f", first {result.first_ms:.0f} ms"
        if best and result.name in BUDGETS:
            note += f", {result.ratio / best.ratio:.2f} of {best.name}"
        yield result.name, result.ratio, note
    for name, error in failed.items():
        yield name, None, error
    return {result.name: result for result in results}


def table_ops(rounds: int) -> Iterator[tuple]:
    """One op above the bare NumPy call, in this process, taking turns."""
    import numpy as np

    from burnbook.prelude import Autodiff, Numpy, Tensor

    a = np.ones((4, 4), np.float32)
    plain = Tensor.from_numpy(a, Numpy())
    tracked = Tensor.from_numpy(a, Autodiff(Numpy())).require_grad()
    pairs: list[tuple[Callable, Callable]] = [
        (lambda: np.add(a, a), lambda t: t + t),
        (lambda: np.multiply(a, a), lambda t: t * t),
        (lambda: np.matmul(a, a), lambda t: t @ t),
        (lambda: np.exp(a), lambda t: t.exp()),
    ]
    for name, tensor in (("plain", plain), ("autodiff", tracked)):
        extra = [
            statistics.median(
                seconds(lambda op=op, t=tensor: op(t)) - seconds(bare)
                for _ in range(max(rounds, 5))
            )
            for bare, op in pairs
        ]
        each = ", ".join(f"{e * 1e6:.2f}" for e in extra)
        note = f"add, multiply, matmul, exp: {each} µs"
        yield f"op overhead {name}, µs", max(extra) * 1e6, note


def seconds(call: Callable, count: int = 2000) -> float:
    """The best of some runs of one call."""
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - started) / count)
    return best


STEP = """
import time; started = time.perf_counter()
import burnbook; from burnbook.prelude import *; imported = time.perf_counter()
from tests.bench import ours; step = ours.w1(None); made = time.perf_counter()
step(); done = time.perf_counter()
print(imported - started, done - made)
"""
IMPORT = """
import time; started = time.perf_counter()
import burnbook.prelude
print(time.perf_counter() - started)
"""


def table_start(rounds: int) -> Iterator[tuple]:
    """Import time, and the first training step of a fresh process."""
    for cache in (None, tempfile.mkdtemp()):
        env = dict(os.environ, PYTHONPATH=f"{ROOT}{os.pathsep}{ROOT / 'widgets'}")
        if cache:
            env |= {"BURNBOOK_CACHE": cache, "NUMBA_CACHE_DIR": cache}
            env |= {"BURNBOOK_WARMUP": "off"}
        name = "cold" if cache else "warm"
        firsts = [fresh(STEP, env)[1] for _ in range(3)]
        yield f"first step {name}, s", statistics.median(firsts), "a fresh process"
    env["PYTHONDONTWRITEBYTECODE"] = ""  # or every import compiles the source again
    imports = [fresh(IMPORT, env)[0] for _ in range(5)]
    yield "import, s", statistics.median(imports), "import burnbook.prelude"


def fresh(code: str, env: dict[str, str]) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(word) for word in done.stdout.split()]


TABLES: dict[str, Callable[[int], Iterator[tuple]]] = {
    "w1": table_w1,
    "inference1": lambda rounds: table_inference(rounds, 1),
    "inference256": lambda rounds: table_inference(rounds, 256),
    "w2": lambda rounds: table_work(rounds, "W2, 64", TRAINING, 64),
    "w2large": lambda rounds: table_work(rounds, "W2, 1024", TRAINING, 1024),
    "w3": lambda rounds: table_work(rounds, "W3", TRAINING),
    "w4": lambda rounds: table_work(
        rounds, "W4", ("eager", "sequence first", "compile")
    ),
    "w5": table_w5,
    "w6": lambda rounds: table_work(
        rounds, "W6", ("eager", "fused Adam", "channels-last", "compile")
    ),
    "captured": table_captured,
    "convolutions": table_convolutions,
    "fusion": table_fusion,
    "learner": table_learner,
    "loop": table_loop,
    "ops": table_ops,
    "optim": table_optim,
    "start": table_start,
}
