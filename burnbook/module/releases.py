"""Which fields the layers of each release of Burn have, in the order of its records.

Bincode writes fields back to back, so a record fits only the fields of its release; in
named formats the names and their order differ. Layers that are not in the table have
their own fields in every release: constants are written as nothing, so most changes of
a layer leave its record as it was.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Release = tuple[int, ...]  # (0, 15, 0); () where it is not known
Fields = str | dict[str, str] | None

_CONV_TRANSPOSE = "weight bias stride kernel_size dilation groups padding padding_out"
_LSTM = "input_gate forget_gate! output_gate cell_gate d_hidden"
_GRU = "update_gate reset_gate new_gate d_hidden"
_MHA = "query key value output dropout activation"
_GROUP_NORM = "num_groups num_channels gamma beta epsilon affine"

#: For each layer since when its record has which fields. "beta!": never absent, where
#: ours may be; "activation-": a constant there; {outer: fields}: they stand in one
#: part; None: the whole layer is a constant.
FIELDS: dict[str, dict[Release, Fields]] = {
    "BiLstm": {
        (0, 14): "forward reverse d_hidden",
        (0, 20): "forward reverse d_hidden batch_first",
    },
    "ConvTranspose1d": {
        (0, 13): _CONV_TRANSPOSE,
        (0, 14): f"{_CONV_TRANSPOSE} channels",
    },
    "ConvTranspose2d": {
        (0, 13): _CONV_TRANSPOSE,
        (0, 14): f"{_CONV_TRANSPOSE} channels",
    },
    "ConvTranspose3d": {(0, 14): f"{_CONV_TRANSPOSE} channels"},
    "GroupNorm": {
        (0, 13): _GROUP_NORM,
        (0, 14): "gamma beta num_groups num_channels epsilon affine",
    },
    "Gru": {
        (0, 13): _GRU,
        (0, 17): f"{_GRU} reset_after",
        (0, 21): f"{_GRU} reset_after gate_activation hidden_activation clip",
    },
    "HuberLoss": {(0, 13): "delta lin_bias _backend", (0, 14): None},
    "InstanceNorm": {
        (0, 13): {"group_norm": _GROUP_NORM},
        (0, 14): "gamma beta num_channels epsilon affine",
    },
    "LayerNorm": {(0, 13): "gamma beta! epsilon", (0, 20): "gamma beta epsilon"},
    "LeakyRelu": {(0, 13): "negative_slope phantom", (0, 14): None},
    "Lstm": {
        (0, 13): _LSTM,
        (0, 20): f"{_LSTM} batch_first reverse clip input_forget "
        "gate_activation cell_activation hidden_activation",
    },
    "MultiHeadAttention": {
        (0, 13): f"{_MHA} n_heads d_k min_float quiet_softmax",
        (0, 14): f"{_MHA} d_model n_heads d_k min_float quiet_softmax",
    },
    "PRelu": {(0, 13): "alpha", (0, 14): "alpha alpha_value"},
    "PositionWiseFeedForward": {
        (0, 13): "linear_inner linear_outer dropout gelu",
        (0, 21): "linear_inner linear_outer dropout activation-",
    },
    "PositionalEncoding": {
        (0, 13): "sinusoids",
        (0, 14): "sinusoids max_sequence_size max_timescale",
    },
    "RotaryEncoding": {
        (0, 13): "freq_complex",
        (0, 14): "freq_complex max_sequence_length theta",
        (0, 18): "freq_complex theta start_offset",
    },
    "TransformerDecoder": {
        (0, 13): "layers",
        (0, 14): "layers d_model d_ff n_heads n_layers dropout norm_first "
        "quiet_softmax",
    },
    "TransformerEncoder": {
        (0, 13): "layers",
        (0, 14): "layers d_model d_ff n_heads n_layers dropout norm_first "
        "quiet_softmax",
    },
}

_ACTIVATIONS_0_20 = (
    "Gelu PRelu Relu LeakyRelu SwiGlu Sigmoid Tanh HardSigmoid HardSwish Softplus"
)
_ACTIVATIONS_0_21 = (
    "Gelu PRelu Relu LeakyRelu SwiGlu Selu Sigmoid Tanh HardSigmoid HardSwish Softplus "
    "Softsign Elu Celu ThresholdedRelu HardShrink SoftShrink Shrink"
)
#: The variants of Burn's own enums in their order; ours that Burn lacks come after.
VARIANTS: dict[str, dict[Release, str]] = {
    "Activation": {(0, 19): _ACTIVATIONS_0_20, (0, 21): _ACTIVATIONS_0_21},
    "Normalization": {(0, 19): "Batch Group Instance Layer Rms"},
}


class OldValue(NamedTuple):
    """What a layer computes in releases that lack a field: as with this value."""

    field: str
    value: object
    until: Release


OLD_VALUES = {"Gru": OldValue("reset_after", False, (0, 17))}


class Field(NamedTuple):
    """A field of a record: its name, and what differs from ours."""

    name: str
    always: bool = False  # Burn has no option here
    constant: bool = False  # nothing is stored here, whatever ours holds
    inside: tuple[Field, ...] = ()  # the layer's own fields, one part down


def fields_of(cls: type, release: Release) -> tuple[Field, ...] | None:
    """The fields that the record of this layer has in a release.

    None if they are those of the class; () if the whole layer is a constant there.
    """
    history = FIELDS.get(cls.__name__) if _is_ours(cls) else None
    if history is None or not release:
        return None
    found = _at(history, release)
    if isinstance(found, dict):
        return tuple(Field(k, inside=_read(text)) for k, text in found.items())
    return () if found is None else _read(found)


def variants_of(names: list[str], release: Release) -> list[str]:
    """The variants of an enum in their order; `names` are ours.

    Why by the names: an annotation does not know what its union is called.
    """
    for enum in VARIANTS.values():
        known = set(" ".join(enum.values()).split())
        if release and len(names) > 3 and known <= set(names):
            first = _at(enum, release).split()
            return first + [name for name in names if name not in first]
    return names


def unwrapped(cls: type, record: dict[str, Any]) -> dict[str, Any]:
    """The record of a layer whose fields an older release kept one part down."""
    if _is_ours(cls) and len(record) == 1:
        for fields in FIELDS.get(cls.__name__, {}).values():
            if isinstance(fields, dict) and fields.keys() == record.keys():
                (inner,) = record.values()
                return inner if isinstance(inner, dict) else record
    return record


def changed_since(module: object, release: Release) -> OldValue | None:
    """What the layer computes otherwise than that release did, if it does."""
    old = OLD_VALUES.get(type(module).__name__)
    if old is None or not _is_ours(type(module)) or not () < release < old.until:
        return None
    return old if getattr(module, old.field) != old.value else None


def _at(history: dict[Release, Any], release: Release) -> Any:
    """What holds in a release; before the first, what held first."""
    past = [since for since in history if since <= release]
    return history[max(past) if past else min(history)]


def _read(text: str) -> tuple[Field, ...]:
    return tuple(
        Field(name.rstrip("!-"), always=name[-1] == "!", constant=name[-1] == "-")
        for name in text.split()
    )


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("burnbook.nn.")
