"""Groups of parameters, several optimizers and devices, odd parameters."""

import copy

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.dtypes import Int
from burnbook.core.errors import ConfigError, GraphError, RecordError, ShapeError
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.module import Lora, Module, Param, ParamId, Quantizer
from burnbook.optim import (
    AdafactorConfig,
    AdaGradConfig,
    AdamConfig,
    AdamWConfig,
    AdanConfig,
    GradientsParams,
    LambConfig,
    LionConfig,
    ModuleLearningRate,
    ModuleOptimizer,
    MomentumConfig,
    MultiGradientsParams,
    MuonConfig,
    ParamGroup,
    RmsPropConfig,
    SgdConfig,
)
from burnbook.tensor import Tensor
from burnbook.tensor.quantization import MinMaxCalibration, QuantizationScheme
from tests.support.cases import cases
from tests.support.optimizers_tried import (
    AD,
    BIASES,
    EVERY,
    HALF,
    PLAIN,
    WIDE,
    every,
    moved,
    one,
)


class Two(Module):
    first: nn.Linear
    last: nn.Linear


def two(device=AD) -> Two:
    device.seed(3)
    config = nn.LinearConfig(3, 3)
    return Two(config.init(device), config.init(device))


def ones(module) -> GradientsParams:
    held = GradientsParams()
    for _, param in module.named_params():
        inner = param.val().inner() if param.device.ad_enabled else param.val()
        held.register(param.id, inner.ones_like())
    return held


# Groups


def test_a_group_is_asked_with_id_and_path():
    number = ParamId(5)
    asked = [
        (ParamGroup.all(), "first.bias", True),
        (ParamGroup.from_path("first.bias"), "first.bias", True),
        (ParamGroup.from_path("first.bias"), "first.bias.x", False),
        (ParamGroup.from_paths(["a", "first.bias"]), "first.bias", True),
        (ParamGroup.from_predicate("bias", "first"), "first.bias", True),
        (ParamGroup.from_predicate("bias", "last"), "first.bias", False),
        (ParamGroup.from_any_predicates(["bias", "last"]), "first.bias", True),
        (ParamGroup.from_any_predicates(["scale", "last"]), "first.bias", False),
        (ParamGroup.from_regex(r"^first\.", "s$"), "first.bias", True),
        (ParamGroup.from_regex(r"^first\.", "t$"), "first.bias", False),
        (BIASES.fuse(ParamGroup.from_path("last.weight")), "last.weight", True),
        (BIASES.exclude(ParamGroup.from_predicate("last")), "last.bias", False),
        (BIASES.exclude(ParamGroup.from_predicate("last")), "first.bias", True),
    ]
    for group, path, wanted in asked:
        assert group.matches(number, path) is wanted, (group, path)
    module = two()
    known = ParamGroup.ids_from_module(module.first)
    assert known.matches(module.first.bias.id, "anywhere")
    assert not known.matches(module.last.bias.id, "first.bias")
    assert repr(known) == "ParamGroup(2 of Linear)"


def test_the_last_group_of_a_parameter_has_its_rule():
    optim = AdamConfig().init().with_group(BIASES, SgdConfig())
    optim.with_group(ParamGroup.from_path("last.bias"), SgdConfig().build())
    optim.with_group(
        ParamGroup.from_path("first.bias"),
        SgdConfig(),
        GradientClippingConfig.Value(0.5),
    )
    module = two()
    far = moved(module, optim.step(0.1, module, ones(module)))
    assert far == pytest.approx(
        {"first.weight": 0.1, "first.bias": 0.05, "last.weight": 0.1, "last.bias": 0.1},
        rel=1e-3,
    )
    record = optim.into_record()
    first = record[module.first.weight.id.serialize()]["V1"]["Rank2"]["momentum"]
    assert set(first) == {"time", "moment_1", "moment_2"}
    bias = record[module.last.bias.id.serialize()]
    assert bias == {"V1": {"Rank1": {"momentum": None}}}
    assert isinstance(optim, ModuleOptimizer)


def test_a_clipping_of_the_optimizer_is_not_that_of_a_group():
    optim = SgdConfig(gradient_clipping=GradientClippingConfig.Value(0.5)).init()
    with pytest.warns(UserWarning, match="clips gradients, but not those of"):
        optim.with_group(BIASES, SgdConfig(gradient_clipping=None))
    module = two()
    far = moved(module, optim.step(0.1, module, ones(module)))
    assert far["first.weight"] == pytest.approx(0.05, rel=1e-3)
    assert far["first.bias"] == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize("config", [SgdConfig, AdamConfig])
def test_the_clipping_of_a_config_is_that_of_its_group(config):
    field = "gradient_clipping" if config is SgdConfig else "grad_clipping"
    clip = GradientClippingConfig.Value(0.5)
    optim = SgdConfig().init().with_group(BIASES, config(**{field: clip}))
    assert repr(optim.groups[0].grad_clipping) == repr(clip.init())


def test_one_clipping_object_gives_one_norm_over_all_parameters():
    clip, module = GradientClippingConfig.GlobalNorm(1.0).init(), two()
    optim = SgdConfig().init().with_grad_clipping(clip)
    optim.with_group(BIASES, SgdConfig(), clip)
    far = moved(module, optim.step(1.0, module, ones(module)))
    # 24 gradients of 1: the norm of all is √24, that of one group less.
    assert list(far.values()) == pytest.approx([24**-0.5] * 4, rel=1e-3)


def test_a_parameter_that_changes_its_group_begins_anew():
    module, optim = two(), AdamConfig().init()
    module = optim.step(0.1, module, ones(module))
    optim.with_group(BIASES, SgdConfig(momentum=MomentumConfig()))
    optim.step(0.1, module, ones(module))
    record = optim.into_record()
    bias = record[module.first.bias.id.serialize()]["V1"]["Rank1"]["momentum"]
    assert set(bias) == {"velocity"}
    weight = record[module.first.weight.id.serialize()]["V1"]["Rank2"]["momentum"]
    assert weight["time"] == 2


def grouped():
    optim = MuonConfig().init().with_group(BIASES, AdamConfig())
    return optim.with_group(ParamGroup.from_path("last.bias"), AdamWConfig())


def test_groups_resume_bit_for_bit():
    module, optim = two(), grouped()
    for _ in range(2):
        module = optim.step(0.01, module, ones(module))
    again = grouped().load_record(optim.into_record())
    copied = two().load_record(module.into_record())
    straight = optim.step(0.01, module, ones(module))
    resumed = again.step(0.01, copied, ones(copied))
    assert not any(moved(straight, resumed).values())
    assert again.into_record() == optim.into_record()


def test_a_record_of_other_groups_is_refused_at_the_step():
    module, optim = two(), grouped()
    module = optim.step(0.01, module, ones(module))
    mixed = SgdConfig(momentum=MomentumConfig()).init()
    mixed.with_group(BIASES, AdamConfig())
    mixed.step(0.01, module, ones(module))
    swapped = AdamConfig().init()
    swapped.with_group(BIASES, SgdConfig(momentum=MomentumConfig()))
    swapped.load_record(mixed.into_record())
    before = swapped.into_record()
    with pytest.raises(RecordError, match=r"Two.first.weight: the loaded state is not"):
        swapped.step(0.01, module, ones(module))
    assert swapped.into_record() == before


def test_a_copy_of_an_optimizer_goes_its_own_way():
    module, optim = two(), grouped()
    module = optim.step(0.01, module, ones(module))
    other = copy.deepcopy(optim)
    record = optim.into_record()
    one = other.step(0.01, module, ones(module))
    assert optim.into_record() == record
    assert not any(moved(one, optim.step(0.01, module, ones(module))).values())


def test_rates_of_groups():
    rate = ModuleLearningRate(0.1).with_group(BIASES, 0.5)
    rate = rate.with_group(ParamGroup.from_path("last.bias"), 0.0)
    module = two()
    far = moved(module, SgdConfig().init().step(rate, module, ones(module)))
    assert far == pytest.approx(
        {"first.weight": 0.1, "first.bias": 0.5, "last.weight": 0.1, "last.bias": 0.0}
    )


# Every optimizer meets what models are made of


@every
def test_a_model_learns(name):
    rng = np.random.default_rng(0)
    device = Autodiff(WIDE)
    x = Tensor.from_numpy(rng.normal(size=(40, 4)), device)
    target = Tensor.from_numpy(rng.normal(size=(4, 3)), device)
    device.seed(1)

    module = one(np.zeros((4, 3)), device)
    optim, losses = EVERY[name].init(), []
    rate = {"AdaGrad": 0.5, "Sgd": 0.2, "RmsProp": 0.01}.get(name, 0.05)
    for _ in range(80):
        error = x @ module.weight.val() - x @ target
        loss = (error * error).mean()
        losses.append(loss.into_scalar())
        grads = GradientsParams.from_grads(loss.backward(), module)
        module = optim.step(rate, module, grads)
    assert losses[-1] < 0.2 * losses[0]


@every
def test_a_parameter_without_gradient_is_left_alone(name):
    module, optim = two(), EVERY[name].init()
    grads = GradientsParams({module.first.weight.id: Tensor.ones([3, 3], PLAIN)})
    made = optim.step(0.1, module, grads)
    far = moved(module, made)
    assert far.pop("first.weight") > 0
    assert not any(far.values())
    assert list(optim.into_record()) == [module.first.weight.id.serialize()]
    assert made.last.weight is module.last.weight


@every
def test_frozen_parameters_get_no_gradient_and_keep_their_values(name):
    module = two()
    module = Two(module.first.no_grad(), module.last)
    x = Tensor.ones([1, 3], AD)
    loss = module.last.forward(module.first.forward(x)).sum()
    grads = GradientsParams.from_grads(loss.backward(), module)
    if name == "Muon":
        grads.remove(module.last.bias.id)
    made = EVERY[name].init().step(0.1, module, grads)
    far = moved(module, made)
    assert (far["first.weight"], far["first.bias"]) == (0.0, 0.0)
    assert far["last.weight"] > 0
    assert not made.first.weight.is_require_grad
    assert made.last.weight.is_require_grad


@every
@pytest.mark.parametrize("plain", [WIDE, HALF], ids=["f64", "f16"])
def test_other_precisions(name, plain):
    """The same steps as in f32, as exactly as the type allows."""

    rng = np.random.default_rng(4)
    start, grads = rng.normal(size=(5, 4)), rng.normal(size=(6, 5, 4))
    found = []
    for inner in (plain, PLAIN):
        dtype = inner.float_dtype
        module, optim = one(start.astype(dtype), Autodiff(inner)), EVERY[name].init()
        for grad in grads:
            given = Tensor.from_numpy(grad.astype(dtype), inner)
            held = GradientsParams({module.weight.id: given})
            module = optim.step(0.01, module, held)
        assert np.asarray(module.weight.val()).dtype == dtype
        found.append(np.asarray(module.weight.val()).astype(float))
    tolerance = 1e-5 if plain is WIDE else 2e-2
    assert np.allclose(*found, rtol=tolerance, atol=tolerance)


@every
def test_parameters_on_several_devices_and_gradients_from_elsewhere(name):
    class Far(Module):
        near: Param
        far: Param

    start = np.random.default_rng(5).normal(size=(3, 3)).astype(np.float32)
    devices = (Autodiff(PLAIN), Autodiff(Numpy(compiled=False)))
    module = Far(*[Param.from_tensor(Tensor.from_numpy(start, d)) for d in devices])
    optim = EVERY[name].init()
    for _ in range(3):
        held = GradientsParams()
        for param in (module.near, module.far):  # each from the other's device
            other = devices[param is module.near].inner
            held.register(param.id, Tensor.ones([3, 3], other))
        module = optim.step(0.01, module, held)
    assert [p.val().device() for p in (module.near, module.far)] == list(devices)
    assert np.allclose(module.near.val(), module.far.val(), rtol=1e-5)
    module = module.fork(devices[1])  # the states follow
    module = optim.step(0.01, module, ones(module))
    assert np.allclose(module.near.val(), module.far.val(), rtol=1e-5)


@every
def test_a_module_without_autodiff_can_be_stepped(name):
    module = Two(two(PLAIN).first, two(PLAIN).last)
    grads = ones(module)
    if name == "Muon":
        grads.remove(module.first.bias.id)
        grads.remove(module.last.bias.id)
    made = EVERY[name].init().step(0.1, module, grads)
    assert moved(module, made)["first.weight"] > 0
    assert made.first.weight.val().device() is PLAIN


@pytest.mark.filterwarnings("ignore:.*start from one model")  # on purpose
@every
def test_what_is_given_is_never_written_to(name):
    module = two()
    weight = module.first.weight
    grad = Tensor.ones([3, 3], PLAIN)
    views = [np.asarray(weight.val()), np.asarray(grad)]
    optim = EVERY[name].init()
    for _ in range(3):
        optim.step(0.1, module, GradientsParams({weight.id: grad}))
        record = optim.into_record()
        views += [
            value.array
            for part in next(iter(record.values()))["V1"]["Rank2"].values()
            for value in (part.values() if isinstance(part, dict) else [part])
            if hasattr(value, "array")
        ]
    copies = [view.copy() for view in views]
    for _ in range(3):
        optim.step(0.1, module, GradientsParams({weight.id: grad}))
    for view, kept in zip(views, copies, strict=True):
        assert np.array_equal(view, kept)


def test_parameters_that_are_no_floats_stay():
    class Mixed(Module):
        weight: Param
        count: Param

    count = Param.from_tensor(Tensor.from_data([1, 2], AD, Int))
    module = Mixed(Param.from_tensor(Tensor.ones([2], AD)), count)
    made = SgdConfig().init().step(0.5, module, ones_of(module.weight))
    assert made.count is count
    assert made.weight.val().to_data().to_list() == [0.5, 0.5]


def ones_of(param):
    return GradientsParams({param.id: Tensor.ones([*param.shape], PLAIN)})


def test_muon_refuses_what_is_no_matrix_before_anything_changes():
    module, optim = two(), MuonConfig().init()
    with pytest.raises(ShapeError, match=r"step of Two.first.bias: only matrices"):
        optim.step(0.1, module, ones(module))
    assert optim.into_record() == {}


# Gradients of several devices


def test_gradients_of_several_devices_are_added_where_the_id_says():
    module = two()
    devices = [PLAIN, WIDE]
    grads = MultiGradientsParams()
    for device in devices:
        held = {p.id: Tensor.ones([*p.shape], device) for _, p in module.named_params()}
        grads.add(GradientsParams(held), device)
    assert len(grads) == 2
    assert repr(grads) == f"MultiGradientsParams(4 on {PLAIN!r}, 4 on {WIDE!r})"
    number = module.first.bias.id
    total, device = grads.remove(number)
    assert device is devices[int(number) % 2]
    assert total.device() is device
    assert total.to_data().to_list() == [2.0, 2.0, 2.0]
    assert grads.remove(number) is None
    far = moved(module, SgdConfig().init().step_multi(0.1, module, grads))
    assert far == pytest.approx(
        {"first.weight": 0.2, "first.bias": 0.0, "last.weight": 0.2, "last.bias": 0.2}
    )


# Errors


def test_an_optimizer_in_a_group_is_its_rule():
    first = AdamConfig().init().with_group(BIASES, SgdConfig().init())
    second = AdamConfig().init().with_group(BIASES, SgdConfig())
    assert repr(first.groups[0].rule) == repr(second.groups[0].rule)
    module = two()
    steps = [moved(module, o.step(0.1, module, ones(module))) for o in (first, second)]
    assert steps[0] == steps[1]


@cases(
    "build text",
    (lambda: ParamGroup.from_predicate(), "from_predicate: no text is given"),
    (lambda: ParamGroup.from_paths([3]), "from_paths: 3 is not a text"),
    (lambda: ParamGroup.from_regex("("), r"'\(' is not a regular expression"),
    (lambda: AdamConfig().init().with_group(BIASES, 3), "int is not the rule"),
    (
        lambda: AdamConfig().init().with_group(BIASES, GradientClippingConfig),
        "is not the rule",
    ),
    (
        lambda: (
            AdamConfig()
            .init()
            .with_group(
                BIASES,
                AdamConfig()
                .init()
                .with_grad_clipping(GradientClippingConfig.Norm(1.0)),
            )
        ),
        "with groups or clipping of its own is no single rule",
    ),
    (
        lambda: (
            AdamConfig()
            .init()
            .with_group(BIASES, AdamConfig().init().with_group(BIASES, SgdConfig()))
        ),
        "with groups or clipping of its own is no single rule",
    ),
    (lambda: MomentumConfig(momentum=-1.0), "momentum is -1.0"),
    (lambda: MomentumConfig(dampening=1.0), r"dampening is 1.0, not in \[0, 1\)"),
    (lambda: AdamWConfig(weight_decay=-0.1), "weight_decay is -0.1"),
    (lambda: AdamWConfig(beta_2=1.0), r"beta_2 is 1.0, not in \[0, 1\)"),
    (lambda: AdanConfig(beta_3=1.5), "beta_3 is 1.5"),
    (lambda: AdanConfig(epsilon=-1.0), "epsilon is -1.0"),
    (lambda: AdaGradConfig(lr_decay=-1.0), "lr_decay is -1.0"),
    (lambda: RmsPropConfig(alpha=1.1), r"alpha is 1.1, not in \[0, 1\]"),
    (lambda: RmsPropConfig(momentum=-0.1), "momentum is -0.1"),
    (lambda: MuonConfig(ns_steps=0), "ns_steps is 0"),
    (lambda: LionConfig(beta_2=1.0), r"beta_2 is 1.0, not in \[0, 1\)"),
    (lambda: LionConfig(weight_decay=-0.1), "weight_decay is -0.1"),
    (lambda: LambConfig(epsilon=-1.0), "epsilon is -1.0"),
    (lambda: AdafactorConfig(epsilon_1=0.0), "epsilon_1 is 0.0, not above 0"),
    (lambda: AdafactorConfig(clip_threshold=float("inf")), "clip_threshold is inf"),
    (lambda: AdafactorConfig(decay_rate=0.0), "decay_rate is 0.0, not below 0"),
    (lambda: AdafactorConfig(weight_decay=-1.0), "weight_decay is -1.0"),
)
def test_what_cannot_be_is_refused(build, text):
    with pytest.raises(ConfigError, match=text):
        build()


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), "0.1", None])
def test_a_step_of_no_length_is_refused(rate):
    module = two()
    with pytest.raises(ConfigError, match=r"step: .* is not a learning rate"):
        SgdConfig().init().step(rate, module, ones(module))


def test_gradients_as_backward_gives_them_are_refused():
    module = two()
    loss = module.first.forward(Tensor.ones([1, 3], AD)).sum()
    with pytest.raises(GraphError, match="gives, not GradientsParams"):
        AdamConfig().init().step(0.1, module, loss.backward())


# A group that nothing belongs to


NOBODY = ParamGroup.from_predicate("lasst")
QUANTIZER = Quantizer(MinMaxCalibration(), QuantizationScheme.PerTensorSymmetric())


@cases(
    "use",
    lambda m: m.freeze_group(NOBODY),
    lambda m: m.unfreeze_group(NOBODY),
    lambda m: m.apply_lora(Lora(1, 1.0).set_param_group(NOBODY)),
    lambda m: m.quantize_weights_group(QUANTIZER, NOBODY),
    lambda m: SgdConfig().init().with_group(NOBODY, SgdConfig()).step(0.1, m, ones(m)),
    lambda m: (
        SgdConfig()
        .init()
        .step(ModuleLearningRate(0.1).with_group(NOBODY, 0.2), m, ones(m))
    ),
    ids=["freeze", "unfreeze", "lora", "quantize", "optimizer", "rate"],
)
def test_a_group_that_nothing_belongs_to_is_refused_with_near_names(use):
    with pytest.raises(ConfigError, match=r"near +last"):
        use(two())


def test_a_group_is_looked_for_once():
    optim = (
        SgdConfig().init().with_group(ParamGroup.from_path("last.bias"), SgdConfig())
    )
    module = two()
    module = optim.step(0.1, module, ones(module))
    lone = nn.LinearConfig(2, 2).init(AD)
    optim.step(0.1, lone, ones(lone))  # a part without the group, later on


def test_an_optimizer_is_made_of_a_rule_or_of_its_config():
    assert repr(ModuleOptimizer(AdamConfig())) == repr(AdamConfig().init())
    with pytest.raises(ConfigError, match="float is not the rule of an optimizer"):
        ModuleOptimizer(1e-3)
