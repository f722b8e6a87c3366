"""Every view in one notebook: accessible in both themes, and still without a kernel."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import burnbook_widgets
from tests.browser import views
from tests.browser.conftest import open_without_kernel
from tests.support.contrast import contrast
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
AXE = Path(
    os.environ.get("BURNBOOK_AXE")
    or ROOT / ".venv" / "node" / "node_modules" / "axe-core" / "axe.min.js"
)
LIVE = "Dashboard, live"  # the last one: it is `view` then, and can be stopped
NAMES = [
    name
    for name in views.CELLS
    if name.partition(",")[0] in burnbook_widgets.__all__ and name != LIVE
]
NAMES.append(LIVE)
WIDGET = "application/vnd.jupyter.widget-view+json"

# JupyterLab virtualizes long notebooks; here every cell is to be on the page.
WHOLE = """() => {
    const content = window.jupyterapp.shell.currentWidget.content;
    content.notebookConfig = { ...content.notebookConfig, windowingMode: "none" };
}"""

# JupyterLab puts an SVG output into an img without a text, and plotly's part of it does
# so with a PNG; the table below such a picture holds its numbers.
LOOK = """async () => {
    const found = await axe.run(
        {
            include: [[".jp-OutputArea-output"]],
            exclude: [[".jp-RenderedSVG img"], ["img.plot-img"]],
        },
        { resultTypes: ["violations"] },
    );
    return found.violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .flatMap(({ id, nodes }) => nodes.map(
            ({ html, failureSummary: why }) => `${id}: ${html.slice(0, 160)}: ${why}`,
        ));
}"""

# The opaque colours that the views' style sheets name, as [name, colour, paper].
TONES = """() => {
    const colors = (node, name) =>
        getComputedStyle(node)[name].match(/[\\d.]+/g).map(Number);
    const ours = '[class^="bb"]';
    const found = [];
    const rules = [...document.styleSheets].flatMap((sheet) => {
        try { return [...sheet.cssRules]; } catch { return []; }
    });
    for (const root of document.querySelectorAll(ours)) {
        if (root.parentElement.closest(ours)) continue;
        const mine = rules.filter(({ selectorText: to }) => to && root.matches(to));
        const names = mine.flatMap((rule) => [...rule.style]);
        let under = root;
        while (colors(under, "backgroundColor")[3] === 0) under = under.parentElement;
        const paper = colors(under, "backgroundColor").slice(0, 3);
        const probe = root.appendChild(document.createElement("i"));
        for (const name of new Set(names.filter((name) => name.startsWith("--")))) {
            probe.style.color = `var(${name})`;
            const [red, green, blue, alpha = 1] = colors(probe, "color");
            const full = `${root.className} ${name}`;
            if (alpha === 1) found.push([full, [red, green, blue], paper]);
        }
        probe.remove();
    }
    return found;
}"""
PAPERS = "-paper"

# Every text of the outputs, as [words, its colour, what lies under it, how large]: the
# backgrounds of its ancestors, and in a drawing the boxes before it that it stands on.
TEXTS = """() => {
    const numbers = (text) => {
        const found = text.match(/^rgba?\\(([^)]*)\\)/);
        if (!found) return null;
        const [red, green, blue, alpha = 1] = found[1].match(/[\\d.]+/g).map(Number);
        return [red, green, blue, alpha];
    };
    const over = (upper, lower) =>
        [0, 1, 2].map((i) => upper[3] * upper[i] + (1 - upper[3]) * lower[i]);
    const backgrounds = (node) => {
        const layers = [];
        for (; node; node = node.parentElement) {
            const style = getComputedStyle(node);
            if (style.backgroundImage !== "none") return null;
            layers.push(numbers(style.backgroundColor) ?? [0, 0, 0, 0]);
        }
        const white = [255, 255, 255];
        return layers.reverse().reduce((under, one) => over(one, under), white);
    };
    const opacity = (node) => {
        let all = 1;
        for (; node; node = node.parentElement) all *= getComputedStyle(node).opacity;
        return all;
    };
    const found = [];
    for (const output of document.querySelectorAll(".jp-OutputArea-output")) {
        const walk = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
        for (let text; (text = walk.nextNode()); ) {
            const words = text.textContent.trim(), node = text.parentElement;
            if (!words || node.closest("style, title, option, .plotly")) continue;
            const range = document.createRange();
            range.selectNodeContents(text);
            const box = range.getBoundingClientRect();
            if (box.width < 3 || box.height < 3) continue;
            const style = getComputedStyle(node), drawing = node.closest("svg");
            if (style.visibility === "hidden" || style.clipPath !== "none") continue;
            let under = backgrounds(drawing ? drawing.parentElement : node);
            if (under === null) continue;
            const x = box.x + box.width / 2, y = box.y + box.height / 2;
            for (const shape of drawing?.querySelectorAll("rect, circle, text") ?? []) {
                if (shape === node || shape.contains(node)) break;
                if (shape.tagName === "text") continue;
                const { left, right, top, bottom } = shape.getBoundingClientRect();
                if (x < left || x > right || y < top || y > bottom) continue;
                const fill = numbers(getComputedStyle(shape).fill);
                if (!fill) continue;
                fill[3] *= getComputedStyle(shape).fillOpacity * opacity(shape);
                under = over(fill, under);
            }
            const ink = numbers(drawing ? style.fill : style.color);
            if (!ink) continue;
            const alpha = ink[3] * opacity(node) * (drawing ? style.fillOpacity : 1);
            const color = over([...ink.slice(0, 3), alpha], under);
            const size = parseFloat(style.fontSize), bold = style.fontWeight >= 700;
            const large = size >= 24 || (bold && size >= 18.7);
            const whose = output.querySelector("[class^=bb]")?.className ?? "";
            const off = node.closest("[disabled], [aria-disabled=true], .bb-live");
            const name = `${whose}: ${words.slice(0, 40)}`;
            if (!off) found.push([name, color, under, large]);
        }
    }
    return found;
}"""
WINDOWED = "null (reading 'observe')"  # see `hear`


def output_of(book, name):
    """What the cell of a view shows."""
    place = 1 + NAMES.index(name)
    return book.page.locator(".jp-CodeCell").nth(place).locator(".jp-OutputArea").first


@pytest.fixture
def book(open_book):
    """A notebook with every view; those of a training show themselves."""
    shown = {name: "" if "Dashboard" in name else "view\n" for name in NAMES}
    cells = [views.CELLS[name] + shown[name] for name in NAMES]
    ends = [
        "print('all', 'shown')",
        "view.stop()\nhandle.wait()\nprint('all', 'ended')",
    ]
    book = open_book("views", [views.SETUP, *cells, *ends])
    book.complaints = []
    book.page.on("console", lambda said: hear(book, said))
    book.page.evaluate(WHOLE)
    book.wait_for_kernel()
    for cell in range(len(cells) + 2):
        book.run_cell(cell)
    wait_until(lambda: "all shown" in book.output(len(cells) + 1))
    book.page.wait_for_timeout(800)
    return book


def hear(book, said):
    """Note what the page complains about; that there is no kernel is not its fault."""
    network = said.text.startswith("Failed to load resource")
    # JupyterLab 4.6's own: `windowingMode: "none"` above takes away the observer that
    # `_setupContentVisibilityObserver` goes on to ask for each new cell.
    windowed = WINDOWED in said.text
    if said.type == "error" and not network and not windowed:
        book.complaints.append(said.text)


def test_every_view_is_accessible_and_leaves_its_still_form(book):
    for name in NAMES:
        assert output_of(book, name).bounding_box()["height"] > 60, name
        assert "Traceback" not in output_of(book, name).inner_text(), name
    look_closely(book)
    book.run_cell(len(NAMES) + 2)
    wait_until(lambda: "all ended" in book.output(len(NAMES) + 2))
    kept_is_still_and_small(book)
    assert [fault for fault in book.faults if WINDOWED not in fault] == []
    open_without_kernel(book)
    book.page.evaluate(WHOLE)
    for name in NAMES:
        if name == "history_figure":
            continue  # plotly draws it again from what was saved
        output = output_of(book, name)
        output.locator("table, svg, img, p").first.wait_for(state="attached")
        assert "displaying widget" not in output.inner_text(), name
        assert "Loading widget" not in output.inner_text(), name
    look_closely(book)
    assert book.complaints == []


def look_closely(book):
    """No serious violation, and colours that stand out, in both themes."""
    for theme in ("Light", "Dark"):
        book.theme(theme)
        for name, tone, paper in book.page.evaluate(TONES):
            if not name.endswith(PAPERS):
                assert contrast(tone, paper) >= 3.0, (theme, name, tone, paper)
        read = book.page.evaluate(TEXTS)
        assert len(read) > 1000
        hidden = [one for one in read if not can_be_read(*one)]
        assert not hidden, theme + "".join(f"\n{one}" for one in hidden)
        if AXE.is_file():
            book.page.evaluate(AXE.read_text(encoding="utf-8"))
            assert book.page.evaluate(LOOK) == [], theme


def can_be_read(words, color, under, large):
    """Whether a text stands out from what it stands on, by WCAG 2 (AA)."""
    least = 3.0 if large else 4.5
    return contrast(color, under) >= least - 0.05  # colours that were rounded


def kept_is_still_and_small(book):
    """What is saved of each view needs no kernel and is below 100 kB."""
    saved = book.save()
    assert "widgets" not in saved["metadata"]
    for name, cell in zip(NAMES, saved["cells"][1:], strict=False):
        most = 100_000 if name != "history_figure" else 250_000  # with a PNG beside
        assert len(json.dumps(cell["outputs"])) < most, name
        for output in cell["outputs"]:
            assert WIDGET not in output.get("data", {}), name


def test_accessibility_is_tried():
    if not AXE.is_file():
        pytest.skip(f"no axe-core (of npm) at {AXE}: set BURNBOOK_AXE")
    assert "axe v4" in AXE.read_text(encoding="utf-8")[:200]
