"""Slow loops that say what an op means, one per op that is more than one NumPy call."""

from importlib import import_module

NAMES = (
    "along attention basics codes images norms numbers recurrent runs sequences "
    "sliding updates"
)
FAMILIES = [import_module(f"tests.oracle.{name}") for name in NAMES.split()]


def find(name):
    """The slow function of an op, or None where it has none."""
    found = [getattr(family, name) for family in FAMILIES if hasattr(family, name)]
    return found[0] if found else None
