"""What tests ask of an error: its class, where it was, its facts and its cure."""

import pytest


def refused(kind, act, *parts):
    """The error that `act` raises: it begins with the first part, and has the others.

    Why: class, place, facts and cure are what a reader needs; the sentence is free.
    """
    with pytest.raises(kind) as caught:
        act()
    tells(str(caught.value), *parts)
    return caught.value


def tells(text, *parts):
    """A text of an error begins with the first part, and has the others."""
    assert text.startswith(parts[0]), text
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} missing in: {text}"
