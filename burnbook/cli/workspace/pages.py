"""A notebook without what runs as soon as it is opened.

The cells of a page run when their reader runs them. But JupyterLab makes the widgets
that a page has saved in its metadata when it opens the page, and such a widget brings
a script along; other tools follow metadata of their own. So of the metadata of a page
that comes back only those stay that say which language it is in, and how it looks.
"""

from __future__ import annotations

import json
from pathlib import Path

from burnbook.core.errors import DataError

MOST_PAGE = 64_000_000  # bytes; to read it takes several times as much memory
KEPT = {
    *("kernelspec", "language_info", "orig_nbformat", "title", "authors", "name"),
    *(
        "toc",
        "toc-autonumbering",
        "toc-showcode",
        "toc-showmarkdowntxt",
        "toc-showtags",
    ),
    *("celltoolbar", "colab", "signature"),
}


def leave_out_what_runs(page: Path, shown: str, where: str) -> list[str]:
    """Take unknown metadata out of a page; returns their names.

    Why: a page that nothing can read is left as it is, since Jupyter cannot open it
    either; one that needs no change keeps its bytes.
    """
    if page.stat().st_size > MOST_PAGE:
        what = f"{shown} is larger than a page may be"
        raise DataError(where, what, [("at most", f"{MOST_PAGE / 1e6:,.0f} MB")])
    try:
        tree = json.loads(page.read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise DataError(where, f"{shown} is nested too deeply for a page") from None
    except ValueError:
        return []
    if not isinstance(tree, dict) or not isinstance(tree.get("metadata"), dict):
        return []
    metadata = tree["metadata"]
    unknown = sorted(name for name in metadata if name not in KEPT)
    if unknown:
        tree["metadata"] = {n: held for n, held in metadata.items() if n in KEPT}
        page.write_text(json.dumps(tree, indent=1) + "\n", encoding="ascii")
    return unknown
