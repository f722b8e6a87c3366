"""All parameters as one long vector, and back."""

from typing import Any

from burnbook.core.dtypes import Float
from burnbook.core.errors import ShapeError
from burnbook.module import Module, Param, RunningState
from burnbook.module.tree import params_of, rebuild
from burnbook.ops.shape import cat
from burnbook.optim.grads import GradientsParams, lowest
from burnbook.tensor import Tensor


class FlatModule:
    """The Float parameters of a module in its order, as one vector on one device.

    Half precision is single here: the vector is for sums over everything. What forward
    passes keep up to date (running means) is no parameter to be found.
    """

    def __init__(self, module: Module):
        self.module = module
        self.states: list[Param] = []  # kept up to date by forward passes
        self.own: dict[Param, Param] = {}  # the same in all modules of `spread`
        found: dict[Param, None] = {}
        for param in params_of(module):
            if isinstance(param, RunningState):
                self.states.append(param)
            elif param.kind is Float:
                found[param] = None
        self.params = list(found)
        if not self.params:
            name = type(module).__name__
            raise ShapeError("step", f"{name} has no Float parameter")
        self.near = lowest(self.params[0].val()).backend
        self.device = _wide(lowest(self.params[0].val())).backend
        self.size = sum(param.shape.num_elements() for param in self.params)

    def values(self) -> Tensor:
        """The parameters now."""
        return self._joined([lowest(param.val()) for param in self.params])

    def gradients(self, grads: GradientsParams) -> Tensor:
        """The gradients; zeros for parameters that have none."""
        rows = []
        for param in self.params:
            grad = grads.get(param.id)
            if grad is None:
                grad = lowest(param.val()).zeros_like()
            elif grad.dims() != tuple(param.shape):
                path = self.module.find_part(param)
                raise ShapeError(
                    f"step of {type(self.module).__name__}.{path}",
                    "the gradient does not have the shape of its parameter",
                    [("param", str(list(param.shape))), ("grad", str([*grad.dims()]))],
                    "GradientsParams.from_grads(loss.backward(), model)",
                )
            rows.append(lowest(grad))
        return self._joined(rows)

    def spread(self, vector: Tensor) -> Any:
        """The module with these values.

        Its running states go on from those of the module, which keeps its own.
        """
        self.own = self.own or {state: state.unshared() for state in self.states}
        made = dict(self.own)
        start = 0
        for param in self.params:
            value, flag = param.val(), param.is_require_grad()
            end = start + param.shape.num_elements()
            piece = vector.slice([slice(start, end)]).reshape(list(param.shape))
            if vector.backend is not self.near:
                piece = piece.to_device(self.near)
            outer = value.backend
            new = piece.to_device(lowest(value).backend)
            if outer.ad_enabled:
                new = Tensor.from_inner(new, outer)
                new = new.require_grad() if flag else new
            made[param] = type(param)(param.id, new, require_grad=flag)
            start = end
        return rebuild(self.module, lambda p: made.get(p, p), lambda t: t)

    def _joined(self, tensors: list[Tensor]) -> Tensor:
        device = self.device
        rows = [_wide(t).to_device(device).reshape([-1]).value for t in tensors]
        out = rows[0] if len(rows) == 1 else device.run(cat, tuple(rows), {"dim": 0})
        return Tensor(out, Float, device, 1)


def dot(a: Tensor, b: Tensor) -> float:
    """Σ aᵢ bᵢ."""
    device = a.backend
    return float(device.to_numpy(device.xp.dot(a.value, b.value)))


def largest(a: Tensor) -> float:
    """The largest |aᵢ|; NaN where there is one."""
    device = a.backend
    return float(device.to_numpy(device.xp.abs(a.value).max()))


def total(a: Tensor) -> float:
    """Σ |aᵢ|."""
    device = a.backend
    return float(device.to_numpy(device.xp.abs(a.value).sum()))


def _wide(value: Tensor) -> Tensor:
    half = value.backend.float_dtype.itemsize == 2
    return value.into_full_precision() if half else value
