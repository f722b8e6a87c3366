"""What holds for every view: shown to a browser, small, still, and closed whole."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")

import burnbook_widgets
from burnbook_widgets import saving
from burnbook_widgets.drawing import DARK, LIGHT, MIDDLE
from burnbook_widgets.saving import (
    LIVE,
    MARK,
    SVG,
    keep_still,
    panel_mark,
    picture_mark,
)
from burnbook_widgets.view import Names, View
from tests.browser import views
from tests.support.contrast import contrast
from tests.support.widget_state import state_size

SHEETS = Path(burnbook_widgets.__file__).parent / "js"
PUBLIC = [name for name in views.CELLS if name in burnbook_widgets.__all__]
PLAIN = [name for name in PUBLIC if "learner_for" not in views.CELLS[name]]


@pytest.fixture(scope="module")
def names():
    """What the cells start from."""
    found: dict[str, object] = {}
    exec(views.SETUP, found)
    return found


def test_every_public_name_is_shown_to_the_browser():
    shown = {name.partition(",")[0] for name in views.CELLS}
    missing = set(burnbook_widgets.__all__) - shown - set(views.SHOWN_BY)
    assert not missing, f"tests/browser/views.py has no cell for {sorted(missing)}"
    assert set(views.SHOWN_BY.values()) <= set(views.CELLS)


@pytest.mark.parametrize("name", PLAIN)
def test_a_view_is_small_still_and_closes_whole(name, names, same_widgets):
    before, scope = state_size(), dict(names)
    exec(views.CELLS[name], scope)
    view = scope["view"]
    assert isinstance(view, View)
    assert state_size() - before < 100_000
    assert "Names()" in [repr(child) for child in view.box.children]
    html = view.still()
    assert "<script" not in html
    assert len(html) < 100_000
    assert not re.search(r"0x[0-9a-f]{6}", repr(view) + html)
    assert repr(view).startswith(name)
    bundle = view.bundle()
    assert set(bundle) == {LIVE, "text/html", "text/plain"}
    view.close()
    assert view.still() == html  # a closed view still answers


def test_names_are_hidden_and_say_who_they_are():
    names = Names()
    assert names.layout.display == "none"
    assert repr(names) == "Names()"
    names.layout.close()


def shown(metadata, **data):
    """An output of a saved page."""
    return {"output_type": "display_data", "data": data, "metadata": dict(metadata)}


def test_a_saved_page_keeps_the_still_form_only():
    ours = shown(MARK, **{LIVE: {"model_id": "1"}, "text/html": "still"})
    theirs = shown({}, **{LIVE: {"model_id": "2"}, "text/html": "other"})
    cells = [
        {"cell_type": "markdown", "source": "words"},
        {"cell_type": "code", "outputs": [{"output_type": "stream"}, ours, theirs]},
    ]
    keep_still({"type": "notebook", "content": {"cells": cells}}, path="a.ipynb")
    assert ours["data"] == {"text/html": "still"}
    assert set(theirs["data"]) == {LIVE, "text/html"}
    keep_still({"type": "file", "content": "text"}, path="a.txt")
    keep_still({"type": "notebook", "content": None}, path="a.ipynb")


BROKEN = [1, None, "cell", {}, {"outputs": None}, {"outputs": {"data": 1}}]
BROKEN += [{"outputs": [1, None, {}, {"metadata": 1}, {"metadata": MARK, "data": []}]}]
BROKEN += [{"outputs": [{"metadata": m}]} for m in (panel_mark(""), picture_mark(""))]
BROKEN += [{"outputs": [shown(panel_mark("a")), shown(picture_mark("a"), **{SVG: 1})]}]
BROKEN += [{"outputs": [shown({"burnbook": {"so_far": so}})]} for so in ("panel", [])]


def test_a_damaged_page_is_saved_as_it_is():
    for cells in (BROKEN, *BROKEN):
        content = {"cells": cells, "metadata": 1}
        keep_still({"type": "notebook", "content": content}, path="a.ipynb")


def test_a_page_saved_during_a_training_holds_the_picture_so_far():
    early, panel = (
        shown(panel_mark(key), **{LIVE: {}, "text/html": "no epoch"}) for key in "ab"
    )
    begun = shown(picture_mark("a"), **{"text/html": "no rows"})
    table, stray = (
        shown(picture_mark(key), **{SVG: "<svg/>", "text/html": "rows"}) for key in "bc"
    )
    outputs = [[early, panel, begun, table, stray]]  # two runs of one cell
    page = {"cells": [{"cell_type": "code", "outputs": each} for each in outputs]}
    keep_still({"type": "notebook", "content": page}, path="a.ipynb")
    assert early["data"] == {"text/html": "no epoch"}
    assert panel["data"] == {SVG: "<svg/>"}
    assert table["data"] == stray["data"] == {"text/html": "rows"}


def test_a_page_saved_after_a_training_holds_what_it_ended_with():
    end = {SVG: "<svg/>", "image/png": "iVBO", "text/plain": "run"}
    panel = shown(panel_mark("a", True), **{LIVE: {}, **end})
    table = shown(picture_mark("a", True), **{"text/html": "rows"})
    page = {"cells": [{"cell_type": "code", "outputs": [panel, table]}]}
    keep_still({"type": "notebook", "content": page}, path="a.ipynb")
    assert (panel["data"], table["data"]) == (end, {"text/html": "rows"})
    assert panel["metadata"]["burnbook"]["panel"] == "a"  # by which it is found again


def test_the_server_saves_so_whichever_manager_it_ends_with():
    hooks, later = [], []
    app = SimpleNamespace(
        web_app=SimpleNamespace(settings={"contents_manager": None}),
        io_loop=SimpleNamespace(add_callback=later.append),
    )
    (point,) = saving._jupyter_server_extension_points()
    assert point == {"module": saving.__name__}
    saving._load_jupyter_server_extension(app)
    manager = SimpleNamespace(register_pre_save_hook=hooks.append)
    app.web_app.settings["contents_manager"] = manager  # as Jupytext does
    for act in later:
        act()
    assert hooks == [keep_still]


def test_variables_of_style_are_defined_for_all_views():
    """Markup is shared, so what colours it belongs to page.css, not to one view."""
    sheets = {file.name: file.read_text() for file in SHEETS.glob("*.css")}
    page = sheets.pop("page.css")
    defined = set(re.findall(r"(--bb-[\w-]+):", page))
    code = "".join(file.read_text() for file in SHEETS.parent.rglob("*.[pj][ys]"))
    for name, text in {**sheets, "code": code}.items():
        assert not re.findall(r"^\s*(--bb-[\w-]+):|\{\s*(--bb-[\w-]+):", text), name
        for used, fallback in re.findall(r"var\((--bb-[\w-]+)(,)?", text):
            by_element = fallback and f'setProperty("{used}"' in code
            started = any(one.startswith(used) for one in defined)  # …line${place}
            assert used in defined or by_element or (name == "code" and started), used


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(
    ("tones", "papers"),
    [(LIGHT, ["#ffffff"]), (DARK, ["#111111"]), (MIDDLE, ["#ffffff", "#111111"])],
)
def test_still_pictures_stand_out_on_their_pages(tones, papers):
    for paper in papers:
        for role, tone in tones.items():
            words = role == "ink" and tones is not MIDDLE
            assert contrast(tone, paper) >= (4.5 if words else 3.0), (role, paper)


def test_small_words_of_still_pictures_can_be_read():
    """Text needs more contrast than lines: 4.5, which only these roles have."""
    readable = {
        role
        for role in LIGHT
        if contrast(LIGHT[role], "#ffffff") >= 4.5
        and contrast(DARK[role], "#111111") >= 4.5
    }
    assert readable == {"ink", "train"}
    for file in Path(burnbook_widgets.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Words":
                roles = {ast.unparse(role) for role in node.args[2:3]}
                where = f"{file.name}:{node.lineno}"
                assert roles <= {*map(repr, readable), "tone"}, where
