"""What a config is made of."""

from burnbook.config.choice import ConfigEnum, holding, unit
from burnbook.config.config import Config

__all__ = ["Config", "ConfigEnum", "holding", "unit"]
