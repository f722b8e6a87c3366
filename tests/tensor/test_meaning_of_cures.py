"""Cures that convert a type keep the meaning: masks of numbers, and Int `/`."""

import linecache
import re
import warnings

import numpy as np
import pytest

from burnbook import nn
from burnbook.core.errors import FractionDropped, KindError
from burnbook.prelude import Autodiff, Float, Int, Numpy, Tensor
from burnbook.program import capture
from burnbook.tensor.attention import attention

DEVICE = Numpy()
WORDS = [[1, 1, 1, 0], [1, 1, 0, 0]]  # as Hugging Face has it: 0 is padding
HIDDEN = np.array(WORDS) == 0
ADDED = [[0.0, 0.0, 0.0, -np.inf], [0.0, 0.0, -1e9, -1e9]]
X = Tensor.ones([2, 4, 8], DEVICE)
MHA = nn.MultiHeadAttentionConfig(8, 2, dropout=0.0).init(DEVICE)


def attended(mask, name):
    """The weights of attention, [b, 1, s, t], where a mask is given by this name."""
    if name == "mask":
        wide = mask.reshape([2, 1, 1, 4]).expand([2, 1, 4, 4])
        q = X.unsqueeze_dim(1)
        values = Tensor.eye(4, DEVICE).unsqueeze(4).expand([2, 1, 4, 4])
        return np.asarray(attention(q, q, values, wide))
    if name == "mask_attn":
        mask = mask.unsqueeze_dim(1).expand([2, 4, 4])
    made = getattr(nn.MhaInput.self_attn(X), name)(mask)
    return np.asarray(MHA.forward(made).weights)


@pytest.mark.parametrize("name", ["mask_pad", "mask_attn", "mask"])
@pytest.mark.parametrize(
    ("values", "kind"), [(WORDS, Int), (WORDS, Float), (ADDED, Float)]
)
def test_the_cure_of_a_mask_of_numbers_hides_the_padding(name, values, kind):
    mask = Tensor.from_data(values, DEVICE, kind)
    with pytest.raises(KindError, match="True hides") as caught:
        attended(mask, name)
    cure = re.match(r"[^ ,]+", caught.value.cure)[0]
    weights = attended(eval(cure, {name: mask}), name)
    hidden = np.broadcast_to(HIDDEN[:, None, None, :], weights.shape)
    assert np.all(weights[hidden] < 1e-6)
    assert np.all(weights[~hidden] > 0.1)


def test_the_other_cure_is_for_the_other_convention():
    mask = Tensor.from_data([[0, 0, 0, 1], [0, 0, 1, 1]], DEVICE, Int)
    with pytest.raises(KindError) as caught:
        attended(mask, "mask_pad")
    cure = re.search(r"or (\S+) where 1 is padding", caught.value.cure)[1]
    weights = attended(eval(cure, {"mask_pad": mask}), "mask_pad")
    assert np.all(weights[np.broadcast_to(HIDDEN[:, None, None], weights.shape)] < 1e-6)


@pytest.mark.parametrize("method", ["mask_fill", "mask_where"])
def test_both_cures_of_a_fill_say_which_places_they_take(method):
    x, mask = Tensor.ones([2, 4], DEVICE), Tensor.from_data(WORDS, DEVICE, Int)
    other = 0.0 if method == "mask_fill" else x * 0.0
    with pytest.raises(KindError) as caught:
        getattr(x, method)(mask, other)
    ones, zeros = re.findall(r"mask\.\w+\(0\)", caught.value.cure)
    for cure, wanted in ((ones, WORDS), (zeros, HIDDEN)):
        out = getattr(x, method)(eval(cure, {"mask": mask}), other)
        assert np.array_equal(np.asarray(out) == 0, np.array(wanted, bool))


def ran(code, **names):
    """A line with a source, and the warning that it gives."""
    linecache.cache["<line>"] = (len(code), None, [code], "<line>")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = eval(compile(code, "<line>", "eval"), names)
    return out, [w for w in caught if w.category is FractionDropped]


DIVISIONS = [  # the line, whether a rest is cut off
    ("right / 4", True),
    ("right / n", True),
    ("7 / n", True),
    ("n / n", False),
    ("even / 2", False),
    ("-n / 4", True),
    ("n.div(2)", False),
    ("n // 2", False),
    ("7 // n", False),
    ("n % 2", False),
    ("divmod(n, 2)", False),
    ("n.float() / 2", False),
    ("n.div_scalar(2)", False),
]


@pytest.mark.parametrize("device", [Numpy(), Numpy(compiled=False), Autodiff(Numpy())])
@pytest.mark.parametrize(("line", "cuts"), DIVISIONS)
def test_a_rest_that_is_cut_off_is_told_at_the_line(line, cuts, device):
    names = {
        "right": Tensor.from_ints([3], device),
        "n": Tensor.from_ints([2], device),
        "even": Tensor.from_ints([2, 4], device),
    }
    out, told = ran(line, **names)
    assert bool(told) == cuts
    if not cuts:
        return
    assert told[0].filename == "<line>"
    cure = str(told[0].message).partition("try: ")[2].split(",")[0]
    above, _, below = line.partition(" / ")
    values = {name: np.asarray(value) for name, value in names.items()}
    exact = eval(f"({above}) / ({below})", values)
    assert np.allclose(np.asarray(eval(cure, names)), exact)
    assert np.array_equal(np.asarray(out), np.trunc(exact))  # Burn's rule stands


def test_the_accuracy_of_a_loop_by_hand_is_not_zero_in_silence():
    guess, y = Tensor.from_ints([1, 2, 3, 4]), Tensor.from_ints([1, 2, 3, 3])
    out, told = ran("guess.equal(y).int().sum() / 4", guess=guess, y=y)
    assert (out.into_scalar(), len(told)) == (0, 1)
    cure = str(told[0].message).partition("try: ")[2].split(", or ")[0]
    assert eval(cure, {"guess": guess, "y": y}).into_scalar() == 0.75


def test_a_capture_divides_without_a_warning():
    n = Tensor.from_ints([3, 5], DEVICE)
    program, told = ran("capture(lambda n: n / 2, n)", capture=capture, n=n)
    assert not told
    assert np.array_equal(program.run(np.array([3, 5]))[0], [1, 2])
