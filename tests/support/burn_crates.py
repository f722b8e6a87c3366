"""Where tests compile Rust of our own with Burn: the crates, and what is compiled.

Both are kept in the cache folder of whoever runs the tests, not in that of one run:
the first build takes some minutes, later ones seconds.
"""

import json
from functools import cache
from pathlib import Path

import pytest

from tests.support import cargo


@cache
def place() -> Path:
    """The folder with `crates`, the vendored crates of Burn, and `target`.

    A test that needs it is skipped where there is no cargo, or where shared/burn with
    the crates does not lie beside the project.
    """
    if not cargo.at_hand("cargo"):
        pytest.skip("no cargo here, which builds Burn")
    if not (cargo.SOURCES / "crates.tar.xz").exists():
        pytest.skip("no crates of Burn: shared/burn lies not beside the project")
    folder = cargo.users_cache() / "burn"
    cargo.unpack_crates(folder)
    return folder


def settings() -> str:
    """Cargo's settings with the path that `%%rust` writes: what it builds is shared."""
    return cargo.VENDORED.replace('"../crates"', json.dumps(str(place() / "crates")))
