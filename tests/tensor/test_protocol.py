"""What Python asks of a tensor: operators and copies."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import (
    ArgumentError,
    DataError,
    DimError,
    KindError,
    ResultDropped,
    ShapeError,
)
from burnbook.tensor import Bool, Float, Int, Tensor, linalg, signal

X = Tensor.from_numpy(np.arange(12.0).reshape(3, 4))


def values(tensor):
    return tensor.into_data().to_list()


def test_an_int_tensor_picks_slices():
    picked = Tensor.from_ints([2, 0])
    array = np.asarray(X)
    assert values(X[picked]) == array[[2, 0]].tolist()
    assert values(X[:, picked]) == array[:, [2, 0]].tolist()
    assert values(X[1, picked]) == array[1, [2, 0]].tolist()
    assert values(X[..., picked.unsqueeze()]) == array[..., [[2, 0]]].tolist()
    assert values(X[None, picked]) == array[None, [2, 0]].tolist()
    assert values(X[np.int64(1)]) == array[1].tolist()


def test_a_mask_picks_elements():
    assert values(X[X.greater(8)]) == [9.0, 10.0, 11.0]
    assert values(X[X.greater(99)]) == []


def test_lists_arrays_and_negative_indices_pick_as_in_numpy():
    array = np.asarray(X)
    picked = Tensor.from_ints([2, 0])
    assert values(X[[0, -1]]) == array[[0, -1]].tolist()
    assert values(X[np.array([[0], [1]])]) == array[[[0], [1]]].tolist()
    assert values(X[Tensor.from_ints([-1])]) == array[[-1]].tolist()
    assert values(X[picked, picked]) == array[[2, 0], [2, 0]].tolist()
    assert values(X[[True, False, True], 1]) == array[[0, 2], 1].tolist()
    assert X[[]].dims() == (0, 4)


def test_indices_that_could_mean_two_things_are_refused():
    for wrong, what in (
        (lambda: X[True], "a bool does not pick"),
        (lambda: X[1.5], "a float does not pick"),
        (lambda: X[[0.5]], "does not hold whole numbers"),
        (lambda: X[Tensor.from_bool([True])], r"the mask has shape \[1\]"),
        (lambda: X[Tensor.from_ints([3])], "indices run from 3 to 3"),
        (lambda: X[[-4]], "indices run from -4 to -4"),
    ):
        with pytest.raises(ShapeError, match=what):
            wrong()
    with pytest.raises(KindError, match="the indices are Float"):
        _ = X[X]


def test_x_at_says_what_it_waits_for():
    assert repr(X.at) == (
        "x.at: x.at[…].set(value) and x.at[…].add(value) give changed copies"
    )
    assert repr(X.at[0, 1:]) == "x.at[0, 1:] of Float [3, 4]"
    assert repr(X.at[X.greater(8), ...]) == "x.at[mask, ...] of Float [3, 4]"
    assert not hasattr(X.at, "set")
    with pytest.raises(ArgumentError) as caught:
        X[1, ::2] = 0.5
    assert caught.value.cure == "x = x.at[1, ::2].set(0.5)"


def test_a_changed_copy_that_nobody_keeps_warns():
    with pytest.warns(ResultDropped, match=r"X = X.at\[0\].set\(1.0\)"):
        X.at[0].set(1.0)


def test_values_that_are_no_tensors_of_the_kind_are_refused():
    ints = Tensor.from_ints([1, 2, 3])
    assert values(ints.at[1:].set(2.0)) == [1, 2, 2]
    assert values(ints.at[[0, 0]].add(2)) == [5, 2, 3]
    assert values(ints.greater(1).at[0].set(True)) == [True] * 3
    for wrong in (
        lambda: ints.at[0].set(0.5),
        lambda: ints.at[0].set([1]),
        lambda: ints.at[0].set(ints.float()),
        lambda: ints.greater(1).at[0].set(2),
    ):
        with pytest.raises(KindError):
            wrong()


def test_gradients_flow_through_indices():
    x = Tensor.from_numpy(np.ones((3, 2)), Autodiff(Numpy())).require_grad()
    picked = x[Tensor.from_ints([0, 0, 2], x.backend)]
    assert values(x.grad(picked.backward())) == [[2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]
    grads = x[x.greater(0)].backward()
    assert values(x.grad(grads)) == [[1.0, 1.0]] * 3


@given(st.integers(-9, 9), st.integers(-5, 5).filter(bool))
def test_floor_division_and_remainder_are_those_of_python(a, b):
    for kind in (Int, Float):
        x = Tensor.from_data([a], kind=kind)
        assert values(x // b) == [a // b]
        assert values(x % b) == [a % b]
        assert [values(part) for part in divmod(x, b)] == [[a // b], [a % b]]
    y = Tensor.from_ints([b])
    assert values(a // y) == [a // b]
    assert values(a % y) == [a % b]
    assert values(a - y) == [a - b]


def test_bits_have_operators():
    six = Tensor.from_ints([6])
    assert [values(t) for t in (six & 3, six | 3, six ^ 3, ~six)] == [
        [2], [7], [5], [-7],
    ]  # fmt: skip
    assert values(3 & six) == [2]
    assert values(six << 2) == [24]
    assert values(six >> 1) == [3]
    mask = Tensor.from_bool([True, False])
    assert values(mask ^ mask) == [False, False]
    with pytest.raises(KindError):
        X & 3


def test_functions_of_python():
    x = Tensor.from_data([1.25, -2.5])
    assert values(round(x)) == [1.0, -2.0]
    assert values(round(x, 1)) == [np.float32(1.2), -2.5]
    assert values(abs(x)) == [1.25, 2.5]
    assert values(+x) == values(x)
    assert 1.25 in x
    assert 7 not in x
    assert "a" not in x
    assert [*range(Tensor.from_ints([2]))] == [0, 1]
    assert "abc"[Tensor.from_ints([1])] == "b"
    with pytest.raises(KindError, match="counts as a whole number"):
        range(x)
    a, b = x
    assert (float(a), float(b)) == (1.25, -2.5)
    assert [float(t) for t in reversed(x)] == [-2.5, 1.25]


def test_numpy_may_look_but_not_compute():
    assert np.mean(np.asarray(X)) == 5.5
    for guess in (np.sin, lambda x: np.add(x, 1), lambda x: np.add(np.ones(4), x)):
        with pytest.raises(KindError):
            guess(X)
    with pytest.raises(KindError):
        np.ones(4) + X


def test_an_array_of_another_library_comes_in_by_dlpack():
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    x = Tensor.from_dlpack(array)
    array[:] = 0
    assert values(x) == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert x.dtype == "f32"
    assert Tensor.from_dlpack(np.ones(2, np.int8)).kind is Int
    with pytest.raises(DataError, match="does not support DLPack"):
        Tensor.from_dlpack([1.0])


def test_torch_tensors_go_both_ways():
    torch = pytest.importorskip("torch", reason="PyTorch is the other library here")
    there = torch.arange(6.0).reshape(2, 3).T
    x = Tensor.from_dlpack(there)
    assert values(x) == there.tolist()
    assert torch.from_dlpack(x).tolist() == there.tolist()
    with pytest.raises(DataError, match="cannot be handed over"):
        Tensor.from_dlpack(torch.ones(2, dtype=torch.bfloat16))


def test_copies_are_equal_and_independent():
    device = Autodiff(Numpy())
    for kind in (Float, Int, Bool):
        x = Tensor.ones([2, 2], device, kind)
        for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
            assert other.kind is kind
            assert other.backend is device
            assert values(other) == values(x)
    leaf = Tensor.ones([2], device).require_grad()
    assert copy.deepcopy(leaf).is_require_grad()
    assert not copy.deepcopy(leaf * 2).is_require_grad()


FLOATS = ("f16", "f32", "f64")
INTS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


@pytest.mark.parametrize("name", FLOATS)
def test_float_backends_keep_their_element_type(name):
    device = Numpy(float=name)
    x = Tensor.from_data([[0.5, 1.5], [2.0, 0.25]], device)
    made = (
        x + 1, 2 / x, x**2, x**0.5, x @ x, x.mean(), x.var(0), x.sort(0), x.cumprod(1),
        x.prod(), x.erf(), x.tan(), x.topk(1, 0), x.median(0), x.softmax(1), x.T,
        x.pad((1, 1, 0, 0), 0.0), x.unfold(0, 1, 1), Tensor.random([3], device=device),
        x.hypot(x), x.select(0, Tensor.from_ints([0], device)),
        x.mask_fill(x.equal(2), 0),
        linalg.det(x), linalg.qr(x)[0], signal.rfft(x, 1)[0], x**3, x.remainder(x),
    )  # fmt: skip
    assert {t.dtype for t in made} == {name}
    assert x.argmax(0).dtype == x.argsort(0).dtype == "i64"
    assert x.greater(1).dtype == "bool"


@pytest.mark.parametrize("name", INTS)
def test_int_backends_keep_their_element_type(name):
    device = Numpy(int=name)
    x = Tensor.from_ints([[3, 1], [2, 0]], device)
    made = (
        x + 1, x * 2, x // 2, x.div(2), x % 2, x**2, x.sum(), x.max(), x.max_dim(0),
        x.sort(1), x.argsort(0), x.sort_descending(0), x.cumsum(0), x.prod_dim(1),
        x & 1, ~x, x.triu(), x.one_hot(4), x.equal(1).int(), x.greater(1).argwhere(),
        x.cummax(0),
        Tensor.arange(0, 3, device), Tensor.cartesian_grid([2, 2], device),
    )  # fmt: skip
    assert {t.dtype for t in made} == {name}
    assert values(x.argsort(1)) == [[1, 0], [1, 0]]
    assert values(x.sort_descending(0)) == [[3, 1], [2, 0]]
    assert x.float().dtype == "f32"


def test_a_wrong_dim_is_an_index_error_everywhere():
    calls = {
        "sum_dim": (5,), "sort": (5,), "argsort": (5,), "cumsum": (5,), "topk": (1, 5),
        "median": (5,), "var": (5,), "split": (1, 5), "unfold": (5, 1, 1), "roll_dim":
        (1, 5), "movedim": (0, 5), "squeeze_dims": ([5],), "unsqueeze_dims": ([9],),
        "narrow": (5, 0, 1), "chunk": (1, 5), "max_dim": (-3,), "prod_dim": (2,),
    }  # fmt: skip
    for name, args in calls.items():
        with pytest.raises(DimError):
            getattr(X, name)(*args)
