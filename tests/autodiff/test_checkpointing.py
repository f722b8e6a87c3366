"""Memory for time: same results, fewer bytes kept."""

import gc
import pickle
import tracemalloc

import numpy as np
import pytest

import burnbook.ops  # noqa: F401 - declares them
from burnbook.backend import Autodiff, Counting, Numpy
from burnbook.backend.autodiff import (
    BalancedCheckpointing,
    CheckpointStrategy,
    NoCheckpointing,
)
from burnbook.backend.autodiff.checkpointing import MEMORY_BOUND
from burnbook.core.op import OPS
from burnbook.tensor import Tensor

PLAIN = Autodiff(Numpy())
BALANCED = Autodiff(Numpy(), checkpointing=BalancedCheckpointing())


def leaf(values, device):
    return Tensor.from_data(values, device).require_grad()


def blocks(x, weight, count):
    """What a network does: a matrix product, then a few quick steps."""
    for _ in range(count):
        x = x @ weight
        x = (x * 0.5 + 0.1).tanh()
        x = x * (x.sigmoid() + 1.0).sqrt()
    return x


def gradients(device, values, weight, count=4):
    x, w = leaf(values, device), leaf(weight, device)
    grads = blocks(x, w, count).sum().backward()
    return np.asarray(x.grad(grads)), np.asarray(w.grad(grads))


def inputs(n=16):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((n, n)).astype(np.float32)
    return values, (rng.standard_normal((n, n)) / n).astype(np.float32)


def same_as_plain(device):
    """Whether a device gives the gradients of the plain one, bit for bit."""
    pairs = zip(gradients(PLAIN, *inputs()), gradients(device, *inputs()), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def test_results_are_the_same_bit_for_bit():
    assert same_as_plain(BALANCED)


def test_fewer_bytes_are_kept_and_the_peak_is_lower():
    size = 128 * 128 * 4
    kept, peaks = {}, {}
    for device in (PLAIN, BALANCED):
        x, w = (leaf(a, device) for a in inputs(128))
        gc.collect()
        tracemalloc.start()
        loss = blocks(x, w, 10).sum()
        kept[device] = loss.graph().kept_bytes // size
        loss.backward()
        peaks[device] = tracemalloc.get_traced_memory()[1] / size
        tracemalloc.stop()
    assert kept[PLAIN] == 2 + 10 * 4 - 1  # x and w; tanh, sigmoid, sqrt, product
    assert kept[BALANCED] == 2 + 10  # x and w; one product of each block
    assert peaks[BALANCED] < 0.6 * peaks[PLAIN]


def test_memory_bound_ops_run_again_and_others_do_not():
    counts = {}
    for strategy in (NoCheckpointing(), BalancedCheckpointing()):
        counting = Counting(Numpy())
        gradients(Autodiff(counting, checkpointing=strategy), *inputs(), count=3)
        counts[type(strategy)] = counting.counts
    plain, balanced = counts.values()
    assert plain["tanh"] == 3
    assert balanced["tanh"] == 6  # once forward, once again: never more
    assert balanced["sigmoid"] == 6
    assert balanced["matmul"] == plain["matmul"] == 3
    assert balanced["tanh.backward"] == plain["tanh.backward"]


def test_a_chain_of_any_length_is_computed_again():
    found = []
    for device in (BALANCED, PLAIN):
        x = y = leaf([0.5], device)
        for _ in range(3000):
            y = (y * 0.999).sin()
        found.append(x.grad(y.backward()))
    assert np.array_equal(*found)


def test_what_was_computed_again_is_freed():
    x = leaf(np.ones((4, 4)), BALANCED)
    y = (x * 2.0).exp()
    before = y.value.recipe
    y.sum().backward()
    assert before.inputs[0].value is not None  # held by y's recipe, which we hold
    del before, y
    gc.collect()
    from burnbook.backend.autodiff.checkpointing import Recipe

    assert not [r for r in gc.get_objects() if type(r) is Recipe]


def test_second_derivatives_come_through_recomputed_values():
    for outer_strategy, inner_strategy in (
        (BalancedCheckpointing(), NoCheckpointing()),
        (NoCheckpointing(), BalancedCheckpointing()),
        (BalancedCheckpointing(), BalancedCheckpointing()),
    ):
        inner = Autodiff(Numpy(float="f64"), checkpointing=inner_strategy)
        outer = Autodiff(inner, checkpointing=outer_strategy)
        low = leaf([0.3, -0.7], inner)
        high = Tensor.from_inner(low, outer).require_grad()
        first = high.grad((high * high).sin().exp().sum().backward())
        second = low.grad(first.sum().backward())
        x = np.array([0.3, -0.7])
        s, c = np.sin(x * x), np.cos(x * x)
        expected = np.exp(s) * ((2 * x * c) ** 2 + 2 * c - 4 * x * x * s)
        assert np.allclose(np.asarray(second), expected)


def test_every_sample_of_every_op_has_the_same_gradient():
    from burnbook.core.op import draw, split_sample
    from burnbook.tensor import apply

    wrong = []
    for made in OPS.values():
        if not made.rules or ">" not in made.row or made.row.endswith("FF"):
            continue
        for row in made.samples:
            specs, attrs = split_sample(row)
            rng = np.random.default_rng(0)
            arrays = [draw(spec, rng) for spec in specs]
            found = []
            for device in (PLAIN, BALANCED):
                tensors = [Tensor.from_numpy(a, device) for a in arrays]
                leaves = [
                    t.require_grad() if a.dtype.kind == "f" else t
                    for t, a in zip(tensors, arrays, strict=True)
                ]
                # one quick step before and after, so that there is something to redo
                early = [t * 1.5 if t.is_require_grad() else t for t in leaves]
                out = apply(made, *early, **attrs)
                out = out[0] if isinstance(out, tuple) else out
                grads = (out * out).sum().backward()
                found.append([t.grad(grads) for t in leaves])
            for a, b in zip(*found, strict=True):
                same = (a is None) == (b is None)
                if a is not None and b is not None:
                    same = np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True)
                if not same:
                    wrong.append(made.name)
    assert not wrong


def test_another_strategy_is_one_class():
    class Everything(CheckpointStrategy):
        def recomputes(self, op):
            return True

    assert same_as_plain(Autodiff(Numpy(), checkpointing=Everything()))
    with pytest.raises(TypeError, match="Half must say which ops it recomputes"):
        type("Half", (CheckpointStrategy,), {})().recomputes(OPS["add"])


def test_a_shorter_list_recomputes_less():
    only_tanh = BalancedCheckpointing(frozenset({"tanh"}))
    assert only_tanh.recomputes(OPS["tanh"])
    assert not only_tanh.recomputes(OPS["mul"])
    assert repr(only_tanh) == "BalancedCheckpointing(frozenset(['tanh']))"


def test_a_strategy_is_part_of_the_backend():
    assert Autodiff(Numpy(), NoCheckpointing()) is PLAIN
    assert Autodiff(Numpy(), BalancedCheckpointing()) is BALANCED
    assert BALANCED is not PLAIN
    text = "Autodiff(Numpy(), checkpointing=BalancedCheckpointing())"
    assert repr(BALANCED) == text
    assert pickle.loads(pickle.dumps(BALANCED)) is BALANCED
    x = leaf([1.0], BALANCED)
    assert pickle.loads(pickle.dumps(x)).is_require_grad()


def test_the_list_holds_what_the_sheet_calls_memory_bound():
    quick = "add sub mul div neg recip swap_dims permute flip reshape select exp log"
    slow = "matmul gather scatter mask_where sum mean_dim max_dim cat conv2d"
    assert set(quick.split()) <= MEMORY_BOUND
    assert not set(slow.split()) & MEMORY_BOUND
