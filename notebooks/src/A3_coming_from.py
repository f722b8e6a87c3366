# %% [markdown] tags=["goals"]
# # A3 · Coming from PyTorch, Keras, NumPy or Rust
#
# You know another library: here stands what you would type there, what you type here,
# and what differs. The tables come from the same rows that errors take their hints
# from, and the tests run both columns and compare the results, so they are true.

# %% tags=["setup"]
from burnbook.core.errors import BurnbookError
from burnbook.optim import AdamConfig, GradientsParams, SgdConfig
from burnbook.prelude import *
from burnbook.reference.coming_from import coming_from
from burnbook.tensor import check_gradient, custom_gradient

# %% [markdown]
# **Five habits to change.**
#
# 1. *Nothing changes in place.* `x.relu_()` is `x = x.relu()`; an optimizer's step
#    returns the new model, and the old one is still there.
# 2. *The device is a value that you hand over.* `Numpy()` computes,
#    `Autodiff(Numpy())` also remembers; there is no global switch to forget.
# 3. *Gradients come back.* `loss.backward()` returns them, so nothing is zeroed.
# 4. *A config is the recipe, `init` makes the layer.* Configs are saved and compared.
# 5. *Reductions keep their dim*, and ranks must be equal: sizes of 1 stretch, a missing
#    dim does not appear by itself.
#
# A step of training, in full:

# %% tags=["run-me"]
device = Autodiff(Numpy())
device.seed(0)
model = nn.LinearConfig(3, 2).init(device)
x = Tensor.ones([4, 3], device)

loss = model(x).square().mean()
grads = GradientsParams.from_grads(loss.backward(), model)
model = SgdConfig().init().step(0.1, model, grads)
print(f"{loss:.4f} → {model(x).square().mean():.4f}")

# %% [markdown]
# If you type a name of another library, the error says what it is here:

# %% tags=["run-me"]
for mistake in (
    lambda: x.view(2, 6),
    lambda: x.sum(dim=1),
    lambda: AdamConfig(lr=1),
):
    try:
        mistake()
    except BurnbookError as error:
        print(error, end="\n\n")

# %% [markdown]
# **How to read the tables.** `x` and `y` are tensors of the same shape, `n` and `index`
# whole numbers, `mask` truth values, `m` a square matrix and `v` a vector, `image` a
# batch of images; `a` and `w` are tensors on a device with Autodiff. Above a table
# stands what its right column imports, beside `from burnbook.prelude import *`. There
# is more to look up than to read, so look for a word:

# %% tags=["run-me"]
coming_from("PyTorch", find="clip_grad")

# %% [markdown]
# ## PyTorch
#
# `torch`, `nn` is `torch.nn`, and `F` is `torch.nn.functional`.

# %% tags=["run-me"]
coming_from("PyTorch")

# %% [markdown]
# ### Making tensors

# %% tags=["run-me"]
coming_from("PyTorch", "making")

# %% [markdown]
# ### Random numbers

# %% tags=["run-me"]
coming_from("PyTorch", "random")

# %% [markdown]
# ### What a tensor is

# %% tags=["run-me"]
coming_from("PyTorch", "facts")

# %% [markdown]
# ### Shapes

# %% tags=["run-me"]
coming_from("PyTorch", "shapes")

# %% [markdown]
# ### Picking and changing elements

# %% tags=["run-me"]
coming_from("PyTorch", "indexing")

# %% [markdown]
# ### Element by element

# %% tags=["run-me"]
coming_from("PyTorch", "elementwise")

# %% [markdown]
# ### Comparing

# %% tags=["run-me"]
coming_from("PyTorch", "comparing")

# %% [markdown]
# ### Sums, means, largest elements

# %% tags=["run-me"]
coming_from("PyTorch", "reductions")

# %% [markdown]
# ### Matrices

# %% tags=["run-me"]
coming_from("PyTorch", "matrices")

# %% [markdown]
# ### Activations

# %% tags=["run-me"]
coming_from("PyTorch", "activations")

# %% [markdown]
# ### Functions of images, and losses

# %% tags=["run-me"]
coming_from("PyTorch", "functions")

# %% [markdown]
# ### Layers

# %% tags=["run-me"]
coming_from("PyTorch", "layers")

# %% [markdown]
# ### Losses

# %% tags=["run-me"]
coming_from("PyTorch", "losses")

# %% [markdown]
# ### Models and their parameters

# %% tags=["run-me"]
coming_from("PyTorch", "modules")

# %% [markdown]
# ### Gradients

# %% tags=["run-me"]
coming_from("PyTorch", "gradients")

# %% [markdown]
# What PyTorch writes as a `torch.autograd.Function`, and JAX as a `custom_vjp`, is a
# function with a decorator. Its gradient asks by name for what it needs, and the graph
# keeps just that. `check_gradient` compares it with slopes, as `gradcheck` does:


# %% tags=["run-me"]
@custom_gradient
def safe_log(x):
    return x.log()


@safe_log.backward
def _(g, x):
    return g / x.clamp_min(1e-3)


near, far = Tensor.from_floats([0.5, 2.0]), Tensor.from_floats([1e-4, 2.0])
print(check_gradient(safe_log, near, second=True))
print(check_gradient(safe_log, far))

# %% [markdown]
# ### Optimizers

# %% tags=["run-me"]
coming_from("PyTorch", "optimizers")

# %% [markdown]
# ### Learning rates

# %% tags=["run-me"]
coming_from("PyTorch", "schedules")

# %% [markdown]
# ### Data

# %% tags=["run-me"]
coming_from("PyTorch", "data")

# %% [markdown]
# ### Training

# %% tags=["run-me"]
coming_from("PyTorch", "training")

# %% [markdown]
# ### Saving and loading

# %% tags=["run-me"]
coming_from("PyTorch", "saving")

# %% [markdown]
# ### Devices

# %% tags=["run-me"]
coming_from("PyTorch", "devices")

# %% [markdown]
# ### Tools
#
# Compiling, measuring, finding NaN, and what other programs read.

# %% tags=["run-me"]
coming_from("PyTorch", "tools")

# %% [markdown]
# ## Keras
#
# A `compile` and a `fit` are a `LearnerBuilder` and its `fit`, see
# [chapter 4.6](04_06_learner.ipynb); a layer says the size of its input.

# %% tags=["run-me"]
coming_from("Keras")

# %% tags=["run-me"]
coming_from("Keras", "making")

# %% tags=["run-me"]
coming_from("Keras", "random")

# %% tags=["run-me"]
coming_from("Keras", "facts")

# %% tags=["run-me"]
coming_from("Keras", "shapes")

# %% tags=["run-me"]
coming_from("Keras", "indexing")

# %% tags=["run-me"]
coming_from("Keras", "elementwise")

# %% tags=["run-me"]
coming_from("Keras", "comparing")

# %% tags=["run-me"]
coming_from("Keras", "reductions")

# %% tags=["run-me"]
coming_from("Keras", "matrices")

# %% tags=["run-me"]
coming_from("Keras", "activations")

# %% tags=["run-me"]
coming_from("Keras", "layers")

# %% tags=["run-me"]
coming_from("Keras", "losses")

# %% tags=["run-me"]
coming_from("Keras", "modules")

# %% tags=["run-me"]
coming_from("Keras", "optimizers")

# %% tags=["run-me"]
coming_from("Keras", "training")

# %% tags=["run-me"]
coming_from("Keras", "saving")

# %% [markdown]
# ## NumPy
#
# A tensor is not an array: it has a kind (Float, Int, Bool) in place of many types,
# lives on a device, and never changes. `np.asarray(x)` looks at its numbers at any time.

# %% tags=["run-me"]
coming_from("NumPy")

# %% tags=["run-me"]
coming_from("NumPy", "making")

# %% tags=["run-me"]
coming_from("NumPy", "random")

# %% tags=["run-me"]
coming_from("NumPy", "facts")

# %% tags=["run-me"]
coming_from("NumPy", "shapes")

# %% tags=["run-me"]
coming_from("NumPy", "indexing")

# %% tags=["run-me"]
coming_from("NumPy", "elementwise")

# %% tags=["run-me"]
coming_from("NumPy", "comparing")

# %% tags=["run-me"]
coming_from("NumPy", "reductions")

# %% tags=["run-me"]
coming_from("NumPy", "matrices")

# %% tags=["run-me"]
coming_from("NumPy", "saving")

# %% [markdown]
# ## Rust and Burn
#
# The names are Burn's, so this is about the languages. `use burn::tensor::activation`
# is `from burnbook.tensor import activation`. All functions of tensors stand in
# [appendix A1](A1_ops.ipynb), and what answers otherwise in
# [appendix A2](A2_differences.ipynb).

# %% tags=["run-me"]
coming_from("Burn", "Rust and Burn")

# %% [markdown] tags=["summary"]
# **Where this lives.** The rows are in `burnbook/core/other_names.txt`, read by
# `burnbook/core/other_names.py`; `burnbook/reference/coming_from.py` makes the tables.
#
# Next: [A4 · ONNX's operators](A4_onnx_operators.ipynb)
