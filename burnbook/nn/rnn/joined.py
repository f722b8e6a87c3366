"""The weights of all gates as one, for the ops; joined once for many steps.

A sampler or a decoder calls a layer with one step, again and again, and joining sixteen
parameters takes longer than the step. A module never changes, so what was joined is
remembered with it: on a plain device as long as the module lives, and where gradients
are wanted as long as a graph holds it. It is used again only where every parameter
still gives the very tensor that it was joined from.
"""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from burnbook.backend.autodiff import Autodiff, NoCheckpointing
from burnbook.backend.autodiff.shared_steps import SharedValue, share
from burnbook.backend.autodiff.tape import Tracked
from burnbook.backend.base import Backend
from burnbook.backend.numpy import Numpy
from burnbook.module import Module
from burnbook.module.reparameterization import Reparameterized
from burnbook.nn.linear import Linear
from burnbook.nn.rnn.gate_controller import GateController
from burnbook.tensor import Tensor

Parts = list[Tensor | None]  # for each linear layer its weight and its bias
Joined = tuple[Tensor, Tensor, Tensor | None, Tensor | None]
Kept = tuple[Tensor | SharedValue | None, ...]

_known: WeakKeyDictionary[Module, tuple[Parts, Kept]] = WeakKeyDictionary()
NO_CHECKPOINTING = NoCheckpointing()


def joined(
    layer: Module, gates: Sequence[GateController], add_biases: bool = False
) -> Joined:
    """Weight and recurrent weight of all gates along dim 1, and the two biases.

    add_biases: the first bias is the sum of both, and the second is None.
    """
    linears = [gate.input_transform for gate in gates]
    linears += [gate.hidden_transform for gate in gates]
    parts: Parts = []
    for linear in linears:
        bias = linear.bias
        parts += (linear.weight.val(), None if bias is None else bias.val())
    known = _known.get(layer)
    if known is not None and _is_plain(parts[0].backend):  # type: ignore[union-attr] # a weight
        for now, then in zip(parts, known[0], strict=False):
            if now is not then:
                break
        else:
            found = _again(known[1], parts[0])
            if found is not None:
                return found
    made = _join(parts, add_biases)
    kept = _to_keep(made, parts, linears)
    if kept is not None:
        _known[layer] = parts, kept
    return made


def _join(parts: Parts, add_biases: bool) -> Joined:
    half = len(parts) // 2
    of_input, of_state = parts[:half], parts[half:]
    weight, recurrent = (_side_by_side(p[::2], 1) for p in (of_input, of_state))
    biases = [_biases(p) for p in (of_input, of_state)]
    if add_biases:
        given = [bias for bias in biases if bias is not None]
        biases = [given[0] + given[1] if len(given) == 2 else [*given, None][0], None]
    return weight, recurrent, biases[0], biases[1]


def _side_by_side(tensors: Sequence[Any], dim: int) -> Tensor:
    return tensors[0] if len(tensors) == 1 else Tensor.cat(tensors, dim)


def _biases(parts: Parts) -> Tensor | None:
    """The biases of some linear layers, zeros where one has none; None if all do."""
    weights, biases = parts[::2], parts[1::2]
    if all(bias is None for bias in biases):
        return None
    rows = [
        Tensor.zeros([w.shape[1]], w.device())
        if bias is None and w is not None
        else bias
        for w, bias in zip(weights, biases, strict=True)
    ]
    return _side_by_side(rows, 0)


def _to_keep(made: Joined, parts: Parts, linears: list[Linear]) -> Kept | None:
    """What to remember of joined weights; None where they will not be met again."""
    given = [part for part in parts if part is not None]
    device = given[0].backend
    if not _is_plain(device) or any(
        type(part) is not Tensor or part.backend is not device for part in given
    ):
        return None
    params = [p for linear in linears for p in (linear.weight, linear.bias)]
    if any(isinstance(param, Reparameterized) for param in params):
        return None  # its value is another one every time
    kept: list[Tensor | SharedValue | None] = []
    inputs = [part.value for part in given]
    for tensor in made:
        if tensor is None or not isinstance(tensor.value, Tracked):
            kept.append(tensor)
            continue
        shared = share(tensor.value, inputs)
        if shared is None:
            return None
        kept.append(shared)
    return tuple(kept)


def _again(kept: Kept, like: Any) -> Any:
    """What was remembered, as tensors; None where a part of it is gone."""
    found: list[Tensor | None] = []
    for held in kept:
        if type(held) is SharedValue:
            value = held.again()
            if value is None:
                return None
            rank = len(value.shape)
            found.append(Tensor(value, like.kind, like.backend, rank))
        else:
            found.append(held)  # type: ignore[arg-type] # a tensor, or None
    return tuple(found)


def _is_plain(device: Backend) -> bool:
    """Whether nobody watches what runs on a device, nor computes it once more."""
    while type(device) is Autodiff:
        if device.checkpointing != NO_CHECKPOINTING or device.wants_places:
            return False
        device = device.inner
    return type(device) is Numpy and "run" not in vars(device)
