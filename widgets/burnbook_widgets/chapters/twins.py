"""Puts "The same in Rust" below a cell: the lines of a program that does the same.

A code cell with the tag `rust:NAME` gets a folded cell of text after it. Its lines
stand once, in the Cargo project `notebooks/rust`: the program is named like the chapter
(`src/bin/04_02_tensor.rs`), the lines stand between `// ANCHOR: NAME` and
`// ANCHOR_END: NAME`, as mdBook marks them. A name may mark several places (a struct
above, its use in `main`); they are shown one below the other. So what is shown is what
is compiled. A translation uses the program of the chapter it translates.
"""

import re
from pathlib import Path
from textwrap import dedent

import nbformat
from nbformat import NotebookNode

TAG = "rust:"
PROGRAMS = Path("rust/src/bin")
ANCHOR = re.compile(r"\s*// ANCHOR(?P<end>_END)?: (?P<name>[\w-]+)\s*")
SETUP = "setup"  # the twin with the `use` lines, which says where the rest is
WORDS = {
    "en": (
        "The same in Rust",
        "For readers who go on to Rust; the chapter does not need it. With these lines "
        "the parts further down compile, one after the other; in burnbook's repository "
        "`notebooks/{program}` is the whole program. How to run Rust in a cell: "
        "[chapter 2](02_getting_started.ipynb#A-cell-of-Rust).",
    ),
    "zh": (
        "用 Rust 写同样的内容",
        "写给想继续学 Rust 的读者，读本章不需要它。有了这几行，后面各段依次都能编译；"
        "完整的程序是 burnbook 仓库里的 `notebooks/{program}`。"
        "怎样在单元格里运行 Rust，"
        "见[第 2 章](../02_getting_started.ipynb#A-cell-of-Rust)（英文）。",
    ),
}
CELL = """<details><summary><b>🦀 {title}</b></summary>
{note}
```rust
{lines}
```

</details>"""


def program_of(source: Path) -> Path:
    """The Rust program of a chapter's source, which may be a translation."""
    sources = (folder for folder in source.parents if folder.name == "src")
    root = next(sources, source.parent)
    return root.parent / PROGRAMS / f"{source.stem}.rs"


def snippets(text: str) -> dict[str, str]:
    """What a program shows, by name, in the order in which the names first appear.

    Raises:
        ValueError: an anchor is closed that is not open, or left open.

    Example:
        >>> snippets("// ANCHOR: a\\nlet x = 1;\\n// ANCHOR_END: a\\n")
        {'a': 'let x = 1;'}
    """
    parts: dict[str, list[str]] = {}
    opened: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        found = ANCHOR.fullmatch(line)
        if found is None:
            for lines in opened.values():
                lines.append(line)
        elif found["end"]:
            if found["name"] not in opened:
                raise ValueError(f"line {number} closes {found['name']}, never opened")
            lines = opened.pop(found["name"])
            part = dedent("\n".join(lines)).strip("\n")
            parts.setdefault(found["name"], []).append(part)
        elif found["name"] in opened:
            raise ValueError(f"line {number} opens {found['name']} a second time")
        else:
            opened[found["name"]] = []
    if opened:
        raise ValueError(f"never closed: {', '.join(opened)}")
    return {name: "\n\n".join(some) for name, some in parts.items()}


def names(cell: NotebookNode) -> list[str]:
    """The twins that a cell asks for."""
    tags = cell.metadata.get("tags", [])
    return [tag.removeprefix(TAG) for tag in tags if tag.startswith(TAG)]


def with_twins(
    notebook: NotebookNode, program: Path, language: str = "en"
) -> NotebookNode:
    """Put each twin below its cell, in place; return the notebook.

    Raises:
        LookupError: a cell asks for a twin that the program does not have.
    """
    if not any(names(cell) for cell in notebook.cells):
        return notebook
    known = snippets(program.read_text(encoding="utf-8"))
    cells: list[NotebookNode] = []
    for cell in notebook.cells:
        cells.append(cell)
        for name in names(cell):
            if name not in known:
                where = "/".join(program.parts[-4:])
                raise LookupError(f"{where} has no // ANCHOR: {name}")
            title, about = WORDS[language]
            note = f"\n{about}\n" if name == SETUP else ""
            note = note.format(program=(PROGRAMS / program.name).as_posix())
            text = CELL.format(title=title, lines=known[name], note=note)
            tags = {"tags": ["rust"]}
            cells.append(nbformat.v4.new_markdown_cell(text, metadata=tags))
    notebook.cells = cells
    return notebook
