"""Building blocks · Learner. The page's side of a view: one script, one style sheet."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "js"


def script(*names: str) -> str:
    """The ES module of a view, as text: page.js, which all share, and its own files."""
    files = [_FOLDER / f"{name}.js" for name in ("page", *names)]
    parts = [file.read_text(encoding="utf-8") for file in files]
    return "\n".join(parts)


def sheet(name: str) -> str:
    """The style sheet of a view, as text."""
    return (_FOLDER / f"{name}.css").read_text(encoding="utf-8")
