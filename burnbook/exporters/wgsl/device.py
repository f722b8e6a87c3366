"""Run the kernels here: by the package wgpu, on a GPU or on a Vulkan of the CPU."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from burnbook.core.errors import ArgumentError
from burnbook.exporters.lowering import Plan, Storage
from burnbook.exporters.lowering.files import Packed, unpacked
from burnbook.exporters.lowering.sizes import size_at
from burnbook.exporters.wgsl.writer import Kernels

TYPES = {"f32": np.float32, "i32": np.int32, "bool": np.uint32}


@cache
def gpu() -> Any:
    """A device of WebGPU.

    Raises: ArgumentError where the package wgpu, or a driver, is missing.
    """
    try:
        import wgpu
    except ImportError:
        what = "running WGSL in Python needs the package wgpu"
        raise ArgumentError("to_wgsl", what, cure="pip install wgpu") from None
    try:
        adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
        names = ("max-buffer-size", "max-storage-buffer-binding-size")
        limits = {name: adapter.limits[name] for name in names}
        return adapter.request_device_sync(required_limits=limits)
    except RuntimeError as error:
        facts = [("it says", str(error))]
        cure = "apt install mesa-vulkan-drivers"
        raise ArgumentError("to_wgsl", "there is no GPU", facts, cure) from None


class Runner:
    """A plan on a device: its weights, its pipelines, its memory."""

    def __init__(self, plan: Plan, kernels: Kernels, made: Packed):
        self.plan, self.kernels = plan, kernels
        self.device: Any = gpu()
        arrays = unpacked(made)
        self.weights = {
            one: self._filled(arrays[one.name].astype(TYPES[one.kind]))
            for one in plan.constants
        }
        self.pipelines: dict[str, Any] = {}
        for name, text in kernels.texts.items():
            module = self.device.create_shader_module(label=name, code=text)
            stage = {"module": module, "entry_point": "main"}
            made = self.device.create_compute_pipeline(layout="auto", compute=stage)
            self.pipelines[name] = made

    def run(self, arrays: list[np.ndarray], n: int) -> list[np.ndarray]:
        """The outputs, for arrays of a batch of n."""
        device = self.device
        buffers = [
            self._buffer(max(size_at(size, n) for size in sizes))
            for _, sizes in self.plan.buffers
        ]
        held: dict[Storage, Any] = dict(self.weights)
        for (_, storage), array in zip(self.plan.inputs, arrays, strict=True):
            array = array.astype(bool) if storage.kind == "bool" else array
            given = np.ascontiguousarray(array, TYPES[storage.kind])
            held[storage] = self._filled(given)
        batch = device.create_buffer(size=16, usage="UNIFORM|COPY_DST")
        device.queue.write_buffer(batch, 0, np.array([n, 0, 0, 0], np.uint32))
        encoder = device.create_command_encoder()
        turn = encoder.begin_compute_pass()
        for one in self.kernels.dispatches:
            pipeline = self.pipelines[one.kernel]
            bound = [
                buffers[s.slot] if s.role == "result" else held[s] for s in one.bound
            ]
            bound += [batch] if one.uses_batch else []
            entries = [
                {"binding": i, "resource": {"buffer": b, "offset": 0, "size": b.size}}
                for i, b in enumerate(bound)
            ]
            layout = pipeline.get_bind_group_layout(0)
            turn.set_pipeline(pipeline)
            turn.set_bind_group(
                0, device.create_bind_group(layout=layout, entries=entries)
            )
            turn.dispatch_workgroups(*one.groups.at(n))
        turn.end()
        device.queue.submit([encoder.finish()])
        found: list[np.ndarray] = []
        for value, storage in self.plan.outputs:
            data = device.queue.read_buffer(buffers[storage.slot])
            array = np.frombuffer(data, TYPES[storage.kind])
            shape = value.shape_at(n)
            array = array[: size_at(storage.size, n)].reshape(shape)
            found.append(array.astype(bool) if storage.kind == "bool" else array)
        return found

    def _buffer(self, count: int) -> Any:
        usage = "STORAGE|COPY_SRC|COPY_DST"
        return self.device.create_buffer(size=4 * max(count, 1), usage=usage)

    def _filled(self, given: np.ndarray) -> Any:
        made = self._buffer(given.size)
        if given.size:
            self.device.queue.write_buffer(made, 0, given)
        return made
