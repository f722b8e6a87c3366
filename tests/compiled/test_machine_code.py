"""Kernels run from machine code that is kept, without the compiler."""

import subprocess
import sys

import pytest

from burnbook import ops
from burnbook.backend.compiled import FAMILIES, compile_ahead
from burnbook.backend.compiled.runtime import cache, machine_code
from tests.support import programs

pytestmark = pytest.mark.skipif(
    not machine_code.is_supported() or not cache.has_numba(),
    reason="machine code is kept on Linux for x86-64 only",
)


@pytest.fixture
def object_file(kernels):
    """One file of the cache, whose kernel is compiled."""
    kernels[ops.embedding_weight]
    for path in cache.folder().glob("embedding.add_rows.*.o"):
        return path
    pytest.skip("kernels are not compiled on this machine yet: burnbook warmup")


def fresh(code, **variables):
    """What a fresh process prints."""
    env = {**programs.environment(**variables), "BURNBOOK_DISPLAY": "none"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


STEP = """
import sys
import numpy as np
{first}
from burnbook.nn import LinearConfig
from burnbook.prelude import Autodiff, Numpy, Tensor
device = Autodiff(Numpy(compiled=True))
device.seed(1)
layer = LinearConfig(300, 200).init(device)
x = Tensor.from_numpy(np.ones((100, 300), np.float32), device)
y = layer.forward(x).relu()
print(y.sum().into_scalar(), y.sum().backward() is not None)
{last}
"""


def test_a_training_step_does_without_the_compiler():
    said = fresh(STEP.format(first="", last="print('numba' in sys.modules)"))
    assert said.splitlines()[-1] == "False"


@pytest.mark.slow
def test_the_readers_own_numba_works_beside_before_and_after():
    own = "import numba; assert numba.njit(lambda x: x + x.sum())(np.ones(4))[0] == 5"
    plain = fresh(STEP.format(first="", last=""))
    assert fresh(STEP.format(first=own, last="")) == plain
    assert fresh(STEP.format(first="", last=own)) == plain


PLACES = """
from burnbook.backend.compiled import FAMILIES
from burnbook.backend.compiled.loading import load
from burnbook.backend.compiled.runtime import jit
inner = jit._place_of
def place_of(*args):
    print(inner(*args).name)
    return inner(*args)
jit._place_of = place_of
for family in FAMILIES:
    load(family)
"""


def test_every_kernel_has_a_file_of_its_own():
    places = fresh(PLACES).split()
    assert len(places) == len(set(places)) > len(FAMILIES)
    if not compile_ahead.missing():
        kept = {path.name for path in cache.folder().glob("*.o")}
        assert set(places) - kept == set()


def test_what_is_written_is_read_under_its_own_name(object_file, tmp_path):
    assert machine_code.read(object_file).__name__ == object_file.stem
    other = tmp_path / "embedding.other.o"
    other.write_bytes(object_file.read_bytes())
    assert machine_code.read(other) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda b: b"",
        lambda b: b[:-1],
        lambda b: b[:40],
        lambda b: b[: len(b) // 2] + bytes([b[len(b) // 2] ^ 1]) + b[len(b) // 2 + 1 :],
        lambda b: b"1" + b,
        lambda b: b"0\n\n\n",
        lambda b: b"x\n" * 5,
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_not_run(object_file, tmp_path, spoil):
    spoilt = tmp_path / "kernel.o"
    spoilt.write_bytes(spoil(object_file.read_bytes()))
    assert machine_code.read(spoilt) is None
    assert machine_code.read(tmp_path / "absent.o") is None


def test_code_that_needs_something_unknown_is_not_run(object_file, tmp_path):
    renamed = tmp_path / "kernel.o"
    content = object_file.read_bytes().split(b"\n", 1)[1]
    for known in (b"PyArg_UnpackTuple\0", b"nothing at all"):
        changed = content.replace(known, b"PyArg_UnpackTuplf\0")
        check = machine_code._checksum(renamed, changed)
        renamed.write_bytes(f"{check}\n".encode() + changed)
        assert (machine_code.read(renamed) is None) == (known in content)


LOST = """
import numpy as np
from burnbook.backend.compiled.runtime import cache
lost, = cache.folder().glob("conv.all_gradients.*.o")
lost.unlink()
from burnbook.nn.conv import Conv2dConfig
from burnbook.prelude import Autodiff, Numpy, Tensor
made = []
for compiled in (True, False):
    device = Autodiff(Numpy(compiled=compiled))
    device.seed(1)
    layer = Conv2dConfig([8, 16], [3, 3]).init(device)
    x = Tensor.from_numpy(np.ones((64, 8, 26, 26), np.float32), device).require_grad()
    grads = (layer.forward(x) ** 2).sum().backward()
    made.append(np.asarray(x.grad(grads)))
print(np.allclose(*made, rtol=1e-3), lost.exists())
"""


@pytest.mark.slow
def test_a_lost_file_is_compiled_again_beside_kept_ones(tmp_path, monkeypatch):
    """What is kept of one kernel may be a part of the one that is compiled again."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    cache._found.cache_clear()
    try:
        assert compile_ahead.compile_all(["conv"], 1, None) == []
        for family in FAMILIES:
            cache.write_note(family)
        said = fresh(LOST, NUMBA_CACHE_DIR=str(tmp_path))
        assert said.split() == ["True", "True"]
    finally:
        monkeypatch.undo()
        cache._found.cache_clear()
