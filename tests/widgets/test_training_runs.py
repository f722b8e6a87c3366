"""Other runs beside one's own: laid over the dashboard, and in the runs browser."""

from __future__ import annotations

import json
import os
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.support.cases import cases

pytest.importorskip("anywidget", reason="the widgets need anywidget")

from burnbook.core.errors import ConfigError, TrainingError
from burnbook.train import Run, RunStore
from burnbook_widgets import Dashboard, NotebookRenderer, RunsBrowser
from burnbook_widgets.drawing import Mark, Words
from burnbook_widgets.training.curves import SPLITS, Curves
from burnbook_widgets.training.other_runs import MOST, OtherRun, few, pack_runs
from burnbook_widgets.training.scatter import Spot, scatter
from burnbook_widgets.training.still import picture
from tests.support.run_folders import write_logs
from tests.support.training_page import METRICS, Page, click, run_info, simulate
from tests.support.widget_state import state_size


def write_run(folder, losses, config=None, accuracy=None, began=1_700_000_000):
    """What a training leaves: one log per epoch, split and metric."""
    for epoch, loss in enumerate(losses, 1):
        lines = {"Loss": [f"{loss},4"]}
        if accuracy:
            lines["Accuracy"] = [f"{accuracy},4"]
        for split in ("train", "valid"):
            write_logs(folder, split, epoch, **lines)
    if config:
        (folder / "config.json").write_text(json.dumps(config))
    for path in folder.rglob("*"):
        os.utime(path, (began, began))
    return folder


@pytest.fixture
def root(tmp_path):
    write_run(tmp_path / "slow", [2.0, 1.5, 1.2], {"rate": 0.1, "size": 4}, 50.0, 1e9)
    write_run(tmp_path / "quick", [1.0, 0.5], {"rate": 0.5, "size": 4}, 80.0, 1.1e9)
    write_run(tmp_path / "<b>odd", [3.0], {"rate": 0.1, "size": 4}, began=1.2e9)
    return tmp_path


def dashboard_in(folder):
    return Dashboard(run_info(directory=str(folder)), Page())


# ── reading ─────────────────────────────────────────────────────────────────


def test_curves_of_a_run_stand_where_the_dashboard_has_them(root):
    other = OtherRun.read(RunStore(root)["slow"])
    assert other.tables["Loss", "train"].tolist() == [[0.5, 2], [1.5, 1.5], [2.5, 1.2]]
    assert other.tables["Loss", "valid"].tolist() == [[1, 2], [2, 1.5], [3, 1.2]]
    assert set(other.tables) == {
        (metric, split) for metric in METRICS for split in ("train", "valid")
    }


def test_rows_and_parts_of_the_message_fit(root):
    others = [OtherRun.read(run) for run in RunStore(root)]
    parts, data = pack_runs(others, METRICS)
    rows = np.frombuffer(data, "<f4").reshape(-1, 2)
    assert sum(part[3] for part in parts) == len(rows)
    assert parts[0] == [0, 0, "train", 3]
    assert json.loads(json.dumps(parts)) == parts


def test_long_runs_stay_small():
    table = np.column_stack([np.arange(1, 5001), np.ones(5000)])
    assert len(few(table)) <= 128
    others = [
        OtherRun(f"run{i}", "", {(m, s): table for m in METRICS for s in SPLITS})
        for i in range(MOST)
    ]
    assert 8_000 < len(pack_runs(others, METRICS)[1]) <= 16_384


# ── over the dashboard ──────────────────────────────────────────────────────


def test_the_button_finds_the_runs_beside_this_one(root):
    dashboard = dashboard_in(root / "now")
    click(dashboard, "runs")
    assert [other.name for other in dashboard.others] == ["<b>odd", "quick", "slow"]
    assert dashboard.shown_runs == ["<b>odd", "quick"]  # the newest two
    assert dashboard.chart.runs["names"] == ["<b>odd", "quick", "slow"]
    assert dashboard.chart.shown == [0, 1]


def test_a_run_is_not_laid_over_itself(root):
    dashboard = dashboard_in(root / "quick")
    dashboard.find_runs()
    assert [other.name for other in dashboard.others] == ["<b>odd", "slow"]


def test_runs_stores_and_folders_can_be_laid_over(root):
    dashboard = dashboard_in(root / "now")
    store = RunStore(root)
    dashboard.overlay(store["slow"], str(root / "quick"))
    assert dashboard.shown_runs == ["slow", "quick"]
    dashboard.overlay(store)
    assert len(dashboard.others) == 3
    dashboard.show_runs("quick")
    assert dashboard.shown_runs == ["quick"]
    assert dashboard.chart.shown == [1]
    dashboard.overlay()
    assert dashboard.others == []
    assert dashboard.chart.runs["names"] == []


def test_more_runs_than_can_be_told_apart_are_left_out(tmp_path):
    for place in range(MOST + 3):
        write_run(tmp_path / f"run{place}", [1.0])
    dashboard = dashboard_in(tmp_path / "now")
    dashboard.overlay(tmp_path)
    assert len(dashboard.others) == MOST


def test_what_cannot_be_laid_over_is_refused(root, tmp_path):
    dashboard = dashboard_in(root / "now")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(TrainingError, match="there is no run in"):
        dashboard.overlay(empty)
    with pytest.raises(TrainingError, match="there is no run 'gone'"):
        dashboard.show_runs("gone")
    other = write_run(tmp_path / "elsewhere" / "x", [1.0])
    for path in other.rglob("Loss.log"):
        path.rename(path.with_name("Other.log"))
    with pytest.raises(TrainingError, match="none of the runs has Loss, Accuracy"):
        dashboard.overlay(other)


def test_a_click_that_finds_nothing_says_so(tmp_path):
    dashboard = dashboard_in(tmp_path / "alone" / "now")
    click(dashboard, "runs")
    assert "has these metrics" in dashboard.chart.status["notice"]


def test_runs_laid_over_stay_in_the_finished_picture(root):
    renderer = NotebookRenderer(Page(), overlay=RunStore(root))
    simulate(renderer, epochs=2)
    svg = renderer.dashboard.drawing().svg()
    ElementTree.fromstring(svg)
    assert "quick valid Loss to 0.5" in svg
    assert "--bb-run1" in svg
    renderer.dashboard.show_runs("slow")
    assert "quick" not in renderer.dashboard.drawing().svg()


def test_each_run_has_a_dash_a_mark_and_a_colour_of_its_own(root):
    others = [(i, OtherRun.read(run)) for i, run in enumerate(RunStore(root))]
    svg = picture(Curves(METRICS), others=others).svg()
    tree = ElementTree.fromstring(svg)
    lines = tree.iter("{http://www.w3.org/2000/svg}polyline")
    dashes = {
        line.get("class"): line.get("stroke-dasharray")
        for line in lines
        if "run" in (line.get("class") or "") and line.get("stroke-dasharray")
    }
    assert len(dashes) == len(set(dashes.values())) == 3
    assert "<b>" not in svg


def test_a_picture_without_other_runs_does_not_name_their_colours():
    assert "run0" not in picture(Curves(METRICS)).svg()


def test_runs_of_rust_burn_can_be_laid_over(tmp_path):
    """Newer Burn writes the number of an epoch itself, and no weights."""
    write_logs(tmp_path / "rust", "valid", 1, Loss=["0.75", "0.5", "0.6,final"])
    dashboard = dashboard_in(tmp_path / "now")
    dashboard.overlay(tmp_path / "rust")
    assert dashboard.shown_runs == ["rust"]
    assert dashboard.others[0].tables["Loss", "valid"].tolist() == [[1.0, 0.6]]


# ── the browser ─────────────────────────────────────────────────────────────


@pytest.fixture
def browser(root):
    return RunsBrowser(root)


def names(browser):
    return [line["run"] for line in browser.panel.rows]


def test_the_newest_run_comes_first_until_one_sorts(browser):
    assert names(browser) == ["<b>odd", "quick", "slow"]
    browser.sort = "Loss"
    assert names(browser) == ["quick", "slow", "<b>odd"]
    assert browser.sort_control.value == "Loss"
    browser.sort_control.value = "name"
    assert browser.sort == "name"
    with pytest.raises(ConfigError, match="no run has 'weight'"):
        browser.sort = "weight"
    assert browser.sort == "name"


def test_words_are_found_in_names_states_and_configs(browser):
    browser.find_control.value = "rate=0.1 finished"
    assert names(browser) == ["<b>odd", "slow"]
    browser.find = "QUICK"
    assert names(browser) == ["quick"]
    assert browser.find_control.value == "QUICK"
    assert browser.panel.said == "1 of 3 runs"
    browser.find = "nothing"
    assert names(browser) == []


def test_ticks_choose_and_show_what_differs(browser):
    browser.panel._handle_custom_msg({"run": "slow"}, [])
    assert browser.chosen == ["slow"]
    assert browser.differences.value == ""
    browser.panel._handle_custom_msg({"run": "quick"}, [])
    assert "rate" in browser.differences.value
    assert "size" not in browser.differences.value
    assert browser.chart.runs["names"] == ["slow", "quick"]
    assert [panel["name"] for panel in browser.chart.panels] == ["Accuracy", "Loss"]
    assert browser.comparison.winner("Loss").name == "quick"
    assert repr(browser) == "RunsBrowser(3 runs; slow, quick chosen)"
    browser.panel._handle_custom_msg({"run": "slow"}, [])
    assert browser.chosen == ["quick"]
    browser.clear_control.click()
    assert browser.chosen == []
    assert browser.clear_control.disabled


def test_log_scale_and_its_control(browser):
    browser.log_control.value = True
    assert browser.log
    assert browser.chart.log
    browser.log = False
    assert not browser.log_control.value


def test_looking_again_sees_what_is_new_and_forgets_what_is_gone(browser, root):
    browser.choose("slow", "quick")
    shutil.rmtree(root / "slow")
    write_run(root / "fresh", [0.1])
    browser.refresh_control.click()
    assert set(names(browser)) == {"<b>odd", "quick", "fresh"}
    assert browser.chosen == ["quick"]


def test_any_number_of_runs_can_be_chosen_and_unknown_ones_are_refused(tmp_path):
    for place in range(2 * MOST):
        write_run(tmp_path / f"run{place}", [1.0 + place], {"rate": place})
    browser = RunsBrowser(tmp_path)
    browser.choose(*(f"run{place}" for place in range(MOST)))
    browser.panel._handle_custom_msg({"run": f"run{MOST}"}, [])
    assert browser.panel.fault == ""
    assert len(browser.chosen) == MOST + 1  # six were the most
    assert len(browser.chart.runs["names"]) == MOST
    assert f"curves of the first {MOST} chosen; 1 more" in browser.panel.notes
    assert browser.comparison.winner("Loss").name == "run0"
    html = browser.still()
    assert f"run{MOST}" in html
    assert "curves of the first 6 chosen" in html
    with pytest.raises(TrainingError, match="there is no run 'gone'"):
        browser.leave("gone")
    browser.leave("run0")
    assert len(browser.chosen) == MOST


def head_of(browser, name):
    (found,) = [line for line in browser.panel.head if line[0] == name]
    return found


def test_heads_of_columns_sort_and_turn_around(browser):
    assert head_of(browser, "began") == ["began", "date", "descending"]
    for wanted in (["quick", "slow", "<b>odd"], ["<b>odd", "slow", "quick"]):
        browser.panel._handle_custom_msg({"sort": "Loss"}, [])
        assert names(browser) == wanted
    assert head_of(browser, "Loss") == ["Loss", "Loss", "descending"]
    browser.panel._handle_custom_msg({"sort": "Accuracy"}, [])
    assert names(browser)[:2] == ["quick", "slow"]  # the best first
    assert head_of(browser, "Accuracy")[2] == "descending"
    browser.panel._handle_custom_msg({"sort": "rate"}, [])
    assert names(browser)[-1] == "quick"
    assert head_of(browser, "rate") == ["rate", "rate", "ascending"]
    browser.descending = True
    assert names(browser)[0] == "quick"
    browser.sort_control.value = "name"
    assert names(browser) == sorted(names(browser))
    browser.panel._handle_custom_msg({"sort": "nonsense"}, [])
    assert "no run has 'nonsense'" in browser.panel.fault


def test_a_metric_over_a_field_of_the_configs(browser):
    assert browser.plotted == ("Loss", "rate")
    svg = browser.scatter.value
    assert "best Loss over rate" in svg
    for text in ("slow: 1.2 at 0.1", "quick: 0.5 at 0.5", "&lt;b&gt;odd: 3 at 0.1"):
        assert text in svg
    assert browser.scatter.value in browser.still()
    assert svg.count("<circle") == 3
    browser.choose("quick")
    assert browser.scatter.value.count("<circle") == 2
    browser.metric_control.value = "Accuracy"
    assert browser.plotted == ("Accuracy", "rate")
    browser.field_control.value = "–"
    assert (browser.plotted, browser.scatter.value) == (None, "")
    browser.plot("Loss", "rate")
    assert browser.field_control.value == "rate"
    with pytest.raises(TrainingError, match="no field that differs 'size'"):
        browser.plot("Loss", "size")  # it is 4 for all of them
    with pytest.raises(TrainingError, match="no metric 'Speed'"):
        browser.plot("Speed", "rate")
    browser.find = "no such words"
    assert browser.scatter.value == ""


@cases(
    "values",
    [1e-5, 1e-3, 1e-1],
    [0.0, 0.0, 0.0],
    ["adam", "sgd", "a name that is much longer than an axis has room for"],
    [None, True, "x"],
    [1, "one", 2.5],
    [-3, 0, 1e12],
)
def test_every_kind_of_field_has_an_axis(values):
    found = [Spot(f"run{i}", value, 1.0 + i) for i, value in enumerate(values)]
    sheet = scatter(found, "Loss", "rate")
    ElementTree.fromstring(sheet.svg())
    for shape in sheet.shapes:
        if isinstance(shape, Words | Mark):
            assert 0 <= shape.at[0] <= sheet.width
            assert 0 <= shape.at[1] <= sheet.height
    assert scatter(found[:1], "Loss", "rate").svg()
    many = [Spot(f"run{i}", i, i / 3) for i in range(300)]
    assert "and 286 more runs" in scatter(many, "Loss", "rate").title


def test_configs_of_hundreds_of_fields_are_not_read_for_each(tmp_path, monkeypatch):
    for place in range(3):
        names = [f"field{i}" for i in range(300)] if place else ["one"]
        config = dict.fromkeys(names, place)  # no field that three runs have
        write_run(tmp_path / f"run{place}", [2.0, 1.0], config, began=1e9)
    read = []
    files = Run._files
    monkeypatch.setattr(
        Run, "_files", lambda run, *of: read.append(of) or files(run, *of)
    )
    browser = RunsBrowser(tmp_path)
    assert browser.plotted is None
    browser.still()
    assert len(read) < 100
    browser.close()


def test_the_still_form_has_table_differences_and_curves(browser, tmp_path):
    browser.choose("slow", "quick")
    html = browser.still()
    assert html.count("<table") == 2
    assert "<svg" in html
    assert "<script" not in html
    assert "<b>odd" not in html
    page = browser.export(tmp_path / "runs.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "quick" in page


def test_closing_frees_everything_and_the_state_is_small(root, same_widgets):
    browser = RunsBrowser(RunStore(root))
    browser.choose("slow", "quick", "<b>odd")
    assert state_size() < 110_000  # its chart is the dashboard's
    browser.close()
    assert "<svg" in browser.still()


def test_static_pages_get_the_still_form(root, static):
    browser = RunsBrowser(root)
    browser.choose("slow", "quick")
    assert set(browser.bundle()) == {"text/html", "text/plain"}
