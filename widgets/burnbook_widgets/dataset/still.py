"""The dataset browser as still HTML, without a script.

Pictures are in the page, curves and bars are drawings, everything else is tables and
words, so that it reads the same on paper and to a screen reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from burnbook_widgets.dataset.pixels import data_uri
from burnbook_widgets.drawing import Area, Drawing, Line, Words

Told = Mapping[str, Any]
WAVE = (220, 48)
MOST = 30  # bars


def still_page(told: Told) -> str:
    """Everything that the view shows now, one part below the other."""
    status, page = told["status"], told["page"]
    notes = [f"page {status['page'][0]} of {status['page'][1]}", *status["notes"]]
    if status["page"][1] == 1:
        notes = notes[1:]
    parts = [
        f"<p><strong>{escape(' · '.join([status['headline'], *notes]))}</strong></p>"
    ]
    if told["balance"]:
        parts.append(bars(told["balance"]).svg())
    if page["view"] == "confusion":
        parts.append(matrix(told["grid"]))
    elif page["view"] == "batch":
        parts.append(_batch(page, told["data"]))
    else:
        parts.append(_items(page, told["data"]))
    if told["detail"]:
        parts.append(_detail(told["detail"], told["large"]))
    return "\n".join(parts)


def bars(balance: Sequence[Sequence[Any]]) -> Drawing:
    """How many items each class has; what is shown of them is filled."""
    rows = balance[:MOST]
    left = 16 + 7 * max(len(str(name)[:24]) for name, _, _ in rows)
    longest = max(total for _, _, total in rows) or 1
    summary = ", ".join(f"{name} {total:,}" for name, _, total in rows)
    sheet = Drawing(left + 330, 20 * len(rows) + 26, f"Items of each class: {summary}")
    sheet.add(Words((4, 14), "items of each class", bold=True))
    for place, (name, some, total) in enumerate(rows, start=1):
        top = 20 * place + 4
        for count, opacity in ((total, 0.25), (some, 0.8)):
            right = left + 230 * count / longest
            box = ((left, top), (right, top), (right, top + 13), (left, top + 13))
            sheet.add(Area(box, "train", opacity))
        text = f"{total:,}" if some == total else f"{some:,} of {total:,}"
        after = left + 230 * total / longest + 6
        sheet.add(
            Words((left - 8, top + 11), str(name)[:24], size=11, anchor="end"),
            Words((after, top + 11), text, size=11),
        )
    return sheet


def matrix(grid: Told) -> str:
    """The confusion matrix as a table, or the list of what was confused most."""
    names = [escape(str(name)) for name in grid["names"]]
    if "worst" in grid:
        rows = "".join(
            f"<tr><td>{names[a]}</td><td>{names[b]}</td><td>{count:,}</td></tr>"
            for a, b, count in grid["worst"]
        )
        head = "<tr><th>class</th><th>predicted as</th><th>items</th></tr>"
        return f"<table><thead>{head}</thead>\n<tbody>{rows}</tbody></table>"
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row">{names[place]}</th>'
        + "".join(_cell(count, place == column) for column, count in enumerate(row))
        + "</tr>\n"
        for place, row in enumerate(grid["counts"])
    )
    return (
        "<table>\n<caption>Rows: the true class. Columns: the predicted class."
        f"</caption>\n<thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"
    )


def _cell(count: int, right: bool) -> str:
    text = f"<strong>{count:,}</strong>" if right else (f"{count:,}" if count else "·")
    return f"<td>{text}</td>"


def _items(page: Told, data: bytes) -> str:
    items = page["items"]
    if not items:
        return f"<p>{escape(page.get('empty') or 'No item.')}</p>"
    if page["kind"] == "image":
        cells = [f"<td>{_picture(one, data)}<br>{_caption(one)}</td>" for one in items]
        rows = [cells[at : at + 6] for at in range(0, len(cells), 6)]
        body = "".join(f"<tr>{''.join(row)}</tr>\n" for row in rows)
        return f"<table><tbody>\n{body}</tbody></table>"
    whole = next((one for one in items if one["kind"] != "fault"), items[0])
    names = [key for key, _ in whole["fields"]]
    head = "".join(
        f'<th scope="col">{escape(name)}</th>'
        for name in ("item", "label", *_guessed(items), *_content(page), *names)
    )
    body = "".join(_row(one, page, data, names) for one in items)
    foot = _statistics(page, ["label", *_guessed(items), *_content(page)], names)
    return (
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n"
        f"{foot}</table>"
    )


def _statistics(page: Told, before: Sequence[str], names: Sequence[str]) -> str:
    """What is known of all values of each column, in rows below the table."""
    known = page.get("statistics") or {}
    columns = [page.get("label", "") if name == "label" else "" for name in before]
    columns += names
    rows = ""
    for kind in ("lowest", "mean", "highest", "different", "most often", "missing"):
        cells = [known.get(name, {}).get(kind, "") for name in columns]
        if any(cells):
            body = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            rows += f'<tr><th scope="row">{kind}</th>{body}</tr>\n'
    return f"<tfoot>\n{rows}</tfoot>\n" if rows else ""


def _guessed(items: Sequence[Told]) -> list[str]:
    return ["predicted"] if "guess" in items[0] else []


def _content(page: Told) -> list[str]:
    name = {"sound": "sound", "text": "text", "fault": "fault"}.get(page["kind"])
    return [] if name is None else [name]


def _row(one: Told, page: Told, data: bytes, names: Sequence[str]) -> str:
    cells = [escape(one["label"])]
    if "guess" in one:
        cells.append(_verdict(one))
    if _content(page):
        older = one.get("before")
        both = [_body(older, data), "<br>→ "] if older else []
        cells.append("".join([*both, _body(one, data)]))
    fields = dict(one["fields"])
    if one["kind"] == "fault" and names:
        fields = {names[0]: one["text"]}
    older_fields = dict(one.get("before", {}).get("fields", []))
    for name in names:
        text = escape(fields.get(name, ""))
        if name in older_fields and older_fields[name] != fields.get(name):
            text = f"{escape(older_fields[name])} → {text}"
        cells.append(text)
    row = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row">{one["i"]}</th>{row}</tr>\n'


def _body(one: Told, data: bytes) -> str:
    if "wave" in one:
        return wave(one["wave"], data, f"Item {one['i']}").svg()
    if "pic" in one:
        return _picture(one, data)
    title = f"<strong>{escape(one['title'])}</strong> " if "title" in one else ""
    return title + escape(one.get("text", ""))


def _picture(one: Told, data: bytes, side: int = 84) -> str:
    older = one.get("before")
    first = f"{_picture(older, data, side)} → " if older and "pic" in older else ""
    if "pic" not in one:
        return first + _body(one, data)
    shown = "".join(
        f'<img src="{data_uri(one[name], data)}" width="{side}" '
        f'style="image-rendering:pixelated" alt="item {one["i"]}">'
        for name in ("pic", "mask")
        if name in one
    )
    return first + shown


def _caption(one: Told) -> str:
    label = f": {escape(one['label'])}" if one["label"] else ""
    guess = f", predicted {_verdict(one)}" if "guess" in one else ""
    return f"{one['i']}{label}{guess}"


def _verdict(one: Told) -> str:
    mark = "✗" if one["wrong"] else "✓"
    return f"{escape(one['guess'])} {mark}"


def wave(place: Sequence[int], data: bytes, title: str) -> Drawing:
    """The outline of a sound or of another curve."""
    start, columns = place
    outline = np.frombuffer(data, np.int8, 2 * columns, start).reshape(-1, 2) / 127
    width, height = WAVE
    sheet = Drawing(width, height, f"{title} as a curve")
    across = np.linspace(2, width - 2, columns)
    low, high = (height / 2 - outline * (height / 2 - 2)).T
    top = list(zip(across.tolist(), high.tolist(), strict=True))
    bottom = list(zip(across.tolist(), low.tolist(), strict=True))
    sheet.add(Line(((2, height / 2), (width - 2, height / 2)), "quiet", 0.5))
    sheet.add(Area((*top, *bottom[::-1]), "train", 0.9))
    return sheet


def _detail(detail: Told, large: bytes) -> str:
    rows = [("label", detail["label"])] if detail["label"] else []
    if "guess" in detail:
        rows.append(("predicted", detail["guess"]))
    rows += [(name, f"{100 * chance:.1f} %") for name, chance in detail.get("top", [])]
    rows += [(key, value) for key, value in (*detail["facts"], *detail["fields"])]
    table = "".join(
        f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>\n'
        for key, value in rows
    )
    body = _picture(detail, large, 168) if "pic" in detail else _body(detail, large)
    if "sound" in detail:
        body += f'<br><audio controls src="{detail["sound"]}"></audio>'
    return (
        f"<p><strong>Item {detail['i']}</strong></p>\n<p>{body}</p>\n"
        f"<table><tbody>\n{table}</tbody></table>"
    )


def _batch(page: Told, data: bytes) -> str:
    parts = [f"<p>The batch of the items of this page ({page['count']}):</p>"]
    for part in page["parts"]:
        about = " · ".join(filter(None, (part["about"], part.get("range"))))
        parts.append(f"<p><strong>{escape(part['name'])}</strong> {escape(about)}</p>")
        pictures = "".join(
            f'<img src="{data_uri(one, data)}" width="{320 if part["wide"] else 56}" '
            f'style="image-rendering:pixelated" alt="row {place} of {part["name"]}"> '
            for place, one in enumerate(part.get("pics", []))
        )
        parts.append(f"<p>{pictures or escape(part.get('values', ''))}</p>")
    return "\n".join(parts)
