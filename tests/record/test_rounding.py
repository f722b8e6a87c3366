"""A recorder in f32 says so where it rounds what a model in f64 would take."""

import warnings

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.nn import LinearConfig
from burnbook.record import (
    BurnpackRecorder,
    DoublePrecisionSettings,
    FullPrecisionSettings,
    NamedMpkFileRecorder,
    SafetensorsRecorder,
)

RECORDERS = [NamedMpkFileRecorder, SafetensorsRecorder, BurnpackRecorder]


@pytest.mark.parametrize("recorder", RECORDERS, ids=lambda one: one.__name__)
def test_rounding_is_said_once(recorder, tmp_path):
    double, single = Numpy(float="f64"), Numpy()
    model = LinearConfig(3, 2).init(double)
    values = np.asarray(model.weight.val()) + 1e-12
    model = model.replace(weight=model.weight.map(lambda w: w + 1e-12))
    path = tmp_path / "model"
    exact, rough = recorder(DoublePrecisionSettings), recorder(FullPrecisionSettings)
    exact.record(model.into_record(), path)
    with pytest.warns(UserWarning, match="DoublePrecisionSettings") as caught:
        loaded = model.load_record(rough.load(path, double))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert str(caught[0].message).startswith(("weight: ", "bias: "))
    found = np.asarray(loaded.weight.val())
    assert (found == values.astype(np.float32)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = model.load_record(exact.load(path, double))
        assert (np.asarray(again.weight.val()) == values).all()
        again = LinearConfig(3, 2).init(single).load_record(rough.load(path, single))
        rough.record(model.into_record(), tmp_path / "single")
        rough.load(tmp_path / "single", double)  # nothing is lost any more
