"""Which part of a model a node stands in: what exporters tell by names and metadata.

A part is a path of keys, ("encoder", "layer.0", "attention"): a key with a number is an
element of a list of the part before it.

PyTorch's older exporter names nodes /encoder/layer.0/attention/query/MatMul, its newer
one keeps lists of scopes and classes in metadata, TensorFlow names model/dense/MatMul.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

Path = tuple[str, ...]
SCOPES = "pkg.torch.onnx.name_scopes"
CLASSES = "pkg.torch.onnx.class_hierarchy"
LONGEST = 4096  # characters of what a node says about its place
DEEPEST = 24  # parts in parts


def part_of(proto: Any) -> tuple[Path | None, dict[Path, str]]:
    """The part of an onnx.NodeProto, or None; and the classes of it and those around.

    Example:
        >>> import onnx
        >>> node = onnx.helper.make_node("Relu", ["x"], ["y"], "/layer1/layer1.0/Relu")
        >>> part_of(node)
        (('layer1.0',), {})
    """
    told = {str(p.key): str(p.value) for p in getattr(proto, "metadata_props", ())}
    if SCOPES in told:
        return _of_metadata(told[SCOPES], told.get(CLASSES, ""))
    name = str(proto.name).split(";")[0]
    if "/" not in name or len(name) > LONGEST:
        return None, {}
    parts: list[str] = []
    before = ""
    for piece in name.strip("/").split("/")[:-1]:
        kept = piece.removeprefix(f"{before}.") if before else piece
        parts += kept.split(".")
        before = piece
    return keys_of(parts), {}


def _of_metadata(scopes: str, classes: str) -> tuple[Path | None, dict[Path, str]]:
    """Lists as Python writes them; the last entry is the call itself."""
    if len(scopes) > LONGEST:
        return None, {}
    names = re.findall(r"'([^']*)'", scopes)[:-1]
    kinds = re.findall(r"'([^']*)'", classes)[:-1]
    path: Path = ()
    found: dict[Path, str] = {}
    for k, name in enumerate(names):
        path = keys_of(re.sub(r"@\d+", "", name).split("."))
        if path and k < len(kinds):
            found[path] = kinds[k].rpartition(".")[2]
    return path, found


def keys_of(parts: Iterable[str]) -> Path:
    """Names and numbers as keys: a number belongs to the name before it.

    Example:
        >>> keys_of(["encoder", "layer", "0", "norm"]), keys_of(["0", "1_2"])
        (('encoder', 'layer.0', 'norm'), ('.0', '.1'))
    """
    keys: list[str] = []
    for part in parts:
        number = re.fullmatch(r"(\d+)(_\d+)?", part)  # 0_1: the second call of 0
        if number is None:
            keys += [part] if part else []
        elif keys and "." not in keys[-1]:
            keys[-1] += f".{number[1]}"
        else:
            keys.append(f".{number[1]}")
    return tuple(keys[:DEEPEST])


def numbered(name: str, count: int) -> str:
    """The key of a call of a function of the file: one of a list, if it has more."""
    return f"{name.replace('.', '_')}#{count - 1}"


def base_of(key: str) -> tuple[str, int | None]:
    """The name of a key, and its number if it is one of a list.

    Example:
        >>> base_of("layer.12"), base_of("norm"), base_of(".0")
        (('layer', 12), ('norm', None), ('layers', 0))
    """
    base, sign, number = key.rpartition("#" if "#" in key else ".")
    return (base or "layers", int(number)) if sign else (key, None)


def common(paths: Iterable[Path]) -> Path:
    """The part around all parts."""
    found: Path | None = None
    for path in paths:
        if found is None:
            found = path
            continue
        same = 0
        while same < min(len(found), len(path)) and found[same] == path[same]:
            same += 1
        found = found[:same]
    return found or ()
