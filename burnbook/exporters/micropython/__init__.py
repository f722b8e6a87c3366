"""Small models for small machines: `to_micropython(model, "net.py", x)`."""

from burnbook.exporters.micropython.export import (
    MicroPythonFile as MicroPythonFile,
    to_micropython as to_micropython,
)
