"""`%%rust`, in a shell that stands in for IPython's, with real cargo where it is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.rust import RustError, load_ipython_extension, run
from burnbook.tensor import Bool, Int, Tensor
from tests.support.cargo import folder_of_crates

DEVICE = Numpy()


class Shell:
    """What `%%rust` uses of IPython."""

    def __init__(self, **variables):
        self.user_ns = variables
        self.magics = {}

    def push(self, variables):
        self.user_ns |= variables

    def register_magic_function(self, func, magic_kind, magic_name):
        self.magics[magic_kind, magic_name] = func

    def rust(self, line, cell):
        self.magics["cell", "rust"](line, cell)


def shell_with(**variables) -> Shell:
    shell = Shell(**variables)
    load_ipython_extension(shell)
    return shell


def test_loading_the_extension_registers_one_magic():
    shell = shell_with()
    assert list(shell.magics) == [("cell", "rust")]
    assert "-i x -o y" in shell.magics["cell", "rust"].__doc__


def test_importing_it_does_not_import_ipython():
    code = "import burnbook.rust, sys; sys.exit('IPython' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_wrong_names_are_noticed_before_anything_is_compiled(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RustError, match="no variable wieght in the notebook"):
        shell_with(weight=1).rust("-i wieght", "")


def test_a_notebook_without_cargo_gets_one_line(monkeypatch):
    interactive = pytest.importorskip(
        "IPython.core.interactiveshell", reason="the lines of IPython need IPython"
    )
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CARGO_HOME", "nowhere")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)  # another one warns
    shell = interactive.InteractiveShell()
    shell.run_line_magic("load_ext", "burnbook.rust")
    with pytest.raises(RustError) as caught:
        shell.run_cell_magic("rust", "", "let x = 1;")
    (line,) = caught.value._render_traceback_()
    assert "install it from https://rustup.rs" in line


def test_an_interrupt_is_one_line(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("burnbook.rust.magic.run", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        shell_with().rust("", "loop {}")
    (line,) = caught.value._render_traceback_()
    assert "interrupted" in line


# With cargo.

CHAPTER = Path(__file__).resolve().parents[2] / "notebooks/src/02_getting_started.py"
INVITED = re.compile(r"# ```rust\n# %%rust (.*)\n((?:# .*\n)+?)# ```\n")


@pytest.fixture
def cargo(monkeypatch):
    """Real cargo, with the crates and the builds that all tests share."""
    place = folder_of_crates()
    monkeypatch.setenv("BURNBOOK_CACHE", str(place / "cells of tests"))
    monkeypatch.setenv("BURNBOOK_CRATES", str(place / "crates"))
    monkeypatch.setenv("CARGO_TARGET_DIR", str(place / "target"))


def floats(*rows):
    return Tensor[2].from_floats([list(row) for row in rows], DEVICE)


def refused(code, *args, **named) -> str:
    with pytest.raises(RustError) as caught:
        run(code, *args, **named)
    return str(caught.value)


@pytest.mark.slow
def test_tensors_go_over_and_come_back(cargo, capsys):
    x = floats([1.0, 2.0], [3.0, 4.0])
    shell = shell_with(
        x=x.transpose(),
        i=Tensor[1, Int].from_ints([3, -4], DEVICE),
        b=Tensor[1, Bool].from_data([True, False], DEVICE),
        n=3,
        share=0.1,
        yes=True,
    )
    shell.rust(
        "-i x, i, b n -i share yes -o y i c total count half no",
        "let y = x.clone().matmul(x.transpose());\n"
        "let i = i * n; let c = b.bool_not();\n"
        "let total = y.clone().sum().into_scalar();\n"
        "let count = y.dims()[0];\n"
        "let half = share * 5.0; let no = !yes;\n"
        'println!("{}", y.to_data());\n'
        'eprintln!("aside");\n',
    )
    found = shell.user_ns
    expected = x.transpose() @ x
    assert np.array_equal(np.asarray(found["y"]), np.asarray(expected))
    assert found["y"].device() is DEVICE
    assert found["i"].to_data().to_list() == [9, -12]
    assert found["c"].to_data().to_list() == [False, True]
    assert found["total"] == expected.sum().into_scalar()
    assert (found["count"], found["half"], found["no"]) == (2, 0.1 * 5.0, False)
    out, err = capsys.readouterr()
    assert out == f"{expected.to_data()}\n"
    assert err == "aside\n"


@pytest.mark.slow
def test_the_cell_that_chapter_2_invites_to_gives_what_the_chapter_has(cargo, capsys):
    (line, lines) = INVITED.findall(CHAPTER.read_text(encoding="utf-8"))[0]
    shell = shell_with(tensor_1=floats([2.0, 3.0], [4.0, 5.0]))
    shell.rust(line, re.sub("(?m)^# ", "", lines))
    expected = shell.user_ns["tensor_1"] + 1.0
    assert shell.user_ns["total"].to_data().to_list() == expected.to_data().to_list()
    assert "[[3.0, 4.0]," in capsys.readouterr().out


@pytest.mark.slow
def test_gradients_in_a_cell_are_ours(cargo):
    x = Tensor[1].from_floats([0.5, -1.0, 2.0], Autodiff(DEVICE)).require_grad()
    code = (
        "let grads = (x.clone().tanh() * x.clone()).sum().backward();\n"
        "let g = x.grad(&grads).unwrap();\n"
    )
    found = run(code, {"x": x}, ["g"])["g"]
    ours = x.grad((x.tanh() * x).sum().backward())
    assert np.allclose(np.asarray(found), np.asarray(ours), rtol=1e-6, atol=0)


@pytest.mark.slow
def test_structs_functions_and_uses_stand_in_a_cell(cargo, capsys):
    run(
        "use burn::nn::{Linear, LinearConfig};\n"
        "#[derive(Module, Debug)]\n"
        "struct Net<B: Backend> { layer: Linear<B> }\n"
        "#[derive(Config)]\n"
        "struct NetConfig { #[config(default = 3)] out: usize }\n"
        "impl NetConfig {\n"
        "    fn init<B: Backend>(&self, device: &B::Device) -> Net<B> {\n"
        "        Net { layer: LinearConfig::new(2, self.out).init(device) }\n"
        "    }\n"
        "}\n"
        "fn double(x: f32) -> f32 { 2.0 * x }\n"
        "let net = NetConfig::new().init::<B>(&Default::default());\n"
        'println!("{} {}", net.num_params(), double(1.5));\n'
    )
    assert capsys.readouterr().out == "9 3\n"


@pytest.mark.slow
def test_a_cell_with_its_own_main_runs_as_it_is(cargo, capsys):
    run(
        "#![allow(unused_imports)]\n"
        "use burn::backend::NdArray;\n"
        "use burn::prelude::*;\n"
        "fn main() {\n"
        "    let x = Tensor::<NdArray, 1>::ones([2], &Default::default());\n"
        '    println!("{:?}", x.dims());\n'
        "}\n"
    )
    assert capsys.readouterr().out == "[2]\n"


@pytest.mark.slow
def test_the_compilers_errors_name_the_lines_of_the_cell(cargo):
    text = refused("let a: i32 = 1;\n\nlet b: String = a;\nlet d = c;")
    first, _, *rest = text.splitlines()
    assert first == "%%rust: the cell does not compile: 2 errors, lines 4, 5"
    assert " --> cell:4:17" in rest
    assert "4 | let b: String = a;" in rest
    assert "5 | let d = c;" in rest
    assert "unclosed" not in text
    assert "is never closed" in refused("let y = {\n  1;")
    assert "a closing bracket too many" in refused("let y = 1; }")


@pytest.mark.slow
def test_errors_about_inputs_show_no_code_that_nobody_wrote(cargo):
    x = {"x": floats([1.0])}
    for code in ("let y = x * 2.0;\nlet z = y + x;", "x", "x = x + 1.0;"):
        text = refused(code, x)
        assert "burnbook" not in text, text
    assert "try: println!" in refused("x", x)
    assert run("let y = x.clone() + 1.0\n", x, ["y"])["y"].into_scalar() == 2.0


@pytest.mark.slow
def test_wrong_outputs_are_explained(cargo):
    x = {"x": floats([1.0])}
    assert refused("let yy = x;", x, ["y"]) == (
        "%%rust -o y: the cell has no variable y at its end"
    )
    moved = refused("let y = x + 1;\nlet z = y;\ndrop(z);", x, ["y"])
    assert moved.startswith(
        "%%rust -o y: y was moved in the cell\n  try: use y.clone()"
    )
    assert " --> cell:" in moved
    wrong = refused('let y = "text";', {}, ["y"])
    assert wrong.startswith("%%rust -o y: y is neither a tensor nor a number\n")
    early = refused("if x.dims()[0] == 1 { return; }", x, ["x"])
    assert early.startswith("%%rust -o: the cell returned before its end")


@pytest.mark.slow
def test_a_panic_is_an_error_with_burns_message(cargo, capsys):
    text = refused(
        "let w = x.clone();\n\n"
        'println!("before");\n'
        "let _z = x.matmul(Tensor::ones([3, 2], &w.device()));",
        {"x": floats([1.0, 2.0])},
    )
    assert text.startswith(
        "%%rust: the program panicked at line 5\n\n=== Tensor Operation Error ==="
    )
    assert "Operation: 'Matmul'" in text
    assert "backtrace" not in text
    out, err = capsys.readouterr()
    assert out == "before\n"
    assert err == ""
    assert refused("std::process::exit(3);") == (
        "%%rust: the program ended with exit code 3"
    )


@pytest.mark.slow
def test_warnings_about_the_cell_are_shown(cargo, capsys):
    run("let unused = 1;", {"other": 3})
    said = capsys.readouterr().err
    assert " --> cell:2:5" in said
    assert "other" not in said  # that line is ours


@pytest.mark.slow
def test_a_cell_runs_where_the_notebook_is(cargo, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("note.txt").write_text("from the folder")
    run('print!("{}", std::fs::read_to_string("note.txt").unwrap());')
    assert capsys.readouterr().out == "from the folder\n"


@pytest.mark.slow
def test_the_elements_keep_their_width(cargo):
    x = Tensor[1].from_floats([1.0], Numpy(float="f64", int="i32"))
    found = run("let y = x / 3.0; let k = y.clone().int();", {"x": x}, ["y", "k"])
    assert found["y"].into_scalar() == 1.0 / 3.0
    assert found["k"].to_data().dtype == "i32"
    assert os.environ["BURNBOOK_CACHE"].endswith("cells of tests")  # with spaces
