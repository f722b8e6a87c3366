"""burnbook: the Burn Book made runnable in Python.

from burnbook.prelude import *

device = Numpy()
x = Tensor[2].from_data([[2., 3.], [4., 5.]], device)
print(x + Tensor.ones_like(x))
"""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.core.rng import seed

__version__ = "0.9.0"
__all__ = ["__version__", "seed"]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
