"""Forms of Python that ask whether a tensor is true: the cure of each, applied.

A line has several elements in its tensors, so it is refused. Its cure stands in the
line's place (or in that of the condition of a statement), letter for letter, and gives
what the same line means element by element, or for one answer, in NumPy.
"""

import linecache

import numpy as np
import pytest

from burnbook.core.errors import ShapeError
from burnbook.prelude import Autodiff, Int, Numpy, Tensor

DEVICE = Autodiff(Numpy())
T = np.array([[0.5, -1.0, 2.0], [0.0, 0.25, 1.0]], np.float32)
U = np.array([[1.0, 0.0, -3.0], [0.0, 0.5, 1.0]], np.float32)
N = np.array([[1, -2, 3], [0, 5, 0]])
ARRAYS = {"t": T, "u": U, "n": N, "mask": T > 0, "other": U > 0, "rows": T[0]}


def names():
    tensors = {k: Tensor.from_data(v, DEVICE) for k, v in ARRAYS.items()}
    assert tensors["n"].kind is Int
    flags = {"flag": True, "none": None, "held": [tensors["t"], tensors["u"]]}

    class Cell:
        pass

    cell = Cell()
    cell.w = tensors["t"]
    return {**tensors, **flags, "cell": cell, "Tensor": Tensor, "low": 0.25}


# The line, and what it means for arrays.
VALUES = {
    "not t": "T == 0",
    "not mask": "~(T > 0)",
    "not n": "N == 0",
    "not t > 0": "~(T > 0)",
    "t and u": "(T != 0) & (U != 0)",
    "mask and other": "(T > 0) & (U > 0)",
    "mask or other": "(T > 0) | (U > 0)",
    "mask and other and u > 0.5": "(T > 0) & (U > 0) & (U > 0.5)",
    "mask and not other": "(T > 0) & ~(U > 0)",
    "t > 0 and t < 1": "(T > 0) & (T < 1)",
    "t < 0 or u < 0": "(T < 0) | (U < 0)",
    "t < 0 or u": "(T < 0) | (U != 0)",
    "(t > 0 or u > 0) and t < 1": "((T > 0) | (U > 0)) & (T < 1)",
    "0 < t < 1": "(0 < T) & (T < 1)",
    "low <= t < u": "(0.25 <= T) & (T < U)",
    "0 < t < u < 1": "(0 < T) & (T < U) & (U < 1)",
    "0 < t + u < 1": "(0 < T + U) & (T + U < 1)",
    "0 < cell.w < 1": "(0 < T) & (T < 1)",
    "t if mask else u": "np.where(T > 0, T, U)",
    "t if t > 0 else u": "np.where(T > 0, T, U)",
    "t if t > 0 else -t": "np.where(T > 0, T, -T)",
    "t * 2 if t > 0 else u + 1": "np.where(T > 0, T * 2, U + 1)",
    "t if t > 0 else 0": "np.where(T > 0, T, 0)",
    "t if t > 0 else low": "np.where(T > 0, T, 0.25)",
    "0.0 if t < 0 else t": "np.where(T < 0, 0, T)",
    "1 if t > 0 else 0": "np.where(T > 0, 1, 0)",
    "1.0 if t > 0 else 0.0": "np.where(T > 0, 1.0, 0.0)",
    "1 if t > 0 else -1": "np.where(T > 0, 1, -1)",
    "0.5 if t > 0 else -1": "np.where(T > 0, 0.5, -1)",
    "t if n else u": "np.where(N != 0, T, U)",
    "t if not mask else u": "np.where(~(T > 0), T, U)",
    "t if mask and other else u": "np.where((T > 0) & (U > 0), T, U)",
    "t if 0 < t < 1 else u": "np.where((0 < T) & (T < 1), T, U)",
    "max(t, u)": "np.maximum(T, U)",
    "min(t, u)": "np.minimum(T, U)",
    "max(t, 0)": "np.maximum(T, 0)",
    "max(0, t)": "np.maximum(T, 0)",
    "min(t, low)": "np.minimum(T, 0.25)",
    "max(t, u, 0.1)": "np.maximum(np.maximum(T, U), 0.1)",
    "max([t, u])": "np.maximum(T, U)",
    "min(max(t, 0), 1)": "np.maximum(T, 0)",  # the inner call, which fails first
    "max(t * 2, u)": "np.maximum(T * 2, U)",
    "max(t)": "T.max()",
    "min(t)": "T.min()",
    "sorted(t)": "np.sort(T, -1)",
    "sorted(t, reverse=True)": "-np.sort(-T, -1)",
    "any(t > 0)": "(T > 0).any()",
    "all(t > 0)": "(T > 0).all()",
    "all(mask)": "(T > 0).all()",
    "any(x > 1 for x in held)": "(T > 1).any() or (U > 1).any()",
    "all([mask, other])": "((T > 0) & (U > 0)).all()",
    "bool(mask)": "(T > 0).all()",
    "bool(t > 0)": "(T > 0).all()",
    "u in held": "True",
    "u not in held": "False",
    "held.index(u)": "1",
    "t or u": "T",  # a default: t is there
    "[x for x in held if x > 1.5]": None,
    "'yes' if t > 0 else 'no'": None,
}
# A condition of a statement, and the answers of its first cure.
CONDITIONS = {
    "t > 0": "(T > 0).any()",
    "t == u": "(T == U).all()",
    "t != u": "(T != U).any()",
    "mask": "(T > 0).any()",
    "not mask": "not (T > 0).any()",
    "not t > 0": "not (T > 0).any()",
    "0 < t < 1": "((0 < T) & (T < 1)).any()",
    "t > 0 and u > 0": "((T > 0) & (U > 0)).any()",
    "mask or other": "((T > 0) | (U > 0)).any()",
    "flag and t > 5": "(T > 5).any()",
    "flag and mask": "(T > 0).any()",
    "none or t > 0": "(T > 0).any()",
    "t": "True",
    "not t": "False",
    "cell.w > 0": "(T > 0).any()",
}
STATEMENTS = {
    "if": "out = False\nif {}:\n    out = True\n",
    "while": "out = False\nwhile {}:\n    out = True\n    break\n",
    "elif": "out = False\nif flag is None:\n    pass\nelif {}:\n    out = True\n",
    "function": "def act():\n    if {}:\n        return True\n    return False\n\n"
    "out = act()\n",
}


def run(code, known):
    name = f"<truth {code}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        exec(compile(code, name, "exec"), known)
    finally:
        del linecache.cache[name]
    return known["out"]


def cure_of(code):
    with pytest.raises(ShapeError, match="neither true nor false") as caught:
        run(code, names())
    return caught.value.cure


def first(cure):
    """The first of several cures, without the words that say when."""
    for word in ("; or ", ", or ", ", to ask", " for each element", ", along"):
        cure = cure.partition(word)[0]
    return cure


def same(out, wanted):
    out = np.asarray(out) if isinstance(out, Tensor) else out
    return np.allclose(np.asarray(out, float), np.asarray(wanted, float))


def meaning(text):
    return eval(text, {"T": T, "U": U, "N": N, "np": np})


@pytest.mark.parametrize("line", [k for k, v in VALUES.items() if v is not None])
def test_the_cure_of_a_form_means_the_form(line):
    cure = first(cure_of(f"out = {line}\n"))
    assert same(eval(cure, names()), meaning(VALUES[line])), cure


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("line", CONDITIONS)
def test_the_cure_of_a_condition_gives_one_answer(line, statement):
    cure = cure_of(STATEMENTS[statement].format(line))
    out = run(STATEMENTS[statement].format(first(cure)), names())
    assert out is bool(meaning(CONDITIONS[line])), cure
    *_, last = cure.split("or ")
    run(STATEMENTS[statement].format(first(last)), names())  # the others work as well


@pytest.mark.parametrize("line", ["t > 0", "t == t", "0 < t < 1", "mask"])
def test_an_assertion_is_about_all_elements(line):
    cure = cure_of(f"out = 1\nassert {line}, 'text'\n")
    assert ".all().into_scalar()" in cure
    assert ".any()" not in cure
    assert isinstance(eval(cure, names()), bool)


def test_a_filter_has_one_answer_for_each_tensor():
    cure = first(cure_of("out = [x for x in held if x > 1.5]\n"))
    out = run(f"out = [x for x in held if {cure}]\n", names())
    assert [same(each, T) for each in out] == [True]
    assert eval(first(cure_of("out = 'yes' if t > 0 else 'no'\n")), names()) is True


def test_a_choice_keeps_the_gradient():
    t = Tensor.from_data(T, DEVICE).require_grad()
    known = {**names(), "t": t}
    for line in ("t if t > 0 else -t", "max(t, 0)", "t if t > 0 else 0"):
        out = eval(first(cure_of(f"out = {line}\n")), known)
        grad = np.asarray(t.grad(out.sum().backward()))
        wanted = np.where(T > 0, 1, -1 if "-t" in line else 0)
        assert np.array_equal(grad[T != 0], wanted[T != 0])


def test_without_a_source_both_answers_are_named():
    with pytest.raises(ShapeError) as caught:
        eval("not t", names())
    assert caught.value.cure == "x.all().into_scalar(), or x.any().into_scalar()"


@pytest.mark.parametrize("line", ["t is none or u", "t is None or u > t"])
def test_a_comparison_of_identity_is_not_taken_for_the_tensor(line):
    cure = cure_of(f"out = 0\nif {line}:\n    pass\n")
    assert "is none" not in cure.lower()


def test_one_element_is_true_or_false():
    one = Tensor.from_data([0.5], DEVICE)
    assert max(one, 0.1) is one
    assert (0 < one < 1).into_scalar() is True
    assert (not one) is False
