"""Several tensors read at once.

A GPU works on its own while Python goes on, until something is read: then Python waits.
Whoever reads three tensors waits three times; a transaction waits once.
"""

from typing import Self

from burnbook.backend.base import Backend
from burnbook.tensor.data import TensorData
from burnbook.tensor.tensor import Tensor


class Transaction:
    """Tensors that are to be read together: `register` each, then `execute`.

    Example:
        >>> x = Tensor.from_data([1.0, 2.0])
        >>> loss, output = Transaction().register(x.sum()).register(x * 2.0).execute()
        >>> loss.to_list(), output.to_list()
        ([3.0], [2.0, 4.0])
    """

    def __init__(self, *tensors: Tensor):
        self.tensors = tensors

    @classmethod
    def default(cls) -> Self:
        """A transaction without tensors."""
        return cls()

    def register(self, tensor: Tensor) -> Self:
        """The transaction with one more tensor to read."""
        return type(self)(*self.tensors, tensor)

    def execute(self) -> list[TensorData]:
        """The elements of all tensors, in their order; each device is awaited once."""
        places: dict[Backend, list[int]] = {}
        found: dict[int, TensorData] = {}
        for i, tensor in enumerate(self.tensors):
            if type(tensor) is Tensor:
                places.setdefault(tensor.backend, []).append(i)
            else:  # codes, which are not one array
                found[i] = tensor.to_data()
        for backend, numbers in places.items():
            arrays = backend.read(tuple([self.tensors[i].value for i in numbers]))
            found.update(zip(numbers, map(TensorData, arrays), strict=True))
        return [found[i] for i in range(len(self.tensors))]

    def __repr__(self) -> str:
        return f"Transaction({len(self.tensors)} tensors)"
