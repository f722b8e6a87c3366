"""A module run with tensors in place of its parameters, and where graphs are cut."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import (
    ArgumentError,
    BackendError,
    ConfigError,
    GraphError,
    KindError,
    ShapeError,
)
from burnbook.module import (
    Lora,
    Module,
    ModuleMapper,
    Param,
    WeightNorm,
    functional_call,
)
from burnbook.optim import GradientsParams, ParamGroup, SgdConfig
from burnbook.tensor import Tensor

PLAIN = Numpy(compiled=False)
DEVICE = Autodiff(PLAIN)
X = Tensor.from_floats([[1.0, -2.0]], DEVICE)


class Net(Module):
    fc: nn.Linear
    norm: nn.BatchNorm

    def forward(self, x):
        return self.fc.forward(x).tanh()

    def twice(self, x, *, add):
        return self.forward(x) * 2.0 + add


def net(device=DEVICE):
    norm = nn.BatchNormConfig(3).init(device)
    return Net(nn.LinearConfig(2, 3).init(device), norm)


def linear(device=DEVICE):
    return nn.LinearConfig(2, 1).init(device)


class Double(ModuleMapper):
    def map_float(self, _, tensor):
        return tensor * 2.0


class Apart(ModuleMapper):
    def map_float(self, _, tensor):
        return tensor.detach() * 2.0


# functional_call


def test_the_module_stays_as_it_is_and_other_parameters_are_its_own():
    model = net()
    before = str(model.into_record())
    out = functional_call(model, {"fc.weight": Tensor.zeros([2, 3], DEVICE)}, X)
    bias = np.asarray(model.fc.bias.val())
    np.testing.assert_allclose(np.asarray(out), [np.tanh(bias)], rtol=1e-6)
    assert str(model.into_record()) == before


def test_another_method_and_its_arguments():
    model = net()
    own = dict(model.named_params())
    given = {"fc.weight": own["fc.weight"].val()}
    out = functional_call(model, given, X, method="twice", add=1.0)
    assert np.array_equal(out, model.twice(X, add=1.0))


def test_a_plain_module_runs_with_tracked_tensors_and_keeps_its_statistics():
    model = nn.BatchNormConfig(2).init(PLAIN)
    own = {
        path: Tensor.from_inner(param.val(), DEVICE).require_grad()
        for path, param in model.named_params()
        if "running" not in path
    }
    x = Tensor.from_floats([[1.0, 5.0], [3.0, 7.0]], DEVICE)
    functional_call(model, own, x)
    np.testing.assert_allclose(model.running_mean.val(), [0.2, 0.6], rtol=1e-6)
    assert model.running_mean.device is PLAIN


def test_parts_of_a_reparameterized_model_are_replaced_by_their_paths():
    model = linear().apply_lora(Lora(1, 1.0))
    b = dict(model.named_params())["weight.lora.b"]
    scaled = Tensor.ones_like(b.val()) * 3.0
    out = functional_call(model, {"weight.lora.b": scaled}, X)
    assert not np.array_equal(out, model.forward(X))


@pytest.mark.parametrize(
    ("call", "error", "cure"),
    [
        (lambda m: functional_call(Net, {}, X), ArgumentError, "functional_call("),
        (lambda m: functional_call(m, [1], X), ArgumentError, "functional_call("),
        (
            lambda m: functional_call(m, {"fc.wieght": X}, X),
            ConfigError,
            "'fc.weight'",
        ),
        (lambda m: functional_call(m, {"fc.bias": 1.0}, X), KindError, "from_data"),
        (
            lambda m: functional_call(m, {"fc.bias": m.fc.bias}, X),
            KindError,
            "'fc.bias': param.val()",
        ),
        (
            lambda m: functional_call(
                m, {"fc.bias": Tensor.from_ints([1, 2, 3], DEVICE)}, X
            ),
            KindError,
            "tensor.float()",
        ),
        (
            lambda m: functional_call(m, {"fc.bias": Tensor.ones([1, 3], DEVICE)}, X),
            ShapeError,
            "tensor.reshape([3])",
        ),
        (
            lambda m: functional_call(m, {"fc.bias": Tensor.ones([3], PLAIN)}, X),
            BackendError,
            "model.fork(device)",
        ),
        (
            lambda m: functional_call(m, {}, X, method="wrong"),
            ConfigError,
            'method="forward"',
        ),
    ],
)
def test_what_does_not_fit_is_an_error_with_a_cure(call, error, cure):
    with pytest.raises(error) as caught:
        call(net())
    assert caught.value.where == "functional_call"
    assert cure in caught.value.cure


def test_tied_parameters_take_one_tensor():
    shared = linear()
    model = nn.Sequential(a=shared, b=shared)
    one, other = (Tensor.ones([2, 1], DEVICE) for _ in range(2))
    with pytest.raises(ConfigError, match="tied"):
        functional_call(model, {"a.weight": one, "b.weight": other}, X)


# Where a graph is cut


def mapped(m):
    return m.map(Double())


CUTS = {
    "map": mapped,
    "map twice": lambda m: mapped(mapped(m)),
    "Param.map": lambda m: m.replace(weight=m.weight.map(lambda w: w * 2.0)),
    "from_tensor": lambda m: m.replace(weight=Param.from_tensor(m.weight.val() * 2.0)),
    "from another parameter": lambda m: m.replace(
        bias=Param.from_tensor(m.weight.val().sum())
    ),
    "another class": lambda m: nn.Linear(Param.from_tensor(m.weight.val().exp()), None),
    "map of lora": lambda m: mapped(m.apply_lora(Lora(1, 1.0))),
    "weight norm": lambda m: m.replace(
        weight=Param.from_tensor(m.weight.val().tanh())
    ).apply_reparameterization(WeightNorm()),
}


@pytest.mark.parametrize("take", ["from_grads", "from_module", "from_params"])
@pytest.mark.parametrize("mixed", [True, False], ids=["mixed", "cut alone"])
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(
    "device", [DEVICE, Autodiff(DEVICE)], ids=["Autodiff", "twice"]
)
def test_a_loss_through_parameters_that_are_cut_says_so(device, cut, mixed, take):
    m = linear(device)
    if cut == "map of lora":
        m = m.apply_lora(Lora(1, 1.0))
        other = mapped(m)
    else:
        other = CUTS[cut](m)
    x = Tensor.from_floats([[1.0, -2.0]], device)
    loss = other.forward(x).sum()
    if mixed:
        loss = loss + m.forward(x).sum()
    ids = [param.id for _, param in m.named_params()]
    more = (ids,) if take == "from_params" else ()
    with pytest.raises(GraphError, match="the graph is cut") as caught:
        getattr(GradientsParams, take)(loss.backward(), m, *more)
    assert caught.value.cure.startswith("functional_call(model, {")
    by = dict(f for f in caught.value.facts if isinstance(f, tuple))["cut by"]
    assert by in ("Double.map", "Param.map", "Param.from_tensor")


APART = {
    "plain copies": lambda m: m.replace(weight=Param.from_tensor(m.weight.val())),
    "detached": lambda m: m.map(Apart()),
    "frozen": lambda m: m.map(Double()).no_grad(),
    "forked": lambda m: m.fork(DEVICE),
    "of plain tensors": lambda m: m.valid().map(Double()).train(),
    "cloned": lambda m: m.clone(),
    "frozen group": lambda m: m.map(Double()).freeze_group(ParamGroup.all()),
}


@pytest.mark.parametrize("way", APART)
def test_a_copy_that_is_meant_to_be_apart_is_no_error(way):
    m = linear()
    loss = m.forward(X).sum() + APART[way](m).forward(X).sum()
    grads = GradientsParams.from_grads(loss.backward(), m)
    slope = np.asarray(grads.get(m.bias.id)).ravel()
    shared = way in ("plain copies", "cloned")  # the bias is the very same
    assert slope[0] == (2.0 if shared else 1.0)


def test_the_cut_model_itself_is_trained_as_before():
    m = linear()
    other = m.map(Double())
    grads = GradientsParams.from_grads(other.forward(X).sum().backward(), other)
    assert len(grads) == 2
    stepped = SgdConfig().init().step(0.1, other, grads)
    loss = stepped.forward(X).sum() + m.forward(X).sum()
    assert len(GradientsParams.from_grads(loss.backward(), m)) == 2


def test_the_way_that_the_error_names_has_the_whole_gradient():
    m = linear()
    doubled = {path: param.val() * 2.0 for path, param in m.named_params()}
    loss = m.forward(X).sum() + functional_call(m, doubled, X).sum()
    grads = GradientsParams.from_grads(loss.backward(), m)
    np.testing.assert_allclose(np.asarray(grads.get(m.weight.id)).ravel(), [3.0, -6.0])


def test_cuts_do_not_keep_what_came_before_alive():
    m = linear()
    for _ in range(5):
        m = m.map(Double())
    note = m.weight.val().value.node.notes["cut"]
    assert len(note.behind) <= 1
