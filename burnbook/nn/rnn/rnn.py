"""Rnn and BiRnn: a hidden state computed from the input and the last state."""

from collections.abc import Sequence
from dataclasses import dataclass

from burnbook.backend.base import Backend
from burnbook.core.held_tensors import holds_tensors
from burnbook.module import Module
from burnbook.nn.activation import Activation, ActivationConfig, Tanh
from burnbook.nn.initializer import Initializer
from burnbook.nn.rnn.gate_controller import GateController
from burnbook.nn.rnn.joined import joined
from burnbook.nn.rnn.shared import (
    XAVIER,
    RecurrentConfig,
    batch_major,
    both_ways,
    build_both,
    build_gated,
    check,
    check_state,
    last,
    read_both,
    shown_of,
    step_by_step,
    zeros_for,
)
from burnbook.ops.linear import linear
from burnbook.ops.rnn import rnn
from burnbook.tensor import Tensor, apply


@dataclass(frozen=True)
class RnnState:
    """The hidden state of an Rnn.

    Shapes: hidden [b, d_hidden]; of a BiRnn [2, b, d_hidden], forward first.
    """

    hidden: Tensor


class RnnConfig(RecurrentConfig):
    """How to make an Rnn.

    d_input: size of the last dim of the input, at least 1.
    d_hidden: size of the hidden state, at least 1.
    bias: whether the linear layers have biases.
    initializer: how weights and biases are drawn (default XavierNormal with gain 1).
        For other biases: `initializer.with_bias(Initializer.Zeros)`.
    batch_first: whether x is [b, s, d_input] instead of [s, b, d_input] (default True).
    reverse: whether to read from the last step to the first (default False).
    clip: bound of the hidden state at every step, ± clip, at least 0;
        None, the default: no bound.
    hidden_activation: activation of the hidden state (default Tanh).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> RnnConfig(2, 3, True).init(Numpy())
        Rnn {d_input: 2, d_hidden: 3, bias: true, params: 21}
    """

    initializer: Initializer = XAVIER
    batch_first: bool = True
    reverse: bool = False
    clip: float | None = None
    hidden_activation: ActivationConfig = ActivationConfig.Tanh

    def init(self, device: Backend) -> "Rnn":
        """The layer on a device; its numbers are drawn at the first use."""
        return build_gated(Rnn, self, ["gate"], device)


class Rnn(Module):
    """A plain (Elman) recurrent layer: h = tanh(x W + b + h U + b′).

    Shapes: x [b, s, d_input], state [b, d_hidden] -> [b, s, d_hidden], state
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> layer = RnnConfig(2, 3, True).init(Numpy())
        >>> output, state = layer.forward(Tensor.ones([4, 5, 2], Numpy()))
        >>> output.shape, state.hidden.shape
        ((4, 5, 3), (4, 3))

    Source: Elman, "Finding structure in time", 1990.
    """

    gate: GateController
    d_hidden: int
    batch_first: bool
    reverse: bool
    clip: float | None
    hidden_activation: Activation
    shown = shown_of("gate")

    def forward(
        self, input: Tensor, state: RnnState | None = None
    ) -> tuple[Tensor, RnnState]:
        """The hidden state after every step [b, s, d_hidden], and the last one."""
        check_state(state, RnnState)
        x = batch_major(input, self.batch_first)
        output = self.carry(x, None if state is None else state.hidden, self.reverse)
        end = RnnState(last(output, self.reverse))
        return batch_major(output, self.batch_first), end

    def carry(self, x: Tensor, hidden: Tensor | None, reverse: bool) -> Tensor:
        """`forward` of x [b, s, d_input] in the given direction. -> [b, s, d_hidden]"""
        given = (x, *joined(self, [self.gate], add_biases=True)[:3], hidden)
        if self.clip is None and type(self.hidden_activation) is Tanh:
            return apply(rnn, *given, reverse=reverse)
        check(rnn, *given)
        x, weight, recurrent, bias, hidden = given

        def step(z: Tensor, h: Tensor) -> tuple[Tensor]:
            h = self.hidden_activation.forward(z + h @ recurrent)
            return (h if self.clip is None else h.clamp(-self.clip, self.clip),)

        start = zeros_for(hidden, x, self.d_hidden)
        return step_by_step(step, apply(linear, x, weight, bias), (start,), reverse)[0]


class BiRnnConfig(RecurrentConfig):
    """How to make a BiRnn; the fields are those of RnnConfig.

    d_input: size of the last dim of the input, at least 1.
    d_hidden: size of the hidden state, at least 1.
    bias: whether the linear layers have biases.
    initializer: how weights and biases are drawn (default XavierNormal with gain 1).
        For other biases: `initializer.with_bias(Initializer.Zeros)`.
    batch_first: whether x is [b, s, d_input] instead of [s, b, d_input] (default True).
    clip: bound of the hidden state at every step, ± clip, at least 0;
        None, the default: no bound.
    hidden_activation: activation of the hidden state (default Tanh).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> BiRnnConfig(2, 3, True).init(Numpy())
        BiRnn {d_input: 2, d_hidden: 3, bias: true, params: 42}
    """

    initializer: Initializer = XAVIER
    batch_first: bool = True
    clip: float | None = None
    hidden_activation: ActivationConfig = ActivationConfig.Tanh

    def init(self, device: Backend) -> "BiRnn":
        """The layer on a device; its numbers are drawn at the first use."""
        return build_both(BiRnn, RnnConfig, self, device)


class BiRnn(Module):
    """A bidirectional Rnn: out = [→h, ←h] at every step.

    Shapes: x [b, s, d_input], state [2, b, d_hidden] -> [b, s, 2 · d_hidden], state
    Why: the field is `forward_` because a method has the plain name; in records and
    paths it is `forward`, as in Burn.
    Source: Schuster, Paliwal, "Bidirectional recurrent neural networks", 1997.
    """

    forward_: Rnn
    reverse: Rnn
    d_hidden: int
    batch_first: bool
    shown = shown_of("forward_.gate")

    def forward(
        self, input: Tensor, state: RnnState | None = None
    ) -> tuple[Tensor, RnnState]:
        """Both outputs at every step, and the last state of each direction.

        Raises:
            KindError: the state is no RnnState.
            ShapeError: the state is not [2, b, d_hidden].
        """
        check_state(state, RnnState)
        x = batch_major(input, self.batch_first)
        starts: Sequence[Tensor | None] = (None, None)
        if state is not None:
            starts = both_ways(self.d_hidden, "hidden", state.hidden, x)
        output, ends = read_both((self.forward_, self.reverse), x, starts)
        return batch_major(output, self.batch_first), RnnState(ends)


holds_tensors(RnnState)
