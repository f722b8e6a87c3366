"""Building blocks · Autodiff. Gradients of anything, by decorating a backend."""

from burnbook.autodiff.autodiff import Autodiff
from burnbook.autodiff.checkpointing import (
    BalancedCheckpointing,
    CheckpointingStrategy,
    NoCheckpointing,
)
from burnbook.autodiff.gradients import Gradients
from burnbook.autodiff.graph import Graph, GraphNode, Hook

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
