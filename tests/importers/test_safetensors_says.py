"""A safetensors file that says it is of PyTorch is read as one, square or not."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.importers import (
    BurnToPyTorchAdapter,
    IdentityAdapter,
    PyTorchToBurnAdapter,
    SafetensorsFileRecorder,
    SafetensorsStore,
)
from burnbook.nn import BatchNormConfig, LinearConfig, LstmConfig
from burnbook.record import FullPrecisionSettings

DEVICE = Numpy()
LAYERS = {
    "square": lambda: LinearConfig(4, 4).init(DEVICE),
    "wide": lambda: LinearConfig(4, 6).init(DEVICE),
    "norm": lambda: BatchNormConfig(4).init(DEVICE),
    "lstm": lambda: LstmConfig(4, 4, True).init(DEVICE),
}


def values(model):
    return [np.asarray(param.val()) for _, param in model.named_params()]


def same(one, other):
    pairs = zip(values(one), values(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def written(model, word):
    """The file of a model in PyTorch's layout, which says so or not."""
    store = SafetensorsStore.from_bytes().with_to_adapter(BurnToPyTorchAdapter())
    store = store.clear_metadata()
    return model.save_into(store if word is None else store.metadata("format", word))


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("word", ["pt", "pytorch"])
def test_what_the_file_says_is_obeyed(tmp_path, layer, word):
    model, blank = LAYERS[layer](), LAYERS[layer]()
    data = written(model, word)
    assert same(blank.load_from(SafetensorsStore.from_bytes(data))[0], model)
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    assert same(blank.load_from(SafetensorsStore.from_file(path))[0], model)
    applied, result = SafetensorsStore.from_file(path).apply_to(blank)
    assert same(applied, model)
    assert not result.missing
    recorder = SafetensorsFileRecorder(FullPrecisionSettings)
    loaded = blank.load_record(recorder.load(path, DEVICE))
    assert same(loaded, model)


@pytest.mark.parametrize("word", [None, "np", "pt"])
def test_an_adapter_that_is_given_comes_first(word):
    model, blank = LAYERS["square"](), LAYERS["square"]()
    store = SafetensorsStore.from_bytes(written(model, word))
    own = blank.load_from(store.with_from_adapter(IdentityAdapter()))[0]
    assert np.array_equal(values(own)[0], values(model)[0].T)
    turned = blank.load_from(store.with_from_adapter(PyTorchToBurnAdapter()))[0]
    assert same(turned, model)


@pytest.mark.parametrize("word", [None, "np", "safetensors"])
def test_without_the_word_the_layout_is_burns(word):
    model, blank = LAYERS["square"](), LAYERS["square"]()
    store = SafetensorsStore.from_bytes().clear_metadata()
    store = store if word is None else store.metadata("format", word)
    data = model.save_into(store)
    assert same(blank.load_from(SafetensorsStore.from_bytes(data))[0], model)
