"""Equal arguments give the same backend, without reading a signature each time."""

import inspect

import pytest

from burnbook.backend import Numpy
from burnbook.core.errors import ArgumentError


def test_a_backend_without_arguments_is_the_one_with_the_defaults():
    assert Numpy() is Numpy()
    assert Numpy() is Numpy(float="f32")
    assert Numpy(float="f64") is Numpy("f64")
    assert Numpy().arguments == Numpy(float="f32").arguments


def test_a_known_backend_is_found_without_its_signature(monkeypatch):
    first = Numpy()
    monkeypatch.setattr(inspect, "signature", None)
    assert Numpy() is first


def test_a_wrong_argument_is_named():
    with pytest.raises(ArgumentError, match="Numpy"):
        Numpy(precision="f64")
