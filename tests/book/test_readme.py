"""What the README says is so: its first lines print, its links and commands exist."""

import contextlib
import io
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found, f"no {language} block"
    return found.group(1)


def test_the_first_five_lines_print_what_is_shown():
    code = block("python")
    assert len([line for line in code.splitlines() if line]) == 5
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(code, {})
    assert shown.getvalue() == block("text")


def test_every_link_leads_somewhere():
    links = re.findall(r"\]\(((?!http)[^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_chapter_is_in_the_map():
    chapters = {f"notebooks/{p.name}" for p in (ROOT / "notebooks").glob("*.ipynb")}
    assert chapters == set(re.findall(r"\((notebooks/\w+\.ipynb)\)", README))


def test_every_make_target_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make (\w+)", README, re.MULTILINE)) <= targets


COMMANDS = sorted(set(re.findall(r"`burnbook ([\w-]+)", README)))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_exists(command, capsys):
    from burnbook.cli import main

    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert command in capsys.readouterr().out


def test_every_extra_exists_and_every_one_for_readers_is_named():
    named = set(re.findall(r"burnbook\[(\w+)\]", README))
    assert named == set(EXTRAS) - {"test"}


# What a package is called where it is imported, if it is not its own name.
IMPORTED_AS = {
    "scikit-learn": "sklearn",
    "pillow": "PIL",
    "cupy-cuda12x": "cupy",
    "cupy-cuda13x": "cupy",
    "nvidia-ml-py": "pynvml",
}
RUNS_BY_ITSELF = {"jupyterlab", "ipykernel", "pytest-xdist", "pytest-randomly", "nbval"}


@pytest.mark.parametrize(
    "wanted",
    [*PROJECT["dependencies"], *(name for row in EXTRAS.values() for name in row)],
)
def test_every_dependency_is_used(wanted):
    name = re.match(r"[\w-]+", wanted)[0]
    if name in RUNS_BY_ITSELF:
        return
    module = re.escape(IMPORTED_AS.get(name, name))
    call = r"(?:import_module|importorskip)\(\W*"
    use = re.compile(rf"(?:import |from |{call}){module}\b")
    folders = ("burnbook", "widgets", "tests", "binder")
    files = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    assert any(use.search(path.read_text("utf-8")) for path in files), name


def test_the_version_is_in_the_changelog():
    import burnbook

    assert f"**{burnbook.__version__}**" in README
