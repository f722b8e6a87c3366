"""Layers and losses: made from Burn's config, with Burn's parameters, and run."""

import inspect
import json
from collections.abc import Callable
from typing import Any

from burnbook import nn
from burnbook.backend import Autodiff
from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.module import Param
from burnbook.tensor import Tensor, TensorData
from tests.oracle.burn.cases import Case, array_of, tensors

WAYS = ("Training", "Cache", "Cross", "NoReduction")  # what the name of a case adds


def name_of(case: Case) -> str:
    """The layer that a case is about: BatchNorm of BatchNormTraining."""
    name = case.op
    for way in WAYS:
        name = name.replace(way, "") if not hasattr(nn, name) else name
    return name


def config_of(name: str, fields: dict[str, Any]) -> Config:
    """Burn's config; its Gru applies the reset gate before the matrix product."""
    made = getattr(nn, f"{name}Config").from_json(json.dumps(fields))
    return made.with_reset_after(False) if name == "Gru" else made


def init(config: Any, device: Backend, *more: Any) -> Any:
    """The layer of a config, which may need no device."""
    wanted = inspect.signature(config.init).parameters
    return config.init(device, *more) if "device" in wanted else config.init()


def layer(case: Case, device: Backend) -> Any:
    """The layer of a case with its parameters."""
    assert case.config is not None
    rank = [case.args["dims"]] if "dims" in case.args else []  # of a BatchNorm
    made = init(config_of(name_of(case), case.config), device, *rank)
    return made.load_record(record_of(case)) if case.params else made


def record_of(case: Case) -> dict[str, Any]:
    """The parameters as a record: names in names."""
    record: dict[str, Any] = {}
    for one in case.params or ():
        *path, last = one["name"].split(".")
        place = record
        for part in path:
            place = place.setdefault(part, {})
        place[last] = TensorData(array_of(one), dtype=one["dtype"])
    return record


def params_in_order(made: Any, case: Case) -> list[Tensor]:
    """The values of the parameters, in the order of the case."""
    named: dict[str, Param] = dict(made.named_params())
    return [named[one["name"]].val() for one in case.params or ()]


def run_layer(case: Case, found: dict[str, Tensor], made: Any) -> Any:
    """The outputs of the layer."""
    row = WAYS_TO_RUN.get(case.op)
    if row:
        return row(case, found, made)
    if case.group == "loss" or "reduction" in case.args:
        return made.forward(found["x"], found["y"], *_reduction(case))
    return made.forward(*found.values())


def _reduction(case: Case) -> list[nn.Reduction]:
    named = case.args.get("reduction")
    return [] if named is None else [getattr(nn.Reduction, named)]


def _causal(n: int, device: Backend) -> Tensor:
    return nn.generate_autoregressive_mask(1, n, device)


def _parts(x: Tensor) -> list[Tensor]:
    """x[:, :1], x[:, :2], …"""
    return [x.slice([(0, 1), (0, n)]) for n in range(1, x.dims()[1] + 1)]


def _attention(case: Case, found: dict[str, Tensor], made: Any) -> Any:
    x, memory = found["x"], found.get("memory")
    given = nn.MhaInput.self_attn(x)
    if memory is not None or "key" in found:
        key = found.get("key", memory)
        given = nn.MhaInput.new(x, key, found.get("value", key))
    for mask in ("mask_pad", "mask_attn"):
        if mask in found:
            given = getattr(given, mask)(found[mask])
    if case.args.get("causal") and "mask_attn" not in found:
        b, n = x.dims()[:2]
        given = given.mask_attn(nn.generate_autoregressive_mask(b, n, x.device()))
    out = made.forward(given)
    return out.context if case.tracked is not None else (out.weights, out.context)


def _attention_cache(case: Case, found: dict[str, Tensor], made: Any) -> Any:
    cross = "memory" in found
    caches = nn.MhaCache
    cache = (
        caches.autoregressive_cross_attention() if cross else caches.autoregressive()
    )
    outputs: list[Tensor] = []
    for part in _parts(found["x"]):
        given = nn.MhaInput.self_attn(part)
        if cross:
            given = nn.MhaInput.new(part, found["memory"], found["memory"])
        else:
            given = given.mask_attn(_causal(part.dims()[1], part.device()))
        out = made.forward_cache(given, cache)
        outputs += [out.weights, out.context]
    return outputs


def _encoder(case: Case, found: dict[str, Tensor], made: Any) -> Any:
    given = nn.TransformerEncoderInput.new(found["x"])
    return made.forward(_masked(case, given, found, "mask_attn"))


def _decoder(case: Case, found: dict[str, Tensor], made: Any) -> Any:
    given = nn.TransformerDecoderInput.new(found["x"], found["memory"])
    return made.forward(_masked(case, given, found, "target_mask_attn"))


def _masked(case: Case, given: Any, found: dict[str, Tensor], causal: str) -> Any:
    for name, tensor in found.items():
        if "mask" in name:
            given = getattr(given, name)(tensor)
    if case.args.get("causal"):
        b, n = found["x"].dims()[:2]
        mask = nn.generate_autoregressive_mask(b, n, found["x"].device())
        given = getattr(given, causal)(mask)
    return given


def _encoder_cache(case: Case, found: dict[str, Tensor], made: Any) -> Any:
    cache = made.new_autoregressive_cache()
    outputs = []
    for part in _parts(found["x"]):
        mask = _causal(part.dims()[1], part.device())
        given = nn.TransformerEncoderInput.new(part).mask_attn(mask)
        outputs.append(made.forward_autoregressive_inference(given, cache))
    return outputs


def _decoder_cache(case: Case, found: dict[str, Tensor], made: Any) -> Any:
    cache = made.new_autoregressive_cache()
    outputs = []
    for part in _parts(found["x"]):
        mask = _causal(part.dims()[1], part.device())
        given = nn.TransformerDecoderInput.new(part, found["memory"])
        given = given.target_mask_attn(mask)
        outputs.append(made.forward_autoregressive_inference(given, cache))
    return outputs


def _lstm(case: Case, found: dict[str, Tensor], made: Any) -> Any:
    state = nn.LstmState(found["cell"], found["hidden"]) if "cell" in found else None
    output, last = made.forward(found["x"], state)
    return output, last.cell, last.hidden


def _gru(case: Case, found: dict[str, Tensor], made: Any) -> Any:
    """Burn 0.15's Gru takes a state for every step, [b, s, h], and uses them all."""
    state = found.get("state")
    if state is not None and state.dims()[1] == 1:  # one step: the state is its own
        state = state.squeeze(1)
    return made.forward(found["x"], state)


def _train_norm(case: Case, found: dict[str, Tensor], made: Any) -> Any:
    """Two training steps, what they leave behind, and an inference."""
    ad = Autodiff(found["x"].device())
    norm = init(config_of("BatchNorm", case.config or {}), ad, case.args["dims"])
    first, second = (
        norm.forward(Tensor.from_inner(found[name], ad)).inner() for name in "xy"
    )
    valid = norm.valid()
    mean, var = valid.running_mean.val(), valid.running_var.val()
    return first, second, mean, var, valid.forward(found["x"])


def _rotary(case: Case, found: dict[str, Tensor], made: Any) -> Any:
    if "start" in case.args:
        return made.apply(found["x"], case.args["start"])
    return made.forward(found["x"])


def _no_config(case: Case, device: Backend) -> Any:
    """A layer without settings: Relu()."""
    (x,) = tensors(case.inputs, device).values()
    return getattr(nn, case.op)().forward(x)


def _mse(case: Case, device: Backend) -> Any:
    x, y = tensors(case.inputs, device).values()
    if case.op == "MseLossNoReduction":
        return nn.MseLoss().forward_no_reduction(x, y)
    return nn.MseLoss().forward(x, y, *_reduction(case))


def _huber_each(case: Case, found: dict[str, Tensor], made: Any) -> Any:
    return made.forward_no_reduction(found["x"], found["y"])


def _padding(case: Case, device: Backend) -> Any:
    a = case.args
    made = nn.generate_padding_mask(
        a["pad_token"], a["tokens_list"], a["max_seq_length"], device
    )
    return made.tensor, made.mask


def _deform(case: Case, found: dict[str, Tensor], made: Any) -> Any:
    return made.forward(found["x"], found["offset"], found.get("mask"))


#: Layers whose call is more than forward(x).
WAYS_TO_RUN: dict[str, Callable[[Case, dict[str, Tensor], Any], Any]] = {
    "MultiHeadAttention": _attention,
    "MultiHeadAttentionCache": _attention_cache,
    "MultiHeadAttentionCrossCache": _attention_cache,
    "TransformerEncoder": _encoder,
    "TransformerDecoder": _decoder,
    "TransformerEncoderCache": _encoder_cache,
    "TransformerDecoderCache": _decoder_cache,
    "Lstm": _lstm,
    "BiLstm": _lstm,
    "Gru": _gru,
    "BatchNormTraining": _train_norm,
    "RotaryEncoding": _rotary,
    "HuberLossNoReduction": _huber_each,
    "DeformConv2d": _deform,
}

#: Layers and functions of layers without a config.
LAYERS: dict[str, Callable[[Case, Backend], Any]] = {
    **dict.fromkeys(["layer/Relu", "layer/Sigmoid", "layer/Tanh"], _no_config),
    **dict.fromkeys(["layer/Gelu", "layer/LogSigmoid"], _no_config),
    "loss/MseLoss": _mse,
    "loss/MseLossNoReduction": _mse,
    "loss/CrossEntropyLossNew": lambda case, device: nn.CrossEntropyLoss.new(
        case.args["pad_index"], device
    ).forward(*tensors(case.inputs, device).values()),
    "generate_padding_mask": _padding,
    "generate_autoregressive_mask": lambda case, device: (
        nn.generate_autoregressive_mask(*case.in_order(case.values()), device)
    ),
    "generate_sinusoids": lambda case, device: nn.generate_sinusoids(
        *case.in_order(case.values()), device
    ),
}
