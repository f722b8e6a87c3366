"""Cells of Rust in a notebook: `%load_ext burnbook.rust`, then `%%rust`.

A cell is a program of its own. It is compiled against Burn 0.15 (backend NdArray, with
autodiff) with the reader's cargo, and run:

    %%rust -i x -o y
    let y = x.clone().matmul(x.transpose());
    println!("{y}");

`-i` names tensors and numbers of Python that the cell uses, `-o` the variables of the
cell that Python gets. A cell without `fn main` is the inside of one; structs, functions
and `use` lines may stand in it. `burn::prelude::*`, `NdArray`, `Autodiff` and the type
`B` are there: B is the backend of the tensors that go over, or `NdArray`. A cell is
compiled quickly and runs slowly; with `-O` it is the other way round.

The first cell compiles Burn, which takes some minutes; later ones take seconds. All of
it is kept in the cache folder. Where crates.io cannot be reached, `--crates FOLDER` (or
BURNBOOK_CRATES) names a folder of vendored crates. Start reading in `magic.py`.
"""

from burnbook.rust.errors import RustError as RustError
from burnbook.rust.magic import (
    load_ipython_extension as load_ipython_extension,
    run as run,
)
