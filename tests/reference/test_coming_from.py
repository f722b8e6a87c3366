"""The page "Coming from …": both columns of every row run, and give the same.

Ours always; those of PyTorch, NumPy and Keras where the library is there.
"""

import ast
import importlib
import inspect
import io
import os
import re
from contextlib import redirect_stdout
from html import unescape
from pathlib import Path

import nbformat
import numpy as np
import pytest

from burnbook.core.errors import ConfigError
from burnbook.core.other_names import all_rows, tables
from burnbook.module import Module, Param
from burnbook.nn import MhaInput, Reduction
from burnbook.optim import AdamConfig, GradientsParams, OptimizerAdaptor
from burnbook.prelude import Autodiff, Numpy, Tensor, TensorData
from burnbook.reference.coming_from import LIBRARIES, _line, coming_from
from tests.support.keras_weights import (
    results_of_layers,
    results_of_losses,
    results_of_optimizers,
)
from tests.support.other_values import (
    Net,
    fresh,
    keras_values,
    numpy_values,
    our_values,
    save_all,
    torch_values,
)
from tests.support.torch_weights import copy_into

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "A3_coming_from.ipynb"
WIDEST = 30  # letters of code that cannot be broken
CASES = [
    pytest.param(row, theirs, id=f"{theirs.library}: {theirs.code}")
    for row in all_rows()
    for theirs in row.theirs
    if theirs.library != "burn"
]
OURS = {row.advice.code: row for row in all_rows() if row.theirs}
HOWS = {"", "random", "differs", "runs"}
# What a layer of PyTorch is given, [4, 3] where it stands not here.
INPUTS = {
    "Conv1d": (2, 1, 9),
    "Conv2d": (2, 1, 8, 8),
    "Conv3d": (2, 1, 5, 5, 5),
    "ConvTranspose1d": (2, 1, 9),
    "ConvTranspose2d": (2, 1, 8, 8),
    "MaxPool1d": (2, 3, 8),
    "AdaptiveAvgPool1d": (2, 3, 8),
    "PixelShuffle": (2, 4, 3, 3),
    "BatchNorm1d": (4, 8),
    "BatchNorm2d": (4, 8, 3, 3),
    "InstanceNorm2d": (4, 8, 3, 3),
    "GroupNorm": (4, 8, 3, 3),
    "LocalResponseNorm": (4, 8, 3, 3),
    "LayerNorm": (4, 8),
    "RMSNorm": (4, 8),
    "LSTM": (2, 5, 3),
    "GRU": (2, 5, 3),
    "RNN": (2, 5, 3),
    "MultiheadAttention": (2, 5, 8),
}
LOSSES = {  # inputs and targets by their names; x and y where it stands not here
    "BCELoss": ("x.sigmoid()", "n"),
    "BCEWithLogitsLoss": ("x", "n"),
    "CrossEntropyLoss": ("x", "index"),
    "KLDivLoss": ("x.log_softmax(1)", "y.softmax(1)"),
}
IMAGES = (
    "MaxPool2d",
    "AvgPool2d",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool2d",
    "UpsamplingNearest2d",
    "Upsample",
)
INPUTS |= dict.fromkeys(IMAGES, (2, 3, 8, 8))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    return save_all(our_values(), folder), folder


@pytest.fixture
def ours(made, monkeypatch):
    """What our code speaks of; what it uses up is fresh, see `fresh`."""
    values, folder = made
    monkeypatch.chdir(folder)
    return {**values, "optim": AdamConfig().init()}


def result_of(code, names):
    """The value of the last expression; of a loop or a block what it named last."""
    steps = ast.parse(code).body
    with redirect_stdout(io.StringIO()):
        if isinstance(steps[-1], ast.Expr):
            exec(compile(ast.Module(steps[:-1], []), "<row>", "exec"), names)
            return eval(
                compile(ast.Expression(steps[-1].value), "<row>", "eval"), names
            )
        exec(compile(ast.Module(steps, []), "<row>", "exec"), names)
    stored = [
        node.id
        for node in ast.walk(steps[-1])
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    return names[stored[-1]]


def plain(value):
    """A value of any library as numbers, lists and arrays."""
    if isinstance(value, Param):
        value = value.val()
    if isinstance(value, TensorData):
        return value.to_numpy()
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        return value.detach().numpy()
    if isinstance(value, Tensor):
        return np.asarray(value)
    if isinstance(value, (list, tuple)) or type(value).__name__ in ITERATED:
        return [plain(value[i]) for i in range(len(value))]
    return value


ITERATED = ("Subset", "ConcatDataset", "TensorDataset", "ComposedDataset")
ITERATED += ("PartialDataset", "InMemDataset", "SelectionDataset")


def equal(ours, theirs):
    """Whether two values are the same; a tensor of one element is a number."""
    if isinstance(ours, (list, tuple)) or isinstance(theirs, (list, tuple)):
        if isinstance(ours, np.ndarray) or isinstance(theirs, np.ndarray):
            ours, theirs = list(ours), list(theirs)
        same_length = len(ours) == len(theirs)
        return same_length and all(map(equal, ours, theirs))
    if isinstance(ours, str) or ours is None or theirs is None:
        return ours == theirs
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.size == theirs.size == 1:
        ours, theirs = ours.reshape(()), theirs.reshape(())
    kinds = {"f": "f", "i": "i", "u": "i", "b": "b"}
    kind = kinds.get(ours.dtype.kind)
    if ours.shape != theirs.shape or kind != kinds.get(theirs.dtype.kind):
        return False
    return np.allclose(ours, theirs, rtol=2e-5, atol=1e-6, equal_nan=True)


def layers_agree(ours, theirs):
    """Two layers give the same, with the weights of ours."""
    torch = importlib.import_module("torch")
    shape = INPUTS.get(type(theirs).__name__, (4, 3))
    if hasattr(theirs, "in_channels"):
        shape = (shape[0], theirs.in_channels, *shape[2:])
    x = np.random.default_rng(1).standard_normal(shape).astype("f4")
    ids = type(theirs).__name__ == "Embedding"
    x = np.arange(12).reshape(4, 3) % 10 if ids else x
    theirs = copy_into(theirs, ours)
    other, mine = torch.from_numpy(x), Tensor.from_numpy(x)
    if type(theirs).__name__ == "MultiheadAttention":
        found = ours.forward(MhaInput.self_attn(mine)).context
        return equal(plain(found), plain(theirs(other, other, other)[0]))
    if type(theirs).__name__ in ("LSTM", "GRU", "RNN"):
        found = ours.forward(mine, None)
        found = found if isinstance(found, Tensor) else found[0]
        return equal(plain(found), plain(theirs(other)[0]))
    if type(theirs).__name__.startswith("BatchNorm"):
        theirs.eval()  # ours is on a device without Autodiff
    return equal(plain(ours.forward(mine)), plain(theirs(other)))


def losses_agree(ours, theirs):
    """Two losses give the same; means where nothing else is said."""
    values, name = our_values(), type(theirs).__name__
    others = torch_values(values)
    inputs, targets = LOSSES.get(name, ("x", "y"))
    floats = others["n"].float() if name.startswith("BCE") else eval(targets, others)
    wanted = theirs(eval(inputs, others), floats)
    given = [eval(inputs, values), eval(targets, values)]
    if (
        "reduction" in inspect.signature(ours.forward).parameters
        and name != "KLDivLoss"
    ):
        given.append(Reduction.Mean)
    return equal(plain(ours.forward(*given)), plain(wanted))


def optimizers_agree(ours, theirs):
    """Three steps of both lead to the same weights."""
    torch = importlib.import_module("torch")
    device = Autodiff(Numpy())
    model = Net(fc1=our_values()["model"].fc1)
    (group,) = theirs.param_groups
    weight = group["params"][0]
    wanted = torch.from_numpy(np.array(model.fc1.weight.val()).T.copy())
    with torch.no_grad():
        weight.copy_(wanted)
    x = np.random.default_rng(2).standard_normal((5, 3)).astype("f4")
    for _ in range(3):
        loss = (model.forward(Tensor.from_numpy(x, device))).square().sum()
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = ours.step(group["lr"], model, grads)
        theirs.zero_grad()
        bias = group["params"][1]
        torch.nn.functional.linear(
            torch.from_numpy(x), weight, bias
        ).square().sum().backward()
        theirs.step()
    return equal(plain(model.fc1.weight.val().transpose()), plain(weight))


def schedules_agree(ours, theirs):
    """The learning rates of five steps are the same."""
    found, wanted = [], []
    for _ in range(5):
        found.append(ours.step())
        wanted.append(theirs.get_last_lr()[0])
        theirs.optimizer.step()
        theirs.step()
    return equal(found, wanted)


def keras_agrees(ours, theirs):
    """A layer, a loss or an optimizer of Keras and ours give the same."""
    if isinstance(ours, OptimizerAdaptor):
        model = Net(fc1=our_values()["model"].fc1)
        pair = results_of_optimizers(ours, theirs, model)
    elif hasattr(theirs, "build"):
        pair = results_of_layers(ours, theirs)
    else:
        pair = results_of_losses(ours, theirs, our_values())
    return equal(*map(plain, pair))


def agree(ours, theirs):
    if type(theirs).__module__.startswith("keras.src.") and isinstance(
        ours, (Module, OptimizerAdaptor)
    ):
        return keras_agrees(ours, theirs)
    if isinstance(ours, OptimizerAdaptor):
        return optimizers_agree(ours, theirs)
    if hasattr(theirs, "get_last_lr"):
        return schedules_agree(ours, theirs)
    if isinstance(ours, Module) and hasattr(theirs, "forward"):
        loss = type(theirs).__name__.endswith("Loss")
        return losses_agree(ours, theirs) if loss else layers_agree(ours, theirs)
    return equal(plain(ours), plain(theirs))


def shape_of(value):
    return np.shape(plain(value))


def values_of(library, ours):
    if library == "numpy":
        return numpy_values(ours)
    return torch_values(ours) if library == "torch" else keras_values(ours)


@pytest.mark.parametrize("code", OURS)
def test_our_column_runs(ours, code):
    if code == "-" or "Cupy(" in code:
        pytest.skip("there is nothing to run, or a GPU is needed")
    result_of(code, {**ours, **fresh(ours, OURS[code].section, code)})


@pytest.mark.filterwarnings("ignore:__array__ imp.*:DeprecationWarning")  # Keras'
@pytest.mark.parametrize(("row", "theirs"), CASES)
def test_their_column_gives_the_same(ours, row, theirs):
    if theirs.library in ("torch", "keras"):
        pytest.importorskip("torch", reason="PyTorch is the oracle here")
    if theirs.library == "keras":
        os.environ.setdefault("KERAS_BACKEND", "torch")
        pytest.importorskip("keras", reason="Keras is not here")
    code = row.advice.code
    wanted = result_of(theirs.code, values_of(theirs.library, ours))
    if theirs.how == "runs" or code == "-" or "Cupy(" in code:
        return
    found = result_of(code, {**ours, **fresh(ours, row.section, code)})
    if theirs.how == "random":
        assert shape_of(found) == shape_of(wanted)
        return
    shown = f"ours:\n{plain(found)}\ntheirs:\n{plain(wanted)}"
    assert agree(found, wanted) == (theirs.how != "differs"), shown


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_need_only_the_prelude_and_the_imports_that_are_shown(ours, library):
    for topic in coming_from(library).counts:
        found = coming_from(library, topic)
        known = {"exec": exec}
        exec("from burnbook.prelude import *", known)
        for line in found.imports:
            exec(line, known)
            assert unescape(re.sub("<wbr>", "", found._repr_html_())).count(line) == 1
        for row, _ in found.rows:
            if row.advice.code == "-":
                continue
            stored, read = set(), set()
            for node in ast.walk(ast.parse(row.advice.code)):
                if isinstance(node, ast.arg):
                    stored.add(node.arg)
                elif isinstance(node, ast.Name):
                    load = isinstance(node.ctx, ast.Load)
                    (read if load else stored).add(node.id)
            modules = {n for n in read - stored if n in tables()["imports"]}
            assert modules <= set(known), row.advice.code


def test_every_row_says_how_it_compares():
    assert {theirs.how for row in all_rows() for theirs in row.theirs} == HOWS
    for row in all_rows():
        for theirs in row.theirs:
            assert row.topic, row
            assert row.advice.remark or theirs.how != "differs", row


# The page


def test_pytorch_has_rows_that_are_compared():
    """At least 250 of them give values, which must be equal."""
    found = coming_from("PyTorch").counts
    assert set(found) >= {"shapes", "layers", "losses", "optimizers", "training"}
    compared = [c for c in CASES if c.values[1] == c.values[1]._replace(how="")]
    assert sum(c.values[1].library == "torch" for c in compared) >= 250


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_row_is_in_one_topic_of_its_library(library):
    topics = coming_from(library)
    pairs = [p for name in topics.counts for p in coming_from(library, name).rows]
    assert len(pairs) == len(topics) == len(coming_from(library, find=""))
    for row, theirs in pairs:
        html = _line(row, theirs)
        for code in re.findall("<tt>(.*?)</tt>", html):
            pieces = re.split(r"<wbr>|<br>|\s", code)
            assert max(len(unescape(piece)) for piece in pieces) <= WIDEST, code


def test_looking_for_a_word_and_for_what_is_not_there():
    found = coming_from("pytorch", find="tile")
    assert repr(found).startswith("PyTorch, with 'tile': ")
    assert any(theirs.code == "x.tile(1, 2)" for _, theirs in found.rows)
    assert repr(coming_from("NumPy", find="no such thing")).endswith("0 rows")
    with pytest.raises(ConfigError, match=r"there is no table for 'jax'(.|\n)*PyTorch"):
        coming_from("jax")
    with pytest.raises(ConfigError, match="there is no topic 'data' for Burn"):
        coming_from("Burn", "data")


def test_the_committed_page_is_what_the_rows_say():
    stale, shown = [], set()
    for cell in nbformat.read(PAGE, as_version=4).cells:
        asked = re.fullmatch(r'coming_from\("(\w+)", "([\w ]+)"\)', cell.source)
        for output in cell.get("outputs", ()) if asked else ():
            shown.add(asked.groups())
            html = output["data"]["text/html"]
            if html != coming_from(*asked.groups())._repr_html_():
                stale.append(asked.groups())
    assert not stale, "python -m burnbook_widgets.build notebooks A3_coming_from"
    wanted = {(name, key) for name in LIBRARIES for key in coming_from(name).counts}
    assert shown == wanted


def test_print_shows_every_row_and_repr_counts_them():
    found = coming_from("PyTorch", "gradients")
    text = str(found)
    assert text.startswith(repr(found))
    for row, theirs in found.rows:
        assert f"\n  {theirs.code}\n    " in text
        assert row.advice.remark in text
    assert len(repr(found).splitlines()) == 1


# Everything by which models and weights come and go, and what makes programs of them.
WAYS = ("burnbook.importers", "burnbook.exporters", "burnbook.importers.onnx")
TOOLS = ("capture", "capture_training", "functional_call")
HABITS = [
    *("torch.load", "torch.save", "onnx.export", "torch.compile", "autocast"),
    *("DataParallel", "ImageFolder", "tensorboard", "functional_call", "GradScaler"),
    *("checkpoint", "profiler", "detect_anomaly", "distributions", "AveragedModel"),
    *("ceil_mode", "vmap", "jit.trace"),
]
# Parts of a way that stands in a row: adapters, reports, and what raises.
PARTS = {"ApplyError", "ApplyResult", "NotApplied", "LazyArray", "OnnxReport"}
PARTS |= {"Adapter", "AdapterType", "BurnToPyTorchAdapter", "FloatCastAdapter"}
PARTS |= {"HalfPrecisionAdapter", "IdentityAdapter", "PyTorchToBurnAdapter"}
PARTS |= {"KeyRemapper", "ModuleStore", "PathFilter", "RecordType", "Backend"}
PARTS |= {"check", "compare", "original_names", "source_of", "load"}


@pytest.mark.parametrize("package", WAYS)
def test_every_importer_and_exporter_stands_in_a_row(package):
    words = " ".join(
        f"{row.advice.code} {row.advice.remark}" for row in all_rows() if row.theirs
    )
    public = set(importlib.import_module(package).__all__) - PARTS
    assert {name for name in public if not re.search(rf"\b{name}\b", words)} == set()


def test_capture_and_the_like_stand_in_a_row():
    words = " ".join(f"{row.advice.code} {row.advice.remark}" for row in all_rows())
    assert {name for name in TOOLS if not re.search(rf"\b{name}\b", words)} == set()


@pytest.mark.parametrize("habit", HABITS)
def test_a_tool_or_option_of_pytorch_has_a_row(habit):
    assert len(coming_from("PyTorch", find=habit)) > 0


def test_what_is_not_compared_has_a_note():
    bare = [
        row.advice.code
        for row in all_rows()
        if any(theirs.how == "runs" for theirs in row.theirs)
        and row.advice.code != "-"
        and not row.advice.remark
    ]
    assert bare == []


def test_saving_a_model_keeps_its_precision(ours, tmp_path):
    """What stands for torch.save writes the numbers as they are."""
    rows = [
        row
        for row, theirs in coming_from("PyTorch", find="torch.save(model").rows
        if "save_file" in row.advice.code
    ]
    assert rows
    for row in rows:
        assert "CompactRecorder" not in row.advice.code
        path = result_of(row.advice.code, {**ours, "path": str(tmp_path / "kept")})
        kept = ours["model"].load_file(path, ours["NamedMpkFileRecorder"]())
        assert np.array_equal(kept.fc1.weight.val(), ours["model"].fc1.weight.val())
