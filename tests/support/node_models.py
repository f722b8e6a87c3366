"""Models of JavaScript in one Node that stays open for all tests."""

import atexit
import base64
import functools
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="no node here")
TYPES = {"f": np.float32, "i": np.int32, "b": np.uint8}


@functools.cache
def _process():
    runner = Path(__file__).with_name("node_models.mjs")
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    process = subprocess.Popen([NODE, str(runner)], text=True, **pipes)
    atexit.register(process.communicate)  # it ends with its input
    return process


def predicted(made, *inputs, again=False):
    """What a written file gives for arrays: its outputs by name.

    again: by the model that was loaded before.
    """
    rows = []
    for name, array in zip(made.inputs, map(np.asarray, inputs), strict=True):
        array = np.ascontiguousarray(array.astype(TYPES[array.dtype.kind]))
        text = base64.b64encode(array.tobytes()).decode()
        rows.append([name, array.dtype.name, text])
    asked = {"path": str(made.path.resolve()), "inputs": rows, "again": again}
    process = _process()
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return {
        name: np.frombuffer(base64.b64decode(text), kind).reshape(shape)
        for name, kind, text, shape in answer["outputs"]
    }
