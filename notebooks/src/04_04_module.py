# %% [markdown] tags=["goals"]
# # 4.4 · Module
#
# After this chapter you can
#
# - write modules with layers, with parameters, and with a choice of layers;
# - read, change, freeze, move and count the parameters of any module;
# - print a module your way, summarize it layer by layer, and adapt it with LoRA.
#
# About 30 minutes. You should have read [3.1](03_1_model.ipynb) and
# [4.3](04_03_autodiff.ipynb).

# %% tags=["setup", "rust:setup"]
import numpy as np

import burnbook
from burnbook import nn
from burnbook.backend import Autodiff
from burnbook.backend import Numpy
from burnbook.data import DigitsDataset
from burnbook.core.dtypes import Int
from burnbook.module import (
    Content,
    DisplaySettings,
    Lora,
    Module,
    ModuleMapper,
    ModuleVisitor,
    Param,
    RunningState,
    summary,
)
from burnbook.nn import check_module
from burnbook.optim import GradientsParams
from burnbook.tensor import Tensor
from burnbook.tensor import module as functional
from burnbook_widgets import AttentionView, ConvolutionView, ModuleTree
from burnbook_widgets.learn import check, peek, same

burnbook.seed(0)

# %% [markdown]
# ## Try it
#
# A module holds parameters; what it does with them is up to you. This one is part of
# every transformer, next to attention: two linear layers with a nonlinear activation
# between them, applied to each position of a sequence separately.


# %% tags=["run-me", "cell:feed-forward", "rust:feed-forward"]
class PositionWiseFeedForward(Module):
    linear_inner: nn.Linear
    linear_outer: nn.Linear
    dropout: nn.Dropout
    gelu: nn.Gelu

    def forward(self, x):
        x = self.gelu.forward(self.linear_inner.forward(x))
        return self.linear_outer.forward(self.dropout.forward(x))


# %% tags=["run-me", "rust:make"]
device = Autodiff(Numpy())
block = PositionWiseFeedForward(
    linear_inner=nn.LinearConfig(4, 8).init(device),
    linear_outer=nn.LinearConfig(8, 4).init(device),
    dropout=nn.DropoutConfig(0.1).init(),
    gelu=nn.Gelu(),
)
x = Tensor[3].from_floats([[[0.5, -1.0, 2.0, 0.0]]], device)
block.forward(x).shape

# %% tags=["run-me", "rust:print"]
print(block)

# %% [markdown]
# ## By hand
#
# What does `Module` do with the fields? It goes through them, and through the fields of
# those that are modules too, and finds every parameter with its *path*. A few lines of
# Python do the same with nested dicts:


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

# %% tags=["run-me", "rust:shapes"]
for path, param in block.named_params():
    print(f"{path:22} {tuple(param.shape)}")

# %% [markdown]
# Everything else builds on this: counting, saving, moving to another device, and the
# step of an optimizer visit all parameters in the same way.
#
# ## Four kinds of tensors
#
# | field | trained? | saved? | for |
# |---|---|---|---|
# | `Param` | yes | yes | weights |
# | `Param` with `set_require_grad(False)` | no | yes | frozen weights |
# | `Tensor` | no | no | constants that `init` can make again |
# | `RunningState` | no | yes | what `forward` updates, as the mean in BatchNorm |


# %% tags=["run-me", "cell:param", "rust:param"]
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

# %% tags=["run-me", "cell:into_record", "rust:into_record"]
grads = scaled.forward(ones).sum().backward()
print("gain:  ", scaled.gain.val().grad(grads))
print("offset:", scaled.offset.val().grad(grads))
record = scaled.into_record()
print("saved: ", [name for name, part in record.items() if part is not None])

# %% [markdown]
# What `forward` keeps up to date is a `RunningState`. `is_training(x)` says whether to:
# yes on `Autodiff`, no after `valid()` or `eval()`. So statistics of all training data are
# made by passing the data once with `Autodiff`: without `backward()`, the graph is dropped.


# %% tags=["run-me", "cell:running_state"]
class Centered(Module):
    mean: RunningState

    def forward(self, x):
        if not self.is_training(x):
            return x - self.mean.value()
        now = x.mean_dim(0)
        self.mean.update(self.mean.value_sync() * 0.5 + now.detach() * 0.5)
        return x - now


centered = Centered(RunningState.from_tensor(Tensor.zeros([1, 2], device)))
for _ in range(9):
    centered.forward(Tensor.from_data([[1.0, 4.0], [3.0, 4.0]], device))
print(centered.valid().mean.value().to_data())

# %% [markdown]
# Each parameter has an id. Optimizers and records identify it by that id, so a module can
# be copied, moved or saved between two steps, and training continues.

# %% tags=["run-me", "cell:to_device"]
moved = block.to_device(Numpy(float="f64"))
ours = [param.id for _, param in block.named_params()]
theirs = [param.id for _, param in moved.named_params()]
print(ours == theirs, moved.devices())

# %% [markdown]
# ## Methods of every module
#
# Modules never change in place: each of these returns a new module and leaves the old one
# as it was. For other changes there is `block.replace(field=…)`, a copy with another value
# in one of its fields.

# %% tags=["run-me", "cell:fork", "rust:fork"]
frozen = block.no_grad()  # no parameter is trained
valid = block.valid()  # the same without autodiff: dropout is off
copy = block.fork(device)  # on a device, detached from the graph behind it
print(block.num_params(), frozen.num_params(), valid.devices())
same(valid.forward(x.inner()), block.valid().forward(x.inner()))

# %% [markdown] tags=["cell:devices"]
# | here, as in Burn | PyTorch |
# |---|---|
# | `module.devices()` | – |
# | `module.fork(device)` | like `module.to(device).detach()` |
# | `module.to_device(device)` | `module.to(device)` |
# | `module.no_grad()` | `module.requires_grad_(False)` |
# | `module.num_params()` | – |
# | `module.visit(visitor)`, `module.map(mapper)` | – |
# | `module.into_record()`, `module.load_record(record)` | like `state_dict()`, `load_state_dict(…)` |
# | `module.save_file(path, recorder)`, `module.load_file(path, recorder)` | – |
# | `module.valid()`, and back with `module.train()` | `module.eval()` with `no_grad()` |
#
# ## Evaluation that keeps its gradients
#
# `valid()` leaves autodiff behind. Two uses need the gradients, though dropout should rest
# and BatchNorm use its running statistics: fine-tuning a part of a model, and asking which
# inputs decide. `eval()` gives such a copy, of all of it or of the parts that you name;
# `train()` takes it back. Burn has no counterpart.

# %% tags=["run-me"]
resting = block.eval()
same(resting.forward(x), resting.forward(x))
asked = x.require_grad()
slopes = asked.grad(resting.forward(asked).sum().backward())
print("slopes of the inputs:", np.asarray(slopes).round(2))
print(block.eval("dropout").dropout.in_eval, block.in_eval)

# %% [markdown]
# `features` gives what layers returned, by their paths, and after a backward pass the
# gradients of it. The module stays as it is.

# %% tags=["run-me"]
seen = block.features(x, at=["linear_inner", "gelu"])
_ = seen.output.sum().backward()
for path, value in seen.items():
    print(f"{path:14} {value.dims()}, its slopes {seen.grad(path).dims()}")

# %% [markdown]
# And a row of layers needs no class of its own; functions stand among the layers:

# %% tags=["run-me"]
row = nn.Sequential(block.linear_inner, nn.Gelu(), block.linear_outer)
print(row)

# %% [markdown]
# ## Visitor and mapper
#
# To look at every parameter, write a *visitor*; to make a module with changed ones, a
# *mapper*. The methods end in `_float`, `_int` or `_bool`; without that suffix they
# handle all kinds.


# %% tags=["run-me", "cell:visitor", "rust:visitor"]
class Largest(ModuleVisitor):
    def __init__(self):
        self.found = 0.0

    def visit_float(self, param_id, tensor):
        largest = tensor.abs().max().into_scalar()
        self.found = max(self.found, largest)


class Clip(ModuleMapper):
    def map_float(self, param_id, tensor):
        return tensor.clamp(-0.1, 0.1)


# %% tags=["run-me", "cell:visit", "rust:visit"]
before, after = Largest(), Largest()
clipped = block.map(Clip())
block.visit(before)
clipped.visit(after)
print(f"{before.found:.4f} {after.found:.4f}")

# %% [markdown]
# What a map returns has the same ids, and is trained as before:

# %% tags=["run-me"]
grads = clipped.forward(x).sum().backward()
reached = [param.val().grad(grads) for _, param in clipped.named_params()]
print(len(reached), "parameters;", reached.count(None), "without a gradient")

# %% [markdown]
# **Tied weights.** One `Param` in two fields is one weight: it has one gradient, takes
# one step, counts once, and stays tied in records. An embedding [words, d] ends a
# language model as well, turned: `functional.linear` takes a weight that no layer holds.


# %% tags=["run-me", "cell:tied"]
class Words(Module):
    embed: nn.Embedding
    layers: list[nn.Linear]

    def forward(self, ids):
        x = self.layers[1](self.layers[0](self.embed(ids)).tanh())
        return functional.linear(x, self.embed.weight.val().transpose())


first, second = (nn.LinearConfig(8, 8).init(device) for _ in range(2))
second = second.replace(weight=first.weight)
words = Words(nn.EmbeddingConfig(20, 8).init(device), [first, second])
logits = words(Tensor.from_ints([[1, 5, 3]], device))
grads = GradientsParams.from_grads(logits.sum().backward(), words)
print(logits.shape, words.num_params(), "parameters,", grads)

# %% [markdown]
# ## A choice between layers
#
# Burn's enum of modules is a union of types here: the field holds one of them, and its
# record says which one it was.


# %% tags=["run-me", "rust:enum-module"]
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
# `summary` runs a module once, with zeros of the shape you give, and shows the shapes of
# the inputs and outputs of every layer, its number of parameters, and its cost.

# %% tags=["widget"]
summary(block, [16, 4])

# %% tags=["run-me"]
table = summary(block, [16, 4])
print(table.params, table["linear_inner"].outputs, table.flops)

# %% [markdown]
# `ModuleTree` is the interactive version: unfold a layer, find a path, and freeze what
# should not be trained. Every button has a method; `explorer.module` is the module as
# you left it, and the original `block` has not changed.

# %% tags=["widget"]
explorer = ModuleTree(block, [16, 4])
explorer.freeze("linear_inner")
explorer.unfold("linear_inner")
explorer

# %% [markdown]
# ## Your own display
#
# A module can decide how it is printed. Often a class attribute is enough: with
# `shown = ("prob",)`, a dropout layer prints this field and no other, on one line; a
# pair of a name and a function adds a value that is computed, as in `nn.Linear` below.
# For more, `custom_settings` chooses the format, for the module and its children, and
# `custom_content` what is shown.


# %% tags=["run-me", "cell:display", "rust:display"]
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


# %% tags=["run-me", "rust:display-use"]
parts = block.linear_inner, block.linear_outer, block.dropout, block.gelu
print(Shown(*parts))

# %% [markdown]
# ## Adapt a large model with few parameters
#
# LoRA freezes every weight and learns, for each matrix, a correction: the product of two
# narrow matrices. It starts at zero, so at first nothing changes, and it has only a
# fraction of the parameters.

# %% tags=["run-me"]
tuned = block.apply_lora(Lora(rank=2, alpha=4.0))
same(tuned.valid().forward(x.inner()), block.valid().forward(x.inner()))
for path, param in tuned.named_params():
    if "lora" in path:
        print(f"{path:26} {tuple(param.shape)}")

# %% [markdown] tags=["cell:nn-batch-norm"]
# ## The built-in layers
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
# | losses | CrossEntropyLoss, MseLoss, HuberLoss, BinaryCrossEntropyLoss, CTCLoss … in `nn.loss` |
#
# <details><summary>Their names in PyTorch</summary>
#
# Most have the same name in `torch.nn`, with other capitals (`Relu` is `ReLU`, `Lstm` is
# `LSTM`, `MseLoss` is `MSELoss`). These differ:
#
# | here, as in Burn | PyTorch |
# |---|---|
# | `BatchNorm`, `InstanceNorm`, `Dropout` | one class each for any rank: `BatchNorm1d`, `BatchNorm2d` … |
# | `BiLstm`, `BiGru` | `nn.LSTM(bidirectional=True)`, `nn.GRU(bidirectional=True)` |
# | `DeformConv2d` | `torchvision.ops.DeformConv2d` |
# | `Interpolate1d`, `Interpolate2d` | `nn.Upsample` |
# | `BinaryCrossEntropyLoss` | `nn.BCELoss`, with logits `nn.BCEWithLogitsLoss` |
# | `SwiGlu`, `GateController`, `PositionalEncoding`, `RotaryEncoding` | – |
# </details>
#
# Each is made from a config, and each can be checked in one call, yours too: gradients
# reach every parameter, and records and configs survive saving and loading.

# %% tags=["run-me"]
norm = nn.LayerNormConfig(4).init(device)
print(check_module(norm, [2, 4]))

# %% [markdown]
# ## A closer look at two of them
#
# A convolution slides a small filter over an image. Every position gives one number: the
# pixels under the filter, each times its weight, all added up. This filter finds edges.
# Move it with the arrow keys, or show a layer: `ConvolutionView(x, layer)`.

# %% tags=["widget"]
digit = DigitsDataset.train().get(5).image / 255
edges = ConvolutionView(digit, [[1, 0, -1], [2, 0, -2], [1, 0, -1]], padding=1)
edges.at = (20, 9)
edges

# %% tags=["run-me"]
print(edges.sum)

# %% [markdown]
# Attention has no fixed window: the output of each token (a row) is a weighted mean over
# all tokens, and you see the weights. This layer has not been trained. Still, look at
# the three rows of *the*: they are equal in every head. Attention alone does not know
# the position of a word; that is what `PositionalEncoding` is for.

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
# The error says which layer it was, and its path in the module:

# %% tags=["raises-exception"]
block.forward(Tensor[2].ones([2, 5], device))

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

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
# <details><summary>Why does <code>Module</code> not prescribe a <code>forward</code>?</summary>
#
# It holds parameters and makes no assumption about their use: there may be several
# ways through it, with other arguments, or none.
# </details>
#
# <details><summary>A weight must be saved but never trained. Which kind is it?</summary>
#
# A `Param` with `set_require_grad(False)`. A plain `Tensor` would not be saved.
# </details>
#
# <details><summary>Why do methods return new modules?</summary>
#
# So an old model stays as it was: to compare with, to return to, to train from twice.
# Tensors are shared, so only what changes takes memory.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: derive, again</b></summary>
#
# `#[derive(Module)]` needs every field to be a module, a tensor, or marked otherwise.
# Here the annotations decide: `Param`, `Tensor` and modules (also in lists, tuples,
# dicts and unions) are visited; numbers, strings and booleans are constants.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A module is a container of parameters, each with a path and an id.
# - A `Param` is trained, a frozen `Param` is only saved, a `Tensor` is a constant.
# - `valid()` is without gradients, `eval()` with them; `features` shows what layers give.
# - Visitors read, mappers make a new module; nothing changes in place.
# - `print` and `summary` show it, `check_module` tests it, LoRA adapts it.
#
# **Where this lives.**
#
# - Modules: `burnbook/module`; read `burnbook/module/module.py` and
#   `burnbook/module/param.py` first.
# - Layers and losses: `burnbook/nn`, one file each; `burnbook/nn/linear.py` is the
#   shortest, `burnbook/nn/check.py` tests any of them.
# - Their ops: `burnbook/ops/attention.py`, `burnbook/ops/batch_norm.py`,
#   `burnbook/ops/embedding.py`, `burnbook/ops/gru.py`, `burnbook/ops/lstm.py`,
#   `burnbook/ops/norm.py`, `burnbook/ops/recurrent.py`, `burnbook/ops/rnn.py`,
#   `burnbook/ops/rotary.py`, `burnbook/ops/sequence_loss.py`, and
#   `burnbook/tensor/attention.py`.
# - The views: `widgets/burnbook_widgets/module`.
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
# Next: [4.5 · Optimizer](04_05_optimizer.ipynb)
