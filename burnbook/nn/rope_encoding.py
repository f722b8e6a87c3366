"""RotaryEncoding: positions as rotations of queries and keys.

Each pair of columns is rotated by an angle proportional to the position. So the dot
product of a query and a key depends on the distance between their positions only.
"""

from collections.abc import Callable

import numpy as np

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.dtypes import Float
from burnbook.core.errors import ConfigError, ShapeError
from burnbook.module import Module
from burnbook.nn.shared import at_least
from burnbook.ops.rotary import rotary
from burnbook.tensor import Tensor, apply


class RotaryEncodingConfig(Config):
    """How to make a RotaryEncoding: number of positions, width, base of frequencies.

    max_sequence_length: length of the longest sequence, at least 1.
    d_model: width of the input, even and at least 2.
    theta: the base of the frequencies, θᵢ = theta^(−2i / d_model), above 0
        (default 10000.0).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> RotaryEncodingConfig(10, 4).init(Numpy())
        RotaryEncoding {d_model: 4, max_sequence_length: 10, theta: 10000}
    """

    max_sequence_length: int
    d_model: int
    theta: float = 10000.0

    def validate(self) -> None:
        """Refuse an odd width, and a theta that is not above zero."""
        at_least(self, 1, "max_sequence_length")
        at_least(self, 2, "d_model")
        if self.d_model % 2:
            what = f"d_model is {self.d_model}; rotations act on pairs"
            raise ConfigError("RotaryEncodingConfig", what, cure="an even d_model")
        if not 0 < self.theta < float("inf"):
            what = f"theta is {self.theta}, it must be above 0"
            raise ConfigError("RotaryEncodingConfig", what)

    def init(self, device: Backend) -> "RotaryEncoding":
        """The layer on a device, with its table of cosines and sines."""
        return self.init_with_frequency_scaling(lambda theta: theta, device)

    def init_with_frequency_scaling(
        self, scaling: Callable[[Tensor], Tensor], device: Backend
    ) -> "RotaryEncoding":
        """The layer with other angles: scaling maps the angles per step, [d_model / 2].

        Why: lower frequencies let a model process longer sequences than in training.
        """
        even = np.arange(0, self.d_model, 2) / self.d_model
        angles = (float(self.theta) ** -even).astype(device.float_dtype)
        pace = scaling(Tensor.of(device.from_numpy(angles), Float, device))
        table = _turns(pace, 0, self.max_sequence_length)
        return RotaryEncoding(table, self.max_sequence_length, self.theta, pace, 0)


class RotaryEncoding(Module):
    """Rotate the pair (a, b) of columns 2i, 2i + 1 at position p by the angle p θᵢ.

    out = (a cos pθᵢ − b sin pθᵢ, a sin pθᵢ + b cos pθᵢ), θᵢ = theta^(−2i / d_model)

    Shapes: x [..., s, d_model] -> [..., s, d_model]; freq_complex [max, d_model, 2]
    Source: Su and others, "RoFormer", 2021 (arXiv 2104.09864).
    """

    freq_complex: Tensor
    max_sequence_length: int
    theta: float
    pace: Tensor
    start_offset: int = 0
    shown = (
        ("d_model", lambda layer: layer.freq_complex.dims()[1]),
        "max_sequence_length",
        "theta",
    )

    def forward(self, x: Tensor) -> Tensor:
        """Rotate a sequence that starts at the first position of the table."""
        return self.apply(x, 0)

    def apply(self, x: Tensor, start: int) -> Tensor:
        """Rotate a sequence that starts at another position of the table.

        Raises:
            ShapeError: x is not [..., s, d_model], or it ends beyond the table.
        """
        longest, width, _ = self.freq_complex.dims()
        dims = list(x.dims())
        steps = dims[-2] if len(dims) > 1 and dims[-1] == width else longest + 1
        if start < 0 or start + steps > longest:
            raise ShapeError(
                "apply",
                f"x is {dims} from position {start}, it must be [..., s, {width}] and "
                f"end by position {longest}",
                cure="a longer max_sequence_length, or shift(start)",
            )
        turns = self.freq_complex.narrow(0, start, steps)
        halves = turns.reshape([steps, width // 2, 4]).narrow(2, 0, 2)
        return apply(rotary, x, halves)

    def shift(self, start: int) -> "RotaryEncoding":
        """The layer with a table that begins at this position of the whole sequence."""
        if start < 0:
            raise ShapeError("shift", f"there is no position {start}")
        table = _turns(self.pace, start, self.max_sequence_length)
        return RotaryEncoding(
            table, self.max_sequence_length, self.theta, self.pace, start
        )

    def reset(self) -> "RotaryEncoding":
        """The layer with a table that begins at position 0."""
        return self.shift(0) if self.start_offset else self


def _turns(pace: Tensor, start: int, length: int) -> Tensor:
    """Cosine and sine of every angle, twice: once for each column of a pair.

    Shapes: pace [d / 2] -> [length, d, 2]
    Why: position times pace is computed in float64, since a large angle in float32
    has few digits left after the whole turns are taken off.
    """
    device = pace.backend
    angle = np.arange(start, start + length)[:, None] * np.asarray(pace, np.float64)
    pairs = np.stack([np.cos(angle), np.sin(angle)], axis=2)
    table = np.repeat(pairs, 2, axis=1).astype(device.float_dtype)
    return Tensor.of(device.from_numpy(table), Float, device)
