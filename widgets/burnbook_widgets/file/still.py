"""A file view as HTML and SVG that need no script."""

from __future__ import annotations

from html import escape
from typing import Any

from burnbook_widgets.autodiff.still import picture
from burnbook_widgets.tensor.still import histogram
from burnbook_widgets.view import table

STILL = 100  # rows
NODES = 60
BOXES = 90  # of a still picture
CELL = "padding:0 12px 0 0;text-align:left;vertical-align:top"


def still_form(view: Any) -> str:
    """The tree as it is folded now, the selected tensor, and the graph."""
    title, summary = view.title()
    facts = " · ".join(f"{escape(k)} {escape(v)}" for k, v in view.file_facts())
    parts = [f"<b>{escape(title)}</b> {escape(summary)}<br>{facts}"]
    if view.graph is not None:
        parts += graph_parts(view)
    tree = tree_part(view)
    if view.graph is not None:
        tree = f"<details><summary>Tensors</summary>{tree}</details>"
    parts += [tree, *tensor_parts(view)]
    inner = "\n".join(parts)
    return f'<div style="line-height:1.5;overflow-x:auto">{inner}</div>'


def tree_part(view: Any) -> str:
    """The rows that are unfolded, as a table."""
    rows, more = view.shown_rows(STILL)
    lines = []
    for line in rows:
        sign = {None: "·", True: "▾", False: "▸"}[line.get("open")]
        indent = f'<span style="padding-left:{16 * (line["level"] - 1)}px">'
        cells = [f"{indent}{sign} <bdi>{escape(line['label'])}</bdi></span>"]
        cells += [escape(line.get(key, "")) for key in ("shape", "dtype", "size")]
        lines.append(cells)
    tail = f"\n<p>… and {more:,} more</p>" if more else ""
    return table(["tensor", "shape", "type", "size"], lines) + tail


def pairs(rows: list[tuple[str, str]]) -> str:
    """Names and texts side by side."""
    body = "".join(
        f'<tr><th scope="row" style="{CELL};font-weight:normal">{escape(name)}</th>'
        f'<td style="{CELL}"><bdi>{escape(text)}</bdi></td></tr>'
        for name, text in rows
    )
    return f'<table style="border-collapse:collapse"><tbody>{body}</tbody></table>'


def tensor_parts(view: Any) -> list[str]:
    """Facts and histogram of the selected tensor."""
    if not view.selected:
        return []
    found = [pairs(view.tensor_facts())]
    known = view.selected_statistics
    if view.trouble:
        found.append(f"<p>✕ {escape(view.trouble)}</p>")
    elif known is not None and known.bars:
        found.append(histogram(known.bars, [], *known.ends()))
    return found


def graph_parts(view: Any) -> list[str]:
    """The graph as a drawing, its nodes as a table, and the line of the chosen one."""
    graph = view.graph
    assert graph is not None  # asked before
    found: list[str] = []
    number = view.node_number
    if len(graph.shown) <= BOXES:
        texts = [graph.texts(at) for at in range(len(graph.shown))]
        drawn = [(kind, a, b, c, "") for kind, a, b, c, _ in texts]
        now = -1 if number is None else graph.place_of[number]
        seen = [1] * len(drawn)
        name = f"graph of {view.title()[0]}: {len(graph.shown)} boxes"
        found.append(picture(drawn, seen, now, graph.lines, graph.layout, name))
    rows = [
        [
            escape(box.node.label[:80]),
            escape(box.label[:40]),
            escape(", ".join(name[:40] for name in box.node.inputs[:4])),
            escape(", ".join(name[:40] for name in box.node.outputs[:4])),
            escape(graph.types.get(box.value, "")[:60]),
        ]
        for box in graph.boxes
        if box.node is not None
    ]
    head = ["node", "operator", "inputs", "outputs", "type"]
    more = f"<p>… and {len(rows) - NODES:,} more</p>" if len(rows) > NODES else ""
    found.append(
        "<details><summary>Nodes in order</summary>"
        f"{table(head, rows[:NODES])}{more}</details>"
    )
    if number is not None:
        found.append(pairs(graph.facts(number)))
        found.append(source_part(view.source_excerpt))
    return found


def source_part(excerpt: dict[str, Any]) -> str:
    """Lines of source with the meant ones marked."""
    if not excerpt.get("lines"):
        trouble = excerpt.get("trouble", "")
        return f"<p>✕ {escape(trouble)}</p>" if trouble else ""
    lines = []
    for at, text in enumerate(excerpt["lines"], excerpt["first"]):
        meant = excerpt["from"] <= at <= excerpt["to"]
        shown = escape(f"{at:5} {'▶' if meant else ' '} {text}")
        lines.append(f"<b>{shown}</b>" if meant else shown)
    return (
        '<pre style="line-height:1.35;overflow-x:auto" tabindex="0" role="group" '
        'aria-label="the source that the file becomes">' + "\n".join(lines) + "</pre>"
    )
