"""The playground without a browser: points, training, settings, its script."""

from __future__ import annotations

import threading
import time

import pytest

from tests.support.waiting import wait_until

pytest.importorskip("anywidget", reason="the widgets need anywidget")

import numpy as np

import burnbook
from burnbook.core.errors import ConfigError
from burnbook_widgets import Playground
from burnbook_widgets.playground.script import (
    ACTIVATIONS,
    DATA,
    OPTIMIZERS,
    PlaygroundConfig,
    Training,
    make_points,
)
from tests.support.programs import python
from tests.support.widget_state import state_size


@pytest.fixture
def playground():
    made = Playground(points=60, hidden=[4])
    yield made
    made.close()


# The points and the training


@pytest.mark.parametrize("data", DATA)
def test_points_follow_from_the_settings(data):
    config = PlaygroundConfig(data=data, noise=0.0)
    points, labels = make_points(config)
    again, _ = make_points(config)
    other, _ = make_points(config.with_seed(1))
    assert points.shape == (300, 2)
    assert (points.dtype, labels.sum()) == (np.float32, 150)
    assert np.array_equal(points, again)
    assert not np.array_equal(points, other)
    assert np.abs(points).max() < 2
    noisy, _ = make_points(config.with_noise(0.3))
    assert np.std(noisy - points) == pytest.approx(0.3, rel=0.1)


def test_without_noise_the_classes_do_not_touch():
    for data in ("moons", "circles", "spiral"):
        points, labels = make_points(PlaygroundConfig(data=data, noise=0.0))
        first, second = points[labels == 0], points[labels == 1]
        apart = np.linalg.norm(first[:, None] - second[None], axis=2)
        assert apart.min() > 0.15, data
    points, labels = make_points(PlaygroundConfig(data="xor", noise=0.0))
    assert np.array_equal(points[:, 0] * points[:, 1] < 0, labels == 1)


@pytest.mark.parametrize("data", DATA)
def test_every_data_set_can_be_learned(data):
    training = Training(
        PlaygroundConfig(data=data, noise=0.05, hidden=[12, 12], learning_rate=0.02)
    )
    before = training.losses[0][0]
    for _ in range(60):
        training.step()
    loss, accuracy = training.measure(True)
    assert accuracy > 0.93
    assert training.losses[-1] == (training.measure(False)[0], loss)
    assert training.losses[-1][0] < before / 2


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_optimizer_and_activation_goes_down(optimizer, activation):
    rate = {"sgd": 0.5, "momentum": 0.1}.get(optimizer, 0.02)
    config = PlaygroundConfig(
        points=60, hidden=[8], activation=activation, optimizer=optimizer
    )
    training = Training(config.with_learning_rate(rate))
    for _ in range(40):
        training.step()
    assert training.losses[-1][0] < 0.8 * training.losses[0][0]


def test_no_hidden_layer_draws_a_straight_line():
    training = Training(PlaygroundConfig(hidden=[], learning_rate=0.1))
    for _ in range(20):
        training.step()
    line = np.stack([np.linspace(-2, 2, 9)] * 2, axis=1)
    chances = training.chances(line).astype(float)
    logits = np.log(chances / (1 - chances))
    assert np.allclose(np.diff(logits), np.diff(logits)[0], rtol=1e-3)


def test_training_leaves_the_readers_random_numbers_alone():
    burnbook.seed(7)
    expected = burnbook.core.rng.Stream(None).key()
    burnbook.seed(7)
    training = Training(PlaygroundConfig(points=40))
    training.step()
    assert burnbook.core.rng.Stream(None).key() == expected


def test_settings_without_meaning_are_refused():
    for settings, told in (
        ({"data": "stars"}, "data is 'stars'"),
        ({"noise": -1.0}, "noise is -1.0, not in"),
        ({"hidden": [0]}, r"hidden is \[0\]"),
        ({"hidden": [4] * 7}, "hidden is"),
        ({"points": 5}, "points is 5, not in"),
    ):
        with pytest.raises(ConfigError, match=told):
            Playground(**settings)


# The view


def test_twins_step_set_and_reset(playground):
    playground.advance(3)
    assert len(playground.losses()) == 4
    assert (
        repr(playground) == "Playground(moons, 60 points; [4] tanh; adam 0.01; epoch 3)"
    )
    playground.set(data="xor", learning_rate=0.1)
    assert (playground.config.data, playground.training.epochs) == ("xor", 0)
    assert playground.config.hidden == [4]
    playground.advance()
    playground.reset()
    assert playground.training.epochs == 0
    with pytest.raises(ConfigError, match="there is no setting 'speed'"):
        playground.set(speed=3)


def test_the_same_settings_train_to_the_same_numbers():
    one, two = Playground(points=60), Playground(points=60)
    one.advance(5)
    for _ in range(5):
        two.advance()
    assert one.losses() == two.losses()
    assert np.array_equal(
        one.training.chances(np.eye(2)), two.training.chances(np.eye(2))
    )
    one.close()
    two.close()


def test_buttons_and_keys_do_what_the_twins_do(playground):
    assert playground.pause_control.disabled
    playground.step_control.click()
    assert playground.training.epochs == 1
    playground.panel._handle_custom_msg({"do": "step"}, [])
    assert playground.training.epochs == 2
    playground.reset_control.click()
    assert playground.training.epochs == 0
    playground.panel._handle_custom_msg({"do": "toggle"}, [])
    assert playground.running
    assert playground.train_control.disabled
    playground.panel._handle_custom_msg({"do": "toggle"}, [])
    assert not playground.running


def test_train_runs_in_a_thread_until_pause(playground):
    threads = threading.active_count()
    playground.train_control.click()
    playground.start()  # a second time changes nothing
    wait_until(lambda: playground.panel.status["epochs"] >= 3)
    assert threading.active_count() == threads + 1
    assert playground.panel.status["running"]
    playground.pause_control.click()
    assert (playground.running, threading.active_count()) == (False, threads)
    reached = playground.training.epochs
    time.sleep(0.1)
    assert playground.training.epochs == reached
    assert playground.panel.status["epochs"] == reached
    assert not playground.panel.status["running"]


def test_at_most_four_messages_a_second(playground, monkeypatch):
    sent = []  # by the thread that trains; what one clicks is answered at once

    def noted():
        if threading.current_thread() is not threading.main_thread():
            sent.append(time.monotonic())

    monkeypatch.setattr(playground, "_send", noted)
    playground.start()
    wait_until(lambda: len(sent) >= 4)
    playground.pause()
    assert np.diff(sent[:4]).min() >= 0.25


def test_a_setting_that_changes_while_it_trains_starts_anew_and_goes_on(playground):
    playground.start()
    wait_until(lambda: playground.training.epochs > 2)
    playground._controls["data"].value = "circles"
    assert playground.config.data == "circles"
    assert playground.running
    wait_until(lambda: playground.training.epochs > 2)
    playground.pause()
    assert playground.panel.fault == ""


def test_what_goes_wrong_in_the_thread_is_told_in_the_view(playground, monkeypatch):
    def fail():
        raise RuntimeError("no more points")

    monkeypatch.setattr(playground.training, "step", fail)
    playground.start()
    wait_until(lambda: playground.panel.fault == "no more points")
    assert not playground.running


def test_without_threads_train_goes_some_epochs_at_once(playground, monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    playground.start()
    assert (playground.running, playground.training.epochs) == (False, 50)


def test_controls_follow_settings_and_settings_controls(playground):
    controls = playground._controls
    controls["hidden"].value = "3,5 2"
    assert playground.config.hidden == [3, 5, 2]
    playground.numbers.turn("learning_rate", 0.1)
    assert playground.config.learning_rate == pytest.approx(0.1)
    playground.numbers.turn("noise", 0.3)
    controls["batch_size"].value = 7
    controls["seed"].value = 5
    controls["optimizer"].value = "sgd"
    config = playground.config
    assert (config.noise, config.batch_size, config.seed) == (0.3, 7, 5)
    assert (config.optimizer, config.points) == ("sgd", 60)
    playground.set(hidden=[9], activation="relu")
    assert (controls["hidden"].value, controls["activation"].value) == ("9", "relu")


def test_widths_that_are_none_are_a_line_in_the_view(playground):
    hidden = playground._controls["hidden"]
    hidden.value = "8, many"
    told = "Playground: hidden is '8, many' · try: widths such as 8, 8"
    assert playground.panel.fault == told
    hidden.value = "99"
    assert "hidden is [99]" in playground.panel.fault
    hidden.value = "6"
    assert (playground.panel.fault, playground.config.hidden) == ("", [6])


def test_losses_that_are_no_numbers_leave_the_view_whole(playground):
    playground.set(optimizer="sgd", learning_rate=10.0, activation="relu")
    playground.advance(20)
    playground.training.losses.append((float("nan"), float("inf")))
    playground._show()
    assert "<svg" in playground.still()
    assert "nan" not in playground.still().lower().replace("tenant", "")


# The script


def test_the_script_trains_to_the_same_numbers(tmp_path):
    playground = Playground(points=60, hidden=[5, 3], data="spiral", seed=3)
    playground.advance(7)
    code = playground.code()
    assert "EPOCHS = 7" in code
    assert "burnbook_widgets" not in code
    file = tmp_path / "mine.py"
    file.write_text(code, encoding="utf-8")
    ran = python(file, timeout=60)
    assert ran.stderr == ""
    lines = ran.stdout.splitlines()
    for line, test in zip(lines, (False, True), strict=True):
        loss, accuracy = playground.training.measure(test)
        found = line.split()[1:]
        assert found == ["loss", f"{loss:.6f}", "accuracy", f"{accuracy:.4f}"]


def test_the_code_button_shows_the_script_and_hides_it(playground):
    playground.code_control.click()
    assert playground.panel.code == playground.code()
    playground.advance()
    assert "EPOCHS = 1\n" in playground.panel.code
    playground.code_control.click()
    assert playground.panel.code == ""


# Still, static, closed


def test_the_state_stays_small_after_many_epochs():
    before = state_size()
    playground = Playground(points=600, hidden=[2], batch_size=600)
    playground.advance(2)
    training = playground.training
    training.losses = training.losses * 2000
    playground.code_control.click()
    playground._show()
    assert len(playground.panel.losses) == 200 * 12
    assert state_size() - before < 100_000
    assert len(playground.still()) < 300_000


def test_the_still_form_shows_regions_points_and_losses(playground):
    playground.advance(10)
    html = playground.still()
    for text in ("first class", "test loss", "Epoch 10", "[4] tanh", "<circle"):
        assert text in html
    assert "<script" not in html
    assert playground.still() == html


def test_static_pages_get_a_picture_and_no_widget(static):
    pytest.importorskip("PIL")
    playground = Playground(points=60)
    playground.advance(2)
    bundle = playground.bundle()
    assert set(bundle) == {"image/png", "text/plain"}
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert len(bundle["image/png"]) < 150_000


def test_close_ends_the_thread_and_frees_every_widget(same_widgets):
    threads = threading.active_count()
    playground = Playground(points=60)
    playground.start()
    playground.close()
    assert threading.active_count() == threads
    playground.advance()  # a closed view still answers
    assert playground.training.epochs >= 1
