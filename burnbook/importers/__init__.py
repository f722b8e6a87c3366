"""Weights and models of others: PyTorch, ONNX, and stores as in newer Burn."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.importers.adapter import (
    Adapter,
    BurnToPyTorchAdapter,
    FloatCastAdapter,
    HalfPrecisionAdapter,
    IdentityAdapter,
    PyTorchToBurnAdapter,
)
from burnbook.importers.apply_result import ApplyError, ApplyResult, NotApplied
from burnbook.importers.key_remap import KeyRemapper
from burnbook.importers.lazy_array import LazyArray
from burnbook.importers.path_filter import PathFilter
from burnbook.importers.pytorch import (
    LoadArgs,
    PyTorchFileRecorder,
    PytorchStore,
    config_from_file,
)
from burnbook.importers.pytorch_reader import PytorchReader
from burnbook.importers.safetensors import (
    AdapterType,
    SafetensorsFileRecorder,
    SafetensorsStore,
)
from burnbook.importers.store import ModuleStore
from burnbook.importers.torch_layers import pytorch_arrays

__all__ = [
    "Adapter",
    "AdapterType",
    "ApplyError",
    "ApplyResult",
    "BurnToPyTorchAdapter",
    "FloatCastAdapter",
    "HalfPrecisionAdapter",
    "IdentityAdapter",
    "KeyRemapper",
    "LazyArray",
    "LoadArgs",
    "ModuleStore",
    "NotApplied",
    "PathFilter",
    "PyTorchFileRecorder",
    "PyTorchToBurnAdapter",
    "PytorchReader",
    "PytorchStore",
    "SafetensorsFileRecorder",
    "SafetensorsStore",
    "config_from_file",
    "pytorch_arrays",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
