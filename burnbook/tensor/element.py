"""One number as another element type, by Burn's rules."""

from typing import Any

import numpy as np

from burnbook.tensor.data import TensorData


class ElementConversion:
    """Convert single elements: out of range is an error, fractions are cut off.

    Example:
        >>> ElementConversion.elem(2.9, "i32")
        2
        >>> ElementConversion.elem(True, "f32")
        1.0
        >>> ElementConversion.elem(3_000_000_001.0, "i64")
        3000000001
    """

    @staticmethod
    def elem(value: Any, dtype: str) -> Any:
        """A number as an element type ("f32", "i64", "bool", …).

        A float of Python is an f64; a NumPy number has its own type.
        """
        return TensorData(np.asarray([value])).convert(dtype).to_list()[0]

    from_elem = elem
