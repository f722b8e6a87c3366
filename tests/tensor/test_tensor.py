"""Making, reading, slicing and showing tensors."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import (
    BackendError,
    DataError,
    DimError,
    FractionDropped,
    KindError,
    ShapeError,
)
from burnbook.tensor import (
    Bool,
    Distribution,
    ElementConversion,
    Float,
    Int,
    Tensor,
    TensorData,
)

DEVICE = Numpy()


def values(tensor):
    return tensor.into_data().to_list()


def test_the_first_program_of_the_book():
    x = Tensor[2].from_data([[2.0, 3.0], [4.0, 5.0]], DEVICE)
    y = Tensor[2].ones_like(x)
    assert str(x + y) == (
        "Tensor {\n"
        "  data:\n"
        "[[3.0, 4.0],\n"
        " [5.0, 6.0]],\n"
        "  shape:  [2, 2],\n"
        "  device:  Cpu,\n"
        '  backend:  "numpy",\n'
        '  kind:  "Float",\n'
        '  dtype:  "f32",\n'
        "}"
    )


def test_display_precision_follows_the_format():
    x = Tensor[2].full([2, 3], 0.123456789, DEVICE)
    assert "[[0.12345679, 0.12345679, 0.12345679]," in f"{x}"
    assert "[[0.12, 0.12, 0.12],\n [0.12, 0.12, 0.12]]" in f"{x:.2}"
    with pytest.raises(ValueError, match="not one number"):
        f"{x:d}"


def test_repr_is_one_line_and_html_is_static():
    x = Tensor.from_data([[1.0, 2.0]])
    assert repr(x).startswith("Tensor Float [1, 2] on Numpy()  mean 1.5")
    assert "<script" not in x._repr_html_()
    assert x._repr_html_() == x._repr_html_()


def test_kind_follows_from_the_data_or_from_the_type():
    assert Tensor.from_data([1, 2]).kind is Int
    assert Tensor.from_data([1.0]).kind is Float
    assert Tensor.from_data([True]).kind is Bool
    assert Tensor[1].from_data([1, 2]).kind is Float
    assert Tensor[1, Int].from_ints([1, 2, 3], DEVICE).dtype == "i64"


def test_the_type_checks_rank_kind_and_backend():
    with pytest.raises(ShapeError, match="the result has rank 2, not 3"):
        Tensor[3].zeros([2, 2])
    with pytest.raises(KindError, match="the result is Int, not Float"):
        Tensor[1].from_ints([1])
    other = Numpy(float="f64")
    assert Tensor[other, 2].zeros([2, 2]).backend is other
    with pytest.raises(BackendError, match="not the backend of the type"):
        Tensor[other, 2].zeros([2, 2], DEVICE)
    with pytest.raises(ShapeError, match="is not a rank"):
        Tensor["two"]


def test_isinstance_reads_the_type():
    x = Tensor.zeros([2, 2])
    assert isinstance(x, Tensor[2])
    assert not isinstance(x, Tensor[1])
    assert not isinstance(x, Tensor[2, Int])
    assert repr(Tensor[DEVICE, 2, Int]) == "Tensor[Numpy(), 2, Int]"
    assert Tensor[2] == Tensor[2]


def test_rank_zero_does_not_exist():
    with pytest.raises(ShapeError, match="at least one dim"):
        Tensor.from_data(3.0)
    with pytest.raises(ShapeError, match="at least one dim"):
        Tensor.zeros([])
    assert Tensor.ones([2, 2]).sum().dims() == (1,)


def test_creation():
    assert values(Tensor.eye(2)) == [[1.0, 0.0], [0.0, 1.0]]
    assert values(Tensor.arange_step(-3, 3, 2)) == [-3, -1, 1]
    assert values(Tensor.arange(3, 1)) == []
    assert values(Tensor.one_hot(1, 3)) == [0.0, 1.0, 0.0]
    assert values(Tensor.ones([2], kind=Bool)) == [True, True]
    assert values(Tensor.from_bool([True, False]).int()) == [1, 0]
    x = Tensor.from_ints([[1, 2]])
    assert values(x.zeros_like()) == [[0, 0]]
    assert values(x.full_like(7)) == [[7, 7]]
    with pytest.raises(ShapeError):
        Tensor.one_hot(3, 3)
    with pytest.raises(ShapeError):
        Tensor.arange(0, 3, step=0)


def test_random_follows_the_seed():
    DEVICE.seed(7)
    first = values(Tensor.random([3], Distribution.Default, DEVICE))
    DEVICE.seed(7)
    assert values(Tensor.random([3], Distribution.Default, DEVICE)) == first
    x = Tensor.random([1000], Distribution.Normal(2.0, 0.5), DEVICE)
    assert abs(x.mean().into_scalar() - 2.0) < 0.1
    dice = Tensor[1, Int].random([1000], Distribution.Uniform(1, 7), DEVICE)
    assert sorted(set(values(dice))) == [1, 2, 3, 4, 5, 6]
    coins = Tensor.random([1000], Distribution.Bernoulli(0.25), DEVICE)
    assert 0.2 < coins.mean().into_scalar() < 0.3
    assert coins.random_like().dims() == (1000,)
    with pytest.raises(KindError):
        Tensor.random([2], kind=Bool)


def test_numbers_never_change_the_kind():
    i = Tensor.from_ints([5, 7])
    assert values(i + 2) == [7, 9]
    assert values(10 - i) == [5, 3]
    x = Tensor.from_data([1.0, 2.0])
    assert (2 / x).dtype == "f32"
    assert values(2**x) == [2.0, 4.0]
    assert (x + np.float64(1)).dtype == "f32"


@pytest.mark.parametrize(
    "act",
    [
        lambda i: i + 1.7,
        lambda i: 1.7 - i,
        lambda i: i * 2.0,
        lambda i: i / 0.5,
        lambda i: i % 1.5,
        lambda i: i**0.5,
        lambda i: i**-1,
        lambda i: i // 0.5,
        lambda i: i > 0.5,
        lambda i: i == 2.5,
        lambda i: i.mul_scalar(np.float32(0.5)),
        lambda i: i.powi(-1),
        lambda i: i.powi_scalar(-1),
        lambda i: i.clamp(0.5, None),
        lambda i: i.full_like(0.5),
        lambda i: i.mask_fill(i.greater(5), 0.5),
        lambda i: i + float("nan"),
        lambda i: Tensor.from_ints([1.5]),
        lambda i: Tensor.full([2], 0.5, kind=Int),
    ],
)
def test_an_int_tensor_never_cuts_a_float_off(act):
    with pytest.raises(KindError) as caught:
        act(Tensor.from_ints([5, 7]))
    assert caught.value.cure is not None


def test_an_int_tensor_compares_with_and_holds_floats_that_are_whole():
    i = Tensor.from_ints([5, 7])
    assert values(i > 5.0) == [False, True]
    assert values(i.clamp(6.0, None)) == [6, 7]
    assert values(i.full_like(2.0)) == [2, 2]


def test_the_mean_of_whole_numbers_is_whole_or_an_error():
    assert values(Tensor.from_ints([1, 3]).mean()) == [2]
    hits = Tensor.from_ints([1, 1, 1, 0])
    with pytest.raises(DataError, match=r"try: hits.float\(\).mean"):
        hits.mean()
    with pytest.raises(DataError, match=r"try: hits.float\(\).mean"):
        hits.mean_dim(0)
    assert values(hits.float().mean()) == [0.75]


def test_methods_that_take_a_number():
    x = Tensor.from_data([2.0, 5.0])
    assert values(x.add_scalar(0.5)) == [2.5, 5.5]
    assert values(x.sub_scalar(0.5)) == [1.5, 4.5]
    assert values(x.mul_scalar(0.5)) == [1.0, 2.5]
    assert values(x.div_scalar(2)) == [1.0, 2.5]
    assert values(x.remainder_scalar(2)) == [0.0, 1.0]
    assert values(x.powf_scalar(2.0)) == [4.0, 25.0]


def test_powers_as_in_the_book():
    x = Tensor.from_data([2.0, 3.0])
    assert values(x.powi(Tensor.from_ints([3, 2]))) == [8.0, 9.0]
    assert values(x.powi_scalar(2)) == [4.0, 9.0]
    assert values(Tensor.from_data([5.0, 7.0]).rem(x)) == [1.0, 1.0]
    with pytest.raises(KindError, match="powi_scalar: the exponent"):
        x.powi_scalar(2.5)
    with pytest.raises(KindError, match="powi: takes"):
        x.powi(Tensor.from_bool([True, False]))


def test_steps_pick_every_so_manieth_element():
    x = Tensor.arange(0, 12).reshape([3, 4])
    array = np.asarray(x)
    for parts in [np.s_[::2], np.s_[1::2, ::3], np.s_[:, 1:4:2], np.s_[-3::2, 0]]:
        assert values(x[parts]) == array[parts].tolist()
    assert values(x.slice([(0, 3, 2), range(1, 4, 2)])) == array[::2, 1::2].tolist()
    leaf = x.float().to_device(Autodiff(Numpy())).require_grad()
    grad = leaf.grad((leaf[::2, ::3] * 2.0).sum().backward())
    assert values(grad) == [[2.0, 0, 0, 2.0], [0] * 4, [2.0, 0, 0, 2.0]]
    assert values(x.slice([(0, 2, -1), range(3, 0, -2)])) == [[7, 5], [3, 1]]
    assert values(x.slice([(0, 3, -2)])) == array[::-2].tolist()
    assert values(x.slice([None, (0, 4, -3)])) == array[:, ::-3].tolist()
    zeros = Tensor.zeros([1, 2], kind=Int)
    assert values(x.slice_assign([(2, 3), (0, 4, 2)], zeros))[2] == [0, 9, 0, 11]
    ends = Tensor.from_ints([[7, 8]])
    assert values(x.slice_assign([(0, 1), (0, 4, -3)], ends))[0] == [8, 1, 2, 7]
    with pytest.raises(DimError, match="the step is 0"):
        _ = x[::0]


def test_sizes_and_dims_may_stand_one_by_one():
    x = Tensor.arange(0, 6).reshape(2, 3)
    assert x.dims() == (2, 3)
    assert values(x.permute(1, 0)) == values(x.transpose())
    assert x.expand(2, 2, 3).dims() == (2, 2, 3)
    assert x.repeat(2, 1).dims() == (4, 3)
    assert values(x.flip(0)) == [[3, 4, 5], [0, 1, 2]]
    assert x.flatten().dims() == (6,)
    assert x.shape() == x.shape
    assert [c.dims() for c in x.chunk(2)] == [(1, 3), (1, 3)]


def test_a_range_or_an_end_alone_makes_a_line():
    device = Numpy()
    assert values(Tensor.arange(range(5, 10, 2), device)) == [5, 7, 9]
    assert values(Tensor.arange(3)) == values(Tensor.arange(3, device)) == [0, 1, 2]


def test_numbers_keep_all_digits_on_a_backend_of_f64():
    device = Numpy(float="f64")
    assert Tensor[1].from_data([2.3], device).into_scalar() == 2.3
    assert Tensor[1].from_data((n for n in [2.3]), device).into_scalar() == 2.3


def test_the_kind_of_a_type_may_be_repeated():
    device = Numpy()
    assert Tensor[1].from_data([1], device, Float).kind is Float
    with pytest.raises(KindError, match="Int is not the kind"):
        Tensor[1].from_data([1], device, Int)


def test_one_number_takes_the_formats_of_python():
    loss = Tensor.from_data([0.123456])
    assert (f"{loss:.3f}", f"{loss:8.2e}", f"{loss:.1%}") == (
        "0.123",
        "1.23e-01",
        "12.3%",
    )
    assert f"{loss:.2}" == loss._text(2)
    with pytest.raises(ShapeError, match="2 elements are not one number"):
        format(Tensor.ones([2]), ".3f")


def test_whole_numbers_divide_toward_zero():
    x = Tensor.from_ints([-7, 7])
    assert values(x.div(2)) == [-3, 3]
    with pytest.warns(FractionDropped, match="a rest is cut off"):
        assert values(x / 2) == [-3, 3]
    assert values(x / 7) == [-1, 1]
    assert values(x % 4) == [1, 3]
    with pytest.raises(ZeroDivisionError):
        x / 0
    assert values(Tensor.from_ints([-3, -5]).mean()) == [-4]


def test_remainder_has_the_sign_of_the_divisor():
    x = Tensor.from_data([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    assert values(x % 2) == [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]


def test_operators_refuse_what_is_no_number():
    x = Tensor.from_data([1.0])
    for wrong in ([1.0], "1", None, np.ones(1)):
        with pytest.raises((KindError, TypeError)):
            x + wrong
    assert (x == "1") is False
    assert x != None  # noqa: E711 - the operator is what is tested
    with pytest.raises(KindError):
        np.ones(1) + x


def test_infinities_and_nan_are_silent():
    x = Tensor.from_data([-1.0, 0.0, 1.0])
    assert values(1 / x)[1] == float("inf")
    assert np.isnan(values(x.log())[0])
    assert np.isnan(values(x.sqrt())[0])
    assert values((x * 1000).exp())[2] == float("inf")
    assert values(Tensor.from_data([float("nan"), -0.0]).sign()) == [0.0, 0.0]
    wide = Tensor.from_data([float("inf"), 3e38, -float("inf")])
    for out in (
        wide - wide, wide * wide, wide + wide, wide.sum(), wide.mean(), wide.cumsum(0),
        wide.softmax(0), wide.var(0), wide % 0, wide.sort(0), wide.sin(), wide.prod(),
    ):  # fmt: skip
        assert out.kind is Float
    before = np.geterr()
    (x / 0).log()
    assert np.geterr() == before


def test_reshape_works_out_sizes():
    x = Tensor.arange(0, 24).reshape([2, 3, 4])
    assert x.reshape([-1, 4]).dims() == (6, 4)
    assert x.reshape([0, 12]).dims() == (2, 12)
    with pytest.raises(ShapeError, match="24 elements do not fill"):
        x.reshape([5, 5])
    with pytest.raises(ShapeError):
        x.reshape([-1, -1])
    assert x.flatten(1, 2).dims() == (2, 12)
    assert x.flatten(0, 0).dims() == (2, 3, 4)
    with pytest.raises(DimError):
        x.flatten(2, 1)


def test_dims_come_and_go():
    x = Tensor.zeros([3, 4])
    assert x.unsqueeze().dims() == (1, 3, 4)
    assert x.unsqueeze(4).dims() == (1, 1, 3, 4)
    assert x.unsqueeze_dim(1).dims() == (3, 1, 4)
    assert x.unsqueeze_dim(2).squeeze(2).dims() == (3, 4)
    assert x.T.dims() == (4, 3)
    assert x.permute([1, 0]).dims() == (4, 3)
    assert x.expand([2, -1, 4]).dims() == (2, 3, 4)
    for wrong in (
        lambda: x.squeeze(0),
        lambda: x.unsqueeze(1),
        lambda: x.unsqueeze_dim(4),
        lambda: x.permute([0, 0]),
        lambda: x.flip([0, 0]),
        lambda: x.swap_dims(0, 2),
        lambda: Tensor.zeros([3]).transpose(),
        lambda: Tensor.zeros([1]).squeeze(0),
    ):
        with pytest.raises(ShapeError):
            wrong()


def test_joining_and_cutting():
    x = Tensor.arange(0, 6).reshape([2, 3])
    assert Tensor.cat([x, x], 1).dims() == (2, 6)
    assert Tensor.stack([x, x], 2).dims() == (2, 3, 2)
    assert [c.dims() for c in Tensor.zeros([11, 1]).chunk(6, 0)] == [(2, 1)] * 5 + [
        (1, 1)
    ]
    assert values(x.narrow(1, 1, 2)) == [[1, 2], [4, 5]]
    assert values(x.repeat([2, 0])) == values(Tensor.cat([x, x], 0))
    assert values(x.slice([(0, -1), (0, -2)])) == [[0]]
    assert values(x.slice([None, range(1, 9)])) == [[1, 2], [4, 5]]
    assert values(x.slice_assign([(0, 1)], x.narrow(0, 1, 1))) == [[3, 4, 5], [3, 4, 5]]
    assert [values(row) for row in x.iter_dim(0)] == [[[0, 1, 2]], [[3, 4, 5]]]
    for wrong in (
        lambda: x.slice([(0, -5)]),
        lambda: x.slice([(1, 1)]),
        lambda: x.slice([None, None, None]),
        lambda: x[0:1:-1],
        lambda: x[2],
        lambda: x[0, 0, 0],
        lambda: x[[0, 2]],
        lambda: x.narrow(1, 2, 2),
        lambda: Tensor.cat([]),
        lambda: x.chunk(0, 0),
        lambda: x.repeat_dim(0, -1),
    ):
        with pytest.raises(ShapeError):
            wrong()


@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(-8, 8),
    st.integers(-8, 8),
    st.data(),
)
def test_square_brackets_mean_what_numpy_means(rows, columns, start, stop, data):
    array = np.arange(rows * columns).reshape(rows, columns)
    x = Tensor.from_numpy(array)
    picked = data.draw(st.sampled_from([slice(start, stop), slice(start, None)]))
    row = data.draw(st.integers(-rows, rows - 1))
    expected = array[row, picked]
    inside = start >= -columns and (picked.stop is None or stop >= -columns)
    if expected.size == 0 or not inside:
        with pytest.raises(DimError):
            x[row, picked]
    else:
        assert values(x[row, picked]) == expected.tolist()
        assert values(x[row]) == array[row].tolist()


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.data())
def test_stretching_equals_numpy_for_equal_ranks(shape, data):
    other = [data.draw(st.sampled_from([1, n])) for n in shape]
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    b = np.arange(np.prod(other), dtype=np.float32).reshape(other) + 1
    out = Tensor.from_numpy(a) * Tensor.from_numpy(b)
    assert np.array_equal(np.asarray(out), a * b)


def test_picking_by_index():
    x = Tensor.from_data([[1.0, 2.0], [3.0, 4.0]])
    places = Tensor.from_ints([[1], [0]])
    assert values(x.gather(1, places)) == [[2.0], [3.0]]
    assert values(x.select(0, Tensor.from_ints([1, 1]))) == [[3.0, 4.0], [3.0, 4.0]]
    base = Tensor.from_data([0.0, 1.0, 2.0])
    idx = Tensor.from_ints([1, 1, 0, 1, 2])
    add = Tensor.from_data([5.0, 4.0, 3.0, 2.0, 1.0])
    assert values(base.select_assign(0, idx, add)) == [3.0, 12.0, 3.0]
    assert values(base.scatter(0, idx, add)) == [3.0, 12.0, 3.0]
    mask = Tensor.from_bool([[True, False], [False, True]])
    assert values(x.mask_fill(mask, 0.0)) == [[0.0, 2.0], [3.0, 0.0]]
    assert values(x.mask_where(mask, -x)) == [[-1.0, 2.0], [3.0, -4.0]]
    for wrong in (-1, 2):
        with pytest.raises(DimError, match="indices run from"):
            x.gather(1, Tensor.from_ints([[wrong], [0]]))
    with pytest.raises(ShapeError):
        x.select(0, places)


def test_statistics():
    x = Tensor.from_data([[0.5, 1.8, 0.2, -2.0], [3.0, -4.0, 5.0, 0.0]])
    assert np.allclose(np.asarray(x.var(1)), [[2.4892], [15.3333]], atol=1e-4)
    var, mean = x.var_mean_bias(1)
    assert np.allclose(np.asarray(var), [[1.86688], [11.5]], atol=1e-4)
    assert np.allclose(np.asarray(mean), [[0.125], [1.0]])
    assert np.isnan(Tensor.ones([1, 1]).var(1).into_scalar())
    best, place = x.max_dim_with_indices(1)
    assert values(best) == [[1.7999999523162842], [5.0]]
    assert values(place) == [[1], [2]]
    least, place = x.min_dim_with_indices(0)
    assert values(place) == [[0, 1, 0, 0]]
    assert values(least)[0][1] == -4.0
    assert values(x.contains_nan()) == [False]
    assert x.all_close(x + 1e-9)
    assert not x.all_close(x + 1.0)


def test_element_types_convert_by_burns_rules():
    x = Tensor.from_data([1.9, -1.9])
    assert values(x.int()) == [1, -1]
    assert values(x.bool()) == [True, True]
    assert values(Tensor.from_ints([0, 2]).float()) == [0.0, 2.0]
    for wrong in (float("nan"), float("inf"), 1e30):
        with pytest.raises(ValueError, match="i64"):
            Tensor.from_data([wrong]).int()
    assert ElementConversion.elem(3.7, "i64") == 3
    narrow = Numpy(int="i32")
    assert Tensor.zeros([2, 2], narrow).argmax(1).dtype == "i32"


def test_out_into_python_and_numpy():
    x = Tensor.from_data([[1.0, 2.0]])
    view = np.asarray(x)
    assert not view.flags.writeable
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.array(x).flags.writeable
    assert float(x.sum()) == 3.0
    assert int(Tensor.from_ints([4])) == 4
    assert len(x) == 1
    assert [values(row) for row in x] == [[1.0, 2.0]]
    assert bool(Tensor.from_bool([True]))
    with pytest.raises(ShapeError, match="neither true nor false"):
        bool(x)
    with pytest.raises(ShapeError, match="2 elements, not one"):
        x.into_scalar()


def test_dlpack_hands_over_a_copy():
    x = Tensor.from_data([[1.0, 2.0]])
    taken = np.from_dlpack(x)
    assert taken.tolist() == [[1.0, 2.0]]
    torch = pytest.importorskip("torch")
    there = torch.from_dlpack(x)
    there[0, 0] = 9.0
    assert values(x) == [[1.0, 2.0]]


def test_nothing_aliases_what_the_user_holds():
    array = np.ones(3, np.float32)
    x = Tensor.from_numpy(array)
    array[0] = 9
    assert values(x) == [1.0, 1.0, 1.0]


def test_tensors_pickle_copy_and_move():
    x = Tensor.from_data([[1.0, 2.0]])
    assert values(pickle.loads(pickle.dumps(x))) == values(x)
    twin = copy.copy(x)
    x.inplace(lambda t: t * 2.0)
    assert values(x) == [[2.0, 4.0]]
    assert values(twin) == [[1.0, 2.0]]
    x = twin.clone()
    wide = x.to_device(Numpy(float="f64"))
    assert wide.dtype == "f64"
    assert x.to_device(DEVICE) is x
    assert x.to_device(Autodiff(DEVICE)).backend.ad_enabled
    assert isinstance(x.to_data(), TensorData)
    assert x.device() is DEVICE
    assert hash(x) == hash(x)


def test_a_number_on_the_other_side_of_a_wrong_kind():
    mask = Tensor.from_bool([True])
    with pytest.raises(KindError, match="add: takes Float and Float"):
        mask + 1
    assert values(~mask) == [False]
    assert values(mask & mask | ~mask) == [True]


def test_methods_show_their_source_and_signature():
    import inspect

    assert "xp.matmul" in inspect.getsource(Tensor.matmul)
    assert str(inspect.signature(Tensor.sum_dim)) == "(self, /, dim: int)"
    assert Tensor.add.__doc__


def test_a_clone_of_a_leaf_finds_the_same_gradient():
    x = Tensor.from_data([3.0], Autodiff(DEVICE)).require_grad()
    twin = x.clone()
    grads = (x * twin).backward()
    assert values(x.grad(grads)) == values(twin.grad(grads)) == [6.0]
