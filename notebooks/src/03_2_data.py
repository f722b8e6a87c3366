# %% [markdown] tags=["goals"]
# # 3.2 · Data
#
# After this chapter you can
#
# - take items out of a dataset and look at them;
# - write a batcher that turns items into tensors;
# - let a loader shuffle and batch a dataset, the same way every time.
#
# About 20 minutes. You should have read [chapter 3.1](03_1_model.ipynb).

# %% tags=["setup"]
from dataclasses import dataclass

import numpy as np

import burnbook
from burnbook.data import (
    Batcher,
    DataLoaderBuilder,
    DigitsDataset,
    InMemDataset,
    Mapper,
    MapperDataset,
)
from burnbook.prelude import *
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Bars, Images

burnbook.seed(0)

# %% [markdown]
# ## Try it
#
# A dataset returns items by index. This one holds 1,797 real handwritten digits and
# comes with the library, so nothing needs to be downloaded. They are scaled to the 28 ×
# 28 pixels of the famous MNIST images.

# %% tags=["run-me"]
device = Numpy()
train, test = DigitsDataset.train(), DigitsDataset.test()
print(len(train), "to train on,", len(test), "to test with")

item = test.get(42)
print(item.image.shape, item.image.dtype, "label", item.label)

# %% [markdown]
# ## See it
#
# Always look at data before you train on it.

# %% tags=["widget"]
first = [test.get(i) for i in range(20)]
Images(
    np.stack([item.image for item in first]), [item.label for item in first]
)

# %% tags=["run-me"]
counts = dict.fromkeys(range(10), 0)
for item in train:
    counts[item.label] += 1
Bars(counts, "How often each digit occurs")

# %% [markdown]
# All digits are about equally frequent: a model that always says "3" is right one time
# in ten. That is the baseline to beat.
#
# ## By hand
#
# A network learns best when its inputs are near mean 0 and standard deviation 1. Pixels
# run from 0 to 255; divided by 255, those of MNIST have the mean 0.1307 and the standard
# deviation 0.3081. The book subtracts the one and divides by the other:
#
# $$x = \frac{\text{pixel}/255 - 0.1307}{0.3081}$$


# %% tags=["run-me"]
def by_hand(items):
    images = np.stack([item.image for item in items])
    return (images / 255 - 0.1307) / 0.3081


by_hand(first).shape

# %% [markdown]
# Our digits are not MNIST's: they are drawn larger and more boldly. With MNIST's two
# numbers their mean comes out above 0. That does no harm, since the scale is right, and
# the same network can then read both. For data of your own, measure the two numbers on
# the training set, and use them for every other set, too.

# %% tags=["run-me"]
pixels = by_hand(list(train))
print(f"mean {pixels.mean():.2f}, standard deviation {pixels.std():.2f}")

# %% [markdown]
# ## In burnbook
#
# A *batch* is what a model takes in at once: here images and the digits they show. A
# *batcher* makes it from a list of items. Ours turns each image into a tensor, gives it
# a leading dimension, normalizes it, and concatenates them all.


# %% tags=["run-me"]
@dataclass(frozen=True)
class MnistBatch:
    images: Tensor[3]
    targets: Tensor[1, Int]


list(MnistBatch.__annotations__)


# %% tags=["run-me", "cell:batcher-struct"]
class MnistBatcher(Batcher):
    def batch(self, items, device=device):
        images = [
            Tensor[2].from_data(item.image, device).reshape([1, 28, 28])
            for item in items
        ]
        images = [((image / 255.0) - 0.1307) / 0.3081 for image in images]
        targets = [
            Tensor[1, Int].from_data([item.label], device) for item in items
        ]
        return MnistBatch(Tensor.cat(images, 0), Tensor.cat(targets, 0))


# %% tags=["run-me", "cell:batcher"]
batch = MnistBatcher().batch(first)
print(repr(batch.targets))
same(by_hand(first), batch.images)

# %% [markdown]
# The library's own batcher gives the same numbers. It stacks first and computes once:
# one operation on many numbers is faster than many operations on a few.

# %% tags=["run-me"]
from burnbook.examples.guide import data as guide_data

same(batch.images, guide_data.MnistBatcher(device).batch(first).images)

# %% [markdown]
# ## The loader
#
# A loader goes through a dataset in batches. One pass through the whole dataset is an
# *epoch*. `shuffle(42)` gives every epoch an order of its own, and everybody who uses the
# seed 42 gets the same orders. `num_workers(n)` prepares batches ahead in the background;
# the order does not depend on it. Random numbers of burnbook do not, either; those of
# `np.random` inside of a dataset are others in every run that has workers.

# %% tags=["run-me"]
loader = (
    DataLoaderBuilder(MnistBatcher())
    .batch_size(64)
    .shuffle(42)
    .num_workers(2)
    .build(train)
)
sizes = [batch.images.dims()[0] for batch in loader]
print(len(sizes), "batches:", sizes[0], "…", sizes[-1])
print(sum(sizes), "of", loader.num_items(), "items")

# %% [markdown]
# The last batch is smaller: nothing is dropped.
#
# ## A dataset of your own
#
# Anything with `get` and `len` is a dataset. Most are made from others: a `Mapper`
# changes each item only when it is asked for, so that transforming even a huge dataset
# costs nothing up front. Tables, folders, SQLite files and Hugging Face's collections
# are datasets, too ([chapter 4.11](04_11_dataset.ipynb)).


# %% tags=["run-me", "cell:mapper"]
class Ink(Mapper):
    """How much of the image is not empty, in percent."""

    def map(self, item):
        return round(100 * float((item.image > 0).mean()))


inks = MapperDataset(train, Ink())
print([inks.get(i) for i in range(8)])

# %% [markdown]
# ## Look inside

# %% tags=["peek"]
peek(guide_data.MnistBatcher)

# %% [markdown]
# ## Where it breaks
#
# An item that is not there is not an error: `get` returns `None`, and that is how a
# loop knows where a dataset ends.

# %% tags=["run-me"]
print(test.get(1_000_000))

# %% [markdown]
# A batch size of zero is an error, and it is raised at once, not in the middle of a run.

# %% tags=["raises-exception"]
DataLoaderBuilder(MnistBatcher()).batch_size(0)

# %% [markdown]
# ## The real MNIST
#
# `MnistDataset.train()` and `.test()` give the 60,000 and 10,000 images of the book.
# The first use downloads 11 MB, verifies the files, and keeps them; without a network
# the error says which mirrors were tried and how to go on offline. Everything on these
# pages works with either dataset.

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 3.2.1: how many batches of 100 does the training set give?
answer = ...
check("3.2.1", answer)

# %% tags=["solution"]
answer = -(-len(train) // 100)
check("3.2.1", answer)

# %% tags=["exercise"]
# exercise 3.2.2: what does a white pixel (255) become after normalization?
answer = ...
check("3.2.2", answer)

# %% tags=["solution"]
answer = (255 / 255 - 0.1307) / 0.3081
check("3.2.2", answer)

# %% tags=["exercise"]
# exercise 3.2.3: a dataset of the squares of 0 … 9, with a Mapper
answer = ...
check("3.2.3", answer)


# %% tags=["solution"]
class Square(Mapper):
    def map(self, item):
        return item * item


answer = MapperDataset(InMemDataset(list(range(10))), Square())
check("3.2.3", answer)


# %% tags=["exercise"]
# exercise 3.2.4: a batcher that makes a Float tensor of a list of numbers
class Numbers(Batcher):
    def batch(self, items, device=device): ...


answer = ...  # a Numbers
check("3.2.4", answer)


# %% tags=["solution"]
class Numbers(Batcher):
    def batch(self, items, device=device):
        return Tensor[1].from_floats([float(item) for item in items], device)


answer = Numbers()
check("3.2.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why batches, and not one image at a time?</summary>
#
# The gradient of a single image is noisy; the mean over a batch is a better guide. And
# per image a batch is cheaper: with this library on a processor, 64 images take 3 to 6
# times as long as 8, not 8 times; on a GPU often hardly longer.
# </details>
#
# <details><summary>Why shuffle?</summary>
#
# A model that sees all the zeros first learns to say zero. A shuffled batch resembles
# the whole dataset.
# </details>
#
# <details><summary>Why does the batcher not know the loader?</summary>
#
# So it can be used without one: chapter 3.5 predicts a single image with the same
# batcher.
# </details>

# %% [markdown] tags=["cell:iterators-note"]
# <details><summary><b>🐍 Python note: iterators and comprehensions</b></summary>
#
# Where Rust chains `.iter().map(|item| …).collect()`, Python writes
# `[… for item in items]`. Parentheses instead of square brackets make it lazy. The
# closure `|item| item + 1` is `lambda item: item + 1`.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A dataset has `get(i)` and `len`; transforms are datasets too, and lazy.
# - A batcher turns a list of items into tensors.
# - A loader shuffles, batches and works ahead; its order depends on the seed alone.
# - Look at the data first: images, counts, ranges.
# - The small digits come with the library; the real MNIST is `MnistDataset`.
#
# **Where this lives.** The digits are in `burnbook/data/dataset/vision`, batchers and
# loaders in `burnbook/data/dataloader`, the batcher of the example in
# `burnbook/examples/guide/data.py`. The pictures are drawn by
# `widgets/burnbook_widgets/pictures.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `class MnistBatcher(Batcher)` | `impl<B> Batcher<MnistItem, MnistBatch<B>> for MnistBatcher<B>` | `impl Batcher<MnistItem, MnistBatch> for MnistBatcher` |
# | `batch(items)` | `fn batch(&self, items)` | `fn batch(&self, items, device)` |
# | `dataset.get(i)`, `None` past the end | `dataset.get(i)`, an `Option` | a `Result` |
# | `MnistDataset.train()` | `MnistDataset::train()` | the same |
# | `.num_workers(2)` | shuffles within each worker's part | shuffles the whole |
#
# Next: [3.3 · Training](03_3_training.ipynb)
