"""A dataset of two million rows streams, and the process stays as small as it was."""

import pytest

from tests.bench.storage import figures

ROWS = 2_000_000
ORDER = 2 * 8 * ROWS / 1e6  # MB of a shuffled order, and of the numbers that sort it


@pytest.mark.bench
def test_two_million_rows_stream_with_flat_memory(tmp_path):
    for what, speed, before, highest in figures(tmp_path, ROWS):
        print(f"| {what} | {speed:,.0f} rows/s | {before:.0f} → {highest:.0f} MB |")
        assert speed > 20_000, what
        room = 10 + (ORDER if what.startswith("shuffled") else 0)
        assert highest - before < room, what
