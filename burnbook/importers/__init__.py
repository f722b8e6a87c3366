"""Weights and models of others: files of PyTorch, and stores as in newer Burn."""

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
    "ModuleStore",
    "NotApplied",
    "PathFilter",
    "PyTorchToBurnAdapter",
    "SafetensorsFileRecorder",
    "SafetensorsStore",
    "pytorch_arrays",
]
