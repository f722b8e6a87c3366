"""What importing burnbook pulls in, in a fresh process."""

import json
import subprocess
import sys

import pytest

HEAVY = {"IPython", "cupy", "numba", "scipy", "plotly", "sklearn", "pooch"}
MORE = {"onnx", "torch", "ipywidgets", "anywidget", "PIL", "jupyter_core", "tqdm"}

ASK = """
import json, sys
{statement}
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""


def loaded_after(statement: str) -> set[str]:
    answer = subprocess.run(
        [sys.executable, "-c", ASK.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
    )
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


def test_importing_prints_nothing():
    quiet = "import burnbook; from burnbook.prelude import *"
    answer = subprocess.run(
        [sys.executable, "-c", quiet], capture_output=True, text=True
    )
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


def test_a_heavy_module_would_be_seen():
    pytest.importorskip("plotly")
    assert "plotly" in loaded_after("import plotly")
