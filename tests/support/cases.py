"""Tables of cases, for tests that ask the same of many things."""

import pytest


def cases(names, *rows, ids=None):
    """One test for each row: `@cases("given wanted", (1, 2), (3, 4))`."""
    names = names.split()
    return pytest.mark.parametrize(names if names[1:] else names[0], rows, ids=ids)
