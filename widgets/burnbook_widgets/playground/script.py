"""A small network that learns to separate two classes of points on a plane.

The playground trains with what is in this file, and `playground.code()` is this file
with the settings of the moment: run it, and it trains to the same numbers.
"""

from itertools import pairwise

import numpy as np

from burnbook import optim
from burnbook.backend import Autodiff, Numpy
from burnbook.config import Config
from burnbook.core.errors import ConfigError
from burnbook.core.rng import Stream, use_stream
from burnbook.module import Module
from burnbook.nn import CrossEntropyLossConfig, Linear, LinearConfig
from burnbook.optim import GradientsParams
from burnbook.tensor import Int, Tensor, activation

ACTIVATIONS = {
    "relu": activation.relu,
    "tanh": activation.tanh,
    "sigmoid": activation.sigmoid,
    "gelu": activation.gelu,
}
OPTIMIZERS = {
    "sgd": optim.SgdConfig(),
    "momentum": optim.SgdConfig().with_momentum(optim.MomentumConfig()),
    "rmsprop": optim.RmsPropConfig(),
    "adam": optim.AdamConfig(),
    "adamw": optim.AdamWConfig(),
}
DATA = ("moons", "circles", "spiral", "xor")
DEVICE = Autodiff(Numpy(compiled=False))  # for so few numbers, plain is fast enough


class PlaygroundConfig(Config):
    """Everything that decides how a training goes."""

    data: str = "moons"
    points: int = 300
    noise: float = 0.1
    hidden: list[int] = [8, 8]  # noqa: RUF012 - Config copies it
    activation: str = "tanh"
    optimizer: str = "adam"
    learning_rate: float = 0.02
    batch_size: int = 32
    seed: int = 0

    def validate(self) -> None:
        """Refuse what has no meaning here."""
        choices = {"data": DATA, "activation": ACTIVATIONS, "optimizer": OPTIMIZERS}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                what = f"{name} is {getattr(self, name)!r}"
                raise ConfigError("PlaygroundConfig", what, cure=", ".join(known))
        ranges = {"points": (20, 2000), "noise": (0.0, 1.0), "batch_size": (1, 2000)}
        ranges |= {"learning_rate": (0.0, 10.0), "seed": (0, 2**31)}
        for name, (low, high) in ranges.items():
            if not low <= getattr(self, name) <= high:
                what = f"{name} is {getattr(self, name)}, not in [{low}, {high}]"
                nearest = low if getattr(self, name) < low else high
                raise ConfigError("PlaygroundConfig", what, cure=f"{name}={nearest}")
        if len(self.hidden) > 6 or not all(1 <= width <= 64 for width in self.hidden):
            what = f"hidden is {self.hidden}"
            cure = "up to 6 layers of 1 to 64, such as [8, 8]"
            raise ConfigError("PlaygroundConfig", what, cure=cure)


def make_points(config: PlaygroundConfig) -> tuple[np.ndarray, np.ndarray]:
    """Points and their classes, as many of one as of the other.

    Shapes: -> points [n, 2], classes [n]
    """
    rng = np.random.default_rng(config.seed)
    count = config.points
    label = np.arange(count) % 2
    at = rng.random(count)
    if config.data == "moons":
        x = np.where(label, 1 - np.cos(np.pi * at), np.cos(np.pi * at))
        y = np.where(label, 0.5 - np.sin(np.pi * at), np.sin(np.pi * at))
        x, y = x - 0.5, y - 0.25
    elif config.data == "circles":
        radius = np.where(label, 0.5, 1.1)
        x, y = radius * np.cos(2 * np.pi * at), radius * np.sin(2 * np.pi * at)
    elif config.data == "spiral":
        turn, radius = 6.5 * at + np.pi * label, 0.15 + 1.35 * at
        x, y = radius * np.cos(turn), radius * np.sin(turn)
    else:
        x, y = 1.2 * at, 1.2 * rng.random(count)
        corner = rng.integers(0, 2, count)
        x = np.where(corner, x, -x)
        y = np.where(corner ^ label, y, -y)
    bell = (rng.random((count, 2, 6)).sum(axis=2) - 3) * np.sqrt(2)  # spread about 1
    points = np.stack([x, y], axis=1) + config.noise * bell
    return points.astype(np.float32), label.astype(np.int64)


class Net(Module):
    """Layers with an activation between them: point -> a score for each class."""

    layers: list[Linear]
    activation: str

    def forward(self, x: Tensor) -> Tensor:
        """Shapes: x [n, 2] -> [n, 2]."""
        *hidden, last = self.layers
        for layer in hidden:
            x = ACTIVATIONS[self.activation](layer.forward(x))
        return last.forward(x)


class Training:
    """Network, optimizer and points; each `step()` is one epoch."""

    def __init__(self, config: PlaygroundConfig):
        self.config = config
        self.points, self.labels = make_points(config)
        self.for_test = np.arange(config.points) % 10 >= 7
        sizes = [2, *config.hidden, 2]
        with use_stream(Stream(config.seed)):  # and burnbook.seed stays as it is
            layers = [
                LinearConfig(d_in, d_out).init(DEVICE)
                for d_in, d_out in pairwise(sizes)
            ]
            for layer in layers:
                layer.weight.val()
        self.net = Net(layers, config.activation)
        self.optimizer = OPTIMIZERS[config.optimizer].init()
        self.loss = CrossEntropyLossConfig().init(DEVICE)
        self.epochs = 0
        self.losses = [(self.measure(False)[0], self.measure(True)[0])]

    def step(self) -> None:
        """One epoch over the points that are not for the test, in a new order."""
        config = self.config
        order = np.flatnonzero(~self.for_test)
        np.random.default_rng([config.seed, self.epochs]).shuffle(order)
        for start in range(0, len(order), config.batch_size):
            batch = order[start : start + config.batch_size]
            x = Tensor.from_numpy(self.points[batch], DEVICE)
            targets = Tensor[1, Int].from_numpy(self.labels[batch], DEVICE)
            loss = self.loss.forward(self.net.forward(x), targets)
            grads = GradientsParams.from_grads(loss.backward(), self.net)
            self.net = self.optimizer.step(config.learning_rate, self.net, grads)
        self.epochs += 1
        self.losses.append((self.measure(False)[0], self.measure(True)[0]))

    def chances(self, points: np.ndarray) -> np.ndarray:
        """The chance of the second class at each point."""
        x = Tensor.from_numpy(points.astype(np.float32), DEVICE.inner)
        return np.asarray(self.net.valid().forward(x).softmax(1))[:, 1]

    def measure(self, test: bool) -> tuple[float, float]:
        """Loss and accuracy, of the points for the test or of the others."""
        chosen = self.for_test if test else ~self.for_test
        right = self.labels[chosen].astype(float)
        found = self.chances(self.points[chosen]).astype(float)
        sure = np.clip(np.where(right, found, 1 - found), 1e-12, 1)
        return float(-np.log(sure).mean()), float(((found > 0.5) == right).mean())


CONFIG = PlaygroundConfig()
EPOCHS = 100

if __name__ == "__main__":
    training = Training(CONFIG)
    for _ in range(EPOCHS):
        training.step()
    for name, test in (("train", False), ("test", True)):
        loss, accuracy = training.measure(test)
        print(f"{name:5}  loss {loss:.6f}  accuracy {accuracy:.4f}")
