"""Building blocks · Module. What modules are made of."""

from burnbook.module.display import Content, DisplaySettings
from burnbook.module.module import Module, list_param_ids
from burnbook.module.param import Param, ParamId, ParamRecord
from burnbook.module.running import RunningState
from burnbook.module.visitor import ModuleMapper, ModuleVisitor

__all__ = [
    "Content",
    "DisplaySettings",
    "Module",
    "ModuleMapper",
    "ModuleVisitor",
    "Param",
    "ParamId",
    "ParamRecord",
    "RunningState",
    "list_param_ids",
]
