"""Layers of PyTorch with the weights of ours, to compare what they compute."""

import numpy as np

from tests.torch.shared import torch

NAMES = {"gamma": "weight", "beta": "bias", "alpha": "weight"}
GATES = {
    "LSTM": ("input", "forget", "cell", "output"),
    "GRU": ("reset", "update", "new"),
    "RNN": ("",),
}


def copy_into(theirs, ours):
    """PyTorch's layer with the weights of ours; layers without any stay as they are."""
    name = type(theirs).__name__
    with torch.no_grad():
        if name in GATES:
            sides = [(ours, "")]
            if theirs.bidirectional:
                sides = [(ours.forward_, ""), (ours.reverse, "_reverse")]
            for layer, suffix in sides:
                _copy_gates(theirs, layer, GATES[name], suffix)
        elif name == "MultiheadAttention":
            _copy_attention(theirs, ours)
        else:
            for path, param in ours.named_params():
                wanted = getattr(theirs, NAMES.get(path, path))
                value = _torch(param)
                wanted.copy_(value.T if name == "Linear" and value.ndim == 2 else value)
    return theirs


def _torch(param):
    return torch.from_numpy(np.array(param.val()))


def _copy_gates(theirs, layer, gates, suffix):
    for part, short in (("input", "ih"), ("hidden", "hh")):
        for sort in ("weight", "bias"):
            rows = getattr(theirs, f"{sort}_{short}_l0{suffix}")
            size = len(rows) // len(gates)
            for i, name in enumerate(gates):
                gate = getattr(layer, f"{name}_gate".strip("_"))
                value = _torch(getattr(getattr(gate, f"{part}_transform"), sort))
                rows[i * size : (i + 1) * size].copy_(
                    value.mT if value.ndim == 2 else value
                )


def _copy_attention(theirs, ours):
    parts = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.copy_(torch.cat([_torch(part.weight).T for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([_torch(part.bias) for part in parts]))
    copy_into(theirs.out_proj, _Linear(ours.output))


class _Linear:
    """PyTorch's output layer is of a class of its own."""

    def __init__(self, layer):
        self.layer = layer

    def named_params(self):
        return [("weight", _Turned(self.layer.weight)), ("bias", self.layer.bias)]


class _Turned:
    def __init__(self, param):
        self.param = param

    def val(self):
        return self.param.val().transpose()
