"""What every test gets: a still display, fixed seeds, a cache folder of its own."""

import os
import random
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import burnbook
from burnbook.backend.base import Interned
from burnbook.backend.compiled.runtime import cache
from burnbook.core.rng import Stream
from tests.support import checked_kernels

SHARED = Path(__file__).resolve().parents[2] / "shared"  # data beside the repository

# What is shown is text; compiled kernels are those of the person who runs the tests,
# downloads are not.
os.environ["BURNBOOK_DISPLAY"] = "static"
os.environ["BURNBOOK_WARMUP"] = "off"
os.environ["NUMBA_CACHE_DIR"] = str(cache.folder().parent)
os.environ["BURNBOOK_CACHE"] = tempfile.mkdtemp(prefix="burnbook-tests-")
os.environ.pop("BURNBOOK_MNIST_MIRROR", None)
checked_kernels.check_all()
# Who runs the tests gets the same draws, and so the same verdict, every time, unless
# --draws says otherwise. A busy machine fails no test.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile("same")


@pytest.fixture(autouse=True)
def same_random_numbers(request):
    """Every test starts from seed 0, whatever ran before it.

    Backends are shared by all tests, and `Numpy().seed(7)` gives one its own numbers.
    Generators of a test's module, as `RNG`, begin anew from their own seed.
    """
    burnbook.seed(0)
    for backend in Interned._made.values():
        if "stream" in vars(backend):
            backend.stream = Stream(None)
    module = getattr(request.node, "module", None)
    for found in list(vars(module).values()) if module is not None else ():
        if isinstance(found, np.random.Generator):
            bits = found.bit_generator
            bits.state = type(bits)(bits.seed_seq).state  # pyright: ignore


@pytest.fixture(autouse=True)
def no_widgets_left():
    """Widgets that a test left open do not count in the next one."""
    yield
    if "ipywidgets" in sys.modules:
        sys.modules["ipywidgets"].Widget.close_all()


@pytest.fixture
def interruptible():
    """Ctrl-C as in a terminal: a process in the background may start without it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def kernels():
    """The compiled kernels by their ops, each when it is asked for."""
    from tests.support.kernel_checks import Kernels

    return Kernels()


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real files to test with; a test that wants them skips where they are absent."""
    if not SHARED.is_dir():
        pytest.skip(
            f"no optional data: {SHARED.name}/ does not lie beside the repository"
        )
    return SHARED


def pytest_ignore_collect(collection_path, config):
    """Doctests are those of burnbook/: helpers of the tests hold none."""
    path = Path(collection_path)
    if path.suffix == ".py" and not path.name.startswith(("test_", "bench_")):
        return True if Path(__file__).parent in path.parents else None
    return None


# CI runs the tests twice, bare and with everything installed. What passed bare, and has
# nothing to do with what is installed later, is not run again.

NOTE = "--note-passed"
WITHOUT = "--without-passed"
AGAIN = (
    *("tests/reference/", "tests/oracle/", "tests/torch/", "tests/golden/"),
    *("tests/importers/", "tests/exporters/", "tests/record/"),
)


DRAWS = "--draws"


def pytest_addoption(parser):
    parser.addoption(
        DRAWS,
        metavar="SAME|NEW|SEED",
        default="same",
        help="examples and order of the tests: those of every run (same), others (new),"
        " or those of an earlier run with new ones, by its seed",
    )
    parser.addoption(NOTE, metavar="FILE", help="write the names of what passed")
    parser.addoption(WITHOUT, metavar="FILE", help="leave out what such a file names")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """One seed for all that draws: the tests' order, global generators, Hypothesis."""
    draws = config.getoption(DRAWS)
    if draws == "new":  # processes that share out the tests are given the seed
        draws = config.option.draws = str(random.SystemRandom().getrandbits(31))
    if draws != "same":
        settings.load_profile("fresh")
        config.option.hypothesis_seed = draws
    if getattr(config.option, "randomly_seed", None) == "default":
        config.option.randomly_seed = 0 if draws == "same" else int(draws)


def pytest_terminal_summary(terminalreporter, config):
    """How what failed with new draws is run again with the same ones."""
    draws = config.getoption(DRAWS)
    if draws == "same":
        return
    failed = terminalreporter.stats.get("failed", [])
    for name in dict.fromkeys(report.nodeid for report in failed):
        terminalreporter.write_line(f"again: python -m pytest {DRAWS}={draws} '{name}'")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    known = _known(config.getoption(WITHOUT), items)
    config.hook.pytest_deselected(items=known)
    left = set(items) - set(known)
    items[:] = [one for one in items if one in left]
    if hasattr(config, "workerinput"):
        _longest_first(items)


def _known(file, items):
    """What passed before and need not run again."""
    if file is None or not Path(file).is_file():
        return []
    passed = set(Path(file).read_text(encoding="utf-8").splitlines())
    return [
        one
        for one in items
        if one.nodeid in passed and not one.nodeid.startswith(AGAIN)
    ]


def _longest_first(items):
    """Files that take long come first, so that no process waits for one at the end."""
    seconds = Counter()
    for item in items:
        is_slow = item.get_closest_marker("slow") is not None
        seconds[item.path] += 30 if is_slow else 0.05
    items.sort(key=lambda item: -seconds[item.path])


def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed:
        _passed.append(report.nodeid)


_passed = []


def pytest_sessionfinish(session):
    """Leave nothing behind."""
    import shutil

    file = session.config.getoption(NOTE)
    if file is not None and not hasattr(session.config, "workerinput"):
        Path(file).write_text("\n".join(_passed), encoding="utf-8")
    shutil.rmtree(os.environ["BURNBOOK_CACHE"], ignore_errors=True)
