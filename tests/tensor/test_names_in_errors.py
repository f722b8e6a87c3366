"""Errors of operators and methods speak of the reader's names; their cures work.

Every operator is tried with every way in which two tensors do not go together, in
several spellings of its inputs. The pieces of a cure take the places of the operands
that they begin with, and the line then works.
"""

import ast
import linecache
import operator
import re

import numpy as np
import pytest

from burnbook.core.errors import BurnbookError, KindError, ShapeError
from burnbook.prelude import Autodiff, Bool, Float, Int, Module, Numpy, Param, Tensor

DEVICE, PLAIN = Autodiff(Numpy()), Numpy()
ARITHMETIC = ["+", "-", "*", "/", "%", "**", "//"]
COMPARISONS = ["<", "<=", ">", ">="]
LOGIC = ["&", "|", "^"]
BITS = ["<<", ">>"]
IMAGES = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 2.0]], np.float32)
# What is wrong with the operand on the right: it, and its values beside IMAGES.
RIGHT = {
    "rank": (Tensor.from_data([2.0, 1.0, 4.0], DEVICE), [2.0, 1.0, 4.0]),
    "kind": (Tensor.from_ints([[2, 1, 4]], DEVICE), [2.0, 1.0, 4.0]),
    "kind and rank": (Tensor.from_ints([2, 1, 4], DEVICE), [2.0, 1.0, 4.0]),
    "turned": (Tensor.from_data(IMAGES.T.copy(), DEVICE), IMAGES),
    "device": (Tensor.from_data(IMAGES, PLAIN), IMAGES),
    "array": (np.array([[2.0, 1.0, 4.0]]), [2.0, 1.0, 4.0]),
    "row": (np.array([2.0, 1.0, 4.0], np.float32), [2.0, 1.0, 4.0]),
    "ints": (np.array([[2, 1, 4]]), [2.0, 1.0, 4.0]),
    "list": ([2.0, 1.0, 4.0], [2.0, 1.0, 4.0]),
    "param": (Param.from_tensor(Tensor.from_data(IMAGES, DEVICE)), IMAGES),
}
SPELLINGS = {  # of the left and the right operand
    "names": ("images", "other"),
    "fields": ("net.images", "net.other"),
    "as the op": ("x", "y"),
    "crossed": ("y", "x"),
    "elements": ("held[0]", "held[1]"),
    "calls": ("first()", "second()"),
}
PYTHON = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "**": operator.pow,
    "//": operator.floordiv,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Net:
    pass


def space(left, right, spelling):
    net = Net()
    net.images, net.other = left, right
    a, b = SPELLINGS[spelling]
    known = {
        "net": net,
        "held": [left, right],
        "Tensor": Tensor,
        "np": np,
        "first": lambda: left,
        "second": lambda: right,
        "Float": Float,
        "Int": Int,
        "Bool": Bool,
        "Autodiff": Autodiff,
        "Numpy": Numpy,
    }
    if a.isidentifier():
        known |= {a: left, b: right}
    return known


def run(line, known):
    name = f"<names {line}>"
    linecache.cache[name] = (len(line), None, [line], name)
    try:
        return eval(compile(line, name, "eval"), known)
    finally:
        del linecache.cache[name]


def with_cure(line, cure):
    """The line with every piece of a cure in the place of its operand."""
    cure = re.split(r", or | to train| in its place|, which", cure)[0]
    for piece in cure.split(" and "):
        inner = re.match(r"Tensor\.from_data\((.+?), \S+\.device\(", piece)
        operands = [inner[1]] if inner else []
        operands += [piece[:i] for i, c in enumerate(piece) if c == "."][::-1]
        found = next(each for each in operands if each in line)
        line = re.sub(rf"(?<![\w.]){re.escape(found)}(?!\w)", lambda _: piece, line)  # noqa: B023 - used at once
    return line


def refused(line, known):
    with pytest.raises(BurnbookError) as caught:
        run(line, known)
    return caught.value


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("wrong", RIGHT)
@pytest.mark.parametrize("sign", [*ARITHMETIC, *COMPARISONS])
@pytest.mark.parametrize("reflected", [False, True])
def test_the_cure_of_an_operator_fits_the_line(sign, wrong, spelling, reflected):
    left, (right, values) = Tensor.from_data(IMAGES, DEVICE), RIGHT[wrong]
    if reflected and wrong == "param":
        pytest.skip("a Param on the left is asked first, and knows no operators")
    known = space(left, right, spelling)
    a, b = SPELLINGS[spelling]
    line = f"{b} {sign} {a}" if reflected else f"{a} {sign} {b}"
    error = refused(line, known)
    again = with_cure(line, error.cure)
    assert again != line, error
    out = np.asarray(run(again, known))
    pair = (np.array(values), IMAGES) if reflected else (IMAGES, np.array(values))
    if reflected and wrong == "turned":  # the right one is turned in each line
        pair = (IMAGES.T, IMAGES.T)
    assert np.allclose(out, PYTHON[sign](*pair), rtol=1e-5), again


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("sign", [*ARITHMETIC, *COMPARISONS, "@"])
def test_the_facts_have_the_reader_s_names(sign, spelling):
    left = Tensor.from_data(IMAGES, DEVICE)
    right = Tensor.ones([2, 4], DEVICE)
    a, b = SPELLINGS[spelling]
    error = refused(f"{a} {sign} {b}", space(left, right, spelling))
    assert [row[0] for row in error.facts] == [a, b]
    if sign == "@":
        assert f"dim of {a} must equal the second-to-last dim of {b}" in error.what


LINES = [  # line, what of it is in the cure
    ("5 - labels * 0.5", "labels.float() * 0.5"),
    ("0.5 - labels", "0.5 - labels.float()"),
    ("0.5 / net.labels", "0.5 / net.labels.float()"),
    ("np.float64(0.5) - labels", "0.5 - labels.float()"),
    ("labels - 0.5", "labels.float() - 0.5"),
    ("-mask", "mask.float()"),
    ("~images", "images.bool()"),
    ("abs(mask)", "mask.float()"),
    ("images & mask", "images.bool()"),
    ("mask | labels", "labels.bool()"),
    ("labels << images", "images.int()"),
    ("mask + mask", "mask.float()"),
    ("images @ 2", "images * 2"),
    ("images.add(row)", "row.unsqueeze_dim(0)"),
    ("images.mul(row)", "row.unsqueeze_dim(0)"),
    ("images.mask_fill(weights, 0)", "weights.not_equal_elem(0)"),
    ("images.matmul(images)", "images.matmul(images.transpose())"),
    ("Tensor.cat([images, labels], 0)", "labels.float()"),
    ("(images + 1) - (row * 2)", "(row * 2).unsqueeze_dim(0)"),
    ("max(images, row)", "row.unsqueeze_dim(0)"),
]


@pytest.mark.parametrize(("line", "has"), LINES)
def test_other_forms_have_the_reader_s_names(line, has):
    labels = Tensor.from_ints([[1, 2, 3]], DEVICE)
    net = Net()
    net.labels = labels
    images = Tensor.from_data(IMAGES, DEVICE)
    known = {
        "images": images,
        "labels": labels,
        "mask": images > 2,
        "net": net,
        "row": Tensor.ones([3], DEVICE),
        "Tensor": Tensor,
        "np": np,
        "weights": Tensor.from_data([[0.0, 1.0, 2.0]] * 2, DEVICE),
    }
    assert has in refused(line, known).cure


def test_an_assignment_in_place_has_the_names():
    known = {
        "images": Tensor.from_data(IMAGES, DEVICE),
        "row": Tensor.ones([3], DEVICE),
    }
    code = "images += row\n"
    linecache.cache["<in place>"] = (len(code), None, [code], "<in place>")
    with pytest.raises(ShapeError) as caught:
        exec(compile(code, "<in place>", "exec"), known)
    assert caught.value.cure == "row.unsqueeze_dim(0)"


def test_a_step_inside_of_the_library_keeps_the_names_of_the_op():
    class Part(Module):
        weight: Param

        def forward(self, x):
            return x + self.weight.val()

    known = {
        "part": Part(Param.from_tensor(Tensor.ones([3], PLAIN))),
        "images": Tensor.from_data(IMAGES, PLAIN),
        "labels": Tensor.from_ints([[1, 2, 3]], PLAIN),
    }
    error = refused("part.forward(images)", known)  # of this file: its own words
    assert error.cure == "self.weight.val().unsqueeze_dim(0)"
    assert "images" not in str(error)
    error = refused("images.all_close(labels)", known)
    assert ast.literal_eval(repr(error.args[0])) == error.where


def test_a_text_beside_a_tensor_has_no_code_that_would_fail():
    images = Tensor.from_data(IMAGES, DEVICE)
    for line in ("images + 'a'", "images < str", "images * len"):
        with pytest.raises(KindError) as caught:
            run(line, {"images": images})
        assert caught.value.cure == "a tensor or a number in its place"
