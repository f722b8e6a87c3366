"""Building blocks · Module. Convolutions."""

from burnbook.nn.conv.conv2d import Conv2d, Conv2dConfig

__all__ = ["Conv2d", "Conv2dConfig"]
