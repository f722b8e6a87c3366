"""What all recurrent layers do alike.

Burn keeps two Linear layers for each gate. The ops take the weights of all gates as one
matrix, so they are concatenated when the layer runs (see joined.py); records and
optimizers see the layers of the gates.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.errors import KindError, ShapeError
from burnbook.core.held_tensors import facts_of_tensors
from burnbook.core.op import Op
from burnbook.module import Module
from burnbook.module.display import Shown
from burnbook.nn.activation import ActivationConfig
from burnbook.nn.initializer import Initializer
from burnbook.nn.rnn.gate_controller import GateController
from burnbook.nn.shared import at_least, build
from burnbook.tensor import Tensor
from burnbook.tensor.methods import facts

#: What recurrent layers use unless told otherwise.
XAVIER = Initializer.XavierNormal(gain=1.0)

#: How a layer reads its input unless told otherwise.
PLAIN = (("batch_first", True), ("reverse", False), ("clip", None))

M = TypeVar("M", bound=Module)


class RecurrentConfig(Config):
    """The fields that the config of any recurrent layer begins with.

    d_input: size of the last dim of the input, at least 1.
    d_hidden: size of the hidden state, at least 1.
    bias: whether the linear layers of the gates have biases.
    """

    d_input: int
    d_hidden: int
    bias: bool

    def validate(self) -> None:
        """Refuse layers without inputs or state, and a clip below zero."""
        at_least(self, 1, "d_input", "d_hidden")
        at_least(self, 0, "clip")


def build_gated(
    made: type[M], config: Any, gates: Sequence[str], device: Backend, **others: None
) -> M:
    """A layer on a device, with new gates, and with activations as its config says.

    others: the gates that it does without.
    """
    sizes = (config.d_input, config.d_hidden, config.bias, config.initializer)
    parts: dict[str, Module | None] = {**others}
    parts |= {g: GateController.new(*sizes, device) for g in gates}
    for field in fields(config):
        held = getattr(config, field.name)
        if isinstance(held, ActivationConfig):
            parts[field.name] = held.init(device)
    return build(made, config, **parts)


def build_both(made: type[M], one: type[Config], config: Config, device: Backend) -> M:
    """A bidirectional layer of two layers of the config `one`, with batch_first."""
    single: Any = build(one, config, batch_first=True)
    layers = {"forward_": single.init(device), "reverse": single.init(device)}
    return build(made, config, **layers)


def batch_major(tensor: Tensor, batch_first: bool) -> Tensor:
    """Swap [s, b, n] and [b, s, n], unless the batch is the first dim anyway."""
    return tensor if batch_first or tensor.rank < 2 else tensor.swap_dims(0, 1)


def last(output: Tensor, reverse: bool) -> Tensor:
    """The state after the last step. [b, s, n] -> [b, n]"""
    b, s, n = output.dims()
    if s > 1:
        output = output.narrow(1, 0 if reverse else s - 1, 1)
    return output.reshape([b, n])


def zeros_for(held: Tensor | None, x: Tensor, size: int) -> Tensor:
    """A state, or zeros where none is given. [b, n]"""
    return Tensor.zeros([x.dims()[0], size], x.device()) if held is None else held


def step_by_step(
    step: Callable[..., tuple[Tensor, ...]],
    inputs: Tensor,
    state: tuple[Tensor, ...],
    reverse: bool,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run a recurrence by tensor ops: state = step(z, *state) for every step z.

    Returns the first part of the state at every step, and the last state.
    Shapes: inputs [b, s, n], state [b, d_hidden] -> [b, s, d_hidden], state
    """
    b, s, n = inputs.dims()
    outputs: list[Any] = [None] * s
    for t in reversed(range(s)) if reverse else range(s):
        state = step(inputs.narrow(1, t, 1).reshape([b, n]), *state)
        outputs[t] = state[0].unsqueeze_dim(1)
    return Tensor.cat(outputs, 1), state


def check(op: Op, *tensors: Tensor | None) -> None:
    """Raise the ShapeError that an op would raise, where a layer does without it."""
    shapes = [None if t is None else t.dims() for t in tensors]
    wrong = op.check and op.check(dict(zip(op.inputs, shapes, strict=True)))
    if wrong:
        raise ShapeError(op.name, wrong, facts(op, tensors))


def check_state(state: object, kind: type) -> None:
    """Refuse a state of another kind; there may be none."""
    if not (state is None or isinstance(state, kind)):
        what = f"state is {type(state).__name__}, not {kind.__name__}"
        parts = ", ".join(field.name for field in fields(kind))
        cure, facts = f"{kind.__name__}({parts})", facts_of_tensors(state)
        if isinstance(state, (tuple, list)) and len(facts) == 2 == len(fields(kind)):
            facts.append(("order", "(hidden, cell), as PyTorch has it"))
            cure = f"{kind.__name__}(cell=state[1], hidden=state[0])"
        raise KindError("forward", what, facts, cure)


def both_ways(size: int, name: str, state: Tensor, x: Tensor) -> list[Tensor]:
    """The state of each direction, from one with both. [2, b, n] -> two of [b, n]"""
    shape = (2, x.dims()[0], size)
    if state.dims() != shape:
        what = f"{name} must have shape {list(shape)}, not {list(state.dims())}"
        rows = [(n, f"Float {list(t.dims())}") for n, t in (("x", x), (name, state))]
        cure = "Tensor.stack([of_forward, of_reverse], 0)"
        raise ShapeError("forward", what, rows, cure)
    return [state.narrow(0, i, 1).squeeze(0) for i in range(2)]


def read_both(
    layers: tuple["Carrying", "Carrying"], x: Tensor, starts: Sequence[Tensor | None]
) -> tuple[Tensor, Tensor]:
    """Run one layer forward and another in reverse, each from its own state.

    Shapes: x [b, s, n] -> outputs [b, s, 2 · d_hidden], last states [2, b, d_hidden]
    """
    there = layers[0].carry(x, starts[0], False)
    back = layers[1].carry(x, starts[1], True)
    ends = Tensor.stack([last(there, False), last(back, True)], 0)
    return Tensor.cat([there, back], 2), ends


class Carrying(Protocol):
    """A recurrent layer whose state is its output."""

    def carry(self, x: Tensor, state: Tensor | None, reverse: bool, /) -> Tensor:
        """The state after every step. [b, s, d_input] -> [b, s, d_hidden]"""
        ...


def shown_of(gate: str) -> Shown:
    """What a recurrent layer shows; gate: where one of its gates is."""
    linear = attrgetter(f"{gate}.input_transform")
    return (
        ("d_input", lambda layer: linear(layer).weight.shape[0]),
        "d_hidden",
        ("bias", lambda layer: linear(layer).bias is not None),
    )
