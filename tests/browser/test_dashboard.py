"""The training dashboard in a real JupyterLab, driven by clicks and keys."""

from __future__ import annotations

import json
import re
import subprocess
import time

import pytest

from tests.browser.conftest import PYTHON, open_without_kernel
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

ASK = "import ipykernel; print(ipykernel.__version__)"
KERNEL = subprocess.run([PYTHON, "-c", ASK], capture_output=True, text=True).stdout
kernel_6_hears_later = pytest.mark.skipif(
    KERNEL.startswith("6."),
    reason="ipykernel 6 hears clicks and places outputs of threads only after a cell",
)

WORKBENCH = """
import tempfile, time
from burnbook.prelude import *
from burnbook.data import DataLoaderBuilder, DigitsDataset, PartialDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.guide.model import ModelConfig
from burnbook.optim import AdamConfig
from burnbook.train import AccuracyMetric, LearnerBuilder, LossMetric
from burnbook_widgets import NotebookRenderer, history_figure

class Timed(NotebookRenderer):
    "Note when Stop was clicked, when training ended, and what the view cost."
    own, waited, clicked, ended = 0.0, 0.0, None, None
    def start(self, run):
        super().start(run)
        stop = self.dashboard.stop
        def clicked(*reason):
            self.clicked = time.monotonic()
            stop(*reason)
        self.dashboard.stop = clicked
        for name in ("update_train", "update_valid", "render_train", "render_valid"):
            setattr(self, name, self.timed(getattr(self, name)))
    def timed(self, act):
        def run(argument):
            began, wall = time.thread_time(), time.perf_counter()
            act(argument)
            self.own += time.thread_time() - began
            self.waited += time.perf_counter() - wall
        return run
    def finish(self, result):
        self.ended = time.monotonic()
        super().finish(result)

device = Autodiff(Numpy())
batches = DataLoaderBuilder(MnistBatcher()).batch_size(64).shuffle(42)
train = batches.build(PartialDataset(DigitsDataset.train(), 0, 320))
valid = batches.build(PartialDataset(DigitsDataset.test(), 0, 128))
board = Timed()
def learner_for(epochs, board=board):
    return (
        LearnerBuilder(tempfile.mkdtemp())
        .metric_train_numeric(AccuracyMetric())
        .metric_valid_numeric(AccuracyMetric())
        .metric_train_numeric(LossMetric())
        .metric_valid_numeric(LossMetric())
        .renderer(board)
        .devices([device])
        .num_epochs(epochs)
        .build(ModelConfig(10, 512).init(device), AdamConfig().init(), 1e-4)
    )
"""
SETUP = "from workbench import *"
KINDS_AT_THE_END = [
    {"image/svg+xml", "image/png", "text/plain"},
    {"text/html", "text/plain"},
]
PICTURE = ".jp-RenderedSVG :is(svg, img)"  # in the page, or as an image
CANVAS = ".bb-stage canvas"
PIXELS = f"document.querySelector('{CANVAS}').toDataURL()"
LABEL = f"document.querySelector('{CANVAS}').getAttribute('aria-label')"
HEAR = """
  globalThis.heard = [];
  const live = document.querySelector('.bb-live');
  new MutationObserver(() => heard.push([performance.now(), live.textContent]))
    .observe(live, { childList: true });
"""


def news_after_answer(page):
    """The last answer to a key, and what was told after it; or nothing yet."""
    heard = page.evaluate("globalThis.heard")
    answers = [i for i, (_, text) in enumerate(heard) if "mean" in text]
    return heard[answers[-1] :][:2] if answers and heard[answers[-1] + 1 :] else None


def walk_to_the_second_epoch(page):
    """Walk with the keys; a screen reader has time to read where that leads."""
    page.locator(CANVAS).nth(1).focus()
    page.evaluate(HEAR)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    wait_until(lambda: news_after_answer(page))
    (when, answer), (later, _) = news_after_answer(page)
    assert "epoch 2: valid mean" in answer
    assert later - when >= 2900  # milliseconds


@pytest.fixture(autouse=True)
def workbench(server):
    """What every notebook here starts from, as a module beside it."""
    (server.notebooks / "workbench.py").write_text(WORKBENCH)


def text_of(book, selector):
    return book.page.locator(selector).first.inner_text()


def wait_for_text(book, selector, text):
    """Wait until the first of what is selected has this text."""

    def there():
        return text_of(book, selector)

    wait_until(lambda: text in there(), seen=there)


def wait_for_epoch(book, epoch):
    """Wait until training has come so far; a fast one may pass an epoch unseen."""

    def reached():
        found = re.search(r"Epoch (\d+) of", text_of(book, ".bb-headline"))
        return found is not None and int(found[1]) >= epoch

    wait_until(reached, 90)


def button(book, name):
    return book.page.locator(".bb-button, .widget-button", has_text=name)


def run_until_curves(open_book, name, *cells):
    """Open a notebook, run all of it, and wait until the curves are there."""
    book = open_book(name, [*cells])
    book.run_all()
    book.page.wait_for_selector(CANVAS, timeout=90_000)
    return book


def wait_for_headline(place, text):
    """Wait until the headline in a page, or in one of its cells, has this text."""
    place.locator(".bb-headline", has_text=text).wait_for(timeout=90_000)


@kernel_6_hears_later
def test_an_awaiting_cell_moves_pauses_resumes_and_stops_within_a_second(open_book):
    cell = (
        "learner = learner_for(3000)\n"
        "model = await learner.fit_async(train, valid)\n"
        "took = board.ended - board.clicked\n"
        "share = board.own / learner.result.seconds\n"
        "print(f'{type(model).__name__} kept, {model.num_params()} parameters')\n"
        "wall = board.waited / learner.result.seconds\n"
        "print(f'stopped after {took:.3f} s; share {share:.5f} {wall:.5f}')"
    )
    book = run_until_curves(open_book, "awaiting", SETUP, cell)
    page = book.page
    assert "live" in text_of(book, ".bb-note")
    wait_for_epoch(book, 3)

    before = page.evaluate(PIXELS)
    wait_until(lambda: page.evaluate(PIXELS) != before)  # it moves
    assert "items/s" in text_of(book, ".bb-detail")
    wait_for_text(book, ".bb-detail", "left")  # after a second

    page.locator(CANVAS).first.hover(position={"x": 200, "y": 100})
    page.wait_for_selector(".bb-tip:not([hidden])")
    assert "train mean" in text_of(book, ".bb-tip:not([hidden])")
    book.picture("dashboard_live_light")
    walk_to_the_second_epoch(page)
    book.theme("Dark")
    book.picture("dashboard_live_dark")

    button(book, "Pause").click()
    wait_for_text(book, ".bb-headline", "paused")
    time.sleep(0.4)
    held = text_of(book, ".bb-detail"), page.evaluate(PIXELS)
    time.sleep(1)
    assert (text_of(book, ".bb-detail"), page.evaluate(PIXELS)) == held
    book.picture("dashboard_paused_dark")
    button(book, "Resume").click()
    wait_until(lambda: page.evaluate(PIXELS) != held[1])

    button(book, "Stop").click()
    wait_for_headline(page, "Stopped (stop button)")
    wait_until(lambda: "stopped after" in book.output(1))
    printed = book.output(1)
    assert "Model kept, 531178 parameters" in printed
    numbers = re.findall(r"\d+\.\d+", printed.split("stopped after")[1])
    took, share, wall = map(float, numbers)
    print(f"stopped after {took} s, own time {share:.2%}, with waiting {wall:.2%}")
    assert took < 5.0  # seconds; less than one on a machine that is idle
    assert share < 0.03
    assert page.locator(CANVAS).count() == 2  # it stays a chart
    assert book.faults == []


def test_the_finished_picture_is_there_after_reload_without_a_kernel(open_book):
    cell = "learner = learner_for(4)\nmodel = learner.fit(train, valid)"
    book = open_book("finished", [SETUP, cell])
    page = book.page
    book.run_all()
    wait_for_headline(page, "Trained 4 epochs in")
    saved = book.save()
    assert len(json.dumps(saved["metadata"])) < 100_000
    assert len(json.dumps(saved)) < 300_000
    outputs = saved["cells"][1]["outputs"]  # besides a notice on stderr, perhaps
    kinds = [set(output["data"]) for output in outputs if "data" in output]
    assert kinds == KINDS_AT_THE_END
    assert "script" not in json.dumps(saved["cells"][1]["outputs"])

    open_without_kernel(book)
    page.wait_for_selector(PICTURE)
    assert page.locator(".jp-OutputArea-output table tbody tr").count() == 4
    looks = {}
    for theme in ("Light", "Dark"):
        book.theme(theme)
        book.picture(f"dashboard_finished_{theme.lower()}")
        looks[theme] = page.locator(PICTURE).first.screenshot()
    assert looks["Light"] != looks["Dark"]


@kernel_6_hears_later
def test_a_page_saved_during_a_training_shows_how_far_it_had_come(open_book):
    cell = "learner = learner_for(3000)\nhandle = learner.start(train, valid)"
    book = run_until_curves(open_book, "halfway", SETUP, cell)
    page = book.page
    table = page.locator(".jp-OutputArea-output tbody tr")
    wait_until(lambda: table.count() >= 2, 90)
    saved = book.save()["cells"][1]["outputs"]
    assert page.locator(CANVAS).count() == 2  # it is live as before
    kinds = [set(output["data"]) for output in saved if "data" in output]
    assert kinds == [{"image/svg+xml", "text/plain"}, {"text/html", "text/plain"}]
    open_without_kernel(book)
    page.wait_for_selector(PICTURE)
    assert table.count() >= 1  # what is saved may be an epoch behind
    assert "displaying widget" not in book.output(1)
    book.picture("dashboard_halfway")


def test_a_synchronous_fit_says_that_clicks_wait_and_stops_on_interrupt(open_book):
    cell = (
        "learner = learner_for(3000)\n"
        "model = learner.fit(train, valid)\n"
        "print('kept', type(model).__name__, learner.result.interrupted)"
    )
    book = run_until_curves(open_book, "synchronous", SETUP, cell)
    assert "queued" in text_of(book, ".bb-note")
    assert "interrupt the kernel" in text_of(book, ".bb-note")
    wait_for_epoch(book, 2)
    book.picture("dashboard_fit_light")
    book.command("notebook:interrupt-kernel")
    wait_for_headline(book.page, "Stopped (interrupted)")
    wait_until(lambda: "kept Model interrupted" in book.output(1))
    assert "Traceback" not in book.output(1)


@kernel_6_hears_later
def test_a_background_training_stays_live_and_below_its_own_cell(open_book):
    book = open_book(
        "background",
        [
            SETUP,
            "learner = learner_for(3000)\nhandle = learner.start(train, valid)",
            "print('the next cell ran')",
            "print('kept', type(handle.wait()).__name__)",
        ],
    )
    page = book.page
    book.wait_for_kernel()
    for cell in range(3):  # the last cell would wait for the training
        book.run_cell(cell)
    wait_until(lambda: "the next cell ran" in book.output(2), 60)
    page.wait_for_selector(CANVAS)
    cells = page.locator(".jp-CodeCell")
    assert cells.nth(1).locator(CANVAS).count() == 2
    wait_for_epoch(book, 2)
    assert "live" in text_of(book, ".bb-note")
    button(book, "Stop").click()
    wait_for_headline(cells.nth(1), "Stopped (stop button)")
    assert cells.nth(1).locator(CANVAS).count() == 2
    book.run_cell(3)
    wait_until(lambda: "kept Model" in book.output(3))
    assert book.faults == []


def test_the_history_is_a_figure_to_explore(open_book):
    book = open_book(
        "history",
        [
            SETUP,
            "import os\nos.environ['BURNBOOK_DISPLAY'] = 'static'\n"
            "learner = learner_for(6, NotebookRenderer())\n"
            "model = learner.fit(train, valid)\n"
            "del os.environ['BURNBOOK_DISPLAY']",
            "history_figure(learner.result.history, {'Accuracy': '%'})",
        ],
    )
    page = book.page
    book.run_all()
    page.wait_for_selector(".js-plotly-plot .main-svg", timeout=60_000)
    first = book.output(1)
    assert "Trained 6 epochs: Accuracy and Loss, train and valid." in first
    assert page.locator(".jp-CodeCell").nth(1).locator("img").count() == 1
    for theme in ("Light", "Dark"):
        book.theme(theme)
        page.locator(".js-plotly-plot .nsewdrag").first.hover()
        page.wait_for_selector(".hoverlayer .legend text, .hoverlayer .hovertext")
        book.picture(f"history_{theme.lower()}")
    assert "epoch" in page.locator(".hoverlayer").first.text_content()
    page.locator(".updatemenu-button", has_text="log y").click()
    axis = "document.querySelector('.js-plotly-plot').layout.yaxis.type"
    wait_until(lambda: page.evaluate(axis) == "log")
    assert book.faults == []
