"""Files of PyTorch in memory, made once; tests that need PyTorch skip without it."""

import pytest


@pytest.fixture(scope="session")
def torch_files():
    """Name, bytes and tensors of each file."""
    pytest.importorskip("torch", reason="PyTorch makes the files")
    from tests.importers import torch_files

    return list(torch_files.files())
