"""Rust programs of shared/burn, built without a network and kept in the cache folder.

The first build of a program takes some minutes; later ones only look whether it is
still up to date. CARGO_BUILD_JOBS says on how many cores.
"""

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest

from burnbook.core.files import cache_dir

RUST = Path(__file__).with_name("rust")  # programs of the tests' own
SOURCES = Path(__file__).resolve().parents[3] / "shared/burn"
VENDORED = """[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = {}
"""


@cache
def built(folder: str, program: str, source: str = "") -> Path:
    """The program of one folder, such as "check-0.15"; skips where it cannot be built.

    source: of another program, a file or folder in `rust` beside this file, that is
        built with what is there.

    Raises:
        AssertionError: the build failed; the message ends as cargo's did.
    """
    place = folder_of_crates()
    at = place / f"{folder} {program}" if source else place / folder
    shutil.copytree(SOURCES / folder, at, dirs_exist_ok=True)
    if source:
        (at / "src/bin").mkdir(exist_ok=True)
        if (RUST / source).is_dir():
            shutil.copytree(
                RUST / source, at / f"src/bin/{program}", dirs_exist_ok=True
            )
        else:
            shutil.copy2(RUST / source, at / f"src/bin/{program}.rs")
    (at / ".cargo").mkdir(exist_ok=True)
    (at / ".cargo/config.toml").write_text(settings())
    command = ["cargo", "build", "--locked", "--offline", "--bin", program]
    target = place / folder / "target"  # what all programs of a folder share
    command += ["--target-dir", str(target)]
    done = subprocess.run(command, cwd=at, capture_output=True, text=True)
    assert done.returncode == 0, f"{folder} was not built: {done.stderr[-2000:]}"
    return target / "debug" / program


@cache
def at_hand(program: str) -> bool:
    """Whether cargo or rustfmt runs: rustup alone puts names there that do not."""
    if shutil.which(program) is None:
        return False
    done = subprocess.run([program, "--version"], capture_output=True, check=False)
    return done.returncode == 0


@cache
def folder_of_crates() -> Path:
    """The folder with `crates`, the vendored crates of Burn, and all that is built.

    It lies in the cache of whoever runs the tests, not in that of one run. A test that
    needs it is skipped where there is no cargo, or where shared/burn is absent.
    """
    if not at_hand("cargo"):
        pytest.skip("no cargo here, which builds Burn")
    if not (SOURCES / "crates.tar.xz").exists():
        pytest.skip("no crates of Burn: shared/burn lies not beside the project")
    place = users_cache() / "burn"
    unpack_crates(place)
    return place


def users_cache() -> Path:
    """The cache folder of the user: the tests have one of their own, for one run."""
    others = {k: v for k, v in os.environ.items() if k != "BURNBOOK_CACHE"}
    with patch.dict(os.environ, others, clear=True):
        return cache_dir()


def settings() -> str:
    """Cargo's settings, as `%%rust` writes them, too: what is built is shared."""
    return VENDORED.format(json.dumps(str(folder_of_crates() / "crates")))


def unpack_crates(place: Path) -> None:
    """All crates beside the programs; they appear as a whole or not at all."""
    crates = place / "crates"
    if crates.exists():
        return
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        with tarfile.open(SOURCES / "crates.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        try:
            (Path(folder) / "crates").rename(crates)
        except OSError:  # another process was first
            assert crates.exists()


def lines_of(program: Path, *arguments: object) -> list[dict]:
    """What a program prints: one line of JSON for each file it was given."""
    command = [str(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout, f"{program.name} said nothing but {done.stderr[-500:]}"
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":  # build before the tests do: python -m tests.support.cargo
    import sys

    print(built(*sys.argv[1:]))
