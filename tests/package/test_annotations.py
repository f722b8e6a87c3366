"""How much of the package says what it takes: `Any` is an exception."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "burnbook"
MOST = 0.08  # of all parameters, kernels aside: numba and CUDA have types of their own
KERNELS = (
    *("backend/compiled", "backend/cuda"),
    "exporters/micropython/kernels.py",  # copied to machines that would only read types
)


def parameters(function):
    given = function.args
    held = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    held += [one for one in (given.vararg, given.kwarg) if one is not None]
    return held[1:] if held and held[0].arg in ("self", "cls") else held


def says_nothing(parameter):
    return parameter.annotation is None or ast.unparse(parameter.annotation) == "Any"


def test_at_most_eight_of_a_hundred_parameters_are_any():
    number, silent = 0, {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(KERNELS):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found = parameters(node)
                number += len(found)
                silent[name] = silent.get(name, 0) + sum(map(says_nothing, found))
    assert number > 5000
    worst = sorted(silent.items(), key=lambda row: -row[1])[:10]
    assert sum(silent.values()) / number <= MOST, f"most of them: {worst}"
