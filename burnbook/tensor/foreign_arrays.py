"""Arrays of other libraries, as NumPy sees them, or why it cannot."""

from collections.abc import Callable
from typing import Any

import numpy as np

from burnbook.core.errors import DataError

# What makes an array of a tensor of PyTorch, and which tensors need it.
TORCH_CALLS: dict[str, Callable[[Any], bool]] = {
    ".detach()": lambda x: x.requires_grad,
    ".dequantize()": lambda x: x.is_quantized,
    ".to_dense()": lambda x: str(x.layout) != "torch.strided",
    ".cpu()": lambda x: x.device.type != "cpu",
    ".resolve_conj()": lambda x: x.is_conj(),
    ".resolve_neg()": lambda x: x.is_neg(),
    ".float()": lambda x: "float" in str(x.dtype) and x.dtype.itemsize < 4,
}


def array_of(where: str, values: Any) -> np.ndarray:
    """What `values` shows NumPy; an error of its library comes with the cure."""
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        library = type(values).__module__.partition(".")[0]
        what = f"a {type(values).__name__} gives NumPy no array"
        cure = None
        if library == "torch":
            calls = TORCH_CALLS.items()
            cure = "tensor" + "".join(call for call, needs in calls if needs(values))
        raise DataError(where, what, [(library, str(error))], cure) from None
