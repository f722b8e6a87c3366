"""Modules, optimizers and schedules with unusual parts and options.

Burn's programs in rust/ have the same under the same names.
"""

from typing import Annotated

import numpy as np

from burnbook import lr_scheduler as schedules, nn, optim
from burnbook.backend import Numpy
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.lr_scheduler import LrSchedulerConfig, SchedulerReduction
from burnbook.module import Module, Param, ParamId
from burnbook.nn import attention, transformer
from burnbook.nn.conv import (
    Conv1dConfig,
    Conv3dConfig,
    ConvTranspose3dConfig,
    DeformConv2dConfig,
)
from burnbook.optim import MomentumConfig, ParamGroup, WeightDecayConfig
from burnbook.tensor import Tensor

Choice = (
    Annotated[nn.Linear, "Dense"]
    | Annotated[nn.LayerNorm, "Norm"]
    | Annotated[nn.Dropout, "Nothing"]
)


class Leaf(Module):
    gain: Param
    size: int
    act: nn.Relu
    none: nn.Linear | None
    name: str


class Boxed(Module):
    inner: Choice
    more: list[Choice]


Deep = (
    Boxed
    | Annotated[Choice, "One"]
    | Annotated[Leaf, "Cell"]
    | Annotated[nn.Relu, "Act"]
)


class Lists(Module):
    of_options: list[nn.Linear | None]
    nested: list[list[Leaf]]
    optional: list[nn.Linear] | None
    absent: list[nn.Linear] | None
    of_choices: list[Choice]
    of_pairs: list[tuple[nn.Linear, nn.Dropout]]
    of_nothing: list[nn.Relu]
    empty: list[list[nn.Linear]]
    rates: list[float]
    of_arrays: list[tuple[int, int]]


class Tuples(Module):
    three: tuple[nn.Linear, nn.Linear | None, list[Leaf]]
    grid: tuple[tuple[nn.Linear, nn.Linear], tuple[nn.Linear, nn.Linear]]
    options: tuple[Leaf | None, Leaf | None]
    deep: tuple[tuple[tuple[Param, Param], nn.Dropout], Choice]
    maybe: tuple[int, int] | None
    some: tuple[nn.Linear, nn.Linear] | None
    none: tuple[nn.Linear, nn.Linear] | None
    numbers: tuple[int, float, bool]
    word: str | None
    prob: nn.Dropout | None


class Choices(Module):
    some: Choice | None
    none: Choice | None
    one: Deep
    cell: Deep
    act: Deep
    list: "list[Deep | None]"
    pair: tuple[Choice, Choice]


Wide = (
    Annotated[list[nn.Linear], "Many"]
    | Annotated[list[tuple[nn.Linear, nn.Dropout]], "Pairs"]
    | Annotated[tuple[nn.Linear, nn.Linear], "Two"]
    | Annotated[Param, "Gain"]
    | Annotated[int, "Size"]
)


class Wides(Module):
    list: "list[Wide]"
    some: Wide | None
    none: Wide | None


class Params(Module):
    some: Param | None
    none: Param | None
    list: "list[Param]"
    pair: tuple[Param, Param]
    constants: "list[Tensor]"
    maybe: Tensor | None
    bare: tuple[Tensor, Param]


def linear(bias=True):
    return nn.LinearConfig(2, 2, bias=bias).init(Numpy())


def param(value):
    return Param.initialized(ParamId.new(), value)


def gain():
    return param(Tensor.random([2], device=Numpy()))


def leaf():
    return Leaf(gain(), 3, nn.Relu(), None, "leaf")


def norm():
    return nn.LayerNormConfig(2).init(Numpy())


def dropout():
    return nn.DropoutConfig(0.5).init()


def boxed(inner):
    return Boxed(inner, [norm(), dropout(), linear()])


def lists():
    return Lists(
        [linear(), None, linear(bias=False)],
        [[leaf()], [], [leaf(), leaf()]],
        [linear(bias=False), linear()],
        None,
        [norm(), dropout(), linear()],
        [(linear(), dropout()), (linear(bias=False), dropout())],
        [nn.Relu(), nn.Relu()],
        [],
        [0.5, 1.5],
        [(1, 2), (3, 4), (5, 6)],
    )


def tuples():
    return Tuples(
        (linear(), linear(bias=False), [leaf(), leaf()]),
        ((linear(), linear(bias=False)), (linear(bias=False), linear())),
        (leaf(), None),
        (((gain(), gain()), dropout()), norm()),
        (1, 2),
        (linear(bias=False), linear()),
        None,
        (1, 0.5, True),
        "word",
        dropout(),
    )


def choices():
    return Choices(
        norm(),
        None,
        boxed(linear()),
        leaf(),
        nn.Relu(),
        [boxed(dropout()), None, leaf(), linear(), dropout()],
        (dropout(), linear()),
    )


def wides():
    def pairs():
        return [(linear(bias), nn.DropoutConfig(0.5).init()) for bias in (False, True)]

    many, two = [linear(), linear(False)], (linear(), linear(False))
    return Wides([many, pairs(), two, gain(), 3], pairs(), None)


def params():
    device = Numpy()
    return Params(
        param(Tensor.random([2, 1], device=device)),
        None,
        [gain(), gain(), gain()],
        (
            param(Tensor.from_ints([-1, 70, 3], device)),
            param(Tensor.from_ints([[[1, 0], [0, 1]]], device).bool()),
        ),
        [Tensor.ones([2], device), Tensor.ones([3], device)],
        Tensor.ones([1], device),
        (Tensor.from_ints([1, 2, 3], device), gain()),
    )


CONTAINERS = {
    "lists": lists,
    "tuples": tuples,
    "choices": choices,
    "params": params,
    "wides": wides,
}
BOTH = {
    "conv_transpose3d": ConvTranspose3dConfig([2, 6], [2, 1, 2]).with_groups(2),
    "conv3d": Conv3dConfig([2, 4], [1, 2, 2]).with_groups(2),
    "rotary": nn.RotaryEncodingConfig(6, 8).with_theta(100.0),
}
PRELU = nn.ActivationConfig.PRelu(nn.PReluConfig(alpha=0.5))
FEED_FORWARD = nn.PositionWiseFeedForwardConfig(3, 4).with_activation(PRELU)
LAYERS_0_15 = {
    "bi_lstm": nn.BiLstmConfig(3, 2, False),
    "conv1d": Conv1dConfig(4, 4, 3).with_groups(4).with_dilation(2).with_bias(False),
    "conv3d": BOTH["conv3d"].with_stride([1, 2, 1]),
    "conv_transpose3d": BOTH["conv_transpose3d"]
    .with_stride([2, 1, 1])
    .with_padding([0, 0, 1])
    .with_padding_out([1, 0, 0])
    .with_bias(False),
    "deform_conv2d": DeformConv2dConfig([4, 2], [2, 2])
    .with_weight_groups(2)
    .with_offset_groups(2)
    .with_bias(False),
    "attention": attention.MultiHeadAttentionConfig(6, 3)
    .with_dropout(0.3)
    .with_min_float(-1e3)
    .with_quiet_softmax(True),
    "encoder": transformer.TransformerEncoderConfig(4, 6, 2, 3)
    .with_norm_first(True)
    .with_quiet_softmax(True),
    "decoder": transformer.TransformerDecoderConfig(4, 6, 2, 3).with_dropout(0.0),
    "instance_norm": nn.InstanceNormConfig(3).with_affine(False),
    "batch_norm": nn.BatchNormConfig(3).with_momentum(0.5),
    "swiglu": nn.SwiGluConfig(3, 4),
    "rotary": BOTH["rotary"],
    "positional": nn.PositionalEncodingConfig(6)
    .with_max_sequence_size(5)
    .with_max_timescale(100),
    "prelu": nn.PReluConfig().with_alpha(0.5),
}
LAYERS_0_22 = {
    "bi_lstm": nn.BiLstmConfig(3, 2, False).with_input_forget(True),
    "lstm": nn.LstmConfig(3, 2, True).with_cell_activation(PRELU),
    "layer_norm": nn.LayerNormConfig(3, bias=False),
    "group_norm": nn.GroupNormConfig(3, 6).with_affine(False),
    "conv3d": BOTH["conv3d"].with_bias(False),
    "conv_transpose3d": BOTH["conv_transpose3d"],
    "rotary": BOTH["rotary"],
}


def made_for(release, name):
    """The module of this name, with numbers of its own."""
    if name in CONTAINERS:
        return CONTAINERS[name]()
    layers = LAYERS_0_15 if release == "0.15" else LAYERS_0_22
    made = layers[name].init(Numpy())
    for _, each in made.named_params():
        np.asarray(each.val())  # drawn now
    return made


def _optimizers(value, norm):
    decay = WeightDecayConfig(0.1)
    value = GradientClippingConfig.Value(value)
    norm = GradientClippingConfig.Norm(norm)
    momentum = MomentumConfig(momentum=0.5, dampening=0.3, nesterov=True)
    return {
        "optim-sgd": optim.SgdConfig(
            momentum=momentum, weight_decay=decay, gradient_clipping=norm
        ),
        "optim-adagrad": optim.AdaGradConfig(
            epsilon=0.1, lr_decay=0.5, weight_decay=decay, grad_clipping=norm
        ),
        "optim-rmsprop": optim.RmsPropConfig(
            alpha=0.5,
            epsilon=0.01,
            momentum=0.3,
            centered=True,
            weight_decay=decay,
            grad_clipping=value,
        ),
    }, (decay, value, norm)


def optimizers_0_15():
    found, (decay, value, _) = _optimizers(0.01, 0.02)
    adam = optim.AdamConfig(
        epsilon=0.01, beta_1=0.5, weight_decay=decay, grad_clipping=value
    )
    adamw = optim.AdamWConfig(
        epsilon=0.01, weight_decay=0.5, beta_1=0.7, grad_clipping=value
    )
    return found | {"optim-adam": adam, "optim-adamw": adamw}


def optimizers_0_22():
    found, (decay, value, norm) = _optimizers(0.5, 0.25)
    return found | {
        "optim-adam": optim.AdamConfig(
            amsgrad=True, weight_decay=decay, grad_clipping=value
        ),
        "optim-lamb": optim.LambConfig(
            weight_decay=0.1, epsilon=0.01, grad_clipping=norm
        ),
        "optim-lion": optim.LionConfig(
            weight_decay=0.1, beta_1=0.5, grad_clipping=value
        ),
        "optim-adafactor": optim.AdafactorConfig(
            weight_decay=0.1,
            clip_threshold=0.5,
            relative_step=False,
            grad_clipping=norm,
        ),
        "optim-groups": None,
    }


def optimizer_0_22(name):
    """The optimizer of this name, at its start."""
    if name != "optim-groups":
        return optimizers_0_22()[name].init()
    made = optim.SgdConfig().init()
    inner = optim.AdamWConfig(weight_decay=0.1)
    return made.with_group(ParamGroup.from_predicate("linear"), inner)


SCHEDULES_0_15 = {
    "schedule-linear": schedules.LinearLrSchedulerConfig(1.0, 0.0, 1),
    "schedule-cosine": schedules.CosineAnnealingLrSchedulerConfig(0.5, 1, min_lr=0.5),
    "schedule-exponential": schedules.ExponentialLrSchedulerConfig(1.0, 1.0),
    "schedule-noam": schedules.NoamLrSchedulerConfig(3.0, warmup_steps=1, model_size=1),
}


def _sequential():
    step = schedules.StepLrSchedulerConfig(0.25, 2, gamma=0.5)
    inside = (
        schedules.ComposedLrSchedulerConfig(reduction=SchedulerReduction.Sum)
        .cosine(schedules.CosineAnnealingLrSchedulerConfig(0.5, 3))
        .step(step)
        .constant(0.125)
    )
    line = schedules.LinearLrSchedulerConfig(0.1, 0.5, 4)
    noam = schedules.NoamLrSchedulerConfig(0.5, warmup_steps=2)
    rows = [
        LrSchedulerConfig.Linear(line),
        LrSchedulerConfig.Composed(inside),
        LrSchedulerConfig.Noam(noam),
    ]
    return schedules.SequentialLrSchedulerConfig(rows, [2, 6])


def _composed():
    inside = (
        schedules.ComposedLrSchedulerConfig()
        .exponential(schedules.ExponentialLrSchedulerConfig(0.5, 0.9))
        .linear(schedules.LinearLrSchedulerConfig(1.0, 0.5, 3))
    )
    return (
        schedules.ComposedLrSchedulerConfig(reduction=SchedulerReduction.Avg)
        .step(schedules.StepLrSchedulerConfig(0.5, 3))
        .composed(inside)
        .noam(schedules.NoamLrSchedulerConfig(0.5, warmup_steps=4))
    )


SCHEDULES_0_22 = {
    "schedule-sequential": _sequential(),
    "schedule-composed": _composed(),
    "schedule-both": _composed().composed(_composed()),
}
