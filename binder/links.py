"""The links to Binder in README, made from the one line of binder/address.txt.

    python binder/links.py            print them
    python binder/links.py --write    put them into README.md, between their marks

address.txt holds OWNER/NAME of the repository on GitHub, or with it the branch:
OWNER/NAME@BRANCH (main, without). As long as it holds the word OWNER itself, there is
nothing to lead to, and README has no links.
"""

import argparse
import re
import sys
from pathlib import Path
from urllib.parse import quote, urlencode

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
FIRST = "notebooks/01_overview.ipynb"
PULLED = "book"  # the folder that nbgitpuller makes; `burnbook` is there already
INSTEAD = "Or install nothing, and open the chapters on a server that Binder lends you:"
AFTER = (
    "(such a server forgets your work after ten idle minutes; chapter one can save it)"
)
BEGIN, END = "<!-- links of binder/links.py -->", "<!-- end of links -->"


def links(address):
    """The lines for README."""
    found = re.fullmatch(r"([\w.-]+)/([\w.-]+)(?:@([\w./-]+))?", address.strip())
    if not found:
        sys.exit(f"binder/address.txt: {address.strip()!r} is not OWNER/NAME@BRANCH")
    owner, name, branch = found[1], found[2], found[3] or "main"
    if owner == "OWNER":
        return []
    start = f"https://mybinder.org/v2/gh/{owner}/{name}/{quote(branch, safe='')}"
    pull = {
        "repo": f"https://github.com/{owner}/{name}",
        "branch": branch,
        "targetPath": PULLED,
        "urlpath": f"lab/tree/{PULLED}/{FIRST}",
    }
    inside = urlencode({"urlpath": f"git-pull?{urlencode(pull, quote_via=quote)}"})
    return [
        f"[![Open in Binder](https://mybinder.org/badge_logo.svg)]"
        f"({start}?{urlencode({'urlpath': f'lab/tree/{FIRST}'})})",
        f"[with the newest pages]({start}?{inside})",
    ]


def written(text, lines):
    """The text of README with these lines between the marks."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"README.md has no {BEGIN} with {END} after it")
    shown = [INSTEAD, *lines, AFTER] if lines else []
    return "\n".join([before + BEGIN, *shown, END + after])


def main():
    """Print or write."""
    parser = argparse.ArgumentParser(prog="binder/links.py")
    parser.add_argument("--write", action="store_true", help="into README.md")
    lines = links((HERE / "address.txt").read_text())
    if parser.parse_args().write:
        README.write_text(written(README.read_text("utf-8"), lines), "utf-8")
    else:
        sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
