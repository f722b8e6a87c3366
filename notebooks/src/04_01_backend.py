# %% [markdown] tags=["goals"]
# # 4.1 · Backend
#
# After this chapter you can
#
# - say what a backend is, and which single method it has to have;
# - write a decorator for a backend in eight lines, and stack several of them;
# - choose element types and seeds, trace a model, and stop at the first NaN.
#
# About 25 minutes. You should have read [chapter 3.4](03_4_backend.ipynb).

# %% tags=["setup", "rust:setup"]
import pickle

import numpy as np

import burnbook
from burnbook import ops
from burnbook.backend import Autodiff
from burnbook.backend import (
    Backend,
    Checked,
    Counting,
    Decorator,
    Fusion,
    Numpy,
    Tracing,
)
from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn import Linear, LinearConfig
from burnbook.tensor import Distribution, Int, Tensor
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Bars

burnbook.seed(0)

# %% [markdown] tags=["cell:introduction"]
# With this chapter the building blocks begin: each chapter takes a close look at one of
# them. Names are imported one by one, so that you see where each comes from.
#
# ## Try it
#
# The same sum, computed in two ways: with tensors, and directly by the backend that does
# the work.

# %% tags=["run-me", "rust:add"]
device = Numpy()
x = Tensor[1].from_floats([1.0, 2.0], device)
print((x + x).to_data())
print(device.run(ops.add, (np.ones(2), np.ones(2)), {}))

# %% [markdown]
# The whole protocol is in the second line: `run(op, values, attrs)`. The op says what to
# compute, the values are raw arrays, and the attributes are everything that is not a
# tensor (a dim, a padding). Every tensor method ends there. You will rarely call it
# yourself; it is for those who build backends.
#
# Everything else about a backend fits in a few lines:

# %% tags=["run-me"]
print(device.name, "on", device.device_name)
print("Float is", device.float, "· Int is", device.int)
print("arrays of", device.xp.__name__, "· gradients:", device.ad_enabled)

# %% [markdown]
# ## By hand
#
# A single method has a consequence: to change what *every* operation does, it is enough
# to wrap that method. Here is a tiny backend, and a decorator around it that prints
# before it computes. It knows no operation by name.


# %% tags=["run-me"]
class Tiny:
    def run(self, op, values):
        return op(np, *values)


class Speaking:
    def __init__(self, inner):
        self.inner = inner

    def run(self, op, values):
        print(op.name, [value.shape for value in values])
        return self.inner.run(op, values)


# %% tags=["run-me"]
a, b = np.full((2, 3), 2.0), np.ones((3, 1))
tiny = Speaking(Tiny())
by_hand = tiny.run(ops.exp, (tiny.run(ops.matmul, (a, b)),))

# %% [markdown]
# ## In burnbook
#
# `Decorator` is a base class for this: it forwards every call; you override only what
# should differ. Eight lines count the operations of any program.


# %% tags=["run-me"]
class Tally(Decorator):
    interned = False  # each counts for itself

    def __init__(self, inner):
        super().__init__(inner)
        self.counts = {}

    def run(self, op, values, attrs):
        self.counts[op.name] = self.counts.get(op.name, 0) + 1
        return self.inner.run(op, values, attrs)


# %% tags=["run-me"]
tally = Tally(Numpy())
result = Tensor[2].from_data(a, tally) @ Tensor[2].from_data(b, tally)
same(by_hand, result.exp())
print(tally, tally.name, tally.counts)

# %% [markdown]
# ## The order of decorators
#
# Autodiff is a decorator as well, and the order determines what each of two decorators
# sees. One below Autodiff also sees gradients, because they are operations like all
# others; one above it sees only the operations that you called.

# %% tags=["run-me"]
below, above = Counting(Numpy()), Counting(Autodiff(Numpy()))
for device in (Autodiff(below), above):
    z = Tensor[1].from_floats([1.0, 2.0], device).require_grad()
    z.grad((z * z).exp().backward())
print("below", dict(below.counts))
print("above", dict(above.counts))

# %% [markdown]
# Decorators can be stacked to any depth, and print as they were written:

# %% tags=["run-me"]
stack = Autodiff(Checked(Tracing(Counting(Numpy()))))
print(stack)
print(stack.name)

# %% [markdown]
# ## Tracing: what happened
#
# `Tracing` records each step: its number, the shapes, the steps its inputs came from,
# and the layer it was called in.


# %% tags=["run-me", "rust:net"]
class Net(Module):
    first: Linear
    second: Linear

    def forward(self, x):
        return self.second.forward(self.first.forward(x).relu())


class NetConfig(Config):
    hidden: int = 8

    def init(self, device):
        first = LinearConfig(4, self.hidden).init(device)
        return Net(first, LinearConfig(self.hidden, 2).init(device))


# %% tags=["run-me"]
tracing = Tracing(Numpy())
net = NetConfig().init(Autodiff(tracing))
batch = Tensor[2].ones([16, 4], Autodiff(tracing))
net.forward(batch)  # draws the parameters
tracing.clear()
gradients = net.forward(batch).mean().backward()
print(tracing.text())

# %% [markdown]
# The lower half is the backward pass. A gradient step takes as input what its op kept:
# the one of `relu` needs only the result of `relu`.
#
# ## See it
#
# Steps are data: name, shapes, sources, layer. So a question such as "which step makes
# the largest result?" is a line of Python.

# %% tags=["widget"]
sizes = {
    f"{step.number} {step.name}": sum(np.prod(s) for s, _ in step.outputs)
    for step in tracing.steps
}
Bars(sizes, "Elements in the result of each step")

# %% [markdown]
# ## Checked: where it went wrong
#
# NaN spreads: one in the loss, and a step later every parameter is NaN. `Checked` stops
# at the operation where the first one appears, and shows its inputs. It reads every
# result, which takes time, so use it to find an error, not to train.

# %% tags=["run-me", "rust:not-a-number"]
t = Tensor[1].from_floats([0.5, -1.0, 2.0], Numpy())
print((t.log() * 0.0 + 1.0).to_data())  # NaN, but where from?

# %% tags=["raises-exception"]
t.to_device(Checked(Numpy())).log() * 0.0 + 1.0

# %% [markdown]
# It checks gradients, too. At 0 the slope of the square root is infinite:

# %% tags=["raises-exception"]
t = Tensor[1].from_floats([0.0, 4.0], Autodiff(Checked(Numpy())))
t.require_grad().sqrt().backward()

# %% [markdown]
# ## Fusion: run together
#
# `Fusion` runs nothing at once. It notes the operations, and runs them together as soon
# as a value is read. Then it knows which results are held by a tensor; all others are
# never stored, and what nobody needs is not even computed. When the same operations come
# again, as in a training loop, there is a plan for them.

# %% tags=["run-me"]
fused = Fusion(Numpy())
v = Tensor[1].from_data(np.linspace(-1.0, 1.0, 1_000), fused)
for _ in range(3):
    unused = v.exp()
    del unused  # never computed
    total = ((v * 2.0 + 1.0) * v).sum()
    print("waiting:", fused.waiting, " shape:", total.dims(), end="  ")
    print("sum:", round(total.into_scalar(), 2), " waiting:", fused.waiting)

# %% [markdown]
# The first time an operation other than `+` or `exp`, here `sum`, sees a shape, it runs
# at once, because that is how its result's shape is learned. Shapes are checked at the
# call, as always. Keep tensors short-lived: one that is held must be stored.
#
# The plan is a Python function. Long chains over large arrays go through memory in
# stretches that fit into the cache, and later as one compiled loop.

# %% tags=["run-me"]
(plan,) = [p for known in fused.plans.known.values() for p in known.spare][-1:]
print(plan.source)

# %% [markdown]
# To train, put it below Autodiff, `Autodiff(Fusion(Numpy()))`: gradients and optimizer
# steps are fused as well. It pays from some ten thousand elements on; below that, noting
# an operation takes longer than running it.
#
# ## Element types
#
# A backend has one element type for Float and one for Int, used by all its tensors. More
# bits are more precise; fewer take less memory and, on a GPU, are faster.

# %% tags=["run-me", "rust:precision"]
for backend in (Numpy("f16"), Numpy(), Numpy("f64", int="i32")):
    third = Tensor[1].from_floats([1.0], backend) / 3.0
    whole = Tensor[1, Int].from_ints([7], backend)
    kinds = third.to_data().dtype, whole.to_data().dtype
    print(f"{backend!s:32}", *kinds, f"{third.into_scalar():.17f}")

# %% [markdown]
# ## One object for equal arguments
#
# Two backends made with equal arguments are one object (they are *interned*), also after
# being pickled to a file or another process. So "is this tensor on my device?" is a
# plain `is`. Decorators with a state of their own are kept apart: that was
# `interned = False`.

# %% tags=["run-me"]
copied = pickle.loads(pickle.dumps(Autodiff(Numpy("f64"))))
print("equal arguments  ", Autodiff(Numpy()) is Autodiff(Numpy()))
print("through a pickle ", copied is Autodiff(Numpy("f64")))
print("other elements   ", Numpy() is Numpy("f64"))
print("two counters     ", Counting(Numpy()) is Counting(Numpy()))

# %% [markdown]
# ## Seeds
#
# Each backend has a stream of random numbers, and `seed` restarts it. Decorators share
# the stream of the backend they wrap. What is drawn depends on the seed and on how many
# draws came before, not on the machine or on the number of threads.


# %% tags=["run-me", "rust:seed"]
def draw(device):
    return Tensor[1].random([1000], Distribution.Default, device)


Numpy().seed(42)
first, second = draw(Numpy()), draw(Numpy())
Numpy().seed(42)
same(first, draw(Autodiff(Numpy())))
same(second, draw(Numpy()))

# %% [markdown]
# `burnbook.seed(0)`, the last line of every setup cell, does this for all backends that
# have no seed of their own.
#
# ## Look inside
#
# The library's own counter is the same as ours, with a `Counter` as its dict:

# %% tags=["peek"]
peek(Counting)

# %% [markdown]
# And this is how a backend runs an op: with a compiled kernel where one fits, otherwise
# with the plain code of the op. The last line is the general case; those above it are
# shortcuts for common calls.

# %% tags=["run-me"]
peek(Backend.run)

# %% [markdown]
# ## Where it breaks
#
# A decorator needs a backend object, not a class:

# %% tags=["raises-exception"]
Counting(Numpy)

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 4.1.1: gradients, 64-bit floats, and whole numbers of 32 bits
answer = ...
check("4.1.1", answer)

# %% tags=["solution"]
answer = Autodiff(Numpy("f64", int="i32"))
check("4.1.1", answer)


# %% tags=["exercise"]
# exercise 4.1.2: a decorator that adds up how many numbers all results have
class Measuring(Decorator):
    interned = False

    def __init__(self, inner):
        super().__init__(inner)
        self.numbers = 0


answer = ...  # the class; give it a `run`
check("4.1.2", answer)


# %% tags=["solution"]
class Measuring(Decorator):
    interned = False

    def __init__(self, inner):
        super().__init__(inner)
        self.numbers = 0

    def run(self, op, values, attrs):
        out = self.inner.run(op, values, attrs)
        self.numbers += out.size
        return out


answer = Measuring
check("4.1.2", answer)

# %% tags=["exercise"]
# exercise 4.1.3: a backend that counts gradient ops, and has gradients
answer = ...
check("4.1.3", answer)

# %% tags=["solution"]
answer = Autodiff(Counting(Numpy()))
check("4.1.3", answer)


# %% tags=["exercise"]
# exercise 4.1.4: three random numbers, the same at every call
def three(device): ...


answer = ...  # three
check("4.1.4", answer)


# %% tags=["solution"]
def three(device):
    device.seed(7)
    return Tensor[1].random([3], Distribution.Default, device)


answer = three
check("4.1.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why one method, and not one per operation?</summary>
#
# A decorator would have to override every method to change them all. With a single one
# it is written once, and also works for operations that are added later.
# </details>
#
# <details><summary>What does a GPU backend have to provide?</summary>
#
# An array module with NumPy's functions, conversion of arrays from and to NumPy, and,
# for a few costly operations, faster kernels. The operations themselves are written
# once.
# </details>
#
# <details><summary>You want to see the gradients of a run. Which is right,
# <code>Tracing(Autodiff(B))</code> or <code>Autodiff(Tracing(B))</code>?</summary>
#
# Both: `Tracing` asks the backend that it wraps to show its gradients. `Counting`, a
# plain decorator, must be below.
# </details>

# %% [markdown] tags=["cell:backend"]
# <details><summary><b>🐍 Python note: a trait with associated types</b></summary>
#
# In Burn 0.15 `Backend` is a trait: besides hundreds of functions it names the types of
# tensors, devices and elements, and a program is compiled for each backend. Here it is a
# class with one method; the types are attributes of the object (`float`, `int`), and
# device and backend are one object. Both compute at once, line by line (*eager*).
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A backend runs ops on arrays: `run(op, values, attrs)` is its one method.
# - A decorator wraps that method, so it sees every operation.
# - `Counting`, `Tracing` and `Checked` observe; `Autodiff` records; `Fusion` waits and
#   runs operations together; they can be stacked.
# - Element types belong to the backend, and so does the stream of random numbers.
# - Equal arguments give the same object.
#
# **Where this lives.** Everything is in `burnbook/backend`. Read
# `burnbook/backend/base.py` first: the protocol with its one method `run`; then
# `burnbook/backend/numpy.py`, `burnbook/backend/cupy.py` and the decorators in
# `burnbook/backend/wrappers.py`. What an op is: `burnbook/core/op.py`. Random numbers:
# `burnbook/core/rng.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `Numpy("f32", int="i64")` | `NdArray<f32, i64>` | `Device::flex()`, `configure(…)` |
# | `device.float`, `device.int` | `B::FloatElem`, `B::IntElem` | `tensor.dtype()` |
# | `device.seed(42)` | `B::seed(42)` | `device.seed(42)` |
# | `Autodiff(Numpy())` | `Autodiff<NdArray>` | `device.autodiff()` |
# | `class Tally(Decorator)` | a type with all functions of `Backend` | the same |
#
# Next: [4.2 · Tensor](04_02_tensor.ipynb)
