"""The workloads in burnbook; each function gives a callable that runs it once."""

import functools
import itertools
import os
import tempfile

if os.environ.get("BENCH_NUMPY_FIRST"):
    import numpy  # noqa: F401 - what many notebooks do before they import us

import burnbook  # noqa: F401, I001 - before NumPy
import numpy as np

from burnbook.data import DataLoaderBuilder, MapperDataset
from burnbook.data.dataset.vision.mnist import BytesToImage, LabeledImages
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import Module, Param
from burnbook.nn import (
    BatchNorm,
    BatchNormConfig,
    CrossEntropyLossConfig,
    Linear,
    LinearConfig,
    LstmConfig,
)
from burnbook.nn.conv import Conv2d, Conv2dConfig
from burnbook.nn.transformer import TransformerEncoderConfig, TransformerEncoderInput
from burnbook.optim import AdamConfig, GradientsParams, SgdConfig
from burnbook.nn import PaddingConfig2d
from burnbook.backend import Fusion
from burnbook.prelude import Autodiff, Int, Numpy, Tensor
from burnbook.program import capture, capture_training
from burnbook.program.compiled_training import CompiledTraining
from burnbook.train import LearnerBuilder


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


class Mlp(Module):
    """784-256-256-10 with ReLU."""

    first: Linear
    second: Linear
    third: Linear

    def forward(self, x):
        x = self.first.forward(x).relu()
        return self.third.forward(self.second.forward(x).relu())


def classifier_step(model, shape, device):
    """A training step with Adam and cross entropy on random inputs of ten classes."""
    optim, loss_of = AdamConfig().init(), CrossEntropyLossConfig().init(device)
    rng = np.random.default_rng(0)
    x = Tensor.from_numpy(rng.standard_normal(shape, np.float32), device)
    y = Tensor.from_numpy(rng.integers(0, 10, shape[0]), device)

    def step():
        nonlocal model
        loss = loss_of.forward(model.forward(x), y)
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = optim.step(1e-3, model, grads)

    return step


def w2(compiled, batch):
    """A training step of an MLP."""
    device = Autodiff(Numpy(compiled=compiled))
    return classifier_step(mlp(device), [batch, 784], device)


def mlp(device):
    sizes = [(784, 256), (256, 256), (256, 10)]
    return Mlp(*[LinearConfig(*size).init(device) for size in sizes])


def w3(compiled):
    """A training step of a transformer encoder: d 256, 4 layers, 16 times 128."""
    device = Autodiff(Numpy(compiled=compiled))
    config = TransformerEncoderConfig(256, 1024, 8, 4, norm_first=True, dropout=0.0)
    model, optim = config.init(device), AdamConfig().init()
    values = np.random.default_rng(0).standard_normal((16, 128, 256), np.float32)
    x = Tensor.from_numpy(values, device)

    def step():
        nonlocal model
        out = model.forward(TransformerEncoderInput.new(x))
        loss = (out * out).mean()
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = optim.step(1e-3, model, grads)

    return step


def w4(compiled):
    """An LSTM of 64 inputs and 128 units over 100 steps, batch 32, and back."""
    device = Autodiff(Numpy(compiled=compiled))
    layer = LstmConfig(64, 128, True).init(device)
    values = np.random.default_rng(0).standard_normal((32, 100, 64), np.float32)
    x = Tensor.from_numpy(values, device)

    def step():
        output, _ = layer.forward(x)
        GradientsParams.from_grads(output.sum().backward(), layer)

    return step


class Block(Module):
    """Two convolutions of 3 × 3 around which the input goes; strided, by 1 × 1."""

    conv1: Conv2d
    norm1: BatchNorm
    conv2: Conv2d
    norm2: BatchNorm
    around: Conv2d | None

    @classmethod
    def of(cls, inputs, channels, stride, device):
        around = None
        if stride > 1 or inputs != channels:
            config = Conv2dConfig([inputs, channels], [1, 1])
            around = config.with_stride([stride, stride]).with_bias(False).init(device)
        return cls(
            convolution(inputs, channels, stride, device),
            BatchNormConfig(channels).init(device),
            convolution(channels, channels, 1, device),
            BatchNormConfig(channels).init(device),
            around,
        )

    def forward(self, x):
        out = self.norm1.forward(self.conv1.forward(x)).relu()
        out = self.norm2.forward(self.conv2.forward(out))
        return (out + (x if self.around is None else self.around.forward(x))).relu()


def convolution(inputs, channels, stride, device):
    config = Conv2dConfig([inputs, channels], [3, 3]).with_stride([stride, stride])
    config = config.with_padding(PaddingConfig2d.Explicit(1, 1)).with_bias(False)
    return config.init(device)


class ResNet(Module):
    """Three stages of 16, 32 and 64 channels: eight layers, as for CIFAR-10.

    Source: He and others, "Deep residual learning for image recognition", 2015, with
    one block a stage.
    """

    conv: Conv2d
    norm: BatchNorm
    blocks: list[Block]
    linear: Linear

    def forward(self, x):
        x = self.norm.forward(self.conv.forward(x)).relu()
        for block in self.blocks:
            x = block.forward(x)
        return self.linear.forward(x.mean_dim(3).mean_dim(2).reshape([0, 64]))


def w6(compiled):
    """A training step of a small residual network, 64 images of 3 × 32 × 32."""
    device = Autodiff(Numpy(compiled=compiled))
    return classifier_step(resnet(device), [64, 3, 32, 32], device)


def resnet(device):
    stages = [(16, 16, 1), (16, 32, 2), (32, 64, 2)]
    return ResNet(
        convolution(3, 16, 1, device),
        BatchNormConfig(16).init(device),
        [Block.of(*stage, device) for stage in stages],
        LinearConfig(64, 10).init(device),
    )


def conv(compiled, inputs, channels, size, kernel, stride):
    """One convolution of 64 images, forward and back, as a residual network has it."""
    device = Autodiff(Numpy(compiled=compiled))
    edge = kernel // 2
    config = Conv2dConfig([inputs, channels], [kernel, kernel]).with_bias(False)
    config = config.with_stride([stride, stride])
    layer = config.with_padding(PaddingConfig2d.Explicit(edge, edge)).init(device)
    rng = np.random.default_rng(0)
    shape = (64, inputs, size, size)
    x = Tensor.from_numpy(rng.standard_normal(shape, np.float32), device).require_grad()

    def step():
        GradientsParams.from_grads(layer.forward(x).sum().backward(), layer)

    return step


def inference(compiled, batch):
    """The guide's network forward."""
    device = Numpy(compiled=compiled)
    model = ModelConfig(10, 512).init(device)
    x = images(device, batch)
    return lambda: model.forward(x)


def captured_w1(compiled):
    """W1's step as a captured program, compiled."""
    device = Autodiff(Numpy(compiled=compiled))
    model = ModelConfig(10, 512).init(device)
    x = images(device, 64)
    labels = np.random.default_rng(1).integers(0, 10, 64)
    y = Tensor.from_numpy(labels, device)

    def loss(model, x, y):
        return model.forward_classification(x, y).loss

    training = capture_training(model, loss, AdamConfig().init(), x, y)
    return functools.partial(CompiledTraining(training).step, 1e-4, x, y)


def captured_classifier(model, shape, device):
    """The step of `classifier_step` as a captured program, compiled."""
    loss_of = CrossEntropyLossConfig().init(device)
    rng = np.random.default_rng(0)
    x = Tensor.from_numpy(rng.standard_normal(shape, np.float32), device)
    y = Tensor.from_numpy(rng.integers(0, 10, shape[0]), device)

    def loss(model, x, y):
        return loss_of.forward(model.forward(x), y)

    training = capture_training(model, loss, AdamConfig().init(), x, y)
    return functools.partial(CompiledTraining(training).step, 1e-3, x, y)


def captured_w2(compiled, batch):
    """W2's step as a captured program, compiled."""
    device = Autodiff(Numpy(compiled=compiled))
    return captured_classifier(mlp(device), [batch, 784], device)


def captured_w3(compiled):
    """W3's step as a captured program, compiled."""
    device = Autodiff(Numpy(compiled=compiled))
    config = TransformerEncoderConfig(256, 1024, 8, 4, norm_first=True, dropout=0.0)
    values = np.random.default_rng(0).standard_normal((16, 128, 256), np.float32)
    x = Tensor.from_numpy(values, device)

    def loss(model, x):
        out = model.forward(TransformerEncoderInput.new(x))
        return (out * out).mean()

    training = capture_training(config.init(device), loss, AdamConfig().init(), x)
    return functools.partial(CompiledTraining(training).step, 1e-3, x)


def captured_w4(compiled):
    """W4 as a captured program, compiled; with a step of SGD, which W4 has not."""
    device = Autodiff(Numpy(compiled=compiled))
    values = np.random.default_rng(0).standard_normal((32, 100, 64), np.float32)
    x = Tensor.from_numpy(values, device)
    layer = LstmConfig(64, 128, True).init(device)

    def loss(layer, x):
        output, _ = layer.forward(x)
        return output.sum()

    training = capture_training(layer, loss, SgdConfig().init(), x)
    return functools.partial(CompiledTraining(training).step, 0.0, x)


def captured_w6(compiled):
    """W6's step as a captured program, compiled."""
    device = Autodiff(Numpy(compiled=compiled))
    return captured_classifier(resnet(device), [64, 3, 32, 32], device)


def captured_inference(compiled, batch):
    """The same as a captured program, compiled."""
    device = Numpy(compiled=compiled)
    model = ModelConfig(10, 512).init(device)
    x = images(device, batch)
    return functools.partial(capture(model, x).compile(), x)


def elementwise(captured):
    """Five cheap ops on a million elements; as a compiled program or not."""
    device = Numpy(compiled=True)
    values = np.random.default_rng(0).standard_normal((1000, 1000), np.float32)
    x = Tensor.from_numpy(values, device)

    def chain(x):
        return ((x * 2.0 + 1.0) * x - 3.0).abs()

    chain = capture(chain, x).compile() if captured else chain
    return functools.partial(chain, x)


def wide_convolution(captured):
    """64 images of 28 × 28 with 64 channels, 3 × 3; as a compiled program or not."""
    device = Numpy(compiled=True)
    values = np.random.default_rng(0).standard_normal((64, 64, 28, 28), np.float32)
    x = Tensor.from_numpy(values, device)
    layer = Conv2dConfig([64, 64], [3, 3]).init(device)
    return functools.partial(capture(layer, x).compile() if captured else layer, x)


def w5_forward(captured):
    """999 small ops in a row, without gradients; as a compiled program or not."""
    device = Numpy()
    w = Tensor.from_numpy(np.eye(8, dtype=np.float32), device)
    b = Tensor.full([8, 8], 1e-3, device)
    c = Tensor.full([8, 8], 0.999, device)
    x0 = Tensor.ones([8, 8], device)

    def chain(x):
        for _ in range(333):
            x = (x @ w + b) * c
        return x

    if captured:
        return functools.partial(capture(chain, x0, batch=None).compile(), x0)
    return lambda: chain(x0)


def fused_device(fused, compiled):
    return Fusion(Numpy(compiled=compiled)) if fused else Numpy(compiled=compiled)


def fused_chain(fused, compiled, size, tanh=True):
    """28 elementwise ops on fresh inputs, of which one result is read.

    tanh: four of them are; else they are relu, and the chain is arithmetic only.
    """
    device = fused_device(fused, compiled)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, size)).astype(np.float32) for _ in range(3)]
    tensors = [[Tensor.from_numpy(row, device) for row in a] for a in arrays]
    turns = itertools.cycle(tensors)

    def step():
        x, y = next(turns)
        for _ in range(4):
            z = (x * 0.9 + y) * x - y * 0.5
            x = (z + 0.1).tanh() if tanh else (z * 0.1).relu()
        return x.to_data()

    return step


def fused_classifier(make, rate, fused, compiled):
    """A training step that reads its loss, on Fusion or without."""
    device = Autodiff(fused_device(fused, compiled))
    model, loss_of = make(device)
    optim = AdamConfig().init()

    def step():
        nonlocal model
        loss = loss_of(model)
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = optim.step(rate, model, grads)
        return loss.into_scalar()

    return step


def fused_w1(fused, compiled):
    """W1's step, which reads its loss."""

    def make(device):
        x = images(device, 64)
        labels = np.random.default_rng(1).integers(0, 10, 64)
        y = Tensor.from_numpy(labels, device)
        model = ModelConfig(10, 512).init(device)
        return model, lambda model: model.forward_classification(x, y).loss

    return fused_classifier(make, 1e-4, fused, compiled)


def fused_w2(fused, compiled, batch):
    """W2's step, which reads its loss."""

    def make(device):
        loss_of = CrossEntropyLossConfig().init(device)
        rng = np.random.default_rng(0)
        x = Tensor.from_numpy(rng.standard_normal((batch, 784), np.float32), device)
        y = Tensor.from_numpy(rng.integers(0, 10, batch), device)
        return mlp(device), lambda model: loss_of.forward(model.forward(x), y)

    return fused_classifier(make, 1e-3, fused, compiled)


def fused_inference(fused, compiled, batch):
    """The guide's network forward, read each time."""
    device = fused_device(fused, compiled)
    model = ModelConfig(10, 512).init(device)
    turns = itertools.cycle([images(device, batch), images(device, batch)])
    return lambda: model.forward(next(turns)).to_data()


def fused_small(fused):
    """999 small ops in a row, without gradients."""
    device = fused_device(fused, None)
    w = Tensor.from_numpy(np.eye(8, dtype=np.float32), device)
    b = Tensor.full([8, 8], 1e-3, device)
    c = Tensor.full([8, 8], 0.999, device)
    x0 = Tensor.ones([8, 8], device)

    def step():
        x = x0
        for _ in range(333):
            x = (x @ w + b) * c
        return x.to_data()

    return step


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


class Chain(Module):
    """What W5 computes with."""

    w: Param
    b: Param
    c: Param

    @classmethod
    def of(cls, device):
        arrays = np.eye(8), np.full((8, 8), 1e-3), np.full((8, 8), 0.999)
        tensors = [Tensor.from_numpy(a.astype(np.float32), device) for a in arrays]
        return cls(*map(Param.from_tensor, tensors))

    def forward(self, x):
        w, b, c = self.w.val(), self.b.val(), self.c.val()
        for _ in range(333):
            x = (x @ w + b) * c
        return x


def captured_w5():
    """W5 as a captured program, compiled; with a step of SGD, which W5 has not."""
    device = Autodiff(Numpy())
    x = Tensor.ones([8, 8], device)

    def loss(model, x):
        return model.forward(x).sum()

    given = Chain.of(device), loss, SgdConfig().init(), x
    training = capture_training(*given, batch=None)
    return functools.partial(CompiledTraining(training).step, 0.0, x)


def digits(count=6400):
    """As many raw digits as asked, mapped to items when they are taken."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (count, 28, 28), np.uint8)
    labels = rng.integers(0, 10, count)
    return MapperDataset(LabeledImages(pixels, labels), BytesToImage())


def loader(device, workers=0):
    """What the guide's batches come from."""
    made = DataLoaderBuilder(MnistBatcher()).batch_size(64).shuffle(42)
    made = made.num_workers(workers).set_device(device)
    return made.build(digits())


def load_batches(workers):
    """Only take the batches of an epoch of 100; gives the time of one."""
    batches = loader(Autodiff(Numpy()), workers)

    def step():
        for _ in batches:
            pass

    return step


def bare_loop():
    """An epoch of 100 batches without a learner."""
    device = Autodiff(Numpy())
    model = ModelConfig(10, 512).init(device)
    optim = AdamConfig().init()
    batches = loader(device)

    def step():
        nonlocal model
        for batch in batches:
            out = model.train_step(batch)
            model = optim.step(1e-4, model, out.grads)

    return step


def learner_loop():
    """The same epoch by a learner without metrics, logs and checkpoints."""
    device = Autodiff(Numpy())
    model, optim = ModelConfig(10, 512).init(device), AdamConfig().init()
    batches, none = loader(device), DataLoaderBuilder(MnistBatcher()).batch_size(64)
    one = none.set_device(device.inner).build(digits(1))
    folder = tempfile.mkdtemp()

    def step():
        nonlocal model
        made = LearnerBuilder(folder).devices([device]).num_epochs(1)
        model = made.build(model, optim, 1e-4).fit(batches, one)

    return step
