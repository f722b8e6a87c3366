"""The page's side of a view: one script, one style sheet."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "js"


def script(*names: str) -> str:
    """The ES module of a view, as text: page.js, which all share, and its own files."""
    return _joined(names, "js")


def script_alone(name: str) -> str:
    """The ES module of something that needs nothing of page.js."""
    return (_FOLDER / f"{name}.js").read_text(encoding="utf-8")


def sheet(*names: str) -> str:
    """The style sheet of a view, as text: page.css, which all share, and its own."""
    return _joined(names, "css")


def sheet_alone(name: str) -> str:
    """The style sheet of a view beside another one, which brings page.css."""
    return (_FOLDER / f"{name}.css").read_text(encoding="utf-8")


def _joined(names: tuple[str, ...], kind: str) -> str:
    files = [_FOLDER / f"{name}.{kind}" for name in ("page", *names)]
    lines = "\n".join(file.read_text(encoding="utf-8") for file in files).split("\n")
    # Each saved page carries the script; lines of comment are for who reads the file.
    return "\n".join(line for line in lines if not line.lstrip().startswith("// "))
