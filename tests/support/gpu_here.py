"""Whether WGSL can run here: the package wgpu, and a driver of Vulkan."""

import functools

import pytest

from burnbook.core.errors import ArgumentError


@functools.cache
def reason():
    """Why it cannot, or an empty text."""
    from burnbook.exporters.wgsl.device import gpu

    try:
        backend = gpu().adapter.info["backend_type"]
    except ArgumentError as error:
        return str(error).splitlines()[0]
    return "WebGPU runs on OpenGL only here" if backend == "OpenGL" else ""


needs_gpu = pytest.mark.skipif(bool(reason()), reason=reason() or "there is one")
