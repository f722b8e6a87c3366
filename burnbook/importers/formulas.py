"""Layers whose weights fit while they compute otherwise than PyTorch's."""

from __future__ import annotations

from collections.abc import Iterable

from burnbook.core.errors import Fact, explain, warn_caller
from burnbook.importers.torch_layers import Spot
from burnbook.nn import GroupNorm, InstanceNorm


def other_formulas(loaded: Iterable[Spot]) -> list[Fact]:
    """The layers among those loaded that PyTorch computes otherwise, and how.

    Why: PyTorch adds epsilon to the variance, Burn 0.15 to the standard deviation; for
    small inputs the results have nothing in common.
    """
    rows: dict[str, str] = {}
    for spot in loaded:
        layer = spot.layer
        if isinstance(layer, (GroupNorm, InstanceNorm)) and not layer.epsilon_inside:
            path = spot.path.rpartition(".")[0] or spot.layer_type
            rows[path] = f"{spot.layer_type} adds epsilon outside of the root"
    return list(rows.items())


def warn_of_formulas(where: str, loaded: Iterable[Spot]) -> None:
    """Warn of layers that will give other numbers than PyTorch with these weights."""
    rows = other_formulas(loaded)
    if rows:
        kind = rows[0][1].partition(" ")[0]
        what = "the weights fit, but PyTorch computes these layers otherwise"
        cure = f"{kind}Config(…).with_epsilon_inside(True)"
        warn_caller(explain(where, what, rows, cure))
