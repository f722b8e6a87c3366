# %% [markdown] tags=["goals"]
# # 3.4 · Backend
#
# After this chapter you can
#
# - choose what computes, and in which precision;
# - say what autodiff adds to a backend, and when to leave it off;
# - run the whole guide with one call.
#
# About 15 minutes. You should have read [chapter 3.3](03_3_training.ipynb).

# %% tags=["setup", "rust:setup"]
import numpy as np

import burnbook
from burnbook import ops
from burnbook.backend import Counting
from burnbook.data import DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.guide.model import ModelConfig
from burnbook.examples.guide.training import TrainingConfig, train
from burnbook.optim import AdamConfig
from burnbook.prelude import *
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Bars

burnbook.seed(0)

# %% [markdown]
# ## Try it
#
# The model of the last chapters never said what should compute it. Here is one function
# on two backends: the second uses 64 bits per number.


# %% tags=["run-me", "rust:third"]
def third(device):
    return Tensor[1].from_floats([1.0], device) / 3.0


for backend in (Numpy(), Numpy(float="f64")):
    print(
        backend, third(backend).to_data().dtype, third(backend).into_scalar()
    )

# %% [markdown]
# ## By hand
#
# A backend has one method that matters: *run this operation on these arrays*. The rest
# of the library only calls that. A backend of our own, in two lines:


# %% tags=["run-me"]
class Envelope:
    def run(self, op, values):
        return op(np, *values)


by_hand = Envelope().run(ops.matmul, (np.eye(2) * 3, np.ones((2, 2))))
print(by_hand)

# %% [markdown]
# ## In burnbook
#
# A backend object also plays the role of what the book calls a device: tensors are
# created on it.

# %% tags=["run-me", "cell:ones", "rust:ones"]
device = Numpy()
threes = Tensor[2].eye(2, device) * 3.0
same(by_hand, threes @ Tensor[2].ones([2, 2], device))

# %% [markdown]
# | backend | what computes |
# |---|---|
# | `Numpy()` | NumPy on the processor; compiled kernels for the costly operations, if numba is installed |
# | `Numpy(compiled=False)` | NumPy alone: slower, and exactly the code that `peek` shows |
# | `Cupy(0)` | the first NVIDIA GPU; it needs CuPy: `pip install 'burnbook[cuda12]'`, or `[cuda13]` if `nvidia-smi` says CUDA 13 |
# | `Autodiff(Numpy())` | any of these, with gradients |
#
# Equal arguments give the same object, so backends can be compared and passed around.

# %% tags=["run-me"]
print(Numpy() is Numpy(), Numpy() is Numpy(float="f64"))

# %% [markdown] tags=["cell:backend-autodiff"]
# ## Autodiff is a decorator
#
# `Autodiff` wraps another backend. It forwards every operation to the one inside and
# records what the backward pass will need. Unwrapping costs nothing.

# %% tags=["run-me", "rust:decorated"]
training = Autodiff(Numpy())
print(training, "·", training.inner, "·", Numpy().autodiff() is training)

# %% [markdown]
# Wrap the backend for training, and use the inner one for everything else: it is faster,
# needs less memory, and dropout is off. `model.valid()` moves a model from the wrapped
# backend to the inner one.

# %% tags=["run-me", "rust:valid"]
model = ModelConfig(10, 64).init(training)
print(model.devices()[0], "→", model.valid().devices()[0])

# %% [markdown]
# ## See it
#
# A backend can be wrapped for other purposes, too. `Counting` counts operations: this is
# what one forward pass of the guide's model asks its backend to do.

# %% tags=["run-me"]
counting = Counting(Numpy())
images = MnistBatcher(counting).batch([DigitsDataset.test().get(0)]).images
model = ModelConfig(10, 64).init(counting)
model.forward(images)  # the first pass also draws the parameters
counting.counts.clear()
model.forward(images)
print(dict(counting.counts))

# %% tags=["widget"]
Bars(dict(counting.counts), "Operations of one forward pass")

# %% [markdown]
# ## The guide, in one call
#
# `burnbook guide` in a terminal does what the last chapters did: it trains, saves, and
# predicts. As a function it takes a folder, a configuration and a device, and mentions
# NumPy nowhere. Here with a very small network, for three epochs:

# %% tags=["run-me", "cell:main"]
config = TrainingConfig(ModelConfig(10, 32), AdamConfig(), num_epochs=3)
trained = train(
    "artifacts/backend",
    config.with_num_workers(2).with_learning_rate(3e-3),
    Autodiff(Numpy()),
    DigitsDataset.train(),
    DigitsDataset.test(),
)

# %% [markdown]
# On a machine with a GPU, writing `Autodiff(Cupy(0))` instead of `Autodiff(Numpy())` is
# the only change.
#
# ## Look inside
#
# A decorator holds a backend and forwards `run` to it. `Counting` is the smallest:

# %% tags=["peek"]
peek(Counting)

# %% [markdown]
# ## Where it breaks
#
# Tensors on different backends are never mixed by accident; moving one is explicit.

# %% tags=["raises-exception"]
Tensor[1].ones([2], Numpy()) + Tensor[1].ones([2], Numpy(float="f64"))

# %% tags=["run-me"]
double = Numpy(float="f64")
moved = Tensor[1].ones([2], Numpy()).to_device(double)
print((moved + Tensor[1].ones([2], double)).to_data().to_list())

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 3.4.1: a backend with 64-bit floats and gradients
answer = ...
check("3.4.1", answer)

# %% tags=["solution"]
answer = Autodiff(Numpy(float="f64"))
check("3.4.1", answer)

# %% tags=["exercise"]
# exercise 3.4.2: how many operations run for (a + b) * a - b?
answer = ...
check("3.4.2", answer)

# %% tags=["solution"]
answer = 3
check("3.4.2", answer)

# %% tags=["exercise"]
# exercise 3.4.3: t on the inner backend of its own
t = Tensor[1].from_floats([1.0, 2.0], Autodiff(Numpy()))
answer = ...
check("3.4.3", answer)

# %% tags=["solution"]
answer = t.inner()
check("3.4.3", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why is <code>Autodiff</code> not simply always on?</summary>
#
# It keeps what the backward pass needs, which costs memory; and a model that is only
# used needs no gradients.
# </details>
#
# <details><summary>Two runs differ in the last digit. What may be the cause?</summary>
#
# Another processor or another version of NumPy adds numbers in another order, and
# floating-point sums depend on the order.
# </details>
#
# <details><summary>When does <code>Numpy(compiled=False)</code> help?</summary>
#
# When you want to see or change what runs: it is the plain code, line by line.
# </details>

# %% [markdown] tags=["cell:bounds-note"]
# <details><summary><b>🐍 Python note: types at compile time, objects at run time</b></summary>
#
# In Rust, with Burn 0.15, the backend is a type parameter: `Model<B>` is another type for
# every `B`, and the compiler rejects a mix. Here it is an object that tensors refer to,
# and a mix is rejected when it happens. Burn went the same way in 0.22: a `Device`
# chooses the backend at run time.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A backend runs operations on arrays; it is also the device that tensors live on.
# - The same model runs on any of them.
# - `Autodiff(B)` adds gradients to B; `.inner` is B again.
# - A decorator is short: counting takes a few lines.
# - `train(folder, config, device)` is the whole guide.
#
# **Where this lives.** `burnbook/examples/guide/__main__.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `Numpy(float="f32", int="i64")` | `type B = NdArray<f32, i64>;` | `Device::flex()`, `configure(…)` |
# | `Cupy(0)` | `CudaDevice::new(0)` | `Device::cuda(0)` |
# | `Autodiff(Numpy())` | `Autodiff<NdArray>` | `device.autodiff()` |
# | `model.valid()` | `model.valid()` | the same |
# | `train(dir, config, device)` | `train::<B>(dir, config, device)` | `train(dir, config, device)` |
#
# Next: [3.5 · Inference](03_5_inference.ipynb)
