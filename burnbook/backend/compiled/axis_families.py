"""Which ops along lines have kernels, in which file, from when.

Lines of an array are added, run along, picked from, sorted, copied and transformed. The
numbers are those of the list in `families.py`, where this one belongs.
"""

from typing import Any

from burnbook.ops import index, reduce, rounding, scan, shape, sorting, spectrum

# From how many elements on a kernel wins: soon where NumPy goes one by one, late where
# all that it lacks is a second thread.
FEW, SOME, MANY, MORE, LOTS = 1 << 8, 1 << 11, 1 << 12, 1 << 14, 1 << 15

ALONG_LINES: dict[str, dict[Any, int | tuple[int, int]]] = {
    "reduce": {
        reduce.sum: MORE,
        reduce.mean: MORE,
        reduce.sum_dim: MORE,
        reduce.mean_dim: MORE,
        reduce.length_dim: MORE,
        reduce.sum_to: MORE,
        reduce.max_dim: MORE,
        reduce.min_dim: MORE,
        reduce.argmax: MANY,
        reduce.argmin: MANY,
        reduce.max.backward: (MANY, 1),
        reduce.min.backward: (MANY, 1),
        reduce.max_dim.backward: (MANY, 1),
        reduce.min_dim.backward: (MANY, 1),
        scan.prod: MANY,
        scan.prod_dim: MANY,
    },
    "product_gradients": {
        scan.prod.backward: (MANY, 1),
        scan.prod_dim.backward: (MANY, 1),
    },
    "scan": {
        scan.cumsum: SOME,
        scan.cumsum.backward: SOME,
        scan.cumprod: SOME,
        scan.cumprod.backward: SOME,
        scan.cummax: SOME,
        scan.cummax.backward: SOME,
        scan.cummin: SOME,
        scan.cummin.backward: SOME,
        scan.linear_scan: SOME,
        scan.linear_scan.backward: SOME,
    },
    "index": {
        index.gather: (SOME, 1),
        index.hot_rows: 1 << 8,
        index.gather.backward: SOME,
        index.scatter: (SOME, 1),
        index.select: MORE,
        index.select.backward: MANY,
        index.select_assign: MANY,
        index.mask_fill: MANY,
        index.mask_fill.backward: MANY,
        index.mask_where: MANY,
        index.mask_where.backward: MANY,
        index.argwhere: MANY,
    },
    "sorting": {
        sorting.sort: SOME,
        sorting.sort.backward: SOME,
        sorting.argsort: SOME,
        sorting.argtopk: SOME,
        sorting.argmedian: SOME,
    },
    "shape": {
        shape.reshape: MORE,
        shape.cat: LOTS,
        shape.expand: FEW,
        shape.roll: LOTS,
        shape.slice_assign: LOTS,
        shape.slice_spread: MANY,
        shape.pad: LOTS,
        shape.cast: LOTS,
        shape.recast: LOTS,
    },
    "powers": {
        rounding.power: LOTS,
        rounding.power.backward: LOTS,
    },
    "spectrum": {
        spectrum.rfft_pairs: 256,
        spectrum.rfft_back: 256,
        spectrum.irfft_pairs: 256,
        spectrum.irfft_back: 256,
        spectrum.fft_pairs: 256,
    },
}
