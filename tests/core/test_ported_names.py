"""What somebody who ports a project types first, and the cure that the error names."""

import numpy as np
import pytest

from burnbook import data, nn, tensor
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import BurnbookError, ShapeError
from burnbook.module import Module
from burnbook.tensor import Tensor


def test_functional_names_its_import():
    with pytest.raises(
        BurnbookError, match=r"from burnbook\.tensor import module as functional"
    ):
        getattr(tensor, "functional")  # noqa: B009 - it is not there


@pytest.mark.parametrize("name", ["RandomCrop", "RandomHorizontalFlip", "transforms"])
def test_augmentation_is_answered(name):
    with pytest.raises(BurnbookError, match=r"Batcher|MapperDataset"):
        getattr(data, name)


def test_paths_of_parts():
    class Net(Module):
        layers: list[nn.Linear]

    model = Net([nn.LinearConfig(2, 2).init(Numpy())])
    with pytest.raises(BurnbookError, match=r"try: model\.layers\[0\]"):
        model.find_part("layers.0")
    assert model.find_part(model.layers[0]) == "layers.0"
    with pytest.raises(BurnbookError, match=r"model\.layers\[0\]"):
        getattr(model, "get_submodule")  # noqa: B009 - it is not there


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_the_cure_for_a_mean_of_rank_1_works(rank):
    x = Tensor.ones([2] * rank, Autodiff(Numpy())).require_grad()
    y = x.mean()
    with pytest.raises(ShapeError) as found:
        x - y
    cure = str(found.value).rpartition("try: ")[2].partition(",")[0]
    out = x - eval(cure)
    assert np.array_equal(out, np.zeros([2] * rank))
    assert x.grad(out.sum().backward()).dims() == x.dims()
