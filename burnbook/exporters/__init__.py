"""Weights for others: files of PyTorch."""

from burnbook.exporters.pytorch import to_pytorch, write_state_dict

__all__ = ["to_pytorch", "write_state_dict"]
