"""Sequential: layers and functions in a row."""

import copy
import functools
import pickle

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ConfigError, DimError, RecordError, ShapeError
from burnbook.module import DisplaySettings, Module, summary
from burnbook.optim import GradientsParams, ParamGroup, SgdConfig
from burnbook.record import (
    BinFileRecorder,
    BurnpackRecorder,
    FullPrecisionSettings,
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    PrettyJsonFileRecorder,
    SafetensorsRecorder,
)
from burnbook.tensor import Tensor, activation
from tests.torch.shared import close, torch

AD = Autodiff(Numpy(float="f64", compiled=False))


def linear(d_input, d_output, device=AD):
    return nn.LinearConfig(d_input, d_output).init(device)


def small():
    """A row of layers and functions, with a row inside."""
    inside = nn.Sequential(a=linear(8, 2), b=lambda x: x * 2.0)
    return nn.Sequential(linear(4, 8), activation.relu, inside)


def inputs(rows=3, width=4):
    x = np.random.default_rng(0).normal(size=(rows, width))
    return Tensor.from_numpy(x, AD)


def test_it_is_the_functions_one_after_the_other():
    model, x = small(), inputs()
    wanted = model[2]["a"](activation.relu(model[0](x))) * 2.0
    assert np.array_equal(np.asarray(model(x)), np.asarray(wanted))
    assert np.array_equal(np.asarray(nn.Sequential()(x)), np.asarray(x))
    added = nn.Sequential(lambda a, b: a + b, activation.relu)(x, x)
    assert np.array_equal(np.asarray(added), np.asarray(activation.relu(x + x)))


def test_values_and_gradients_as_in_pytorch():
    pytest.importorskip("torch", reason="PyTorch is the oracle here")
    model = nn.Sequential(linear(4, 8), activation.relu, linear(8, 2), nn.Tanh())
    rows = [torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)]
    theirs = torch.nn.Sequential(*rows, torch.nn.Tanh()).double()
    params = dict(theirs.named_parameters())
    assert list(params) == [path for path, _ in model.named_params()]
    with torch.no_grad():
        for path, param in model.named_params():
            value = np.array(param.val())
            params[path].copy_(torch.tensor(value.T if value.ndim == 2 else value))
    x = inputs().require_grad()
    other = torch.tensor(np.asarray(x), requires_grad=True)
    out, wanted = model(x), theirs(other)
    close(out, wanted)
    grads = out.square().sum().backward()
    wanted.square().sum().backward()
    close(x.grad(grads), other.grad)
    for path, param in model.named_params():
        found = param.val().grad(grads)
        close(found if found.rank == 1 else found.transpose(), params[path].grad)


def test_a_file_of_pytorchs_sequential_has_its_names(tmp_path):
    tools = pytest.importorskip("safetensors.torch", reason="it writes such files")
    pytest.importorskip("torch", reason="PyTorch is the oracle here")
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    tools.save_file(theirs.state_dict(), tmp_path / "net.safetensors")
    model = nn.Sequential(linear(4, 8), linear(8, 2))
    recorder = SafetensorsRecorder(layout="pytorch")
    model = model.load_file(tmp_path / "net.safetensors", recorder)
    wanted = theirs[1].weight.detach().numpy().T
    np.testing.assert_allclose(model[1].weight.val(), wanted, rtol=1e-6)


def test_layers_by_position_name_and_slice():
    model = small()
    assert len(model) == 3
    assert model[0] is model["0"] is model[-3] is next(iter(model))
    assert model[-1].a is model["2"]["a"]
    assert list(model[1:].layers) == ["1", "2"]
    assert list(nn.Sequential(*model[1:], nn.Relu()).layers) == ["0", "1", "2"]
    assert len(model[:0]) == 0
    assert bool(model[:0])
    assert "0" in model
    assert model[2] in model
    assert "3" not in model
    named = nn.Sequential(fc=linear(4, 8), act=activation.relu)
    for same in ({"fc": 0, "act": 1}, [("fc", 0), ("act", 1)]):
        rows = same.items() if isinstance(same, dict) else same
        made = [(name, named[place]) for name, place in rows]
        made = dict(made) if isinstance(same, dict) else made
        assert str(nn.Sequential(made)) == str(named)
    assert str(nn.Sequential(list(named))) == str(nn.Sequential(*named))
    assert str(nn.Sequential(layers=list(named))) == str(nn.Sequential(*named))
    assert not hasattr(model, "fc")
    assert named.fc is named[0]


@pytest.mark.parametrize(
    ("wrong", "kind", "texts"),
    [
        (lambda m: m[3], DimError, ["no layer 3", "there are 3", "from -3 to 2"]),
        (lambda m: m["2"]["c"], ConfigError, ["no layer 'c'", "layers  a, b"]),
        (lambda m: m[1.5], DimError, ["float is neither"]),
        (lambda m: m.with_layer("4", nn.Relu()), ConfigError, ["no layer '4'"]),
        (lambda m: m.replace(fc=nn.Relu()), ConfigError, ["no layer 'fc'"]),
        (lambda m: m.with_layer(0, 3), ConfigError, ["layer 0", "int is neither"]),
        (lambda _: nn.Sequential(nn.Relu), ConfigError, ["try: nn.Relu()"]),
        (
            lambda _: nn.Sequential(nn.Relu(), nn.Linear),
            ConfigError,
            ["layer 1 (2 of 2)", "LinearConfig(…).init(device)"],
        ),
        (
            lambda _: nn.Sequential(fc=nn.LinearConfig(2, 3)),
            ConfigError,
            ["layer fc (1 of 1)", "LinearConfig(…).init(device)"],
        ),
        (lambda m: nn.Sequential(m, a=m), ConfigError, ["names for all of them"]),
        (lambda m: nn.Sequential({"a.b": m}), ConfigError, ["'a.b'"]),
    ],
)
def test_what_is_wrong_is_named_with_its_place(wrong, kind, texts):
    with pytest.raises(kind) as error:
        wrong(small())
    assert all(text in str(error.value) for text in texts), error.value
    assert "try: " in str(error.value)


def test_an_error_inside_says_in_which_layer():
    with pytest.raises(ShapeError, match=r"Sequential\.2\.b: linear") as error:
        nn.Sequential(linear(4, 8), activation.relu, nn.Sequential(b=linear(4, 8)))(
            inputs()
        )
    assert "layer " not in str(error.value)
    square = nn.Sequential(linear(4, 8), lambda x: x.matmul(x), nn.Relu())
    with pytest.raises(ShapeError) as error:
        square(inputs())
    assert "layer      1 (lambda), 2 of 3" in str(error.value)


RECORDERS = [
    NamedMpkFileRecorder(FullPrecisionSettings),
    NamedMpkGzFileRecorder(FullPrecisionSettings),
    PrettyJsonFileRecorder(FullPrecisionSettings),
    BinFileRecorder(FullPrecisionSettings),
    BurnpackRecorder(),
    SafetensorsRecorder(),
]


@pytest.mark.parametrize("recorder", RECORDERS, ids=lambda r: type(r).__name__)
def test_every_recorder_keeps_it(recorder, tmp_path):
    class Net(Module):
        body: nn.Sequential
        quiet: nn.Sequential
        head: nn.Linear

    def net():
        return Net(small(), nn.Sequential(nn.Relu(), activation.gelu), linear(2, 2))

    model = net()
    path = model.save_file(tmp_path / "net", recorder)
    made = net().load_file(path, recorder)
    pairs = zip(made.named_params(), model.named_params(), strict=True)
    for (path, ours), (name, wanted) in pairs:
        assert path == name
        np.testing.assert_allclose(ours.val(), wanted.val(), rtol=1e-6)  # f32 in files


def test_a_record_has_the_names_of_the_layers():
    model = small()
    record = model.into_record()
    assert list(record) == ["0", "1", "2"]
    assert record["1"] is None
    assert list(record["2"]["a"]) == ["weight", "bias"]
    of_a_list = [record["0"], None, record["2"]]
    made = model.load_record({"2": record["2"], "0": record["0"]})
    assert made[0].weight.id == model[0].weight.id
    outer = nn.Sequential(small()).load_record({"0": of_a_list})
    assert outer[0][0].weight.id == model[0].weight.id
    with pytest.raises(RecordError) as error:
        model.load_record({**record, "2": {"c": record["2"]["a"]}, "3": record["0"]})
    for line in (
        "2.a.weight  not in the record",
        "2.c.weight  not in the module",
        "3.bias      not in the module",
    ):
        assert line in str(error.value)
    with pytest.raises(RecordError, match="0"):
        nn.Sequential(model).load_record({"0": record["0"]["weight"]})
    assert nn.Sequential(nn.Relu(), activation.relu).into_record() is None


def test_it_prints_its_layers_and_functions():
    model = nn.Sequential(nn.Relu(), functools.partial(activation.softmax, dim=1))
    assert str(model) == "Sequential {\n  0: Relu\n  1: softmax(…)\n}"
    all_of_it = small().format(DisplaySettings().with_show_all_attributes(True))
    assert "0: Linear {" in all_of_it
    assert "1: relu\n" in all_of_it
    rows = summary(small(), inputs()).rows
    assert [row.path for row in rows] == ["", "0", "2", "2.a"]


def test_whatever_goes_through_modules_goes_through_it():
    model = small()
    frozen = model.freeze_group(ParamGroup.from_path("2.a.bias"))
    assert not frozen[2].a.bias.is_require_grad
    assert model.eval("2")[2].a.in_eval
    assert not model.eval("2")[0].in_eval
    replaced = model.with_layer(-1, nn.Tanh()).replace(**{"1": activation.gelu})
    assert str(replaced[2]) == "Tanh"
    assert replaced[1] is activation.gelu
    assert model[1] is activation.relu
    grads = GradientsParams.from_grads(model(inputs()).square().sum().backward(), model)
    stepped = SgdConfig().init().step(0.1, model, grads)
    assert stepped[1] is activation.relu
    assert not np.array_equal(stepped[0].weight.val(), model[0].weight.val())
    assert len(model.valid().fork(AD).train()) == 3
    plain = nn.Sequential(fc=linear(4, 8), act=activation.relu)
    for made in (
        pickle.loads(pickle.dumps(plain)),
        copy.deepcopy(plain),
        plain.clone(),
    ):
        assert np.array_equal(np.asarray(made(inputs())), np.asarray(plain(inputs())))
