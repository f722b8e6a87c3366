"""Compiled kernels: without numba each of these tests is collected, and skips."""

import pytest


@pytest.fixture(autouse=True)
def numba():
    return pytest.importorskip("numba", reason="kernels are compiled by numba")
