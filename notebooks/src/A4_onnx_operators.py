# %% [markdown] tags=["goals"]
# # A4 · ONNX's operators
#
# What `burnbook.importers.onnx` makes of each operator of ONNX, in which versions, and
# how many cases of ONNX's own suite it passes: run at once by `load`, and as source that
# `ModelGen` writes, in a fresh Python that has no package onnx.

# %% tags=["setup"]
import numpy as np

from burnbook.importers.onnx import operators as ops
from burnbook.prelude import *
from burnbook.reference.onnx_operators import onnx_operators, onnx_totals

# %% [markdown]
# **All cases**, those of single operators (node) and of whole models:

# %% tags=["run-me"]
onnx_totals()

# %% [markdown]
# **How to read a row.** Left the operator; then the versions of its definition that are
# known, each with the number of the opset that brought it; then what it becomes in the
# source, a layer where its weights are the file's own and a function elsewhere; then
# the cases about it that pass, of all. Where two numbers pass, the second is that of
# written source.
#
# The functions take what ONNX's definition says, in its order, and attributes by name:

# %% tags=["run-me"]
x = Tensor.from_floats([[1.0, -2.0, 3.0]])
print(ops.leaky_relu(x, alpha=0.1).to_data())
print(ops.top_k(np.array([3, 1, 2]), [2], outputs=2))

# %% [markdown]
# Look for one:

# %% tags=["run-me"]
onnx_operators(find="pool")

# %% [markdown]
# ## Element by element

# %% tags=["run-me"]
onnx_operators("elementwise")

# %% [markdown]
# ## Products

# %% tags=["run-me"]
onnx_operators("products")

# %% [markdown]
# ## Convolution

# %% tags=["run-me"]
onnx_operators("convolution")

# %% [markdown]
# ## Pooling

# %% tags=["run-me"]
onnx_operators("pooling")

# %% [markdown]
# ## Norms, softmax, dropout

# %% tags=["run-me"]
onnx_operators("norms")

# %% [markdown]
# ## Recurrent layers

# %% tags=["run-me"]
onnx_operators("recurrent")

# %% [markdown]
# ## Reductions

# %% tags=["run-me"]
onnx_operators("reductions")

# %% [markdown]
# ## Shapes

# %% tags=["run-me"]
onnx_operators("shapes")

# %% [markdown]
# ## Joining and splitting

# %% tags=["run-me"]
onnx_operators("joining")

# %% [markdown]
# ## Picking and changing elements

# %% tags=["run-me"]
onnx_operators("indexing")

# %% [markdown]
# ## Order

# %% tags=["run-me"]
onnx_operators("sorting")

# %% [markdown]
# ## Images

# %% tags=["run-me"]
onnx_operators("resampling")

# %% [markdown]
# ## Signals

# %% tags=["run-me"]
onnx_operators("signal")

# %% [markdown]
# ## Losses

# %% tags=["run-me"]
onnx_operators("losses")

# %% [markdown]
# ## Random numbers

# %% tags=["run-me"]
onnx_operators("random")

# %% [markdown]
# ## Element types

# %% tags=["run-me"]
onnx_operators("types")

# %% [markdown]
# ## Quantized numbers

# %% tags=["run-me"]
onnx_operators("quantized")

# %% [markdown]
# ## Sequences and optional values

# %% tags=["run-me"]
onnx_operators("sequences")

# %% [markdown]
# ## Texts

# %% tags=["run-me"]
onnx_operators("texts")

# %% [markdown]
# ## Control flow and constants

# %% tags=["run-me"]
onnx_operators("control")

# %% [markdown]
# ## Operators that ONNX defines by others

# %% tags=["run-me"]
onnx_operators("composed")

# %% [markdown]
# ## ai.onnx.ml: linear models, trees, what comes before and after

# %% tags=["run-me"]
onnx_operators("ml")

# %% [markdown]
# ## ai.onnx.ml: support vector machines

# %% tags=["run-me"]
onnx_operators("svm")

# %% [markdown]
# ## Training

# %% tags=["run-me"]
onnx_operators("training")

# %% [markdown]
# ## com.microsoft: what ONNX Runtime's optimizer and tools write
#
# They are no part of ONNX, so its suite has no cases of them; ONNX Runtime itself is
# what tests compare them with.

# %% tags=["run-me"]
onnx_operators("microsoft")

# %% [markdown] tags=["summary"]
# **Where this lives.** The functions are in `burnbook/importers/onnx/operators`, the
# versions in `burnbook/importers/onnx/versions.py`, older forms in `upgrades.py` beside
# it; which nodes are layers is in `layers.py`. The table is made by
# `burnbook/reference/onnx_operators.py` of what `python -m
# tests.importers.onnx.conformance` found.
#
# This is the last page. Back to [1 · Overview](01_overview.ipynb)
