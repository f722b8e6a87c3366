"""Where an export goes, and what is said when the arguments are in another order."""

import os
from collections.abc import Sequence
from pathlib import Path

from burnbook.core.call_source import texts_of
from burnbook.core.errors import ArgumentError
from burnbook.tensor.methods import Methods

ENDINGS = {  # of the file that a function writes; to_rust writes a folder
    "to_onnx": ".onnx",
    "to_pytorch": ".pt",
    "to_micropython": ".py",
    "to_javascript": ".js",
    "to_wgsl": ".js",
}


def export_path(
    where: str, model: object, path: object, examples: Sequence[object] = ()
) -> Path:
    """The path of an export.

    Raises:
        ArgumentError: it is none; with the call in its right order, where the model
            and the path are there in another one.
    """
    odd = isinstance(model, str | os.PathLike | Methods)
    if isinstance(path, str | os.PathLike) and not odd:
        return Path(path)
    given = [model, path, *examples]
    texts = texts_of(where, given)
    names = [text or _example(each) for text, each in zip(texts, given, strict=True)]
    shown = dict(zip(map(id, given), names, strict=True))
    paths = [each for each in given if isinstance(each, str | os.PathLike)]
    tensors = [each for each in given if isinstance(each, Methods)]
    models = [each for each in given if each not in paths and _is_model(each)]
    if len(paths) != 1 or len(models) != 1:
        what = f"the path is {type(path).__name__}, not a text or a Path"
        example = ", x" if tensors else ""
        file = f'"model{ENDINGS.get(where, "")}"'
        raise ArgumentError(where, what, cure=f"{where}(model, {file}{example})")
    order = ", ".join(shown[id(each)] for each in [*models, *paths, *tensors])
    what = "the model comes first, then the path, then examples"
    raise ArgumentError(where, what, cure=f"{where}({order})")


def _is_model(given: object) -> bool:
    return callable(given) or hasattr(type(given), "named_params")


def _example(given: object) -> str:
    """A name for what the reader's line does not show."""
    if isinstance(given, str):
        return repr(given)
    return "path" if isinstance(given, os.PathLike) else type(given).__name__.lower()
