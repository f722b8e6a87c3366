"""A metric's name, and the log file that carries it.

Burn writes a space as `_` and the rest as it is: `Learning Rate` is in
`Learning_Rate.log`. What a file system would take for something else is escaped, so a
name is never a path, and the file name gives the metric's name back: `F1/macro` is in
`F1%2Fmacro.log`.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable

from burnbook.core.errors import ConfigError, UnknownNameError
from burnbook.train.metric import Metric

ENDING = ".log"
LONGEST = 200  # bytes of a log file's name without its extension
FORBIDDEN = frozenset('/\\:*?"<>|')  # somewhere
RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?=$|[. _])", re.IGNORECASE)
_ESCAPES = re.compile("(?:%[0-9A-F]{2})+")


def log_file(name: str) -> str:
    """The name of the log file of a metric.

    Example:
        >>> log_file("Learning Rate"), log_file("F1/macro"), log_file("..")
        ('Learning_Rate.log', 'F1%2Fmacro.log', '%2E..log')
    """
    text = re.sub("%(?=[0-9A-F]{2})", "%25", name)
    text = "".join(c if _is_plain(c) else _escaped(c) for c in text)
    if text[:1] == "." or RESERVED.match(text):
        text = _escaped(text[0]) + text[1:]
    return text.replace(" ", "_") + ENDING


def name_of(file: str) -> str:
    """The name of the metric of a log file.

    Example:
        >>> name_of("Learning_Rate.log"), name_of("F1%2Fmacro.log")
        ('Learning Rate', 'F1/macro')
    """
    text = file.removesuffix(ENDING).replace("_", " ")
    return _ESCAPES.sub(_unescaped, text)


def check_name(where: str, metric: Metric, others: list[str]) -> None:
    """Refuse a metric without a usable name, or one whose log is another's already.

    Why: here, and not at the end of an epoch of work.
    """
    kind, name = type(metric).__name__, getattr(metric, "name", None)
    if callable(name):
        what = f"the name of {kind} is a method, not a text"
        raise ConfigError(where, what, cure=f'name = "{kind}" in the class {kind}')
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        what = f"{name!r} is not the name of a metric: {kind} needs a line of text"
        raise ConfigError(where, what, cure=f'name = "{kind}" in the class {kind}')
    if (size := len(log_file(name).encode()) - len(ENDING)) > LONGEST:
        what = f"the name of {kind} takes {size} bytes as the name of a file"
        raise ConfigError(where, what, cure=f"at most {LONGEST} of them")
    for other in others:
        if other != name and _folded(other) == _folded(name):
            raise ConfigError(
                where,
                f"the metrics {other!r} and {name!r} would share a log file",
                [("file", log_file(name))],
                f'with_name("…") for one of them, such as {kind}().with_name("…")',
            )


def unknown_metric(where: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """The error for a metric that was not measured: what there is, and the nearest.

    Example:
        >>> print(unknown_metric("Run.best", "accuracy", ["Loss", "Accuracy"]))
        Run.best: there is no metric 'accuracy'
          metrics  Loss, Accuracy
          try: "Accuracy"
    """
    names = list(dict.fromkeys(known))
    near = nearest(name, names)
    facts = [("metrics", ", ".join(names) or "none")]
    cure = f'"{near}"' if near else None
    return UnknownNameError(where, f"there is no metric {name!r}", facts, cure)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name that was meant, whatever its case; None when no name is like it.

    Example:
        >>> nearest("val", ["train", "valid"]), nearest("loss", ["Loss"])
        ('valid', 'Loss')
    """
    plain = {each.casefold(): each for each in known}
    meant = str(name).casefold()
    found = difflib.get_close_matches(meant, plain, 1, 0.6)
    begun = [each for each in plain if each.startswith(meant)] if meant else []
    return plain[(found or begun)[0]] if found or begun else None


def _folded(name: str) -> str:
    """What a case-insensitive file system makes of a name."""
    return unicodedata.normalize("NFC", log_file(name)).casefold()


def _is_plain(character: str) -> bool:
    return character not in FORBIDDEN and character.isprintable()


def _escaped(character: str) -> str:
    data = character.encode("utf-8", "surrogatepass")
    return "".join(f"%{byte:02X}" for byte in data)


def _unescaped(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace")
