# %% [markdown] tags=["goals"]
# # 4.3 · Autodiff
#
# After this chapter you can
#
# - read gradients from the container that `backward()` returns, and say which it holds;
# - write a tape in thirty lines, and see that burnbook's does the same;
# - look at a graph, hook into it, differentiate twice, and trade time for memory.
#
# About 30 minutes. You should have read [chapter 3.3](03_3_training.ipynb) and
# [chapter 4.1](04_01_backend.ipynb).

# %% tags=["setup", "rust:setup"]
import threading

import numpy as np

import burnbook
from burnbook import ops
from burnbook.backend.autodiff import BalancedCheckpointing
from burnbook.backend import Autodiff
from burnbook.backend import Numpy
from burnbook.nn import LinearConfig
from burnbook.optim import GradientsParams
from burnbook.tensor import Tensor, check_gradient, custom_gradient
from burnbook_widgets import GraphView
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Lines

burnbook.seed(0)

# %% [markdown]
# ## Try it
#
# In which direction does a sum of squares grow? Say which tensor the question is about
# (`require_grad`), compute, call `backward`, and look up the answer.

# %% tags=["run-me", "rust:backward"]
device = Autodiff(Numpy())
x = Tensor[2].from_data([[1.0, 2.0], [3.0, 4.0]], device).require_grad()
gradients = (x * x).backward()
print(np.asarray(x.grad(gradients)))

# %% [markdown]
# The slope of x² is 2x. `x * x` has four elements, and `backward()` takes the gradient
# of their *sum*; so a loss needs no `.sum()` before it.
#
# `backward()` changed no tensor. It returned a container, in which a tensor is the key
# to its own gradient: `grad` reads it, `grad_remove` takes it out.


# %% tags=["run-me", "cell:gradients", "rust:gradients"]
def calculate_gradients(tensor):
    gradients = tensor.backward()
    print("grad        ", tensor.grad(gradients).to_data())
    print("grad_remove ", tensor.grad_remove(gradients).to_data())
    print("a second one", tensor.grad_remove(gradients))
    return gradients


calculate_gradients(x)

# %% [markdown]
# The sum of `x` itself grows as fast as each of its elements: a gradient of ones.
#
# ## By hand
#
# Autodiff is the chain rule and some bookkeeping. While computing, record for every
# result which values it came from, and for each of them a rule: how to get its gradient
# from the gradient $g$ of the result.
#
# $$z = x + y:\quad g \to (g,\; g) \qquad\qquad z = x \cdot y:\quad g \to (g\,y,\; g\,x)$$

# %% tags=["run-me"]
tape = []  # every value, in the order of computation


class Var:
    def __init__(self, value, came_from=()):
        self.value, self.came_from = np.asarray(value), came_from
        tape.append(self)

    def __add__(self, y):
        rules = (self, lambda g: g), (y, lambda g: g)
        return Var(self.value + y.value, rules)

    def __mul__(self, y):
        rules = (self, lambda g: g * y.value), (y, lambda g: g * self.value)
        return Var(self.value * y.value, rules)


# %% [markdown]
# Then go through the tape from the newest entry to the oldest. A value with a gradient
# passes it on through its rules; one that receives several adds them up. By the time we
# reach a value, all its uses have been visited, because they are newer.


# %% tags=["run-me"]
def backward(root):
    grads = {root: np.ones_like(root.value)}
    for var in reversed(tape):
        if var not in grads:
            continue  # not behind the root
        for parent, rule in var.came_from:
            part = rule(grads[var])
            grads[parent] = grads.get(parent, 0) + part
    return grads


a, b = Var([1.0, 2.0]), Var([3.0, 5.0])
by_hand = backward(a * b * a + b)
print(by_hand[a], by_hand[b])

# %% [markdown]
# $a^2 b + b$ has the slopes $2ab$ and $a^2 + 1$. `a` was used twice, so two gradients were
# added.
#
# ## In burnbook
#
# The same function, with the library:

# %% tags=["run-me", "rust:two-leaves"]
s = Tensor[1].from_floats([1.0, 2.0], device).require_grad()
t = Tensor[1].from_floats([3.0, 5.0], device).require_grad()
gradients = (s * t * s + t).backward()
same(by_hand[a], s.grad(gradients))
same(by_hand[b], t.grad(gradients))

# %% [markdown]
# The differences are few. There is no list that keeps growing: each value refers to the
# step that made it, and a graph that nothing refers to is freed. A step keeps only what
# its rules ask for. And a rule is an operation too, run by the inner backend: here is
# multiplication with its two rules, as the library declares it.

# %% tags=["peek"]
peek(ops.mul)

# %% [markdown]
# ## Leaves and detached tensors
#
# | here | PyTorch |
# |---|---|
# | `tensor.detach()` | `tensor.detach()` |
# | `tensor.require_grad()` | `tensor.requires_grad_()` |
# | `tensor.is_require_grad()` | `tensor.requires_grad` |
# | `tensor.set_require_grad(False)` | `tensor.requires_grad_(False)` |
#
# A *leaf* is a tensor whose gradient was asked for. Results computed from leaves are
# tracked, but are not leaves themselves.

# %% tags=["run-me", "cell:is_require_grad", "rust:is_require_grad"]
square = s * s
asked = [s, square, square.detach(), s.set_require_grad(False)]
[tensor.is_require_grad() for tensor in asked]

# %% [markdown]
# `detach` gives the same numbers without their history: for the backward pass they are a
# constant. Compare the slope of $s \cdot s$ with that of $s$ times a number that happens to
# be equal.

# %% tags=["run-me", "cell:detach", "rust:detach"]
print(s.grad((s * s).backward()).to_data())
print(s.grad((s * s.detach()).backward()).to_data())

# %% [markdown]
# On a backend without autodiff these four are allowed and do nothing, so one program
# serves both. `backward()` is an error there: see below.

# %% tags=["run-me", "cell:require_grad"]
plain = Tensor[1].from_floats([1.0, 2.0], Numpy())
print(plain.require_grad() is plain, plain.require_grad().is_require_grad())

# %% [markdown] tags=["cell:torch-no-grad"]
# ## Without gradients
#
# PyTorch switches its tape off for a block of code:
#
# ```python
# with torch.no_grad():
#     ...
# ```
#
# Here the tape is part of the backend. For inference, use a backend without it; to look
# at values in the middle of training, get the tensor on the inner backend with
# `inner()`.


# %% tags=["run-me", "cell:inner", "rust:inner"]
def example_validation(tensor):  # on Autodiff(B)
    return tensor.inner() + 5.0


def example_inference(tensor):  # on any backend
    return tensor + 5.0


for result in (example_validation(s), example_inference(plain)):
    print(result.backend, result.to_data())

# %% [markdown]
# `from_inner` goes the other way. A gradient is on the inner backend, too: an optimizer
# computes with it there, so its steps are not recorded.

# %% tags=["run-me", "rust:from_inner"]
up = Tensor[1].from_inner(s.inner())
print(up.backend, up.is_require_grad(), "·", s.grad(gradients).backend)

# %% [markdown] tags=["cell:torch-difference"]
# ## Difference with PyTorch
#
# In PyTorch `backward()` adds to the field `.grad` of every parameter, and if you forget
# `zero_grad()`, you train on a sum of old gradients. Here every pass has a container of
# its own: there is nothing to reset, and nothing is overwritten. Sums are explicit.

# %% tags=["run-me"]
one = (s * 2.0).backward()
two = (s * 10.0 + t).backward()
for found in (one, two, one + two):
    print(found, s.grad(found).to_data().to_list(), t in found)

# %% [markdown]
# A container is not tied to a thread, so another thread may work with it:

# %% tags=["run-me", "rust:thread"]
heard = []
worker = threading.Thread(target=lambda: heard.append(s.grad(two).to_data()))
worker.start()
worker.join()
print(heard[0])

# %% [markdown]
# ## Which gradients there are
#
# Only leaves that the backward pass reached have one. `None` says: this loss does not
# depend on that tensor. That is not zero: an optimizer leaves such a parameter alone. A
# comparison has no slope, so no gradient flows through `>`.

# %% tags=["run-me", "rust:mask"]
square = s * s
mask = (s > 1.5).float()
gradients = (square * mask).backward()
print("used    ", s.grad(gradients).to_data())
print("unused  ", t.grad(gradients))

# %% [markdown]
# A result (`square`) is not a leaf; its gradient was used and then dropped. Asking for it
# is an error, which says how to get it:

# %% tags=["raises-exception"]
square.grad(gradients)

# %% [markdown]
# ## The graph
#
# `graph()` shows what is behind a tensor: each step, and the steps its inputs came
# from; a dot stands for an input without gradient.

# %% tags=["run-me"]
w = Tensor[2].from_data([[0.5], [-0.5]], device).require_grad()
y = (x @ w).tanh()
loss = (y * y).mean()
print(loss.graph())

# %% [markdown]
# The numbers increase with time; `graph[0]` is the newest step. Each step lists what it
# keeps for its rules. The slope of tanh is $1 - \tanh^2$, so it keeps its result:

# %% tags=["run-me"]
for step in loss.graph():
    print(f"{step.name:7} keeps", ", ".join(step.kept) or "nothing")
same(loss.graph()[2]["out"], y)

# %% [markdown]
# `GraphView` steps through it: values as they were computed, then gradients in the order
# of the backward pass. Choose a step to see its rule, and where its value was found: the
# tape does not keep what no rule asks for. When the cell runs live, the arrow keys and
# buttons work.

# %% tags=["widget"]
GraphView(loss)

# %% [markdown]
# The same in text. Looking at a graph does not use it up; only `backward()` does.

# %% tags=["run-me"]
for step, g in loss.graph().gradients():
    print(f"{step.name:7}", np.asarray(g).ravel().round(3))

# %% [markdown]
# ## Hooks
#
# Gradients of results are used during the backward pass and then dropped. A *hook* sees
# one as it passes. If it returns a tensor, that tensor is used in its place.


# %% tags=["run-me", "rust:loss"]
def show(g):
    print("at y:", np.asarray(g).ravel().round(3))


y.hook(show)
print("at w:", np.asarray(w.grad(loss.backward())).ravel().round(3))

# %% [markdown]
# Here a hook on a leaf keeps its gradients between −1 and 1, in every later pass, until
# `remove()`.

# %% tags=["run-me"]
steep = Tensor[1].from_floats([0.1, -30.0], device).require_grad()
hook = steep.hook(lambda g: g.clamp(-1.0, 1.0))
print(steep.grad((steep * steep).backward()).to_data())
hook.remove()
print(steep.grad((steep * steep).backward()).to_data())

# %% [markdown]
# ## The second derivative
#
# A gradient is computed by the inner backend. If that one has a tape as well, the
# gradient can be differentiated again: wrap Autodiff in Autodiff. What requires a
# gradient there is a leaf on both, parameters of a model too; so a network may learn
# from a loss that is made of its derivatives.


# %% tags=["run-me"]
def twice(f, points):
    both = Autodiff(Autodiff(Numpy(float="f64")))
    x = Tensor[1].from_numpy(points, both).require_grad()
    out = f(x)
    first = x.grad(out.backward())  # on the inner Autodiff, so tracked there
    second = x.grad(first.backward())
    found = out.inner().inner(), first.inner(), second
    return [np.asarray(tensor) for tensor in found]


points = np.linspace(-3, 3, 61)
value, slope, bend = twice(lambda v: v.tanh(), points)
same(slope, 1 - np.tanh(points) ** 2)
same(bend, -2 * np.tanh(points) * (1 - np.tanh(points) ** 2))

# %% [markdown]
# A Laplacian adds up several second derivatives of one first gradient, so its graph is
# walked several times. A backward pass with `keep_graph=True` leaves the graph for the
# next one; the last pass goes without, and frees the memory.

# %% tags=["run-me"]
both = Autodiff(Autodiff(Numpy(float="f64")))
xy = Tensor[2].from_floats([[1.0, 2.0], [3.0, 4.0]], both).require_grad()
slopes = xy.grad((xy**3).sum_dim(1).square().backward())  # of (x³ + y³)²
bends = [
    xy.grad(slopes[:, i].backward(keep_graph=i == 0))[:, i] for i in (0, 1)
]
xs, ys = np.array([1.0, 3.0]), np.array([2.0, 4.0])
exact = 18 * (xs**4 + ys**4) + 12 * (xs + ys) * (xs**3 + ys**3)
same(bends[0] + bends[1], exact)

# %% [markdown]
# ## See it
#
# tanh is steepest in the middle; there its slope has its maximum, so the second
# derivative crosses zero.

# %% tags=["widget"]
Lines(
    {"tanh": value, "slope": slope, "second": bend},
    "tanh and its derivatives",
    x=points,
    x_label="x",
)

# %% [markdown]
# The same for a small network, two layers with tanh between them, at three points: its
# second derivative, compared with finite differences of its slopes.

# %% tags=["run-me"]
weights = [0.7, -1.3, 0.4]


def network(v):
    return sum((v * p + 0.1).tanh() * (p + 0.5) for p in weights)


points, step = np.array([-0.5, 0.0, 2.0]), 1e-5
_, _, bend = twice(network, points)
up, down = twice(network, points + step)[1], twice(network, points - step)[1]
same(bend, (up - down) / (2 * step))

# %% [markdown]
# ## Trading time for memory
#
# A tape keeps values until the backward pass has used them, and in a deep network that
# is most of the memory. Many of them are quick to recompute. *Checkpointing* with
# `BalancedCheckpointing()` drops the results of cheap steps (sums, products, tanh) and
# keeps those of costly ones (matrix products).


# %% tags=["run-me"]
def deep(device):
    values = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    x = Tensor[2].from_numpy(values, device).require_grad()
    y = x
    for _ in range(10):
        y = ((y @ x) * 0.1).tanh() + 0.1
        y = y * y.sigmoid()
    kept = y.graph().kept_bytes
    return kept, x.grad(y.backward())


# %% tags=["run-me"]
kept, expected = deep(device)
fewer, found = deep(Autodiff(Numpy(), checkpointing=BalancedCheckpointing()))
print(f"{kept // 16384} values of 64 × 64 kept, or {fewer // 16384}")
same(expected, found)
print(np.array_equal(np.asarray(expected), np.asarray(found)))

# %% [markdown]
# The gradients agree to the last bit: the same operations ran on the same numbers, some
# of them twice. Which steps are cheap is a list of names that you may shorten, or a
# class of your own with one method, `recomputes(op)`.
#
# ## A gradient of your own
#
# The slope of a rounded number is 0 wherever there is one, so nothing behind it learns.
# Networks that compute with few bits are trained as if rounding had the slope 1:


# %% tags=["run-me"]
@custom_gradient
def rounded(x):
    return x.round()


@rounded.backward
def straight_through(g):
    return g


x = Tensor[1].from_floats([0.4, 1.6], device).require_grad()
print(x.grad((rounded(x) * 3.0).backward()).to_data())

# %% [markdown]
# The code of the gradient asks by name for what it needs: `g`, the inputs, `out`. Where
# it should be the true one, `check_gradient` compares it with the slopes found by trying.

# %% tags=["run-me"]
print(check_gradient(lambda x, y: (x * y).tanh(), [2, 3], [1, 3]))

# %% [markdown] tags=["cell:optimizers"]
# ## Gradients with optimizers
#
# A container is keyed by leaves; an optimizer knows parameters by their id. One step
# translates between them, and it is there that gradients of several passes, or from
# several devices, are combined. More in [chapter 4.5](04_05_optimizer.ipynb) and
# [chapter 5](05_custom_training_loop.ipynb).

# %% tags=["run-me", "rust:linear"]
model = LinearConfig(2, 1).init(device)
gradients = model.forward(Tensor[2].ones([4, 2], device)).backward()
by_id = GradientsParams.from_grads(gradients, model)
print(len(by_id), by_id.get(model.weight.id).to_data().to_list())

# %% [markdown]
# ## Where it breaks
#
# A graph can be used for one backward pass: on the way, each step releases what it kept.
# A second pass that meets a used step raises an error that names it; half a gradient
# would be worse. Add the losses first, or let all passes but the last keep the graph.
# Leaves are never used up.

# %% tags=["raises-exception"]
shared = s.exp()
(shared * 2.0).backward()
(shared * 3.0).backward()

# %% tags=["run-me", "rust:shared"]
shared = s.exp()
same(s.grad((shared * 2.0 + shared * 3.0).backward()), np.exp([1, 2]) * 5)

# %% [markdown]
# A result cannot become a leaf: a leaf has no history, and a result has one.

# %% tags=["raises-exception"]
(s * 2.0).require_grad()

# %% [markdown]
# No gradient was asked for, so there is nothing to compute one for:

# %% tags=["raises-exception"]
Tensor[1].ones([3], device).backward()

# %% [markdown]
# And a backend without autodiff has no tape:

# %% tags=["raises-exception"]
plain.backward()

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 4.3.1: the gradient of (q * q.detach() + q).backward(), in your head
q = Tensor[1].from_floats([2.0, 5.0], device).require_grad()
answer = ...  # a list of two numbers
check("4.3.1", answer)

# %% tags=["solution"]
answer = [3.0, 6.0]
check("4.3.1", answer)


# %% tags=["exercise"]
# exercise 4.3.2: the two rules of x / y, for the tape by hand
def division(g, x, y):
    return ...  # for x, and for y


answer = ...  # division
check("4.3.2", answer)


# %% tags=["solution"]
def division(g, x, y):
    return g / y, -g * x / (y * y)


answer = division
check("4.3.2", answer)

# %% tags=["exercise"]
# exercise 4.3.3: the second derivative of v³ at 1, 2 and 3, by nesting
answer = ...  # an array; `twice` is at hand
check("4.3.3", answer)

# %% tags=["solution"]
answer = twice(lambda v: v * v * v, np.array([1.0, 2.0, 3.0]))[2]
check("4.3.3", answer)

# %% tags=["exercise"]
# exercise 4.3.4: a hook that reverses gradients, so that training maximizes
answer = ...  # a function
check("4.3.4", answer)

# %% tags=["solution"]
answer = lambda g: -g  # noqa: E731
check("4.3.4", answer)

# %% tags=["exercise"]
# exercise 4.3.5: a backend that recomputes only tanh and relu
answer = ...
check("4.3.5", answer)

# %% tags=["solution"]
answer = Autodiff(
    Numpy(), checkpointing=BalancedCheckpointing(frozenset({"tanh", "relu"}))
)
check("4.3.5", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why does the backward pass start at the newest step?</summary>
#
# A step may pass its gradient on only when it is complete. It is a sum over all steps
# that used the result, and those are newer.
# </details>
#
# <details><summary>What is the difference between <code>None</code> and a gradient of
# zeros?</summary>
#
# `None`: the loss was not computed from this tensor at all. Zeros: it was, but at this
# point a small change of the tensor makes no difference.
# </details>
#
# <details><summary>Which is cheaper for a thousand inputs and one loss: this, or changing
# each input a little?</summary>
#
# This. It takes one forward and one backward pass, whatever the number of inputs;
# changing them one by one takes a thousand forward passes.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: a bound, and an error</b></summary>
#
# In Burn 0.15 `fn f<B: AutodiffBackend>(tensor: Tensor<B, 2>)` says that `backward`
# exists, and without the bound the program does not compile. Here the backend is an
# object, and `backward` on one without a tape raises a `BackendError` that says what to
# write instead.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - `Autodiff(B)` records the operations that B runs, as a graph behind each tensor.
# - `backward()` returns a container; `grad` reads a gradient, `grad_remove` takes it out.
# - Only leaves that were reached have a gradient; the graph is used up.
# - `custom_gradient` gives a function its own gradient, `check_gradient` checks it.
# - Nesting gives higher derivatives; hooks see the gradients of a backward pass.
# - Checkpointing recomputes cheap steps, with the same result to the last bit.
#
# **Where this lives.** Everything is in `burnbook/backend/autodiff`. Read
# `burnbook/backend/autodiff/autodiff.py` first, the decorator; then its tape,
# `burnbook/backend/autodiff/tape.py`, and the backward pass,
# `burnbook/backend/autodiff/backward.py`. The methods of tensors are in
# `burnbook/tensor/gradients.py`, the view of the graph in
# `widgets/burnbook_widgets/autodiff`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `Autodiff(Numpy())` | `Autodiff<NdArray>` | `device.autodiff()` |
# | `Autodiff(B, checkpointing=BalancedCheckpointing())` | `Autodiff<B, BalancedCheckpointing>` | `GradientCheckpointingStrategy::Balanced` |
# | `gradients = loss.backward()` | `let mut gradients = loss.backward();` | the same |
# | `x.grad(gradients)`, `x.grad_remove(gradients)` | `x.grad(&gradients)`, `x.grad_remove(&mut gradients)` | the same |
# | `x.inner()`, `Tensor.from_inner(x)` | `x.inner()`, `Tensor::from_inner(x)` | the same |
# | `one + two`, `x.hook(f)`, `x.graph()`, `GraphView(x)` | – | – |
#
# Next: [4.4 · Module](04_04_module.ipynb)
