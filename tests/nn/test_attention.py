"""Embedding, encodings, masks and attention: what they compute."""

import math

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Fusion, Numpy
from burnbook.core.errors import DimError
from burnbook.nn.attention.heads import merge_heads, split_heads
from burnbook.tensor import Tensor
from burnbook.tensor.activation import softmax
from burnbook.tensor.attention import AttentionModuleOptions, attention
from tests.support.cases import cases

PLAIN = Numpy(float="f64")
AD = Autodiff(PLAIN)


# Embedding and encodings


def test_an_embedding_looks_rows_up_and_collects_their_gradients():
    layer = nn.EmbeddingConfig(5, 3).init(AD)
    weight = np.asarray(layer.weight.val())
    words = Tensor.from_ints([[4, 1, 4], [0, 4, 1]], AD)
    out = layer.forward(words)
    assert np.array_equal(out, weight[[[4, 1, 4], [0, 4, 1]]])
    grads = (out * 2.0).sum().backward()
    counts = np.array([1, 2, 0, 0, 3])[:, None]
    assert np.array_equal(layer.weight.val().grad(grads), 2.0 * counts * np.ones(3))


def test_an_embedding_refuses_words_it_does_not_know():
    layer = nn.EmbeddingConfig(5, 3).init(PLAIN)
    for word in (5, -1):
        with pytest.raises(DimError, match="the dim has size 5"):
            layer.forward(Tensor.from_ints([[word]], PLAIN))


def test_positional_encoding_has_the_waves_of_the_sheet():
    layer = nn.PositionalEncodingConfig(6).init(Numpy())
    out = np.asarray(layer.forward(Tensor.zeros([2, 3, 6], Numpy())))
    assert np.allclose(out[1, 0], [0, 1, 0, 1, 0, 1])
    row = [0.84147, 0.54030, 0.04640, 0.99892, 0.00215, 1.0]
    assert np.allclose(out[0, 1], row, atol=5e-6)
    assert out.dtype == np.float32


def test_rotary_encoding_turns_as_in_burn():
    layer = nn.RotaryEncodingConfig(10, 4).init(Numpy())
    x = Tensor.from_data([[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]], Numpy())
    out = np.asarray(layer.forward(x))
    assert np.allclose(out[0, 0], [1, 2, 3, 4])
    assert np.allclose(out[0, 1], [-2.3473, 7.4492, 6.9197, 8.0696], atol=1e-4)
    assert np.allclose(layer.forward(x.unsqueeze_dim(0)), out[None])
    assert np.allclose(layer.forward(x.squeeze(0)), out[0])


def test_rotary_encoding_sees_only_distances():
    layer = nn.RotaryEncodingConfig(20, 8).init(PLAIN)
    a, b = Tensor.random([1, 8], device=PLAIN), Tensor.random([1, 8], device=PLAIN)
    products = [
        np.asarray((layer.apply(a, i) * layer.apply(b, i + 5)).sum())
        for i in (0, 3, 14)
    ]
    assert np.allclose(products, products[0])


def test_a_rotary_encoding_can_be_moved_along_the_sequence():
    layer, long = (nn.RotaryEncodingConfig(n, 4).init(PLAIN) for n in (4, 20))
    x = Tensor.random([2, 3, 4], device=PLAIN)
    moved = layer.shift(15)
    assert np.allclose(moved.forward(x), long.apply(x, 15))
    assert np.allclose(moved.shift(17).forward(x), long.apply(x, 17))
    assert np.allclose(moved.reset().forward(x), layer.forward(x))
    assert (moved.start_offset, moved.reset().start_offset) == (15, 0)
    assert layer.reset() is layer


def test_the_angles_of_a_rotary_encoding_may_be_scaled():
    config = nn.RotaryEncodingConfig(10, 4)
    slow = config.init_with_frequency_scaling(lambda theta: theta / 2.0, PLAIN)
    x = Tensor.random([1, 1, 4], device=PLAIN)
    assert np.allclose(slow.apply(x, 8), config.init(PLAIN).apply(x, 4))


# Masks


def test_the_autoregressive_mask_hides_what_comes_after():
    mask = nn.generate_autoregressive_mask(2, 3, PLAIN)
    wanted = [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert mask.int().to_data().to_list() == [wanted, wanted]


TOKENS = [[3, 3, 3], [3, 3, 3, 4], [3, 3, 3, 4, 10, 15]]


@cases(
    "option size",
    (None, 6),
    (4, 4),
    (9, 6),
    (nn.SeqLengthOption.NoMax, 6),
    (nn.SeqLengthOption.Max(5), 5),
    (nn.SeqLengthOption.Fixed(8), 8),
    ids=str,
)
def test_padding_fills_up_and_cuts(option, size):
    made = nn.generate_padding_mask(0, TOKENS, option, PLAIN)
    wanted = [(tokens + [0] * 9)[:size] for tokens in TOKENS]
    assert made.tensor.to_data().to_list() == wanted
    hidden = [[int(token == 0) for token in row] for row in wanted]
    assert made.mask.int().to_data().to_list() == hidden


# Attention


def inputs(*shapes):
    return [Tensor.random(shape, device=PLAIN) for shape in shapes]


def heads_by_hand(layer, query, key, value, hidden=None):
    """The context and the weights, head by head."""
    q, k, v = (
        np.asarray(split_heads(part.forward(x), layer.n_heads))
        for part, x in ((layer.query, query), (layer.key, key), (layer.value, value))
    )
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(layer.d_k)
    if hidden is not None:
        scores = np.where(hidden, layer.min_float, scores)
    raised = np.exp(scores)
    total = raised.sum(-1, keepdims=True) + (1 if layer.quiet_softmax else 0)
    weights = raised / total
    mixed = Tensor.from_numpy(weights @ v, PLAIN)
    return layer.output.forward(merge_heads(mixed)), weights


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("attn", [False, True])
def test_attention_with_every_mask(quiet, pad, attn):
    config = nn.MultiHeadAttentionConfig(12, 3).with_quiet_softmax(quiet)
    layer = config.init(PLAIN)
    query, key, value = inputs([2, 4, 12], [2, 5, 12], [2, 5, 12])
    given, rng = nn.MhaInput.new(query, key, value), np.random.default_rng(0)
    hidden = np.zeros((2, 1, 4, 5), bool)
    if pad:
        mask = rng.random((2, 5)) < 0.4
        given = given.mask_pad(Tensor.from_numpy(mask, PLAIN))
        hidden |= mask[:, None, None]
    if attn:
        mask = rng.random((2, 4, 5)) < 0.4
        given = given.mask_attn(Tensor.from_numpy(mask, PLAIN))
        hidden |= mask[:, None]
    out = layer.forward(given)
    context, weights = heads_by_hand(layer, query, key, value, hidden)
    assert np.allclose(out.context, context)
    assert np.allclose(out.weights, weights)
    assert out.weights is out.weights
    assert repr(out) == "MhaOutput(context [2, 4, 12])"


@pytest.mark.filterwarnings("ignore:.*hides every key")
def test_a_query_that_sees_nothing_sees_all_alike():
    """Burn hides by a low number, not by −∞: no NaN."""
    layer = nn.MultiHeadAttentionConfig(4, 2).init(PLAIN)
    given = nn.MhaInput.self_attn(inputs([1, 3, 4])[0])
    out = layer.forward(given.mask_pad(Tensor.ones([1, 3], PLAIN).bool()))
    assert np.allclose(out.weights, 1 / 3)
    quiet = nn.MultiHeadAttentionConfig(4, 2).with_quiet_softmax(True).init(PLAIN)
    out = quiet.forward(given.mask_pad(Tensor.ones([1, 3], PLAIN).bool()))
    assert np.allclose(out.weights, 0)


def far_below(device, size, cross):
    """A layer whose scores between vectors of ones are -size² · 2 / √2."""
    if cross:
        config = nn.CrossAttentionConfig(2, 2, 1, 1, 2).with_dropout(0.0)
    else:
        config = nn.MultiHeadAttentionConfig(2, 1).with_dropout(0.0)
    layer, same = config.init(device), Tensor.eye(2, device)
    zeros = Tensor.zeros([2], device)

    def linear(of, factor):
        made = of.replace(weight=of.weight.map(lambda _: same * factor))
        return (
            made if of.bias is None else made.replace(bias=of.bias.map(lambda _: zeros))
        )

    return layer.replace(
        query=linear(layer.query, size),
        key=linear(layer.key, -size),
        value=linear(layer.value, 1.0),
        output=linear(layer.output, 1.0),
    )


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize(
    ("backend", "size"),
    [
        (Numpy(), 300.0),
        (Fusion(Numpy()), 300.0),
        (Autodiff(Numpy()), 300.0),
        (Numpy(float="f64"), 300.0),
        (Numpy(float="f16"), 120.0),
    ],
    ids=repr,
)
def test_what_is_masked_is_not_seen_beside_scores_that_are_far_below(
    backend, size, cross
):
    layer = far_below(backend, size, cross)
    x = Tensor.ones([1, 3, 2], backend)
    values = Tensor.from_floats([[[1.0, 1.0], [1.0, 1.0], [9.0, 9.0]]], backend)
    mask = Tensor.from_data([[False, False, True]], backend)
    if cross:
        keys = Tensor.from_floats([[[1.0, 1.0], [1.0, 1.0], [-1.0, -1.0]]], backend)
        seen = layer.forward(x, keys, mask)
        expected = [[[1.0, 1.0]] * 3]
    else:
        made = layer.forward(nn.MhaInput(x, x, values, mask))
        seen, expected = made.context, [[[1.0, 1.0]] * 3]
        shares = [[[[0.5, 0.5, 0.0]] * 3]]
        assert np.allclose(np.asarray(made.weights), shares)
    assert np.allclose(np.asarray(seen), expected)


def test_what_is_padded_does_not_matter():
    layer = nn.MultiHeadAttentionConfig(8, 2).init(PLAIN)
    one, other = inputs([2, 6, 8], [2, 6, 8])
    same = Tensor.cat([one.narrow(1, 0, 4), other.narrow(1, 4, 2)], 1)
    mask = Tensor.from_numpy(np.arange(6) >= np.full((2, 1), 4), PLAIN)
    outs = [
        layer.forward(nn.MhaInput.self_attn(x).mask_pad(mask)).context.narrow(1, 0, 4)
        for x in (one, same)
    ]
    assert np.allclose(*outs)


def test_scores_are_dropped_in_training_only():
    layer = nn.MultiHeadAttentionConfig(4, 1).with_dropout(0.5).init(AD)
    x = Tensor.random([1, 6, 4], device=AD)
    given = nn.MhaInput.self_attn(x)
    first, second = layer.forward(given), layer.forward(given)
    assert not np.allclose(first.context, second.context)
    mixed = first.weights.matmul(split_heads(layer.value.forward(x), 1))
    assert np.allclose(layer.output.forward(merge_heads(mixed)), first.context)
    plain = layer.valid().forward(nn.MhaInput.self_attn(x.inner()))
    again = layer.valid().forward(nn.MhaInput.self_attn(x.inner()))
    assert np.array_equal(plain.context, again.context)


def test_biases_can_be_left_out():
    config = nn.MultiHeadAttentionConfig(4, 2)
    for name in ("query", "key", "value", "output"):
        layer = getattr(config, f"with_{name}_bias")(False).init(PLAIN)
        for part in ("query", "key", "value", "output"):
            assert (getattr(layer, part).bias is None) == (part == name)


def test_weights_have_a_gradient():
    layer = nn.MultiHeadAttentionConfig(4, 2).with_dropout(0.0).init(AD)
    x = Tensor.random([1, 3, 4], device=AD).require_grad()
    out = layer.forward(nn.MhaInput.self_attn(x))
    grads = out.weights.powf_scalar(2.0).sum().backward()
    assert np.any(np.asarray(x.grad(grads)) != 0)
    assert layer.output.weight.val().grad(grads) is None


@pytest.mark.parametrize("shared", [1, 2, 4])
def test_cross_attention_shares_heads_of_keys(shared):
    config = nn.CrossAttentionConfig(6, 5, 4, shared, 3)
    layer = config.init(PLAIN)
    query, context = inputs([2, 3, 6], [2, 7, 5])
    hidden = np.arange(7) >= np.array([[7], [4]])
    mask = Tensor.from_numpy(hidden, PLAIN)
    q = np.asarray(layer.query.forward(query)).reshape(2, 3, 4, 3)
    k, v = (
        np.repeat(
            np.asarray(part.forward(context)).reshape(2, 7, shared, 3), 4 // shared, 2
        )
        for part in (layer.key, layer.value)
    )
    scores = np.einsum("bshd,bthd->bhst", q, k) / math.sqrt(3)
    scores = Tensor.from_numpy(np.where(hidden[:, None, None], -1e4, scores), PLAIN)
    mixed = np.einsum("bhst,bthd->bshd", np.asarray(softmax(scores, 3)), v)
    wanted = layer.output.forward(Tensor.from_numpy(mixed.reshape(2, 3, 12), PLAIN))
    assert np.allclose(layer.forward(query, context, mask), wanted)
    cache = nn.CrossAttentionCache.new()
    for step in range(3):
        one = query.narrow(1, step, 1)
        out = layer.forward_cache(one, context, mask, cache)
        assert np.allclose(out, wanted.narrow(1, step, 1))
    assert repr(cache) == f"CrossAttentionCache(TensorCache([2, {shared}, 7, 3]))"


def test_attention_as_a_function():
    q, k, v = inputs([2, 3, 4, 5], [2, 3, 6, 5], [2, 3, 6, 7])
    bias = Tensor.random([1, 3, 4, 6], device=PLAIN)
    hidden = np.random.default_rng(1).random((2, 1, 4, 6)) < 0.4
    hidden[0, 0, 1] = True
    mask = Tensor.from_numpy(hidden, PLAIN)
    scores = np.asarray(q) @ np.asarray(k).swapaxes(-1, -2)
    later = np.arange(6) > np.arange(4)[:, None] + 2

    def mix(scores):
        with np.errstate(invalid="ignore"):
            raised = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
            return np.nan_to_num(raised / raised.sum(-1, keepdims=True)) @ np.asarray(v)

    scaled = scores / math.sqrt(5)
    assert np.allclose(attention(q, k, v), mix(scaled))
    wanted = mix(np.where(hidden, -np.inf, scaled))
    assert np.allclose(attention(q, k, v, mask), wanted)
    assert np.allclose(wanted[0, :, 1], 0)
    both = np.where(hidden, -np.inf, scaled + np.asarray(bias))
    assert np.allclose(attention(q, k, v, mask, bias), mix(both))
    causal = AttentionModuleOptions(scale=0.3, softcap=0.5, is_causal=True)
    bent = 0.5 * np.tanh(scores * 0.3 / 0.5) + np.asarray(bias)
    wanted = mix(np.where(later, -np.inf, bent))
    assert np.allclose(attention(q, k, v, None, bias, causal), wanted)
