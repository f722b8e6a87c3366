# %% [markdown] tags=["goals"]
# # 4.4 · Module
#
# After this chapter you can
#
# - write modules of layers, of parameters, and of choices between layers;
# - read, change, freeze, move and count the parameters of any module;
# - print a module your way, sum it up layer by layer, and adapt it with LoRA.
#
# About 30 minutes. You should have read [3.1](03_1_model.ipynb) and
# [4.3](04_03_autodiff.ipynb).

# %% tags=["setup"]
import numpy as np

import burnbook
from burnbook import nn
from burnbook.autodiff import Autodiff
from burnbook.backend import Numpy
from burnbook.data import DigitsDataset
from burnbook.kinds import Int
from burnbook.module import (
    Content,
    DisplaySettings,
    Lora,
    Module,
    ModuleMapper,
    ModuleVisitor,
    Param,
    summary,
)
from burnbook.nn import check_module
from burnbook.tensor import Tensor
from burnbook_widgets import AttentionView, ConvolutionView, ModuleTree
from burnbook_widgets.learn import check, peek, same

burnbook.seed(0)

# %% [markdown]
# ## Try it
#
# A module holds parameters; what it does with them is up to you. This one is the heart
# of every transformer: two linear layers with a curve between them, applied to each
# position of a sequence alone.


# %% tags=["run-me"]
class PositionWiseFeedForward(Module):
    linear_inner: nn.Linear
    linear_outer: nn.Linear
    dropout: nn.Dropout
    gelu: nn.Gelu

    def forward(self, x):
        x = self.gelu.forward(self.linear_inner.forward(x))
        return self.linear_outer.forward(self.dropout.forward(x))


# %% tags=["run-me"]
device = Autodiff(Numpy())
block = PositionWiseFeedForward(
    linear_inner=nn.LinearConfig(4, 8).init(device),
    linear_outer=nn.LinearConfig(8, 4).init(device),
    dropout=nn.DropoutConfig(0.1).init(),
    gelu=nn.Gelu(),
)
x = Tensor[3].from_floats([[[0.5, -1.0, 2.0, 0.0]]], device)
block.forward(x).shape

# %% tags=["run-me"]
print(block)

# %% [markdown]
# ## By hand
#
# What does `Module` do with the fields? It walks through them, and through the fields
# of those that are modules too, and meets every parameter with its *path*. A few lines
# of Python do the same with nested dicts:


# %% tags=["run-me"]
def walk(tree, path=""):
    for name, value in tree.items():
        place = f"{path}.{name}" if path else name
        if isinstance(value, dict):
            yield from walk(value, place)
        else:
            yield place, value


tree = {"inner": {"weight": np.ones((4, 8)), "bias": np.zeros(8)}}
[(place, value.shape) for place, value in walk(tree)]

# %% [markdown]
# ## In burnbook

# %% tags=["run-me"]
for path, param in block.named_params():
    print(f"{path:22} {tuple(param.shape)}")

# %% [markdown]
# That walk is all a module is. Counting, saving, moving to another device and every
# optimizer are such walks.
#
# ## Three kinds of tensors
#
# | field | learned? | saved? | for |
# |---|---|---|---|
# | `Param` | yes | yes | weights |
# | `Param` with `set_require_grad(False)` | no | yes | weights that stay as they are |
# | `Tensor` | no | no | constants that `init` can make again |


# %% tags=["run-me"]
class Scaled(Module):
    gain: Param
    offset: Param
    table: Tensor

    def forward(self, x):
        return x * self.gain.val() + self.offset.val() + self.table


ones = Tensor[1].ones([4], device)
scaled = Scaled(
    gain=Param.from_tensor(ones),
    offset=Param.from_tensor(ones * 2.0).set_require_grad(False),
    table=ones * 3.0,
)

# %% tags=["run-me"]
grads = scaled.forward(ones).sum().backward()
print("gain:  ", scaled.gain.val().grad(grads))
print("offset:", scaled.offset.val().grad(grads))
record = scaled.into_record()
print("saved: ", [name for name, part in record.items() if part is not None])

# %% [markdown]
# A parameter has an id of its own. Optimizers and records know it by that id, so a
# module may be copied, moved or saved between two steps and training goes on.

# %% tags=["run-me"]
moved = block.to_device(Numpy(float="f64"))
ours = [param.id for _, param in block.named_params()]
theirs = [param.id for _, param in moved.named_params()]
print(ours == theirs, moved.devices())

# %% [markdown]
# ## Methods of every module
#
# Modules never change in place: each of these gives a new module and leaves the old
# one as it was.

# %% tags=["run-me"]
frozen = block.no_grad()  # no parameter learns
valid = block.valid()  # the same without autodiff: dropout sleeps
copy = block.fork(device)  # on a device, cut off the graph behind it
print(block.num_params(), frozen.num_params(), valid.devices())
same(valid.forward(x.inner()), block.valid().forward(x.inner()))

# %% [markdown]
# `train()` is the way back from `valid()`. `into_record`, `load_record`, `save_file` and
# `load_file` carry the numbers elsewhere.
#
# ## Visitor and mapper
#
# To look at every parameter, write a *visitor*; to make a module with other ones, a
# *mapper*. An optimizer is a mapper with a memory. The methods end in `_float`, `_int`
# or `_bool`; without that end they stand for all kinds.


# %% tags=["run-me"]
class Largest(ModuleVisitor):
    def __init__(self):
        self.found = 0.0

    def visit_float(self, param_id, tensor):
        largest = tensor.abs().max().into_scalar()
        self.found = max(self.found, largest)


class Clip(ModuleMapper):
    def map_float(self, param_id, tensor):
        return tensor.clamp(-0.1, 0.1)


# %% tags=["run-me"]
before, after = Largest(), Largest()
block.visit(before)
block.map(Clip()).visit(after)
print(f"{before.found:.4f} {after.found:.4f}")

# %% [markdown]
# ## A choice between layers
#
# An enum of modules is a union of types: the field holds one of them, and its record
# carries the name of the one it was.


# %% tags=["run-me"]
class Head(Module):
    layer: nn.Linear | nn.Conv1d

    def forward(self, x):
        return self.layer.forward(x)


print(Head(layer=nn.LinearConfig(4, 2).with_bias(False).init(device)))

# %% [markdown]
# Lists of modules (`list[nn.Linear]`) and `nn.Linear | None` work as well.
#
# ## See it
#
# `summary` runs a module once, with zeros of the shape you give, and tells what went
# in and out of every layer, how many parameters it has, and what it costs.

# %% tags=["widget"]
summary(block, [16, 4])

# %% tags=["run-me"]
table = summary(block, [16, 4])
print(table.params, table["linear_inner"].outputs, table.flops)

# %% [markdown]
# `ModuleTree` is the same to look into: unfold a layer, find a path, and freeze what
# is to stay as it is. Every button has a method; `explorer.module` is the module as
# you left it, and the `block` you began with has not changed.

# %% tags=["widget"]
explorer = ModuleTree(block, [16, 4])
explorer.freeze("linear_inner")
explorer.unfold("linear_inner")
explorer

# %% [markdown]
# ## Your own display
#
# A module may decide how it prints: `custom_settings` chooses the form, for itself and
# its children, and `custom_content` what is shown.


# %% tags=["run-me"]
class Shown(PositionWiseFeedForward):
    def custom_settings(self):
        return (
            DisplaySettings()
            .with_show_all_attributes(False)
            .with_new_line_after_attribute(True)
            .with_show_num_parameters(True)
            .with_indentation_size(2)
            .with_show_param_id(False)
        )

    def custom_content(self, content: Content):
        content = content.add("linear_inner", self.linear_inner)
        content = content.add("linear_outer", self.linear_outer)
        return content.add("anything", "anything_else")


# %% tags=["run-me"]
parts = block.linear_inner, block.linear_outer, block.dropout, block.gelu
print(Shown(*parts))

# %% [markdown]
# ## Adapt a large model with a small one
#
# LoRA freezes every weight and learns, beside each matrix, the product of two narrow
# ones. It starts at zero, so at first nothing changes; what is learned is small enough
# to send by mail.

# %% tags=["run-me"]
tuned = block.apply_lora(Lora(rank=2, alpha=4.0))
same(tuned.valid().forward(x.inner()), block.valid().forward(x.inner()))
for path, param in tuned.named_params():
    if "lora" in path:
        print(f"{path:26} {tuple(param.shape)}")

# %% [markdown]
# ## The layers that come with it
#
# | | |
# |---|---|
# | general | Linear, Embedding, Dropout, GaussianNoise, Interpolate, Unfold, PixelShuffle |
# | convolutions | Conv1d … 3d, ConvTranspose1d … 3d, DeformConv2d |
# | pooling | AvgPool, MaxPool, AdaptiveAvgPool |
# | normalization | BatchNorm, LayerNorm, GroupNorm, InstanceNorm, RmsNorm |
# | recurrent | Rnn, Lstm, BiLstm, Gru, BiGru |
# | transformer | MultiHeadAttention, TransformerEncoder, TransformerDecoder |
# | activations | Relu, Gelu, PRelu, LeakyRelu, SwiGlu, HardSigmoid … |
# | losses | CrossEntropy, Mse, Huber, Ctc … in `nn.loss` |
#
# Each is made from a config, and each can be checked in one call, yours too: gradients
# reach every parameter, records and configs come back as they were.

# %% tags=["run-me"]
norm = nn.LayerNormConfig(4).init(device)
print(check_module(norm, [2, 4]))

# %% [markdown]
# ## Two of them, cell by cell
#
# A convolution slides a small window over a picture. Every stop gives one number: the
# cells under the window, each times its weight, all added up. This kernel finds edges.
# Move the window with the arrow keys, or give it a layer: `ConvolutionView(x, layer)`.

# %% tags=["widget"]
digit = DigitsDataset.train().get(5).image / 255
edges = ConvolutionView(digit, [[1, 0, -1], [2, 0, -2], [1, 0, -1]], padding=1)
edges.at = (20, 9)
edges

# %% tags=["run-me"]
print(edges.sum)

# %% [markdown]
# Attention has no window: each token (a row) takes something of every token, and how
# much is what you see. This layer has learned nothing yet. Still, look at the three
# rows of *the*: they are alike, whatever the head. Attention alone does not know where
# a word stands; that is what `PositionalEncoding` is for.

# %% tags=["widget"]
words = ["the", "cat", "saw", "the", "dog", "and", "the", "dog", "ran"]
known = sorted(set(words))
ids = Tensor[2, Int].from_ints([[known.index(word) for word in words]], device)
tokens = nn.EmbeddingConfig(len(known), 16).init(device).forward(ids) * 3.0
layer = nn.MultiHeadAttentionConfig(16, 4).with_dropout(0.0).init(device)
looks = AttentionView(layer.forward(nn.MhaInput.self_attn(tokens)), words)
looks.head, looks.query = 1, 3
looks

# %% tags=["run-me"]
same(looks.shares[0], looks.shares[3])
same(looks.shares[0], looks.shares[6])

# %% [markdown]
# ## Look inside

# %% tags=["peek"]
peek(nn.Linear)

# %% [markdown]
# ## Where it breaks
#
# The error says which layer it was, and by which way one gets there:

# %% tags=["raises-exception"]
block.forward(Tensor[2].ones([2, 5], device))

# %% [markdown]
# ## Exercises

# %% tags=["exercise"]
# exercise 4.4.1: the parameters of PositionWiseFeedForward with 512 and 2048
answer = ...
check("4.4.1", answer)

# %% tags=["solution"]
answer = (512 * 2048 + 2048) + (2048 * 512 + 512)
check("4.4.1", answer)


# %% tags=["exercise"]
# exercise 4.4.2: a mapper that makes every parameter zero
class Zero(ModuleMapper): ...


answer = ...  # Zero()
check("4.4.2", answer)


# %% tags=["solution"]
class Zero(ModuleMapper):
    def map_float(self, param_id, tensor):
        return tensor.zeros_like()


answer = Zero()
check("4.4.2", answer)


# %% tags=["exercise"]
# exercise 4.4.3: a module that adds its input to what a layer makes of it
class Residual(Module):
    layer: nn.Linear

    def forward(self, x):
        return ...


answer = ...  # Residual, the class
check("4.4.3", answer)


# %% tags=["solution"]
class Residual(Module):
    layer: nn.Linear

    def forward(self, x):
        return x + self.layer.forward(x)


answer = Residual
check("4.4.3", answer)

# %% tags=["exercise"]
# exercise 4.4.4: what LoRA of rank 4 learns for a weight [512, 2048]
answer = ...
check("4.4.4", answer)

# %% tags=["solution"]
answer = 512 * 4 + 4 * 2048
check("4.4.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why does a module not know its <code>forward</code>?</summary>
#
# It holds parameters and makes no assumption about their use: there may be several
# ways through it, with other arguments, or none.
# </details>
#
# <details><summary>A weight must be saved but never learn. Which kind is it?</summary>
#
# A `Param` with `set_require_grad(False)`. A plain `Tensor` would not be saved.
# </details>
#
# <details><summary>Why do methods give new modules?</summary>
#
# Then an old model stays what it was: to compare with, to go back to, to train from
# twice. Tensors are shared, so nothing is copied that did not change.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: derive, again</b></summary>
#
# `#[derive(Module)]` needs every field to be a module, a tensor, or marked otherwise.
# Here the annotations decide: `Param`, `Tensor` and modules (also in lists, tuples,
# dicts and unions) are walked; numbers, texts and truth values are constants.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A module is a container of parameters, each with a path and an id.
# - `Param` learns, a frozen `Param` is only saved, a `Tensor` is a constant.
# - Visitors look, mappers make a new module; nothing changes in place.
# - `print` and `summary` show it, `check_module` tries it, LoRA adapts it.
#
# **Where this lives.**
# Modules: `burnbook/module/__init__.py`, `burnbook/module/display.py`,
# `burnbook/module/flops.py`, `burnbook/module/lora.py`, `burnbook/module/module.py`,
# `burnbook/module/param.py`, `burnbook/module/records.py`,
# `burnbook/module/reparameterization.py`, `burnbook/module/running.py`,
# `burnbook/module/summaries.py`, `burnbook/module/tree.py`,
# `burnbook/module/profiling.py`, `burnbook/module/visitor.py`. The tree to look into:
# `widgets/burnbook_widgets/module/__init__.py`,
# `widgets/burnbook_widgets/module/tree.py`, `widgets/burnbook_widgets/module/nodes.py`.
# Convolution and attention to look at: `widgets/burnbook_widgets/module/convolution.py`,
# `widgets/burnbook_widgets/module/planes.py`, `widgets/burnbook_widgets/module/sums.py`,
# `widgets/burnbook_widgets/module/attention.py`,
# `widgets/burnbook_widgets/module/shares.py`.
#
# <details><summary>Layers and losses</summary>
#
# `burnbook/nn/__init__.py`, `burnbook/nn/activation/__init__.py`,
# `burnbook/nn/activation/along.py`, `burnbook/nn/activation/choice.py`,
# `burnbook/nn/activation/edges.py`, `burnbook/nn/activation/gated.py`,
# `burnbook/nn/activation/plain.py`, `burnbook/nn/activation/slopes.py`,
# `burnbook/nn/attention/__init__.py`, `burnbook/nn/attention/cross_attention.py`,
# `burnbook/nn/attention/heads.py`, `burnbook/nn/attention/mask.py`,
# `burnbook/nn/attention/mha.py`, `burnbook/nn/cache.py`, `burnbook/nn/check.py`,
# `burnbook/nn/conv/__init__.py`, `burnbook/nn/conv/conv1d.py`,
# `burnbook/nn/conv/conv2d.py`, `burnbook/nn/conv/conv3d.py`,
# `burnbook/nn/conv/conv_transpose.py`, `burnbook/nn/conv/deform_conv2d.py`,
# `burnbook/nn/conv/shared.py`, `burnbook/nn/distance.py`, `burnbook/nn/dropout.py`,
# `burnbook/nn/embedding.py`, `burnbook/nn/identity.py`, `burnbook/nn/initializer.py`,
# `burnbook/nn/interpolate.py`, `burnbook/nn/linear.py`, `burnbook/nn/loss/__init__.py`,
# `burnbook/nn/loss/binary_cross_entropy.py`, `burnbook/nn/loss/checks.py`,
# `burnbook/nn/loss/cosine_embedding.py`, `burnbook/nn/loss/cross_entropy.py`,
# `burnbook/nn/loss/ctc.py`, `burnbook/nn/loss/gaussian_nll.py`,
# `burnbook/nn/loss/gram_matrix.py`, `burnbook/nn/loss/hinge_embedding.py`,
# `burnbook/nn/loss/huber.py`, `burnbook/nn/loss/kl_div.py`,
# `burnbook/nn/loss/lp_loss.py`, `burnbook/nn/loss/margin_ranking.py`,
# `burnbook/nn/loss/mse.py`, `burnbook/nn/loss/multi_margin.py`,
# `burnbook/nn/loss/poisson_nll.py`, `burnbook/nn/loss/reduction.py`,
# `burnbook/nn/loss/rnnt.py`, `burnbook/nn/loss/smooth_l1.py`,
# `burnbook/nn/loss/soft_margin.py`, `burnbook/nn/loss/triplet_margin.py`,
# `burnbook/nn/noise.py`, `burnbook/nn/norm/__init__.py`,
# `burnbook/nn/norm/batch_norm.py`, `burnbook/nn/norm/group_norm.py`,
# `burnbook/nn/norm/layer_norm.py`, `burnbook/nn/norm/local_response_norm.py`,
# `burnbook/nn/norm/normalization.py`, `burnbook/nn/norm/rms_norm.py`,
# `burnbook/nn/pixel_shuffle.py`, `burnbook/nn/pool/__init__.py`,
# `burnbook/nn/pool/adaptive_avg_pool1d.py`, `burnbook/nn/pool/adaptive_avg_pool2d.py`,
# `burnbook/nn/pool/adaptive_avg_pool3d.py`, `burnbook/nn/pool/avg_pool.py`,
# `burnbook/nn/pool/max_pool.py`, `burnbook/nn/positional_encoding.py`,
# `burnbook/nn/rnn/__init__.py`, `burnbook/nn/rnn/bi_lstm.py`,
# `burnbook/nn/rnn/gate_controller.py`, `burnbook/nn/rnn/gru.py`,
# `burnbook/nn/rnn/lstm.py`, `burnbook/nn/rnn/rnn.py`, `burnbook/nn/rnn/shared.py`,
# `burnbook/nn/rope_encoding.py`, `burnbook/nn/settings.py`,
# `burnbook/nn/transformer/__init__.py`, `burnbook/nn/transformer/decoder.py`,
# `burnbook/nn/transformer/encoder.py`, `burnbook/nn/transformer/pwff.py`,
# `burnbook/nn/transformer/shared.py`, `burnbook/nn/unfold.py`.
# </details>
#
# <details><summary>Their ops</summary>
#
# `burnbook/attention.py`, `burnbook/ops/attention.py`, `burnbook/ops/batch_norm.py`,
# `burnbook/ops/embedding.py`, `burnbook/ops/gru.py`, `burnbook/ops/norm.py`,
# `burnbook/ops/recurrent.py`, `burnbook/ops/rotary.py`,
# `burnbook/ops/sequence_loss.py`.
# </details>
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `class Block(Module)` | `#[derive(Module, Debug)] struct Block<B: Backend>` | the same, without `B` |
# | `Param.from_tensor(x)` | `Param::from_tensor(x)` | the same |
# | `param.set_require_grad(False)` | `param.set_require_grad(false)` | the same |
# | `block.visit(visitor)`, `block.map(mapper)` | `block.visit(&mut visitor)`, `block.map(&mut mapper)` | the same |
# | `block.no_grad()`, `block.valid()`, `block.fork(device)` | the same | the same |
# | `layer: Linear \| Conv1d` | `enum Layer<B> { Linear(…), Conv(…) }` | the same |
# | `custom_settings`, `custom_content` | `impl ModuleDisplay`, `#[module(custom_display)]` | the same |
# | `block.apply_lora(Lora(2, 4.0))` | – | `block.apply_lora(…)` |
#
# Back to the [overview](01_overview.ipynb)
