"""Build the book as a web site that runs in the reader's browser, without a server.

    python -m pip install -r binder/lite/requirements.txt
    python binder/lite/build.py _site            then: python -m http.server -d _site

The site holds burnbook's own wheel (in an index that the kernel asks before PyPI) and
the chapters, each with a cell more at its top: it installs what a browser lacks.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXTENSIONS = {"@jupyter-widgets/jupyterlab-manager", "anywidget", "jupyterlab-plotly"}
INSTALL = "%pip install -q burnbook ipywidgets anywidget plotly scikit-learn pillow"
WHY = "# in the browser: the library itself, and what its pictures need"


def main(arguments=None):
    """Build, then look whether everything is there."""
    parser = argparse.ArgumentParser(prog="binder/lite/build.py")
    parser.add_argument("output", type=Path, help="a folder for the site")
    output = parser.parse_args(arguments).output.resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        wheel = make_wheel(work / "wheels")
        count = copy_chapters(ROOT / "notebooks", work / "files")
        for name in ("jupyter-lite.json", "overrides.json"):
            shutil.copy(HERE / name, work / name)
        build(work, wheel, output)
    missing = problems(output, wheel.name)
    sys.stderr.write("".join(f"{line}\n" for line in missing))
    if not missing:
        size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
        sys.stdout.write(f"{output}: {count} pages, {size / 1e6:.0f} MB\n")
    return 1 if missing else 0


def make_wheel(folder):
    """Build burnbook's wheel from this checkout."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    run(command, ROOT)
    (wheel,) = folder.glob("burnbook-*-py3-none-any.whl")
    return wheel


def copy_chapters(source, target):
    """Copy the pages, each with the cell that installs; says how many."""
    hidden = {"src", "artifacts", ".ipynb_checkpoints"}
    found = {page: page.relative_to(source) for page in source.rglob("*.ipynb")}
    pages = {page: name for page, name in found.items() if not hidden & {*name.parts}}
    for page, name in pages.items():
        notebook = nbformat.read(page, as_version=4)
        cell = nbformat.v4.new_code_cell(f"{WHY}\n{INSTALL}", id="install")
        notebook.cells.insert(0, cell)
        notebook.metadata["kernelspec"] = {
            "name": "python",
            "display_name": "Python (Pyodide)",
            "language": "python",
        }
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
    shutil.copytree(source / "images", target / "images")
    return len(pages)


def build(work, wheel, output):
    """Let JupyterLite write the site."""
    run(
        [
            *(sys.executable, "-m", "jupyterlite_core", "build", "--no-sourcemaps"),
            *("--lite-dir", work, "--contents", work / "files"),
            *("--output-dir", output, "--piplite-wheels", wheel),
            *("--apps", "lab"),
        ],
        work,
    )


def run(command, folder):
    """Run a program; what it said is shown when it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}\n{done.stderr}")


def problems(site, wheel):
    """What is not in the site as it should be."""
    found = []
    index = site / "pypi" / "all.json"
    files = json.loads(index.read_text()) if index.is_file() else {}
    releases = files.get("burnbook", {}).get("releases", {}).values()
    if wheel not in {each["filename"] for release in releases for each in release}:
        found.append(f"pypi/all.json does not list {wheel}")
    if not (site / "pypi" / wheel).is_file():
        found.append(f"pypi/{wheel} is missing")
    config = json.loads((site / "jupyter-lite.json").read_text())["jupyter-config-data"]
    kernel = config["litePluginSettings"][
        "@jupyterlite/pyodide-kernel-extension:kernel"
    ]
    if not any("pypi/all.json" in url for url in kernel.get("pipliteUrls", [])):
        found.append("the kernel does not know of pypi/all.json")
    if "numpy" not in kernel["loadPyodideOptions"]["packages"]:
        found.append("numpy is not loaded with the kernel")
    shown = {each["name"] for each in config["federated_extensions"]}
    found += [f"the extension {name} is missing" for name in sorted(EXTENSIONS - shown)]
    for place in ("lab/index.html", "files/01_overview.ipynb", "api/contents/all.json"):
        if not (site / place).is_file():
            found.append(f"{place} is missing")
    return found


if __name__ == "__main__":
    sys.exit(main())
