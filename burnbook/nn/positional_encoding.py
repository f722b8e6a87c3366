"""PositionalEncoding: sinusoids that encode the position of a token.

Attention does not know the order of its inputs. So a pattern of its own is added to
every position: sines and cosines, of high frequency in the first columns and
of low frequency in the last.
"""

import math

import numpy as np

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.dtypes import Float
from burnbook.core.errors import ConfigError, ShapeError
from burnbook.module import Module
from burnbook.nn.shared import at_least
from burnbook.tensor import Tensor


class PositionalEncodingConfig(Config):
    """How to make a PositionalEncoding: width, length, longest wavelength.

    d_model: width of the input, even and at least 2.
    max_sequence_size: length of the longest sequence, from 1 to max_timescale
        (default 5000).
    max_timescale: the base of the wavelengths, which reach from 2π to 2π ·
        max_timescale (default 10000).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> PositionalEncodingConfig(4).init(Numpy())
        PositionalEncoding {d_model: 4, max_sequence_size: 5000, max_timescale: 10000}
    """

    d_model: int
    max_sequence_size: int = 5000
    max_timescale: int = 10000

    def validate(self) -> None:
        """Refuse an odd width, and more positions than max_timescale."""
        at_least(self, 2, "d_model")
        at_least(self, 1, "max_sequence_size")
        _check(
            "PositionalEncodingConfig",
            self.max_sequence_size,
            self.d_model,
            self.max_timescale,
        )

    def init(self, device: Backend) -> "PositionalEncoding":
        """The layer on a device, with its table of sinusoids."""
        length, timescale = self.max_sequence_size, self.max_timescale
        table = generate_sinusoids(length, self.d_model, timescale, device)
        return PositionalEncoding(table.unsqueeze_dim(0), length, timescale)


class PositionalEncoding(Module):
    """Add sinusoids to every position: out[b, p] = input[b, p] + sinusoids[p].

    Shapes: input [b, s, d_model] -> [b, s, d_model]; sinusoids [1, max, d_model]
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> layer = PositionalEncodingConfig(6).init(Numpy())
        >>> print(f"{layer.forward(Tensor.zeros([1, 2, 6], Numpy())).slice([0, 1]):.2}")
        Tensor {
          data:
        [[[0.84, 0.54, 0.05, 1.00, 0.00, 1.00]]],
          shape:  [1, 1, 6],
          device:  Cpu,
          backend:  "numpy",
          kind:  "Float",
          dtype:  "f32",
        }

    Source: Vaswani and others, "Attention is all you need", 2017 (arXiv 1706.03762).
    """

    sinusoids: Tensor
    max_sequence_size: int
    max_timescale: int
    shown = (
        ("d_model", lambda layer: layer.sinusoids.dims()[2]),
        "max_sequence_size",
        "max_timescale",
    )

    def forward(self, input: Tensor) -> Tensor:
        """Add the sinusoids of the first positions."""
        _, longest, width = self.sinusoids.dims()
        dims = input.dims()
        if len(dims) != 3 or dims[2] != width or dims[1] > longest:
            raise ShapeError(
                "forward",
                f"the input is {list(dims)}, it must be [batch, s, {width}] with s up "
                f"to {longest}",
                cure="PositionalEncodingConfig(d_model).with_max_sequence_size(…)",
            )
        return input + self.sinusoids.narrow(1, 0, dims[1])


def generate_sinusoids(
    length: int, d_model: int, max_timescale: int, device: Backend
) -> Tensor:
    """The sinusoids: row p has sin(p / T^(k/d)) and cos(p / T^(k/d)), k = 0, 2, 4 …

    Shapes: -> [length, d_model]
    """
    _check("generate_sinusoids", length, d_model, max_timescale)
    real = np.float64 if device.float == "f64" else np.float32
    even = np.arange(0, d_model, 2, dtype=real)
    pace = np.exp(even * real(-math.log(max_timescale) / d_model))
    angle = np.arange(length, dtype=real)[:, None] * pace
    table = np.stack([np.sin(angle), np.cos(angle)], axis=2).reshape(length, d_model)
    value = device.from_numpy(table.astype(device.float_dtype))
    return Tensor.of(value, Float, device)


def _check(where: str, length: int, d_model: int, max_timescale: int) -> None:
    if d_model % 2:
        what = f"d_model is {d_model}; sines and cosines come in pairs"
        raise ConfigError(where, what, cure="an even d_model")
    if length > max_timescale:
        raise ConfigError(
            where,
            f"{length} positions, the slowest wave tells only {max_timescale} apart",
            cure=f"max_timescale={length}, or more",
        )
