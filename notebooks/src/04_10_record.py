# %% [markdown] tags=["goals"]
# # 4.10 · Record
#
# After this chapter you can
#
# - save what a model has learned, in every format and precision of Burn;
# - say what the bytes of a file mean, and read one without the library;
# - open files of any version of Burn, and load what fits into a model that has changed.
#
# About 25 minutes. You should have read [chapter 4.4](04_04_module.ipynb) and
# [chapter 4.9](04_09_config.ipynb).

# %% tags=["setup", "rust:setup"]
import gzip
import json
import shutil
from pathlib import Path

import msgpack
import numpy as np

import burnbook
from burnbook import nn, optim, record
from burnbook.backend import Autodiff
from burnbook.backend import Numpy
from burnbook.cli import main as burnbook_command
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import Module, Param, ParamId
from burnbook.optim import GradientsParams
from burnbook.record import (
    FullPrecisionSettings,
    HalfPrecisionSettings,
    NamedMpkFileRecorder,
)
from burnbook.tensor import Tensor
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Bars

burnbook.seed(0)
folder = Path("artifacts/record")
shutil.rmtree(folder, ignore_errors=True)

# %% [markdown]
# ## Try it
#
# A layer with numbers that are easy to recognize, and with fixed ids. Its record is
# written to a file, and read back.

# %% tags=["run-me", "rust:save"]
device = Numpy()
weight = Tensor[2].from_floats([[1, 2, 3], [4, 5, 6]], device)
bias = Tensor[1].from_floats([0.5, -1.5, 1 / 3], device)
layer = nn.Linear(
    weight=Param.initialized(ParamId(1), weight),
    bias=Param.initialized(ParamId(2), bias),
)
recorder = NamedMpkFileRecorder(FullPrecisionSettings)
path = recorder.record(layer.into_record(), folder / "layer")
print(path.name, path.stat().st_size, "bytes")

# %% tags=["run-me", "rust:load"]
fresh = nn.LinearConfig(2, 3).init(device)
loaded = fresh.load_record(recorder.load(folder / "layer", device))
same(loaded.weight.val(), weight)
print(loaded.weight.id == layer.weight.id)

# %% [markdown]
# A **record** holds the state of an object: parameters with their ids, the state of an
# optimizer, the step of a schedule. It does not depend on a device or a file format. A
# **recorder** writes it: it has a format, and a precision.
#
# ## By hand
#
# MessagePack is like JSON, in bytes. A few lines of Python can read Burn's `.mpk` files;
# this is the whole format, as far as they use it:

# %% tags=["run-me"]
content = msgpack.unpackb(path.read_bytes())
for name, text in content["metadata"].items():
    print(f"{name:9}{text[-49:]}")
stored = content["item"]["weight"]
print(stored["id"], stored["param"]["dtype"], stored["param"]["shape"])
numbers = np.frombuffer(stored["param"]["bytes"], "<f4")
by_hand = numbers.reshape(stored["param"]["shape"])

# %% [markdown]
# ## In burnbook

# %% tags=["run-me"]
same(by_hand, loaded.weight.val())
print(layer.into_record()["weight"])
print(record.describe(path))

# %% [markdown] tags=["cell:default-file"]
# A record consists of plain Python objects: dicts, lists, numbers, strings, `None`, and
# `ParamRecord` or `TensorData` at the leaves. What comes from the config (sizes,
# strides, probabilities) is `None` in it.
#
# ## Every recorder
#
# | recorder | file | compressed | for |
# |---|---|---|---|
# | `NamedMpkFileRecorder`, `DefaultFileRecorder` | `.mpk` | – | everything; the default |
# | `NamedMpkGzFileRecorder` | `.mpk.gz` | gzip | long-term storage |
# | `BinFileRecorder` | `.bin` | – | small and fast, for one version of one model |
# | `BinGzFileRecorder` | `.bin.gz` | gzip | the smallest |
# | `JsonGzFileRecorder` | `.json.gz` | gzip | other programs |
# | `PrettyJsonFileRecorder` | `.json` | – | reading by eye |
# | `BinBytesRecorder`, `NamedMpkBytesRecorder` | bytes in memory | – | [without files](06_saving_and_loading.ipynb) |
# | `BurnpackRecorder` | `.bpk` | – | Burn since 0.19 |
# | `SafetensorsRecorder` | `.safetensors` | – | Hugging Face, burn-store |

# %% tags=["run-me", "rust:recorders"]
recorders = [
    record.NamedMpkFileRecorder,
    record.NamedMpkGzFileRecorder,
    record.BinFileRecorder,
    record.BinGzFileRecorder,
    record.JsonGzFileRecorder,
    record.PrettyJsonFileRecorder,
    record.BurnpackRecorder,
    record.SafetensorsRecorder,
]
for kind in recorders:
    one = kind(FullPrecisionSettings)
    file = one.record(layer.into_record(), folder / "a")
    again = fresh.load_file(file, one, device)
    print(f"{file.name:15}", np.array_equal(again.weight.val(), weight))

# %% [markdown] tags=["cell:double"]
# Common settings have names of their own: `DefaultRecorder` (named MessagePack, full),
# `CompactRecorder` (the same with half precision, for checkpoints),
# `SensitiveCompactRecorder` (bincode, gzip, half), `DebugRecordSettings` (indented JSON).
#
# ## Three precisions
#
# The precision of a file is independent of the precision that the model trains with.
#
# | settings | floats | integers |
# |---|---|---|
# | `DoublePrecisionSettings` | f64 | i64 |
# | `FullPrecisionSettings` | f32 | i32 |
# | `HalfPrecisionSettings` | f16: three digits, at most 65,504 | i16 |

# %% tags=["run-me", "rust:precision"]
for settings in (
    record.DoublePrecisionSettings,
    record.FullPrecisionSettings,
    record.HalfPrecisionSettings,
):
    one = NamedMpkFileRecorder(settings)
    size = one.record(layer.into_record(), folder / "b").stat().st_size
    third = one.load(folder / "b")["bias"].param.to_list()[2]
    print(f"{settings.float}  {size} bytes  1/3 is {third:.8f}")

# %% [markdown]
# Loading converts twice, to the recorder's precision and then to the device's. So a file
# of 32 bits that is loaded with half precision is rounded to 16 bits, even if the device
# has 64:

# %% tags=["run-me"]
wide, half = Numpy(float="f64"), NamedMpkFileRecorder(HalfPrecisionSettings)
for one in (recorder, half):
    third = one.load(folder / "layer", wide)["bias"].param
    print(third.dtype, f"{third.to_list()[2]:.8f}")

# %% [markdown]
# ## See it
#
# The network of chapter 3, with 64 hidden neurons, in kilobytes. Random weights hardly
# compress; names and ids do. JSON writes every byte of a tensor as a number.

# %% tags=["widget"]
model = ModelConfig(10, 64).init(device)
sizes = {}
for kind in recorders:
    file = kind().record(model.into_record(), folder / "c")
    sizes[file.name[1:]] = file.stat().st_size / 1000
compact = record.CompactRecorder().record(model.into_record(), folder / "d")
sizes["compact .mpk"] = compact.stat().st_size / 1000
Bars(sizes, "The same model in kB")

# %% [markdown]
# ## What the bytes look like
#
# Bincode has no names at all. A number gives the length of the next string or list, and
# only the module knows what it means. This is all of our layer:

# %% tags=["run-me", "rust:binary"]
binary = (folder / "a.bin").read_bytes()
print(len(binary), "bytes, the metadata:", binary[:8])
item = binary[130:]
print(item[:14], "the id, 13 letters")
print(item[14:15].hex(), "bytes follow:", np.frombuffer(item[15:39], "<f4"))
print(item[39:43].hex(" "), "rank 2, the sizes 2 and 3, type 1: F32")
print(item[43:44].hex(), "yes, there is a bias")

# %% [markdown]
# So a `.bin` file can only be read into its module. The others can be read without it.
# JSON, with indentation:

# %% tags=["run-me"]
print(record.BinFileRecorder().load(folder / "a"))
tree = json.loads((folder / "a.json").read_text())
print(json.dumps(tree["item"]["bias"])[:79], "…")

# %% [markdown]
# Safetensors begins with a JSON header of names, types and offsets, burnpack with the
# same as CBOR; after it come only the elements.

# %% tags=["run-me"]
data = (folder / "a.safetensors").read_bytes()
length = int.from_bytes(data[:8], "little")
for name, about in json.loads(data[8 : 8 + length]).items():
    print(f"{name:7}", *about.values())
print((folder / "a.bpk").read_bytes()[:4])

# %% [markdown] tags=["cell:safetensors-note"]
# ## Any state
#
# Safetensors holds only tensors, and that is why Burn started with other formats: an
# optimizer has counts, a schedule has a step, and you may have anything. Whatever has
# `into_record`, and any tree or dataclass, can be recorded.

# %% tags=["run-me", "rust:optimizer"]
trained = layer.train()
loss = trained.forward(Tensor[2].ones([1, 2], Autodiff(device))).sum()
grads = GradientsParams.from_grads(loss.backward(), trained)
adam = optim.AdamConfig().init()
trained = adam.step(0.1, trained, grads)

state = {"optimizer": adam, "epoch": 3, "best": 0.25, "names": ["cat", "dog"]}
recorder.record(state, folder / "state")
print(record.describe(folder / "state.mpk"))

# %% tags=["run-me", "rust:resume"]
back = recorder.load(folder / "state", device)
resumed = optim.AdamConfig().init().load_record(back["optimizer"])
print(back["epoch"], back["names"], resumed)

# %% [markdown]
# ## What Rust wrote
#
# The layout of a tensor changed with Burn 0.14, ids changed twice, element types were
# added, layers got fields. All of these can be read; here is a file as Burn 0.13 wrote it.
# For writing, name the release, 0.15 to 0.21; `BurnpackRecorder` is for later ones.


# %% tags=["run-me"]
def old(numbers, shape):
    param = {"value": numbers, "shape": shape}
    return {"id": "6f0f1bd6-5b3b-4a4c-9d0a-27b12b2d5f11", "param": param}


item = {"weight": old([0.0] * 6, [2, 3]), "bias": old([1.5, 2.5, 3.5], [3])}
metadata = content["metadata"] | {"version": "0.13.2"}
data = msgpack.packb({"metadata": metadata, "item": item, "_b": []})

tree = record.NamedMpkBytesRecorder().load(data, device)
print(np.asarray(fresh.load_record(tree).bias.val()))
print(NamedMpkFileRecorder(version="0.18.0").metadata.version)

# %% [markdown]
# On the command line `burnbook inspect` says what is in a file, whoever wrote it:

# %% tags=["run-me"]
assert burnbook_command(["inspect", str(folder / "a.bpk")]) == 0

# %% [markdown]
# ## A model that changed
#
# You trained ten classes and want twenty: the body fits, the head does not. `load_record`
# loads all or nothing. `load_partial` loads what fits and reports the rest.


# %% tags=["run-me"]
class Classifier(Module):
    body: nn.Linear
    head: nn.Linear
    gain: Param | None


def classifier(classes, gain=None):
    body = nn.LinearConfig(4, 8).init(device)
    head = nn.LinearConfig(8, classes).init(device)
    return Classifier(body, head, gain)


# %% tags=["run-me"]
ten = classifier(10, Param.from_tensor(Tensor[1].ones([1], device)))
twenty, report = classifier(20).load_partial(ten.into_record())
print(report)
same(twenty.body.weight.val(), ten.body.weight.val())

# %% [markdown]
# The record is a tree, so you can also change it before loading: rename a part, remove
# one, add another.

# %% tags=["run-me"]
tree = ten.into_record()
tree["head"] = classifier(20).into_record()["head"]
del tree["gain"]
_, report = classifier(20).load_partial(tree)
print(report.complete, repr(report))

# %% [markdown]
# ## Weights from PyTorch
#
# There, `safetensors.torch.save_file(model.state_dict(), path)`; here, a recorder with
# `layout="pytorch"`. It turns the weights of Linear and renames those of norms when a
# module loads them. Where the names of parts differ, rename them in the tree: here
# PyTorch's `Sequential` is called `net`, and its parts are numbers.


# %% tags=["run-me"]
class Body(Module):
    body: nn.Linear


# %% tags=["run-me"]
rows = np.arange(12.0, dtype=np.float32).reshape(3, 4)  # [out, in]
first = {"weight": rows, "bias": np.zeros(3, np.float32)}
as_torch = record.SafetensorsRecorder(metadata={"format": "pt"})
file = as_torch.record({"net": {"0": first}}, folder / "theirs")

tree = record.SafetensorsRecorder(layout="pytorch").load(file)
tree["body"] = tree.pop("net").pop("0")  # net.0 is our body
small = Body(nn.LinearConfig(4, 3).init(device)).load_record(tree)
same(small.body.weight.val(), rows.T)

# %% [markdown]
# ## Damage
#
# Gzip has a checksum, so a changed byte in a compressed file is noticed. In the others a
# changed weight is a weight like any other. Writing is atomic: a file appears complete
# or not at all, and after a crash the old file is still there.

# %% tags=["run-me"]
for name, kind in (
    ("a.mpk", NamedMpkFileRecorder),
    ("a.mpk.gz", record.NamedMpkGzFileRecorder),
):
    damaged = bytearray((folder / name).read_bytes())
    damaged[-30] ^= 0x40
    (folder / f"bad-{name}").write_bytes(damaged)
    try:
        kind().load(folder / f"bad-{name}")
        print(name, "was read as if nothing had happened")
    except record.RecordError as error:
        print(name, "noticed:", error.what)

# %% [markdown] tags=["cell:which"]
# ## Which one?
#
# - For speed, a recorder without gzip: bincode is the smallest of these; named
#   MessagePack can still be read when the model has changed a little.
# - For long-term storage, one with gzip, but not bincode: its layout depends on the
#   module and the version, and there are no names to identify its parts.
# - To look at weights, indented JSON.
# - Without files, bincode in memory: [chapter 6](06_saving_and_loading.ipynb).
# - For Burn 0.19 and later, burnpack; for other frameworks, safetensors.
#
# ## Look inside

# %% tags=["peek"]
peek(record.NamedMpkGzFileRecorder)

# %% [markdown]
# ## Where it breaks
#
# A file is read with the kind of recorder that wrote it. Another one says what it found:

# %% tags=["raises-exception"]
(folder / "renamed.mpk").write_bytes(gzip.compress(path.read_bytes()))
recorder.load(folder / "renamed")

# %% [markdown]
# Half precision ends at 65,504. No number silently becomes infinite:

# %% tags=["raises-exception"]
large = layer.into_record() | {"bias": (bias * 1e6).into_data()}
half.record(large, folder / "large")

# %% [markdown]
# And this does not fit into safetensors: Adam's step count is a number, not a tensor.

# %% tags=["raises-exception"]
record.SafetensorsRecorder().record(adam, folder / "adam")

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 4.10.1: how many bytes are the elements of a linear layer
# 784 → 128 with bias, in half precision?
answer = ...
check("4.10.1", answer)

# %% tags=["solution"]
answer = (784 * 128 + 128) * 2
check("4.10.1", answer)

# %% tags=["exercise"]
# exercise 4.10.2: the recorder for a model that is archived for ten years:
# no number may change, and damage must be noticed
answer = ...  # a recorder
check("4.10.2", answer)

# %% tags=["solution"]
answer = record.NamedMpkGzFileRecorder(FullPrecisionSettings)
check("4.10.2", answer)


# %% tags=["exercise"]
# exercise 4.10.3: read a record from `path` with one recorder and write it
# next to that with another; return the path of the new file
def convert(path, source, target):
    return ...


answer = ...  # convert
check("4.10.3", answer)


# %% tags=["solution"]
def convert(path, source, target):
    return target.record(source.load(path), path)


answer = convert
check("4.10.3", answer)


# %% tags=["exercise"]
# exercise 4.10.4: the same record, but its part `old` is called `new`
def rename(tree, old, new):
    return ...


answer = ...  # rename
check("4.10.4", answer)


# %% tags=["solution"]
def rename(tree, old, new):
    return {new if name == old else name: part for name, part in tree.items()}


answer = rename
check("4.10.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Which parts of a layer are not in its record?</summary>
#
# Whatever comes from its config: sizes, strides, probabilities, plain tensors. To load,
# make the module from its config first.
# </details>
#
# <details><summary>Why does a parameter have an id in the file?</summary>
#
# The optimizer keeps its state by that id. When both are loaded, they still match.
# </details>
#
# <details><summary>A file of 32 bits is loaded with <code>CompactRecorder</code>. What happens?</summary>
#
# It can be read, since the element type is stored with every tensor, and every number is
# rounded to 16 bits.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: pickle</b></summary>
#
# Python's own format can hold anything, including code that runs on loading, so a pickle
# from a stranger is a program from a stranger. Records hold numbers and names. Every
# reader here verifies lengths, depths and types, and allocates no more memory than a
# small multiple of the size of the file.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A record is a plain tree; a recorder gives it a format and a precision.
# - The recorder adds its extension: `model` becomes `model.mpk`, and `model.v1`
#   `model.v1.mpk`.
# - Files of Burn from 0.13 on are read; 0.15's layout is written, or another on request.
# - Loading is all or nothing, or partial with a report.
# - Choose gzip to notice damage, bincode to be small, names to last.
#
# **Where this lives.** Everything is in `burnbook/record`. Read
# `burnbook/record/recorder.py` first; then one format, `burnbook/record/mpk.py`, and the
# layout that Burn gives a record, `burnbook/record/layout.py`. Partial loading:
# `burnbook/module/report.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `NamedMpkFileRecorder(FullPrecisionSettings)` | `NamedMpkFileRecorder::<FullPrecisionSettings>::new()` | – (burnpack only) |
# | `recorder.record(record, path)` | `recorder.record(record, path)?` | `record.save(path)?` |
# | `recorder.load(path, device)` | `recorder.load(path, &device)?` | `ModuleRecord::load(path)?` |
# | `model.into_record()` | `model.into_record()` | the same |
# | `model.load_record(record)` | `model.load_record(record)` | the same |
# | `model.load_partial(record)` | – | `record.allow_partial(true)`, `model.try_load_record(record)` |
# | `BurnpackRecorder()` | – | `model.save_file(path)` |
# | `SafetensorsRecorder()` | – | `SafetensorsStore` of burn-store |
#
# Next: [4.11 · Dataset](04_11_dataset.ipynb)
