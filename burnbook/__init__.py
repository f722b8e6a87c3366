"""Overview. burnbook: the Burn Book made runnable in Python.

from burnbook.prelude import *

device = Numpy()
x = Tensor[2].from_data([[2., 3.], [4., 5.]], device)
print(x + Tensor.ones_like(x))
"""

from burnbook.random import seed

__version__ = "0.3.0"
__all__ = ["__version__", "seed"]
