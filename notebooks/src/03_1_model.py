# %% [markdown] tags=["goals"]
# # 3.1 · Model
#
# After this chapter you can
#
# - write a network as a module, and its options as a config;
# - say what a neuron and a hidden layer are, and why there is an activation between layers;
# - follow the shape of a batch through the network, layer by layer;
# - say in which layer each of its 531,178 parameters is.
#
# About 25 minutes. You should have read [chapter 2](02_getting_started.ipynb).

# %% tags=["setup", "rust:setup"]
import numpy as np

import burnbook
from burnbook.data import DigitsDataset
from burnbook.nn import (
    AdaptiveAvgPool2d,
    AdaptiveAvgPool2dConfig,
    Conv2d,
    Conv2dConfig,
    Dropout,
    DropoutConfig,
    Linear,
    LinearConfig,
    Relu,
)
from burnbook.prelude import *
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Images

burnbook.seed(0)

# %% [markdown]
# Chapters 3.1 to 3.5 build one thing: a network that reads handwritten digits. Along the
# way you learn to create a network, to prepare [data](03_2_data.ipynb), to
# [train](03_3_training.ipynb), to choose a [backend](03_4_backend.ipynb) and to use the
# trained model ([inference](03_5_inference.ipynb)). The project that all of it belongs
# in is the one that `burnbook new` makes ([chapter 2](02_getting_started.ipynb)).
#
# ## Try it
#
# The finished model is an example of the library. It knows ten classes, has 512 hidden
# neurons, and takes an image:

# %% tags=["run-me", "rust:try-it"]
from burnbook.examples.guide.model import ModelConfig as GuideConfig

device = Numpy()
model = GuideConfig(10, 512).init(device)
image = Tensor[3].random([1, 28, 28], Distribution.Default, device)
model.forward(image).shape

# %% [markdown]
# Ten numbers come out, one per digit. The largest is the model's guess, which is no
# better than chance yet: its parameters are random.
#
# A network is a chain of *layers*. Each turns numbers into other numbers. One output
# number of a layer is computed by a *neuron*: it multiplies its inputs by weights, adds
# them up, and adds a bias. Weights and biases are the *parameters* that training finds.
#
# ## By hand
#
# The first layer is a *convolution*. Its neurons share a few weights, the *filter*: a
# small window that slides over the image and takes, at every position, the sum of
# products with what lies under it:
#
# $$\text{out}_{ij} = b + \sum_{k,l} w_{kl}\; x_{i+k,\,j+l}$$


# %% tags=["run-me"]
def convolve(x, w, b):
    height, width = x.shape[0] - w.shape[0] + 1, x.shape[1] - w.shape[1] + 1
    out = np.empty((height, width), dtype=x.dtype)
    for i in range(height):
        for j in range(width):
            window = x[i : i + w.shape[0], j : j + w.shape[1]]
            out[i, j] = (window * w).sum() + b
    return out


x = np.arange(25, dtype=np.float32).reshape(5, 5) ** 2
edge = np.array([[1, 0, -1]] * 3, dtype=np.float32)
convolve(x, edge, 0.5)

# %% [markdown]
# The filter answers where the brightness changes from left to right: it finds edges. A
# 3 × 3 filter has 3 × 3 positions on a 5 × 5 image: each size shrinks by two.
#
# ## In burnbook
#
# A layer is made in two steps: a *config* describes it, `init(device)` creates it. Here
# one channel goes in, one comes out, and the filter is 3 × 3:

# %% tags=["run-me"]
layer = Conv2dConfig([1, 1], [3, 3]).init(device)
print(layer)

weight = np.asarray(layer.weight.val())[0, 0]
bias = np.asarray(layer.bias.val())[0]
out = layer.forward(Tensor[4].from_numpy(x.reshape(1, 1, 5, 5), device))
same(convolve(x, weight, bias), out.reshape([3, 3]))

# %% [markdown]
# ## Why there is an activation
#
# What a layer computes is a *linear map* (plus a bias): sums of inputs times weights. Two
# linear maps in a row are again one linear map, so two such layers can do no more than
# one:

# %% tags=["run-me", "rust:two-linears"]
first = LinearConfig(3, 4).init(device)
second = LinearConfig(4, 2).init(device)
some = Tensor[2].random([5, 3], Distribution.Default, device)

weight = first.weight.val() @ second.weight.val()
bias = second.forward(first.bias.val().unsqueeze_dim(0))
same(second.forward(first.forward(some)), some @ weight + bias)

# %% [markdown]
# An *activation* between the two breaks this. `Relu` is the simplest: it replaces
# negative numbers by zero. Each neuron is then switched on in one part of the input
# space and off in the rest, and together they can draw curved boundaries. You have seen
# it in the playground of [chapter 1](01_overview.ipynb).

# %% tags=["run-me", "rust:relu"]
points = Tensor[1].from_floats([-2.0, -0.5, 0.0, 1.0, 3.0], device)
print(Relu().forward(points).to_data().to_list())

# %% [markdown]
# The neurons between input and output are called *hidden*: nobody gives their values,
# and nobody reads them. A hidden layer turns its input into *features* that make the
# next layer's work easier; training finds out which.
#
# ## The model, written down
#
# A module is a class with annotated fields. What is trained (layers with parameters)
# and what is not (pooling, dropout, activation) stand side by side. `Module` adds the
# rest: printing, counting, saving, loading, moving to a device.


# %% tags=["run-me", "cell:model-struct", "rust:model-struct"]
class Model(Module):
    """Two convolutions, pooling, two linear layers."""

    conv1: Conv2d
    conv2: Conv2d
    pool: AdaptiveAvgPool2d
    dropout: Dropout
    linear1: Linear
    linear2: Linear
    activation: Relu


list(Model.__annotations__)

# %% [markdown]
# Next to it stands its config: the numbers one might want to change. A field with a
# default may be left out; the others must be given. `init` makes the layers, in the
# order of the fields.


# %% tags=["run-me", "cell:model-config", "rust:model-config"]
class ModelConfig(Config):
    num_classes: int
    hidden_size: int
    dropout: float = 0.5

    def init(self, device):
        return Model(
            Conv2dConfig([1, 8], [3, 3]).init(device),
            Conv2dConfig([8, 16], [3, 3]).init(device),
            AdaptiveAvgPool2dConfig([8, 8]).init(),
            DropoutConfig(self.dropout).init(),
            LinearConfig(16 * 8 * 8, self.hidden_size).init(device),
            LinearConfig(self.hidden_size, self.num_classes).init(device),
            Relu(),
        )


# %% tags=["run-me", "rust:use-config"]
config = ModelConfig(10, hidden_size=512)
print(config)

# %% tags=["run-me", "cell:print-model", "rust:print-model"]
model = config.init(device)
print(model)

# %% [markdown]
# Check the counts: `conv1` has 8 filters of 3 × 3 weights and 8 biases: 80. `linear1`
# connects 16 · 8 · 8 = 1024 inputs to 512 neurons, plus 512 biases: 524,800, nearly all
# of the model.
#
# A config is never changed in place; `with_…` gives a new one:

# %% tags=["run-me", "rust:with-dropout"]
config.with_dropout(0.2)

# %% [markdown]
# ## Forward
#
# How the layers are used is ordinary code in a method called `forward`. It could have
# another name, or there could be several. Here we add it to the class above; in a file
# it would be part of it. The comments give the shape after each line.


# %% tags=["run-me", "cell:forward", "rust:forward"]
def forward(self, images: Tensor[3]) -> Tensor[2]:
    batch, height, width = images.dims()
    x = images.reshape([batch, 1, height, width])  # one channel: grey
    x = self.dropout.forward(self.conv1.forward(x))  # [batch, 8, 26, 26]
    x = self.dropout.forward(self.conv2.forward(x))  # [batch, 16, 24, 24]
    x = self.pool.forward(self.activation.forward(x))  # [batch, 16, 8, 8]
    x = x.reshape([batch, 16 * 8 * 8])
    x = self.dropout.forward(self.linear1.forward(x))  # [batch, hidden]
    return self.linear2.forward(self.activation.forward(x))  # [batch, classes]


Model.forward = forward
model.forward(Tensor[3].zeros([4, 28, 28], device)).shape

# %% [markdown]
# While training, `dropout` sets half of its input to zero, at random, so that no feature
# can rely on another one always being there. That makes it harder for the model to
# memorize its training images instead of learning from them, which is called
# *overfitting*; a technique against it is called *regularization*. On a backend without
# autodiff dropout does nothing.
#
# Between `conv1` and `conv2` there is no activation: this is the network of Burn's book,
# line by line. As you now know, the two together are one linear map when dropout is off:
# a convolution with filters of 5 × 5. A `Relu` between them is a good first change.
#
# ## See it
#
# What does `conv1` make of a digit? Eight images, one per filter. The weights are still
# random, yet some filters already respond to edges.

# %% tags=["widget"]
digit = Tensor[4].from_numpy(
    DigitsDataset.test().get(0).image.reshape(1, 1, 28, 28), device
)
channels = model.conv1.forward(digit / 255.0)
Images(channels.reshape([8, 26, 26]), [f"filter {i}" for i in range(8)])

# %% [markdown]
# ## Nothing is made before it is needed
#
# `init` only *reserves* the parameters. Their values are drawn when they are first used,
# so a model whose parameters will come from a file costs nothing to make, however large
# it is.

# %% tags=["run-me"]
million = 1_000_000
huge = LinearConfig(million, million).init(device)  # 4 terabytes, once made
huge.num_params()

# %% [markdown]
# ## Look inside

# %% tags=["peek"]
peek(Relu)

# %% [markdown]
# ## Where it breaks
#
# An image of 2 × 2 is too small for a filter of 3 × 3. The first line names the layer and
# what is wrong; then come its inputs, and the path from the model down to that layer.

# %% tags=["raises-exception"]
model.forward(Tensor[3].zeros([4, 2, 2], device))

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 3.1.1: parameters of a convolution 8 → 16 with 3 × 3 filters
answer = ...
check("3.1.1", answer)

# %% tags=["solution"]
answer = 16 * (8 * 3 * 3) + 16
check("3.1.1", answer)

# %% tags=["exercise"]
# exercise 3.1.2: a ModelConfig for 26 letters, 64 hidden neurons, dropout 0.25
answer = ...
check("3.1.2", answer)

# %% tags=["solution"]
answer = ModelConfig(26, 64).with_dropout(0.25)
check("3.1.2", answer)

# %% tags=["exercise"]
# exercise 3.1.3: images [2, 3, 32, 20] after Conv2dConfig([3, 4], [5, 5])
answer = ...  # a shape, as a list
check("3.1.3", answer)

# %% tags=["solution"]
answer = [2, 4, 28, 16]
check("3.1.3", answer)


# %% tags=["exercise"]
# exercise 3.1.4: a module, linear 784 → 32, Relu, linear 32 → 10
class Mlp(Module):
    first: Linear
    second: Linear

    def forward(self, x):  # x [batch, 784] -> [batch, 10]
        ...


answer = ...  # an Mlp
check("3.1.4", answer)


# %% tags=["solution"]
class Mlp(Module):
    first: Linear
    second: Linear

    def forward(self, x):
        return self.second.forward(Relu().forward(self.first.forward(x)))


answer = Mlp(
    first=LinearConfig(784, 32).init(device),
    second=LinearConfig(32, 10).init(device),
)
check("3.1.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why a config, when a constructor could take the same numbers?</summary>
#
# A config is plain data: it can be saved beside the weights, printed, compared and
# varied, and it makes as many models as you like.
# </details>
#
# <details><summary>Why is a network of ten linear layers no better than one of a single layer?</summary>
#
# Without activations between them, the ten are one linear map. Only a nonlinear
# activation makes depth useful.
# </details>
#
# <details><summary>Why does the model fit images of any size?</summary>
#
# The adaptive pooling always gives 8 × 8, so `linear1` always gets 1024 numbers.
# </details>
#
# <details><summary>Why is there no softmax at the end?</summary>
#
# The loss of the training chapter takes the raw numbers (*logits*) and is more exact
# that way; the largest logit is also the largest probability.
# </details>

# %% [markdown] tags=["cell:trait-note"]
# <details><summary><b>🐍 Python note: annotations instead of derive</b></summary>
#
# Rust's `#[derive(Module)]` writes code from the fields of a struct. Python keeps the
# annotations of a class at run time; `Module` reads them when the class is defined, and
# so knows its fields. Traits such as `Module` are base classes here.
# </details>
#
# <details><summary><b>🐍 Python note: references</b></summary>
#
# Rust marks with `&` what a function only borrows. In Python every name refers to an
# object, and passing it on copies nothing. Tensors, modules and configs never change
# in place, so sharing them is safe.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A module is a class with annotated fields; a config is a frozen dataclass.
# - `config.init(device)` makes a module; parameters are drawn when first used.
# - Layers are linear; the activation between them makes a deep network more than one.
# - `forward` is ordinary code, and the comments carry the shapes.
# - The guide's model has 531,178 parameters, 98.8 % of them in `linear1`.
# - Printing a module shows its layers and counts.
#
# **Where this lives.** `burnbook/examples/guide/model.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `class Model(Module)` | `#[derive(Module, Debug)] struct Model<B: Backend>` | `struct Model`, no `B` |
# | `class ModelConfig(Config)` | `#[derive(Config)] struct ModelConfig` | the same |
# | `dropout: float = 0.5` | `#[config(default = "0.5")] dropout: f64` | the same |
# | `ModelConfig(10, 512).with_dropout(0.2)` | `ModelConfig::new(10, 512).with_dropout(0.2)` | the same |
# | `config.init(device)` | `config.init::<B>(&device)` | `config.init(&device)` |
#
# Next: [3.2 · Data](03_2_data.ipynb)
