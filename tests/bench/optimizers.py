"""One step of each optimizer over the parameters of W1, beside PyTorch's forms.

PyTorch changes parameters in place; ours makes new ones, so that the old model stays.
The ratio is to PyTorch's own choice on a CPU without being asked (`foreach`).
"""

import os
from collections.abc import Iterator

import numpy as np

import burnbook  # noqa: F401 - before NumPy
from tests.bench.rounds import Contender, compare

SHAPES = [
    *((8, 1, 3, 3), (8,), (16, 8, 3, 3), (16,)),
    *((1024, 512), (512,), (512, 10), (10,)),
]
MATRICES = [shape for shape in SHAPES if len(shape) == 2]
RATE = 1e-4

# Our config as text; PyTorch's class and arguments; whether it has a fused form.
ROWS = {
    "Sgd": ("SgdConfig()", "SGD", {}, True),
    "Sgd, momentum": (
        "SgdConfig(momentum=MomentumConfig())",
        "SGD",
        {"momentum": 0.9, "dampening": 0.1},
        True,
    ),
    "Adam": ("AdamConfig()", "Adam", {}, True),
    "Adam, amsgrad": ("AdamConfig(amsgrad=True)", "Adam", {"amsgrad": True}, True),
    "AdamW": ("AdamWConfig()", "AdamW", {}, True),
    "AdaGrad": ("AdaGradConfig()", "Adagrad", {}, True),
    "RmsProp": ("RmsPropConfig()", "RMSprop", {"momentum": 0.9}, False),
    "RmsProp, centered": (
        "RmsPropConfig(centered=True)",
        "RMSprop",
        {"momentum": 0.9, "centered": True},
        False,
    ),
    "Adan": ("AdanConfig()", None, {}, False),
    "Muon": ("MuonConfig()", "Muon", {}, False),
    "LBFGS": ("LBFGSConfig(max_iter=5, history_size=10)", "LBFGS", {}, False),
}


def arrays(name):
    rng = np.random.default_rng(0)
    shapes = MATRICES if name == "Muon" else SHAPES
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def ours(name, compiled):
    """A callable that makes one step."""
    from burnbook import optim
    from burnbook.module import Module, Param
    from burnbook.prelude import Autodiff, Numpy, Tensor

    class Parameters(Module):
        held: list[Param]

    device = Autodiff(Numpy(compiled=compiled))
    given = [Tensor.from_numpy(a, device) for a in arrays(name)]
    module = Parameters([Param.from_tensor(t) for t in given])
    grads = {p.id: t.inner() * 0.1 for p, t in zip(module.held, given, strict=True)}
    made = eval(ROWS[name][0], vars(optim)).init()

    def closure(module):
        found = {p.id: p.val().inner() * 0.1 for p in module.held}
        return next(losses), optim.GradientsParams(found)

    losses = (1e9 - i for i in range(10**9))  # never still

    def step():
        nonlocal module
        if name == "LBFGS":
            module, _ = made.step(RATE, module, closure)
        else:
            module = made.step(RATE, module, optim.GradientsParams(dict(grads)))

    return step


def theirs(name, form):
    """The same in PyTorch; form is "foreach" or "fused"."""
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    weights = [torch.nn.Parameter(torch.from_numpy(a)) for a in arrays(name)]
    for weight in weights:
        weight.grad = weight.detach() * 0.1
    _, cls, arguments, _ = ROWS[name]
    if name == "LBFGS":
        arguments = {"max_iter": 5, "history_size": 10}
    elif name != "Muon":
        arguments = {**arguments, form: True}
    made = getattr(torch.optim, cls)(weights, lr=RATE, **arguments)
    losses = (1e9 - i for i in range(10**9))

    def closure():
        for weight in weights:
            weight.grad = weight.detach() * 0.1
        return torch.tensor(next(losses), dtype=torch.float64)

    return (lambda: made.step(closure)) if name == "LBFGS" else made.step


def table_optim(rounds: int) -> Iterator[tuple]:
    """Every optimizer, compiled and plain, as a share of PyTorch's time."""
    make = f"{__name__}:"
    for name, (_, cls, _, fused) in ROWS.items():
        contenders = [Contender(f"torch {name}", f"{make}theirs", (name, "foreach"))]
        if fused:
            other = Contender(f"torch {name}, fused", f"{make}theirs", (name, "fused"))
            contenders.append(other)
        if cls is None:  # PyTorch has none: beside Adam
            contenders = [Contender("torch Adam", f"{make}theirs", ("Adam", "foreach"))]
        contenders += [
            Contender(f"optim {name} compiled", f"{make}ours", (name, True)),
            Contender(f"optim {name} plain", f"{make}ours", (name, False)),
        ]
        results, failed = compare(contenders, rounds)
        for result in results:
            yield result.name, result.ratio, f"{result.milliseconds:.3f} ms"
        for contender, error in failed.items():
            yield contender, None, error
