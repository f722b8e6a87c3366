# %% [markdown] tags=["goals"]
# # 3.5 · Inference
#
# After this chapter you can
#
# - load a trained model from its folder;
# - predict what an image shows, and see how confident the model is;
# - look at its mistakes.
#
# About 15 minutes. You should have read [chapter 3.4](03_4_backend.ipynb).

# %% tags=["setup", "rust:setup"]
from pathlib import Path

import numpy as np

import burnbook
from burnbook.tensor.activation import softmax
from burnbook.data import DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.guide.inference import infer
from burnbook.examples.guide.model import ModelConfig
from burnbook.examples.guide.training import TrainingConfig, train
from burnbook.optim import AdamConfig
from burnbook.prelude import *
from burnbook.record import CompactRecorder
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Bars, Images

burnbook.seed(0)

# %% [markdown]
# A trained model is a folder with two files: the config says what to build, the record
# holds the values of its parameters. This cell trains one if the folder is not there
# yet; with 64 hidden neurons that takes seconds.

# %% tags=["run-me", "nbval-ignore-output"]
artifacts = Path("artifacts/inference")
if not (artifacts / "model.mpk").exists():
    config = TrainingConfig(
        ModelConfig(10, 64), AdamConfig(), learning_rate=1e-3
    )
    train(
        artifacts,
        config.with_num_epochs(8).with_num_workers(2),
        Autodiff(Numpy()),
        DigitsDataset.train(),
        DigitsDataset.test(),
    )
print("there is a model in", artifacts.name)

# %% [markdown]
# ## Try it
#
# Item 42 of the test set, as in the book.

# %% tags=["run-me", "cell:main"]
test_set = DigitsDataset.test()
device = Numpy()  # no gradients: we only use the model
digit = infer(artifacts, device, test_set.get(42))

# %% tags=["widget", "cell:viewer"]
Images(test_set.get(42).image.reshape(1, 28, 28), zoom=6)

# %% [markdown]
# ## Step by step
#
# First the config: it says how the model was built.

# %% tags=["run-me", "rust:load-config"]
config = TrainingConfig.load(artifacts / "config.json")
print(config.model)

# %% [markdown]
# Then the record, read with the same kind of recorder that wrote it. `init` draws no
# random numbers here: parameters are created when they are first used, and by then the
# record has filled them.

# %% tags=["run-me", "cell:infer", "rust:infer"]
record = CompactRecorder().load(artifacts / "model", device)
model = config.model.init(device).load_record(record)
print(model)

# %% [markdown]
# Now predict. The batcher from training also handles a single image, so the model gets
# the same kind of input as before. `argmax` along dimension 1 finds the largest of the
# ten numbers.

# %% tags=["run-me", "cell:workflow-inference-infer"]
item = test_set.get(42)
output = model.forward(MnistBatcher(device).batch([item]).images)  # [1, 10]
predicted = output.argmax(1).flatten(0, 1).into_scalar()
print(f"Predicted {predicted} Expected {item.label}")

# %% [markdown]
# ## By hand
#
# The ten numbers are logits. Softmax turns them into probabilities, which are positive
# and sum to 1:
#
# $$p_i = \frac{e^{z_i}}{\sum_j e^{z_j}}$$

# %% tags=["run-me"]
logits = np.asarray(output)[0]
by_hand = np.exp(logits) / np.exp(logits).sum()
print(f"they sum to {by_hand.sum():.3f}, the largest is {by_hand.argmax()}")

# %% [markdown]
# ## In burnbook

# %% tags=["run-me", "rust:softmax"]
probabilities = softmax(output, 1)
same([by_hand], probabilities)

# %% [markdown]
# ## See it

# %% tags=["widget"]
percent = np.asarray(probabilities)[0] * 100
Bars(
    dict(enumerate(percent.round(1))),
    f"Probability in percent; it is a {item.label}",
)

# %% [markdown]
# ## All of them at once
#
# All 359 test images fit into one batch. How many does the model get right?

# %% tags=["run-me", "cell:float_bool"]
items = list(test_set)
batch = MnistBatcher(device).batch(items)
guesses = model.forward(batch.images).argmax(1).flatten(0, 1)
right = guesses.equal(batch.targets)
accuracy = right.float().mean().into_scalar() * 100
print(f"{len(items)} images, accuracy > 90 %", "✔" if accuracy > 90 else "✘")

# %% [markdown]
# The mistakes teach us most. Each title says what the model took the image for, and what
# it is.

# %% tags=["widget", "nbval-ignore-output"]
wrong = [i for i, ok in enumerate(right.to_data().to_list()) if not ok][:10]
guessed = guesses.to_data().to_list()
Images(
    np.stack([items[i].image for i in wrong]),
    [f"{guessed[i]}, is {items[i].label}" for i in wrong],
)

# %% [markdown]
# ## Look inside

# %% tags=["peek"]
peek(infer)

# %% [markdown]
# ## Where it breaks
#
# A record fits only a model of the same structure. All mismatches are listed at once,
# and the model stays as it was.

# %% tags=["raises-exception"]
other = ModelConfig(10, 128).init(device)
other.load_record(CompactRecorder().load(artifacts / "model", device))

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 3.5.1: softmax of the logits [0, 0, 0, 0], as a list
answer = ...
check("3.5.1", answer)

# %% tags=["solution"]
answer = [0.25, 0.25, 0.25, 0.25]
check("3.5.1", answer)

# %% tags=["exercise"]
# exercise 3.5.2: the labels of test items 0 to 4, as an Int tensor of rank 1
answer = ...
check("3.5.2", answer)

# %% tags=["solution"]
answer = MnistBatcher(device).batch(items[:5]).targets
check("3.5.2", answer)

# %% tags=["exercise"]
# exercise 3.5.3: a function (model, item) that returns the digit it sees
answer = ...
check("3.5.3", answer)


# %% tags=["solution"]
def answer(model, item):
    images = MnistBatcher(model.devices()[0]).batch([item]).images
    return model.forward(images).argmax(1).flatten(0, 1).into_scalar()


check("3.5.3", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why are there two files, config and record?</summary>
#
# The record holds numbers and their names; only the config says which layers to build
# and how large they are.
# </details>
#
# <details><summary>Why must the image be normalized here, too?</summary>
#
# The model has only ever seen normalized images. With the batcher from training it
# cannot be forgotten.
# </details>
#
# <details><summary>Does a probability of 0.99 mean that the model is right?</summary>
#
# No. Trained networks are often more confident than they should be; look at the
# mistakes above.
# </details>

# %% [markdown] tags=["cell:key-learnings"]
# ## Conclusion
#
# You have now done, once, everything that a project needs:
#
# - create a project (`burnbook new my_burn_app` writes these five chapters as one);
# - create a neural network: a module and its config ([3.1](03_1_model.ipynb));
# - prepare data: a dataset, a batcher, a loader ([3.2](03_2_data.ipynb));
# - train: loss, gradients, optimizer, learner ([3.3](03_3_training.ipynb));
# - choose a backend ([3.4](03_4_backend.ipynb));
# - use the trained model for inference, on this page.
#
# The next part of the book looks at the building blocks, one by one.

# %% [markdown]
# <details><summary><b>🐍 Python note: errors instead of <code>expect</code></b></summary>
#
# In Rust a function returns a `Result`, and `.expect("…")` stops the program with a
# message. Python raises an exception; one that is not caught stops the cell. A missing
# file, a damaged record, a record of another model: each has its own error, which says
# how to fix it where that is known.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - Config and record together restore a model.
# - Inference runs on a plain backend: no gradients, no dropout.
# - The same batcher serves training and prediction.
# - Softmax turns logits into probabilities; argmax makes a decision.
# - A record that does not fit is refused as a whole, and the model stays intact.
#
# **Where this lives.** `burnbook/examples/guide/inference.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `TrainingConfig.load(path)` | `TrainingConfig::load(path)` | the same |
# | `CompactRecorder().load(path, device)` | `CompactRecorder::new().load(path, &device)` | `ModuleRecord::load(path)` |
# | `config.model.init(device).load_record(record)` | `config.model.init::<B>(&device).load_record(record)` | without `B` |
# | `output.argmax(1).flatten(0, 1).into_scalar()` | `output.argmax(1).flatten::<1>(0, 1).into_scalar()` | the same |
# | `model.mpk` (MessagePack) | `model.mpk` | `model.bpk` (burnpack) |
#
# Next: [4.1 · Backend](04_01_backend.ipynb)
