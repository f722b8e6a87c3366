"""What a config is made of."""

from typing import TYPE_CHECKING

from burnbook.config.choice import ConfigEnum, holding, unit
from burnbook.config.config import Config
from burnbook.core.other_names import module_answers

__all__ = ["Config", "ConfigEnum", "holding", "unit"]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
