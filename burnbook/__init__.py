"""Overview. burnbook: the Burn Book made runnable in Python.

from burnbook.prelude import *

device = Numpy()
x = Tensor[2].from_data([[2., 3.], [4., 5.]], device)
print(x + Tensor.ones_like(x))
"""

from burnbook import threads

threads.configure()  # before anything imports NumPy

from burnbook.random import seed  # noqa: E402 - see above

__version__ = "0.8.0"
__all__ = ["__version__", "seed"]
