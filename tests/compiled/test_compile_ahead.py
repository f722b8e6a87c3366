"""Nobody waits for kernels: they are compiled beside, and used from the next start."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from burnbook import ops
from burnbook.backend import Numpy, compiled
from burnbook.backend.compiled import FAMILIES, compile_ahead
from burnbook.backend.compiled.runtime import cache
from tests.support import programs

pytestmark = pytest.mark.skipif(not cache.has_numba(), reason="needs numba")

SMALL = "embedding"  # a family that is compiled in seconds
FIRST_ACT = """
import sys
import numpy as np
from burnbook.prelude import Numpy, Tensor
x = Tensor.from_numpy(np.ones((200, 200), np.float32), Numpy())
x.relu()
from burnbook.backend import compiled
print(sorted(compiled.usable()))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of its own where every family but one small one counts as compiled."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    cache._found.cache_clear()
    for family in set(FAMILIES) - {SMALL}:
        cache.write_note(family)
    yield cache.folder()
    compile_ahead.stop_background()
    monkeypatch.undo()
    cache._found.cache_clear()


def first_act(**variables):
    """A fresh process that runs an op, as a reader's; gives what it said."""
    env = programs.environment(**variables)
    for name in ("BURNBOOK_DISPLAY", "PYTEST_CURRENT_TEST"):
        env.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", FIRST_ACT], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done


def wait_for(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


@pytest.mark.slow
def test_the_first_start_compiles_for_the_second_and_waits_for_nothing(folder):
    first = first_act(BURNBOOK_WARMUP="")
    assert first.stderr.count("\n") == 1
    assert "in the background" in first.stderr
    assert f"({len(FAMILIES) - 1} of {len(FAMILIES)}" in first.stderr
    assert SMALL not in first.stdout
    wait_for(lambda: SMALL in cache.ready())
    assert [*folder.rglob("*.o"), *folder.rglob("*.nbc")], "nothing was kept"
    second = first_act(BURNBOOK_WARMUP="")
    assert (second.stderr, SMALL in second.stdout) == ("", True)


def test_switched_off_it_says_how_to_compile_by_hand(folder):
    said = first_act(BURNBOOK_WARMUP="off").stderr
    assert "burnbook warmup" in said
    assert not (folder / compile_ahead.LOCK).exists()


def test_a_family_that_was_not_ready_stays_plain_in_this_process(monkeypatch):
    monkeypatch.setattr(compiled, "_usable", frozenset({"softmax"}))
    x = np.ones((300, 300), np.float32)
    kernels = compiled.kernels_for(None)
    assert kernels[ops.gelu](x) is None
    assert kernels[ops.softmax](x, dim=1) is not None
    assert Numpy(compiled=True) is not Numpy()


PRETENDER = """
import sys, time
for line in sys.stdin:
    family = line.strip()
    if family == "dies":
        sys.exit(1)
    if family == "talks":
        family = "something else"
    print(family, flush=True)
"""


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_a_family_that_cannot_be_compiled_keeps_no_other_from_it(monkeypatch, workers):
    started = []

    def start(what, **options):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen([sys.executable, "-c", PRETENDER], **pipes))
        return started[-1]

    monkeypatch.setattr(compile_ahead, "_start", start)
    todo = ["a", "dies", "b", "c", "talks", "d", "dies", "e"]
    failed = compile_ahead.compile_all(todo, workers, None)
    assert sorted(failed) == ["dies", "dies", "talks"]
    assert all(process.poll() is not None for process in started), "a process is left"


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_one_process_at_a_time_compiles_beside_and_gives_way(folder, monkeypatch):
    monkeypatch.setenv("BURNBOOK_WARMUP", "")
    hold = (
        "import os, time; from burnbook.backend.compiled import compile_ahead as c; "
        "c.compile_all = lambda *a: time.sleep(600); c.compile_in_background()"
    )
    lock = folder / compile_ahead.LOCK
    with programs.start("-c", hold, start_new_session=True) as holder:
        wait_for(lambda: lock.exists() and lock.read_text() == str(holder.pid), 60)
        late = programs.python("-c", hold, timeout=60)  # it finds the lock, and ends
        assert late.returncode == 0, late.stderr
        compile_ahead.stop_background()
        assert holder.wait(60) == -signal.SIGTERM
    compile_ahead.stop_background()  # nobody compiles: nothing happens


def test_the_table_is_compiled_in_the_order_of_the_guide():
    assert list(FAMILIES)[:7] == [
        *("conv", "dropout", "activation", "pool", "linear", "loss"),
        "optimizer_steps",
    ]


WARM_UP = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever started this
from burnbook.cli import main
sys.exit(main(["warmup"]))
"""


@pytest.mark.slow
def test_ctrl_c_ends_the_compilation_and_keeps_what_is_done(tmp_path):
    env = programs.environment(NUMBA_CACHE_DIR=str(tmp_path))
    order = [sys.executable, "-c", WARM_UP]
    running = subprocess.Popen(
        order,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    for line in running.stdout:
        if "compiling kernels 3/" in line:
            break
    os.killpg(running.pid, signal.SIGINT)
    said = running.communicate(timeout=30)[0]
    assert running.returncode != 0
    assert "Traceback" not in said
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)  # nobody of the group is left
    (made,) = tmp_path.glob("kernels-*")
    assert list(made.glob("*.ready"))
