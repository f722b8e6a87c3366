"""What Jupyter shows of an error: the message first, then the lines of the reader."""

import re

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
v4 = pytest.importorskip("nbformat.v4", reason="nbformat is not installed")

MODEL = """
from burnbook.prelude import *
from burnbook.core import errors
device = Autodiff(Numpy())
class Net(Module):
    fc: nn.Linear
    def forward(self, x):
        return self.fc.forward(x)
net = Net(fc=nn.LinearConfig(4, 2).init(device))
x = Tensor[2].ones([3, 5], device)
"""
CELLS = {
    "layers": "y = net(x)",
    "awaited": "async def later():\n    return net(x)\nawait later()",
    "own": "raise errors.ShapeError('here', 'mine')",
    "python": "len(3)",
    "minimal": "%xmode Minimal\nnet(x)",
    "context": "%xmode Context\nerrors.show_library_frames()\nnet(x)",
    "hidden": "errors.show_library_frames(False)\nnet(x)",
    "a thread": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor() as pool:\n    pool.submit(net, x).result()"
    ),
}


@pytest.fixture(scope="module")
def shown():
    """The text of each cell's error, without colours."""
    cells = [v4.new_code_cell(code) for code in (MODEL, *CELLS.values())]
    page = v4.new_notebook(cells=cells)
    nbclient.NotebookClient(page, allow_errors=True, kernel_name="python3").execute()
    found = {}
    for name, cell in zip(CELLS, page.cells[1:], strict=True):
        (error,) = [o for o in cell.outputs if o.output_type == "error"]
        text = "\n".join(error.traceback)
        found[name] = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return found


@pytest.mark.parametrize("name", ["layers", "awaited", "hidden", "a thread"])
def test_the_message_stands_first_and_the_readers_lines_follow(shown, name):
    lines = shown[name].splitlines()
    assert lines[1].startswith("ShapeError: Net.fc: linear: 5 ≠ 4")
    assert shown[name].count("ShapeError") == 1
    assert "return self.fc.forward(x)" in shown[name]
    assert len(lines) < 40
    inside = [line for line in lines if line.startswith("File ")]
    assert [re.sub(r":\d+", "", line) for line in inside] == [
        "File burnbook/nn/linear.py, in Linear.forward"
    ]


def test_all_frames_come_back_by_one_switch(shown):
    assert "burnbook/tensor/methods.py" in shown["context"]
    assert shown["context"].rstrip().splitlines()[0].startswith("-----")
    assert "_run(op, tensors, attrs)" in shown["context"]


def test_other_errors_and_other_modes_look_as_ever(shown):
    assert "TypeError: object of type 'int' has no len()" in shown["python"]
    assert "burnbook" not in shown["python"]
    assert "Cell In" not in shown["minimal"]
    assert "raise errors.ShapeError" in shown["own"]


def test_a_plain_interpreter_needs_no_ipython():
    import sys
    import traceback

    from burnbook.core.errors import ShapeError

    before = set(sys.modules)
    text = "".join(traceback.format_exception(ShapeError("here", "wrong")))
    assert text.endswith("ShapeError: here: wrong\n")
    assert not {name for name in set(sys.modules) - before if "IPython" in name}


def test_an_error_lists_a_bounded_number_of_facts():
    from burnbook.core.errors import MOST_FACTS, RecordError

    facts = [(f"layer{n}.weight", "not in the record") for n in range(1000)]
    text = str(RecordError("load into Net", "1000 parameters do not match", facts))
    assert len(text.splitlines()) <= MOST_FACTS + 2
    assert f"… and {1000 - MOST_FACTS + 1} more" in text
    assert "layer0.weight" in text
