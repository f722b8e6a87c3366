"""The two loops that most slow functions are made of, and functions made by them."""

from functools import partial

import numpy as np


def each(function, *arrays):
    """Apply a function of numbers to every element of arrays that stretch."""
    stretched = np.broadcast_arrays(*arrays)
    out = np.empty(stretched[0].shape)
    for place in np.ndindex(out.shape):
        out[place] = function(*[float(x[place]) for x in stretched])
    return out


def lines(function, x, dim):
    """Apply a function to every line of numbers along a dim, which stays."""
    moved = np.moveaxis(x, dim, -1)
    first = np.atleast_1d(function(moved.reshape(-1, x.shape[dim])[0]))
    out = np.empty((*moved.shape[:-1], len(first)))
    for place in np.ndindex(moved.shape[:-1]):
        out[place] = function(moved[place])
    return np.moveaxis(out, -1, dim)


def by_element(formula):
    """The slow function that applies a formula to every element."""
    return lambda *arrays, **attrs: each(partial(formula, **attrs), *arrays)


def by_line(formula):
    """The slow function that applies a formula to every line along a dim."""
    return lambda x, dim, **attrs: lines(partial(formula, **attrs), x, dim)
