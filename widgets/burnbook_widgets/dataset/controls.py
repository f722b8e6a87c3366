"""The controls of the dataset browser, around its view."""

from __future__ import annotations

from typing import Any

import anywidget
import ipywidgets
import traitlets

from burnbook_widgets.page import script, sheet

SLID = 40  # with more pages a box for their number replaces the slider
ALL = -1  # what the list of classes holds for all of them: None would show nothing


class ItemView(anywidget.AnyWidget):
    """Cards of items, bars of classes, the confusion matrix, one item closely.

    Why: everything that the page needs to draw itself anew is in the traits; pictures
    of a page and of an item have budgets that keep all of it below 100 kB.
    """

    _esm = script("items")
    _css = sheet("items")

    page = traitlets.Dict().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)
    balance = traitlets.List().tag(sync=True)
    grid = traitlets.Dict().tag(sync=True)
    detail = traitlets.Dict().tag(sync=True)
    large = traitlets.Bytes().tag(sync=True)
    status = traitlets.Dict().tag(sync=True)

    def __repr__(self) -> str:
        return f"ItemView({len(self.page.get('items', []))} items)"


class Controls:
    """Buttons, slider, class, words, views: each calls the browser's own method."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.view = browser.widget
        self._following = False
        wide = ipywidgets.Layout(width="auto")
        self.back = ipywidgets.Button(
            icon="chevron-left", tooltip="Previous page", layout=_layout("40px")
        )
        self.forth = ipywidgets.Button(
            icon="chevron-right", tooltip="Next page", layout=_layout("40px")
        )
        self.page = ipywidgets.IntSlider(
            value=1,
            min=1,
            max=1,
            description="Page",
            continuous_update=False,
            layout=_layout("230px"),
            style={"description_width": "initial"},
        )
        self.page_box = ipywidgets.BoundedIntText(
            value=1,
            min=1,
            max=1,
            description="Page",
            layout=_layout("150px"),
            style={"description_width": "initial"},
        )
        self.label = ipywidgets.Dropdown(
            description="Class",
            layout=_layout("190px"),
            style={"description_width": "initial"},
        )
        self.words = ipywidgets.Text(
            description="Search",
            placeholder="words or #17",
            continuous_update=False,
            layout=_layout("220px"),
            style={"description_width": "initial"},
        )
        self.clear = ipywidgets.Button(
            description="Show all", tooltip="Clear class and search", layout=wide
        )
        self.more = ipywidgets.Button(
            description="Read all labels",
            tooltip="Read every item once, however long it takes",
            layout=ipywidgets.Layout(width="auto"),
        )
        self.views = ipywidgets.ToggleButtons(
            options=[(name.capitalize(), name) for name in browser.views],
            style={"button_width": "auto"},
        )
        row = {"flex_flow": "row wrap", "align_items": "center"}
        finders = [self.label, self.words, self.clear]
        pagers = [self.back, self.page, self.page_box, self.forth]
        first = [self.views] if len(browser.views) > 1 else []
        self.rows = [
            ipywidgets.HBox([*first, self.more], layout=ipywidgets.Layout(**row)),
            ipywidgets.HBox(
                [*finders, *pagers],
                layout=ipywidgets.Layout(grid_gap="4px 10px", **row),
            ),
        ]
        self.box = ipywidgets.VBox([*self.rows, self.view])
        self._listen()

    def _listen(self) -> None:
        browser, act = self.browser, self.browser.attempt
        turn = browser.heard
        self.back.on_click(lambda _: act(turn, {"do": "turn", "by": -1}))
        self.forth.on_click(lambda _: act(turn, {"do": "turn", "by": 1}))
        self.clear.on_click(lambda _: act(browser.clear))
        self.more.on_click(lambda _: act(browser.read_all))
        self.view.on_msg(lambda _, message, __: act(browser.heard, message))
        for control in (self.page, self.page_box):
            self._on(control, lambda page: setattr(browser, "page", page))
        self._on(self.views, lambda view: setattr(browser, "view", view))
        self._on(self.words, browser.search)
        self._on(self.label, lambda code: browser._narrow(None if code < 0 else code))

    def _on(self, control: Any, action: Any) -> None:
        def changed(change: Any) -> None:
            if not self._following:
                self.browser.attempt(action, change["new"])

        control.observe(changed, "value")

    def follow(self) -> None:
        """Set every control to what is shown."""
        browser = self.browser
        self._following = True
        try:
            many = browser.pages > SLID
            for control in (self.page, self.page_box):
                control.max = browser.pages
                control.value = browser.page
            self.page.layout.display = "none" if many else ""
            self.page_box.layout.display = "" if many else "none"
            self.back.disabled = browser.page <= 1
            self.forth.disabled = browser.page >= browser.pages
            if browser.view == "confusion":
                self.back.disabled = self.forth.disabled = True
            self.page.disabled = self.back.disabled and self.forth.disabled
            self.page_box.disabled = self.page.disabled
            self.views.value = browser.view
            self.words.value = browser._words
            options = [("all", ALL)]
            options += [
                (f"{name} ({count:,})", code)
                for code, (name, count) in enumerate(browser.counts.items())
            ]
            if list(self.label.options) != options:
                self.label.options = options
            self.label.value = ALL if browser._label is None else browser._label
            whole = len(browser.found) == len(browser.dataset)
            self.clear.disabled = whole and browser.sorted_by is None
            self.more.layout.display = "none" if browser.labels.complete else ""
            self.label.disabled = not browser.labels.names
        finally:
            self._following = False

    def close(self) -> None:
        """Close every widget with the layouts and styles that it brought."""
        for button in (self.back, self.forth, self.clear, self.more):
            button._click_handlers.callbacks.clear()
        for control in (
            *(self.page, self.page_box),
            *(self.label, self.words, self.views),
        ):
            control.unobserve_all()
        self.view._msg_callbacks.callbacks.clear()
        rows = [child for row in self.rows for child in row.children]
        if self.views not in rows:
            rows.append(self.views)
        for widget in (*rows, *self.rows, self.view, self.box):
            for part in (getattr(widget, "style", None), widget.layout, widget):
                if part is not None:
                    part.close()


def _layout(width: str) -> ipywidgets.Layout:
    return ipywidgets.Layout(width=width)
