"""Moves the solutions of a chapter behind its summary, as printed books do.

In a source each solution stands below its exercise, where an author wants it. A reader
who looks at the question must not see it, in any viewer: JupyterLab prints the first
line of a folded cell, GitHub and nbconvert unfold all of them. So the page gets them
at its end, folded, each with a first line that names its exercise and no more.
"""

import re

import nbformat
from nbformat import NotebookNode

NUMBER = re.compile(r'check\("([\d.]+)"')
WORDS = {
    "en": (
        "## Solutions\n\nOne cell for each exercise; a folded one opens with a click "
        "on its dots. Try first.",
        "solution",
    ),
    "zh": (
        "## 答案\n\n每道练习一个单元格，点击折叠单元格中的圆点即可展开。请先自己动手。",
        "答案",
    ),
}


def solutions_last(notebook: NotebookNode, language: str = "en") -> NotebookNode:
    """Fold the solutions, name them and put them at the end, in place; return it."""
    heading, word = WORDS[language]
    solutions = [c for c in notebook.cells if "solution" in c.metadata.get("tags", [])]
    if not solutions:
        return notebook
    others = [cell for cell in notebook.cells if cell not in solutions]
    for cell in solutions:
        cell.metadata["jupyter"] = {"source_hidden": True}
        number = NUMBER.search(cell.source)
        name = f"# {word} {number.group(1)}" if number else f"# {word}"
        cell.source = f"{name}\n{cell.source}"
    title = nbformat.v4.new_markdown_cell(heading, metadata={"tags": ["solutions"]})
    notebook.cells = [*others, title, *solutions]
    return notebook
