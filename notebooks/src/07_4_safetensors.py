# %% [markdown] tags=["goals"]
# # 7.4 · Safetensors
#
# After this chapter you can
#
# - write and read a safetensors file by hand, in ten lines each;
# - load weights from Hugging Face into a module, in one file or in many, and give yours
#   to others;
# - open a file of any size in milliseconds, and read only what you need.
#
# About 20 minutes. You should have read [chapter 7.3](07_3_pytorch.ipynb).

# %% tags=["setup"]
import json
import shutil
import time
import tracemalloc
from pathlib import Path

import numpy as np

import burnbook
from burnbook import nn
from burnbook.exporters import to_pytorch
from burnbook.importers import (
    AdapterType,
    BurnToPyTorchAdapter,
    HalfPrecisionAdapter,
    IdentityAdapter,
    PyTorchToBurnAdapter,
    SafetensorsFileRecorder,
    SafetensorsStore,
)
from burnbook.importers.safetensors import LoadArgs
from burnbook.prelude import *
from burnbook.record import FullPrecisionSettings
from burnbook.record.safetensors_files import SafetensorsFile
from burnbook.record.safetensors_format import header_length
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Bars

burnbook.seed(0)
folder = Path("artifacts/safetensors")
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)

# %% [markdown]
# Most weights on Hugging Face are published in this format. It holds tensors and texts,
# and nothing that could run; its reader fits on a page. Burn's book explains why records
# are not in it ([chapter 4.10](04_10_record.ipynb): a record holds more than tensors).
# Burn reads it since 0.18, and writes it since 0.19.
#
# ## Try it
#
# A store is a file; a module saves into it, and loads from it.


# %% tags=["run-me"]
class Classifier(Module):
    body: nn.Linear
    norm: nn.LayerNorm
    head: nn.Linear

    @staticmethod
    def init(device):
        return Classifier(
            body=nn.LinearConfig(4, 8).init(device),
            norm=nn.LayerNormConfig(8).init(device),
            head=nn.LinearConfig(8, 3).init(device),
        )


# %% tags=["run-me"]
device = Numpy()
trained = Classifier.init(device)
path = trained.save_into(SafetensorsStore.from_file(folder / "a.safetensors"))
store = SafetensorsStore.from_file(path)
model, result = Classifier.init(device).load_from(store)
same(model.head.weight.val(), trained.head.weight.val())
print(repr(result), path.stat().st_size, "bytes")

# %% [markdown]
# ## By hand
#
# Eight bytes with the length of a text; the text, which is JSON; then all elements, row
# by row, the low byte first, and no gap between two tensors. `data_offsets` count from
# the end of the text:

# %% tags=["run-me"]
data = path.read_bytes()
length = int.from_bytes(data[:8], "little")
header = json.loads(data[8 : 8 + length])
for name, about in header.items():
    print(f"{name:13}", *about.values())

# %% tags=["run-me"]
about = header["head.weight"]
begin, end = about["data_offsets"]
body = data[8 + length :]
flat = np.frombuffer(body[begin:end], "<f4")
same(flat.reshape(about["shape"]), trained.head.weight.val())

# %% [markdown]
# Writing is the same backwards. Here is a file with two tensors, made of NumPy and JSON
# alone:


# %% tags=["run-me"]
def write(path, arrays):
    kinds = {"float32": "F32", "float16": "F16", "int64": "I64"}
    header, body = {}, b""
    for name, array in arrays.items():
        span = [len(body), len(body) + array.nbytes]
        about = {"dtype": kinds[array.dtype.name], "shape": list(array.shape)}
        header[name] = about | {"data_offsets": span}
        body += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the elements begin at 8, 16, …
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


# %% [markdown]
# ## In burnbook
#
# `SafetensorsFile` gives names and tensors without a module, the store with one:

# %% tags=["run-me"]
rng = np.random.default_rng(0)
by_hand = {
    "weight": rng.random((3, 2), dtype=np.float32),
    "steps": np.array([10, 20]),
}
write(folder / "hand.safetensors", by_hand)
with SafetensorsFile(folder / "hand.safetensors") as file:
    print(file, file.keys())
    same(file["weight"], by_hand["weight"])
print(SafetensorsStore.from_file(folder / "hand.safetensors").keys())

# %% [markdown]
# ## See it
#
# What the bytes of the first file are for. In a small model the names take more than the
# numbers; in a large one the names do not count.

# %% tags=["widget"]
parts = {"length": 8, "names": length}
for name, about in header.items():
    if name != "__metadata__":
        begin, end = about["data_offsets"]
        parts[name] = end - begin
Bars(parts, f"{len(data)} bytes of a.safetensors")

# %% [markdown]
# ## From PyTorch
#
# There, a model is saved and loaded with
#
# ```python
# from safetensors.torch import load_file, save_file
#
# save_file(model.state_dict(), "model.safetensors")
# model.load_state_dict(load_file("model.safetensors"))
# ```
#
# A weight of `[3, 8]` may be that of a `Linear` from 8 to 3 in PyTorch, or from 3 to 8 in
# Burn. Many files say `format: pt`, and are read so; where a file says nothing, you say it,
# with an adapter. Names and layouts are those of [chapter 7.3](07_3_pytorch.ipynb), LSTM
# and attention included.

# %% tags=["run-me"]
theirs = to_pytorch(trained, folder / "theirs.safetensors")
store = SafetensorsStore.from_file(theirs)
print(*store.get_all_snapshots().values(), sep="\n")
store = store.with_from_adapter(PyTorchToBurnAdapter())
model, result = Classifier.init(device).load_from(store)
same(model.head.weight.val(), trained.head.weight.val())

# %% [markdown]
# `to_pytorch` is the short form of a store with an adapter for writing:

# %% tags=["run-me"]
store = SafetensorsStore.from_file(folder / "same.safetensors")
trained.save_into(store.with_to_adapter(BurnToPyTorchAdapter()))
again = SafetensorsFile(folder / "same.safetensors")
same(again["head.weight"], SafetensorsFile(theirs)["head.weight"])
print(again.texts)

# %% [markdown]
# ### The recorder of Burn 0.18 to 0.20
#
# It is used like the one for `.pt` files: a record, then `load_record`. `LoadArgs` of
# `burnbook.importers.safetensors` has rules for names, the debug print, and the adapter:
# PyTorch's by default, or none.

# %% tags=["run-me"]
args = LoadArgs(path).with_adapter_type(AdapterType.NoAdapter)
args = args.with_key_remap("^head", "head").with_debug_print()
recorder = SafetensorsFileRecorder(FullPrecisionSettings)
record = recorder.load(args, device)
model = Classifier.init(device).load_record(record)
same(model.norm.gamma.val(), trained.norm.gamma.val())

# %% [markdown]
# ## What you need, and no more
#
# A file is opened by reading its names. The elements are mapped into memory: the
# operating system reads a page of the file when somebody touches it. To see it, we make
# a file of 400 MB, most of which is a hole that takes no space on the disk.

# %% tags=["run-me"]
big = folder / "big.safetensors"
rows, columns = 100_000, 1024
span = [0, rows * columns * 4]
about = {"dtype": "F32", "shape": [rows, columns], "data_offsets": span}
small = {"dtype": "F32", "shape": [2], "data_offsets": [span[1], span[1] + 8]}
text = json.dumps({"embedding": about, "bias": small}).encode()
with open(big, "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text)
    file.seek(span[1], 1)
    file.write(np.array([1.5, 2.5], "<f4").tobytes())
print(f"{big.stat().st_size:,} bytes")

# %% tags=["run-me"]
tracemalloc.start()
began = time.process_time()
with SafetensorsFile(big) as file:
    print(file.entries["embedding"].shape, file["bias"].to_list())
    print("one row of it:", file["embedding"].array[70_000, :3])
spent = time.process_time() - began
_, peak = tracemalloc.get_traced_memory()
tracemalloc.stop()
print("in less than a tenth of a second of work:", spent < 0.1)
print("with less than a megabyte:", peak < 1_000_000)
big.unlink()

# %% [markdown]
# A store reads what the module takes. A filter takes less still: here the body alone, of
# which the other parameters keep their values.

# %% tags=["run-me"]
store = SafetensorsStore.from_file(path).with_regex(r"^(body|norm)\.")
model, result = Classifier.init(device).load_from(store)
print(repr(result))
print("skipped:", *result.skipped)

# %% [markdown]
# ### Shards
#
# Large models come in several files, with an index beside them that says which tensor is
# in which. Give the store the folder. Here we cut our model in two:

# %% tags=["run-me"]
shards = folder / "shards"
shards.mkdir()
names = {"body": "model-00001-of-00002", "head": "model-00002-of-00002"}
index = {}
for part, name in names.items():
    store = SafetensorsStore.from_file(shards / f"{name}.safetensors")
    pattern = f"^{part}" if part == "head" else "^(body|norm)"
    trained.save_into(store.with_regex(pattern))
    index |= dict.fromkeys(store.keys(), f"{name}.safetensors")
with open(shards / "model.safetensors.index.json", "w") as file:
    json.dump({"weight_map": index}, file)
print(index["head.bias"])

# %% tags=["run-me"]
store = SafetensorsStore.from_file(shards)
model, result = Classifier.init(device).load_from(store)
print(repr(result), sorted(p.name for p in shards.iterdir()))
same(model.head.weight.val(), trained.head.weight.val())

# %% [markdown]
# ## Element types
#
# Each tensor has a type of its own. Floats of 16 bits stay what they are until a module
# with other floats loads them. `bf16` is the upper half of an `f32`; floats of eight bits
# are read as `f32`, since no processor here computes with them. By hand:

# %% tags=["run-me"]
codes = np.array([0x38, 0x40, 0x7E, 0xB8], np.uint8)  # E4M3: 1, 2, 448, -1
text = json.dumps(
    {
        "bf16": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
        "f8": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [4, 8]},
    }
).encode()
upper = (np.array([1.5, -2.0], "<f4").view("<u4") >> 16).astype("<u2")
data = len(text).to_bytes(8, "little") + text + upper.tobytes()
file = SafetensorsFile.from_bytes(data + codes.tobytes())
for name in file:
    print(name, file[name].dtype, file[name].convert("f32").to_list())

# %% [markdown]
# An adapter halves a file. `HalfPrecisionAdapter` leaves `BatchNorm` alone, whose running
# variance may be large; it turns `f16` back into `f32` on loading. A store without a path
# is in memory:

# %% tags=["run-me"]
half = HalfPrecisionAdapter().without_module("LayerNorm")
store = SafetensorsStore.from_bytes(None).with_to_adapter(half)
saved = trained.save_into(store.metadata("license", "MIT"))
store = SafetensorsStore.from_bytes(saved)
print(*store.get_all_snapshots().values(), store.texts(), sep="\n")
model, _ = Classifier.init(device).load_from(store.with_from_adapter(half))
apart = (model.head.weight.val() - trained.head.weight.val()).abs().max()
print("at most a thousandth apart:", apart.into_scalar() < 1e-3)

# %% [markdown]
# ## Rules
#
# Names are remapped as in chapter 7.3, also for saving. What is missing is an error,
# unless `allow_partial(True)`; the result says the rest. Here a file has a `classifier`
# where we have a `head`, and no norm:

# %% tags=["run-me"]
store = SafetensorsStore.from_file(folder / "other.safetensors")
saving = store.with_key_remapping("^head", "classifier")
trained.save_into(saving.with_regex("^(body|head)"))
loading = store.with_key_remapping("^classifier", "head").allow_partial(True)
model, result = Classifier.init(device).load_from(loading)
print(result)

# %% [markdown]
# ## Look inside
#
# The first check of the reader: a file cannot make it take memory by claiming that its
# names are long.

# %% tags=["peek"]
peek(header_length)

# %% [markdown]
# ## Where it breaks
#
# Nothing is overwritten by accident:

# %% tags=["raises-exception"]
trained.save_into(SafetensorsStore.from_file(path))

# %% [markdown]
# The layout of PyTorch, loaded as if it were Burn's. The norm has other names, and the
# shapes of the linear layers are the wrong way round. (A square weight has one shape both
# ways, and would be loaded wrong: only you know where a file comes from.) The error
# says what to try:

# %% tags=["raises-exception"]
as_burns = SafetensorsStore.from_file(theirs).with_from_adapter(
    IdentityAdapter()
)
Classifier.init(device).load_from(as_burns)

# %% [markdown]
# Every byte belongs to exactly one tensor. In this file two claim the same ones; another
# program that trusted the claims could be made to read what it should not:

# %% tags=["raises-exception"]
one = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
text = json.dumps({"a": one, "b": one}).encode()
claims = len(text).to_bytes(8, "little") + text + bytes(8)
SafetensorsFile.from_bytes(claims)

# %% [markdown]
# And a shape of ten thousand times ten thousand, in a file of 99 bytes:

# %% tags=["raises-exception"]
huge = {"dtype": "F32", "shape": [10_000, 10_000], "data_offsets": [0, 8]}
text = json.dumps({"a": huge}).encode()
SafetensorsFile.from_bytes(len(text).to_bytes(8, "little") + text + bytes(8))

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 7.4.1: how many bytes are behind the names, if a file has one
# tensor of type BF16 and shape [100, 20], and one of type I64 and shape [3]?
answer = ...
check("7.4.1", answer)

# %% tags=["solution"]
answer = 100 * 20 * 2 + 3 * 8
check("7.4.1", answer)


# %% tags=["exercise"]
# exercise 7.4.2: the names of the tensors in the bytes of a file, without
# reading any element, sorted
def names_in(data):
    return ...


answer = ...  # names_in
check("7.4.2", answer)


# %% tags=["solution"]
def names_in(data):
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    return sorted(name for name in header if name != "__metadata__")


answer = names_in
check("7.4.2", answer)


# %% tags=["exercise"]
# exercise 7.4.3: write a module for PyTorch as safetensors, with its floats
# of 16 bits; `path` may exist already
def publish(model, path):
    return ...


answer = ...  # publish
check("7.4.3", answer)


# %% tags=["solution"]
def publish(model, path):
    half = BurnToPyTorchAdapter().chain(HalfPrecisionAdapter())
    store = SafetensorsStore.from_file(path).with_to_adapter(half)
    return model.save_into(store.overwrite(True))


answer = publish
check("7.4.3", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why can a safetensors file not run anything when it is opened?</summary>
#
# It has no instructions: the header is JSON with names, types, shapes and places, and the
# rest is numbers.
# </details>
#
# <details><summary>Why does opening a file of 100 GB take no longer than opening one of 100 kB?</summary>
#
# Only the names are read. The elements are mapped, and a page of the file is read when it
# is used.
# </details>
#
# <details><summary>What does a safetensors file not say about its tensors?</summary>
#
# Which layer each belongs to, and so whose layout it is. PyTorch's and Burn's weights of a
# linear layer are each other's transpose.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: memory-mapped files</b></summary>
#
# `np.memmap(path, "<f4", "r", offset, shape)` gives an array whose elements are in a file.
# It looks like any array, but what you do not touch is never read, and several processes
# share what they have read. If the file becomes shorter meanwhile, touching the lost part
# kills the process: the store asks for the size each time.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - Length, JSON, elements: that is the whole format.
# - `model.save_into(store)`; `model, result = model.load_from(store)`.
# - PyTorch's files need `PyTorchToBurnAdapter()`; `to_pytorch` writes them.
# - Only what is used is read, from one file or from many.
# - Every claim of a file is checked before an element is read.
#
# **Where this lives.** The store and the recorder: `burnbook/importers/safetensors.py`.
# The format itself, and files that are opened without being read:
# `burnbook/record/safetensors_format.py`, `burnbook/record/safetensors_files.py`.
# Adapters: `burnbook/importers/adapter.py`.
#
# **The same in Burn**
#
# | here | Burn 0.18 | Burn 0.22 |
# |---|---|---|
# | `SafetensorsFileRecorder(FullPrecisionSettings)` | `SafetensorsFileRecorder::<FullPrecisionSettings>::default()` | – |
# | `LoadArgs(path).with_adapter_type(AdapterType.NoAdapter)` | `LoadArgs::new(path.into()).with_adapter_type(AdapterType::NoAdapter)` | – |
# | `SafetensorsStore.from_file(path)` | – | `SafetensorsStore::from_file(path)` |
# | `.with_from_adapter(PyTorchToBurnAdapter())` | – | `.with_from_adapter(PyTorchToBurnAdapter)` |
# | `model.save_into(store)` | – | `model.save_into(&mut store)?` |
# | `model.load_from(store)` | – | `model.load_from(&mut store)?` |
# | `store.overwrite(True)`, `store.metadata("a", "b")` | – | the same |
#
# Burn 0.15 does not know the format.
#
# Next: [10.7 · Performance](10_7_performance.ipynb)
