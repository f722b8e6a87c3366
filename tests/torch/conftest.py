"""Beside PyTorch: without it each of these tests is collected, and skips."""

import pytest


@pytest.fixture(autouse=True)
def pytorch():
    return pytest.importorskip("torch", reason="PyTorch is the oracle here")
