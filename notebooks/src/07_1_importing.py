# %% [markdown] tags=["goals"]
# # 7.1 · Importing models
#
# After this chapter you can
#
# - say what files of other frameworks contain: weights, a computation, or a program;
# - choose the way that fits the file that you have;
# - verify that an imported model computes what the original computes.
#
# About 15 minutes. You should have read [chapter 4.10](04_10_record.ipynb) and
# [chapter 6](06_saving_and_loading.ipynb).

# %% tags=["setup"]
import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np

import burnbook
from burnbook.cli import main as burnbook_command
from burnbook.exporters import to_pytorch
from burnbook.importers import (
    PyTorchFileRecorder,
    PyTorchToBurnAdapter,
    SafetensorsStore,
)
from burnbook.importers.onnx import load
from burnbook.importers.torch_layers import ROWS
from burnbook.nn import Linear, LinearConfig
from burnbook.prelude import *
from burnbook.record import FullPrecisionSettings, HalfPrecisionSettings
from burnbook.tensor import check_closeness
from burnbook_widgets import ClosenessView
from burnbook_widgets.learn import check, peek, same

burnbook.seed(0)
folder = Path("artifacts/importing")
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)

# %% [markdown]
# ## Try it
#
# Somebody has a network in PyTorch and sends us `net.pt`, which contains its weights. (Our
# exporter writes what `torch.save(model.state_dict(), "net.pt")` would write, so that
# nothing has to be installed.)


# %% tags=["run-me"]
class Net(Module):
    hidden: Linear
    output: Linear

    def forward(self, x):
        return self.output.forward(self.hidden.forward(x).tanh())


def init(device):
    hidden = LinearConfig(4, 8).init(device)
    return Net(hidden, LinearConfig(8, 3).init(device))


# %% tags=["run-me"]
device = Numpy()
theirs = init(device)
path = to_pytorch(theirs, folder / "net.pt")

# %% [markdown]
# A model with the same parts under the same names, a recorder for PyTorch's files, and
# the weights are here:

# %% tags=["run-me"]
recorder = PyTorchFileRecorder(FullPrecisionSettings)
mine = init(device).load_record(recorder.load(path, device))
x = Tensor[2].from_floats([[1, 2, 3, 4], [0, -1, 0, 1]], device)
same(mine.forward(x), theirs.forward(x))

# %% [markdown] tags=["cell:introduction"]
# ## What can be imported
#
# | file | from | contains | you write | chapter |
# |---|---|---|---|---|
# | `.onnx` | PyTorch, TensorFlow, Keras, scikit-learn … | the computation and the weights | nothing | [7.2](07_2_onnx.ipynb) |
# | `.pt`, `.pth` | PyTorch | names and weights, as a pickle | the module | [7.3](07_3_pytorch.ipynb) |
# | `.safetensors` | Hugging Face, PyTorch, burn-store | names and weights | the module | [7.4](07_4_safetensors.ipynb) |
#
# Burn imports the same kinds: ONNX with its structure, PyTorch's weights into a model that
# you write in Burn. Burn's own records (`.mpk`, `.bin`, `.bpk`) need no import:
# [chapter 4.10](04_10_record.ipynb).

# %% [markdown]
# This is a complete ONNX file, of 61 bytes. It needs no `Net`: what is to be computed,
# here `Relu`, stands in the file.

# %% tags=["run-me"]
onnx_file = (
    b'\x08\x08:5\n\x0c\n\x01x\x12\x01y"\x04Relu\x12\x01g'
    b"Z\x10\n\x01x\x12\x0b\n\t\x08\x01\x12\x05\n\x03\x12\x01n"
    b"b\x10\n\x01y\x12\x0b\n\t\x08\x01\x12\x05\n\x03\x12\x01nB\x02\x10\x11"
)
relu = load(onnx_file, device)
print(np.asarray(relu.forward(Tensor[1].from_floats([-1, 2], device))))

# %% [markdown]
# ## By hand
#
# To import weights is to answer two questions: what is the name of each array there, and
# how is it laid out? PyTorch stores the weight of a linear layer as `[output, input]`,
# Burn as `[input, output]`: $y = x W^\top + b$ there, $y = x W + b$ here. A safetensors
# file is simple enough to be read by hand: the length of a header, the header, the bytes.

# %% tags=["run-me"]
safe = to_pytorch(theirs, folder / "net.safetensors")
data = safe.read_bytes()
start = 8 + int.from_bytes(data[:8], "little")
arrays = {}
for name, about in json.loads(data[8:start]).items():
    if name != "__metadata__":
        first, last = (start + place for place in about["data_offsets"])
        flat = np.frombuffer(data[first:last], "<f4")
        arrays[name] = flat.reshape(about["shape"])
        print(f"{name:15}{arrays[name].shape}")

# %% tags=["run-me"]
rows = np.asarray(x)
hidden = np.tanh(rows @ arrays["hidden.weight"].T + arrays["hidden.bias"])
by_hand = hidden @ arrays["output.weight"].T + arrays["output.bias"]
print(by_hand.shape)

# %% [markdown]
# ## In burnbook
#
# A *store* finds the names, an *adapter* transposes the weights. The result says which
# parameters were found, missing or left over.

# %% tags=["run-me"]
store = SafetensorsStore.from_file(safe)
store = store.with_from_adapter(PyTorchToBurnAdapter())
loaded, result = init(device).load_from(store)
print(result)
same(loaded.forward(x), by_hand)
same(loaded.hidden.weight.val(), arrays["hidden.weight"].T)

# %% [markdown]
# ## What is in the file?
#
# Ask before you write a line. Each of these commands reads the file and runs nothing of
# it:
#
# ```sh
# burnbook inspect FILE             Burn's records, .safetensors, .pt: names, shapes, types
# burnbook import-pytorch FILE      the same for .pt, and what is unusual in it
# burnbook import-onnx FILE         inputs, outputs, operators, and what is not known
# ```

# %% tags=["run-me"]
assert burnbook_command(["import-pytorch", str(path)]) == 0

# %% [markdown]
# Without any program: every kind of file begins in its own way, whatever its name is.

# %% tags=["run-me"]
print("pytorch    ", path.read_bytes()[:10])
print("safetensors", safe.read_bytes()[:10])
print("onnx       ", onnx_file[:10])

# %% [markdown]
# ## Which way?
#
# - **You only want predictions**, and there is an `.onnx`: import it, it runs at once.
#   From a framework without a row in the table, export to ONNX there.
# - **You want to work on the model**: write it as a module, and load the weights from
#   `.safetensors` or `.pt`. You get your own names, a `Config`, and code to change.
# - **Something in between**: `ModelGen` writes an ONNX graph as readable source, which you
#   then own.
# - **Both kinds of weights are offered**: take `.safetensors`. It cannot contain code, and
#   one part can be read without the others.

# %% [markdown]
# ## Verify it
#
# Weights that come into a wrong place, or are not transposed, give no error if the shapes
# fit. Here is a square layer, read without the adapter: nothing is missing, and the
# outputs are wrong. So keep an input and its output from the original program, and
# compare.

# %% tags=["run-me"]
square = LinearConfig(4, 4).init(device)
store = SafetensorsStore.from_file(
    to_pytorch(square, folder / "square.safetensors")
)
adapted = store.with_from_adapter(PyTorchToBurnAdapter())
for each in (store, adapted):
    copy, result = LinearConfig(4, 4).init(device).load_from(each)
    report = check_closeness(copy.forward(x), square.forward(x))
    print(result.is_success(), report.level(1e-4).verdict)

# %% [markdown]
# ## See it
#
# How much does half precision cost? The same file, read with 16 bits, against the
# original. Choose a parameter to see how close its elements are.

# %% tags=["widget"]
half = PyTorchFileRecorder(HalfPrecisionSettings).load(path, device)
rounded = init(device).load_record(half)
ClosenessView(theirs, rounded)

# %% [markdown]
# ## Look inside
#
# What PyTorch calls the parameters of a layer, and which of them are transposed, stands
# in one table. Reading and writing use the same rows. Those of a linear layer:

# %% tags=["peek"]
peek(next(rule for kind, rule in ROWS if kind is Linear))

# %% [markdown]
# ## Where it breaks
#
# A `.pt` file is a pickle, and a pickle is a program: reading it with Python's `pickle`
# runs it. This one would execute a command. Here nothing of it is executed; it is refused
# and the function that it wanted is named.


# %% tags=["raises-exception"]
class Harmful:
    def __reduce__(self):
        return os.system, ("echo this could be any command",)


with zipfile.ZipFile(folder / "gift.pt", "w") as archive:
    state = {"weight": Harmful()}
    archive.writestr("archive/data.pkl", pickle.dumps(state, protocol=2))
    archive.writestr("archive/version", "3\n")
recorder.load(folder / "gift.pt", device)

# %% [markdown]
# The other mistake that everybody makes: a module with other names. The error says which
# parameters find nothing in the file, and how to rename.


# %% tags=["raises-exception"]
class Other(Module):
    hidden: Linear
    head: Linear


other = Other(LinearConfig(4, 8).init(device), LinearConfig(8, 3).init(device))
other.load_record(recorder.load(path, device))

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 7.1.1: the way for somebody who has a classifier as .onnx and wants
# to read it, change it and train it, without writing it again:
# "load", "ModelGen", "PytorchStore" or "SafetensorsStore"
answer = ...
check("7.1.1", answer)

# %% tags=["solution"]
answer = "ModelGen"  # load would run it; the source is what one can change
check("7.1.1", answer)


# %% tags=["exercise"]
# exercise 7.1.2: the kind of a file, by its first bytes: "pytorch" (a zip
# archive), "safetensors" (eight bytes, then JSON), "onnx", or None
def kind_of(data):
    return ...


answer = ...  # kind_of
check("7.1.2", answer)


# %% tags=["solution"]
def kind_of(data):
    if data[:2] == b"PK":
        return "pytorch"
    if data[8:9] == b"{":
        return "safetensors"
    return "onnx" if data[:1] == b"\x08" else None


answer = kind_of
check("7.1.2", answer)


# %% tags=["exercise"]
# exercise 7.1.3: of PyTorch's arrays of linear layers, by name ("a.weight"),
# Burn's: the same names, the weights transposed
def to_burn(arrays):
    return ...


answer = ...  # to_burn
check("7.1.3", answer)


# %% tags=["solution"]
def to_burn(arrays):
    return {
        name: array.T if name.endswith(".weight") else array
        for name, array in arrays.items()
    }


answer = to_burn
check("7.1.3", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>You have only <code>model.pt</code>. What else do you need?</summary>
#
# The computation: the paper or the source of the model, to write it as a module. The file
# contains names and weights only.
# </details>
#
# <details><summary>A square weight was not transposed. Which error do you get?</summary>
#
# None: the shapes fit, and the outputs are wrong. That is why one compares outputs.
# </details>
#
# <details><summary>Why is a safetensors file safer than a pickle?</summary>
#
# It contains numbers and names, and no instructions that the reader would execute.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: features and extras</b></summary>
#
# In Rust, `burn-import` is a crate of its own, and its features `onnx` and `pytorch` choose
# what is compiled. In Python the code for all files is in `burnbook`; an *extra* adds the
# packages that a part of it needs: `pip install "burnbook[onnx]"` brings `onnx`. They are
# imported when they are first used, so nobody pays for what they do not use. PyTorch
# itself is never needed.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - ONNX files contain the computation and the weights; `.pt` and `.safetensors` files
#   contain names and weights.
# - To import weights: the same names, and weights of linear layers transposed.
# - `burnbook inspect`, `import-pytorch` and `import-onnx` say what is in a file.
# - Nothing in a file is executed.
# - Compare outputs with those of the original.
#
# **Where this lives.** `burnbook/importers`; the commands in `burnbook/cli/importing.py`.
# Read `burnbook/importers/torch_layers.py` first: the table of names and layouts.
#
# **The same in Burn**
#
# | here | Burn 0.15 | newest |
# |---|---|---|
# | `PyTorchFileRecorder(FullPrecisionSettings).load(path, device)` | `PyTorchFileRecorder::<FullPrecisionSettings>::default().load(path, &device)?` | – |
# | `PytorchStore.from_file(path)` | – | `PytorchStore::from_file(path)` (burn-store) |
# | `SafetensorsStore.from_file(path)` | – | `SafetensorsStore::from_file(path)` (burn-store) |
# | `model.load_from(store)` | – | `model.load_from(&mut store)?` |
# | `PyTorchToBurnAdapter()` | – | `PyTorchToBurnAdapter` |
# | `ModelGen` | `ModelGen` (burn-import) | `ModelGen` (burn-onnx) |
#
# Next: [7.2 · Importing ONNX models](07_2_onnx.ipynb)
