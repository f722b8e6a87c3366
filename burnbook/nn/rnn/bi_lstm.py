"""BiLstm: one Lstm reads forward, another one backward."""

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.errors import KindError
from burnbook.module import Module
from burnbook.nn.activation import ActivationConfig
from burnbook.nn.initializer import Initializer
from burnbook.nn.rnn.lstm import Lstm, LstmConfig, LstmState
from burnbook.nn.rnn.shared import XAVIER, batch_major, both_ways, check_sizes, sizes_of
from burnbook.tensor import Tensor


class BiLstmConfig(Config):
    """How to make a BiLstm; the fields are those of LstmConfig.

    d_input: size of the last dim of the input, at least 1.
    d_hidden: size of the hidden state, at least 1.
    bias: whether the linear layers of the gates have biases.
    initializer: how weights and biases are drawn (default XavierNormal with gain 1).
    batch_first: whether x is [b, s, d_input] instead of [s, b, d_input] (default True).
    clip: bound of the cell state at every step, ± clip, at least 0; None, the default:
        no bound.
    input_forget: whether input and forget gate are coupled, f = 1 − i (default False).
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

    d_input: int
    d_hidden: int
    bias: bool
    initializer: Initializer = XAVIER
    batch_first: bool = True
    clip: float | None = None
    input_forget: bool = False
    gate_activation: ActivationConfig = ActivationConfig.Sigmoid
    cell_activation: ActivationConfig = ActivationConfig.Tanh
    hidden_activation: ActivationConfig = ActivationConfig.Tanh

    def validate(self) -> None:
        """Refuse layers without inputs or state, and a clip below zero."""
        check_sizes(self)

    def init(self, device: Backend) -> "BiLstm":
        """The layer on a device; its numbers are drawn at the first use."""
        one = LstmConfig(
            self.d_input,
            self.d_hidden,
            self.bias,
            initializer=self.initializer,
            clip=self.clip,
            input_forget=self.input_forget,
            gate_activation=self.gate_activation,
            cell_activation=self.cell_activation,
            hidden_activation=self.hidden_activation,
        )
        pair = (one.init(device), one.init(device))
        return BiLstm(*pair, self.d_hidden, self.batch_first)


class BiLstm(Module):
    """Read sequences in both directions: out = [→h, ←h] at every step.

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
    shown = sizes_of("forward_.input_gate")

    def forward(
        self, input: Tensor, state: LstmState | None = None
    ) -> tuple[Tensor, LstmState]:
        """Both outputs at every step, and the last state of each direction."""
        x = batch_major(input, self.batch_first)
        starts: list[LstmState | None] = [None, None]
        if state is not None:
            if not isinstance(state, LstmState):
                what = f"state is {type(state).__name__}, not LstmState"
                raise KindError("forward", what, cure="LstmState(cell, hidden)")
            cells = both_ways(self.d_hidden, "cell", state.cell, x)
            hiddens = both_ways(self.d_hidden, "hidden", state.hidden, x)
            pairs = zip(cells, hiddens, strict=True)
            starts = [LstmState(*pair) for pair in pairs]
        there, end = self.forward_.carry(x, starts[0], reverse=False)
        back, start = self.reverse.carry(x, starts[1], reverse=True)
        output = batch_major(Tensor.cat([there, back], 2), self.batch_first)
        cells = Tensor.stack([end.cell, start.cell], 0)
        return output, LstmState(cells, Tensor.stack([end.hidden, start.hidden], 0))
