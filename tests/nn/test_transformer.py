"""Transformers: rounds, caches, records, display, and what does not fit."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core.errors import ShapeError
from burnbook.tensor import Tensor
from tests.support.modules import ids, same_values

PLAIN = Numpy(float="f64")

RECORDS = {
    nn.EmbeddingConfig(3, 2): "weight",
    nn.PositionalEncodingConfig(4): "sinusoids max_sequence_size max_timescale",
    nn.PositionWiseFeedForwardConfig(2, 4): "linear_inner linear_outer dropout gelu",
    nn.MultiHeadAttentionConfig(4, 2): "query key value output dropout activation "
    "d_model n_heads d_k min_float quiet_softmax",
    nn.TransformerEncoderConfig(4, 8, 2, 2): "layers d_model d_ff n_heads n_layers "
    "dropout norm_first quiet_softmax",
    nn.TransformerDecoderConfig(4, 8, 2, 2): "layers d_model d_ff n_heads n_layers "
    "dropout norm_first quiet_softmax",
}


@pytest.mark.parametrize("config", RECORDS, ids=str)
def test_records_have_burns_names_and_restore_the_layer(config):
    layer, other = config.init(PLAIN), config.init(PLAIN)
    record = layer.into_record()
    names = [name for name in record if name != "activation" or "d_k" in record]
    assert names == RECORDS[config].split()
    restored = other.load_record(record)
    assert ids(restored) == ids(layer)
    assert same_values(restored, layer)


def test_layers_of_records_have_burns_names():
    record = nn.TransformerEncoderConfig(4, 8, 2, 1).init(PLAIN).into_record()
    wanted = ["mha", "pwff", "norm_1", "norm_2", "dropout", "norm_first"]
    assert list(record["layers"][0]) == wanted
    record = nn.TransformerDecoderConfig(4, 8, 2, 1).init(PLAIN).into_record()
    parts = ["cross_attn", "self_attn", "pwff", "norm_1", "norm_2", "norm_3"]
    assert list(record["layers"][0]) == [*parts, "dropout", "norm_first"]


def inputs(*shapes):
    return [Tensor.random(shape, device=PLAIN) for shape in shapes]


# Transformers


def layer_by_hand(layer, x):
    """One round of an encoder, as the sheet writes it."""

    def mha(x):
        return layer.mha.forward(nn.MhaInput.self_attn(x)).context

    if layer.norm_first:
        x = x + mha(layer.norm_2.forward(x))
        return x + layer.pwff.forward(layer.norm_1.forward(x))
    x = layer.norm_1.forward(x + mha(x))
    return layer.norm_2.forward(x + layer.pwff.forward(x))


def shaken(module):
    """The module with other norms than 1 and 0, so that swapped ones are noticed."""

    class Shake:
        def map_float(self, _, tensor):
            return tensor + Tensor.random(tensor.dims(), device=tensor.backend) * 0.3

    return module.map(Shake())


@pytest.mark.parametrize("first", [False, True])
def test_an_encoder_is_its_layers(first):
    config = nn.TransformerEncoderConfig(8, 16, 2, 2).with_norm_first(first)
    encoder = shaken(config.init(PLAIN))
    (x,) = inputs([2, 5, 8])
    wanted = x
    for layer in encoder.layers:
        wanted = layer_by_hand(layer, wanted)
    assert np.allclose(encoder.forward(nn.TransformerEncoderInput.new(x)), wanted)


def written_by_hand(layer, x, memory):
    """One round of a decoder, as the sheet writes it."""

    def own(x):
        return layer.self_attn.forward(nn.MhaInput.self_attn(x)).context

    def cross(x):
        return layer.cross_attn.forward(nn.MhaInput.new(x, memory, memory)).context

    if layer.norm_first:
        x = x + own(layer.norm_3.forward(x))
        x = x + cross(layer.norm_1.forward(x))
        return x + layer.pwff.forward(layer.norm_2.forward(x))
    x = layer.norm_1.forward(x + own(x))
    x = layer.norm_2.forward(x + cross(x))
    return layer.norm_3.forward(x + layer.pwff.forward(x))


@pytest.mark.parametrize("first", [False, True])
def test_a_decoder_is_its_layers(first):
    config = nn.TransformerDecoderConfig(8, 16, 2, 2).with_norm_first(first)
    decoder = shaken(config.init(PLAIN))
    x, memory = inputs([2, 5, 8], [2, 3, 8])
    wanted = x
    for layer in decoder.layers:
        wanted = written_by_hand(layer, wanted, memory)
    given = nn.TransformerDecoderInput.new(x, memory)
    assert np.allclose(decoder.forward(given), wanted)


def test_the_activation_can_be_chosen():
    config = nn.TransformerEncoderConfig(4, 8, 2, 1)
    relu = config.with_activation(nn.ActivationConfig.Relu).init(PLAIN)
    assert str(relu.layers[0].pwff.activation) == "Relu"
    x = inputs([1, 3, 4])[0]
    inner = np.asarray(relu.layers[0].pwff.linear_inner.forward(x))
    bent = Tensor.from_numpy(np.maximum(inner, 0), PLAIN)
    wanted = relu.layers[0].pwff.linear_outer.forward(bent)
    assert np.allclose(relu.layers[0].pwff.forward(x), wanted)
    swish = nn.ActivationConfig.SwiGlu(nn.SwiGluConfig(8, 8))
    learned = nn.PositionWiseFeedForwardConfig(4, 8).with_activation(swish).init(PLAIN)
    names = [name for name, _ in learned.named_params()]
    assert "activation.linear_inner.weight" in names
    other = nn.PositionWiseFeedForwardConfig(4, 8).with_activation(swish).init(PLAIN)
    assert np.allclose(other.load_record(learned.into_record())(x), learned(x))


# Caches


def grow(x, forward):
    """Give a sequence step by step; the last step of each result."""
    steps = range(1, x.dims()[1] + 1)
    outs = [forward(x.narrow(1, 0, n)) for n in steps]
    for n, out in zip(steps, outs, strict=True):
        assert out.dims() == (x.dims()[0], n, x.dims()[2])
    lasts = [out.narrow(1, n - 1, 1) for n, out in zip(steps, outs, strict=True)]
    return Tensor.cat(lasts, 1)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_with_a_cache_is_attention_with_a_mask(masked):
    layer = nn.MultiHeadAttentionConfig(12, 2).init(PLAIN)
    (x,) = inputs([3, 5, 12])
    mask = nn.generate_autoregressive_mask(3, 5, PLAIN)
    pad = Tensor.from_numpy(np.arange(5) == np.array([[9], [1], [2]]), PLAIN)
    wanted = nn.MhaInput.self_attn(x).mask_attn(mask)
    wanted = wanted.mask_pad(pad) if masked else wanted
    full = layer.forward(wanted)
    cache = nn.MhaCache.autoregressive()
    assert repr(cache) == "MhaCache(0 steps)"

    def step(x):
        n = x.dims()[1]
        given = nn.MhaInput.self_attn(x)
        if masked:
            now = nn.generate_autoregressive_mask(3, n, PLAIN)
            given = given.mask_attn(now).mask_pad(pad.narrow(1, 0, n))
        out = layer.forward_cache(given, cache)
        assert out.weights.dims() == (3, 2, n, n)
        return out.context

    assert np.allclose(grow(x, step), full.context)
    assert repr(cache) == "MhaCache(5 steps)"


@pytest.mark.parametrize("first", [False, True])
def test_an_encoder_with_a_cache_is_an_encoder_with_a_mask(first):
    config = nn.TransformerEncoderConfig(12, 24, 2, 3).with_norm_first(first)
    encoder = shaken(config.init(PLAIN))
    (x,) = inputs([3, 4, 12])
    mask = nn.generate_autoregressive_mask(3, 4, PLAIN)
    full = encoder.forward(nn.TransformerEncoderInput.new(x).mask_attn(mask))
    cache = encoder.new_autoregressive_cache()
    found = grow(
        x,
        lambda t: encoder.forward_autoregressive_inference(
            nn.TransformerEncoderInput.new(t), cache
        ),
    )
    assert np.allclose(found, full)
    shown = "TransformerEncoderAutoregressiveCache(MhaCache(4 steps))"
    assert repr(cache) == shown


@pytest.mark.parametrize("first", [False, True])
def test_a_decoder_with_a_cache_is_a_decoder_with_a_mask(first):
    config = nn.TransformerDecoderConfig(12, 24, 2, 3).with_norm_first(first)
    decoder = shaken(config.init(PLAIN))
    x, memory = inputs([3, 4, 12], [3, 6, 12])
    pad = Tensor.from_numpy(np.arange(6) >= np.array([[6], [3], [4]]), PLAIN)
    mask = nn.generate_autoregressive_mask(3, 4, PLAIN)
    given = nn.TransformerDecoderInput.new(x, memory).memory_mask_pad(pad)
    full = decoder.forward(given.target_mask_attn(mask))
    cache = decoder.new_autoregressive_cache()

    def step(target):
        now = nn.generate_autoregressive_mask(3, target.dims()[1], PLAIN)
        given = nn.TransformerDecoderInput.new(target, memory).memory_mask_pad(pad)
        given = given.target_mask_attn(now)
        return decoder.forward_autoregressive_inference(given, cache)

    assert np.allclose(grow(x, step), full)
    shown = "TransformerDecoderAutoregressiveCache(MhaCache(4 steps))"
    assert repr(cache) == shown


def test_masks_of_target_and_memory_reach_their_attention():
    decoder = nn.TransformerDecoderConfig(8, 16, 2, 1).init(PLAIN)
    x, memory, other = inputs([1, 3, 8], [1, 4, 8], [1, 4, 8])
    same = Tensor.cat([memory.narrow(1, 0, 3), other.narrow(1, 3, 1)], 1)
    last = Tensor.from_numpy(np.array([[False, False, False, True]]), PLAIN)
    rows = last.reshape([1, 1, 4]).expand([1, 3, 4])
    for hide in (
        lambda given: given.memory_mask_pad(last),
        lambda given: given.memory_mask_attn(rows),
    ):
        given = (nn.TransformerDecoderInput.new(x, m) for m in (memory, same))
        assert np.allclose(*(decoder.forward(hide(one)) for one in given))
    plain = (nn.TransformerDecoderInput.new(x, m) for m in (memory, same))
    assert not np.allclose(*(decoder.forward(one) for one in plain))
    seen = nn.TransformerDecoderInput.new(x, memory)
    pad = Tensor.from_numpy(np.array([[False, True, False]]), PLAIN)
    moved = Tensor.cat(
        [x.narrow(1, 0, 1), x.narrow(1, 1, 1) + 1.0, x.narrow(1, 2, 1)], 1
    )
    outs = [
        decoder.forward(nn.TransformerDecoderInput.new(t, memory).target_mask_pad(pad))
        for t in (x, moved)
    ]
    assert np.allclose(*(out.narrow(1, 2, 1) for out in outs))
    assert not np.allclose(decoder.forward(seen), outs[0])


def test_a_cache_wants_one_step_at_a_time():
    cache = nn.TensorCache.empty()
    (x,) = inputs([1, 5, 2])
    cache.forward_autoregressive(x.narrow(1, 0, 2), 1, lambda t: t)
    with pytest.raises(ShapeError, match="has 5 steps, the cache holds 2"):
        cache.forward_autoregressive(x, 1, lambda t: t)
    assert repr(cache) == "TensorCache([1, 2, 2])"
    assert repr(nn.TensorCache.empty()) == "TensorCache()"


def test_what_never_changes_is_computed_once():
    cache, calls = nn.TensorCache.empty(), []
    (x,) = inputs([1, 5, 2])
    for _ in range(3):
        out = cache.forward_full(x, lambda t: calls.append(t) or t * 2.0)
    assert len(calls) == 1
    assert np.allclose(out, np.asarray(x) * 2)


# What does not fit

MHA = nn.MultiHeadAttentionConfig(4, 2).init(PLAIN)
X = Tensor.zeros([2, 3, 4], PLAIN)
SELF = nn.MhaInput.self_attn(X)
