# %% [markdown] tags=["goals"]
# # 10.7 · Performance
#
# After this chapter you can
#
# - say where the time of a training step goes, and what makes it wait;
# - run a model as a program: fused, with its memory planned, and faster by rules of yours;
# - write that program out: for ONNX Runtime, for a microcontroller, for Rust.
#
# About 45 minutes. You should have read [chapter 4.1](04_01_backend.ipynb) and
# [chapter 5](05_custom_training_loop.ipynb).

# %% tags=["setup"]
import shutil
import subprocess
import sys
import time
from pathlib import Path
from threading import current_thread

import numpy as np

import burnbook
from burnbook import nn
from burnbook.backend import Counting, Decorator, Fusion
from burnbook.cli import main as burnbook_command
from burnbook.data import (
    Batcher,
    DataLoaderBuilder,
    DigitsDataset,
    InMemDataset,
)
from burnbook.examples.guide.data import MnistBatcher
from burnbook.exporters import to_micropython, to_onnx
from burnbook.exporters.rust import rust_model
from burnbook.importers.onnx import compare, load
from burnbook.module import profile
from burnbook.optim import AdamConfig, GradientsParams
from burnbook.prelude import *
from burnbook.program import (
    CompiledTraining,
    capture,
    capture_training,
    captured,
    fusion,
)
from burnbook.program.compiler import RULES, without_rule
from burnbook.record import (
    BinFileRecorder,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    NamedMpkFileRecorder,
)
from burnbook.tensor import Transaction
from burnbook_widgets import GraphView
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Bars

burnbook.seed(0)
folder = Path("artifacts/performance")
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)

# %% [markdown] tags=["cell:introduction"]
# Burn's book has a part on what one has to know to get the most out of the hardware: when the
# program waits for the device, which operations become one kernel, and which kernel is
# chosen. This chapter shows each of it on a processor, where you can count and measure it.
# Nothing here changes what a model computes.
#
# ## Try it
#
# `capture` runs a model once and keeps its operations as a flat list, without the Python
# around them. Burn does the same behind your back, and calls it the stream of a fusion
# backend.


# %% tags=["run-me"]
class Mlp(Module):
    hidden: nn.Linear
    output: nn.Linear

    @staticmethod
    def init(device):
        hidden = nn.LinearConfig(784, 256).init(device)
        return Mlp(hidden, nn.LinearConfig(256, 10).init(device))

    def forward(self, images):
        x = self.hidden.forward(images.flatten(1, 2)).relu()
        return self.output.forward(x)


# %% tags=["run-me"]
device = Numpy()
items = list(DigitsDataset.train())
batch = MnistBatcher(device).batch(items[:64])
model = Mlp.init(device)
program = capture(model, batch.images)
print(program.text(lines=False))

# %% [markdown]
# A program is called like the model. `compile` makes a plan of it: here four steps become
# three, since a linear layer and its activation are computed together.

# %% tags=["run-me"]
compiled = program.compile()
print(repr(compiled))
same(compiled(batch.images), model.forward(batch.images))

# %% [markdown]
# ## By hand
#
# Why is it quicker to compute things together? Take pixels that are shifted, scaled and
# cut off: $\max(0, (x - 0.1307) / 0.3081)$. A processor does such sums faster than memory
# can bring the numbers. Operation by operation, three times all numbers are read and all
# results are written. In blocks that fit into the cache, both happen once:


# %% tags=["run-me"]
def one_by_one(x):
    y = x - 0.1307
    z = y / 0.3081
    return np.maximum(z, 0)


def in_blocks(x, block=4096):
    out = np.empty_like(x)
    for start in range(0, x.size, block):
        part = out[start : start + block]
        np.subtract(x[start : start + block], 0.1307, out=part)
        np.divide(part, 0.3081, out=part)
        np.maximum(part, 0, out=part)
    return out


# %% tags=["run-me"]
pixels = np.random.default_rng(0).random(1_000_000, dtype=np.float32)
same(in_blocks(pixels), one_by_one(pixels))
print("one by one:", 3 * 2 * pixels.nbytes, "bytes through memory")
print("in blocks: ", 2 * pixels.nbytes, "bytes, and a block stays near")

# %% [markdown]
# A GPU has the same problem, only larger: while its memory brings one number it could
# compute dozens of products. *Kernel fusion* is the name of the cure: one kernel, started
# once, in place of three.
#
# ## In burnbook
#
# The same chain as a program. `explain` says what runs for a batch of 512, whose
# pixels are more than a cache holds: one call, in which the three steps take their turns
# block by block, each writing over what it reads. That is NumPy alone; with compiled kernels
# such a row of steps becomes one loop of machine code, once it has run for half a second.


# %% tags=["run-me"]
def pixels_in(x):
    return ((x - 0.1307) / 0.3081).relu()


rows = Tensor.from_numpy(pixels[: 512 * 784].reshape(512, 784), device)
chain = capture(pixels_in, rows).compile(Numpy(compiled=False))
print(chain.explain(512))
same(chain(rows), pixels_in(rows))

# %% [markdown]
# Memory is given out before anything runs: the plan knows when each value is needed for the
# last time, and who may stand in its place afterwards. A run allocates nothing but its
# results.
#
# ## See it
#
# The captured model, drawn. Walk through it with the arrow keys; each box says its shape,
# where `n` is the batch size.

# %% tags=["widget"]
GraphView(program)

# %% [markdown] tags=["cell:asynchronous"]
# ## Asynchronous execution
#
# Most of Burn's backends only *queue* an operation: Rust goes on at once, and the device
# computes meanwhile. So does CuPy. Nothing waits until something is read: `into_data`,
# `into_scalar`, `print`, an `if`, and `sync`, which waits and nothing else. NumPy does not
# queue anything. When a call returns, its result is there.
#
# On one GPU (NVIDIA H200, CuPy 14) twenty products of two 4096 × 4096 matrices were asked
# for within 2 milliseconds; whoever then read a number waited 54. A stopwatch around a
# single operation measures the asking, unless you `sync()` first; `profile` below does.
#
# What can be counted everywhere is how often something is read. A decorator of the
# backend sees it:


# %% tags=["run-me"]
class Traffic(Decorator):
    interned = False
    taken_in = reads = 0

    def from_numpy(self, array):
        self.taken_in += 1
        return super().from_numpy(array)

    def to_numpy(self, value):
        self.reads += 1
        return super().to_numpy(value)

    def read(self, values):  # several at once
        self.reads += 1
        return super().read(values)


# %% tags=["run-me"]
def loss_of(model, images, targets):
    criterion = nn.CrossEntropyLossConfig().init(images.device())
    return criterion.forward(model.forward(images), targets)


# %% [markdown]
# Now a loop that looks at its loss in every step, and one that keeps the losses for later.
# `inner()` takes each out of its graph, which would otherwise be held as well.


# %% tags=["run-me"]
def train(device, steps, reads):
    batch = MnistBatcher(Autodiff(device)).batch(items[:64])
    model, optim = Mlp.init(Autodiff(device)), AdamConfig().init()
    losses = []
    for _ in range(steps):
        loss = loss_of(model, batch.images, batch.targets)
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = optim.step(1e-3, model, grads)
        losses.append(loss.into_scalar() if reads else loss.inner())
    return losses


# %% tags=["run-me"]
for reads in (True, False):
    traffic = Traffic(Numpy())
    losses = train(traffic, 20, reads)
    print("reads in 20 steps:", traffic.reads)

# %% [markdown] tags=["cell:transaction-text"]
# ### Transactions
#
# The twenty losses can be read at once. A `Transaction` asks for all copies, then waits a
# single time, and gives the data in the order in which tensors were registered. Use it to
# collect output, loss and targets for metrics.

# %% tags=["run-me", "cell:transaction"]
transaction = Transaction()
for loss in losses:
    transaction = transaction.register(loss)
data = transaction.execute()
print(f"{len(data)} losses with {traffic.reads} read")
print("they fall:", data[0].to_list() > data[-1].to_list())

# %% [markdown] tags=["cell:other-thread"]
# Another way is to read on another thread. CubeCL gives each thread a queue of its own, so
# one that waits stops no other; and a thread that waits for CuPy leaves Python to others.
#
# What it is worth depends on who waits for whom. On that GPU, the guide's network with
# batches of 64 took 3 milliseconds a step, whether or not the loss was read: Python needs
# longer to ask for such small kernels than the GPU to compute them. With the step launched
# as a whole (below: a program, which CuPy runs as a CUDA graph) it took 0.47, and 0.61
# where every loss was read. Measure first.

# %% [markdown] tags=["cell:other-backends"]
# ### Using different backends for different tasks
#
# Datasets and loaders work ahead, too. Prepare items where they do not disturb: on another
# device, often simply NumPy. Put them together *there*, and move the batch once.

# %% tags=["run-me", "cell:concatenate"]
training = Traffic(Numpy())
few = [item.image for item in items[:32]]

single = [Tensor.from_numpy(image[None], training) for image in few]
batch_of_many = Tensor.cat(single, 0)
print("each image by itself:", training.taken_in, "small allocations")

training.taken_in = 0
single = [Tensor.from_numpy(image[None], device) for image in few]
together = Tensor.cat(single, 0)
batch_at_once = Tensor.from_data(together.into_data(), training)
print("put together before: ", training.taken_in)
same(batch_at_once, batch_of_many)

# %% [markdown]
# ## Where the time goes
#
# `profile` measures each layer, forward and backward, and what memory the tape holds for
# the way back. It waits for the device before it looks at the clock. Times are those of
# the machine that ran this page; run the cell to see yours.

# %% tags=["run-me", "nbval-ignore-output"]
tracked = Autodiff(device)
batch = MnistBatcher(tracked).batch(items[:64])
model = Mlp.init(tracked)
profile(model, batch.images)

# %% [markdown]
# Most of it is the first layer, and most of that are its products: 64 × 784 × 256 of them
# forward. The rest is spent between the operations, by Python and by allocations. This is
# what a program leaves out, so now the whole step becomes one: forward, backward, and the
# optimizer.

# %% tags=["run-me"]
whole = capture_training(
    model, loss_of, AdamConfig().init(), batch.images, batch.targets
)
print(repr(whole))
print(*[step.op.name for step in whole.program.steps], sep=", ")

# %% [markdown]
# `CompiledTraining` holds the parameters and what the optimizer remembers in place, and
# writes over them. Its losses are those of the loop that you know:

# %% tags=["run-me"]
step = CompiledTraining(whole)
rate = 1e-3
found = [step.step(rate, batch.images, batch.targets) for _ in range(5)]

network, optim, expected = model, AdamConfig().init(), []
for _ in range(5):
    loss = loss_of(network, batch.images, batch.targets)
    grads = GradientsParams.from_grads(loss.backward(), network)
    network = optim.step(rate, network, grads)
    expected.append(loss.inner())
same(Tensor.cat(found, 0), Tensor.cat(expected, 0))

# %% [markdown]
# And this is the profile of a step before and after: whole steps as bars, and a table with
# a row for each call of the plan. Times are the least of thirty, since whatever else a
# machine does only adds to them. (While kernels are still being compiled in the
# background, all of them are longer.)

# %% tags=["run-me", "nbval-ignore-output"]
seconds, trained = [], network
for _ in range(30):
    began = time.perf_counter()
    loss = loss_of(trained, batch.images, batch.targets)
    grads = GradientsParams.from_grads(loss.backward(), trained)
    trained = optim.step(rate, trained, grads)
    seconds.append(time.perf_counter() - began)
table = step.profile(rate, batch.images, batch.targets, rounds=30)
times = {
    "the loop": 1000 * min(seconds),
    "the program, step by step": 1000 * table.one_by_one,
    "its plan": 1000 * table.planned,
}
display(Bars(times, "Milliseconds of a training step"), table)

# %% [markdown]
# Times differ, from machine to machine and from run to run. What does not is how many
# calls there are, and what they need:

# %% tags=["run-me"]
calls = [call for call in table.calls if call.planned]
print(len(whole.program.steps), "steps of the program,", len(calls), "calls")
print("fused:", *[call.what for call in calls if call.ops > 1])
print("less memory at once:", table.bytes < table.eager_bytes)

# %% [markdown]
# You need none of this to be quick. A learner runs its steps so with
# `LearnerBuilder.captured()`, and a loop of your own with one word above the function of a
# step. `captured` makes a plan for each form of a call (shapes, types, what is frozen), and
# notices what you change in between:


# %% tags=["run-me"]
@captured
def train_step(model, optim, lr, images, targets):
    loss = loss_of(model, images, targets)
    grads = GradientsParams.from_grads(loss.backward(), model)
    return optim.step(lr, model, grads), loss


network, optim, found = model, AdamConfig().init(), []
for _ in range(5):
    network, loss = train_step(
        network, optim, rate, batch.images, batch.targets
    )
    found.append(loss.inner())
same(Tensor.cat(found, 0), Tensor.cat(expected, 0))

# %% tags=["run-me"]
print(train_step)
predict = captured(network)  # the same for inference
same(predict(batch.images), network.valid().forward(batch.images.inner()))

# %% [markdown]
# A plan prints nothing, and cannot look at numbers while it runs. Where a function does, it
# runs step by step, and one warning says why and what to change.
#
# A profile also says where *not* to look. In the guide's network nearly all of a step is
# spent in the gradients of convolutions, which a plan computes by the same kernels as
# always: it gains nothing there. Inference with one image, or a chain of small operations,
# takes a third to a half of the time. `BENCHMARKS.md` has the figures.

# %% [markdown] tags=["cell:fusion-text"]
# ## Kernel fusion
#
# What is fused here: a convolution with activation and pool; a linear layer with its
# activation; elementwise steps in a row. In Burn, elementwise steps join the kernel before
# them when it *writes* its result, or the one behind them when it *reads* its input. What
# you can do for it is the same in both.
#
# ### Keep tensors short-lived
#
# A value that somebody still wants has to be written to memory. Here the second function
# also returns what it has only passed through:


# %% tags=["run-me", "cell:short-lived"]
class Block(Module):
    linear: nn.Linear

    def forward(self, x):
        return self.linear.forward(x).relu()

    def with_sums(self, x):
        sums = self.linear.forward(x)
        return sums, sums.relu()


block = Block(nn.LinearConfig(64, 64).init(device))
x = Tensor.ones([32, 64], device)
for function in (block.forward, block.with_sums):
    print(repr(capture(function, x).compile()))

# %% [markdown]
# The memory of a chain shows it as well. Each value that lives on has to have a place of
# its own:


# %% tags=["run-me", "cell:live-memory"]
def short(x):
    return (x - 1.0).exp().sqrt()


def long(x):
    shifted = x - 1.0
    powers = shifted.exp()
    return shifted, powers, powers.sqrt()


# %% tags=["run-me"]
large = Tensor.ones([64, 1024], device)
for function in (short, long):
    plan = capture(function, large).compile().plan_for(64)
    count = plan.bytes // large.value.nbytes
    print(f"{function.__name__:5} values in memory at once: {count}")

# %% [markdown] tags=["cell:views-text"]
# ### Group view operations
#
# `reshape`, `swap_dims`, `unsqueeze`, `slice` and the like only say how to look at the
# same memory. In a plan they cost nothing, but one that stands between two steps keeps
# them apart. Burn advises to have them first, and the computing after them in one block:


# %% tags=["run-me", "cell:views"]
def between(x):
    return block.linear.forward(x).reshape([-1, 8, 8]).relu()


def behind(x):
    return block.linear.forward(x).relu().reshape([-1, 8, 8])


for function in (between, behind):
    print(capture(function, x).compile(rules=RULES).lowered.steps[0].op.name)
same(between(x), behind(x))

# %% [markdown]
# The example of Burn's book, `tensor1.unsqueeze().matmul(tensor2) + tensor3.unsqueeze()`,
# is a product and a sum here, however it is written: both are already computed where they
# belong.

# %% tags=["run-me", "cell:unsqueeze"]
one, two = Tensor.ones([3, 4], device), Tensor.ones([1, 4, 5], device)
three = Tensor.ones([3, 5], device)


def in_line(one, two, three):
    return one.unsqueeze_dim(0).matmul(two) + three.unsqueeze_dim(0)


def views_first(one, two, three):
    one, three = one.unsqueeze_dim(0), three.unsqueeze_dim(0)
    return one.matmul(two) + three


# %% tags=["run-me"]
for function in (in_line, views_first):
    found = capture(function, one, two, three, batch=None).compile()
    print(f"{function.__name__:11}", len(found.plan_for(None).calls), "calls")

# %% [markdown] tags=["cell:latest-text"]
# ### Pass on the latest value only
#
# A value that is used twice is no link of a chain. In Burn `a` and `b` below are *virtual*
# as long as they are part of a fused kernel. `late` needs them once more behind the
# product, so that both are written; in `soon` only `both` is, and Burn prefers it. Where
# values are in memory anyway, as parameters are, `late` is better: nothing else has to be
# kept. In a plan here every value has its place. Count them:


# %% tags=["run-me", "cell:latest"]
def late(x, y):
    a, b = x.exp(), y.exp()
    product = a.matmul(b)
    return product + (a * b)


def soon(x, y):
    a, b = x.exp(), y.exp()
    both = a * b
    return a.matmul(b) + both


# %% tags=["run-me"]
square = [Tensor.ones([64, 64], device)] * 2
for function in (late, soon):
    plan = capture(function, *square, batch=None).compile().plan_for(None)
    count = plan.bytes // square[0].value.nbytes
    print(f"{function.__name__:5} values in memory at once: {count}")
same(late(*square), soon(*square))

# %% [markdown] tags=["cell:fusion-backend-text"]
# ### Behind the ordinary API
#
# A program has to be captured. `Fusion` is the decorator for those who do not want to know
# ([chapter 4.1](04_01_backend.ipynb)): operations wait, as on a GPU, until something is
# read. Then all that wait run together, fused. What nobody holds any more is neither
# stored nor computed. `Counting` below it sees what was left to do:

# %% tags=["run-me", "cell:fusion-backend"]
below = Counting(Numpy())
waiting = Fusion(below)
there = rows.to_device(waiting)
for _ in range(3):  # the first time shapes are learned, and a plan is made
    below.counts.clear()
    unread = there.exp().log()
    del unread
    out = pixels_in(there)
    print(waiting.waiting, "wait", end=", ")
    same(out, pixels_in(rows))
print("run in the last round:", dict(below.counts))

# %% [markdown]
# It goes below Autodiff, so that gradients and the optimizer's steps wait as well. The loop
# of before on such a device, read once at the end:

# %% tags=["run-me"]
read = []
for backend in (Fusion(Numpy()), Numpy()):
    burnbook.seed(1)  # the same initial weights
    losses = train(backend, 20, False)
    read.append(Tensor.cat(losses, 0).into_data().to_list())
same(*read)

# %% [markdown] tags=["cell:rule-text"]
# ### A rule of your own
#
# Which ops may become one is not built in: a rule names a chain, and the function below it
# computes the chain. It gets what the steps take from elsewhere, in order: here the input,
# the mean, the deviation.


# %% tags=["run-me", "cell:rule"]
@fusion("sub div")
def standardize(xp, x, mean, deviation):
    """(x − mean) / deviation, without an array in between."""
    out = xp.subtract(x, mean)
    out /= deviation
    return out


rule = RULES[-1]
fused = capture(pixels_in, rows).compile(rules=[rule])
print([step.op for step in fused.lowered.steps])
same(fused(rows), pixels_in(rows))
without_rule("standardize")  # from here on without it

# %% [markdown] tags=["cell:rule-after"]
# `compile()` uses every rule that is declared, `compile(rules=[…])` those that you give.
# The newest one that fits wins; a result that is used elsewhere ends a chain. `without_rule`
# takes a rule back. Measure before you keep one: `profile` of the compiled program sets the
# fused call beside its steps.
#
# In Rust there is rarely a reason to write a kernel for elementwise operations, as fusion
# makes it. For what takes most of the time, products and convolutions, kernels are written
# by hand, there and here.

# %% [markdown] tags=["cell:selection-text"]
# ## Kernel selection
#
# For one operation there are several ways, and which is best depends on shapes and on the
# hardware. Burn measures them when a shape first comes (*autotune*), and keeps the answer
# on the disk: a cold start, once. Here the choice is written down in the kernels, as
# `tests/bench` found it best, and is the same in each run:
#
# | what | ways, and when each is taken |
# |---|---|
# | convolution | one filter per channel; blocks of channels, from 16 on; rows in pairs with four products in place of six (Winograd), where kernels are 3 high and channels few; else tap by tap |
# | product | one or two rows: a weight laid out to be read in one stretch; small: BLAS on one thread; large: shared out among the threads of the pool |
# | elementwise | on one thread; by all of them where there is work enough to wake them |
# | anything | NumPy, if there is no kernel, or if it does not serve these arrays |
#
# `Numpy(compiled=False)` takes NumPy's way everywhere, on the same numbers:

# %% tags=["run-me"]
plain = Numpy(compiled=False)
inference = model.valid()
there = inference.fork(plain)
images = batch.images.inner()
same(there.forward(images.to_device(plain)), inference.forward(images))

# %% [markdown]
# In a plan the choice is made once, and `explain` names it: `view` costs nothing, `in
# place` is a NumPy function that writes where it is told, `out` a product that does,
# `compiled` a kernel with its weights laid out before, and `op` whatever the operation
# does by itself, its result copied to its place.

# %% tags=["run-me"]
print(capture(there, images.to_device(plain)).compile().explain(64))

# %% [markdown] tags=["cell:even-text"]
# ### Even shapes
#
# A vector register holds 8 or 16 numbers, a GPU's tile 32 and more. What does not fill
# one is padded or computed bound by bound. So 1024 is a better size than 1000, and 17
# channels cost as much as 24, or 32:

# %% tags=["run-me", "cell:even"]
for lanes in (8, 16, 32):
    filled = {n: -(-n // lanes) * lanes for n in (16, 17, 1000, 1024)}
    print(f"{lanes:2} at a time:", filled)

# %% [markdown] tags=["cell:uneven"]
# If data has an uneven size, make it even in the first layer. One slow layer is better
# than unevenness that is passed on through all of them.

# %% [markdown] tags=["cell:cold-start"]
# What costs a cold start here is compiling: `burnbook warmup` does it once for a machine,
# and `BURNBOOK_CACHE` says where the kernels are kept. Put that folder into the image that
# you start machines from, as Burn advises for its autotune cache.
#
# ## More good practices
#
# **Batches.** Each operation has a price before it computes anything: a microsecond here,
# ten to start a kernel on a GPU. A batch of 64 pays it once:

# %% tags=["run-me"]
for size in (1, 64):
    counting = Counting(Numpy())
    there = inference.fork(counting)
    pixels = images.to_device(counting)
    counting.counts.clear()
    for start in range(0, 64, size):
        there.forward(pixels.slice([(start, start + size)]))
    print(f"batches of {size:2}:", counting.counts.total(), "operations")

# %% [markdown]
# **Inference without a tape.** `model.valid()` gives the model on the backend below: no
# graph, no dropout, and nothing kept for a backward pass that never comes.

# %% tags=["run-me"]
training_mode = profile(model, batch.images, rounds=1)
valid_mode = profile(inference, images, rounds=1, backward=False)
print("kept while training:", training_mode[""].kept, "bytes")
print("kept by valid():    ", valid_mode[""].kept, "bytes")

# %% [markdown]
# **Element types.** Twice the bytes are twice the traffic. Use `f64` where you need its
# digits, and half precision for records, which are read once:

# %% tags=["run-me"]
for name in ("f32", "f64"):
    wide = inference.fork(Numpy(float=name))
    found = profile(wide, [64, 28, 28], rounds=1, backward=False)
    print(name, "results of one forward pass:", found[""].results, "bytes")
for settings in (FullPrecisionSettings, HalfPrecisionSettings):
    path = inference.save_file(folder / "mlp", BinFileRecorder(settings))
    print(settings.__name__, path.stat().st_size, "bytes on the disk")

# %% [markdown]
# **Workers.** A loader prepares batches on other threads while the loop computes. Here a
# batcher notes who it was that worked. Order and content stay the same, and batches that
# are made more quickly than handed over are left to the loop.


# %% tags=["run-me"]
class Slow(Batcher):
    def __init__(self):
        self.names = set()

    def batch(self, items):
        time.sleep(0.002)  # decoding, cropping, turning …
        self.names.add(current_thread().name)
        return sum(items)


for workers in (0, 2):
    slow = Slow()
    builder = DataLoaderBuilder(slow).batch_size(4).num_workers(workers)
    sums = list(builder.build(InMemDataset(list(range(32)))))
    print(workers, "workers, by the loop:", "MainThread" in slow.names, sums)

# %% [markdown]
# **Memory.** A tensor lives as long as a name points to it, and what is tracked holds its
# whole graph. Keep `loss.inner()` or a number, never `loss`. Write `x = f(x)`: an operation
# may write over a value that nobody else has, in Burn, and in a plan here.

# %% [markdown] tags=["cell:distributed-text"]
# ## Distributed computing
#
# Burn trains on several devices at once. Each has a copy of the model and a part of the
# batch, and their gradients are added up or averaged (*all-reduce*) before the step. For
# equal parts the average is the gradient of the whole batch, so nothing else changes:


# %% tags=["run-me", "cell:distributed"]
def gradient(images, targets):
    grads = loss_of(model, images, targets).backward()
    return model.output.weight.val().grad(grads)


whole = gradient(batch.images, batch.targets)
parts = [
    gradient(batch.images.slice([s]), batch.targets.slice([s]))
    for s in [(0, 32), (32, 64)]
]
same((parts[0] + parts[1]) / 2.0, whole)

# %% [markdown]
# `LearnerBuilder(…).devices([Autodiff(Cupy(0)), Autodiff(Cupy(1))])` trains on several
# GPUs ([chapter 4.6](04_06_learner.ipynb)). Groups of devices, all-reduce by itself and
# devices of other machines are what the book's page on distributed computing is about.

# %% [markdown] tags=["cell:writers-text"]
# ## One program, written anywhere
#
# A flat list of operations is all that another runtime needs to know. So what was
# captured can be written down for it. As an example, a network of 321 parameters learns
# the sine, as a plan:


# %% tags=["run-me"]
class Sine(Module):
    first: nn.Linear
    second: nn.Linear
    third: nn.Linear

    @staticmethod
    def init(device):
        sizes = [(1, 16), (16, 16), (16, 1)]
        return Sine(*[nn.LinearConfig(*size).init(device) for size in sizes])

    def forward(self, angle):
        x = self.first.forward(angle).relu()
        return self.third.forward(self.second.forward(x).relu())


# %% tags=["run-me"]
angles = np.linspace(0, 2 * np.pi, 200, dtype=np.float32)[:, None]
x = Tensor.from_numpy(angles, tracked)
y = x.sin()


def error_of(model, x, y):
    return (model.forward(x) - y).square().mean()


# %% tags=["run-me"]
whole = capture_training(
    Sine.init(tracked), error_of, AdamConfig().init(), x, y
)
learned = CompiledTraining(whole)
for _ in range(1500):
    error = learned.step(5e-3, x, y)
sine = whole.model(learned.state).valid()
print(sine.num_params(), "parameters")
print("error below 0.01:", error.into_scalar() < 0.01)

# %% [markdown] tags=["cell:onnx-text"]
# ### ONNX
#
# One call writes a file that ONNX Runtime and many others execute. `compare` runs it with
# `onnx`'s own evaluator and as our import of it, value by value
# ([chapter 7.2](07_2_onnx.ipynb)). `burnbook export-onnx` does it from a record.

# %% tags=["run-me", "cell:onnx"]
points = x.inner()
path = to_onnx(sine, folder / "sine.onnx", points)
report = compare(path, [points])
print("first difference:", report.first_difference)
back = load(path, device)
same(back.forward(points), sine.forward(points))

# %% [markdown] tags=["cell:micropython-text"]
# ### MicroPython
#
# For a microcontroller the program becomes one Python file: weights as bytes, memory
# given out before, nothing imported but what MicroPython has. The same file runs in every
# Python; here in one without any packages (`-S`). With `int8=True` weights and inner loops
# are whole numbers.

# %% tags=["run-me", "cell:micropython"]
made = to_micropython(sine, folder / "sine.py", points)
print(made.weights, "bytes of weights,", made.memory, "bytes to work in")
script = """
import math, sine
angles = [i / 10 for i in range(63)]
apart = [abs(sine.predict([a])[0] - math.sin(a)) for a in angles]
print("off by less than 0.3 everywhere:", max(apart) < 0.3)
"""
run = [sys.executable, "-S", "-c", script]
done = subprocess.run(run, cwd=folder, capture_output=True, text=True)
print(done.stdout or done.stderr)

# %% tags=["run-me"]
text = made.path.read_text()
print(text[text.index("def predict") :])

# %% [markdown] tags=["cell:rust-text"]
# ### Rust
#
# And the module as Rust for Burn: structs with the same names, so that the record fits.
# `burnbook export-rust` writes a whole crate with its weights, in which `cargo run`
# predicts.

# %% tags=["run-me", "cell:rust"]
source = rust_model(sine, points).source
struct = source[source.index("pub struct Sine<") :]
print(struct.partition("\n}\n")[0], "}", sep="\n")
method = source[source.index("    pub fn forward") :]
print(method.partition("\n}\n")[0])

# %% [markdown] tags=["cell:scaffold-text"]
# The other way round, `burnbook scaffold` reads a record, ours or one of Rust, and shows
# the Python classes that fit it. What it cannot know is what runs when: `forward` is
# yours.

# %% tags=["run-me", "cell:scaffold"]
saved = sine.save_file(folder / "sine", NamedMpkFileRecorder())
assert burnbook_command(["scaffold", str(saved), "--name", "Sine"]) == 0

# %% [markdown]
# ## Look inside
#
# How a kernel is chosen when nothing is compiled into a plan: the backend asks the one
# that is listed for the operation, and if it gives nothing, takes the plain code. That is
# all.

# %% tags=["peek"]
peek(Backend.run)

# %% [markdown]
# ## Where it breaks
#
# A program has no `if`. Where Python decides by a value, `capture` cannot know what would
# have happened with another one, so it says where:


# %% tags=["raises-exception"]
def halved_if_large(x):
    if x.max().into_scalar() > 0.5:
        return x / 2.0
    return x


capture(halved_if_large, rows)

# %% [markdown]
# `mask_where` computes both and chooses element by element, so that there is nothing to
# decide:


# %% tags=["run-me"]
def halved_where_large(x):
    return x.mask_where(x.greater_elem(0.5), x / 2.0)


print(capture(halved_where_large, rows).text(lines=False))

# %% [markdown]
# A rule for an operation that there is not:

# %% tags=["raises-exception"]
fusion("sub divide")

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 10.7.1: x has a million elements of type f32. How many bytes go
# through memory for (x * 2.0 + 1.0).tanh().exp(), operation by operation?
answer = ...
check("10.7.1", answer)

# %% tags=["solution"]
answer = 4 * 2 * 4_000_000
check("10.7.1", answer)


# %% tags=["exercise"]
# exercise 10.7.2: a list of losses, tensors of one element, as a list of
# floats; the device is read once
def numbers_of(losses):
    return ...


answer = ...  # numbers_of
check("10.7.2", answer)


# %% tags=["solution"]
def numbers_of(losses):
    read = Transaction(*losses).execute()
    return [data.to_list()[0] for data in read]


answer = numbers_of
check("10.7.2", answer)


# %% tags=["exercise"]
# exercise 10.7.3: the same result, in a single call of the plan
def heads(linear, x):
    sums = linear.forward(x)
    parts = sums.reshape([-1, 4, 8])
    return parts.tanh().swap_dims(1, 2)


answer = ...  # heads
check("10.7.3", answer)


# %% tags=["solution"]
def heads(linear, x):
    sums = linear.forward(x).tanh()
    return sums.reshape([-1, 4, 8]).swap_dims(1, 2)


answer = heads
check("10.7.3", answer)

# %% tags=["exercise"]
# exercise 10.7.4: a rule that computes (x - y).square().mean() in one step;
# a mean is an array of shape [1]. RULES[-1] is the rule declared last
answer = ...
check("10.7.4", answer)


# %% tags=["solution"]
@fusion("sub square mean")
def mean_squared_error(xp, x, y):
    apart = xp.subtract(x, y).reshape(-1)
    return xp.dot(apart, apart).reshape(1) / apart.size


answer = RULES[-1]
check("10.7.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why may a stopwatch around an operation on a GPU show almost nothing?</summary>
#
# The operation was only queued. Whoever reads a value, or calls `sync`, waits for it and
# all before it.
# </details>
#
# <details><summary>Why does it pay to fuse steps that compute very little?</summary>
#
# They are limited by memory: each reads and writes all numbers. Fused, the numbers are
# read and written once, and a kernel is started once.
# </details>
#
# <details><summary>What ends a chain of steps that could be fused?</summary>
#
# A result that somebody else needs, a view between two steps, and a step that no rule
# continues with.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: measuring time</b></summary>
#
# `time.perf_counter()` is the clock for it. Leave the first run out: it compiles, lays out
# weights, asks the system for memory. Then take the least of several runs to compare code,
# and the median to know how long somebody waits; a mean contains whatever else the machine
# did. Compare two ways in turns, in the same minute: whoever runs second
# on a warm laptop is slower. `%timeit` in a cell does the first two.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - Reading waits: read seldom, and together (`Transaction`).
# - `capture(model, x).compile()` and `CompiledTraining` run a plan: fused, in place, memory
#   given out once. `explain` and `profile` say what became of each step.
# - Short-lived values, views before or behind the computing, the latest value passed on.
# - `@fusion("sub div")` is a rule; results stay what they are.
# - The same program becomes ONNX, a file for MicroPython, Rust.
#
# **Where this lives.** Programs and plans: `burnbook/program`; rules are in
# `burnbook/program/compiler/fusion.py`. Kernels: `burnbook/backend`; products are shared
# out by `burnbook/backend/products.py`. Reads together: `burnbook/tensor/transaction.py`.
# Layers measured: `burnbook/module/profiling.py`. Writers: `burnbook/exporters/onnx`,
# `burnbook/exporters/micropython`, `burnbook/exporters/rust`, with the forms that they
# share in `burnbook/exporters/forms.py`; the way back: `burnbook/importers/scaffold.py`.
#
# **The same in Burn**
#
# | here | Burn |
# |---|---|
# | `Transaction().register(a).register(b).execute()` | `Transaction::default().register(a).register(b).execute()` |
# | `device.sync()` | `B::sync(&device)` |
# | `Fusion(Numpy())` | `Fusion<B>`, a part of `Cuda` and `Wgpu` |
# | `capture(model, x).compile()` | – |
# | a choice that is written down; `burnbook warmup` | autotune; its cache on the disk |
# | `.devices([…])` | `.devices(vec![…])`; since 0.20 `ExecutionStrategy::ddp(…)` |
# | `burnbook export-rust` | – |
#
# Next: [Example · Text generation](examples/text_generation.ipynb)
