# %% [markdown] tags=["goals"]
# # Saliency
#
# Why does a network say "3"? The slope of its answer with respect to each pixel says
# where a change would matter most, and the activations of the last convolution, weighted
# by their slopes, say which region speaks for the answer (Grad-CAM).
#
# About 5 minutes. You should have read [4.4](../04_04_module.ipynb).

# %% tags=["setup"]
import numpy as np

import burnbook
from burnbook import nn
from burnbook.backend import Autodiff
from burnbook.backend import Numpy
from burnbook.data import DataLoaderBuilder, DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.optim import AdamConfig, GradientsParams
from burnbook.tensor import activation
from burnbook_widgets.pictures import Images

burnbook.seed(2)
device = Autodiff(Numpy())

# %% [markdown]
# ## A network to ask

# %% tags=["run-me"]
model = nn.Sequential(
    conv1=nn.Conv2dConfig([1, 8], [3, 3]).init(device),
    norm1=nn.BatchNormConfig(8).init(device),
    relu1=activation.relu,
    pool=nn.MaxPool2dConfig([2, 2]).with_strides([2, 2]).init(),
    conv2=nn.Conv2dConfig([8, 32], [3, 3]).init(device),
    norm2=nn.BatchNormConfig(32).init(device),
    relu2=activation.relu,
    mean=lambda x: x.mean_dims([2, 3]).flatten(1, 3),
    dropout=nn.DropoutConfig(0.1).init(),
    head=nn.LinearConfig(32, 10).init(device),
)

# %% tags=["run-me"]
loss_of = nn.CrossEntropyLossConfig().init(device)
loaders = DataLoaderBuilder(MnistBatcher(device)).batch_size(64)
loader, optim = (
    loaders.shuffle(42).build(DigitsDataset.train()),
    AdamConfig().init(),
)
for rate in [2e-2] * 10 + [2e-3] * 4:  # an epoch each
    for batch in loader:
        scores = model.forward(batch.images.unsqueeze_dim(1))
        grads = loss_of.forward(scores, batch.targets).backward()
        found = GradientsParams.from_grads(grads, model)
        model = optim.step(rate, model, found)

# %% [markdown]
# ## Which pixels decide?
#
# `eval()` lets dropout and BatchNorm rest and keeps the gradients; `valid()` would have none. The image
# asks for its own gradient.

# %% tags=["run-me"]
asked = model.eval()
items = [DigitsDataset.test().get(i) for i in range(6)]
digits = MnistBatcher(device).batch(items)
images = digits.images.unsqueeze_dim(1).require_grad()
found = asked.features(images, at="relu2")
answers = found.output.argmax(1)
certain = found.output.gather(
    1, answers
).sum()  # of each image its highest score
grads = certain.backward()
slopes = np.abs(np.asarray(images.grad(grads)))[:, 0]

# %% tags=["run-me"]
right = (answers.flatten(0, 1) == digits.targets).into_data().to_list()
print("5 of 6 or more are right", "✔" if sum(right) >= 5 else "✘")

# %% [markdown]
# ## Which region speaks for it?
#
# The mean slope of a channel is its weight; the weighted channels are added up, and what
# speaks against the answer is left out.

# %% tags=["run-me"]
channels = np.asarray(found["relu2"])
weights = np.asarray(found.grad("relu2")).mean((2, 3), keepdims=True)
regions = np.maximum((channels * weights).sum(1), 0)
print(channels.shape, weights.shape, regions.shape)


# %% tags=["widget"]
large = np.kron(regions, np.ones([1, 2, 2]))  # 11 × 11 → 22 × 22
large = np.pad(large, [(0, 0), (3, 3), (3, 3)])
pixels = np.stack([item.image for item in items])
said = [f"a {digit}" for digit in np.asarray(answers).flat]
Images(
    np.concatenate([pixels, slopes, large]),
    [*said, *["pixels"] * 6, *["regions"] * 6],
    columns=6,
    alt="six digits, the pixels that decide, and the regions",
)

# %% [markdown]
# In the first row the digits, with what the network says; below them the slopes of their
# pixels, then the regions: a stroke counts where another digit would go on differently.

# %% [markdown] tags=["summary"]
# ## Summary
#
# - `model.eval()` is for questions that need gradients; dropout and BatchNorm rest.
# - `features(x, at=…)` gives activations and, after `backward()`, their gradients.
#
# Next: [A1 · Operations](../A1_ops.ipynb)
