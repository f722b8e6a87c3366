"""Memory and time of a long training with the dashboard open, norms and all.

CI trains 4,000 steps; the whole test is BURNBOOK_MEMORY_STEPS=20000.
"""

from __future__ import annotations

import os
import re
import time

import pytest

from tests.browser.test_dashboard import (
    CANVAS,
    button,
    kernel_6_hears_later,
    text_of,
    wait_for_text,
    wait_until,
)

pytestmark = pytest.mark.browser

EPOCH = 1000  # steps
STEPS = int(os.environ.get("BURNBOOK_MEMORY_STEPS", "4000"))
MOST_GROWTH = 5e6  # bytes, in the page and in the kernel each, after the first thousand
MOST_SHARE = 0.03  # of the time of training, with steps of some three milliseconds
TRAINING = """
import gc, tempfile, time
import numpy as np, psutil
from dataclasses import dataclass
from burnbook.prelude import *
from burnbook.optim import AdamConfig
from burnbook.train import (AccuracyMetric, ClassificationOutput, LearnerBuilder,
                            LossMetric, TrainOutput)
from burnbook_widgets import NotebookRenderer

device = Autodiff(Numpy())

@dataclass
class Batch:
    x: Tensor
    targets: Tensor

class Loader:
    "The same batches again and again: what grows is not the data."
    def __init__(self, steps, device):
        rng = np.random.default_rng(0)
        x = rng.uniform(-1, 1, (64, 784)).astype(np.float32)
        labels = rng.integers(0, 10, 64)
        self.batch = Batch(Tensor.from_data(x, device, Float),
                           Tensor.from_data(labels, device, Int))
        self.steps = steps
    def __len__(self):
        return self.steps
    def __iter__(self):
        return iter([self.batch] * self.steps)

class Mlp(Module):
    first: nn.Linear
    last: nn.Linear
    def forward(self, x):
        return self.last.forward(self.first.forward(x).relu())
    def valid_step(self, batch):
        output = self.forward(batch.x)
        loss = nn.CrossEntropyLossConfig().init(output.device())
        return ClassificationOutput(loss.forward(output, batch.targets), output,
                                    batch.targets)
    def train_step(self, batch):
        item = self.valid_step(batch)
        return TrainOutput(self, item.loss.backward(), item)

class Measured(NotebookRenderer):
    "What the view costs the training thread, and the memory after every epoch."
    own, began = 0.0, None
    def start(self, run):
        super().start(run)
        self.began, self.memory = time.thread_time(), []
        for name in ("inspect", "update_train", "update_valid", "render_train",
                     "render_valid", "end_epoch"):
            setattr(self, name, self.timed(getattr(self, name)))
        shown = self.end_epoch
        self.end_epoch = lambda *facts: (shown(*facts), self.saw(*facts))
    def timed(self, act):
        def run(*arguments):
            began = time.thread_time()
            act(*arguments)
            self.own += time.thread_time() - began
        return run
    def saw(self, epoch, split, means):
        if split == "valid":
            gc.collect()
            self.memory.append(psutil.Process().memory_info().rss)
    def finish(self, result):
        self.all = time.thread_time() - self.began
        super().finish(result)

board = Measured(norms=True)
learner = (
    LearnerBuilder(tempfile.mkdtemp())
    .metrics([AccuracyMetric(), LossMetric()])
    .renderer(board).devices([device]).num_epochs(EPOCHS)
    .build(Mlp(nn.LinearConfig(784, 768).init(device),
               nn.LinearConfig(768, 10).init(device)), AdamConfig().init(), 1e-4)
)
"""
RUN = """
model = await learner.fit_async(Loader(1000, device), Loader(20, Numpy()))
print(f"share {board.own / board.all:.5f} norms "
      f"{board.dashboard.norms.seconds / board.all:.5f}")
print("memory", *board.memory)
print("steps took", f"{board.all / (1000 * len(board.memory)) * 1e3:.3f} ms")
"""


def heap_of(page, session):
    """Bytes that the page's JavaScript really holds."""
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
        time.sleep(0.3)
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(m["value"] for m in metrics if m["name"] == "JSHeapUsedSize")


def held_at(book, session, epoch):
    """The page's memory at an epoch, while training is paused."""
    headline = re.compile(r"Epoch (\d+) of")
    wait_until(
        lambda: int(headline.search(text_of(book, ".bb-headline"))[1]) >= epoch, 550
    )
    button(book, "Pause").click()
    wait_for_text(book, ".bb-headline", "paused")
    heap = heap_of(book.page, session)
    button(book, "Resume").click()
    return heap


@kernel_6_hears_later
def test_memory_does_not_grow_with_the_steps(open_book):
    epochs = STEPS // EPOCH
    setup = TRAINING.replace("EPOCHS", str(epochs + 2))
    book = open_book("memory", [setup, RUN])
    page = book.page
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    book.run_all()
    page.wait_for_selector(CANVAS, timeout=90_000)
    first = held_at(book, session, 2)
    last = held_at(book, session, epochs + 1)
    button(book, "Stop").click()
    wait_until(lambda: "steps took" in book.output(1))
    printed = book.output(1)
    share, norms = re.search(r"share ([\d.]+) norms ([\d.]+)", printed).groups()
    memory = [int(n) for n in re.search(r"memory ([\d ]+)", printed)[1].split()]
    kernel = memory[-1] - memory[0]
    took = re.search(r"took ([\d.]+ ms)", printed)[1]
    print(
        f"{STEPS:,} steps of {took}: page {first / 1e6:.1f} MB, "
        f"{(last - first) / 1e6:+.2f} MB; kernel {memory[0] / 1e6:.0f} MB, "
        f"{kernel / 1e6:+.2f} MB; own time {float(share):.2%}, norms {float(norms):.2%}"
    )
    assert len(memory) >= epochs
    assert last - first <= MOST_GROWTH
    assert kernel <= MOST_GROWTH
    assert float(share) <= MOST_SHARE
    assert book.faults == []
