# %% [markdown] tags=["goals"]
# # 1 · Overview
#
# After this chapter you can
#
# - say in one sentence each what a tensor, a gradient, a module and a learner are;
# - fit a line to points, by hand and with `burnbook`;
# - find your way through the book.
#
# About 10 minutes. You need a little Python; no deep learning, no Rust.

# %% tags=["setup"]
import numpy as np

import burnbook
from burnbook import ops
from burnbook.prelude import *
from burnbook_widgets.chapters.work import SaveMyWork
from burnbook_widgets import Playground
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Lines

burnbook.seed(0)

# %% [markdown]
# ## Try it
#
# Four points lie on a line, y = 2x + 1. Nobody tells the program the 2 and the 1: it
# starts from 0 and 0, and two hundred small corrections find them. All of deep
# learning is this loop with more numbers.

# %% tags=["run-me"]
device = Autodiff(Numpy())
x = Tensor[1].from_floats([0.0, 1.0, 2.0, 3.0], device)
y = Tensor[1].from_floats([1.0, 3.0, 5.0, 7.0], device)
w = Tensor[1].zeros([1], device).require_grad()
b = Tensor[1].zeros([1], device).require_grad()

for _ in range(200):
    loss = ((x * w + b - y) * (x * w + b - y)).mean()  # how wrong are we?
    grads = loss.backward()  # which way is better?
    w = Tensor.from_inner(w.inner() - w.grad(grads) * 0.1).require_grad()
    b = Tensor.from_inner(b.inner() - b.grad(grads) * 0.1).require_grad()

print(f"w = {w.into_scalar():.2f}, b = {b.into_scalar():.2f}")

# %% [markdown]
# ## By hand
#
# The loss is the mean squared error $L = \frac{1}{n}\sum_i (w x_i + b - y_i)^2$. The
# chain rule gives its slope in each direction:
#
# $$\frac{\partial L}{\partial w} = \frac{2}{n}\sum_i (w x_i + b - y_i)\,x_i
# \qquad \frac{\partial L}{\partial b} = \frac{2}{n}\sum_i (w x_i + b - y_i)$$
#
# Going a little against the slope, again and again, is *gradient descent*.

# %% tags=["run-me"]
xs, ys = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 3.0, 5.0, 7.0])
slope, offset = 0.0, 0.0
for _ in range(200):
    error = slope * xs + offset - ys
    slope_gradient = 2 * (error * xs).mean()
    offset_gradient = 2 * error.mean()
    slope -= 0.1 * slope_gradient
    offset -= 0.1 * offset_gradient

print(f"slope = {slope:.2f}, offset = {offset:.2f}")

# %% [markdown]
# ## In burnbook
#
# The first cell did the same and never saw the two formulas: `backward()` derived them
# from the line that computes the loss. For two parameters that saves a little algebra.
# For the half million of the network in [chapter 3](03_1_model.ipynb) nothing else
# would do.

# %% tags=["run-me"]
same(w, [slope])
same(b, [offset])

# %% [markdown]
# ## See it
#
# The *rate* 0.1 above is a choice. Smaller steps get there later; from about 0.24 on
# the steps are so large that the loss grows instead. Change the three numbers. Reading
# such curves is half of the craft; [chapter 3.3](03_3_training.ipynb) draws them live.


# %% tags=["widget"]
def descend(rate):
    slope, offset, losses = 0.0, 0.0, []
    for _ in range(30):
        error = slope * xs + offset - ys
        losses.append((error**2).mean())
        slope -= rate * 2 * (error * xs).mean()
        offset -= rate * 2 * error.mean()
    return losses


rates = (0.005, 0.02, 0.1)
Lines({f"rate {rate}": descend(rate) for rate in rates}, "Loss of 30 steps")

# %% [markdown]
# The same loop with a small network, which learns to part two spirals. Run this cell on
# your own machine (`make lab`, or Binder), and *Train* shows the boundary moving while
# you change data, layers and learning rate; `playground.code()` is the whole program.

# %% tags=["widget"]
playground = Playground(data="spiral", noise=0.1, hidden=[16, 16])
playground.advance(100)
playground

# %% [markdown]
# ## Four words
#
# | word | what it is | its chapter |
# |---|---|---|
# | **tensor** | a block of numbers with a shape, on a device | [2](02_getting_started.ipynb) |
# | **gradient** | for each number: which way the loss falls, and how steeply | [3.3](03_3_training.ipynb) |
# | **module** | a part of a network: parameters, and how they are used | [3.1](03_1_model.ipynb) |
# | **learner** | the loop above for any module, with curves, logs, checkpoints and a stop button | [3.3](03_3_training.ipynb) |

# %% [markdown]
# ## Look inside
#
# Nothing in this book is hidden. Here is how the library subtracts, and what it knows
# about the slope of a subtraction. The code is read from the library itself.

# %% tags=["peek"]
peek(ops.sub)

# %% [markdown]
# ## Where it breaks
#
# Three x and four y cannot be subtracted. Read an error from its first line: *where*,
# and *what is wrong*. Below it stand the facts, and a cure where one is known.

# %% tags=["raises-exception"]
three = Tensor[1].from_floats([0.0, 1.0, 2.0], device)
three - y

# %% [markdown]
# ## Who this book is for
#
# - **You learn or teach.** Run the chapters in order, change things, do the exercises.
#   Everything works offline and in seconds.
# - **You experiment.** Write a module and a config, let the learner train it, compare
#   runs. Chapters 3.1 to 3.5 are the whole way, once.
# - **You use Burn, in Rust.** The names are Burn's, and so are the files: a record
#   trained here loads there, and the other way round.

# %% [markdown]
# ## Take your work with you
#
# A server on the web, such as Binder's, forgets you some minutes after the last click.
# The first button downloads the pages you changed and your trainings as one file. The
# second brings them back, there or on your own computer.

# %% tags=["widget"]
SaveMyWork()

# %% [markdown]
# ## The chapters
#
# | | chapter | what it gives | minutes |
# |---|---|---|---|
# | 1 | Overview | this page | 10 |
# | 2 | [Getting started](02_getting_started.ipynb) | install, first tensors, the prelude | 15 |
# | 3.1 | [Model](03_1_model.ipynb) | modules and configs; a network for digits | 25 |
# | 3.2 | [Data](03_2_data.ipynb) | datasets, batches, loaders | 20 |
# | 3.3 | [Training](03_3_training.ipynb) | loss, gradients, optimizer, learner | 30 |
# | | [Training, its versions](03_3_training_versions.ipynb) | the page as Burn 0.11 to 0.22 have it | 15 |
# | | [训练](zh/03_3_training.ipynb) | chapter 3.3 in Chinese | 30 |
# | 3.4 | [Backend](03_4_backend.ipynb) | who computes, and with which numbers | 15 |
# | 3.5 | [Inference](03_5_inference.ipynb) | load what was trained, and predict | 15 |
# | 4.1 | [Backend](04_01_backend.ipynb) | the one verb behind every operation, and coats for it | 25 |
# | 4.2 | [Tensor](04_02_tensor.ipynb) | data in and out, every operation, display, closeness | 45 |
# | 4.3 | [Autodiff](04_03_autodiff.ipynb) | a tape by hand; graphs, hooks, second derivatives | 30 |
# | 4.4 | [Module](04_04_module.ipynb) | parameters, visitors, summaries, LoRA; all layers | 30 |
# | 4.5 | [Optimizer](04_05_optimizer.ipynb) | Adam by hand; every optimizer, clipping, groups, records, your own | 30 |
# | 4.6 | [Learner](04_06_learner.ipynb) | every option; artifacts, checkpoints, resuming; runs compared, rates found | 35 |
# | 4.7 | [Learning rate scheduler](04_07_lr_scheduler.ipynb) | curves, warm-up, schedules made of schedules | 20 |
# | 4.8 | [Metric](04_08_metric.ipynb) | classes, text, pictures, the machine; the log; your own, plotted | 30 |
# | 4.9 | [Config](04_09_config.ipynb) | fields, choices, nested configs; the JSON that Burn reads | 20 |
# | 4.10 | [Record](04_10_record.ipynb) | every format and precision, what the bytes mean, partial loading | 25 |
# | 4.11 | [Dataset](04_11_dataset.ipynb) | transforms, storages, sources; MNIST from its bytes on | 30 |
# | 5 | [Custom training loop](05_custom_training_loop.ipynb) | your own loop: several optimizers, accumulation, learner types | 25 |
# | 6 | [Saving and loading](06_saving_and_loading.ipynb) | files, recorded weights, a model inside a Python file | 20 |
# | examples | [Text generation](examples/text_generation.ipynb) | an LSTM and a transformer learn to write | 10 |
#
# Imports, pre-trained models, quantization and the advanced chapters follow in later
# versions.

# %% [markdown]
# ## Exercises
#
# Replace the dots and run the cell. The cell below each one holds a solution, folded:
# click the bar at its left to open it.

# %% tags=["exercise"]
# exercise 1.1: the slope of w² at w = 3, by hand
answer = ...
check("1.1", answer)

# %% tags=["solution"]
answer = 2 * 3
check("1.1", answer)

# %% tags=["exercise"]
# exercise 1.2: one step of gradient descent on w² from w = 3, rate 0.1
answer = ...
check("1.2", answer)

# %% tags=["solution"]
answer = 3 - 0.1 * (2 * 3)
check("1.2", answer)

# %% tags=["exercise"]
# exercise 1.3: the same slope as 1.1, but let burnbook find it
z = Tensor[1].from_floats([3.0], device).require_grad()
answer = ...  # a tensor: the gradient of z * z
check("1.3", answer)

# %% tags=["solution"]
answer = z.grad((z * z).backward())
check("1.3", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why does one small step against the gradient lower the loss?</summary>
#
# The gradient points where the loss rises fastest, so its opposite is where it falls
# fastest, at least as long as the step is small.
# </details>
#
# <details><summary>What happens when the learning rate is too large?</summary>
#
# The step jumps over the valley and lands higher than it started: the loss grows. Try
# 0.3 in the first cell.
# </details>
#
# <details><summary>What did <code>backward()</code> save us?</summary>
#
# Writing, and getting right, one formula per parameter.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: the star import</b></summary>
#
# `from burnbook.prelude import *` brings the dozen names that nearly every chapter
# uses, as Burn's prelude does in Rust. It is the only star import of the book: with
# more than one, nobody can tell where a name comes from.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A model is a function with numbers in it; training finds the numbers.
# - The loss says how wrong the model is; its gradient says how to become less wrong.
# - `burnbook` derives gradients from the code that computes the loss.
# - Errors say where, what, the facts, and a cure.
# - Every cell can be changed and run again.
#
# **Where this lives.** The library begins at `burnbook/__init__.py`, its commands are
# in `burnbook/cli/__init__.py`, `burnbook/cli/learn.py`, `burnbook/cli/shared.py`
# and `burnbook/cli/__main__.py`, the examples in `burnbook/examples/__init__.py` and
# `burnbook/examples/guide/__init__.py`. These pages are made by
# `widgets/burnbook_widgets/build.py`, `widgets/burnbook_widgets/chapters/tidy.py` and
# `widgets/burnbook_widgets/chapters/contents.py`. Work is saved and restored by
# `burnbook/work/__init__.py`, `burnbook/work/places.py`, `burnbook/work/saving.py`,
# `burnbook/work/contents.py`, `burnbook/work/restoring.py`, `burnbook/cli/work.py` and
# `widgets/burnbook_widgets/chapters/work.py`. The playground is
# `widgets/burnbook_widgets/playground/__init__.py`, `widgets/burnbook_widgets/playground/playground.py`,
# `widgets/burnbook_widgets/playground/script.py` and `widgets/burnbook_widgets/playground/still.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `Autodiff(Numpy())` | `type B = Autodiff<NdArray>;` | `Device::flex().autodiff()` |
# | `loss.backward()` | `loss.backward()` | `loss.backward()` |
# | `w.grad(grads)` | `w.grad(&grads)` | `w.grad(&grads)` |
# | `Tensor.from_inner(t)` | `Tensor::from_inner(t)` | the same |
#
# Next: [2 · Getting started](02_getting_started.ipynb)
