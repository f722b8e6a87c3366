"""The devices that kernels of the GPU run on: a CPU, and a GPU where there is one."""

import pytest

from burnbook.backend.cupy import Cupy
from burnbook.core.errors import BackendError
from tests.support.cuda_on_cpu import Cuda


@pytest.fixture(scope="module")
def threads():
    return Cuda()


@pytest.fixture(scope="module")
def gpu():
    try:
        return Cupy(0)
    except BackendError as error:
        pytest.skip(error.what)
