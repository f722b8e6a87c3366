"""What a wheel holds: two packages, the chapters, the scripts of the views."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling", reason="wheels are built with hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def committed(folder: str, *kinds: str) -> set[str]:
    found = (path for kind in kinds for path in (ROOT / folder).rglob(f"*.{kind}"))
    return {str(p.relative_to(ROOT)) for p in found if "artifacts" not in p.parts}


def test_it_holds_both_packages_whole(wheel):
    names = set(wheel.namelist())
    assert committed("burnbook", "py", "pyi") | {"burnbook/py.typed"} <= names
    assert committed("burnbook/rust/project", "rs", "toml", "lock") <= names
    widgets = committed("widgets", "py", "js", "css")
    assert {name.removeprefix("widgets/") for name in widgets} <= names


def test_it_holds_the_chapters_but_not_their_sources(wheel):
    inside = {n for n in wheel.namelist() if n.startswith("burnbook/_notebooks/")}
    chapters = committed("notebooks", "ipynb", "png", "md")
    assert {"notebooks/README.md", "notebooks/zh/03_3_training.ipynb"} <= chapters
    assert {
        n.replace("notebooks/", "burnbook/_notebooks/", 1) for n in chapters
    } <= inside
    assert not [n for n in inside if "/src/" in n or "/artifacts/" in n]


def test_it_starts_the_command_and_finds_the_dashboard(wheel):
    (name,) = [n for n in wheel.namelist() if n.endswith("entry_points.txt")]
    text = wheel.read(name).decode()
    assert "burnbook = burnbook.cli:main" in text
    assert "notebook = burnbook_widgets:NotebookRenderer" in text


def test_nothing_else_travels(wheel):
    settings = "/data/etc/jupyter/jupyter_server_config.d/burnbook.json"
    names = [name for name in wheel.namelist() if not name.endswith(settings)]
    tops = {name.partition("/")[0] for name in names}
    extra = {top for top in tops if not top.endswith(".dist-info")}
    assert extra == {"burnbook", "burnbook_widgets"}
    assert len(names) == len(wheel.namelist()) - 1
