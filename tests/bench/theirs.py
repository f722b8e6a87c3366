"""The same workloads in PyTorch and ONNX Runtime."""

import os

import numpy as np


def _torch():
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)
    return torch


def guide(torch, pool):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3)
            self.pool = nn.AvgPool2d(3) if pool == "plain" else nn.AdaptiveAvgPool2d(8)
            self.linear1, self.linear2 = nn.Linear(1024, 512), nn.Linear(512, 10)
            self.dropout = nn.Dropout(0.5)

        def forward(self, x):
            x = self.dropout(self.conv1(x))
            x = torch.relu(self.dropout(self.conv2(x)))
            x = self.pool(x).flatten(1)
            return self.linear2(torch.relu(self.dropout(self.linear1(x))))

    return Net()


def w1(variant):
    torch = _torch()
    model = guide(torch, "plain" if variant == "avgpool" else "adaptive")
    x, y = torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
    if variant == "channels-last":
        model = model.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    fused = True if variant != "eager" else None
    optim = torch.optim.Adam(model.parameters(), 1e-4, fused=fused)

    def loss_of(x, y):
        return torch.nn.functional.cross_entropy(model(x), y)

    forward = torch.compile(loss_of) if variant == "compile" else loss_of

    def step():
        optim.zero_grad()
        forward(x, y).backward()
        optim.step()

    return step


def w2(variant, batch):
    torch = _torch()
    nn = torch.nn
    model = nn.Sequential(
        *(nn.Linear(784, 256), nn.ReLU()),
        *(nn.Linear(256, 256), nn.ReLU()),
        nn.Linear(256, 10),
    )
    x, y = torch.randn(batch, 784), torch.randint(0, 10, (batch,))

    def loss_of(x):
        return nn.functional.cross_entropy(model(x), y)

    return _training(torch, variant, model, loss_of, x)


def w3(variant):
    torch = _torch()
    layer = torch.nn.TransformerEncoderLayer(
        *(256, 8, 1024),
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=True,
    )
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    x = torch.randn(16, 128, 256)

    def loss_of(x):
        return (model(x) ** 2).mean()

    return _training(torch, variant, model, loss_of, x)


def _training(torch, variant, model, loss_of, x):
    """A step with Adam; the variants other than eager have its fused form."""
    fused = True if variant != "eager" else None
    optim = torch.optim.Adam(model.parameters(), 1e-3, fused=fused)
    forward = torch.compile(loss_of) if variant == "compile" else loss_of

    def step():
        optim.zero_grad()
        forward(x).backward()
        optim.step()

    return step


def w4(variant):
    torch = _torch()
    first = variant != "sequence first"
    layer = torch.nn.LSTM(64, 128, batch_first=first)
    x = torch.randn((32, 100, 64) if first else (100, 32, 64))
    read = torch.compile(layer) if variant == "compile" else layer

    def step():
        layer.zero_grad()
        read(x)[0].sum().backward()

    return step


def resnet(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inputs, channels, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(channels)
            self.around = nn.Identity()
            if stride > 1 or inputs != channels:
                self.around = nn.Conv2d(inputs, channels, 1, stride, bias=False)

        def forward(self, x):
            out = torch.relu(self.norm1(self.conv1(x)))
            return torch.relu(self.norm2(self.conv2(out)) + self.around(x))

    class Mean(nn.Module):
        def forward(self, x):
            return x.mean((2, 3))

    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
        *(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2)),
        *(Mean(), nn.Linear(64, 10)),
    )


def w6(variant):
    torch = _torch()
    model = resnet(torch)
    x, y = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))
    if variant == "channels-last":
        model = model.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)

    def loss_of(x):
        return torch.nn.functional.cross_entropy(model(x), y)

    return _training(torch, variant, model, loss_of, x)


def conv(inputs, channels, size, kernel, stride):
    torch = _torch()
    edge = kernel // 2
    layer = torch.nn.Conv2d(inputs, channels, kernel, stride, edge, bias=False)
    x = torch.randn(64, inputs, size, size).requires_grad_()

    def step():
        layer.weight.grad = x.grad = None
        layer(x).sum().backward()

    return step


def inference(variant, batch):
    torch = _torch()
    model = guide(torch, "plain" if variant == "avgpool" else "adaptive").eval()
    x = torch.randn(batch, 1, 28, 28)
    if variant == "channels-last":
        model = model.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    forward = torch.compile(model) if variant == "compile" else model

    def step():
        with torch.inference_mode():
            forward(x)

    return step


def w5():
    torch = _torch()
    w = torch.eye(8).requires_grad_()
    b = torch.full((8, 8), 1e-3).requires_grad_()
    c = torch.full((8, 8), 0.999).requires_grad_()
    x0 = torch.ones(8, 8)

    def step():
        x = x0
        for _ in range(333):
            x = x @ w
            x = x + b
            x = x * c
        x.sum().backward()

    return step


def onnx_inference(batch):
    """The network as an ONNX graph with random weights, on the cores we may use.

    Left alone, ONNX Runtime counts all cores, and puts a thread on each.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession(_graph(batch), options)
    x = np.random.default_rng(0).standard_normal((batch, 1, 28, 28), np.float32)
    return lambda: session.run(None, {"x": x})


def _graph(batch):
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    shapes = {
        "w1": (8, 1, 3, 3),
        "b1": (8,),
        "w2": (16, 8, 3, 3),
        "b2": (16,),
        "w3": (1024, 512),
        "b3": (512,),
        "w4": (512, 10),
        "b4": (10,),
    }
    weights = [
        numpy_helper.from_array(rng.standard_normal(shape, np.float32) * 0.1, name)
        for name, shape in shapes.items()
    ]
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"]),
        node("Conv", ["c1", "w2", "b2"], ["c2"]),
        node("Relu", ["c2"], ["r2"]),
        node("AveragePool", ["r2"], ["p"], kernel_shape=[3, 3], strides=[3, 3]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "w3", "b3"], ["h"]),
        node("Relu", ["h"], ["r"]),
        node("Gemm", ["r", "w4", "b4"], ["out"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 1, 28, 28])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [batch, 10])
    graph = helper.make_graph(nodes, "guide", [x], [out], weights)
    opset = [helper.make_opsetid("", 13)]
    return helper.make_model(
        graph, opset_imports=opset, ir_version=8
    ).SerializeToString()
