"""The plot of schedules without a browser: rates, knobs, scales, still form."""

from __future__ import annotations

import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")

import ipywidgets
import numpy as np

from burnbook import lr_scheduler
from burnbook.core.errors import ConfigError
from burnbook.lr_scheduler import LrSchedulerConfig
from burnbook.optim import ParamGroup
from burnbook_widgets import SchedulePlot
from burnbook_widgets.schedule.fields import changed, numbers_of
from tests.support.widget_state import state_size

LINEAR = lr_scheduler.LinearLrSchedulerConfig(0.8, 0.1, 50)
COSINE = lr_scheduler.CosineAnnealingLrSchedulerConfig(0.8, 50).with_min_lr(0.1)


def usual():
    up = LrSchedulerConfig.Linear(lr_scheduler.LinearLrSchedulerConfig(0.02, 0.5, 20))
    down = lr_scheduler.CosineAnnealingLrSchedulerConfig(0.5, 79)
    schedules = [up, LrSchedulerConfig.Cosine(down)]
    return lr_scheduler.SequentialLrSchedulerConfig(schedules, [20])


def stepped(config, count):
    schedule = config.init()
    return np.array([schedule.step() for _ in range(count)])


def sent(plot):
    """What the page has: the steps, and the rates of each line."""
    count = len(plot.panel.frame["lines"]) + 1
    return np.frombuffer(plot.panel.data, "<f4").reshape(count, -1)


def shown_number(plot, name, field):
    """What the page has of one number of a schedule."""
    (found,) = [n for n in plot.numbers.rows if n["about"] == f"{name}: {field}"]
    return found


def turn(plot, name, field, value):
    """As the page does it when a slider is moved or a number typed."""
    key = shown_number(plot, name, field)["key"]
    message = {"do": "turn", "key": key, "value": value}
    plot.numbers._handle_custom_msg(message, [])


def test_rates_are_those_of_the_schedulers():
    plot = SchedulePlot([LINEAR, COSINE, usual(), 0.25], steps=120)
    assert plot.names == ["linear", "cosine", "sequential", "constant"]
    for name, config in (("linear", LINEAR), ("cosine", COSINE)):
        assert np.array_equal(plot.rates(name), stepped(config, 120))
    assert set(plot.rates("constant")) == {0.25}
    rows = sent(plot)
    assert rows[0].tolist() == list(range(120))
    assert np.allclose(rows[2], stepped(COSINE, 120))
    assert repr(plot) == "SchedulePlot(linear, cosine, sequential, constant; 120 steps)"


def test_a_scheduler_stays_where_it_stands():
    schedule = LINEAR.init()
    schedule.step()
    plot = SchedulePlot(schedule, steps=10)
    assert schedule.into_record() == 50
    assert np.array_equal(plot.rates("linear"), stepped(LINEAR, 11)[1:])


def test_names_are_given_or_told_apart():
    plot = SchedulePlot({"down": LINEAR, "wave": COSINE})
    assert plot.names == ["down", "wave"]
    plot = SchedulePlot([LINEAR, LINEAR])
    assert plot.names == ["linear", "linear 2"]


def test_the_numbers_of_every_config_can_be_changed():
    configs = [
        LINEAR,
        COSINE,
        usual(),
        lr_scheduler.ExponentialLrSchedulerConfig(0.8, 0.9),
        lr_scheduler.StepLrSchedulerConfig(0.8, 5).with_gamma(0.5),
        lr_scheduler.NoamLrSchedulerConfig(1.0).with_warmup_steps(20),
        lr_scheduler.ComposedLrSchedulerConfig().linear(LINEAR).constant(0.5),
    ]
    for config in configs:
        numbers = numbers_of(config)
        assert numbers
        for path, value in numbers.items():
            other = value + 1 if isinstance(value, int) else value * 0.99
            found = changed(config, path, other)
            assert numbers_of(found) == {**numbers, path: other}
            assert numbers_of(config) == numbers
    assert numbers_of(usual()) == {
        "schedulers.0.initial_lr": 0.02, "schedulers.0.final_lr": 0.5,
        "schedulers.0.num_iters": 20, "schedulers.1.initial_lr": 0.5,
        "schedulers.1.num_iters": 79, "schedulers.1.min_lr": 0.0, "milestones.0": 20,
    }  # fmt: skip


def test_turning_a_knob_by_twin_and_by_slider():
    plot = SchedulePlot([LINEAR, COSINE])
    plot.set("cosine", "num_iters", 20)
    assert plot["cosine"].num_iters == 20
    assert shown_number(plot, "cosine", "num_iters")["value"] == 20
    assert np.allclose(sent(plot)[2], stepped(plot["cosine"], 100))
    turn(plot, "linear", "final_lr", 0.4)
    assert plot["linear"] == lr_scheduler.LinearLrSchedulerConfig(0.8, 0.4, 50)
    assert plot.rates("linear")[-1] == pytest.approx(0.4)
    assert LINEAR.final_lr == 0.1  # the reader's own config stays
    plot["linear"] = lr_scheduler.LinearLrSchedulerConfig(0.1, 0.9, 500)
    number = shown_number(plot, "linear", "num_iters")
    assert (number["value"], number["high"]) == (500, 500)


def test_what_a_config_refuses_is_said_and_the_slider_goes_back():
    plot = SchedulePlot([LINEAR, COSINE])
    turn(plot, "cosine", "min_lr", 0.9)
    assert "min_lr is 0.9" in plot.panel.fault
    assert plot["cosine"].min_lr == 0.1
    assert shown_number(plot, "cosine", "min_lr")["value"] == 0.1
    with pytest.raises(ConfigError, match=r"min_lr is 0\.9"):
        plot.set("cosine", "min_lr", 0.9)
    with pytest.raises(ConfigError, match="has no number 'speed'"):
        plot.set("cosine", "speed", 1)
    with pytest.raises(ConfigError, match="no schedule 'noam'"):
        plot.set("noam", "num_iters", 1)
    with pytest.raises(ConfigError, match="other numbers than the controls"):
        plot["cosine"] = lr_scheduler.ExponentialLrSchedulerConfig(0.8, 0.9)
    turn(plot, "cosine", "min_lr", 0.2)
    assert plot.panel.fault == ""


def test_numbers_between_the_places_of_a_slider_stay_as_they_are():
    """N2: a slider that snaps to its step made a γ of 0.9995 into 1.0."""
    config = lr_scheduler.ExponentialLrSchedulerConfig(1.23456e-5, 0.9995)
    plot = SchedulePlot({"exp": config}, steps=10_000)
    assert plot["exp"] is config
    assert shown_number(plot, "exp", "gamma")["value"] == 0.9995
    assert shown_number(plot, "exp", "initial_lr")["value"] == 1.23456e-5
    turn(plot, "exp", "gamma", 0.99951234)
    assert plot["exp"].gamma == 0.99951234
    assert plot["exp"].initial_lr == 1.23456e-5
    snapping = (ipywidgets.FloatSlider, ipywidgets.FloatLogSlider)
    for widget in parts_of(plot.box):
        assert not isinstance(widget, snapping)


def parts_of(widget):
    return [
        widget, *[p for c in getattr(widget, "children", ()) for p in parts_of(c)],
    ]  # fmt: skip


def test_a_whole_number_stays_whole():
    plot = SchedulePlot([LINEAR])
    turn(plot, "linear", "num_iters", 40.0)
    assert plot["linear"].num_iters == 40
    assert isinstance(plot["linear"].num_iters, int)
    answers = plot.numbers.answers
    turn(plot, "linear", "num_iters", 40.5)
    assert "num_iters" in plot.panel.fault
    assert plot["linear"].num_iters == 40
    assert plot.numbers.answers == answers + 1  # the page shows 40 again


@pytest.mark.parametrize("top", [3e-4, 1.0, 7.3e-9, 4e-14, 0.0123, 250.0])
@pytest.mark.parametrize("log", [False, True])
def test_labels_of_the_axis_differ(top, log):
    """N3: with one digit, the labels read 0, 5e−5, 1e−4, 1e−4, 2e−4, …"""
    config = lr_scheduler.ExponentialLrSchedulerConfig(top, 0.99) if top <= 1 else top
    plot = SchedulePlot({"one": config}, steps=300, log=log)
    labels = [label for _, label in plot.panel.frame["rows"]]
    assert len(labels) >= 3 - (top > 1)
    assert len(set(labels)) == len(labels)


def test_hiding_and_comparing():
    plot = SchedulePlot([LINEAR, COSINE])
    plot._checks["linear"].value = False
    assert plot.shown == ["cosine"]
    assert [line["place"] for line in plot.panel.frame["lines"]] == [1]
    plot.hide("cosine")
    assert plot.panel.frame["lines"] == []
    assert "<svg" in plot.still()
    plot.show("linear")
    assert plot._checks["linear"].value is True
    plot.at = 10
    assert plot.readings() == {"linear": pytest.approx(0.66)}


def test_the_log_scale_leaves_zeros_out():
    zero = lr_scheduler.LinearLrSchedulerConfig(1.0, 0.0, 10)
    plot = SchedulePlot(zero, steps=20)
    assert plot.log_control.description == "Log scale"
    plot.log_control.click()
    assert (plot.log, plot.log_control.description) == (True, "Linear scale")
    low, high = plot.panel.frame["y"]
    assert 0 < low < 0.1 < 1.0 < high
    assert "logarithmic" in plot.still()
    assert "NaN" not in plot.still()
    plot.log = False
    assert plot.panel.frame["y"][0] == 0.0


def test_reading_by_key_and_twin():
    plot = SchedulePlot([LINEAR, COSINE])
    plot.panel._handle_custom_msg({"do": "read", "at": 25}, [])
    assert plot.at == 25
    assert plot.readings()["linear"] == pytest.approx(0.45)
    assert "step 25" in plot.still()
    with pytest.raises(ConfigError, match="there is no step 100"):
        plot.at = 100
    plot.steps_control.value = 20
    assert (plot.steps, plot.at, len(plot.rates("cosine"))) == (20, 19, 20)


def test_the_step_that_is_read_is_drawn_even_of_many():
    plot = SchedulePlot([LINEAR], steps=10_000)
    plot.at = 5001
    assert 5001 in sent(plot)[0]
    assert len(sent(plot)[0]) == 401


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ConfigError, match="0 schedules"):
        SchedulePlot([])
    with pytest.raises(ConfigError, match="9 schedules"):
        SchedulePlot([LINEAR] * 9)
    with pytest.raises(ConfigError, match="1,000,000 steps cannot be drawn"):
        SchedulePlot(LINEAR, steps=1_000_000)
    group = lr_scheduler.ModuleLrScheduler(0.1).with_group(
        ParamGroup.from_predicate("bias"), 0.2
    )
    with pytest.raises(ConfigError, match="a rate for each group"):
        SchedulePlot(group)


def test_the_figure_for_plotly_has_the_same_rates():
    pytest.importorskip("plotly")
    plot = SchedulePlot([LINEAR, COSINE], log=True)
    plot.hide("cosine")
    figure = plot.figure()
    assert [trace.name for trace in figure.data] == ["linear", "cosine"]
    assert np.allclose(figure.data[1].y, stepped(COSINE, 100))
    assert figure.data[1].visible == "legendonly"
    assert figure.layout.yaxis.type == "log"
    assert len({trace.line.dash for trace in figure.data}) == 2


def test_a_long_schedule_stays_small():
    before = state_size()
    plot = SchedulePlot([LINEAR] * 8, steps=100_000)
    assert len(sent(plot)[0]) == 400
    assert sent(plot)[0][-1] == 99_999
    assert state_size() - before < 100_000
    assert len(plot.still()) < 90_000


def test_the_still_form_shows_the_curves_and_what_makes_them():
    plot = SchedulePlot([LINEAR, usual()])
    html = plot.still()
    config = "LinearLrSchedulerConfig(initial_lr=0.8"
    for text in ("linear", "sequential", config, "step"):
        assert text in html
    assert "<script" not in html
    assert SchedulePlot([LINEAR, usual()]).still() == html


def test_static_pages_get_no_widget(static):
    plot = SchedulePlot([LINEAR, COSINE])
    plot.set("linear", "num_iters", 9)
    plot.log = True
    assert set(plot.bundle()) == {"text/html", "text/plain"}


def test_close_frees_every_widget(same_widgets):
    plot = SchedulePlot([LINEAR, usual()])
    plot.close()
    plot.set("linear", "num_iters", 9)  # a closed view still answers
    assert plot.rates("linear")[9] == pytest.approx(0.1)
