"""Building blocks · Module. Pooling."""

from burnbook.nn.pool.adaptive_avg_pool2d import (
    AdaptiveAvgPool2d,
    AdaptiveAvgPool2dConfig,
)

__all__ = ["AdaptiveAvgPool2d", "AdaptiveAvgPool2dConfig"]
