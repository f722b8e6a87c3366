# %% [markdown] tags=["goals"]
# # A1 · The table of operations
#
# Every function of Burn's tensors, with what it takes and returns, whether gradients flow
# through it, and what it is called in Burn 0.15, in the newest Burn and in PyTorch. The
# table is generated from the declarations that run, so it is never out of date. To
# learn them in order, read [chapter 4.2](04_02_tensor.ipynb); here you look them up.

# %% tags=["setup"]
from burnbook.reference.accuracy import accuracy
from burnbook.reference.appendix import find, operations
from burnbook.reference.table import rows

# %% [markdown]
# **How to read a line.**
#
# | column | what it says |
# |---|---|
# | function | as you write it: a method of a tensor, or `activation.relu(x)` |
# | takes | the kinds it takes; after → the kind it returns, where that is another |
# | shapes | `...` stands for any dims; a letter is the same size wherever it occurs |
# | gradient | *its own rule*: a formula beside the op · *by its parts*: it is composed of ops that have one · *none*: nothing flows back · empty: there is nothing to differentiate |
# | Burn 0.15 | its name there; in *italics* where the book's tables leave it out |
# | newest Burn | its name in 0.22 |
#
# Below each name is what the function does. `help(Tensor.matmul)` says more, and
# `find` looks for a word in all of it:

# %% tags=["run-me"]
find("softmax")

# %% [markdown]
# How many there are:

# %% tags=["run-me"]
every = rows()
print(f"{len(every)} functions of Burn, {sum(r.present for r in every)} here")
print(f"{sum(r.is_op for r in every)} are ops with a declaration of their own")
print(f"gradients flow through {sum(r.gradient == 'yes' for r in every)}")
print(f"{sum(r.edition == 'newer' for r in every)} are newer than Burn 0.15")

# %% [markdown]
# ## Basic: Float, Int and Bool

# %% tags=["run-me"]
operations("basic")

# %% [markdown]
# ## Numeric: Float and Int

# %% tags=["run-me"]
operations("numeric")

# %% [markdown]
# ## Float

# %% tags=["run-me"]
operations("float")

# %% [markdown]
# ## Int

# %% tags=["run-me"]
operations("int")

# %% [markdown]
# ## Bool

# %% tags=["run-me"]
operations("bool")

# %% [markdown]
# ## Activation functions

# %% tags=["run-me"]
operations("activation")

# %% [markdown]
# ## Autodiff
#
# These read or set what [chapter 4.3](04_03_autodiff.ipynb) is about.

# %% tags=["run-me"]
operations("autodiff")

# %% [markdown]
# ## Quantization

# %% tags=["run-me"]
operations("quantization")

# %% [markdown]
# ## Linear algebra, signals, grids
#
# In newer Burn these are in modules of their own, as `activation` is.

# %% tags=["run-me"]
operations("linalg")

# %% tags=["run-me"]
operations("signal")

# %% tags=["run-me"]
operations("grid")

# %% [markdown]
# ## How exact they are
#
# Every op is compared with its own formula in numbers of 400 digits, and every function
# made of ops with float64: on points from the smallest number of a type to its largest,
# in float16, float32 and float64, with and without compiled kernels, fused and captured.
# Results are right in relative terms, so that 1e-30 has as many good digits as 1. In
# float16 a formula computes in float32 and rounds once. These are the exceptions:

# %% tags=["run-me"]
accuracy()

# %% [markdown] tags=["summary"]
# `python -m burnbook.reference.stubs --table` prints the same as plain text.
#
# **Where this lives.** `burnbook/reference/appendix.py` writes the pages,
# `burnbook/reference/composed.py` knows the functions that are composed of others,
# `burnbook/reference/accuracy.py` how exact they are. The
# table itself, `burnbook/reference/table.py`, belongs to
# [chapter 4.2](04_02_tensor.ipynb).
#
# Next: [A2 · Where burnbook differs from Burn](A2_differences.ipynb)
