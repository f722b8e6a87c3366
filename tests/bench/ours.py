"""The workloads in burnbook; each function gives a callable that runs it once."""

import os

if os.environ.get("BENCH_NUMPY_FIRST"):
    import numpy  # noqa: F401 - what many notebooks do before they import us

import burnbook  # noqa: F401, I001 - before NumPy
import numpy as np

from burnbook.examples.guide.model import ModelConfig
from burnbook.optim import AdamConfig, GradientsParams
from burnbook.prelude import Autodiff, Int, Numpy, Tensor


def images(device, batch):
    pixels = np.random.default_rng(0).standard_normal((batch, 28, 28))
    return Tensor.from_numpy(pixels.astype(np.float32), device)


def w1(compiled):
    """A training step of the guide's network, batch 64."""
    device = Autodiff(Numpy(compiled=compiled))
    model = ModelConfig(10, 512).init(device)
    optim = AdamConfig().init()
    x = images(device, 64)
    labels = np.random.default_rng(1).integers(0, 10, 64)
    y = Tensor.from_numpy(labels, device)
    assert y.kind is Int

    def step():
        nonlocal model
        item = model.forward_classification(x, y)
        grads = GradientsParams.from_grads(item.loss.backward(), model)
        model = optim.step(1e-4, model, grads)

    return step


def inference(compiled, batch):
    """The guide's network forward."""
    device = Numpy(compiled=compiled)
    model = ModelConfig(10, 512).init(device)
    x = images(device, batch)
    return lambda: model.forward(x)


def w5():
    """999 small ops in a row, and back."""
    device = Autodiff(Numpy())
    w = Tensor.from_numpy(np.eye(8, dtype=np.float32), device).require_grad()
    b = Tensor.full([8, 8], 1e-3, device).require_grad()
    c = Tensor.full([8, 8], 0.999, device).require_grad()
    x0 = Tensor.ones([8, 8], device)

    def step():
        x = x0
        for _ in range(333):
            x = x @ w
            x = x + b
            x = x * c
        x.sum().backward()

    return step
