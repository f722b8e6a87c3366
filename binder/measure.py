"""Run chapters beside a JupyterLab server, and measure what that takes.

    binder/start python -P binder/measure.py 01_overview 03_3_training

Binder gives a reader 1 to 2 GB, and a chapter may take a minute: what needs more than
700 MB (server and kernel, resident, at the highest) or 60 seconds fails here.
"""

import argparse
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import psutil

MOST_MB, MOST_SECONDS = 700, 60
ROOT = Path.cwd()  # as in the image: the repository is the home


def main():
    """Measure; the exit code says whether everything stayed within its bounds."""
    parser = argparse.ArgumentParser(prog="binder/measure.py")
    parser.add_argument("chapters", nargs="+", help="for example 01_overview")
    parser.add_argument("--folder", type=Path, default=Path("notebooks"))
    asked = parser.parse_args()
    too_much = travel() + warm()
    compiled = kernels()
    say(f"the environment: {size_of(Path(sys.prefix)) >> 20} MB")
    with server() as process:
        for name in asked.chapters:
            seconds, peak, alone = run(asked.folder / f"{name}.ipynb", process)
            say(
                f"{name}: {seconds:.1f} s; memory at most {peak} MB, "
                f"of which the server has {alone} MB"
            )
            if peak > MOST_MB:
                too_much.append(f"{name} takes {peak} MB, more than {MOST_MB}")
            if seconds > MOST_SECONDS:
                too_much.append(f"{name} takes {seconds:.0f} s")
    if kernels() != compiled:
        too_much.append("kernels were compiled again")
    for line in too_much:
        sys.stderr.write(f"too much: {line}\n")
    return 1 if too_much else 0


def say(line):
    """Write a line at once, also when it goes to a file."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def travel():
    """Cut the times of files to seconds, as an image does that goes to another node."""
    import burnbook

    package = Path(burnbook.__file__).parent
    for folder in (package, Path.home() / ".cache"):
        for path in folder.rglob("*"):
            if path.is_file():
                about = path.stat()
                os.utime(path, (int(about.st_atime), int(about.st_mtime)))
    inside = Path(sys.prefix) in package.parents
    return [] if inside else [f"burnbook comes from {package}, not from a wheel"]


def warm():
    """Whether the kernels of postBuild are still the ones that would be used."""
    from burnbook.backend.compiled.compile_ahead import missing

    return ["the kernels of postBuild are stale"] if missing() else []


def kernels():
    """The files of compiled kernels, and when they were written."""
    from burnbook.backend.compiled.runtime import cache

    return {(path, path.stat().st_mtime_ns) for path in cache.folder().rglob("*")}


def size_of(folder):
    """The bytes of all files below a folder."""
    return sum(p.lstat().st_size for p in folder.rglob("*") if not p.is_dir())


@contextmanager
def server():
    """A JupyterLab server, as Binder starts one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    command = [
        *(sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"),
        f"--ServerApp.port={port}",
        f"--IdentityProvider.token={token}",
    ]
    with open(ROOT / "jupyter.log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(240):
            if process.poll() is not None:
                break
            try:
                address = f"http://127.0.0.1:{port}/lab?token={token}"
                urllib.request.urlopen(address, timeout=5).read()
                break
            except OSError:
                time.sleep(0.25)
        if process.poll() is not None:
            sys.exit((ROOT / "jupyter.log").read_text()[-2000:])
        yield process
    finally:
        process.terminate()
        process.wait()


def run(path, process):
    """Run a chapter: its seconds, and the most memory of server and kernel in MB."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook, timeout=MOST_SECONDS, kernel_name="python3", resources=resources
    )
    peaks, ended = [(0, 0)], threading.Event()
    # The kernel is a child of this process and the server is another one.
    watch = threading.Thread(target=sample, args=(process.pid, peaks, ended))
    watch.start()
    began = time.perf_counter()
    try:
        client.execute()
    finally:
        seconds = time.perf_counter() - began
        ended.set()
        watch.join()
    both, alone = max(peaks)
    return seconds, both >> 20, alone >> 20


def sample(server_id, peaks, ended):
    """Note the memory of server and kernel, twenty times a second."""
    while not ended.wait(0.05):
        children = psutil.Process().children()
        alone = tree(psutil.Process(server_id))
        kernels = sum(tree(each) for each in children if each.pid != server_id)
        peaks.append((alone + kernels, alone))


def tree(process):
    """Resident bytes of a process and all below it."""
    total = 0
    for each in [process, *process.children(recursive=True)]:
        try:
            total += each.memory_info().rss
        except psutil.Error:  # it has just ended
            continue
    return total


if __name__ == "__main__":
    sys.exit(main())
