"""BiLstm: one Lstm in forward direction, another one in reverse."""

from burnbook.backend.base import Backend
from burnbook.module import Module
from burnbook.nn.activation import ActivationConfig
from burnbook.nn.initializer import Initializer
from burnbook.nn.rnn.lstm import Lstm, LstmConfig, LstmState
from burnbook.nn.rnn.shared import (
    XAVIER,
    RecurrentConfig,
    batch_major,
    both_ways,
    build_both,
    check_state,
    shown_of,
)
from burnbook.tensor import Tensor


class BiLstmConfig(RecurrentConfig):
    """How to make a BiLstm; the fields are those of LstmConfig.

    d_input: size of the last dim of the input, at least 1.
    d_hidden: size of the hidden state, at least 1.
    bias: whether the linear layers of the gates have biases.
    initializer: how weights and biases are drawn (default XavierNormal with gain 1).
        For other biases: `initializer.with_bias(Initializer.Zeros)`.
    batch_first: whether x is [b, s, d_input] instead of [s, b, d_input] (default True).
    clip: bound of the cell state at every step, ± clip, at least 0; None, the default:
        no bound.
    input_forget: whether input and forget gate are coupled, f = 1 − i; then there is no
        forget gate (default False).
    gate_activation: activation of the gates (default Sigmoid).
    cell_activation: activation of the candidate that is added to the cell state
        (default Tanh).
    hidden_activation: activation of the cell state on its way to the hidden state
        (default Tanh).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> BiLstmConfig(2, 3, True).init(Numpy())
        BiLstm {d_input: 2, d_hidden: 3, bias: true, params: 168}
    """

    newer = (
        "batch_first",
        "clip",
        "input_forget",
        "gate_activation",
        "cell_activation",
        "hidden_activation",
    )

    initializer: Initializer = XAVIER
    batch_first: bool = True
    clip: float | None = None
    input_forget: bool = False
    gate_activation: ActivationConfig = ActivationConfig.Sigmoid
    cell_activation: ActivationConfig = ActivationConfig.Tanh
    hidden_activation: ActivationConfig = ActivationConfig.Tanh

    def init(self, device: Backend) -> "BiLstm":
        """The layer on a device; its numbers are drawn at the first use."""
        return build_both(BiLstm, LstmConfig, self, device)


class BiLstm(Module):
    """A bidirectional Lstm: out = [→h, ←h] at every step.

    Shapes: x [b, s, d_input], state [2, b, d_hidden] -> [b, s, 2 · d_hidden], state
    Why: the field is `forward_` because a method has the plain name; in records and
    paths it is `forward`, as in Burn.
    Source: Graves, Schmidhuber, "Framewise phoneme classification with bidirectional
    LSTM", 2005.
    """

    forward_: Lstm
    reverse: Lstm
    d_hidden: int
    batch_first: bool
    shown = shown_of("forward_.input_gate")
    newer_fields = (("batch_first", True),)

    def forward(
        self, input: Tensor, state: LstmState | None = None
    ) -> tuple[Tensor, LstmState]:
        """Both outputs at every step, and the last state of each direction.

        Raises:
            KindError: the state is no LstmState.
            ShapeError: cell or hidden is not [2, b, d_hidden].
        """
        check_state(state, LstmState)
        x = batch_major(input, self.batch_first)
        starts: list[LstmState | None] = [None, None]
        if state is not None:
            cells = both_ways(self.d_hidden, "cell", state.cell, x)
            hiddens = both_ways(self.d_hidden, "hidden", state.hidden, x)
            pairs = zip(cells, hiddens, strict=True)
            starts = [LstmState(*pair) for pair in pairs]
        there, end = self.forward_.carry(x, starts[0], reverse=False)
        back, start = self.reverse.carry(x, starts[1], reverse=True)
        output = batch_major(Tensor.cat([there, back], 2), self.batch_first)
        cells = Tensor.stack([end.cell, start.cell], 0)
        return output, LstmState(cells, Tensor.stack([end.hidden, start.hidden], 0))
