"""Optimizers: Adam by its formula, gradients by parameter, records that resume."""

import gc
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ConfigError, GraphError, RecordError, ShapeError
from burnbook.grad_clipping import GradientClipping, GradientClippingConfig
from burnbook.lr_scheduler import as_scheduler
from burnbook.module import Module, Param, ParamId
from burnbook.optim import (
    AdamConfig,
    GradientsAccumulator,
    GradientsParams,
    ParamGroup,
    SgdConfig,
    WeightDecayConfig,
)
from burnbook.tensor import Tensor, TensorData
from tests.support.cases import cases
from tests.support.modules import ids
from tests.support.optimizers_tried import one, two, values
from tests.support.refusals import refused

PLAIN = Numpy(float="f64")
AD = Autodiff(PLAIN)
RNG = np.random.default_rng(0)


class Net(Module):
    hidden: nn.Linear
    output: nn.Linear
    scale: Param

    def forward(self, x: Tensor) -> Tensor:
        return self.output.forward(self.hidden.forward(x).tanh()) * self.scale.val()


def net(device=AD) -> Net:
    device.seed(1)
    scale = Param.from_tensor(Tensor.ones([1, 2], device))
    hidden = nn.LinearConfig(3, 4).init(device)
    return Net(hidden, nn.LinearConfig(4, 2).init(device), scale)


def gradients(module: Module, seed=0) -> GradientsParams:
    x = Tensor.from_numpy(np.random.default_rng(seed).normal(size=(5, 3)), AD)
    out = module.forward(x)
    return GradientsParams.from_grads((out * out).sum().backward(), module)


def adam(w, grads, lr, decay=0.0, beta_1=0.9, beta_2=0.999, epsilon=1e-5):
    """Adam by its formula."""
    m = v = np.zeros_like(w)
    for t, g in enumerate(grads, 1):
        g = decay * w + g
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        step = (m / (1 - beta_1**t)) / (np.sqrt(v / (1 - beta_2**t)) + epsilon)
        w = w - lr * step
    return w


@settings(max_examples=25)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    steps=st.integers(1, 5),
    lr=st.floats(1e-4, 1.0),
    decay=st.sampled_from([0.0, 0.01]),
    beta_1=st.floats(0.0, 0.99),
)
def test_adam_is_its_formula(shape, steps, lr, decay, beta_1):
    rng = np.random.default_rng(steps)
    start = rng.normal(size=shape)
    grads = [rng.normal(size=shape) for _ in range(steps)]
    config = AdamConfig().with_beta_1(beta_1)
    if decay:
        config = config.with_weight_decay(WeightDecayConfig(decay))
    optim, module = config.init(), one(start, AD)
    for grad in grads:
        held = GradientsParams({module.weight.id: Tensor.from_numpy(grad, PLAIN)})
        module = optim.step(lr, module, held)
    wanted = adam(start, grads, lr, decay, beta_1)
    assert np.allclose(module.weight.val(), wanted, rtol=1e-9, atol=1e-9)


def test_a_step_leaves_the_old_module_as_it_was():
    old, optim = net(), AdamConfig().init()
    before = values(old)
    new = optim.step(0.1, old, gradients(old))
    for name, value in values(old).items():
        assert np.array_equal(value, before[name])
        assert not np.array_equal(value, values(new)[name])
    assert ids(old) == ids(new)
    assert all(p.val().is_require_grad() for _, p in new.named_params())
    gradients(old)  # the old module can still be trained


def test_training_lowers_the_loss():
    module, optim = net(), AdamConfig().init()
    x = Tensor.from_numpy(RNG.normal(size=(8, 3)), AD)
    losses = []
    for _ in range(60):
        loss = (module.forward(x) - 1.0).powf_scalar(2.0).mean()
        losses.append(loss.into_scalar())
        grads = GradientsParams.from_grads(loss.backward(), module)
        module = optim.step(0.05, module, grads)
    assert losses[-1] < 0.05 * losses[0]


def test_a_parameter_without_gradient_keeps_its_value_and_has_no_state():
    module, optim = net(), AdamConfig().with_weight_decay(WeightDecayConfig(0.1)).init()
    grads = gradients(module)
    grads.remove(module.scale.id)
    made = optim.step(0.1, module, grads)
    assert np.array_equal(made.scale.val(), module.scale.val())
    assert made.scale.id.serialize() not in optim.into_record()
    assert len(optim.into_record()) == 4


def test_a_frozen_parameter_stays_frozen():
    module = net().no_grad()
    grads = GradientsParams({module.scale.id: Tensor.ones([1, 2], PLAIN)})
    made = AdamConfig().init().step(0.1, module, grads)
    assert not made.scale.val().is_require_grad()
    assert not np.array_equal(made.scale.val(), module.scale.val())


def test_tied_weights_take_one_step_and_stay_tied():
    weight = Param.from_tensor(Tensor.from_numpy(RNG.normal(size=(3, 3)), AD))

    class Tied(Module):
        first: nn.Linear
        second: nn.Linear

        def forward(self, x):
            return self.second.forward(self.first.forward(x))

    module = Tied(nn.Linear(weight, None), nn.Linear(weight, None))
    made = AdamConfig().init().step(0.1, module, gradients(module))
    assert made.first.weight is made.second.weight
    assert not np.array_equal(made.first.weight.val(), weight.val())


def test_a_gradient_of_another_shape_is_explained():
    module = net()
    grads = GradientsParams({module.scale.id: Tensor.ones([2, 2], PLAIN)})
    facts = (
        "  param  [1, 2]\n",
        "  grad   [2, 2]\n",
        "try: GradientsParams.from_grads",
    )
    act = partial(AdamConfig().init().step, 0.1, module, grads)
    refused(ShapeError, act, "step of Net.scale: ", *facts)


# Gradients by parameter


def test_gradients_are_found_by_the_ids_of_the_parameters():
    module = net()
    grads = gradients(module)
    assert len(grads) == 5
    grad = grads.get(module.hidden.weight.id)
    assert (grad.dims(), grad.device()) == ((3, 4), PLAIN)
    assert grads.remove(module.hidden.weight.id) is grad
    assert grads.get(module.hidden.weight.id) is None
    assert repr(grads) == "GradientsParams(4 gradients)"


def test_gradients_can_be_split_among_optimizers():
    """The book's example: a part, one parameter, and the rest."""
    module = net()
    x = Tensor.from_numpy(RNG.normal(size=(5, 3)), AD)
    grads = module.forward(x).sum().backward()
    hidden = GradientsParams.from_module(grads, module.hidden)
    bias = GradientsParams.from_params(grads, module.output, [module.output.bias.id])
    rest = GradientsParams.from_grads(grads, module)
    assert [len(part) for part in (hidden, bias, rest)] == [2, 1, 2]
    assert rest.get(module.output.weight.id) is not None
    assert GradientsParams.from_grads(grads, module).is_empty()


def test_registering_and_moving_gradients():
    module, grads = net(), GradientsParams()
    grads.register(module.scale.id, Tensor.ones([1, 2], PLAIN))
    grads.register(ParamId(7), Tensor.ones([1], PLAIN))
    moved = grads.to_device(Autodiff(Numpy()), module)
    assert moved.get(module.scale.id).device() is Numpy()
    assert len(moved) == 2
    assert dict(grads.items())[ParamId(7)].dims() == (1,)


def test_the_accumulator_adds_up_and_starts_again():
    module, accumulator = net(), GradientsAccumulator()
    parts = [gradients(module, seed) for seed in (0, 1)]
    wanted = sum(np.asarray(part.get(module.scale.id)) for part in parts)
    for part in parts:
        part.register(ParamId(7), Tensor.ones([1], PLAIN))
        accumulator.accumulate(module, part)
    grads = accumulator.grads()
    assert np.allclose(grads.get(module.scale.id), wanted)
    assert grads.get(ParamId(7)) is None
    assert accumulator.grads().is_empty()


def test_a_step_without_gradients_is_allowed_unless_a_step_used_them_up():
    """Only the same module again, or a part of it, asks for what is gone."""
    module, optim = net(), AdamConfig().init()
    assert optim.step(0.1, module, GradientsParams()).num_params() > 0
    frozen = module.no_grad()
    x = Tensor.from_numpy(RNG.normal(size=(5, 3)), AD).require_grad()
    unused = GradientsParams.from_module(frozen.forward(x).sum().backward(), frozen)
    assert optim.step(0.1, frozen, unused).num_params() == module.num_params()
    assert optim.step(0.1, frozen, unused).num_params() == module.num_params()
    grads = GradientsParams.from_module(
        module.forward(x).sum().backward(), module.hidden
    )
    hidden = optim.step(0.1, module.hidden, grads)
    optim.step(0.1, module, grads).num_params()  # nothing is left for the other parts
    with pytest.raises(GraphError, match="used up: an earlier step took them out"):
        optim.step(0.1, hidden, grads)
    grads = gradients(module, 0)
    newer = optim.step(0.1, module, grads)
    assert len(optim._states) == 5
    for again in (newer, newer.hidden):
        with pytest.raises(GraphError, match="used up"):
            optim.step(0.1, again, grads)
    grads.register(module.scale.id, Tensor.ones([1, 2], PLAIN))
    assert optim.step(0.1, newer, grads) is not newer


# Clipping


def test_clipping_by_value_and_by_norm():
    grad = Tensor.from_data([3.0, -4.0], PLAIN)
    assert np.allclose(GradientClipping.by_value(3.5).clip_gradient(grad), [3.0, -3.5])
    assert np.allclose(GradientClipping.by_norm(1.0).clip_gradient(grad), [0.6, -0.8])
    assert GradientClipping.by_norm(5.0).clip_gradient(grad) is grad


def test_clipping_comes_before_weight_decay():
    start = np.array([10.0])
    config = AdamConfig().with_weight_decay(WeightDecayConfig(0.5)).with_beta_1(0.0)
    optim = config.with_grad_clipping(GradientClippingConfig.Value(1.0)).init()
    module = one(start, AD)
    number = module.weight.id
    grads = GradientsParams({number: Tensor.from_data([100.0], PLAIN)})
    made = optim.step(0.1, module, grads)
    wanted = adam(start, [np.array([1.0])], 0.1, decay=0.5, beta_1=0.0)
    assert np.allclose(made.weight.val(), wanted)
    moment = optim.into_record()[number.serialize()]["V1"]["Rank1"]["momentum"]
    assert np.allclose(moment["moment_2"].array, 0.001 * 6.0**2)


def test_clipping_can_be_set_on_the_optimizer():
    optim = AdamConfig().init().with_grad_clipping(GradientClipping.by_norm(1.0))
    assert repr(optim) == (
        "OptimizerAdaptor(Adam(beta_1=0.9, beta_2=0.999, epsilon=1e-05), "
        "GradientClipping(GradientClippingConfig.Norm(1.0)), 0 states)"
    )


def test_clipping_by_global_norm_scales_all_gradients_alike():
    three, four = ParamId(1), ParamId(2)
    rows = {three: [3.0, 0.0], four: [0.0, 4.0]}
    grads = GradientsParams({n: Tensor.from_data(r, PLAIN) for n, r in rows.items()})
    clip = GradientClipping.by_global_norm(1.0)
    clipped = clip.clip_gradients(grads)
    assert np.allclose(clipped.get(three), [0.6, 0.0], atol=1e-6)
    assert np.allclose(clipped.get(four), [0.0, 0.8], atol=1e-6)
    assert np.allclose(grads.get(three), [3.0, 0.0])
    kept = GradientClipping.by_global_norm(9.0).clip_gradients(grads)
    assert kept.get(four) is grads.get(four)
    alone = GradientClipping.by_norm(1.0).clip_gradients(grads)
    assert np.allclose([alone.get(three), alone.get(four)], [[1, 0], [0, 1]])
    assert GradientsParams().norm() == 0.0


def test_a_single_gradient_has_no_global_norm():
    refused(
        ConfigError,
        lambda: GradientClipping.by_global_norm(1.0).clip_gradient(
            Tensor.from_data([1.0], PLAIN)
        ),
        "clip_gradient",
        "clip_gradients(grads)",
    )
    with pytest.raises(ConfigError, match="not above 0"):
        GradientClippingConfig.GlobalNorm(0.0)


def test_a_group_has_a_global_norm_of_its_own():
    module = two()
    first, second = module.first.id, module.second.id
    rows = {
        first: np.full(module.first.shape, 3.0),
        second: np.ones(module.second.shape),
    }

    def moved(optim):
        grads = {n: Tensor.from_data(row, PLAIN) for n, row in rows.items()}
        made = optim.step(1.0, module, GradientsParams(grads))
        pairs = ((made.first, module.first), (made.second, module.second))
        return [
            np.linalg.norm(np.subtract(*(np.asarray(p.val()) for p in pair)))
            for pair in pairs
        ]

    both = GradientClippingConfig.GlobalNorm(1.0)
    together = moved(SgdConfig(gradient_clipping=both).init())
    assert np.isclose(np.hypot(*together), 1.0, atol=1e-4)
    group = ParamGroup.from_path("second")
    apart = (
        SgdConfig(gradient_clipping=both)
        .init()
        .with_group(group, SgdConfig(), GradientClippingConfig.GlobalNorm(0.5))
    )
    assert np.allclose(moved(apart), [1.0, 0.5], atol=1e-4)
    unbound = SgdConfig().init().with_grad_clipping(both)
    with pytest.warns(UserWarning, match=r"try: clip = .*with_group\(…, clip\)"):
        unbound.with_group(group, SgdConfig())
    assert np.allclose(moved(unbound), [1.0, np.linalg.norm(rows[second])], atol=1e-4)


@pytest.mark.parametrize("kind", ["Value", "Norm", "GlobalNorm"])
def test_a_clipping_is_saved_with_its_config(kind, tmp_path):
    config = AdamConfig(grad_clipping=getattr(GradientClippingConfig, kind)(1.5))
    config.save(tmp_path / "adam.json")
    assert f'"{kind}": 1.5' in (tmp_path / "adam.json").read_text()
    assert AdamConfig.load(tmp_path / "adam.json") == config


# Records


def trained(steps: int, optim=None, module=None):
    optim, module = optim or AdamConfig().init(), module or net()
    for step in range(steps):
        module = optim.step(0.01, module, gradients(module, step))
    return optim, module


def test_the_record_has_burns_layout():
    optim, module = trained(3)
    record = optim.into_record()
    assert list(record) == [param.id.serialize() for _, param in module.named_params()]
    state = record[module.hidden.weight.id.serialize()]
    assert list(state) == ["V1"]
    assert list(state["V1"]) == ["Rank2"]
    moments = state["V1"]["Rank2"]["momentum"]
    assert list(moments) == ["time", "moment_1", "moment_2"]
    assert moments["time"] == 3
    assert isinstance(moments["moment_1"], TensorData)
    assert moments["moment_1"].shape == (3, 4)
    assert optim.to_record() == record


def test_resuming_is_equal_bit_for_bit():
    optim, module = trained(3)
    resumed = AdamConfig().init().load_record(optim.into_record())
    copied = net().load_record(module.into_record())
    _, straight = trained(4, optim, module)
    again, onward = trained(4, resumed, copied)
    for name, value in values(straight).items():
        assert np.array_equal(value, values(onward)[name])
    assert again.into_record() == optim.into_record()


def test_a_loaded_record_is_given_back_unchanged():
    record = trained(2)[0].into_record()
    assert AdamConfig().init().load_record(record).into_record() == record
    moved = AdamConfig().init().load_record(record, Numpy())
    state = next(iter(moved.into_record().values()))
    assert next(iter(state["V1"].values()))["momentum"]["moment_1"].dtype == "f32"


@cases(
    "record part",
    (None, "record does not hold the state of an optimizer"),
    ([], "record does not hold the state of an optimizer"),
    ({"04": None}, "04 does not hold the state of an optimizer"),
    ({"!": {"V1": {"Rank1": {}}}}, "! is not the id of a parameter"),
    ({"04": {"V1": {"Rank1": {}}}}, "04.momentum is not in the record"),
    (
        {"04": {"V1": {"Rank1": {"momentum": {"time": "x"}}}}},
        "04.momentum.time is not a number",
    ),
)
def test_a_record_of_something_else_is_refused_and_nothing_changes(record, part):
    optim, _ = trained(1)
    before = optim.into_record()
    with pytest.raises(RecordError, match="load into Adam") as caught:
        optim.load_record(record)
    assert part in str(caught.value)
    assert optim.into_record() == before


def test_a_state_of_another_rank_or_shape_is_refused():
    optim, module = trained(1)
    record = optim.into_record()
    text = module.scale.id.serialize()
    state = record[text]["V1"].pop("Rank2")
    record[text]["V1"]["Rank1"] = state
    with pytest.raises(RecordError, match="is Rank1, its tensors"):
        AdamConfig().init().load_record(record)
    wrong = {"V1": {"Rank2": {"momentum": dict(state["momentum"])}}}
    wrong["V1"]["Rank2"]["momentum"]["moment_1"] = TensorData(np.zeros((2, 2)))
    other = AdamConfig().init().load_record({**record, text: wrong})
    with pytest.raises(ShapeError, match="belongs to another shape"):
        other.step(0.1, module, gradients(module))


def test_a_failed_step_changes_no_state():
    optim, module = trained(1)
    before, grads = optim.into_record(), gradients(module)
    grads.register(module.scale.id, Tensor.ones([7], PLAIN))
    with pytest.raises(ShapeError):
        optim.step(0.1, module, grads)
    assert optim.into_record() == before


def test_a_step_leaves_no_cycles_that_hold_the_old_model():
    optim, module = trained(2)
    gc.collect()
    gc.disable()
    try:
        module = optim.step(0.1, module, gradients(module))
        assert gc.collect() == 0
    finally:
        gc.enable()


# Configs and schedules


def test_a_number_is_a_constant_schedule():
    schedule = as_scheduler(1e-4)
    assert [schedule.step() for _ in range(3)] == [1e-4] * 3
    assert schedule.into_record() is None
    assert schedule.load_record(None) is schedule
    assert as_scheduler(schedule) is schedule
    assert repr(schedule) == "ConstantLr(0.0001)"
