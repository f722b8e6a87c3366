"""Models that PyTorch's exporters write: results, layers, training."""

import io
import warnings

import numpy as np
import pytest

pytest.importorskip("onnx")
torch = pytest.importorskip("torch", reason="PyTorch is the oracle here")

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.importers.onnx import ModelGen, RecordType, load, source_of
from burnbook.optim import GradientsParams, SgdConfig
from burnbook.tensor import Tensor

tn = torch.nn


class Block(tn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = tn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = tn.BatchNorm2d(channels)
        self.conv2 = tn.Conv2d(channels, channels, 3, padding=1, groups=2)

    def forward(self, x):
        return torch.relu(x + self.conv2(torch.relu(self.bn1(self.conv1(x)))))


class Picture(tn.Module):
    def __init__(self):
        super().__init__()
        self.stem = tn.Conv2d(1, 8, 3, stride=2)
        self.layer1 = tn.Sequential(Block(8), Block(8))
        self.up = tn.ConvTranspose2d(8, 4, 2, stride=2)
        self.fc = tn.Linear(4, 10)
        self.ln = tn.LayerNorm(10)

    def forward(self, x):
        x = self.layer1(torch.relu(self.stem(x)))
        x = tn.functional.max_pool2d(self.up(x), 2).mean((2, 3))
        return torch.log_softmax(self.ln(self.fc(x)), -1)


class Words(tn.Module):
    def __init__(self):
        super().__init__()
        self.embed = tn.Embedding(20, 16)
        layer = tn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True)
        self.encoder = tn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.lstm = tn.LSTM(16, 12, batch_first=True, bidirectional=True)
        self.out = tn.Linear(24, 20)

    def forward(self, ids):
        h, _ = self.lstm(self.encoder(self.embed(ids)))
        return self.out(h)[:, -1]


CASES = {
    "picture": (Picture, lambda: torch.randn(2, 1, 28, 28)),
    "words": (Words, lambda: torch.randint(0, 20, (3, 7))),
}


def exported(model, x, dynamo):
    if dynamo:
        pytest.importorskip("onnxscript", reason="the newer exporter needs it")
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = torch.onnx.export(model, (x,), None if dynamo else file, dynamo=dynamo)
        if dynamo:
            return made.model_proto.SerializeToString()
    return file.getvalue()


@pytest.mark.parametrize("dynamo", [False, True], ids=["older", "newer"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_pytorch(name, dynamo):
    torch.manual_seed(0)
    cls, make = CASES[name]
    model, x = cls().eval(), make()
    module = load(exported(model, x, dynamo), Numpy())
    found = module.forward(Tensor.from_numpy(x.numpy(), Numpy()))
    wanted = model(x).detach().numpy()
    np.testing.assert_allclose(np.asarray(found), wanted, atol=2e-5)


def test_layers_are_layers_with_the_names_of_the_file():
    module = load(exported(Picture().eval(), torch.randn(2, 1, 28, 28), False), Numpy())
    assert isinstance(module.stem, nn.Conv2d)
    assert isinstance(module.fc, nn.Linear)
    assert isinstance(module.ln, nn.LayerNorm)
    assert isinstance(module.up, nn.ConvTranspose2d)
    text = source_of(module)
    assert "self.fc.forward(" in text
    assert max(map(len, text.splitlines())) <= 100


def test_an_imported_model_learns_and_its_record_goes_round(tmp_path):
    torch.manual_seed(0)
    model, x = Picture().eval(), torch.randn(8, 1, 28, 28)
    device = Autodiff(Numpy())
    device.seed(0)  # of Dropout
    module = load(exported(model, x, False), device)
    images = Tensor.from_numpy(x.numpy(), device)
    targets = Tensor.from_ints(list(range(8)), device)
    loss_of = nn.CrossEntropyLossConfig().init(device)
    optim, losses = SgdConfig().init(), []
    for _ in range(60):
        loss = loss_of(module.forward(images), targets)
        losses.append(loss.into_scalar())
        grads = GradientsParams.from_grads(loss.backward(), module)
        module = optim.step(0.03, module, grads)
    assert losses[-1] < 0.8 * losses[0]
    kept = type(module).new(device).load_record(module.into_record())
    assert np.array_equal(kept.forward(images), module.forward(images))


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("kind", RecordType)
def test_every_record_type_gives_the_model(kind, half, tmp_path):
    torch.manual_seed(0)
    model, x = Picture().eval(), torch.randn(2, 1, 28, 28)
    path = tmp_path / "my-net.onnx"
    path.write_bytes(exported(model, x, False))
    embedded = kind is RecordType.Bincode
    generator = ModelGen().input(path).out_dir(tmp_path / "out").record_type(kind)
    generator = generator.half_precision(half).embed_states(embedded).development(True)
    (made,) = generator.run_from_cli()
    assert (tmp_path / "out" / "my-net.graph.txt").read_text().count("Conv") >= 5
    space = {"__name__": "my_net", "__file__": str(made)}
    exec(compile(made.read_text(), str(made), "exec", dont_inherit=True), space)
    ready = space["Model"].default()
    found = ready.forward(Tensor.from_numpy(x.numpy(), Numpy()))
    wanted = model(x).detach().numpy()
    np.testing.assert_allclose(np.asarray(found), wanted, atol=0.02 if half else 2e-5)
