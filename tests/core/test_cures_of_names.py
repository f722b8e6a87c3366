"""Every cure of the tables of names, applied letter for letter where it is given.

The members are the rows of other_names.txt: the name of another library is read (and
called, where a row says how), the line behind `try:` is run in the same place, and its
meaning is compared: with what the other library gives, with a line `means`, or by being
the public object of that name.
"""

import inspect
import linecache
import re

import numpy as np
import pytest

from burnbook import data, lr_scheduler, nn, optim, train
from burnbook.core.errors import UnknownNameError
from burnbook.core.other_names import FIRST, all_rows, tables
from burnbook.prelude import Autodiff, Numpy, Tensor
from tests.reference.test_coming_from import agree, result_of, values_of
from tests.support.other_values import fresh, our_values, save_all

# What a name of a section is read of; x, model and so on where it is an object.
OBJECTS = {
    "burnbook.prelude": "prelude",
    "burnbook.nn": "nn",
    "burnbook": "burnbook",
}
MEMBERS = [
    (row.section, name, row)
    for row in all_rows()
    for name in row.names
    if row.section in FIRST or row.section.startswith("burnbook")
]
GIVEN = [(row, given) for row in all_rows() for given in row.advice.given]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cures")
    return save_all(our_values(), folder), folder


@pytest.fixture
def names(made, monkeypatch):
    values, folder = made
    monkeypatch.chdir(folder)
    return dict(values)


def asked(code, names):
    """The error of a line that has a source, as in a cell of a notebook."""
    linecache.cache["<asked>"] = (len(code), None, [code], "<asked>")
    with pytest.raises((UnknownNameError, ImportError)) as caught:
        eval(compile(code, "<asked>", "eval"), names)
    return caught.value


def place_of(section):
    return OBJECTS.get(section, FIRST.get(section, section))


def space_for(section, names, code):
    from burnbook import prelude

    space = {**names, "prelude": prelude, "optim_package": optim}
    space |= fresh(names, section, code)
    if section in ("LrScheduler",):
        space["scheduler"] = lr_scheduler.LinearLrSchedulerConfig(1e-3, 1e-4, 10).init()
    if section == "DataLoaderBuilder":
        space["builder"] = data.DataLoaderBuilder(names["batcher"])
    space["conv"] = nn.Conv2dConfig([1, 8], [3, 3]).init(Numpy())
    for part in (nn, data, train, lr_scheduler):
        space.setdefault(part.__name__.rpartition(".")[2], part)
    return space


def test_there_are_members_in_every_section():
    assert len(MEMBERS) > 1000
    assert len(GIVEN) > 130


@pytest.mark.filterwarnings("ignore:.*the optimizer clips gradients")
@pytest.mark.filterwarnings("ignore:.*start from one model")  # one for all lines
@pytest.mark.parametrize("section", sorted({section for section, *_ in MEMBERS}))
def test_every_name_is_answered_by_a_line_that_works_where_it_was_read(names, section):
    wrong = []
    for of, name, row in MEMBERS:
        ours = of == section and tables()[of].get(name) == row.advice
        if ours and "Cupy(" not in row.advice.code:
            wrong += filter(None, [trouble(section, name, row, names)])
    assert not wrong


def trouble(section, name, row, names):
    """What is wrong with the answer to one name; None if its line works there."""
    space = space_for(section, names, row.advice.code)
    place = place_for(section, row, space)
    held = eval(place, space)
    if name in dir(held) or _is_answered_by_itself(held, name):
        return None  # it exists here: the row is for another class
    error = asked(f"{place}.{name}", space)
    if isinstance(error, ImportError):
        return None
    if row.advice.code == "-":
        left = error.cure == "leave it out"
        return None if left else f"{place}.{name}: {error.cure}"
    space["optim"] = names["optim"]
    try:
        for line in [*map(str, error.facts), error.cure]:
            if line.startswith(("from ", "import ")):
                exec(line, space)
        if not error.cure.startswith("from "):
            for cure in error.cure.split(", or ") if name == "item" else [error.cure]:
                eval(cure, space)
    except Exception as failed:
        return f"{place}.{name}: {error.cure}: {failed}"[:300]
    return None


def place_for(section, row, space):
    """What the name is read of; a package is put into the space."""
    if row.advice.remark.startswith("of a Linear"):
        return "model.fc1"
    if row.advice.remark.startswith("of a convolution"):
        return "conv"
    if not section.startswith("burnbook."):
        return place_of(section)
    place = place_of(section).rpartition(".")[2] or place_of(section)
    space[place] = __import__(section, fromlist=["x"])
    return place


def _is_answered_by_itself(held, name):
    """Whether a class has the name, or says more about it than the table."""
    cls = held if isinstance(held, type) else type(held)
    return name in vars(held) if inspect.ismodule(held) else hasattr(cls, name)


PAIRS = [
    pytest.param(row, name, theirs, id=f"{name} {theirs.library}: {theirs.code}")
    for row in all_rows()
    for theirs in row.theirs
    for name in row.names
    if theirs.library == "torch"
    and theirs.how == ""
    and row.section == "Tensor"
    and row.advice.code != "-"
    and re.search(rf"^(x|n|m|v|mask|image)\.{name}\(", theirs.code)
]


@pytest.mark.parametrize(("row", "name", "theirs"), PAIRS)
def test_the_reader_s_own_call_is_answered_with_the_same_values(
    names, row, name, theirs
):
    """The line of PyTorch is typed here; the cure gives what it gives there."""
    pytest.importorskip("torch", reason="PyTorch is the oracle here")
    if "torch." in theirs.code or "keepdim" in theirs.code:
        pytest.skip("the arguments are of PyTorch itself")
    wanted = result_of(theirs.code, values_of("torch", names))
    call = re.match(rf"\w+\.{name}\((?:[^()]|\([^()]*\))*\)", theirs.code)[0]
    error = asked(call, dict(names))
    space = dict(names)
    for line in error.facts:
        if str(line).startswith(("from ", "import ")):
            exec(line, space)
    found = eval(theirs.code.replace(call, error.cure), space)
    assert agree(found, wanted), error.cure


@pytest.mark.parametrize(
    ("code", "cure", "holds"),
    [
        ("x.view(6)", "x.reshape([6])", "out.dims() == (6,)"),
        ("x.view(-1, 2)", "x.reshape([-1, 2])", "out.dims() == (3, 2)"),
        ("x.view((3, 2))", "x.reshape([3, 2])", "out.dims() == (3, 2)"),
        ("y.view(x.shape)", "y.reshape([*x.shape])", "out.dims() == (2, 3)"),
        ("x.multinomial(5)", "x.categorical(5)", "out.dims() == (2, 5)"),
        ("x.to(device)", "x.to_device(device)", "out.device() is device"),
        ("a.to(outer)", "a.to_device(outer)", "out.device() is outer"),
        ("a.cpu()", "a.to_device(Autodiff(Numpy()))", "out.device() is outer"),
        ("model.cpu()", "model.to_device(Autodiff(Numpy()))", "out.devices()"),
        (
            "nn.LSTM(4, 8)",
            "nn.LstmConfig(4, 8, True).init(device)",
            "out.d_hidden == 8",
        ),
        (
            "nn.Dense(10)",
            "nn.LinearConfig(x.dims()[-1], 10).init(device)",
            "out.forward(x).dims() == (2, 10)",
        ),
        (
            "model.fc1.out_features",
            "model.fc1.weight.shape[1]",
            "out == 2",
        ),
        (
            "learner.predict(x)",
            "learner.model.valid().forward(x.inner())",
            "out.dims() == (2, 2) and learner.model is before",
        ),
        (
            'learner.save("kept")',
            'learner.model.save_file("kept", NamedMpkFileRecorder())',
            "learner.model is before",
        ),
        (
            "builder.epochs(3)",
            "builder.num_epochs(3)",
            "out is not None",
        ),
    ],
)
def test_a_cure_has_the_reader_s_own_names_and_numbers(names, code, cure, holds):
    space = space_for("Learner", names, code)
    space |= {"outer": Autodiff(Numpy()), "before": space["learner"].model}
    error = asked(code, space)
    assert error.cure == cure
    for line in error.facts:
        if str(line).startswith("from "):
            exec(line, space)
    if code.startswith(("x.to", "nn.")):
        space["x"] = names["x"]
    out = eval(cure, space)
    assert eval(holds, {**space, "out": out})


def test_a_gpu_of_an_autodiff_tensor_is_below_autodiff_once():
    x = Tensor.ones([2], Autodiff(Numpy()))
    assert asked('x.to("cuda")', {"x": x}).cure == "x.to_device(Autodiff(Cupy(0)))"
    plain = Tensor.ones([2], Numpy())
    assert asked('x.to("cuda:1")', {"x": plain}).cure == "x.to_device(Cupy(1))"


def test_arguments_that_no_line_takes_are_told():
    error = asked("nn.LSTM(4, 8, num_layers=2)", {"nn": nn})
    assert "the numbers are those of an example" in error.facts


@pytest.mark.parametrize(("row", "given"), GIVEN)
def test_a_line_for_a_call_uses_every_argument_or_names_its_default(row, given):
    """What the reader gave is not lost, but for a choice that is the only one here."""
    parameters, code = given
    names = re.findall(r"\*?([a-z_]\w*)(=[^,]+)?(?:,|$)", parameters.replace(" ", ""))
    unused = [name for name, default in names if not re.search(rf"\b{name}\b", code)]
    only = {"batch_first", "keepdim", "kth", "activation", "replacement", "monitor"}
    assert set(unused) <= only
    assert np.ndim(row.names) == 1
