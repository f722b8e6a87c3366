# %% [markdown] tags=["goals"]
# # A2 · Where burnbook differs from Burn
#
# burnbook means to answer as Burn 0.15 does, and its tests make over a thousand calls
# again that Burn answered. Where it differs on purpose, a row here says so: because
# Burn 0.15 has a defect, because NumPy and PyTorch agree on something else, or because
# silence would cost you an evening. The tests prove every row.

# %% tags=["setup"]
from math import nan

from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import BurnbookError
from burnbook.prelude import *
from burnbook.record import BinBytesRecorder
from burnbook.reference.differences import differences
from burnbook.tensor import activation

# %% [markdown]
# **How to read a row.** Left what it is about, with an example and what it gives here;
# then what Burn 0.15 does; then what burnbook does, and why.
#
# ## NaN, infinity and large numbers
#
# A NaN means that a number is unknown, so it wins every comparison for the largest, and
# comes last in every order:

# %% tags=["run-me"]
x = Tensor.from_floats([2.0, nan, 1.0])
print(x.max().to_data(), x.argmax(0).to_data(), x.sort(0).to_data())
print(activation.softplus(Tensor.from_floats([100.0]), 1.0).to_data())

# %% tags=["run-me"]
differences("numbers")

# %% [markdown]
# ## Whole numbers
#
# Burn cuts off the fraction of whatever meets an Int tensor. Here you are told:

# %% tags=["run-me"]
try:
    Tensor.from_ints([1, 2, 3]) * 0.5
except BurnbookError as error:
    print(error)

# %% tags=["run-me"]
differences("integers")

# %% [markdown]
# ## Shapes

# %% tags=["run-me"]
mask = Tensor.from_bool([[True, False, False]])  # one row for both
print(Tensor.zeros([2, 3]).mask_fill(mask, 7))

# %% tags=["run-me"]
differences("shapes")

# %% [markdown]
# ## Gradients
#
# They flow along every dim, also where Burn 0.15 panics:

# %% tags=["run-me"]
x = Tensor.eye(2, Autodiff(Numpy())).require_grad()
print(x.grad(x.max_dim(0).backward()).to_data())

# %% tags=["run-me"]
differences("gradients")

# %% [markdown]
# ## Layers, losses and metrics
#
# Weights of a `Gru` from Burn 0.15 want `reset_after=False`; the numbers of its outputs
# agree for one step only, because Burn's Gru forgets the step before.

# %% tags=["run-me"]
gru = nn.GruConfig(2, 3, True).with_reset_after(False).init(Numpy())
print(gru.forward(Tensor.ones([1, 4, 2])).dims())

# %% tags=["run-me"]
differences("layers")

# %% [markdown]
# ## Records and files
#
# Layers, optimizers and schedules have changed their fields from release to release of
# Burn. A recorder writes those of the release that its `version` names, Burn 0.15's
# unless told otherwise; what a file of that release has no room for is refused where
# leaving it out would harm:

# %% tags=["run-me"]
norm = nn.LayerNormConfig(2, bias=False).init(Numpy())
try:
    BinBytesRecorder(version="0.19.1").record(norm)
except BurnbookError as error:
    print(error)
newer = BinBytesRecorder(version="0.20.1").record(norm)
print(len(newer), "bytes for Burn 0.20")

# %% tags=["run-me"]
differences("records")

# %% [markdown]
# ## Python's ways

# %% tags=["run-me"]
layer = nn.LinearConfig(2, 3).init(Numpy())
print(layer.replace(bias=None))
print(layer)

# %% tags=["run-me"]
differences("python")

# %% [markdown] tags=["summary"]
# **Where this lives.** The rows are in `burnbook/reference/differences.py`; what a call
# must be like to fall under one is in `burnbook/reference/calls.py`.
#
# Next: [A3 · Coming from PyTorch, Keras, NumPy or Rust](A3_coming_from.ipynb)
