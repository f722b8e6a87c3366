"""Python in a process of its own, that knows this project and nothing of the tests."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def environment(first="", **variables):
    """What a process of its own gets: this project in its path, and these variables.

    first: a folder that is looked into before all others.
    """
    paths = [str(first), str(ROOT), str(ROOT / "widgets")]
    paths.append(os.environ.get("PYTHONPATH", ""))
    known = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return {**os.environ, **known, **variables}


def python(*arguments, first="", **options):
    """Run Python with these arguments; gives the ended process, with what it wrote."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env=environment(first),
        capture_output=True,
        text=True,
        **options,
    )


def start(*arguments, **options):
    """Python with these arguments, which runs on; its streams are pipes of text."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    usual = {"env": environment(), "text": True, **pipes}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(command, **{**usual, **options})
