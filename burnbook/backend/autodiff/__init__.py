"""Gradients of anything, by decorating a backend."""

from typing import TYPE_CHECKING

from burnbook.backend.autodiff.autodiff import Autodiff
from burnbook.backend.autodiff.checkpointing import (
    BalancedCheckpointing,
    CheckpointStrategy,
    NoCheckpointing,
)
from burnbook.backend.autodiff.gradients import Gradients
from burnbook.backend.autodiff.graph import Graph, GraphNode, Hook
from burnbook.core.other_names import module_answers

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

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
