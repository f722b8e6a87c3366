"""The weights of all gates, joined once for many steps of the same model."""

import gc
import threading

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.backend.autodiff import BalancedCheckpointing
from burnbook.backend.wrappers import Counting
from burnbook.module import Lora
from burnbook.nn.rnn import joined as module
from burnbook.optim import AdamConfig, GradientsParams
from burnbook.tensor import Tensor
from tests.support.cases import cases

PLAIN = Numpy(float="f64")
AD = Autodiff(PLAIN)
LAYERS = (nn.LstmConfig(2, 3, True), nn.GruConfig(2, 3, True), nn.RnnConfig(2, 3, True))
NAMES = ["lstm", "gru", "rnn"]


@pytest.fixture
def joins(monkeypatch):
    """How often weights were joined."""
    made, join = [], module._join
    monkeypatch.setattr(module, "_join", lambda *a: made.append(1) or join(*a))
    return made


def inputs(device=PLAIN, steps=4):
    numbers = np.random.default_rng(0).normal(size=[5, steps, 2])
    return Tensor.from_data(numbers, device)


def output(layer, x, state=None):
    out = layer.forward(x, state)
    return out if isinstance(out, Tensor) else out[0]


def in_steps(layer, x):
    """The outputs of all steps, of a layer that is called with one step at a time."""
    state, outs = None, []
    for t in range(x.dims()[1]):
        out = layer.forward(x.narrow(1, t, 1), state)
        if isinstance(out, Tensor):
            state = out.reshape([out.dims()[0], 3])
        else:
            out, state = out
        outs.append(out)
    return Tensor.cat(outs, 1)


def unremembered(layer, x):
    """What a layer computes where nothing is remembered."""
    device = Counting(PLAIN)
    bare = Tensor.from_data(np.asarray(x.detach()), device)
    return np.asarray(output(layer.valid().to_device(device), bare))


@cases("config", *LAYERS, ids=NAMES)
def test_weights_are_joined_once_for_many_steps(joins, config):
    layer, x = config.init(PLAIN), inputs()
    found = in_steps(layer, x)
    assert len(joins) == 1
    assert np.allclose(found, unremembered(layer, x), rtol=1e-12)


@cases("config", *LAYERS, ids=NAMES)
def test_a_graph_has_them_once(joins, config):
    layer, x = config.init(AD), inputs(AD)
    names = [node.name for node in in_steps(layer, x).graph()]
    alone = [node.name for node in output(layer, x).graph()]
    assert len(joins) == 2  # the first graph is gone, and what it held
    assert (names.count("leaf"), alone.count("leaf")) == (
        len(layer.named_params()),
        len(layer.named_params()),
    )
    for name in ("cat", "add"):  # the graph of all steps ends in one more cat
        more = 1 if name == "cat" else 0
        assert names.count(name) == alone.count(name) + more


@cases("config", *LAYERS, ids=NAMES)
def test_gradients_in_steps_are_those_of_the_whole_sequence(config):
    layer, x = config.init(AD), inputs(AD)
    found, wanted = (
        GradientsParams.from_grads(run(layer, x).square().sum().backward(), layer)
        for run in (in_steps, output)
    )
    for _, param in layer.named_params():
        pair = found.get(param.id), wanted.get(param.id)
        assert np.allclose(*pair, rtol=1e-10, atol=1e-14)


@cases("config", *LAYERS, ids=NAMES)
def test_graphs_that_share_them_go_back_one_after_the_other(joins, config):
    layer, x = config.init(AD), inputs(AD)
    losses = [output(layer, x * k).square().sum() for k in (1.0, 2.0)]
    assert len(joins) == 1
    for k, loss in zip((1.0, 2.0), losses, strict=True):
        alone = config.init(AD).load_record(layer.into_record())
        wanted = output(alone, x * k).square().sum().backward()
        grads = loss.backward()
        pairs = zip(layer.named_params(), alone.named_params(), strict=True)
        for (_, ours), (_, theirs) in pairs:
            assert np.array_equal(ours.val().grad(grads), theirs.val().grad(wanted))


def changed(layer, how):
    """The layer after something that makes another one of it."""
    if how == "step":
        grads = output(layer, inputs(AD)).sum().backward()
        grads = GradientsParams.from_grads(grads, layer)
        return AdamConfig().init().step(0.1, layer, grads)
    if how == "record":
        return layer.load_record(
            layer.map(
                type("Half", (), {"map": lambda self, _, t: t * 0.5})()
            ).into_record()
        )
    if how == "map":
        return layer.map(type("Half", (), {"map": lambda self, _, t: t * 0.5})())
    if how == "replace":
        name = layer.named_params()[0][0].split(".")[0]
        gate = getattr(layer, name)
        linear = gate.input_transform
        linear = linear.replace(weight=linear.weight.map(lambda t: t * 3.0))
        return layer.replace(**{name: gate.replace(input_transform=linear)})
    if how == "valid":
        return layer.valid()
    return layer.no_grad()


@cases("config", *LAYERS, ids=NAMES)
@cases("how", "step", "record", "map", "replace", "valid", "no_grad")
def test_another_model_has_its_own(config, how):
    layer = config.init(AD)
    before = np.asarray(output(layer, inputs(AD)).detach())
    other = changed(layer, how)
    x = inputs(PLAIN if how == "valid" else AD)
    assert np.allclose(output(other, x).detach(), unremembered(other, x), rtol=1e-12)
    assert np.array_equal(output(layer, inputs(AD)).detach(), before)


def test_a_model_on_another_device_has_its_own():
    layer = nn.LstmConfig(2, 3, True).init(PLAIN)
    x = inputs()
    wide = np.asarray(output(layer, x))
    narrow = output(layer.to_device(Numpy()), inputs(Numpy()))
    assert narrow.backend is Numpy()
    assert np.allclose(narrow, wide, atol=1e-6)


def test_lora_computes_its_weights_at_every_call(joins):
    layer = nn.LstmConfig(2, 3, True).init(PLAIN).apply_lora(Lora(rank=2, alpha=1.0))
    for _ in range(2):
        output(layer, inputs())
    assert len(joins) == 2
    assert layer not in module._known


def test_a_wrapped_or_recomputing_device_joins_at_every_call(joins):
    for device in (Counting(PLAIN), Autodiff(PLAIN, BalancedCheckpointing())):
        layer = nn.GruConfig(2, 3, True).init(device)
        held = [output(layer, inputs(device)) for _ in range(2)]
        assert len(held) == 2
    assert len(joins) == 4


@cases("config", *LAYERS, ids=NAMES)
def test_second_derivatives_in_steps_are_those_of_the_whole_sequence(config):
    twice = Autodiff(AD)
    layer = config.init(twice)

    def slopes(run):
        x = inputs(twice, steps=2).require_grad()
        grad = x.grad(run(layer, x).square().sum().backward())
        grads = grad.square().sum().backward()
        return [p.val().inner().grad(grads) for _, p in layer.named_params()]

    for found, wanted in zip(slopes(in_steps), slopes(output), strict=True):
        assert (found is None) == (wanted is None)
        if found is not None:
            assert np.allclose(found, wanted, rtol=1e-9, atol=1e-13)


def test_a_hook_is_not_met_again():
    layer, x = nn.LstmConfig(2, 3, True).init(AD), inputs(AD)
    seen = []
    first = output(layer, x)
    for node in first.graph():
        if node.name == "cat":
            node.hook(lambda g: seen.append(g))
    second = output(layer, x)
    second.sum().backward()
    assert not seen
    first.sum().backward()
    assert len(seen) == 4  # two weights, two biases


def test_nothing_joined_outlives_its_graph():
    layer, x = nn.LstmConfig(2, 3, True).init(AD), inputs(AD)
    out = output(layer, x)
    held = module._known[layer][1][0]
    assert held.again() is not None
    del out
    gc.collect()
    assert held.again() is None
    count = len(module._known)
    del layer
    gc.collect()
    assert len(module._known) == count - 1


def test_threads_compute_what_one_does():
    layer = nn.GruConfig(2, 3, True).init(AD)
    weight = layer.named_params()[0][1].val()

    def slope(k):
        return np.asarray(weight.grad((in_steps(layer, x * k)).sum().backward()))

    x, found = inputs(AD), {}
    wanted = {k: slope(float(k)) for k in range(4)}

    def work(k):
        for _ in range(10):
            found[k] = slope(float(k))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[k], wanted[k]) for k in wanted)


def test_a_layer_without_some_biases_goes_on_to_take_them_for_zeros():
    layer = nn.LstmConfig(2, 3, True).init(PLAIN)
    gate = layer.input_gate
    bare = gate.replace(input_transform=gate.input_transform.replace(bias=None))
    layer, x = layer.replace(input_gate=bare), inputs()
    assert np.allclose(in_steps(layer, x), unremembered(layer, x), rtol=1e-12)
