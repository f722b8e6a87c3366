"""Layers and losses at every size of numbers, in float16 and float32 beside float64.

The members are the rows of `test_every`, which has one for every layer of nn. Inputs
are drawn once and rounded to the narrow type; the same layer in float64 is the judge.
"""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.dtypes import Float
from burnbook.nn.check import Trial
from burnbook.tensor import Tensor
from tests.nn.test_every import EVERY, More, name_of

JUDGE = Autodiff(Numpy(float="f64"))
TYPES = {
    "f16": (np.float16, Autodiff(Numpy(float="f16")), 2e-2),
    "f32": (np.float32, Autodiff(Numpy()), 2e-4),
}
SIZES = {
    "f16": {"300": 300.0, "1e-4": 1e-4, "tiny": 2e-6, "huge": 1e4},
    "f32": {"300": 300.0, "1e-4": 1e-4, "tiny": 1e-37, "huge": 1e37},
}


class Put:
    """A mapper that gives the parameters these values, one after the other."""

    def __init__(self, values):
        self.values = iter(values)

    def map_float(self, _, tensor):
        value = next(self.values).astype(tensor.backend.float_dtype)
        made = Tensor.from_numpy(value, tensor.backend)
        return made.set_require_grad(tensor.is_require_grad())


class Take:
    """A visitor that keeps the values of parameters, rounded."""

    def __init__(self, dtype):
        self.dtype, self.values = dtype, []

    def map_float(self, _, tensor):
        self.values.append(np.asarray(tensor).astype(self.dtype))
        return tensor


def inputs_of(inputs, size, dtype):
    """Arrays of the narrow type; functions and whole numbers as they are."""
    rng, made = np.random.default_rng(7), []
    for one in inputs:
        if isinstance(one, list):
            one = (rng.standard_normal(one) * size).astype(dtype)
        elif isinstance(one, np.ndarray) and one.dtype.kind == "f":
            one = one.astype(dtype)
        made.append(one)
    return made


def computed(row, device, dtype, arrays):
    """The outputs of a layer, and the gradients of its inputs and parameters."""
    subject, inputs, more = row
    trial = Trial(subject, tuple(inputs), device, more.forward)
    take = Take(dtype)
    judge = Trial(subject, tuple(inputs), JUDGE, more.forward).make()
    judge = judge.map(take)
    module = trial.make().map(Put(take.values))
    given = []
    for one in arrays:
        if callable(one):
            given.append(one(device))
        elif one.dtype.kind == "f":
            wide = Tensor.from_numpy(one.astype(device.float_dtype), device)
            given.append(wide.require_grad())
        else:
            given.append(Tensor.from_numpy(one, device))
    outputs = trial.run(module, given)
    found = {f"output {i}": np.asarray(out) for i, out in enumerate(outputs)}
    total = trial.total(outputs)
    if not total.is_require_grad() and getattr(total.value, "node", None) is None:
        return found
    grads = total.backward()
    for i, x in enumerate(given):
        if x.kind is Float and x.is_require_grad():
            found[f"gradient of input {i}"] = x.grad(grads)
    for name, param in module.named_params():
        if param.kind is Float and param.is_require_grad():
            found[f"gradient of {name}"] = param.val().grad(grads)
    return {k: None if v is None else np.asarray(v) for k, v in found.items()}


def wrong_of(row, kind, size):
    """What differs from float64 by more than rounding: a text for each."""
    dtype, device, near = TYPES[kind]
    arrays = inputs_of(row[1], SIZES[kind][size], dtype)
    with np.errstate(all="ignore"):
        exact = computed(row, JUDGE, dtype, arrays)
        found = computed(row, device, dtype, arrays)
    info, wrong = np.finfo(dtype), []
    slopes = {k: v for k, v in exact.items() if v is not None and k[:8] == "gradient"}
    for name, wanted in exact.items():
        got = found[name]
        if (wanted is None) != (got is None):
            wrong.append(f"{name} is missing")
            continue
        if wanted is None:
            continue
        fits = np.abs(wanted) < 0.99 * float(info.max)
        if not fits.any():
            continue
        largest = np.abs(wanted[fits]).max()
        if name in slopes and len(slopes) > 4:  # of many layers: what rounds in one
            largest = max(largest, *(np.abs(v).max() for v in slopes.values()))
        apart = np.abs(got.astype(np.float64) - wanted)
        apart = np.where(fits, apart, 0.0)
        least = 8 * float(info.smallest_subnormal)
        if not apart.max() <= near * largest + least:
            at = np.unravel_index(
                np.argmax(np.nan_to_num(apart, nan=np.inf)), apart.shape
            )
            wrong.append(f"{name}: {got[at]:.4g}, not {wanted[at]:.4g}")
    return wrong


def rows():
    for subject, *inputs in EVERY:
        more = inputs.pop() if isinstance(inputs[-1], More) else More()
        yield subject, inputs, more


ROWS = list(rows())
CASES = [(kind, size) for kind, sizes in SIZES.items() for size in sizes]

# What the narrow type cannot compute, by layer and case, and why.
RANDOM = "its random numbers have as many digits as the type"
SCORES = "the products of queries and keys leave float16"
SQUARE = "the squares of inputs beyond 10¹⁹ leave float32, as in PyTorch"
FLAT = "what rounds in a saturated gate is more than its gradient"
ELEMENT = "an element's loss, or its slope, leaves the type before the mean divides it"
LENGTHS = "the product of two lengths leaves float32"
DIGITS = "numbers of this size leave no digits for what differs"
DECLARED = {
    ("RRelu", "*", "*"): RANDOM,
    ("GaussianNoise", "*", "*"): RANDOM,
    **{
        (name, "f16", size): SCORES
        for name in (
            "MultiHeadAttention",
            "CrossAttention",
            "TransformerEncoder",
            "TransformerEncoderLayer",
            "TransformerDecoder",
            "TransformerDecoderLayer",
        )
        for size in ("300", "huge")
    },
    **{
        (name, kind, size): FLAT
        for name in ("Lstm", "BiLstm", "Gru", "BiGru", "Rnn", "BiRnn", "GateController")
        for kind in ("f16", "f32")
        for size in ("300", "huge")
    },
    **{
        (name, "f32", "huge"): SQUARE
        for name in (
            *("LayerNorm", "BatchNorm", "GroupNorm", "InstanceNorm", "RmsNorm"),
            *("Layer", "LocalResponseNorm", "MultiHeadAttention", "CrossAttention"),
            *("TransformerEncoder", "TransformerEncoderLayer", "TransformerDecoder"),
            *("TransformerDecoderLayer", "SwiGlu", "Glu"),
        )
    },
    **{
        (name, "*", size): ELEMENT
        for name in ("LpLoss", "PoissonNllLoss", "GaussianNLLLoss", "MseLoss")
        for size in ("300", "huge")
    },
    ("CrossEntropyLoss", "f16", "huge"): ELEMENT,
    ("GramMatrixLoss", "f32", "1e-4"): DIGITS,
    ("GramMatrixLoss", "*", "huge"): ELEMENT,
    ("CosineSimilarity", "f32", "huge"): LENGTHS,
    ("CosineEmbeddingLoss", "f32", "huge"): LENGTHS,
    ("CosineEmbeddingLoss", "f32", "tiny"): LENGTHS,
    ("Tanhshrink", "f32", "1e-4"): DIGITS,
    ("CTCLoss", "*", "huge"): DIGITS,
    ("RNNTLoss", "*", "huge"): DIGITS,
    ("Softmin", "f32", "300"): DIGITS,
    ("Sigmoid", "f16", "huge"): DIGITS,
}


def stands_in(table, row, kind, size):
    """The entry of a table for this layer and case."""
    name = type(row[0]).__name__
    name = getattr(row[0], "variant", name).removesuffix("Config")
    for k in (kind, "*"):
        for s in (size, "*"):
            if (name, k, s) in table:
                return (name, k, s)
    return None


@pytest.mark.parametrize(("kind", "size"), CASES)
@pytest.mark.parametrize("row", ROWS, ids=name_of)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_layer_computes_what_it_does_in_float64(row, kind, size):
    declared = stands_in(DECLARED, row, kind, size)
    if declared:
        pytest.skip(DECLARED[declared])
    wrong = wrong_of(row, kind, size)
    assert not wrong


def test_moments_over_many_rows_keep_their_digits():
    device = Autodiff(Numpy())
    rng = np.random.default_rng(0)
    for shape, shift in (([1_000_000, 2], 3.0), ([10_000, 4], 50.0)):
        array = (rng.normal(size=shape) * 0.1 + shift).astype(np.float32)
        norm = nn.BatchNormConfig(shape[1], momentum=1.0).init(device)
        norm.forward(Tensor.from_numpy(array, device))
        exact = array.astype(np.float64)
        mean, var = norm.running_mean.value_sync(), norm.running_var.value_sync()
        assert np.allclose(mean, exact.mean(0), rtol=1e-6)
        assert np.allclose(var, exact.var(0), rtol=3e-6)
