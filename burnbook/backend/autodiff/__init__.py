"""Gradients of anything, by decorating a backend."""

from burnbook.backend.autodiff.autodiff import Autodiff
from burnbook.backend.autodiff.checkpointing import (
    BalancedCheckpointing,
    CheckpointingStrategy,
    NoCheckpointing,
)
from burnbook.backend.autodiff.gradients import Gradients
from burnbook.backend.autodiff.graph import Graph, GraphNode, Hook

__all__ = [
    "Autodiff",
    "BalancedCheckpointing",
    "CheckpointingStrategy",
    "Gradients",
    "Graph",
    "GraphNode",
    "Hook",
    "NoCheckpointing",
]
