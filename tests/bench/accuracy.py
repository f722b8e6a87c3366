"""The guide's accuracy beside the same network in PyTorch.

    python -m tests.bench.accuracy --data digits --epochs 30 --seeds 3
    python -m tests.bench.accuracy --data mnist --epochs 3 --seeds 3 --torch

Both train the same layers with the same initializers, Adam (epsilon 1e-5), batch 64 and
the same constant learning rate, over a shuffle of their own for every seed. MNIST comes
from the cache or from BURNBOOK_MNIST_MIRROR.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

import numpy as np

from burnbook.backend import Autodiff, Numpy
from burnbook.examples.guide.data import choose_digits
from burnbook.examples.guide.model import ModelConfig
from burnbook.examples.guide.training import TrainingConfig, train
from burnbook.optim import AdamConfig

BATCH = 64


def ours(data, epochs: int, seed: int, rate: float) -> float:
    """Validation accuracy in percent after training here."""
    os.environ["BURNBOOK_DISPLAY"] = "none"
    config = TrainingConfig(ModelConfig(10, 512), AdamConfig())
    config = config.with_num_epochs(epochs).with_seed(seed).with_learning_rate(rate)
    device = Autodiff(Numpy())
    with tempfile.TemporaryDirectory() as folder:
        model = train(folder, config, device, data.train, data.test).valid()
    images, labels = arrays(data.test)
    from burnbook.tensor import Tensor

    right = 0
    for start in range(0, len(labels), 1000):
        batch = Tensor.from_numpy(images[start : start + 1000], device.inner)
        guess = np.asarray(model.forward(batch)).argmax(1)
        right += int((guess == labels[start : start + 1000]).sum())
    return 100 * right / len(labels)


def theirs(data, epochs: int, seed: int, rate: float) -> float:
    """Validation accuracy in percent after training in PyTorch."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    drop = nn.Dropout(0.5)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), drop, nn.Conv2d(8, 16, 3), drop, nn.ReLU(),
        nn.AdaptiveAvgPool2d(8), nn.Flatten(),
        nn.Linear(1024, 512), drop, nn.ReLU(), nn.Linear(512, 10),
    )  # fmt: skip
    optim = torch.optim.Adam(model.parameters(), rate, eps=1e-5, fused=True)
    images, labels = (torch.from_numpy(a) for a in arrays(data.train))
    for _ in range(epochs):
        for rows in torch.randperm(len(labels)).split(BATCH):
            optim.zero_grad()
            out = model(images[rows].unsqueeze(1))
            nn.functional.cross_entropy(out, labels[rows]).backward()
            optim.step()
    model.eval()
    images, labels = (torch.from_numpy(a) for a in arrays(data.test))
    with torch.inference_mode():
        guess = torch.cat([model(x.unsqueeze(1)).argmax(1) for x in images.split(1000)])
    return 100 * float((guess == labels).double().mean())


def arrays(dataset) -> tuple[np.ndarray, np.ndarray]:
    """All images, normalized as in the guide, and all labels."""
    items = [dataset.get(i) for i in range(len(dataset))]
    images = np.stack([item.image for item in items]).astype(np.float32)
    labels = np.array([item.label for item in items], np.int64)
    return (images / 255 - np.float32(0.1307)) / np.float32(0.3081), labels


def main() -> None:
    """Train with every seed and print one line for each, then the means."""
    ask = argparse.ArgumentParser()
    ask.add_argument("--data", choices=["digits", "mnist"], default="digits")
    ask.add_argument("--epochs", type=int, default=30)
    ask.add_argument("--seeds", type=int, default=3)
    ask.add_argument("--rate", type=float, default=1e-4)
    ask.add_argument("--torch", action="store_true", help="train in PyTorch as well")
    chosen = ask.parse_args()
    data = choose_digits(chosen.data)
    sides = {"burnbook": ours, **({"PyTorch": theirs} if chosen.torch else {})}
    for name, run in sides.items():
        found = []
        for seed in range(chosen.seeds):
            began = time.perf_counter()
            found.append(run(data, chosen.epochs, 42 + seed, chosen.rate))
            took = time.perf_counter() - began
            sys.stdout.write(
                f"{name} seed {42 + seed}: {found[-1]:.2f} % {took:.0f} s\n"
            )
            sys.stdout.flush()
        mean = statistics.mean(found)
        sys.stdout.write(
            f"{name}: mean {mean:.2f} % of {len(found)} seeds after "
            f"{chosen.epochs} epochs on {data.name}\n"
        )


if __name__ == "__main__":
    main()
