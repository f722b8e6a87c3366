"""Saving a reader's work into one file, and bringing it back without losing any."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata

import pytest

from burnbook import cli
from burnbook.cli import learn
from burnbook.cli.workspace import find_folder, restore_work, save_work
from burnbook.cli.workspace.contents import LIST, is_saved_work
from burnbook.cli.workspace.places import folded, is_code, trouble_with
from burnbook.core.errors import BurnbookError, DataError
from tests.support.cases import cases
from tests.support.programs import python
from tests.support.run_folders import make_run
from tests.support.work_files import forged, member, page, tree


@pytest.fixture
def shipped(tmp_path):
    """Three chapters as they come."""
    folder = tmp_path / "shipped"
    for name in ("01_overview", "02_start", "examples/text"):
        page(folder / f"{name}.ipynb", f"print({name!r})")
    return folder


def copied(shipped, folder):
    shutil.copytree(shipped, folder)
    return folder


@pytest.fixture
def worked(tmp_path, shipped):
    """The chapters with a day's work in them."""
    folder = copied(shipped, tmp_path / "worked")
    page(folder / "02_start.ipynb", "print('mine')")
    page(folder / "examples/my_own.ipynb", "1 + 1")
    (folder / "helpers.py").write_text("x = 1\n")
    make_run(folder / "artifacts" / "guide")
    make_run(folder / "runs" / "first")
    (folder / "artifacts" / "note.json").write_text("{}")
    for name in (
        *(".bashrc", ".ipynb_checkpoints/02_start-checkpoint.ipynb"),
        *("pictures/a.png", "__pycache__/helpers.cpython-311.pyc", "notes.txt"),
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("not work")
    return folder


@pytest.fixture
def saved(tmp_path, worked, shipped):
    return save_work(tmp_path / "work.zip", folder=worked, shipped=shipped).path


PAGES = ["02_start.ipynb", "helpers.py", "examples/my_own.ipynb"]
UNITS = ["artifacts/guide", "artifacts/note.json", "runs/first"]


def work_in(folder):
    """The files of the day's work, and their bytes."""
    there = tree(folder)
    starts = (*PAGES, *UNITS)
    return {name: data for name, data in there.items() if name.startswith(starts)}


def as_text(files):
    """The same files under the names that a file of unknown origin may use."""
    return {f"{n}.txt" if n.endswith(".py") else n: d for n, d in files.items()}


# Saving


def test_saved_are_changed_pages_and_artifacts_and_nothing_else(
    tmp_path, worked, shipped
):
    done = save_work(tmp_path / "work.zip", folder=worked, shipped=shipped)
    assert (sorted(done.pages), sorted(done.units)) == (sorted(PAGES), sorted(UNITS))
    assert done.left_out == []
    with zipfile.ZipFile(done.path) as archive:
        assert set(archive.namelist()) == {*work_in(worked), LIST}
    first, *rest = str(done).splitlines()
    assert first.startswith(f"{done.path}: 3 pages, 3 of artifacts, 0.")
    assert sorted(line.strip() for line in rest) == sorted([*PAGES, *UNITS])


def test_artifacts_can_stay(tmp_path, worked, shipped):
    file = tmp_path / "work.zip"
    done = save_work(file, folder=worked, shipped=shipped, artifacts=False)
    assert (sorted(done.pages), done.units) == (sorted(PAGES), [])


def test_what_stays_out_is_named(tmp_path, worked, shipped):
    (worked / "artifacts/guide/secret.py").write_text("x")
    (worked / "artifacts/guide/link.json").symlink_to("/etc/hostname")
    (worked / "jupyter_server_config.py").write_text("c = get_config()")
    os.mkfifo(worked / "pipe.ipynb")
    done = save_work(tmp_path / "work.zip", folder=worked, shipped=shipped)
    assert dict(done.left_out) == {
        "artifacts/guide/link.json": "a link",
        "artifacts/guide/secret.py": "no training writes files that end in .py",
        "jupyter_server_config.py": "it would run by itself",
        "pipe.ipynb": "it has disappeared, or cannot be read",
    }
    assert "  not jupyter_server_config.py: it would run by itself" in str(done)


def test_in_a_checkout_the_sources_are_no_work(tmp_path, worked, shipped):
    page(worked / "src" / "02_start.py", "the source")
    done = save_work(tmp_path / "work.zip", folder=worked, shipped=shipped)
    assert sorted(done.pages) == sorted(PAGES)


def test_where_pages_are_the_shipped_ones_all_are_saved(tmp_path, shipped):
    done = save_work(tmp_path / "work.zip", folder=shipped, shipped=shipped)
    assert len(done.pages) == 3


def test_saving_again_replaces_the_file_and_nothing_that_is_another(
    tmp_path, worked, shipped, saved
):
    before = saved.read_bytes()
    page(worked / "02_start.ipynb", "print('more')")
    save_work(saved, folder=worked, shipped=shipped)
    assert saved.read_bytes() != before
    assert is_saved_work(saved)
    mine = worked / "02_start.ipynb"
    text = mine.read_text()
    with pytest.raises(DataError, match="already exists, and is not saved work"):
        save_work(mine, folder=worked, shipped=shipped)
    assert mine.read_text() == text


def test_a_log_that_grows_meanwhile_is_saved_as_it_was(
    tmp_path, worked, shipped, monkeypatch
):
    log = worked / "artifacts/guide/experiment.log"
    size, begin = log.stat().st_size, zipfile.ZipFile.open

    def open_and_write(archive, info, mode="r", **named):
        if getattr(info, "filename", "") == "artifacts/guide/experiment.log":
            with log.open("a") as file:
                file.write("a line more\n" * 100)
        return begin(archive, info, mode, **named)

    monkeypatch.setattr(zipfile.ZipFile, "open", open_and_write)
    done = save_work(tmp_path / "work.zip", folder=worked, shipped=shipped)
    with zipfile.ZipFile(done.path) as archive:
        assert archive.getinfo("artifacts/guide/experiment.log").file_size == size
    restore_work(done.path, folder=tmp_path / "new")


@pytest.mark.parametrize("cause", [OSError(28, "no space"), KeyboardInterrupt()])
def test_a_saving_that_fails_leaves_the_file_as_it_was(
    cause, tmp_path, worked, shipped, saved, monkeypatch
):
    before = tree(tmp_path)

    def fail(*args):
        raise cause

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    page(worked / "02_start.ipynb", "print('more')")
    with pytest.raises((DataError, KeyboardInterrupt)):
        save_work(saved, folder=worked, shipped=shipped)
    before["worked/02_start.ipynb"] = (worked / "02_start.ipynb").read_bytes()
    assert tree(tmp_path) == before


# Restoring


def test_everything_comes_back_to_fresh_chapters(tmp_path, worked, shipped, saved):
    fresh = copied(shipped, tmp_path / "fresh")
    done = restore_work(saved, folder=fresh, shipped=shipped, modules=True)
    assert tree(fresh) == {**tree(shipped), **work_in(worked)}
    assert (sorted(done.pages), sorted(done.units)) == (sorted(PAGES), sorted(UNITS))
    assert (done.kept, done.same) == ({}, 0)
    assert str(done).startswith(f"3 pages, 3 of artifacts came back to {fresh}\n")


def test_restoring_twice_changes_nothing(tmp_path, shipped, saved):
    fresh = copied(shipped, tmp_path / "fresh")
    restore_work(saved, folder=fresh, shipped=shipped)
    before = tree(fresh)
    done = restore_work(saved, folder=fresh, shipped=shipped)
    assert tree(fresh) == before
    assert (done.pages, done.units, done.kept, done.same) == ([], [], {}, 6)


def test_what_stands_in_the_way_is_kept(tmp_path, worked, shipped, saved):
    fresh = copied(shipped, tmp_path / "fresh")
    page(fresh / "02_start.ipynb", "print('of today')")
    make_run(fresh / "artifacts/guide", (0.4,), (70.0,))
    (fresh / "02_start.before-restore.ipynb").write_text("an earlier one")
    before = tree(fresh)
    done = restore_work(saved, folder=fresh, shipped=shipped)
    assert done.kept == {
        "02_start.ipynb": "02_start.before-restore-2.ipynb",
        "artifacts/guide": "artifacts/guide.before-restore",
    }
    after = tree(fresh)
    assert as_text(work_in(worked)).items() <= after.items()
    assert after["02_start.before-restore-2.ipynb"] == before.pop("02_start.ipynb")
    for name, data in before.items():
        kept = name.replace("artifacts/guide/", "artifacts/guide.before-restore/")
        assert after[kept] == data
    text = str(done)
    assert "  kept: 02_start.ipynb as 02_start.before-restore-2.ipynb\n" in text


def test_a_page_of_a_newer_book_is_kept(tmp_path, shipped, saved):
    page(shipped / "02_start.ipynb", "print('a newer edition')")
    fresh = copied(shipped, tmp_path / "fresh")
    done = restore_work(saved, folder=fresh, shipped=shipped)
    assert done.kept == {"02_start.ipynb": "02_start.before-restore.ipynb"}


def test_when_a_step_fails_those_before_it_are_taken_back(
    tmp_path, shipped, saved, monkeypatch
):
    fresh = copied(shipped, tmp_path / "fresh")
    page(fresh / "02_start.ipynb", "print('of today')")
    make_run(fresh / "artifacts/guide", (0.4,), (70.0,))
    before, change = tree(fresh), os.replace
    for fails in range(6):
        left = iter([True] * fails + [False])

        def replace(one, other, left=left):
            if not next(left, True):
                raise OSError(28, "No space left on device", str(other))
            return change(one, other)

        monkeypatch.setattr(os, "replace", replace)
        with pytest.raises(DataError, match="No space left on device"):
            restore_work(saved, folder=fresh, shipped=shipped)
        monkeypatch.setattr(os, "replace", change)
        assert tree(fresh) == before
        assert not [*fresh.glob(".burnbook*")]


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize("step", [0, 2, 4])
def test_a_killed_restore_loses_nothing_and_the_next_one_ends_it(
    step, tmp_path, worked, shipped, saved
):
    fresh = copied(shipped, tmp_path / "fresh")
    page(fresh / "02_start.ipynb", "print('of today')")
    mine = (fresh / "02_start.ipynb").read_bytes()
    killed = python("-m", "tests.support.killed_restore", saved, fresh, shipped, step)
    assert killed.returncode == -9, killed.stderr
    assert mine in tree(fresh).values()
    (left,) = fresh.glob(".burnbook-restore-*")
    os.utime(left, (0, 0))  # long ago
    restore_work(saved, folder=fresh, shipped=shipped)
    after = tree(fresh)
    assert as_text(work_in(worked)).items() <= after.items()
    assert mine in after.values()
    assert not [*fresh.glob(".burnbook*")]


def test_links_in_the_readers_folder_are_not_followed(tmp_path, shipped, saved):
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("artifacts", "02_start.ipynb"):
        fresh = copied(shipped, tmp_path / name / "fresh")
        (fresh / name).unlink(missing_ok=True)
        (fresh / name).symlink_to(outside)
        with pytest.raises(DataError, match=f"{name} is a link here"):
            restore_work(saved, folder=fresh, shipped=shipped)
    assert [*outside.iterdir()] == []


# Nothing runs by itself


def test_python_files_come_back_as_text_and_say_how_to_be_modules(
    tmp_path, shipped, saved
):
    fresh = copied(shipped, tmp_path / "fresh")
    done = restore_work(saved, folder=fresh, shipped=shipped)
    assert done.as_text == {"helpers.py": "helpers.py.txt"}
    assert not (fresh / "helpers.py").exists()
    lines = str(done).splitlines()
    assert "    helpers.py as helpers.py.txt" in lines
    assert lines[-2].endswith("burnbook restore FILE --with-modules")
    again = save_work(tmp_path / "again.zip", folder=fresh, shipped=shipped)
    assert "helpers.py.txt" in again.pages  # it gets lost nowhere
    os.rename(fresh / "helpers.py.txt", fresh / "helpers.py")
    done = restore_work(saved, folder=fresh, shipped=shipped)
    assert (done.as_text, done.same) == ({}, 6)


def test_a_text_does_not_take_the_name_of_another(tmp_path):
    names = ["a.py", "a.py.txt", "A-2.py.txt"]
    file = forged(tmp_path / "work.zip", {name: name.encode() for name in names})
    restore_work(file, folder=tmp_path / "new")
    assert tree(tmp_path / "new") == {
        "a-3.py.txt": b"a.py",
        "a.py.txt": b"a.py.txt",
        "A-2.py.txt": b"A-2.py.txt",
    }


MARKER = "import pathlib; pathlib.Path({!r}).write_text(__name__)"


def planted(path, marker):
    """A saved file with every name that a kernel might import, at three places."""
    known = {*sys.stdlib_module_names, *metadata.packages_distributions()}
    known |= {"ipykernel_launcher", "sitecustomize", "usercustomize", "torch", "cupy"}
    known |= {"my_model", "Random", "ＲＡＮＤＯＭ", "burnbook", "conftest"}
    code = MARKER.format(str(marker)).encode()
    names = [name for name in sorted(known) if re.fullmatch(r"[\w-]+", name)]
    members = {}
    for name in names:
        for place in (f"{name}.py", f"{name}/__init__.py", f"examples/{name}.PY"):
            if trouble_with(place, "") is None:
                members[place] = code
    twins = {}
    for name in members:
        twins.setdefault(folded(name), name)
    members = {name: members[name] for name in twins.values()}
    assert len(members) > 900
    return forged(path, members), names


@pytest.mark.parametrize("modules", [False, True])
def test_nothing_that_comes_back_can_be_imported_in_place_of_a_module(
    modules, tmp_path
):
    marker, fresh = tmp_path / "it-ran", tmp_path / "fresh"
    file, names = planted(tmp_path / "work.zip", marker)
    page(fresh / "01_overview.ipynb", "1 + 1")
    done = restore_work(file, folder=fresh, modules=modules)
    left = [path for path in fresh.rglob("*") if is_code(path.name)]
    allowed = {"my_model.py", "examples/my_model.PY", "my_model/__init__.py"}
    there = {path.relative_to(fresh).as_posix() for path in left}
    assert there == (allowed if modules else set())
    assert done.shadowing["IPython/__init__.py"] == "IPython"
    program = (  # as `python -m ipykernel_launcher` in that folder
        "import importlib.util, sys; sys.path.insert(0, '');"
        "names = sys.stdin.read().split();"
        "found = [importlib.util.find_spec(n) for n in names if n != '__main__'];"
        "print(*[s.name for s in found if s and s.origin and s.origin.startswith(P)])"
    )
    places = [fresh, fresh / "examples"]
    for place in places:
        told = subprocess.run(
            [sys.executable, "-c", program.replace("P)", f"{str(place)!r})")],
            cwd=place,
            input="\n".join(names),
            text=True,
            capture_output=True,
            timeout=120,
        )
        assert told.returncode == 0, told.stderr
        assert set(told.stdout.split()) <= ({"my_model"} if modules else set())
    assert not marker.exists()


def test_a_kernel_that_starts_beside_it_runs_none_of_it(tmp_path):
    pytest.importorskip("ipykernel", reason="a kernel needs ipykernel")
    client = pytest.importorskip("jupyter_client", reason="and jupyter_client")
    marker, fresh = tmp_path / "it-ran", tmp_path / "fresh"
    file, _ = planted(tmp_path / "work.zip", marker)
    restore_work(file, folder=fresh)
    manager = client.KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(fresh))
    talk = manager.client()
    try:
        talk.start_channels()
        talk.wait_for_ready(timeout=120)
        talk.execute_interactive("import random, json, burnbook", timeout=120)
    finally:
        talk.stop_channels()
        manager.shutdown_kernel(now=True)
    assert not marker.exists()


WIDGETS = {
    "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}}},
    "jupytext": {"formats": "ipynb,../../.ipython/profile_default/startup//py"},
}


def test_a_page_comes_back_without_metadata_that_could_run(tmp_path):
    kept = {"kernelspec": {"name": "python3"}, "title": "mine \ud800"}
    book = {"cells": [], "metadata": {**kept, **WIDGETS}, "nbformat": 4}
    data = b"\xef\xbb\xbf" + json.dumps({**book, "nbformat_minor": 5}).encode()
    harmless = json.dumps({**book, "metadata": kept}).encode()
    members = {"a.IPYNB": data, "b.ipynb": harmless, "c.ipynb": b"no notebook"}
    file = forged(tmp_path / "work.zip", members)
    done = restore_work(file, folder=tmp_path / "new")
    there = tree(tmp_path / "new")
    assert json.loads(there["a.IPYNB"])["metadata"] == kept
    assert (there["b.ipynb"], there["c.ipynb"]) == (harmless, b"no notebook")
    assert done.without == {"a.IPYNB": ["jupytext", "widgets"]}
    line = "  a.IPYNB without metadata that could run: jupytext, widgets"
    assert line in str(done).splitlines()
    again = restore_work(file, folder=tmp_path / "new")
    assert (again.same, again.kept) == (3, {})


def test_pages_that_cannot_be_looked_into_are_refused(tmp_path, monkeypatch):
    deep = b"[" * 200_000
    refused(forged(tmp_path / "work.zip", {"a.ipynb": deep}), tmp_path, "too deeply")
    monkeypatch.setattr("burnbook.cli.workspace.pages.MOST_PAGE", 10)
    refused(forged(tmp_path / "work.zip", {"a.ipynb": bytes(11)}), tmp_path, "larger")


# Files that lie


PATHS = {
    "up": "../evil.ipynb",
    "up-inside": "examples/../../evil.ipynb",
    "absolute": "/tmp/evil.ipynb",
    "drive": "C:/evil.ipynb",
    "backslash": "..\\evil.ipynb",
    "hidden": ".ipython/profile_default/startup/evil.py",
    "config": "jupyter_server_config.py",
    "site": "sitecustomize.py",
    "shell": "evil.sh",
    "device": "nul.ipynb",
    "dot": "./evil.ipynb",
    "twice": "examples//evil.ipynb",
    "control": "evil\n.ipynb",
    "long": f"{'a' * 300}.ipynb",
    "deep": "a/" * 12 + "evil.ipynb",
    "trailing": "examples./evil.ipynb",
}


@pytest.mark.parametrize("name", PATHS)
def test_a_path_that_no_work_has_is_refused(name, tmp_path):
    file = forged(tmp_path / "work.zip", {PATHS[name]: b"evil"})
    refused(file, tmp_path, "not belong to saved work|does not match its list|damaged")


def refused(file, tmp_path, why):
    """The file is refused with that text, and nothing at all was written."""
    fresh = tmp_path / "inner" / "fresh"
    page(fresh / "01_overview.ipynb", "mine")
    before = tree(tmp_path)
    with pytest.raises(DataError, match=why):
        restore_work(file, folder=fresh)
    assert tree(tmp_path) == before


@cases(
    "paths units",
    (["a.ipynb", "A.ipynb"], ["", ""]),
    (["caf\u00e9.py", "cafe\u0301.py"], ["", ""]),
    (["a.py", "a.py/b.py"], ["", ""]),
    (["artifacts/a/b.json", "artifacts/a/c.py"], ["artifacts/a", ""]),
    (["runs/a.json", "runs/b/c.json"], ["runs", "runs/b"]),
)
def test_paths_in_the_way_of_one_another_are_refused(paths, units, tmp_path):
    members = {p: member(b"x", u) for p, u in zip(paths, units, strict=True)}
    file = forged(tmp_path / "work.zip", members)
    refused(file, tmp_path, "twice|lies inside of another")


@cases(
    "path unit",
    ("artifacts/a/b.json", "artifacts"),
    ("artifacts/a/b.json", "artifacts/a/b.json"),
    ("settings.json", "settings.json"),
    ("artifacts/a/b.json", "runs"),
    ("artifacts/a/evil.py", "artifacts/a"),
    ("artifacts/a/.hidden.json", "artifacts/a"),
)
def test_units_that_no_saving_makes_are_refused(path, unit, tmp_path):
    file = forged(tmp_path / "work.zip", {path: member(b"x", unit)})
    refused(file, tmp_path, "not belong to saved work")


def test_links_and_folders_in_the_file_are_refused(tmp_path):
    for data, mode in ((b"/etc/passwd", 0o120777), (b"", 0o040755)):
        file = forged(tmp_path / "work.zip", {"a.py": member(data, mode=mode)})
        refused(file, tmp_path, "a link or a device")


def test_files_that_the_list_does_not_name_are_refused(tmp_path, saved):
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("evil.ipynb", b"evil")
    refused(saved, tmp_path, "'evil.ipynb' does not match its list")


def test_missing_and_exchanged_files_are_refused(tmp_path, saved):
    with zipfile.ZipFile(saved) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for name, change in (("missing", None), ("exchanged", b"x = 2\n")):
        other = {**content, "helpers.py": change}
        path = tmp_path / f"{name}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for inner, data in other.items():
                if data is not None:
                    archive.writestr(inner, data)
        refused(path, tmp_path, "is missing from it|damaged")


def test_bombs_are_refused_before_anything_is_unpacked(tmp_path):
    bomb = member(bytes(1 << 20), size=1 << 40)
    file = forged(tmp_path / "work.zip", {"a.py": bomb})
    refused(file, tmp_path, "it unpacks to 1,099,512 MB, more than 500")
    small = member(bytes(1 << 22), size=10)  # says 10, unpacks to 4 MB
    file = forged(tmp_path / "work.zip", {"a.py": small}, header=10)
    refused(file, tmp_path, "damaged")
    many = {f"p{number}.py": b"" for number in range(5_001)}
    refused(forged(tmp_path / "work.zip", many), tmp_path, "5,002 files, more than")


def test_an_end_that_tells_of_millions_of_files_is_not_believed(tmp_path, saved):
    data = bytearray(saved.read_bytes())
    data[-14:-10] = b"\xff" * 4
    saved.write_bytes(data)
    refused(saved, tmp_path, "it holds 65,535 files, more than 5,000")


def test_a_newer_file_says_so(tmp_path):
    file = forged(tmp_path / "work.zip", {"a.py": b""}, version=2)
    refused(file, tmp_path, "which is newer")


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path, saved):
    whole = saved.read_bytes()
    for end in (0, 1, 30, len(whole) // 2, len(whole) - 30, len(whole) - 1):
        saved.write_bytes(whole[:end])
        refused(saved, tmp_path, "not saved work, or it is damaged")


def test_a_changed_byte_is_refused_or_changes_nothing(tmp_path, worked, shipped, saved):
    whole, chance = saved.read_bytes(), random.Random(7)
    expected, survived = as_text(work_in(worked)), 0
    for number in range(150):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 1, 4])):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        saved.write_bytes(data)
        folder = tmp_path / f"try-{number}"
        try:
            restore_work(saved, folder=folder, shipped=shipped)
        except BurnbookError:
            assert tree(folder) == {}
        else:
            survived += 1
            assert tree(folder) == expected
        shutil.rmtree(folder, ignore_errors=True)
    assert survived < 75  # times and other heads that mean nothing


# The commands


@pytest.fixture
def here(tmp_path, shipped, monkeypatch):
    monkeypatch.setattr(learn, "chapters_folder", lambda: shipped)
    monkeypatch.setattr("burnbook.cli.work.chapters_folder", lambda: shipped)
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def test_the_commands_save_and_restore(here, shipped, capsys):
    copied(shipped, here / "burnbook-chapters")
    page(here / "burnbook-chapters/02_start.ipynb", "print('mine')")
    assert cli.main(["save"]) == 0
    (file,) = here.glob("burnbook-work-*.zip")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(f"{file.name}: 1 page, ")
    back = "bring it back with: burnbook restore FILE"
    assert shown[1:] == ["  02_start.ipynb", back]
    shutil.rmtree(here / "burnbook-chapters")
    assert cli.main(["restore", str(file)]) == 0  # to chapters that it copies first
    text = (here / "burnbook-chapters/02_start.ipynb").read_text()
    assert "print('mine')" in text
    assert (here / "burnbook-chapters/01_overview.ipynb").exists()


def test_the_commands_explain_what_they_cannot_do(here, shipped, capsys):
    assert cli.main(["save"]) == 1
    text = f"burnbook save: there are no chapters in {here}\n"
    assert capsys.readouterr().err == text + "  try: save --folder FOLDER\n"
    (here / "photo.zip").write_bytes(b"PK")
    assert cli.main(["restore", "photo.zip"]) == 1
    first = capsys.readouterr().err.splitlines()[0]
    what = "this is not saved work, or it is damaged"
    assert first == f"burnbook restore: photo.zip: {what}"
    assert not (here / "burnbook-chapters").exists()


def test_chapters_are_found_from_where_a_reader_may_be(tmp_path, shipped):
    for place in (".", "burnbook-chapters", "notebooks", "book/notebooks"):
        folder = copied(shipped, tmp_path / f"at-{len(place)}" / place)
        start = tmp_path / f"at-{len(place)}"
        assert find_folder(start, shipped) == folder.resolve()
        assert find_folder(folder / "examples", shipped) == folder.resolve()
    assert find_folder(tmp_path / "shipped" / "nowhere", tmp_path) is None
