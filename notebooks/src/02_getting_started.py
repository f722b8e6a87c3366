# %% [markdown] tags=["goals"]
# # 2 · Getting started
#
# After this chapter you can
#
# - install `burnbook` and make a project of your own;
# - make tensors, add them, and read how they are displayed;
# - tell rank, shape, kind and backend apart, and fix an error about them;
# - choose a backend, and run a project and the examples.
#
# About 15 minutes. You should have read [chapter 1](01_overview.ipynb).

# %% tags=["setup", "cell:use-short", "rust:setup"]
import numpy as np

import burnbook
from burnbook import ops
from burnbook.prelude import *
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Images

burnbook.seed(0)

# %% [markdown] tags=["cell:install-note"]
# ## Installing
#
# If you can run this page, everything is installed. On another machine, with Python
# 3.11 or newer:
#
# | command | what it does |
# |---|---|
# | `make lab` | in a copy of the repository: installs everything and opens this book |
# | `make guide` | trains the network of chapter 3 in the terminal |
# | `pip install ".[lab]"` | there, without `make`: into the Python that you use; then `burnbook lab` opens the book |
# | `pip install ".[cuda12]"` | there, too: also the backend for NVIDIA GPUs (`cuda13` for CUDA 13) |
# | `burnbook new my_burn_app` | a small project: model, data, training, inference, main |
# | `cd my_burn_app` | enter it |
# | `python -m compileall -q .` | checks it quickly: can Python read every file? Nothing runs |
# | `python main.py` | runs it: trains, then predicts |
# | `burnbook warmup` | compiles the fast kernels now, with all cores; otherwise a process in the background does it, once |
#
# The backend is chosen at install time and in one line of code: `Numpy()` is always
# there and runs on the processor, `Cupy(0)` is the first GPU
# ([chapter 3.4](03_4_backend.ipynb)).

# %% [markdown]
# ## Try it
#
# Two tensors of the same shape, and their sum. `ones_like` makes a tensor of ones with
# the shape, kind and device of the first.

# %% tags=["run-me", "cell:first-program", "rust:first-program"]
device = Numpy()

tensor_1 = Tensor[2].from_data([[2.0, 3.0], [4.0, 5.0]], device)
tensor_2 = Tensor[2].ones_like(tensor_1)

print(tensor_1 + tensor_2)

# %% [markdown]
# Read the display from the bottom up: the elements have type `f32` (32 bits each) and
# kind `Float`; the backend `numpy` computes on the device `Cpu`; the shape is 2 rows and
# 2 columns. The numbers come first.

# %% [markdown]
# ## By hand
#
# Behind every tensor of this backend is a NumPy array, so NumPy must agree:
#
# $$\text{out}_{ij} = a_{ij} + 1$$

# %% tags=["run-me"]
a = np.array([[2.0, 3.0], [4.0, 5.0]], dtype=np.float32)
by_hand = a + np.ones_like(a)
print(by_hand)

# %% [markdown]
# ## In burnbook

# %% tags=["run-me"]
same(by_hand, tensor_1 + tensor_2)

# %% [markdown]
# ## Rank, shape, kind
#
# `Tensor[2]` means *rank 2*: two dimensions, whatever their sizes. The sizes are the
# shape, and they follow from the data. The second word in the brackets is the kind of
# the elements; `Float` may be left out.

# %% tags=["run-me", "cell:kinds", "rust:kinds"]
floats = Tensor[1].from_floats([1.0, 2.0, 3.0], device)
ints = Tensor[1, Int].from_ints([1, 2, 3], device)
truths = Tensor[1, Bool].from_data([True, False, True], device)

for tensor in (floats, ints, truths):
    print(repr(tensor))

# %% [markdown]
# Kinds never change silently: an `Int` becomes a `Float` only when you call `.float()`.
# A dimension of size 1 stretches to match a larger one (*broadcasting*), as in NumPy.

# %% tags=["run-me", "rust:broadcasting"]
column = Tensor[2].from_floats([[10.0], [20.0]], device)  # [2, 1]
row = Tensor[2].from_floats([[1.0, 2.0, 3.0]], device)  # [1, 3]
print((column + row).to_data().to_list())

# %% [markdown]
# ## See it
#
# A tensor of rank 2 can be shown as an image. This one holds the distance of each pixel
# from the center; dark means near. Change the 14 and the image moves.

# %% tags=["widget"]
steps = Tensor[1, Int].arange(0, 28, device).float() - 14.0
squares = steps * steps
distance = (squares.reshape([28, 1]) + squares.reshape([1, 28])).sqrt()
Images(distance.reshape([1, 28, 28]), zoom=6)

# %% [markdown]
# ## Look inside
#
# `+` calls `ops.add`. An op is declared once: the code that runs, in plain array code,
# and below it the gradient with respect to each input.

# %% tags=["peek"]
peek(ops.add)

# %% [markdown]
# ## Where it breaks
#
# A list of three numbers has rank 1. If rank 2 is asked for, the library does not guess.

# %% tags=["raises-exception"]
Tensor[2].from_floats([1.0, 2.0, 3.0], device)

# %% [markdown]
# Kinds do not mix, either. Here the fix is one word.

# %% tags=["raises-exception"]
floats + ints

# %% tags=["run-me", "rust:convert-kind"]
print((floats + ints.float()).to_data().to_list())

# %% [markdown] tags=["cell:prelude-long"]
# ## The prelude
#
# `from burnbook.prelude import *` at the top of this page is short for
#
# ```python
# from burnbook import nn
# from burnbook.backend.autodiff import Autodiff
# from burnbook.backend import Backend, Cupy, Device, Numpy
# from burnbook.config import Config
# from burnbook.module import Module, Param
# from burnbook.tensor import (
#     Bool, Distribution, ElementConversion, Float, Int, Shape, Tensor, TensorData,
# )
# ```
#
# Most chapters use the prelude. Those on the building blocks do not, because there it
# helps to see where each name comes from.

# %% [markdown] tags=["cell:example-command"]
# ## Examples
#
# The network of the next chapter is also an importable example, and
# `burnbook guide` runs it in the terminal. Its four files are the four parts of every
# project, and `burnbook new` copies them for you.
#
# ```
# burnbook/examples/guide/
# ├── model.py       the network and its configuration      chapter 3.1
# ├── data.py        from items to batches                  chapter 3.2
# ├── training.py    loss, steps, learner                   chapter 3.3
# └── inference.py   load what was trained and predict      chapter 3.5
# ```
#
# | example | what it shows | run it |
# |---|---|---|
# | guide | the network for digits, from data to prediction | `burnbook guide` |
# | pytorch_import | a network of PyTorch, from its `.pt` file to a prediction | `python -m burnbook.examples.pytorch_import` |
# | [text generation](examples/text_generation.ipynb) | an LSTM and a transformer learn to write | open the page |
# | [residual network](examples/residual_network.ipynb) | blocks with a way around, mixup, averaged weights | open the page |
# | [fine-tuning](examples/fine_tuning.ipynb) | a part is kept, with its statistics; the rest learns from few images | open the page |
# | [saliency](examples/saliency.ipynb) | which pixels and which region decide | open the page |
#
# Burn's own repository has a dozen more (regression, image folders, the web …). A name that begins with an underscore is private
# to its file, in the examples as in the library; all others may be imported.

# %% [markdown]
# ## A cell of Rust
#
# Below many cells of this book stands **🦀 The same in Rust**, folded, for readers who go
# on to Burn itself. You need none of it here. But if you have
# [Rust installed](https://rustup.rs), a cell of yours may be Rust, too: write
# `%load_ext burnbook.rust` into a new cell, and into the next one
#
# ```rust
# %%rust -i tensor_1 -o total
# let total = tensor_1.clone() + tensor_1.ones_like();
# println!("{total}");
# ```
#
# `-i` names what the cell gets from Python, `-o` what Python gets back: afterwards
# `same(tensor_1 + tensor_2, total)` compares the two. The first such cell downloads Burn
# and compiles it, which takes some minutes; later ones take seconds. `%%rust?` says more.

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 2.1: a tensor of 2 rows and 3 columns, full of 7.0
answer = ...
check("2.1", answer)

# %% tags=["solution", "cell:full"]
answer = Tensor[2].full([2, 3], 7.0, device)
check("2.1", answer)

# %% tags=["exercise"]
# exercise 2.2: the shape of column * row, as a list, without running it
answer = ...
check("2.2", answer)

# %% tags=["solution"]
answer = [2, 3]
check("2.2", answer)

# %% tags=["exercise"]
# exercise 2.3: the sum of the even numbers below 10, with arange
answer = ...  # an Int tensor of one element
check("2.3", answer)

# %% tags=["solution"]
answer = (Tensor[1, Int].arange(0, 5, device) * 2).sum()
check("2.3", answer)

# %% tags=["exercise"]
# exercise 2.4: the mean of ints, as a Float tensor
answer = ...
check("2.4", answer)

# %% tags=["solution"]
answer = ints.float().mean()
check("2.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>What is the difference between rank and shape?</summary>
#
# The rank is the number of dimensions; the shape is the size of each.
# </details>
#
# <details><summary>Why is there no tensor that just lives "somewhere"?</summary>
#
# Every tensor is made on a device, and an operation needs all its inputs on the same
# one. So nothing is ever moved behind your back.
# </details>
#
# <details><summary>What does <code>repr(tensor)</code> show that <code>print(tensor)</code> does not?</summary>
#
# Mean, standard deviation, smallest and largest value, on one line: enough to notice
# that something is wrong with a tensor that is too large to read.
# </details>

# %% [markdown] tags=["cell:use-note"]
# <details><summary><b>🐍 Python note: imports and packages</b></summary>
#
# A *module* is a file, a *package* is a folder of modules, and a *distribution* is
# what `pip` installs. `import burnbook` runs `burnbook/__init__.py`; `from burnbook
# import ops` binds the subpackage `ops`. Rust says *crate* for a distribution and
# *module* for both of the others. Rust marks what is public with `pub`, file by file;
# Python has the underscore, and `__init__.py`, which lists what a package offers.
# </details>
#
# <details><summary><b>🐍 Python note: what <code>Tensor[2]</code> is</b></summary>
#
# In Rust the rank belongs to the type and the compiler checks it. In Python `Tensor[2]`
# is an object that holds a rank (and optionally a kind and a backend), forwards every
# call to `Tensor`, and checks the result. `isinstance(t, Tensor[2])` works; as an
# annotation it is a note for readers.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A tensor has a shape, a kind, an element type, and lives on a device.
# - `Tensor[rank, kind]` says what you expect, and it is checked.
# - Size-1 dimensions stretch; kinds never change silently.
# - `print` shows the numbers, `repr` one line about them.
# - `burnbook new my_burn_app` starts a project; `python main.py` in it runs it.
#
# **Where this lives.** The prelude is `burnbook/prelude.py`. The helpers `same`,
# `check` and `peek` are in `widgets/burnbook_widgets/learn.py`, the exercises in
# `widgets/burnbook_widgets/chapters`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `burnbook new my_burn_app` | `cargo new my_burn_app` | the same |
# | `Numpy()` | `type Backend = NdArray;` | `Device::flex()` |
# | `Tensor[2].from_data(d, device)` | `Tensor::<Backend, 2>::from_data(d, &device)` | `Tensor::<2>::from_data(d, &device)` |
# | `Tensor[1, Int]` | `Tensor<Backend, 1, Int>` | `Tensor<1, Int>` |
# | `print(t)` | `println!("{}", t)` | the same |
# | `from burnbook.prelude import *` | `use burn::prelude::*;` | the same |
#
# Next: [3.1 · Model](03_1_model.ipynb)
