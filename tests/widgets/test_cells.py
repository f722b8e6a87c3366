"""Views are freed when the cell that showed them runs again, in a real kernel."""

from __future__ import annotations

import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")
pytest.importorskip("jupyter_client", reason="a kernel needs jupyter_client")
pytest.importorskip("ipykernel", reason="and ipykernel")

from jupyter_client.manager import start_new_kernel

import burnbook_widgets
from tests.browser import views

SHOWN = [  # dashboards are of a training, and free themselves
    name
    for name in views.CELLS
    if name.partition(",")[0] in burnbook_widgets.__all__
    and "learner_for" not in views.CELLS[name]
]
COUNT = """
import gc, weakref
from burnbook_widgets.view import View
def alive():
    gc.collect()
    return sum(isinstance(o, View) and o.box is not None for o in gc.get_objects())
def comms():
    return len(get_ipython().kernel.comm_manager.comms)
"""


class Kernel:
    """A kernel whose cells may have names, as those of JupyterLab do."""

    def __init__(self):
        self.manager, self.talk = start_new_kernel(kernel_name="python3")

    def run(self, code: str, cell: str | None = None) -> str:
        said: list[str] = []
        talk = self.talk
        content = {"code": code, "silent": False, "store_history": True}
        content |= {"user_expressions": {}, "allow_stdin": False, "stop_on_error": True}
        message = talk.session.msg("execute_request", content)
        message["metadata"] = {} if cell is None else {"cellId": cell}
        talk.shell_channel.send(message)
        while True:
            found = talk.get_iopub_msg(timeout=120)
            if found["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            kind, told = found["msg_type"], found["content"]
            assert kind != "error", "\n".join(told["traceback"])
            said += [told["text"]] if kind == "stream" else []
            if kind == "status" and told["execution_state"] == "idle":
                return "".join(said).strip()

    def number(self, code: str) -> int:
        return int(self.run(f"print({code})"))

    def end(self):
        self.talk.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel():
    started = Kernel()
    started.run("import os; os.environ.pop('BURNBOOK_DISPLAY', None)")
    started.run("from pathlib import Path\n" + views.SETUP + COUNT)
    yield started
    started.end()


@pytest.mark.parametrize(
    ("name", "cell"), [*((name, "one") for name in SHOWN), ("TensorView", None)]
)
def test_a_cell_that_runs_again_frees_what_it_showed(kernel, name, cell):
    code = views.CELLS[name] + "\ndisplay(view)"
    before, comms = kernel.number("alive()"), kernel.number("comms()")
    for _ in range(3):
        kernel.run(code, cell)
        assert kernel.number("alive()") == before + 1
        counts = kernel.number("comms()")
    kernel.run("", cell)
    if cell is None:  # the text is another one, so it is another cell
        kernel.run("view.close()")
    assert kernel.number("alive()") == before
    assert kernel.number("comms()") == comms < counts


def test_a_view_stays_while_another_cell_shows_it(kernel):
    made = "kept = TensorView(Tensor.zeros([2, 2], Numpy())); display(kept)"
    kernel.run(made, "maker")
    kernel.run("display(kept); first = kept", "other")
    kernel.run(made, "maker")
    assert kernel.run("print(first.box is None, kept.box is None)") == "False False"
    kernel.run("display(kept)", "other")
    assert kernel.run("print(first.box is None, kept.box is None)") == "True False"
    kernel.run("display(kept)", "other")  # shown again: it stays
    kernel.run("", "maker")
    assert kernel.run("print(kept.box is None)") == "False"
    kernel.run("kept.close()")
