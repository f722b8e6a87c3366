"""An imported classifier learns on, and its record is Burn's."""

import importlib.util

import msgpack
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("sklearn", reason="the digits come with scikit-learn")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend import Numpy
from burnbook.data import DataLoaderBuilder, DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.importers.onnx import ModelGen, load
from burnbook.nn.loss import CrossEntropyLossConfig
from burnbook.optim import AdamConfig, GradientsParams
from burnbook.record import (
    BinFileRecorder,
    FullPrecisionSettings,
    NamedMpkFileRecorder,
    convert,
)

NAMES = ["hidden.weight", "hidden.bias", "output.weight", "output.bias"]


def trained(model, device):
    """The model after five epochs of digits."""
    loader = DataLoaderBuilder(MnistBatcher(device)).batch_size(64).shuffle(42)
    loader = loader.build(DigitsDataset.train())
    optim = AdamConfig().init()
    cross_entropy = CrossEntropyLossConfig().init(device)
    for _ in range(5):
        for batch in loader:
            loss = cross_entropy.forward(model.forward(batch.images), batch.targets)
            grads = GradientsParams.from_grads(loss.backward(), model)
            model = optim.step(2e-3, model, grads)
    return model


def right(model):
    """The share of test digits that a model reads."""
    items = list(DigitsDataset.test())
    images = MnistBatcher(Numpy()).batch(items).images
    guesses = np.asarray(model.forward(images).argmax(1)).ravel()
    return (guesses == [item.label for item in items]).mean()


def classifier(path):
    """An ONNX file of a classifier that has seen 100 digits, by least squares."""
    items = [DigitsDataset.train().get(i) for i in range(100)]
    batch = MnistBatcher(Numpy()).batch(items)
    rows = np.asarray(batch.images).reshape(100, -1)
    rng = np.random.default_rng(0)
    first = rng.normal(0, 784**-0.5, (784, 48)).astype(np.float32)
    wanted = np.eye(10, dtype=np.float32)[np.asarray(batch.targets)]
    hidden = np.maximum(rows @ first, 0)
    near = hidden.T @ hidden + 0.1 * np.eye(48)
    last = np.linalg.solve(near, hidden.T @ wanted).astype(np.float32)
    arrays = [first, np.zeros(48, np.float32), last.T.copy(), np.zeros(10, np.float32)]

    def value(name, *sizes):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", *sizes])

    nodes = [
        helper.make_node("Flatten", ["images"], ["pixels"]),
        helper.make_node("Gemm", ["pixels", *NAMES[:2]], ["sums"]),
        helper.make_node("Relu", ["sums"], ["active"]),
        helper.make_node("Gemm", ["active", *NAMES[2:]], ["logits"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [value("images", 28, 28)],
        [value("logits", 10)],
        [numpy_helper.from_array(a, n) for n, a in zip(NAMES, arrays, strict=True)],
    )
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A generated class, its model, the same after fine-tuning, and their folder."""
    folder = tmp_path_factory.mktemp("tuned")
    path = classifier(folder / "classifier.onnx")
    (made,) = ModelGen().input(path).out_dir(folder).run_from_cli()
    spec = importlib.util.spec_from_file_location("classifier", made)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ad = Numpy().autodiff()
    before = module.Model.from_file(folder / "classifier.mpk", ad)
    after = trained(before, ad)
    return module.Model, before.valid(), after.valid(), folder


def test_fine_tuning_on_the_digits_improves_an_imported_classifier(tuned):
    _, before, after, _ = tuned
    assert 0.4 < right(before) < 0.85
    assert right(after) > 0.9


def test_the_record_has_burns_layout_and_comes_back(tuned):
    generated, _, after, folder = tuned
    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    path = after.save_file(folder / "after", recorder)
    tree = msgpack.unpackb(path.read_bytes())
    assert tree["metadata"]["version"] == "0.15.0"
    assert list(tree["item"]) == ["hidden", "output"]
    held = tree["item"]["output"]["weight"]
    assert held["param"]["shape"] == [48, 10]  # [input, output], as Burn has it
    assert held["param"]["bytes"] == np.asarray(after.output.weight.val()).tobytes()
    again = generated.from_file(path, Numpy())
    assert right(again) == right(after)


def test_the_record_comes_back_through_bincode(tuned):
    generated, _, after, folder = tuned
    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    path = after.save_file(folder / "first", recorder)
    packed = convert(path, folder / "packed.bin", module=generated.new(Numpy()))
    recorder = BinFileRecorder(FullPrecisionSettings)
    again = generated.new(Numpy()).load_file(packed, recorder)
    for (name, a), (_, b) in zip(
        again.named_params(), after.named_params(), strict=True
    ):
        np.testing.assert_array_equal(a.val(), b.val(), err_msg=name)


def test_a_loaded_model_learns_as_the_generated_one_does(tuned):
    _, before, after, folder = tuned
    ad = Numpy().autodiff()
    model = load(folder / "classifier.onnx", ad)
    assert right(model.valid()) == right(before)
    model = trained(model, ad)
    assert right(model.valid()) == pytest.approx(right(after), abs=0.02)
