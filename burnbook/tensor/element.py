"""One number as another element type, by Burn's rules."""

from typing import Any

from burnbook.tensor.data import TensorData


class ElementConversion:
    """Convert single elements: out of range is an error, fractions are cut off.

    Example:
        >>> ElementConversion.elem(2.9, "i32")
        2
        >>> ElementConversion.elem(True, "f32")
        1.0
    """

    @staticmethod
    def elem(value: Any, dtype: str) -> Any:
        """A Python number as an element type ("f32", "i64", "bool", …)."""
        return TensorData([value]).convert(dtype).to_list()[0]

    from_elem = elem
