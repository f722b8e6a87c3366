"""Calls with wrong arguments: `python -m tests.support.swept FILE DRAWS`.

What has come of calling everything public so is written to the file.
"""

import contextlib
import json
import os
import random
import sys
import tempfile
import warnings
from pathlib import Path

from tests.support import wrong_arguments

SHARE = 3  # one in so many of the members in a usual run; all of them with --draws=new


def main(file: str, drawn: str) -> None:
    part = random.Random(0 if drawn == "same" else drawn).sample
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["BURNBOOK_CACHE"] = folder
        found = wrong_arguments.targets()
        calls = wrong_arguments.noted(found)
        values = wrong_arguments.Values(calls)
        count = len(found) // SHARE if drawn == "same" else len(found)
        chosen = set(part(sorted(found), count))
        outcomes = wrong_arguments.sweep(found, calls, values, chosen.__contains__)
        rows = [list(map(str, outcome)) for outcome in outcomes]
    Path(file).write_text(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
