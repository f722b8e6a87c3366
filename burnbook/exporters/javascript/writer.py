"""A plan as the text of one module of JavaScript."""

from __future__ import annotations

import textwrap
from functools import cache
from pathlib import Path

from burnbook.exporters.javascript.expressions import (
    EXPRESSIONS,
    USES,
    expression,
    kept,
    literal,
)
from burnbook.exporters.lowering import (
    Call,
    Chain,
    Made,
    Plan,
    Read,
    files,
)
from burnbook.exporters.lowering.files import Packed
from burnbook.program import Size, size_text
from burnbook.program.sizes import Dim

ARRAYS = {"f32": "Float32Array", "i32": "Int32Array", "bool": "Uint8Array"}
READERS = {"f32": "floatsOf", "bool": "bitsOf"}  # of inputs, functions of kernels.js
WIDTHS = {"f32": 4, "i32": 4, "bool": 1}
# Names that mean something in JavaScript, or in a file that is written.
RESERVED = frozenset(
    """
    arguments async await break case catch class const continue debugger default delete
    do else enum eval export extends false finally for function if implements import in
    instanceof interface let new null of package private protected public return static
    super switch this throw true try typeof undefined var void while with yield
    Array ArrayBuffer Boolean Error Float32Array Infinity Int32Array Math NaN Number
    Object RangeError Uint8Array
    INPUTS Model TABLE WEIGHTS inputs n out
    """.split()  # noqa: SIM905
)
REDUCTIONS = {  # begin, step, end
    "sum": ("0", "found + x[at]", "found"),
    "mean": ("0", "found + x[at]", "found / count"),
    "prod": ("1", "found * x[at]", "found"),
    "max": ("-Infinity", "Math.max(found, x[at])", "found"),
    "min": ("Infinity", "Math.min(found, x[at])", "found"),
    "all": ("1", "x[at] !== 0 ? found : 0", "found"),
    "any": ("0", "x[at] !== 0 ? 1 : found", "found"),
    "length": ("0", "found + x[at] * x[at]", "Math.sqrt(found)"),
}
SEARCHES = {"argmax": ">", "argmin": "<"}
RUNNING = {
    "cumsum": ("0", "found + x[at]"),
    "cumprod": ("1", "found * x[at]"),
    "cummax": ("-Infinity", "Math.max(found, x[at])"),
    "cummin": ("Infinity", "Math.min(found, x[at])"),
}


def text_of(plan: Plan, made: Packed, weights: str, target: Path) -> str:
    """The whole file."""
    chains, calls = _calls(plan)
    kernels = [call.kernel for call in plan.calls if isinstance(call, Call)]
    used = {files.camel(kernel) for kernel in kernels}
    ops = {
        line.op for call in plan.calls if isinstance(call, Chain) for line in call.lines
    }
    used |= {USES[op] for op in ops & USES.keys()}
    kinds = {storage.kind for _, storage in plan.inputs}
    used |= {READERS[kind] for kind in kinds & READERS.keys()}
    functions = files.needed(_library(), used)
    functions += [
        _along(kernel) for kernel in dict.fromkeys(kernels) if _is_along(kernel)
    ]
    loading = ["unpacked", "batchOf"]
    loading.append("bytesOf" if weights == "embedded" else "bytesBeside")
    sizes = f"Weights {len(made.data):,} bytes, memory {memory(plan)} bytes."
    parts = [
        "\n".join(files.head(plan, target, sizes)),
        "\n".join(files.input_lines(plan)),
        "\n".join(_model(plan, calls, weights)),
        *chains,
        *functions,
        *files.needed(files.helpers(), loading),
        "\n".join(files.weight_lines(made, weights, target)),
    ]
    return "\n\n".join(parts) + "\n"


def memory(plan: Plan) -> str:
    """The bytes of all buffers, by the batch size n."""
    total, each = 0, 0
    for kind, sizes in plan.buffers:
        first = sizes[0]
        scale, offset = (
            (first.scale, first.offset) if isinstance(first, Dim) else (0, int(first))
        )
        total, each = total + offset * WIDTHS[kind], each + scale * WIDTHS[kind]
    parts = ([f"{each:,} n"] if each else []) + ([f"{total:,}"] if total > 0 else [])
    return " + ".join(parts) or "0"


def _model(plan: Plan, calls: list[str], weights: str) -> list[str]:
    names = plan.names
    constants = [one.name for one in plan.constants]
    doc = [
        f"   * @param {{Object}} inputs {files.shown(value.name)}: "
        f"{files.shown(size_text(value.shape))} {storage.kind}"
        for value, storage in plan.inputs
    ]
    doc += [
        f"   * @returns {{Object}} {files.shown(name)}: {{ data, shape }}, "
        f"{files.shown(size_text(value.shape))} {storage.kind}"
        for name, (value, storage) in zip(names, plan.outputs, strict=True)
    ]
    source = (
        "bytesOf(WEIGHTS)" if weights == "embedded" else "await bytesBeside(WEIGHTS)"
    )
    lines = [
        "/** The model with its weights, and the memory that it works in. */",
        "export class Model {",
        "  /** bytes: those of the weights, where they come from somewhere else. */",
        "  static async load(bytes) {",
        f"    return new Model(unpacked(bytes ?? {source}, TABLE));",
        "  }",
        "",
        "  constructor(weights) {",
        "    this.weights = weights;",
        "    this.buffers = undefined;",
        "    this.n = -1;",
        "  }",
        "",
        "  /** Make room for a batch of n; smaller ones fit as well. */",
        "  reserve(n) {",
        "    if (n <= this.n) return;",
        "    this.n = n;",
        "    this.buffers = [",
        *[
            f"      new {ARRAYS[kind]}({files.largest_text(sizes)}),"
            for kind, sizes in plan.buffers
        ],
        "    ];",
        "  }",
        "",
        "  /**",
        *doc,
        "   */",
        "  forward(inputs) {",
        *_single(plan),
        "    const n = batchOf(INPUTS, inputs);",
        "    this.reserve(n);",
    ]
    if constants:
        rows = textwrap.wrap(", ".join(constants), 84)
        lines += ["    const {", *[f"      {row}" for row in rows]]
        lines.append("    } = this.weights;")
    slots = [f"b{i}" for i in range(len(plan.buffers))]
    if slots:
        lines.append(f"    const [{', '.join(slots)}] = this.buffers;")
    for value, storage in plan.inputs:
        given = f"inputs[{files.quoted(value.name)}]"
        if storage.kind in READERS:
            given = f"{READERS[storage.kind]}({given})"
        lines.append(f"    const {storage.name} = {given};")
    lines += ["", *[f"    {call}" for call in calls], "", "    return {"]
    for name, (value, storage) in zip(names, plan.outputs, strict=True):
        data = f"{storage.place}.slice(0, {files.size(storage.size)})"
        shape = ", ".join(files.size(one) for one in value.shape)
        lines.append(f"      {files.key(name)}: {{ data: {data}, shape: [{shape}] }},")
    return [*lines, "    };", "  }", "}"]


def _single(plan: Plan) -> list[str]:
    """One input may come without its name."""
    if len(plan.inputs) != 1:
        return []
    key = files.key(plan.inputs[0][0].name)
    test = "ArrayBuffer.isView(inputs) || Array.isArray(inputs)"
    return [f"    if ({test}) inputs = {{ {key}: inputs }};"]


def _calls(plan: Plan) -> tuple[list[str], list[str]]:
    """The loops of chains as functions, and all calls in order."""
    loops: dict[str, str] = {}  # name by text
    chains: list[str] = []
    calls: list[str] = []
    taken = {one.name for one in plan.constants} | {one.name for _, one in plan.inputs}
    for call in plan.calls:
        note = [f"// {files.shown(call.note)}"] if call.note else []
        if isinstance(call, Call):
            given = [one.place for one in [*call.reads.values(), call.out]]
            sizes = [_given(name, one) for name, one in call.sizes.items()]
            calls += [*note, *_wrapped(files.camel(call.kernel), given, sizes)]
            continue
        body, more = _loop(call)
        name = loops.get(body)
        if name is None:
            wished = files.camel(call.name)
            name, count = wished, 2
            while name in taken or name in RESERVED or name in _library():
                name, count = f"{wished}{count}", count + 1
            taken.add(name)
            loops[body] = name
            chains.append(body.replace("function NAME(", f"function {name}("))
        given = [one.place for one in [*call.inputs, call.out.storage]]
        calls += [*note, f"{name}({', '.join([*given, *more])});"]
    return chains, calls


def _wrapped(name: str, given: list[str], sizes: list[str]) -> list[str]:
    """A call with its sizes, in lines that are not too long."""
    first = f"{name}({', '.join(given)}, {{"
    text = ", ".join(sizes)
    if len(first) + len(text) < 80:
        return [f"{first} {text} }});"]
    rows = textwrap.wrap(text, 84)
    return [first, *[f"  {row}" for row in rows], "});"]


def _given(name: str, value: object) -> str:
    text = files.size(value) if isinstance(value, Dim) else files.number(value)
    key = files.camel(name)
    return key if key == text else f"{key}: {text}"


def _loop(chain: Chain) -> tuple[str, list[str]]:
    """A chain as a function with one loop for each dim that it cannot join.

    Also: what it is given beside the arrays, n or the count of its only loop.
    """
    sizes, steps = chain.loops()
    arrays = dict(zip(chain.inputs, "xyzpqrstuw", strict=False))
    is_line = len(sizes) == 1
    counters = ["i"] if is_line else [f"i{d}" for d in range(len(sizes))]
    offsets = [view.offset for view in [*chain.reads, chain.out]]
    indices = [
        _index(counters, row, offset)
        for row, offset in zip(steps, offsets, strict=True)
    ]
    body: list[str] = []
    for d, (counter, size) in enumerate(zip(counters, sizes, strict=True)):
        stop = "count" if is_line else files.size(size)
        loop = f"for (let {counter} = 0; {counter} < {stop}; {counter}++) {{"
        body.append("  " * (d + 1) + loop)
    elements = [
        _element(arrays[view.storage], index, view.storage.kind)
        for view, index in zip(chain.reads, indices, strict=False)
    ]
    indent = "  " * (len(sizes) + 1)
    body += [indent + row for row in _rows(chain, elements, f"out[{indices[-1]}]")]
    body += ["  " * (d + 1) + "}" for d in reversed(range(len(sizes)))]
    names = ["count"] if is_line else []
    more = [files.size(sizes[0])] if is_line else []
    if any("n" in _words(row) for row in body):
        names, more = [*names, "n"], [*more, "n"]
    given = [*[arrays[one] for one in chain.inputs], "out", *names]
    ops = files.shown(", ".join(line.op for line in chain.lines))
    shape = "" if is_line else f" {files.shown(size_text(chain.out.shape))}"
    head = [
        f"/** {ops}, element by element.{shape} */",
        f"function NAME({', '.join(given)}) {{",
    ]
    return "\n".join([*head, *body, "}"]), more


def _element(array: str, index: str, kind: str) -> str:
    """An element; of an array of bool it is true or false, as a comparison is."""
    return f"Boolean({array}[{index}])" if kind == "bool" else f"{array}[{index}]"


def _rows(chain: Chain, elements: list[str], out: str) -> list[str]:
    """The lines of a chain; an element that an expression names twice gets a name.

    Each line is rounded as if it was stored; the array of results rounds the last one.
    """
    rows: list[str] = []
    named: dict[str, str] = {}
    made: list[str] = []
    for number, line in enumerate(chain.lines):
        given: list[str] = []
        kinds = line.kinds_taken
        for argument, kind in zip(line.args, kinds, strict=True):
            if isinstance(argument, Made):
                found = made[argument.place]
            elif isinstance(argument, Read):
                found = elements[argument.place]
            else:
                found = literal(argument, kind)
            if isinstance(argument, Read) and _often(line.op):
                if found not in named:
                    named[found] = f"v{len(named)}"
                    rows.append(f"const {named[found]} = {found};")
                found = named[found]
            given.append(found)
        value = expression(line, given)
        if number + 1 < len(chain.lines):
            made.append(f"{line.op}_{number}")
            rows.append(f"const {made[-1]} = {kept(line, value)};")
        elif line.gives == "bool":
            rows.append(f"{out} = Number({value});")
        else:
            rows.append(f"{out} = {value};")
    return rows


def _words(text: str) -> set[str]:
    return set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())


def _often(op: str) -> bool:
    """Whether an expression names an argument more than once."""
    text = EXPRESSIONS.get(op, "")
    return text.count("{x}") > 1 or text.count("{y}") > 1


def _index(counters: list[str], steps: list[Size], offset: Size) -> str:
    """Where an element lies: "i0 * 64 + i1 + 5"."""
    found: list[str] = []
    for counter, step in zip(counters, steps, strict=True):
        if step == 0:
            continue
        found.append(counter if step == 1 else f"{counter} * {_signed(step)}")
    if offset != 0 or not found:
        found.append(files.size(offset))
    return " + ".join(found)


def _signed(step: Size) -> str:
    text = files.factor(step)
    return f"({text})" if text.startswith("-") else text


def _is_along(kernel: str) -> bool:
    return kernel.startswith("reduce_") or kernel in RUNNING


def _along(kernel: str) -> str:
    """A function that goes along a dim: a reduction, or a running one."""
    title = files.camel(kernel)
    word = kernel.removeprefix("reduce_")
    lines = [f"function {title}(x, out, {{ outer, count, inner }}) {{"]
    lines += [
        "  for (let a = 0; a < outer; a++) {",
        "    for (let b = 0; b < inner; b++) {",
    ]
    at, shape = "(a * count + i) * inner + b", "x [outer, count, inner]"
    if word in SEARCHES:
        doc = f"/** The first place of the {word[3:]} along a dim. {shape} */"
        lines += [
            "      let found = 0;",
            "      let best = x[a * count * inner + b];",
            "      for (let i = 1; i < count; i++) {",
            f"        const value = x[{at}];",
            "        const isBetter = Number.isNaN(value) && !Number.isNaN(best);",
            f"        if (value {SEARCHES[word]} best || isBetter) {{",
            "          found = i;",
            "          best = value;",
            "        }",
            "      }",
            "      out[a * inner + b] = found;",
        ]
    elif word in RUNNING:
        begin, step = RUNNING[word]
        doc = f"/** The {word} along a dim. {shape} */"
        lines += [
            f"      let found = {begin};",
            "      for (let i = 0; i < count; i++) {",
            f"        const at = {at};",
            f"        found = {step};",
            "        out[at] = found;",
            "      }",
        ]
    else:
        begin, step, end = REDUCTIONS[word]
        doc = f"/** The {word} along a dim. {shape}, out [outer, inner] */"
        lines += [
            f"      let found = {begin};",
            "      for (let i = 0; i < count; i++) {",
            f"        const at = {at};",
            f"        found = {step};",
            "      }",
            f"      out[a * inner + b] = {end};",
        ]
    return "\n".join([doc, *lines, "    }", "  }", "}"])


def reserved() -> frozenset[str]:
    """The names that inputs and weights must not have in a file."""
    along = {files.camel(f"reduce_{word}") for word in [*REDUCTIONS, *SEARCHES]}
    functions = {*_library(), *files.helpers(), *RUNNING, *along}
    return RESERVED | functions


@cache
def _library() -> dict[str, str]:
    """The functions of kernels.js."""
    text = Path(__file__).with_name("kernels.js").read_text("utf-8")
    return files.functions_of(text)
