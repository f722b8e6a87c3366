"""Cargo, started for a cell: the project in the cache folder, the build, the run."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from burnbook.core.files import cache_dir, lock_file
from burnbook.rust.errors import WHERE, RustError

SWITCH = "BURNBOOK_CRATES"  # a folder of vendored crates, instead of crates.io
SOURCES = Path(__file__).with_name("project")
INSTALL = (
    "Rust is not installed (there is no cargo on the PATH or in {}): "
    "install it from https://rustup.rs, then run the cell again"
)
NO_TOOLCHAIN = "no default is configured"  # rustup says so for a cargo without Rust
CHOOSE = (
    "rustup is there, but no Rust is installed with it: run `rustup default stable` in "
    "a terminal, then run the cell again"
)
OFFLINE = (
    "failed to download", "could not resolve host", "download of config.json failed",
    "spurious network error", "network failure", "failed to get",
)  # fmt: skip
VENDOR = (
    "`cargo vendor --locked FOLDER` in {} on a machine with a network, then "
    f"{WHERE} --crates FOLDER here, or {SWITCH}=FOLDER"
)
FIRST = (
    "Burn 0.15 and the crates it needs ({}) are compiled, once. That takes one to five "
    "minutes; later cells take seconds. If you interrupt it or reload the page, run "
    "the cell again: what is compiled is kept.\n"
)
DOWNLOAD = "Burn 0.15 and the crates it needs are downloaded, once.\n"
NOT_SAID = ("Compiling", "Finished", "Downloaded", "Downloading", "Blocking", "Locking")
GRACE = 2.0  # seconds between asking a process to end and ending it

Say = Callable[[str, str], None]  # the stream ("stdout", "stderr") and a line


def cargo() -> str:
    """Where cargo is: on the PATH, or where rustup puts it.

    Why: a notebook server that was started before Rust was installed, or not from a
    shell, does not have rustup's folder on its PATH.

    Raises:
        RustError: it is not there; one line says what to install.
    """
    place = os.path.join(os.environ.get("CARGO_HOME") or "~/.cargo", "bin")
    found = shutil.which("cargo") or shutil.which(
        "cargo", path=os.path.expanduser(place)
    )
    if found is None:
        raise RustError(WHERE, INSTALL.format(place))
    return found


class Project:
    """The Cargo project of all cells, below the user's cache folder.

    crates: a folder of vendored crates; by default BURNBOOK_CRATES, or crates.io.
    """

    def __init__(self, crates: str | None = None, folder: Path | None = None) -> None:
        self.folder = folder or cache_dir() / "rust"
        self.crates = crates or os.environ.get(SWITCH) or None

    def write(self, text: str, backend: str) -> None:
        """Write the file of a cell, and what it is compiled with.

        backend: the type that the cell calls B.

        Raises:
            RustError: the folder of crates is none.
        """
        (self.folder / "src").mkdir(parents=True, exist_ok=True)
        for name in ("Cargo.toml", "Cargo.lock"):
            _write(self.folder / name, (SOURCES / name).read_text(encoding="utf-8"))
        ours = (SOURCES / "burnbook.rs").read_text(encoding="utf-8")
        _write(self.folder / "src/burnbook.rs", f"{ours}\npub type B = {backend};\n")
        _write(self.folder / "src/cell.rs", text)
        settings = self.folder / ".cargo/config.toml"
        if self.crates is None:
            settings.unlink(missing_ok=True)
            return
        place = Path(self.crates).expanduser().resolve()
        if not any(place.glob("burn*/Cargo.toml")):
            what = f"there are no vendored crates of Burn in {place}"
            raise RustError(f"{WHERE} --crates", what, cure=VENDOR.format(self.folder))
        settings.parent.mkdir(exist_ok=True)
        replaced = '[source.crates-io]\nreplace-with = "vendored"\n'
        vendored = f"[source.vendored]\ndirectory = {json.dumps(str(place))}\n"
        _write(settings, replaced + vendored)

    @contextmanager
    def locked(self, say: Say) -> Generator[None, None, None]:
        """Keep the project for oneself, so that two notebooks never mix cells."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "cell.lock", "a+b") as file:
            waiting = False
            while lock_file(file.fileno()) is False:
                if not waiting:
                    say("progress", "Another notebook is compiling; its turn first.\n")
                waiting = True
                time.sleep(0.1)
            yield

    def build(
        self, say: Say, optimized: bool = False
    ) -> tuple[Path | None, list[dict[str, Any]]]:
        """Compile the cell; returns its program (None: errors) and rustc's messages.

        say: called with what a reader waits for, while the crates are compiled.
        optimized: the cell too, not only the crates; it takes longer and runs faster.

        Raises:
            RustError: cargo cannot download, or says something that is no cell's fault.
        """
        command = ["build", "--locked", "--bin", "cell"]
        command += ["--message-format=json-diagnostic-rendered-ansi"]
        command += ["--offline"] if self.crates else []
        progress = Progress(self, say)
        messages: list[dict[str, Any]] = []
        program: Path | None = None
        errors: list[str] = []
        level = {"CARGO_PROFILE_DEV_OPT_LEVEL": "2"} if optimized else {}
        running = self._started(command, level)
        for stream, line in running:
            if stream == "stderr":
                progress.hear(line)
                if not line.strip().startswith(NOT_SAID):
                    errors.append(line)
                continue
            with suppress(ValueError):
                entry = json.loads(line)
                if entry.get("reason") == "compiler-message":
                    if _is_of_cell(entry):
                        messages.append(entry["message"])
                elif entry.get("reason") == "compiler-artifact":
                    progress.note(entry)
                    if _is_of_cell(entry) and entry.get("executable"):
                        program = Path(entry["executable"])
        progress.end()
        failed = any(message.get("level") == "error" for message in messages)
        if running.code != 0 and not failed:
            raise _not_built(errors, self)
        return (program if running.code == 0 else None), messages

    def crate_names(self) -> list[str]:
        """The crates that are compiled on this machine, Burn among them."""
        command = ["tree", "--locked", "--edges", "normal,build"]
        command += ["--prefix", "none", "--format", "{p}"]
        command += ["--offline"] if self.crates else []
        running = self._started(command)
        lines = list(running)
        if running.code != 0:
            raise _not_built(
                [line for stream, line in lines if stream == "stderr"], self
            )
        names = {" ".join(x.split()[:2]) for stream, x in lines if stream == "stdout"}
        return sorted(name for name in names if name and not name.startswith("cell "))

    def _started(
        self, command: Sequence[str], more: Mapping[str, str] | None = None
    ) -> Running:
        """Cargo with a command, in the project's folder.

        Cargo's own folder comes last on the PATH, because rustc is there, too.
        """
        program = cargo()
        places = (os.environ.get("PATH"), os.path.dirname(program))
        path = os.pathsep.join(place for place in places if place)
        return Running([program, *command], self.folder, {"PATH": path, **(more or {})})


class Progress:
    """Says how far the crates are, if any has to be downloaded or compiled."""

    def __init__(self, project: Project, say: Say) -> None:
        self.project, self.say = project, say
        self.done: set[str] = set()
        self.total = 0
        self.start: float | None = None  # since when crates are compiled
        self.downloaded = 0

    def hear(self, line: str) -> None:
        """Cargo has said something, perhaps that a crate is downloaded."""
        if not line.strip().startswith("Downloaded "):
            return
        if not self.downloaded:
            self.say("progress", DOWNLOAD)
        self.downloaded += 1
        self.say("progress", f"\r{f'{self.downloaded} crates downloaded':<50}")

    def note(self, artifact: Mapping[str, Any]) -> None:
        """One more part of a crate is ready; `fresh` if it was before."""
        if _is_of_cell(artifact) or "custom-build" in artifact["target"]["kind"]:
            return
        self.done.add(str(artifact["package_id"]))
        if artifact["fresh"]:
            return
        if self.start is None:
            self.start = time.perf_counter()
            self.total = len(self.project.crate_names())
            start = "\n" if self.downloaded else ""
            self.say("progress", start + FIRST.format(self.total))
        text = f"{len(self.done)} of {self.total} crates: {artifact['target']['name']}"
        self.say("progress", f"\r{text:<50}")

    def end(self) -> None:
        """The build has ended."""
        if self.start is not None:
            seconds = time.perf_counter() - self.start
            text = f"{len(self.done)} crates compiled in {seconds:.0f} s"
            self.say("progress", f"\r{text:<50}\n")


class Running:
    """A process whose lines are read as they come; it ends when the reader does.

    `for stream, line in running` gives ("stdout" or "stderr", the line without its
    end); then `code` is the exit code. Whatever ends the loop, an interrupt of the
    kernel too, ends the process with everything that it started.
    """

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = list(command)
        self.folder = folder
        self.environment = {**os.environ, **(environment or {})}
        self.code: int | None = None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        lines: queue.Queue[tuple[str, str | None]] = queue.Queue()
        process = subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=os.name != "nt",
        )
        try:
            for name in ("stdout", "stderr"):
                pipe = getattr(process, name)
                threading.Thread(
                    target=_read, args=(name, pipe, lines), daemon=True
                ).start()
            still_open = 2
            while still_open:
                try:  # in pieces, because some systems do not interrupt a longer wait
                    stream, line = lines.get(timeout=0.1)
                except queue.Empty:
                    continue
                if line is None:
                    still_open -= 1
                else:
                    yield stream, line
            self.code = process.wait()
        finally:
            if self.code is None:
                end_all(process)


def _read(
    name: str, pipe: IO[bytes], lines: queue.Queue[tuple[str, str | None]]
) -> None:
    with pipe:
        for line in pipe:
            lines.put((name, line.decode("utf-8", "replace").rstrip("\r\n")))
    lines.put((name, None))


def end_all(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started (cargo: rustc and the linker)."""
    if os.name == "nt":
        command = ["taskkill", "/T", "/F", "/PID", str(process.pid)]
        subprocess.run(command, capture_output=True, check=False)
        process.wait()
        return
    for sent in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sent)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)


def _is_of_cell(entry: Mapping[str, Any]) -> bool:
    return entry.get("target", {}).get("name") == "cell"


def _write(path: Path, text: str) -> None:
    """Write a file unless it is so already: cargo looks at the time of files."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _not_built(errors: Sequence[str], project: Project) -> RustError:
    """The error for what cargo says when it does not come to the cell."""
    said = "\n".join(errors)
    if NO_TOOLCHAIN in said:
        return RustError(WHERE, CHOOSE)
    text = re.sub(r"^\s*Updating .*\n?", "", said, flags=re.MULTILINE)
    if not project.crates and any(word in text.lower() for word in OFFLINE):
        what = "the crates of Burn cannot be downloaded"
        return RustError(WHERE, what, cure=VENDOR.format(project.folder), text=text)
    return RustError(WHERE, "cargo cannot build the cell", text=text)
