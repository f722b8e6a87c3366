"""A plan as compute kernels: their texts, their bindings, and their workgroups."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from burnbook.exporters.lowering import Call, Chain, Made, Plan, Read, Storage
from burnbook.exporters.lowering.files import shown
from burnbook.exporters.lowering.sizes import product, size_at, times
from burnbook.exporters.wgsl.expressions import expression, literal, size
from burnbook.program import Size, size_text
from burnbook.program.sizes import Dim

WORKGROUP, TILE = 64, 16
MOST_GROUPS = 65535  # in one dim of a dispatch
ELEMENTS = {"f32": "f32", "i32": "i32", "bool": "u32"}
LOWEST, HIGHEST = "(-2147483647 - 1)", "2147483647"
REDUCTIONS = {  # of f32: begin, value, joined, end
    "sum": ("0.0", "{v}", "found + value", "found"),
    "mean": ("0.0", "{v}", "found + value", "found / f32(COUNT)"),
    "prod": ("1.0", "{v}", "found * value", "found"),
    "max": ("-infinity()", "{v}", "larger(found, value)", "found"),
    "min": ("infinity()", "{v}", "smaller(found, value)", "found"),
    "length": ("0.0", "{v} * {v}", "found + value", "sqrt(found)"),
    "all": ("1u", "u32({is_true})", "min(found, value)", "found"),
    "any": ("0u", "u32({is_true})", "max(found, value)", "found"),
}
WHOLE = {
    "sum": ("0", "{v}", "found + value", "found"),
    "prod": ("1", "{v}", "found * value", "found"),
    "max": (LOWEST, "{v}", "max(found, value)", "found"),
    "min": (HIGHEST, "{v}", "min(found, value)", "found"),
}
RUNNING = {"cumsum": "sum", "cumprod": "prod", "cummax": "max", "cummin": "min"}
SEARCHES = {"argmax": ">", "argmin": "<"}
ENTRIES = {  # how a kernel begins, by the function that it has
    "by_thread": """\
@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(global_invocation_id) id: vec3u,
  @builtin(num_workgroups) groups: vec3u,
) {
  let place = id.x + id.y * groups.x * WORKGROUP;
  if (place < TOTAL) { by_thread(place); }
}""",
    "by_workgroup": """\
@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let row = group.x + group.y * groups.x;
  if (row < TOTAL) { by_workgroup(row, lane); }
}""",
    "by_tile": """\
@compute @workgroup_size(TILE, TILE)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_id) local: vec3u,
) {
  let tile = group.x + group.y * groups.x;
  let across = max((TOTAL_ACROSS + TILE - 1u) / TILE, 1u);
  let down = max((TOTAL_DOWN + TILE - 1u) / TILE, 1u);
  let matrix = tile / (across * down);
  let row = tile / across % down * TILE + local.y;
  let column = tile % across * TILE + local.x;
  if (matrix < TOTAL_MATRICES) { by_tile(matrix, row, column, local.xy); }
}""",
}
TOTALS = ("TOTAL_ACROSS", "TOTAL_DOWN", "TOTAL_MATRICES")  # of kernels by tile
BY_LINE = {"softmax", "log_softmax"}  # a workgroup for each line along a dim
BY_ROW = {"shares", "layer_norm", "rms_norm", "group_norm"}
BY_BATCH = {"lstm", "gru", "rnn"}  # a workgroup for each sequence


@dataclass(frozen=True)
class Groups:
    """How many workgroups run: so many in a row, or tiles of matrices.

    total: elements or rows; or columns, rows and matrices. each: how many of them a
    workgroup has.
    """

    total: tuple[Size, ...]
    each: tuple[int, ...]

    def at(self, n: int) -> tuple[int, int, int]:
        """The numbers for a batch of n."""
        pairs = zip(self.total, self.each, strict=True)
        return spread(prod(-(-size_at(one, n) // each) for one, each in pairs))


def spread(count: int) -> tuple[int, int, int]:
    """So many workgroups in two dims, where one dim holds too few."""
    down = max(-(-count // MOST_GROUPS), 1)
    return -(-count // down), down, 1


@dataclass(frozen=True)
class Dispatch:
    """One run of a kernel: its storages in the order of bindings, its workgroups."""

    kernel: str
    bound: tuple[Storage, ...]
    groups: Groups
    uses_batch: bool
    note: str


@dataclass(frozen=True)
class Kernels:
    """The texts of all kernels by name, and their runs in order."""

    texts: dict[str, str]
    dispatches: list[Dispatch]


def kernels_of(plan: Plan) -> Kernels:
    """The kernels of a plan; equal ones are held once."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    dispatches: list[Dispatch] = []
    for call in plan.calls:
        title = call.kernel if isinstance(call, Call) else call.name
        if isinstance(call, Call):
            groups = _groups(call)
            text = _call(call, groups)
            bound = (*call.reads.values(), call.out)
        else:
            text, groups = _chain(call)
            bound = (*call.inputs, call.out.storage)
        name = names.get(text)
        if name is None:
            name, count = title, 2
            while name in taken:
                name, count = f"{title}_{count}", count + 1
            taken.add(name)
            names[text] = name
        uses_batch = "batch.n" in text
        dispatches.append(Dispatch(name, bound, groups, uses_batch, call.note))
    return Kernels({name: text for text, name in names.items()}, dispatches)


# ── kernels with a text of their own ────────────────────────────────────────


def _call(call: Call, groups: Groups) -> str:
    body = _with_entry(_body(call))
    sizes = {name.upper(): value for name, value in call.sizes.items()}
    names = TOTALS if len(groups.total) == len(TOTALS) else ("TOTAL",)
    sizes.update(zip(names, groups.total, strict=True))
    lines: list[str] = []
    for name, value in sizes.items():
        if not re.search(rf"\b{name}\b", body):
            continue
        if isinstance(value, Dim):
            body = re.sub(rf"\b{name}\b", size(value), _without_comments(body, name))
        else:
            lines.append(f"const {name} = {_constant(name, value, call)};")
    names = [*call.reads, "out"]
    return _assembled(names, [*call.reads.values(), call.out], lines, body)


def _with_entry(body: str) -> str:
    """A kernel with the entry that calls its function, where it has none of its own."""
    names = [name for name in ENTRIES if f"fn {name}(" in body]
    return "\n\n".join([body.rstrip("\n"), *(ENTRIES[name] for name in names)])


def _without_comments(body: str, name: str) -> str:
    """A size that follows the batch is called n in comments."""
    rows = [
        re.sub(rf"\b{name}\b", name.lower(), row)
        if row.lstrip().startswith("//")
        else row
        for row in body.split("\n")
    ]
    return "\n".join(rows)


def _constant(name: str, value: Any, call: Call) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if name in ("ON", "OFF"):
        return literal(value, call.out.kind)
    if isinstance(value, float):
        return literal(value, "f32")
    return size(value)


def _body(call: Call) -> str:
    """The text of a kernel, with its words put in where it is one of several."""
    word = call.kernel.removeprefix("reduce_")
    kind = next(iter(call.reads.values())).kind
    if word in SEARCHES:
        return _search(word, kind)
    if call.kernel in RUNNING:
        table = WHOLE if kind == "i32" else REDUCTIONS
        begin, _, joined, _ = table[RUNNING[call.kernel]]
        text = _file("running").replace("BEGIN", begin).replace("JOINED", joined)
        return text.replace("WORD", call.kernel)
    if call.kernel.startswith("reduce_"):
        table = WHOLE if kind == "i32" and word in WHOLE else REDUCTIONS
        begin, value, joined, end = table[word]
        element = "u32" if word in ("all", "any") else ELEMENTS[kind]
        is_true = {"f32": "is_nan({v}) || {v} != 0.0", "i32": "{v} != 0"}
        value = value.replace("{is_true}", is_true.get(kind, "{v} != 0u"))
        value = value.format(v="x[start + i * INNER]")
        text = _file("reduce").replace("JOINED", joined).replace("VALUE", value)
        text = text.replace("BEGIN", begin).replace("END", end)
        return text.replace("ELEMENT", element).replace("WORD", word)
    text = _file(call.kernel).replace("ELEMENT", ELEMENTS[kind])
    if call.kernel == "argsort" and kind != "f32":
        text = _unordered(text)
    return text


def _search(word: str, kind: str) -> str:
    """The kernel of argmax or argmin: NaN is found first, as if it were the best."""
    text = _file("search").replace("WORD", word[3:])
    if kind != "f32":
        text = _unordered(text).replace("BETTER", SEARCHES[word])
        return text.replace("ELEMENT", ELEMENTS[kind])
    if word == "argmin":
        text = text.replace("order_of(x", "order_of(-x")
    return text.replace("BETTER", ">").replace("ELEMENT", "i32")


def _unordered(text: str) -> str:
    """A kernel that orders elements of x, which are whole numbers, by themselves."""
    return re.sub(r"order_of\((x\[.*?\])\);", r"\1;", text)


def _groups(call: Call) -> Groups:
    sizes = call.sizes
    kernel = call.kernel
    if kernel == "linear":
        return Groups((sizes["outputs"], sizes["rows"], 1), (TILE, TILE, 1))
    if kernel == "matmul":
        total = (sizes["columns"], sizes["rows"], sizes["count"])
        return Groups(total, (TILE, TILE, 1))
    if kernel in BY_ROW:
        return Groups((sizes["rows"],), (1,))
    if kernel in BY_BATCH:
        return Groups((sizes["batch"],), (1,))
    if kernel in BY_LINE or kernel.startswith("reduce_"):
        return Groups((times(sizes["outer"], sizes["inner"]),), (1,))
    if kernel in RUNNING or kernel == "linear_scan":
        return Groups((times(sizes["outer"], sizes["inner"]),), (WORKGROUP,))
    return Groups((call.out.size,), (WORKGROUP,))


# ── chains ──────────────────────────────────────────────────────────────────


def _chain(chain: Chain) -> tuple[str, Groups]:
    """A chain as a kernel with a thread for each element."""
    sizes, steps = chain.loops()
    total = product(sizes)
    arrays = dict(zip(chain.inputs, "xyzpqrstuvw", strict=False))
    offsets = [view.offset for view in [*chain.reads, chain.out]]
    counters = ["i"] if len(sizes) == 1 else [f"i{d}" for d in range(len(sizes))]
    indices = [
        _index(counters, row, offset)
        for row, offset in zip(steps, offsets, strict=True)
    ]
    body: list[str] = []
    if len(sizes) > 1:
        used = {
            counter
            for d, counter in enumerate(counters)
            if any(row[d] != 0 for row in steps)
        }
        for d, counter in enumerate(counters):
            if counter in used:
                body.append(f"  let {counter} = {_coordinate(sizes, d)};")
    loaded: dict[int, str] = {}
    made: list[str] = []

    def text(argument: Any, kind: str) -> str:
        if isinstance(argument, Made):
            return made[argument.place]
        if not isinstance(argument, Read):
            return literal(argument, kind)
        if argument.place not in loaded:
            storage = chain.reads[argument.place].storage
            array = arrays[storage]
            value = f"{array}[{indices[argument.place]}]"
            name = f"{array}_{len(loaded)}"
            value = f"{value} != 0u" if storage.kind == "bool" else value
            body.append(f"  let {name} = {value};")
            loaded[argument.place] = name
        return loaded[argument.place]

    for number, line in enumerate(chain.lines):
        pairs = zip(line.args, line.kinds_taken, strict=True)
        given = [text(argument, kind) for argument, kind in pairs]
        value = expression(line, given)
        if number + 1 < len(chain.lines):
            made.append(f"{line.op}_{number}")
            body.append(f"  let {made[-1]} = {value};")
            continue
        value = f"u32({value})" if chain.out.storage.kind == "bool" else value
        body.append(f"  out[{indices[-1]}] = {value};")
    ops = ", ".join(line.op for line in chain.lines)
    head = [
        f"// {shown(ops)}, element by element: a thread for each. "
        f"{shown(size_text(chain.out.shape))}",
        "fn by_thread(i: u32) {",
    ]
    names = [arrays[one] for one in chain.inputs] + ["out"]
    storages = [*chain.inputs, chain.out.storage]
    whole = _with_entry("\n".join([*head, *body, "}"])).replace("TOTAL", size(total))
    groups = Groups((total,), (WORKGROUP,))
    return _assembled(names, storages, [], whole), groups


def _coordinate(sizes: list[Size], d: int) -> str:
    behind = product(sizes[d + 1 :])
    text = "i" if behind == 1 else f"i / {size(behind)}"
    return text if d == 0 else f"{text} % {size(sizes[d])}"


def _index(counters: list[str], steps: list[Size], offset: Size) -> str:
    """Where an element lies; what is taken off wraps around and comes back."""
    found: list[str] = []
    if offset != 0:
        found.append(size(offset))
    for counter, step in zip(counters, steps, strict=True):
        if step != 0:
            found.append(counter if step == 1 else f"{counter} * {size(step)}")
    return " + ".join(found) or "0u"


# ── the text ────────────────────────────────────────────────────────────────


def _assembled(
    names: list[str], storages: list[Storage], lines: list[str], body: str
) -> str:
    """Bindings, sizes, the functions that it calls, and the kernel itself."""
    found, code = _split(body)
    for place, (name, storage) in enumerate(zip(names, storages, strict=True)):
        mode = "read_write" if name == "out" else "read"
        element = ELEMENTS[storage.kind]
        bound = f"var<storage, {mode}> {name}: array<{element}>;"
        found.append(f"@group(0) @binding({place}) {bound}")
    if "batch.n" in code:
        found.append("struct Batch { n: u32 }")
        found.append(f"@group(0) @binding({len(names)}) var<uniform> batch: Batch;")
    helpers = _needed(code)
    if re.search(r"\bWORKGROUP\b", code):
        lines = [f"const WORKGROUP = {WORKGROUP}u;", *lines]
    code = code.replace("const TILE = 16u;", f"const TILE = {TILE}u;")
    parts = ["\n".join(found), "\n".join(lines), *helpers, code]
    return "\n\n".join(part for part in parts if part) + "\n"


def _split(body: str) -> tuple[list[str], str]:
    """The comment at the beginning, and the rest."""
    rows = body.strip("\n").split("\n")
    count = 0
    while rows[count].startswith("//"):
        count += 1
    return rows[:count], "\n".join(rows[count:]).strip("\n")


def _needed(code: str) -> list[str]:
    """The helpers that a kernel calls, and what these call."""
    known = _helpers()
    found: set[str] = set()
    todo = [code]
    while todo:
        called = set(re.findall(r"\b(\w+)\b", todo.pop())) & known.keys()
        todo += [known[name] for name in called - found]
        found |= called
    return [text for name, text in known.items() if name in found]


@cache
def _helpers() -> dict[str, str]:
    text = Path(__file__).with_name("helpers.wgsl").read_text("utf-8")
    found = {"lanes": "var<workgroup> lanes: array<f32, WORKGROUP>;"}
    for match in re.finditer(r"(?://[^\n]*\n)*fn (\w+)\(.*?\n}", text, re.DOTALL):
        found[match[1]] = match[0]
    return found


@cache
def _file(name: str) -> str:
    place = Path(__file__).with_name("kernels") / f"{name}.wgsl"
    return place.read_text("utf-8")
