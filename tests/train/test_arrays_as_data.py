"""Arrays where a loader is wanted: the cure makes one of them, and trains."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import DataError
from burnbook.data import DataLoaderBuilder
from burnbook.module import Module
from burnbook.optim import SgdConfig
from burnbook.tensor import Tensor
from burnbook.train import LearnerBuilder, RegressionOutput, TrainOutput

DEVICE = Autodiff(Numpy())
X = np.linspace(0, 1, 24, dtype=np.float32).reshape(8, 3)
Y = X.sum(1, keepdims=True)


class Net(Module):
    fc: nn.Linear

    def valid_step(self, batch):
        x, y = batch
        out = self.fc.forward(x)
        return RegressionOutput(nn.MseLoss().forward(out, y), out, y)

    def train_step(self, batch):
        item = self.valid_step(batch)
        return TrainOutput(self, item.loss.backward(), item)


def learner(folder):
    model = Net(nn.LinearConfig(3, 1).init(DEVICE))
    built = LearnerBuilder(str(folder)).renderer(None).num_epochs(1)
    return built.build(model, SgdConfig().init(), 0.1)


GIVEN = {
    "two arrays": (X, Y),
    "a tuple": ((X, Y),),
    "two tuples": ((X, Y), (X, Y)),
    "one array": (X,),
    "tensors": (Tensor.from_data(X), Tensor.from_data(Y)),
    "a tensor": (Tensor.from_data(X),),
}


@pytest.mark.parametrize("name", GIVEN)
def test_the_cure_makes_a_loader_that_trains(name, tmp_path):
    with pytest.raises(DataError, match="loader") as caught:
        learner(tmp_path / "first").fit(*GIVEN[name])
    known = {"DataLoaderBuilder": DataLoaderBuilder, "inputs": X, "targets": Y}
    known["dataset"] = (X, Y)
    cure = caught.value.cure.replace("(batcher)", "()").removeprefix("fit(")
    cure = cure[:-1] if caught.value.cure.startswith("fit(") else cure
    assert name in ("one array", "a tensor") or "inputs, targets" in cure
    made = learner(tmp_path / "second").fit(eval(cure, known))
    assert made is not None


def test_a_list_of_batches_is_a_loader(tmp_path):
    batch = (Tensor.from_data(X, DEVICE), Tensor.from_data(Y, DEVICE))
    assert learner(tmp_path).fit([batch]) is not None
