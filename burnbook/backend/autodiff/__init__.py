"""Gradients of anything, by decorating a backend."""

from burnbook.backend.autodiff.autodiff import Autodiff
from burnbook.backend.autodiff.checkpointing import (
    BalancedCheckpointing,
    CheckpointStrategy,
    NoCheckpointing,
)
from burnbook.backend.autodiff.gradients import Gradients
from burnbook.backend.autodiff.graph import Graph, GraphNode, Hook

__all__ = [
    "Autodiff",
    "BalancedCheckpointing",
    "CheckpointStrategy",
    "Gradients",
    "Graph",
    "GraphNode",
    "Hook",
    "NoCheckpointing",
]
