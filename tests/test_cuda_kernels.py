"""The kernels of the GPU, proven on a CPU: compiled as C++ and run thread by thread."""

import ctypes
import inspect
import re
import shutil
import subprocess

import numpy as np
import pytest

from burnbook.backend import cuda_kernels, cuda_updates
from burnbook.errors import DimError
from burnbook.op import draw, split_sample
from burnbook.ops.conv import conv2d, conv2d_weight, conv2d_x
from burnbook.ops.random import dropout
from burnbook.ops.softmax import cross_entropy, cross_entropy_logits

GPP = ["g++", "-O1", "-ffp-contract=off", "-shared", "-fPIC"]
SHIM = r"""
#include <math.h>
#define __device__
#define __global__
#define __forceinline__ inline
struct { unsigned int x; } blockIdx, threadIdx, blockDim;
extern "C" void stand_at(unsigned int block, unsigned int thread, unsigned int threads)
{ blockIdx.x = block; threadIdx.x = thread; blockDim.x = threads; }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{ return (unsigned long long)(((unsigned __int128)a * b) >> 64); }
"""


class ThreadByThread:
    """NumPy with CuPy's two ways to compile a kernel, on a C++ compiler."""

    def __init__(self, folder):
        self.folder = folder

    def __getattr__(self, name):
        return getattr(np, name)

    def build(self, code):
        stem = self.folder / f"kernel_{abs(hash(code))}"
        stem.with_suffix(".cpp").write_text(SHIM + code)
        subprocess.run(
            [*GPP, "-o", f"{stem}.so", f"{stem}.cpp"],
            check=True,
        )
        return ctypes.CDLL(f"{stem}.so")

    def RawKernel(self, code, name):  # noqa: N802 - CuPy's name
        library = self.build(code)

        def launch(grid, block, args):
            given = [as_c(a) for a in args]
            for b in range(grid[0]):
                for t in range(block[0]):
                    library.stand_at(b, t, block[0])
                    getattr(library, name)(*given)

        return launch

    def ElementwiseKernel(self, inputs, outputs, operation, name):  # noqa: N802
        inputs, outputs = (
            [word.split()[1] for word in text.split(",")] for text in (inputs, outputs)
        )

        def build(values):
            names = [n for n, v in zip(inputs, values, strict=True) if np.ndim(v)]
            names += outputs
            header = ", ".join(
                f"double{'*' if n in names else ''} {n}_" for n in inputs + outputs
            )
            body = operation
            for word in inputs + outputs:
                value = f"{word}_[i]" if word in names else f"{word}_"
                body = re.sub(rf"\b{word}\b", value, body)
            loop = f"for (long i = 0; i < n; ++i) {{ {body} }}"
            code = (
                f'typedef double T; extern "C" void {name}(long n, {header}) {{{loop}}}'
            )
            return getattr(self.build(code), name)

        def launch(*values):
            news = [np.empty_like(values[0]) for _ in outputs]
            given = [as_c(v) for v in (*values, *news)]
            build(values)(ctypes.c_long(values[0].size), *given)
            return news if len(news) > 1 else news[0]

        return launch


def as_c(value):
    if isinstance(value, np.ndarray):
        return value.ctypes.data_as(ctypes.c_void_p)
    kind = {"f": ctypes.c_float, "d": ctypes.c_double, "i": ctypes.c_int32}
    kind |= {"l": ctypes.c_int64, "L": ctypes.c_uint64, "I": ctypes.c_uint32}
    return kind[np.dtype(type(value)).char](value)


@pytest.fixture(scope="module")
def threads(tmp_path_factory):
    if not shutil.which("g++"):
        pytest.skip("no C++ compiler")
    return ThreadByThread(tmp_path_factory.mktemp("kernels"))


@pytest.mark.parametrize("count", [1, 4, 1025])
def test_philox_kernel_gives_numpys_bits(threads, count):
    key = (2**64 - 3, 7)
    expected = np.random.Philox(key=key[1] << 64 | key[0]).random_raw(count)
    found = cuda_kernels.draw_words(threads, count, key)
    assert (found == np.atleast_1d(expected)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 5), (4097,)])
def test_dropout_kernel_equals_the_plain_code_bit_for_bit(threads, dtype, shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    for prob in (0.0, 0.25, 0.999):
        attrs = {"prob": prob, "key": (5, 6)}
        expected = dropout.forward(np, x, **attrs)
        found = cuda_kernels.draw_dropout(threads, x, **attrs)
        assert found.dtype == dtype
        assert (found == expected).all()


UPDATES = [
    pytest.param(o, *split_sample(row), id=f"{o.name}-{i}")
    for o in cuda_updates.FORMULAS
    for i, row in enumerate(o.samples)
]


@pytest.mark.parametrize(("op", "specs", "attrs"), UPDATES)
def test_update_kernels_equal_the_plain_code(threads, op, specs, attrs):
    rng = np.random.default_rng(0)
    values = [draw(spec, rng) for spec in specs]
    expected = op.forward(np, *values, **attrs)
    found = cuda_updates.update_kernels(threads)[op](*values, **attrs)
    if not isinstance(expected, tuple):
        expected, found = (expected,), (found,)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("whole", [np.int32, np.int64])
def test_loss_kernels_equal_the_plain_code(threads, real, whole):
    rng = np.random.default_rng(0)
    logits = (rng.standard_normal((300, 10)) * 20).astype(real)
    targets = rng.integers(0, 10, 300).astype(whole)
    loss = cuda_kernels.fused_cross_entropy(threads, logits, targets)
    expected = cross_entropy.forward(np, logits, targets)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    dout = np.array([0.5], real)
    slopes = cuda_kernels.fused_cross_entropy_logits(threads, dout, logits, targets)
    expected = cross_entropy_logits.forward(np, dout, logits, targets)
    np.testing.assert_allclose(slopes, expected, rtol=1e-4, atol=1e-8)


def test_loss_kernel_leaves_a_wrong_target_to_the_plain_code(threads):
    logits = np.zeros((3, 4), np.float32)
    for wrong in (-1, 4):
        targets = np.array([0, wrong, 1])
        assert cuda_kernels.fused_cross_entropy(threads, logits, targets) is None
        with pytest.raises(DimError, match=f"target {wrong} is not one of the 4"):
            cross_entropy.forward(np, logits, targets)


CONVS = [
    *conv2d.samples,
    (("normal", (3, 2, 9, 8)), ("normal", (4, 2, 3, 3)), {"stride": (2, 3)}),
    (("normal", (1, 4, 5, 5)), ("normal", (8, 1, 5, 5)), {"groups": 4}),
]


@pytest.mark.parametrize("row", CONVS)
def test_whole_batch_convolution_equals_the_plain_code(row):
    specs, attrs = split_sample(row)
    rng = np.random.default_rng(0)
    arrays = [draw(spec, rng) for spec in specs]
    x, weight = arrays[:2]
    out = conv2d.forward(np, *arrays, **attrs)
    assert_close(cuda_kernels.columns_conv2d(np, *arrays, **attrs), out)
    dout = np.random.default_rng(1).standard_normal(out.shape)
    for plain, kernel, values, sizes in (
        (conv2d_x, cuda_kernels.columns_conv2d_x, (dout, weight), ("x", x)),
        (
            conv2d_weight,
            cuda_kernels.columns_conv2d_weight,
            (dout, x),
            ("weight", weight),
        ),
    ):
        facts = {**attrs, f"{sizes[0]}_shape": sizes[1].shape}
        assert_close(kernel(np, *values, **facts), plain.forward(np, *values, **facts))


def assert_close(found, expected):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_a_convolution_too_large_for_its_columns_is_left_to_the_plain_code(monkeypatch):
    monkeypatch.setattr(cuda_kernels, "MOST_COLUMNS", 100)
    x, weight = np.ones((2, 1, 9, 9)), np.ones((1, 1, 3, 3))
    assert cuda_kernels.columns_conv2d(np, x, weight) is None


def test_every_kernel_belongs_to_an_op_and_has_its_parameters():
    for op, kernel in cuda_kernels.kernels(np).items():
        if op in cuda_updates.FORMULAS:  # made from the op itself, called by name above
            assert len(cuda_updates.FORMULAS[op][0].split()) == len(op.inputs)
            continue
        function = kernel.__closure__[1].cell_contents
        if not callable(function) or function is np:
            function = kernel.__closure__[0].cell_contents
        wanted = list(inspect.signature(op.forward).parameters.values())[1:]
        found = list(inspect.signature(function).parameters.values())[1:]
        assert [(p.name, p.kind, p.default) for p in found] == [
            (p.name, p.kind, p.default) for p in wanted
        ], op
