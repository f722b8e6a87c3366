"""What goes wrong in a cell of Rust, at the cell's own lines."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from burnbook.core.errors import BurnbookError, Fact

WHERE = "%%rust"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
COLOR = re.compile(r"\x1b\[[0-9;]*[2-9;][0-9;]*m")  # neither plain (0) nor bold (1)
PANIC = re.compile(r"thread '.*' (?:\(\d+\) )?panicked at (.*):(\d+):\d+:$")
AFTER_PANIC = ("stack backtrace:", "note: run with", "note: Some details")
END = re.compile(r"\s*((?:\x1b\[[0-9;]*m)*)\s*\Z")
BRACKETS = {  # their places would lie in the lines around the cell
    "unclosed delimiter": "one of its brackets, { ( or [, is never closed",
    "unexpected closing delimiter": "it has a closing bracket too many",
}
IN_CELL = re.compile(r"src[/\\]cell\.rs:(\d+)")
NUMBERED = re.compile(r"\s*(\d+) [|+~-]")  # a line of code in a message
BESIDE = re.compile(r"\s*\|")  # what stands below such a line
PLACE = re.compile(r"\s*(?:-->|:::) ")
NO_VALUE = "expected `()` because of default return type"
SHOW = 'println!("{}", …) shows a value, and a ; behind it drops it'


class RustError(BurnbookError, RuntimeError):
    """A cell of Rust cannot be compiled or run; `text` is what rustc or Burn says."""

    def __init__(
        self,
        where: str,
        what: str = "",
        facts: Iterable[Fact] = (),
        cure: str | None = None,
        text: str = "",
    ) -> None:
        super().__init__(where, what, facts, cure)
        self.text = text

    def __str__(self) -> str:
        said = ANSI.sub("", self.text).rstrip()
        return f"{super().__str__()}\n\n{said}" if said else super().__str__()

    def _render_traceback_(self) -> list[str]:
        """The message alone, in bold where rustc has it.

        Why: the lines of Python say nothing about Rust, and JupyterLab shows rustc's
        colors on red, where in one of its themes they cannot be read.
        """
        first, *rest = super().__str__().splitlines()
        colored = [f"\x1b[31m{type(self).__name__}\x1b[0m: {first}", *rest]
        return [
            *colored,
            *(["", COLOR.sub("", self.text).rstrip()] if self.text else []),
        ]


class Interrupted(KeyboardInterrupt):
    """The kernel was interrupted while a cell was compiled or ran."""

    def _render_traceback_(self) -> list[str]:
        """One line: where cargo was waited for says nothing about the cell."""
        return [f"KeyboardInterrupt: {WHERE}: interrupted, and ended"]


@dataclass(frozen=True)
class Layout:
    """Which lines of the compiled file are the cell's, and which are its outputs'.

    lines: the last line of the cell; the first is 2, since `%%rust` is line 1.
    """

    lines: int
    outputs: Sequence[str] = ()

    def output_at(self, line: int) -> str | None:
        """The output that a line after the cell hands over."""
        place = line - self.lines - 1
        return self.outputs[place] if 0 <= place < len(self.outputs) else None


def does_not_compile(messages: Sequence[dict[str, Any]], layout: Layout) -> RustError:
    """The error for what rustc says, a list of the `message`s of cargo's JSON."""
    errors = [m for m in messages if m.get("level") == "error" and m.get("spans")]
    for message in errors:
        name = layout.output_at(line_of(message))
        if name is not None:
            return _wrong_output(name, message, layout)
    others = [m for m in messages if m.get("level") == "error"]
    for message in errors:
        for part, what in BRACKETS.items():
            if part in message["message"] and line_of(message) > layout.lines:
                return RustError(WHERE, f"the cell does not compile: {what}")
    shown = sorted(errors or others, key=line_of)
    text = "\n".join(rendered(m, layout) for m in shown)
    lines = sorted({line_of(m) for m in errors if 1 < line_of(m) <= layout.lines})
    count = f"{len(errors)} errors" if len(errors) > 1 else "1 error"
    places = f", line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"
    what = f"the cell does not compile: {count}{places if lines else ''}"
    cure = None
    if re.search(r"linker `?\w+`? not found", ANSI.sub("", text)):
        cure = "a linker, for instance: apt install gcc"
    elif any(NO_VALUE in (m.get("rendered") or "") for m in errors):
        cure = SHOW
    return RustError(WHERE, what, cure=cure, text=text)


def line_of(message: dict[str, Any]) -> int:
    """The line of the cell that a message of rustc is about, 0 if of no line there."""
    for span in message.get("spans", []):
        if span["is_primary"] and span["file_name"].endswith("cell.rs"):
            return int(span["line_start"])
    return 0


def rendered(message: dict[str, Any], layout: Layout) -> str:
    """A message as rustc prints it, with the place in the cell."""
    text = message.get("rendered") or message["message"]
    text = _without_ours(IN_CELL.sub(r"cell:\1", text), layout)
    return END.sub(r"\1\n", text, count=1)


def _without_ours(text: str, layout: Layout) -> str:
    """A message without the code around the cell, which nobody has written.

    What rustc says about it stays, as a remark: where an input was moved, for instance.
    """
    lines: list[str] = []
    elsewhere = ours = False  # in a file of Burn's; at a line that is not of the cell
    for line in text.splitlines():
        plain = ANSI.sub("", line)
        numbered = NUMBERED.match(plain)
        if numbered:
            ours = not (elsewhere or 1 < int(numbered[1]) <= layout.lines)
        elif not BESIDE.match(plain):
            ours = False
            elsewhere = bool(PLACE.match(plain)) and " cell:" not in plain
        remark = "" if numbered else plain.strip(" |-^~+_")
        if not ours:
            lines.append(line)
        elif remark and remark != NO_VALUE:
            lines.append(f"  = {remark}")
    return "\n".join(lines)


def _wrong_output(name: str, message: dict[str, Any], layout: Layout) -> RustError:
    code = (message.get("code") or {}).get("code")
    where = f"{WHERE} -o {name}"
    if code == "E0425":
        return RustError(where, f"the cell has no variable {name} at its end")
    if code in ("E0382", "E0505"):
        cure = f"use {name}.clone() where it is consumed"
        text = rendered(message, layout)
        return RustError(where, f"{name} was moved in the cell", cure=cure, text=text)
    what = f"{name} is neither a tensor nor a number"
    return RustError(where, what, text=rendered(message, layout))


def panicked(lines: Sequence[str]) -> RustError | None:
    """The error for what a program wrote when it panicked; None if it did not.

    lines: from its stderr, run with RUST_BACKTRACE=1.
    """
    for start, line in enumerate(lines):
        found = PANIC.match(line)
        if found is None:
            continue
        said: list[str] = []
        for after in lines[start + 1 :]:
            if after.startswith(AFTER_PANIC):
                break
            said.append(after)
        place = _place(f"{found[1]}:{found[2]}", lines[start:])
        return RustError(WHERE, f"the program panicked{place}", text="\n".join(said))
    return None


def _place(panic: str, lines: Sequence[str]) -> str:
    """The line of the cell: the innermost of the backtrace that lies there."""
    for text in (panic, *lines):
        found = IN_CELL.search(text.replace("\\", "/"))
        if found:
            return f" at line {found[1]}"
    return ""
