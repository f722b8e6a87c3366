"""What modules are made of."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.module.display import Content, DisplaySettings
from burnbook.module.features import Features
from burnbook.module.functional import functional_call
from burnbook.module.lora import Lora, LoraAdapter, QLora
from burnbook.module.module import Module, list_param_ids
from burnbook.module.param import Param, ParamId, ParamRecord
from burnbook.module.profiling import LayerProfile, ModuleProfile, profile
from burnbook.module.quantizer import Dequantize, Quantizer
from burnbook.module.reparameterization import Reparameterization, Reparameterizer
from burnbook.module.report import LoadReport
from burnbook.module.running import RunningState
from burnbook.module.summaries import LayerSummary, ModuleSummary, summary
from burnbook.module.visitor import ModuleMapper, ModuleVisitor
from burnbook.module.weight_norm import WeightGain, WeightNorm

__all__ = [
    "Content",
    "Dequantize",
    "DisplaySettings",
    "Features",
    "LayerProfile",
    "LayerSummary",
    "LoadReport",
    "Lora",
    "LoraAdapter",
    "Module",
    "ModuleMapper",
    "ModuleProfile",
    "ModuleSummary",
    "ModuleVisitor",
    "Param",
    "ParamId",
    "ParamRecord",
    "QLora",
    "Quantizer",
    "Reparameterization",
    "Reparameterizer",
    "RunningState",
    "WeightGain",
    "WeightNorm",
    "functional_call",
    "list_param_ids",
    "profile",
    "summary",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
