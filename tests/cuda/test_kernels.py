"""The kernels of the GPU, proven on a CPU: compiled as C++ and run thread by thread.

On a machine with a GPU, `python -m pytest tests/cuda -m gpu` runs every kernel on it
and compares with the plain code.
"""

import ctypes
import importlib.util
import inspect
from pathlib import Path

import numpy as np
import pytest

from burnbook.backend.cuda import KERNELS, activation, conv, optimizer_steps
from burnbook.core.errors import DimError
from burnbook.core.op import (
    OPS,
    above,
    distinct,
    draw,
    indices,
    normal,
    split_sample,
    truths,
)
from burnbook.ops.attention import attention
from burnbook.ops.conv.conv import conv2d, conv2d_weight, conv2d_x
from burnbook.ops.embedding import embedding_weight
from burnbook.ops.loss import cross_entropy
from burnbook.ops.norm import layer_norm
from burnbook.ops.pool.pool import avg_pool2d, max_pool2d
from burnbook.ops.random import dropout
from burnbook.ops.softmax import log_softmax, softmax
from tests.support.cuda_on_cpu import Cuda, texts
from tests.support.far_arrays import assert_as_plain, assert_same, inputs_of, outcome


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request):
    """The kernels on a CPU, and on a GPU where there is one."""
    return request.getfixturevalue("threads" if request.param == "cpu" else "gpu")


# Every sample of every op that has a kernel, and its gradient.


def op_of(name):
    """The op that a kernel belongs to, or that its gradient belongs to."""
    found = getattr(name, "source", name)
    return OPS[found.name]


WITH_KERNELS = sorted({op_of(each).name for each in KERNELS})
SAMPLES = [
    pytest.param(OPS[name], row, id=f"{name}-{number}")
    for name in WITH_KERNELS
    for number, row in enumerate(OPS[name].samples)
]


@pytest.mark.parametrize(("op", "row"), SAMPLES)
def test_kernels_agree_with_the_plain_code_on_all_samples(threads, op, row):
    assert_same(op, row, threads)


def test_every_kernel_answers_for_a_sample():
    device = Cuda()
    for parameters in SAMPLES:
        assert_same(*parameters.values, device)
    assert set(device.answers) == set(KERNELS)


def three(shape, *attrs):
    return (normal(*shape), normal(shape[1]), normal(shape[1]), *attrs)


def heads(s, t, d, *more):
    size = (normal(2, 2, s, d), normal(2, 2, t, d), normal(2, 2, t, d + 1))
    return (*size, *more[:-1], {"scale": d**-0.5, **more[-1]})


def states(gates, *attrs, count=1):
    i, n = 5, 6
    weights = (normal(i, gates * n), normal(n, gates * n), normal(gates * n))
    more = [normal(gates * n)] if gates == 3 else [normal(3, n)]
    return (normal(3, 9, i), *weights, *more, normal(3, n), *attrs)


ROWS = (70, 33)
LONG = (3, 1100)  # a row for a whole block of threads
IMAGE = (2, 3, 13, 11)
WINDOW = {"kernel_size": (3, 4), "stride": (1, 3), "padding": (1, 2)}
EPSILON = {"epsilon": 1e-3}
CASES = {
    "softmax": [(normal(*ROWS), {"dim": -1}), (normal(*LONG), {"dim": 1})],
    "log_softmax": [(normal(*ROWS), {"dim": -1}), (normal(*LONG), {"dim": 1})],
    "cross_entropy": [
        (normal(*ROWS), indices(33, 70)),
        (normal(*LONG), indices(1100, 3)),
    ],
    "layer_norm": [
        (normal(*ROWS), normal(33), normal(33), EPSILON),
        (normal(*LONG), normal(1100), EPSILON),
        (normal(2, 3, 300), EPSILON),
    ],
    "rms_norm": [(normal(*ROWS), normal(33), EPSILON), (normal(*LONG), EPSILON)],
    "group_norm": [
        (*three((3, 6, 5, 7))[:3], {"groups": 3, **EPSILON}),
        (*three((2, 4, 700))[:3], {"groups": 2, "inside": True, **EPSILON}),
        (normal(9, 8), {"groups": 2, **EPSILON}),
    ],
    "batch_norm": [three((5, 3, 8, 9), EPSILON), three((300, 4), EPSILON)],
    "batch_norm_known": [(*three((5, 3, 8, 9)), normal(3), above(0.0, 3), EPSILON)],
    "attention": [
        heads(9, 40, 8, {"causal": True}),
        heads(9, 40, 8, truths(1, 1, 9, 40), {"quiet": True, "hidden": -1e3}),
        heads(9, 40, 8, normal(2, 1, 1, 40), {"causal": True}),
        heads(2, 1100, 3, truths(2, 1, 1, 1100), {}),
        heads(3, 5, 4, {"prob": 0.4, "noise": (1, 2), "drop_weights": True}),
        heads(3, 5, 4, normal(1, 2, 3, 5), {"prob": 0.4, "noise": (1, 2)}),
    ],
    "embedding": [(normal(60, 150), indices(60, 6, 70)), (normal(3, 5), indices(2, 9))],
    "lstm": [states(4, {}), states(4, {"reverse": True})],
    "gru": [
        states(3, {"reset_after": after, "reverse": reverse})
        for after in (True, False)
        for reverse in (True, False)
    ],
    "max_pool2d": [
        (distinct(*IMAGE), {"kernel_size": (3, 2), "stride": (2, 1)}),
        (distinct(*IMAGE), {**WINDOW, "dilation": (2, 1)}),
    ],
    "avg_pool2d": [
        (normal(*IMAGE), {**WINDOW, **more})
        for more in ({}, {"count_include_pad": False})
    ],
    "adaptive_avg_pool2d": [
        (normal(*IMAGE), {"output_size": size})
        for size in ((4, 3), (13, 1), (5, 16), (1, 11))
    ],
    "dropout": [(normal(*ROWS), {"prob": 0.3, "key": (1, 2**63)})],
    **{op.name: [(normal(300, 4),)] for op in activation.FORMULAS},
}
LARGER = [
    pytest.param(OPS[name], row, id=f"{name}-{number}")
    for name, rows in CASES.items()
    for number, row in enumerate(rows)
]


@pytest.mark.parametrize(("op", "row"), LARGER)
def test_kernels_agree_with_the_plain_code_at_more_sizes(device, op, row):
    assert_same(op, row, device, np.float32, rtol=2e-4, atol=2e-5)


@pytest.mark.gpu
@pytest.mark.parametrize(("op", "row"), LARGER)
def test_kernels_on_the_gpu_agree_in_double_precision_too(gpu, op, row):
    assert_same(op, row, gpu, np.float64, rtol=1e-7, atol=1e-10)


@pytest.mark.gpu
@pytest.mark.parametrize(("op", "row"), LARGER)
def test_the_same_numbers_give_the_same_result_bit_for_bit(gpu, op, row):
    arrays, attrs = inputs_of(op, row, np.float32)
    first, second = (outcome(gpu, op, arrays, attrs) for _ in "ab")
    for a, b in zip(first, second, strict=True):
        assert (a == b).all()


def test_every_family_of_kernels_has_larger_cases():
    named = {op_of(each) for each in KERNELS} - set(optimizer_steps.FORMULAS)
    covered = {OPS[name] for name in CASES} | {conv2d, conv2d_x, conv2d_weight}
    inner = {"_x", "_weight", "_logits"}
    rest = {op.name for op in named - covered}
    assert {name for name in rest if not name.endswith(tuple(inner))} == set()


# What a gradient was not asked for is not given.


NEEDS = ["layer_norm", "rms_norm", "group_norm", "batch_norm", "batch_norm_known"]
NEEDS += ["attention", "lstm", "gru"]


@pytest.mark.parametrize("name", NEEDS)
def test_only_gradients_that_are_needed_are_given(threads, name):
    op = OPS[name]
    arrays, attrs = inputs_of(op, CASES[name][0])
    values = tuple(threads.from_numpy(a) for a in arrays)
    out = threads.run(op, values, attrs)
    kept = op.keep(values + (None,) * (len(op.inputs) - len(values)), out)
    ones = threads.xp.ones_like(out[0] if op.extras else out)

    def slopes(needs):
        return threads.run(op.backward, (ones, *kept), {**attrs, "needs": needs})

    whole = slopes((True,) * len(values) + (False,) * (len(op.inputs) - len(values)))
    for i in range(len(values)):
        found = slopes(tuple(k == i for k in range(len(op.inputs))))
        assert [k for k, g in enumerate(found) if g is not None] == [i]
        assert (threads.to_numpy(found[i]) == threads.to_numpy(whole[i])).all()


# What kernels do not serve is left to the plain code, and what is odd comes out alike.


def answered(device, op, values, attrs):
    """Whether a kernel answered; the result is the plain code's in any case."""
    before = len(device.answers)
    assert_as_plain(op, values, attrs, device, rtol=1e-5, atol=1e-6)
    return len(device.answers) > before


@pytest.mark.parametrize("name", sorted(CASES))
def test_half_precision_is_left_to_the_plain_code(threads, name):
    """Which sees single precision, so that kernels serve the ops inside of it."""
    made = OPS[name]
    arrays, attrs = inputs_of(made, CASES[name][0], np.float16)
    before = len(threads.answers)
    if name in ("lstm", "gru", "attention"):  # whose sums differ in their last digits
        outcome(threads, made, arrays, attrs)
    else:
        assert_as_plain(made, arrays, attrs, threads, rtol=1e-3, atol=1e-6)
    own = {made.backward} if name == "dropout" else {made, made.backward}
    assert not own & {*threads.answers[before:]}  # the gradient of dropout is dropout


def test_a_mixture_of_types_is_left_to_the_plain_code(threads):
    x, line = np.ones((3, 4), np.float32), np.ones(4)
    assert not answered(threads, layer_norm, [x, line, line], {})


def test_softmax_along_other_dims_is_left_to_the_plain_code(threads):
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    for dim, wanted in ((0, False), (1, False), (2, True), (-1, True)):
        for op in (softmax, log_softmax):
            assert answered(threads, op, [x], {"dim": dim}) == wanted


def test_softcap_is_left_to_the_plain_code(threads):
    row = heads(3, 4, 2, {"softcap": 2.0})
    arrays, attrs = inputs_of(attention, row)
    assert not answered(threads, attention, arrays, attrs)


def test_arrays_without_elements_are_left_to_the_plain_code(threads):
    assert not answered(threads, softmax, [np.ones((0, 4))], {"dim": 1})
    line = np.ones(4)
    assert not answered(threads, layer_norm, [np.ones((0, 4)), line, line], {})


def test_arrays_in_pieces_are_made_whole(threads):
    rng = np.random.default_rng(0)
    x = threads.xp.array(rng.standard_normal((6, 5))).swapaxes(0, 1)
    found = threads.run(softmax, (x,), {"dim": 1})
    expected = softmax.forward(np, threads.to_numpy(x), dim=1)
    np.testing.assert_allclose(threads.to_numpy(found), expected)


@pytest.mark.parametrize("whole", [np.int32, np.int64])
def test_losses_take_targets_of_both_sizes(threads, whole):
    rng = np.random.default_rng(0)
    logits = (rng.standard_normal((300, 10)) * 20).astype(np.float32)
    targets = rng.integers(0, 10, 300).astype(whole)
    assert answered(threads, cross_entropy, [logits, targets], {})
    assert not answered(threads, cross_entropy, [logits, targets.astype(np.int8)], {})


def test_a_wrong_target_is_left_to_the_plain_code(threads):
    logits = threads.from_numpy(np.zeros((3, 4), np.float32))
    for wrong in (-1, 4):
        targets = threads.from_numpy(np.array([0, wrong, 1]))
        with pytest.raises(DimError, match=f"target {wrong} is not one of the 4"):
            threads.run(cross_entropy, (logits, targets), {})


def test_indices_of_any_type_pick_rows(threads):
    dout = np.ones((4, 2))
    for kind in (np.int8, np.uint8, np.int32):
        picked, attrs = np.array([3, 0, 3, 71], kind), {"weight_shape": (200, 2)}
        before = len(threads.answers)
        given = (threads.from_numpy(dout), threads.from_numpy(picked))
        found = threads.to_numpy(threads.run(embedding_weight, given, attrs))
        assert (found == embedding_weight.forward(np, dout, picked, **attrs)).all()
        assert len(threads.answers) == before + 1


def test_what_is_not_a_number_stays_so(threads):
    x = np.random.default_rng(0).standard_normal((5, 40))
    x[0, 3], x[1, 5], x[2, :], x[3, 7] = np.nan, np.inf, -np.inf, -np.inf
    for op in (softmax, log_softmax):
        assert answered(threads, op, [x], {"dim": 1})
    image = x.reshape(1, 1, 5, 40)
    for op in (max_pool2d, avg_pool2d):
        how = {"kernel_size": (2, 2), "stride": (1, 1)}
        assert answered(threads, op, [image], {**how, "padding": (1, 1)})


def test_a_query_that_sees_nothing_takes_nothing(threads):
    arrays, attrs = inputs_of(attention, heads(3, 4, 2, truths(1, 1, 3, 4), {}))
    arrays[3][0, 0, 1] = True
    assert answered(threads, attention, arrays, attrs)
    values = tuple(threads.from_numpy(a) for a in arrays)
    assert not threads.to_numpy(threads.run(attention, values, attrs)[0])[:, :, 1].any()


# Random bits, and convolution.


@pytest.mark.parametrize("count", [1, 4, 1025])
def test_philox_kernel_gives_numpys_bits(threads, count):
    key = (2**64 - 3, 7)
    expected = np.random.Philox(key=key[1] << 64 | key[0]).random_raw(count)
    found = threads.to_numpy(threads.xp.philox(count, key))
    assert (found == np.atleast_1d(expected)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 5), (4097,)])
def test_dropout_kernel_equals_the_plain_code_bit_for_bit(threads, dtype, shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    for prob in (0.0, 0.25, 0.999):
        attrs = {"prob": prob, "key": (5, 6)}
        found = threads.run(dropout, (threads.from_numpy(x),), attrs)
        assert (threads.to_numpy(found) == dropout.forward(np, x, **attrs)).all()
    everything = threads.run(dropout, (threads.from_numpy(x),), {**attrs, "prob": 1.0})
    assert not threads.to_numpy(everything).any()


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
    assert_close(conv.columns_conv2d(np, *arrays, **attrs), out)
    dout = np.random.default_rng(1).standard_normal(out.shape)
    for plain, kernel, values, sizes in (
        (conv2d_x, conv.columns_conv2d_x, (dout, weight), ("x", x)),
        (conv2d_weight, conv.columns_conv2d_weight, (dout, x), ("weight", weight)),
    ):
        facts = {**attrs, f"{sizes[0]}_shape": sizes[1].shape}
        assert_close(kernel(np, *values, **facts), plain.forward(np, *values, **facts))


def assert_close(found, expected):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_a_convolution_too_large_for_its_columns_is_left_to_the_plain_code(monkeypatch):
    monkeypatch.setattr(conv, "MOST_COLUMNS", 100)
    x, weight = np.ones((2, 1, 9, 9)), np.ones((1, 1, 3, 3))
    assert conv.columns_conv2d(np, x, weight) is None


# The list itself, and the compiler of a GPU.


def test_every_kernel_has_the_parameters_of_its_op():
    named = set(activation.FORMULAS) | {op.backward for op in activation.FORMULAS}
    for op, function in KERNELS.items():
        if (
            op in optimizer_steps.FORMULAS
        ):  # made from the op itself, called by name above
            assert len(optimizer_steps.FORMULAS[op][0].split()) == len(op.inputs)
            continue
        if op in named:
            continue
        wanted = list(inspect.signature(op.forward).parameters.values())[1:]
        found = list(inspect.signature(function).parameters.values())[1:]
        assert [(p.name, p.kind, p.default) for p in found] == [
            (p.name, p.kind, p.default) for p in wanted
        ], op


def test_formulas_leave_cupys_own_names_alone():
    cupy = pytest.importorskip("cupy")
    formulas = list(optimizer_steps.FORMULAS.values())
    taken = [" ".join(row[:3]) for row in formulas] + ["x y g out soft rise below"]
    for name in " ".join(taken).split():
        assert name not in ("n", "i")
        assert not name.startswith("_")
    for op in optimizer_steps.FORMULAS:
        assert optimizer_steps.element_kernel(cupy, op).nin > len(op.inputs)
    for op, (given, value, slope) in activation.FORMULAS.items():
        assert activation.curve(cupy, op, "T x", value).nin == 1
        assert activation.curve(cupy, op.backward, f"T g, T {given}", slope).nin == 2


def test_the_compiler_of_the_gpu_takes_every_kernel(threads):
    nvrtc = find_nvrtc()
    for parameters in SAMPLES:
        assert_same(*parameters.values, threads)
    for parameters in LARGER:
        for real in (np.float32, np.float64):
            outcome(threads, parameters.values[0], *inputs_of(*parameters.values, real))
    problems = [found for text in texts() if (found := complaint(nvrtc, text))]
    assert texts()
    assert not problems, problems[0]
    assert "error" in complaint(nvrtc, 'extern "C" __global__ void f() { g(); }')


def find_nvrtc():
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        spec = None
    folders = spec.submodule_search_locations if spec else []
    found = [file for f in folders for file in Path(f).glob("lib/libnvrtc.so.*")]
    if not found:
        pytest.skip("NVIDIA's run-time compiler is not installed")
    return ctypes.CDLL(str(found[0]))


def complaint(nvrtc, text):
    """What NVIDIA's compiler says against a text, or nothing."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    given = (text.encode(), b"kernel.cu", 0, None, None)
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), *given) == 0
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_70")
    wrong = nvrtc.nvrtcCompileProgram(program, 1, options)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() if wrong else ""
