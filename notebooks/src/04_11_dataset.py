# %% [markdown] tags=["goals"]
# # 4.11 · Dataset
#
# After this chapter you can
#
# - make datasets from datasets, at no cost, and split, sample and window them;
# - keep items in memory, in SQLite, in tables or in folders of images;
# - build MNIST from its files: raw item → mapper → workers → batch.
#
# About 30 minutes. You should have read [chapter 3.2](03_2_data.ipynb).

# %% tags=["setup"]
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

import burnbook
from burnbook.backend import Numpy
from burnbook.data import (
    Batcher,
    ComposedDataset,
    DataLoaderBuilder,
    Dataset,
    DigitsDataset,
    ImageFolderDataset,
    InMemDataset,
    Mapper,
    MapperDataset,
    PartialDataset,
    SamplerDataset,
    SelectionDataset,
    ShuffledDataset,
    SqliteDataset,
    SqliteDatasetStorage,
    WindowsDataset,
    random_split,
    read_idx,
)
from burnbook.core.dtypes import Int
from burnbook.tensor import Distribution, Tensor
from burnbook_widgets import DatasetBrowser
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Images

burnbook.seed(0)
folder = Path("artifacts/dataset")
shutil.rmtree(folder, ignore_errors=True)

# %% [markdown]
# ## Try it
#
# A dataset answers two questions: what is item *i*, and how many are there?


# %% tags=["run-me", "cell:trait"]
class Squares(Dataset):
    def __init__(self, size):
        self.size = size

    def get(self, index):
        return index * index if 0 <= index < self.size else None

    def __len__(self):
        return self.size


squares = Squares(1_000_000_000)
print(squares.get(12), squares.get(-1), len(squares))

# %% [markdown] tags=["cell:use"]
# Outside its range it returns `None`. Where items come from is left open, so a billion of
# them fit into one line. The length is fixed, and any item can be read at any time.
#
# How is it used? The loader draws indices up to the length, in an order of its own, calls
# `get` for each, and passes lists of items to the batcher. One pass over all indices is
# an epoch.
#
# ## By hand
#
# A *transform* is a dataset that reads from another one. It is arithmetic on indices:
#
# $$\text{partial}(i) = x(\text{start} + i) \qquad \text{shuffled}(i) = x(\pi(i)) \qquad
# \text{windows}(i) = [x(i), \dots, x(i + n - 1)]$$

# %% tags=["run-me"]
letters = list("abcdef")
partial = [letters[2 + i] for i in range(3)]
windows = [[letters[i + k] for k in range(3)] for i in range(6 - 3 + 1)]
print(partial, windows)

# %% [markdown]
# ## In burnbook

# %% tags=["run-me"]
dataset = InMemDataset(letters)
same(list(PartialDataset(dataset, 2, 5)), partial)
same(list(WindowsDataset(dataset, 3)), windows)
print(PartialDataset(squares, 999_999_990, 2_000_000_000).get(9))

# %% [markdown] tags=["cell:sampler"]
# The last line asked for one item, and only that one was computed: transforms are lazy, so
# training starts at once, no matter how many you have stacked.
#
# | transform | item *i* is |
# |---|---|
# | `SamplerDataset` | a random item, with or without replacement; any number of them |
# | `ShuffledDataset` | each item once, in random order |
# | `PartialDataset` | item start + *i* |
# | `MapperDataset` | the item, transformed |
# | `ComposedDataset` | from several datasets, one after the other |
# | `WindowsDataset` | *n* consecutive items |
# | `SelectionDataset` | the item whose index is the *i*-th of a list |

# %% tags=["run-me"]
shown = {
    "sampler": SamplerDataset(dataset, 9, seed=3),
    "without replacement": SamplerDataset.without_replacement(dataset, 9, 3),
    "shuffled": ShuffledDataset.with_seed(dataset, 42),
    "mapper": MapperDataset(dataset, str.upper),
    "composed": ComposedDataset([dataset, InMemDataset("xy")]),
    "selection": SelectionDataset.from_indices_checked(dataset, [5, 0, 5]),
}
for name, one in shown.items():
    print(f"{name:20}", "".join(one))

# %% [markdown]
# Shuffle before you split: files are often sorted by class. Random choices depend on the
# seed alone, so both parts will be the same tomorrow, and on another machine.

# %% tags=["run-me", "cell:shuffled-snippet"]
shuffled = ShuffledDataset.with_seed(dataset, 42)
cut = len(shuffled) * 8 // 10
train = PartialDataset(shuffled, 0, cut)
test = PartialDataset(shuffled, cut, len(shuffled))
print("".join(train), "".join(test))
print(["".join(part) for part in random_split(dataset, [0.5, 0.5], seed=1)])

# %% [markdown] tags=["cell:in-mem"]
# The sampler makes an epoch as long as you want, for datasets so large that one pass takes
# days, or so small that it takes no time. In every epoch a loader gets a new draw.
# *Streaming* works in the same way: the length says when an epoch ends, and `get(3)` may
# return something else each time.
#
# ## Where items are stored
#
# `InMemDataset` holds a list. A text file with a table becomes typed items:


# %% tags=["run-me", "cell:csv"]
@dataclass
class City:
    name: str
    people: int
    height: float | None


folder.mkdir(parents=True)
table = "name\tpeople\theight\nBern\t134591\t540.5\nUlm\t126790\t\n"
(folder / "cities.tsv").write_text(table)
cities = InMemDataset.from_csv(folder / "cities.tsv", City, delimiter="\t")
list(cities)

# %% [markdown] tags=["cell:sqlite"]
# `SqliteDataset` keeps items in a file and reads only those that are asked for: two
# million rows take no memory. It is the same file that Burn's `SqliteDataset` writes and
# reads.

# %% tags=["run-me", "cell:sampler-snippet"]
storage = SqliteDatasetStorage.from_file(folder / "cities.db")
with storage.writer() as writer:
    for city in cities:
        writer.write("train", city)

stored = SqliteDataset(folder / "cities.db", "train", City)
draws = SamplerDataset(stored, 10_000, seed=0)
print(stored.get(1), len(draws))
print(sorted({city.name for city in draws}))

# %% [markdown]
# A whole graph, or a physical system, is one item, and each step takes all of it. A
# sampler says how many steps an epoch has; the batcher hands out what is already made:

# %% tags=["run-me"]
whole = Tensor.ones([4, 3], Numpy())
sampler = SamplerDataset([whole], 200)
steps = DataLoaderBuilder(lambda items: items[0]).build(sampler)
print(len(steps), all(batch is whole for batch in steps))

# %% [markdown]
# Arrays, tables of pandas, Polars and Arrow, and anything with a length and `[i]`, a
# PyTorch dataset too, go into a loader as they are. A loader that is given no batcher
# stacks the items by itself, and `drop_last` leaves out a batch that is not full:

# %% tags=["run-me"]
pixels, digits = np.random.default_rng(0).random((10, 3)), np.arange(10)
loader = DataLoaderBuilder().batch_size(4).drop_last().build((pixels, digits))
for inputs, targets in loader:
    print(inputs.dims(), targets.into_data().to_list())

# %% [markdown]
# Burn knows Polars alone; here `DataframeDataset(table, City)` makes typed items of any of
# the three. A Hugging Face dataset is one, too; the first use downloads it and stores it
# in SQLite:
#
# ```python
# cities = DataframeDataset(pandas.read_csv("cities.csv"), City)
#
# @dataclass
# class DbPediaItem:
#     title: str
#     content: str
#     label: int
#
# dataset = HuggingfaceDatasetLoader("dbpedia_14").dataset("train", DbPediaItem)
# ```
#
# ## Folders of images
#
# One folder per class, or a list of labels for each image, one or several. Images are read
# when they are asked for.

# %% tags=["run-me", "cell:image-folder"]
root = folder / "images"
for name, brown in (("cat", 180), ("dog", 120)):
    (root / name).mkdir(parents=True)
    for i in range(2):
        picture = Image.new("RGB", (4, 3), (brown, brown // 2, i))
        picture.save(root / name / f"{name}{i}.png")

images = ImageFolderDataset.new_classification(root)
print(images.classes, len(images), images.get(3))

# %% tags=["run-me", "cell:image-labels"]
items = [
    (root / "dog" / "dog1.png", ["animal", "dog"]),
    (root / "cat" / "cat1.png", ["animal", "cat"]),
]
images = ImageFolderDataset.new_multilabel_classification_with_items(
    items, ["animal", "cat", "dog"]
)
print(images.get(1))

# %% [markdown] tags=["cell:pipeline"]
# Ready-made: `MnistDataset`, `FashionMnistDataset`, `Cifar10Dataset`, `AgNewsDataset`,
# `DbPediaDataset`, `SpeechCommandsDataset` and others download their files once, verify
# them, and keep them; a progress line shows how far they are. `burnbook datasets` lists
# them all. `FakeDataset` makes up items, to test a pipeline with.
#
# ## From the file to the model
#
# ```text
#   files ──> raw items ──> items ──> [item, item, …] ──> batch ──> model
#             InMemDataset  Mapper    workers of the      Batcher
#             get(i), len             DataLoader
# ```
#
# Now MNIST from the beginning. Its files have a format of their own, IDX: a type, the
# sizes, the elements. We write such files with the digits that come with the library, as
# the authors of MNIST did with theirs; nothing needs to be downloaded.


# %% tags=["run-me"]
def write_idx(path, array):
    head = struct.pack(">HBB", 0, 8, array.ndim)  # 8: bytes
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(head + sizes + array.tobytes())


for split in ("train", "test"):
    digits = list(getattr(DigitsDataset, split)())
    pixels = np.stack([digit.image for digit in digits]).round()
    labels = np.array([digit.label for digit in digits], dtype=np.uint8)
    write_idx(folder / f"{split}-images", pixels.astype(np.uint8))
    write_idx(folder / f"{split}-labels", labels)

# %% [markdown]
# **Read.** The header describes the rest, as we see by hand; `read_idx` also verifies the
# header, and decompresses gzip.

# %% tags=["run-me", "cell:mnist-read"]
data = (folder / "test-images").read_bytes()
sizes = struct.unpack(">3I", data[4:16])
by_hand = np.frombuffer(data, np.uint8, offset=16).reshape(sizes)
same(by_hand, read_idx(folder / "test-images"))

# %% [markdown]
# **The raw item** is what is stored: bytes, and the digit. **The item** is what one wants
# to work with: rows of floats. A mapper converts one to the other, when the item is
# asked for.


# %% tags=["run-me", "cell:mnist-raw"]
@dataclass
class MnistItemRaw:
    image_bytes: bytes
    label: int


@dataclass
class MnistItem:
    image: np.ndarray
    label: int


# %% tags=["run-me", "cell:mnist-mapper"]
class BytesToImage(Mapper):
    def map(self, item):
        flat = np.frombuffer(item.image_bytes, np.uint8)
        image = flat.reshape(28, 28).astype(np.float32)
        return MnistItem(image, item.label)


# %% [markdown]
# **The dataset** puts them together. Both splits are made in the same way, and `get` is
# forwarded to the mapper.


# %% tags=["run-me", "cell:mnist-dataset"]
class MyMnist(Dataset):
    def __init__(self, split):
        images = read_idx(folder / f"{split}-images")
        labels = read_idx(folder / f"{split}-labels")
        pairs = zip(images, labels.tolist(), strict=True)
        raw = [MnistItemRaw(image.tobytes(), label) for image, label in pairs]
        self.dataset = MapperDataset(InMemDataset(raw), BytesToImage())

    def get(self, index):
        return self.dataset.get(index)

    def __len__(self):
        return len(self.dataset)


# %% tags=["run-me", "cell:mnist-new"]
train, test = MyMnist("train"), MyMnist("test")
print(len(train), len(test))
same(train.get(5).image, DigitsDataset.train().get(5).image.round())

# %% [markdown]
# **The batch.** A batcher makes tensors from a list of items, and a loader lets workers
# prepare batches ahead of the model.


# %% tags=["run-me"]
device = Numpy()


@dataclass
class MnistBatch:
    images: Tensor
    targets: Tensor


class MnistBatcher(Batcher):
    def batch(self, items, device=device):
        images = np.stack([item.image for item in items])
        x = (Tensor.from_numpy(images, device) / 255.0 - 0.1307) / 0.3081
        labels = [item.label for item in items]
        return MnistBatch(x, Tensor[1, Int].from_ints(labels, device))


# %% tags=["run-me"]
def loader(workers):
    builder = DataLoaderBuilder(MnistBatcher()).batch_size(64).shuffle(7)
    return builder.num_workers(workers).build(train)


alone, helped = list(loader(0)), list(loader(3))
print(len(alone), "batches of", alone[0].images.dims())
pairs = zip(alone, helped, strict=True)
print(all(np.array_equal(a.targets, b.targets) for a, b in pairs))

# %% [markdown]
# **Augmentation.** Crops and flips are drawn where batches are made. In there, random
# numbers of burnbook follow from the seed, the epoch and the batch: each epoch draws
# anew, any number of workers draws the same, and a resumed training goes on bit by bit.


# %% tags=["run-me"]
class CropAndFlip(Batcher):
    def batch(self, items, device):
        draws = Tensor.random([len(items), 3], Distribution.Default, Numpy())
        images = []
        for item, (down, right, turn) in zip(
            items, np.asarray(draws), strict=True
        ):
            top, left = int(5 * down), int(5 * right)
            image = np.pad(item.image, 2)[top : top + 28, left : left + 28]
            images.append(image[:, ::-1] if turn < 0.5 else image)
        return Tensor.from_data(np.stack(images), device)


# %% tags=["run-me"]
loader = DataLoaderBuilder(CropAndFlip()).batch_size(8).shuffle(1).build(train)
first, second = next(iter(loader)), next(iter(loader))
loader.set_epoch(1)
same(first, next(iter(loader)))

# %% [markdown]
# The order depends on the seed, not on which worker happens to be faster.
#
# ## See it

# %% tags=["widget"]
first = alone[0]
Images(np.asarray(first.images)[:20], np.asarray(first.targets)[:20])

# %% [markdown]
# `DatasetBrowser` shows any dataset page by page, including your own. See how many items
# each class has, and choose one to see only its items; click an item to enlarge it. With
# the scores of a trained model, `predictions=scores` adds its mistakes and the confusion
# matrix.

# %% tags=["widget"]
browser = DatasetBrowser(test, batcher=MnistBatcher(), page_size=12)
browser.filter(label=3)
browser

# %% [markdown]
# ## Look inside
#
# A transform in full:

# %% tags=["peek"]
peek(MapperDataset)

# %% [markdown]
# ## Where it breaks
#
# A table does not contain what the items need: the error names the line.

# %% tags=["raises-exception"]
(folder / "bad.csv").write_text("name,people,height\nBern,many,540.5\n")
InMemDataset.from_csv(folder / "bad.csv", City)

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 4.11.1: how many windows of 24 hours begin in a year of 365 days
# (one item per hour)?
answer = ...
check("4.11.1", answer)

# %% tags=["solution"]
answer = len(WindowsDataset(InMemDataset(range(365 * 24)), 24))
check("4.11.1", answer)

# %% tags=["exercise"]
# exercise 4.11.2: by how much each number is larger than the one before it,
# as a dataset made of transforms
steps = InMemDataset([3, 5, 4, 9])
answer = ...
check("4.11.2", answer)

# %% tags=["solution"]
answer = MapperDataset(
    WindowsDataset(steps, 2), lambda pair: pair[1] - pair[0]
)
check("4.11.2", answer)

# %% tags=["exercise"]
# exercise 4.11.3: two parts of this dataset, 70 and 30 items, shuffled, with
# no item in both
hundred = InMemDataset(range(100))
answer = ...  # (one, other)
check("4.11.3", answer)

# %% tags=["solution"]
mixed = ShuffledDataset.with_seed(hundred, 42)
answer = PartialDataset(mixed, 0, 70), PartialDataset(mixed, 70, 100)
check("4.11.3", answer)


# %% tags=["exercise"]
# exercise 4.11.4: a mapper from MnistItem to MnistItem that mirrors the image:
# left becomes right
class Mirror(Mapper):
    def map(self, item):
        return ...


answer = ...  # Mirror()
check("4.11.4", answer)


# %% tags=["solution"]
class Mirror(Mapper):
    def map(self, item):
        return MnistItem(item.image[:, ::-1], item.label)


answer = Mirror()
check("4.11.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>What does a transform cost before the first item is asked for?</summary>
#
# Almost nothing: it refers to its source. Shuffling and sampling keep a list of indices.
# </details>
#
# <details><summary>Why a mapper, and not the batcher, for bytes to floats?</summary>
#
# An item is useful on its own: to look at, to store, for another batcher. The batcher
# only combines items, and does what is cheaper for many at once.
# </details>
#
# <details><summary>How does one train on a dataset that never ends?</summary>
#
# Give it a length: after that many items come validation and a checkpoint, then the next
# epoch. `get` may return something new for the same index.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: threads and processes</b></summary>
#
# Rust's workers are threads. Python runs one thread of Python code at a time, but NumPy
# lets the others run while it works on arrays, so threads are right for arrays. If
# mappers are mostly Python, the loader can use processes instead
# (`worker_processes()`); datasets are then sent by pickle, and a `SqliteDataset` opens
# its file again in each process.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A dataset has `get(i)`, which returns `None` past the end, and a length.
# - Transforms are datasets: lazy, composable, and reproducible from their seed.
# - Items are stored in memory, SQLite, dataframes, tables and folders; sources download
#   once.
# - Raw item → mapper → item → workers → batcher → batch.
# - The order of batches does not depend on the number of workers.
#
# **Where this lives.** Everything is in `burnbook/data`. Read
# `burnbook/data/dataset/base.py` first, then `burnbook/data/dataset/transform`. Sources
# from files and the network are in `burnbook/data/dataset/source`, file formats in
# `burnbook/data/formats`. The browser is `widgets/burnbook_widgets/dataset`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `class Squares(Dataset)` | `impl Dataset<usize> for Squares` | the same |
# | `dataset.get(i)`, `len(dataset)` | `dataset.get(i)`, `dataset.len()` | `get` gives a `Result` |
# | `SamplerDataset(dataset, 10_000)` | `SamplerDataset::new(dataset, 10000)` | options in place of the size |
# | `ShuffledDataset.with_seed(dataset, 42)` | `ShuffledDataset::with_seed(dataset, 42)` | the same |
# | `SelectionDataset`, `random_split` | – | the same |
# | `InMemDataset.from_csv(path, City, delimiter="\t")` | `InMemDataset::from_csv(path, rdr.delimiter(b'\t'))` | the same |
# | `SqliteDataset(file, "train", City)` | `SqliteDataset::from_db_file(file, "train")` | the same |
# | `HuggingfaceDatasetLoader("dbpedia_14").dataset("train", …)` | `HuggingfaceDatasetLoader::new("dbpedia_14").dataset("train")` | the same |
# | `ImageFolderDataset.new_classification(root)` | `ImageFolderDataset::new_classification(root)` | the same |
#
# Next: [5 · Custom training loop](05_custom_training_loop.ipynb)
