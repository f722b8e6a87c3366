"""Models for WebGPU: `to_wgsl(model, "model.js", x)`."""

from burnbook.exporters.wgsl.export import (
    WgslFile as WgslFile,
    to_wgsl as to_wgsl,
    unsupported as unsupported,
)
