# %% [markdown] tags=["goals"]
# # 6 · Saving and loading
#
# After this chapter you can
#
# - save a trained model, and load it in another program, in another precision or on
#   another machine;
# - initialize a model from recorded weights, without drawing random ones first;
# - put a model into a Python file, for places without files.
#
# About 20 minutes. You should have read [chapter 4.10](04_10_record.ipynb).

# %% tags=["setup", "rust:setup"]
import base64
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np

import burnbook
from burnbook.data import DataLoaderBuilder, DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.core.files import atomic_write
from burnbook.nn import Linear, LinearConfig
from burnbook.nn.loss import CrossEntropyLossConfig
from burnbook.optim import AdamConfig, GradientsParams
from burnbook.prelude import *
from burnbook.record import (
    BinBytesRecorder,
    BinFileRecorder,
    BurnpackRecorder,
    CompactRecorder,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    NamedMpkFileRecorder,
    RecordError,
    convert,
    describe,
)
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Images

burnbook.seed(0)
folder = Path("artifacts/saving")
shutil.rmtree(folder, ignore_errors=True)

# %% [markdown]
# ## Try it
#
# A small network for digits, trained for two seconds. We want to keep it.


# %% tags=["run-me", "rust:digits"]
class Digits(Module):
    hidden: Linear
    output: Linear

    def forward(self, images):
        x = self.hidden.forward(images.flatten(1, 2)).tanh()
        return self.output.forward(x)


# %% tags=["run-me", "rust:digits-config"]
class DigitsConfig(Config):
    hidden_size: int = 16

    def init(self, device):
        return Digits(
            hidden=LinearConfig(784, self.hidden_size).init(device),
            output=LinearConfig(self.hidden_size, 10).init(device),
        )


# %% tags=["run-me"]
device = Numpy()
ad = device.autodiff()
loader = DataLoaderBuilder(MnistBatcher(ad)).batch_size(64).shuffle(42)
loader = loader.build(DigitsDataset.train())
model, optim = DigitsConfig().init(ad), AdamConfig().init()
cross_entropy = CrossEntropyLossConfig().init(ad)
for _ in range(10):
    for batch in loader:
        loss = cross_entropy.forward(
            model.forward(batch.images), batch.targets
        )
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = optim.step(5e-3, model, grads)

# %% tags=["run-me"]
test_set = list(DigitsDataset.test())
test = MnistBatcher(device).batch(test_set)


def guesses(model):
    return np.asarray(model.forward(test.images).argmax(1)).ravel()


trained = model.valid()
right = (guesses(trained) == [item.label for item in test_set]).mean()
print("right on more than 9 of 10 digits:", right > 0.9)

# %% tags=["run-me", "cell:save", "rust:save"]
recorder = NamedMpkFileRecorder(FullPrecisionSettings)
model_path = folder / "model"
trained.save_file(model_path, recorder)

# %% [markdown]
# Loading is as short. The model that you load into is not changed: a new one is returned.

# %% tags=["run-me", "cell:load", "rust:load"]
model = DigitsConfig().init(device)
model = model.load_file(model_path, recorder, device)
same(guesses(model), guesses(trained))

# %% [markdown]
# ## By hand
#
# Saving means writing arrays under their names. The difficulty is an interruption: a
# program that is killed while it writes leaves half a file, and the old one is gone. So
# write to another file first, and then rename it, which is a single step.

# %% tags=["run-me"]
arrays = {p: np.asarray(param.val()) for p, param in trained.named_params()}
with open(folder / "unfinished.npz", "wb") as file:
    np.savez(file, **arrays)
    file.flush()
    os.fsync(file.fileno())  # on the disk, not on its way
os.replace(folder / "unfinished.npz", folder / "model.npz")
by_hand = np.load(folder / "model.npz")
print(list(by_hand))

# %% [markdown]
# ## In burnbook
#
# Recorders, configs, checkpoints and downloads are all written in this way. The elements
# are those of NumPy's file; with them are stored the ids, the precision, and which
# program wrote it.

# %% tags=["run-me"]
same(by_hand["hidden.weight"], model.hidden.weight.val())
for name in sorted(os.listdir(folder)):
    print(name)

# %% [markdown]
# You can use `atomic_write`, too. If anything goes wrong inside, the old file is kept:

# %% tags=["run-me"]
note = folder / "note.txt"
note.write_text("the first version")
try:
    with atomic_write(note) as file:
        file.write(b"the sec")
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print(note.read_text(), "|", len(list(folder.glob("note*"))), "file")

# %% [markdown]
# ## See it
#
# What was saved: the weights of the 16 hidden neurons, each as an image. Bright pixels
# increase the neuron's output, dark ones decrease it.

# %% tags=["widget"]
eyes = np.asarray(model.hidden.weight.val()).T.reshape(16, 28, 28)
Images(eyes, columns=8)

# %% [markdown]
# ## File names
#
# The recorder adds its extension, and `save_file` returns the path it wrote. A version
# stays in the name: `model.v2` becomes `model.v2.mpk`. (In Burn it becomes `model.mpk`.)

# %% tags=["run-me"]
for name in ("model", "model.mpk", "model.bin", "model.v2", "model-v2"):
    print(f"{name:10}", recorder.path(name))

# %% [markdown]
# Precisions are converted when loading, formats are not: a file is read with the kind of
# recorder that wrote it. To change the format, load and save; moving to another device
# is automatic.

# %% tags=["run-me"]
model.save_file(folder / "small", CompactRecorder())
small = model.load_file(folder / "small", CompactRecorder(), device)
small.save_file(folder / "small", BurnpackRecorder(HalfPrecisionSettings))
wide = DigitsConfig().init(Numpy(float="f64"))
wide = wide.load_file(folder / "small.bpk", BurnpackRecorder())
print(wide.devices(), (guesses(small) == guesses(trained)).mean() > 0.99)

# %% [markdown]
# To convert files without their model, use `convert`, here or on the command line:
# `burnbook convert model.mpk model.safetensors --precision half`. Only bincode, which
# has no names, needs the module.

# %% tags=["run-me"]
for target in ("shared.safetensors", "shared.json.gz"):
    print(describe(convert(folder / "model.mpk", folder / target)))
fitting = DigitsConfig().init(device)
packed = convert(
    folder / "small.bpk", folder / "packed.bin.gz", module=fitting
)
print(packed.name)

# %% [markdown]
# ## Initialization from recorded weights
#
# A model is made from its config, then it gets its weights. Are random ones drawn first,
# only to be thrown away? No. Parameters are *lazy*: until they are used, they have only
# a shape.

# %% tags=["run-me", "rust:lazy"]
model = DigitsConfig().init(device)
print(model.hidden.weight.is_initialized, model.hidden.weight.shape)
record = recorder.load(model_path, device)
loaded = model.load_record(record)
print(model.hidden.weight.is_initialized)
print(loaded.hidden.weight.is_initialized)

# %% [markdown]
# A new model can be saved like any other; now its weights are drawn. That is how two
# experiments can start from the same weights. To load them, use
# `DigitsConfig().init(device)` followed by `load_record`:

# %% tags=["run-me", "cell:init-save", "rust:init-save"]
start = DigitsConfig().init(device)
start.save_file(folder / "start", recorder)
record = recorder.load(folder / "start", device)
again = DigitsConfig().init(device).load_record(record)
same(start.hidden.weight.val(), again.hidden.weight.val())

# %% [markdown]
# What sizes did the model have? The record does not say how to make it, so keep the config
# beside it. Both together are the model:

# %% tags=["run-me", "rust:open-model"]
DigitsConfig(hidden_size=16).save(folder / "config.json")


def open_model(folder, device):
    config = DigitsConfig.load(folder / "config.json")
    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    return config.init(device).load_file(folder / "model", recorder, device)


same(guesses(open_model(folder, device)), guesses(trained))

# %% [markdown]
# To continue training, load on a device with autodiff, and save the optimizer as well.
# The [learner](03_3_training.ipynb) does all this after every epoch.

# %% tags=["run-me", "rust:resume"]
recorder.record(optim.into_record(), folder / "optim")
model = open_model(folder, ad)
optim = AdamConfig().init().load_record(recorder.load(folder / "optim", ad))
print(model.hidden.weight.is_require_grad, optim)

# %% [markdown]
# ## No storage, no problem
#
# A web page, a small device, a single file to send to a friend: there may be no file to
# load from. Then the model becomes part of the program. Save it as bincode, which is
# small, and write its bytes into a Python file.

# %% tags=["run-me", "cell:bytes-save", "rust:bytes-save"]
half = BinFileRecorder(HalfPrecisionSettings)
model.save_file(folder / "model", half)
model_bytes = (folder / "model.bin").read_bytes()
print(len(model_bytes), "bytes; the elements alone are", 2 * 12_730)

# %% tags=["run-me"]
program = f'''"""A model that recognizes digits, with nothing beside it."""
import base64, zlib

MODEL_BYTES = zlib.decompress(base64.b85decode(
    {base64.b85encode(zlib.compress(model_bytes))!r}
))
'''
(folder / "digits_model.py").write_text(program)
print(*program.splitlines()[:4], sep="\n")

# %% [markdown]
# A program that imports this file has the bytes, and `BinBytesRecorder` reads them: it is
# `BinFileRecorder` without a file. Here is such a program, in another process:

# %% tags=["run-me", "cell:bytes-load"]
user = """
from burnbook.nn import Linear, LinearConfig
from burnbook.prelude import *
from burnbook.record import BinBytesRecorder, HalfPrecisionSettings
from digits_model import MODEL_BYTES

class Digits(Module):
    hidden: Linear
    output: Linear

device = Numpy()
model = Digits(*[LinearConfig(*s).init(device) for s in [(784, 16), (16, 10)]])
record = BinBytesRecorder(HalfPrecisionSettings).load(MODEL_BYTES, device)
print(model.load_record(record))
"""

# %% tags=["run-me", "rust:bytes-load"]
run = [sys.executable, "-c", user]
done = subprocess.run(run, cwd=folder, capture_output=True, text=True)
print(done.stdout or done.stderr)

# %% [markdown]
# A large model is better kept in a data file: Python reads the whole source before the
# first line runs, and keeps the bytes as long as the module is loaded.
#
# ## Look inside

# %% tags=["peek"]
peek(Module.load_file)

# %% [markdown]
# ## Where it breaks
#
# A wrong path: the error lists similar files.

# %% tags=["raises-exception"]
model.load_file(folder / "modle", recorder, device)

# %% [markdown]
# A model of other sizes: nothing is loaded, and all differences are listed.

# %% tags=["raises-exception"]
DigitsConfig(hidden_size=32).init(device).load_file(model_path, recorder)

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 6.1: the name of the file that NamedMpkGzFileRecorder writes for
# the path "runs/model.v2"
answer = ...
check("6.1", answer)

# %% tags=["solution"]
answer = "model.v2.mpk.gz"
check("6.1", answer)


# %% tags=["exercise"]
# exercise 6.2: the model from bytes that BinBytesRecorder made with full
# precision; its config is given
def revive(data, config, device):
    return ...


answer = ...  # revive
check("6.2", answer)


# %% tags=["solution"]
def revive(data, config, device):
    record = BinBytesRecorder(FullPrecisionSettings).load(data, device)
    return config.init(device).load_record(record)


answer = revive
check("6.2", answer)


# %% tags=["exercise"]
# exercise 6.3: write config and model into a folder, with half precision:
# the files config.json and model.mpk
def keep(config, model, folder):
    return ...


answer = ...  # keep
check("6.3", answer)


# %% tags=["solution"]
def keep(config, model, folder):
    config.save(folder / "config.json")
    model.save_file(folder / "model", CompactRecorder())


answer = keep
check("6.3", answer)


# %% tags=["exercise"]
# exercise 6.4: the model with the values of the file, or the model itself if
# there is no such file or it does not fit
def load_or_keep(model, path, recorder):
    return ...


answer = ...  # load_or_keep
check("6.4", answer)


# %% tags=["solution"]
def load_or_keep(model, path, recorder):
    try:
        return model.load_file(path, recorder)
    except RecordError:
        return model


answer = load_or_keep
check("6.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Which two things do you need to restore a model?</summary>
#
# Its config, which makes the module, and its record, which holds the values.
# </details>
#
# <details><summary>Why does <code>init(device).load_record(record)</code> cost nothing extra?</summary>
#
# Parameters are lazy. If they get their values from a record, random ones are never drawn.
# </details>
#
# <details><summary>The power fails while a checkpoint is written. What is on the disk?</summary>
#
# The previous one, complete. The new one gets its name only when all its bytes are
# written.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: include_bytes!</b></summary>
#
# Rust includes a file in the program at compile time. A Python package ships data files
# with its code, and `importlib.resources.files("my_package") / "model.bin"` finds them,
# even inside a zip file. A literal in a module, as above, does not even need that.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - `model.save_file(path, recorder)`; `model = model.load_file(path, recorder, device)`.
# - The recorder adds its extension; precision is converted, the format is not.
# - Config and record together are the model; loading draws no random numbers.
# - Files are written completely or not at all.
# - Without files, the bytes of a bincode record go into the program.
#
# **Where this lives.** Atomic writing: `burnbook/core/files.py`. From format to format:
# `burnbook/record/conversion.py`. On the command line: `burnbook/cli/records.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `model.save_file(path, recorder)` | `model.save_file(path, &recorder)?` | `model.save_file(path)?` |
# | `model.load_file(path, recorder, device)` | `model.load_file(path, &recorder, &device)?` | `model.load_file(path)?` |
# | `recorder.load(path, device)` | `recorder.load(path.into(), &device)?` | `ModuleRecord::load(path)?` |
# | `config.init(device).load_record(record)` | the same | the same |
# | `from digits_model import MODEL_BYTES` | `include_bytes!("path/to/model.bin")` | the same |
# | `BinBytesRecorder(settings).load(data, device)` | `BinBytesRecorder::<S>::default().load(data.to_vec(), &device)?` | `ModuleRecord::from_bytes(data)?` |
#
# Next: [7.1 · Importing models](07_1_importing.ipynb)
