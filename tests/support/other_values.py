"""What the code in the tables of names speaks of: here, in PyTorch and in NumPy."""

import copy
import os
import re

import numpy as np

import burnbook
from burnbook import data, lr_scheduler, nn, optim, record, train
from burnbook.core.other_names import tables
from burnbook.exporters import to_pytorch
from burnbook.module import ModuleMapper
from burnbook.prelude import Autodiff, Module, Numpy, Param, Tensor, TensorData
from tests.support.torch_weights import copy_into
from tests.torch.shared import torch


class Net(Module):
    fc1: nn.Linear

    def forward(self, x):
        return self.fc1.forward(x)

    def train_step(self, batch):
        loss = self.forward(batch).sum()
        return train.TrainOutput(self, loss.backward(), loss)

    def valid_step(self, batch):
        out = self.forward(batch)
        return train.RegressionOutput(out.sum(), out, out)


class Double(ModuleMapper):
    def map_float(self, number, tensor):
        return tensor

    def __call__(self, item):  # of a dataset
        return item


class Times:
    def map(self, item):
        return item * 2


class Rows:
    def batch(self, items, device):
        return Tensor.ones([len(items), 3], device)


def our_values():
    """Every name that our code may use, with a value."""
    device, outer = Numpy(), Autodiff(Numpy())
    known = {"np": np, "burnbook": burnbook, "nn": nn, "device": device}
    exec("from burnbook.prelude import *", known)
    for line in tables()["imports"].values():
        exec(line.code, known)
    for line in tables()["homes"].values():
        exec(line.code, known)
    burnbook.seed(0)
    rng = np.random.default_rng(0)
    draw = lambda *shape: Tensor.from_floats(rng.random(shape) + 0.1, device)  # noqa: E731
    model = Net(fc1=nn.LinearConfig(3, 2).init(outer))
    weight = Tensor.ones([3, 2], outer).require_grad()
    loss = (Tensor.ones([2, 3], outer) @ weight).sum()
    gradients = loss.backward()
    lost = model.forward(Tensor.ones([2, 3], outer)).sum()
    known |= {
        "x": draw(2, 3),
        "y": draw(2, 3),
        "m": draw(3, 3) + Tensor.eye(3, device),
        "v": draw(3),
        "b": draw(1, 2),
        "n": Tensor.from_ints([[0, 1, 0], [1, 0, 1]], device),
        "index": Tensor.from_ints([0, 1], device),
        "mask": Tensor.from_bool([[True, False, True], [False, True, False]], device),
        "image": draw(1, 1, 4, 4),
        "kernel": draw(1, 1, 3, 3),
        "Net": Net,
        "model": model,
        "mapper": Double(),
        "loss": (Tensor.ones([2, 3], outer) @ weight).sum(),
        "weight": weight,
        "param": Param.from_tensor(Tensor.ones([1], outer)),
        "gradients": gradients,
        "grads": optim.GradientsParams.from_grads(lost.backward(), model),
        "optim": optim.AdamConfig().init(),
        "lbfgs": optim.LBFGSConfig(max_iter=2).init(),
        "closure": closure,
        "scheduler": lr_scheduler.LinearLrSchedulerConfig(1e-3, 1e-4, 10).init(),
        "config": nn.LinearConfig(3, 2),
        "record": nn.LinearConfig(3, 2).init(device).into_record(),
        "data": TensorData([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        "dataset": data.InMemDataset([1, 2, 3, 4, 5]),
        "batcher": Rows(),
        "a": draw(2, 3).to_device(outer),
        "w": draw(3, 2).to_device(outer).require_grad(),
        "labels": Tensor.from_ints([0, 1], outer),
    }
    builder = data.DataLoaderBuilder(Rows()).batch_size(2)
    known["loader"] = builder.build(known["dataset"])
    return known


def closure(model):
    """Loss and gradients of a network, as L-BFGS asks for them."""
    x = Tensor.ones([2, 3], Autodiff(Numpy()))
    loss = (model.forward(x) - 1.0).square().sum()
    return loss, optim.GradientsParams.from_grads(loss.backward(), model)


def save_all(made, folder):
    """The files that the code loads, in a folder."""
    recorder = record.NamedMpkFileRecorder()
    made["model"].save_file(folder / "saved", recorder)
    made["model"].save_file(folder / "half", record.CompactRecorder())
    to_pytorch(made["model"], folder / "net.pt")
    recorder.record(made["optim"].into_record(), folder / "states")
    recorder.record(made["lbfgs"].into_record(), folder / "curvature")
    made["config"].save(folder / "config.json")
    theirs = {}
    for path, param in made["model"].named_params():  # as PyTorch has them
        value = np.asarray(param.val())
        theirs[path] = TensorData(value.T.copy() if value.ndim == 2 else value)
    metadata = {"format": "pt"}
    record.SafetensorsRecorder(metadata=metadata).record(theirs, folder / "theirs")
    weights = str(folder / "theirs.safetensors")
    made["model"].save_file(folder / "own", record.SafetensorsRecorder())
    return {
        **made,
        "path": str(folder / "saved"),
        "half": str(folder / "half"),
        "weights": weights,
        "torch_file": str(folder / "net.pt"),
        "safetensors_file": weights,
        "record_of_model": made["model"].into_record(),
        "states": made["optim"].into_record(),
        "curvature": made["lbfgs"].into_record(),
        "progress": made["scheduler"].into_record(),
    }


def fresh(names, section, code):
    """What the code of a section changes or uses up."""
    outer = Autodiff(Numpy())
    x = Tensor.ones([2, 3], outer)
    own = {"loss": (x @ names["weight"]).sum()}
    if "model" in code or section == "Learner":
        own |= {"x": x}
    trains = re.search(NEEDS_TRAINING, code) or "learner." in code
    if section in ("Learner", "LearnerBuilder") or trains:
        own |= training(names)
    if section == "Optimizer":
        own |= {"path": "states"}
        loss = names["model"].forward(x).sum()
        found = optim.GradientsParams.from_grads(loss.backward(), names["model"])
        own |= {"grads": found}
    if section == "LBFGS":
        own |= {"path": "curvature"}
    if section == "Config":
        own |= {"path": "config.json"}
    return own


NEEDS_TRAINING = r"fit\(|builder|EvaluatorBuilder|\bvalid\b"


def training(names):
    outer = Autodiff(Numpy())
    loader = data.DataLoaderBuilder(Rows()).batch_size(2).set_device(outer)
    train_data = loader.build(names["dataset"])
    valid_data = loader.set_device(Numpy()).build(names["dataset"])
    builder = train.LearnerBuilder("runs").num_epochs(1).renderer(None)
    stopping = train.MetricEarlyStoppingStrategy(
        train.LossMetric(),
        train.Aggregate.Mean,
        train.Direction.Lowest,
        train.Split.Valid,
        train.StoppingCondition.NoImprovementSince(1),
    )
    made = train.LearnerBuilder("runs").num_epochs(1).renderer(None)
    learner = made.build(names["model"], names["optim"], 1e-3)
    return {
        "train": train_data,
        "valid": valid_data,
        "builder": builder,
        "learner": learner,
        "stopping": stopping,
    }


def numpy_values(ours):
    """The same for NumPy."""
    arrays = {name: np.array(ours[name]) for name in PLAIN}
    return {**arrays, "np": np, "path": "array.npz"}


PLAIN = ("x", "y", "m", "v", "b", "n", "index", "mask", "image", "kernel")


def torch_values(ours):
    """The same for PyTorch: equal numbers, and a network with equal weights."""
    plain = {name: torch.from_numpy(np.array(ours[name])) for name in PLAIN}
    model = torch.nn.Sequential()
    model.fc1 = copy_into(torch.nn.Linear(3, 2), ours["model"].fc1)
    weight = torch.ones(3, 2, requires_grad=True)
    torch.save(model.state_dict(), "torch.pt")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-5)
    dataset = [1, 2, 3, 4, 5]
    utils = torch.utils.data
    return {
        **plain,
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "np": np,
        "copy": copy,
        "a": torch.from_numpy(np.array(ours["a"])),
        "w": torch.tensor(np.array(ours["w"]), requires_grad=True),
        "labels": torch.from_numpy(np.array(ours["labels"])),
        "device": torch.device("cpu"),
        "model": model,
        "weight": weight,
        "loss": (torch.ones(2, 3) @ weight).sum(),
        "optimizer": optimizer,
        "scheduler": torch.optim.lr_scheduler.LinearLR(rate(1e-3)),
        "rate": rate,
        "dataset": dataset,
        "DataLoader": utils.DataLoader,
        "TensorDataset": utils.TensorDataset,
        "loader": utils.DataLoader(dataset, batch_size=2),
        "path": "torch.pt",
    }


def keras_values(ours):
    """The same for Keras, which runs with PyTorch: equal numbers and weights."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    plain = {name: keras.ops.array(np.array(ours[name])) for name in PLAIN}
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    linear = ours["model"].fc1
    model.set_weights([np.array(linear.weight.val()), np.array(linear.bias.val())])
    optimizer = keras.optimizers.Adam(1e-3, epsilon=1e-5)
    model.compile(optimizer, "mse")
    optimizer.build(model.trainable_variables)

    class Pairs(keras.utils.PyDataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return np.ones((2, 3), np.float32), np.zeros((2, 2), np.float32)

    model.save_weights("keras.weights.h5")
    return {
        **plain,
        "keras": keras,
        "model": model,
        "optimizer": optimizer,
        "grads": [keras.ops.ones_like(w) for w in model.trainable_variables],
        "train": Pairs(),
        "valid": Pairs(),
        "path": "keras.weights.h5",
    }


def rate(lr):
    """An optimizer of PyTorch with this learning rate, for its schedules."""
    return torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=lr)
