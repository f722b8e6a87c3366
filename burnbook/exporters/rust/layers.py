"""The layers of Burn: how a config makes each of ours again, release by release.

A layer knows its sizes; what it was drawn by, its initializer, it does not keep, so the
configs written here have Burn's default there. What a release of Burn lacks is refused
with a reason; a layer refused as a whole may still be written as a module of one's own,
from the operations that it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from burnbook.exporters.rust.operations import mixed_groups
from burnbook.exporters.rust.text import Dialect, Rust, Untranslatable, literal
from burnbook.module.reparameterization import Reparameterized
from burnbook.module.tree import field_specs

NnLayer = Any  # a layer of nn: what it holds depends on its kind

Made = Callable[[Any, Dialect], "Layer"]


@dataclass(frozen=True)
class Layer:
    """A layer of Burn: its type, where that is from, and what makes it.

    config: the expression of its config, or "" where it has none. init: what makes the
    layer, of a config `{}`. debug: whether the config derives Debug.
    """

    kind: str
    module: str = "nn"
    config: str = ""
    init: str = "{}.init(device)"
    generic: bool = True
    debug: bool = True
    ranked: bool = False  # the type has the number of dims after the channels

    @property
    def config_type(self) -> str:
        """The type of the config, or ""."""
        return self.config.partition("::")[0]

    def type_in(self, dialect: Dialect, rank: int | None) -> str:
        """The type with its parameters. rank: of the input, where it is known."""
        if dialect.new or not self.generic:
            return self.kind
        if self.ranked:
            return f"{self.kind}<B, {2 if rank is None else rank - 2}>"
        return f"{self.kind}<B>"


def layer_of(module: Any, dialect: Dialect) -> Layer | None:
    """What makes this layer in Burn; None if it is none of ours.

    Raises:
        Untranslatable: the release of Burn has no such layer, or not with all of this
            one's settings.
    """
    cls = type(module)
    if not cls.__module__.startswith("burnbook.nn."):
        return None
    if cls.__name__ == "Sequential":
        return None
    made = BOTH.get(cls.__name__) or (NEW if dialect.new else {}).get(cls.__name__)
    if made is None:
        since = " (0.22 has it)" if cls.__name__ in NEW else ""
        raise Untranslatable(f"Burn {dialect.version} has no {cls.__name__}{since}")
    return made(module, dialect)


def config(kind: str, *required: Any, **options: tuple[Any, Any]) -> str:
    """The expression of a config: `LinearConfig::new(2, 3).with_bias(false)`.

    options: for each the value, and Burn's default, which is left out.
    """
    parts = [f"{kind}Config::new({', '.join(map(literal, required))})"]
    for name, (value, default) in options.items():
        if isinstance(default, float) and isinstance(value, int):
            value = float(value)
        if _plain(value) != _plain(default):
            parts.append(f".with_{name}({literal(value)})")
    return "".join(parts)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def some(value: Any) -> Rust | None:
    """An optional value."""
    return None if value is None else Rust(f"Some({literal(value)})")


def padding_of(layer: NnLayer, dialect: Dialect) -> Rust:
    """The padding of a convolution or pool, as the release has it."""
    padding = layer.padding
    kind = type(padding).__name__
    if padding.variant == "Valid":
        return Rust(f"{kind}::Valid")
    if padding.variant in ("Same", "SymmetricSame"):
        if _is_their_same(layer, dialect):
            return Rust(f"{kind}::Same")
        values = _fixed_sides(layer)
    else:
        values = list(padding.values)
    rank = padding.rank
    four = dialect.new and rank < 3  # a number for each side
    if len(values) == rank and four:
        values = values * 2
    if len(values) > rank and not four:
        if values[:rank] != values[rank:]:
            what = f"padding {padding!r}: Burn {dialect.version} pads both sides alike"
            raise Untranslatable(what)
        values = values[:rank]
    return Rust(f"{kind}::Explicit({', '.join(map(str, values))})")


def _is_their_same(layer: NnLayer, dialect: Dialect) -> bool:
    """Whether Burn's `Same` pads as the layer does, for inputs of every size.

    In 0.15 that is SymmetricSame. The newest keeps the size for strides of 1 only, and
    not in 3-D for even kernels. Neither knows of dilation.
    """
    kernel, stride, dilation = _window(layer)
    if dialect.new and (max(stride) > 1 or any(k % 2 == 0 for k in kernel)):
        return False
    kind, one = type(layer.padding), (1,) * len(kernel)
    theirs = kind.Same if dialect.new else kind.SymmetricSame
    sizes = [(n,) * len(kernel) for n in (8, 9)]  # what differs, differs in one of them
    return all(
        layer.padding.sides(size, kernel, stride, dilation)
        == theirs.sides(size, kernel, stride, one)
        for size in sizes
    )


def _fixed_sides(layer: NnLayer) -> list[int]:
    """What Same pads before and then behind each dim, whatever the size of x."""
    kernel, stride, dilation = _window(layer)
    if max(stride) > 1:
        what = f"padding {layer.padding!r} with a stride: another size comes out there"
        raise Untranslatable(what)
    sides = layer.padding.sides(stride, kernel, stride, dilation)
    return [end for ends in zip(*sides, strict=True) for end in ends]


def _window(layer: NnLayer) -> tuple[tuple[int, ...], ...]:
    """Kernel, stride and dilation of a layer for each dim."""
    kernel = _several(layer.kernel_size)
    dilation = getattr(layer, "dilation", (1,) * len(kernel))
    return kernel, _several(layer.stride), _several(dilation)


def _several(size: Any) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else tuple(size)


def _shape(param: Any) -> tuple[int, ...]:
    if isinstance(param, Reparameterized):
        raise Untranslatable("its weight is computed from others: fold them in first")
    return tuple(param.shape)


def _usual(layer: NnLayer, *names: str) -> None:
    """Refuse a setting that only newer releases have."""
    changed = dict(type(layer).newer_fields)
    for name in names or changed:
        usual = changed.get(name)
        value = getattr(layer, name)
        if type(value).__name__ in ("Sigmoid", "Tanh"):
            continue  # an activation of a recurrent layer is checked by its own rule
        if value != usual:
            raise Untranslatable(f"{name}={value!r} is not in Burn 0.15")


def module_of(kind: str, usual: str = "nn") -> str:
    """Where a layer is: what is new among the activations has a module for them."""
    return "nn::activation" if kind in NEW_ACTIVATIONS else usual


def plain_layer(module: str = "nn") -> Made:
    """A layer without settings: `Relu::new()`."""

    def made(layer: NnLayer, dialect: Dialect) -> Layer:
        if not dialect.new:
            _usual(layer)
        kind = type(layer).__name__
        place = module_of(kind, module)
        return Layer(kind, place, init=f"{kind}::new()", generic=False)

    return made


def fields_layer(*required: str, **options: float | tuple[int, ...]) -> Made:
    """A layer without parameters whose config has fields of the same names."""

    def made(layer: NnLayer, dialect: Dialect) -> Layer:
        kind = type(layer).__name__
        if not dialect.new:
            _usual(layer)
        given = {name: (getattr(layer, name), old) for name, old in options.items()}
        sizes = [
            float(getattr(layer, name))
            if field_specs(type(layer))[name].kind is float
            else getattr(layer, name)
            for name in required
        ]
        text = config(kind, *sizes, **given)
        text = text.replace("lambda_", "lambda")
        return Layer(kind, module_of(kind), text, "{}.init()", generic=False)

    return made


def _linear(layer: NnLayer, dialect: Dialect) -> Layer:
    d_input, d_output = _shape(layer.weight)
    options: dict[str, Any] = {"bias": (layer.bias is not None, True)}
    if type(layer.weight).__name__ == "TransposedParam":
        if not dialect.new:
            raise Untranslatable("layout Col is not in Burn 0.15")
        options["layout"] = (Rust("LinearLayout::Col"), Rust(""))
    return Layer("Linear", config=config("Linear", d_input, d_output, **options))


def _embedding(layer: NnLayer, dialect: Dialect) -> Layer:
    text = config("Embedding", *_shape(layer.weight))
    return Layer("Embedding", config=text, debug=dialect.new)


def _conv(layer: NnLayer, dialect: Dialect) -> Layer:
    kind = type(layer).__name__
    out, inside = _shape(layer.weight)[:2]
    channels = (inside * layer.groups, out)
    first = channels if kind == "Conv1d" else (channels,)
    one = 1 if kind == "Conv1d" else (1,) * len(layer.kernel_size)
    valid = Rust(f"{type(layer.padding).__name__}::Valid")
    text = config(
        kind,
        *first,
        layer.kernel_size,
        stride=(layer.stride, one),
        dilation=(layer.dilation, one),
        groups=(layer.groups, 1),
        padding=(padding_of(layer, dialect), valid),
        bias=(layer.bias is not None, True),
    )
    return Layer(kind, "nn::conv", text)


def _conv_transpose(layer: NnLayer, dialect: Dialect) -> Layer:
    kind = type(layer).__name__
    inside, out = _shape(layer.weight)[:2]
    groups = layer.groups
    if not dialect.new:
        mixed_groups(kind, groups, out)
    one = 1 if kind.endswith("1d") else (1,) * len(layer.kernel_size)
    zero = 0 if kind.endswith("1d") else (0,) * len(layer.kernel_size)
    text = config(
        kind,
        (inside, out * groups),
        layer.kernel_size,
        stride=(layer.stride, one),
        dilation=(layer.dilation, one),
        groups=(groups, 1),
        padding=(layer.padding, zero),
        padding_out=(layer.padding_out, zero),
        bias=(layer.bias is not None, True),
    )
    return Layer(kind, "nn::conv", text)


def _deform_conv(layer: NnLayer, dialect: Dialect) -> Layer:
    out, inside = _shape(layer.weight)[:2]
    if not dialect.new and layer.offset_groups != layer.weight_groups:
        raise Untranslatable(
            "Burn 0.15 gives a DeformConv2d as many offset_groups as weight_groups"
        )
    text = config(
        "DeformConv2d",
        (inside * layer.weight_groups, out),
        layer.kernel_size,
        stride=(layer.stride, (1, 1)),
        dilation=(layer.dilation, (1, 1)),
        weight_groups=(layer.weight_groups, 1),
        offset_groups=(layer.offset_groups, 1),
        padding=(padding_of(layer, dialect), Rust("PaddingConfig2d::Valid")),
        bias=(layer.bias is not None, True),
    )
    return Layer("DeformConv2d", "nn::conv", text)


def _pool(layer: NnLayer, dialect: Dialect) -> Layer:
    kind = type(layer).__name__
    if not dialect.new:
        _usual(layer)
    flat = kind.endswith("1d")
    one = 1 if flat else (1, 1)
    usual = layer.kernel_size if dialect.new else one
    valid = Rust(f"{type(layer.padding).__name__}::Valid")
    options: dict[str, Any] = {
        "stride" if flat else "strides": (layer.stride, usual),
        "padding": (padding_of(layer, dialect), valid),
    }
    if kind.startswith("Avg"):
        options["count_include_pad"] = (layer.count_include_pad, True)
    else:
        options["dilation"] = (layer.dilation, one)
    if dialect.new:
        options["ceil_mode"] = (layer.ceil_mode, False)
    text = config(kind, layer.kernel_size, **options)
    return Layer(kind, "nn::pool", text, "{}.init()", generic=False, debug=_debug(kind))


def _debug(kind: str) -> bool:
    return not kind.startswith("Adaptive")


def _adaptive(layer: NnLayer, dialect: Dialect) -> Layer:
    kind = type(layer).__name__
    text = config(kind, layer.output_size)
    debug = dialect.new or _debug(kind)
    return Layer(kind, "nn::pool", text, "{}.init()", generic=False, debug=debug)


def _batch_norm(layer: NnLayer, dialect: Dialect) -> Layer:
    text = config(
        "BatchNorm",
        *_shape(layer.gamma),
        epsilon=(layer.epsilon, 1e-5),
        momentum=(layer.momentum, 0.1),
    )
    return Layer("BatchNorm", config=text, ranked=True)


def _layer_norm(layer: NnLayer, dialect: Dialect) -> Layer:
    options: dict[str, Any] = {"epsilon": (layer.epsilon, 1e-5)}
    if layer.beta is None:
        if not dialect.new:
            raise Untranslatable("bias=False is not in Burn 0.15")
        options["bias"] = (False, True)
    text = config("LayerNorm", *_shape(layer.gamma), **options)
    return Layer("LayerNorm", config=text, debug=dialect.new)


def _group_norm(layer: NnLayer, dialect: Dialect) -> Layer:
    kind = type(layer).__name__
    inside = layer.epsilon_inside
    if inside is not dialect.new:
        where = "to the deviation" if not dialect.new else "below the root"
        raise Untranslatable(
            f"epsilon_inside={inside}: Burn {dialect.version} adds epsilon {where}, "
            f"as does {kind}Config(…).with_epsilon_inside({not inside})"
        )
    sizes = [layer.num_channels]
    if kind == "GroupNorm":
        sizes.insert(0, layer.num_groups)
    text = config(
        kind, *sizes, epsilon=(layer.epsilon, 1e-5), affine=(layer.affine, True)
    )
    return Layer(kind, config=text, debug=dialect.new)


def _rms_norm(layer: NnLayer, dialect: Dialect) -> Layer:
    text = config("RmsNorm", *_shape(layer.gamma), epsilon=(layer.epsilon, 1e-5))
    return Layer("RmsNorm", config=text, debug=dialect.new)


def _prelu(layer: NnLayer, dialect: Dialect) -> Layer:
    (count,) = _shape(layer.alpha)
    text = config(
        "PRelu", num_parameters=(count, 1), alpha=(float(layer.alpha_value), 0.25)
    )
    return Layer("PRelu", config=text)


def _swiglu(layer: NnLayer, dialect: Dialect) -> Layer:
    inner, outer = layer.linear_inner, layer.linear_outer
    for part in (inner, outer):
        if type(part.weight).__name__ == "TransposedParam":
            raise Untranslatable("layout Col of a SwiGlu")
    if (inner.bias is None) is not (outer.bias is None):
        raise Untranslatable("only one of its Linears has a bias")
    text = config("SwiGlu", *_shape(inner.weight), bias=(inner.bias is not None, False))
    return Layer("SwiGlu", config=text)


def _gate(layer: NnLayer, dialect: Dialect) -> Layer:
    d_input, d_output = _shape(layer.input_transform.weight)
    bias = literal(layer.input_transform.bias is not None)
    drawn = "Initializer::XavierNormal { gain: 1.0 }"
    init = f"GateController::new({d_input}, {d_output}, {bias}, {drawn}, device)"
    return Layer("GateController", init=init)


def _bias_of(gates: list[Any]) -> bool:
    """Whether the gates of a recurrent layer have biases: all of them or none."""
    parts = [p for g in gates for p in (g.input_transform, g.hidden_transform)]
    found = {part.bias is not None for part in parts}
    if len(found) != 1:
        raise Untranslatable("some of its gates have a bias and others have none")
    return found.pop()


def _activations(
    layer: NnLayer, dialect: Dialect, usual: dict[str, str]
) -> dict[str, Any]:
    """The options for the activations of a recurrent layer."""
    options: dict[str, Any] = {}
    for name, known in usual.items():
        held = getattr(layer, name)
        if type(held).__name__ != known:
            if not dialect.new:
                raise Untranslatable(
                    f"{name} {type(held).__name__} is not in Burn 0.15"
                )
            options[name] = (Rust(activation_config(held)), Rust(""))
    return options


def activation_config(held: Any) -> str:
    """The choice of an activation, as configs of the newest Burn take it."""
    kind = type(held).__name__
    if kind == "Gelu" and held.approximate:
        return "ActivationConfig::GeluApproximate"
    if kind in PLAIN_ACTIVATIONS:
        return f"ActivationConfig::{kind}"
    made = layer_of(held, Dialect.of("0.22"))
    variants = (
        "PRelu LeakyRelu HardSigmoid Softplus Elu Celu ThresholdedRelu HardShrink "
        "SoftShrink Shrink"
    )
    if made is None or kind not in variants.split():
        raise Untranslatable(f"Burn's ActivationConfig has no {kind}")
    return f"ActivationConfig::{kind}({made.config})"


def _recurrent_options(
    layer: NnLayer, dialect: Dialect, activations: dict[str, str], names: str
) -> dict[str, Any]:
    """What is set of a recurrent layer beyond Burn 0.15's sizes."""
    defaults: dict[str, Any] = {
        "batch_first": True,
        "reverse": False,
        "clip": None,
        "input_forget": False,
    }
    options: dict[str, Any] = {}
    for name in names.split():
        value = getattr(layer, name)
        if value != defaults[name]:
            if not dialect.new:
                raise Untranslatable(f"{name}={value!r} is not in Burn 0.15")
            options[name] = (some(value) if name == "clip" else value, Rust(""))
    return options | _activations(layer, dialect, activations)


#: Activations that Burn 0.15 does not have.
NEW_ACTIVATIONS = (
    "Celu", "Elu", "HardShrink", "HardSwish", "Hardtanh", "LogSigmoid", "Mish", "Relu6",
    "Selu", "Shrink", "SiLU", "SoftShrink", "Softplus", "Softsign", "Tanhshrink",
    "Threshold", "ThresholdedRelu",
)  # fmt: skip
#: Activations that configs of the newest Burn name without values.
PLAIN_ACTIVATIONS = (
    "Gelu", "Relu", "Selu", "Sigmoid", "Tanh", "HardSwish", "Softsign", "Identity",
)  # fmt: skip
LSTM = {
    "gate_activation": "Sigmoid",
    "cell_activation": "Tanh",
    "hidden_activation": "Tanh",
}
GRU = {"gate_activation": "Sigmoid", "hidden_activation": "Tanh"}


def _lstm_sizes(layer: NnLayer) -> tuple[int, int, bool]:
    gates = [layer.input_gate, layer.output_gate, layer.cell_gate]
    gates += [layer.forget_gate] if layer.forget_gate is not None else []
    d_input, d_hidden = _shape(layer.input_gate.input_transform.weight)
    return d_input, d_hidden, _bias_of(gates)


def _lstm(layer: NnLayer, dialect: Dialect) -> Layer:
    names = "batch_first reverse clip input_forget"
    options = _recurrent_options(layer, dialect, LSTM, names)
    text = config("Lstm", *_lstm_sizes(layer), **options)
    return Layer("Lstm", config=text, debug=dialect.new)


def _bi_lstm(layer: NnLayer, dialect: Dialect) -> Layer:
    inner = layer.forward_
    options = _recurrent_options(inner, dialect, LSTM, "clip input_forget")
    options |= _recurrent_options(layer, dialect, {}, "batch_first")
    text = config("BiLstm", *_lstm_sizes(inner), **options)
    return Layer("BiLstm", config=text, debug=dialect.new)


def _gru_sizes(layer: NnLayer) -> tuple[int, int, bool]:
    gates = [layer.update_gate, layer.reset_gate, layer.new_gate]
    return (*_shape(layer.update_gate.input_transform.weight), _bias_of(gates))  # type: ignore[return-value] # two sizes


def _gru(layer: NnLayer, dialect: Dialect) -> Layer:
    if not dialect.new:
        raise Untranslatable(
            "the Gru of Burn 0.15 never reads its own previous state, so it computes "
            "something else"
        )
    if not layer.batch_first or layer.reverse:
        raise Untranslatable("Burn's Gru reads [batch, time, …] forward only")
    options = _recurrent_options(layer, dialect, GRU, "clip")
    options = {"reset_after": (layer.reset_after, True), **options}
    return Layer("Gru", "nn::gru", config("Gru", *_gru_sizes(layer), **options))


def _bi_gru(layer: NnLayer, dialect: Dialect) -> Layer:
    inner = layer.forward_
    options = _recurrent_options(inner, dialect, GRU, "clip")
    options |= _recurrent_options(layer, dialect, {}, "batch_first")
    options = {"reset_after": (inner.reset_after, True), **options}
    return Layer("BiGru", "nn::gru", config("BiGru", *_gru_sizes(inner), **options))


def _rnn(layer: NnLayer, dialect: Dialect) -> Layer:
    inner = layer.forward_ if type(layer).__name__ == "BiRnn" else layer
    kind = type(layer).__name__
    sizes = _shape(inner.gate.input_transform.weight)
    options = _recurrent_options(inner, dialect, {"hidden_activation": "Tanh"}, "clip")
    names = "batch_first" if kind == "BiRnn" else "batch_first reverse"
    options |= _recurrent_options(layer, dialect, {}, names)
    text = config(kind, *sizes, _bias_of([inner.gate]), **options)
    return Layer(kind, config=text)


def _attention(layer: NnLayer, dialect: Dialect) -> Layer:
    _refuse_quiet(layer, dialect)
    options: dict[str, Any] = {
        "dropout": (layer.dropout.prob, 0.1),
        "min_float": (layer.min_float, -1.0e4),
        "quiet_softmax": (layer.quiet_softmax, False),
    }
    for name in ("key", "value", "query", "output"):
        bias = getattr(layer, name).bias is not None
        if not bias and not dialect.new:
            raise Untranslatable(f"{name}_bias=False is not in Burn 0.15")
        options[f"{name}_bias"] = (bias, True)
    text = config("MultiHeadAttention", layer.d_model, layer.n_heads, **options)
    return Layer("MultiHeadAttention", "nn::attention", text, debug=dialect.new)


def _refuse_quiet(layer: NnLayer, dialect: Dialect) -> None:
    if layer.quiet_softmax and not dialect.new:
        raise Untranslatable(
            "quiet_softmax of Burn 0.15 computes something else than its name says"
        )


def _feed_forward(layer: NnLayer, dialect: Dialect) -> Layer:
    d_model, d_ff = _shape(layer.linear_inner.weight)
    options: dict[str, Any] = {"dropout": (layer.dropout.prob, 0.1)}
    held = layer.activation if layer.activation is not None else layer.gelu
    options |= _activation_option(held, dialect)
    text = config("PositionWiseFeedForward", d_model, d_ff, **options)
    kind = "PositionWiseFeedForward"
    return Layer(kind, "nn::transformer", text, debug=dialect.new)


def _activation_option(held: Any, dialect: Dialect) -> dict[str, Any]:
    chosen = activation_config(held)
    if chosen == "ActivationConfig::Gelu":
        return {}
    if not dialect.new:
        raise Untranslatable(f"activation {type(held).__name__} is not in Burn 0.15")
    return {"activation": (Rust(chosen), Rust(""))}


def _transformer(layer: NnLayer, dialect: Dialect) -> Layer:
    kind = type(layer).__name__
    _refuse_quiet(layer, dialect)
    options: dict[str, Any] = {
        "dropout": (float(layer.dropout), 0.1),
        "norm_first": (layer.norm_first, False),
        "quiet_softmax": (layer.quiet_softmax, False),
    }
    epsilons: set[float] = set()
    for inner in layer.layers:
        feed = inner.pwff
        held = feed.activation if feed.activation is not None else feed.gelu
        options |= _activation_option(held, dialect)
        epsilons |= {inner.norm_1.epsilon, inner.norm_2.epsilon}
        if inner.norm_first is not layer.norm_first:
            raise Untranslatable("norm_first differs between its layers")
    if len(epsilons) > 1:
        raise Untranslatable("its norms have different epsilons")
    if epsilons and epsilons != {1e-5}:
        if not dialect.new:
            raise Untranslatable("layer_norm_eps is not in Burn 0.15")
        options["layer_norm_eps"] = (epsilons.pop(), 1e-5)
    sizes = (layer.d_model, layer.d_ff, layer.n_heads, layer.n_layers)
    text = config(kind, *sizes, **options)
    return Layer(kind, "nn::transformer", text, debug=dialect.new)


def _positional(layer: NnLayer, dialect: Dialect) -> Layer:
    text = config(
        "PositionalEncoding",
        int(layer.sinusoids.shape[-1]),
        max_sequence_size=(layer.max_sequence_size, 5000),
        max_timescale=(layer.max_timescale, 10000),
    )
    return Layer("PositionalEncoding", config=text, debug=dialect.new)


def _rotary(layer: NnLayer, dialect: Dialect) -> Layer:
    rows, columns = layer.freq_complex.shape[:2]
    if layer.start_offset:
        raise Untranslatable("its table does not begin at position 0")
    pace = float(layer.theta) ** -(np.arange(0, columns, 2) / columns)
    if not np.allclose(np.asarray(layer.pace), pace, rtol=1e-5):
        raise Untranslatable("its frequencies are scaled")
    text = config(
        "RotaryEncoding",
        int(layer.max_sequence_length or rows),
        int(columns),
        theta=(float(layer.theta), 10000.0),
    )
    return Layer("RotaryEncoding", config=text)


def _interpolate(layer: NnLayer, dialect: Dialect) -> Layer:
    kind = type(layer).__name__
    mode = layer.mode.variant
    if not dialect.new:
        _usual(layer)
        if mode not in ("Nearest", "Linear", "Cubic"):
            raise Untranslatable(f"mode {mode} is not in Burn 0.15")
    elif mode == "NearestExact":
        raise Untranslatable("mode NearestExact has no name in Burn's configs")
    usual = Rust("InterpolateMode::Nearest")
    text = config(
        kind,
        output_size=(some(layer.output_size), None),
        scale_factor=(some(layer.scale_factor), None),
        mode=(Rust(f"InterpolateMode::{mode}"), usual),
        align_corners=(layer.align_corners, True),
    )
    return Layer(kind, "nn::interpolate", text, "{}.init()", generic=False)


def _cross_attention(layer: NnLayer, dialect: Dialect) -> Layer:
    d_model = _shape(layer.query.weight)[0]
    d_context = _shape(layer.key.weight)[0]
    text = config(
        "CrossAttention",
        d_model,
        d_context,
        layer.n_heads,
        layer.n_heads_kv,
        layer.d_head,
        dropout=(layer.dropout.prob, 0.1),
        min_float=(layer.min_float, -1.0e4),
        quiet_softmax=(layer.quiet_softmax, False),
    )
    return Layer("CrossAttention", "nn::attention", text)


def _cross_entropy(layer: NnLayer, dialect: Dialect) -> Layer:
    text = config(
        "CrossEntropyLoss",
        pad_tokens=(_listed(layer.pad_tokens), None),
        weights=(_listed(layer.weights), None),
        smoothing=(some(layer.smoothing), None),
        logits=(layer.logits, True),
    )
    return Layer("CrossEntropyLoss", "nn::loss", text)


def _binary_cross_entropy(layer: NnLayer, dialect: Dialect) -> Layer:
    text = config(
        "BinaryCrossEntropyLoss",
        weights=(_listed(layer.weights), None),
        smoothing=(some(layer.smoothing), None),
        logits=(layer.logits, False),
    )
    return Layer("BinaryCrossEntropyLoss", "nn::loss", text)


def _listed(values: Any) -> Rust | None:
    if values is None:
        return None
    if hasattr(values, "to_data"):
        values = values.to_data().to_list()
    return Rust(f"Some(vec!{literal(list(values))})")


def _huber(layer: NnLayer, dialect: Dialect) -> Layer:
    text = config("HuberLoss", float(layer.delta))
    return Layer("HuberLoss", "nn::loss", text, "{}.init()", generic=False)


_LAMBDA = {"lambda_": 0.5}
#: What makes each layer that every release has.
BOTH: dict[str, Made] = {
    "AdaptiveAvgPool1d": _adaptive,
    "AdaptiveAvgPool2d": _adaptive,
    "AvgPool1d": _pool,
    "AvgPool2d": _pool,
    "BatchNorm": _batch_norm,
    "BiLstm": _bi_lstm,
    "BinaryCrossEntropyLoss": _binary_cross_entropy,
    "Conv1d": _conv,
    "Conv2d": _conv,
    "Conv3d": _conv,
    "ConvTranspose1d": _conv_transpose,
    "ConvTranspose2d": _conv_transpose,
    "ConvTranspose3d": _conv_transpose,
    "CrossEntropyLoss": _cross_entropy,
    "DeformConv2d": _deform_conv,
    "Dropout": fields_layer("prob"),
    "Embedding": _embedding,
    "GateController": _gate,
    "Gelu": plain_layer(),
    "GroupNorm": _group_norm,
    "Gru": _gru,
    "HardSigmoid": fields_layer(alpha=0.2, beta=0.5),
    "HuberLoss": _huber,
    "InstanceNorm": _group_norm,
    "Interpolate1d": _interpolate,
    "Interpolate2d": _interpolate,
    "LayerNorm": _layer_norm,
    "LeakyRelu": fields_layer(negative_slope=0.01),
    "Linear": _linear,
    "Lstm": _lstm,
    "MaxPool1d": _pool,
    "MaxPool2d": _pool,
    "MseLoss": plain_layer("nn::loss"),
    "MultiHeadAttention": _attention,
    "PRelu": _prelu,
    "PositionWiseFeedForward": _feed_forward,
    "PositionalEncoding": _positional,
    "Relu": plain_layer(),
    "RmsNorm": _rms_norm,
    "RotaryEncoding": _rotary,
    "Sigmoid": plain_layer(),
    "SwiGlu": _swiglu,
    "Tanh": plain_layer(),
    "TransformerDecoder": _transformer,
    "TransformerEncoder": _transformer,
    "Unfold4d": fields_layer(
        "kernel_size", stride=(1, 1), dilation=(1, 1), padding=(0, 0)
    ),
}


def _gelu(layer: NnLayer, dialect: Dialect) -> Layer:
    if not layer.approximate:
        return plain_layer()(layer, dialect)
    if not dialect.new:
        raise Untranslatable("approximate=True is not in Burn 0.15")
    return Layer("Gelu", init="Gelu::new_approximate()", generic=False)


BOTH["Gelu"] = _gelu

#: What makes each layer that only the newest has.
NEW: dict[str, Made] = {
    "AdaptiveAvgPool3d": _adaptive,
    "BiGru": _bi_gru,
    "BiRnn": _rnn,
    "Celu": fields_layer(alpha=1.0),
    "CosineSimilarity": fields_layer(dim=1, eps=1e-8),
    "CrossAttention": _cross_attention,
    "Elu": fields_layer(alpha=1.0),
    "Fold4d": fields_layer(
        "output_size",
        "kernel_size",
        stride=(1, 1),
        dilation=(1, 1),
        padding=(0, 0),
    ),
    "GaussianNoise": fields_layer("std"),
    "HardShrink": fields_layer(**_LAMBDA),
    "HardSwish": plain_layer(),
    "Hardtanh": fields_layer(min_val=-1.0, max_val=1.0),
    "Identity": plain_layer(),
    "LocalResponseNorm": fields_layer("size", alpha=1e-4, beta=0.75, k=1.0),
    "LogSigmoid": plain_layer(),
    "Mish": plain_layer(),
    "PairwiseDistance": fields_layer(p=2.0, eps=1e-6),
    "PixelShuffle": fields_layer("upscale_factor"),
    "PixelUnshuffle": fields_layer("downscale_factor"),
    "Relu6": plain_layer(),
    "Rnn": _rnn,
    "Selu": plain_layer(),
    "Shrink": fields_layer(**_LAMBDA, bias=0.5),
    "SiLU": plain_layer(),
    "SoftShrink": fields_layer(**_LAMBDA),
    "Softplus": fields_layer(beta=1.0, threshold=20.0),
    "Softsign": plain_layer(),
    "Tanhshrink": plain_layer(),
    "Threshold": fields_layer("threshold", "value"),
    "ThresholdedRelu": fields_layer(alpha=1.0),
}
