"""`%%rust`: one cell goes to cargo, and what it prints and gives comes back."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from burnbook.backend import Numpy
from burnbook.core.errors import Fact
from burnbook.rust import cell, values
from burnbook.rust.cargo import Project, Running, Say, cargo
from burnbook.rust.errors import (
    ANSI,
    PANIC,
    WHERE,
    Interrupted,
    RustError,
    does_not_compile,
    line_of,
    panicked,
    rendered,
)
from burnbook.rust.values import Value


class Shell(Protocol):
    """What is used of IPython's shell."""

    user_ns: dict[str, Any]

    def push(self, variables: dict[str, Any]) -> None:
        """Set variables of the notebook."""

    def register_magic_function(
        self, func: Callable[..., Any], magic_kind: str, magic_name: str
    ) -> None:
        """Make a function callable as `%name` or `%%name`."""


def load_ipython_extension(shell: Shell) -> None:
    """What `%load_ext burnbook.rust` calls: from now on there is `%%rust`."""

    def rust(line: str, cell_text: str) -> None:
        given = cell.parse(line)
        inputs = cell.look_up(given.inputs, shell.user_ns)
        options: dict[str, Any] = {
            "optimized": given.optimized,
            "crates": given.crates,
        }
        try:
            found = run(cell_text, inputs, given.outputs, **options)
        except KeyboardInterrupt:
            raise Interrupted from None
        if found:
            shell.push(found)

    rust.__doc__ = sys.modules["burnbook.rust"].__doc__
    shell.register_magic_function(rust, "cell", "rust")


def run(
    code: str,
    inputs: Mapping[str, object] | None = None,
    outputs: Sequence[str] = (),
    *,
    optimized: bool = False,
    crates: str | None = None,
    say: Say | None = None,
) -> dict[str, Value]:
    """Compile a cell of Rust with Burn 0.15 and run it; returns its outputs.

    inputs: tensors and numbers, by the names that the cell uses. outputs: variables of
    the cell, tensors or numbers. optimized: compile the cell for speed, which takes
    longer. crates: a folder of vendored crates, where crates.io cannot be reached.
    say: called with what is printed (the stream, the text); by default it is printed
    here. Tensors come back on the backend of the inputs, or on `Numpy()`.

    Raises:
        RustError: there is no cargo, a value cannot go over, the cell does not compile,
            or it panicked.
    """
    inputs, say = inputs or {}, say or _print
    cargo()  # the first thing to know
    device = values.device_of(inputs)
    with tempfile.TemporaryDirectory(prefix="burnbook-rust-") as folder:
        place = Path(folder)
        given = values.give(inputs, place)
        program = cell.program(code, given, outputs)
        project = Project(crates)
        with project.locked(say):
            project.write(program.text, values.backend_in_rust(device))
            built, messages = project.build(say, optimized)
            if built is None:
                raise does_not_compile(messages, program.layout)
            binary = place / f"cell{built.suffix}"  # where no other cell overwrites it
            shutil.copy2(built, binary)
        _warn(messages, program, say)
        _run(binary, place, say)
        left = values.unasked(outputs, place)
        if left:
            facts: list[Fact] = [("not given", ", ".join(left))]
            raise RustError(f"{WHERE} -o", "the cell returned before its end", facts)
        return values.take(outputs, place, device or Numpy())


def _warn(messages: Sequence[dict[str, Any]], program: cell.Program, say: Say) -> None:
    """Show rustc's warnings about the cell, and none about the lines around it."""
    for message in messages:
        if 1 < line_of(message) <= program.layout.lines:
            say("stderr", ANSI.sub("", rendered(message, program.layout)) + "\n")


def _run(binary: Path, place: Path, say: Say) -> None:
    """Run a cell's program where the notebook runs; prints come as they are made."""
    running = Running(
        [binary], None, {"BURNBOOK_CELL": str(place), "RUST_BACKTRACE": "1"}
    )
    panic: list[str] = []
    blank = ""  # lines before the next one: a panic begins with one
    for stream, line in running:
        if stream == "stdout":
            say(stream, f"{line}\n")
        elif panic or PANIC.match(line):
            panic.append(line)
        elif line:
            say(stream, f"{blank}{line}\n")
            blank = ""
        else:
            blank += "\n"
    if running.code == 0:
        for line in panic:  # of a thread that nobody waited for
            say("stderr", f"{line}\n")
        return
    error = panicked(panic)
    if error is not None:
        raise error
    code = running.code or 0
    ended = f"exit code {code}" if code > 0 else f"signal {-code}"
    raise RustError(WHERE, f"the program ended with {ended}")


def _print(stream: str, text: str) -> None:
    """Print on the notebook's page; progress only where somebody watches."""
    if stream == "progress" and os.environ.get("BURNBOOK_DISPLAY") == "static":
        return
    target = sys.stderr if stream == "stderr" else sys.stdout
    target.write(text)
    target.flush()
