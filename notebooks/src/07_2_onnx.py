# %% [markdown] tags=["goals"]
# # 7.2 · Importing ONNX models
#
# After this chapter you can
#
# - say what an ONNX file consists of, and write one byte by byte;
# - run a model of another framework here, or turn it into source code that you can read;
# - train it further, and take its weights to other programs.
#
# About 35 minutes. You should have read [chapter 7.1](07_1_importing.ipynb).

# %% tags=["setup"]
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from sklearn.neural_network import MLPClassifier

import burnbook
from burnbook import record
from burnbook.cli import main as burnbook_command
from burnbook.data import DataLoaderBuilder, DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.exporters import to_onnx, to_pytorch
from burnbook.importers.onnx import (
    ModelGen,
    RecordType,
    check as check_onnx,
    compare,
    load,
    source_of,
)
from burnbook.importers.onnx.layers import RULES
from burnbook.nn import LinearConfig
from burnbook.nn.loss import CrossEntropyLossConfig
from burnbook.optim import AdamConfig, GradientsParams
from burnbook.prelude import *
from burnbook_widgets import ClosenessView, FileView, ModuleTree
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Images

burnbook.seed(0)
folder = Path("artifacts/onnx")
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)

# %% [markdown]
# ## Try it
#
# This is a complete ONNX file, 61 bytes long. It contains one operation. `load` turns it
# into a module:

# %% tags=["run-me"]
device = Numpy()
tiny = (
    b'\x08\x08:5\n\x0c\n\x01x\x12\x01y"\x04Relu\x12\x01g'
    b"Z\x10\n\x01x\x12\x0b\n\t\x08\x01\x12\x05\n\x03\x12\x01n"
    b"b\x10\n\x01y\x12\x0b\n\t\x08\x01\x12\x05\n\x03\x12\x01nB\x02\x10\x11"
)
model = load(tiny, device)
numbers = Tensor[1].from_floats([-1, 2, -3, 4], device)
print(np.asarray(model.forward(numbers)))
print(check_onnx(tiny))

# %% [markdown] tags=["cell:why-import"]
# ## Why import models?
#
# - **It saves time.** Someone else has trained the network already; training it again
#   costs hours or weeks.
# - **Good architectures.** What works best is published as a trained model, by research
#   groups and companies.
# - **Transfer learning.** A model that has seen a million examples needs only a few of
#   yours to learn your task.
# - **The same results everywhere.** A model that moves to another framework should
#   predict there what it predicted before. You will see how to verify this.

# %% [markdown] tags=["cell:onnx"]
# ## What ONNX is
#
# ONNX, the Open Neural Network Exchange, is an open format for trained models.
#
# - **It belongs to no framework.** Its operators (`Conv`, `Gemm`, `Relu`, about 200) are
#   defined by a specification. The version of this specification is the *opset*.
# - **It is complete.** A file contains the computation as a graph, and the weights. A
#   PyTorch state dict has only the weights.
# - **Many programs write it:** PyTorch (`torch.onnx.export`), TensorFlow and Keras
#   (`tf2onnx`), scikit-learn (`skl2onnx`), LightGBM, and others.

# %% [markdown]
# ## By hand
#
# First we need a model from another framework. scikit-learn is installed; let it learn
# from the first 200 digits. We keep its answers, so that we can compare later.

# %% tags=["run-me"]
few = [DigitsDataset.train().get(i) for i in range(200)]
few, test = (
    MnistBatcher(device).batch(list(items))
    for items in (few, DigitsDataset.test())
)
rows, labels = np.asarray(few.images.flatten(1, 2)), np.asarray(few.targets)
theirs = MLPClassifier(32, random_state=0)  # 784 → 32 → 10, with relu
for _ in range(30):
    theirs.partial_fit(rows, labels, classes=range(10))
test_rows = np.asarray(test.images.flatten(1, 2))
test_labels = np.asarray(test.targets)
score = theirs.score(test_rows, test_labels)
print("right on 65 to 85 of 100 digits:", 0.65 < score < 0.85)

# %% [markdown]
# Now the file. ONNX files are *protocol buffers*: a message is a row of fields. Each
# field begins with a key, `8 · number + type`. Type 0 is a whole number, written with
# seven bits a byte, the lowest first; type 2 is a length, and as many bytes: a text, an
# array, or another message.


# %% tags=["run-me"]
def whole(n):
    return bytes([n]) if n < 128 else bytes([n % 128 + 128]) + whole(n // 128)


def field(number, value):
    if isinstance(value, int):
        return whole(8 * number) + whole(value)
    value = value.encode() if isinstance(value, str) else value
    return whole(8 * number + 2) + whole(len(value)) + value


print(field(1, 8), field(4, "Relu"), field(1, 300))

# %% [markdown]
# The specification says what the numbers of the fields mean. These three messages are
# enough: a node (an operator with its inputs and outputs), a tensor (sizes, type 1 for
# float32, a name, the bytes), and the name, type and shape of an input or output.


# %% tags=["run-me"]
def node(op, inputs, output):
    given = b"".join(field(1, name) for name in inputs)
    return given + field(2, output) + field(4, op)


def tensor(name, array):
    sizes = b"".join(field(1, n) for n in array.shape)
    data = array.astype("<f4").tobytes()
    return sizes + field(2, 1) + field(8, name) + field(9, data)


def info(name, batch, *sizes):
    dims = field(1, field(2, batch))  # a size without a number: any batch
    dims += b"".join(field(1, field(1, n)) for n in sizes)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))


# %% [markdown]
# A graph has nodes (field 1), a name (2), weights (5), inputs (11) and outputs (12). The
# model adds the version of the format (1), who made it (2), and the opset (8).


# %% tags=["run-me"]
def file_of(nodes, weights):
    graph = b"".join(field(1, node(*each)) for each in nodes)
    graph += field(2, "digits")
    graph += b"".join(field(5, tensor(*each)) for each in weights.items())
    graph += field(11, info("images", "n", 28, 28))
    graph += field(12, info("logits", "n", 10))
    opset = field(8, field(2, 17))
    return field(1, 8) + field(2, "scikit-learn") + field(7, graph) + opset


# %% tags=["run-me"]
nodes = [
    ("Flatten", ["images"], "pixels"),
    ("Gemm", ["pixels", "hidden.weight", "hidden.bias"], "sums"),
    ("Relu", ["sums"], "activations"),
    ("Gemm", ["activations", "output.weight", "output.bias"], "logits"),
]
weights = {
    "hidden.weight": theirs.coefs_[0],
    "hidden.bias": theirs.intercepts_[0],
    "output.weight": theirs.coefs_[1],
    "output.bias": theirs.intercepts_[1],
}
path = folder / "digits_mlp.onnx"
path.write_bytes(file_of(nodes, weights))
print(f"{path.stat().st_size:,} bytes, {4 * 25_450:,} of them weights")

# %% [markdown]
# ONNX's own checker has no objection. What should the model compute? `Gemm` is the general
# matrix product, $xW + b$, so in NumPy it is three lines:

# %% tags=["run-me"]
onnx.checker.check_model(str(path), full_check=True)
sums = test_rows @ weights["hidden.weight"] + weights["hidden.bias"]
by_hand = np.maximum(sums, 0) @ weights["output.weight"]
by_hand = by_hand + weights["output.bias"]
print(by_hand.shape)

# %% [markdown]
# ## In burnbook
#
# `load` reads the graph, writes a class for it, and fills in the weights. It computes
# what we computed by hand, and chooses the classes that scikit-learn chooses:

# %% tags=["run-me"]
model = load(path, device)
logits = model.forward(test.images)
same(logits, by_hand)
same(np.asarray(logits.argmax(1)).ravel(), theirs.predict(test_rows))

# %% [markdown]
# Where a model has no twin in NumPy, `compare` runs the original: with ONNX Runtime if that
# is installed, otherwise with the evaluator of the package `onnx`. Every value of the
# graph is compared, not only the last.

# %% tags=["run-me"]
report = compare(path, [few.images])
for name in ("pixels", "sums", "activations", "logits"):
    print(f"{name:13}{report[name].level(1e-4).verdict}")
print("first difference:", report.first_difference)

# %% [markdown]
# The class has source code. Each node of the graph is a line; where a node is a layer of
# `nn`, the layer is used, and it has the name that its weights have in the file.

# %% tags=["run-me"]
print(model)
source = source_of(model)
print(source[source.index("    def forward") :])

# %% [markdown] tags=["cell:advantages"]
# ## Burn's ONNX support, and burnbook's
#
# Burn does not run ONNX files: it translates them into code. So does burnbook.
#
# | Burn's advantages | here |
# |---|---|
# | **Native code:** the model becomes Rust source | a Python class: read it, change it, step through it with the debugger |
# | **Optimization by the compiler** | the operations are those of your own modules, with the same compiled kernels |
# | **No ONNX runtime** when the program runs | the generated code needs neither the package `onnx` nor a runtime |
# | **Trainability** | weights are parameters: on a device with autodiff they can be trained |
# | **Portability** | two files, for every place where Python and NumPy are |
# | **Any backend** | `from_file(path, device)`: `Numpy()`, `Cupy()`, with or without `Autodiff` |
#
# It is also thorough: of the 2,024 cases of ONNX's own test suite, 2,007 pass.

# %% [markdown]
# ## See it
#
# An imported model is a module like any other, so every view can show it. Open a layer,
# look at its parameters, freeze it:

# %% tags=["widget"]
ModuleTree(model, [1, 28, 28])

# %% [markdown]
# The report of `compare` has a view, too. Where an import goes wrong, it shows the first
# value that differs, and so the operator that is to blame.

# %% tags=["widget", "nbval-ignore-output"]
ClosenessView(report)

# %% [markdown]
# The file itself: its nodes as a graph, its weights as a tree. Choose a node, and the line
# of source that it became is marked.

# %% tags=["widget"]
FileView(path)

# %% [markdown] tags=["cell:dependency"]
# ## Step by step: source in a build step
#
# `load` needs the package `onnx` wherever the program runs. To import only once, let a
# script write the source: in Rust this is `build.rs`, here any Python file.
#
# **Step 1.** Install the importer where you build, and write the script.
# `burnbook[lab]` already includes it.
#
# ```sh
# pip install "burnbook[onnx]"
# ```

# %% tags=["run-me", "cell:build-script"]
script = """
from burnbook.importers.onnx import ModelGen

ModelGen().input("digits_mlp.onnx").out_dir("model/").run_from_script()
"""
(folder / "build_model.py").write_text(script)
done = subprocess.run(
    [sys.executable, "build_model.py"],
    cwd=folder,
    env={**os.environ, "OUT_DIR": "target"},  # cargo sets it; here we do
    capture_output=True,
    text=True,
)
print(done.stderr or sorted(os.listdir(folder / "target/model")))

# %% [markdown]
# **Step 2.** Make the generated module known. In Rust `include!` copies it into your
# program; in Python you import it from its folder.

# %% tags=["run-me", "cell:include"]
sys.path.insert(0, str(folder / "target/model"))
from digits_mlp import Model

print(Model.__module__, Model.__doc__)

# %% [markdown]
# **Step 3.** Use it. `default()` loads the weights that lie beside the source, on the
# processor.

# %% tags=["run-me", "cell:use"]
model = Model.default()
zeros = Tensor[3].zeros([1, 28, 28], device)  # replace it with your input
output = model.forward(zeros)
print("Model output:", output.shape)

# %% [markdown]
# Instead of `OUT_DIR`, `run_from_cli()` uses the folder as it is given; and there is a
# command that needs no script at all:

# %% tags=["run-me"]
arguments = ["import-onnx", str(path), "-o", str(folder / "by_command")]
assert burnbook_command(arguments) == 0

# %% [markdown]
# ## The generated code
#
# This is the whole file. It imports `burnbook`, nothing of ONNX. `new` makes the layers,
# `from_file` loads a record, `forward` is the graph.

# %% tags=["run-me", "cell:generated"]
print((folder / "target/model/digits_mlp.py").read_text())

# %% [markdown]
# Does it really work without `onnx`? A program in which that package cannot be imported:

# %% tags=["run-me"]
program = """
import sys
sys.modules["onnx"] = None  # as if it were not installed
from digits_mlp import Model
print(Model.default())
"""
run = [sys.executable, "-c", program]
place = folder / "target/model"
done = subprocess.run(run, cwd=place, capture_output=True, text=True)
print(done.stdout or done.stderr)

# %% [markdown]
# ## Options
#
# Each option is a method that returns a new `ModelGen`. These are all, with the values
# that they have if you say nothing:

# %% tags=["run-me", "cell:options"]
generator = (
    ModelGen()
    .input(path)  # once for each file
    .out_dir(folder / "model")
    .record_type(RecordType.NamedMpk)
    .half_precision(False)
    .embed_states(False)
    .development(False)  # True: also a list of all nodes
)
print(*(file.name for file in generator.run_from_cli()))

# %% [markdown]
# `record_type` is the format of the weights: a named MessagePack file, the same
# compressed, indented JSON, or bincode (see [chapter 4.10](04_10_record.ipynb)).

# %% tags=["run-me", "cell:record-type"]
for kind in RecordType:
    place = folder / kind.name
    generator.out_dir(place).record_type(kind).run_from_cli()
    (file,) = set(place.iterdir()) - {*place.glob("*.py")}
    recorder = getattr(record, kind.value)()
    print(f"{kind.name:12}{file.name:20}{recorder}")

# %% [markdown]
# `half_precision(True)` stores floats with 16 bits: half the file, three digits. The
# computation stays in the precision of the device.

# %% tags=["run-me", "cell:half-precision"]
half = generator.out_dir(folder / "half").half_precision(True)
half.run_from_cli()
for name in ("model", "half"):
    size = (folder / name / "digits_mlp.mpk").stat().st_size
    print(f"{name:6}{size:9,} bytes")

# %% [markdown]
# `embed_states(True)` puts the weights into the source file, for a program that consists
# of one file. They are bincode then, so it needs `RecordType.Bincode`.

# %% tags=["run-me", "cell:embed-states"]
embedded = generator.record_type(RecordType.Bincode).embed_states(True)
(file,) = embedded.out_dir(folder / "embedded").run_from_cli()
shutil.move(file, folder / "digits_embedded.py")
lines = (folder / "digits_embedded.py").read_text().splitlines()
start = lines.index("STATES = (")
print(*lines[:3], "…", lines[start], "…", lines[-1], sep="\n")
print(len(lines) - start - 2, "lines of text: 51 kB of weights")

# %% [markdown]
# ## Four ways to get the model
#
# With random weights (drawn only if they are used), from a file, from embedded weights,
# or from the file beside the source.

# %% tags=["run-me", "cell:loading"]
sys.path.insert(0, str(folder))
import digits_embedded

weights_path = folder / "target/model/digits_mlp.mpk"
ways = {
    "new": Model.new(device),
    "from_file": Model.from_file(weights_path, device),
    "from_embedded": digits_embedded.Model.from_embedded(device),
    "default": Model.default(),
}
for name, each in ways.items():
    found = np.asarray(each.forward(test.images))
    print(f"{name:14}{np.allclose(found, by_hand, atol=1e-4)}")

# %% [markdown]
# The device decides the rest: another precision, a GPU, or autodiff. The file is the same.

# %% tags=["run-me"]
double = Numpy(float="f64")
wide = Model.from_file(weights_path, double)
images = MnistBatcher(double).batch(list(DigitsDataset.test())).images
print(wide.devices(), wide.hidden.weight.val().dtype)
print(np.allclose(wide.forward(images), by_hand, atol=1e-4))

# %% [markdown]
# ## Fine-tuning
#
# scikit-learn saw 200 digits. There are 1,438 for training; let its network learn from
# all of them. Nothing is special about an imported model: the loop is that of
# [chapter 5](05_custom_training_loop.ipynb).
#
# A file says how to predict. So BatchNorm and Dropout of an imported model do that on
# every device, also under autodiff, where its weights learn: it comes in eval mode.
# `model.train()`, or `load(path, device, training=True)`, asks for training: then
# BatchNorm takes the statistics of the batch, and Dropout drops.

# %% tags=["run-me", "cell:fine-tune"]
ad = device.autodiff()
loader = DataLoaderBuilder(MnistBatcher(ad)).batch_size(64).shuffle(42)
loader = loader.build(DigitsDataset.train())
model, optim = Model.from_file(weights_path, ad), AdamConfig().init()
cross_entropy = CrossEntropyLossConfig().init(ad)
for _ in range(5):
    for batch in loader:
        logits = model.forward(batch.images)
        loss = cross_entropy.forward(logits, batch.targets)
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = optim.step(1e-3, model, grads)
tuned = model.valid()


# %% tags=["run-me"]
def right(model):
    guesses = np.asarray(model.forward(test.images).argmax(1)).ravel()
    return (guesses == test_labels).mean()


before, after = right(Model.default()), right(tuned)
print("before: less than 85 of 100 right", before < 0.85)
print("after:  more than 90 of 100 right", after > 0.90)

# %% [markdown]
# What did it learn? The change of the weights of 16 hidden neurons, as images: strokes
# that speak for or against a digit. A black image has not changed: that neuron's `relu`
# is 0 for every digit, so no gradient reaches it.

# %% tags=["widget"]
changes = np.asarray(tuned.hidden.weight.val()) - weights["hidden.weight"]
Images(changes.T[:16].reshape(16, 28, 28), columns=8, zoom=2)

# %% [markdown]
# A digit that neither has trained on:

# %% tags=["run-me", "cell:predict"]
item = DigitsDataset.test().get(245)
one = MnistBatcher(device).batch([item])
(guess,) = np.asarray(tuned.forward(one.images).argmax(1)).ravel()
print("label", item.label, "· the imported model reads", guess)
Images([item.image], alt="A handwritten digit")

# %% [markdown]
# ## The weights go everywhere
#
# The record has the layout of Burn: names, ids, MessagePack. It comes back through
# `from_file`, and becomes another format with `convert` or the exporters.

# %% tags=["run-me", "cell:record"]
recorder = record.NamedMpkFileRecorder(record.FullPrecisionSettings)
saved = tuned.save_file(folder / "tuned", recorder)
print(record.describe(saved))
again = Model.from_file(saved, device)
same(again.forward(test.images), tuned.forward(test.images))
print(to_pytorch(tuned, folder / "tuned.pt").name, "for PyTorch")

# %% [markdown]
# PyTorch's class may call its weights otherwise: what is no layer takes no number here, so
# `mlp.2` of an `nn.Sequential` is `mlp.1`, and a table of its own is `wpe_weight`. The
# names of the file are those of the class, and the imported module knows them:
#
# ```python
# names = original_names(model)   # {"mlp.1": "mlp.2", "wpe_weight": "wpe.weight", …}
# to_pytorch(model, "model.pt", names=names)
# ```
#
# Then `load_state_dict` takes the file as it is; of source that `ModelGen` has written,
# `original_names("model.onnx")` tells them. What the exporter has put into the weights,
# as it does with BatchNorm, does not come apart again.
#
# Back into an ONNX file: `to_onnx` writes one of any module, also of those that never came
# from one; it needs an example of the inputs. And scikit-learn can have its network back,
# better than it was:

# %% tags=["run-me"]
written = to_onnx(tuned, folder / "tuned.onnx", few.images)
same(load(written).forward(test.images), tuned.forward(test.images))
values = {p: np.asarray(param.val()) for p, param in tuned.named_params()}
theirs.coefs_ = [values["hidden.weight"], values["output.weight"]]
theirs.intercepts_ = [values["hidden.bias"], values["output.bias"]]
print("better than before:", theirs.score(test_rows, test_labels) > score)

# %% [markdown]
# ## Look inside
#
# When is a node a layer? There are rules for convolutions, products, norms and dropout;
# this is the one for `Gemm`. Where a rule says no, the generated code calls a function,
# and the weights are parameters of the model itself.

# %% tags=["peek"]
peek(RULES["Gemm"])

# %% [markdown] tags=["cell:troubleshooting"]
# ## When it does not work
#
# - **An operator is not supported.** `burnbook import-onnx FILE --check` lists all of
#   them at once, with their nodes. Often the exporter can write something else: another
#   opset, or the model without its preprocessing.
# - **The build fails.** Is the path in the script right? It is relative to where the
#   script runs. Source that an older burnbook has written can be written again.
# - **Errors when it runs.** Compare the shapes and types of your inputs with the first
#   lines of the report: `check(path).inputs`. If the outputs are wrong: `compare`.
# - **It is slow.** Use larger batches; `burnbook warmup` compiles the fast kernels. If
#   memory or loading is the trouble, try `half_precision` or another `record_type`.
# - **You want to see everything.** With `development(True)` there is a `.graph.txt`
#   beside the source, with each node of the graph:

# %% tags=["run-me"]
generator.out_dir(folder / "seen").development(True).run_from_cli()
print((folder / "seen/digits_mlp.graph.txt").read_text())

# %% [markdown]
# ## Where it breaks
#
# An operator that ONNX does not have. Every such operator is listed, with the node and
# the nearest one that is known.

# %% tags=["raises-exception"]
unknown = [*nodes[:2], ("Relo", ["sums"], "activations"), nodes[3]]
(folder / "unknown.onnx").write_bytes(file_of(unknown, weights))
load(folder / "unknown.onnx")

# %% [markdown]
# Half a file. Damage is noticed before anything is built:

# %% tags=["raises-exception"]
load(path.read_bytes()[:50_000])

# %% [markdown]
# Images of another size: the message names the layer, as with your own modules.

# %% tags=["raises-exception"]
tuned.forward(Tensor[3].zeros([1, 20, 20], device))

# %% [markdown] tags=["cell:resources"]
# ## Where ONNX files come from
#
# | program | how it writes one |
# |---|---|
# | PyTorch | `torch.onnx.export(model, (example,), "model.onnx")` |
# | Keras | `model.export("model.onnx", format="onnx")` |
# | TensorFlow | `python -m tf2onnx.convert --saved-model FOLDER --output model.onnx` |
# | scikit-learn | `skl2onnx.to_onnx(model, rows[:1]).SerializeToString()` |
# | LightGBM | `onnxmltools.convert_lightgbm(model, initial_types=…)` |
#
# Trained models are collected by Hugging Face and by the ONNX Model Zoo. First ask what is
# in a file: `burnbook import-onnx FILE --check`. Then compare it with the original, as we
# did above; `burnbook import-onnx FILE --compare` does it with the sample inputs that
# published models bring with them.

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 7.2.1: the bytes of field 5 with the whole number 200, as a list
answer = ...
check("7.2.1", answer)

# %% tags=["solution"]
answer = [40, 200, 1]  # 8 · 5; 200 - 128 = 72 and the mark 128; 1 · 128
check("7.2.1", answer)


# %% tags=["exercise"]
# exercise 7.2.2: the number that begins at `at`, as `whole` wrote it, and
# the place behind it: read(b"\x08\xac\x02:", 1) is (300, 3)
def read(data, at):
    return ...


answer = ...  # read
check("7.2.2", answer)


# %% tags=["solution"]
def read(data, at):
    number, shift = 0, 0
    while data[at] >= 128:
        number += (data[at] - 128) << shift
        at, shift = at + 1, shift + 7
    return number + (data[at] << shift), at + 1


answer = read
check("7.2.2", answer)

# %% tags=["exercise"]
# exercise 7.2.3: a ModelGen for "net.onnx" and the folder "app", so that one
# small Python file is all that the program needs: 16 bits, nothing beside it
answer = ...
check("7.2.3", answer)

# %% tags=["solution"]
answer = (
    ModelGen()
    .input("net.onnx")
    .out_dir("app")
    .record_type(RecordType.Bincode)
    .half_precision(True)
    .embed_states(True)
)
check("7.2.3", answer)


# %% tags=["exercise"]
# exercise 7.2.4: the imported model with another last layer, for so many
# classes; all other layers stay
def with_classes(model, classes, device):
    return ...


answer = ...  # with_classes
check("7.2.4", answer)


# %% tags=["solution"]
def with_classes(model, classes, device):
    size = model.output.weight.shape[0]
    return model.replace(output=LinearConfig(size, classes).init(device))


answer = with_classes
check("7.2.4", answer)


# %% tags=["exercise"]
# exercise 7.2.5: the names of the operators in a file that are not known
def unknown_operators(path):
    return ...


answer = ...  # unknown_operators
check("7.2.5", answer)


# %% tags=["solution"]
def unknown_operators(path):
    return [each.name for each in check_onnx(path).unsupported]


answer = unknown_operators
check("7.2.5", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>What does an ONNX file contain that a state dict does not?</summary>
#
# The computation: which operators run, in which order, on which values. So nobody has to
# write the model again.
# </details>
#
# <details><summary>Where is the package <code>onnx</code> needed?</summary>
#
# Where the file is read: by `load`, `check` and `ModelGen`. What `ModelGen` has written
# runs without it.
# </details>
#
# <details><summary>Why can an imported model be trained?</summary>
#
# Its weights are parameters, and its lines are operations that have gradients. ONNX
# itself says nothing about training: the loss and the optimizer are yours.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: build.rs, OUT_DIR and include!</b></summary>
#
# Cargo compiles and runs `build.rs` before the crate, and tells it in `OUT_DIR` where to
# write. `include!` then inserts a file into the program while it is compiled. Python has
# no such step: source is imported when the program runs, so a generated module can be
# committed beside your own, and read in a review. If it should be made anew each time,
# a build hook (of hatchling or setuptools) is the place for `ModelGen`.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - An ONNX file is a graph and its weights: fields, lengths and bytes.
# - An operator that is not known is added by a function of tensors:
#   `@add_operator("com.example", "Swoosh")`; then `load` and `check` know it, and
#   `burnbook import-onnx model.onnx --operators my_operators` imports the file with it.
#   What ONNX Runtime's optimizer and quantizer write (com.microsoft) is known.
# - `load(path, device)` gives a module at once; `check(path)` only reports, and
#   `compare(path, inputs)` proves it.
# - `ModelGen` writes source and record; what it writes does not need `onnx`.
# - `new`, `from_file`, `from_embedded`, `default`: four ways to get the model.
# - An imported model trains, is saved and is exported like one of your own.
#
# **Where this lives.** `burnbook/importers/onnx`. Read
# `burnbook/importers/onnx/graph.py` first (the file in a plain form), then
# `burnbook/importers/onnx/source.py` (the writer) and one family of operators,
# `burnbook/importers/onnx/operators/elementwise.py`. The view of the file is in
# `widgets/burnbook_widgets/file`. For larger examples see the tests: real models in
# `tests/importers/real`.
#
# **The same in Burn**
#
# | here | Burn 0.15 (`burn_import::onnx`) | newest (`burn_onnx`) |
# |---|---|---|
# | `ModelGen().input(a).out_dir(b).run_from_script()` | `ModelGen::new().input(a).out_dir(b).run_from_script()` | the same |
# | `run_from_cli()` | `run_from_cli()` | the same |
# | `record_type(RecordType.NamedMpk)` | `.record_type(RecordType::NamedMpk)` | – (burnpack only) |
# | `half_precision(True)` | `.half_precision(true)` | – |
# | `embed_states(True)` | `.embed_states(true)` | the same, later `.load_strategy(…)` |
# | `Model.new(device)` | `Model::<B>::new(&device)` | the same |
# | `Model.from_file(path, device)` | `Model::<B>::from_file(path, &device)` | the same |
# | `Model.from_embedded(device)` | `Model::<B>::from_embedded(&device)` | the same |
# | `Model.default()` | `Model::<B>::default()` | the same |
# | `load(path, device)`, `compare(path, inputs)` | – | – |
# | `burnbook import-onnx FILE -o DIR` | `onnx2burn FILE DIR` | `onnx2burn FILE DIR` |
#
# Next: [7.3 · PyTorch](07_3_pytorch.ipynb)
