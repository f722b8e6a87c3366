"""The graph: hooks, views, what is refused, and by whom."""

import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Counting, Numpy
from burnbook.backend.autodiff import BalancedCheckpointing, Gradients
from burnbook.core.errors import BackendError, GraphError, ShapeError
from burnbook.core.op import OPS, op
from burnbook.module import Module
from burnbook.tensor import Tensor, apply
from tests.support.refusals import refused

DEVICE = Autodiff(Numpy())
DEVICES = [
    DEVICE,
    Autodiff(Numpy(), checkpointing=BalancedCheckpointing()),
    Counting(Autodiff(Numpy())),
]


def leaf(values, device=DEVICE):
    return Tensor.from_data(values, device).require_grad()


@pytest.fixture
def ops():
    """Ops declared in a test are gone after it."""
    before = set(OPS)
    yield
    for name in set(OPS) - before:
        del OPS[name]


# Hooks


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_a_hook_sees_the_whole_gradient_of_a_result(device):
    x = leaf([1.0, 2.0], device)
    y = x * 3.0
    seen = []
    y.hook(seen.append)
    grads = (y * y + y).backward()
    assert [np.asarray(g).tolist() for g in seen] == [[7.0, 13.0]]
    assert seen[0].backend is device.inner
    assert np.asarray(x.grad(grads)).tolist() == [21.0, 39.0]


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_what_a_hook_returns_takes_the_place_of_the_gradient(device):
    x = leaf([1.0, 2.0], device)
    y = x * 3.0
    y.hook(lambda g: g * 0.0 + 1.0)
    y.hook(lambda g: g * 10.0)  # hooks follow each other
    assert np.asarray(x.grad((y * y).backward())).tolist() == [30.0, 30.0]


def test_a_hook_on_a_leaf_changes_what_the_container_gets():
    x = leaf([3.0, -4.0])
    x.hook(lambda g: g.clamp(-1.0, 1.0))
    for _ in range(2):  # a leaf lives on, and so do its hooks
        assert np.asarray(x.grad((x * x).backward())).tolist() == [1.0, -1.0]


def test_a_removed_hook_sees_nothing():
    x = leaf([1.0])
    seen = []
    hook = x.hook(seen.append)
    other = x.hook(seen.append)
    hook.remove()
    hook.remove()
    (x * 2.0).backward()
    assert len(seen) == 1
    assert repr(other) == "Hook(on leaf [1])"


def test_a_hook_does_not_keep_the_graph_alive():
    def hooked_node():
        y = leaf([1.0]).exp()
        y.hook(lambda g: y.inner() * g)  # refers to y itself
        assert y.value.node in DEVICE.hooked
        return weakref.ref(y.value.node)

    node = hooked_node()
    gc.collect()
    assert node() is None


def test_a_hooked_graph_goes_with_its_last_tensor():
    gc.disable()  # nobody looks for circles: there are none
    try:
        y = leaf([1.0]).exp()
        hook = y.hook(print)
        node = weakref.ref(y.value.node)
        del y
        assert node() is None
        hook.remove()  # there is nothing to do
        assert repr(hook) == "Hook(on exp [1])"
    finally:
        gc.enable()


def test_a_hook_must_return_a_gradient_of_the_same_shape_and_place():
    x = leaf([1.0, 2.0])
    x.hook(lambda g: g.sum())
    with pytest.raises(GraphError, match=r"hook: the gradient has shape \[2\]"):
        (x * 2.0).backward()
    y = leaf([1.0])
    y.hook(lambda g: y)
    with pytest.raises(BackendError, match=r"hook: gradients live on Numpy\(\)"):
        (y * 2.0).backward()
    with pytest.raises(GraphError, match="graph: no tensor behind this one"):
        Tensor.ones([1], DEVICE).hook(print)


def test_a_second_derivative_goes_through_a_hook():
    inner = Autodiff(Numpy(float="f64"))
    low = leaf([0.5], inner)
    high = Tensor.from_inner(low, Autodiff(inner)).require_grad()
    y = high * high
    y.hook(lambda g: g * g)
    first = high.grad((y * y).backward())  # 2x · (2x²)² = 8x⁵
    second = low.grad(first.backward())
    assert np.isclose(first.into_scalar(), 8 * 0.5**5)
    assert np.isclose(second.into_scalar(), 40 * 0.5**4)


# The graph


def test_a_graph_shows_ops_shapes_and_what_is_kept():
    x, w = leaf(np.ones((2, 3))), leaf(np.ones((3, 1)))
    graph = ((x @ w).exp() * 2.0).graph()
    assert [node.name for node in graph] == ["mul", "exp", "matmul", "leaf", "leaf"]
    assert graph[1].kept == ("out",)
    assert graph[1].shape == (2, 1)
    assert np.allclose(np.asarray(graph[1]["out"]), np.exp(3))
    assert graph[2].inputs == (graph[4], graph[3])
    assert graph[0].inputs == (graph[1], None)
    assert repr(graph) == "Graph(5 steps)"
    assert repr(graph[2]) == "GraphNode(matmul [2, 1])"
    assert str(graph).splitlines() == [
        "Graph(5 steps)",
        "    0  leaf [2, 3]",
        "    1  leaf [3, 1]",
        "    2  matmul [2, 1]  from 0, 1",
        "    3  exp [2, 1]  from 2",
        "    4  mul [2, 1]  from 3, ·",
    ]
    assert graph.kept_bytes == 4 * (6 + 3 + 2)
    with pytest.raises(GraphError, match=r"^exp: it keeps out, not x"):
        graph[1]["x"]


def test_a_long_graph_is_cut_in_the_middle():
    x = leaf([1.0])
    for _ in range(100):
        x = x + 1.0
    lines = str(x.graph()).splitlines()
    assert len(lines) == 42
    assert lines[21] == "  … 61 more"


@pytest.mark.parametrize("device", DEVICES[:2], ids=repr)
def test_hooks_go_on_any_node_of_a_graph_that_is_there(device):
    x = leaf([[1.0, 4.0]], device)
    loss = (x.sqrt() * 2.0).sum()
    seen = {}
    for node in loss.graph():
        node.hook(lambda g, name=node.name: seen.update({name: np.asarray(g).tolist()}))
    loss.backward()
    assert seen == {
        "sum": [1.0],
        "mul": [[1.0, 1.0]],
        "sqrt": [[2.0, 2.0]],
        "leaf": [[1.0, 0.5]],
    }


@pytest.mark.parametrize("device", DEVICES[:2], ids=repr)
def test_a_kept_value_can_be_replaced_before_the_rules_see_it(device):
    x = leaf([0.0, 1.0], device)
    y = x.exp()
    node = y.graph()[0]
    node["out"] = node["out"] * 0.0 + 5.0
    assert np.asarray(x.grad(y.backward())).tolist() == [5.0, 5.0]
    assert node.used_up
    assert node.kept == ()


# Gradients


def test_two_passes_add_up():
    x, y, z = leaf([1.0]), leaf([2.0]), leaf([5.0])
    both = (x * y).backward() + (x * z).backward()
    assert x.grad(both).into_scalar() == 7.0
    assert y.grad(both).into_scalar() == 1.0
    assert len(both) == 3
    assert len(Gradients() + both) == len(both + Gradients()) == 3


def test_the_norm_is_that_of_one_long_vector():
    x, y = leaf([1.0, 1.0]), leaf([1.0])
    grads = (x.sum() * 3.0 + y * 4.0).backward()
    assert np.isclose(grads.norm(), np.sqrt(9 + 9 + 16))
    assert grads.is_finite()
    assert Gradients().norm() == 0.0
    zero = leaf([0.0])
    broken = zero.sqrt().backward()
    assert not broken.is_finite()


def test_a_container_knows_which_leaves_were_reached():
    x, other = leaf([1.0]), leaf([1.0])
    grads = (x * 2.0).backward()
    assert x in grads
    assert other not in grads
    assert Tensor.ones([1]) not in grads


def test_gradients_cannot_be_stored():
    with pytest.raises(GraphError, match="cannot be stored or sent"):
        pickle.dumps(leaf([1.0]).backward())


def test_gradients_are_handed_to_another_thread():
    x, w = leaf(np.ones((4, 4))), leaf(np.full((4, 4), 2.0))
    loss = (x @ w).sum()
    with ThreadPoolExecutor(1) as worker, ThreadPoolExecutor(1) as reader:
        grads = worker.submit(loss.backward).result()
        read = reader.submit(lambda: np.asarray(x.grad(grads))).result()
    assert np.all(read == 8.0)
    assert np.all(np.asarray(w.grad(grads)) == 4.0)


def test_threads_walk_graphs_that_share_their_leaves():
    w = leaf(np.full((8, 8), 0.1))

    def work(scale):
        found = set()
        for _ in range(20):
            x = Tensor.full([8, 8], scale, DEVICE)
            for _ in range(5):
                x = (x @ w).tanh()
            found.add(np.asarray(w.grad(x.sum().backward())).tobytes())
        return found

    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(work, (0.2, 0.5, 0.9)))
    assert [len(found) for found in answers] == [1, 1, 1]


# Used up


def test_a_graph_that_is_partly_used_up_is_an_error_not_half_a_gradient():
    x, y = leaf([2.0]), leaf([3.0])
    shared = x.exp()
    (shared * 2.0).backward()
    with pytest.raises(GraphError, match=r"^exp: the graph .* was used up"):
        (shared * y).backward()
    assert np.isclose(x.grad(x.exp().backward()).into_scalar(), np.exp(2.0))


def test_leaves_are_never_used_up():
    x = leaf([2.0])
    first = x.grad((x * x).backward()).into_scalar()
    assert x.grad((x * x).backward()).into_scalar() == first == 4.0


def test_two_losses_with_a_shared_part_are_added_first():
    x = leaf([2.0])
    shared = x * x
    grads = (shared.log() + shared).backward()
    assert x.grad(grads).into_scalar() == 5.0


# What is refused, and where


def test_a_float_op_without_gradient_is_refused_when_one_is_wanted(ops):
    @op("F>F")
    def half(xp, x):
        """x / 2."""
        return x / 2

    x = leaf([4.0])
    y = apply(half, x)
    assert np.asarray(y).tolist() == [2.0]
    cure = "try: detach() on its result, or half.grad(…) with a rule"
    refused(GraphError, (y * x).backward, "half: ", cure)
    assert x.grad((y.detach() * x).backward()).into_scalar() == 2.0


def test_an_input_without_rule_is_refused_when_a_gradient_is_wanted(ops):
    @op("FF>F")
    def mix(xp, x, share):
        """x · share."""
        return x * share

    mix.grad(x=lambda g, share: g * share)
    x, share = leaf([4.0]), leaf([0.5])
    constant = Tensor.from_data([0.5], DEVICE)
    assert x.grad(apply(mix, x, constant).backward()).into_scalar() == 0.5
    with pytest.raises(GraphError, match="mix: there is no gradient for its input sha"):
        apply(mix, x, share).backward()


def test_truth_values_and_indices_cut_the_graph_without_complaint():
    x = leaf([[3.0, 1.0]])
    for cut in (x > 2.0, x.argmax(1), x.is_nan(), x.int(), x.bool()):
        assert not cut._tracked()
    rounded = round(x) + x.floor() + x.sign()
    assert np.asarray(x.grad(rounded.backward())).tolist() == [[0.0, 0.0]]


class Blocks(Module):
    first: nn.Linear
    second: nn.Linear

    def forward(self, x):
        return self.second.forward(self.first.forward(x).relu())


def blocks(device=DEVICE):
    return Blocks(
        nn.LinearConfig(3, 4).init(device), nn.LinearConfig(4, 2).init(device)
    )


def test_a_used_up_graph_names_the_layer():
    model = blocks()
    out = model.forward(Tensor.ones([1, 3], DEVICE))
    out.backward()
    with pytest.raises(GraphError, match=r"^Blocks.second: linear: the graph behind"):
        out.backward()


def test_an_op_between_layers_names_the_parameter_before_it():
    model = blocks()
    hidden = model.first.forward(Tensor.ones([1, 3], DEVICE)).relu()
    hidden.backward()
    last = model.second.forward(hidden)
    fact = "\n  nearest parameter behind it  Blocks.first.weight\n"
    refused(GraphError, last.backward, "relu: ", fact)


def test_an_error_inside_a_rule_keeps_its_class_and_tells_where(ops):
    @op("F>F")
    def broken(xp, x):
        """x."""
        return x * 1

    def rule(g):
        raise LookupError("not today")

    broken.grad(x=rule)
    model = blocks()
    hidden = apply(broken, model.first.forward(Tensor.ones([1, 3], DEVICE)))
    with pytest.raises(LookupError, match="not today") as caught:
        model.second.forward(hidden).backward()
    assert caught.value.__notes__ == [
        "in the gradient of broken, after Blocks.first.weight, result [1, 4]"
    ]


# Shapes on the way to a mismatch


class Wrong(Module):
    blocks: Blocks
    last: nn.Linear

    def forward(self, images):
        x = images.reshape([2, 3])
        x = self.blocks.forward(x)
        return self.last.forward(x)


def wrong(device):
    return Wrong(blocks(device), nn.LinearConfig(5, 1).init(device))


def test_a_shape_error_names_the_layer_and_draws_the_shapes():
    images = Tensor.ones([2, 1, 3], Numpy())
    parts = (
        "Wrong.last: linear: 2 ≠ 5",
        "\n  x       Float [2, 2]  on Numpy()\n"
        "  weight  Float [5, 1]  on Numpy()\n"
        "  bias    Float [1]  on Numpy()\n"
        "  Wrong   images [2, 1, 3], x [2, 2]\n"
        "  └ last  input [2, 2]\n  try: LinearConfig(2, 1)",
    )
    refused(ShapeError, lambda: wrong(Numpy()).forward(images), *parts)


def test_with_a_graph_the_way_of_the_data_is_drawn():
    images = Tensor.ones([2, 1, 3], DEVICE)
    way = "\n  x came by  linear [2, 4] → relu [2, 4] → linear [2, 2]\n"
    refused(ShapeError, lambda: wrong(DEVICE).forward(images), "Wrong.last", way)


def test_outside_of_layers_only_a_graph_is_drawn():
    x = leaf(np.ones((2, 3)))
    far, y = (x * 2.0).exp(), Tensor.ones([4, 1], DEVICE)
    way = "  far came by  [2, 3] → mul [2, 3] → exp [2, 3]"
    refused(ShapeError, lambda: far @ y, "matmul: ", way)
    assert "came by" not in str(refused(ShapeError, lambda: x @ y, "matmul: "))


def test_a_long_way_shows_its_end():
    x = leaf(np.ones((2, 3)))
    for _ in range(20):
        x = x + 1.0
    error = refused(ShapeError, lambda: x @ Tensor.ones([4, 1], DEVICE), "matmul: ")
    line = next(row for row in str(error).splitlines() if "came by" in row)
    assert line.count("add [2, 3]") == 8
    assert "came by  … → add" in line
