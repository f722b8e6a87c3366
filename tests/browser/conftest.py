"""A real JupyterLab server and a headless Chromium for the tests that click."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
# The Python whose JupyterLab and kernel are tried: this one, or that of another
# environment, which has burnbook installed (binder/check makes one).
OTHER = os.environ.get("BURNBOOK_LAB_PYTHON", "")
PYTHON = OTHER or sys.executable
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "apputils-extension/themes": {"theme": "JupyterLab Light"},
    "docmanager-extension/plugin": {"autosave": False},
}


class Server:
    """JupyterLab on a free port, with a home, settings and notebooks of its own."""

    def __init__(self, folder: Path):
        self.notebooks = folder / "notebooks"
        self.pictures = folder / "pictures"
        for path in (self.notebooks, self.pictures):
            path.mkdir(parents=True)
        settings = folder / "settings"
        for name, values in SETTINGS.items():
            file = settings / "@jupyterlab" / f"{name}.jupyterlab-settings"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(values))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.token = secrets.token_hex(16)
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / "jupyter.log"
        paths = [str(ROOT), str(ROOT / "widgets"), os.environ.get("PYTHONPATH", "")]
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in paths if path and not OTHER),
            "PATH": os.pathsep.join([str(Path(PYTHON).parent), os.environ["PATH"]]),
            "HOME": str(folder),
            "BURNBOOK_CACHE": os.environ.get("BURNBOOK_CACHE", str(folder / "cache")),
            "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
            "JUPYTERLAB_SETTINGS_DIR": str(settings),
            "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        }
        env.pop("BURNBOOK_DISPLAY", None)
        command = [
            *(PYTHON, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            "--expose-app-in-browser",
            f"--ServerApp.port={port}",
            "--ServerApp.port_retries=0",
            "--ServerApp.jpserver_extensions=burnbook_widgets.saving=True",
            f"--IdentityProvider.token={self.token}",
            f"--ServerApp.root_dir={self.notebooks}",
        ]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, env=env, stdout=log, stderr=subprocess.STDOUT
            )
        self._wait()

    def _wait(self) -> None:
        for _ in range(240):
            if self.process.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"{self.url}/api?token={self.token}", timeout=5)
                return
            except OSError:
                time.sleep(0.25)
        pytest.fail(f"JupyterLab did not start:\n{self.log.read_text()[-2000:]}")

    def write(self, name: str, cells: Sequence[str | NotebookNode]) -> Path:
        """Write a notebook of cells; a text is one of code."""
        import nbformat

        book = nbformat.v4.new_notebook(
            cells=[
                nbformat.v4.new_code_cell(cell) if isinstance(cell, str) else cell
                for cell in cells
            ],
            metadata={
                "kernelspec": {
                    "name": "python3",
                    "display_name": "Python 3",
                    "language": "python",
                }
            },
        )
        path = self.notebooks / f"{name}.ipynb"
        nbformat.write(book, path)
        return path

    def ask(self, path: str, method: str = "GET") -> bytes:
        """Ask the server's own interface."""
        headers = {"Authorization": f"token {self.token}"}
        asked = urllib.request.Request(
            f"{self.url}/api/{path}", headers=headers, method=method
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.read()

    def end_kernels(self) -> None:
        """End every kernel: one that goes on training would slow the next test."""
        for session in json.loads(self.ask("sessions")):
            self.ask(f"sessions/{session['id']}", "DELETE")

    def close(self) -> None:
        """End the server and its kernels."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Book:
    """One notebook open in the browser."""

    def __init__(self, page, server: Server, path: Path):
        self.page, self.server, self.path = page, server, path
        self.faults: list[str] = []
        page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        self.open()

    def open(self) -> None:
        """Load the page and wait for the notebook."""
        self.page.goto(
            f"{self.server.url}/lab/tree/{self.path.name}?token={self.server.token}&reset"
        )
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
        # The frame around the notebook is not what these pictures are about.
        self.command("application:toggle-left-area")

    def command(self, name: str, **arguments: object) -> None:
        """Run one of JupyterLab's commands."""
        self.page.evaluate(
            "([name, args]) => { window.jupyterapp.commands.execute(name, args); }",
            [name, arguments],
        )

    def wait_for_kernel(self) -> None:
        """Wait until the kernel is idle."""
        self.page.wait_for_function(
            """() => {
                const context = window.jupyterapp.shell.currentWidget?.sessionContext;
                return context?.isReady && context.session?.kernel?.status === "idle";
            }""",
            timeout=60_000,
        )

    def run_all(self) -> None:
        """Run every cell."""
        self.wait_for_kernel()
        self.command("notebook:run-all-cells")

    def run_cell(self, cell: int) -> None:
        """Run one cell."""
        self.page.evaluate(
            "cell => { window.jupyterapp.shell.currentWidget.content"
            ".activeCellIndex = cell; }",
            cell,
        )
        self.command("notebook:run-cell")

    def output(self, cell: int) -> str:
        """The text of a cell's outputs."""
        cells = self.page.locator(".jp-CodeCell")
        return cells.nth(cell).locator(".jp-OutputArea").inner_text()

    def save(self) -> dict:
        """Save, and return what was written."""
        before = self.path.stat().st_mtime_ns
        self.command("docmanager:save")
        for _ in range(100):
            time.sleep(0.1)
            if self.path.stat().st_mtime_ns != before:
                break
        time.sleep(0.2)
        return json.loads(self.path.read_text())

    def theme(self, name: str) -> None:
        """Switch to "Light" or "Dark"."""
        self.command("apputils:change-theme", theme=f"JupyterLab {name}")
        light = "true" if name == "Light" else "false"
        self.page.wait_for_selector(
            f'body[data-jp-theme-light="{light}"]', state="attached"
        )
        self.page.wait_for_timeout(400)

    def picture(self, name: str) -> Path:
        """A screenshot."""
        path = self.server.pictures / f"{name}.png"
        self.page.screenshot(path=path)
        return path

    def in_both_themes(self, name: str) -> None:
        """A screenshot in light and one in dark, where the page is left."""
        for theme in ("Light", "Dark"):
            self.theme(theme)
            self.picture(f"{name}_{theme.lower()}")


def open_without_kernel(book):
    """Load the page again where no kernel starts."""
    page = book.page

    def refuse(route):
        if route.request.method == "GET":
            route.fulfill(json=[])
        else:
            route.fulfill(status=503, json={"message": "no kernels today"})

    for service in ("kernels", "sessions"):
        page.route(f"**/api/{service}?*", refuse)
    book.open()
    page.wait_for_timeout(1500)
    while page.locator(".jp-Dialog").count():  # it offers to choose a kernel
        page.locator(
            ".jp-Dialog .jp-mod-reject, .jp-Dialog .jp-mod-accept"
        ).first.click()
        page.wait_for_timeout(300)
    assert "No Kernel" in page.locator(".jp-NotebookPanel-toolbar").inner_text()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A running JupyterLab."""
    for module in ("jupyterlab", "anywidget", "nbformat", "playwright"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    if not Path(CHROMIUM).exists():
        pytest.skip("no chromium on this machine")
    server = Server(tmp_path_factory.mktemp("lab"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def tools():
    """Playwright, which is there once in a process."""
    api = pytest.importorskip("playwright.sync_api", reason="no playwright here")
    with api.sync_playwright() as tools:
        yield tools


@pytest.fixture(scope="session")
def browser(server, tools):
    """A headless Chromium."""
    browser = tools.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    yield browser
    browser.close()


@pytest.fixture
def open_book(server, browser):
    """A function that writes a notebook and opens it."""
    books = []

    def open_book(name: str, cells: Sequence[str | NotebookNode]) -> Book:
        context = browser.new_context(viewport={"width": 1180, "height": 960})
        page = context.new_page()
        page.set_default_timeout(30_000)
        book = Book(page, server, server.write(name, cells))
        book.theme("Light")
        books.append(book)
        return book

    yield open_book
    for book in books:
        book.picture(f"{book.path.stem}_at_the_end")  # what a failing test saw last
        book.page.context.close()
    server.end_kernels()
