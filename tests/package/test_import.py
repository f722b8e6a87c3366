"""What importing burnbook pulls in, in a fresh process."""

import json
import os
from pathlib import Path

import pytest

from tests.support.programs import python

ROOT = Path(__file__).resolve().parents[2]

HEAVY = {"IPython", "cupy", "numba", "scipy", "plotly", "sklearn", "pooch"}
MORE = {"onnx", "torch", "ipywidgets", "anywidget", "PIL", "jupyter_core", "tqdm"}

ASK = """
import json, sys
{statement}
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""


def loaded_after(statement: str) -> set[str]:
    answer = python("-c", ASK.format(statement=statement), check=True)
    assert answer.stderr == ""
    return set(json.loads(answer.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "statement",
    [
        "import burnbook",
        "from burnbook.prelude import *",
        "import burnbook.nn, burnbook.optim, burnbook.data, burnbook.record",
        "import burnbook.train, burnbook.cli",
    ],
)
def test_importing_pulls_in_nothing_heavy(statement):
    assert loaded_after(statement) & (HEAVY | MORE) == set()


EACH = """
import importlib, os, sys, traceback
import numpy, ipywidgets, anywidget, plotly.graph_objects
broken, running, came_along = [], {}, set()
def end_one():
    child, status = os.wait()
    name, end = running.pop(child)
    with os.fdopen(end) as told:
        came_along.update(told.read().split())
    if status:
        broken.append(name)
for name in sys.argv[1:]:
    while any(name.startswith(other + ".") for other, _ in running.values()):
        end_one()
    if name in came_along:  # importing it is importing its package
        continue
    while len(running) >= (os.cpu_count() or 1):
        end_one()
    end, begin = os.pipe()
    child = os.fork()
    if not child:
        try:
            importlib.import_module(name)
            below = [n for n in sys.modules if n.startswith(name + ".")]
            with os.fdopen(begin, "w") as tell:
                tell.write(" ".join(below))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(begin)
    running[child] = name, end
while running:
    end_one()
print(broken)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_every_file_may_be_the_first_that_is_imported():
    """In a process of its own each: no order of imports is needed."""
    for needed in ("ipywidgets", "anywidget", "plotly", "numba"):
        pytest.importorskip(needed)
    folders = (ROOT / "burnbook", ROOT / "widgets" / "burnbook_widgets")
    names = [
        ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        if path.stem != "__main__" and "cuda" not in path.parts
    ]
    names = [name.removesuffix(".__init__") for name in names]
    assert len(names) > 400
    answer = python("-c", EACH, *names)
    assert answer.stdout.strip() == "[]", answer.stdout + answer.stderr


def test_importing_prints_nothing():
    quiet = "import burnbook; from burnbook.prelude import *"
    answer = python("-c", quiet)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


def test_a_heavy_module_would_be_seen():
    pytest.importorskip("plotly")
    assert "plotly" in loaded_after("import plotly")
