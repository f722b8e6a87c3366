"""A run as one HTML file for people who only look.

Curves as SVG, tables, the config and the model: no script, nothing to load, light and
dark. It opens from a disk, in a mail, or on a web page, with no kernel and no network.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from burnbook.core.errors import TrainingError
from burnbook.core.files import atomic_write

STYLE = """
:root { color-scheme: light dark; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.45;
  font-family: system-ui, sans-serif; background: #ffffff; color: #24292f; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.15rem 0.9rem 0.15rem 0; text-align: left;
  border-bottom: 1px solid #868e9855; }
pre { overflow-x: auto; padding: 0.6rem; background: #868e9822; }
svg { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  body { background: #1b1f24; color: #e3e6ea; }
}
"""


def html_page(title: str, sections: Sequence[tuple[str, str]]) -> str:
    """A page of headed sections; a title is text, a section's body is HTML already."""
    body = "\n".join(
        f"<section>\n<h2>{escape(head)}</h2>\n{content}\n</section>"
        for head, content in sections
        if content
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def config_table(config: Mapping[str, object]) -> str:
    """The fields of a config as a table; nothing for none."""
    if not config:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(str(value))}</td></tr>\n'
        for name, value in config.items()
    )
    return (
        '<table>\n<thead><tr><th scope="col">field</th><th scope="col">value</th>'
        f"</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>"
    )


def write_page(path: str | os.PathLike[str], page: str) -> Path:
    """Write the whole file or none of it; folders are made."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise TrainingError(
            "export",
            f"{target.name!r} does not end in .html, so nobody could open it",
            cure=f"{target.with_suffix('.html')}",
        )
    with atomic_write(target, TrainingError) as file:
        file.write(page.encode("utf-8"))
    return target
