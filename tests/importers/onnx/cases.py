"""The cases of onnx.backend.test that need no download, one by one.

Node cases are made by the package onnx when asked for; the others lie in its folders.
"""

import glob
import os
import warnings
from functools import cache
from typing import NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


class Case(NamedTuple):
    name: str
    model: onnx.ModelProto
    sets: list[tuple[list, list]]  # inputs, outputs
    rtol: float
    atol: float
    kind: str


@cache
def all_cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers that some cases overflow on purpose
        return [
            _case(found, kind)
            for kind in KINDS
            for found in load_model_tests(kind=kind)
        ]


def _case(found, kind):
    model = found.model or onnx.load(os.path.join(found.model_dir, "model.onnx"))
    sets = found.data_sets
    if sets is None:
        sets = [
            (
                _read(folder, "input", model.graph.input),
                _read(folder, "output", model.graph.output),
            )
            for folder in sorted(
                glob.glob(os.path.join(found.model_dir, "test_data_set*"))
            )
        ]
    sets = [([_plain(x) for x in a], [_plain(x) for x in b]) for a, b in sets]
    return Case(found.name, model, sets, found.rtol, found.atol, kind)


def _read(folder, word, values):
    count = len(glob.glob(os.path.join(folder, f"{word}_*.pb")))
    made = []
    for i in range(count):
        with open(os.path.join(folder, f"{word}_{i}.pb"), "rb") as file:
            made.append(_value(file.read(), values[i].type.WhichOneof("value")))
    return made


def _value(data, kind):
    if kind == "sequence_type":
        held = onnx.SequenceProto.FromString(data)
        return numpy_helper.to_list(held)
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def _plain(x):
    return numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x


def difference(case, results):
    """Why results are not those of a case, or None: as onnx's own runner compares."""
    try:
        for got, (_, wanted) in zip(results, case.sets, strict=True):
            assert len(got) == len(wanted), f"{len(got)} results, not {len(wanted)}"
            for a, b in zip(got, wanted, strict=True):
                _compare(a, b, case.rtol, case.atol)
    except AssertionError as error:
        return str(error).strip()[:200]
    return None


def _compare(got, wanted, rtol, atol):
    if isinstance(wanted, list):
        assert isinstance(got, list), "no sequence"
        assert len(got) == len(wanted), "a sequence of another length"
        for a, b in zip(got, wanted, strict=True):
            _compare(a, b, rtol, atol)
        return
    if wanted is None:
        assert got is None, "a value where there is none"
        return
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape, f"shape {got.shape}, not {wanted.shape}"
    assert got.dtype == wanted.dtype, f"type {got.dtype}, not {wanted.dtype}"
    if wanted.dtype == object:
        assert (got == wanted).all(), "other texts"
        return
    if wanted.dtype.name == "bfloat16":
        rtol = max(rtol, 2**-6)
    if wanted.dtype == np.float16:
        rtol = max(rtol, 2**-9)  # two of its steps, as the cases draw their numbers
    if wanted.dtype.kind not in "fiubc":
        got, wanted = got.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)
