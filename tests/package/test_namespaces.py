"""No name of a package hides one of its files, and none depends on what ran before.

`from package import name` gives the package's attribute if there is one, and else the
file of that name; importing the file binds the attribute anew. A name that is both
would mean one thing in a fresh process, and another where the file was imported before.
A public function may bear the name of a file (`ops.softmax`): its package has imported
that file and exports the name; it means the function in every process.
"""

import sys
from pathlib import Path

import pytest

from tests.support.fresh import needs_fork, run_fresh, troubles
from tests.support.namespaces import look, packages

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [
    *packages(ROOT, "burnbook"),
    *packages(ROOT / "widgets", "burnbook_widgets"),
]


@needs_fork
def test_no_name_hides_a_file_in_a_process_that_imports_only_its_package():
    pytest.importorskip("anywidget", reason="the widgets need anywidget")
    assert {
        "burnbook.ops",
        "burnbook.backend.compiled",
        "burnbook_widgets.training",
    } < {*PACKAGES}
    jobs = {name: ("tests.support.namespaces:look", name) for name in PACKAGES}
    found = run_fresh(jobs, imports=["numpy", "anywidget", "plotly.graph_objects"])
    assert troubles(found) == []
    wrong = [text for each in found.values() for text in each.answer]
    assert wrong == [], "\n".join(wrong)


def test_a_star_import_of_layers_leaves_the_readers_names_alone():
    names = {}
    exec("from burnbook.tensor import activation\nfrom burnbook.nn import *", names)
    assert names["activation"].__name__ == "burnbook.tensor.activation"
    assert names["Linear"].__name__ == "Linear"
    from burnbook import nn

    assert nn.loss.MseLoss is nn.MseLoss


# The rules themselves, on packages of two files.


@pytest.fixture
def package(tmp_path, monkeypatch):
    def make(init, **files):
        folder = tmp_path / "house"
        folder.mkdir()
        for name, text in {"__init__": init, **files}.items():
            (folder / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        return look("house")

    yield make
    for name in [n for n in sys.modules if n.partition(".")[0] == "house"]:
        del sys.modules[name]


OP = "def conv(): 0"


def test_a_name_that_nobody_made_public_hides_a_file(package):
    assert package("from house.other import conv", conv="", other=OP) == [
        "house.conv is a file, and a function of that name hides it"
    ]


def test_a_public_name_must_not_change_when_its_file_is_imported(package):
    public = "from house.other import conv\n__all__ = ['conv']"
    (wrong,) = package(public, conv="", other=OP)
    assert wrong.endswith("importing the file would change what the name means")


def test_a_function_may_have_the_name_of_its_file(package):
    public = "from house.conv import conv\n__all__ = ['conv']"
    assert package(public, conv=OP) == []


def test_a_star_may_not_bring_modules(package):
    (wrong,) = package("from house import loss\n__all__ = ['loss']", loss="")
    assert wrong.startswith("house.__all__ has the module 'loss'")
