"""`burnbook lab`, `guide`, `new`, `datasets` and `warmup`: to learn with."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from burnbook import __version__
from burnbook.cli.shared import Subcommands, command, positive, say, whole
from burnbook.core.errors import ConfigError

CHAPTERS = "burnbook-chapters"


def add_commands(commands: Subcommands) -> None:
    """Declare the commands of this file."""
    _add_lab(commands)
    _add_guide(commands)
    _add_datasets(commands)
    _add_warmup(commands)
    _add_new(commands)


# lab


def _add_lab(commands: Subcommands) -> None:
    about = "Copy the chapters to a folder and open the first one in JupyterLab."
    lab = command(commands, "lab", run_lab, about, "burnbook lab my-chapters")
    lab.add_argument("folder", nargs="?", default=CHAPTERS, help="where to work")
    lab.add_argument(
        "--fresh", action="store_true", help="replace chapters that you have changed"
    )
    lab.add_argument(
        "--no-start", action="store_true", help="only copy, do not start JupyterLab"
    )
    lab.usage = "burnbook lab [-h] [--fresh] [--no-start] [FOLDER] [-- OPTION ...]"
    lab.epilog = (
        f"{lab.epilog}, or with options of JupyterLab itself: "
        "burnbook lab -- --no-browser"
    )
    lab.set_defaults(behind=())


def run_lab(options: argparse.Namespace) -> int:
    """Copy the chapters and start JupyterLab."""
    folder = Path(options.folder)
    chapters = copy_chapters(folder, fresh=options.fresh)
    say(f"{len(chapters)} chapters in {folder}")
    if options.no_start:
        return 0
    if importlib.util.find_spec("jupyterlab") is None:
        raise ConfigError(
            "lab", "JupyterLab is not installed", cure="pip install 'burnbook[lab]'"
        )
    _compile_beside()
    page = f"--LabApp.default_url=/lab/tree/{chapters[0].name}"
    start = [sys.executable, "-m", "jupyterlab", page]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        start.append("--allow-root")  # as in a container, where there is nobody else
    with _without_news() as variables:
        return _serve([*start, *options.behind], folder, variables)


def _compile_beside() -> None:
    """Begin to compile kernels for the chapters, without keeping JupyterLab waiting."""
    from burnbook.backend.compiled import compile_ahead

    if compile_ahead.missing():
        compile_ahead.start_in_background()


def _serve(command: list[str], folder: Path, variables: dict[str, str]) -> int:
    """Run a server until it ends: Ctrl-C is its own, an order to stop is passed on."""
    with subprocess.Popen(command, cwd=folder, env=variables) as server:
        acts: dict[int, Any] = {
            signal.SIGINT: lambda number, frame: None,  # JupyterLab asks before it ends
            signal.SIGTERM: lambda number, frame: server.terminate(),
        }
        before = {number: signal.signal(number, act) for number, act in acts.items()}
        try:
            return server.wait()
        finally:
            for number, act in before.items():
                signal.signal(number, act)


NO_NEWS = {
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    }
}


@contextmanager
def _without_news() -> Generator[dict[str, str]]:
    """The environment for a JupyterLab that does not begin by asking about news.

    Why: the defaults of this one server are in a folder of its own; what the reader has
    set in JupyterLab counts more, and nothing of it is changed.
    """
    with tempfile.TemporaryDirectory(prefix="burnbook-lab-") as folder:
        settings = Path(folder) / "labconfig" / "default_setting_overrides.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps(NO_NEWS), encoding="utf-8")
        known = os.environ.get("JUPYTER_CONFIG_PATH", "")
        paths = os.pathsep.join(filter(None, (folder, known)))
        yield {**os.environ, "JUPYTER_CONFIG_PATH": paths}


def copy_chapters(folder: Path, *, fresh: bool = False) -> list[Path]:
    """Copy the chapters; what is already there stays, unless `fresh` replaces it."""
    source = chapters_folder()
    _make_folder("lab", folder)
    hidden = shutil.ignore_patterns(
        *("src", "artifacts", ".*", "*.cfg", "*.toml", "conftest.py")
    )

    def copy(origin: str, target: str) -> str:
        if not fresh and Path(target).exists():
            return target
        if not target.endswith(".ipynb"):
            return shutil.copyfile(origin, target)
        page = json.loads(Path(origin).read_bytes())
        page["metadata"].update(kernel)
        text = json.dumps(page, indent=1, sort_keys=True, ensure_ascii=False)
        Path(target).write_text(f"{text}\n", encoding="utf-8")
        return target

    kernel = _kernel_here()
    shutil.copytree(
        source, folder, ignore=hidden, copy_function=copy, dirs_exist_ok=True
    )
    return sorted(folder / path.name for path in source.glob("*.ipynb"))


def _kernel_here() -> dict[str, Any]:
    """What JupyterLab writes into a page about Python's kernel; nothing without one.

    Why: a page that lacks it counts as changed as soon as it is opened.
    """
    if importlib.util.find_spec("ipykernel") is None:
        return {}
    from ipykernel.ipkernel import IPythonKernel
    from ipykernel.kernelspec import get_kernel_dict

    spec = get_kernel_dict()
    names = {name: spec[name] for name in ("display_name", "language")}
    return {
        "kernelspec": {**names, "name": "python3"},
        "language_info": dict(IPythonKernel.language_info),
    }


def _make_folder(where: str, folder: Path) -> None:
    blocker = next((p for p in (folder, *folder.parents) if p.is_file()), None)
    if blocker is not None:
        raise ConfigError(where, f"{blocker} is a file", cure="another folder")
    folder.mkdir(parents=True, exist_ok=True)


def chapters_folder() -> Path:
    """Where the chapters are: inside the package, or beside it in a checkout."""
    package = Path(__file__).parents[1]
    for folder in (package / "_notebooks", package.parent / "notebooks"):
        if any(folder.glob("*.ipynb")):
            return folder
    raise ConfigError(
        "lab",
        "this copy of burnbook came without chapters",
        cure="a checkout of the project, or a wheel of a release",
    )


# guide


def _add_guide(commands: Subcommands) -> None:
    about = "Train the guide's network on handwritten digits, then let it read one."
    guide = command(
        commands,
        "guide",
        run_guide,
        about,
        "burnbook guide --dataset digits --epochs 5",
    )
    guide.add_argument(
        "--dataset",
        choices=["digits", "mnist"],
        help="default: mnist if it is on this computer, else the small digits",
    )
    guide.add_argument(
        "--epochs", type=positive, help="default: 10 for mnist, 30 for digits"
    )
    guide.add_argument("--seed", type=whole, default=42, help="default: 42")
    guide.add_argument(
        "--artifact-dir", type=Path, help="default: guide, in your cache folder"
    )


def run_guide(options: argparse.Namespace) -> int:
    """Train and infer."""
    from burnbook.examples.guide.__main__ import main as guide

    guide(options.artifact_dir, options.dataset, options.epochs, options.seed)
    return 0


# datasets, warmup


def _add_datasets(commands: Subcommands) -> None:
    about = "List the datasets, and which of them are on this computer."
    command(commands, "datasets", run_datasets, about, "burnbook datasets")


def run_datasets(options: argparse.Namespace) -> int:
    """List the datasets."""
    from burnbook.data import available_datasets, cache_dir

    for info in available_datasets():
        here = "here" if info.available else f"{info.size / 1e6:.0f} MB to download"
        say(f"{info.name:<21} {info.items:>7,} items  {here:<20}  {info.about}")
    say(f"downloads are kept in {cache_dir()}")
    return 0


def _add_warmup(commands: Subcommands) -> None:
    about = (
        "Compile the fast kernels now, with all cores, and wait until they are ready."
    )
    command(commands, "warmup", run_warmup, about, "burnbook warmup")


def run_warmup(options: argparse.Namespace) -> int:
    """Compile the kernels."""
    if importlib.util.find_spec("numba") is None:
        say("numba is not installed, so there is nothing to compile: plain NumPy runs")
        say("faster: pip install 'burnbook[fast]'")
        return 0
    from burnbook.backend import compiled

    compiled.warm_up(sys.stdout)
    say("the fast kernels are ready")
    return 0


# new


def _add_new(commands: Subcommands) -> None:
    about = "Write the guide as a small project of your own: model, data, training, …"
    new = command(commands, "new", run_new, about, "burnbook new my-digits")
    new.add_argument("folder", type=Path, help="a folder that does not exist yet")


def run_new(options: argparse.Namespace) -> int:
    """Write the project."""
    files = write_project(options.folder)
    say(f"{options.folder}: {', '.join(path.name for path in files)}")
    say(f"next: cd {options.folder} && python main.py")
    say("in a new environment, before it: pip install --editable .")
    return 0


def write_project(folder: Path) -> list[Path]:
    """Copy the guide's modules, importing one another as a project's modules do."""
    if folder.exists() and (folder.is_file() or any(folder.iterdir())):
        what = "is a file" if folder.is_file() else "is not empty"
        raise ConfigError(
            "new", f"{folder} {what}, and nothing is overwritten", cure="another name"
        )
    _make_folder("new", folder)
    source = Path(__file__).parents[1] / "examples" / "guide"
    names = ("model", "data", "training", "inference", "__main__")
    written = []
    for name in names:
        text = (source / f"{name}.py").read_text(encoding="utf-8")
        text = text.replace("burnbook.examples.guide.", "")
        text = text.replace("python -m burnbook.examples.guide", "python main.py")
        text = text.replace("from burnbook.core.files import cache_dir\n", "")
        text = text.replace('cache_dir() / "guide"', OF_PROJECT)
        target = folder / ("main.py" if name == "__main__" else f"{name}.py")
        target.write_text(text, encoding="utf-8", newline="\n")
        written.append(target)
    manifest = folder / "pyproject.toml"
    text = MANIFEST.format(name=_package_name(folder), version=__version__)
    manifest.write_text(text, encoding="utf-8", newline="\n")
    return [*written, manifest]


# Where a project keeps what its trainings write: in itself.
OF_PROJECT = 'Path(__file__).parent / "artifacts"'

# What Cargo.toml is in Burn: the project's name, and burnbook with a backend.
MANIFEST = """\
[project]
name = "{name}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = [
    # fast: compiled kernels for the CPU. On an NVIDIA GPU: burnbook[fast,cuda12] or
    # burnbook[fast,cuda13], and Cupy() in place of Numpy() in main.py.
    "burnbook[fast]~={version}",
    "scikit-learn>=1.4",  # brings the digits
]

[build-system]
requires = ["setuptools>=69"]
build-backend = "setuptools.build_meta"

[tool.setuptools]
py-modules = ["model", "data", "training", "inference", "main"]
"""


def _package_name(folder: Path) -> str:
    """The folder's name as a package may be called: letters, digits, dots, dashes."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")
    return name or "my-burn-app"
