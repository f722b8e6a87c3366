"""Importing this lets numba compile something, so that it has read its own tables.

Why: that takes half a second, in each of hundreds of processes that fork from one; none
of our kernels is loaded by it.
"""

import numba


@numba.njit([numba.float32(numba.float32[::1])])
def first(values):
    """Any function of an array."""
    return values[0]
