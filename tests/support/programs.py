"""Python in a process of its own, that knows this project and nothing of the tests."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def python(*arguments, first="", **options):
    """Run Python with these arguments; gives the ended process, with what it wrote.

    first: a folder that is looked into before all others.
    """
    paths = [str(first), str(ROOT), str(ROOT / "widgets")]
    paths.append(os.environ.get("PYTHONPATH", ""))
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        **options,
    )
