"""Stopping, interrupting, pausing, awaiting and cancelling a training."""

import asyncio
import os
import signal
import threading
import time
from functools import partial

import pytest

from burnbook.core.errors import DataError, TrainingError
from tests.support.refusals import refused
from tests.support.tiny_training import (
    Probe,
    Tiny,
    build,
    builder,
    learner,
    loader,
    same_weights,
    stop_at,
    tiny,
)
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def interrupts():
    """Python's own handler of Ctrl-C, whatever a test before left there, or a shell.

    Why: asyncio cancels a task at Ctrl-C only where it finds that handler, and what a
    shell starts in the background begins with SIGINT ignored.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# Stopping and pausing


def test_stop_ends_after_the_batch_and_gives_the_model_so_far(tmp_path):
    probe = stop_at(5, lambda control: control.stop("enough"))
    trained = build(builder(tmp_path, 100).renderer(probe))
    model = trained.fit(loader(), loader(1))
    assert probe.batches == 5
    assert trained.result.interrupted == "enough"
    assert trained.result.epochs == 1
    text = repr(trained.result)
    assert text.startswith("TrainingResult(1 epoch and a part of the next, Metric")
    assert text.endswith("; 2 epochs); enough)")
    assert not same_weights(model, tiny())


def test_a_stop_asked_for_in_one_training_does_not_meet_the_next(tmp_path):
    trained = build(builder(tmp_path, 1))
    trained.interrupter.stop("before")
    trained.fit(loader(), loader(1))
    assert trained.result.interrupted is None


def test_an_interrupt_stops_cleanly_and_gives_the_handler_back(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    probe = stop_at(2, lambda control: os.kill(os.getpid(), signal.SIGINT))
    trained = build(builder(tmp_path, 100).renderer(probe))
    model = trained.fit(loader(), loader(1))
    assert isinstance(model, Tiny)
    assert trained.result.interrupted == "interrupted"
    assert probe.calls[-2:] == ["finish", "close"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_raises(tmp_path):
    def twice(control):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)

    probe = stop_at(2, twice)
    trained = build(builder(tmp_path, 100).renderer(probe))
    with pytest.raises(KeyboardInterrupt):
        trained.fit(loader(), loader(1))
    assert probe.calls[-1] == "close"
    assert trained.result.interrupted.startswith("KeyboardInterrupt")


def test_a_paused_training_waits_and_goes_on_with_equal_results(tmp_path):
    probe = stop_at(2, lambda control: control.pause())
    trained = build(builder(tmp_path, 1).renderer(probe))
    handle = trained.start(loader(), loader(1))
    wait_until(lambda: probe.batches == 2, 20)
    time.sleep(0.2)
    assert probe.batches == 2
    assert repr(handle) == "TrainingHandle(paused)"
    handle.resume()
    model = handle.wait()
    assert same_weights(model, learner(tmp_path, 1).fit(loader(), loader(1)))


def test_a_paused_training_can_be_stopped(tmp_path):
    probe = stop_at(1, lambda control: control.pause())
    handle = build(builder(tmp_path, 100).renderer(probe)).start(loader(), loader(1))
    handle.stop("tired")
    handle.wait()
    assert handle.done
    assert handle.result.interrupted == "tired"
    assert repr(handle) == "TrainingHandle(done)"


def test_one_learner_trains_one_model_at_a_time(tmp_path):
    probe = stop_at(1, lambda control: control.pause())
    trained = build(builder(tmp_path, 100).renderer(probe))
    handle = trained.start(loader(), loader(1))
    told = ("already training", "try: wait for it", "learner.interrupter.stop()")
    act = partial(trained.fit, loader(), loader(1))
    refused(TrainingError, act, "Learner.fit: ", *told)
    handle.stop()
    handle.wait()


def test_a_thread_hands_its_error_to_whoever_waits(tmp_path):
    handle = build(builder(tmp_path)).start(iter([]), loader(1))
    with pytest.raises(DataError, match="the loader gave no batch"):
        handle.wait()


def test_an_awaited_training_leaves_the_event_loop_free(tmp_path):
    async def both():
        ticks = 0
        task = asyncio.create_task(made.fit_async(loader(), loader(1)))
        while not task.done():
            ticks += 1
            await asyncio.sleep(0.001)
        return await task, ticks

    made = learner(tmp_path, epochs=3)
    model, ticks = asyncio.run(both())
    assert ticks > 3
    assert same_weights(model, learner(tmp_path, 3).fit(loader(), loader(1)))


def test_a_cancelled_training_stops_and_gives_the_model_so_far(tmp_path):
    async def cancelled():
        task = asyncio.create_task(trained.fit_async(loader(), loader(1)))
        while probe.batches < 2:
            await asyncio.sleep(0.001)
        task.cancel()
        return await task

    probe = Probe(lambda probe: time.sleep(0.005))
    trained = build(builder(tmp_path, 10_000).renderer(probe))
    model = asyncio.run(cancelled())
    assert isinstance(model, Tiny)
    assert trained.result.interrupted == "cancelled"
    assert probe.run.mode == "await"
    names = [thread.name for thread in threading.enumerate()]
    assert "burnbook training" not in names


def test_an_interrupt_of_an_awaited_training_gives_the_model_too(tmp_path):
    probe = stop_at(2, lambda control: os.kill(os.getpid(), signal.SIGINT))
    trained = build(builder(tmp_path, 10_000).renderer(probe))
    model = asyncio.run(trained.fit_async(loader(), loader(1)))
    assert isinstance(model, Tiny)
    assert trained.result.interrupted == "cancelled"
