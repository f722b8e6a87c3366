# %% [markdown] tags=["goals"]
# # 1 · Overview
#
# After this chapter you can
#
# - say in one sentence each what a tensor, a gradient, a module and a learner are;
# - fit a line to points, by hand and with `burnbook`;
# - find your way through the book.
#
# About 15 minutes. You need a little Python; no deep learning, no Rust.

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
# starts from 0 and 0, and two hundred small corrections find them. At its core, deep
# learning is this loop with many more numbers.

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
# The first cell did the same without the two formulas: `backward()` derived them from
# the line that computes the loss. For two parameters that saves a little algebra. For
# the half million of the network in [chapter 3](03_1_model.ipynb) there is no other
# practical way.

# %% tags=["run-me"]
same(w, [slope])
same(b, [offset])

# %% [markdown]
# ## See it
#
# The factor 0.1 above, the *learning rate*, is a choice. Smaller steps take longer; from
# about 0.24 on they are so large that the loss grows instead. Change the three numbers.
# Reading such curves is half the craft; [chapter 3.3](03_3_training.ipynb) draws them
# live. Any such picture has a `save("loss.svg")`, or .png, or .html.


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
walks = {f"rate {rate}": descend(rate) for rate in rates}
Lines(walks, "Loss of 30 steps", x_label="step", y_label="loss")

# %% [markdown]
# Here the same loop trains a small network that learns to tell two spirals apart. Run
# this cell live (`make lab`, or Binder): *Train* shows the boundary moving while you
# change data, layers and learning rate; `playground.code()` is the whole program.

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
# | **module** | a network or a layer of one: parameters, and the code that uses them | [3.1](03_1_model.ipynb) |
# | **learner** | the loop above for any module, with curves, logs, checkpoints and a stop button | [3.3](03_3_training.ipynb) |

# %% [markdown]
# ## Look inside
#
# Nothing in this book is hidden. Here is how the library subtracts, and the gradient
# rules of a subtraction. The code is read from the library itself.

# %% tags=["peek"]
peek(ops.sub)

# %% [markdown]
# ## Where it breaks
#
# Three numbers and four cannot be subtracted. Read an error from its first line: it says
# *where*, and *what is wrong*. The lines below it give the details and, where possible,
# a fix.

# %% tags=["raises-exception"]
three = Tensor[1].from_floats([0.0, 1.0, 2.0], device)
three - y

# %% [markdown] tags=["cell:people"]
# ## Why Burn?
#
# [Burn](https://burn.dev) is a framework for deep learning, written in Rust. It is fast
# without giving up flexibility: one model runs on any backend, autodiff is a decorator
# that can wrap any of them, and what is trained in one place loads in another.
# `burnbook` brings these ideas, and the book about them, to Python, on top of NumPy.
#
# ## Who this book is for
#
# Burn's book has three people in mind: the *researcher*, who builds and runs experiments
# and needs to iterate quickly; the *machine learning engineer*, who needs training and
# inference to be robust and efficient; and the *systems engineer*, who wants to control
# how the hardware computes. This one adds the student:
#
# - **You learn or teach.** Run the chapters in order, change things, do the exercises.
#   Everything works offline and in seconds.
# - **You experiment** (the researcher). Write a module and a config, let the learner
#   train it, compare runs. Chapters 3.1 to 3.5 show the whole path once.
# - **You build products** (the engineer). Configs, checkpoints and records
#   ([4.9](04_09_config.ipynb), [4.10](04_10_record.ipynb)) are made to last, and errors
#   to be read.
# - **You care how it computes** (the systems engineer). A backend is one small class,
#   and [chapter 4.1](04_01_backend.ipynb) lets you write one.
# - **You use Burn, in Rust.** The names are Burn's, and so are the files: a record
#   trained here loads there, and the other way round.

# %% [markdown]
# ## Take your work with you
#
# A server on the web, such as Binder's, is shut down some minutes after your last click.
# The first button downloads the pages you changed and your training runs as one file.
# The second brings them back, there or on your own computer.

# %% tags=["widget"]
SaveMyWork()

# %% [markdown] tags=["cell:parts"]
# ## The chapters
#
# | | chapter | what it gives | minutes |
# |---|---|---|---|
# | 1 | Overview | this page | 15 |
# | 2 | [Getting started](02_getting_started.ipynb) | install, first tensors, the prelude | 15 |
# | 3.1 | [Model](03_1_model.ipynb) | modules and configs; a network for digits | 25 |
# | 3.2 | [Data](03_2_data.ipynb) | datasets, batches, loaders | 20 |
# | 3.3 | [Training](03_3_training.ipynb) | loss, gradients, optimizer, learner | 30 |
# | | [Training, its versions](03_3_training_versions.ipynb) | the page as Burn 0.11 to 0.22 have it | 15 |
# | | [训练](zh/03_3_training.ipynb) | chapter 3.3 in Chinese | 30 |
# | 3.4 | [Backend](03_4_backend.ipynb) | what computes, and in which precision | 15 |
# | 3.5 | [Inference](03_5_inference.ipynb) | load what was trained, and predict | 15 |
# | 4.1 | [Backend](04_01_backend.ipynb) | the one method behind every operation, and decorators for it | 25 |
# | 4.2 | [Tensor](04_02_tensor.ipynb) | data in and out, every operation, display, closeness | 45 |
# | 4.3 | [Autodiff](04_03_autodiff.ipynb) | a tape by hand; graphs, hooks, second derivatives | 30 |
# | 4.4 | [Module](04_04_module.ipynb) | parameters, visitors, summaries, LoRA; all layers | 30 |
# | 4.5 | [Optimizer](04_05_optimizer.ipynb) | Adam by hand; every optimizer, clipping, groups, records, your own | 30 |
# | 4.6 | [Learner](04_06_learner.ipynb) | every option; artifacts, checkpoints, resuming; runs compared, rates found | 35 |
# | 4.7 | [Learning rate scheduler](04_07_lr_scheduler.ipynb) | curves, warm-up, combined schedules | 20 |
# | 4.8 | [Metric](04_08_metric.ipynb) | classification, text, images, the machine; the log; your own, plotted | 30 |
# | 4.9 | [Config](04_09_config.ipynb) | fields, choices, nested configs; the JSON that Burn reads | 20 |
# | 4.10 | [Record](04_10_record.ipynb) | every format and precision, what the bytes mean, partial loading | 25 |
# | 4.11 | [Dataset](04_11_dataset.ipynb) | transforms, storage, sources; MNIST read from its files | 30 |
# | 5 | [Custom training loop](05_custom_training_loop.ipynb) | your own loop: several optimizers, accumulation, learner types | 25 |
# | 6 | [Saving and loading](06_saving_and_loading.ipynb) | files, recorded weights, a model inside a Python file | 20 |
# | 7.1 | [Importing models](07_1_importing.ipynb) | what files of other frameworks contain, and which way to take | 15 |
# | 7.2 | [Importing ONNX models](07_2_onnx.ipynb) | an ONNX file byte by byte; as a module, as source; trained further | 35 |
# | 7.3 | [PyTorch](07_3_pytorch.ipynb) | weights from PyTorch and back; a `.pt` file by hand; nothing in it runs | 35 |
# | 7.4 | [Safetensors](07_4_safetensors.ipynb) | the format by hand; shards, adapters, files larger than the memory | 20 |
# | 10.7 | [Performance](10_7_performance.ipynb) | where time goes; steps as fused programs; written for ONNX, MicroPython, Rust | 45 |
# | examples | [Text generation](examples/text_generation.ipynb) | an LSTM and a transformer learn to write | 10 |
# | examples | [Residual network](examples/residual_network.ipynb) | blocks with a way around, mixup, averaged weights | 10 |
# | examples | [Fine-tuning](examples/fine_tuning.ipynb) | a part is kept, with its statistics; the rest learns from few images | 5 |
# | examples | [Saliency](examples/saliency.ipynb) | which pixels and which region decide | 5 |
# | A1 | [Operations](A1_ops.ipynb) | every tensor function, to look up | – |
# | A2 | [Differences](A2_differences.ipynb) | where burnbook differs from Burn 0.15, and why | – |
# | A3 | [Coming from …](A3_coming_from.ipynb) | what you know from PyTorch, Keras, NumPy or Rust, and what it is here | – |
# | A4 | [ONNX's operators](A4_onnx_operators.ipynb) | what each operator of ONNX becomes, in which versions | – |
#
# Not written yet: 8, 9, 10.1, 10.2, 10.3, 10.4, 10.5, 10.6 (models, quantization, and the
# book's advanced section).

# %% [markdown]
# ## Exercises
#
# Replace the dots and run the cell; `check` says whether the answer is right, and if
# not, in what respect. The [solutions](#Solutions) are at the end of the page.

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
# The gradient points in the direction in which the loss rises fastest. In the opposite
# direction it falls fastest, as long as the step is small.
# </details>
#
# <details><summary>What happens when the learning rate is too large?</summary>
#
# The step jumps across the valley and lands higher up the other side: the loss grows.
# Try 0.3 in the first cell.
# </details>
#
# <details><summary>What did <code>backward()</code> save us?</summary>
#
# Deriving one formula per parameter, and getting each of them right.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: the star import</b></summary>
#
# `from burnbook.prelude import *` imports the dozen names that nearly every chapter
# uses, as Burn's prelude does in Rust. It is the only star import in this book: with
# more than one, nobody can tell where a name comes from.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A model is a function with numbers in it; training finds the numbers.
# - The loss says how wrong the model is; its gradient says how to reduce the error.
# - `burnbook` derives gradients from the code that computes the loss.
# - Errors say where, what, the details, and how to fix it.
# - Every cell can be changed and run again.
#
# **Where this lives.** The library begins at `burnbook/__init__.py`. Its commands are in
# `burnbook/cli` (`burnbook` and `python -m burnbook`, `burnbook/__main__.py`), with what
# saves and restores your work in `burnbook/cli/workspace`; the examples are in
# `burnbook/examples`, and text tables and still drawings in `burnbook/text`. These pages
# are built by `widgets/burnbook_widgets/build.py`, with help from
# `widgets/burnbook_widgets/chapters`. The playground is
# `widgets/burnbook_widgets/playground`.
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
