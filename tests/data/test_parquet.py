"""Parquet files: the rows of their table, whichever library reads them."""

import random
import subprocess
import sys
from dataclasses import dataclass
from unittest.mock import patch

import pytest

from burnbook.core.errors import DataError
from burnbook.data import DataframeDataset, InMemDataset, as_dataset
from tests.data.test_frames import COLUMNS, ROWS
from tests.support.refusals import refused

polars = pytest.importorskip("polars", reason="the files are written with it")
LIBRARIES = ("polars", "pyarrow")
READERS = (DataframeDataset.from_parquet, InMemDataset.from_parquet)


@dataclass
class Row:
    whole: int | None
    text: str | None
    more: int = 7


def with_only(library):
    """As on a machine that has one of the libraries."""
    if library == "polars":
        return patch.dict(sys.modules, {"pyarrow.parquet": None})
    pytest.importorskip("pyarrow.parquet")
    return patch.dict(sys.modules, {"polars": None})


@pytest.fixture
def path(tmp_path):
    polars.DataFrame(COLUMNS).write_parquet(tmp_path / "[a] b.parquet")
    return tmp_path / "[a] b.parquet"


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("read", READERS)
def test_rows_are_those_of_the_table(path, read, library):
    with with_only(library):
        assert list(read(path)) == list(as_dataset(polars.DataFrame(COLUMNS))) == ROWS
        wanted = [Row(r["whole"], r["text"]) for r in ROWS]
        assert list(read(str(path), Row)) == wanted


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("read", READERS)
def test_a_column_that_is_not_there_is_told(path, read, library):
    @dataclass
    class Other:
        whole: int | None
        label: int

    with with_only(library):
        told = "", "the dataframe has no column label", "whole, real, flag"
        refused(DataError, lambda: read(path, Other), *told)


@pytest.mark.parametrize("library", LIBRARIES)
def test_damaged_files_give_items_or_one_error_of_ours(path, tmp_path, library):
    luck, original = random.Random(5), path.read_bytes()
    bad, texts = tmp_path / "bad.parquet", set()
    with with_only(library):
        for number in range(30):
            data = bytearray(original)
            if number < 10:
                data = data[: luck.randrange(len(data))]
            for _ in range(3 * (number >= 10)):
                data[luck.randrange(4, len(data))] = luck.choice([0, 1, 127, 255])
            bad.write_bytes(data)
            try:
                InMemDataset.from_parquet(bad)
            except DataError as error:
                texts.add(str(error))
    assert len(texts) > 5


@pytest.mark.parametrize("read", READERS)
def test_what_is_no_file_or_another_is_told(tmp_path, read):
    (tmp_path / "t.parquet").write_text("a,b\n1,2\n")
    refused(
        DataError, lambda: read(tmp_path / "t.parquet"), "", "no Parquet file", "a,b"
    )
    refused(DataError, lambda: read(tmp_path / "none"), "", "there is no such file")
    refused(DataError, lambda: read(tmp_path), "", "this is a folder, not a file")
    refused(DataError, lambda: read("/dev/zero"), "", "this is not a regular file")


def test_a_table_of_text_names_what_reads_it(path):
    refused(DataError, lambda: InMemDataset.from_csv(path), "", "from_parquet(path)")


def test_importing_the_datasets_imports_no_library():
    line = "import sys, burnbook.data; print({'polars', 'pyarrow'} & {*sys.modules})"
    run = subprocess.run(
        [sys.executable, "-c", line], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "set()"
