"""Masks of attention: a position is masked where they are True."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from burnbook.backend.base import Backend
from burnbook.config import ConfigEnum, holding, unit
from burnbook.core.dtypes import Bool, Int
from burnbook.core.errors import ConfigError, DataError
from burnbook.core.held_tensors import holds_tensors
from burnbook.tensor import Tensor


def generate_autoregressive_mask(
    batch_size: int, seq_length: int, device: Backend
) -> Tensor:
    """A causal mask, True at all later steps: mask[b, i, j] = j > i.

    Shapes: -> [batch_size, seq_length, seq_length], Bool
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> generate_autoregressive_mask(1, 3, Numpy()).int().to_data().to_list()
        [[[0, 1, 1], [0, 0, 1], [0, 0, 0]]]
    """
    square = Tensor.tril_mask([seq_length, seq_length], 0, device)
    return square.expand([batch_size, seq_length, seq_length])


class SeqLengthOption(ConfigEnum):
    """The length of padded sequences: NoMax, Max(length) or Fixed(length).

    NoMax: that of the longest sequence. Max: the same, but longer sequences are
    truncated. Fixed: this length, by truncation or padding.
    """

    NoMax = unit()
    Max = holding(int)
    Fixed = holding(int)

    def validate(self) -> None:
        """Refuse a length below one."""
        if self.values and self.values[0] < 1:
            what = f"the length is {self.values[0]}, it must be at least 1"
            raise ConfigError(repr(self), what)

    def length(self, longest: int) -> int:
        """The length of the padded sequences."""
        if self.variant == "NoMax":
            return longest
        limit: int = self.values[0]
        return limit if self.variant == "Fixed" else min(limit, longest)


@dataclass(frozen=True)
class GeneratePaddingMask:
    """Padded sequences, and where the padding is.

    tensor: Int [batch, s]. mask: Bool [batch, s], True at the padding.
    """

    tensor: Tensor
    mask: Tensor


def generate_padding_mask(
    pad_token: int,
    tokens_list: Sequence[Sequence[int]],
    max_seq_length: int | SeqLengthOption | None,
    device: Backend,
) -> GeneratePaddingMask:
    """Pad sequences with a token to the same length, and mask the padding.

    max_seq_length: longer sequences are truncated to it; or a SeqLengthOption.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> made = generate_padding_mask(0, [[5, 6, 7], [8]], None, Numpy())
        >>> made.tensor.to_data().to_list()
        [[5, 6, 7], [8, 0, 0]]
        >>> made.mask.int().to_data().to_list()
        [[0, 0, 0], [0, 1, 1]]
    """
    option = max_seq_length
    if option is None:
        option = SeqLengthOption.NoMax
    elif not isinstance(option, SeqLengthOption):
        option = SeqLengthOption.Max(option)
    size = option.length(max((len(tokens) for tokens in tokens_list), default=0))
    if not tokens_list or not size:
        raise DataError(
            "generate_padding_mask",
            "there are no tokens",
            cure="at least one sequence with at least one token",
        )
    table = np.full((len(tokens_list), size), pad_token, device.int_dtype)
    for row, tokens in zip(table, tokens_list, strict=True):
        row[: len(tokens)] = tokens[:size]
    mask = Tensor.of(device.from_numpy(table == pad_token), Bool, device)
    return GeneratePaddingMask(Tensor.of(device.from_numpy(table), Int, device), mask)


holds_tensors(GeneratePaddingMask)
