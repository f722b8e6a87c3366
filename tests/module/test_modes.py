"""eval() and train(): what is not in training, and learns all the same."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.dtypes import Float
from burnbook.core.errors import ConfigError
from burnbook.data import Batcher, DataLoaderBuilder, InMemDataset
from burnbook.module import (
    DisplaySettings,
    Lora,
    Module,
    ModuleMapper,
    Quantizer,
    RunningState,
)
from burnbook.optim import GradientsParams, ParamGroup, SgdConfig
from burnbook.record import FullPrecisionSettings, NamedMpkBytesRecorder
from burnbook.tensor import Distribution, Tensor
from burnbook.tensor.quantization import MinMaxCalibration, QuantizationScheme
from burnbook.train import LearnerBuilder, MetricsRenderer, TrainOutput

PLAIN = Numpy(compiled=False)
AD = Autodiff(PLAIN)
DEVICES = [AD, Autodiff(Numpy())]


class Body(Module):
    conv: nn.conv.Conv2d
    norm: nn.BatchNorm

    def forward(self, x):
        return self.norm(self.conv(x)).tanh()


class Net(Module):
    body: Body
    dropouts: list[nn.Dropout]
    head: nn.Linear

    def forward(self, x):
        x = self.body(x).flatten(1, 3)
        for dropout in self.dropouts:
            x = dropout(x)
        return self.head(x)


def net(device=AD):
    return Net(
        Body(
            nn.Conv2dConfig([1, 2], [3, 3]).init(device),
            nn.BatchNormConfig(2).init(device),
        ),
        [nn.DropoutConfig(0.5).init(), nn.DropoutConfig(0.5).init()],
        nn.LinearConfig(18, 2).init(device),
    )


def images(device=AD, count=4):
    x = np.random.default_rng(0).normal(size=(count, 1, 5, 5))
    return Tensor.from_numpy(x, device)


def means(model):
    """The running mean of the only BatchNorm."""
    return np.array(model.body.norm.running_mean.val())


def trained(model, steps=2):
    """The model after some forward passes in training, as a step would do them."""
    for _ in range(steps):
        model.forward(images())
    return model


def attributes(model):
    """Whether each module is in eval mode, by its path."""
    parts = {"": model, "body": model.body, "body.norm": model.body.norm}
    parts |= {f"dropouts.{i}": part for i, part in enumerate(model.dropouts)}
    return {path: part.in_eval for path, part in parts.items()}


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_eval_computes_what_valid_does_and_has_gradients(device):
    model = trained_on = net(device)
    trained_on.forward(images(device))
    x = images(device).require_grad()
    asked = model.eval()
    out = asked.forward(x)
    wanted = model.valid().forward(x.inner())
    np.testing.assert_allclose(
        np.asarray(out), np.asarray(wanted), rtol=1e-5, atol=1e-6
    )
    grads = (out * out).sum().backward()
    assert np.abs(np.asarray(x.grad(grads))).min() > 0
    params = GradientsParams.from_grads(grads, model)  # the same leaves
    assert len(params) == 6


def test_eval_moves_no_statistics_and_the_model_stays_in_training():
    model = trained(net())
    before = means(model)
    asked = model.eval()
    asked.forward(images())
    assert np.array_equal(means(asked), before)
    assert np.array_equal(means(model), before)
    model.forward(images())
    assert not np.array_equal(means(model), before)
    assert np.array_equal(means(asked), before)
    a, b = (np.asarray(model.forward(images())) for _ in range(2))
    assert not np.array_equal(a, b)
    a, b = (np.asarray(asked.forward(images())) for _ in range(2))
    assert np.array_equal(a, b)


def test_train_takes_it_back():
    model = trained(net())
    back = model.eval().train()
    before = means(back)
    back.forward(images())
    assert not np.array_equal(means(back), before)
    assert not any(attributes(back).values())
    assert back.devices() == [AD]
    from_valid = model.eval().valid().train()
    assert not any(attributes(from_valid).values())
    assert all(p.is_require_grad for _, p in from_valid.head.named_params())


def test_a_part_alone():
    model = net()
    some = model.eval("body", "dropouts.1")
    wanted = {"body": True, "body.norm": True, "dropouts.1": True}
    assert attributes(some) == {**dict.fromkeys(attributes(model), False), **wanted}
    assert attributes(model.replace(body=model.body.eval()))["body.norm"]
    assert all(part.in_eval for part in model.eval("dropouts").dropouts)
    again = model.eval().train("body.norm")
    assert again.in_eval
    assert not again.body.norm.in_eval
    before = means(again)
    again.forward(images())
    assert not np.array_equal(means(again), before)


@pytest.mark.parametrize("verb", ["eval", "train"])
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("bodi", "near   body"),
        ("norm", "near   body.norm"),
        ("dropout.0", "near   dropouts.0"),
        ("head.weight", "is a parameter"),
        ("", "there is no part at ''"),
        (3, "int is not the path"),
    ],
)
def test_a_wrong_path_names_near_ones(verb, path, text):
    with pytest.raises(ConfigError) as error:
        getattr(net(), verb)(path)
    assert f"Net.{verb}" in str(error.value)
    assert text in str(error.value)
    assert "try: " in str(error.value)


class Halve(ModuleMapper):
    def map_float(self, id, tensor):  # noqa: A002
        return tensor * 0.5


def with_nothing(model):
    """Loaded from a record that holds nothing of it."""
    with pytest.warns(UserWarning, match="0 of 8 parameters loaded"):
        return model.load_partial({})[0]


SURVIVES = {
    "map": lambda m: m.map(Halve()),
    "fork": lambda m: m.fork(AD),
    "to_device": lambda m: m.to_device(Autodiff(Numpy(float="f64", compiled=False))),
    "valid": lambda m: m.valid(),
    "clone": lambda m: m.clone(),
    "no_grad": lambda m: m.no_grad(),
    "freeze": lambda m: m.freeze_group(ParamGroup.from_predicate("head")),
    "replace": lambda m: m.replace(dropouts=list(m.dropouts)),
    "record": lambda m: m.load_record(net().into_record()),
    "partial": lambda m: m.load_partial({"head": net().into_record()["head"]})[0],
    "nothing": with_nothing,
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
    "lora": lambda m: m.apply_lora(Lora(1, 2.0)),
    "quantized": lambda m: m.valid().quantize_weights(
        Quantizer(MinMaxCalibration(), QuantizationScheme.PerTensorSymmetric()),
        ParamGroup.from_predicate("head.weight"),
    ),
    "step": lambda m: (
        SgdConfig()
        .init()
        .step(0.1, m, GradientsParams.from_grads(m(images()).sum().backward(), m))
    ),
}


@pytest.mark.parametrize("name", SURVIVES)
def test_the_mode_survives(name):
    model = net().eval("body", "dropouts.0")
    made = SURVIVES[name](model)
    assert attributes(made) == attributes(model)


def test_a_record_knows_no_mode():
    model = trained(net())
    recorder = NamedMpkBytesRecorder(FullPrecisionSettings)
    written = [recorder.record(m.into_record()) for m in (model, model.eval())]
    assert written[0] == written[1]
    assert not attributes(net().load_record(model.eval().into_record()))["body.norm"]


def test_no_grad_moves_no_statistics():
    model = trained(net())
    before = means(model)
    for frozen in (
        model.no_grad(),
        model.freeze_group(ParamGroup.from_predicate("norm")),
        pickle.loads(pickle.dumps(model.no_grad())),
        model.no_grad().valid().train(),
        model.no_grad().load_record(model.into_record()),
        model.no_grad().map(ModuleMapper()),
    ):
        frozen.forward(images())
        assert np.array_equal(means(frozen), before)
    thawed = model.no_grad().unfreeze_group(ParamGroup.all())
    thawed.forward(images())
    assert not np.array_equal(means(thawed), before)
    part = model.freeze_group(ParamGroup.from_predicate("head"))
    part.forward(images())
    assert not np.array_equal(means(part), before)


def test_a_frozen_state_of_a_layer_of_ones_own():
    state = RunningState.from_tensor(Tensor.zeros([2], PLAIN)).set_require_grad(False)
    state.update(Tensor.ones([2], PLAIN))
    assert state.val().to_data().to_list() == [0.0, 0.0]


RESTING = {
    "dropout": lambda: nn.DropoutConfig(0.5).init(),
    "noise": lambda: nn.GaussianNoiseConfig(1.0).init(),
    "rrelu": lambda: nn.RReluConfig().init(),
    "feed_forward": lambda: nn.PositionWiseFeedForwardConfig(4, 8, dropout=0.5).init(
        AD
    ),
    "attention": lambda: nn.MultiHeadAttentionConfig(4, 2, dropout=0.5).init(AD),
    "cross": lambda: nn.CrossAttentionConfig(4, 4, 2, 2, 2, dropout=0.5).init(AD),
    "encoder": lambda: nn.TransformerEncoderConfig(4, 8, 2, 1, dropout=0.5).init(AD),
}


@pytest.mark.parametrize("name", RESTING)
def test_every_layer_with_chance_rests(name):
    layer = RESTING[name]()
    x = Tensor.random([2, 3, 4], Distribution.Normal(0.0, 1.0), AD)
    call = {
        "attention": lambda m, x: m(nn.MhaInput.self_attn(x)).context,
        "cross": lambda m, x: m(x, x, None),
        "encoder": lambda m, x: m(nn.TransformerEncoderInput(x)),
    }.get(name, lambda m, x: m(x))
    a, b = (np.asarray(call(layer, x)) for _ in range(2))
    assert not np.array_equal(a, b)
    asked = layer.eval()
    out = call(asked, x)
    assert np.array_equal(np.asarray(out), np.asarray(call(asked, x)))
    wanted = call(layer.valid(), x.inner())
    np.testing.assert_allclose(
        np.asarray(out), np.asarray(wanted), rtol=1e-5, atol=1e-6
    )


def test_a_layer_of_ones_own_asks():
    class Jitter(Module):
        size: float

        def forward(self, x):
            return x + self.size if self.is_training(x) else x

    x = Tensor.zeros([1], AD)
    layer = Jitter(1.0)
    found = [layer(x), layer.eval()(x), layer(x.inner()), layer.eval().train()(x)]
    assert [t.to_data().to_list() for t in found] == [[1.0], [0.0], [0.0], [1.0]]


def test_it_shows_where_the_mode_changes():
    model = net()
    assert "mode" not in str(model)
    text = str(model.eval().train("body.norm"))
    assert text.count("mode: eval") == 1
    assert "  mode: eval\n  params" in text
    assert text.count("mode: train") == 1
    assert "epsilon: 0.00001, mode: train, params: 8}" in text
    assert str(model.dropouts[0].eval()) == "Dropout {prob: 0.5, mode: eval}"
    assert str(nn.Relu().eval()) == "Relu {mode: eval}"
    quiet = DisplaySettings().with_show_mode(False)
    assert model.eval().format(quiet) == str(model)


def test_as_pytorch_with_gradients_of_a_model_that_is_asked():
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle here")
    wide = Autodiff(Numpy(float="f64", compiled=False))
    layer = nn.BatchNormConfig(3).init(wide)
    theirs = torch.nn.BatchNorm1d(3, dtype=torch.float64)
    rng = np.random.default_rng(1)
    for _ in range(3):
        x = rng.normal(size=(50, 3))
        layer.forward(Tensor.from_numpy(x, wide))
        theirs(torch.from_numpy(x))
    theirs.running_mean.copy_(
        torch.from_numpy(np.array(layer.running_mean.val()))
    )  # the variance of theirs is the unbiased one
    theirs.running_var.copy_(torch.from_numpy(np.array(layer.running_var.val())))
    theirs.eval()
    x = rng.normal(size=(5, 3))
    mine, other = Tensor.from_numpy(x, wide).require_grad(), torch.tensor(x)
    other.requires_grad_()
    asked = layer.eval()
    out, wanted = asked(mine).tanh(), torch.tanh(theirs(other))
    grads = (out * out).sum().backward()
    (wanted * wanted).sum().backward()
    np.testing.assert_allclose(np.asarray(out), wanted.detach().numpy(), rtol=1e-12)
    for ours, their in [
        (mine, other),
        (asked.gamma.val(), theirs.weight),
        (asked.beta.val(), theirs.bias),
    ]:
        np.testing.assert_allclose(
            np.asarray(ours.grad(grads)), their.grad.numpy(), rtol=1e-9, atol=1e-12
        )


@dataclass
class Batch:
    x: Tensor
    y: Tensor


class Batches(Batcher):
    def batch(self, items, device=None):
        x, y = (np.stack([item[i] for item in items]) for i in (0, 1))
        return Batch(
            Tensor.from_data(x, device, Float), Tensor.from_data(y, device, Float)
        )


@dataclass
class Output:
    loss: Tensor


class Tuned(Net):
    def train_step(self, batch):
        loss = nn.loss.MseLoss().forward(
            self.forward(batch.x), batch.y, nn.loss.Reduction.Mean
        )
        return TrainOutput(self, loss.backward(), Output(loss))

    def valid_step(self, batch):
        out = self.forward(batch.x)
        return Output(nn.loss.MseLoss().forward(out, batch.y, nn.loss.Reduction.Mean))


@pytest.mark.parametrize("devices", [None, [PLAIN, PLAIN]], ids=["one", "two"])
def test_fine_tuning_below_frozen_statistics_in_a_learner(tmp_path, devices):
    rng = np.random.default_rng(2)
    rows = [
        (rng.normal(size=(1, 5, 5)).astype("f4"), rng.normal(size=2).astype("f4"))
        for _ in range(12)
    ]
    model = trained(Tuned(**vars(net())))
    model = model.eval("body.norm")
    before, weight = means(model), np.array(model.body.conv.weight.val())
    loaders = [
        DataLoaderBuilder(Batches()).batch_size(4).build(InMemDataset(rows))
        for _ in range(2)
    ]
    builder = LearnerBuilder(tmp_path).num_epochs(2).renderer(MetricsRenderer())
    builder = builder if devices is None else builder.devices(devices)
    learner = builder.build(model, SgdConfig().init(), 1e-2)
    made = learner.fit(*loaders)
    assert np.array_equal(means(made), before)
    assert made.body.norm.in_eval
    assert not made.in_eval
    assert not np.array_equal(np.array(made.body.conv.weight.val()), weight)
