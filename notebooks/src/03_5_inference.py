# %% [markdown] tags=["goals"]
# # 3.5 · Inference
#
# After this chapter you can
#
# - bring a trained model back from its folder;
# - predict what an image shows, and see how sure the model is;
# - look at its mistakes.
#
# About 15 minutes. You should have read [chapter 3.4](03_4_backend.ipynb).

# %% tags=["setup"]
from pathlib import Path

import numpy as np

import burnbook
from burnbook.activation import softmax
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
# fills it with numbers. This cell trains one if the folder is not there yet; with 64
# hidden numbers and a learning rate of 0.001 that takes seconds.

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

# %% tags=["run-me"]
test_set = DigitsDataset.test()
device = Numpy()  # no gradients: we only use the model
digit = infer(artifacts, device, test_set.get(42))

# %% tags=["widget"]
Images(test_set.get(42).image.reshape(1, 28, 28), zoom=6)

# %% [markdown]
# ## Step by step
#
# First the config: it knows how the model was built.

# %% tags=["run-me"]
config = TrainingConfig.load(artifacts / "config.json")
print(config.model)

# %% [markdown]
# Then the record, read by the recorder that wrote it. `init` draws no random numbers
# here: parameters are made when first used, and by then the record has filled them.

# %% tags=["run-me"]
record = CompactRecorder().load(artifacts / "model", device)
model = config.model.init(device).load_record(record)
print(model)

# %% [markdown]
# Now predict. The batcher of the training also serves a single image: the model sees
# the same kind of input as ever. `argmax` along dimension 1 finds the largest of the
# ten numbers.

# %% tags=["run-me"]
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

# %% tags=["run-me"]
probabilities = softmax(output, 1)
same([by_hand], probabilities)

# %% [markdown]
# ## See it

# %% tags=["widget"]
percent = np.asarray(probabilities)[0] * 100
Bars(dict(enumerate(percent)), f"How sure, in percent; it is a {item.label}")

# %% [markdown]
# ## All of them at once
#
# A prediction for 359 images is one batch. How many are right?

# %% tags=["run-me"]
items = list(test_set)
batch = MnistBatcher(device).batch(items)
guesses = model.forward(batch.images).argmax(1).flatten(0, 1)
right = guesses.equal(batch.targets)
accuracy = right.float().mean().into_scalar() * 100
print("more than 90 of 100 are right:", accuracy > 90)

# %% [markdown]
# The mistakes teach more than the rest. Each picture says what the model took it for,
# and what it is.

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
# A record fits only the model it came from. All that does not match is listed at once,
# and the model stays as it was.

# %% tags=["raises-exception"]
other = ModelConfig(10, 128).init(device)
other.load_record(CompactRecorder().load(artifacts / "model", device))

# %% [markdown]
# ## Exercises

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
# The record holds numbers and their names; only the config says which layers they
# belong to and how they are wired.
# </details>
#
# <details><summary>Why must the image be normalized here, too?</summary>
#
# The model has only ever seen normalized images. Using the training's own batcher
# makes it impossible to forget.
# </details>
#
# <details><summary>Does a probability of 0.99 mean that the model is right?</summary>
#
# No. Trained networks are often surer than they should be; look at the mistakes above.
# </details>

# %% [markdown]
# ## Conclusion
#
# You have seen the whole way once: a model and its config, a dataset and its batcher, a
# learner, a backend, and a prediction. `burnbook new my_burn_app` writes these five
# chapters as a small project of your own. The building blocks, one by one, are the
# next part of the book.

# %% [markdown]
# <details><summary><b>🐍 Python note: errors instead of <code>expect</code></b></summary>
#
# Rust returns a `Result` and `.expect("…")` stops the program with a text. Python
# raises; what you do not catch stops the cell. A missing file, a damaged record, a
# record of another model: each has its own error, with the cure where there is one.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - Config and record together bring a model back.
# - Inference runs on a plain backend: no gradients, no dropout.
# - The same batcher serves training and prediction.
# - Softmax makes probabilities of logits; argmax makes a decision.
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
