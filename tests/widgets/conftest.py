"""What the tests of widgets have in common: live pages, unless a test says static."""

import sys

import pytest


@pytest.fixture(autouse=True)
def live(monkeypatch):
    """Tests run with static pages; these are about live ones unless they say so."""
    monkeypatch.delenv("BURNBOOK_DISPLAY", raising=False)


@pytest.fixture
def same_widgets():
    """Every widget that the test makes is freed before it ends."""
    from tests.support.widget_state import widget_state

    before = set(widget_state())
    yield
    assert set(widget_state()) == before


@pytest.fixture
def static(live, same_widgets, monkeypatch):
    """A page without widgets, as in the built book."""
    monkeypatch.setenv("BURNBOOK_DISPLAY", "static")


@pytest.fixture(autouse=True)
def dashboards_closed():
    """No dashboard that a test left open is found by the next one."""
    yield
    if "burnbook_widgets.training" in sys.modules:
        for dashboard in sys.modules["burnbook_widgets"].live():
            dashboard.close()
