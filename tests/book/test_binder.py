"""What Binder is given: pins that fit pyproject, scripts that run, bounds that hold."""

import importlib.util
import os
import re
import subprocess
import sys
import time
import tomllib
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import parse_qs

import pytest

packaging = pytest.importorskip("packaging.requirements", reason="needs packaging")

ROOT = Path(__file__).resolve().parents[2]
BINDER = ROOT / "binder"
FIRST = "notebooks/01_overview.ipynb"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SUPPORTED = {"3.11", "3.12", "3.13", "3.14"}  # of repo2docker's, those we run on


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins():
    lines = (BINDER / "requirements.txt").read_text().splitlines()
    wanted = [line for line in lines if line.strip() and not line.startswith("#")]
    return [packaging.Requirement(line) for line in wanted]


def test_every_package_is_pinned_once_to_one_version():
    for pin in pins():
        (only,) = pin.specifier
        assert only.operator == "==", pin
        assert re.fullmatch(r"[\d.]+(\.?post\d+)?", only.version), pin
    names = [plain(pin.name) for pin in pins()]
    assert len(names) == len(set(names)) > 100


@pytest.mark.parametrize(
    "wanted", [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lab"]]
)
def test_what_the_lab_needs_is_pinned_within_its_bounds(wanted):
    need = packaging.Requirement(wanted)
    versions = {plain(pin.name): next(iter(pin.specifier)).version for pin in pins()}
    assert need.specifier.contains(versions[plain(need.name)])


def test_the_wheel_can_be_built_with_what_is_pinned():
    system = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
    versions = {plain(pin.name): next(iter(pin.specifier)).version for pin in pins()}
    for wanted in map(packaging.Requirement, system["requires"]):
        assert wanted.specifier.contains(versions[plain(wanted.name)])
    assert "--no-build-isolation" in (BINDER / "postBuild").read_text()


def test_the_python_of_the_image_is_one_of_ours():
    from packaging.specifiers import SpecifierSet

    named = re.fullmatch(r"python-(\d+\.\d+)\n", (BINDER / "runtime.txt").read_text())
    assert named
    assert named[1] in SUPPORTED
    assert SpecifierSet(PROJECT["requires-python"]).contains(f"{named[1]}.0")


@pytest.mark.parametrize("name", ["check", "postBuild", "start"])
def test_the_scripts_are_whole_and_may_be_run(name):
    path = BINDER / name
    assert os.access(path, os.X_OK)
    checked = subprocess.run(["bash", "-n", path], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_start_caps_the_threads_and_uses_the_kernels_of_post_build():
    show = [BINDER / "start", "env"]
    lines = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    started = dict(line.split("=", 1) for line in lines.splitlines() if "=" in line)
    for name in ("BURNBOOK", "OMP_NUM", "OPENBLAS_NUM", "NUMBA_NUM"):
        assert started[f"{name}_THREADS"] == "2"
    line = f"export NUMBA_CPU_NAME={started['NUMBA_CPU_NAME']} "
    assert line in (BINDER / "postBuild").read_text()


# The links


@pytest.fixture
def links():
    """binder/links.py as a module."""
    spec = importlib.util.spec_from_file_location("links", BINDER / "links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_has_the_links_of_the_address(links):
    lines = links.links((BINDER / "address.txt").read_text())
    text = (ROOT / "README.md").read_text()
    assert links.written(text, lines) == text
    changed = links.written(text, links.links("another/place@stable"))
    assert changed != text
    assert links.written(changed, lines) == text


def test_readme_shows_no_link_that_leads_nowhere(links):
    assert links.links("OWNER/burnbook") == []
    address = (BINDER / "address.txt").read_text()
    text = (ROOT / "README.md").read_text()
    assert ("mybinder.org/v2/gh" in text) == (not address.startswith("OWNER/"))
    assert "OWNER/burnbook" not in text


def test_links_lead_to_chapter_one(links):
    badge, pulled = links.links("someone/the-book@v1/x\n")
    start = "https://mybinder.org/v2/gh/someone/the-book/v1%2Fx"
    address, query = re.search(r"\]\(([^()]+)\?([^()]+)\)$", badge).groups()
    assert (address, parse_qs(query)) == (start, {"urlpath": [f"lab/tree/{FIRST}"]})
    address, query = re.search(r"\(([^()]+?)\?([^()]+)\)$", pulled).groups()
    verb, _, inner = parse_qs(query)["urlpath"][0].partition("?")
    assert (address, verb) == (start, "git-pull")
    assert parse_qs(inner) == {
        "repo": ["https://github.com/someone/the-book"],
        "branch": ["v1/x"],
        "targetPath": ["book"],
        "urlpath": [f"lab/tree/book/{FIRST}"],
    }
    assert (ROOT / FIRST).is_file()


def test_an_address_that_is_none_is_refused(links):
    with pytest.raises(SystemExit, match="is not OWNER/NAME"):
        links.links("https://github.com/a/b")


# What measures


@pytest.fixture
def measure(monkeypatch):
    """binder/measure.py with chapters that take what the test says."""
    pytest.importorskip("psutil", reason="binder/measure.py needs psutil")
    spec = importlib.util.spec_from_file_location("measure", BINDER / "measure.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("travel", "warm", "kernels"):
        monkeypatch.setattr(module, name, list)
    monkeypatch.setattr(module, "server", lambda: nullcontext())
    monkeypatch.setattr(module, "size_of", lambda folder: 1 << 30)
    monkeypatch.setattr("sys.argv", ["measure.py", "01_overview"])
    return module


@pytest.mark.parametrize(
    ("seconds", "megabytes", "complaint"),
    [
        (59.0, 700, ""),
        (3.0, 701, "too much: 01_overview takes 701 MB, more than 700\n"),
        (61.0, 300, "too much: 01_overview takes 61 s\n"),
    ],
)
def test_a_chapter_beyond_its_bounds_fails(
    seconds, megabytes, complaint, measure, monkeypatch, capsys
):
    took = seconds, megabytes, 90
    monkeypatch.setattr(measure, "run", lambda path, server: took)
    assert measure.main() == (1 if complaint else 0)
    out, err = capsys.readouterr()
    assert err == complaint
    assert out.splitlines() == [
        "the environment: 1024 MB",
        f"01_overview: {seconds} s; memory at most {megabytes} MB, "
        "of which the server has 90 MB",
    ]


def test_stale_kernels_fail(measure, monkeypatch, capsys):
    monkeypatch.setattr(measure, "run", lambda path, server: (1.0, 1, 1))
    found = iter([{"a"}, {"a", "b"}])
    monkeypatch.setattr(measure, "kernels", lambda: next(found))
    assert measure.main() == 1
    assert "kernels were compiled again" in capsys.readouterr().err


def test_memory_is_that_of_a_process_and_its_children(measure):
    import psutil

    program = "b = bytearray(40_000_000); b[::1000] = b'x' * 40_000; input()"
    command = ["bash", "-c", '"$1" -c "$0"; true', program, sys.executable]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, env={**os.environ, "BASH_ENV": ""}
    )
    try:
        process = psutil.Process(child.pid)
        for _ in range(200):
            if measure.tree(process) > 40_000_000:
                break
            time.sleep(0.02)
        assert measure.tree(process) > 40_000_000 > process.memory_info().rss
    finally:
        child.communicate(b"\n", timeout=20)
