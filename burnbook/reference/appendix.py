"""The table of operations as pages: one for each section.

    operations("linalg")
    find("softmax")

A page is HTML without scripts that takes its colors from where it is shown; its plain
text says how many functions it has.
"""

from collections.abc import Iterable
from html import escape

from burnbook.core.errors import ConfigError
from burnbook.reference.table import HOMES, Row, rows

SECTIONS = {
    "basic": "Every kind: moving, slicing, joining",
    "numeric": "Float and Int: arithmetic, comparing, reducing, ordering",
    "float": "Float alone",
    "int": "Int alone",
    "bool": "Bool alone",
    "quantization": "Quantization",
    "autodiff": "Gradients",
    "activation": "Activation functions",
    "linalg": "Matrices and norms",
    "signal": "Signals",
    "grid": "Grids of coordinates",
}
HEADS = {  # and how much of the width each has, in percent
    "function": 27,
    "takes": 10,
    "shapes": 18,
    "gradient": 9,
    "Burn 0.15": 12,
    "newest Burn": 12,
    "PyTorch": 12,
}
KINDS = {"F": "Float", "I": "Int", "B": "Bool"}
LEFT = "text-align:left"  # JupyterLab turns tables to the right
_CODE = f"{LEFT};font-family:monospace"
_STYLES = (LEFT, LEFT, _CODE, LEFT, _CODE, _CODE, _CODE)


class Page:
    """Some rows of the table, to be looked at."""

    def __init__(self, title: str, found: Iterable[Row]):
        self.title = title
        self.rows = tuple(found)

    def __repr__(self) -> str:
        count = len(self.rows)
        return f"{self.title}: {count} function{'' if count == 1 else 's'}"

    def _repr_html_(self) -> str:
        return page_table(HEADS, map(_line, self.rows))


def page_table(heads: dict[str, int], lines: Iterable[str]) -> str:
    """A table as wide as the page; heads: with their widths, in percent."""
    shown = "".join(
        f'<th style="{LEFT};width:{width}%">{head}</th>'
        for head, width in heads.items()
    )
    return (
        f'<table style="width:100%"><thead><tr>{shown}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def operations(section: str) -> Page:
    """The functions of one section, those of Burn 0.15 first."""
    if section not in SECTIONS:
        what = f"there is no section {section!r}"
        raise ConfigError("operations", what, cure=", ".join(SECTIONS))
    return Page(SECTIONS[section], (r for r in rows() if r.section == section))


def find(text: str) -> Page:
    """The functions with this in a name (here, in Burn, in PyTorch) or in the help."""

    def told(row: Row) -> bool:
        words = (row.name, row.burn, row.newest, row.torch, row.summary)
        return any(text.lower() in word.lower() for word in words)

    return Page(f"find({text!r})", filter(told, rows()))


def takes(kinds: str) -> str:
    """The kinds of the first input in words, and that of the result if it is another.

    Example:
        >>> takes("FF>F II>I"), takes("F I > B"), takes("FIF>FF"), takes("> F")
        ('Float Int', 'Float Int → Bool', 'Float', '→ Float')
    """
    if " > " in f" {kinds} " or ">" not in kinds:
        left, _, right = kinds.partition(">")
        first, results = left.split(), right.split()
    else:
        pairs = [row.split(">") for row in kinds.split()]
        first = [left[0] for left, _ in pairs]
        results = [right[0] for _, right in pairs]
        if len(set(results)) > 1 or set(results) == set(first):
            results = []
    shown = [
        " ".join(KINDS[k] for k in dict.fromkeys(part)) for part in (first, results)
    ]
    return " → ".join(shown).strip() if results else shown[0]


def gradient(row: Row) -> str:
    """Whether gradients flow through, and by which rule."""
    if row.gradient != "yes":
        return "none" if row.gradient == "no" else ""
    return "its own rule" if row.is_op else "by its parts"


def called(row: Row) -> str:
    """The function as one writes it."""
    return f"{row.section}.{row.name}" if row.section in HOMES else row.name


def _line(row: Row) -> str:
    """One line of the table: what the function does, and the facts beside it."""
    old = row.burn if row.edition in ("book", "source") else ""
    texts = [
        called(row),
        takes(row.kinds),
        row.shapes.replace("->", "→"),
        gradient(row),
        old,
        row.newest,
        row.torch,
    ]
    cells = [escape(text) for text in texts]
    about = escape(row.summary.replace("`", ""))
    cells[0] = f"<b><tt>{cells[0]}</tt></b><br><small>{about}</small>"
    cells[2] = cells[2].replace(" → ", "<br>→ ")
    cells[4:] = [name.replace("_", "_<wbr>") for name in cells[4:]]  # break there
    if row.edition == "source":
        cells[4] = f"<i>{cells[4]}</i>"
    pairs = zip(_STYLES, cells, strict=True)
    columns = [f'<td style="{style}">{cell}</td>' for style, cell in pairs]
    return f"<tr>{''.join(columns)}</tr>"
