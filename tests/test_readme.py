"""What the README says is so: its first lines print, its links and commands exist."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


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


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`burnbook (\w+)", README))))
def test_every_command_exists(command, capsys):
    from burnbook.cli import main

    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert command in capsys.readouterr().out


def test_the_version_is_in_the_changelog():
    import burnbook

    assert f"**{burnbook.__version__}**" in README
