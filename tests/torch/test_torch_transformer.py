"""Attention and transformers equal PyTorch's, forward and backward, weights copied."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.tensor import Tensor
from burnbook.tensor.attention import AttentionModuleOptions, attention
from tests.torch.shared import RNG, agree, close, leaves, torch

F64 = Autodiff(Numpy(float="f64"))
F32 = Autodiff(Numpy())
PLAIN32 = Autodiff(Numpy(compiled=False))


def normal(*shape, like="f8"):
    return RNG.normal(size=shape).astype(like)


def give(theirs, value):
    with torch.no_grad():
        theirs.copy_(torch.from_numpy(np.array(value)))


def both(array, device):
    """The same array here and there, as inputs whose gradient is compared."""
    (mine,), (theirs,) = leaves(device, array)
    return mine, theirs


def compare(out, wanted, pairs, rtol=None):
    agree(out, wanted, pairs, rtol, least=1.0)  # the gradient of a key's bias is 0


class Linears:
    """Pairs of parameters; those of PyTorch are filled with ours."""

    def __init__(self):
        self.pairs = []

    def linear(self, ours, theirs):
        give(theirs.weight, np.asarray(ours.weight.val()).T)
        give(theirs.bias, ours.bias.val())
        self.pairs += [
            (ours.weight.val(), lambda: theirs.weight.grad.T),
            (ours.bias.val(), theirs.bias),
        ]

    def norm(self, ours, theirs):
        give(theirs.weight, ours.gamma.val())
        give(theirs.bias, ours.beta.val())
        self.pairs += [
            (ours.gamma.val(), theirs.weight),
            (ours.beta.val(), theirs.bias),
        ]

    def attention(self, ours, theirs):
        parts = [ours.query, ours.key, ours.value]
        give(
            theirs.in_proj_weight,
            np.concatenate([np.asarray(p.weight.val()).T for p in parts]),
        )
        give(
            theirs.in_proj_bias,
            np.concatenate([np.asarray(p.bias.val()) for p in parts]),
        )
        d = ours.d_model
        for i, part in enumerate(parts):
            own = slice(i * d, (i + 1) * d)
            self.pairs += [
                (part.weight.val(), lambda own=own: theirs.in_proj_weight.grad[own].T),
                (part.bias.val(), lambda own=own: theirs.in_proj_bias.grad[own]),
            ]
        self.linear(ours.output, theirs.out_proj)


def masks(b, s, t):
    """A padding mask that leaves every query something, and a causal one."""
    pad = np.arange(t) >= RNG.integers(1, t + 1, (b, 1))
    return pad, np.triu(np.ones((s, t), bool), 1)


@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("device", [F64, F32, PLAIN32], ids=repr)
def test_multi_head_attention(pad, causal, device):
    b, s, t, d, heads = 3, 7, 9, 12, 3
    like = device.float_dtype
    layer = nn.MultiHeadAttentionConfig(d, heads).with_dropout(0.0).init(device)
    theirs = torch.nn.MultiheadAttention(d, heads, batch_first=True)
    theirs = theirs.to(torch.from_numpy(np.zeros(1, like)).dtype)
    linears = Linears()
    linears.attention(layer, theirs)
    inputs = [both(normal(b, n, d, like=like), device) for n in (s, t, t)]
    given = nn.MhaInput.new(*[mine for mine, _ in inputs])
    hidden, later = masks(b, s, t)
    options = {}
    if pad:
        given = given.mask_pad(Tensor.from_numpy(hidden, device))
        options["key_padding_mask"] = torch.from_numpy(hidden)
    if causal:
        rows = np.broadcast_to(later, (b, s, t)).copy()
        given = given.mask_attn(Tensor.from_numpy(rows, device))
        options["attn_mask"] = torch.from_numpy(later)
    out = layer.forward(given)
    wanted, weights = theirs(
        *[other for _, other in inputs], **options, average_attn_weights=False
    )
    close(out.weights, weights, least=1.0)
    compare(out.context, wanted, [*inputs, *linears.pairs])


def copy_round(layer, theirs, linears, first):
    """Burn counts the norms by their place after attention and network, not in turn."""
    attention_norm, network_norm = (2, 1) if first else (1, 2)
    linears.attention(layer.mha, theirs.self_attn)
    linears.linear(layer.pwff.linear_inner, theirs.linear1)
    linears.linear(layer.pwff.linear_outer, theirs.linear2)
    linears.norm(getattr(layer, f"norm_{attention_norm}"), theirs.norm1)
    linears.norm(getattr(layer, f"norm_{network_norm}"), theirs.norm2)


def shaken(module):
    """The module with other norms than 1 and 0, so that swapped ones are noticed."""

    class Shake:
        def map_float(self, _, tensor):
            moved = np.asarray(tensor) + normal(*tensor.dims()) * 0.1
            return Tensor.from_numpy(moved, tensor.backend).require_grad()

    return module.map(Shake())


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_transformer_encoder(first, masked):
    b, s, d = 2, 6, 8
    config = nn.TransformerEncoderConfig(d, 16, 2, 3).with_norm_first(first)
    encoder = shaken(config.with_dropout(0.0).init(F64))
    one = torch.nn.TransformerEncoderLayer(
        d, 2, 16, 0.0, "gelu", batch_first=True, norm_first=first, dtype=torch.float64
    )
    theirs = torch.nn.TransformerEncoder(one, 3, enable_nested_tensor=False)
    linears = Linears()
    for mine, other in zip(encoder.layers, theirs.layers, strict=True):
        copy_round(mine, other, linears, first)
    x, tx = both(normal(b, s, d), F64)
    given, options = nn.TransformerEncoderInput.new(x), {}
    if masked:
        pad, later = masks(b, s, s)
        given = given.mask_pad(Tensor.from_numpy(pad, F64))
        given = given.mask_attn(nn.generate_autoregressive_mask(b, s, F64))
        options = {
            "src_key_padding_mask": torch.from_numpy(pad),
            "mask": torch.from_numpy(later),
        }
    wanted = theirs(tx, **options)
    compare(encoder.forward(given), wanted, [(x, tx), *linears.pairs], rtol=1e-8)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_transformer_decoder(first, masked):
    b, s, t, d = 2, 5, 7, 8
    config = nn.TransformerDecoderConfig(d, 16, 2, 2).with_norm_first(first)
    decoder = shaken(config.with_dropout(0.0).init(F64))
    one = torch.nn.TransformerDecoderLayer(
        d, 2, 16, 0.0, "gelu", batch_first=True, norm_first=first, dtype=torch.float64
    )
    theirs, linears = torch.nn.TransformerDecoder(one, 2), Linears()
    order = (3, 1, 2) if first else (1, 2, 3)
    for mine, other in zip(decoder.layers, theirs.layers, strict=True):
        linears.attention(mine.self_attn, other.self_attn)
        linears.attention(mine.cross_attn, other.multihead_attn)
        linears.linear(mine.pwff.linear_inner, other.linear1)
        linears.linear(mine.pwff.linear_outer, other.linear2)
        for place, number in enumerate(order, 1):
            norm = getattr(mine, f"norm_{number}")
            linears.norm(norm, getattr(other, f"norm{place}"))
    (x, tx), (memory, tm) = both(normal(b, s, d), F64), both(normal(b, t, d), F64)
    given, options = nn.TransformerDecoderInput.new(x, memory), {}
    if masked:
        pad, _ = masks(b, s, t)
        own, later = masks(b, s, s)
        given = given.memory_mask_pad(Tensor.from_numpy(pad, F64))
        given = given.target_mask_pad(Tensor.from_numpy(own, F64))
        given = given.target_mask_attn(nn.generate_autoregressive_mask(b, s, F64))
        options = {
            "memory_key_padding_mask": torch.from_numpy(pad),
            "tgt_key_padding_mask": torch.from_numpy(own),
            "tgt_mask": torch.from_numpy(later),
        }
    wanted = theirs(tx, tm, **options)
    pairs = [(x, tx), (memory, tm), *linears.pairs]
    compare(decoder.forward(given), wanted, pairs, rtol=1e-8)


@pytest.mark.parametrize("device", [F64, F32, PLAIN32], ids=repr)
@pytest.mark.parametrize("kind", ["none", "bool", "bias", "causal"])
def test_attention_as_a_function(device, kind):
    like = device.float_dtype
    shapes = [(2, 3, 33, 16), (2, 3, 33, 16), (2, 3, 33, 20)]
    inputs = [both(normal(*shape, like=like), device) for shape in shapes]
    mask = bias = options = None
    asked = {}
    if kind == "bool":
        seen = RNG.random((2, 1, 33, 33)) < 0.7
        seen[..., 0] = True
        mask = Tensor.from_numpy(~seen, device)
        asked = {"attn_mask": torch.from_numpy(seen)}
    if kind == "bias":
        bias, other = both(normal(1, 3, 33, 33, like=like), device)
        asked = {"attn_mask": other}
        inputs.append((bias, other))
    if kind == "causal":
        options = AttentionModuleOptions(is_causal=True)
        asked = {"is_causal": True}
    out = attention(*[mine for mine, _ in inputs[:3]], mask, bias, options)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *[other for _, other in inputs[:3]], **asked
    )
    compare(out, wanted, inputs)


@pytest.mark.parametrize("device", [F64, F32], ids=repr)
def test_embedding(device):
    layer = nn.EmbeddingConfig(50, 24).init(device)
    theirs = torch.nn.Embedding(50, 24, dtype=torch.float64)
    theirs = theirs.to(torch.from_numpy(np.zeros(1, device.float_dtype)).dtype)
    give(theirs.weight, layer.weight.val())
    words = RNG.integers(0, 50, (4, 30))
    out = layer.forward(Tensor.from_numpy(words, device))
    wanted = theirs(torch.from_numpy(words))
    pairs = [(layer.weight.val(), theirs.weight)]
    compare(out, wanted, pairs, 1e-9 if device is F64 else 1e-5)
