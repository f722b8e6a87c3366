"""A cell of Rust: its arguments, its names, and the file that is compiled."""

import pytest

from burnbook.rust import RustError
from burnbook.rust.cell import Arguments, has_main, look_up, parse, program

CELL = 'let y = x + 1;\n\nprintln!("{y}");\n'


@pytest.mark.parametrize(
    ("line", "inputs", "outputs"),
    [
        ("", (), ()),
        ("-i x -o y", ("x",), ("y",)),
        ("-i x y -o z", ("x", "y"), ("z",)),
        ("-i x,y -i z", ("x", "y", "z"), ()),
        ("-i x, y -o 'a, b'", ("x", "y"), ("a", "b")),
        ('-i "x y"', None, None),
        ("-o x -i x x", ("x",), ("x",)),
        ("--input größe --output _y2", ("größe",), ("_y2",)),
    ],
)
def test_names_are_separated_by_spaces_or_commas(line, inputs, outputs):
    if inputs is None:
        with pytest.raises(RustError, match="'x y' is not the name of a variable"):
            parse(line)
    else:
        assert parse(line) == Arguments(inputs, outputs)


def test_a_folder_of_crates_may_have_spaces():
    assert parse('--crates "my crates"').crates == "my crates"
    assert parse("-O -i x").optimized


@pytest.mark.parametrize(
    ("line", "first", "cure"),
    [
        ("-i 3x", "%%rust -i: '3x' is not the name of a variable", None),
        ("-o a.b", "%%rust -o: 'a.b' is not the name of a variable", None),
        ("-i lambda", "%%rust -i: 'lambda' is not the name of a variable", None),
        ("-i match", "%%rust -i: match is a word of Rust, no name there", "match_"),
        ("-o _", "%%rust -o: _ is no name in Rust", None),
        ("-i", "%%rust: argument -i/--input: expected at least one argument", None),
        ("x", "%%rust: unrecognized arguments: x", None),
        ("--inputs x", "%%rust: unrecognized arguments: --inputs x", None),
        ("-i 'x", "%%rust: no closing quotation", None),
    ],
)
def test_a_wrong_argument_is_explained(line, first, cure):
    with pytest.raises(RustError) as caught:
        parse(line)
    assert str(caught.value).splitlines()[0] == first
    assert cure is None or cure in caught.value.cure


def test_an_unknown_variable_is_named_with_those_near_it():
    values = {"weights": 1, "x": 2}
    assert look_up(["x"], values) == {"x": 2}
    with pytest.raises(RustError) as caught:
        look_up(["x", "weight"], values)
    assert str(caught.value) == (
        "%%rust -i weight: there is no variable weight in the notebook\n"
        "  near it  weights\n"
        "  try: -i weights"
    )
    with pytest.raises(RustError, match="try: q = … in a cell before"):
        look_up(["q"], values)


def test_the_cells_lines_keep_their_numbers():
    """Line 1 of the page is `%%rust`."""
    made = program(CELL, {"x": "3_i64"}, ["y", "z"])
    lines = made.text.splitlines()
    assert lines[1:4] == CELL.splitlines()
    assert "fn main() { let x = 3_i64;" in lines[0]
    assert made.layout.lines == 4
    assert [made.layout.output_at(n) for n in range(1, 8)] == [
        None, None, None, None, "y", "z", None,
    ]  # fmt: skip
    assert '"y", &y' in lines[4]
    assert made.text.count("{") == made.text.count("}")


def test_a_cell_with_main_stands_as_it_is():
    code = "#![allow(unused)]\nfn main() {}\n"
    made = program(code)
    assert made.text.splitlines()[1:3] == code.splitlines()
    assert made.layout.lines == 3
    assert made.text.count("fn main") == 1
    for names in ({"inputs": {"x": "1"}}, {"outputs": ["x"]}):
        with pytest.raises(RustError, match="a cell with fn main has no variables"):
            program(code, **names)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("fn main() {}", True),
        ("struct A { x: i32 }\n\npub fn  main ( ) {\n}", True),
        ("async fn main() {}", True),
        ("let x = 1;", False),
        ("// fn main() {}\nlet x = 1;", False),
        ("/* fn main() {} */", False),
        ('let text = "fn main() {}";', False),
        ('let text = r#"a " fn main() {"#;', False),
        ("fn mainly() {}", False),
        ("mod inner { fn main() {} }", False),
        ("let c = '{';\nfn main() {}", True),
        ("fn f<'a>(x: &'a str, y: &'a str) {}\nfn main() {}", True),
        ('let a = "\\"{";\nfn main() {}', True),
    ],
)
def test_main_is_found_where_it_is_one(code, found):
    assert has_main(code) is found
