"""The names of other libraries: every line of code works, and nothing else changes."""

import copy
import pickle
import pydoc
import re
from abc import ABC, abstractmethod
from importlib import import_module

import pytest

from burnbook import nn
from burnbook.config import Config
from burnbook.core.errors import UnknownNameError
from burnbook.core.other_names import tables
from burnbook.data import DataLoaderBuilder
from burnbook.prelude import Module, Numpy, Tensor
from burnbook.reference.table import rows
from tests.support.other_values import Net, fresh, our_values, save_all

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


@pytest.fixture
def names(made, tmp_path, monkeypatch):
    """What the code in the tables speaks of."""
    monkeypatch.chdir(tmp_path)
    return save_all(made, tmp_path)


@pytest.fixture(scope="module")
def made():
    return our_values()


@pytest.mark.filterwarnings("ignore:.*the optimizer clips gradients")
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


def test_a_name_of_another_library_is_an_attribute_error_with_the_name_here():
    with pytest.raises(AttributeError, match="in burnbook this is reshape") as caught:
        _ = Tensor.ones([2]).view
    assert isinstance(caught.value, UnknownNameError)
    assert (caught.value.where, caught.value.cure) == (
        "Tensor.view",
        "Tensor.ones([2]).reshape([3, 2])",
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


def test_a_config_lists_only_what_it_has():
    traps = set(tables()["Config"])
    page = re.sub(".\x08", "", pydoc.render_doc(nn.LinearConfig))
    listed = set(re.findall(r"^ \|  (\w+)", page, re.M))
    assert {"init", "save", "with_bias", "bias"} <= listed & set(dir(nn.LinearConfig))
    assert not traps & (listed | set(dir(nn.LinearConfig)))
    with pytest.raises(UnknownNameError, match="in burnbook this is from_json"):
        _ = nn.LinearConfig.loads


def test_a_config_may_be_an_abstract_class():
    class Sized(Config, ABC):
        size: int

        @abstractmethod
        def total(self): ...

    class Twice(Sized):
        def total(self):
            return self.size * 2

    assert Twice(3).total() == 6
    with pytest.raises(TypeError, match="abstract"):
        Sized(3)


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


@pytest.mark.parametrize(
    ("of", "name"),
    [
        *((Tensor.ones([2, 2]), name) for name in ("to_sparse", "spmm", "coo")),
        (Tensor, "sparse_coo_tensor"),
        (import_module("burnbook"), "sparse"),
        (import_module("burnbook.tensor"), "spmm"),
    ],
)
def test_a_sparse_matrix_is_answered_with_select_and_select_assign(of, name):
    with pytest.raises(UnknownNameError) as caught:
        getattr(of, name)
    assert "select_assign(0, index, x.select(0, index)" in caught.value.cure


@pytest.mark.parametrize(
    ("home", "name", "nearest"),
    [
        ("optim", "Adadelta", "RmsPropConfig"),
        ("optim", "AdadeltaConfig", "RmsPropConfig"),
        ("optim", "NAdam", "AdamConfig"),
        ("optim", "Ftrl", "AdaGradConfig"),
        ("optim", "Rprop", "LionConfig"),
        ("nn", "Bilinear", "LinearConfig"),
        ("nn", "Dropout2d", "DropoutConfig"),
        ("nn", "MaxPool3d", "AdaptiveAvgPool3dConfig"),
        ("lr_scheduler", "CyclicLR", "OneCycleLrSchedulerConfig"),
    ],
)
def test_what_is_only_near_is_not_called_the_same(home, name, nearest):
    package = import_module(f"burnbook.{home}")
    with pytest.raises(AttributeError, match="burnbook has none; the nearest is") as c:
        getattr(package, name)
    assert nearest in c.value.what
    assert "the nearest" not in str(c.value.facts)


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (lambda: nn.utils.parametrizations.weight_norm, "weight_norm"),
        (lambda: nn.utils.weight_norm, "weight_norm"),
        (lambda: nn.utils.parametrizations.spectral_norm, "spectral_norm"),
        (lambda: nn.utils.parametrizations.orthogonal, "orthogonal"),
        (lambda: nn.utils.parametrize, "parametrize"),
        (lambda: nn.utils.parametrize.register_parametrization, "register"),
    ],
)
def test_parametrizations_are_reparameterizations_here(read, name):
    with pytest.raises(AttributeError, match="apply_reparameterization") as caught:
        read()
    assert name in caught.value.where
    assert "from burnbook.module import WeightNorm" in caught.value.facts
    assert ("your own" in str(caught.value)) == (name != "weight_norm")


@pytest.mark.parametrize("read", [hasattr, lambda of, name: getattr(of, name, None)])
def test_asking_whether_there_is_a_name_reads_no_source(read, monkeypatch):
    loader = DataLoaderBuilder().build(([[1.0]], [0]))

    def parsed(*_):
        raise AssertionError("the source was read")

    monkeypatch.setattr("burnbook.core.call_source._node_at", parsed)
    assert not read(loader, "dtype")
    assert not read(Tensor.from_data([1.0]), "dtypes")
    with pytest.raises(AssertionError):
        _ = loader.batch_sizes
