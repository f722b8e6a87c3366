"""Cargo for cells: what is said without it, how far it is, and that it can be stopped.

Most of this needs no cargo: a script of that name stands in for it, and prints what the
real one would.
"""

import json
import os
import signal
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from burnbook.rust import RustError, run
from burnbook.rust.cargo import SOURCES, Project, Running

ROOT = Path(__file__).resolve().parents[2]
needs_scripts = pytest.mark.skipif(
    os.name == "nt", reason="a script stands in for cargo, which needs a shebang"
)
TREE = "cell v0.1.0 (/x)\nburn v0.15.0\nserde v1.0.1\nserde v1.0.1 (*)\n\nlibm v0.2.1\n"


def artifact(name: str, kind: str = "lib", fresh: bool = False) -> str:
    target = {"name": name, "kind": [kind]}
    entry = {"reason": "compiler-artifact", "package_id": name, "fresh": fresh}
    return json.dumps({**entry, "target": target, "executable": None})


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Make a `cargo` of some lines of Python, the only program on the PATH."""
    monkeypatch.setenv("BURNBOOK_CACHE", str(tmp_path / "cache of mine"))
    monkeypatch.delenv("BURNBOOK_CRATES", raising=False)

    def make(body: str) -> Path:
        path = tmp_path / "bin" / "cargo"
        path.parent.mkdir(exist_ok=True)
        head = f"#!{sys.executable}\nimport sys, os, time\nasked = sys.argv[1]\n"
        path.write_text(head + body, encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(path.parent))
        return path

    return make


def test_without_cargo_one_line_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CARGO_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("BURNBOOK_CACHE", str(tmp_path))
    with pytest.raises(RustError) as caught:
        run("let x = 1;")
    (line,) = str(caught.value).splitlines()
    assert line.startswith("%%rust: Rust is not installed")
    assert "https://rustup.rs" in line
    assert str(tmp_path) not in line
    assert list(tmp_path.iterdir()) == []  # nothing was begun


@needs_scripts
def test_with_rustup_alone_one_line_says_how_to_install_rust(stand_in):
    said = "error: rustup could not choose a version of cargo to run, because one "
    said += "wasn't specified explicitly, and no default is configured."
    stand_in(
        f"print({said!r}, 'Stack backtrace:', sep=chr(10), file=sys.stderr)\n"
        "sys.exit(1)"
    )
    with pytest.raises(RustError) as caught:
        run("let x = 1;")
    (line,) = str(caught.value).splitlines()
    assert "rustup default stable" in line


@needs_scripts
def test_cargo_is_found_where_rustup_puts_it(stand_in, tmp_path, monkeypatch):
    """A server that was started before Rust was installed has an older PATH."""
    path = stand_in("sys.stderr.write(os.environ['PATH']); sys.exit(1)\n")
    monkeypatch.setenv("PATH", "/first")
    monkeypatch.setenv("CARGO_HOME", str(tmp_path))
    with pytest.raises(RustError) as caught:
        run("let x = 1;")
    assert caught.value.text == f"/first:{path.parent}"  # rustc is there, too


def test_the_cells_are_built_as_the_twins_of_the_chapters_are():
    """The same crates in the same versions with the same profile: built once."""
    twins = ROOT / "notebooks/rust"
    for name in ("Cargo.lock", "Cargo.toml"):
        ours = (SOURCES / name).read_text(encoding="utf-8")
        theirs = (twins / name).read_text(encoding="utf-8")
        for part in ("[dependencies]", "[profile.dev]", '[profile.dev.package."*"]'):
            if name == "Cargo.toml":
                assert _section(ours, part) == _section(theirs, part)
        if name == "Cargo.lock":
            assert ours == theirs.replace('name = "burn-book"', 'name = "cell"')


def _section(text: str, head: str) -> list[str]:
    lines = text.partition(head)[2].partition("\n[")[0].splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@needs_scripts
def test_the_first_build_says_how_far_it_is(stand_in):
    lines = [
        artifact("libm", "custom-build"), artifact("libm"), artifact("serde"),
        artifact("burn"), artifact("cell", "bin"),
    ]  # fmt: skip
    stand_in(
        f"print({TREE!r}) if asked == 'tree' else print({chr(10).join(lines)!r})\n"
    )
    said = []
    project = Project()
    project.write("fn main() {}", "i32")
    assert project.build(lambda stream, text: said.append((stream, text))) == (None, [])
    assert {stream for stream, _ in said} == {"progress"}
    texts = [text.strip() for _, text in said]
    assert texts[0].startswith("Burn 0.15 and the crates it needs (3) are compiled, ")
    assert "minutes" in texts[0]
    assert texts[1:4] == [
        "1 of 3 crates: libm", "2 of 3 crates: serde", "3 of 3 crates: burn",
    ]  # fmt: skip
    assert texts[4].startswith("3 crates compiled in ")


@needs_scripts
def test_a_download_says_how_far_it_is(stand_in):
    lines = [artifact("serde"), artifact("cell", "bin")]
    stand_in(
        f"if asked == 'tree': print({TREE!r}); sys.exit()\n"
        "print(' Downloading crates ...', file=sys.stderr)\n"
        "print('  Downloaded serde v1.0.1', file=sys.stderr)\n"
        "print('  Downloaded burn v0.15.0', file=sys.stderr, flush=True)\n"
        "time.sleep(0.5)\n"  # so that the other stream comes later
        f"print({chr(10).join(lines)!r})\n"
    )
    said = []
    project = Project()
    project.write("fn main() {}", "i32")
    project.build(lambda _, text: said.append(text.rstrip(" ")))
    assert "downloaded, once" in said[0]
    assert said[1:3] == ["\r1 crates downloaded", "\r2 crates downloaded"]
    assert said[3].startswith("\nBurn 0.15")  # on a line of its own
    assert said[4] == "\r1 of 3 crates: serde"


@needs_scripts
def test_a_later_build_says_nothing(stand_in):
    lines = [artifact("burn", fresh=True), artifact("cell", "bin")]
    stand_in(f"print({chr(10).join(lines)!r})\n")
    said = []
    project = Project()
    project.write("fn main() {}", "i32")
    project.build(lambda stream, text: said.append(text))
    assert said == []


@needs_scripts
def test_without_a_network_it_says_how_crates_come_here(stand_in):
    stand_in(
        "print('    Updating crates.io index', file=sys.stderr)\n"
        "print('error: failed to download from `https://x`', file=sys.stderr)\n"
        "sys.exit(101)\n"
    )
    with pytest.raises(RustError) as caught:
        run("let x = 1;")
    text = str(caught.value)
    assert text.startswith("%%rust: the crates of Burn cannot be downloaded\n")
    assert "cargo vendor --locked" in caught.value.cure
    assert "BURNBOOK_CRATES=" in caught.value.cure
    assert "Updating" not in text
    assert "error: failed to download" in text


@needs_scripts
def test_a_folder_of_crates_takes_the_place_of_the_network(
    stand_in, tmp_path, monkeypatch
):
    stand_in("sys.exit('--offline' not in sys.argv)\n")
    with pytest.raises(RustError, match="no vendored crates of Burn in"):
        run("let x = 1;", crates=str(tmp_path))
    crates = tmp_path / "some crates"
    (crates / "burn-0.15.0").mkdir(parents=True)
    (crates / "burn-0.15.0/Cargo.toml").touch()
    monkeypatch.setenv("BURNBOOK_CRATES", str(crates))
    project = Project()
    project.write("fn main() {}", "i32")
    settings = (project.folder / ".cargo/config.toml").read_text(encoding="utf-8")
    assert str(crates) in settings
    assert project.build(lambda *_: None) == (None, [])
    monkeypatch.delenv("BURNBOOK_CRATES")
    Project().write("fn main() {}", "i32")
    assert not (project.folder / ".cargo/config.toml").exists()


def test_files_that_stay_the_same_are_not_written_again(tmp_path):
    project = Project(folder=tmp_path)
    project.write("fn main() {}", "i32")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    project.write("fn main() { }", "i32")
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    changed = {path.name for path in before if before[path] != after[path]}
    assert changed <= {"cell.rs"}
    assert (tmp_path / "src/cell.rs").read_text() == "fn main() { }"


def test_two_notebooks_take_turns(tmp_path):
    said, order = [], []
    first, second = Project(folder=tmp_path), Project(folder=tmp_path)

    def other() -> None:
        with second.locked(lambda _, text: said.append(text)):
            order.append("second")

    with first.locked(lambda _, text: said.append(text)):
        waiting = threading.Thread(target=other)
        waiting.start()
        while not said:
            time.sleep(0.01)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]
    assert said == ["Another notebook is compiling; its turn first.\n"]


# A process, its lines, its end.

SPEAKS = """
import sys
print("out", flush=True)
print("err", file=sys.stderr)
sys.exit(3)
"""
HAS_A_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_process_gives_its_lines_and_its_exit_code():
    running = Running([sys.executable, "-c", SPEAKS])
    assert sorted(running) == [("stderr", "err"), ("stdout", "out")]
    assert running.code == 3


@pytest.mark.skipif(os.name == "nt", reason="kill(pid, 0) asks nothing on Windows")
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_a_process_and_what_it_started():
    """As the kernel's interrupt does: KeyboardInterrupt in the main thread."""
    running = Running([sys.executable, "-c", HAS_A_CHILD])
    pids = []

    def interrupt_when_it_runs() -> None:
        while not pids:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt_when_it_runs).start()
    with pytest.raises(KeyboardInterrupt):
        note(running, pids)
    assert running.code is None
    ended = time.monotonic() + 60
    while _lives(pids[0]):
        assert time.monotonic() < ended, "the child still runs"
        time.sleep(0.01)


def note(running: Running, pids: list[int]) -> None:
    """Take down the children that a process tells of, as it does."""
    for _, line in running:
        pids.append(int(line))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat_file = Path(f"/proc/{pid}/stat")
    try:  # a zombie has ended, though nobody has asked for its exit code
        return stat_file.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc").is_dir()
