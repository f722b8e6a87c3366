"""Compiled kernels are used where there are any, whether or not they were kept."""

import importlib.util
from unittest import mock

import pytest

from burnbook.backend import compiled


@pytest.fixture(autouse=True)
def every_kernel():
    if importlib.util.find_spec("numba") is None:
        yield
        return
    with mock.patch.object(compiled, "_usable", frozenset(compiled.FAMILIES)):
        yield
