"""The names of other libraries: every line of code works, and nothing else changes."""

import copy
import pickle
from importlib import import_module

import numpy as np
import pytest

import burnbook
from burnbook import data, lr_scheduler, nn, optim, record, train
from burnbook.core.errors import UnknownNameError
from burnbook.core.other_names import tables
from burnbook.module import ModuleMapper
from burnbook.prelude import Autodiff, Module, Numpy, Param, Tensor, TensorData
from burnbook.reference.table import rows

NOT_CODE = ("fields", "arguments", "imports", "homes")
CODE = sorted(
    {
        (section, advice.code)
        for section, table in tables().items()
        if section not in NOT_CODE
        for advice in table.values()
        if advice.code != "-"
    }
)


class Net(Module):
    fc1: nn.Linear

    def forward(self, x):
        return self.fc1.forward(x)

    def train_step(self, batch):
        loss = self.forward(batch).sum()
        return train.TrainOutput(self, loss.backward(), loss)

    def valid_step(self, batch):
        return self.forward(batch).sum()


class Double(ModuleMapper):
    def map_float(self, number, tensor):
        return tensor


class Times:
    def map(self, item):
        return item * 2


class Rows:
    def batch(self, items, device):
        return Tensor.ones([len(items), 3], device)


@pytest.fixture
def names(made, tmp_path, monkeypatch):
    """What the code in the tables speaks of."""
    monkeypatch.chdir(tmp_path)
    recorder = record.CompactRecorder()
    made["model"].save_file(tmp_path / "saved", recorder)
    recorder.record(made["optim"].into_record(), tmp_path / "states")
    made["config"].save(tmp_path / "config.json")
    return {**made, "path": str(tmp_path / "saved")}


@pytest.fixture(scope="module")
def made():
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
        "model": model,
        "mapper": Double(),
        "loss": (Tensor.ones([2, 3], outer) @ weight).sum(),
        "weight": weight,
        "param": Param.from_tensor(Tensor.ones([1], outer)),
        "gradients": gradients,
        "grads": optim.GradientsParams.from_grads(lost.backward(), model),
        "optim": optim.AdamConfig().init(),
        "scheduler": lr_scheduler.LinearLrSchedulerConfig(1e-3, 1e-4, 10).init(),
        "config": nn.LinearConfig(3, 2),
        "record": nn.LinearConfig(3, 2).init(device).into_record(),
        "data": TensorData([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        "dataset": data.InMemDataset([1, 2, 3, 4, 5]),
        "batcher": Rows(),
    }
    builder = data.DataLoaderBuilder(Rows()).batch_size(2)
    known["loader"] = builder.build(known["dataset"])
    return known


@pytest.mark.parametrize("section", sorted({section for section, _ in CODE}))
def test_the_code_of_every_name_works(names, section):
    broken = []
    for code in [code for of, code in CODE if of == section]:
        if "Cupy(" in code:
            continue  # needs a GPU
        try:
            eval(code, {**names, **fresh(names, section, code)})
        except Exception as error:
            broken.append(f"{code}: {error}")
    assert not broken


def fresh(names, section, code):
    """What the code of a section changes or uses up."""
    outer = Autodiff(Numpy())
    x = Tensor.ones([2, 3], outer)
    own = {"loss": (x @ names["weight"]).sum()}
    if "model" in code or section == "Learner":
        own |= {"x": x}
    if section in ("Learner", "LearnerBuilder") or "fit(" in code:
        own |= training(names)
    if section == "Optimizer":
        own |= {"path": "states"}
        loss = names["model"].forward(x).sum()
        found = optim.GradientsParams.from_grads(loss.backward(), names["model"])
        own |= {"grads": found}
    if section == "Config":
        own |= {"path": "config.json"}
    return own


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


def test_a_name_of_another_library_is_an_attribute_error_with_the_name_here():
    with pytest.raises(AttributeError, match="in burnbook this is reshape") as caught:
        _ = Tensor.ones([2]).view
    assert isinstance(caught.value, UnknownNameError)
    assert (caught.value.where, caught.value.cure) == (
        "Tensor.view",
        "x.reshape([3, 2])",
    )


def test_such_names_are_not_there_for_whoever_asks():
    x, model = Tensor.ones([2]), Net(fc1=nn.LinearConfig(3, 2).init(Numpy()))
    for thing, name in [
        (x, "numpy"),
        (Tensor, "rand"),
        (model, "state_dict"),
        (nn, "ReLU"),
    ]:
        assert not hasattr(thing, name)
        assert getattr(thing, name, None) is None
        assert name not in dir(thing)
    assert {"sum", "shape", "from_data"} <= set(dir(x)) & set(dir(Tensor))
    assert {"fc1", "valid"} <= set(dir(model))


def test_copies_and_pickles_are_as_before():
    x, config = Tensor.ones([2]), nn.LinearConfig(3, 2)
    assert copy.copy(x).dims() == pickle.loads(pickle.dumps(x)).dims() == (2,)
    assert copy.deepcopy(config) == pickle.loads(pickle.dumps(config)) == config


def test_a_class_of_ones_own_may_have_such_names():
    class Own(Module):
        size: int
        layers: list[nn.Linear]

        def eval(self):
            return self.size

    assert Own(3, []).eval() == 3
    assert "eval" in dir(Own(3, []))


def test_an_import_says_where_a_name_is():
    for line, text in [
        ("from burnbook.nn import ReLU", r"in burnbook this is Relu\n.*nn.Relu\(\)"),
        ("from burnbook import Tensor", "try: from burnbook.tensor import Tensor"),
        ("from burnbook.prelude import AdamConfig", "try: from burnbook.optim import"),
        ("from burnbook.nn import Linaer", "try: burnbook.nn.Linear"),
    ]:
        with pytest.raises(ImportError, match=text):
            exec(line, {})


def test_submodules_are_still_imported():
    names = {}
    exec(
        "from burnbook import nn, optim\nfrom burnbook.reference import table\n"
        "from burnbook.nn import loss",
        names,
    )
    assert names["table"].__name__ == "burnbook.reference.table"
    assert import_module("burnbook.nn.loss") is names["loss"]


def test_every_name_of_pytorch_in_the_appendix_is_one_of_ours_or_has_code():
    known = tables()["Tensor"]
    missing = {row.torch for row in rows() if row.torch and row.present} - set(known)
    homes = ("activation", "linalg", "signal", "grid")
    elsewhere = {row.torch for row in rows() if row.section in homes}
    assert {name for name in missing - elsewhere if not hasattr(Tensor, name)} == set()
