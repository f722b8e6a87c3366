"""What a browser can run: the core with NumPy and msgpack alone, without a thread."""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.bare_training import ALLOWED
from tests.support.work_files import page

ROOT = Path(__file__).resolve().parents[2]
LITE = ROOT / "binder" / "lite"
OURS = {"burnbook", "tests"}


def test_a_training_needs_no_thread_and_nothing_but_numpy_and_msgpack(tmp_path):
    program = [sys.executable, "-m", "tests.support.bare_training", str(tmp_path)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()
    assert shown[0].startswith("epoch 1/2  train Accuracy ")
    assert shown[1].startswith("epoch 2/2  train Accuracy ")
    assert shown[2:] == [
        "trained 2",
        "records read back",
        "awaited 2",
        "started 2",
        "foreign []",
    ]


# The site


@pytest.fixture(scope="module")
def build():
    """binder/lite/build.py, as a module."""
    pytest.importorskip("nbformat", reason="the site is built with nbformat")
    spec = importlib.util.spec_from_file_location("build_lite", LITE / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def settings():
    return json.loads((LITE / "jupyter-lite.json").read_text())["jupyter-config-data"]


def test_the_kernel_loads_what_the_core_needs_and_no_more():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {re.match(r"[\w-]+", need)[0] for need in project["dependencies"]}
    (kernel,) = settings()["litePluginSettings"].values()
    assert set(kernel["loadPyodideOptions"]["packages"]) == core == ALLOWED - OURS


def test_what_builds_the_site_is_pinned():
    lines = (LITE / "requirements.txt").read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in wanted)
    assert json.loads((LITE / "overrides.json").read_text())


def test_each_page_gets_a_cell_that_installs_and_keeps_the_others(build, tmp_path):
    source, target = tmp_path / "src" / "notebooks", tmp_path / "files"
    for name in ("01_overview", "examples/text", "src/old", "artifacts/a/mine"):
        page(source / f"{name}.ipynb", "1 + 1")
    (source / "images").mkdir()
    assert build.copy_chapters(source, target) == 2
    files = {path.relative_to(target) for path in target.rglob("*.ipynb")}
    assert files == {Path("01_overview.ipynb"), Path("examples/text.ipynb")}
    made = json.loads((target / "01_overview.ipynb").read_text())
    first, second = ("".join(cell["source"]) for cell in made["cells"])
    assert first.splitlines()[1].startswith("%pip install -q burnbook ")
    assert second == "1 + 1"


def test_a_site_that_lacks_something_is_not_called_whole(build, tmp_path):
    wheel = "burnbook-9.9.9-py3-none-any.whl"
    config = {**settings(), "federated_extensions": []}
    (kernel,) = config["litePluginSettings"].values()
    write(tmp_path / "jupyter-lite.json", {"jupyter-config-data": config})
    missing = "\n".join(build.problems(tmp_path, wheel))
    for part in (wheel, "anywidget", "the kernel does not know", "01_overview.ipynb"):
        assert part in missing
    kernel["pipliteUrls"] = ["./pypi/all.json?sha256=1"]
    config["federated_extensions"] = [{"name": name} for name in build.EXTENSIONS]
    write(tmp_path / "jupyter-lite.json", {"jupyter-config-data": config})
    release = {"releases": {"9.9.9": [{"filename": wheel}]}}
    write(tmp_path / "pypi" / "all.json", {"burnbook": release})
    for name in (
        f"pypi/{wheel}",
        *("lab/index.html", "files/01_overview.ipynb", "api/contents/all.json"),
    ):
        write(tmp_path / name, {})
    assert build.problems(tmp_path, wheel) == []


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
