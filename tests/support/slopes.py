"""Slopes by small steps, and slopes of slopes: what gradients are compared with."""

import numpy as np

from burnbook.backend import Autodiff
from burnbook.tensor import Tensor


def slopes(function, x, step=1e-6):
    """∂/∂xᵢ of all that a function of an array gives, for every element of it."""
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[place] = step
        up, down = (np.sum(function(x + sign * moved)) for sign in (1, -1))
        found[place] = (up - down) / (2 * step)
    return found


def second_slopes(loss, x, direction, device, step=1e-5):
    """∂²loss/∂x² along a direction: by two backward passes, and by small steps.

    loss: a function of a tensor on whatever device it comes.
    """

    def slope(at):
        """The slope along the direction, by one backward pass."""
        leaf = Tensor.from_numpy(at, device).require_grad()
        grad = leaf.grad(loss(leaf).backward())
        return (np.asarray(grad) * direction).sum()

    low = Tensor.from_numpy(x, device).require_grad()
    high = Tensor.from_inner(low, Autodiff(device)).require_grad()
    first = high.grad(loss(high).backward())
    second = None
    if first is not None and first._tracked():
        along = (first * Tensor.from_numpy(direction, device)).sum()
        second = low.grad(along.backward())
    found = 0.0 if second is None else (np.asarray(second) * direction).sum()
    moved = step * direction
    return found, (slope(x + moved) - slope(x - moved)) / (2 * step)
