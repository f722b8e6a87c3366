"""A mask that hides all keys of a sample is told; any other is silent."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.nn import (
    CrossAttentionConfig,
    MhaInput,
    MultiHeadAttentionConfig,
    TransformerDecoderConfig,
    TransformerDecoderInput,
    TransformerEncoderConfig,
    TransformerEncoderInput,
)
from burnbook.tensor import Tensor

DEVICE = Autodiff(Numpy())
X = Tensor.from_data(np.random.default_rng(1).normal(size=(3, 5, 8)), DEVICE)
KEEP = np.array([[True] * length + [False] * (5 - length) for length in (5, 3, 1)])
CAUSAL = np.triu(np.ones((3, 5, 5), bool), 1)


def attention(mask, how):
    layer = MultiHeadAttentionConfig(8, 2).init(DEVICE)
    return layer.forward(getattr(MhaInput.self_attn(X), how)(mask))


def cross(mask, how):
    return CrossAttentionConfig(8, 8, 2, 2, 4).init(DEVICE).forward(X, X, mask)


def encoder(mask, how):
    layer = TransformerEncoderConfig(8, 16, 2, 1).init(DEVICE)
    return layer.forward(getattr(TransformerEncoderInput.new(X), how)(mask))


def decoder(mask, how):
    layer = TransformerDecoderConfig(8, 16, 2, 1).init(DEVICE)
    given = getattr(TransformerDecoderInput.new(X, X), how)(mask)
    return layer.forward(given)


LAYERS = {
    "attention": (attention, "mask_pad"),
    "attention, single queries": (attention, "mask_attn"),
    "cross": (cross, "mask_pad"),
    "encoder": (encoder, "mask_pad"),
    "encoder, single queries": (encoder, "mask_attn"),
    "decoder, target": (decoder, "target_mask_pad"),
    "decoder, memory": (decoder, "memory_mask_pad"),
    "decoder, single queries": (decoder, "target_mask_attn"),
}


def mask_of(values, how):
    wide = np.repeat(values[:, None], 5, 1) if how.endswith("attn") else values
    return Tensor.from_data(wide, DEVICE)


@pytest.mark.parametrize("name", LAYERS)
def test_a_mask_of_what_to_keep_is_told_once(name):
    run, how = LAYERS[name]
    keep = mask_of(KEEP, how)
    with pytest.warns(UserWarning, match="hides every key of a sample") as caught:
        run(keep, how)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "mask.bool_not()" in str(caught[0].message)
    run(keep.bool_not(), how)  # as the warning says; warnings are errors here


@pytest.mark.parametrize("name", LAYERS)
def test_masks_that_leave_a_key_are_silent(name):
    run, how = LAYERS[name]
    run(mask_of(KEEP & False, how), how)
    if how.endswith("attn"):
        run(Tensor.from_data(CAUSAL, DEVICE), how)
        padded = CAUSAL | (np.arange(5) > 2).reshape(1, 5, 1)  # rows of padding
        run(Tensor.from_data(padded, DEVICE), how)
