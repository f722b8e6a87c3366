"""What the tests of widgets have in common: live pages, unless a test says static."""

import pytest


@pytest.fixture
def live(monkeypatch):
    """Tests run with static pages; these are about live ones unless they say so."""
    monkeypatch.delenv("BURNBOOK_DISPLAY", raising=False)


@pytest.fixture
def static(live, monkeypatch):
    """A page without widgets, as in the built book."""
    monkeypatch.setenv("BURNBOOK_DISPLAY", "static")
