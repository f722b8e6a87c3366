"""Gru and BiGru: a hidden state that an update gate and a reset gate control."""

from collections.abc import Sequence
from typing import Any

from burnbook.backend.base import Backend
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
    both_ways,
    build_both,
    build_gated,
    check,
    read_both,
    shown_of,
    step_by_step,
    zeros_for,
)
from burnbook.ops.gru import gru
from burnbook.ops.linear import linear
from burnbook.tensor import Tensor, apply


class GruConfig(RecurrentConfig):
    """How to make a Gru.

    d_input: size of the last dim of the input, at least 1.
    d_hidden: size of the hidden state, at least 1.
    bias: whether the linear layers of the gates have biases.
    reset_after: whether the reset gate acts after the product with the state's weight,
        as in newer Burn and PyTorch, instead of before it, as in Burn 0.15
        (default True).
    initializer: how weights and biases are drawn (default XavierNormal with gain 1).
        For other biases: `initializer.with_bias(Initializer.Zeros)`.
    batch_first: whether x is [b, s, d_input] instead of [s, b, d_input] (default True).
    reverse: whether to read from the last step to the first (default False).
    gate_activation: activation of the gates (default Sigmoid).
    hidden_activation: activation of the candidate of the hidden state (default Tanh).
    clip: bound of the hidden state at every step, ± clip, at least 0;
        None, the default: no bound.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> GruConfig(2, 8, True).init(Numpy())
        Gru {d_input: 2, d_hidden: 8, bias: true, params: 288}
    """

    newer = ("batch_first", "reverse", "clip", "gate_activation", "hidden_activation")

    reset_after: bool = True
    initializer: Initializer = XAVIER
    batch_first: bool = True
    reverse: bool = False
    gate_activation: ActivationConfig = ActivationConfig.Sigmoid
    hidden_activation: ActivationConfig = ActivationConfig.Tanh
    clip: float | None = None

    def init(self, device: Backend) -> "Gru":
        """The layer on a device; its numbers are drawn at the first use."""
        gates = ["update_gate", "reset_gate", "new_gate"]
        return build_gated(Gru, self, gates, device)


class Gru(Module):
    """A gated recurrent unit: h = (1 − z) n + z h.

    z, r = σ(x W + b + h U + b′); n = tanh(x W + b + r (h U + b′)), or with reset_after
    False n = tanh(x W + b + (r h) U + b′); each with weights of its own.

    Shapes: x [b, s, d_input], state [b, d_hidden] -> [b, s, d_hidden]
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> layer = GruConfig(2, 3, True).init(Numpy())
        >>> layer.forward(Tensor.ones([4, 5, 2], Numpy())).shape
        (4, 5, 3)

    Why: every step uses the state of the step before. In Burn 0.15 every step uses the
    initial state instead, a mistake that newer Burn has corrected.
    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder",
    2014 (arXiv 1406.1078).
    """

    update_gate: GateController
    reset_gate: GateController
    new_gate: GateController
    d_hidden: int
    reset_after: bool
    batch_first: bool
    reverse: bool
    gate_activation: Activation
    hidden_activation: Activation
    clip: float | None
    shown = shown_of("update_gate")
    newer_fields = (
        ("reset_after", True),
        *PLAIN,
        ("gate_activation", "Sigmoid"),
        ("hidden_activation", "Tanh"),
    )

    def forward(self, input: Tensor, state: Tensor | None = None) -> Tensor:
        """The hidden state after every step; the last one continues the sequence."""
        x = batch_major(input, self.batch_first)
        return batch_major(self.carry(x, state, self.reverse), self.batch_first)

    def carry(self, x: Tensor, state: Tensor | None, reverse: bool) -> Tensor:
        """`forward` of x [b, s, d_input] in the given direction. -> [b, s, d_hidden]"""
        gates = (self.update_gate, self.reset_gate, self.new_gate)
        given = (x, *joined(self, gates), state)
        standard = (
            self.clip is None
            and type(self.gate_activation) is Sigmoid
            and type(self.hidden_activation) is Tanh
        )
        if not standard:
            return self._in_steps(given, reverse)
        return apply(gru, *given, reset_after=self.reset_after, reverse=reverse)

    def _in_steps(self, given: tuple[Any, ...], reverse: bool) -> Tensor:
        """The same with any activations, step by step."""
        check(gru, *given)
        x, weight, recurrent, bias, more, state = given
        n = self.d_hidden
        late = recurrent.narrow(1, 2 * n, n)
        late_bias = None if more is None else more.narrow(0, 2 * n, n)

        def step(sums: Tensor, h: Tensor) -> tuple[Tensor]:
            heads = apply(linear, h, recurrent, more)
            soft = (sums + heads).chunk(3, 1)
            z = self.gate_activation.forward(soft[0])
            r = self.gate_activation.forward(soft[1])
            if self.reset_after:
                inner = r * heads.narrow(1, 2 * n, n)
            else:
                inner = apply(linear, r * h, late, late_bias)
            new = self.hidden_activation.forward(sums.narrow(1, 2 * n, n) + inner)
            h = (1.0 - z) * new + z * h
            return (h if self.clip is None else h.clamp(-self.clip, self.clip),)

        sums, start = apply(linear, x, weight, bias), zeros_for(state, x, n)
        return step_by_step(step, sums, (start,), reverse)[0]


class BiGruConfig(RecurrentConfig):
    """How to make a BiGru; the fields are those of GruConfig.

    d_input: size of the last dim of the input, at least 1.
    d_hidden: size of the hidden state, at least 1.
    bias: whether the linear layers of the gates have biases.
    reset_after: whether the reset gate acts after the product with the state's weight,
        as in newer Burn and PyTorch, instead of before it, as in Burn 0.15
        (default True).
    initializer: how weights and biases are drawn (default XavierNormal with gain 1).
        For other biases: `initializer.with_bias(Initializer.Zeros)`.
    batch_first: whether x is [b, s, d_input] instead of [s, b, d_input] (default True).
    gate_activation: activation of the gates (default Sigmoid).
    hidden_activation: activation of the candidate of the hidden state (default Tanh).
    clip: bound of the hidden state at every step, ± clip, at least 0;
        None, the default: no bound.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> BiGruConfig(2, 8, True).init(Numpy())
        BiGru {d_input: 2, d_hidden: 8, bias: true, params: 576}
    """

    reset_after: bool = True
    initializer: Initializer = XAVIER
    batch_first: bool = True
    gate_activation: ActivationConfig = ActivationConfig.Sigmoid
    hidden_activation: ActivationConfig = ActivationConfig.Tanh
    clip: float | None = None

    def init(self, device: Backend) -> "BiGru":
        """The layer on a device; its numbers are drawn at the first use."""
        return build_both(BiGru, GruConfig, self, device)


class BiGru(Module):
    """A bidirectional Gru: out = [→h, ←h] at every step.

    Shapes: x [b, s, d_input], state [2, b, d_hidden] -> [b, s, 2 · d_hidden],
        [2, b, d_hidden]
    Why: the field is `forward_` because a method has the plain name; in records and
    paths it is `forward`, as in Burn.
    """

    forward_: Gru
    reverse: Gru
    d_hidden: int
    batch_first: bool
    shown = shown_of("forward_.update_gate")

    def forward(
        self, input: Tensor, state: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Both outputs at every step, and the last state of each direction.

        Raises:
            ShapeError: the state is not [2, b, d_hidden].
        """
        x = batch_major(input, self.batch_first)
        starts: Sequence[Tensor | None] = (None, None)
        if state is not None:
            starts = both_ways(self.d_hidden, "state", state, x)
        output, ends = read_both((self.forward_, self.reverse), x, starts)
        return batch_major(output, self.batch_first), ends
