"""How NumPy's and numba's threads share the cores.

The matrix products of NumPy (OpenBLAS) have threads of their own. After a product they
spin for a while in case another one follows, and take the core that a kernel needs.
OPENBLAS_THREAD_TIMEOUT=18 shortens that to a tenth of a millisecond (2¹⁸ ticks): long
enough for the next layer of a small network, which would otherwise wait for a thread to
wake up. It is read when NumPy is imported; when NumPy came first, everything works, a
little slower.

What you set yourself stays: these are defaults, and only for variables that are unset.
"""

import os

DEFAULTS = {"OPENBLAS_THREAD_TIMEOUT": "18"}


def configure() -> None:
    """Set the defaults for this process; call it before NumPy is imported.

    Example:
        >>> configure()
        >>> "OPENBLAS_THREAD_TIMEOUT" in os.environ
        True
    """
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
