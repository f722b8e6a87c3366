"""Start `make lab` without a browser, ask it for chapter one, and stop it.

.venv/bin/python .ci/lab.py FOLDER_OF_THE_REPOSITORY
"""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from urllib.parse import urlsplit


def main(folder: str) -> None:
    """Fail unless the page that is printed is chapter one, and is there."""
    # There is no browser here: Jupyter says so, and prints the address.
    server = subprocess.Popen(
        ["make", "-C", folder, "lab"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "BROWSER": "true"},
        start_new_session=True,
    )
    try:
        assert server.stdout is not None
        address = None
        for line in server.stdout:
            sys.stdout.write(line)
            if found := re.search(r"http://127\.0\.0\.1:\S+", line):
                address = urlsplit(found[0])
                break
        assert address, "make lab printed no address"
        assert address.path == "/lab/tree/01_overview.ipynb", address.path
        base, token = f"http://{address.netloc}", address.query
        page = ask(f"{base}{address.path}?{token}")
        assert b"jupyter-config-data" in page
        chapter = ask(f"{base}/api/contents/01_overview.ipynb?{token}")
        assert b'"type": "notebook"' in chapter or b'"type":"notebook"' in chapter
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.communicate(timeout=60)
    sys.stdout.write("chapter one was served\n")


def ask(address: str, patience: float = 60) -> bytes:
    """The answer of the server, which prints its address a moment before it listens."""
    end = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(address) as answer:
                return answer.read()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1])
