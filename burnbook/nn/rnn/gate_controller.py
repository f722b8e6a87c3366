"""GateController: the linear layers of a gate, for the input and the hidden state."""

from burnbook.backend.base import Backend
from burnbook.module import Module
from burnbook.nn.initializer import Initializer
from burnbook.nn.linear import Linear, LinearConfig
from burnbook.tensor import Tensor


class GateController(Module):
    """The pre-activation of a gate of a recurrent layer: out = x W + b + h U + b′.

    Shapes: x [b, d_input], h [b, d_output] -> [b, d_output]
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> from burnbook.nn.initializer import KAIMING
        >>> GateController.new(2, 3, True, KAIMING, Numpy())
        GateController {
          input_transform: Linear {d_input: 2, d_output: 3, bias: true, params: 9}
          hidden_transform: Linear {d_input: 3, d_output: 3, bias: true, params: 12}
          params: 21
        }

    Why: both parts have a bias of their own, as in Burn and in PyTorch, though one
    would do; so records of either fit.
    """

    input_transform: Linear
    hidden_transform: Linear

    @classmethod
    def new(
        cls,
        d_input: int,
        d_output: int,
        bias: bool,
        initializer: Initializer,
        device: Backend,
    ) -> "GateController":
        """A gate on a device; its numbers are drawn at the first use."""
        first, second = (
            LinearConfig(size, d_output, bias=bias, initializer=initializer)
            for size in (d_input, d_output)
        )
        return cls(first.init(device), second.init(device))

    @classmethod
    def create_with_weights(
        cls, input_transform: Linear, hidden_transform: Linear
    ) -> "GateController":
        """A gate from two layers that exist."""
        return cls(input_transform, hidden_transform)

    def gate_product(self, input: Tensor, hidden: Tensor) -> Tensor:
        """The sum for one step. [b, d_input], [b, d_output] -> [b, d_output]"""
        return self.input_transform.forward(input) + self.hidden_transform.forward(
            hidden
        )

    def forward(self, input: Tensor, hidden: Tensor) -> Tensor:
        """The same as `gate_product`."""
        return self.gate_product(input, hidden)
