"""Names that are code: no view, still form or exported page runs any of them."""

from __future__ import annotations

import pytest

from tests.browser import hostile
from tests.browser.conftest import open_without_kernel
from tests.browser.test_views import WHOLE, wait_until

pytestmark = pytest.mark.browser

# Called by a name that was taken for code; it notes where that one stands.
COUNTER = """window.hits = []; window.hit = () => {
    let node = document.currentScript ?? window.event?.target ?? document.body;
    const way = [new Error().stack.slice(0, 300), node.outerHTML?.slice(0, 200)];
    for (; node?.nodeName; node = node.parentNode)
        way.push(`${node.nodeName}.${node.getAttribute?.("class") ?? ""}`);
    window.hits.push(way.join(" < "));
}; null;"""

# Attributes and addresses that are code; ours are set by scripts, never as text.
CODE = """inside => [...document.querySelectorAll(inside)].flatMap((root) =>
    [root, ...root.querySelectorAll("*")].flatMap((node) =>
        [...node.attributes]
            .filter(({ name, value }) => name.startsWith("on")
                || /^\\s*(javascript|data:text)/i.test(value)
                && ["href", "xlink:href", "src", "action", "srcdoc"].includes(name))
            .map(({ name, value }) => `${node.nodeName} ${name}=${value}`)))"""

# The mouse over everything that could tell a name.
POINT = """inside => {
    for (const node of document.querySelectorAll(
        `${inside} :is(canvas, svg, rect, circle, path, td, th, li, button, span)`
    )) {
        const { left, top, width, height } = node.getBoundingClientRect();
        const [x, y] = [left + width / 2, top + height / 2];
        const at = { clientX: x, clientY: y, bubbles: true };
        for (const kind of ["pointermove", "mousemove", "mouseover"])
            node.dispatchEvent(new PointerEvent(kind, at));
    }
}"""

# What is written there, and what those are told who do not see it.
TOLD = """node => [node.innerText, ...[...node.querySelectorAll("*")].flatMap((each) =>
    [each.value, ...["aria-label", "title", "alt"].map((a) => each.getAttribute(a))]
)].join(" ")"""

OUTPUT = ".jp-OutputArea-output"


def look(page, inside):
    """Point at everything there; nothing of a name has run or is going to."""
    page.evaluate(POINT, inside)
    page.wait_for_timeout(500)
    assert page.evaluate("window.hits") == []
    assert page.evaluate(CODE, inside) == []


def the_counter_counts(page):
    """Names that are put into this page as HTML are counted."""
    page.evaluate(
        "text => document.body.insertAdjacentHTML('beforeend', text)", hostile.IMAGE
    )
    wait_until(lambda: page.evaluate("window.hits.length") > 0)


@pytest.fixture
def book(open_book):
    """A notebook with every view of hostile names, and faults that name one."""
    after = (
        "stills.append(view.still())\n"
        "if hasattr(getattr(view, 'panel', None), 'fault'):\n"
        "    view.say_fault(PAYLOADS[0])\n"
        "view\n"
    )
    cells = [cell + after for cell in hostile.CELLS.values()]
    cells = [hostile.SETUP, *cells, hostile.PAGES, "print('all', 'shown')"]
    book = open_book("hostile", cells)
    book.page.on(
        "dialog", lambda dialog: (book.faults.append("dialog"), dialog.accept())
    )
    book.page.evaluate(WHOLE)
    book.page.evaluate(COUNTER)
    book.wait_for_kernel()
    for cell in range(len(cells)):
        book.run_cell(cell)
    shown = book.page.locator(".jp-CodeCell").last
    shown.get_by_text("all shown", exact=True).or_(
        book.page.get_by_text("Traceback").first
    ).wait_for(timeout=120_000)
    book.page.wait_for_timeout(800)
    return book


def test_no_name_runs_in_a_view(book):
    page = book.page
    for place, name in enumerate(hostile.CELLS, 1):
        output = page.locator(".jp-CodeCell").nth(place).locator(".jp-OutputArea").first
        assert "Traceback" not in output.inner_text(), name
        # TensorView tells numbers only; elsewhere there is to be something to try.
        assert name == "TensorView" or "hit()" in output.evaluate(TOLD), name
    assert "Traceback" not in book.output(len(hostile.CELLS) + 1)
    look(page, OUTPUT)
    book.save()
    the_counter_counts(page)
    for name in hostile.EXPORTED:
        look_at_page(book, name)
    assert book.faults == []
    open_without_kernel(book)
    page.evaluate(WHOLE)
    page.evaluate(COUNTER)
    page.wait_for_timeout(1000)
    look(page, OUTPUT)


def look_at_page(book, name):
    """An exported page, opened from the disk."""
    page = book.page.context.new_page()
    page.on("dialog", lambda dialog: (book.faults.append("dialog"), dialog.accept()))
    page.add_init_script(COUNTER)
    page.goto((book.server.notebooks / f"{name}.html").as_uri())
    assert "hit()" in page.content(), name
    look(page, "body")
    the_counter_counts(page)
    page.close()
