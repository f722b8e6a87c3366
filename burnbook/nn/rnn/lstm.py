"""Lstm: a cell state that input, forget and output gates control."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from burnbook.backend.base import Backend
from burnbook.core.errors import ConfigError
from burnbook.core.held_tensors import holds_tensors
from burnbook.module import Module
from burnbook.nn.activation import Activation, ActivationConfig, Sigmoid, Tanh
from burnbook.nn.initializer import Initializer
from burnbook.nn.rnn.gate_controller import GateController
from burnbook.nn.rnn.joined import joined
from burnbook.nn.rnn.shared import (
    PLAIN,
    XAVIER,
    RecurrentConfig,
    batch_major,
    build_gated,
    check,
    check_state,
    last,
    shown_of,
    step_by_step,
    zeros_for,
)
from burnbook.ops.linear import linear
from burnbook.ops.lstm import lstm
from burnbook.tensor import Tensor, apply


@dataclass(frozen=True)
class LstmState:
    """The cell state and the hidden state of an Lstm.

    Shapes: cell and hidden [b, d_hidden]; of a BiLstm [2, b, d_hidden], forward first.
    """

    cell: Tensor
    hidden: Tensor

    @classmethod
    def initial(cls, shape: Sequence[int], device: Backend) -> "LstmState":
        """The state before the first step: zeros of this shape."""
        zeros = Tensor.zeros(shape, device)
        return cls(zeros, zeros)

    def map_state(self, change: Callable[[Tensor], Tensor]) -> "LstmState":
        """The state with both parts changed: `state.map_state(Tensor.detach)`."""
        return LstmState(change(self.cell), change(self.hidden))

    def unpack(self) -> tuple[Tensor, Tensor]:
        """The cell state and the hidden state."""
        return self.cell, self.hidden


class LstmConfig(RecurrentConfig):
    """How to make an Lstm.

    d_input: size of the last dim of the input, at least 1.
    d_hidden: size of the hidden state, at least 1.
    bias: whether the linear layers of the gates have biases.
    initializer: how weights and biases are drawn (default XavierNormal with gain 1).
        For other biases: `initializer.with_bias(Initializer.Zeros)`.
    batch_first: whether x is [b, s, d_input] instead of [s, b, d_input] (default True).
    reverse: whether to read from the last step to the first (default False).
    clip: bound of the cell state at every step, ± clip, at least 0; None, the default:
        no bound.
    input_forget: whether input and forget gate are coupled, f = 1 − i; then there is no
        forget gate, and a quarter of the parameters less (default False).
    gate_activation: activation of the gates (default Sigmoid).
    cell_activation: activation of the candidate that is added to the cell state
        (default Tanh).
    hidden_activation: activation of the cell state on its way to the hidden state
        (default Tanh).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> LstmConfig(2, 3, True).init(Numpy())
        Lstm {d_input: 2, d_hidden: 3, bias: true, params: 84}
    """

    newer = (
        "batch_first",
        "reverse",
        "clip",
        "input_forget",
        "gate_activation",
        "cell_activation",
        "hidden_activation",
    )

    initializer: Initializer = XAVIER
    batch_first: bool = True
    reverse: bool = False
    clip: float | None = None
    input_forget: bool = False
    gate_activation: ActivationConfig = ActivationConfig.Sigmoid
    cell_activation: ActivationConfig = ActivationConfig.Tanh
    hidden_activation: ActivationConfig = ActivationConfig.Tanh

    def init(self, device: Backend) -> "Lstm":
        """The layer on a device; its numbers are drawn at the first use."""
        gates = ["input_gate", "forget_gate", "output_gate", "cell_gate"]
        if not self.input_forget:
            return build_gated(Lstm, self, gates, device)
        gates.remove("forget_gate")
        return build_gated(Lstm, self, gates, device, forget_gate=None)


class Lstm(Module):
    """A long short-term memory: c = f c + i g, h = o tanh(c).

    i, f, o = σ(x W + b + h U + b′) and g = tanh(…), each with weights of its own; with
    input_forget f = 1 − i. Records of older Burn have weights for that f, too: they are
    left out.

    Shapes: x [b, s, d_input], state [b, d_hidden] -> [b, s, d_hidden], state
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> layer = LstmConfig(2, 3, True).init(Numpy())
        >>> output, state = layer.forward(Tensor.ones([4, 5, 2], Numpy()))
        >>> output.shape, state.cell.shape
        ((4, 5, 3), (4, 3))

    Why: the cell state changes by addition, so gradients hardly vanish over many steps.
    Source: Hochreiter, Schmidhuber, "Long short-term memory", 1997.
    """

    input_gate: GateController
    forget_gate: GateController | None
    output_gate: GateController
    cell_gate: GateController
    d_hidden: int
    batch_first: bool
    reverse: bool
    clip: float | None
    input_forget: bool
    gate_activation: Activation
    cell_activation: Activation
    hidden_activation: Activation
    shown = shown_of("input_gate")
    passed_over = ("forget_gate",)
    newer_fields = (
        *PLAIN,
        ("input_forget", False),
        ("gate_activation", "Sigmoid"),
        ("cell_activation", "Tanh"),
        ("hidden_activation", "Tanh"),
    )

    def forward(
        self, input: Tensor, state: LstmState | None = None
    ) -> tuple[Tensor, LstmState]:
        """The hidden state after every step [b, s, d_hidden], and the last state.

        Raises:
            KindError: the state is no LstmState.
        """
        x = batch_major(input, self.batch_first)
        output, state = self.carry(x, state, self.reverse)
        return batch_major(output, self.batch_first), state

    def carry(
        self, x: Tensor, state: LstmState | None, reverse: bool
    ) -> tuple[Tensor, LstmState]:
        """`forward` of x [b, s, d_input] in the given direction."""
        check_state(state, LstmState)
        cell, hidden = (None, None) if state is None else state.unpack()
        forget = self.input_gate if self.input_forget else self.forget_gate
        if forget is None:
            what = "there is no forget gate, which only input_forget does without"
            cure = "LstmConfig(…).with_input_forget(True)"
            raise ConfigError("Lstm", what, cure=cure)
        gates = (self.input_gate, forget, self.output_gate, self.cell_gate)
        given = (x, *joined(self, gates, add_biases=True)[:3], cell, hidden)
        if not self._standard():
            return self._in_steps(given, reverse)
        rows = apply(lstm, *given, reverse=reverse)
        (b, s, _), n = x.dims(), self.d_hidden
        states, cells = rows.split_with_sizes([b * s, b], 0)
        output = states.reshape([b, s, n])
        return output, LstmState(cells, states if s == 1 else last(output, reverse))

    def _standard(self) -> bool:
        """Whether the op computes it: no clip, and the default activations."""
        return (
            self.clip is None
            and not self.input_forget
            and type(self.gate_activation) is Sigmoid
            and type(self.cell_activation) is Tanh
            and type(self.hidden_activation) is Tanh
        )

    def _in_steps(
        self, given: tuple[Any, ...], reverse: bool
    ) -> tuple[Tensor, LstmState]:
        """The same with any activations, step by step."""
        check(lstm, *given)
        x, weight, recurrent, bias, cell, hidden = given

        def step(z: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
            parts = (z + h @ recurrent).chunk(4, 1)
            i = self.gate_activation.forward(parts[0])
            o = self.gate_activation.forward(parts[2])
            keep = self.gate_activation.forward(parts[1])
            if self.input_forget:
                keep = 1.0 - i
            c = keep * c + i * self.cell_activation.forward(parts[3])
            if self.clip is not None:
                c = c.clamp(-self.clip, self.clip)
            return o * self.hidden_activation.forward(c), c

        states = [zeros_for(held, x, self.d_hidden) for held in (hidden, cell)]
        sums = apply(linear, x, weight, bias)
        output, (hidden, cell) = step_by_step(step, sums, tuple(states), reverse)
        return output, LstmState(cell, hidden)


holds_tensors(LstmState)
