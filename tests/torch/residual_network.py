"""The residual network of the example page, beside the same one in PyTorch.

    python -m tests.torch.residual_network [seeds]

Both start from the same weights, and see the same batches, mixed in the same shares:
what differs at the end comes from rounding, or from a rule that is not the same. It
prints the accuracy of the averaged weights, and the seconds of an epoch.
"""

import copy
import shutil
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

import burnbook
from burnbook.backend import Numpy
from burnbook.data import DataLoaderBuilder, DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.lr_scheduler import OneCycleLrSchedulerConfig
from burnbook.optim import AdamWConfig
from burnbook.train import AccuracyMetric, Ema, LearnerBuilder, LossMetric
from tests.torch.shared import torch

PAGE = Path(__file__).parents[2] / "notebooks/src/examples/residual_network.py"
SIZES = (8, 8, 16, 32)
RATE, DECAY, EPOCHS, BATCH = 1e-2, 0.95, 6, 64


def page():
    """What the cells of the page define, up to its training."""
    names = {"__name__": "residual_network"}
    code = PAGE.read_text("utf-8").partition("# ## Train")[0]
    code = "\n".join(line for line in code.splitlines() if "rmtree" not in line)
    exec(compile(code, str(PAGE), "exec"), names)
    return names


def network(names):
    """The network of the page with new weights."""
    nn, block, device = names["nn"], names["Block"], names["device"]
    return names["ResidualNetwork"](
        stem=names["conv"]([1, SIZES[0]], 3),
        blocks=[block.new(before, after) for before, after in pairwise(SIZES)],
        head=nn.LinearConfig(SIZES[-1], 10).init(device),
    )


def loaders(device, seed):
    """The digits in the order that the seed gives, and those to test with."""
    made = DataLoaderBuilder(MnistBatcher(device)).batch_size(BATCH)
    train = made.shuffle(seed).build(DigitsDataset.train())
    return train, made.build(DigitsDataset.test())


def ours(names, model, seed):
    """Accuracy in percent, and the seconds of each epoch."""
    names["draw"] = np.random.default_rng(seed)
    train, test = loaders(names["device"], seed)
    schedule = OneCycleLrSchedulerConfig(RATE, EPOCHS * len(train))
    folder, times = tempfile.mkdtemp(), [time.perf_counter()]
    learner = (
        LearnerBuilder(folder)
        .renderer(None)
        .metrics([AccuracyMetric(), LossMetric()])
        .callback(Ema(DECAY))
        .callback(lambda state: times.append(time.perf_counter()))
        .num_epochs(EPOCHS)
        .build(model, AdamWConfig().init(), schedule.init())
    )
    learner.fit(train, test)
    shutil.rmtree(folder, ignore_errors=True)
    return learner.result.history.last("valid")["Accuracy"], np.diff(times)


def network_of_pytorch(model):
    """The network in PyTorch, with the weights of ours."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, before, after):
            super().__init__()
            stride = 1 if before == after else 2
            self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.first_norm = nn.BatchNorm2d(after)
            self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.second_norm = nn.BatchNorm2d(after)
            self.around = nn.Identity()
            if stride == 2:
                self.around = nn.Conv2d(before, after, 1, stride, bias=False)

        def forward(self, x):
            kept = self.around(x)
            x = torch.relu(self.first_norm(self.first(x)))
            return torch.relu(self.second_norm(self.second(x)) + kept)

    class ResidualNetwork(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(1, SIZES[0], 3, padding=1, bias=False)
            self.blocks = nn.ModuleList(Block(*pair) for pair in pairwise(SIZES))
            self.head = nn.Linear(SIZES[-1], 10)

        def forward(self, images):
            x = torch.relu(self.stem(images[:, None]))
            for block in self.blocks:
                x = block(x)
            return self.head(x.mean((2, 3)))

    made = ResidualNetwork()
    found = {path: np.array(param.val()) for path, param in model.named_params()}
    for path, tensor in made.state_dict().items():
        if not path.endswith("num_batches_tracked"):
            words = {"weight": "gamma", "bias": "beta"} if "norm" in path else {}
            home, _, last = path.rpartition(".")
            array = found.pop(f"{home}.{words.get(last, last)}")
            turned = array.T if path == "head.weight" else array
            tensor.copy_(torch.tensor(np.ascontiguousarray(turned)))
    assert not found, f"not taken over: {list(found)}"
    return made


def mixed(draw, images, answers):
    """The images and answers of a batch, mixed as on the page."""
    share = draw.beta(0.4, 0.4)
    order = torch.from_numpy(draw.permutation(len(images)))
    images = images * share + images[order] * (1 - share)
    return images, answers * share + answers[order] * (1 - share)


def batches(loader):
    """Images and targets of each batch, as tensors of PyTorch."""
    for batch in loader:
        images, targets = np.array(batch.images), np.array(batch.targets)
        yield torch.from_numpy(images), torch.from_numpy(targets).long()


def theirs(model, seed):
    """Accuracy in percent, and the seconds of each epoch."""
    draw, average, times = np.random.default_rng(seed), None, []
    train, test = loaders(Numpy(), seed)
    optim = torch.optim.AdamW(model.parameters(), RATE, eps=1e-5, weight_decay=1e-4)
    one_cycle = torch.optim.lr_scheduler.OneCycleLR
    schedule = one_cycle(optim, RATE, EPOCHS * len(train), cycle_momentum=False)
    for _ in range(EPOCHS):
        start = time.perf_counter()
        model.train()
        for images, targets in batches(train):
            images, wanted = mixed(draw, images, torch.eye(10)[targets])
            optim.zero_grad()
            torch.nn.functional.cross_entropy(model(images), wanted).backward()
            optim.step()
            schedule.step()
            average = followed(average, model)
        share = accuracy(average, test)
        times.append(time.perf_counter() - start)
    return share, np.array(times)


def followed(average, model):
    """The moving average with one more step; statistics are those of the model."""
    if average is None:
        return copy.deepcopy(model)
    with torch.no_grad():
        for old, new in zip(average.parameters(), model.parameters(), strict=True):
            old.mul_(DECAY).add_(new, alpha=1.0 - DECAY)
        for old, new in zip(average.buffers(), model.buffers(), strict=True):
            old.copy_(new)
    return average


def accuracy(model, loader):
    """How many are right, in percent."""
    model.eval()
    with torch.no_grad():
        right = [model(x).argmax(1) == y for x, y in batches(loader)]
    return 100.0 * torch.cat(right).float().mean().item()


def beside(seed):
    """What both reach from the weights and the batches of one seed."""
    names = page()
    burnbook.seed(seed)
    model = network(names)
    twin = network_of_pytorch(model)
    return ours(names, model, seed), theirs(twin, seed)


def main(count):
    """Print a line for each seed, and what they give together."""
    rows = []
    for seed in range(count):
        rows.append(beside(seed))
        (mine, my_times), (other, other_times) = rows[-1]
        ratio = np.median(my_times) / np.median(other_times)
        print(
            f"seed {seed}: burnbook {mine:.2f} % in {np.median(my_times):.2f} s an "
            f"epoch, PyTorch {other:.2f} % in {np.median(other_times):.2f} s: "
            f"{ratio:.2f}",
            flush=True,
        )
    for name, at in (("burnbook", 0), ("PyTorch", 1)):
        found = [row[at][0] for row in rows]
        print(
            f"{name}: mean {np.mean(found):.2f} %, {min(found):.2f} to {max(found):.2f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
