"""The workloads on an NVIDIA GPU beside PyTorch: `python -m tests.bench.gpu`.

All in one process, in turns; each time is that of many runs and of waiting for the GPU
at the end. The functions are those for CPUs, told to work elsewhere.
"""

import argparse
import statistics
import time

import cupy
import numpy as np
import torch

from burnbook.backend.cupy import Cupy
from tests.bench import ours, theirs

SLICE = 0.1  # seconds of a round for each contender


def contenders():
    """For each workload: the names of what is compared, and functions to run it."""
    works = [("W1", "w1", ()), ("W2, 64", "w2", (64,)), ("W2, 1024", "w2", (1024,))]
    for name, work, args in [*works, ("W6", "w6", ())]:
        yield (
            name,
            {
                "PyTorch": getattr(theirs, work)("eager", *args),
                "PyTorch, fused Adam": getattr(theirs, work)("fused Adam", *args),
                "step by step": getattr(ours, work)(True, *args),
                "captured": getattr(ours, f"captured_{work}")(True, *args),
            },
        )
    for name, work in [("W3", "w3"), ("W4", "w4")]:
        yield (
            name,
            {
                "PyTorch": getattr(theirs, work)("eager"),
                "step by step": getattr(ours, work)(True),
                "captured": getattr(ours, f"captured_{work}")(True),
            },
        )
    for batch in (1, 256):
        model, x = theirs.guide(torch, "adaptive").eval(), torch.randn(batch, 1, 28, 28)
        yield (
            f"inference, {batch}",
            {
                "PyTorch": lambda model=model, x=x: model(x),
                "PyTorch, CUDA graph": torch_graph(model, x),
                "step by step": ours.inference(True, batch),
                "captured": ours.captured_inference(True, batch),
            },
        )


def torch_graph(model, x):
    """PyTorch's own CUDA graph of a model; a call gives a result of its own."""
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.no_grad():
        with torch.cuda.stream(stream):
            model(x)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            out = model(x)

    def run():
        graph.replay()
        return out.clone()

    return run


def seconds(run, count):
    """Of one run, when so many follow each other."""
    wait()
    start = time.perf_counter()
    for _ in range(count):
        run()
    wait()
    return (time.perf_counter() - start) / count


def wait():
    torch.cuda.synchronize()
    cupy.cuda.Device(0).synchronize()


def main():
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=9)
    options = asked.parse_args()
    theirs._torch = lambda: torch
    torch.set_default_device("cuda")
    torch.manual_seed(0)
    ours.Numpy = lambda compiled: Cupy(0)
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}")
    print("| what | µs, median [lowest, highest] | ÷ PyTorch |\n|---|---|---|")
    for name, runs in contenders():
        counts = {}
        for what, run in runs.items():
            seconds(run, 3)
            counts[what] = max(1, int(SLICE / seconds(run, 3)))
        found = {what: [] for what in runs}
        for _ in range(options.rounds):
            for what, run in runs.items():
                found[what].append(seconds(run, counts[what]) * 1e6)
        for what, times in found.items():
            pairs = np.array(times) / np.array(found["PyTorch"])
            middle = statistics.median(times)
            spread = f"{middle:.0f} [{min(times):.0f}, {max(times):.0f}]"
            print(f"| {name}, {what} | {spread} | {np.median(pairs):.2f} |", flush=True)


if __name__ == "__main__":
    main()
