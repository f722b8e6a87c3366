# %% [markdown] tags=["goals"]
# # 7.3 · PyTorch
#
# After this chapter you can
#
# - load weights that were trained in PyTorch into a module of your own, also where names
#   and structure differ;
# - open a `.pt` file by hand, and say what each byte of it means;
# - write weights that PyTorch loads, with recurrent layers and attention among them.
#
# About 35 minutes. You should have read [chapter 4.10](04_10_record.ipynb) and
# [chapter 6](06_saving_and_loading.ipynb). PyTorch is not needed.

# %% tags=["setup"]
import io
import pickle
import pickletools
import shutil
import zipfile
from pathlib import Path

import numpy as np

import burnbook
from burnbook import nn
from burnbook.cli import main as burnbook_command
from burnbook.data import DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.pytorch_import.model import DIGITS_PT
from burnbook.exporters import to_pytorch, write_state_dict
from burnbook.importers import (
    FloatCastAdapter,
    LoadArgs,
    PyTorchFileRecorder,
    PytorchReader,
    PytorchStore,
    config_from_file,
)
from burnbook.importers.pickle_reader import PickleReader
from burnbook.nn.attention import MhaInput, MultiHeadAttentionConfig
from burnbook.nn.conv import Conv2d, Conv2dConfig
from burnbook.nn.transformer import TransformerEncoderConfig
from burnbook.prelude import *
from burnbook.record import FullPrecisionSettings, NamedMpkFileRecorder
from burnbook.tensor.activation import relu
from burnbook.tensor import TensorData
from burnbook_widgets import FileView
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Bars

burnbook.seed(0)
folder = Path("artifacts/pytorch")
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)

# %% [markdown]
# A `.pt` file has only the weights of a model, by their names; an ONNX file has the
# computation as well. So you write the model once more, as a module of burnbook, and the
# file fills it. (For a larger model Burn's book leads to the tutorial *Transitioning From
# PyTorch to Burn*.)
#
# ## How to export a PyTorch model
#
# A published model comes with its file. Your own you save with `torch.save`. In PyTorch
# you would write this program, and run it once:
#
# ```python
# import torch
# import torch.nn as nn
#
# class Net(nn.Module):
#     def __init__(self):
#         super(Net, self).__init__()
#         self.conv1 = nn.Conv2d(2, 2, (2,2))
#         self.conv2 = nn.Conv2d(2, 2, (2,2), bias=False)
#
#     def forward(self, x):
#         x = self.conv1(x)
#         x = self.conv2(x)
#         return x
#
# if __name__ == "__main__":
#     torch.manual_seed(42)  # To make it reproducible
#     model = Net().to(torch.device("cpu"))
#     model_weights = model.state_dict()
#     torch.save(model_weights, "conv2d.pt")
# ```
#
# Save the `state_dict()`, as here, and not the model: that would be a Python object, which
# only a program with the same classes can load.

# %% [markdown]
# This page has no PyTorch, so `write_state_dict` of burnbook writes the file: names and
# arrays become what `torch.save` would have made of them.


# %% tags=["run-me", "cell:export"]
def values(*shape):
    return TensorData(rng.random(shape, dtype=np.float32) - 0.5)


rng = np.random.default_rng(42)
model_weights = {
    "conv1.weight": values(2, 2, 2, 2),
    "conv1.bias": values(2),
    "conv2.weight": values(2, 2, 2, 2),
}
path = write_state_dict(model_weights, folder / "conv2d.pt")
print(path.name, path.stat().st_size, "bytes")

# %% [markdown]
# ## Try it
#
# The same model here. Its parts have the names that they have in PyTorch.


# %% tags=["run-me", "cell:define"]
class Net(Module):
    conv1: Conv2d
    conv2: Conv2d

    @staticmethod
    def init(device):
        conv = Conv2dConfig([2, 2], [2, 2])
        return Net(
            conv1=conv.init(device),
            conv2=conv.with_bias(False).init(device),
        )

    def forward(self, x):
        return self.conv2.forward(self.conv1.forward(x))


# %% [markdown]
# Loading is as with every [recorder](04_10_record.ipynb): the file gives a record, and
# the model loads it.

# %% tags=["run-me", "cell:load-dynamic"]
device = Numpy()
recorder = PyTorchFileRecorder(FullPrecisionSettings)
record = recorder.load(path, device)
model = Net.init(device).load_record(record)
print(model)
print(model.forward(Tensor[4].ones([1, 2, 4, 4], device)).dims())

# %% [markdown]
# ## By hand
#
# Since version 1.6, PyTorch writes a zip archive, in which nothing is compressed. The
# numbers of each tensor lie in a file of their own, called a storage.

# %% tags=["run-me"]
with zipfile.ZipFile(path) as archive:
    for member in archive.infolist():
        print(f"{member.file_size:4} bytes  {member.filename}")
    pickled = archive.read("archive/data.pkl")
    storage = archive.read("archive/data/0")
    print("byteorder:", archive.read("archive/byteorder").decode())

# %% [markdown]
# `data.pkl` says which tensor is where. It is a pickle: a little program for a machine
# with a stack. `pickletools`, of Python's own library, lists the instructions and runs
# nothing. This is `conv1.weight`:

# %% tags=["run-me"]
steps = [(op.name, arg) for op, arg, at in pickletools.genops(pickled)]
start = steps.index(("BINUNICODE", "conv1.weight"))
for name, arg in steps[start : start + 14]:
    print(f"{name:13}{'' if arg is None else arg}")
sizes = [arg for name, arg in steps[start + 14 : start + 27] if arg]
print("…\nsizes and strides:", sizes)

# %% [markdown]
# In words: call `_rebuild_tensor_v2` with the storage "0", of 16 floats, then the place
# of the first element in it, the sizes `[2, 2, 2, 2]`, and the *strides* `[8, 4, 2, 1]`:
# how many elements further the neighbor along each dim lies. Element $(i, j, k, l)$ is at
#
# $$\text{offset} + 8\,i + 4\,j + 2\,k + l.$$


# %% tags=["run-me"]
def view(flat, offset, shape, strides):
    steps = [stride * flat.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, steps)


flat = np.frombuffer(storage, "<f4")
by_hand = view(flat, 0, [2, 2, 2, 2], [8, 4, 2, 1])
print(by_hand[0, 0])

# %% [markdown]
# ## In burnbook
#
# `PytorchReader` does the same for every tensor of a file. It reads the names at once,
# and the elements of a tensor when you ask for them.

# %% tags=["run-me"]
reader = PytorchReader(path)
for name in sorted(reader):
    print(reader[name])
same(by_hand, reader["conv1.weight"].load())
same(by_hand, model.conv1.weight.val())

# %% [markdown]
# The strides matter. `x.T` in PyTorch copies nothing: it is the same storage with other
# strides, and it is saved like that. Readers that take the bytes in their order load
# such a tensor wrong, and say nothing. Here we change a file by hand, so that `w`, with
# two rows of three, is `w.T`: the sizes are 3 and 2, the strides 1 and 3.

# %% tags=["run-me"]
rows = TensorData([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
source = write_state_dict({"w": rows}, folder / "rows.pt")
with (
    zipfile.ZipFile(source) as old,
    zipfile.ZipFile(folder / "turned.pt", "w") as new,
):
    for name in old.namelist():
        content = old.read(name)
        size, turned = b"(K\x02K\x03t(K\x03K\x01t", b"(K\x03K\x02t(K\x01K\x03t"
        new.writestr(name, content.replace(size, turned))
print(PytorchReader(folder / "turned.pt")["w"].load().to_list())

# %% [markdown]
# ## A file that PyTorch wrote
#
# This program, run in PyTorch 2.13 on the digits of [chapter 3](03_2_data.ipynb), wrote a
# file that comes with burnbook:
#
# ```python
# import torch
# import torch.nn as nn
# import torch.nn.functional as F
#
# class Net(nn.Module):
#     def __init__(self):
#         super().__init__()
#         self.conv1 = nn.Conv2d(1, 4, 3, stride=2)
#         self.conv2 = nn.Conv2d(4, 8, 3, stride=2)
#         self.norm1 = nn.BatchNorm2d(8)
#         self.fc1 = nn.Linear(288, 10)
#
#     def forward(self, x):
#         x = F.relu(self.conv1(x))
#         x = self.norm1(F.relu(self.conv2(x)))
#         return self.fc1(x.flatten(1))
#
# def train(images, labels):
#     torch.manual_seed(1)
#     model = Net()
#     optim = torch.optim.Adam(model.parameters(), 0.01)
#     for _ in range(60):
#         optim.zero_grad()
#         F.cross_entropy(model(images), labels).backward()
#         optim.step()
#     torch.save(model.state_dict(), "digits.pt")
# ```
#
# Its twin has the same names. It reads digits that it has never seen:


# %% tags=["run-me"]
class Digits(Module):
    conv1: Conv2d
    conv2: Conv2d
    norm1: nn.BatchNorm
    fc1: nn.Linear

    def forward(self, images):
        x = relu(self.conv1.forward(images.unsqueeze_dim(1)))
        x = self.norm1.forward(relu(self.conv2.forward(x)))
        return self.fc1.forward(x.flatten(1, 3))


# %% tags=["run-me", "cell:example"]
digits = Digits(
    conv1=Conv2dConfig([1, 4], [3, 3], stride=[2, 2]).init(device),
    conv2=Conv2dConfig([4, 8], [3, 3], stride=[2, 2]).init(device),
    norm1=nn.BatchNormConfig(8).init(device),
    fc1=nn.LinearConfig(288, 10).init(device),
)
digits = digits.load_record(recorder.load(DIGITS_PT, device))
test = list(DigitsDataset.test())
output = digits.forward(MnistBatcher(device).batch(test).images)
guesses = np.asarray(output.argmax(1)).ravel()
labels = [item.label for item in test]
print("image 42: predicted", guesses[42], "expected", labels[42])
print("right on more than 95 of 100:", (guesses == labels).mean() > 0.95)

# %% [markdown]
# Two older formats are read as well: the *legacy* one (pickles one after the other, then
# the storages), and tar archives of before version 0.1.10. `reader.metadata()` says which
# it was.

# %% tags=["run-me"]
print(PytorchReader(DIGITS_PT).metadata())

# %% [markdown]
# ## See it
#
# The tree of names, with shapes and types. Choose a tensor: only then is it read, and its
# statistics and histogram are shown.

# %% tags=["widget"]
FileView(DIGITS_PT)

# %% [markdown]
# `burnbook import-pytorch FILE` lists what a file holds, in the terminal or, as here, from
# Python. Netron, which Burn's book uses for its pictures, shows the same names.

# %% tags=["run-me", "cell:netron"]
assert burnbook_command(["import-pytorch", str(DIGITS_PT)]) == 0

# %% tags=["widget"]
arrays = PytorchReader(DIGITS_PT).arrays
Bars(
    {name: int(np.prod(array.shape)) for name, array in arrays.items()},
    "elements in digits.pt",
)

# %% [markdown]
# ## Convert once, then load
#
# The model above needs the file of PyTorch whenever it starts. The alternative is to
# convert it once. With a module as its third argument, the recorder gives a record in
# Burn's names and layout, and any recorder saves that. A program in Rust can load it, too.

# %% tags=["run-me", "cell:load-converted"]
record = recorder.load(path, device, Net.init(device))
mpk = NamedMpkFileRecorder(FullPrecisionSettings)
print(mpk.record(record, folder / "conv2d").name)


def load_model(device):
    record = mpk.load(folder / "conv2d", device)
    return Net.init(device).load_record(record)


same(load_model(device).conv1.weight.val(), by_hand)

# %% [markdown]
# On the command line: `burnbook import-pytorch conv2d.pt -o conv2d.mpk --module net:make`,
# where `make` is a function in `net.py` that gives the module.
#
# ## Names and layout
#
# Most layers have the parameters of PyTorch's, under the same names. The others are
# adapted while a module loads:
#
# | layer | in PyTorch's file | in the module |
# |---|---|---|
# | `Linear` | `weight [d_output, d_input]` | `weight [d_input, d_output]` |
# | `BatchNorm`, `LayerNorm`, `GroupNorm`, `InstanceNorm`, `RmsNorm` | `weight`, `bias` | `gamma`, `beta` |
# | `PRelu` | `weight` | `alpha` |
# | `Lstm`, `Gru`, `Rnn`, and both ways | `weight_ih_l0`, …: all gates below each other | a `Linear` for each gate |
# | `MultiHeadAttention` | `in_proj_weight`, `out_proj` | `query`, `key`, `value`, `output` |
# | `TransformerEncoder`, `TransformerDecoder` | `self_attn`, `linear1`, `norm1`, … | `mha`, `pwff`, `norm_1`, … |


# %% tags=["run-me"]
class Head(Module):
    norm: nn.BatchNorm
    fc: nn.Linear

    @staticmethod
    def init(device):
        norm = nn.BatchNormConfig(3).init(device)
        return Head(norm=norm, fc=nn.LinearConfig(3, 2).init(device))


file = to_pytorch(Head.init(device), folder / "head.pt")
for array in PytorchReader(file).arrays.values():
    print(array)

# %% [markdown]
# What comes from the config (strides, sizes, probabilities) is never taken from the file.
# A bias that the file lacks becomes `None`.
#
# ## Extract configuration
#
# Some files bring the numbers that their model is made with, in a dict beside the
# weights. `config_from_file` makes a [config](04_09_config.ipynb) from it. (Burn's book
# leaves the floats out, because of an error in a library; here they are read.)


# %% tags=["run-me", "cell:config"]
class NetConfig(Config):
    n_head: int
    n_layer: int
    d_model: int
    some_float: float
    some_int: int
    some_bool: bool
    some_str: str
    some_list_int: list[int]
    some_list_str: list[str]
    some_list_float: list[float]
    some_dict: dict[str, str]


# %% [markdown]
# The file, as `torch.save({"my_model": …, "my_config": {…}}, path)` would write it. After
# extracting the config, save it as JSON, which every program reads:

# %% tags=["run-me"]
values_of = {"n_head": 2, "n_layer": 3, "d_model": 512}
values_of |= {"some_float": 0.1, "some_int": 1, "some_bool": True}
values_of |= {"some_str": "hello", "some_list_int": [1, 2, 3]}
values_of |= {"some_list_str": ["hello", "world"]}
values_of |= {"some_list_float": [0.1, 0.2, 0.3], "some_dict": {"a": "b"}}
both = {"my_model": model_weights, "my_config": values_of}
config_path = write_state_dict(both, folder / "weights_with_config.pt")

config = config_from_file(config_path, "my_config", NetConfig)
print(config.n_layer, config.some_list_float, config.some_dict)
config.save(folder / "my_config.json")

# %% [markdown]
# ## Troubleshooting
#
# ### Adjusting the source model architecture
#
# In PyTorch, somebody has put both convolutions into a module of their own:
#
# ```python
# class ConvModule(nn.Module):
#     def __init__(self):
#         super(ConvModule, self).__init__()
#         self.conv1 = nn.Conv2d(2, 2, (2,2))
#         self.conv2 = nn.Conv2d(2, 2, (2,2), bias=False)
#
#     def forward(self, x):
#         x = self.conv1(x)
#         x = self.conv2(x)
#         return x
#
# class Net(nn.Module):
#     def __init__(self):
#         super(Net, self).__init__()
#         self.conv = ConvModule()
#
#     def forward(self, x):
#         x = self.conv(x)
#         return x
# ```
#
# So the keys begin with `conv.`, and nothing fits. The report names what was meant:

# %% tags=["run-me", "cell:other-structure"]
other = {f"conv.{name}": data for name, data in model_weights.items()}
other_path = write_state_dict(other, folder / "key_remap.pt")
store = PytorchStore.from_file(other_path)
_, result = store.apply_to(Net.init(device))
print(result)

# %% [markdown]
# `LoadArgs` renames keys. A rule is a pattern of Rust's crate `regex`, and what takes the
# place of each match: `$1` is what the first pair of brackets matched. Several rules run
# one after the other, and each sees what the one before made of a key.

# %% tags=["run-me", "cell:remap"]
load_args = LoadArgs(other_path)
# Remove "conv" prefix, e.g. "conv.conv1" -> "conv1"
load_args = load_args.with_key_remap(r"conv\.(.*)", "$1")
record = recorder.load(load_args, device)
model = Net.init(device).load_record(record)
same(model.conv1.weight.val(), by_hand)

# %% [markdown]
# `(.*)` takes the whole rest, so the rule fires once in a key. Without the rest it fires
# wherever it matches, and `conv\.` alone would also cut `my_conv.`; begin a pattern with
# `^` where you mean the beginning. Underscores belong to names of groups: write `${1}_a`,
# since `$1_a` is a group called `1_a`, which is empty.
#
# ### Printing the source model keys and tensor information
#
# If you are unsure about the keys, let `with_debug_print()` show them while they are
# renamed:

# %% tags=["run-me", "cell:debug-print"]
record = recorder.load(load_args.with_debug_print(), device)

# %% [markdown]
# ### Non-contiguous indices in the source model
#
# A `Sequential` in PyTorch counts its activations as parts. They have no weights, so the
# numbers in the file have gaps: `fc.0`, `fc.2`, `fc.4`. A list of ours has only the layers
# that learn. The gaps are closed, and the order is kept:


# %% tags=["run-me", "cell:indices"]
class Stack(Module):
    fc: list[nn.Linear]


gaps = {
    f"fc.{i}.{name}": data
    for i in (0, 2, 4, 10)
    for name, data in (("weight", values(3, 3)), ("bias", values(3)))
}
gaps_path = write_state_dict(gaps, folder / "gaps.pt")
stack = Stack([nn.LinearConfig(3, 3).init(device) for _ in range(4)])
stack = stack.load_record(recorder.load(gaps_path, device))
same(stack.fc[3].weight.val(), gaps["fc.10.weight"].array.T)
print(PytorchStore.from_file(gaps_path).keys()[::2])

# %% [markdown]
# ### Loading the model weights to a partial model
#
# A file may hold more than you need, an encoder and a decoder, say. Define the part that
# you want: names that the module does not have are left alone.


# %% tags=["run-me", "cell:partial"]
class Encoder(Module):
    encoder: nn.Linear


both = {f"{part}.weight": values(2, 3) for part in ("encoder", "decoder")}
both_path = write_state_dict(both, folder / "both.pt")
encoder = Encoder(nn.LinearConfig(3, 2).with_bias(False).init(device))
both_record = recorder.load(both_path, device).allow_unused(True)
encoder = encoder.load_record(both_record)
same(encoder.encoder.weight.val(), both["encoder.weight"].array.T)

# %% [markdown]
# The other way round, a module with more than the file has, is `load_partial` of
# [chapter 4.10](04_10_record.ipynb), or `allow_partial(True)` of the store below.
#
# ### Specifying the top-level key for state_dict
#
# A checkpoint has more than weights: `torch.save({"epoch": 3, "my_state_dict":
# model.state_dict()}, path)`. Name the key, or the paths begin with it. What is no tensor
# stands in `reader.skipped`.

# %% tags=["run-me", "cell:top-level-key"]
checkpoint = {"epoch": 3, "loss": 0.123, "my_state_dict": model_weights}
nested = write_state_dict(checkpoint, folder / "checkpoint.pt")
load_args = LoadArgs(nested).with_top_level_key("my_state_dict")
model = Net.init(device).load_record(recorder.load(load_args, device))
same(model.conv1.weight.val(), by_hand)
print(PytorchReader(nested).skipped)

# %% [markdown]
# ### Models containing enum modules
#
# A field that is one of several classes, an enum in Rust, is a union here. The file does
# not say which of them it has. Burn tries the variants in their order, and takes the first
# that fits; the model that loads must be of that variant, too. Here the model alone
# decides, and a wrong variant is an error. Variants of one type, of which Burn takes the
# first, do not exist in Python: `Conv2d | Conv2d` is `Conv2d`.


# %% tags=["run-me", "cell:enum"]
class DwsConv(Module):
    dconv: Conv2d
    pconv: Conv2d


class Choice(Module):
    conv: DwsConv | Conv2d


dconv = Conv2dConfig([2, 2], [3, 3]).with_groups(2)
pconv = Conv2dConfig([2, 2], [1, 1])
choice = Choice(DwsConv(dconv.init(device), pconv.init(device)))

# %% [markdown]
# Its keys have no name of a variant, neither when they are written nor when they are read:

# %% tags=["run-me", "cell:enum-keys"]
dws_path = to_pytorch(choice, folder / "dws.pt")
args = LoadArgs(dws_path).with_debug_print()
loaded = choice.load_record(recorder.load(args, device))
same(loaded.conv.pconv.weight.val(), choice.conv.pconv.weight.val())

# %% [markdown]
# If you do not know what a file has, ask it before you make the model:

# %% tags=["run-me"]
is_dws = "conv.dconv.weight" in PytorchReader(dws_path)
print("DwsConv" if is_dws else "Conv2d")

# %% [markdown]
# ### Known issues
#
# The reader of Burn 0.15 leaves out tensors of truth values and of signed integers of 8,
# 16 and 32 bits, refuses views that are not contiguous, and misplaces those that begin
# inside their storage. Here all of these load. Complex, quantized and sparse tensors have
# no counterpart: they stand in `reader.skipped`, with what to call before saving.
#
# ## The store of newer Burn
#
# Since 0.19, Burn has stores. They give the model *and* a report of what was applied,
# missing and unused; what does not fit is an error, unless you allow it.

# %% tags=["run-me"]
store = PytorchStore.from_file(other_path).with_key_remapping(r"^conv\.", "")
model, result = Net.init(device).load_from(store)
print(result, repr(result), sep="\n")

# %% [markdown]
# A filter chooses parameters by their path in the module, and the others keep their
# values. Criteria are alternatives: what one of them matches is loaded.

# %% tags=["run-me"]
fresh = Net.init(device)
part, result = fresh.load_from(store.with_regex(r"^conv1\."))
print(result.applied, result.skipped)
same(part.conv2.weight.val(), fresh.conv2.weight.val())

# %% [markdown]
# ## Recurrent layers, attention, transformers
#
# PyTorch keeps the weights of all gates of an LSTM below each other in one matrix: input,
# forget, cell, output. Burn has a `Linear` for each gate, and leaves the taking apart to
# you; here it is a row of a table.

# %% tags=["run-me"]
lstm = nn.LstmConfig(2, 3, bias=True).init(device)
lstm_path = to_pytorch(lstm, folder / "lstm.pt")
for array in PytorchReader(lstm_path).arrays.values():
    print(array)
w = {k: v.load().array for k, v in PytorchReader(lstm_path).arrays.items()}
same(w["weight_ih_l0"][3:6].T, lstm.forget_gate.input_transform.weight.val())

# %% [markdown]
# Is the order right? With the matrices of the file, the formula of PyTorch's documentation
# must give what our `Lstm` gives:
#
# $$(i, f, g, o) = W_{ih} x + b_{ih} + W_{hh} h + b_{hh}, \quad
# c' = \sigma(f)\, c + \sigma(i) \tanh g, \quad h' = \sigma(o) \tanh c'$$


# %% tags=["run-me"]
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


x, h, c = values(4, 2).array, np.zeros(3), np.zeros(3)
for row in x:
    gates = w["weight_ih_l0"] @ row + w["bias_ih_l0"]
    gates = gates + w["weight_hh_l0"] @ h + w["bias_hh_l0"]
    i, f, g, o = gates.reshape(4, 3)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
output, _ = lstm.forward(Tensor[3].from_numpy(x[None], device), None)
same(h, np.asarray(output)[0, -1])

# %% [markdown]
# Attention likewise: `in_proj_weight` is query, key and value below each other.

# %% tags=["run-me"]
mha = MultiHeadAttentionConfig(4, 2).init(device)
file = to_pytorch(mha, folder / "mha.pt")
for array in PytorchReader(file).arrays.values():
    print(array)
again = MultiHeadAttentionConfig(4, 2).init(device)
again, _ = again.load_from(PytorchStore.from_file(file))
x = Tensor[3].from_numpy(values(1, 5, 4).array, device)
same(*(m.forward(MhaInput.self_attn(x)).context for m in (mha, again)))

# %% [markdown]
# A whole encoder: `self_attn`, `linear1`, `linear2`, `norm1` and `norm2` of each layer are
# `mha`, the two layers of `pwff`, and the norms. PyTorch numbers norms in the order in
# which they are used, Burn by what they belong to, so `norm_first` counts.

# %% tags=["run-me"]
encoder = TransformerEncoderConfig(4, 8, 2, 2).init(device)
file = to_pytorch(encoder, folder / "encoder.pt")
names = PytorchReader(file).keys()
print(*(name for name in names if name.startswith("layers.1.")), sep="\n")
fresh = TransformerEncoderConfig(4, 8, 2, 2).init(device)
_, result = fresh.load_from(PytorchStore.from_file(file))
print(repr(result))

# %% [markdown]
# ## Back to PyTorch
#
# `to_pytorch` writes any module; the ending chooses the format. What it wrote is loaded
# there without a rest, and with PyTorch's strictest setting:
#
# ```python
# lstm = nn.LSTM(2, 3, batch_first=True)
# lstm.load_state_dict(torch.load("lstm.pt", weights_only=True))
# ```
#
# An adapter changes numbers on the way, `top_level_key` makes a checkpoint. For a record,
# use `burnbook export-pytorch model.mpk model.pt --module net:make`.

# %% tags=["run-me"]
half = FloatCastAdapter.to("f16")
file = to_pytorch(
    model, folder / "half.pt", adapter=half, top_level_key="model"
)
print(*PytorchReader(file).arrays.values(), sep="\n")

# %% [markdown]
# ## Look inside
#
# The reader of pickles is a loop and a table of instructions. What is not in the table is
# refused, and so is every name that is not on a list.

# %% tags=["peek"]
peek(PickleReader.load)

# %% [markdown]
# ## Where it breaks
#
# A pickle may name any function of Python, and Python's own `pickle.load` calls it. This
# one wants to call `os.system`; it has 37 bytes, and the ending of a file of weights:

# %% tags=["run-me"]
evil = b"\x80\x02cos\nsystem\nX\x10\x00\x00\x00echo I am inside\x85R."
(folder / "weights.pt").write_bytes(evil)
pickletools.dis(evil)

# %% [markdown]
# Burnbook's reader never imports and never calls: it reads the name, and stops there.

# %% tags=["raises-exception"]
recorder.load(folder / "weights.pt", device)

# %% [markdown]
# `torch.save(model)`, without `.state_dict()`, writes an object. To read it, a program
# would have to import its class. It is refused with the name of the class:


# %% tags=["raises-exception"]
class Whole:
    """A model of PyTorch, saved as it is."""


(folder / "whole.pt").write_bytes(pickle.dumps(Whole(), protocol=2))
recorder.load(folder / "whole.pt", device)

# %% [markdown]
# Sizes are compared with the bytes that are there before anything is made. A file that
# claims more elements than it has is refused, however it claims that:

# %% tags=["raises-exception"]
changed = io.BytesIO()
with (
    zipfile.ZipFile(path) as old,
    zipfile.ZipFile(changed, "w") as new,
):
    for name in old.namelist():
        claim = old.read(name).replace(b"cpuK\x10tQ", b"cpuK\xfftQ")
        new.writestr(name, claim)
PytorchReader.from_bytes(changed.getvalue())

# %% [markdown]
# And a shape that does not fit: the store names file and module, and nothing is loaded.

# %% tags=["raises-exception"]
wide = Net(
    conv1=Conv2dConfig([2, 4], [2, 2]).init(device),
    conv2=Conv2dConfig([4, 2], [2, 2]).with_bias(False).init(device),
)
wide.load_from(PytorchStore.from_file(path))

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 7.3.1: the shape that the weight of nn.Linear(784, 128) has in a
# file of PyTorch
answer = ...
check("7.3.1", answer)

# %% tags=["solution"]
answer = [128, 784]
check("7.3.1", answer)

# %% tags=["exercise"]
# exercise 7.3.2: training on several GPUs puts "module." before every key.
# The rule that removes it there, and leaves "sub_module.weight" alone
answer = ...  # (pattern, replacement)
check("7.3.2", answer)

# %% tags=["solution"]
answer = (r"^module\.", "")
check("7.3.2", answer)


# %% tags=["exercise"]
# exercise 7.3.3: the strides of a tensor of these sizes whose elements lie
# row by row, the last dim fastest
def strides_of(sizes):
    return ...


answer = ...  # strides_of
check("7.3.3", answer)


# %% tags=["solution"]
def strides_of(sizes):
    strides = [1]
    for size in sizes[:0:-1]:
        strides.append(strides[-1] * size)
    return strides[::-1][-len(sizes) :] if sizes else []


answer = strides_of
check("7.3.3", answer)


# %% tags=["exercise"]
# exercise 7.3.4: load what a checkpoint has under `key` into the model; what
# the file lacks keeps its values. Return the model, and the missing paths
def load_checkpoint(model, path, key):
    return ...


answer = ...  # load_checkpoint
check("7.3.4", answer)


# %% tags=["solution"]
def load_checkpoint(model, path, key):
    store = PytorchStore.from_file(path).with_top_level_key(key)
    model, result = model.load_from(store.allow_partial(True))
    return model, [path for path, _ in result.missing]


answer = load_checkpoint
check("7.3.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>What of a model is not in its <code>state_dict</code>?</summary>
#
# How it computes: its classes, its `forward`, its strides and sizes. You write the module
# again, and the file fills in the weights.
# </details>
#
# <details><summary>Why do two tensors in a file share one storage?</summary>
#
# They are views of the same elements: slices, transposes, tied weights. Each has its own
# offset, sizes and strides, and the elements are stored once.
# </details>
#
# <details><summary>Why is it safe to open a <code>.pt</code> file from a stranger here, and not with <code>pickle.load</code>?</summary>
#
# The instructions are carried out by a reader that can only make numbers, texts, lists and
# maps. Other names are not looked up, so there is nothing to call.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: weights_only</b></summary>
#
# `torch.load` used to run whatever a file said. Since version 2.6 it has
# `weights_only=True` by default, an allow-list like the one here; what burnbook writes
# is read by it. Files that hold objects need `weights_only=False`: use that only for files
# of your own, and better not at all.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - `PyTorchFileRecorder().load(path, device)` gives a record; `load_record` loads it.
# - `LoadArgs` renames keys, chooses a top-level key, and prints what it does.
# - Weights are turned, joined and renamed by one table, in both directions.
# - Numbers with gaps are closed, extra names are left alone, missing ones are errors.
# - Nothing in a file is ever run; sizes are checked before memory is taken.
#
# **Where this lives.** `burnbook/importers/pytorch.py` has the recorder and the store;
# what all stores share is in `burnbook/importers/store.py`. The formats are in
# `burnbook/importers/torch_formats.py`, the pickle in
# `burnbook/importers/pickle_reader.py`, its names in
# `burnbook/importers/torch_values.py`, the table of layers in
# `burnbook/importers/torch_layers.py`. Writing: `burnbook/exporters`. Commands:
# `burnbook/cli/importing.py`, `burnbook/cli/exporting.py`. The example:
# `burnbook/examples/pytorch_import`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `PyTorchFileRecorder(FullPrecisionSettings)` | `PyTorchFileRecorder::<FullPrecisionSettings>::default()` | `PytorchStore::from_file(path)` |
# | `recorder.load(path, device)` | `recorder.load(path.into(), &device)?` | – |
# | `model.load_record(record)` | `model.load_record(record)` | `model.load_from(&mut store)?` |
# | `LoadArgs(path).with_key_remap(a, b)` | `LoadArgs::new(path.into()).with_key_remap(a, b)` | `store.with_key_remapping(a, b)` |
# | `.with_top_level_key(key)` | `.with_top_level_key(key)` | `store.with_top_level_key(key)` |
# | `.with_debug_print()` | `.with_debug_print()` | `store.keys()` |
# | `config_from_file(path, key, NetConfig)` | `config_from_file::<NetConfig>(path, Some(key))?` | `PytorchReader::load_config` |
# | `to_pytorch(model, "a.safetensors")` | – | `SafetensorsStore`, `BurnToPyTorchAdapter` |
#
# Next: [7.4 · Safetensors](07_4_safetensors.ipynb)
