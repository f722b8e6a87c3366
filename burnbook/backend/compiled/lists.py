"""Advanced · Performance. Which ops along lines have kernels, in which file, from when.

Lines of an array are added, run along, picked from, sorted, copied and transformed. The
numbers are those of the list in `__init__.py`, where this one belongs.
"""

from typing import Any

from burnbook.ops import index, order, reduce, scan, shape, spectrum, whole

MANY = 1 << 12  # elements from which a kernel's own work outweighs calling it
LOTS = 1 << 15  # the same where NumPy is good at it

ALONG_LINES: dict[str, dict[Any, int | tuple[int, int]]] = {
    "reduce": {
        reduce.sum: MANY,
        reduce.mean: MANY,
        reduce.sum_dim: MANY,
        reduce.mean_dim: MANY,
        reduce.length_dim: MANY,
        reduce.sum_to: MANY,
        reduce.max_dim: MANY,
        reduce.min_dim: MANY,
        reduce.argmax: MANY,
        reduce.argmin: MANY,
        reduce.max.backward: (MANY, 1),
        reduce.min.backward: (MANY, 1),
        reduce.max_dim.backward: (MANY, 1),
        reduce.min_dim.backward: (MANY, 1),
        scan.prod: MANY,
        scan.prod_dim: MANY,
    },
    "products": {scan.prod.backward: (MANY, 1), scan.prod_dim.backward: (MANY, 1)},
    "scan": {
        scan.cumsum: MANY,
        scan.cumsum.backward: MANY,
        scan.cumprod: MANY,
        scan.cumprod.backward: MANY,
        scan.cummax: MANY,
        scan.cummax.backward: MANY,
        scan.cummin: MANY,
        scan.cummin.backward: MANY,
        scan.linear_scan: MANY,
        scan.linear_scan.backward: MANY,
    },
    "index": {
        index.gather: (MANY, 1),
        index.hot_rows: 1 << 8,
        index.gather.backward: MANY,
        index.scatter: (MANY, 1),
        index.select: MANY,
        index.select.backward: MANY,
        index.select_assign: MANY,
    },
    "masks": {
        index.mask_fill: MANY,
        index.mask_fill.backward: MANY,
        index.mask_where: MANY,
        index.mask_where.backward: MANY,
        index.argwhere: MANY,
    },
    "order": {
        order.sort: MANY,
        order.sort.backward: MANY,
        order.argsort: MANY,
        order.argtopk: MANY,
        order.argmedian: MANY,
    },
    "copies": {
        shape.reshape: MANY,
        shape.cat: LOTS,
        shape.roll: LOTS,
        shape.slice_assign: LOTS,
        shape.slice_spread: MANY,
        shape.pad: LOTS,
        shape.cast: LOTS,
        shape.recast: LOTS,
    },
    "whole": {
        whole.power: LOTS,
        whole.power.backward: LOTS,
    },
    "spectrum": {
        spectrum.rfft_pairs: 256,
        spectrum.rfft_back: 256,
        spectrum.irfft_pairs: 256,
        spectrum.irfft_back: 256,
        spectrum.fft_pairs: 256,
    },
}
