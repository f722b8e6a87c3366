"""What stands in for a GPU (cuda_on_cpu.py) sees what would go wrong on one."""

import numpy as np
import pytest

from burnbook.backend.cuda import source

HANG = (
    source.ROWS
    + r"""
extern "C" __global__ void hang(long long rows, long long size, REAL* out) {
    if (threadIdx.x == 3) return;
    out[threadIdx.x] = total_of(1);
}
"""
)


@pytest.mark.parametrize("size", [32, 2000])
def test_threads_that_wait_in_vain_are_noticed(threads, size):
    out = threads.from_numpy(np.zeros(256))
    with pytest.raises(AssertionError, match="hang: threads wait for one"):
        source.each_row(
            threads.xp.module, HANG, "hang", (1, size), (out,), REAL="double"
        )


SUMS = r"""
extern "C" __global__ void both(long long rows, long long size, REAL* out) {
    REAL sum = 0, count = 0, most = LOWEST;
    EACH(j) sum += j, count += 1, most = larger(most, j);
    sum = total_of(sum), count = total_of(count), most = largest_of(most);
    if (ROW < rows) EACH(j) out[ROW * size + j] = sum + count + most;
}
"""


def sums_are_right(threads, size, text):
    out = threads.from_numpy(np.zeros((9, size)))
    words = {"REAL": "double"}
    source.each_row(threads.xp.module, text + SUMS, "both", (9, size), (out,), **words)
    return (threads.to_numpy(out) == size * (size - 1) // 2 + 2 * size - 1).all()


@pytest.mark.parametrize("size", [1, 31, 1024, 1025, 5000])
def test_sums_and_maxima_reach_every_thread_of_a_row(threads, size):
    assert sums_are_right(threads, size, source.ROWS)


@pytest.mark.parametrize("forgotten", [1, 2])
def test_a_forgotten_barrier_is_noticed(threads, forgotten):
    parts = source.ROWS.split("__syncthreads();")
    assert len(parts) == 3
    text = "__syncthreads();".join([parts[0], parts[1] + parts[2]])
    if forgotten == 1:
        text = "__syncthreads();".join([parts[0] + parts[1], parts[2]])
    assert sums_are_right(threads, 1024, text)
    assert not sums_are_right(threads, 5000, text)
