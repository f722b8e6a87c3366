"""Models for browsers and Node: `to_javascript(model, "net.js", x)`."""

from burnbook.exporters.javascript.export import (
    JavaScriptFile as JavaScriptFile,
    to_javascript as to_javascript,
    unsupported as unsupported,
)
