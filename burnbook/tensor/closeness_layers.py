"""What each layer of a module returns, ours or PyTorch's.

The closeness report compares these by name. A module of PyTorch is known by its type's
home; PyTorch itself is imported only where there is one.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from burnbook.tensor.tensor import Tensor


def is_module(value: Any) -> bool:
    """Whether this is a module, of ours or of PyTorch."""
    return _is_ours(value) or _is_torch_module(value)


def _is_ours(value: Any) -> bool:
    return hasattr(type(value), "find_part") and hasattr(type(value), "named_params")


def _is_torch_module(value: Any) -> bool:
    return hasattr(type(value), "register_forward_hook")


def is_torch(value: Any) -> bool:
    """Whether this is a tensor of PyTorch."""
    owners = {cls.__module__.partition(".")[0] for cls in type(value).__mro__}
    return "torch" in owners and hasattr(value, "detach")


def parameters(module: Any) -> dict[str, Any]:
    """Every parameter of a module as an array, by its path."""
    if _is_torch_module(module):
        return {path: _array(held) for path, held in module.named_parameters()}
    return {path: _array(held.val()) for path, held in module.named_params()}


def layers(module: Any, inputs: tuple[Any, ...]) -> dict[str, np.ndarray]:
    """Run a module and keep what every layer in it returns, in the order they end."""
    kept: dict[str, np.ndarray] = {}
    if _is_torch_module(module):
        _run_torch(module, inputs, Keeper(kept))
    else:
        _run(module, inputs, Keeper(kept))
    return kept


class Keeper:
    """Notes what layers return: a second call of one gets a name of its own."""

    def __init__(self, kept: dict[str, np.ndarray]):
        self.kept = kept
        self.calls: Counter[str] = Counter()

    def note(self, path: str, out: Any) -> None:
        """Keep the tensors that the layer at this path returned."""
        path = path or "output"
        self.calls[path] += 1
        count = self.calls[path]
        name = path if count == 1 else f"{path} (call {count})"
        for part, tensor in _tensors(out):
            self.kept[f"{name}.{part}" if part else name] = _array(tensor)


def _run(module: Any, inputs: tuple[Any, ...], keeper: Keeper) -> None:
    """Run a copy of a module of ours, each layer telling the keeper.

    Why: the copy is `valid()`, so that no dropout makes the two sides differ; each of
    its layers gets a `forward` of its own that keeps the result on the way.
    """
    copy = module.valid()
    for path, layer in list(_modules(copy, "")):
        forward = getattr(layer, "forward", None)
        if forward is not None:
            vars(layer)["forward"] = _keeping(forward, path, keeper)
    device = next(iter(copy.devices()), None)
    copy.forward(*[_on(device, value) for value in inputs])


def _keeping(forward: Any, path: str, keeper: Keeper) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        out = forward(*args, **kwargs)
        keeper.note(path, out)
        return out

    return run


def _run_torch(module: Any, inputs: tuple[Any, ...], keeper: Keeper) -> None:
    """Run a module of PyTorch as it evaluates; its mode is put back afterwards."""
    import torch

    def hook(path: str) -> Any:
        return lambda _layer, _inputs, out: keeper.note(path, out)

    modes = [(layer, layer.training) for layer in module.modules()]
    hooks = [
        layer.register_forward_hook(hook(path))
        for path, layer in module.named_modules()
    ]
    first = next(module.parameters(), None)
    device = "cpu" if first is None else first.device
    try:
        module.eval()
        with torch.no_grad():
            module(*[_torch(value, device) for value in inputs])
    finally:
        for handle in hooks:
            handle.remove()
        for layer, mode in modes:
            layer.training = mode


def _torch(value: Any, device: Any) -> Any:
    """An argument as PyTorch takes it."""
    import torch

    if isinstance(value, (Tensor, np.ndarray)):
        value = torch.as_tensor(np.array(_array(value)))
    return value.to(device) if is_torch(value) else value


def _tensors(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Tensor) or is_torch(value):
        yield path, value
    elif isinstance(value, (list, tuple, dict)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, held in items:
            yield from _tensors(held, f"{path}.{name}" if path else str(name))


def _array(value: Any) -> np.ndarray:
    """The numbers of a tensor of ours or of PyTorch's."""
    if isinstance(value, Tensor):
        return value.backend.to_numpy(value.value)
    if not is_torch(value):
        return value
    value = value.detach().cpu()  # NumPy has no bfloat16
    return (value.float() if "bfloat16" in str(value.dtype) else value).numpy()


def _modules(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every module in a module of ours, itself first, with its path."""
    if _is_ours(value):
        yield path, value
        items: Any = list(vars(value).items())
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    elif isinstance(value, dict):
        items = value.items()
    else:
        return
    for name, held in items:
        yield from _modules(held, f"{path}.{name}" if path else str(name))


def _on(device: Any, value: Any) -> Any:
    """An argument as a module of ours takes it."""
    if isinstance(value, Tensor):
        return value if device is None else value.to_device(device)
    if isinstance(value, np.ndarray) or is_torch(value):
        return Tensor.from_numpy(_array(value), device)
    return value
