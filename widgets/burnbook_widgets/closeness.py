"""The closeness report to look into: ladder, worst, layers.

    ClosenessView(check_closeness(a, b))
    ClosenessView(model, other, inputs)

Two tensors give the ladder of eight tolerances and the elements that differ most; two
models, records or dicts of arrays give a table of their layers besides, and the ladder
of the one that is chosen there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import anywidget
import ipywidgets
import traitlets

from burnbook.core.errors import ConfigError
from burnbook.tensor.closeness import (
    EPSILON,
    EPSILONS,
    ClosenessReport,
    LayersReport,
    Level,
    Pair,
    check_closeness,
)
from burnbook_widgets.page import script, sheet
from burnbook_widgets.view import View, figure, row, table

PAGE = 100  # rows of the table at a time
SIGNS = {"PASS": "✓", "WARN": "!", "FAIL": "✗"}
RANK = {"FAIL": 0, "WARN": 1, "PASS": 2}
TINTS = {"PASS": "0,158,115", "WARN": "230,159,0", "FAIL": "213,94,0"}
SORTS = {
    "order": "as they run",
    "name": "name",
    "verdict": "verdict",
    "close": "share of close elements",
    "within": "tolerance that all keep",
    "largest": "largest difference",
}
DOWN = {"largest", "within"}  # sorted from the largest on, at first


class ClosenessPanel(anywidget.AnyWidget):
    """The page of a closeness view: what Python sends is what it draws."""

    _esm = script("closeness")
    _css = sheet("closeness")

    head = traitlets.Dict().tag(sync=True)
    layers = traitlets.List(traitlets.Dict()).tag(sync=True)
    ladder = traitlets.Dict().tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)
    fault = traitlets.Unicode().tag(sync=True)

    def __repr__(self) -> str:
        return f"ClosenessPanel({self.head.get('title', '')})"


class ClosenessView(View):
    """How close two tensors, models, records or dicts of arrays are, to look into.

    Every control has a twin: `epsilon`, `layer`, `sort(by)`, `only_differences`,
    `find`, `page`, `first_difference()`.

    Example:
        >>> import numpy as np
        >>> view = ClosenessView(np.float32([1, 2]), np.float32([1, 2.1]))
        >>> view
        ClosenessView([2]; within 1e-1)
    """

    def __init__(self, output: Any, expected: Any = None, inputs: Any = None):
        super().__init__()
        if not isinstance(output, (ClosenessReport, LayersReport)):
            output = check_closeness(output, expected, inputs)
        self.report: ClosenessReport | LayersReport = output
        self._what = ""
        self._pairs = (Pair("", output),) if isinstance(output, ClosenessReport) else ()
        self._epsilon = EPSILON
        if isinstance(output, LayersReport):
            self._what, self._pairs = output.what, output.pairs
            self._epsilon = output.epsilon
        self._by, self._down = "order", False
        self._only, self._find, self._page = False, "", 1
        first = next((p for p in self._pairs if self._verdict(p) != "PASS"), None)
        chosen = first or next(iter(self._pairs), None)
        self._layer = chosen.name if chosen else ""
        self.open()

    # ── what one can set ────────────────────────────────────────────────────

    @property
    def epsilon(self) -> float:
        """The tolerance by which layers are judged: one of 1e-1 … 1e-8."""
        return self._epsilon

    @epsilon.setter
    def epsilon(self, value: float) -> None:
        self._epsilon = min(EPSILONS, key=lambda e: abs(math.log(e / float(value))))
        self._changed()

    @property
    def layer(self) -> str:
        """The layer whose ladder is shown; "" for two tensors."""
        return self._layer

    @layer.setter
    def layer(self, name: str) -> None:
        pair = next((p for p in self._pairs if p.name == name), None)
        if pair is None:
            known = ", ".join(p.name for p in self._pairs[:20])
            what = f"there is no {self._what.lower() or 'layer'} {name!r}"
            raise ConfigError("ClosenessView", what, [("known", known)])
        self._layer = name
        names = [p.name for p in self.found()]
        if name in names:
            self._page = names.index(name) // PAGE + 1
        facts = pair.problem or (pair.report and pair.report.difference)
        self._changed(f"{name}: {self._verdict(pair)}, {facts}")

    @property
    def only_differences(self) -> bool:
        """Whether the layers that pass are left out of the table."""
        return self._only

    @only_differences.setter
    def only_differences(self, flag: bool) -> None:
        self._only, self._page = bool(flag), 1
        self._changed(f"{len(self.found())} of {len(self._pairs)} shown")

    @property
    def find(self) -> str:
        """A part of the names that are shown."""
        return self._find

    @find.setter
    def find(self, text: str) -> None:
        self._find, self._page = str(text), 1
        self._changed(f"{len(self.found())} of {len(self._pairs)} shown")

    @property
    def pages(self) -> int:
        """How many pages the table has."""
        return max(1, -(-len(self.found()) // PAGE))

    @property
    def page(self) -> int:
        """Which page of the table is shown, from 1 on."""
        return self._page

    @page.setter
    def page(self, number: int) -> None:
        self._page = min(max(1, int(number)), self.pages)
        self._changed(f"page {self._page} of {self.pages}")

    def sort(self, by: str, down: bool | None = None) -> None:
        """Order the table: by "order", "name", "verdict", "close", "within", "largest".

        down: from the largest on; None turns the order round if it is by this already.
        """
        if by not in SORTS:
            cure = f"sort by {', '.join(SORTS)}"
            raise ConfigError("ClosenessView", f"cannot sort by {by!r}", cure=cure)
        if down is None:
            down = not self._down if by == self._by else by in DOWN
        self._by, self._down, self._page = by, down, 1
        self._changed(f"sorted by {SORTS[by]}{', reversed' if down else ''}")

    def first_difference(self) -> str | None:
        """Go to the first layer that is not close everywhere; its name, or None."""
        names = (p.name for p in self._pairs if self._verdict(p) != "PASS")
        name = next(names, None)
        if name is None:
            self._changed("All are close.")
        else:
            self._find = ""
            self.layer = name
        return name

    # ── what is shown ───────────────────────────────────────────────────────

    def found(self) -> list[Pair]:
        """The layers of the table, in its order, on all pages."""
        pairs = [
            pair
            for pair in self._pairs
            if self._find.lower() in pair.name.lower()
            and not (self._only and self._verdict(pair) == "PASS")
        ]
        if self._by == "order":
            return pairs[::-1] if self._down else pairs
        return sorted(pairs, key=self._key, reverse=self._down)

    def _key(self, pair: Pair) -> Any:
        report = pair.report
        if self._by == "name":
            return pair.name.lower()
        if self._by == "verdict":
            return RANK[self._verdict(pair)]
        if self._by == "close":
            return report.level(self._epsilon).percent if report else -1.0
        if report is None:
            return math.inf
        if self._by == "within":
            return 1.0 if report.within is None else report.within
        return math.inf if math.isnan(report.largest) else report.largest

    def _verdict(self, pair: Pair) -> str:
        return pair.verdict(self._epsilon)

    def _chosen(self) -> Pair | None:
        return next((p for p in self._pairs if p.name == self._layer), None)

    def counts(self) -> dict[str, int]:
        """How many layers have each verdict at `epsilon`."""
        verdicts = [self._verdict(pair) for pair in self._pairs]
        return {name: verdicts.count(name) for name in SIGNS}

    def _summary(self) -> str:
        """The whole in a sentence."""
        if isinstance(self.report, ClosenessReport):
            return f"shape {list(self.report.shape)} · {self.report.difference}"
        told = [f"{n} {name}" for name, n in self.counts().items() if n]
        if not self._pairs:
            return "Nothing to compare."
        at = power(self._epsilon)
        return f"{len(self._pairs)} compared at {at}: {', '.join(told)}"

    def _title(self) -> str:
        return f"{self._what} closeness" if self._what else "Tensor closeness"

    def _changed(self, said: str = "") -> None:
        self._show()
        if self.panel is not None and said:
            self.panel.said = said

    # ── live ────────────────────────────────────────────────────────────────

    def _build(self) -> ipywidgets.VBox:
        self.panel = ClosenessPanel()
        self.panel.on_msg(self.act(self._told))
        if not self._what:
            return ipywidgets.VBox([self.panel])
        wide = {"description_width": "auto"}
        self.epsilon_control = ipywidgets.Dropdown(
            options=[(power(e), e) for e in EPSILONS],
            description="Compare at",
            tooltip="The tolerance by which layers pass or fail",
            style=wide,
            layout={"width": "150px"},
        )
        self.sort_control = ipywidgets.Dropdown(
            options=[(text, key) for key, text in SORTS.items()],
            description="Sort by",
            tooltip="The order of the table",
            style=wide,
            layout={"width": "230px"},
        )
        self.only_control = ipywidgets.ToggleButton(
            description="Only differences",
            tooltip="Leave out the layers that pass",
            layout={"width": "140px"},
        )
        self.find_control = ipywidgets.Text(
            description="Find",
            placeholder="part of a name",
            tooltip="Show the names with this in them",
            style=wide,
            layout={"width": "200px"},
        )
        self.first_control = ipywidgets.Button(
            description="First difference",
            icon="crosshairs",
            tooltip="Go to the first layer that is not close everywhere",
        )
        self.page_control = ipywidgets.IntSlider(
            min=1, max=1, description="Page", tooltip="Page of the table", style=wide
        )
        for control, name in (
            (self.epsilon_control, "epsilon"),
            (self.only_control, "only_differences"),
            (self.find_control, "find"),
            (self.page_control, "page"),
        ):
            control.observe(self.act(self._setter(name)), "value")
        self.sort_control.observe(self.act(self._sorted), "value")
        self.first_control.on_click(self.act(lambda _: self.first_difference()))
        return ipywidgets.VBox(
            [
                row(self.epsilon_control, self.first_control, self.only_control),
                row(self.sort_control, self.find_control, self.page_control),
                self.panel,
            ]
        )

    def _setter(self, name: str) -> Any:
        def change(event: Any) -> None:
            if getattr(self, name) != event["new"]:
                setattr(self, name, event["new"])

        return change

    def _sorted(self, event: Any) -> None:
        if event["new"] != self._by:
            self.sort(event["new"])

    def _told(self, _: Any, message: Any, __: Any) -> None:
        """A click in the panel."""
        if message.get("do") == "choose":
            self.layer = message["name"]
        elif message.get("do") == "sort":
            self.sort(message["by"])

    def _show(self) -> None:
        if self.panel is None:
            return
        self._page = min(self._page, self.pages)
        if self._what:
            self.epsilon_control.value = self._epsilon
            self.sort_control.value = self._by
            self.only_control.value = self._only
            self.find_control.value = self._find
            self.page_control.max = self.pages
            self.page_control.value = self._page
            self.page_control.layout.display = "" if self.pages > 1 else "none"
        found = self.found()
        start = (self._page - 1) * PAGE
        with self.panel.hold_sync():
            self.panel.head = {
                "title": self._title(),
                "what": self._what,
                "summary": self._summary(),
                "epsilon": power(self._epsilon),
                "by": self._by,
                "down": self._down,
                "found": len(found),
                "total": len(self._pairs),
                "from": start + 1,
            }
            self.panel.layers = (
                [self._line(pair) for pair in found[start : start + PAGE]]
                if self._what
                else []
            )
            self.panel.ladder = self._ladder()

    def _line(self, pair: Pair) -> dict[str, Any]:
        """A row of the table."""
        report = pair.report
        return {
            "name": pair.name,
            "verdict": self._verdict(pair),
            "close": share(report.level(self._epsilon)) if report else "",
            "within": within(report) if report else "",
            "largest": figure(report.largest) if report else pair.problem,
            "shape": str(list(report.shape)) if report else "",
        }

    def _ladder(self) -> dict[str, Any]:
        """The ladder of the chosen layer."""
        pair = self._chosen()
        if pair is None:
            return {}
        report = pair.report
        levels = report.levels if report else ()
        worst = report.worst if report else ()
        return {
            "name": pair.name,
            "note": f"{list(report.shape)} · {report.difference}"
            if report
            else f"cannot be compared: {pair.problem}",
            "levels": [
                [power(x.epsilon), x.close, x.total, share(x), x.verdict]
                for x in levels
            ],
            "worst": [
                [str(list(x.place)), *map(value, (x.output, x.expected, x.apart))]
                for x in worst
            ],
        }

    # ── still ───────────────────────────────────────────────────────────────

    def still(self) -> str:
        """Ladder, worst elements and table as HTML without JavaScript."""
        parts = [f"<b>{escape(self._title())}</b> {escape(self._summary())}"]
        if self._what:
            head = (
                self._what.lower(), "verdict", "close", "within", "largest", "shape"
            )  # fmt: skip
            found = self.found()
            rows = [
                (
                    escape(line["name"]),
                    badge(line["verdict"]),
                    line["close"],
                    line["within"],
                    escape(line["largest"]),
                    line["shape"],
                )
                for line in map(self._line, found[:PAGE])
            ]
            parts.append(table(head, rows))
            if len(found) > PAGE:
                parts.append(f"<p>… and {len(found) - PAGE:,} more</p>")
        pair = self._chosen()
        if pair is not None and pair.report is not None:
            parts += [still_ladder(pair.report.levels, pair.name), self._still_worst()]
        inner = "\n".join(part for part in parts if part)
        return f'<div style="line-height:1.5;overflow-x:auto">{inner}</div>'

    def _still_worst(self) -> str:
        worst = self._ladder()["worst"]
        if not worst:
            return "<p>No element differs.</p>"
        head = ("place", "output", "expected", "apart")
        return table(head, worst, "The elements that differ most")

    def __repr__(self) -> str:
        if isinstance(self.report, ClosenessReport):
            kept = within(self.report)
            return f"ClosenessView({list(self.report.shape)}; within {kept})"
        what = f"{len(self._pairs)} {self._what.lower()}s"
        told = ", ".join(f"{n} {name}" for name, n in self.counts().items() if n)
        return f"ClosenessView({what} at {power(self._epsilon)}: {told or 'none'})"


def power(epsilon: float) -> str:
    """A tolerance as the book writes it: 1e-4."""
    return f"1e{round(math.log10(epsilon))}"


def within(report: ClosenessReport) -> str:
    """The smallest tolerance that all elements keep."""
    return "none" if report.within is None else power(report.within)


def share(level: Level) -> str:
    """How many are close, in percent; never rounded to all or to none."""
    whole = level.close in (0, level.total)
    return f"{level.percent:.0f}%" if whole else level.percent_text


def value(number: float) -> str:
    """A value of an element, with the digits that float32 has."""
    return "NaN" if math.isnan(number) else f"{number:.8g}"


def badge(verdict: str) -> str:
    """A verdict as sign and word in a frame."""
    tint = TINTS[verdict]
    style = f"border:1px solid rgb({tint});background:rgba({tint},.18);padding:0 5px"
    return (
        f'<span style="{style};border-radius:3px;white-space:nowrap">'
        f"{SIGNS[verdict]} {verdict}</span>"
    )


def still_ladder(levels: Sequence[Level], name: str) -> str:
    """The eight tolerances as bars; solid, striped or outlined by the verdict."""
    rows = []
    for level in levels:
        tint = f"rgb({TINTS[level.verdict]})"
        stripes = "repeating-linear-gradient({}deg,{} 0 {}px,transparent {}px {}px)"
        fill = {
            "PASS": tint,
            "WARN": stripes.format(45, tint, 5, 5, 8),
            "FAIL": stripes.format(90, tint, 2, 2, 5),
        }[level.verdict]
        bar = (
            '<span aria-hidden="true" style="display:inline-block;width:220px;'
            'height:11px;border:1px solid currentColor"><span style="display:block;'
            f'width:{level.percent:.1f}%;height:11px;background:{fill}"></span></span>'
        )
        count = f"{level.close:,} of {level.total:,} ({share(level)})"
        rows.append((power(level.epsilon), bar, count, badge(level.verdict)))
    caption = f"Tolerances{': ' + escape(name) if name else ''}"
    return table(("ε", "close", "", ""), rows, caption)
