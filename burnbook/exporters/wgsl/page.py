"""Kernels and their driver as one module of JavaScript."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from burnbook.exporters.lowering import Plan, files
from burnbook.exporters.lowering.files import Packed
from burnbook.exporters.wgsl.writer import Groups, Kernels
from burnbook.program import Size
from burnbook.program.sizes import Dim


def text_of(
    plan: Plan, kernels: Kernels, made: Packed, weights: str, target: Path
) -> str:
    """The whole file."""
    loading = ["unpacked", "batchOf"]
    loading.append("bytesOf" if weights == "embedded" else "bytesBeside")
    source = (
        "bytesOf(WEIGHTS)" if weights == "embedded" else "await bytesBeside(WEIGHTS)"
    )
    sizes = f"Weights {len(made.data):,} bytes."
    parts = [
        "\n".join(files.head(plan, target, sizes, waits=True)),
        "\n".join(files.input_lines(plan, named=True)),
        "\n".join(_outputs(plan)),
        "\n".join(_buffers(plan)),
        "\n".join(_steps(kernels)),
        "\n".join(_texts(kernels)),
        _driver().replace("LOADED", source),
        *files.needed(files.helpers(), loading),
        "\n".join(files.weight_lines(made, weights, target)),
    ]
    return "\n\n".join(parts) + "\n"


def _outputs(plan: Plan) -> list[str]:
    lines = ["const OUTPUTS = (n) => ["]
    for name, (value, storage) in zip(plan.names, plan.outputs, strict=True):
        shape = ", ".join(map(files.size, value.shape))
        lines += [
            "  {",
            f'    name: {files.quoted(name)}, buffer: "{storage.place}", '
            f'type: "{storage.kind}",',
            f"    count: {files.size(storage.size)}, shape: [{shape}],",
            "  },",
        ]
    return [*lines, "];"]


def _buffers(plan: Plan) -> list[str]:
    rows = [f"  {files.largest_text(sizes)}," for _, sizes in plan.buffers]
    return [
        "// How many numbers each buffer holds.",
        "const BUFFERS = (n) => [",
        *rows,
        "];",
    ]


def _steps(kernels: Kernels) -> list[str]:
    lines = [
        "// Which kernels run, on what, and in how many workgroups.",
        "const STEPS = [",
    ]
    for one in kernels.dispatches:
        bound = [files.quoted(storage.place) for storage in one.bound]
        bound += ["null"] if one.uses_batch else []
        note = f"  // {files.shown(one.note)}" if one.note else ""
        lines += [
            f"  {{{note}",
            f'    kernel: "{one.kernel}",',
            f"    bind: [{', '.join(bound)}],",
            f"    groups: (n) => {_groups(one.groups)},",
            "  },",
        ]
    return [*lines, "];"]


def _groups(groups: Groups) -> str:
    counts = [
        _ceiling(total, each)
        for total, each in zip(groups.total, groups.each, strict=True)
    ]
    return f"spread({' * '.join(one for one in counts if one != '1') or '1'})"


def _ceiling(total: Size, each: int) -> str:
    if not isinstance(total, Dim):
        return str(-(-total // each))
    text = files.factor(total)
    return text if each == 1 else f"Math.ceil({text} / {each})"


def _texts(kernels: Kernels) -> list[str]:
    lines = ["const KERNELS = {"]
    for name, text in kernels.texts.items():
        safe = text.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
        lines.append(f"{name}: /* wgsl */ `\n{safe}`,\n")
    return [*lines, "};"]


@cache
def _driver() -> str:
    return Path(__file__).with_name("driver.js").read_text("utf-8").rstrip("\n")
