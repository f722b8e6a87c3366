"""How close an imported model comes to the original, value by value.

    compare("model.onnx", [x])          # or with the sample data beside the file
    ClosenessView(compare("model.onnx", [x]))

What the original gives is computed by ONNX Runtime where it is installed, and by the
reference evaluator of the package onnx otherwise, which is slow but exact.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from burnbook.backend.base import Backend as Device
from burnbook.backend.numpy import Numpy
from burnbook.core.errors import ArgumentError, Fact, RecordError, ShapeError
from burnbook.importers.onnx.backend import Representation
from burnbook.importers.onnx.load import load, read_proto
from burnbook.record.tree import short
from burnbook.tensor import Tensor, check_closeness
from burnbook.tensor.closeness import LayersReport

SAMPLES = "test_data_set_0"  # the folder that models of the public collections bring


def compare(
    model: Any, inputs: Sequence[Any] | None = None, device: Device | None = None
) -> LayersReport:
    """Every value of an ONNX graph here beside the same one of the original.

    model: a path, the file's bytes, or an onnx.ModelProto. inputs: tensors or arrays
    in the graph's order; left out, `test_data_set_0/input_0.pb` … beside the file, and
    the outputs there are compared as well. The report has a row for each value that a
    node gives, under its name in the graph; `ClosenessView(report)` shows it.

    Raises: ArgumentError where there are no inputs; RecordError for a damaged file.
    """
    where = Numpy() if device is None else device
    loaded = load(model, where)
    proto = _whole(model)
    names = [value.name for value in proto.graph.output]
    arrays, expected = _samples(model, names) if inputs is None else (None, {})
    if arrays is None:
        arrays = [_array(x) for x in inputs or ()]
    held = {one.name for one in proto.graph.initializer}
    wanted = [v.name for v in proto.graph.input if v.name not in held]
    if len(arrays) != len(wanted):
        what = f"the graph takes {len(wanted)} inputs, {len(arrays)} were given"
        raise ArgumentError("compare", what, [("inputs", ", ".join(wanted))])
    given = dict(zip(wanted, arrays, strict=True))
    _check_ranks([v for v in proto.graph.input if v.name in given], given)
    theirs = _original(proto, given)
    theirs |= expected
    ours = _ours(_showing(proto), arrays, where)
    outputs = Representation(loaded, where).run(arrays)
    ours |= dict(zip(names, outputs, strict=True))  # of the model as it is used
    order = [name for node in proto.graph.node for name in node.output]
    both = [n for n in order if _is_plain(ours.get(n)) and _is_plain(theirs.get(n))]
    report = check_closeness(
        {name: np.asarray(ours[name]) for name in both},
        {name: np.asarray(theirs[name]) for name in both},
    )
    return replace(report, what="Value")


def _check_ranks(values: Sequence[Any], given: dict[str, np.ndarray]) -> None:
    """Raise where an input has another rank than the graph says.

    Why: the original would fail too, and blame something inside of it.
    """
    rows: list[Fact] = []
    for value in values:
        held = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not held.HasField("shape"):
            continue
        found = list(given[value.name].shape)
        sizes = [
            d.dim_value if d.HasField("dim_value") else d.dim_param or "?"
            for d in held.shape.dim
        ]
        if len(sizes) != len(found):
            wanted = ", ".join(map(str, sizes))
            rows.append((short(value.name), f"given {found}, the graph has [{wanted}]"))
    if rows:
        count = "inputs have" if len(rows) > 1 else "input has"
        what = f"{len(rows)} {count} another rank than the graph takes"
        raise ShapeError("compare", what, rows, "inputs as check(model).inputs says")


def _is_plain(value: Any) -> bool:
    """Whether a value is an array of numbers, and not a sequence, text or nothing."""
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf"


def _array(value: Any) -> np.ndarray:
    if isinstance(value, Tensor):
        return value.device().to_numpy(value.value)
    return np.asarray(value)


def _samples(model: Any, names: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """The inputs and outputs that stand beside a file, as public models have them."""
    from onnx import TensorProto, numpy_helper

    cure = "compare(model, [x])"
    if not isinstance(model, (str, PathLike)):
        what = "a model without a file has no sample inputs"
        raise ArgumentError("compare", what, cure=cure)
    folder = Path(model).parent / SAMPLES

    def arrays(kind: str) -> list[Any]:
        found: list[Any] = []
        while (path := folder / f"{kind}_{len(found)}.pb").is_file():
            try:
                found.append(
                    numpy_helper.to_array(TensorProto.FromString(path.read_bytes()))
                )
            except Exception as error:  # protobuf's and onnx's own, of many types
                what = f"{path} holds no tensor"
                raise RecordError("compare", what) from error
        return found

    inputs = arrays("input")
    if not inputs:
        what = f"there are no sample inputs in {folder}"
        raise ArgumentError("compare", what, cure=cure)
    return inputs, dict(zip(names, arrays("output"), strict=False))


def _showing(proto: Any) -> Any:
    """The same model with every value that a node gives as an output."""
    from onnx import ModelProto, ValueInfoProto

    shown = ModelProto()
    shown.CopyFrom(proto)
    known = {value.name for value in shown.graph.output}
    for node in shown.graph.node:
        for name in node.output:
            if name and name not in known:
                known.add(name)
                shown.graph.output.append(ValueInfoProto(name=name))
    return shown


def _whole(model: Any) -> Any:
    """The model with what its external files hold, which `load` has checked."""
    from onnx.external_data_helper import load_external_data_for_model

    proto = read_proto(model)
    if isinstance(model, (str, PathLike)):
        load_external_data_for_model(proto, str(Path(model).parent))
    return proto


def _ours(shown: Any, arrays: Sequence[np.ndarray], device: Device) -> dict[str, Any]:
    """What each node gives here, by name."""
    names = [value.name for value in shown.graph.output]
    found = Representation(load(shown, device), device).run(arrays)
    return dict(zip(names, found, strict=True))


def _original(proto: Any, given: dict[str, np.ndarray]) -> dict[str, Any]:
    """What each node of the original gives, by name."""
    if importlib.util.find_spec("onnxruntime") is not None:
        runtime = importlib.import_module("onnxruntime")
        shown = _showing(proto)
        names = [value.name for value in shown.graph.output]
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        try:
            session = runtime.InferenceSession(
                shown.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            return dict(zip(names, session.run(None, given), strict=True))
        except Exception:  # an operator or a type that it does not have
            pass
    from onnx.reference import ReferenceEvaluator

    try:
        evaluator = ReferenceEvaluator(proto)
        found: Any = evaluator.run(None, given, intermediate=True)
    except Exception as error:
        what = "neither ONNX Runtime nor the reference evaluator can run the original"
        told = " ".join(str(error).split())[:200]
        raise ArgumentError(
            "compare", what, [(type(error).__name__, told)], "pip install onnxruntime"
        ) from error
    held = {one.name for one in proto.graph.initializer} | set(given)
    return {n: v for n, v in found.items() if n and n not in held}
