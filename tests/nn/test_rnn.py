"""Recurrent layers: what they compute, carry along, print, save and start from."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ConfigError, KindError, ShapeError
from burnbook.nn import ActivationConfig, Initializer, LstmState, RnnState
from burnbook.tensor import Tensor
from tests import oracle
from tests.nn.test_config import RECURRENT
from tests.support.cases import cases
from tests.support.slopes import second_slopes

PLAIN = Numpy(float="f64")
AD = Autodiff(PLAIN)

GATE = [
    f"{part}_transform.{name}"
    for part in ("input", "hidden")
    for name in ("weight", "bias")
]


@cases(
    "config gates",
    (nn.LstmConfig(2, 3, True), "input_gate forget_gate output_gate cell_gate"),
    (nn.GruConfig(2, 3, True), "update_gate reset_gate new_gate"),
    (nn.RnnConfig(2, 3, True), "gate"),
)
def test_parameters_have_burns_names_and_shapes(config, gates):
    layer = config.init(PLAIN)
    shapes = dict(zip(GATE, [(2, 3), (3,), (3, 3), (3,)], strict=True))
    wanted = {f"{g}.{name}": shapes[name] for g in gates.split() for name in GATE}
    assert {name: p.shape for name, p in layer.named_params()} == wanted


def test_both_directions_are_called_as_in_burn():
    layer = nn.BiGruConfig(2, 3, True).init(PLAIN)
    record = layer.into_record()
    assert list(record)[:2] == ["forward", "reverse"]
    names = [name for name, _ in layer.named_params()]
    assert names[0] == "forward.update_gate.input_transform.weight"
    assert names[12] == "reverse.update_gate.input_transform.weight"
    record["forward"]["new_gate"].pop("hidden_transform")
    with pytest.raises(Exception, match=r"forward\.new_gate\.hidden_transform\.weight"):
        layer.load_record(record)


def test_a_record_of_burn_0_15_without_the_newer_fields_loads():
    layer, other = (nn.LstmConfig(2, 3, True).init(PLAIN) for _ in range(2))
    record = layer.into_record()
    gates = ("input_gate", "forget_gate", "output_gate", "cell_gate", "d_hidden")
    restored = other.load_record({name: record[name] for name in gates})
    x = Tensor.random([2, 4, 2], device=PLAIN)
    assert np.array_equal(restored.forward(x)[0], layer.forward(x)[0])


def filled(value, device=PLAIN):
    """A gate of one number, with biases of zero."""
    parts = [nn.LinearConfig(1, 1).with_initializer(Initializer.Zeros) for _ in "ab"]
    weight = Initializer.Constant(value=value).init([1, 1], device)
    layers = [part.init(device).replace(weight=weight) for part in parts]
    return nn.GateController.create_with_weights(*layers)


def test_an_lstm_of_one_number_gives_the_numbers_of_burns_test():
    layer = nn.LstmConfig(1, 1, False).init(PLAIN)
    layer = layer.replace(
        input_gate=filled(0.5),
        forget_gate=filled(0.7),
        cell_gate=filled(0.9),
        output_gate=filled(1.1),
    )
    output, state = layer.forward(Tensor.from_data([[[0.1]]], PLAIN))
    assert round(state.cell.into_scalar(), 5) == 0.04600
    assert round(state.hidden.into_scalar(), 5) == 0.02425
    assert np.array_equal(np.asarray(output)[0], np.asarray(state.hidden))


@pytest.mark.parametrize("after", [True, False])
def test_a_gru_carries_its_state_from_step_to_step(after):
    layer = nn.GruConfig(1, 1, False).with_reset_after(after).init(PLAIN)
    gates = (filled(0.5), filled(0.6), filled(0.7))
    update, reset, new = gates
    layer = layer.replace(update_gate=update, reset_gate=reset, new_gate=new)
    x = Tensor.from_data([[[0.1], [0.2], [0.3]]], PLAIN)
    wanted = [0.0341, 0.0894, 0.1575]
    assert np.allclose(np.asarray(layer.forward(x)).ravel(), wanted, atol=1e-4)


def joined(layer, gates, part):
    """A weight or the biases of all gates side by side, as the oracle wants them."""
    rows = [getattr(getattr(layer, f"{g}_gate"), f"{part}_transform") for g in gates]
    weight = np.concatenate([np.asarray(row.weight.val()) for row in rows], axis=1)
    return weight, np.concatenate([np.asarray(row.bias.val()) for row in rows])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_lstm_equals_its_loops(given, reverse):
    layer = nn.LstmConfig(3, 4, True).with_reverse(reverse).init(PLAIN)
    x = Tensor.random([2, 5, 3], device=PLAIN)
    state = None
    if given:
        pair = [Tensor.random([2, 4], device=PLAIN) for _ in "ch"]
        state = LstmState(*pair)
    output, end = layer.forward(x, state)
    gates = ("input", "forget", "output", "cell")
    (w, b), (u, more) = joined(layer, gates, "input"), joined(layer, gates, "hidden")
    start = (None, None) if state is None else map(np.asarray, state.unpack())
    rows = oracle.find("lstm")(np.asarray(x), w, u, b + more, *start, reverse=reverse)
    assert np.allclose(output, rows[:10].reshape(2, 5, 4))
    assert np.allclose(end.cell, rows[10:])
    assert np.allclose(end.hidden, np.asarray(output)[:, 0 if reverse else -1])


@pytest.mark.parametrize("after", [True, False])
def test_gru_equals_its_loops(after):
    layer = nn.GruConfig(3, 4, True).with_reset_after(after).init(PLAIN)
    x, state = (Tensor.random(shape, device=PLAIN) for shape in ([2, 5, 3], [2, 4]))
    gates = ("update", "reset", "new")
    (w, b), (u, more) = joined(layer, gates, "input"), joined(layer, gates, "hidden")
    arrays = (np.asarray(x), w, u, b, more, np.asarray(state))
    wanted = oracle.find("gru")(*arrays, reset_after=after)
    assert np.allclose(layer.forward(x, state), wanted)


LAYERS = {
    "lstm": nn.LstmConfig(3, 4, True),
    "lstm reverse": nn.LstmConfig(3, 4, False).with_reverse(True),
    "gru": nn.GruConfig(3, 4, True),
    "gru reset first": nn.GruConfig(3, 4, True).with_reset_after(False),
    "rnn": nn.RnnConfig(3, 4, True),
    "rnn reverse": nn.RnnConfig(3, 4, False).with_reverse(True),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_op_and_the_steps_agree_to_the_last_gradient(name):
    """A clip that nothing reaches takes the layer through ordinary tensor ops."""
    layer = LAYERS[name].init(AD)
    slow = LAYERS[name].with_clip(100.0).init(AD).load_record(layer.into_record())
    results = []
    for one in (layer, slow):
        x, *state = (
            Tensor.from_numpy(
                np.random.default_rng(i).normal(size=shape), AD
            ).require_grad()
            for i, shape in enumerate([(2, 5, 3), (2, 4), (2, 4)])
        )
        held = {"lstm": LstmState(*state), "rnn": RnnState(state[0])}
        out = one.forward(x, held.get(name.split()[0], state[0]))
        total = (out if isinstance(out, Tensor) else out[0]).square().sum()
        if "lstm" in name:
            total = total + out[1].cell.exp().sum() + out[1].hidden.sum()
        grads = total.backward()
        leaves = [x, *state[: 1 + ("lstm" in name)]]
        leaves += [param.val() for _, param in one.named_params()]
        results.append([total, *[leaf.grad(grads) for leaf in leaves]])
    for fused, stepped in zip(*results, strict=True):
        assert np.allclose(fused, stepped, rtol=1e-10)


@pytest.mark.parametrize("name", LAYERS)
def test_going_on_from_a_state_is_reading_in_one_go(name):
    if "reverse" in name:
        pytest.skip("the end comes first")
    layer = LAYERS[name].init(PLAIN)
    x = Tensor.random([2, 6, 3], device=PLAIN)
    whole = layer.forward(x)
    state, parts = None, []
    for t in range(6):
        part = layer.forward(x.narrow(1, t, 1), state)
        if isinstance(part, Tensor):
            state = part.squeeze(1)
        else:
            part, state = part
        parts.append(part)
    whole = whole if isinstance(whole, Tensor) else whole[0]
    assert np.allclose(Tensor.cat(parts, 1), whole, rtol=1e-12)


@pytest.mark.parametrize("name", LAYERS)
def test_reading_backward_is_reading_the_turned_sequence(name):
    config = LAYERS[name]
    layer = config.init(PLAIN)
    other = config.with_reverse(not config.reverse).init(PLAIN)
    other = other.load_record(layer.into_record())
    x = Tensor.random([2, 5, 3], device=PLAIN)
    a, b = layer.forward(x), other.forward(x.flip([1]))
    a, b = (o if isinstance(o, Tensor) else o[0] for o in (a, b))
    assert np.allclose(a, b.flip([1]), rtol=1e-12)


BOTH = {
    "lstm": nn.BiLstmConfig(3, 4, True),
    "gru": nn.BiGruConfig(3, 4, True),
    "rnn": nn.BiRnnConfig(3, 4, False),
}


def pair_state(name, tensors):
    """A state of the kind that a bidirectional layer takes."""
    kinds = {"lstm": lambda c, h: LstmState(c, h), "rnn": lambda c, _: RnnState(c)}
    return kinds.get(name, lambda c, _: c)(*tensors)


def states(state):
    """The tensors of any state."""
    if isinstance(state, LstmState):
        return [state.cell, state.hidden]
    return [state.hidden if isinstance(state, RnnState) else state]


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("first", [True, False])
def test_two_directions_are_two_layers(name, first):
    layer = BOTH[name].with_batch_first(first).init(PLAIN)
    x = Tensor.random([2, 5, 3], device=PLAIN)
    given = [Tensor.random([2, 2, 4], device=PLAIN) for _ in "ch"]
    turn = (lambda t: t) if first else (lambda t: t.swap_dims(0, 1))
    output, end = layer.forward(turn(x), pair_state(name, given))
    single = {
        "lstm": nn.LstmConfig(3, 4, True),
        "gru": nn.GruConfig(3, 4, True),
        "rnn": nn.RnnConfig(3, 4, False),
    }[name]
    for i, side in enumerate((layer.forward_, layer.reverse)):
        one = single.with_reverse(bool(i)).init(PLAIN).load_record(side.into_record())
        start = pair_state(name, [t.narrow(0, i, 1).squeeze(0) for t in given])
        alone = one.forward(x, start)
        alone, last = (alone, None) if name == "gru" else alone
        found = np.asarray(turn(output))[:, :, 4 * i : 4 * i + 4]
        assert np.allclose(found, alone)
        if last is not None:
            for a, b in zip(states(end), states(last), strict=True):
                assert np.allclose(np.asarray(a)[i], b)
    assert states(end)[-1].dims() == (2, 2, 4)
    ends = np.asarray(turn(output))
    hidden = np.stack([ends[:, -1, :4], ends[:, 0, 4:]])
    assert np.allclose(states(end)[-1], hidden)


@pytest.mark.parametrize("name", [*LAYERS, *BOTH])
def test_gradients_reach_every_parameter_and_input(name):
    for config in (LAYERS.get(name), BOTH.get(name)):
        if config is None:
            continue
        layer = config.init(AD)
        x = Tensor.random([2, 5, 3], device=AD).require_grad()
        output = layer.forward(x)
        output = output if isinstance(output, Tensor) else output[0]
        grads = output.square().sum().backward()
        for path, param in layer.named_params():
            assert np.all(np.asarray(param.val().grad(grads)) != 0), path
        assert np.all(np.asarray(x.grad(grads)) != 0)


def test_a_sequence_may_lead():
    config = nn.LstmConfig(3, 4, True)
    layer = config.init(PLAIN)
    other = config.with_batch_first(False).init(PLAIN).load_record(layer.into_record())
    x = Tensor.random([2, 5, 3], device=PLAIN)
    (a, state), (b, end) = layer.forward(x), other.forward(x.swap_dims(0, 1))
    assert np.array_equal(a, b.swap_dims(0, 1))
    assert np.array_equal(state.cell, end.cell)


def test_a_clip_keeps_memories_and_states_within_it():
    x = Tensor.random([2, 9, 3], device=PLAIN) * 10.0
    _, state = nn.LstmConfig(3, 4, True).with_clip(0.1).init(PLAIN).forward(x)
    assert np.abs(np.asarray(state.cell)).max() == 0.1
    for config in (nn.GruConfig(3, 4, True), nn.RnnConfig(3, 4, True)):
        out = config.with_clip(0.05).init(PLAIN).forward(x)
        out = out if isinstance(out, Tensor) else out[0]
        assert np.abs(np.asarray(out)).max() == 0.05


@pytest.mark.parametrize("kind", [nn.LstmConfig, nn.BiLstmConfig])
def test_coupled_gates_have_a_quarter_less_and_take_older_records(kind):
    plain, coupled = kind(3, 4, True), kind(3, 4, True, input_forget=True)
    layer, other = plain.init(PLAIN), coupled.init(PLAIN)
    assert other.num_params() == 3 * layer.num_params() // 4
    loaded = other.load_record(layer.into_record())
    names = {path for path, _ in layer.named_params() if "forget_gate" not in path}
    assert {path for path, _ in loaded.named_params()} == names
    x = Tensor.random([2, 4, 3], device=PLAIN)
    assert np.array_equal(
        other.load_record(loaded.into_record()).forward(x)[0], loaded.forward(x)[0]
    )
    torn = nn.LstmConfig(3, 4, True).init(PLAIN).replace(forget_gate=None)
    with pytest.raises(ConfigError, match="there is no forget gate"):
        torn.forward(x)


def test_coupled_gates_forget_as_much_as_they_write():
    config = nn.LstmConfig(3, 4, True).with_input_forget(True)
    layer = config.with_cell_activation(ActivationConfig.Relu).init(AD)
    x = Tensor.ones([2, 5, 3], AD)
    start = LstmState(Tensor.ones([2, 4], AD), Tensor.zeros([2, 4], AD))
    _, state = layer.forward(x, start)
    grads = state.cell.sum().backward()
    assert layer.forget_gate is None
    gate = layer.input_gate.input_transform.weight.val()
    assert np.any(np.asarray(gate.grad(grads)) != 0)
    (w, b), (_, more) = (
        joined(layer, ("input", "cell"), p) for p in ("input", "hidden")
    )
    i, new = np.split(w.sum(0) + b + more, 2)
    i = 1 / (1 + np.exp(-i))
    _, state = layer.forward(x.narrow(1, 0, 1), start)
    assert np.allclose(np.asarray(state.cell)[0], 1 - i + i * np.maximum(new, 0))


def test_other_activations_take_their_place():
    config = nn.GruConfig(3, 4, True).with_gate_activation(
        ActivationConfig.HardSigmoid(nn.HardSigmoidConfig())
    )
    layer = config.with_hidden_activation(ActivationConfig.Identity).init(PLAIN)
    x = np.random.default_rng(0).normal(size=(1, 1, 3))
    out = layer.forward(Tensor.from_numpy(x, PLAIN))
    (w, b), (_, more) = (
        joined(layer, ("update", "reset", "new"), part) for part in ("input", "hidden")
    )
    sums = x[0, 0] @ w + b
    z, r = np.clip(0.2 * (sums + more)[:8] + 0.5, 0, 1).reshape(2, 4)
    assert np.allclose(np.asarray(out)[0, 0], (1 - z) * (sums[8:] + r * more[8:]))


def test_a_gate_without_a_bias_among_others_with_one():
    layer = nn.LstmConfig(1, 1, True).init(PLAIN)
    bare = nn.LinearConfig(1, 1).with_bias(False).init(PLAIN)
    cell, zero = nn.GateController.create_with_weights(bare, bare), filled(0.0)
    gates = {"input_gate": zero, "forget_gate": zero, "output_gate": zero}
    layer = layer.replace(cell_gate=cell, **gates)
    weight = bare.weight.val().into_scalar()
    output, _ = layer.forward(Tensor.ones([1, 1, 1], PLAIN))
    assert np.isclose(output.into_scalar(), np.tanh(np.tanh(weight) / 2) / 2)


def test_weights_start_as_xavier_says():
    layer = nn.LstmConfig(40, 60, True).init(PLAIN)
    for part, fans in (("input", 100), ("hidden", 120)):
        weight, _ = joined(layer, ("input", "forget", "output", "cell"), part)
        assert np.isclose(weight.std(), (2 / fans) ** 0.5, rtol=0.03)


def test_a_gate_adds_what_input_and_state_say():
    gate = nn.GateController.new(2, 3, True, Initializer.Ones, PLAIN)
    x, h = Tensor.ones([1, 2], PLAIN), Tensor.ones([1, 3], PLAIN)
    assert np.asarray(gate.gate_product(x, h)).tolist() == [[7.0, 7.0, 7.0]]
    assert np.array_equal(gate(x, h), gate.gate_product(x, h))


def test_a_state_can_be_cut_from_what_was_read():
    layer = nn.LstmConfig(3, 4, True).init(AD)
    x = Tensor.random([2, 5, 3], device=AD).require_grad()
    _, state = layer.forward(x)
    cut = state.map_state(lambda t: t.detach())
    y = Tensor.random([2, 5, 3], device=AD)
    grads = layer.forward(y, cut)[0].sum().backward()
    assert x.grad(grads) is None
    grads = layer.forward(y, state)[0].sum().backward()
    assert np.any(np.asarray(x.grad(grads)) != 0)


def test_valid_and_fork_give_the_same_numbers():
    layer = nn.BiLstmConfig(3, 4, True).init(AD)
    x = Tensor.random([2, 5, 3], device=AD)
    wanted = np.asarray(layer.forward(x)[0])
    assert np.array_equal(layer.valid().forward(x.inner())[0], wanted)
    assert np.array_equal(layer.fork(AD).forward(x)[0], wanted)


@pytest.mark.parametrize("name", LAYERS)
def test_second_derivatives_are_those_of_the_first(name):
    """∂²/∂weight² along a direction, against differences of first gradients."""
    config, rng = LAYERS[name], np.random.default_rng(0)
    base = config.init(PLAIN)
    x = rng.normal(size=(2, 3, 3))
    path = [n for n, _ in base.named_params() if "hidden_transform.weight" in n][-1]
    param = dict(base.named_params())[path]

    def total(weight):
        layer = config.init(weight.backend).load_record(base.into_record())
        set_at(layer, path, param.initialized(param.id, weight))
        out = layer.forward(Tensor.from_numpy(x, weight.backend))
        return (out if isinstance(out, Tensor) else out[0]).square().sum()

    start, direction = np.asarray(param.val()), rng.normal(size=(4, 4))
    assert np.isclose(*second_slopes(total, start, direction, AD), rtol=1e-6)


def set_at(layer, path, param):
    *way, name = path.split(".")
    for part in way:
        layer = getattr(layer, part)
    vars(layer)[name] = param


@pytest.mark.parametrize("config", [*LAYERS.values(), *BOTH.values()], ids=str)
def test_what_does_not_fit_is_explained_with_the_layer(config):
    name = type(config).__name__.removesuffix("Config")
    layer = config.init(PLAIN)
    with pytest.raises(ShapeError, match=f"^{name}.*: 5 ≠ 3: the last dim of x"):
        layer.forward(Tensor.ones([2, 4, 5], PLAIN))
    with pytest.raises((ShapeError, KindError), match=f"^{name}"):
        layer.forward(Tensor.ones([2, 4, 3], PLAIN), Tensor.ones([3, 4], PLAIN))


@pytest.mark.parametrize("text", RECURRENT)
@pytest.mark.parametrize("compiled", [False, None])
def test_a_batch_of_no_sequences_has_no_states(text, compiled):
    """As in PyTorch; what a loader filters may be empty."""
    device = Autodiff(Numpy(compiled=compiled))
    x = Tensor[3].zeros([0, 5, 2], device).require_grad()
    out = RECURRENT[text].init(device).forward(x, None)
    out = out[0] if isinstance(out, tuple) else out
    assert out.dims()[:2] == (0, 5)
    assert x.grad(out.sum().backward()).dims() == (0, 5, 2)
