"""The table of differences as a page: every example fits into its column."""

import re
from html import unescape

import pytest

from burnbook.reference.differences import DIFFERENCES, SECTIONS, differences

WIDEST = 21  # letters of code: a u64, and what a window of 768 pixels has room for


@pytest.mark.parametrize("section", SECTIONS)
def test_code_may_be_broken_where_a_column_is_narrow(section):
    """A style would not do: JupyterLab drops `overflow-wrap`."""
    page = differences(section)._repr_html_()
    codes = re.findall(r"<tt>(.*?)</tt>", page)
    rows = [row for row in DIFFERENCES if row.section == section and row.example]
    assert len(codes) == len(rows) > 0
    for code, row in zip(codes, rows, strict=True):
        pieces = re.split(r"<wbr>|<br>|\s", code)
        assert max(len(unescape(piece)) for piece in pieces) <= WIDEST, pieces
        plain = unescape(code.replace("<wbr>", "").replace("<br>", "\n"))
        assert plain == f"{row.example}\n→ {row.gives}"
