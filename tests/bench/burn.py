"""Burn itself beside us: the programs of shared/burn/speed, built once where cargo is.

They speak the protocol of worker.py. Building takes some ten minutes the first time and
needs no network; what comes out is kept in burnbook's cache folder.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from burnbook.core.files import cache_dir
from tests.bench.rounds import ROOT, Contender
from tests.support.cargo import at_hand, unpack_crates

SOURCES = ROOT.parent / "shared/burn"
# folder -> (the program, its backend, what the column is called)
VERSIONS = {
    "v0.15": ("bench-0_15", "ndarray", "Burn 0.15 NdArray"),
    "v0.22": ("bench-0_22", "flex", "Burn 0.22 Flex"),
}
VENDORED = """[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = "../../crates"
"""


def contenders(workload: str) -> list[Contender]:
    """Burn on this workload, each version that can be built here."""
    found = []
    for folder, (_, backend, name) in VERSIONS.items():
        program = built(folder)
        if program is not None:
            command = (str(program), workload, backend, "worker")
            found.append(Contender(name, workload, command=command))
    return found


@cache
def built(folder: str) -> Path | None:
    """The program of one version of Burn; None where it cannot be built."""
    archive = SOURCES / "crates.tar.xz"
    if not at_hand("cargo") or not archive.exists():
        return None
    place = cache_dir() / "bench-burn"
    program = place / "speed" / folder / "target/release" / VERSIONS[folder][0]
    if program.exists():
        return program
    print(f"building {folder} of Burn, once: some minutes", file=sys.stderr, flush=True)
    unpack_crates(place)
    shutil.copytree(SOURCES / "speed", place / "speed", dirs_exist_ok=True)
    at = place / "speed" / folder
    (at / ".cargo").mkdir(exist_ok=True)
    (at / ".cargo/config.toml").write_text(VENDORED)
    done = subprocess.run(
        ["cargo", "build", "--release", "--locked", "--offline"],
        cwd=at,
        env={**os.environ, "RUSTFLAGS": "-C target-cpu=native"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        print(f"{folder} of Burn was not built: {done.stderr[-500:]}", file=sys.stderr)
    return program if program.exists() else None
