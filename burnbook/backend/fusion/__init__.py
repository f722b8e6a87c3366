"""Kernel fusion as a decorator: operations are recorded, and run when a value is read.

`fusion.py` is the decorator, `deferred.py` what it gives for an array, `signature.py`
how it knows shapes before anything runs, and `stream.py` what waits and how it is run.
"""

from burnbook.backend.fusion.deferred import Deferred as Deferred
from burnbook.backend.fusion.fusion import Fusion as Fusion
