"""Activations without parameters, element by element."""

from burnbook.module import Module
from burnbook.tensor import Tensor, activation


class Relu(Module):
    """Keep what is positive: out = max(x, 0).

    Shapes: x [...] -> [...]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.relu(input)


class Relu6(Module):
    """Keep what is positive, up to 6: out = min(max(x, 0), 6).

    Shapes: x [...] -> [...]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.relu6(input)


class Gelu(Module):
    """Gaussian error linear unit: out = x Φ(x) = x (1 + erf(x/√2)) / 2.

    approximate: whether erf is approximated by a tanh, as in the first GPT models.

    Shapes: x [...] -> [...]
    Source: Hendrycks, Gimpel, "Gaussian error linear units", 2016 (arXiv 1606.08415).
    """

    approximate: bool = False
    shown = ()
    shown_unless = (("approximate", False),)
    newer_fields = shown_unless

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        if self.approximate:
            return activation.gelu_approximate(input)
        return activation.gelu(input)


class Sigmoid(Module):
    """Map to (0, 1): out = 1 / (1 + e⁻ˣ).

    Shapes: x [...] -> [...]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.sigmoid(input)


class LogSigmoid(Module):
    """The logarithm of the sigmoid, without overflow: out = −ln(1 + e⁻ˣ).

    Shapes: x [...] -> [...]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.log_sigmoid(input)


class Tanh(Module):
    """Map to (−1, 1): out = tanh x.

    Shapes: x [...] -> [...]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.tanh(input)


class Tanhshrink(Module):
    """The difference of x and its tanh: out = x − tanh x.

    Shapes: x [...] -> [...]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.tanhshrink(input)


class Softsign(Module):
    """Map to (−1, 1), with tails that approach ±1 slowly: out = x / (1 + |x|).

    Shapes: x [...] -> [...]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.softsign(input)


class SiLU(Module):
    """Sigmoid linear unit, also called swish: out = x σ(x) = x / (1 + e⁻ˣ).

    Shapes: x [...] -> [...]
    Source: Elfwing, Uchibe, Doya, "Sigmoid-weighted linear units for neural network
    function approximation in reinforcement learning", 2017 (arXiv 1702.03118).
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.silu(input)


class HardSwish(Module):
    """Swish with a piecewise linear sigmoid: out = x · clamp(x/6 + 1/2, 0, 1).

    Shapes: x [...] -> [...]
    Source: Howard et al., "Searching for MobileNetV3", 2019 (arXiv 1905.02244).
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.hard_swish(input)


class Mish(Module):
    """x times the tanh of its softplus: out = x tanh(ln(1 + eˣ)).

    Shapes: x [...] -> [...]
    Source: Misra, "Mish: a self regularized non-monotonic activation function", 2019
    (arXiv 1908.08681).
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.mish(input)


class Selu(Module):
    """An elu that keeps mean 0 and variance 1: out = 1.0507 · elu(x, 1.6733).

    Shapes: x [...] -> [...]
    Source: Klambauer et al., "Self-normalizing neural networks", 2017
    (arXiv 1706.02515).
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.selu(input)
