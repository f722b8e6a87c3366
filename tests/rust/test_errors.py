"""What rustc and Burn say is shown at the cell's own lines."""

import pytest

from burnbook.rust import RustError
from burnbook.rust.errors import Layout, does_not_compile, panicked

LAYOUT = Layout(lines=4, outputs=["y", "z"])
PANIC = """\
thread 'main' (12) panicked at /home/me/burn-tensor-0.15.0/src/tensor/check.rs:9:5:
=== Tensor Operation Error ===
  Operation: 'Matmul'

stack backtrace:
   0: __rustc::rust_begin_unwind
             at /rustc/59807616e1fa/library/std/src/panicking.rs:689:5
   1: burn_tensor::tensor::api::numeric::matmul
             at /home/me/burn-tensor-0.15.0/src/tensor/api/float.rs:214:9
   2: cell::forward
             at ./src/cell.rs:3:10
   3: cell::main
             at ./src/cell.rs:7:1
note: Some details are omitted"""


def message(line, text="mismatched types", code="E0308", level="error"):
    span = {"is_primary": True, "file_name": "src/cell.rs", "line_start": line}
    shown = (
        f"{level}[{code}]: {text}\n --> src/cell.rs:{line}:5\n  |\n{line} | code\n\n"
    )
    return {
        "level": level, "message": text, "code": {"code": code}, "spans": [span],
        "rendered": f"\x1b[1m{shown}\x1b[0m",
    }  # fmt: skip


def test_errors_are_shown_in_the_order_of_the_lines():
    error = does_not_compile([message(4), message(2, "no such value")], LAYOUT)
    assert str(error) == (
        "%%rust: the cell does not compile: 2 errors, lines 2, 4\n\n"
        "error[E0308]: no such value\n --> cell:2:5\n  |\n2 | code\n\n"
        "error[E0308]: mismatched types\n --> cell:4:5\n  |\n4 | code"
    )
    one = does_not_compile([message(3)], LAYOUT)
    assert str(one).startswith("%%rust: the cell does not compile: 1 error, line 3\n")


def test_in_a_notebook_the_message_stands_alone_and_has_no_colors():
    """JupyterLab would show them on red."""
    colored = (
        "\x1b[1m\x1b[38;5;9merror[E0308]\x1b[0m\x1b[1m: no\x1b[0m \x1b[92m+\x1b[0m"
    )
    error = does_not_compile([message(3) | {"rendered": colored}], LAYOUT)
    shown = "\n".join(error._render_traceback_())
    assert "\x1b[1merror[E0308]\x1b[0m\x1b[1m: no\x1b[0m +\x1b[0m" in shown
    assert "Traceback" not in shown
    assert "magic" not in shown


@pytest.mark.parametrize(
    ("code", "first"),
    [
        ("E0425", "%%rust -o z: the cell has no variable z at its end"),
        ("E0382", "%%rust -o z: z was moved in the cell"),
        ("E0277", "%%rust -o z: z is neither a tensor nor a number"),
    ],
)
def test_a_wrong_output_is_explained(code, first):
    error = does_not_compile([message(6, code=code)], LAYOUT)
    assert str(error).splitlines()[0] == first
    assert ("try: use z.clone()" in str(error)) == (code == "E0382")


MOVED = """\
error[E0382]: use of moved value: `x`
 --> src/cell.rs:3:13
  |
1 | mod burnbook; fn main() { let x = crate::burnbook::input("x"...
  |                               - move occurs because `x` has type `Tensor`
2 | let y = x * 2.0;
  |         ------- `x` moved due to usage in operator
3 | let z = y + x;
  |             ^ value used here after move
  |
note: calling this operator moves the left-hand side
 --> /rustc/5980/library/core/src/ops/arith.rs:91:11
   |
91 |     fn add(self);
   |            ^^^^
help: consider cloning the value
  |
2 | let y = x.clone() * 2.0;
  |          ++++++++
"""
BARE = """\
error[E0308]: mismatched types
 --> src/cell.rs:2:1
  |
1 | mod burnbook; fn main() { let x = 3_i64;
  |                         - expected `()` because of default return type
2 | x
  | ^ expected `()`, found `i64`
"""


def test_lines_around_the_cell_are_not_shown_but_what_is_said_about_them():
    said = str(does_not_compile([message(3) | {"rendered": MOVED}], LAYOUT))
    _, _, text = said.partition("\n\n")
    _, first, rest = MOVED.partition("1 | mod")
    _, _, rest = rest.partition("`Tensor`\n")
    before = MOVED[: MOVED.index(first)].replace("src/cell.rs", "cell")
    remark = "  = move occurs because `x` has type `Tensor`\n"
    assert text == (before + remark + rest).rstrip()


def test_a_value_at_the_end_of_a_cell_has_a_cure():
    error = does_not_compile([message(2) | {"rendered": BARE}], LAYOUT)
    assert "println!" in error.cure
    assert "mod burnbook" not in str(error)
    assert "default return type" not in str(error)
    assert str(error).endswith("2 | x\n  | ^ expected `()`, found `i64`")


def test_a_bracket_that_is_never_closed_is_not_sought_around_the_cell():
    text = "this file contains an unclosed delimiter"
    error = does_not_compile([message(7, text, "E0000")], LAYOUT)
    assert str(error) == (
        "%%rust: the cell does not compile: "
        "one of its brackets, { ( or [, is never closed"
    )


def test_a_missing_linker_has_a_cure():
    text = "error: linker `cc` not found\n"
    said = {"level": "error", "message": text, "spans": [], "rendered": text}
    error = does_not_compile([said], LAYOUT)
    assert "apt install gcc" in error.cure
    assert "linker `cc` not found" in str(error)


def test_a_panic_is_shown_at_the_line_that_led_to_it():
    error = panicked(PANIC.splitlines())
    assert isinstance(error, RustError)
    assert str(error) == (
        "%%rust: the program panicked at line 3\n\n"
        "=== Tensor Operation Error ===\n  Operation: 'Matmul'"
    )


def test_a_panic_in_the_cell_itself_has_its_line_at_once():
    said = ["thread 'main' panicked at src/cell.rs:5:9:", "index out of bounds"]
    assert str(panicked(said)) == (
        "%%rust: the program panicked at line 5\n\nindex out of bounds"
    )
    assert panicked(["a line", "another"]) is None
