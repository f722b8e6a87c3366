"""A training as a browser would run it: NumPy and msgpack alone, and no thread at all.

As a program, `bare_training.py DIR`, it trains in all three ways and reads its records
back. Python in a browser lacks some modules of the standard library too (GONE: what
older or newer builds of Pyodide come without).
"""

import asyncio
import sys
import threading
from importlib.abc import MetaPathFinder
from pathlib import Path

ALLOWED = {"numpy", "msgpack", "burnbook", "tests"}
GONE = {
    *("_multiprocessing", "_posixshmem", "_ssl", "_lzma", "_sqlite3", "ssl", "lzma"),
    *("sqlite3", "fcntl", "grp", "pwd", "resource", "syslog", "termios", "curses"),
    *("dbm", "tkinter", "venv", "ensurepip"),
}


class Browser(MetaPathFinder):
    """Finds nothing that Python in a browser would not find either."""

    def __init__(self, finders):
        self.finders = finders

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        known = top in sys.stdlib_module_names or top in ALLOWED
        known = known or top.startswith("_sysconfigdata")  # how Python was built
        if top in GONE or not known:
            return None
        found = (each.find_spec(name, path, target) for each in self.finders)
        return next(filter(None, found), None)


def no_thread(thread):
    raise RuntimeError("can't start new thread")


def forget(names):
    for loaded in [name for name in sys.modules if name.partition(".")[0] in names]:
        del sys.modules[loaded]


def main(folder):
    forget(GONE)
    sys.meta_path[:] = [Browser([*sys.meta_path])]
    threading.Thread.start = no_thread

    import numpy as np

    from burnbook.prelude import Numpy, Tensor
    from burnbook.record import (
        BinFileRecorder,
        FullPrecisionSettings,
        NamedMpkGzFileRecorder,
        PrettyJsonFileRecorder,
    )
    from burnbook.train import RunStore
    from burnbook.train.renderer import PlainRenderer
    from tests.support.tiny_training import (
        DEVICE,
        build,
        builder,
        learner,
        loader,
        recorder,
        same_weights,
        tiny,
    )

    def batches(workers):
        return [np.asarray(batch.x) for batch in loader(workers=workers)]

    for one, other in zip(batches(0), batches(3), strict=True):
        assert (one == other).all(), "workers changed the batches"
    lines = builder(folder / "run").renderer(PlainRenderer(sys.stdout))
    first = build(lines.with_file_checkpointer(recorder()))
    trained = first.fit(loader(workers=3), loader(1))
    assert Numpy() is Numpy(compiled=None)
    x = Tensor[2].from_data([[1.0, -2.0]], Numpy())  # numba would be wanted here
    assert x.matmul(x.transpose()).into_scalar() == 5.0
    print("trained", RunStore(folder)["run"].epochs)
    for number, made in enumerate(
        (NamedMpkGzFileRecorder, PrettyJsonFileRecorder, BinFileRecorder)
    ):
        kind = made(FullPrecisionSettings)
        path = folder / f"model-{number}"
        trained.save_file(path, kind)
        again = tiny(seed=9).load_file(path, kind, DEVICE)
        assert same_weights(trained, again), made.__name__
    print("records read back")
    for way in ("awaited", "started"):
        other = learner(folder / way)
        if way == "awaited":
            model = asyncio.run(other.fit_async(loader(workers=2), loader(1)))
        else:
            model = other.start(loader(workers=2), loader(1)).wait()
        assert same_weights(model, trained), way
        print(way, RunStore(folder)[way].epochs)
    print("foreign", sorted(foreign()))


OF_THE_MACHINE = {"cython_runtime", "sitecustomize", "usercustomize"}


def foreign():
    tops = {name.partition(".")[0] for name in sys.modules}
    return {top for top in tops if not top.startswith("_")} - (
        set(sys.stdlib_module_names)
        | ALLOWED
        | {"cython_runtime", "sitecustomize", "usercustomize"}
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
