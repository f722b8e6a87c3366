"""Files that PyTorch writes, each with the tensors that are in it."""

import collections
import io
import pickle

import numpy as np
import torch

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOAT8 = [
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]


def saved(value, **options):
    """The bytes that torch.save writes."""
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def numbers(*shape):
    return torch.arange(int(np.prod(shape)), dtype=torch.float32).reshape(shape) - 3.5


def cyclic_views():
    base = numbers(6, 4)
    return {
        "whole": base,
        "turned": base.T,
        "part": base[2:5, 1:3],
        "every other": base[::2, ::2],
        "last": base[5, 3],
        "flat": base.reshape(-1)[7:19],
    }


def permuted():
    return {"w": numbers(2, 3, 4).permute(2, 0, 1), "v": numbers(4, 3, 2, 2)[:, 1]}


def channels_last():
    return {"w": numbers(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)}


def module():
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Linear(3, 4)
    )
    return layers.state_dict()


def optimizer():
    layer = torch.nn.Linear(3, 2)
    optim = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 3)).sum().backward()
    optim.step()
    schedule = torch.optim.lr_scheduler.MultiStepLR(optim, [1, 2, 2])
    return {
        "model": layer.state_dict(),
        "optimizer": optim.state_dict(),
        "schedule": schedule.state_dict(),
        "epoch": 3,
        "torch": torch.__version__,
    }


def tied():
    layer = torch.nn.Linear(3, 3)
    return {"a": layer.weight, "b": layer.weight, "c": layer.bias}


def makers():  # noqa: PLR0915 - a table
    """For each name, what is saved and the options of torch.save."""
    yield from (
        (
            f"dtype {name}",
            {"t": torch.tensor([0, 1, 2, 3]).to(getattr(torch, name))},
            {},
        )
        for name in [*FLOATS, *INTS]
    )
    codes = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    yield from (
        (f"dtype {name}", {"t": codes.view(getattr(torch, name))}, {})
        for name in FLOAT8
    )
    yield "bool", {"t": torch.tensor([[True, False], [False, True]])}, {}
    special = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-45]
    yield "special values", {"t": torch.tensor(special)}, {}
    yield "empty", {"t": torch.zeros(0), "u": torch.zeros(3, 0, 2)}, {}
    yield "scalar", {"t": torch.tensor(42.0), "n": torch.tensor(7)}, {}
    yield "views", cyclic_views(), {}
    yield "permuted", permuted(), {}
    yield "channels last", channels_last(), {}
    yield "expanded", {"t": torch.tensor([1.0, 2.0]).expand(5, 2)}, {}
    yield "expanded from one", {"t": torch.tensor(3.0).expand(4, 3)}, {}
    yield "state dict", module(), {}
    yield "nested", {"a": {"b": {"c": numbers(2)}}, "d": numbers(3)}, {}
    yield "lists", {"ws": [numbers(2), (numbers(3), numbers(1))]}, {}
    yield "numbers as keys", {0: numbers(2), 10: {1: numbers(1)}}, {}
    yield "parameters", {"p": torch.nn.Parameter(numbers(2, 2))}, {}
    yield "a frozen parameter", {"p": torch.nn.Parameter(numbers(2), False)}, {}
    yield "buffers", {"b": torch.nn.Buffer(numbers(3))}, {}
    ordered = collections.OrderedDict(z=numbers(1), a=numbers(2))
    yield "ordered", ordered, {}
    defaults = collections.defaultdict(dict)
    defaults["a"]["b"] = numbers(2)
    yield "a dict with defaults", defaults, {}
    yield "tied", tied(), {}
    yield "a checkpoint", optimizer(), {}
    yield "one tensor", numbers(2, 2), {}
    yield "a list at the top", [numbers(2), numbers(3)], {}
    yield (
        "sizes and devices",
        {
            "s": torch.Size([2]),
            "d": torch.device("cpu"),
            "t": numbers(1),
            "k": torch.float16,
        },
        {},
    )
    yield "names in Unicode", {"größe.重み": numbers(2)}, {}
    yield "many", {f"layer.{i}.weight": numbers(i % 3 + 1) for i in range(300)}, {}
    yield "protocol 4", module(), {"pickle_protocol": 4}
    yield "protocol 5", module(), {"pickle_protocol": 5}
    old = {"_use_new_zipfile_serialization": False}
    yield "legacy", module(), old
    yield "legacy views", cyclic_views(), old
    yield "legacy checkpoint", optimizer(), old
    yield "legacy bfloat16", {"t": numbers(3).bfloat16()}, old
    yield "legacy bools", {"t": torch.tensor([True, False])}, old
    yield "legacy empty", {"t": torch.zeros(0), "u": numbers(2)}, old
    yield "legacy parameters", {"p": torch.nn.Parameter(numbers(2, 2))}, old
    yield "legacy nested", {"a": [numbers(2), {"b": numbers(3, 1).T}]}, old
    yield "legacy many", {f"w{i}": numbers(2) for i in range(30)}, old


def files():
    """Name, bytes, and the tensors by their names."""
    for name, value, options in makers():
        yield name, saved(value, **options), tensors(value)
    value = {"plain": numbers(3, 2).T, "n": torch.tensor([1, 2])}
    for protocol in (2, 3, 4, 5):
        yield f"pickle {protocol}", pickle.dumps(value, protocol), tensors(value)


def tensors(value, name=""):
    """The tensors in a value, by the names that they have here."""
    if isinstance(value, torch.Tensor):
        return {name or "tensor": value.detach()}
    rows = value.items() if isinstance(value, dict) else None
    if isinstance(value, (list, tuple)):
        rows = enumerate(value)
    found = {}
    for key, held in rows or ():
        found |= tensors(held, f"{name}.{key}" if name else str(key))
    return found


def as_numpy(tensor):
    """The elements as NumPy has them: f32 for what it lacks."""
    if tensor.dtype == torch.bfloat16 or "float8" in str(tensor.dtype):
        tensor = tensor.float()
    return tensor.contiguous().numpy()


class Net(torch.nn.Module):
    """A module of one's own, to be saved whole."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 3)
