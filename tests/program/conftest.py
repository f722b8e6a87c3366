"""What tests of programs share."""

import importlib.util
from unittest import mock

import pytest

from burnbook.backend import compiled


@pytest.fixture
def every_kernel():
    """Compiled kernels are used where there are any, whether or not they were kept."""
    if importlib.util.find_spec("numba") is None:
        yield
        return
    with mock.patch.object(compiled, "_usable", frozenset(compiled.FAMILIES)):
        yield
