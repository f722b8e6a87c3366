"""A picture as a file: what a paper, a report or a page of one's own takes."""

from collections.abc import Callable, Mapping
from html import escape
from os import PathLike
from pathlib import Path

from burnbook.core.errors import ConfigError
from burnbook.core.files import atomic_write

PAGE = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    "<title>{}</title></head>\n<body>{}</body></html>\n"
)


def write(
    picture: object,
    path: str | PathLike[str],
    forms: Mapping[str, Callable[[], bytes | str | None]],
) -> Path:
    """Write one of the forms of a picture, the one that the path ends in.

    forms: what makes each form, by the end of its path; None where it cannot be made.
    """
    target, name = Path(path), type(picture).__name__
    make = forms.get(target.suffix.lower())
    ends = " or ".join(f"{target.stem}{end}" for end in forms)
    if make is None:
        what = f"{name} is no {target.suffix or 'file without an ending'}"
        raise ConfigError(f"{name}.save", what, cure=ends)
    made = make()
    if made is None:
        what = f"{name} is made a {target.suffix} by Pillow, which is not installed"
        raise ConfigError(f"{name}.save", what, cure="pip install pillow")
    with atomic_write(target, ConfigError) as file:
        file.write(made.encode() if isinstance(made, str) else made)
    return target


def page(title: str, body: str) -> str:
    """A whole HTML page of a part of one."""
    return PAGE.format(escape(title), body)
